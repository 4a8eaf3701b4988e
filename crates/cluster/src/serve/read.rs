//! READ_REQ and RANGE_REQ: what this node has, as data or as a digest.
//!
//! 1. The read is tried at once on the thread of links, and goes on in the background if it would
//!    wait for the disk or pass many rows ([`crate::replica::read`]).
//! 2. The answer is made as every replica makes it ([`internode::payload::read_answer`]). Before
//!    that, conditions that Cassandra's replicas relax are relaxed ([`ReadRequest::relax`]).
//! 3. A read that takes longer than its coordinator waits is given up and not answered.
//!
//! Partitions that this node does not own are read all the same, unless such reads are to be
//! dropped, or this node has left the ring ([`crate::out_of_range`]).
//! A coordinator that wants it (TRACK_WARNINGS) is told beside the answer which thresholds the read
//! exceeds. Every coordinator is told that a search looked into many indexes. One that compares
//! what replicas have repaired (TRACK_REPAIRED_DATA) is told that this node's digest of it is not
//! conclusive, because it makes none. Agrees with `org.apache.cassandra.db.ReadCommandVerbHandler`.

use std::sync::Arc;

use bytes::Bytes;
use internode::payload::partitions::PartitionsWriter;
use internode::payload::read_answer::{Answer, AnswerError, AnswerKind, AnswerLimits};
use internode::payload::read_request::{Partitions, ReadRequest};
use internode::payload::read_response::ReadResponse;
use internode::{Flags, InternodeError};
use links::limits::MESSAGE_SIZE_MAX;
use rows::ReadError;
use rows::live::TombstoneLimits;
use schema::system::is_local_keyspace;
use schema::{TableId, TableMetadata};
use types::FailureReason;

use super::Call;
use crate::node::Node;
use crate::out_of_range::Asker;
use crate::out_of_range_state::RequestKind;
use crate::replica::read::ReadOutcome;
use crate::thresholds::{Exceeding, Measure};

/// Bytes of an answer beside its data: the envelope's header and the lengths before the data.
const ANSWER_ROOM: usize = 64 << 10;

/// Most bytes of the data of an answer, so that the message is one that peers take.
const DATA_SIZE_MAX: usize = MESSAGE_SIZE_MAX - ANSWER_ROOM;

pub(super) async fn serve(call: Call) {
    let mut request = match decode(&call.node, &call.payload) {
        Ok(request) => request,
        Err(reason) => return call.answer(Err(reason)),
    };
    match &request.partitions {
        // the coordinator asks another replica when it has waited for a while
        Partitions::Key(key) if is_refused(&call, &request, key) => return,
        // at a failure Helenus asks another replica; Cassandra, which asks no other one for a
        // range, is not left waiting
        Partitions::Range { .. } if call.node.refuses_scan(&request.table.keyspace) => {
            return call.answer(Err(FailureReason::Unknown));
        }
        _ => {}
    }
    if let Err(error) = call.node.look_up_groups(&mut request) {
        tracing::warn!(%error, "a read of another node cannot be served");
        return call.answer(Err(FailureReason::Unknown));
    }
    request.relax();
    let request = Arc::new(request);
    let wanted = if request.digest.is_some() { AnswerKind::Digest } else { AnswerKind::Data };
    let limits = AnswerLimits {
        tombstones: call.node.tombstone_limits(&request),
        size_max: DATA_SIZE_MAX,
        buffered_size_max: 0,
    };
    let tracks = call.header.flags.has(Flags::TRACK_WARNINGS);
    let answer = call.node.replica.answer(&request, wanted, limits, call.time_left(), call.trace(), tracks).await;
    let exceeded = call.node.exceeded(&answer, tracks, limits.tombstones.warn);
    let parameters = exceeded.iter().map(|exceeding| exceeding.parameter()).collect();
    let tracks_repaired = call.header.flags.has(Flags::TRACK_REPAIRED_DATA);
    let payload = |response: ReadResponse| {
        let response = if tracks_repaired { response.without_repaired_digest() } else { response };
        Bytes::from(response.encode())
    };
    match answer {
        Ok(answer) => call.answer_with(Ok(payload(answer.into_response())), parameters),
        Err(ReadOutcome::Failed(AnswerError::Read(error))) if exceeded.iter().any(|found| found.is_failure) => {
            tracing::warn!("{error}");
            if matches!(error, ReadError::TooManyTombstones(_)) {
                call.node.count_tombstone_failure(request.table.id);
            }
            let nothing = ReadResponse::of_data(PartitionsWriter::new(&request).finish());
            call.answer_with(Ok(payload(nothing)), parameters);
        }
        Err(outcome) => {
            if let Some(reason) = reason_of(&call.node, request.table.id, outcome) {
                call.answer(Err(reason));
            }
        }
    }
}

/// Whether the read of one partition is for a token of others, and is to be dropped.
fn is_refused(call: &Call, request: &ReadRequest, key: &Bytes) -> bool {
    let table = &request.table;
    let asker = Asker { from: call.from.address, keyspace: &table.keyspace, table: &table.name };
    call.node.refuses_token(RequestKind::Read, &asker, types::Token::of_key(key))
}

fn decode(node: &Node, payload: &Bytes) -> Result<ReadRequest, FailureReason> {
    let schema = node.schema();
    let table_of = |id: TableId| schema.table_by_id(id).filter(|table| is_stored(table)).cloned();
    ReadRequest::decode(payload, &table_of).map_err(|error| match error {
        error @ (InternodeError::UnknownTable(_) | InternodeError::UnknownColumn(_)) => {
            node.note_incompatible("a read", &error.to_string());
            FailureReason::IncompatibleSchema
        }
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

impl Node {
    /// The thresholds that an answer of this node exceeds. `tracks`: the coordinator wants to know
    /// all of them. `tombstones`: the number above which the answer warns.
    pub(crate) fn exceeded(
        &self,
        answer: &Result<Answer, ReadOutcome<AnswerError>>,
        tracks: bool,
        tombstones: u64,
    ) -> Vec<Exceeding> {
        let failure = |measure, number| vec![Exceeding { measure, is_failure: true, number }];
        match answer {
            Ok(answer) => {
                let mut found = Vec::new();
                if tracks {
                    let sizes = self.replica.read_sizes.get().copied().unwrap_or_default();
                    found = sizes.exceeded(answer.local_size, answer.row_index_size);
                    let number = answer.tombstones_max;
                    if number > tombstones {
                        found.push(Exceeding { measure: Measure::Tombstones, is_failure: false, number });
                    }
                }
                found.extend(Exceeding::of_indexes(answer.indexes));
                found
            }
            Err(_) if !tracks => Vec::new(),
            Err(ReadOutcome::Failed(AnswerError::Read(ReadError::TooManyTombstones(found)))) => {
                failure(Measure::Tombstones, found.scanned.tombstones)
            }
            Err(ReadOutcome::Failed(AnswerError::Read(ReadError::TooLarge { is_row_index, bytes }))) => {
                failure(if *is_row_index { Measure::RowIndexReadSize } else { Measure::LocalReadSize }, *bytes)
            }
            Err(ReadOutcome::Failed(AnswerError::Read(ReadError::TooManyIndexes { number }))) => {
                failure(Measure::Indexes, *number)
            }
            Err(_) => Vec::new(),
        }
    }

    /// The thresholds for tombstones. A node's own tables have none, because no user writes them.
    pub(crate) fn tombstone_limits(&self, request: &ReadRequest) -> TombstoneLimits {
        if is_local_keyspace(&request.table.keyspace) {
            return TombstoneLimits::NONE;
        }
        let options = &self.engine.options;
        TombstoneLimits {
            warn: options.tombstone_warn_threshold,
            failure: options.tombstone_failure_threshold,
            each_partition: matches!(request.partitions, Partitions::Key(_)),
            each_rows: u64::MAX,
        }
    }
}

/// The reason that the coordinator is told of a failed read. None: it does not wait any more, and
/// is told nothing.
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
        AnswerError::TooLarge { .. } | AnswerError::Read(ReadError::TooLarge { .. }) => {
            tracing::warn!(%error, "a read of another node is not answered with data");
            FailureReason::ReadSize
        }
        AnswerError::Read(error @ ReadError::TooManyIndexes { .. }) => {
            tracing::warn!("{error}");
            FailureReason::Unknown
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
