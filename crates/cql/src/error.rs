//! Why a statement was refused or failed: Cassandra's error codes with what their bodies hold.
//!
//! The server turns a [`CqlError`] into an ERROR frame. Texts are those that Cassandra gives,
//! because clients match on them. Native protocol specification §9;
//! `org.apache.cassandra.exceptions`.

use std::fmt;

use rows::{BuildError, ReadError};
use types::{Consistency, ReplicaFailure, WriteKind};

/// Why a statement was refused or failed.
#[derive(Clone, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // fields are named as in the specification
pub enum CqlError {
    /// 0000: our fault.
    Server(String),
    /// 000A: a request that cannot mean anything.
    Protocol(String),
    /// 1000: too few replicas alive.
    Unavailable { consistency: Consistency, required: i32, alive: i32 },
    /// 1001.
    Overloaded(String),
    /// 1002.
    Bootstrapping(String),
    /// 1003.
    Truncate(String),
    /// 1100.
    WriteTimeout { consistency: Consistency, received: i32, block_for: i32, kind: WriteKind },
    /// 1100 of a conditional statement, which `contentions` others have overtaken.
    CasTimeout { consistency: Consistency, received: i32, block_for: i32, kind: WriteKind, contentions: u32 },
    /// 1700.
    CasUnknown { consistency: Consistency, received: i32, block_for: i32 },
    /// 1200.
    ReadTimeout { consistency: Consistency, received: i32, block_for: i32, data_present: bool },
    /// 1300.
    ReadFailure {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        failures: Vec<ReplicaFailure>,
        data_present: bool,
        message: String,
    },
    /// 1400.
    FunctionFailure { keyspace: String, function: String, argument_types: Vec<String>, message: String },
    /// 1500. A `why` stands behind Cassandra's words; there the log alone has it. May be empty.
    WriteFailure {
        consistency: Consistency,
        received: i32,
        block_for: i32,
        failures: Vec<ReplicaFailure>,
        kind: WriteKind,
        why: String,
    },
    /// 2000: not CQL.
    Syntax(String),
    /// 2100.
    Unauthorized(String),
    /// 2200: CQL, but it cannot be done.
    Invalid(String),
    /// 2300: a wrong option of a keyspace or table.
    Config(String),
    /// 2400. `table` is empty when the keyspace is what exists.
    AlreadyExists { keyspace: String, table: String, message: String },
    /// A read could not go on. [`ReadError::WouldBlock`] never leaves the coordinator; it turns the
    /// others into [`CqlError::ReadFailure`], [`CqlError::ReadTimeout`] or [`CqlError::Server`].
    Read(ReadError),
}

/// The message of a read or write that replicas have failed: why, and each of them.
pub(crate) fn operation_failed(why: &str, failures: &[ReplicaFailure]) -> String {
    let told: Vec<_> =
        failures.iter().map(|failure| format!("{} from /{}", failure.reason.name(), failure.endpoint)).collect();
    match told.is_empty() {
        true => format!("Operation failed - {why}"),
        false => format!("Operation failed - {why}: {}", told.join(", ")),
    }
}

impl CqlError {
    /// An invalid request.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// A refusal of a feature that CQL has and this program does not have yet.
    pub fn unsupported(feature: &str) -> Self {
        Self::Invalid(format!("{feature} not supported yet by this version of Helenus"))
    }

    /// The code on the wire.
    pub fn code(&self) -> i32 {
        match self {
            Self::Server(_) | Self::Read(_) => 0x0000,
            Self::Protocol(_) => 0x000A,
            Self::Unavailable { .. } => 0x1000,
            Self::Overloaded(_) => 0x1001,
            Self::Bootstrapping(_) => 0x1002,
            Self::Truncate(_) => 0x1003,
            Self::WriteTimeout { .. } | Self::CasTimeout { .. } => 0x1100,
            Self::CasUnknown { .. } => 0x1700,
            Self::ReadTimeout { .. } => 0x1200,
            Self::ReadFailure { .. } => 0x1300,
            Self::FunctionFailure { .. } => 0x1400,
            Self::WriteFailure { .. } => 0x1500,
            Self::Syntax(_) => 0x2000,
            Self::Unauthorized(_) => 0x2100,
            Self::Invalid(_) => 0x2200,
            Self::Config(_) => 0x2300,
            Self::AlreadyExists { .. } => 0x2400,
        }
    }
}

impl From<ReadError> for CqlError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl BuildError for CqlError {
    fn is_blocked(&self) -> bool {
        matches!(self, Self::Read(ReadError::WouldBlock))
    }

    fn read_error(&self) -> Option<&ReadError> {
        match self {
            Self::Read(error) => Some(error),
            _ => None,
        }
    }
}

impl From<crate::parse::SyntaxError> for CqlError {
    fn from(error: crate::parse::SyntaxError) -> Self {
        Self::Syntax(error.message().to_string())
    }
}

impl fmt::Display for CqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(message)
            | Self::Protocol(message)
            | Self::Overloaded(message)
            | Self::Bootstrapping(message)
            | Self::Truncate(message)
            | Self::Syntax(message)
            | Self::Unauthorized(message)
            | Self::Invalid(message)
            | Self::Config(message)
            | Self::ReadFailure { message, .. }
            | Self::FunctionFailure { message, .. }
            | Self::AlreadyExists { message, .. } => f.write_str(message),
            Self::Unavailable { consistency, .. } => {
                write!(f, "Cannot achieve consistency level {}", consistency.name())
            }
            Self::WriteTimeout { received, .. } | Self::ReadTimeout { received, .. } => {
                write!(f, "Operation timed out - received only {received} responses.")
            }
            Self::CasTimeout { received, block_for, contentions, .. } => write!(
                f,
                "CAS operation timed out: received {received} of {block_for} required responses after {contentions} \
                 contention retries"
            ),
            Self::CasUnknown { received, .. } => {
                write!(f, "CAS operation result is unknown - proposal accepted by {received} but not a quorum.")
            }
            Self::WriteFailure { received, failures, why, .. } => {
                let counts = format!("received {received} responses and {} failures", failures.len());
                f.write_str(&operation_failed(&counts, failures))?;
                if why.is_empty() { Ok(()) } else { write!(f, ": {why}") }
            }
            Self::Read(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CqlError {}

#[cfg(test)]
mod tests {
    use types::FailureReason;

    use super::*;

    /// The texts of `RequestTimeoutException` and `RequestFailureException`.
    #[test]
    fn what_replicas_did_is_told_as_in_cassandra() {
        let consistency = Consistency::Quorum;
        let timeout = CqlError::ReadTimeout { consistency, received: 1, block_for: 2, data_present: false };
        assert_eq!(timeout.to_string(), "Operation timed out - received only 1 responses.");
        let failure = |port: u16, reason| ReplicaFailure { endpoint: ([127, 0, 0, 1], port).into(), reason };
        let write = |failures: Vec<ReplicaFailure>, why: &str| {
            let (kind, why) = (WriteKind::Simple, why.to_owned());
            CqlError::WriteFailure { consistency, received: 0, block_for: 2, failures, kind, why }.to_string()
        };
        let two = vec![failure(7000, FailureReason::Unknown), failure(7001, FailureReason::Timeout)];
        let text = "Operation failed - received 0 responses and 2 failures: UNKNOWN from /127.0.0.1:7000, TIMEOUT from \
                    /127.0.0.1:7001";
        assert_eq!(write(two.clone(), ""), text);
        assert_eq!(write(two, "the disk is full"), format!("{text}: the disk is full"));
        assert_eq!(write(Vec::new(), ""), "Operation failed - received 0 responses and 0 failures");
    }
}
