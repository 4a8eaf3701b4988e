//! Paxos asked by another node: rounds of v1 and v2 on one state, and what is refused.

use std::sync::Arc;
use std::time::Duration;

use internode::payload::paxos::cleanup::{Cleanup, CleanupHistory, Complete, History, StartPrepare, Tokens};
use internode::payload::paxos::{
    Ballot, BallotFlag, Electorate, Permission, PrepareAnswer, PrepareV2Answer, RepairAnswer, decode_accepted,
    decode_superseded,
};
use internode::payload::read_request::ReadRequest;
use internode::payload::read_response::{ReadResponse, data_stream};
use membership::{Request, RequestFailure};
use rows::{PartitionStream, PartitionUpdate, ReadCommand};
use types::Token;

use super::*;
use crate::replica::paxos::uncommitted_bounds;
use crate::testing::SimRing;

const LIFE: Duration = Duration::from_secs(5);

/// A ring, a coordinator that is the first node, and a replica that is the second.
struct Lab {
    ring: SimRing,
    table: Arc<TableMetadata>,
    /// The time of the first ballot, microseconds since 1970.
    begun: i64,
}

impl Lab {
    fn new(copies: &str) -> Self {
        let ring = SimRing::new(7, &["dc1", "dc1", "dc1"]);
        ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", copies)]);
        let table = Arc::clone(ring.node(0).schema().table("ks", "t").expect("created"));
        let begun = ring.world.env(0).clock.now_micros();
        Self { ring, table, begun }
    }

    fn ask(&self, verb: Verb, payload: Vec<u8>) -> Result<Bytes, RequestFailure> {
        let messenger = self.ring.node(0).messenger().expect("it has joined").clone();
        let pending = messenger.request(self.ring.address(1), Request::new(verb, payload, LIFE));
        self.ring.world.block_on(pending).map(|envelope| envelope.payload)
    }

    fn told(&self, verb: Verb, payload: Vec<u8>) -> Bytes {
        self.ask(verb, payload).expect("answered")
    }

    /// A ballot that is so many microseconds later than the first one.
    fn ballot(&self, later: i64) -> Ballot {
        Ballot::new(self.begun + later, BallotFlag::Global, 1)
    }

    fn write(&self, ballot: Ballot, value: i32) -> Commit {
        Commit { ballot, update: self.ring.row("ks", 1, 1, value, ballot.micros()).updates.remove(0) }
    }

    fn empty(&self, ballot: Ballot) -> Commit {
        Commit::empty(ballot, Arc::clone(&self.table), self.write(ballot, 0).update.key)
    }

    fn tables(&self) -> impl Fn(TableId) -> Option<Arc<TableMetadata>> {
        let table = Arc::clone(&self.table);
        move |id| (id == table.id).then(|| Arc::clone(&table))
    }

    fn electorate(&self) -> Electorate {
        let natural = (0..3).map(|machine| self.ring.address(machine)).collect();
        Electorate { natural, pending: Vec::new() }
    }

    fn prepare(&self, ballot: Ballot, is_for_write: bool) -> PrepareV2 {
        let read = ReadRequest::of(&ReadCommand { columns: rows::ColumnFilter::All, ..self.ring.select_key("ks", 1) });
        PrepareV2 { ballot, electorate: self.electorate(), is_for_write, prepared: Prepared::Read(Box::new(read)) }
    }

    fn prepared(&self, prepare: &PrepareV2) -> PrepareV2Answer {
        let payload = self.told(Verb::Paxos2PrepareReq, prepare.encode());
        PrepareV2Answer::decode(&payload, &self.tables()).expect("an answer")
    }

    fn permitted(&self, prepare: &PrepareV2) -> Permission {
        match self.prepared(prepare) {
            PrepareV2Answer::Permitted(permission) => *permission,
            PrepareV2Answer::Rejected { superseded_by } => panic!("{} is rejected for {superseded_by}", prepare.ballot),
        }
    }

    /// How many rows the read within a promise found.
    fn rows(&self, prepare: &PrepareV2, permission: &Permission) -> usize {
        let Prepared::Read(request) = &prepare.prepared else { panic!("it reads") };
        let Some(ReadResponse::Data(data)) = &permission.read else { panic!("it was asked for data") };
        let mut stream = data_stream(data.partitions.clone(), request);
        let mut rows = 0;
        while stream.next_partition().expect("readable").is_some() {
            while stream.next_unfiltered().expect("readable").is_some() {
                rows += 1;
            }
        }
        rows
    }
}

#[test]
fn a_round_of_v1() {
    let lab = Lab::new("3");
    let (first, later) = (lab.ballot(0), lab.ballot(10));
    let prepare = |ballot| {
        let payload = lab.told(Verb::PaxosPrepareReq, lab.empty(ballot).encode());
        PrepareAnswer::decode(&payload, &lab.tables()).expect("an answer")
    };
    assert!(prepare(first).promised);
    let refused = prepare(first);
    assert!(!refused.promised, "a ballot is promised once");
    assert_eq!(refused.in_progress, lab.empty(first));
    let write = lab.write(first, 5);
    let accepted = |commit: &Commit| decode_accepted(&lab.told(Verb::PaxosProposeReq, commit.encode()));
    assert_eq!(accepted(&write), Ok(true));
    let seen = prepare(later);
    assert!(seen.promised);
    assert_eq!(seen.in_progress, write, "the next coordinator completes it");
    assert_eq!(accepted(&write), Ok(false));
    let again = Commit { ballot: later, ..write };
    assert_eq!(accepted(&again), Ok(true));
    assert_eq!(lab.told(Verb::PaxosCommitReq, again.encode()), Bytes::new());
    assert_eq!(lab.ring.stored(1, "ks", 1), [(1, 5)]);
    let seen = prepare(lab.ballot(20));
    assert_eq!((seen.in_progress.ballot, seen.most_recent), (Ballot::NONE, again));
}

#[test]
fn a_round_of_v2_with_its_reads() {
    let lab = Lab::new("3");
    let (first, read, late) = (lab.prepare(lab.ballot(10), true), lab.prepare(lab.ballot(30), false), lab.ballot(20));
    let permission = lab.permitted(&first);
    assert!(permission.is_stable && permission.superseded_by.is_none() && permission.endpoints.is_empty());
    assert_eq!(permission.low_bound, Ballot::NONE.ticks().cast_unsigned());
    assert_eq!(lab.rows(&first, &permission), 0);
    // a promise to a write that nobody has used yet may become a proposal
    let permission = lab.permitted(&read);
    assert!(!permission.is_stable && permission.superseded_by.is_none());
    // later than every write, earlier than a read: its own read is up to date, it may not propose
    let permission = lab.permitted(&lab.prepare(late, false));
    assert_eq!(permission.superseded_by, Some(read.ballot));
    let rejected = PrepareV2Answer::Rejected { superseded_by: read.ballot };
    assert_eq!(lab.prepared(&lab.prepare(lab.ballot(5), true)), rejected);

    let write = lab.write(first.ballot, 5);
    let superseded = |commit: &Commit| decode_superseded(&lab.told(Verb::Paxos2ProposeReq, commit.encode()));
    assert_eq!(superseded(&write), Ok(Some(read.ballot)));
    let write = lab.write(read.ballot, 6);
    assert_eq!(superseded(&write), Ok(None));
    let both = CommitAndPrepare { commit: write.clone(), prepare: lab.prepare(lab.ballot(40), true) };
    let payload = lab.told(Verb::Paxos2CommitAndPrepareReq, both.encode());
    let answer = PrepareV2Answer::decode(&payload, &lab.tables()).expect("an answer");
    let PrepareV2Answer::Permitted(permission) = answer else { panic!("it is the latest") };
    assert!(permission.is_stable, "what was promised is committed");
    assert_eq!((permission.accepted.clone(), permission.committed.clone()), (None, write));
    assert_eq!(lab.rows(&both.prepare, &permission), 1);
}

#[test]
fn refreshes_and_the_state_for_a_repair() {
    let lab = Lab::new("3");
    let promised = lab.prepare(lab.ballot(10), true);
    lab.permitted(&promised);
    let refresh = |missing: Commit| {
        let refresh = Refresh { promised: promised.ballot, missing };
        decode_superseded(&lab.told(Verb::Paxos2PrepareRefreshReq, refresh.encode())).expect("an answer")
    };
    assert_eq!(refresh(lab.write(lab.ballot(0), 1)), None);
    assert_eq!(lab.ring.stored(1, "ks", 1), [(1, 1)]);
    let later = lab.write(lab.ballot(20), 2);
    assert_eq!(refresh(later.clone()), Some(later.ballot));
    let of_nothing = lab.empty(lab.ballot(30));
    assert_eq!(decode_superseded(&lab.told(Verb::Paxos2ProposeReq, of_nothing.encode())), Ok(None));
    let request = RepairRequest { table: Arc::clone(&lab.table), key: later.update.key.clone() };
    let payload = lab.told(Verb::Paxos2RepairReq, request.encode());
    let state = RepairAnswer::decode(&payload, &lab.tables()).expect("an answer");
    let latest_witnessed = of_nothing.ballot;
    assert_eq!(state, RepairAnswer { latest_witnessed, accepted: Some(of_nothing), committed: later });
}

#[test]
fn another_electorate_is_answered_with_what_gossip_tells() {
    let lab = Lab::new("3");
    let mut prepare = lab.prepare(lab.ballot(0), true);
    let stranger = "127.9.9.9:7000".parse().expect("an address");
    prepare.electorate.pending.push(stranger);
    let permission = lab.permitted(&prepare);
    let told: Vec<_> = permission.endpoints.iter().map(|(address, state)| (*address, state.is_some())).collect();
    let mut expected: Vec<_> = (0..3).map(|machine| (lab.ring.address(machine), true)).collect();
    expected.push((stranger, false));
    expected.sort_unstable();
    assert_eq!(told, expected);
}

/// Partitions of other nodes, tables that nobody knows, and what a node keeps about itself.
#[test]
fn what_is_not_here_is_refused() {
    let lab = Lab::new("1");
    let failed = |answer: Result<Bytes, RequestFailure>| match answer {
        Err(RequestFailure::Failed(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let commits = (0..20).map(|k| {
        let mut commit = lab.write(lab.ballot(0), k);
        commit.update = lab.ring.row("ks", k, 1, k, 1).updates.remove(0);
        (commit.update.key.clone(), lab.ask(Verb::PaxosCommitReq, commit.encode()))
    });
    let mut refused = 0;
    for (key, answer) in commits {
        let natural = lab.ring.node(1).electorate(&lab.table, &key, BallotFlag::Global).expect("placed").natural;
        let is_here = natural == [lab.ring.address(1)];
        assert_eq!(answer.is_ok(), is_here);
        if !is_here {
            assert_eq!(failed(answer), FailureReason::Unknown);
            refused += 1;
        }
    }
    assert!((1..20).contains(&refused), "{refused} of 20 are of other nodes");
    let mut unknown = lab.write(lab.ballot(0), 1).encode();
    unknown[16] ^= 1;
    assert_eq!(failed(lab.ask(Verb::PaxosProposeReq, unknown)), FailureReason::IncompatibleSchema);
    let schema = lab.ring.node(0).schema();
    let local = schema.table("system", "local").expect("built in");
    let update = PartitionUpdate::new(Arc::clone(local), local.decorate(Bytes::from_static(b"local")));
    let of_a_node = Commit { ballot: lab.ballot(0), update }.encode();
    assert_eq!(failed(lab.ask(Verb::PaxosPrepareReq, of_a_node)), FailureReason::IncompatibleSchema);
}

/// From the first step of a repair to the last: ballots from before it are refused, also after a
/// power cut, and promises tell what it has completed.
#[test]
fn a_repair_leaves_its_bounds() {
    let mut lab = Lab::new("3");
    let state = lab.ring.node(0).messenger().expect("joined").with_gossip(|gossip| gossip.local.state().clone());
    let key = lab.write(lab.ballot(0), 1).update.key;
    let ranges = vec![Tokens { start: Token(key.token.0 - 1), end: key.token }];
    let far = lab.prepare(lab.ballot(3_600_000_000), true);
    lab.permitted(&far);
    let start = StartPrepare { table: lab.table.id, state, ranges: ranges.clone() };
    let start = lab.told(Verb::Paxos2CleanupStartPrepareReq, start.encode().expect("it fits"));
    let told = CleanupHistory::decode(&start).expect("an answer");
    assert!(told.high_bound.is_after(&far.ballot), "a ballot in the future counts");
    assert_eq!(told.history, History { entries: vec![], last: Ballot::NONE });

    assert_eq!(lab.told(Verb::Paxos2CleanupFinishPrepareReq, told.encode()), Bytes::new());
    let early = Ballot::new(told.high_bound.micros() - 1, BallotFlag::Global, 1);
    let rejected = PrepareV2Answer::Rejected { superseded_by: told.high_bound };
    assert_eq!(lab.prepared(&lab.prepare(early, false)), rejected);
    let proposal = lab.write(early, 1).encode();
    assert_eq!(decode_superseded(&lab.told(Verb::Paxos2ProposeReq, proposal)), Ok(Some(told.high_bound)));
    let complete = Complete { table: lab.table.id, low_bound: told.high_bound, ranges: ranges.clone() };
    assert_eq!(lab.told(Verb::Paxos2CleanupCompleteReq, complete.encode()), Bytes::new());

    lab.ring.power_cut(1);
    lab.ring.start(1);
    lab.ring.agree();
    assert_eq!(lab.prepared(&lab.prepare(early, false)), rejected);
    let later = Ballot::new(told.high_bound.micros() + 1, BallotFlag::Global, 1);
    let permission = lab.permitted(&lab.prepare(later, true));
    assert_eq!(permission.low_bound, told.high_bound.ticks().cast_unsigned());
    let replica = &lab.ring.node(1).replica;
    let history = replica.paxos_history(&lab.table, &ranges);
    let expected = vec![(ranges[0].start, Ballot::NONE), (ranges[0].end, told.high_bound)];
    assert_eq!(history, History { entries: expected, last: Ballot::NONE });
    assert_eq!(replica.paxos_bound_of(&lab.table, ranges[0].start), Ballot::NONE);
}

/// A proposal that its coordinator has left is committed everywhere by the replica that is asked.
#[test]
fn a_cleanup_completes_what_was_left() {
    let lab = Lab::new("3");
    let write = lab.write(lab.ballot(0), 7);
    lab.told(Verb::PaxosPrepareReq, lab.empty(write.ballot).encode());
    assert_eq!(decode_accepted(&lab.told(Verb::PaxosProposeReq, write.encode())), Ok(true));
    let of_all = vec![Tokens { start: Token::MIN, end: Token::MIN }];
    let cleanup = Cleanup { session: [1; 16], table: lab.table.id, ranges: of_all.clone() };
    assert_eq!(lab.told(Verb::Paxos2CleanupReq, cleanup.encode()), Bytes::new());
    let is_committed = || (0..3).all(|machine| lab.ring.stored(machine, "ks", 1) == [(1, 7)]);
    assert!(lab.ring.world.run_until(Duration::from_secs(30), is_committed), "all replicas have it");
    let (start, end) = uncommitted_bounds(&of_all[0]).remove(0);
    let is_clean = || {
        let page = lab.ring.node(1).replica.paxos_uncommitted(&lab.table, start.clone(), end.clone());
        lab.ring.world.block_on(page).expect("readable").found.is_empty()
    };
    for _ in 0..30 {
        if is_clean() {
            return;
        }
        lab.ring.world.run_until(Duration::from_secs(1), || false);
    }
    panic!("nothing is left to be completed");
}
