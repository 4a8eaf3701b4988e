//! Incremental repairs: what was repaired once is not looked at again, and participants agree on it
//! whatever happens to one of them. `HELENUS_SEEDS=4` kills at further steps.

use internode::Verb;
use internode::payload::repair::consistent::{PrepareConsistent, SessionState, Status};
use membership::Request;
use sstable::SSTable;
use storage::inherited::RepairState;

use super::*;
use crate::repair::sessions_admin::TableChoice;
use crate::repair_state::sessions::LocalSession;
use crate::repair_state::{RepairResult, RepairResultKey, SESSIONS_MAX};

/// After so long everything that was written is durable.
const SYNC_MAX: Duration = Duration::from_secs(11);

pub(super) fn incremental() -> RepairOptions {
    RepairOptions { is_incremental: true, ..full() }
}

/// SSTables of `ks.t` at a machine by their repair state: unrepaired, pending, repaired.
pub(super) fn states(ring: &SimRing, machine: usize) -> [usize; 3] {
    let store = ring.node(machine).engine.table_by_name("ks", "t").expect("the table is there");
    let state = |sstable: &SSTable| RepairState::of(&sstable.statistics().stats);
    let mut counts = [0; 3];
    for sstable in &store.view().sstables {
        let place = match state(sstable) {
            RepairState::Unrepaired => 0,
            RepairState::Pending { .. } => 1,
            RepairState::Repaired => 2,
        };
        counts[place] += 1;
    }
    counts
}

/// The states of the sessions that a machine knows, as in its rows.
fn sessions(ring: &SimRing, machine: usize) -> Vec<SessionState> {
    let known: Vec<_> = ring.node(machine).repairs.sessions().values().map(|session| session.state).collect();
    assert_eq!(ring.count(machine, "system", "repairs"), known.len(), "each session is a row");
    known
}

/// Waits until no session has data at the living machines any more.
pub(super) fn settle(ring: &SimRing) {
    let has_none = || ring.living().into_iter().all(|machine| states(ring, machine)[1] == 0);
    assert!(ring.world.run_until(REPAIR_MAX, has_none), "data of ended sessions is released");
}

#[test]
fn data_is_repaired_once() {
    let ring = drifted(11);
    let events = repair(&ring, 0, incremental());
    assert!(!has_failed(&events), "{events:?}");
    assert_equal(&ring);
    settle(&ring);
    for machine in 0..3 {
        let [unrepaired, _, repaired] = states(&ring, machine);
        assert!(unrepaired == 0 && repaired > 0, "machine {machine}");
        assert_eq!(sessions(&ring, machine), [SessionState::Finalized]);
    }
    let known = ring.node(0).pending_repairs(TableChoice::default()).expect("all tables");
    assert!(known.iter().any(|of| of.keyspace == "ks") && known.iter().all(|of| of.keyspace != "system"), "{known:?}");
    // what comes later is repaired apart
    ring.apply_alone(1, &[ring.row("ks", 3, 2, 33, 2000)]);
    let before: Vec<_> = (0..3).map(|machine| states(&ring, machine)[2]).collect();
    let events = repair(&ring, 2, incremental());
    assert!(!has_failed(&events), "{events:?}");
    settle(&ring);
    for (machine, before) in before.into_iter().enumerate() {
        assert_eq!(ring.stored(machine, "ks", 3), [(1, 3), (2, 33)], "machine {machine}");
        assert_eq!(states(&ring, machine), [0, 0, before + 1], "machine {machine}");
    }
    let preview = RepairOptions { preview: Preview::Repaired, ..full() };
    let events = repair(&ring, 1, preview);
    assert!(events.iter().any(|event| event.text == "Repaired data is in sync"), "{events:?}");
}

#[test]
fn a_part_of_the_ring_is_put_apart_from_the_rest() {
    let ring = drifted(12);
    let placed = ring.node(0).ring();
    let (start, end, _) = placed
        .placement("ks")
        .expect("known")
        .ranges()
        .max_by_key(|(start, end, _)| end.0.wrapping_sub(start.0) as u64)
        .expect("there are ranges");
    let options = RepairOptions { ranges: vec![Tokens { start, end }], ..incremental() };
    let events = repair(&ring, 0, options);
    assert!(!has_failed(&events), "{events:?}");
    settle(&ring);
    for machine in 0..3 {
        let [unrepaired, _, repaired] = states(&ring, machine);
        assert!(unrepaired > 0 && repaired > 0, "machine {machine}: {unrepaired} and {repaired}");
        let own = (0..KEYS).filter(|k| *k as usize % 3 == machine);
        assert!(own.clone().all(|k| ring.stored(machine, "ks", k) == [(1, k)]), "nothing is lost");
        assert!(keys(&ring, machine) > own.count(), "something has come");
        assert!(keys(&ring, machine) < KEYS as usize, "not all has come");
    }
    let events = repair(&ring, 1, incremental());
    assert!(!has_failed(&events), "{events:?}");
    assert_equal(&ring);
    settle(&ring);
    assert!((0..3).all(|machine| states(&ring, machine)[0] == 0), "all is repaired");
}

#[test]
fn a_forced_repair_leaves_data_unrepaired() {
    let mut ring = drifted(13);
    ring.kill(2);
    ring.agree();
    let events = repair(&ring, 0, RepairOptions { is_forced: true, ..incremental() });
    assert!(!has_failed(&events), "{events:?}");
    settle(&ring);
    assert_eq!(keys(&ring, 0), keys(&ring, 1), "the replicas that live have the same");
    for machine in 0..2 {
        let [unrepaired, _, repaired] = states(&ring, machine);
        assert!(unrepaired > 0 && repaired == 0, "machine {machine}");
    }
}

/// Of two replicas the one that is down is the only other one of its ranges, which are not compared
/// at all.
#[test]
fn a_forced_repair_without_a_whole_range_leaves_data_unrepaired() {
    let mut ring = drifted_of(20, "2");
    ring.kill(2);
    ring.agree();
    let events = repair(&ring, 0, RepairOptions { is_forced: true, ..incremental() });
    assert!(!has_failed(&events), "{events:?}");
    assert!(events.iter().any(|event| event.text.ends_with("finished")), "a range is compared: {events:?}");
    settle(&ring);
    for machine in 0..2 {
        let [unrepaired, _, repaired] = states(&ring, machine);
        assert!(unrepaired > 0 && repaired == 0, "machine {machine}: {unrepaired} and {repaired}");
    }
}

/// Runs an incremental repair through machine 0 and kills one when machine 1 is in a state.
fn killed_at(seed: u64, state: SessionState, killed: usize) -> SimRing {
    let mut ring = drifted(seed);
    // what was written alone is durable before a machine loses its power
    ring.world.run_for(SYNC_MAX);
    let command = ring.node(0).start_repair("ks", incremental()).expect("begun").expect("there are other replicas");
    let is_there = || ring.node(1).repairs.sessions().values().any(|session| session.state >= state);
    assert!(ring.world.run_until(REPAIR_MAX, is_there), "{state:?} comes");
    ring.power_cut(killed);
    if killed != 0 {
        assert!(ring.world.run_until(REPAIR_MAX, || command.has_ended()), "{:?}", command.events(0));
    }
    drop(command);
    ring.start(killed);
    ring.agree();
    ring
}

#[test]
fn a_participant_that_dies_fails_the_session() {
    let cases = [
        (14, SessionState::Preparing, 2),
        (15, SessionState::Repairing, 0),
        (16, SessionState::Repairing, 1),
        (17, SessionState::Preparing, 0),
    ];
    let count = std::env::var("HELENUS_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    for (seed, state, killed) in cases.into_iter().take(count) {
        let ring = killed_at(seed, state, killed);
        let all_failed = || {
            (0..3).all(|machine| {
                ring.node(machine).repairs.sessions().values().all(|session| session.state == SessionState::Failed)
            })
        };
        assert!(ring.world.run_until(REPAIR_MAX, all_failed), "seed {seed}");
        settle(&ring);
        for machine in 0..3 {
            assert_eq!(states(&ring, machine)[2], 0, "seed {seed}: nothing is repaired at machine {machine}");
        }
        let events = repair(&ring, 0, incremental());
        assert!(!has_failed(&events), "seed {seed}: {events:?}");
        assert_equal(&ring);
        settle(&ring);
        assert!((0..3).all(|machine| states(&ring, machine)[0] == 0), "seed {seed}: all is repaired");
    }
}

#[test]
fn a_participant_that_has_promised_learns_the_outcome() {
    let ring = killed_at(18, SessionState::FinalizePromised, 1);
    // the others have ended the session, or none has; after an hour of silence the outcome is
    // asked for
    let hours = Duration::from_secs(2 * 60 * 60);
    let has_ended =
        || (0..3).all(|machine| ring.node(machine).repairs.sessions().values().all(|session| session.has_ended()));
    assert!(
        ring.world.run_until(hours, has_ended),
        "{:?}",
        (0..3).map(|machine| sessions(&ring, machine)).collect::<Vec<_>>()
    );
    let outcomes: Vec<_> = (0..3).map(|machine| sessions(&ring, machine)).collect();
    assert!(outcomes.iter().all(|one| *one == outcomes[0]), "{outcomes:?}");
    settle(&ring);
}

fn preview_of_repaired() -> RepairOptions {
    RepairOptions { preview: Preview::Repaired, ..full() }
}

/// A session of all ranges of `ks.t` at a machine, in a state.
pub(super) fn session_at(ring: &SimRing, machine: usize, id: u8, state: SessionState) -> LocalSession {
    let node = ring.node(machine);
    let store = node.engine.table_by_name("ks", "t").expect("the table is there");
    let now = node.env.clock.now_micros() / 1_000_000;
    let session = LocalSession {
        id: [id; 16],
        coordinator: ring.address(0),
        tables: vec![store.id],
        ranges: vec![Tokens { start: Token(0), end: Token(0) }],
        participants: (0..3).map(|machine| ring.address(machine)).collect(),
        repaired_at: now * 1000,
        started_at: now,
        last_update: now,
        state,
    };
    node.repairs.sessions().insert(session.id, session.clone());
    session
}

/// Data that one replica counts as repaired already, and another one not yet, is no difference.
#[test]
fn a_preview_of_repaired_data_fails_beside_an_incremental_repair() {
    let ring = drifted(22);
    let command = ring.node(0).start_repair("ks", incremental()).expect("begun").expect("there are other replicas");
    let is_apart = || (0..3).all(|machine| states(&ring, machine)[1] > 0);
    assert!(ring.world.run_until(REPAIR_MAX, is_apart), "{:?}", command.events(0));
    let events = repair(&ring, 1, preview_of_repaired());
    assert!(has_failed(&events), "{events:?}");
    assert!(ring.world.run_until(REPAIR_MAX, || command.has_ended()));
    assert!(!has_failed(&command.events(0).0), "{:?}", command.events(0));
    // a session that ends well while the preview looks at replicas
    settle(&ring);
    let preview = ring.node(0).start_repair("ks", preview_of_repaired()).expect("begun").expect("replicas");
    let has_begun = || ring.node(0).repairs.participation(&preview.id).is_some();
    assert!(ring.world.run_until(REPAIR_MAX, has_begun), "{:?}", preview.events(0));
    let session = session_at(&ring, 0, 7, SessionState::FinalizePromised);
    assert_eq!(consistent::commit(ring.node(0), &session.id), Ok(true));
    assert!(ring.world.run_until(REPAIR_MAX, || preview.has_ended()));
    let events = preview.events(0).0;
    let is_told = |event: &Event| event.text.contains("finished during this preview repair runtime");
    assert!(has_failed(&events) && events.iter().any(is_told), "{events:?}");
}

/// FINALIZE_PROPOSE of a session that has failed at a participant: otherwise the coordinator would
/// wait for a promise that does not come.
#[test]
fn a_proposal_of_a_failed_session_is_answered() {
    let ring = drifted(23);
    let at_coordinator = session_at(&ring, 0, 8, SessionState::Repairing);
    session_at(&ring, 1, 8, SessionState::Failed);
    consistent::propose(ring.node(1), ring.address(0), at_coordinator.id).expect("taken");
    let has_failed = || {
        let state = ring.node(0).repairs.sessions().get(&at_coordinator.id).map(|session| session.state);
        state == Some(SessionState::Failed)
    };
    assert!(ring.world.run_until(Duration::from_secs(30), has_failed), "the coordinator is told");
}

/// The vote of machine 1 that machine 0 waits for under a name, when machine 1 has been `asked`.
fn vote_of(ring: &SimRing, what: RepairResultKey, asked: impl FnOnce()) -> Option<bool> {
    let mut told = ring.node(0).repairs.expect(what);
    asked();
    let mut vote = None;
    ring.world.run_until(Duration::from_secs(30), || {
        vote = vote.take().or_else(|| told.try_recv().ok());
        vote.is_some()
    });
    vote.map(|vote| matches!(vote, RepairResult::Vote(true)))
}

/// The first answer may have been lost: the coordinator asks again.
#[test]
fn a_participant_that_is_asked_again_answers_again() {
    let ring = drifted(26);
    let (node, coordinator, participant) = (ring.node(1), ring.address(0), ring.address(1));
    for (id, state, is_yes) in
        [(1, SessionState::Prepared, true), (2, SessionState::Repairing, true), (3, SessionState::Failed, false)]
    {
        let LocalSession { id: session, tables, ranges, participants, .. } = session_at(&ring, 1, id, state);
        let prepare = Prepare { ranges, is_incremental: true, ..full_repair(session, tables) };
        participant::prepare(node, coordinator, prepare).expect("taken");
        let request = PrepareConsistent { session, coordinator, participants };
        let ask = || consistent::begin(node, request).expect("acknowledged");
        assert_eq!(vote_of(&ring, RepairResultKey::Prepared(session, participant), ask), Some(is_yes), "{state:?}");
    }
    for (id, state) in [(4, SessionState::FinalizePromised), (5, SessionState::Finalized)] {
        let session = session_at(&ring, 1, id, state).id;
        let ask = || consistent::propose(node, coordinator, session).expect("acknowledged");
        assert_eq!(vote_of(&ring, RepairResultKey::Promised(session, participant), ask), Some(true), "{state:?}");
    }
}

/// PREPARE_CONSISTENT where too much waits for the thread of repair: nobody works at the session,
/// which has failed. A request that comes again, since the refusal was lost, is voted against.
#[test]
fn a_session_that_there_is_no_room_for_has_failed() {
    let ring = drifted(27);
    let (node, coordinator, participant) = (ring.node(1), ring.address(0), ring.address(1));
    let tables = vec![node.engine.table_by_name("ks", "t").expect("the table is there").id];
    let ranges = vec![Tokens { start: Token(0), end: Token(0) }];
    let prepare = Prepare { ranges, is_incremental: true, repaired_at: 1, ..full_repair([6; 16], tables) };
    participant::prepare(node, coordinator, prepare).expect("taken");
    let request = PrepareConsistent { session: [6; 16], coordinator, participants: vec![coordinator, participant] };
    while node.repair_task(|| async {}) {}
    assert!(consistent::begin(node, request.clone()).is_err(), "nothing more is taken");
    assert_eq!(sessions(&ring, 1), [SessionState::Failed]);
    ring.world.run_for(Duration::from_secs(1));
    let ask = || consistent::begin(node, request).expect("acknowledged");
    assert_eq!(vote_of(&ring, RepairResultKey::Prepared([6; 16], participant), ask), Some(false));
}

/// A participant that has missed the good end asks for it. The answer waits for the disk: a crash
/// could take the end back.
#[test]
fn a_good_end_is_told_when_it_is_durable() {
    let ring = drifted(31);
    let id = session_at(&ring, 0, 9, SessionState::FinalizePromised).id;
    session_at(&ring, 1, 9, SessionState::FinalizePromised);
    ring.world.disk(1).set_sync_delay(Duration::from_secs(30));
    assert_eq!(consistent::commit(ring.node(1), &id), Ok(true));
    let request = Request::new(Verb::StatusReq, id.to_vec(), Duration::from_secs(5)).without_failure_response();
    ring.node(0).messenger().expect("it has joined").tell(ring.address(1), request);
    ring.world.run_for(Duration::from_secs(5));
    let state = || ring.node(0).repairs.sessions().get(&id).map(|session| session.state);
    assert_eq!(state(), Some(SessionState::FinalizePromised));
    assert!(ring.world.run_until(REPAIR_MAX, || state() == Some(SessionState::Finalized)), "it is durable");
}

/// Each small range keeps its last session, so that a node that is repaired in many of them has
/// many. The oldest one that has ended makes room.
#[test]
fn the_oldest_ended_session_makes_room() {
    let ring = drifted(30);
    let (node, coordinator, participant) = (ring.node(1), ring.address(0), ring.address(1));
    let last = session_at(&ring, 1, 1, SessionState::Finalized);
    let ages = (1..).zip([SessionState::Preparing, SessionState::Finalized, SessionState::Finalized]);
    let before = last.last_update - 4;
    let others = ages.map(|(age, state)| LocalSession { last_update: before + age, state, ..last.clone() });
    let many = others.chain(std::iter::repeat(last.clone())).take(SESSIONS_MAX);
    let id = |number: usize| (number as u128).to_be_bytes();
    let filled = many.enumerate().map(|(number, session)| (id(number), LocalSession { id: id(number), ..session }));
    *node.repairs.sessions() = filled.collect();
    let LocalSession { tables, ranges, .. } = last;
    let prepare = Prepare { ranges, is_incremental: true, repaired_at: 1, ..full_repair([6; 16], tables) };
    participant::prepare(node, coordinator, prepare).expect("taken");
    let request = PrepareConsistent { session: [6; 16], coordinator, participants: vec![coordinator, participant] };
    consistent::begin(node, request).expect("there is room");
    let known = [id(0), id(1), id(2), [6; 16]].map(|id| node.repairs.sessions().contains_key(&id));
    assert_eq!(known, [true, false, true, true], "the first is under way");
}

/// An ended session tells since when ranges are repaired, until all ranges that the node still
/// holds were repaired later.
#[test]
fn a_session_of_ranges_that_were_handed_on_is_forgotten() {
    let ring = drifted_of(25, "2");
    let node = ring.node(0);
    let earlier = session_at(&ring, 0, 1, SessionState::Finalized);
    let later = session_at(&ring, 0, 2, SessionState::Finalized);
    let held = {
        let ring = node.ring();
        ranges::of_node(&ring, ring.placement("ks").expect("known"), &RepairOptions::default())
    };
    let days = 2 * 24 * 60 * 60;
    let old = LocalSession { last_update: earlier.last_update - days, repaired_at: 5, ..earlier.clone() };
    node.repairs.sessions().insert(old.id, old);
    for (repaired, is_known) in [(&held[1..], true), (&held[..], false)] {
        let later = LocalSession { ranges: repaired.to_vec(), ..later.clone() };
        node.repairs.sessions().insert(later.id, later);
        consistent::sweep::age(node);
        assert_eq!(node.repairs.sessions().contains_key(&earlier.id), is_known, "repaired later: {repaired:?}");
    }
}

/// The coordinator of a session is gone for good, and the other participants tell each other that
/// the session goes on. Its data would stay apart for ever, and no other incremental repair of the
/// ranges could begin.
#[test]
fn a_session_fails_a_day_after_its_coordinator_was_heard() {
    let ring = drifted(28);
    let node = ring.node(1);
    let session = session_at(&ring, 1, 9, SessionState::Prepared);
    let old = LocalSession { last_update: session.last_update - 2 * 24 * 60 * 60, ..session };
    for (from, expected) in [(2, SessionState::Failed), (0, SessionState::Prepared)] {
        node.repairs.sessions().insert(old.id, old.clone());
        let status = Status { session: old.id, state: SessionState::Prepared };
        consistent::receive_status(node, ring.address(from), &status).expect("taken");
        consistent::sweep::age(node);
        let state = node.repairs.sessions().get(&old.id).map(|session| session.state);
        assert_eq!(state, Some(expected), "machine {from} has told that it goes on");
    }
}

/// The coordinator ends between its own promise and the end of the session. Nobody else could tell
/// the outcome, and all would wait for it.
#[test]
fn a_coordinator_that_starts_again_fails_the_session_that_it_had_promised() {
    let mut ring = drifted(29);
    let session = session_at(&ring, 0, 8, SessionState::Repairing);
    session_at(&ring, 1, 8, SessionState::FinalizePromised);
    consistent::propose(ring.node(0), ring.address(0), session.id).expect("taken");
    let all_are = |ring: &SimRing, machines: &[usize], state: SessionState| {
        let is = |machine: &usize| {
            let sessions = ring.node(*machine).repairs.sessions();
            sessions.get(&session.id).is_some_and(|session| session.state == state)
        };
        ring.world.run_until(REPAIR_MAX, || machines.iter().all(is))
    };
    assert!(all_are(&ring, &[0], SessionState::FinalizePromised));
    ring.world.run_for(SYNC_MAX);
    ring.kill(0);
    ring.start(0);
    ring.agree();
    assert!(all_are(&ring, &[0, 1], SessionState::Failed));
}

/// Data of a session that nobody knows is released, but not before the sessions are read.
#[test]
fn a_missing_session_has_failed_when_the_sessions_are_read() {
    let ring = SimRing::begun(24, &["dc1"; 2], 1);
    let begun = ring.try_open(1).expect("opened");
    let outcomes = [&begun, ring.node(0)].map(|node| consistent::sweep::outcome(node, &[7; 16]));
    assert_eq!(outcomes, [None, Some(0)]);
}

#[test]
fn sessions_do_not_share_data() {
    let ring = drifted(19);
    let both: Vec<_> = (0..2)
        .map(|through| ring.node(through).start_repair("ks", incremental()).expect("begun").expect("replicas"))
        .collect();
    let ended = ring.world.run_until(REPAIR_MAX, || both.iter().all(|command| command.has_ended()));
    assert!(ended);
    settle(&ring);
    let done = both.iter().filter(|command| !has_failed(&command.events(0).0)).count();
    if done == 0 {
        let events = repair(&ring, 0, incremental());
        assert!(!has_failed(&events), "{events:?}");
        settle(&ring);
    }
    assert_equal(&ring);
    for machine in 0..3 {
        assert_eq!(states(&ring, machine)[0], 0, "machine {machine}: all is repaired");
    }
}
