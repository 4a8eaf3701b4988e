//! The acceptor against a naive twin over drawn requests, across flushes and power cuts; and what
//! `system.paxos` holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use internode::payload::paxos::cleanup::Tokens;
use internode::payload::paxos::{Ballot, BallotFlag, Commit};
use rows::PartitionUpdate;
use types::Token;

use super::{Uncommitted, uncommitted_bounds};
use crate::paxos::{PaxosOptions, PaxosPurging};
use crate::system_rows;
use crate::testing::SimRing;

/// Numbers of a linear congruence: what a seed draws.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// The knowledge of an acceptor about one key, in the words of the rules: times and bytes, no
/// updates.
#[derive(Clone, Default)]
struct Twin {
    promised: Option<Ballot>,
    /// A ballot and the value that it would write.
    accepted: Option<(Ballot, i32)>,
    committed: Option<(Ballot, i32)>,
}

impl Twin {
    /// Whether something of this ballot's time or later was promised, accepted or committed.
    fn has_seen(&self, ballot: &Ballot) -> bool {
        let seen = [self.promised, self.accepted.map(|(ballot, _)| ballot), self.committed.map(|(ballot, _)| ballot)];
        seen.into_iter().flatten().any(|seen| !ballot.is_after(&seen))
    }

    fn prepare(&mut self, ballot: Ballot) -> bool {
        let promises = !self.has_seen(&ballot);
        if promises {
            self.promised = Some(ballot);
        }
        promises
    }

    fn propose(&mut self, ballot: Ballot, value: i32) -> bool {
        let known = [self.promised, self.accepted.map(|(ballot, _)| ballot), self.committed.map(|(ballot, _)| ballot)];
        let latest = known.into_iter().flatten().map(|known| known.ticks()).max();
        let is_latest = latest.is_none_or(|latest| {
            ballot.ticks() > latest
                || known.into_iter().flatten().any(|known| known == ballot && known.ticks() == latest)
        });
        if is_latest && self.committed.is_none_or(|(committed, _)| committed != ballot) {
            self.accepted = Some((ballot, value));
        }
        is_latest
    }

    fn commit(&mut self, ballot: Ballot, value: i32) {
        if self.committed.is_none_or(|(committed, _)| ballot.is_after(&committed)) {
            self.committed = Some((ballot, value));
        }
        if self.accepted.is_some_and(|(accepted, _)| !accepted.is_after(&ballot)) {
            self.accepted = None;
        }
    }
}

/// The update that writes a value to the row (k, 1) at the time of a ballot.
fn update(ring: &SimRing, k: i32, ballot: Ballot, value: i32) -> PartitionUpdate {
    ring.row("ks", k, 1, value, ballot.micros()).updates.remove(0)
}

fn value_of(commit: &Commit) -> Option<i32> {
    let cell = match commit.update.rows.first()?.columns.first()? {
        rows::ColumnData::Simple(cell) => cell.value.clone(),
        rows::ColumnData::Complex(_) => return None,
    };
    Some(i32::from_be_bytes(cell[..].try_into().ok()?))
}

fn ring(seed: u64) -> SimRing {
    let ring = SimRing::new(seed, &["dc1", "dc1"]);
    ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
    ring
}

/// A ballot about now: drawn times are few, so that some are the same.
fn drawn(ring: &SimRing, draw: &mut Draw, step: u64) -> Ballot {
    let now = ring.world.env(0).clock.now_micros();
    let flag = if draw.below(4) == 0 { BallotFlag::Local } else { BallotFlag::Global };
    let back = draw.below(6);
    // one of a time has one number, as among coordinators that draw 64 bits
    let micros = now - now % 1_000_000 + i64::try_from(step.saturating_sub(back)).expect("small");
    Ballot::new(micros, flag, draw.below(2))
}

#[test]
fn drawn_requests_are_answered_as_by_a_naive_twin() {
    for seed in 1..=2 {
        let mut ring = ring(seed);
        let mut draw = Draw(seed);
        let mut twins: BTreeMap<i32, Twin> = BTreeMap::new();
        let mut refused = 0;
        for step in 0..120 {
            let k = i32::try_from(draw.below(3)).expect("small");
            let twin = twins.entry(k).or_default();
            let known = [twin.promised, twin.accepted.map(|(ballot, _)| ballot)];
            // half of the proposals and commits are those of a coordinator that goes by the rules
            let ballot = match known[draw.below(2) as usize] {
                Some(ballot) if draw.below(2) == 0 => ballot,
                _ => drawn(&ring, &mut draw, step),
            };
            let value = i32::from(ballot.bytes()[3]) * 8 + i32::from(ballot.bytes()[15]);
            let commit = Commit { ballot, update: update(&ring, k, ballot, value) };
            let node = Arc::clone(ring.node(0));
            let what = format!("seed {seed}, step {step}, key {k}, ballot {ballot}");
            match draw.below(8) {
                0..=2 => {
                    let before = twin.clone();
                    let (table, key) = (&commit.update.table, &commit.update.key);
                    let answer = ring.world.block_on(node.replica.paxos_prepare(table, key, ballot)).expect("answered");
                    assert_eq!(answer.promised, twin.prepare(ballot), "{what}");
                    let committed = before.committed.map(|(ballot, value)| (ballot, Some(value)));
                    let most_recent = (answer.most_recent.ballot, value_of(&answer.most_recent));
                    assert_eq!(most_recent, committed.unwrap_or((Ballot::NONE, None)), "{what}");
                    if answer.promised {
                        let accepted = before.accepted.map(|(ballot, value)| (ballot, Some(value)));
                        let in_progress = (answer.in_progress.ballot, value_of(&answer.in_progress));
                        assert_eq!(in_progress, accepted.unwrap_or((Ballot::NONE, None)), "{what}");
                    } else {
                        assert!(!ballot.is_after(&answer.in_progress.ballot), "{what}: it is told what is later");
                        refused += 1;
                    }
                }
                3..=5 => {
                    let superseded = ring.world.block_on(node.replica.paxos_propose(&commit)).expect("answered");
                    assert_eq!(superseded.is_none(), twin.propose(ballot, value), "{what}");
                }
                6 => {
                    ring.world.block_on(node.replica.paxos_commit(&commit)).expect("answered");
                    twin.commit(ballot, value);
                }
                _ if draw.below(6) == 0 => {
                    drop(node);
                    ring.power_cut(0);
                    ring.start(0);
                }
                _ => {
                    let schema = node.schema();
                    let paxos = schema.table("system", "paxos").expect("built in");
                    let store = node.engine.table(paxos.id).expect("open");
                    ring.world.block_on(node.engine.flush(&store)).expect("flushed");
                }
            }
        }
        assert!(refused > 5, "seed {seed}: {refused} prepares were refused");
        for (k, twin) in twins {
            // commits that come late do not overwrite the cells of later ones
            let expected: Vec<_> = twin.committed.into_iter().map(|(_, value)| (1, value)).collect();
            assert_eq!(ring.stored(0, "ks", k), expected, "seed {seed}, key {k}");
        }
    }
}

#[test]
fn what_is_accepted_expires_by_the_ballot_of_whoever_asks() {
    let ring = ring(1);
    let node = ring.node(0);
    let now = ring.world.env(0).clock.now_micros();
    let (first, grace) = (Ballot::new(now, BallotFlag::Global, 1), 864_000_000_000);
    let commit = Commit { ballot: first, update: update(&ring, 1, first, 7) };
    ring.world.block_on(node.replica.paxos_commit(&commit)).expect("answered");
    let prepared = |micros: i64| {
        let (table, key) = (&commit.update.table, &commit.update.key);
        let ballot = Ballot::new(micros, BallotFlag::Global, 1);
        ring.world.block_on(node.replica.paxos_prepare(table, key, ballot)).expect("answered")
    };
    let known = prepared(now + grace - 1_000_000);
    assert!(known.promised);
    assert_eq!(value_of(&known.most_recent), Some(7));
    let forgotten = prepared(now + grace + 1_000_000);
    assert!(forgotten.promised);
    assert_eq!(forgotten.most_recent.ballot, Ballot::NONE);
}

#[test]
fn a_commit_from_before_a_truncation_brings_nothing_back() {
    let ring = ring(1);
    let node = ring.node(0);
    let now = ring.world.env(0).clock.now_micros();
    let before = Ballot::new(now - 5_000_000, BallotFlag::Global, 1);
    let table = update(&ring, 1, before, 7).table;
    let store = node.engine.table(table.id).expect("open");
    ring.world.block_on(storage::truncate::truncate(&node.engine, &store)).expect("truncated");
    let commit = |ballot| Commit { ballot, update: update(&ring, 1, ballot, 7) };
    ring.world.block_on(node.replica.paxos_commit(&commit(before))).expect("answered");
    assert_eq!(ring.stored(0, "ks", 1), []);
    let after = Ballot::new(now + 60_000_000, BallotFlag::Global, 1);
    ring.world.block_on(node.replica.paxos_commit(&commit(after))).expect("answered");
    assert_eq!(ring.stored(0, "ks", 1), [(1, 7)]);
}

/// The cells are those that Cassandra writes: time of the ballot, TTL, tombstones of the proposal.
#[test]
fn rows_of_system_paxos() {
    let ring = ring(1);
    let node = ring.node(0);
    let now = ring.world.env(0).clock.now_micros();
    let ballot = Ballot::new(now, BallotFlag::Global, 1);
    let commit = Commit { ballot, update: update(&ring, 1, ballot, 7) };
    let paxos = Arc::clone(node.schema().table("system", "paxos").expect("built in"));
    let columns = || {
        let key = paxos.decorate(commit.update.key.key.clone());
        let rows = system_rows::read(&node.engine, &paxos, Some(key)).expect("readable");
        let [(_, row)] = &rows[..] else { panic!("one row") };
        assert!(row.liveness.is_empty(), "as UPDATE writes");
        assert_eq!(row.clustering.iter().flatten().next().expect("cf_id")[..], commit.update.table.id.0[..]);
        let cells = row.columns.iter().map(|data| match data {
            rows::ColumnData::Simple(cell) => cell,
            rows::ColumnData::Complex(_) => panic!("no collections"),
        });
        let name = |id| paxos.regulars.iter().find(|column| column.id == id).expect("known").name.clone();
        cells.map(|cell| (name(cell.column), cell.timestamp == now, cell.ttl)).collect::<Vec<_>>()
    };
    let row = |names: &[&str]| names.iter().map(|name| ((*name).to_owned(), true, 864_000)).collect::<Vec<_>>();
    let (table, key) = (&commit.update.table, &commit.update.key);
    ring.world.block_on(node.replica.paxos_prepare(table, key, ballot)).expect("answered");
    assert_eq!(columns(), row(&["in_progress_ballot"]));
    assert_eq!(ring.world.block_on(node.replica.paxos_propose(&commit)).expect("answered"), None);
    let accepted = ["in_progress_ballot", "proposal", "proposal_ballot", "proposal_version"];
    assert_eq!(columns(), row(&accepted));
    ring.world.block_on(node.replica.paxos_commit(&commit)).expect("answered");
    let committed = ["in_progress_ballot", "most_recent_commit", "most_recent_commit_at", "most_recent_commit_version"];
    assert_eq!(columns(), row(&committed));

    let mut endless = schema::TableMetadata::clone(table);
    endless.params.gc_grace_seconds = i32::MAX;
    let later = Ballot::new(now + 1_000_000, BallotFlag::Global, 1);
    ring.world.block_on(node.replica.paxos_prepare(&Arc::new(endless), key, later)).expect("answered");
    let promise = columns().into_iter().find(|(name, ..)| name == "in_progress_ballot");
    assert_eq!(promise.map(|(.., ttl)| ttl), Some(630_720_000), "no TTL is greater in CQL");
}

/// Without a TTL states are forgotten by their age or by a repair, and compactions remove them;
/// with `legacy` they stay until their cells expire.
#[test]
fn states_without_a_ttl_are_purged() {
    const DAY: i64 = 86_400_000_000;
    let grace = std::time::Duration::from_secs(60);
    // the stored states that are left of three, and which of them count, by their keys
    let left = |purging: PaxosPurging, repaired: bool| {
        let ring = ring(1);
        let (node, now) = (ring.node(0), ring.world.env(0).clock.now_micros());
        node.set_paxos(PaxosOptions { purging, ..PaxosOptions::default() });
        let paxos = Arc::clone(node.schema().table("system", "paxos").expect("built in"));
        let mut counted = Vec::new();
        let ages = [(1, 11 * DAY), (2, 3_000_000), (3, 0)];
        for (k, age) in ages {
            let ballot = Ballot::new(now - age, BallotFlag::Global, 1);
            let commit = Commit { ballot, update: update(&ring, k, ballot, 7) };
            ring.world.block_on(node.replica.paxos_commit(&commit)).expect("answered");
        }
        let sample = update(&ring, 1, Ballot::NONE, 7);
        if repaired {
            let all = [Tokens { start: Token::MIN, end: Token::MIN }];
            let bound = Ballot::new(now + 59_000_000, BallotFlag::Global, 1);
            let completed = node.replica.paxos_repair_completed(&sample.table, &all, bound);
            ring.world.block_on(completed).expect("stored");
        }
        for (k, _) in ages {
            let key = update(&ring, k, Ballot::NONE, 7).key;
            let ballot = Ballot::new(now + 1_000_000, BallotFlag::Global, 1);
            let state = node.replica.paxos_state(&sample.table, &key, ballot);
            if ring.world.block_on(state).expect("read").committed.ballot != Ballot::NONE {
                counted.push(k);
            }
        }
        let store = node.engine.table(paxos.id).expect("open");
        ring.world.block_on(node.engine.flush(&store)).expect("flushed");
        ring.world.block_on(node.engine.compact(&store)).expect("compacted");
        (system_rows::read(&node.engine, &paxos, None).expect("readable").len(), counted)
    };
    assert_eq!(left(PaxosPurging::Legacy, true), (3, vec![2, 3]));
    assert_eq!(left(PaxosPurging::GcGrace, true), (2, vec![2, 3]));
    assert_eq!(left(PaxosPurging::Repaired { grace }, false), (3, vec![1, 2, 3]));
    assert_eq!(left(PaxosPurging::Repaired { grace }, true), (1, vec![3]));
}

/// A promise or an accepted proposal has to be completed, a commit or an empty change has not;
/// in pages, and by ranges that go over the end of the ring.
#[test]
fn what_is_not_completed_is_found_in_pages() {
    let ring = ring(1);
    let node = ring.node(0);
    let now = ring.world.env(0).clock.now_micros();
    let ballot = |later: i64| Ballot::new(now + later, BallotFlag::Global, 1);
    let mut expected = Vec::new();
    for k in 0..16 {
        let (first, second) = (ballot(10), ballot(20));
        let commit = Commit { ballot: first, update: update(&ring, k, first, 1) };
        let (table, key) = (&commit.update.table, &commit.update.key);
        let replica = &node.replica;
        let done = ring.world.block_on(async {
            replica.paxos_prepare(table, key, first).await?;
            match k % 4 {
                0 => return Ok::<_, crate::WriteError>(Some(first)),
                1 => {
                    replica.paxos_propose(&commit).await?;
                    return Ok(Some(first));
                }
                2 => {
                    let nothing = Commit::empty(first, Arc::clone(table), key.clone());
                    replica.paxos_propose(&nothing).await?;
                }
                _ => replica.paxos_commit(&commit).await?,
            }
            if k < 8 {
                return Ok(None);
            }
            // the next one has only begun
            replica.paxos_prepare(table, key, second).await?;
            Ok(Some(second))
        });
        expected.extend(done.expect("answered").map(|ballot| Uncommitted { key: key.clone(), ballot }));
    }
    expected.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(expected.len(), 12);
    let table = update(&ring, 0, ballot(0), 0).table;
    let found = |ranges: &[Tokens]| {
        let mut found = Vec::new();
        for (mut start, end) in ranges.iter().flat_map(uncommitted_bounds) {
            loop {
                let page = node.replica.paxos_uncommitted(&table, start, end.clone());
                let page = ring.world.block_on(page).expect("readable");
                assert!(page.found.len() <= 3);
                found.extend(page.found);
                match page.next {
                    Some(next) => start = next,
                    None => break,
                }
            }
        }
        found
    };
    assert_eq!(found(&[Tokens { start: Token::MIN, end: Token::MIN }]), expected);
    let (first, last) = (expected[2].key.token, expected[9].key.token);
    assert_eq!(found(&[Tokens { start: first, end: last }]), expected[3..=9]);
    let around = [&expected[10..], &expected[..=2]].concat();
    assert_eq!(found(&[Tokens { start: last, end: first }]), around);
}

/// Agreements whose gc_grace has passed count for a repair while their states are stored: they are
/// as complete as before.
#[test]
fn agreements_older_than_gc_grace_are_completed() {
    const DAY: i64 = 86_400_000_000;
    for purging in [PaxosPurging::Legacy, PaxosPurging::GcGrace] {
        let ring = ring(1);
        let node = ring.node(0);
        node.set_paxos(PaxosOptions { purging, ..PaxosOptions::default() });
        let ballot = Ballot::new(ring.world.env(0).clock.now_micros() - 11 * DAY, BallotFlag::Global, 1);
        for k in [1, 2] {
            let commit = Commit { ballot, update: update(&ring, k, ballot, 7) };
            let (table, key) = (&commit.update.table, &commit.update.key);
            let prepared = ring.world.block_on(node.replica.paxos_prepare(table, key, ballot)).expect("answered");
            assert!(prepared.promised);
            if k == 1 {
                ring.world.block_on(node.replica.paxos_commit(&commit)).expect("answered");
            } else {
                let nothing = Commit::empty(ballot, Arc::clone(table), key.clone());
                assert_eq!(ring.world.block_on(node.replica.paxos_propose(&nothing)).expect("answered"), None);
            }
        }
        let table = update(&ring, 1, ballot, 7).table;
        for (start, end) in uncommitted_bounds(&Tokens { start: Token::MIN, end: Token::MIN }) {
            let page = ring.world.block_on(node.replica.paxos_uncommitted(&table, start, end)).expect("readable");
            assert_eq!(page.found, [], "{purging:?}");
        }
    }
}
