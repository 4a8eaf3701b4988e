//! COUNTER_MUTATION_REQ: increments that this node leads
//! ([`crate::coordinator::counter::distributed`]).

use bytes::Bytes;
use internode::payload::counter::CounterMutation;
use types::FailureReason;

use super::{Call, mutation};

pub(super) async fn serve(call: Call) {
    let counted = count(&call).await;
    call.answer(counted.map(|()| Bytes::new()));
}

async fn count(call: &Call) -> Result<(), FailureReason> {
    let CounterMutation { mutation, level } =
        CounterMutation::decode(&call.payload).map_err(|_| FailureReason::Unknown)?;
    let mutation = mutation::decode(&call.node, &mutation)?;
    if mutation::is_refused(call, &mutation) {
        return Err(FailureReason::Unknown);
    }
    let counted = call.node.count_as_leader(mutation, level, call.time_left(), call.trace()).await;
    counted.map_err(|error| {
        tracing::debug!(?error, "increments of another node are not counted");
        FailureReason::Unknown
    })
}
