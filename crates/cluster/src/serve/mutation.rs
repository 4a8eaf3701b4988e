//! MUTATION_REQ, READ_REPAIR_REQ and PAXOS2_COMMIT_REMOTE_REQ: a mutation of which this node is a
//! replica.
//!
//! 1. The message is passed on to the other replicas of this data center that it names, who answer
//!    the coordinator.
//! 2. The mutation is applied, and answered when the commit log has it by its mode. Where its
//!    changes of views are too large, MUTATION_REQ is refused, and the others, which bring what
//!    other replicas have, are applied in parts (`crate::replica::views::parts`).
//!
//! Tokens that this node does not own are taken all the same, unless they are to be refused
//! ([`crate::out_of_range`]). A row of a view that no SSTable can hold is left out. Refused are
//! tables of a node alone, and deletions of ranges that end at null; a hint of such a mutation is
//! forgotten ([`super::hint`]). Agrees with `org.apache.cassandra.db.MutationVerbHandler` and
//! `ReadRepairVerbHandler`.

use std::cell::Cell;

use bytes::Bytes;
use internode::{Envelope, Header, Parameter, Verb};
use rows::codec::{CodecError, MutationDecoder, peek_mutation};
use rows::{Mutation, PartitionUpdate};
use schema::TableKind;
use schema::system::is_local_keyspace;
use storage::commitlog::LogPosition;
use types::FailureReason;
use types::composite::KEY_BYTES_MAX;

use super::Call;
use crate::node::Node;
use crate::out_of_range::Asker;
use crate::out_of_range_state::RequestKind;
use crate::replica::apply::{WriteError, within};
use crate::stripes::StripeGuards;
use crate::traces::describe_write;

pub(super) async fn serve(call: Call) {
    if call.header.verb != Verb::ReadRepairReq {
        forward(&call);
    }
    let limit = call.time_left();
    let applied = match decode_sized(&call.node, &call.payload) {
        Ok((mutation, size)) => {
            if is_refused(&call, &mutation) {
                return call.answer(Err(FailureReason::Unknown));
            }
            if let Some(trace) = call.trace() {
                describe_write(&call.node, &*trace, &mutation);
            }
            // the commit log takes the bytes that came
            let (mutations, records) = ([mutation], [call.payload.slice(..size)]);
            let applied = async {
                match call.header.verb {
                    Verb::MutationReq => apply(&call.node, &mutations, &records).await,
                    // boxed: the future of other writes stays as small as it is
                    _ => {
                        Box::pin(apply_shared(&call.node, &mutations, &records)).await.map_err(|error| refused(&error))
                    }
                }
            };
            within(&call.node.env, limit, applied).await
        }
        Err(MutationDecodeError::Unfit) if is_left_out(&call.node, &call.payload) => Some(Ok(())),
        Err(undecoded) => Some(Err(undecoded.into())),
    };
    // a replica that was too slow says nothing: its coordinator has given up waiting
    if let Some(applied) = applied {
        call.answer(applied.map(|()| Bytes::new()));
    }
}

/// Whether a mutation is for a token of others, and is to be refused.
pub(super) fn is_refused(call: &Call, mutation: &Mutation) -> bool {
    let Some(update) = mutation.updates.first() else { return false };
    let from = call.header.respond_to().unwrap_or(call.from.address);
    let asker = Asker { from, keyspace: &update.table.keyspace, table: &update.table.name };
    call.node.refuses_token(RequestKind::Write, &asker, mutation.key.token)
}

/// Sends the message on to other replicas as it is, so that they answer the coordinator.
fn forward(call: &Call) {
    let to = call.header.parameters.iter().find_map(|parameter| match parameter {
        Parameter::ForwardTo(to) => Some(to),
        _ => None,
    });
    let Some(to) = to else { return };
    let mut parameters = call.header.parameters.clone();
    parameters.retain(|parameter| !matches!(parameter, Parameter::ForwardTo(_)));
    parameters.push(Parameter::RespondTo(call.from.address));
    let header = Header { parameters, ..call.header.clone() };
    for (address, _) in to {
        call.via.send(*address, Envelope { header: header.clone(), payload: call.payload.clone() });
    }
}

/// Why this node does not take a mutation that it was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum MutationDecodeError {
    /// The mutation is of a table that this node does not have.
    UnknownTable,
    /// A column of the mutation is unknown: the table does not have it here, and never had.
    UnknownColumn,
    /// The mutation cannot be read, or is one that other nodes may not send.
    Unfit,
}

impl From<MutationDecodeError> for FailureReason {
    fn from(undecoded: MutationDecodeError) -> Self {
        match undecoded {
            MutationDecodeError::UnknownTable | MutationDecodeError::UnknownColumn => Self::IncompatibleSchema,
            MutationDecodeError::Unfit => Self::Unknown,
        }
    }
}

/// A mutation of tables that this node has.
pub(super) fn decode(node: &Node, payload: &Bytes) -> Result<Mutation, MutationDecodeError> {
    decode_sized(node, payload).map(|(mutation, _)| mutation)
}

/// A mutation of tables that this node has, and the bytes that it takes of the payload. They are a
/// record of the commit log as well: no update in them was skipped.
fn decode_sized(node: &Node, payload: &Bytes) -> Result<(Mutation, usize), MutationDecodeError> {
    let schema = node.schema();
    let is_unknown = Cell::new(false);
    let table_of = |id| {
        let table = schema.table_by_id(id).cloned();
        is_unknown.set(is_unknown.get() || table.is_none());
        table
    };
    let decoded = MutationDecoder::new(&table_of).decode_next(payload);
    let (undecoded, what) = match decoded {
        _ if is_unknown.get() => {
            (MutationDecodeError::UnknownTable, "it is of a table that this node does not have".to_owned())
        }
        Err(CodecError::UnknownColumn(what)) => (MutationDecodeError::UnknownColumn, what),
        Err(error) => {
            tracing::warn!(%error, "a mutation of another node cannot be read");
            return Err(MutationDecodeError::Unfit);
        }
        Ok((None, _)) => return Err(MutationDecodeError::Unfit),
        Ok((Some(mutation), size)) => return of_others(mutation).map(|mutation| (mutation, size)),
    };
    node.note_incompatible("a mutation", &what);
    Err(undecoded)
}

/// Whether a mutation is of a view, with a partition key that fits no SSTable. A replica of
/// Cassandra makes such rows of the rows of the base, and keeps them in its batch log until they
/// are taken. Other replicas of Cassandra take them, and leave them out when they flush
/// (`SortedTableWriter.verifyPartition`).
fn is_left_out(node: &Node, payload: &[u8]) -> bool {
    let Ok(head) = peek_mutation(payload) else { return false };
    let schema = node.schema();
    let is_of_view = schema.table_by_id(head.table).is_some_and(|table| table.kind == TableKind::View);
    is_of_view && head.key.len() > KEY_BYTES_MAX
}

/// A mutation that other nodes may send.
fn of_others(mutation: Mutation) -> Result<Mutation, MutationDecodeError> {
    // what a node keeps about itself is written by nobody else
    let is_of_this_node = mutation.updates.iter().any(|update| is_local_keyspace(&update.table.keyspace));
    let ends_at_null = mutation.updates.iter().any(has_null_in_range);
    if is_of_this_node || ends_at_null { Err(MutationDecodeError::Unfit) } else { Ok(mutation) }
}

/// Whether a deletion of a range begins or ends at a clustering with a null. A coordinator of
/// Cassandra sends such a deletion where a client binds a null, and all replicas of Cassandra fail
/// at it: a replica that took it would differ from them for ever.
fn has_null_in_range(update: &PartitionUpdate) -> bool {
    let bounds = update.range_deletions.iter().flat_map(|(slice, _)| [&slice.start, &slice.end]);
    bounds.flat_map(|bound| &bound.values).any(Option::is_none)
}

impl Node {
    /// Says in the log, once a minute at most, that another node has a schema that this one does
    /// not have, or not any more: its mutations are refused until both agree.
    pub(super) fn note_incompatible(&self, message: &str, what: &str) {
        if self.incompatible.is_due(self.env.now()) {
            tracing::warn!(what, "{message} of another node does not fit the schema of this node, and is refused");
        }
    }
}

/// Applies mutations as one step, and waits for the log. `encoded`: as for
/// `Replica::apply_encoded`.
pub(super) async fn apply(node: &Node, mutations: &[Mutation], encoded: &[Bytes]) -> Result<(), FailureReason> {
    let applied = node.replica.apply_encoded(mutations, encoded, StripeGuards::new()).await;
    logged(node, applied).await.map_err(|error| refused(&error))
}

/// Does the work of [`apply`] for mutations that other replicas have or will have, so that this
/// one has to take them too: in several steps if necessary. Err: the cause of a refusal.
pub(super) async fn apply_shared(node: &Node, mutations: &[Mutation], encoded: &[Bytes]) -> Result<(), WriteError> {
    let applied = node.replica.apply_or_in_parts(mutations, encoded, StripeGuards::new()).await;
    logged(node, applied).await
}

/// Waits for the log behind a write.
async fn logged(node: &Node, applied: Result<Option<LogPosition>, WriteError>) -> Result<(), WriteError> {
    match applied? {
        Some(position) => match node.replica.logged(position)? {
            Some(log) => log.await,
            None => Ok(()),
        },
        None => Ok(()),
    }
}

/// Says in the log why a mutation is not applied; gives what its sender is told.
pub(super) fn refused(error: &WriteError) -> FailureReason {
    tracing::warn!(%error, "a mutation of another node is not applied");
    FailureReason::Unknown
}

#[cfg(test)]
mod tests;
