//! Repairs in simulated rings of several whole nodes.

mod incremental;
mod silent;
mod truncating;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use internode::payload::paxos::{Ballot, BallotFlag, Commit};
use internode::payload::repair::Prepare;
use storage::compaction::kind::Kind;
use storage::compaction::operation::{Operation, Status, Work};

use super::command::{Event, EventKind};
use super::*;
use crate::paxos::{PaxosOptions, PaxosVariant};
use crate::repair_state::Progress;
use crate::repair_state::command::Command;
use crate::repair_state::options::{Parallelism, RepairOptions};
use crate::repair_state::settings::{RepairPermits, RepairSettings};
use crate::streaming_state::{LiveSession, SessionKey};
use crate::testing::SimRing;
use crate::testing::views::{change_on, keyspace_of};

/// The longest time that a repair takes.
const REPAIR_MAX: Duration = Duration::from_secs(600);
const KEYS: i32 = 40;

fn full() -> RepairOptions {
    RepairOptions { tables: vec!["t".to_owned()], ..RepairOptions::default() }
}

/// A ring of three nodes whose keyspace `ks` has three replicas, on which each row of `t` is on one
/// machine alone.
fn drifted(seed: u64) -> SimRing {
    drifted_of(seed, "3")
}

/// As [`drifted`], with a number of replicas.
fn drifted_of(seed: u64, factor: &str) -> SimRing {
    let ring = SimRing::new(seed, &["dc1"; 3]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", factor)]);
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
    let centers = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    assert!(begin("ks", RepairOptions { data_centers: centers(&["dc1", "dc2"]), ..full() }).is_err());
    ring.create_keyspace("alone", "SimpleStrategy", &[("replication_factor", "1")]);
    assert!(begin("alone", full()).expect("no error").is_none(), "there is one replica");
}

/// Too much waits for the thread of repair: the repair has ended for everybody who looks.
#[test]
fn a_repair_that_there_is_no_room_for_has_ended() {
    let ring = drifted(37);
    let node = ring.node(0);
    while node.repair_task(|| async {}) {}
    let refused = node.start_repair("ks", full()).expect_err("there is no room").to_string();
    assert!(refused.contains("too many tasks of repair wait"), "{refused}");
    assert!(node.repair_commands().iter().all(|command| command.has_ended()));
    let records = node.repair_records(records::Subject::Command);
    assert!(records.iter().all(|record| record.state().end.is_some()), "{records:?}");
}

#[test]
fn a_repair_of_an_empty_keyspace_has_ended() {
    let ring = SimRing::new(39, &["dc1"; 2]);
    change_on(&ring, &keyspace_of("2", Vec::new()));
    let events = repair(&ring, 0, RepairOptions::default());
    assert!(!has_failed(&events), "{events:?}");
    let records = ring.node(0).repair_records(records::Subject::Command);
    assert!(records.len() == 1 && records[0].state().end.is_some(), "{records:?}");
}

/// PREPARE_MSG of a full repair of tables, without ranges.
fn full_repair(parent: [u8; 16], tables: Vec<schema::TableId>) -> Prepare {
    Prepare {
        tables,
        parent,
        ranges: Vec::new(),
        is_incremental: false,
        repaired_at: 0,
        is_global: true,
        preview: Preview::None,
    }
}

/// A repair of days is not forgotten where its tasks run or have ended not long ago, only where
/// nothing is done for it any more.
#[test]
fn a_repair_is_forgotten_when_nothing_is_done_for_it() {
    let ring = drifted(21);
    let (node, day) = (ring.node(1), 24 * 60 * 60 * 1000);
    let id = [9; 16];
    participant::prepare(node, ring.address(0), full_repair(id, Vec::new())).expect("taken");
    let participation = node.repairs.participation(&id).expect("taken");
    let task = (id, "t".to_owned(), None);
    let now = node.env.clock.now_micros() / 1000;
    let cases = [
        (Progress::Running, 9 * day, true),
        (Progress::Succeeded, day / 2, true),
        (Progress::Succeeded, day + 1, false),
    ];
    for (progress, idle, stays) in cases {
        participation.tasks().insert(task.clone(), progress);
        participation.last_used.store(now - idle, Ordering::Relaxed);
        ring.world.run_for(Duration::from_secs(11));
        assert_eq!(node.repairs.participation(&id).is_some(), stays, "{progress:?}, {idle} ms ago");
    }
}

/// Another node streams to this one for days, which has no task of its own meanwhile. A stream
/// that begins a day behind the last task is one of a later repair.
#[test]
fn a_repair_whose_files_come_is_not_forgotten() {
    let ring = drifted(38);
    let (node, peer, hour) = (ring.node(1), ring.address(0), 60 * 60 * 1000);
    let table = node.engine.table_by_name("ks", "t").expect("the table is there").id;
    let init = streaming::StreamInit {
        from: peer,
        session_index: 0,
        plan: [1; 16],
        operation: streaming::Operation::Repair,
        pending_repair: None,
        preview: streaming::Preview::None,
    };
    let key = SessionKey { plan: init.plan, peer, index: 0, follows: true };
    let now = node.env.clock.now_micros() / 1000;
    for (number, begun, stays) in [(1, now - 24 * hour, true), (2, now, false)] {
        let id = [number; 16];
        participant::prepare(node, peer, full_repair(id, vec![table])).expect("taken");
        let participation = node.repairs.participation(&id).expect("taken");
        participation.last_used.store(now - 25 * hour, Ordering::Relaxed);
        let session = streaming::Session::follow(&init, streaming::session::Limits::default(), 0);
        let (tell, _events) = tokio::sync::mpsc::channel(1);
        let mut live = LiveSession::new(key, init.clone(), session, &node.env, node.engine.truncation_epoch(), tell);
        live.begun_millis = begun;
        live.progress.receiving().announced = vec![streaming::Summary { table, files: 1, bytes: 1 }];
        let live = Arc::new(live);
        node.streaming_state.begin(Arc::clone(&live)).expect("there is room");
        ring.world.run_for(Duration::from_secs(11));
        assert_eq!(node.repairs.participation(&id).is_some(), stays, "repair {number}");
        node.streaming_state.end(&key, live.snapshot(node.env.now()), Ok(()));
        participation.last_streamed.store(0, Ordering::Relaxed);
        ring.world.run_for(Duration::from_secs(11));
        assert!(node.repairs.participation(&id).is_none(), "repair {number}: no stream is left");
    }
}

/// The texts of a traced repair, as the operator reads them.
fn traced(ring: &SimRing) -> Vec<String> {
    let events = repair(ring, 0, RepairOptions { is_traced: true, ..full() });
    assert!(!has_failed(&events), "{events:?}");
    events.into_iter().filter(|event| event.kind == EventKind::Notification).map(|event| event.text).collect()
}

/// `nodetool repair --trace`: the lines of Cassandra, from the replicas too, and the session's row.
#[test]
fn a_traced_repair_tells_each_step() {
    let ring = drifted(10);
    let lines = traced(&ring);
    for part in [
        "Starting repair command #1 ",
        "Syncing range CommonRange{endpoints=[/",
        "Requesting merkle trees for t (to [/",
        "Received merkle tree for t from /",
        "Local completed merkle tree for /",
        " range(s) out of sync with /",
        "Performing streaming repair of ",
        "Sync complete using session ",
        "Forwarding streaming repair of ",
        "Completed sync of range CommonRange{",
    ] {
        assert!(lines.iter().any(|line| line.contains(part)), "{part}: {lines:#?}");
    }
    // both other replicas tell of their trees
    let sent = |line: &&String| line.starts_with('/') && line.contains(": Sending completed merkle tree to /");
    assert_eq!(lines.iter().filter(sent).count(), 2, "{lines:#?}");
    ring.world.run_for(Duration::from_secs(2));
    let sessions = (0..3).map(|machine| ring.count(machine, "system_traces", "sessions")).max();
    assert_eq!(sessions, Some(1), "the session has its row");
    // the rows of all three nodes live for trace_type_repair_ttl
    for table in ["events", "sessions"] {
        let ttls = |machine: usize| {
            let engine = &ring.node(machine).engine;
            let schema = engine.schema();
            let table = schema.table("system_traces", table).expect("a built-in table");
            let rows = crate::system_rows::read(engine, table, None).expect("readable");
            rows.into_iter().map(|(_, row)| row.liveness.ttl).collect::<Vec<u32>>()
        };
        let ttls: Vec<u32> = (0..3).flat_map(ttls).collect();
        assert!(!ttls.is_empty() && ttls.iter().all(|ttl| *ttl == RepairSettings::default().trace_ttl), "{ttls:?}");
    }
    let again = traced(&ring);
    assert!(again.iter().any(|line| line.contains(" is consistent with /")), "{again:#?}");
    assert!(!again.iter().any(|line| line.contains("out of sync")), "{again:#?}");
}

fn change_settings(ring: &SimRing, machine: usize, change: impl FnOnce(&mut RepairSettings)) {
    let repairs = &ring.node(machine).repairs;
    let mut settings = repairs.permits.load().settings;
    change(&mut settings);
    repairs.permits.store(Arc::new(RepairPermits::new(settings)));
}

/// `repair_command_pool_size` and `repair_command_pool_full_strategy`: one repair more than the
/// pool has room for waits for its turn, or is refused.
#[test]
fn the_pool_of_commands_queues_or_rejects() {
    let ring = drifted(11);
    let begin = || ring.node(0).start_repair("ks", full());
    let has_begun = |command: &Command| !command.events(0).0.is_empty();
    change_settings(&ring, 0, |settings| settings.pool_size = 1);
    let commands = [0, 1, 2].map(|_| begin().expect("taken").expect("there are other replicas"));
    let [first, second, third] = &commands;
    let mut overlaps = 0;
    let ended = ring.world.run_until(REPAIR_MAX, || {
        let running = commands.iter().filter(|command| has_begun(command) && !command.has_ended()).count();
        overlaps += usize::from(running > 1);
        third.has_ended()
    });
    assert!(ended && first.has_ended() && second.has_ended());
    assert_eq!(overlaps, 0, "one repair at a time");
    assert!(commands.iter().all(|command| !has_failed(&command.events(0).0)));
    assert_equal(&ring);
    change_settings(&ring, 0, |settings| settings.waits_for_pool = false);
    let running = begin().expect("there is room").expect("there are other replicas");
    let refused = begin().expect_err("the pool is full");
    assert!(refused.to_string().contains("1 repairs run already"), "{refused}");
    assert!(ring.world.run_until(REPAIR_MAX, || running.has_ended()));
    assert!(begin().is_ok(), "there is room again");
}

/// `repair_request_timeout`: a replica that takes messages and does not answer is waited for as
/// long as each of the three sends of a message may take.
#[test]
fn a_request_that_is_not_answered_ends_by_its_timeout() {
    let mut took = Vec::new();
    for timeout in [1, 2] {
        let ring = drifted(12);
        change_settings(&ring, 0, |settings| settings.request_timeout = Duration::from_secs(timeout));
        ring.world.network().block(1, 0);
        let begun = ring.world.elapsed();
        let command = ring.node(0).start_repair("ks", full()).expect("begun").expect("there are other replicas");
        assert!(ring.world.run_until(REPAIR_MAX, || command.has_ended()));
        let events = command.events(0).0;
        let silent = |event: &Event| event.text.contains("Did not get replies from all endpoints.");
        assert!(events.iter().any(silent), "{events:?}");
        took.push((ring.world.elapsed() - begun).as_secs());
    }
    // three sends and two pauses of a second between them; the history of the repair comes last
    let more = took[1] - took[0];
    assert!((5..8).contains(&took[0]) && (2..5).contains(&more), "{took:?} seconds");
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

/// With each variant of Paxos v2 a repair completes what replicas have accepted, and they refuse
/// from then on what is older.
#[test]
fn a_repair_completes_paxos_with_each_variant_of_v2() {
    let ring = drifted(13);
    let variants = ["v2", "v2_without_linearizable_reads", "v2_without_linearizable_reads_or_rejected_writes"];
    for (k, name) in (100..).zip(variants) {
        let variant = PaxosVariant::parse(name).expect("a variant");
        ring.node(0).set_paxos(PaxosOptions { variant, ..PaxosOptions::default() });
        let micros = ring.world.env(0).clock.now_micros() - 1000;
        let ballot = Ballot::new(micros, BallotFlag::Global, 7);
        let proposal = Commit { ballot, update: ring.row("ks", k, 1, 5, micros).updates.remove(0) };
        let (table, key) = (&proposal.update.table, &proposal.update.key);
        for machine in [0, 1] {
            let replica = &ring.node(machine).replica;
            let promised = ring.world.block_on(replica.paxos_prepare(table, key, ballot)).expect("prepared");
            assert!(promised.promised, "{name}");
            assert_eq!(ring.world.block_on(replica.paxos_propose(&proposal)).expect("proposed"), None, "{name}");
        }
        let events = repair(&ring, 0, RepairOptions { repairs_paxos: true, ..full() });
        assert!(!has_failed(&events), "{name}: {events:?}");
        for machine in 0..3 {
            assert_eq!(ring.stored(machine, "ks", k), [(1, 5)], "{name}, machine {machine}");
            let bound = ring.node(machine).replica.paxos_bound_of(table, key.token);
            assert!(bound.is_after(&ballot), "{name}, machine {machine}: {bound}");
        }
    }
}

/// `paxos_repair_enabled: false` holds before changes of the ring too: an operator for whom repairs
/// of Paxos fail can change the ring.
#[test]
fn a_change_of_the_ring_leaves_paxos_out_where_its_repair_is_off() {
    let mut ring = drifted(14);
    ring.node(0).set_paxos(PaxosOptions { variant: PaxosVariant::V2, ..PaxosOptions::default() });
    [1, 2].into_iter().for_each(|machine| ring.kill(machine));
    ring.agree();
    let ahead = |ring: &SimRing| {
        let node = ring.node(0);
        ring.world.block_on(node.env.timeout(Duration::from_secs(5), node.repair_paxos_before_movement("a test")))
    };
    assert!(ahead(&ring).is_err(), "too few are up: it is tried again and again");
    change_settings(&ring, 0, |settings| settings.repairs_paxos = false);
    assert_eq!(ahead(&ring), Ok(Ok(())));
}
