//! What went wrong, as clients are told: [`CqlError`] to ERROR messages, and failures of the node to [`CqlError`].
//!
//! Agrees with `org.apache.cassandra.exceptions` and `ErrorMessage.java`; texts as Cassandra's where it has the case.

use std::net::IpAddr;

use cluster::{ReadOutcome, Shortage, WriteError};
use cql::CqlError;
use protocol::{ErrorKind, ErrorMessage, ReplicaFailure};
use rows::ReadError;
use storage::StorageError;
use types::{Consistency, WriteKind};

/// `RequestFailureReason.UNKNOWN`
const UNKNOWN: u16 = 0;
/// `RequestFailureReason.READ_TOO_MANY_TOMBSTONES`
const TOO_MANY_TOMBSTONES: u16 = 1;
/// `RequestFailureReason.INDEX_NOT_AVAILABLE`
const INDEX_NOT_AVAILABLE: u16 = 6;

/// The pool's queue is full.
const TOO_MANY_READS: &str = "Too many reads wait for the disk";

/// The ERROR message of a failed statement. `endpoint` is this node, where one is named.
pub fn message(error: &CqlError, endpoint: IpAddr) -> ErrorMessage {
    let text = error.to_string();
    let failures = |reason: u16| vec![ReplicaFailure { endpoint, reason }];
    let kind = match error {
        CqlError::Server(_) => ErrorKind::Server,
        CqlError::Read(error) => {
            tracing::error!(%error, "a read failed");
            ErrorKind::Server
        }
        CqlError::Protocol(_) => ErrorKind::Protocol,
        CqlError::Unavailable { consistency, required, alive } => {
            ErrorKind::Unavailable { consistency: *consistency, required: *required, alive: *alive }
        }
        CqlError::Overloaded(_) => ErrorKind::Overloaded,
        CqlError::Bootstrapping(_) => ErrorKind::IsBootstrapping,
        CqlError::Truncate(_) => ErrorKind::Truncate,
        CqlError::WriteTimeout { consistency, received, block_for, kind } => ErrorKind::WriteTimeout {
            consistency: *consistency,
            received: *received,
            block_for: *block_for,
            write_type: *kind,
            contentions: (*kind == WriteKind::Cas).then_some(0),
        },
        CqlError::ReadTimeout { consistency, received, block_for, data_present } => ErrorKind::ReadTimeout {
            consistency: *consistency,
            received: *received,
            block_for: *block_for,
            data_present: *data_present,
        },
        CqlError::ReadFailure { consistency, received, block_for, reason, data_present, .. } => {
            ErrorKind::ReadFailure {
                consistency: *consistency,
                received: *received,
                block_for: *block_for,
                failures: failures(*reason),
                data_present: *data_present,
            }
        }
        CqlError::FunctionFailure { keyspace, function, argument_types, .. } => ErrorKind::FunctionFailure {
            keyspace: keyspace.clone(),
            function: function.clone(),
            argument_types: argument_types.clone(),
        },
        CqlError::WriteFailure { consistency, received, block_for, reason, kind, .. } => ErrorKind::WriteFailure {
            consistency: *consistency,
            received: *received,
            block_for: *block_for,
            failures: failures(*reason),
            write_type: *kind,
        },
        CqlError::Syntax(_) => ErrorKind::Syntax,
        CqlError::Unauthorized(_) => ErrorKind::Unauthorized,
        CqlError::Invalid(_) => ErrorKind::Invalid,
        CqlError::Config(_) => ErrorKind::Config,
        CqlError::AlreadyExists { keyspace, table, .. } => {
            ErrorKind::AlreadyExists { keyspace: keyspace.clone(), table: table.clone() }
        }
    };
    ErrorMessage::new(kind, text)
}

/// Too few replicas.
pub(crate) fn unavailable(consistency: Consistency, shortage: Shortage) -> CqlError {
    let count = |count: u32| i32::try_from(count).unwrap_or(i32::MAX);
    CqlError::Unavailable { consistency, required: count(shortage.required), alive: count(shortage.alive) }
}

/// A write that failed.
pub(crate) fn of_write(error: WriteError, consistency: Consistency, block_for: i32, kind: WriteKind) -> CqlError {
    let failure = |why| CqlError::WriteFailure { consistency, received: 0, block_for, reason: UNKNOWN, kind, why };
    match error {
        WriteError::TimedOut => CqlError::WriteTimeout { consistency, received: 0, block_for, kind },
        WriteError::Storage(StorageError::MutationTooLarge { size, size_max }) => {
            CqlError::Invalid(format!("Rejected an oversized mutation ({size}/{size_max})"))
        }
        WriteError::Storage(StorageError::UnknownTable { table }) => {
            CqlError::Invalid(format!("table {table} does not exist"))
        }
        WriteError::Overloaded => CqlError::Overloaded(TOO_MANY_READS.to_owned()),
        WriteError::Read(ReadError::TimedOut) => CqlError::WriteTimeout { consistency, received: 0, block_for, kind },
        WriteError::Read(error) => {
            tracing::error!(%error, "what is there could not be read for a write");
            failure(error.to_string())
        }
        WriteError::Storage(error @ StorageError::ReadOnly) => CqlError::Invalid(error.to_string()),
        // the commit log has told of it
        WriteError::Storage(error @ (StorageError::CaptureFull { .. } | StorageError::WritesStopped { .. })) => {
            failure(error.to_string())
        }
        WriteError::Storage(error) => {
            tracing::error!(%error, "a write failed");
            failure(error.to_string())
        }
    }
}

/// The commit log does not have what a read at SERIAL or LOCAL_SERIAL has seen.
pub(crate) fn of_serial_read(error: WriteError, consistency: Consistency) -> CqlError {
    let (received, block_for, data_present) = (0, 1, true);
    match error {
        WriteError::TimedOut => CqlError::ReadTimeout { consistency, received, block_for, data_present },
        error => {
            let CqlError::WriteFailure { why: message, .. } = of_write(error, consistency, 1, WriteKind::Cas) else {
                return CqlError::ReadTimeout { consistency, received, block_for, data_present };
            };
            CqlError::ReadFailure { consistency, received, block_for, reason: UNKNOWN, data_present, message }
        }
    }
}

/// A schema change or truncation that the node could not carry out.
pub(crate) fn of_change(error: WriteError) -> CqlError {
    match error {
        WriteError::TimedOut => CqlError::Server("the change took longer than its timeout".to_owned()),
        WriteError::Storage(error @ StorageError::ReadOnly) => CqlError::Invalid(error.to_string()),
        WriteError::Storage(error) => CqlError::Server(error.to_string()),
        WriteError::Read(error) => CqlError::Server(error.to_string()),
        WriteError::Overloaded => CqlError::Overloaded(TOO_MANY_READS.to_owned()),
    }
}

/// A read that failed. `endpoint` is this node with its storage port.
pub(crate) fn of_read(
    outcome: ReadOutcome<CqlError>,
    consistency: Consistency,
    block_for: i32,
    endpoint: std::net::SocketAddr,
) -> CqlError {
    // what was found wrong with which file follows Cassandra's words; there it is in the log only
    let failure = |reason: u16, name: &str, detail: &str| CqlError::ReadFailure {
        consistency,
        received: 0,
        block_for,
        reason,
        data_present: false,
        message: format!("Operation failed - received 0 responses and 1 failures: {name} from /{endpoint}{detail}"),
    };
    let timeout = || CqlError::ReadTimeout { consistency, received: 0, block_for, data_present: false };
    match outcome {
        ReadOutcome::TimedOut | ReadOutcome::Failed(CqlError::Read(ReadError::TimedOut)) => timeout(),
        ReadOutcome::Overloaded => CqlError::Overloaded(TOO_MANY_READS.to_owned()),
        ReadOutcome::Failed(CqlError::Read(error)) => match error {
            ReadError::TooManyTombstones(found) => {
                tracing::warn!("{found}");
                failure(TOO_MANY_TOMBSTONES, "READ_TOO_MANY_TOMBSTONES", &format!(": {found}"))
            }
            ReadError::IndexNotAvailable { .. } => failure(INDEX_NOT_AVAILABLE, "INDEX_NOT_AVAILABLE", ""),
            ReadError::Stopped => CqlError::Overloaded(error.to_string()),
            ReadError::Corrupt(_) | ReadError::Io { .. } | ReadError::WouldBlock | ReadError::TimedOut => {
                tracing::error!(%error, "a read failed");
                failure(UNKNOWN, "UNKNOWN", &format!(": {error}"))
            }
        },
        ReadOutcome::Failed(other) => other,
    }
}
