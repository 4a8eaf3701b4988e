//! READ_REQ and RANGE_REQ: what this node has, as data or as a digest.
//!
//! 1. The read is tried at once on the thread of links, and goes on in the background if it would
//!    wait for the disk or pass many rows ([`crate::replica::read`]).
//! 2. The answer is made as every replica makes it ([`internode::payload::read_answer`]).
//! 3. A read that takes longer than somebody waits is given up and not answered.
//!
//! Partitions that this node does not own are read all the same, as Cassandra does by default.
//! A coordinator that wants it (TRACK_WARNINGS) is told the number of tombstones beside the answer;
//! sizes of reads are not measured. Agrees with
//! `org.apache.cassandra.db.ReadCommandVerbHandler`.

use std::sync::Arc;

use bytes::Bytes;
use internode::envelope::{TOMBSTONE_FAIL, TOMBSTONE_WARNING};
use internode::payload::partitions::PartitionsWriter;
use internode::payload::read_answer::{AnswerError, AnswerLimits, Wanted};
use internode::payload::read_request::{Partitions, ReadRequest};
use internode::payload::read_response::ReadResponse;
use internode::{Flags, InternodeError, Parameter};
use links::limits::MESSAGE_SIZE_MAX;
use rows::ReadError;
use rows::live::TombstoneLimits;
use schema::system::is_local_keyspace;
use schema::{TableId, TableMetadata};
use types::FailureReason;

use super::Call;
use crate::node::Node;
use crate::replica::read::ReadOutcome;

/// Bytes of an answer beside its data: the envelope's header and the lengths before the data.
const ANSWER_ROOM: usize = 64 << 10;

/// Most bytes of the data of an answer, so that the message is one that peers take.
const DATA_SIZE_MAX: usize = MESSAGE_SIZE_MAX - ANSWER_ROOM;

pub(super) async fn serve(call: Call) {
    let request = match decode(&call.node, &call.payload) {
        Ok(request) => Arc::new(request),
        Err(reason) => return call.answer(Err(reason)),
    };
    let wanted = if request.digest.is_some() { Wanted::Digest } else { Wanted::Data };
    let limits = AnswerLimits { tombstones: tombstones(&call.node, &request), size_max: DATA_SIZE_MAX };
    let answer = call.node.replica.answer(&request, wanted, limits, call.rest(), call.trace()).await;
    match answer {
        Ok(answer) => {
            let many = (answer.tombstones_max > limits.tombstones.warn).then_some(answer.tombstones_max);
            let parameters = told(&call, TOMBSTONE_WARNING, many);
            call.answer_with(Ok(Bytes::from(answer.into_response().encode())), parameters);
        }
        Err(ReadOutcome::Failed(AnswerError::Read(ReadError::TooManyTombstones(found)))) if tracks(&call) => {
            tracing::warn!("{found}");
            call.node.count_tombstone_failure(request.table.id);
            let parameters = told(&call, TOMBSTONE_FAIL, Some(found.scanned.tombstones));
            let nothing = ReadResponse::of_data(PartitionsWriter::new(&request).finish());
            call.answer_with(Ok(Bytes::from(nothing.encode())), parameters);
        }
        Err(outcome) => {
            if let Some(reason) = reason_of(&call.node, request.table.id, outcome) {
                call.answer(Err(reason));
            }
        }
    }
}

/// Whether the coordinator wants to be told of tombstones beside the answer.
fn tracks(call: &Call) -> bool {
    call.header.flags.has(Flags::TRACK_WARNINGS)
}

/// A number of tombstones, for a coordinator that wants to be told.
fn told(call: &Call, id: i32, tombstones: Option<u64>) -> Vec<Parameter> {
    let tombstones = tombstones.filter(|_| tracks(call));
    tombstones.into_iter().map(|tombstones| Parameter::of_tombstones(id, tombstones)).collect()
}

fn decode(node: &Node, payload: &Bytes) -> Result<ReadRequest, FailureReason> {
    let schema = node.schema();
    let table_of = |id: TableId| schema.table_by_id(id).filter(|table| is_stored(table)).cloned();
    ReadRequest::decode(payload, &table_of).map_err(|error| match error {
        InternodeError::UnknownTable(_) => FailureReason::IncompatibleSchema,
        error => {
            tracing::warn!(%error, "a read of another node cannot be served");
            FailureReason::Unknown
        }
    })
}

/// Whether the table is one whose rows are stored, here and on other nodes.
fn is_stored(table: &TableMetadata) -> bool {
    !table.is_virtual()
}

/// The thresholds for tombstones. A node's own tables have none, because no user writes them.
fn tombstones(node: &Node, request: &ReadRequest) -> TombstoneLimits {
    if is_local_keyspace(&request.table.keyspace) {
        return TombstoneLimits::NONE;
    }
    let options = &node.engine.options;
    TombstoneLimits {
        warn: options.tombstone_warn_threshold,
        failure: options.tombstone_failure_threshold,
        each_partition: matches!(request.partitions, Partitions::Key(_)),
    }
}

/// The reason that the coordinator is told of a failed read. None: nobody waits any more.
fn reason_of(node: &Node, table: TableId, outcome: ReadOutcome<AnswerError>) -> Option<FailureReason> {
    let error = match outcome {
        ReadOutcome::TimedOut | ReadOutcome::Failed(AnswerError::Read(ReadError::TimedOut)) => return None,
        ReadOutcome::Overloaded => return Some(FailureReason::Unknown),
        ReadOutcome::Failed(error) => error,
    };
    Some(match error {
        AnswerError::Read(ReadError::TooManyTombstones(found)) => {
            tracing::warn!("{found}");
            node.count_tombstone_failure(table);
            FailureReason::ReadTooManyTombstones
        }
        AnswerError::Read(ReadError::IndexNotAvailable { .. }) => FailureReason::IndexNotAvailable,
        AnswerError::TooLarge { .. } => {
            tracing::warn!(%error, "a read of another node is not answered with data");
            FailureReason::ReadSize
        }
        AnswerError::Read(ReadError::Stopped) => FailureReason::Unknown,
        AnswerError::Read(error) => {
            tracing::error!(%error, "a read of another node failed");
            FailureReason::Unknown
        }
    })
}

#[cfg(test)]
mod tests;
