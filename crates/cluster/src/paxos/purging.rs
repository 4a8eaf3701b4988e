//! `paxos_state_purging`: how long replicas keep the state of Paxos of a partition; and
//! `paxos_on_linearizability_violations`.
//!
//! With `legacy` the cells of `system.paxos` have a TTL. With `gc_grace` they have none, and what
//! is older than the table's gc_grace counts no more, and goes at compactions. With `repaired` only
//! a repair of Paxos lets states go: those from before its low bound, less a time of grace. A ring
//! that has left `legacy` must not go back, because cells without a TTL would stay for ever. Agrees
//! with `org.apache.cassandra.config.Config.{PaxosStatePurging,PaxosOnLinearizabilityViolation}`.

use std::time::Duration;

/// How long replicas keep states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PaxosPurging {
    /// `legacy`
    Legacy,
    /// `gc_grace`
    GcGrace,
    /// `repaired`
    Repaired {
        /// `paxos_purge_grace_period`: for so long states are kept before the low bound.
        grace: Duration,
    },
}

impl PaxosPurging {
    /// The purging of a name.
    pub fn parse(name: &str, grace: Duration) -> Option<Self> {
        Some(match name {
            "legacy" => Self::Legacy,
            "gc_grace" => Self::GcGrace,
            "repaired" => Self::Repaired { grace },
            _ => return None,
        })
    }
}

/// The reaction of a coordinator to a replica that knows a commit which the round should have
/// known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnViolation {
    /// `ignore`: nothing.
    Ignore,
    /// `log`: a line in the log.
    Log,
    /// `fail`: the statement fails.
    Fail,
}

impl OnViolation {
    /// The reaction of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "ignore" => Self::Ignore,
            "log" => Self::Log,
            "fail" => Self::Fail,
            _ => return None,
        })
    }
}
