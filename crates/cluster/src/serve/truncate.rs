//! TRUNCATE_REQ: this node drops what it has of a table.
//!
//! Agrees with `org.apache.cassandra.db.TruncateVerbHandler`.

use internode::payload::simple::{Truncated, Truncation};
use types::FailureReason;

use super::Call;

pub(super) async fn serve(call: Call) {
    let truncated = truncate(&call).await;
    call.answer(truncated.map(bytes::Bytes::from));
}

async fn truncate(call: &Call) -> Result<Vec<u8>, FailureReason> {
    let of = Truncation::decode(&call.payload).map_err(|_| FailureReason::Unknown)?;
    if schema::system::is_local_keyspace(&of.keyspace) {
        return Err(FailureReason::Unknown);
    }
    call.node.truncate_here(&of.keyspace, &of.table).await.map_err(|error| {
        tracing::warn!(%error, keyspace = of.keyspace, table = of.table, "another node's truncation is not carried out");
        FailureReason::Unknown
    })?;
    Truncated { of, success: true }.encode().map_err(|_| FailureReason::Unknown)
}
