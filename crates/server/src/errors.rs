//! Errors as clients are told of them: [`CqlError`] to ERROR messages, and failures of the node to
//! [`CqlError`].
//!
//! Agrees with `org.apache.cassandra.exceptions` and `ErrorMessage.java`; texts as Cassandra's
//! where it has the case.

use std::net::SocketAddr;

use cluster::coordinator::write_answers::WriteAnswers;
use cluster::{FailedAnswers, FailedCas, FailedRead, FailedWrite, ReadOutcome, RequestError, WriteError};
use cql::CqlError;
use protocol::{ErrorKind, ErrorMessage};
use rows::ReadError;
use storage::StorageError;
use types::{Consistency, FailureReason, ReplicaFailure, WriteKind};

/// The message when the queue of the pool for reads from disk is full.
const TOO_MANY_READS: &str = "Too many reads wait for the disk";

/// The ERROR message of a failed statement.
pub fn message(error: &CqlError) -> ErrorMessage {
    let text = error.to_string();
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
        CqlError::CasTimeout { consistency, received, block_for, kind, contentions } => ErrorKind::WriteTimeout {
            consistency: *consistency,
            received: *received,
            block_for: *block_for,
            write_type: *kind,
            contentions: (*kind == WriteKind::Cas).then_some(u16::try_from(*contentions).unwrap_or(u16::MAX)),
        },
        CqlError::CasUnknown { consistency, received, block_for } => {
            ErrorKind::CasWriteUnknown { consistency: *consistency, received: *received, block_for: *block_for }
        }
        CqlError::ReadTimeout { consistency, received, block_for, data_present } => ErrorKind::ReadTimeout {
            consistency: *consistency,
            received: *received,
            block_for: *block_for,
            data_present: *data_present,
        },
        CqlError::ReadFailure { consistency, received, block_for, failures, data_present, .. } => {
            ErrorKind::ReadFailure {
                consistency: *consistency,
                received: *received,
                block_for: *block_for,
                failures: failures.clone(),
                data_present: *data_present,
            }
        }
        CqlError::FunctionFailure { keyspace, function, argument_types, .. } => ErrorKind::FunctionFailure {
            keyspace: keyspace.clone(),
            function: function.clone(),
            argument_types: argument_types.clone(),
        },
        CqlError::WriteFailure { consistency, received, block_for, failures, kind, .. } => ErrorKind::WriteFailure {
            consistency: *consistency,
            received: *received,
            block_for: *block_for,
            failures: failures.clone(),
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

/// A request that the coordinator did not carry out.
pub(crate) fn of_request(error: RequestError) -> CqlError {
    match error {
        RequestError::Unavailable { level, shortage } => {
            let (required, alive) = (count(shortage.required), count(shortage.alive));
            CqlError::Unavailable { consistency: level, required, alive }
        }
        RequestError::Unplaced { keyspace, error } => {
            CqlError::Server(format!("keyspace {keyspace} cannot be placed on the ring: {error}"))
        }
        RequestError::Cas(failed) => of_cas(failed),
        RequestError::Write(failed) => of_write(*failed),
    }
}

/// A conditional statement without an outcome.
fn of_cas(failed: FailedCas) -> CqlError {
    match failed {
        FailedCas::TimedOut { level, kind, received, block_for, contentions } => CqlError::CasTimeout {
            consistency: level,
            received: count(received),
            block_for: count(block_for),
            kind,
            contentions,
        },
        FailedCas::Violated { level, received, block_for } => CqlError::WriteFailure {
            consistency: level,
            received: count(received),
            block_for: count(block_for),
            failures: Vec::new(),
            kind: WriteKind::Cas,
            why: "A linearizability violation was detected".to_owned(),
        },
        FailedCas::Unknown { level, accepted, required } => {
            CqlError::CasUnknown { consistency: level, received: count(accepted), block_for: count(required) }
        }
    }
}

fn count(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// A write that too few replicas acknowledged.
fn of_write(failed: FailedWrite) -> CqlError {
    let FailedWrite { cause, answers, largest } = failed;
    let WriteAnswers { level: consistency, kind, block_for, received, failures, .. } = answers;
    let (received, block_for) = (count(received), count(block_for));
    let timeout = match kind {
        WriteKind::Cas => CqlError::CasTimeout { consistency, received, block_for, kind, contentions: 0 },
        _ => CqlError::WriteTimeout { consistency, received, block_for, kind },
    };
    let asked = !failures.is_empty();
    let failure = |why| CqlError::WriteFailure { consistency, received, block_for, failures, kind, why };
    match cause {
        WriteError::TimedOut | WriteError::Read(ReadError::TimedOut) => timeout,
        WriteError::Storage(StorageError::MutationTooLarge { size, size_max }) => {
            let why = format!("Rejected an oversized mutation ({size}/{size_max}){largest}");
            // once replicas were asked they may still get it, by hints: that is no definite answer
            if asked { failure(why) } else { CqlError::Invalid(why) }
        }
        WriteError::Storage(StorageError::UnknownTable { table }) => {
            CqlError::Invalid(format!("table {table} does not exist"))
        }
        WriteError::Overloaded => CqlError::Overloaded(TOO_MANY_READS.to_owned()),
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
        WriteError::Peers => failure(String::new()),
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
        WriteError::Peers => CqlError::Server("other nodes failed".to_owned()),
    }
}

/// A truncation that did not happen, or not on all nodes.
pub(crate) fn of_truncation(error: RequestError) -> CqlError {
    let text = match error {
        RequestError::Write(failed) => of_failed_truncation(*failed),
        other => format!("Error during truncate: {}", of_request(other)),
    };
    CqlError::Truncate(text)
}

fn of_failed_truncation(failed: FailedWrite) -> String {
    let FailedWrite { cause, answers, .. } = failed;
    let on = |failure: &ReplicaFailure| format!("replica /{} -> {}", failure.endpoint, failure.reason.name());
    match cause {
        WriteError::TimedOut if answers.block_for > 1 => {
            let received = answers.received;
            format!("Error during truncate: Truncate timed out - received only {received} responses")
        }
        WriteError::Peers => {
            let failures: Vec<_> = answers.failures.iter().map(on).collect();
            format!("Truncate failed on {}", failures.join(", "))
        }
        cause => match of_change(cause) {
            CqlError::Server(message) => format!("Error during truncate: {message}"),
            other => other.to_string(),
        },
    }
}

/// A read that failed. `tracks`: thresholds of reads are tracked (`read_thresholds_enabled`).
pub(crate) fn of_read(error: FailedRead<CqlError>, tracks: bool) -> CqlError {
    match error {
        FailedRead::Refused(error) => of_request(error),
        FailedRead::Unanswered(answers) => of_answers(*answers),
        FailedRead::Overloaded(sentence) => CqlError::Overloaded(sentence),
        FailedRead::Failed { outcome, level, block_for, received, endpoint } => {
            of_outcome(outcome, tracks, level, [received, block_for].map(count), endpoint)
        }
        FailedRead::Serial { cause: WriteError::TimedOut, level: consistency, .. } => {
            CqlError::ReadTimeout { consistency, received: 0, block_for: 1, data_present: true }
        }
        FailedRead::Serial { cause, level: consistency, endpoint } => {
            let failures = vec![ReplicaFailure { endpoint, reason: FailureReason::Unknown }];
            let message = format!("what was read is not durable: {cause}");
            CqlError::ReadFailure { consistency, received: 0, block_for: 1, failures, data_present: true, message }
        }
    }
}

/// A read of several nodes that too few answered.
fn of_answers(answers: FailedAnswers) -> CqlError {
    let FailedAnswers { level: consistency, block_for, received, data_present, failures, timed_out } = answers;
    let (received, block_for) = (count(received), count(block_for));
    if timed_out {
        return CqlError::ReadTimeout { consistency, received, block_for, data_present };
    }
    let reason = |failure: &ReplicaFailure| format!("{} from /{}", failure.reason.name(), failure.endpoint);
    let reasons: Vec<String> = failures.iter().map(reason).collect();
    let message = format!(
        "Operation failed - received {received} responses and {} failures: {}",
        failures.len(),
        reasons.join(", ")
    );
    CqlError::ReadFailure { consistency, received, block_for, failures, data_present, message }
}

fn of_outcome(
    outcome: ReadOutcome<CqlError>,
    tracks: bool,
    consistency: Consistency,
    [received, block_for]: [i32; 2],
    endpoint: SocketAddr,
) -> CqlError {
    // what was found wrong with which file follows Cassandra's words; there it is in the log only
    let failure = |reason: FailureReason, detail: &str| CqlError::ReadFailure {
        consistency,
        received,
        block_for,
        failures: vec![ReplicaFailure { endpoint, reason }],
        data_present: false,
        message: format!(
            "Operation failed - received {received} responses and 1 failures: {} from /{endpoint}{detail}",
            reason.name()
        ),
    };
    let timeout = || CqlError::ReadTimeout { consistency, received, block_for, data_present: false };
    match outcome {
        ReadOutcome::TimedOut | ReadOutcome::Failed(CqlError::Read(ReadError::TimedOut)) => timeout(),
        ReadOutcome::Overloaded => CqlError::Overloaded(TOO_MANY_READS.to_owned()),
        ReadOutcome::Failed(CqlError::Read(error)) => match error {
            ReadError::TooManyTombstones(found) => {
                tracing::warn!("{found}");
                failure(FailureReason::ReadTooManyTombstones, &format!(": {found}"))
            }
            ReadError::TooLarge { .. } => {
                tracing::warn!("{error}");
                failure(FailureReason::ReadSize, "")
            }
            ReadError::TooManyIndexes { .. } => {
                tracing::warn!("{error}");
                failure(if tracks { FailureReason::ReadTooManyIndexes } else { FailureReason::Unknown }, "")
            }
            ReadError::IndexNotAvailable { .. } => failure(FailureReason::IndexNotAvailable, ""),
            ReadError::Stopped => CqlError::Overloaded(error.to_string()),
            ReadError::Corrupt(_)
            | ReadError::Malformed { .. }
            | ReadError::Io { .. }
            | ReadError::Function { .. }
            | ReadError::WouldBlock
            | ReadError::TimedOut => {
                tracing::error!(%error, "a read failed");
                failure(FailureReason::Unknown, &format!(": {error}"))
            }
        },
        ReadOutcome::Failed(other) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A conditional statement that waits in vain for its turn, as on a node alone, is told of as
    /// one whose ballots were overtaken.
    #[test]
    fn a_timeout_says_what_has_timed_out() {
        let timeout = |kind| {
            let answers = WriteAnswers::of_one(Consistency::Serial, kind);
            let failed = FailedWrite { cause: WriteError::TimedOut, answers, largest: String::new() };
            of_request(RequestError::Write(Box::new(failed))).to_string()
        };
        assert_eq!(timeout(WriteKind::Simple), "Operation timed out - received only 0 responses.");
        let of_cas = "CAS operation timed out: received 0 of 1 required responses after 0 contention retries";
        assert_eq!(timeout(WriteKind::Cas), of_cas);
    }
}
