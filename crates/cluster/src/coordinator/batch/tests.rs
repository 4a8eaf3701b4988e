//! Logged batches among several nodes.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hints::{Hint, Reader};
use internode::Verb;
use internode::payload::batch::StoredBatch;
use internode::payload::gossip::{ApplicationState, EndpointState, VersionedValue};
use membership::Request;
use ring::EndpointId;
use rows::codec::encode_mutation;
use rows::{DeletionTime, Mutation, PartitionUpdate};
use types::{Consistency, WriteKind};

use crate::coordinator::error::RequestError;
use crate::in_flight_requests::STORED_SIZE;
use crate::system_rows::{SystemRow, partition_key};
use crate::testing::SimRing;
use crate::testing::views::{create_on, keyspace_of_notes, notes};

fn three(seed: u64) -> SimRing {
    let ring = SimRing::new(seed, &["dc1", "dc1", "dc1"]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "3")]);
    ring
}

fn write(ring: &SimRing, v: i32, level: Consistency) -> Result<(), RequestError> {
    let node = ring.node(0).clone();
    let rows = (0..4).map(|k| ring.row("ks", k, 1, v, i64::from(v))).collect();
    ring.world.block_on(async move {
        match node.write_batch(rows, level, None).await? {
            Some(wait) => wait.await,
            None => Ok(()),
        }
    })
}

fn records(ring: &SimRing) -> Vec<usize> {
    (0..3).map(|machine| ring.count(machine, "system", "batches")).collect()
}

#[test]
fn a_batch_is_on_its_replicas_and_its_record_goes() {
    let ring = three(1);
    write(&ring, 7, Consistency::All).expect("written");
    for k in 0..4 {
        (0..3).for_each(|machine| assert_eq!(ring.stored(machine, "ks", k), [(1, 7)], "machine {machine}"));
    }
    ring.world.run_for(Duration::from_secs(1));
    assert_eq!(records(&ring), [0, 0, 0]);
}

/// The record cannot be stored: nothing of the batch is written, and the client is told of the
/// batch log.
#[test]
fn nothing_is_written_without_a_record() {
    let ring = three(2);
    ring.world.network().partition(&[0]);
    let Err(RequestError::Write(failed)) = write(&ring, 7, Consistency::One) else { panic!("no record") };
    assert_eq!((failed.answers.kind, failed.answers.level), (WriteKind::BatchLog, Consistency::Two));
    assert_eq!(ring.stored(0, "ks", 1), []);
}

/// A batch of so many rows that the first node coordinates.
fn batch_of(ring: &SimRing, rows: i32) -> StoredBatch {
    let node = ring.node(0);
    let encode = |k| {
        let mut bytes = Vec::new();
        encode_mutation(&mut bytes, &ring.row("ks", k, 1, 9, 9));
        bytes.into()
    };
    StoredBatch {
        id: node.uuids.next(),
        created_micros: node.clock.next_micros(),
        mutations: (0..rows).map(encode).collect(),
    }
}

/// A host counts a batch with what is made of it until the commit log has its record.
#[test]
fn a_batch_that_is_stored_counts_with_its_cells() {
    const ROWS: usize = 100;
    let ring = three(6);
    let payload = batch_of(&ring, ROWS as i32).encode();
    let counted = payload.len() + ROWS * STORED_SIZE;
    let request = Request::new(Verb::BatchStoreReq, payload, Duration::from_secs(5));
    assert!(ring.node(0).messenger().expect("it has joined").tell(ring.address(1), request));
    let held = || ring.node(1).in_flight_requests.bytes.load(Ordering::Relaxed);
    assert!(ring.world.run_until(Duration::from_secs(5), || held() >= counted));
    assert!(ring.world.run_until(Duration::from_secs(5), || held() == 0));
    assert_eq!(records(&ring), [0, 1, 0]);
}

/// The first node coordinates a batch of four rows; its peers have the record, and nobody the
/// mutations.
fn store_record(ring: &SimRing) {
    let node = ring.node(0).clone();
    let batch = batch_of(ring, 4);
    ring.world.block_on(async {
        let others = node.ring_peers().expect("joined");
        let hosts = [EndpointId(1), EndpointId(2)];
        node.store_record(&others, &hosts, &batch, Duration::from_secs(2)).await.expect("stored");
    });
    assert_eq!(records(ring), [0, 1, 1]);
}

/// The coordinator dies when two peers have the record and nobody the mutations: the peers send
/// them to all replicas, and the record goes.
#[test]
fn peers_finish_the_batch_of_a_coordinator_that_died() {
    let mut ring = three(3);
    store_record(&ring);
    ring.kill(0);
    ring.start(0);
    ring.agree();
    ring.world.run_for(Duration::from_secs(40));
    for k in 0..4 {
        (0..3).for_each(|machine| assert_eq!(ring.stored(machine, "ks", k), [(1, 9)], "machine {machine}"));
    }
    assert_eq!(records(&ring), [0, 0, 0]);
}

/// A mutation of the batch is of a table of which this node has not heard yet. It would be lost
/// with the record.
#[test]
fn a_record_stays_until_the_schemas_agree() {
    let ring = three(8);
    let node = ring.node(0);
    let tell = |version: &str| {
        let messenger = node.messenger().expect("it has joined");
        let known = messenger.with_gossip(|gossip| gossip.state(ring.address(1)).cloned()).expect("a member");
        let value = VersionedValue { value: version.to_owned(), version: known.max_version() + 1 };
        messenger.apply_endpoint_state(
            ring.address(1),
            EndpointState { values: vec![(ApplicationState::Schema, value)], ..known },
        );
    };
    tell("00000000-0000-1000-8000-000000000001");
    let store = |known: Option<usize>, age_micros: i64| {
        let mut batch = batch_of(&ring, 3);
        let mut unknown = batch.mutations[0].to_vec();
        // a byte of the table's id
        unknown[1] ^= 0xff;
        batch.mutations[0] = unknown.into();
        batch.mutations = [0].into_iter().chain(known).map(|row| batch.mutations[row].clone()).collect();
        batch.id = types::timeuuid::from_micros(node.env.clock.now_micros() - age_micros, 7);
        node.engine.apply(&[node.record_of(&batch)]).expect("room");
    };
    store(Some(1), 0);
    // of an unknown table alone, and older than gc_grace_seconds are by default
    store(None, 864_001_000_000);
    // half as old: what is known would be forgotten with the rest, were it to wait
    store(Some(2), 432_001_000_000);
    assert_eq!(records(&ring), [3, 0, 0]);
    ring.world.run_for(Duration::from_secs(40));
    assert_eq!((records(&ring), ring.stored(0, "ks", 1)), (vec![1, 0, 0], Vec::new()));
    assert_eq!(ring.stored(2, "ks", 2), [(1, 9)]);
    tell(&types::literal::print_uuid(&node.schema().version));
    ring.world.run_for(Duration::from_secs(40));
    assert_eq!((records(&ring), ring.stored(2, "ks", 1)), (vec![0, 0, 0], vec![(1, 9)]));
}

/// The coordinator has no room for its own part of a batch, which two others have: the record stays
/// until it has its part, or a hint of it.
#[test]
fn a_record_stays_until_its_coordinator_has_its_part() {
    const FULL: usize = 1 << 30;
    let ring = three(5);
    ring.node(0).engine.memory.take(FULL);
    write(&ring, 7, Consistency::Quorum).expect("two have it");
    ring.world.run_for(Duration::from_secs(1));
    assert_eq!((ring.stored(0, "ks", 1), records(&ring)), (Vec::new(), vec![0, 1, 1]));
    ring.node(0).engine.memory.release(FULL);
    let has_all = || (0..4).all(|k| ring.stored(0, "ks", k) == [(1, 7)]) && records(&ring) == [0, 0, 0];
    assert!(ring.world.run_until(Duration::from_secs(60), has_all));
}

/// A replica is down while the peers send what stands in the record, and hinted handoff is off: the
/// replica gets its hints all the same, since the record goes.
#[test]
fn a_replica_that_is_down_gets_the_batch_without_hinted_handoff() {
    let mut ring = three(3);
    store_record(&ring);
    ring.kill(0);
    [1, 2]
        .iter()
        .for_each(|machine| ring.node(*machine).change_handoff_settings(|settings| settings.is_enabled = false));
    ring.world.run_for(Duration::from_secs(40));
    ring.start(0);
    ring.agree();
    assert_eq!((records(&ring), ring.stored(0, "ks", 1)), (vec![0, 0, 0], Vec::new()));
    [1, 2]
        .iter()
        .for_each(|machine| ring.node(*machine).change_handoff_settings(|settings| settings.is_enabled = true));
    ring.world.run_for(Duration::from_secs(60));
    (0..4).for_each(|k| assert_eq!(ring.stored(0, "ks", k), [(1, 9)], "{k}"));
}

/// A hint that comes from a record is as old as its batch: one that lived longer could bring back
/// rows whose deletions are purged.
#[test]
fn a_hint_from_a_record_is_as_old_as_the_batch() {
    const DAY_MICROS: i64 = 86_400_000_000;
    let mut ring = three(4);
    let target = ring.node(2).identity.host_id;
    ring.kill(2);
    ring.agree();
    let node = Arc::clone(ring.node(0));
    let created_micros = node.env.clock.now_micros() - 9 * DAY_MICROS;
    let mut bytes = Vec::new();
    encode_mutation(&mut bytes, &ring.row("ks", 1, 1, 9, 9));
    let id = types::timeuuid::from_micros(created_micros, 7);
    let batch = StoredBatch { id, created_micros, mutations: vec![bytes.into()] };
    node.engine.apply(&[node.record_of(&batch)]).expect("applied");
    node.batch_replay.expect_records();
    let is_replayed = || ring.count(0, "system", "batches") == 0;
    assert!(!is_replayed() && ring.world.run_until(Duration::from_secs(60), is_replayed));
    assert_eq!(ring.stored(1, "ks", 1), [(1, 9)]);
    let store = node.handoff.store.get().expect("the node keeps hints");
    let file = store.take_file(&target).expect("a hint waits");
    let mut reader = Reader::open(node.env.disk.as_ref(), &store.path(&file)).expect("readable");
    let page = reader.page().expect("readable");
    let dates: Vec<i64> = page.hints.iter().map(|hint| Hint::decode(hint).expect("a hint").created_millis).collect();
    assert_eq!(dates, [created_micros / 1000]);
    store.put_back(file);
}

/// Many records are sent again as fast as the throttle allows: the next page does not wait for the
/// one before it.
#[test]
fn many_records_are_sent_again_within_seconds() {
    const RECORDS: i64 = 1500;
    let ring = three(6);
    let node = Arc::clone(ring.node(0));
    let first = node.env.clock.now_micros() - 3_600_000_000;
    let record = |number: i64| {
        let mut bytes = Vec::new();
        let row = i32::try_from(number).expect("few");
        encode_mutation(&mut bytes, &ring.row("ks", row % 7, row, 9, 9));
        let created_micros = first + number;
        let id = types::timeuuid::from_micros(created_micros, 7);
        node.record_of(&StoredBatch { id, created_micros, mutations: vec![bytes.into()] })
    };
    let records: Vec<_> = (0..RECORDS).map(record).collect();
    node.engine.apply(&records).expect("applied");
    node.batch_replay.expect_records();
    let left = || i64::try_from(ring.count(0, "system", "batches")).expect("few");
    let mut looks = 0..200;
    while left() == RECORDS {
        assert!(looks.next().is_some(), "the first page is sent");
        ring.world.run_for(Duration::from_millis(100));
    }
    // at a third of 1 MiB a second they take half a second
    ring.world.run_for(Duration::from_secs(5));
    assert_eq!(left(), 0);
    for machine in 0..3 {
        let rows: usize = (0..7).map(|k| ring.stored(machine, "ks", k).len()).sum();
        assert_eq!(rows as i64, RECORDS, "machine {machine}");
    }
}

/// The changes of a view that follow from a mutation of a record are more than the commit log
/// takes: the host of the record takes the mutation in parts, everybody is sent all mutations, and
/// the record goes.
#[test]
fn a_mutation_that_is_too_large_with_its_views_is_taken_in_parts_by_the_host_of_its_record() {
    const ROWS: i32 = 9000;
    let ring = SimRing::with_segments(7, &["dc1", "dc1", "dc1"], 128 << 10);
    create_on(&ring, &keyspace_of_notes("3", &["shown"]));
    let note = |k: i32, c: i32| {
        let row = SystemRow::new(&notes(), &[&k.to_be_bytes()], &[&c.to_be_bytes()], 10, None);
        row.set("v", 7_i32.to_be_bytes().to_vec()).finish()
    };
    let rows: Vec<Mutation> = (0..ROWS).map(|c| note(1, c)).collect();
    rows.chunks(200).for_each(|rows| ring.apply_alone(0, rows));
    let node = ring.node(0);
    let created_micros = node.env.clock.now_micros() - 60_000_000;
    let mut deletion = PartitionUpdate::new(notes(), partition_key(&notes(), &[&1_i32.to_be_bytes()]));
    deletion.deletion = DeletionTime::new(created_micros, node.env.clock.now_seconds());
    let encoded = [Mutation::of(deletion), note(2, 1)].map(|mutation| {
        let mut bytes = Vec::new();
        encode_mutation(&mut bytes, &mutation);
        bytes::Bytes::from(bytes)
    });
    let id = types::timeuuid::from_micros(created_micros, 7);
    let record = node.record_of(&StoredBatch { id, created_micros, mutations: encoded.to_vec() });
    node.engine.apply(&[record]).expect("applied");
    node.batch_replay.expect_records();
    let goes = (0..60).any(|_| {
        ring.world.run_for(Duration::from_secs(1));
        ring.count(0, "system", "batches") == 0
    });
    assert!(goes, "the record goes");
    for machine in 0..3 {
        assert_eq!(["notes", "shown"].map(|name| ring.count(machine, "ks", name)), [1, 1], "machine {machine}");
    }
}

/// A mutation of a record is more than the node sends since its limit was lowered: the record goes,
/// and the others of its mutations are sent.
#[test]
fn a_mutation_that_is_too_large_to_be_sent_does_not_keep_the_others() {
    let mut ring = SimRing::new(8, &["dc1", "dc1", "dc1"]);
    create_on(&ring, &keyspace_of_notes("3", &[]));
    let note = |k: i32, bytes: usize| {
        let row = SystemRow::new(&notes(), &[&k.to_be_bytes()], &[&1_i32.to_be_bytes()], 10, None);
        let mut encoded = Vec::new();
        encode_mutation(&mut encoded, &row.set("b", vec![b'x'; bytes]).finish());
        bytes::Bytes::from(encoded)
    };
    let created_micros = ring.node(0).env.clock.now_micros() - 60_000_000;
    let id = types::timeuuid::from_micros(created_micros, 7);
    let batch = StoredBatch { id, created_micros, mutations: vec![note(1, 600 << 10), note(2, 10)] };
    ring.node(0).engine.apply(&[ring.node(0).record_of(&batch)]).expect("applied");
    ring.world.run_for(Duration::from_secs(1));
    ring.mutation_size_max = 512 << 10;
    ring.kill(0);
    ring.start(0);
    ring.agree();
    ring.node(0).batch_replay.expect_records();
    let is_sent = || (0..3).all(|machine| ring.count(machine, "ks", "notes") == 1);
    let has_gone = || ring.count(0, "system", "batches") == 0;
    assert!(ring.world.run_until(Duration::from_secs(120), || is_sent() && has_gone()));
}
