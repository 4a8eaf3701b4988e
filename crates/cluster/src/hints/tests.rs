//! Hints among several nodes of one seed: replicas that were away, keepers that lose their power,
//! and what is not applied.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use env::Random;
use hints::Entry;
use internode::Verb;
use internode::payload::gossip::ApplicationState;
use internode::payload::hint::HintMessage;
use membership::Request;
use membership::callbacks::LATE_AFTER;
use rows::codec::encode_mutation;
use schema::table::ColumnSpec;
use schema::{ColumnKind, Schema, TableId, TableMetadata};
use types::{Consistency, CqlType};

use crate::system_rows::{self, SystemRow};
use crate::testing::{SimRing, hintable};

/// The longest time that hints take: the look at who is up, sending, and what a lost link costs.
const DELIVERY_MAX: Duration = Duration::from_secs(120);

/// As [`DELIVERY_MAX`], where the target asks for the schema before.
const SCHEMA_MAX: Duration = Duration::from_secs(300);

/// More bytes than all memtables may take: writes wait while they are counted.
const FULL: usize = 1 << 30;

fn ring_of(seed: u64, factor: &str) -> SimRing {
    let ring = SimRing::new(seed, &["dc1", "dc1", "dc1"]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", factor)]);
    ring
}

/// A partition whose only replica is a machine.
fn key_of(ring: &SimRing, machine: usize) -> i32 {
    let of = ring.address(machine);
    let is_there = |k: &i32| {
        let snapshot = ring.node(0).ring();
        let token = ring.row("ks", *k, 0, 0, 1).key.token;
        let replicas = snapshot.placement("ks").expect("a keyspace").natural(token).to_vec();
        replicas.iter().any(|id| snapshot.endpoint(*id).address == of)
    };
    (0..1000).find(is_there).expect("every node owns something")
}

fn files_of(ring: &SimRing, machine: usize) -> usize {
    ring.node(machine).pending_hints().iter().map(|hints| hints.pending.files).sum()
}

#[test]
fn a_replica_that_was_away_has_everything() {
    for seed in 1..=2 {
        let mut ring = ring_of(seed, "3");
        ring.kill(2);
        // the first writes meet a replica that is taken for alive
        for c in 0..60 {
            let level = if c % 2 == 0 { Consistency::One } else { Consistency::Quorum };
            let through = usize::from(c % 3 == 0);
            ring.write(through, vec![ring.row("ks", c % 5, c, c * 7, i64::from(c) + 1)], level).expect("written");
            if c == 30 {
                ring.agree();
            }
        }
        ring.agree();
        ring.start(2);
        let all: Vec<Vec<(i32, i32)>> = (0..5).map(|k| ring.stored(0, "ks", k)).collect();
        let is_equal = |ring: &SimRing| (0..5).all(|k| ring.stored(2, "ks", k) == all[k as usize]);
        assert!(ring.world.run_until(DELIVERY_MAX, || is_equal(&ring)), "seed {seed}: the replica has everything");
        let is_empty = |ring: &SimRing| (0..2).all(|machine| files_of(ring, machine) == 0);
        assert!(ring.world.run_until(DELIVERY_MAX, || is_empty(&ring)), "seed {seed}: hints that were taken are gone");
    }
}

/// A write at ANY to a partition whose only replica is down is as durable as any other, whenever
/// the power of its coordinator goes.
#[test]
fn what_any_has_acknowledged_survives_the_keeper_of_its_hint() {
    for seed in 1..=2 {
        let mut ring = ring_of(seed, "1");
        let k = key_of(&ring, 2);
        ring.kill(2);
        ring.agree();
        let dice = ring.world.dice();
        let mut acknowledged = Vec::new();
        for round in 0..2 {
            if round > 0 {
                ring.world.disk(0).power_cut_after(dice.below(40));
            }
            for c in round * 10..round * 10 + 10 {
                let row = ring.row("ks", k, c, c * 7, i64::from(c) + 1);
                if ring.write(0, vec![row], Consistency::Any).is_ok() {
                    acknowledged.push((c, c * 7));
                }
            }
            ring.power_cut(0);
            ring.start(0);
            ring.agree();
        }
        assert!(acknowledged.len() >= 10, "seed {seed}: with a sound disk ANY is met");
        ring.start(2);
        let has_all = |ring: &SimRing| {
            let stored = ring.stored(2, "ks", k);
            acknowledged.iter().all(|row| stored.contains(row))
        };
        assert!(ring.world.run_until(DELIVERY_MAX, || has_all(&ring)), "seed {seed}: {:?}", ring.stored(2, "ks", k));
    }
}

/// The target dies in the middle and comes back: nothing is missing.
#[test]
fn sending_goes_on_where_it_ended() {
    let mut ring = ring_of(4, "3");
    ring.kill(2);
    ring.agree();
    ring.node(0).change_handoff_settings(|settings| settings.throttle = 4000);
    let snapshot = ring.node(0).ring();
    let target = snapshot.endpoints().iter().find(|endpoint| endpoint.address == ring.address(2)).expect("known");
    for c in 0..300 {
        assert!(ring.node(0).hint(target, &hintable(&ring.row("ks", 1, c, c, 5))));
    }
    ring.start(2);
    ring.agree();
    assert!(ring.world.run_until(DELIVERY_MAX, || !ring.stored(2, "ks", 1).is_empty()));
    ring.power_cut(2);
    ring.agree();
    assert_eq!(files_of(&ring, 0), 1, "the file waits");
    ring.start(2);
    assert!(ring.world.run_until(DELIVERY_MAX, || ring.stored(2, "ks", 1).len() == 300));
    assert!(ring.world.run_until(DELIVERY_MAX, || files_of(&ring, 0) == 0));
}

/// A coordinator that is a replica too and has no room for a write, which two others acknowledge:
/// it has the write once there is room, whether hinted handoff is on or not, over the end of its
/// process, and unless the table was truncated meanwhile.
#[test]
fn a_coordinator_that_was_too_slow_gets_its_own_write() {
    let mut ring = ring_of(12, "3");
    ring.node(0).change_handoff_settings(|settings| settings.is_enabled = false);
    let write = |ring: &SimRing, k: i32| {
        ring.node(0).engine.memory.take(FULL);
        ring.write(0, vec![ring.row("ks", k, 1, 1, 1)], Consistency::Quorum).expect("two have it");
        assert_eq!(ring.stored(0, "ks", k), []);
    };
    write(&ring, 1);
    ring.world.run_for(Duration::from_secs(30));
    assert_eq!((ring.stored(0, "ks", 1), files_of(&ring, 0)), (Vec::new(), 1), "tried in vain, and kept");
    ring.node(0).engine.memory.release(FULL);
    assert!(ring.world.run_until(DELIVERY_MAX, || ring.stored(0, "ks", 1) == [(1, 1)]));
    assert!(ring.world.run_until(DELIVERY_MAX, || files_of(&ring, 0) == 0));
    write(&ring, 2);
    let node = Arc::clone(ring.node(0));
    ring.world.block_on(async move { node.truncate("ks", "t").await }).expect("truncated");
    // no try is under way any more that began before the truncation
    ring.world.run_for(Duration::from_secs(5));
    ring.node(0).engine.memory.release(FULL);
    ring.world.run_for(Duration::from_secs(30));
    assert_eq!((ring.stored(0, "ks", 2), files_of(&ring, 0)), (Vec::new(), 0), "not brought back");
    write(&ring, 3);
    ring.world.block_on(ring.node(0).hints_durable()).expect("durable");
    ring.kill(0);
    ring.start(0);
    assert!(ring.world.run_until(DELIVERY_MAX, || ring.stored(0, "ks", 3) == [(1, 1)]));
}

/// A node that leaves gives away what it has kept for itself, too. Its id is worth nothing to
/// others then, so the receiver keeps the hint for all replicas.
#[test]
fn hints_for_oneself_are_given_away_for_all_replicas() {
    let ring = ring_of(13, "1");
    let k = key_of(&ring, 0);
    ring.node(0).engine.memory.take(FULL);
    ring.write(0, vec![ring.row("ks", k, 1, 1, 1)], Consistency::Any).expect("a hint is an answer");
    let node = Arc::clone(ring.node(0));
    ring.world.block_on(async move { node.transfer_hints().await }).expect("taken");
    assert_eq!((ring.stored(0, "ks", k), files_of(&ring, 0)), (Vec::new(), 0));
    let received = |machine: usize| ring.node(machine).handoff_figures().received_for_others.get();
    assert!(received(1) + received(2) > 0);
    ring.node(0).engine.memory.release(FULL);
    assert!(ring.world.run_until(DELIVERY_MAX, || ring.stored(0, "ks", k) == [(1, 1)]));
}

#[test]
fn hosts_that_get_no_hints() {
    let mut ring = ring_of(5, "3");
    ring.kill(2);
    ring.agree();
    let node = ring.node(0);
    let snapshot = node.ring();
    let gone = snapshot.endpoints().iter().find(|endpoint| endpoint.address == ring.address(2)).expect("known");
    let row = hintable(&ring.row("ks", 1, 1, 1, 1));
    assert!(node.hint(gone, &row));
    assert!(!node.hint(snapshot.local(), &row), "this node");
    node.change_handoff_settings(|settings| settings.is_enabled = false);
    assert!(!node.hint(gone, &row), "handoff is off");
    node.change_handoff_settings(|settings| settings.is_enabled = true);
    node.change_handoff_settings(|settings| settings.disabled_data_centers.extend(["dc1".to_owned()]));
    assert!(!node.hint(gone, &row), "its data center");
    node.change_handoff_settings(|settings| settings.disabled_data_centers.clear());
    node.change_handoff_settings(|settings| settings.size_per_host_max = 10);
    assert!(!node.hint(gone, &row), "its hints have their size");
    node.change_handoff_settings(|settings| settings.size_per_host_max = 0);
    assert!(node.hint(gone, &row));
    // down for longer than the window, and then down again with a hint that is older
    node.change_handoff_settings(|settings| settings.window = Duration::from_secs(1));
    ring.world.run_for(Duration::from_secs(30));
    assert!(!node.hint(gone, &row), "down for too long");
    assert_eq!(node.handoff_figures().past_window.get(), 1);
    assert_eq!(node.handoff_figures().refused.get(), 5);
    node.change_handoff_settings(|settings| settings.window = Duration::from_secs(60 * 60));
    assert!(node.hint(gone, &row));
}

#[test]
fn hints_that_are_paused_wait() {
    let mut ring = ring_of(6, "3");
    ring.kill(2);
    ring.agree();
    ring.write(0, vec![ring.row("ks", 1, 1, 1, 1)], Consistency::Quorum).expect("written");
    ring.node(0).pause_handoff();
    ring.start(2);
    ring.agree();
    ring.world.run_for(Duration::from_secs(40));
    assert_eq!(ring.stored(2, "ks", 1), []);
    ring.node(0).resume_handoff();
    assert!(ring.world.run_until(DELIVERY_MAX, || ring.stored(2, "ks", 1) == [(1, 1)]));
}

/// Sends HINT_REQ from one machine to another; whether it was answered with HINT_RSP.
fn send(ring: &SimRing, to: usize, target: [u8; 16], hint: &[u8]) -> bool {
    let node = ring.node(1);
    let message = HintMessage { host_id: target, hint: Bytes::copy_from_slice(hint) };
    let request = Request::new(Verb::HintReq, message.encode(), Duration::from_secs(2));
    let answer = node.messenger().expect("joined").request(ring.address(to), request);
    ring.world.block_on(answer).is_ok_and(|answer| answer.header.verb == Verb::HintRsp)
}

fn hint_of(mutation: &rows::Mutation, created_millis: i64, gc_grace: u32) -> Vec<u8> {
    let entry = Entry::new(created_millis, gc_grace, |out| encode_mutation(out, mutation)).expect("small");
    entry.bytes()[8..entry.bytes().len() - 4].to_vec()
}

#[test]
fn the_four_cases_of_a_hint_that_comes() {
    let mut ring = ring_of(7, "1");
    let (own, foreign) = (key_of(&ring, 0), key_of(&ring, 2));
    let hosts: Vec<[u8; 16]> = (0..3).map(|machine| ring.node(machine).identity.host_id).collect();
    let now = |ring: &SimRing| ring.node(0).env.clock.now_micros() / 1000;
    let mutation = |k: i32, c: i32| ring.row("ks", k, c, c, 5);
    // for this node and of this node
    assert!(send(&ring, 0, hosts[0], &hint_of(&mutation(own, 1), now(&ring), 1000)));
    assert_eq!(ring.stored(0, "ks", own), [(1, 1)]);
    // too late: answered and not applied
    assert!(send(&ring, 0, hosts[0], &hint_of(&mutation(own, 2), now(&ring) - 1_000_001, 1000)));
    assert!(send(&ring, 0, hosts[0], &hint_of(&mutation(own, 3), now(&ring) - 900_000_000, 1 << 30)));
    // not readable, or of a table that nobody knows: answered and forgotten
    assert!(send(&ring, 0, hosts[0], b"short"));
    let node = ring.node(0);
    assert!(ring.world.run_until(DELIVERY_MAX, || !node.may_lack_schema(node.schema().version)), "one schema");
    let mut unknown = hint_of(&mutation(own, 4), now(&ring), 1000);
    unknown[15] ^= 0xff;
    assert!(send(&ring, 0, hosts[0], &unknown));
    assert_eq!(ring.stored(0, "ks", own), [(1, 1)]);
    // for another node: kept for that node; of a partition of others: kept for its replicas
    assert!(send(&ring, 0, hosts[2], &hint_of(&mutation(foreign, 5), now(&ring), 1000)));
    assert!(send(&ring, 0, hosts[0], &hint_of(&mutation(foreign, 6), now(&ring), 1000)));
    assert_eq!(ring.node(0).handoff_figures().received_for_others.get(), 1);
    // kept means: on the disk
    ring.power_cut(0);
    ring.start(0);
    assert!(ring.world.run_until(DELIVERY_MAX, || ring.stored(2, "ks", foreign) == [(5, 5), (6, 6)]));
}

/// A hint that its target can never take, because it does not fit into a segment of the commit log,
/// is answered and forgotten: its file goes, and does not hold up what is behind it.
#[test]
fn a_hint_that_is_too_large_for_its_target_does_not_stop_others() {
    let mut ring = SimRing::with_segments(11, &["dc1", "dc1", "dc1"], 128 << 10);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "3")]);
    ring.kill(2);
    ring.agree();
    let mut large = ring.row("ks", 1, 0, 0, 5);
    let update = large.updates.first_mut().expect("a row is one update");
    // each row takes ten bytes and more
    for c in 1..=10_000 {
        ring.row("ks", 1, c, c, 5).updates.into_iter().flat_map(|one| one.rows).for_each(|row| update.add_row(row));
    }
    let snapshot = ring.node(0).ring();
    let target = snapshot.endpoints().iter().find(|endpoint| endpoint.address == ring.address(2)).expect("known");
    assert!(ring.node(0).hint(target, &hintable(&large)));
    assert!(ring.node(0).hint(target, &hintable(&ring.row("ks", 2, 1, 7, 5))));
    ring.start(2);
    assert!(ring.world.run_until(DELIVERY_MAX, || ring.stored(2, "ks", 2) == [(1, 7)]));
    assert!(ring.world.run_until(DELIVERY_MAX, || files_of(&ring, 0) == 0), "both were answered");
    assert_eq!(ring.stored(2, "ks", 1), []);
}

/// `ks.t` gets the column `x`, and `ks` the table `later`, which is as `t` is.
fn alter_and_create(schema: &Schema) -> Result<Schema, ()> {
    let mut keyspace = schema.keyspaces.get("ks").ok_or(())?.as_ref().clone();
    let table = Arc::clone(keyspace.tables.get("t").ok_or(())?);
    let with = |id: TableId, name: &str, specs: Vec<ColumnSpec>| {
        let (kind, flags, params) = (table.kind, table.flags, table.params.clone());
        Arc::new(TableMetadata::new(id, "ks", name, kind, flags, params, specs, BTreeMap::new(), Some(&table)))
    };
    let x =
        ColumnSpec { name: "x".to_owned(), kind: ColumnKind::Regular, position: 0, ty: CqlType::Int, reversed: false };
    let wider = table.specs().into_iter().chain([x]).collect();
    keyspace.tables.insert("t".to_owned(), with(table.id, "t", wider));
    keyspace.tables.insert("later".to_owned(), with(TableId([7; 16]), "later", table.specs()));
    Ok(schema.with_keyspace(keyspace))
}

/// A cut-off replica hears of a column and of a table a minute after the cut has healed. The hints
/// that came before are kept by their sender until then; those beside them are sent once.
#[test]
fn hints_wait_for_the_schema_of_their_target() {
    const OTHERS: i32 = 10;
    let ring = ring_of(10, "3");
    // what is pushed has a minute to come, once the nodes have joined a minute ago
    ring.world.run_for(Duration::from_secs(70));
    ring.world.network().partition(&[2]);
    ring.world.run_for(Duration::from_secs(60));
    ring.world.block_on(ring.node(0).change_schema(alter_and_create)).expect("stored").map(drop).expect("not refused");
    ring.world.run_for(Duration::from_secs(5));
    let columns = [("t", "x"), ("later", "v")];
    for (name, column) in columns {
        let schema = ring.node(0).schema();
        let table = schema.table("ks", name).expect("created");
        let row = SystemRow::new(table, &[&1_i32.to_be_bytes()], &[&1_i32.to_be_bytes()], 10, None);
        let row = row.set(column, 5_i32.to_be_bytes().to_vec()).finish();
        ring.write(0, vec![row], Consistency::Quorum).expect("two have it");
    }
    for k in 10..10 + OTHERS {
        ring.write(0, vec![ring.row("ks", k, 1, 7, 9)], Consistency::Quorum).expect("two have it");
    }
    ring.world.network().heal();
    let has_it = |name: &str, column: &str| {
        let node = ring.node(2);
        let schema = node.schema();
        let Some(table) = schema.table("ks", name).filter(|table| table.column_by_name(column).is_some()) else {
            return false;
        };
        let rows = system_rows::read(&node.engine, table, None).expect("readable");
        rows.iter().any(|(_, row)| system_rows::value(table, row, column).is_some())
    };
    for (name, column) in columns {
        assert!(ring.world.run_until(SCHEMA_MAX, || has_it(name, column)), "{name}.{column}");
    }
    assert!(ring.world.run_until(DELIVERY_MAX, || files_of(&ring, 0) == 0));
    let figures = ring.node(0).handoff_figures();
    assert!(figures.failed.get() > 2, "both were tried again");
    assert_eq!(figures.succeeded.get(), OTHERS as u64 + 2, "each was taken once");
}

#[test]
fn a_hint_does_not_bring_back_what_was_truncated() {
    let ring = ring_of(8, "1");
    let own = key_of(&ring, 0);
    let host = ring.node(0).identity.host_id;
    let made = ring.node(0).env.clock.now_micros() / 1000;
    ring.world.run_for(Duration::from_millis(10));
    let node = std::sync::Arc::clone(ring.node(0));
    ring.world.block_on(async move { node.truncate("ks", "t").await }).expect("truncated");
    ring.world.run_for(Duration::from_millis(10));
    assert!(send(&ring, 0, host, &hint_of(&ring.row("ks", own, 1, 1, 5), made, 1000)));
    assert_eq!(ring.stored(0, "ks", own), []);
    let now = ring.node(0).env.clock.now_micros() / 1000;
    assert!(send(&ring, 0, host, &hint_of(&ring.row("ks", own, 1, 1, 5), now, 1000)));
    assert_eq!(ring.stored(0, "ks", own), [(1, 1)]);
}

#[test]
fn hints_of_a_node_that_has_left_are_removed() {
    let mut ring = ring_of(9, "3");
    ring.node(0).pause_handoff();
    let snapshot = ring.node(0).ring();
    let leaver = snapshot.endpoints().iter().find(|endpoint| endpoint.address == ring.address(2)).expect("known");
    assert!(ring.node(0).hint(leaver, &hintable(&ring.row("ks", 1, 1, 1, 1))));
    ring.world.block_on(ring.node(0).hints_durable()).expect("durable");
    let far = ring.node(2).env.clock.now_micros() / 1000 + 86_400_000;
    ring.node(2).messenger().expect("joined").with_gossip(|gossip| {
        for state in [ApplicationState::StatusWithPort, ApplicationState::Status] {
            gossip.local.set(state, format!("LEFT,0,{far}"));
        }
    });
    let directory = std::path::Path::new(env::sim::DATA).join("hints");
    let is_empty = || ring.node(0).env.disk.list_dir(&directory).expect("readable").is_empty();
    assert!(!is_empty());
    assert!(ring.world.run_until(DELIVERY_MAX, is_empty));
    ring.kill(2);
}

/// Writes that wait for a silent replica keep few bytes. One that finds no room waits until it is
/// clear that the replica is late, and is a hint for it then; so are those behind it, at once. The
/// first ones are hints when their time is over.
#[test]
fn writes_to_a_silent_replica_keep_few_bytes() {
    let ring = ring_of(13, "3");
    let size = hintable(&ring.row("ks", 1, 1, 1, 5)).size();
    ring.node(0).set_unanswered_max(size * 9);
    assert_eq!(ring.node(0).unanswered().limit(), size * 9);
    // the others do not know yet that nobody hears it
    ring.world.network().partition(&[2]);
    let hinted = || ring.node(0).handoff.store.get().expect("hints are kept").figures().added.get();
    let write = |c: i32| {
        let begun = ring.world.elapsed();
        ring.write(0, vec![ring.row("ks", 1, c, c, 5)], Consistency::Quorum).expect("the others answer");
        (hinted(), ring.world.elapsed() - begun < LATE_AFTER / 2)
    };
    let hinted_at_once = (1..=3).map(write).collect::<Vec<_>>();
    assert_eq!(hinted_at_once, [(0, true); 3], "there is room for all of them");
    assert_eq!([write(4), write(5)], [(1, false), (2, true)], "there is none for another");
    ring.world.run_for(Duration::from_secs(4));
    assert_eq!(hinted(), 5, "the first three had no answer in time");
    assert_eq!(ring.node(0).unanswered().used(), 0, "nothing is kept any more");
}

/// A node that leaves gives its hints to another one at the whole pace of
/// `hinted_handoff_throttle`, which all other nodes share while hints go to their hosts.
#[test]
fn hints_are_given_away_at_the_whole_pace() {
    const RATE: u64 = 10_000;
    let mut ring = SimRing::new(60, &["dc1"; 5]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    ring.kill(0);
    ring.agree();
    let node = Arc::clone(ring.node(1));
    node.change_handoff_settings(|settings| settings.throttle = RATE);
    let dead = node.ring().peers().find(|endpoint| endpoint.address == ring.address(0)).cloned();
    let dead = dead.expect("it is a member");
    for c in 0..1_000 {
        let mutation = hintable(&ring.row("ks", 1, c, 7, 1_000));
        assert!(node.hint(&dead, &mutation), "there is room");
    }
    let bytes = node.handoff.store.get().expect("it keeps hints").size(&dead.host_id);
    let begun = ring.world.elapsed();
    ring.world.block_on(async move { node.transfer_hints().await }).expect("another node takes them");
    let (took, paid) = (ring.world.elapsed().saturating_sub(begun), Duration::from_secs(bytes / RATE));
    assert!(took > paid / 2 && took < paid * 2, "{bytes} bytes took {took:?}");
}
