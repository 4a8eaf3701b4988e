//! Logged batches: all of their mutations happen, or none ([`crate::batchlog`]).

mod distributed;
mod hosts;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use rows::Mutation;
use rows::command::TraceSink;
use types::{Consistency, WriteKind};

use super::acknowledgement::Acknowledgement;
use super::error::RequestError;
use crate::node::Node;
use crate::stripes::StripeGuards;

impl Node {
    /// Writes the mutations of a logged batch: after a crash all of them are there, or none.
    /// `trace`: where trace lines go; None: the request is not traced.
    pub async fn write_batch(
        &self,
        mutations: Vec<Mutation>,
        level: Consistency,
        trace: Option<Arc<dyn TraceSink>>,
    ) -> Result<Option<Acknowledgement>, RequestError> {
        if let Some(others) = self.ring_peers() {
            return Box::pin(self.write_batch_distributed(others.traced(trace), mutations, level)).await;
        }
        let answers = self.plan_write(&mutations, level, WriteKind::BatchLog)?;
        let recorded = self.with_record(mutations);
        let timeout = self.timeouts().write;
        let sent = self.send(answers, timeout, self.replica.apply(&recorded, StripeGuards::new())).await;
        sent.map_err(|error| error.of_mutations(&recorded))
    }
}
