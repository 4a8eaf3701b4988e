//! The answers of each replica to the reads of a request, while somebody wants to know them
//! (EXPLAIN ANALYZE).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rows::report::{AnswerFigures, REPLICAS_MAX};

/// The answers by replica. Replicas beyond [`REPLICAS_MAX`] are left out.
#[derive(Default, Debug)]
pub struct AnswerTimes(Mutex<BTreeMap<SocketAddr, AnswerFigures>>);

impl AnswerTimes {
    /// Notes that a replica has answered after `took` with `bytes` of data. None: it has failed.
    pub(crate) fn add(&self, replica: SocketAddr, took: Duration, bytes: Option<usize>) {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if times.len() >= REPLICAS_MAX && !times.contains_key(&replica) {
            return;
        }
        let figures = times.entry(replica).or_default();
        figures.count += u64::from(bytes.is_some());
        figures.failed += u64::from(bytes.is_none());
        figures.bytes += bytes.unwrap_or(0) as u64;
        figures.micros_max = figures.micros_max.max(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    /// Takes the answers.
    pub(crate) fn take(&self) -> BTreeMap<SocketAddr, AnswerFigures> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
