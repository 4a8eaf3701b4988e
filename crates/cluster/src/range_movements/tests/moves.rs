//! Nodes with one token move to another token.

use super::*;
use crate::coordinator::cas::{Cas, Round};

/// A node that has moved owns new ranges at once in its own eyes. A write that it coordinates is
/// acknowledged by itself and by one of the two replicas that stay; a node that has not heard of
/// the move reads from the other one and from the one that has lost the range.
#[test]
fn a_read_of_who_has_not_heard_of_a_move_finds_writes_of_who_has() {
    const MOVER: usize = 3;
    let ring = SimRing::new(45, &["dc1"; 4]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "3")]);
    write(&ring, 0, 0, Consistency::All);
    let token_of = |machine: usize| ring.node(machine).ring().local().tokens.first().map(|token| token.0);
    let own: Vec<i64> = (0..4).map(|machine| token_of(machine).expect("one token")).collect();
    // between the two that follow it, so that a third one loses what lies before them
    let mut others: Vec<i64> = own[..3].iter().map(|token| token.wrapping_sub(own[MOVER])).collect();
    others.sort_by_key(|distance| distance.cast_unsigned());
    let (first, second) = (own[MOVER].wrapping_add(others[0]), own[MOVER].wrapping_add(others[1]));
    let half = i64::try_from(second.wrapping_sub(first).cast_unsigned() / 2).expect("a half of it");
    let to = first.wrapping_add(half);
    beside(&ring, MOVER, move |node| async move {
        relocation::relocate(&node, &to.to_string()).await.expect("moves");
    });
    let has_moved = || {
        let snapshot = ring.node(MOVER).ring();
        snapshot.local().state == State::Normal && snapshot.local().tokens == [types::Token(to)]
    };
    assert!(ring.world.run_until(PATIENCE, has_moved), "it says that it has moved");
    let replicas = |of: usize, k: i32| -> Vec<usize> {
        let snapshot = ring.node(of).ring();
        let natural =
            snapshot.placement("ks").expect("placed").natural(types::Token::of_key(&k.to_be_bytes())).to_vec();
        let machine = |id: &ring::EndpointId| {
            (0..4).find(|machine| ring.address(*machine) == snapshot.endpoint(*id).address).expect("a machine")
        };
        natural.iter().map(machine).collect()
    };
    let found = (0..KEYS).find_map(|k| {
        let (before, after) = (replicas(0, k), replicas(MOVER, k));
        let loser = before.iter().copied().find(|machine| !after.contains(machine))?;
        let mut stay = before.into_iter().filter(|machine| *machine != loser);
        (after.contains(&MOVER)).then_some((k, loser, stay.next()?, stay.next()?))
    });
    let (k, loser, reader, up_to_date) = found.expect("the others have not heard of it, and it gains some key");
    ring.world.network().block(MOVER, reader);
    ring.write(MOVER, vec![ring.row("ks", k, 1, 7, 2_000)], Consistency::Quorum).expect("a majority has it");
    assert_eq!(ring.stored(reader, "ks", k).len(), 1, "this one does not");
    ring.world.network().heal();
    ring.world.network().block(reader, up_to_date);
    let sees_moving =
        || ring.node(reader).ring().endpoints().iter().any(|endpoint| matches!(endpoint.state, State::Moving(_)));
    assert!(sees_moving(), "the reader has not heard of it");
    let rows = ring.read(reader, vec![ring.select_key("ks", k)], Consistency::Quorum).expect("two answer");
    assert!(rows.contains(&(k, 1, 7)), "{k} is read from {reader} and {loser}, of which {loser} has it: {rows:?}");
    ring.world.network().heal();
    agree_on_members(&ring, &[0, 1, 2, 3]);
    statements_count_on_the_former_replica(&ring, MOVER, reader, k);
    // after ring_delay (these nodes were started with its default, 30 s) nobody writes to the
    // former replica
    ring.world.run_until(Duration::from_secs(35), || false);
    for machine in 0..4 {
        let snapshot = ring.node(machine).ring();
        assert!(snapshot.former().is_empty(), "{machine} has forgotten who had the range");
    }
    ring.write(MOVER, vec![ring.row("ks", k, 2, 8, 3_000)], Consistency::All).expect("all have it");
    ring.world.run_until(Duration::from_secs(5), || false);
    assert_eq!(ring.stored(reader, "ks", k).len(), 3);
    assert_eq!(ring.stored(loser, "ks", k).len(), 2, "the last write is not here");
}

/// Of the replicas of a partition one does not answer, and a former one knows that it has no copy
/// any more: it refuses commits, but takes what was decided as a write. The second statement finds
/// that the former replica does not know the commit of the first.
fn statements_count_on_the_former_replica(ring: &SimRing, through: usize, silent: usize, k: i32) {
    let node = ring.node(through);
    assert!(!node.ring().former().is_empty(), "the change is not yet old");
    ring.world.network().block(through, silent);
    let command = ring.select_key("ks", k);
    for to in [70, 71] {
        let row = ring.row("ks", k, 1, to, 1);
        let (table, key) = (&row.updates[0].table, &row.updates[0].key);
        let (serial, commit) = (Consistency::Serial, Consistency::Quorum);
        let cas = Cas { table, key, serial, commit, trace: None };
        let decide = async |round: Round| {
            let timestamp = round.timestamp.expect("nodes of a ring agree on ballots");
            Ok::<_, ()>(Some(ring.row("ks", k, 1, to, timestamp)))
        };
        let decided = ring.world.block_on(node.compare_and_set(cas, &command, decide));
        assert!(decided.is_ok(), "statement {to}: {decided:?}");
    }
    ring.world.network().heal();
}

#[test]
fn a_node_moves_to_another_token() {
    let mut ring = ring_of(4, 3);
    let token = ring.node(2).ring().local().tokens[0].0 / 2;
    beside(&ring, 2, move |node| async move {
        relocation::relocate(&node, &token.to_string()).await.expect("moves");
    });
    ring.world.run_until(Duration::from_secs(3), || false);
    write(&ring, 0, 1, Consistency::One);
    let has_moved = |machine: usize| ring.node(machine).ring().tokens().any(|(owned, _)| owned.0 == token);
    assert!(ring.world.run_until(PATIENCE, || (0..3).all(has_moved)), "all know the new token");
    agree_on_members(&ring, &[0, 1, 2]);
    ring.world.run_until(Duration::from_secs(5), || false);
    check_replicas(&ring, &[0, 1]);
    // its configuration still names the token that it had (initial_token)
    ring.kill(2);
    ring.start(2);
    assert_eq!(ring.node(2).ring().local().tokens, [types::Token(token)]);
    agree_on_members(&ring, &[0, 1, 2]);
    check_replicas(&ring, &[0, 1]);
}
