//! Repairs in simulated rings of several whole nodes.

mod incremental;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use storage::compaction::kind::Kind;
use storage::compaction::operation::{Operation, Status, Work};

use super::command::{Event, EventKind};
use super::*;
use crate::repairs::options::{Parallelism, RepairOptions};
use crate::testing::SimRing;

/// The longest time that a repair takes.
const REPAIR_MAX: Duration = Duration::from_secs(600);
const KEYS: i32 = 40;

fn full() -> RepairOptions {
    RepairOptions { tables: vec!["t".to_owned()], ..RepairOptions::default() }
}

/// A ring whose keyspace `ks` has three replicas, on which each row of `t` is on one machine alone.
fn drifted(seed: u64) -> SimRing {
    let ring = SimRing::new(seed, &["dc1"; 3]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "3")]);
    for k in 0..KEYS {
        ring.apply_alone(k as usize % 3, &[ring.row("ks", k, 1, k, 1000)]);
    }
    ring
}

/// Runs a repair of `ks` through a node to its end.
fn repair(ring: &SimRing, through: usize, options: RepairOptions) -> Vec<Event> {
    let command = ring.node(through).start_repair("ks", options).expect("begun").expect("there are other replicas");
    let ended = ring.world.run_until(REPAIR_MAX, || command.has_ended());
    let events = command.events(0).0;
    assert!(ended, "{events:?}");
    events
}

fn has_failed(events: &[Event]) -> bool {
    events.iter().any(|event| event.kind == EventKind::Error)
}

/// How many keys a machine has.
fn keys(ring: &SimRing, machine: usize) -> usize {
    (0..KEYS).filter(|k| ring.stored(machine, "ks", *k) == [(1, *k)]).count()
}

fn assert_equal(ring: &SimRing) {
    for machine in 0..3 {
        assert_eq!(keys(ring, machine), KEYS as usize, "machine {machine}");
    }
}

#[test]
fn replicas_have_the_same_after_a_full_repair() {
    for (seed, parallelism) in [(1, Parallelism::Parallel), (2, Parallelism::Sequential)] {
        let ring = drifted(seed);
        let events = repair(&ring, 0, RepairOptions { parallelism, ..full() });
        assert!(!has_failed(&events), "{events:?}");
        assert_equal(&ring);
        let kinds: Vec<_> = events.iter().map(|event| &event.kind).collect();
        let done = &EventKind::Progress(57);
        assert_eq!(kinds, [&EventKind::Start, done, &EventKind::Success, &EventKind::Complete]);
        assert!(events[1].text.ends_with("finished"), "{}", events[1].text);
        for machine in 0..3 {
            ring.world.run_until(REPAIR_MAX, || ring.node(machine).repairs.participations().is_empty());
            assert!(ring.node(machine).repairs.participations().is_empty(), "the repair is forgotten");
        }
        assert_eq!(ring.count(0, "system_distributed", "parent_repair_history"), 1);
        assert_eq!(ring.count(1, "system_distributed", "repair_history"), 1);
    }
}

#[test]
fn streams_are_fewer_where_they_are_optimised() {
    let ring = drifted(3);
    let events = repair(&ring, 1, RepairOptions { optimises_streams: true, ..full() });
    assert!(!has_failed(&events), "{events:?}");
    assert_equal(&ring);
}

#[test]
fn a_preview_streams_nothing() {
    let ring = drifted(4);
    let events = repair(&ring, 2, RepairOptions { preview: Preview::All, ..full() });
    assert!(!has_failed(&events), "{events:?}");
    assert!(events.iter().any(|event| event.text.starts_with("Preview complete\nTotal estimated")), "{events:?}");
    assert!((0..3).all(|machine| keys(&ring, machine) < 15), "nothing has moved");
}

#[test]
fn a_repair_fails_while_a_replica_is_down() {
    let mut ring = drifted(5);
    ring.kill(2);
    ring.agree();
    let events = repair(&ring, 0, full());
    assert!(has_failed(&events) && events.iter().any(|event| event.text.contains("Endpoint not alive")), "{events:?}");
    let events = repair(&ring, 0, RepairOptions { is_forced: true, ..full() });
    assert!(!has_failed(&events), "{events:?}");
    let both = keys(&ring, 0);
    assert!(both == keys(&ring, 1) && both > 20, "the replicas that live have the same: {both}");
}

#[test]
fn a_repair_ends_when_a_replica_dies() {
    let mut ring = drifted(6);
    let command = ring.node(0).start_repair("ks", full()).expect("begun").expect("there are other replicas");
    ring.kill(1);
    let ended = ring.world.run_until(REPAIR_MAX, || command.has_ended());
    assert!(ended && has_failed(&command.events(0).0), "{:?}", command.events(0));
}

/// A replica that is back before anybody has missed it has forgotten the repair.
#[test]
fn a_repair_ends_when_a_replica_starts_again() {
    let mut ring = drifted(9);
    let command = ring.node(0).start_repair("ks", full()).expect("begun").expect("there are other replicas");
    let takes_part = || !ring.node(1).repairs.participations().is_empty();
    assert!(ring.world.run_until(REPAIR_MAX, takes_part), "{:?}", command.events(0));
    ring.kill(1);
    ring.start(1);
    let ended = ring.world.run_until(REPAIR_MAX, || command.has_ended());
    assert!(ended && has_failed(&command.events(0).0), "{:?}", command.events(0));
}

#[test]
fn what_cannot_be_repaired_is_refused() {
    let ring = drifted(7);
    let begin = |keyspace: &str, options| ring.node(0).start_repair(keyspace, options);
    assert!(begin("nowhere", full()).is_err());
    assert!(begin("ks", RepairOptions { tables: vec!["nothing".to_owned()], ..full() }).is_err());
    assert!(begin("ks", RepairOptions { job_threads: 5, ..full() }).is_err());
    ring.create_keyspace("alone", "SimpleStrategy", &[("replication_factor", "1")]);
    assert!(begin("alone", full()).expect("no error").is_none(), "there is one replica");
}

/// An operator compacts the table while it is validated: both come to their end.
#[test]
fn a_validation_survives_a_compaction() {
    let ring = drifted(8);
    let command = ring.node(0).start_repair("ks", full()).expect("begun").expect("there are other replicas");
    let validates = || ring.node(0).engine.compactions.running().iter().any(|running| running.kind == Kind::Validation);
    assert!(ring.world.run_until(REPAIR_MAX, validates), "{:?}", command.events(0));
    let store = ring.node(0).engine.table_by_name("ks", "t").expect("the table is there");
    let ended = Arc::new(Mutex::new(None));
    let (here, told) = (Arc::clone(ring.node(0)), Arc::clone(&ended));
    let begun = ring.node(0).repair_task(move || async move {
        let all = Operation::new(Kind::MajorCompaction, Work::Major { split: false }, 0);
        let result = here.engine.operate(&store, all).await;
        *told.lock().expect("no panic inside") = Some(result.map(|ended| ended.status));
    });
    assert!(begun);
    assert!(ring.world.run_until(REPAIR_MAX, || command.has_ended()), "{:?}", command.events(0));
    assert!(!has_failed(&command.events(0).0), "{:?}", command.events(0));
    assert_equal(&ring);
    let status = ended.lock().expect("no panic inside").take().expect("it has ended").expect("a sound disk");
    assert_eq!(status, Status::Successful);
}
