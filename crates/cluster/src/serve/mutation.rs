//! MUTATION_REQ, READ_REPAIR_REQ and PAXOS2_COMMIT_REMOTE_REQ: a mutation of which this node is a
//! replica.
//!
//! 1. The message is passed on to the other replicas of this data centre that it names, who answer
//!    the coordinator.
//! 2. The mutation is applied, and answered when the commit log has it by its mode.
//!
//! Tokens that this node does not own are taken all the same, as Cassandra does by default. Agrees
//! with `org.apache.cassandra.db.MutationVerbHandler` and `ReadRepairVerbHandler`.

use std::cell::Cell;

use bytes::Bytes;
use internode::{Envelope, Header, Parameter, Verb};
use rows::Mutation;
use rows::codec::decode_mutation;
use schema::system::is_local_keyspace;
use types::FailureReason;

use super::Call;
use crate::node::Node;
use crate::replica::apply::{WriteError, within};
use crate::stripes::Held;

pub(super) async fn serve(call: Call) {
    if call.header.verb != Verb::ReadRepairReq {
        forward(&call);
    }
    let limit = call.rest();
    let applied = match decode(&call.node, &call.payload) {
        Ok(mutation) => {
            describe(&call, &mutation);
            within(&call.node.env, limit, apply(&call.node, &[mutation])).await
        }
        Err(reason) => Some(Err(reason)),
    };
    // a replica that was too slow says nothing: its coordinator has given up waiting
    if let Some(applied) = applied {
        call.answer(applied.map(|()| Bytes::new()));
    }
}

/// Says in the trace what is done with a mutation.
fn describe(call: &Call, mutation: &Mutation) {
    let Some(trace) = call.trace() else { return };
    trace.event("Appending to commitlog".to_owned());
    let (shard, _) = call.node.shard_of(mutation.key.token);
    for update in &mutation.updates {
        trace.event(format!("Adding to {} memtable of shard {shard}", update.table.name));
    }
}

/// Sends the message on as it is, so that the replicas answer whom it came from.
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

/// A mutation of tables that this node has.
pub(super) fn decode(node: &Node, payload: &Bytes) -> Result<Mutation, FailureReason> {
    let schema = node.schema();
    let is_unknown = Cell::new(false);
    let table_of = |id| {
        let table = schema.table_by_id(id).cloned();
        is_unknown.set(is_unknown.get() || table.is_none());
        table
    };
    let decoded = decode_mutation(payload, &table_of);
    if is_unknown.get() {
        return Err(FailureReason::IncompatibleSchema);
    }
    let mutation = decoded.ok().flatten().ok_or(FailureReason::Unknown)?;
    // what a node keeps about itself is written by nobody else
    let is_of_this_node = mutation.updates.iter().any(|update| is_local_keyspace(&update.table.keyspace));
    if is_of_this_node { Err(FailureReason::Unknown) } else { Ok(mutation) }
}

/// Applies mutations as one step, and waits for the log.
pub(super) async fn apply(node: &Node, mutations: &[Mutation]) -> Result<(), FailureReason> {
    let applied = async {
        match node.replica.apply(mutations, Held::new()).await? {
            Some(position) => match node.replica.logged(position)? {
                Some(log) => log.await,
                None => Ok(()),
            },
            None => Ok(()),
        }
    };
    applied.await.map_err(|error: WriteError| {
        tracing::warn!(%error, "a mutation of another node is not applied");
        FailureReason::Unknown
    })
}
