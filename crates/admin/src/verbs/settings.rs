//! Settings that an operator reads and changes while the node runs: timeouts, tracing, levels of
//! the log, which a restart forgets; and certificates, whose files are read again.

use serde::{Deserialize, Serialize};

/// Asks which share of requests is traced, 0 to 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetTraceProbability {}

/// Sets which share of requests is traced.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SetTraceProbability {
    /// The share, 0 to 1.
    pub probability: f64,
}

/// Asks for a timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GetTimeout {
    /// Which one.
    pub kind: TimeoutKind,
}

/// Sets a timeout.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SetTimeout {
    /// Which one.
    pub kind: TimeoutKind,
    /// How long.
    pub millis: u64,
}

/// Asks for the levels of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetLoggingLevels {}

/// Sets the level of a logger.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SetLoggingLevel {
    /// The logger; empty: all loggers.
    pub logger: String,
    /// The level; empty: the level of the start.
    pub level: String,
}

/// Reads the files of all keys and certificates again, and uses them for new connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ReloadCertificates {}

/// The timeouts that can be read and set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeoutKind {
    /// `read_request_timeout`
    Read,
    /// `range_request_timeout`
    Range,
    /// `write_request_timeout`
    Write,
    /// `counter_write_request_timeout`
    CounterWrite,
    /// `cas_contention_timeout`
    CasContention,
    /// `truncate_request_timeout`
    Truncate,
    /// `request_timeout`
    Misc,
}

impl TimeoutKind {
    /// All timeouts.
    pub const ALL: [Self; 7] =
        [Self::Read, Self::Range, Self::Write, Self::CounterWrite, Self::CasContention, Self::Truncate, Self::Misc];

    /// nodetool's word for the timeout.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Range => "range",
            Self::Write => "write",
            Self::CounterWrite => "counterwrite",
            Self::CasContention => "cascontention",
            Self::Truncate => "truncate",
            Self::Misc => "misc",
        }
    }

    /// The timeout of a word; None: no timeout has this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
