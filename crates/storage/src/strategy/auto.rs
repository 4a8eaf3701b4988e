//! Small pieces of a table's state that strategies ask for: whether they may choose by themselves,
//! with how many SSTables, and how large flushes are.

use std::collections::BTreeMap;

use env::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use schema::TableMetadata;
use schema::params::compaction::is_known;

use super::options::read;
use super::{Strategy, is_enabled};

/// Whether a table's strategy may choose by itself: as the schema says (`enabled`), or as an
/// operator said since.
#[derive(Default)]
pub struct AutoCompaction(AtomicU8);

const AS_IN_SCHEMA: u8 = 0;
const OFF: u8 = 1;

impl AutoCompaction {
    /// Lets compactions begin by themselves from now on, or not, whatever the schema says.
    pub fn set(&self, on: bool) {
        self.0.store(if on { OFF + 1 } else { OFF }, Ordering::Relaxed);
    }

    /// Whether compactions may begin by themselves. Never under a strategy that is not known here:
    /// another one in its place would merge what it keeps apart, as windows of time.
    pub fn is_on(&self, table: &TableMetadata) -> bool {
        if !is_known(&table.params.compaction) {
            return false;
        }
        match self.0.load(Ordering::Relaxed) {
            AS_IN_SCHEMA => is_enabled(&table.params.compaction),
            said => said > OFF,
        }
    }
}

/// `min_threshold` and `max_threshold`: as the schema says, or as an operator said since the start.
/// Agrees with `ColumnFamilyStore.setCompactionThresholds`: the unified strategy has none, and
/// keeps what is set.
#[derive(Default)]
pub struct Thresholds(AtomicU64);

impl Thresholds {
    /// Sets the thresholds from now on, whatever the schema says; `min` is at least 1.
    pub fn set(&self, min: u32, max: u32) {
        self.0.store(u64::from(min) << 32 | u64::from(max), Ordering::Relaxed);
    }

    fn overridden(&self) -> Option<(u32, u32)> {
        let said = self.0.load(Ordering::Relaxed);
        (said != 0).then_some(((said >> 32) as u32, said as u32))
    }

    /// The thresholds that are in force.
    pub fn get(&self, map: &BTreeMap<String, String>) -> (u32, u32) {
        self.overridden().unwrap_or_else(|| (read(map, "min_threshold", 4), read(map, "max_threshold", 32)))
    }

    /// A table's strategy with the thresholds that are in force.
    pub fn strategy(&self, map: &BTreeMap<String, String>) -> Strategy {
        let strategy = Strategy::of(map);
        match self.overridden() {
            None => strategy,
            Some((min, max)) => strategy.with_thresholds(min as usize, max as usize),
        }
    }
}

/// Weight of a new flush in the mean: after a thousand flushes one percent is left of the former
/// mean. As in Cassandra (`ExpMovingAverage.decayBy1000`).
const WEIGHT: f64 = 0.0046;

/// Mean bytes on disk of a table's flushes, the latest counting most. Lost with the process, as in
/// Cassandra.
pub struct FlushSize(AtomicU64);

impl Default for FlushSize {
    fn default() -> Self {
        Self(AtomicU64::new(f64::NAN.to_bits()))
    }
}

impl FlushSize {
    /// The mean in bytes; NaN: there was no flush yet.
    pub fn mean(&self) -> f64 {
        f64::from_bits(self.0.load(Ordering::Relaxed))
    }

    /// Notes a flush of so many bytes. Flushes of a table come one after the other.
    pub fn note(&self, bytes: u64) {
        let (mean, bytes) = (self.mean(), bytes as f64);
        let mean = if mean.is_nan() { bytes } else { mean + WEIGHT * (bytes - mean) };
        self.0.store(mean.to_bits(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SSTables of a table that Cassandra 4 compacted by `DateTieredCompactionStrategy` stay as
    /// they are until the table is altered. By size its windows would become one.
    #[test]
    fn a_strategy_that_is_not_known_never_begins() {
        let schema = schema::system::schema();
        let mut table = TableMetadata::clone(schema.table("system", "local").expect("a built-in table"));
        for (class, is_known) in [("DateTieredCompactionStrategy", false), ("TimeWindowCompactionStrategy", true)] {
            let class = format!("org.apache.cassandra.db.compaction.{class}");
            table.params.compaction = BTreeMap::from([("class".to_owned(), class)]);
            let auto = AutoCompaction::default();
            assert_eq!(auto.is_on(&table), is_known);
            auto.set(true);
            assert_eq!(auto.is_on(&table), is_known, "an operator says nothing of the strategy");
        }
    }
}
