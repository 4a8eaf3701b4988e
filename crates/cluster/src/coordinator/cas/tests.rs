//! Conditional statements of a node alone, and among the nodes of a ring: what was decided is seen
//! by whoever comes next, whichever nodes have died meanwhile.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::future::join_all;
use internode::payload::paxos::{Ballot, BallotFlag, Commit};
use rows::live::TombstoneLimits;
use rows::{ColumnData, DeletionTime, LiveRows, PartitionStream, PartitionUpdate, ReadError};
use schema::TableId;
use types::{CqlType, WriteKind};

use super::*;
use crate::coordinator::error::{FailedCas, FailedRead};
use crate::paxos::{PaxosOptions, PaxosVariant};
use crate::replica::read::{ReadFigures, ReadRequest};
use crate::system_rows::{SystemRow, partition_key};
use crate::testing::views::{create_on, keyspace_of, keyspace_of_notes, notes, show_everything, view_by_v};
use crate::testing::{SimNode, SimRing, WINDOW, poll};

/// The job that copies a large value has not run when the request's time is over: the next
/// conditional statement of the partition would not see what it writes.
#[test]
fn a_large_write_holds_the_lock_until_its_job_has_ended() {
    let machine = SimNode::new(WINDOW);
    let write = [machine.role(1, 2 << 20)];
    let update = &write[0].updates[0];
    let node = &machine.node;
    let (serial, commit) = (Consistency::Serial, Consistency::One);
    let cas = Cas { table: &update.table, key: &update.key, serial, commit, trace: None };
    let command = read_of(update);
    {
        let decide = async |_| Ok::<_, ()>(Some(write[0].clone()));
        let mut written = pin!(node.compare_and_set(cas, &command, decide));
        assert!(poll(written.as_mut()).is_pending());
        // the request ends here, as it does when its connection is reset or its time is over
    }
    let mut next = pin!(node.lock_partition(&update.table, &update.key));
    assert!(poll(next.as_mut()).is_pending(), "the job has not run");
    assert_eq!(machine.count("system_auth", "roles"), 0);
    machine.sim.advance(Duration::from_millis(1));
    while machine.count("system_auth", "roles") == 0 {
        assert!(machine.sim.step(), "the job is run");
    }
    assert!(matches!(poll(next.as_mut()), Poll::Ready(Some(_))));
}

/// Reads the partition of an update.
fn read_of(update: &rows::PartitionUpdate) -> ReadCommand {
    ReadCommand {
        table: Arc::clone(&update.table),
        range: rows::PartitionRange::Key(update.key.clone()),
        slices: rows::Slices::all(),
        reversed: false,
        columns: rows::ColumnFilter::All,
        now: 0,
        limits: rows::DataLimits::NONE,
        indexes: Vec::new(),
    }
}

/// A statement of these tests: of row 1 of a partition of `t`.
struct Statement {
    through: usize,
    k: i32,
    serial: Consistency,
    commit: Consistency,
}

fn statement(through: usize, k: i32) -> Statement {
    Statement { through, k, serial: Consistency::Serial, commit: Consistency::Quorum }
}

/// The value of the one row of a partition; None: there is no row.
fn value(stream: &mut dyn PartitionStream, command: &rows::ReadCommand) -> Result<Option<i32>, ReadError> {
    let mut live = LiveRows::new(stream, Arc::clone(&command.table), command.now, TombstoneLimits::NONE);
    if live.next_partition()?.is_none() {
        return Ok(None);
    }
    let row = live.next_row()?;
    let cell = row.as_ref().and_then(|row| match row.columns.first() {
        Some(ColumnData::Simple(cell)) => Some(cell.value.clone()),
        _ => None,
    });
    Ok(cell.map(|bytes| i32::from_be_bytes(bytes[..].try_into().expect("an int"))))
}

impl Statement {
    /// Sets the row to what `decide` makes of its value; None: it is left as it is.
    async fn run(
        &self,
        ring: &SimRing,
        decide: impl Fn(Option<i32>) -> Option<i32>,
    ) -> Result<(), CasError<FailedRead<ReadError>>> {
        let node = ring.node(self.through);
        let command = ring.select_key("ks", self.k);
        let row = ring.row("ks", self.k, 1, 0, 1);
        let (table, key) = (&row.updates[0].table, &row.updates[0].key);
        let read_and_decide = async |round: Round| {
            let asked = command.clone();
            let build = move |stream: &mut dyn PartitionStream| value(stream, &asked);
            let request = ReadRequest::of(vec![command.clone()]);
            let found = node.read_to_decide(request, &round, &ReadFigures::default(), build).await?;
            let timestamp = round.timestamp.expect("nodes of a ring agree on ballots");
            Ok(decide(found).map(|to| ring.row("ks", self.k, 1, to, timestamp)))
        };
        let cas = Cas { table, key, serial: self.serial, commit: self.commit, trace: None };
        node.compare_and_set(cas, &command, read_and_decide).await
    }

    fn set(&self, ring: &SimRing, to: i32) -> Result<(), CasError<FailedRead<ReadError>>> {
        ring.world.block_on(self.run(ring, |_| Some(to)))
    }
}

fn ring_of(seed: u64, centers: &[&str]) -> SimRing {
    let ring = SimRing::new(seed, centers);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "3")]);
    ring
}

/// Makes a node coordinate by a variant.
fn coordinate(ring: &SimRing, machine: usize, variant: PaxosVariant) {
    ring.node(machine).set_paxos(PaxosOptions { variant, ..PaxosOptions::default() });
}

const THREE: [&str; 3] = ["dc1", "dc1", "dc1"];

/// The value that a read at SERIAL gives.
fn serial_value(ring: &SimRing, through: usize, k: i32) -> Option<i32> {
    let rows = ring.read(through, vec![ring.select_key("ks", k)], Consistency::Serial).expect("read");
    rows.first().map(|(_, _, value)| *value)
}

/// A change that a node proposes with a ballot of some time before now, `back` microseconds ago.
fn proposed(ring: &SimRing, k: i32, to: i32, back: i64) -> Commit {
    let micros = ring.world.env(0).clock.now_micros() - back;
    let ballot = Ballot::new(micros, BallotFlag::Global, 7);
    Commit { ballot, update: ring.row("ks", k, 1, to, micros).updates.remove(0) }
}

/// Has the ballot of a change promised by some replicas.
fn promise(ring: &SimRing, machines: &[usize], proposal: &Commit) {
    let (table, key) = (&proposal.update.table, &proposal.update.key);
    for machine in machines {
        let replica = &ring.node(*machine).replica;
        let promised = ring.world.block_on(replica.paxos_prepare(table, key, proposal.ballot)).expect("prepared");
        assert!(promised.promised, "nothing is in its way");
    }
}

/// Has a change accepted by some replicas, whose coordinator then is gone.
fn accept(ring: &SimRing, machines: &[usize], proposal: &Commit) {
    promise(ring, machines, proposal);
    for machine in machines {
        let replica = &ring.node(*machine).replica;
        assert_eq!(ring.world.block_on(replica.paxos_propose(proposal)).expect("proposed"), None);
    }
}

/// Each with partitions of its own, on one ring: making a ring takes most of the time.
#[test]
fn three_nodes_agree() {
    let ring = ring_of(3, &THREE);
    let (v1, v2) = (PaxosVariant::V1, PaxosVariant::V2);
    for (turn, variants) in [(0, [v1, v1, v1]), (1, [v2, v2, v2]), (2, [v1, v2, v2])] {
        (0..3).zip(variants).for_each(|(machine, variant)| coordinate(&ring, machine, variant));
        ring.agree();
        let k = 10 * turn;
        contended_increments_all_count_once(&ring, k + 1);
        what_a_majority_accepted_is_finished(&ring, k + 2);
        replicas_that_lack_the_latest_commit_get_it(&ring, k + 3);
        silence_is_a_timeout(&ring, k + 4);
        reads_are_of_what_was_decided(&ring, k + 5);
    }
}

/// Reads at SERIAL through every node, while statements are under way: none goes back.
fn reads_are_of_what_was_decided(ring: &SimRing, k: i32) {
    let seen = std::cell::RefCell::new(Vec::new());
    let write = async {
        for to in 1..=6 {
            let statement = statement(to as usize % 3, k);
            statement.run(ring, |_| Some(to)).await.expect("nobody else writes");
        }
    };
    let read = async {
        for number in 0..12 {
            let found = ring.search_at(number % 3, vec![ring.select_key("ks", k)], None, Consistency::Serial).await;
            let found = found.expect("read");
            seen.borrow_mut().push(found.first().map_or(0, |(_, _, value)| *value));
        }
    };
    ring.world.block_on(async { futures_util::future::join(write, read).await });
    let seen = seen.into_inner();
    assert!(seen.is_sorted(), "a read that is later sees no less: {seen:?}");
    assert!((0..3).all(|through| serial_value(ring, through, k) == Some(6)));
}

/// Of increments through all nodes at once none is lost and none counts twice.
fn contended_increments_all_count_once(ring: &SimRing, k: i32) {
    let increments = (0..12).map(|number| {
        let statement = statement(number % 3, k);
        async move { statement.run(ring, |found| Some(found.unwrap_or(0) + 1)).await }
    });
    let outcomes = ring.world.block_on(join_all(increments));
    let done = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    let unknown = outcomes.len() - done;
    let counted = serial_value(ring, 0, k).unwrap_or(0) as usize;
    assert!((done..=done + unknown).contains(&counted), "{counted} counted, {outcomes:?}");
    assert!(done >= 6, "most come through within their time: {outcomes:?}");
    let contended: u64 = (0..3).map(|machine| ring.node(machine).cas.write.contention.snapshot().count()).sum();
    assert!(contended > 0, "three coordinators get into each other's way");
}

/// A proposal that a majority has accepted is decided: whoever comes next finishes it, also where
/// its coordinator has died before telling anybody.
fn what_a_majority_accepted_is_finished(ring: &SimRing, k: i32) {
    accept(ring, &[0, 1], &proposed(ring, k, 41, 2000));
    assert_eq!(ring.stored(0, "ks", k), [], "accepted, not committed");
    assert_eq!(serial_value(ring, 2, k), Some(41));
    let seen = ring.world.block_on(async {
        let seen = std::cell::Cell::new(None);
        let see = |found| {
            seen.set(found);
            None
        };
        statement(1, k).run(ring, see).await.expect("decided");
        seen.get()
    });
    assert_eq!(seen, Some(41));
    assert_eq!((0..3).map(|machine| ring.stored(machine, "ks", k).len()).collect::<Vec<_>>(), [1, 1, 1]);
}

/// Proposals, commits and refusals are right while nodes die and come back.
#[test]
fn nodes_that_die_change_nothing() {
    for (seed, variant) in [(5, PaxosVariant::V1), (6, PaxosVariant::V2)] {
        let mut ring = ring_of(seed, &THREE);
        (0..3).for_each(|machine| coordinate(&ring, machine, variant));
        what_a_minority_accepted_is_finished_or_never(&mut ring, 1);
        (0..3).for_each(|machine| coordinate(&ring, machine, variant));
        a_replica_that_was_down_gets_what_was_decided(&mut ring, 2);
        (0..3).for_each(|machine| coordinate(&ring, machine, variant));
        too_few_replicas_refuse(&mut ring, 3);
    }
}

/// A proposal that fewer than a majority have accepted is finished, or never: a read that has not
/// shown it is a promise that it does not come back.
fn what_a_minority_accepted_is_finished_or_never(ring: &mut SimRing, k: i32) {
    let proposal = proposed(ring, k, 41, 2000);
    // nothing is proposed without a majority's promise
    promise(ring, &[1], &proposal);
    accept(ring, &[0], &proposal);
    ring.kill(0);
    ring.agree();
    assert_eq!(serial_value(ring, 1, k), None, "nobody that is up has it");
    ring.start(0);
    ring.agree();
    for through in [0, 1, 2] {
        assert_eq!(serial_value(ring, through, k), None, "through {through}");
    }
}

/// A commit that only one replica knows is told to the others before something else is decided.
fn replicas_that_lack_the_latest_commit_get_it(ring: &SimRing, k: i32) {
    let commit = proposed(ring, k, 41, 2000);
    accept(ring, &[0, 1, 2], &commit);
    ring.world.block_on(ring.node(0).replica.paxos_commit(&commit)).expect("committed");
    assert_eq!(ring.stored(1, "ks", k), []);
    // whichever majority answers first, it has an accepted proposal or the commit
    statement(1, k).set(ring, 42).expect("decided");
    assert_eq!(serial_value(ring, 2, k), Some(42));
    ring.world.run_for(Duration::from_secs(1));
    assert_eq!((0..3).map(|machine| ring.stored(machine, "ks", k)).collect::<Vec<_>>(), [[(1, 42)]; 3]);
}

/// Too few replicas: refused before anything is asked, of the serial level and of the commit level.
fn too_few_replicas_refuse(ring: &mut SimRing, k: i32) {
    ring.kill(2);
    ring.agree();
    let all = Statement { commit: Consistency::All, ..statement(0, k) };
    let refused = |required, alive, level| RequestError::Unavailable {
        level,
        shortage: ring::InsufficientReplicas { required, alive },
    };
    let is_refused = |outcome: Result<(), CasError<FailedRead<ReadError>>>, wanted: RequestError| {
        assert!(matches!(&outcome, Err(CasError::Request(error)) if *error == wanted), "{outcome:?}");
    };
    is_refused(all.set(ring, 1), refused(3, 2, Consistency::All));
    assert_eq!(serial_value(ring, 0, k), None, "nothing was proposed");
    ring.kill(1);
    ring.agree();
    let any = Statement { commit: Consistency::Any, ..statement(0, k) };
    is_refused(any.set(ring, 1), refused(2, 1, Consistency::Serial));
}

/// A replica that is down while something is decided gets a hint with it.
fn a_replica_that_was_down_gets_what_was_decided(ring: &mut SimRing, k: i32) {
    ring.kill(2);
    ring.agree();
    statement(0, k).set(ring, 5).expect("two are a majority");
    ring.start(2);
    ring.agree();
    let got_it = ring.world.run_until(Duration::from_secs(60), || ring.stored(2, "ks", k) == [(1, 5)]);
    assert!(got_it, "the hint arrives");
}

/// A coordinator has no room for what the two other replicas have decided with it: its own hint
/// brings the change once there is room.
#[test]
fn a_coordinator_that_was_too_slow_gets_what_was_decided() {
    const FULL: usize = 1 << 30;
    let ring = ring_of(12, &THREE);
    ring.node(0).engine.memory.take(FULL);
    statement(0, 1).set(&ring, 5).expect("two are a majority");
    assert_eq!(ring.stored(0, "ks", 1), []);
    ring.node(0).engine.memory.release(FULL);
    let got_it = ring.world.run_until(Duration::from_secs(60), || ring.stored(0, "ks", 1) == [(1, 5)]);
    assert!(got_it, "the hint arrives");
}

/// LOCAL_SERIAL asks the replicas of its data center alone, SERIAL those of all.
#[test]
fn local_serial_is_of_one_data_center() {
    let mut ring = SimRing::new(9, &["dc1", "dc1", "dc2", "dc2"]);
    ring.create_keyspace("ks", "NetworkTopologyStrategy", &[("dc1", "2"), ("dc2", "2")]);
    [2, 3].into_iter().for_each(|machine| ring.kill(machine));
    ring.agree();
    for (to, variant) in [(4, PaxosVariant::V1), (5, PaxosVariant::V2)] {
        coordinate(&ring, 1, variant);
        let local = Statement { serial: Consistency::LocalSerial, commit: Consistency::LocalQuorum, ..statement(1, 1) };
        local.set(&ring, to).expect("the data center has a majority");
    }
    let refused = statement(1, 1).set(&ring, 6);
    let shortage = ring::InsufficientReplicas { required: 3, alive: 2 };
    let level = Consistency::Serial;
    assert!(
        matches!(&refused, Err(CasError::Request(error)) if *error == RequestError::Unavailable { level, shortage }),
        "{refused:?}"
    );
    assert_eq!(ring.stored(0, "ks", 1), [(1, 5)]);
}

/// Where a majority does not answer in time, the statement's client is told of a timeout with write
/// type CAS; nothing was decided.
fn silence_is_a_timeout(ring: &SimRing, k: i32) {
    ring.world.network().partition(&[0]);
    let outcome = statement(0, k).set(ring, 5);
    let Err(CasError::Request(RequestError::Cas(FailedCas::TimedOut { level, kind, received, block_for, .. }))) =
        outcome
    else {
        panic!("{outcome:?}");
    };
    assert_eq!((level, kind, received, block_for), (Consistency::Serial, WriteKind::Cas, 1, 2));
    ring.world.network().heal();
    // the last of them waits until the links of the node that was cut off are open again
    for through in [1, 2, 0] {
        assert_eq!(serial_value(ring, through, k), None);
    }
}

/// One copy in a ring: whoever coordinates, its one replica decides.
#[test]
fn one_copy_is_decided_by_its_replica() {
    let ring = SimRing::new(11, &["dc1", "dc1"]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "1")]);
    for (through, to) in [(0, 1), (1, 2), (0, 3), (1, 4)] {
        if to == 3 {
            (0..2).for_each(|machine| coordinate(&ring, machine, PaxosVariant::V2));
        }
        let one = Statement { commit: Consistency::One, ..statement(through, 1) };
        one.set(&ring, to).expect("decided");
        assert_eq!(serial_value(&ring, 1 - through, 1), Some(to));
    }
    let copies = (0..2).filter(|machine| ring.stored(*machine, "ks", 1) == [(1, 4)]).count();
    assert_eq!(copies, 1);
}

/// Sets the note (k, 1) through the first node of a ring.
fn insert_note(ring: &SimRing, k: i32, bytes: usize) -> Result<(), CasError<()>> {
    set_note(ring, k, 7, bytes)
}

/// As [`insert_note`], with a value by which views are ordered.
fn set_note(ring: &SimRing, k: i32, v: i32, bytes: usize) -> Result<(), CasError<()>> {
    let row = SystemRow::new(&notes(), &[&k.to_be_bytes()], &[&1_i32.to_be_bytes()], 1, None);
    write_through(ring, &row.set("v", v.to_be_bytes().to_vec()).set("b", vec![b'x'; bytes]).finish())
}

/// A conditional write of one table through the first node of a ring.
fn write_through(ring: &SimRing, write: &Mutation) -> Result<(), CasError<()>> {
    let update = &write.updates[0];
    let (serial, commit) = (Consistency::Serial, Consistency::Quorum);
    let cas = Cas { table: &update.table, key: &update.key, serial, commit, trace: None };
    let command = read_of(update);
    let decide = async |_| Ok::<_, ()>(Some(write.clone()));
    ring.world.block_on(ring.node(0).compare_and_set(cas, &command, decide))
}

/// A change whose record, base and changes of views are together more than the commit log takes is
/// committed all the same; one that could not be committed is refused, and leaves nothing that the
/// next statement would have to complete.
#[test]
fn a_change_that_is_large_with_its_views_is_committed() {
    // a mutation has 64 KiB at most, a group 128 KiB
    let ring = SimRing::with_segments(14, &THREE, 128 << 10);
    create_on(&ring, &keyspace_of_notes("3", &["one", "two"]));
    insert_note(&ring, 1, 40 << 10).expect("committed");
    ring.world.run_for(Duration::from_secs(5));
    for machine in 0..3 {
        let counts = ["notes", "one", "two"].map(|name| ring.count(machine, "ks", name));
        assert_eq!(counts, [1, 1, 1], "machine {machine}");
    }
    // less than a mutation may have, and more with what stands beside it in system.paxos
    assert!(insert_note(&ring, 2, (64 << 10) - 100).is_err(), "nobody could record it");
    insert_note(&ring, 2, 10).expect("nothing is in its way");
    insert_note(&ring, 1, 10).expect("nothing is in its way");
    // less than a mutation may have, and more than a group may with the entries of both views
    assert!(insert_note(&ring, 3, 50 << 10).is_err(), "nobody could apply it as one step");
    insert_note(&ring, 3, 10).expect("nothing is in its way");
}

/// A view that does not show a large column takes no room for it in the group of the commit.
#[test]
fn a_change_is_committed_that_is_large_in_one_of_two_views() {
    // a mutation has 64 KiB at most, a group 128 KiB
    let ring = SimRing::with_segments(17, &THREE, 128 << 10);
    let base = notes();
    let wide = view_by_v(&base, "wide", TableId([40; 16]), &[("b", CqlType::Blob)]);
    let narrow = view_by_v(&base, "narrow", TableId([41; 16]), &[]);
    create_on(&ring, &keyspace_of("3", vec![base, wide, narrow]));
    insert_note(&ring, 1, 50 << 10).expect("committed");
    ring.world.run_for(Duration::from_secs(5));
    for machine in 0..3 {
        let counts = ["notes", "wide", "narrow"].map(|name| ring.count(machine, "ks", name));
        assert_eq!(counts, [1, 1, 1], "machine {machine}");
    }
}

/// A row that is moved in a view has two entries there: the values of the one that ends are left
/// out where all is too large, because nobody reads them.
#[test]
fn a_large_row_that_is_moved_in_a_view_is_committed() {
    // a mutation has 64 KiB at most, a group 128 KiB
    let ring = SimRing::with_segments(16, &THREE, 128 << 10);
    create_on(&ring, &keyspace_of_notes("3", &["one"]));
    set_note(&ring, 1, 7, 10).expect("committed");
    set_note(&ring, 1, 8, 45 << 10).expect("committed");
    set_note(&ring, 1, 9, 10).expect("nothing is in its way");
    ring.world.run_for(Duration::from_secs(5));
    for machine in 0..3 {
        assert_eq!(["notes", "one"].map(|name| ring.count(machine, "ks", name)), [1, 1], "machine {machine}");
    }
}

/// Rows of the partition 1 of `notes`.
const NOTES: i32 = 9000;

/// A ring whose nodes all have rows of the partition 1 of `notes`, and their entries in a view. The
/// deletion of the partition changes more of the view than the commit log takes.
fn ring_of_many_notes(seed: u64) -> SimRing {
    let ring = SimRing::with_segments(seed, &THREE, 128 << 10);
    create_on(&ring, &keyspace_of_notes("3", &["shown"]));
    let note = |c: i32| {
        let row = SystemRow::new(&notes(), &[&1_i32.to_be_bytes()], &[&c.to_be_bytes()], 10, None);
        row.set("v", 7_i32.to_be_bytes().to_vec()).finish()
    };
    let rows: Vec<Mutation> = (0..NOTES).map(note).collect();
    for machine in 0..3 {
        for some in rows.chunks(200) {
            ring.world.block_on(ring.node(machine).replica.apply(some, StripeGuards::new())).expect("applied");
        }
        assert_eq!(notes_on(&ring, machine), [NOTES as usize; 2]);
    }
    ring
}

/// Live rows of `notes` and of its view on a machine.
fn notes_on(ring: &SimRing, machine: usize) -> [usize; 2] {
    ["notes", "shown"].map(|name| ring.count(machine, "ks", name))
}

/// The deletion of the partition 1 of `notes`.
fn deletion_of_notes(ring: &SimRing) -> PartitionUpdate {
    let clock = &ring.node(0).env.clock;
    let mut deletion = PartitionUpdate::new(notes(), partition_key(&notes(), &[&1_i32.to_be_bytes()]));
    deletion.deletion = DeletionTime::new(clock.now_micros(), clock.now_seconds());
    deletion
}

/// A replica that was down when a change was decided takes the change by its hint, in parts as the
/// others did.
#[test]
fn a_change_that_is_applied_in_parts_comes_by_a_hint() {
    let mut ring = ring_of_many_notes(15);
    ring.kill(2);
    ring.agree();
    write_through(&ring, &Mutation::of(deletion_of_notes(&ring))).expect("committed");
    assert_eq!([notes_on(&ring, 0), notes_on(&ring, 1)], [[0; 2]; 2]);
    ring.start(2);
    show_everything(&ring.node(2).engine);
    let has_come = (0..300).any(|_| {
        ring.world.run_for(Duration::from_secs(1));
        notes_on(&ring, 2) == [0; 2]
    });
    assert!(has_come);
}

/// A replica without a hint takes the change by the repair of a read, which does not fail.
#[test]
fn a_change_that_is_applied_in_parts_comes_by_a_read() {
    let ring = ring_of_many_notes(16);
    let update = deletion_of_notes(&ring);
    let ballot = Ballot::new(update.max_timestamp(), BallotFlag::Global, 7);
    let commit = Commit { ballot, update };
    for machine in 0..2 {
        ring.world.block_on(ring.node(machine).replica.paxos_commit(&commit)).expect("committed");
    }
    assert_eq!(notes_on(&ring, 2), [NOTES as usize; 2]);
    let read = ring.read(0, vec![read_of(&commit.update)], Consistency::All).expect("repaired");
    assert_eq!(read, []);
    assert_eq!(notes_on(&ring, 2), [0; 2]);
}
