//! Contention: how long a statement tries, and how it makes way for another one.
//!
//! A statement that another one has overtaken waits for a random time and tries again with a later
//! ballot, until `cas_contention_timeout` is over. A round of questions may take until
//! `write_request_timeout` is over; both run from the statement's begin. Agrees with
//! `StorageProxy.doPaxos`.

use std::time::Duration;

use types::WriteKind;

use super::agreement::Agreement;
use crate::coordinator::error::{FailedCas, RequestError};
use crate::sampling::Sampler;

/// The longest pause before a statement tries again.
const PAUSE_MAX: Duration = Duration::from_millis(100);

impl Agreement<'_> {
    /// Whether the statement may try (again).
    pub fn may_try(&self) -> bool {
        self.node.env.elapsed(self.begun) < self.node.cas_contention()
    }

    /// Time that questions to replicas still have.
    pub fn time_left(&self) -> Duration {
        self.node.timeouts().write.saturating_sub(self.node.env.elapsed(self.begun))
    }

    /// Makes way: another statement's ballot is later.
    pub async fn back_off(&mut self) {
        self.contentions += 1;
        let pause_max = u64::try_from(PAUSE_MAX.as_micros()).expect("some milliseconds");
        let pause = Duration::from_micros(self.node.env.random.below(pause_max));
        self.node.env.sleep(pause).await;
    }

    /// The time to try is over; nothing of the statement is left with the replicas.
    pub fn contention_timeout(&self) -> RequestError {
        let block_for = self.block_for();
        RequestError::Cas(FailedCas::TimedOut {
            level: self.cas.serial,
            kind: WriteKind::Cas,
            received: 0,
            block_for,
            contentions: self.contentions,
        })
    }

    /// Too few replicas have answered in time.
    pub fn too_few_answers(&self, received: u32, block_for: u32) -> RequestError {
        RequestError::Cas(FailedCas::TimedOut {
            level: self.cas.serial,
            kind: WriteKind::Cas,
            // those that did not accept have answered, too
            received: received.min(block_for.saturating_sub(1)),
            block_for,
            contentions: self.contentions,
        })
    }

    /// The time to try is over before the statement's turn among those of this node came.
    pub fn lock_wait_timeout(&mut self) -> RequestError {
        self.contentions = 1;
        self.record(None);
        self.contention_timeout()
    }

    /// Counts the statement, which has ended.
    pub fn record(&self, error: Option<&RequestError>) {
        let is_unknown = matches!(error, Some(RequestError::Cas(FailedCas::Unknown { .. })));
        self.figures.record(self.node.env.elapsed(self.begun), self.contentions, is_unknown);
        if self.contentions > 0 {
            let (table, key) = (self.cas.table, &self.cas.key.key);
            self.node.sampling.add(Sampler::CasContentions, table, key, u64::from(self.contentions));
        }
    }
}
