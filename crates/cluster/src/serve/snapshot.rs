//! SNAPSHOT_REQ: this node takes or clears a snapshot of one table, for a snapshot of the ring.
//!
//! A snapshot whose name the table has already is refused: it may hold what the table was long ago.
//! Agrees with `org.apache.cassandra.service.SnapshotVerbHandler`.

use bytes::Bytes;
use internode::payload::simple::SnapshotRequest;
use types::FailureReason;

use super::Call;
use crate::operations::{self, snapshots, tables};

pub(super) async fn serve(call: Call) {
    let done = match SnapshotRequest::decode(&call.payload) {
        Ok(request) => carry_out(&call, &request).await.map_err(|error| {
            let SnapshotRequest { keyspace, table, tag, .. } = &request;
            tracing::warn!(?error, keyspace, table, tag, "another node's snapshot is not taken or cleared");
            FailureReason::Unknown
        }),
        Err(_) => Err(FailureReason::Unknown),
    };
    call.answer(done.map(|()| Bytes::new()));
}

async fn carry_out(call: &Call, request: &SnapshotRequest) -> operations::Result<()> {
    let store = tables::named(&call.node, &request.keyspace, &request.table)?;
    match request.clear {
        true => snapshots::clear_of(&call.node, &store, &request.tag).await,
        false => snapshots::take(&call.node, &request.tag, &[store], false).await,
    }
}
