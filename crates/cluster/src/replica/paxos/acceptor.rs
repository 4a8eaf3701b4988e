//! The rules of an acceptor: the outcome of a request, which follows from the state of the
//! partition alone.
//!
//! *Witnessed* is the latest ballot that was promised, accepted or committed here, or the low bound
//! of a repair. *Witnessed to write* leaves out promises to reads and accepted proposals that
//! change nothing: a read that is late may go on if no write has begun since. Of ballots with the
//! same time the accepted one counts, since a majority has promised it. Agrees with
//! `org.apache.cassandra.service.paxos.PaxosState.Snapshot`.

use internode::payload::paxos::{Ballot, Commit};

/// The state of Paxos of one partition of one table.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct State {
    /// The latest ballot that was promised: nothing earlier is accepted.
    pub promised: Ballot,
    /// The latest ballot that was promised to a write; never after `promised`.
    pub promised_write: Ballot,
    /// The proposal that was accepted last. None: there is none, or it or a later one is committed.
    pub accepted: Option<Commit>,
    /// The latest commit; that of [`Ballot::NONE`] if there is none.
    pub committed: Commit,
}

/// The outcome of a prepare.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Promise {
    /// The ballot is promised.
    Promised,
    /// The ballot is not promised, but no write has begun since: what it reads is not outdated.
    ReadPermitted {
        /// The latest ballot that was witnessed.
        superseded_by: Ballot,
    },
    /// The ballot is too late.
    Rejected {
        /// The latest ballot that was witnessed.
        superseded_by: Ballot,
    },
}

/// The outcome of a proposal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Acceptance {
    /// The proposal is accepted and to be stored.
    Accepted,
    /// The proposal is committed already; nothing is to be stored.
    Committed,
    /// The proposal is too late.
    Superseded {
        /// The latest ballot that was witnessed.
        by: Ballot,
    },
}

impl State {
    /// The outcome of a prepare. `low_bound`: ballots before it are refused.
    pub fn promise(&self, ballot: &Ballot, low_bound: Ballot) -> Promise {
        let superseded_by = self.witnessed(low_bound);
        if ballot.is_after(&superseded_by) {
            return Promise::Promised;
        }
        match ballot.is_after(&self.witnessed_to_write(low_bound)) {
            true => Promise::ReadPermitted { superseded_by },
            false => Promise::Rejected { superseded_by },
        }
    }

    /// The outcome of a proposal. `low_bound`: ballots before it are refused.
    pub fn accept(&self, ballot: &Ballot, low_bound: Ballot) -> Acceptance {
        let by = self.witnessed(low_bound);
        if !ballot.is_same_or_after(&by) {
            return Acceptance::Superseded { by };
        }
        if *ballot == self.committed.ballot { Acceptance::Committed } else { Acceptance::Accepted }
    }

    /// Whether no proposal can be under way that this state does not show: the latest agreement is
    /// not before the latest promise to a write.
    pub fn is_stable(&self) -> bool {
        self.agreed().is_same_or_after(&self.promised_write)
    }

    /// The latest ballot, if it is not known that everything up to it has come to its end.
    pub fn incomplete(&self) -> Option<Ballot> {
        let witnessed = self.witnessed(Ballot::NONE);
        witnessed.is_after(&self.agreed()).then_some(witnessed)
    }

    /// The latest agreement: a commit, or a proposal that changes nothing, which needs none.
    fn agreed(&self) -> Ballot {
        let of_nothing = self.accepted.as_ref().filter(|accepted| accepted.update.is_empty());
        of_nothing.map_or(self.committed.ballot, |accepted| accepted.ballot)
    }

    /// Whether `later` shows the same agreements and promises to writes.
    pub fn is_unchanged(&self, later: &Self) -> bool {
        let accepted = |state: &Self| state.accepted.as_ref().map(|accepted| accepted.ballot);
        self.promised_write == later.promised_write
            && self.committed.ballot == later.committed.ballot
            && accepted(self) == accepted(later)
    }

    /// The latest ballot that was promised, accepted or committed, or `low_bound` if that is
    /// later.
    pub fn witnessed(&self, low_bound: Ballot) -> Ballot {
        let accepted = self.accepted.as_ref().map(|accepted| accepted.ballot);
        accepted.unwrap_or(Ballot::NONE).latest(self.committed.ballot).latest(self.promised).latest(low_bound)
    }

    fn witnessed_to_write(&self, low_bound: Ballot) -> Ballot {
        let writes = self.accepted.as_ref().filter(|accepted| !accepted.update.is_empty());
        let accepted = writes.map_or(Ballot::NONE, |accepted| accepted.ballot);
        accepted.latest(self.committed.ballot).latest(self.promised_write).latest(low_bound)
    }
}
