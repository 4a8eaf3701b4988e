//! Writes among several nodes.

use std::cell::Cell;
use std::time::Duration;

use env::sim::Link;
use futures_util::future::join_all;
use ring::InsufficientReplicas;
use types::{Consistency, FailureReason, WriteKind};

use crate::coordinator::error::{FailedWrite, RequestError};
use crate::replica::apply::WriteError;
use crate::testing::{SimRing, hintable};

const SIMPLE: &str = "SimpleStrategy";
const NETWORK: &str = "NetworkTopologyStrategy";

/// Three nodes and a keyspace of three copies.
fn three(seed: u64) -> SimRing {
    let ring = SimRing::new(seed, &["dc1", "dc1", "dc1"]);
    ring.create_keyspace("ks", SIMPLE, &[("replication_factor", "3")]);
    ring
}

/// Lets messages arrive that no request waits for.
fn settle(ring: &SimRing) {
    ring.world.run_for(Duration::from_secs(4));
}

fn failed(result: Result<(), RequestError>) -> FailedWrite {
    match result {
        Err(RequestError::Write(failed)) => *failed,
        other => panic!("a failed write was expected, not {other:?}"),
    }
}

/// At ALL every replica has the write when it is acknowledged; at ONE soon after; a node that is no
/// replica coordinates as well.
#[test]
fn every_replica_gets_a_write() {
    let ring = three(1);
    ring.create_keyspace("one", SIMPLE, &[("replication_factor", "1")]);
    ring.write(0, vec![ring.row("ks", 1, 2, 3, 10)], Consistency::All).expect("written");
    (0..3).for_each(|machine| assert_eq!(ring.stored(machine, "ks", 1), [(2, 3)], "machine {machine}"));
    ring.write(1, vec![ring.row("ks", 2, 2, 4, 10)], Consistency::One).expect("written");
    settle(&ring);
    (0..3).for_each(|machine| assert_eq!(ring.stored(machine, "ks", 2), [(2, 4)], "machine {machine}"));
    // each partition of the other keyspace has one replica, whoever coordinates
    for k in 0..9 {
        ring.write(k as usize % 3, vec![ring.row("one", k, 1, k, 10)], Consistency::All).expect("written");
        let holders = (0..3).filter(|machine| ring.stored(*machine, "one", k) == [(1, k)]);
        assert_eq!(holders.count(), 1, "partition {k}");
    }
}

/// A batch over several partitions: each has its own replicas and answers.
#[test]
fn each_mutation_of_a_batch_has_its_own_answers() {
    let ring = three(2);
    ring.create_keyspace("one", SIMPLE, &[("replication_factor", "1")]);
    let rows = |keyspace, v| (0..6).map(|k| ring.row(keyspace, k, 1, v, i64::from(v))).collect::<Vec<_>>();
    ring.write(2, [rows("one", 5), rows("ks", 5)].concat(), Consistency::All).expect("written");
    for k in 0..6 {
        let holders = (0..3).filter(|machine| ring.stored(*machine, "one", k) == [(1, 5)]);
        assert_eq!(holders.count(), 1, "partition {k}");
        (0..3).for_each(|machine| assert_eq!(ring.stored(machine, "ks", k), [(1, 5)]));
    }
    // one node is cut off: its partitions have no answer, so the batch has none either
    ring.world.network().partition(&[1]);
    let of_batch = failed(ring.write(2, rows("one", 6), Consistency::One));
    assert_eq!(of_batch.cause, WriteError::TimedOut);
    assert_eq!((of_batch.answers.kind, of_batch.answers.received), (WriteKind::UnloggedBatch, 0));
}

/// Where too few are known to be up nothing is sent; a level that can be met is.
#[test]
fn too_few_are_refused_before_anything_is_sent() {
    let mut ring = three(3);
    ring.kill(1);
    ring.kill(2);
    ring.agree();
    let level = Consistency::Quorum;
    let refused = ring.write(0, vec![ring.row("ks", 1, 1, 1, 10)], level);
    assert_eq!(
        refused,
        Err(RequestError::Unavailable { level, shortage: InsufficientReplicas { required: 2, alive: 1 } })
    );
    settle(&ring);
    assert_eq!(ring.stored(0, "ks", 1), []);
    ring.write(0, vec![ring.row("ks", 1, 1, 1, 10)], Consistency::One).expect("written");
}

/// A replica is cut off and nobody knows yet: QUORUM is met without it, ALL tells who has answered.
#[test]
fn a_cut_replica_costs_only_the_levels_that_need_it() {
    let ring = three(4);
    ring.world.network().partition(&[2]);
    ring.write(0, vec![ring.row("ks", 1, 1, 1, 10)], Consistency::Quorum).expect("two have it");
    let of_all = failed(ring.write(0, vec![ring.row("ks", 2, 1, 1, 10)], Consistency::All));
    assert_eq!(of_all.cause, WriteError::TimedOut);
    let answers = of_all.answers;
    assert_eq!((answers.block_for, answers.received, answers.kind), (3, 2, WriteKind::Simple));
    assert_eq!(ring.stored(1, "ks", 2), [(1, 1)]);
    assert_eq!(ring.stored(2, "ks", 2), []);
}

/// The disk of one replica is full. The levels that the two others meet go on, and ALL is told of a
/// failure rather than a timeout. When there is room again, the replica gets what it has missed as
/// hints and takes new writes, without a restart.
#[test]
fn a_full_disk_costs_one_replica_alone() {
    let ring = SimRing::with_segments(9, &["dc1", "dc1", "dc1"], 128 << 10);
    ring.create_keyspace("ks", SIMPLE, &[("replication_factor", "3")]);
    let disk = ring.world.disk(2);
    disk.set_capacity(Some(0));
    let write = |k, level| ring.write(0, vec![ring.row("ks", k, 1, k, 10)], level);
    // the segment that is open and the next one have room for the first of them
    let refused = (0..20_000).find(|k| match write(*k, Consistency::All) {
        Ok(()) => false,
        Err(RequestError::Write(failed)) => {
            let told: Vec<_> = failed.answers.failures.iter().map(|one| (one.endpoint, one.reason)).collect();
            // the refusal may come before the others have answered
            assert_eq!(failed.cause, WriteError::Peers);
            assert_eq!(told, [(ring.address(2), FailureReason::Unknown)]);
            true
        }
        Err(other) => panic!("a failed write was expected, not {other:?}"),
    });
    let refused = refused.expect("the disk is full");
    write(refused + 1, Consistency::Quorum).expect("two have it");
    settle(&ring);
    assert_eq!((ring.stored(1, "ks", refused + 1).len(), ring.stored(2, "ks", refused + 1).len()), (1, 0));
    disk.set_capacity(None);
    let has = |k: i32| ring.stored(2, "ks", k) == [(1, k)];
    let came = ring.world.run_until(Duration::from_secs(120), || has(refused) && has(refused + 1));
    assert!(came, "hints came when there was room");
    write(refused + 2, Consistency::All).expect("all three have it");
}

/// A replica that does not know the table says so, and the client is told of it.
#[test]
fn a_replica_without_the_table_fails_by_name() {
    let ring = SimRing::new(5, &["dc1", "dc1", "dc1"]);
    ring.create_keyspace_untold(&[0, 1], "ks", SIMPLE, &[("replication_factor", "3")]);
    let of_all = failed(ring.write(0, vec![ring.row("ks", 1, 1, 1, 10)], Consistency::All));
    assert_eq!(of_all.cause, WriteError::Peers);
    let told: Vec<_> = of_all.answers.failures.iter().map(|one| (one.endpoint, one.reason)).collect();
    assert_eq!(told, [(ring.address(2), FailureReason::IncompatibleSchema)]);
}

/// Each other data center gets one message, and its replicas answer the coordinator.
#[test]
fn other_data_centres_pass_writes_on() {
    let ring = SimRing::new(6, &["dc1", "dc2", "dc2", "dc2"]);
    ring.create_keyspace("ks", NETWORK, &[("dc1", "1"), ("dc2", "3")]);
    for level in [Consistency::All, Consistency::EachQuorum, Consistency::LocalQuorum] {
        let k = i32::from(level.code());
        ring.write(0, vec![ring.row("ks", k, 1, 1, 10)], level).expect("written");
        settle(&ring);
        (0..4).for_each(|machine| assert_eq!(ring.stored(machine, "ks", k), [(1, 1)], "{level}, machine {machine}"));
    }
    // the other data center is cut off: only the levels that need it feel that
    ring.world.network().partition(&[0]);
    let write = |level| ring.write(0, vec![ring.row("ks", 1, 1, 1, 10)], level);
    write(Consistency::LocalQuorum).expect("its own replica has it");
    let of_each = failed(write(Consistency::EachQuorum));
    assert_eq!((of_each.cause, of_each.answers.received, of_each.answers.block_for), (WriteError::TimedOut, 1, 3));
}

/// Three of four replicas have a write at EACH_QUORUM, and yet one data center lacks its quorum.
#[test]
fn each_quorum_counts_each_data_centre() {
    let ring = SimRing::new(7, &["dc1", "dc1", "dc1", "dc2"]);
    ring.create_keyspace("ks", NETWORK, &[("dc1", "3"), ("dc2", "1")]);
    ring.world.network().partition(&[3]);
    let write = |level| ring.write(0, vec![ring.row("ks", 1, 1, 1, 10)], level);
    write(Consistency::Quorum).expect("three of four have it");
    let of_each = failed(write(Consistency::EachQuorum));
    // one less than the level needs is told, whoever lacks it
    assert_eq!((of_each.cause, of_each.answers.received, of_each.answers.block_for), (WriteError::TimedOut, 2, 3));
}

/// The table that a node keeps about itself is written by nobody else.
#[test]
fn nobody_writes_what_a_node_keeps_about_itself() {
    let ring = SimRing::new(8, &["dc1", "dc1"]);
    let node = ring.node(0);
    let local = crate::identity::local_table(&node.engine);
    let row = crate::system_rows::SystemRow::new(&local, &[b"local"], &[], i64::MAX, None);
    let mutation = row.set("cluster_name", "another").finish();
    let mut payload = Vec::new();
    rows::codec::encode_mutation(&mut payload, &mutation);
    let request = membership::Request::new(internode::Verb::MutationReq, payload, Duration::from_secs(2));
    let asked = node.messenger().expect("joined").request(ring.address(1), request);
    let answer = ring.world.block_on(asked);
    assert_eq!(answer.expect_err("refused"), membership::RequestFailure::Failed(FailureReason::Unknown));
}

/// A healthy ring with more writes under way than may be unanswered: they wait for each other. None
/// is refused, no replica gets a hint, and each write counts once for both of its peers. One that
/// is larger than everything goes all the same.
#[test]
fn writes_of_a_healthy_ring_wait_for_room() {
    const COUNT: i32 = 200;
    let ring = three(10);
    let far = Link { delay_min_micros: 20_000, delay_max_micros: 20_000, ..Link::NEAR };
    for (from, to) in (0..3).flat_map(|from| (0..3).map(move |to| (from, to))).filter(|(from, to)| from != to) {
        ring.world.network().set_link(from, to, far);
    }
    let size = hintable(&ring.row("ks", 1, 1, 1, 10)).size();
    let limit = size * COUNT as usize / 2;
    let node = ring.node(0);
    node.set_unanswered_max(limit);
    assert_eq!(node.unanswered().limit(), limit);
    let peak = Cell::new(0);
    let (ring_of_all, peak_of_all) = (&ring, &peak);
    let write = |k: i32| async move {
        let wait = node.write(vec![ring_of_all.row("ks", k, 1, 1, 10)], Consistency::Quorum).await?;
        peak_of_all.set(peak_of_all.get().max(node.unanswered().used()));
        match wait {
            Some(wait) => wait.await,
            None => Ok(()),
        }
    };
    let written = ring.world.block_on(join_all((0..COUNT).map(write)));
    assert!(written.iter().all(Result::is_ok), "{:?}", written.iter().find(|result| result.is_err()));
    assert!((size..=limit).contains(&peak.get()), "{} of {limit} bytes were kept", peak.get());
    let large = (0..COUNT).map(|k| ring.row("ks", k, 2, 2, 10)).collect();
    ring.write(0, large, Consistency::Quorum).expect("one request goes, however large it is");
    settle(&ring);
    let hints = node.handoff.store.get().expect("hints are kept").figures().added.get();
    assert_eq!((hints, node.unanswered().used()), (0, 0));
}
