//! Small pieces of a table's state that strategies ask for: whether they may choose by themselves, and how large flushes are.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use schema::TableMetadata;

use super::strategy::is_enabled;

/// Whether a table's strategy may choose by itself: as the schema says (`enabled`), or as an operator said since.
#[derive(Default)]
pub struct AutoCompaction(AtomicU8);

const AS_IN_SCHEMA: u8 = 0;
const OFF: u8 = 1;

impl AutoCompaction {
    /// It may from now on, or may not, whatever the schema says.
    pub fn set(&self, on: bool) {
        self.0.store(if on { OFF + 1 } else { OFF }, Ordering::Relaxed);
    }

    /// It may.
    pub fn is_on(&self, table: &TableMetadata) -> bool {
        match self.0.load(Ordering::Relaxed) {
            AS_IN_SCHEMA => is_enabled(&table.params.compaction),
            said => said > OFF,
        }
    }
}

/// How much a new flush moves the mean: after a thousand, one percent is left of what was. As in Cassandra (`ExpMovingAverage.decayBy1000`).
const WEIGHT: f64 = 0.0046;

/// Mean bytes on disk of a table's flushes, the latest counting most. Lost with the process, as in Cassandra.
pub struct FlushSize(AtomicU64);

impl Default for FlushSize {
    fn default() -> Self {
        Self(AtomicU64::new(f64::NAN.to_bits()))
    }
}

impl FlushSize {
    /// NaN: there was none.
    pub fn mean(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// A flush of so many bytes. Flushes of a table come one after the other.
    pub fn note(&self, bytes: u64) {
        let (mean, bytes) = (self.mean(), bytes as f64);
        let mean = if mean.is_nan() { bytes } else { mean + WEIGHT * (bytes - mean) };
        self.0.store(mean.to_bits(), Ordering::Relaxed);
    }
}
