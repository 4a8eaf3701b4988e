//! Repairs whose results do not come although all nodes are up: a node stood still, or its messages
//! are lost. None is waited for without an end, and none ends because it takes long.

use internode::payload::repair::consistent::SessionState;
use internode::payload::repair::{Job, ValidationRequest};
use tokio::sync::OwnedSemaphorePermit;

use super::incremental::session_at;
use super::*;

/// Validations at a machine have begun and do not go on while this is held.
fn hold_validations(ring: &SimRing, machine: usize) -> OwnedSemaphorePermit {
    let turns = Arc::clone(&ring.node(machine).repairs.permits.load().validations);
    let all = u32::try_from(turns.available_permits()).expect("a few");
    turns.try_acquire_many_owned(all).expect("nothing is validated yet")
}

/// Begins a repair through machine 0, and waits until machine 1 has taken the request for its
/// trees.
fn begun(ring: &SimRing) -> Arc<Command> {
    let command = ring.node(0).start_repair("ks", full()).expect("begun").expect("there are other replicas");
    let validates = || {
        let participation = ring.node(1).repairs.participation(&command.id);
        participation.is_some_and(|participation| !participation.tasks().is_empty())
    };
    assert!(ring.world.run_until(REPAIR_MAX, validates), "{:?}", command.events(0));
    command
}

/// The participants have forgotten the repair meanwhile, and are up.
#[test]
fn a_repair_ends_whose_coordinator_stood_still() {
    let ring = drifted(31);
    let _standing = hold_validations(&ring, 1);
    let command = begun(&ring);
    ring.world.pause(0);
    let is_forgotten = || ring.node(1).repairs.participation(&command.id).is_none();
    assert!(ring.world.run_until(REPAIR_MAX, is_forgotten), "the coordinator is gone for machine 1");
    ring.world.resume(0);
    let ended = ring.world.run_until(REPAIR_MAX, || command.has_ended());
    assert!(ended && has_failed(&command.events(0).0), "{:?}", command.events(0));
}

/// Nothing that the replica sends arrives, while gossip of it comes by the third machine.
#[test]
fn a_repair_ends_when_a_replica_acknowledges_nothing_any_more() {
    let ring = drifted(32);
    change_settings(&ring, 0, |settings| settings.request_timeout = Duration::from_secs(1));
    let _standing = hold_validations(&ring, 1);
    let command = begun(&ring);
    ring.world.network().block(1, 0);
    let mut was_down = false;
    let ended = ring.world.run_until(REPAIR_MAX, || {
        was_down |= !messages::is_up(ring.node(0), ring.address(1));
        command.has_ended()
    });
    assert!(ended && has_failed(&command.events(0).0), "{:?}", command.events(0));
    assert!(!was_down, "it ends although the replica is up");
}

#[test]
fn a_validation_that_takes_long_is_waited_for() {
    let ring = drifted(33);
    let standing = hold_validations(&ring, 1);
    let command = begun(&ring);
    ring.world.run_for(Duration::from_secs(60 * 60));
    assert!(!command.has_ended(), "{:?}", command.events(0));
    drop(standing);
    assert!(ring.world.run_until(REPAIR_MAX, || command.has_ended()), "{:?}", command.events(0));
    assert!(!has_failed(&command.events(0).0), "{:?}", command.events(0));
    assert_equal(&ring);
}

/// The coordinator gives its own validation up when another replica has failed.
#[test]
fn a_validation_that_is_given_up_has_ended() {
    let mut ring = drifted(40);
    let _standing = [0, 1].map(|machine| hold_validations(&ring, machine));
    let command = begun(&ring);
    let validations = |ring: &SimRing| ring.node(0).repair_records(records::Subject::Validation);
    assert!(ring.world.run_until(REPAIR_MAX, || !validations(&ring).is_empty()));
    ring.kill(1);
    assert!(ring.world.run_until(REPAIR_MAX, || command.has_ended()), "{:?}", command.events(0));
    let validations = validations(&ring);
    assert!(validations.iter().all(|record| record.state().end.is_some()), "{validations:?}");
}

/// A request that comes again is acknowledged while its result may still be told, and refused when
/// the result is lost.
#[test]
fn a_result_that_cannot_be_told_is_a_failure() {
    let ring = drifted(34);
    let (node, from) = (ring.node(1), ring.address(0));
    let placed = node.ring();
    let placement = placed.placement("ks").expect("known");
    let ranges: Vec<_> = placement.ranges().map(|(start, end, _)| Tokens { start, end }).collect();
    let tables = vec![node.engine.table_by_name("ks", "t").expect("the table is there").id];
    let prepare = Prepare { ranges: ranges.clone(), ..full_repair([9; 16], tables) };
    participant::prepare(node, from, prepare).expect("taken");
    let job = Job { parent: [9; 16], session: [8; 16], keyspace: "ks".to_owned(), table: "t".to_owned(), ranges };
    let request = ValidationRequest { job, now: node.env.clock.now_seconds() };
    let ask = || participant::begin_validation(node, from, request.clone(), None);
    ring.world.network().block(1, 0);
    assert_eq!([ask(), ask()], [Ok(()), Ok(())]);
    // three sends of the trees, each of which is waited for five minutes
    let mut answer = Ok(());
    ring.world.run_until(Duration::from_secs(20 * 60), || {
        answer = ask();
        answer.is_err()
    });
    assert_eq!(answer, Err("it has failed before".to_owned()));
}

/// A request that was refused is refused when it comes again: the refusal may have been lost, and
/// nobody works at what was asked for.
#[test]
fn a_request_that_was_refused_is_not_acknowledged_later() {
    let ring = drifted(35);
    let (node, from) = (ring.node(1), ring.address(0));
    let session = session_at(&ring, 1, 9, SessionState::Failed);
    let ranges = session.ranges.clone();
    let prepare = Prepare { ranges, is_incremental: true, ..full_repair(session.id, session.tables) };
    participant::prepare(node, from, prepare).expect("taken");
    let (keyspace, table) = ("ks".to_owned(), "t".to_owned());
    let job = Job { parent: session.id, session: [8; 16], keyspace, table, ranges: session.ranges };
    let request = ValidationRequest { job, now: node.env.clock.now_seconds() };
    let ask = || participant::begin_validation(node, from, request.clone(), None).is_err();
    assert_eq!([ask(), ask()], [true, true], "the session has failed here");
    // the coordinator's own validation is refused in the same way
    let job = Job { session: [7; 16], ..request.job.clone() };
    ring.world.block_on(participant::validate_here(node, &job, request.now)).expect_err("the session has failed here");
    let participation = node.repairs.participation(&session.id).expect("taken");
    assert!(participation.tasks().values().all(|progress| *progress == Progress::Failed));
}
