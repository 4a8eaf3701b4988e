//! Hints: mutations that a replica has not taken, kept until it takes them.
//!
//! A coordinator gives [`Node::hint`] every mutation that a replica of it could not be sent, refused
//! or did not answer in time. Agrees in role with `org.apache.cassandra.service.StorageProxy`
//! (`shouldHint`, `submitHint`) and `org.apache.cassandra.hints.HintsService`.

use std::future::{Ready, ready};

use ring::Endpoint;
use rows::Mutation;
use types::FailureReason;

use crate::node::Node;

/// Completes when every hint that was kept before the wait began is durable.
pub type HintsDurable = Ready<Result<(), FailureReason>>;

impl Node {
    /// Keeps a mutation for an endpoint that has not taken it. True: it is kept, and will be sent
    /// when the endpoint is up. False: there is no hint, because hinted handoff is off or the
    /// endpoint has been down for too long; the endpoint gets the mutation by read repair or repair.
    /// Never waits.
    pub fn hint(&self, _endpoint: &Endpoint, _mutation: &Mutation) -> bool {
        self.hints_refused.add(1);
        false
    }

    /// The wait that consistency level ANY needs: the hints that [`Self::hint`] has kept so far are
    /// on the disk.
    pub fn hints_durable(&self) -> HintsDurable {
        ready(Err(FailureReason::Unknown))
    }
}
