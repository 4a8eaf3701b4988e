//! HINT_REQ: a mutation that its target had not taken when it was written.
//!
//! 1. A hint that cannot be read is answered and forgotten: the sender would send it for ever
//!    otherwise. A hint with an unknown column is refused, so that the sender keeps it until this
//!    node has the schema of the others. So is a hint for an unknown table while the schemas of the
//!    neighbours differ from that of this node; when they agree, the table was dropped, and the
//!    hint is answered and forgotten. So is a hint for a table that is left out here because its
//!    schema cannot be read, which the log says: such a table may stay so for ever, and its hints
//!    would hold up those of all other tables.
//! 2. A hint for another node is kept for that node (a node that leaves gives away its hints).
//! 3. A hint for a partition that this node is no replica of is kept for all replicas.
//! 4. Any other hint is applied, unless its gc_grace has passed, and without the tables that were
//!    truncated since it was made. A hint that this node can never take, because it is too large,
//!    is answered and forgotten. So is a hint for a table that takes no writes here because one of
//!    its views is left out: it would hold up those of all other tables as well.
//!
//! A hint is answered when the commit log has the mutation by its mode, or the disk has the hint:
//! the sender forgets it then. The hints that a node has kept for itself are taken in the same way
//! ([`apply_own_hint`]). Agrees with `org.apache.cassandra.hints.HintVerbHandler`.

use std::cell::Cell;
use std::net::SocketAddr;
use std::sync::Weak;

use bytes::Bytes;
use hints::{Entry, Hint};
use internode::payload::hint::HintMessage;
use rows::codec::MutationDecoder;
use rows::{Mutation, PartitionUpdate};
use schema::{Schema, TableId};
use storage::StorageError;
use types::FailureReason;

use super::Call;
use super::mutation::{self, MutationDecodeError};
use crate::handoff::ApplyOwnHint;
use crate::hints::least_gc_grace;
use crate::node::Node;
use crate::out_of_range::Asker;
use crate::replica::apply::{WriteError, within};

pub(super) async fn serve(call: Call) {
    let limit = call.time_left();
    let done = within(&call.node.env, limit, take(&call.node, call.from.address, &call.payload)).await;
    // the sender sends a hint again that was not taken in time
    if let Some(done) = done {
        call.answer(done.map(|()| Bytes::new()));
    }
}

async fn take(node: &Node, from: SocketAddr, payload: &Bytes) -> Result<(), FailureReason> {
    let message = HintMessage::decode(payload).map_err(|error| {
        tracing::warn!(%error, "a hint of another node cannot be read");
        FailureReason::Unknown
    })?;
    take_decoded(node, from, &message).await
}

/// The function that applies a hint which the node has kept for itself (`Node::hint_self`).
pub(crate) fn apply_own_hint(node: Weak<Node>) -> ApplyOwnHint {
    Box::new(move |hint| {
        let node = node.upgrade();
        Box::pin(async move {
            let Some(node) = node else { return Err(FailureReason::Unknown) };
            let message = HintMessage { host_id: node.identity.host_id, hint };
            take_decoded(&node, node.identity.broadcast, &message).await
        })
    })
}

async fn take_decoded(node: &Node, from: SocketAddr, message: &HintMessage) -> Result<(), FailureReason> {
    let (Ok(hint), Some(entry)) = (Hint::decode(&message.hint), Entry::of_hint(&message.hint)) else { return Ok(()) };
    // read before the tables are looked up: a schema that comes in between counts as another one
    let schema_version = node.schema().version;
    // looked at before it is kept for another node, as Cassandra does
    let mutation = match mutation::decode(node, &message.hint.slice_ref(hint.mutation)) {
        Ok(mutation) => mutation,
        Err(undecoded) if node.may_fit_later(undecoded, schema_version) => return Err(undecoded.into()),
        Err(undecoded) => {
            node.note_forgotten(undecoded, &message.hint.slice_ref(hint.mutation));
            return Ok(());
        }
    };
    if message.host_id != node.identity.host_id {
        return node.keep_for_another(message.host_id, &entry).await;
    }
    let ring = node.ring();
    if !node.is_replica_of(&ring, &mutation) {
        node.handoff.figures.received_for_others.add(1);
        if let Some(update) = mutation.updates.first() {
            let asker = Asker { from, keyspace: &update.table.keyspace, table: &update.table.name };
            node.note_out_of_range_hint(&asker, mutation.key.token);
        }
        return match node.hint_all_replicas(&ring, &mutation, &entry) {
            true => node.hints_durable().await,
            false => Err(FailureReason::Unknown),
        };
    }
    let now_millis = node.env.clock.now_micros() / 1000;
    if !hint.is_live(least_gc_grace(&mutation), now_millis) {
        return Ok(());
    }
    let untruncated = node.without_truncated(mutation, hint.created_millis);
    match untruncated.and_then(|mutation| node.without_refused(mutation)) {
        Some(mutation) => apply(node, mutation).await,
        None => Ok(()),
    }
}

/// Applies the mutation of a hint, in parts if its changes of views are too large, because other
/// replicas have it. A mutation that is larger than the commit log takes is forgotten. Otherwise
/// the sender would send it until gc_grace has passed, and none of the hints behind it.
async fn apply(node: &Node, mutation: Mutation) -> Result<(), FailureReason> {
    match mutation::apply_shared(node, &[mutation], &[]).await {
        Err(WriteError::Storage(error @ StorageError::MutationTooLarge { .. })) => {
            tracing::warn!(%error, "a hint is forgotten: this node can never take it");
            Ok(())
        }
        applied => applied.map_err(|error| mutation::refused(&error)),
    }
}

/// The name of the first table of a mutation that the schema does not have because it is left out;
/// None: the mutation is of no such table.
fn left_out_table(schema: &Schema, mutation: &Bytes) -> Option<String> {
    if schema.left_out.is_empty() {
        return None;
    }
    let unknown = Cell::new(None);
    let table_of = |id: TableId| {
        let table = schema.table_by_id(id).cloned();
        if table.is_none() {
            unknown.set(unknown.get().or(Some(id)));
        }
        table
    };
    // the result is not wanted: an unknown table is an error
    let _ = MutationDecoder::new(&table_of).decode_next(mutation);
    let id = unknown.get()?;
    let mut left_out = schema.left_out.iter();
    left_out.find(|(_, table)| table.id == id).map(|((keyspace, name), _)| format!("{keyspace}.{name}"))
}

/// Removes the updates of tables that take no writes under a schema, because a view of theirs is
/// left out (`storage::base_views`). Gives the name of the first such table; None: there is none.
fn remove_refused(schema: &Schema, mutation: &mut Mutation) -> Option<String> {
    let is_refused = |update: &PartitionUpdate| {
        let base = Some(update.table.id);
        schema.left_out.values().any(|view| view.base_id == base)
    };
    let first = mutation.updates.iter().find(|update| is_refused(update))?;
    let name = format!("{}.{}", first.table.keyspace, first.table.name);
    mutation.updates.retain(|update| !is_refused(update));
    Some(name)
}

impl Node {
    /// A mutation without the updates of tables that take no writes, because a view of theirs is
    /// left out. None: nothing is left.
    fn without_refused(&self, mut mutation: Mutation) -> Option<Mutation> {
        let refused = remove_refused(&self.schema(), &mut mutation);
        if let Some(table) = refused.filter(|_| self.left_out_hints.is_due(self.env.now())) {
            tracing::error!(
                table,
                "hints for a table that takes no writes, because a view of it is left out, are forgotten: this node lacks \
                 writes to it, until it is repaired once the view is dropped or can be read"
            );
        }
        (!mutation.updates.is_empty()).then_some(mutation)
    }

    /// Says in the log that a hint is forgotten, and why.
    fn note_forgotten(&self, undecoded: MutationDecodeError, mutation: &Bytes) {
        let Some(table) = left_out_table(&self.schema(), mutation) else {
            let reason = FailureReason::from(undecoded).name();
            tracing::warn!(reason, "a hint for an unknown table, or with wrong values, is forgotten");
            return;
        };
        if self.left_out_hints.is_due(self.env.now()) {
            tracing::error!(
                table,
                "hints for a table that is left out, because its schema cannot be read, are forgotten: this node lacks \
                 writes to it, until it is repaired once the schema can be read"
            );
        }
    }

    /// Whether a hint that does not fit the schema of a version, which is or was that of this node,
    /// may fit a later one.
    fn may_fit_later(&self, undecoded: MutationDecodeError, schema_version: [u8; 16]) -> bool {
        match undecoded {
            // a table keeps the columns that it has dropped, so that this one has not come yet
            MutationDecodeError::UnknownColumn => true,
            MutationDecodeError::UnknownTable => self.may_lack_schema(schema_version),
            MutationDecodeError::Unfit => false,
        }
    }

    async fn keep_for_another(&self, host_id: [u8; 16], entry: &Entry) -> Result<(), FailureReason> {
        match self.handoff.store.get() {
            Some(store) if store.add(host_id, entry) => self.hints_durable().await,
            _ => Err(FailureReason::Unknown),
        }
    }

    /// Whether this node is a replica of a mutation's partition, or about to be one.
    fn is_replica_of(&self, ring: &ring::Ring, mutation: &Mutation) -> bool {
        let Some(update) = mutation.updates.first() else { return true };
        let Some(placement) = ring.placement(&update.table.keyspace) else { return true };
        let (token, local) = (mutation.key.token, ring.local_id());
        placement.natural(token).contains(&local) || placement.pending(token).contains(&local)
    }

    /// The updates of tables that were not truncated at or after a time. None: none is left.
    fn without_truncated(&self, mut mutation: Mutation, made_millis: i64) -> Option<Mutation> {
        mutation.updates.retain(|update| {
            let truncated = self.engine.table(update.table.id).and_then(|store| store.truncated_at_millis());
            truncated.is_none_or(|truncated| truncated < made_millis)
        });
        (!mutation.updates.is_empty()).then_some(mutation)
    }
}

#[cfg(test)]
mod tests {
    use rows::codec::encode_mutation;
    use schema::LeftOutTable;

    use super::*;
    use crate::testing::SimRing;

    /// The log names a table that is left out, and no other one that is unknown.
    #[test]
    fn the_table_of_a_hint_is_found_among_those_that_are_left_out() {
        let ring = SimRing::new(73, &["dc1", "dc1"]);
        ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
        let schema = ring.node(0).schema();
        let id = schema.table("ks", "t").expect("created").id;
        let mut mutation = Vec::new();
        encode_mutation(&mut mutation, &ring.row("ks", 1, 1, 1, 5));
        let mutation = Bytes::from(mutation);
        let mut without = schema.without_keyspace("ks");
        let mut left_out = |id: TableId| {
            let table = LeftOutTable { id, is_view: false, base_id: None, allow_auto_snapshot: None };
            without.left_out.insert(("ks".to_owned(), "t".to_owned()), table);
            left_out_table(&without, &mutation)
        };
        assert_eq!([left_out(id), left_out(TableId([9; 16]))], [Some("ks.t".to_owned()), None]);
        assert_eq!(left_out_table(&schema, &mutation), None);
    }

    /// A hint for the base of a view that is left out would be refused, and sent for ever.
    #[test]
    fn hints_for_the_base_of_a_view_that_is_left_out_are_forgotten() {
        let ring = SimRing::new(74, &["dc1", "dc1"]);
        ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
        let base = ring.node(0).schema().table("ks", "t").expect("created").id;
        for (base, refused) in [(base, Some("ks.t")), (TableId([9; 16]), None)] {
            let mut schema = Schema::clone(&ring.node(0).schema());
            let view =
                LeftOutTable { id: TableId([1; 16]), is_view: true, base_id: Some(base), allow_auto_snapshot: None };
            schema.left_out.insert(("ks".to_owned(), "v".to_owned()), view);
            let mut mutation = ring.row("ks", 1, 1, 1, 5);
            assert_eq!(remove_refused(&schema, &mut mutation).as_deref(), refused);
            assert_eq!(mutation.updates.is_empty(), refused.is_some());
        }
    }
}
