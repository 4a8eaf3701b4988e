//! BATCH_STORE_REQ and BATCH_REMOVE_REQ: the record of a logged batch that this node keeps for its
//! coordinator ([`crate::batchlog`]).
//!
//! Agrees with `org.apache.cassandra.batchlog.BatchStoreVerbHandler` and `BatchRemoveVerbHandler`.

use bytes::Bytes;
use internode::payload::batch::StoredBatch;
use internode::payload::simple::decode_uuid;
use types::FailureReason;

use super::{Call, mutation};
use crate::in_flight_requests::STORED_SIZE;
use crate::replica::apply::within;

/// Stores a record, and answers when it is durable.
pub(super) async fn store(mut call: Call) {
    let stored = match StoredBatch::decode(&call.payload) {
        Ok(batch) => {
            call.keep(batch.mutations.len() * STORED_SIZE);
            let record = [call.node.record_of(&batch)];
            let stored = within(&call.node.env, call.time_left(), mutation::apply(&call.node, &record, &[])).await;
            call.node.batch_replay.expect_records();
            stored
        }
        Err(_) => Some(Err(FailureReason::Unknown)),
    };
    // a host that was too slow says nothing: the coordinator has given up waiting
    if let Some(stored) = stored {
        call.answer(stored.map(|()| Bytes::new()));
    }
}

/// Removes a record. There is no answer.
pub(super) async fn remove(call: Call) {
    if let Ok(id) = decode_uuid(&call.payload) {
        call.node.remove_record(&id);
    }
}
