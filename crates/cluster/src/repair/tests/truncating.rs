//! TRUNCATE on one machine ends the repairs of the table, whether the machine coordinates them or
//! not: no row comes back to it, and nothing counts as repaired.

use internode::payload::repair::consistent::SessionState;

use super::incremental::{incremental, settle, states};
use super::*;
use crate::repair_state::records::{Step, Subject};

/// Runs a repair through machine 0 until a condition holds, and truncates the table on a machine
/// then. Gives the events of the repair, which has ended.
fn truncated_when(
    ring: &SimRing,
    machine: usize,
    options: RepairOptions,
    holds: impl Fn(&crate::node::Node) -> bool,
) -> Vec<Event> {
    let command = ring.node(0).start_repair("ks", options).expect("begun").expect("there are other replicas");
    let node = ring.node(machine);
    assert!(ring.world.run_until(REPAIR_MAX, || holds(node)), "{:?}", command.events(0));
    assert!(!command.has_ended(), "{:?}", command.events(0));
    ring.world.block_on(node.truncate_here("ks", "t")).expect("truncated");
    let ended = ring.world.run_until(REPAIR_MAX, || command.has_ended());
    let events = command.events(0).0;
    assert!(ended && has_failed(&events), "{events:?}");
    let is_forgotten = || node.repairs.participations().is_empty();
    assert!(ring.world.run_until(REPAIR_MAX, is_forgotten), "machine {machine} takes part no more");
    assert_eq!(keys(ring, machine), 0, "machine {machine}: {events:?}");
    events
}

fn is_told(events: &[Event], part: &str) -> bool {
    events.iter().any(|event| event.text.contains(part))
}

#[test]
fn a_validation_ends_when_its_table_is_truncated() {
    for (seed, machine) in [(31, 0), (32, 1)] {
        let ring = drifted(seed);
        let validates = |node: &crate::node::Node| {
            node.engine.compactions.running().iter().any(|running| running.kind == Kind::Validation)
        };
        let events = truncated_when(&ring, machine, full(), validates);
        assert!(is_told(&events, "Validation failed in /"), "{events:?}");
        assert_eq!(is_told(&events, "failed with error ks.t was truncated"), machine == 0, "{events:?}");
    }
}

/// While the data is put apart, and behind that.
#[test]
fn an_incremental_repair_fails_when_its_table_is_truncated() {
    for (seed, machine, state) in
        [(33, 0, SessionState::Repairing), (34, 1, SessionState::Preparing), (35, 1, SessionState::Repairing)]
    {
        let ring = drifted(seed);
        let is_there = |node: &crate::node::Node| {
            node.repairs.sessions().values().any(|session| session.state >= state && !session.has_ended())
        };
        truncated_when(&ring, machine, incremental(), is_there);
        let all_failed = || {
            (0..3).all(|machine| {
                ring.node(machine).repairs.sessions().values().all(|session| session.state == SessionState::Failed)
            })
        };
        assert!(ring.world.run_until(REPAIR_MAX, all_failed), "seed {seed}");
        settle(&ring);
        for other in 0..3 {
            assert_eq!(states(&ring, other)[2], 0, "seed {seed}: nothing is repaired at machine {other}");
        }
        let events = repair(&ring, 0, incremental());
        assert!(!has_failed(&events), "seed {seed}: {events:?}");
        let left = [0, 1, 2].map(|machine| keys(&ring, machine));
        assert!(left.iter().all(|count| *count == left[0] && *count > 20), "seed {seed}: {left:?}");
    }
}

/// The command is to end when its replicas have been compared and nothing is streamed yet.
#[test]
fn a_repair_that_is_to_end_begins_no_stream() {
    const WHY: &str = "ks.t was truncated";
    let ring = drifted(36);
    let node = ring.node(0);
    let command = node.start_repair("ks", full()).expect("begun").expect("there are other replicas");
    let is_compared = || {
        let jobs = node.repairs.records.of(Subject::Job);
        jobs.iter().any(|job| job.state().at(Step::ValidationComplete).is_some())
    };
    assert!(ring.world.run_until(REPAIR_MAX, is_compared), "{:?}", command.events(0));
    command.cancel(WHY);
    assert!(ring.world.run_until(REPAIR_MAX, || command.has_ended()), "{:?}", command.events(0));
    let events = command.events(0).0;
    assert!(is_told(&events, &format!("failed with error {WHY}")), "{events:?}");
    ring.world.run_for(Duration::from_secs(60));
    assert!((0..3).all(|machine| keys(&ring, machine) < 15), "nothing has moved");
}
