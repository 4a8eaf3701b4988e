//! The promises of a round of Paxos v2 so far, and the step that follows from them.
//!
//! Pure. A promise says which commit its replica knows as the latest one. Replicas *have the
//! latest* if that is the latest commit of all that were told, or the same change proposed again;
//! the others *lack* it.
//!
//! 1. A replica that has witnessed a later ballot ends the round: the statement makes way. One that
//!    permits the read alone does not, but then nothing may be proposed with this ballot.
//! 2. With a majority of promises nothing of an earlier ballot can be decided any more. A proposal
//!    that one of them has accepted and none knows to be committed is finished first.
//! 3. The ballot may be used once a majority has the latest commit. Those that lack it are told of
//!    it meanwhile (*refreshed*), unless no replica that has it has been read: then it is committed
//!    and all begins again.
//!
//! Commits and proposals before the low bound of a repair are forgotten: they are completed
//! everywhere. Agrees with `org.apache.cassandra.service.paxos.PaxosPrepare`.

use bytes::Bytes;
use internode::payload::paxos::{Ballot, BallotFlag, Commit};
use ring::EndpointId;

/// A promise, or the permission of a read, as a replica tells it.
pub(super) struct Promise {
    /// The ballot below which a repair has completed everything, units of 100 ns since 1582-10-15.
    pub low_bound: u64,
    /// The proposal that was accepted last and is not known to be committed.
    pub accepted: Option<Commit>,
    /// The latest commit.
    pub committed: Commit,
    /// The data of the read. None: the replica was not asked to read.
    pub data: Option<Bytes>,
    /// Whether no proposal can have been decided between the promise and the read.
    pub is_stable: bool,
    /// If only the read is permitted: the ballot that was witnessed. None: the ballot is promised.
    pub superseded_by: Option<Ballot>,
}

/// The numbers that a round goes by.
#[derive(Clone, Copy)]
pub(super) struct RoundSize {
    /// Replicas that are asked.
    pub asked: usize,
    /// Promises that are enough.
    pub required: usize,
    /// Whether the permission of a read is enough, without waiting for replicas that lack the
    /// latest commit.
    pub takes_permission: bool,
}

/// The end of a round.
#[derive(PartialEq, Debug)]
pub(super) enum Outcome {
    /// The read is up to date.
    Ready {
        /// Whether the ballot may be proposed with. If not, the read needs no proposal.
        is_promised: bool,
        /// Whether the read is linearizable as it is. If not, it is once something has been
        /// accepted with this ballot.
        is_linearizable: bool,
    },
    /// Another coordinator's ballot is later.
    Superseded(Ballot),
    /// A proposal that may have been decided has to be brought to its end first.
    Unfinished(Commit),
    /// The latest commit has to be told to a majority, and to be read.
    Uncommitted(Commit),
    /// Too many replicas have failed.
    Failed,
}

/// The promises of a round so far.
pub(super) struct PromiseTally {
    size: RoundSize,
    none: Commit,
    /// The latest proposal that one of them has accepted.
    accepted: Commit,
    /// The latest commit that one of them knows.
    committed: Commit,
    low_bound: u64,
    /// Replicas that have the latest commit.
    having: Vec<EndpointId>,
    /// Replicas that lack the latest commit and have not been told of it.
    lacking: Vec<EndpointId>,
    failed: usize,
    /// A majority has promised, or permitted the read. What is known of proposals is frozen then.
    has_quorum: bool,
    has_read_latest: bool,
    is_stable: bool,
    superseded_by: Option<Ballot>,
    only_promises: bool,
    /// A commit that a replica behind the majority knows and the majority should have known.
    pub violation: Option<(EndpointId, Ballot)>,
    /// The data of replicas whose promises made the majority.
    pub data: Vec<(EndpointId, Bytes)>,
}

impl PromiseTally {
    /// The state before any answer. `none` stands for no proposal and no commit.
    pub fn new(size: RoundSize, none: Commit) -> Self {
        assert!(size.required > 0, "a majority is at least one");
        assert!(size.required <= size.asked, "as many are asked as have to promise");
        Self {
            size,
            accepted: none.clone(),
            committed: none.clone(),
            none,
            low_bound: 0,
            having: Vec::new(),
            lacking: Vec::new(),
            failed: 0,
            has_quorum: false,
            has_read_latest: false,
            is_stable: true,
            superseded_by: None,
            only_promises: true,
            violation: None,
            data: Vec::new(),
        }
    }

    /// The latest ballot of a proposal or commit that was told.
    pub fn latest(&self) -> Ballot {
        self.accepted.ballot.latest(self.committed.ballot).latest(self.superseded_by.unwrap_or(Ballot::NONE))
    }

    /// The latest commit that was told.
    pub fn committed(&self) -> &Commit {
        &self.committed
    }

    /// Whether a majority has promised, or permitted the read.
    pub fn has_majority(&self) -> bool {
        self.has_quorum
    }

    /// Replicas that have promised or permitted the read.
    pub fn heard(&self) -> usize {
        self.having.len() + self.lacking.len()
    }

    /// A replica has promised, or permitted the read. None: others have to answer.
    pub fn add_promise(&mut self, from: EndpointId, promise: Promise) -> Option<Outcome> {
        if let Some(by) = promise.superseded_by {
            self.only_promises = false;
            self.superseded_by.get_or_insert(by);
        }
        self.raise_low_bound(promise.low_bound);
        if self.has_quorum {
            self.add_late_promise(from, &promise)
        } else {
            self.add_early_promise(from, promise)
        }
        self.has_quorum |= self.having.len() + self.lacking.len() >= self.size.required;
        self.check();
        self.outcome()
    }

    /// A replica that is being told of the latest commit is counted nowhere meanwhile.
    fn check(&self) {
        let counted = self.having.len() + self.lacking.len() + self.failed;
        assert!(counted <= self.size.asked, "a replica has the latest commit, lacks it or fails");
    }

    fn raise_low_bound(&mut self, low_bound: u64) {
        if low_bound <= self.low_bound {
            return;
        }
        self.low_bound = low_bound;
        if self.is_forgotten(&self.committed) {
            self.committed = self.none.clone();
            self.has_read_latest = !self.data.is_empty();
            self.having.append(&mut self.lacking);
        }
    }

    fn is_forgotten(&self, commit: &Commit) -> bool {
        commit.ballot != Ballot::NONE && commit.ballot.ticks().cast_unsigned() < self.low_bound
    }

    /// Takes the promise of a replica that belongs to the majority.
    fn add_early_promise(&mut self, from: EndpointId, promise: Promise) {
        let has_read = promise.data.is_some();
        let committed = if self.is_forgotten(&promise.committed) { self.none.clone() } else { promise.committed };
        let is_after = committed.is_after(&self.committed);
        if self.is_same(&committed) {
            if is_after {
                self.committed = committed;
            }
            self.having.push(from);
            self.has_read_latest |= has_read;
        } else if is_after {
            self.lacking.append(&mut self.having);
            self.having.push(from);
            self.has_read_latest = has_read;
            self.committed = committed;
        } else {
            self.lacking.push(from);
        }
        if let Some(accepted) = promise.accepted.filter(|accepted| accepted.is_after(&self.accepted)) {
            self.accepted = accepted;
        }
        if let Some(data) = promise.data {
            self.is_stable &= promise.is_stable;
            self.data.push((from, data));
        }
    }

    /// Takes a promise that comes after the majority has promised: it counts for the latest commit
    /// alone. A replica that knows a later commit may lack the one before it, so it is refreshed
    /// as well.
    fn add_late_promise(&mut self, from: EndpointId, promise: &Promise) {
        if self.violation.is_none() && self.violates(promise) {
            self.violation = Some((from, promise.committed.ballot));
        }
        let knows = if self.is_forgotten(&promise.committed) { &self.none } else { &promise.committed };
        if self.is_same(knows) { self.having.push(from) } else { self.lacking.push(from) }
    }

    /// Whether a promise shows that the majority was not linearizable: it knows a later commit, and
    /// that is none which can have come while the majority answered. Ballots without a level are of
    /// v1, whose commits go to data centers that did not decide. Agrees with
    /// `PaxosPrepare.checkForLinearizabilityViolation`.
    fn violates(&self, promise: &Promise) -> bool {
        let commit = &promise.committed;
        let is_raced = commit.ballot == self.accepted.ballot
            || self.accepted.update.is_empty() && self.accepted.is_after(commit)
            || commit.is_reproposal_of(&self.accepted);
        self.only_promises
            && promise.superseded_by.is_none()
            && commit.is_after(&self.committed)
            && !commit.is_reproposal_of(&self.committed)
            && !is_raced
            && !self.is_forgotten(commit)
            && commit.ballot.flag() != BallotFlag::None
    }

    /// Whether a commit is the latest one, or the same change proposed again.
    fn is_same(&self, commit: &Commit) -> bool {
        let is_other = commit.is_after(&self.committed) || self.committed.is_after(commit);
        !is_other || commit.is_reproposal_of(&self.committed)
    }

    /// The proposal that may have been decided and is not known to be committed.
    fn unfinished(&self) -> Option<Commit> {
        let accepted = &self.accepted;
        let is_open = !accepted.update.is_empty()
            && accepted.is_after(&self.committed)
            && accepted.ballot.ticks().cast_unsigned() > self.low_bound
            && !accepted.is_reproposal_of(&self.committed);
        is_open.then(|| accepted.clone())
    }

    fn outcome(&self) -> Option<Outcome> {
        if !self.has_quorum {
            return None;
        }
        let superseded = || Outcome::Superseded(self.superseded_by.expect("a permission says by whom"));
        if !self.only_promises && !self.is_stable {
            return Some(superseded());
        }
        if let Some(unfinished) = self.unfinished() {
            return Some(if self.only_promises { Outcome::Unfinished(unfinished) } else { superseded() });
        }
        if self.having.len() >= self.size.required {
            return Some(self.ready());
        }
        if !self.has_read_latest {
            return Some(Outcome::Uncommitted(self.committed.clone()));
        }
        if self.is_stable && self.size.takes_permission {
            return Some(Outcome::Ready { is_promised: false, is_linearizable: true });
        }
        None
    }

    fn ready(&self) -> Outcome {
        Outcome::Ready { is_promised: self.only_promises, is_linearizable: self.is_stable }
    }

    /// The replicas to be told of the latest commit, each once.
    pub fn take_lacking(&mut self) -> Vec<EndpointId> {
        let is_refreshing = self.has_quorum && self.has_read_latest;
        if is_refreshing { std::mem::take(&mut self.lacking) } else { Vec::new() }
    }

    /// A replica has taken the latest commit. `superseded_by`: it has witnessed a later ballot
    /// meanwhile.
    pub fn refreshed(&mut self, replica: EndpointId, superseded_by: Option<Ballot>) -> Option<Outcome> {
        if let Some(by) = superseded_by {
            self.superseded_by = Some(by);
            return Some(match self.is_stable {
                true => Outcome::Ready { is_promised: false, is_linearizable: true },
                false => Outcome::Superseded(by),
            });
        }
        self.having.push(replica);
        self.check();
        (self.having.len() >= self.size.required).then(|| self.ready())
    }

    /// A replica has failed, or will not answer.
    pub fn fail(&mut self) -> Option<Outcome> {
        self.failed += 1;
        self.check();
        (self.failed + self.size.required > self.size.asked).then_some(Outcome::Failed)
    }
}

#[cfg(test)]
mod tests;
