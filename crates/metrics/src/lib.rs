//! Counters and histograms with Cassandra's buckets. Every worker writes them, with relaxed atomics
//! and no lock; this crate does not know who reads them.
//!
//! Histogram offsets are those of `org.apache.cassandra.utils.EstimatedHistogram`: the first is 1,
//! each next one is 1.2 times the one before, rounded, and at least one more.

pub mod top;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Default, Debug)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds an amount.
    #[inline]
    pub fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    /// The sum of all amounts so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Buckets of a histogram: 90 up to an offset each, which reach to 25 s in microseconds as
/// Cassandra's latency histograms do, and one for greater values.
pub const LATENCY_BUCKETS: usize = 91;

/// The first `count` offsets.
pub fn offsets(count: usize) -> Vec<u64> {
    let mut offsets = Vec::with_capacity(count);
    let mut last = 1u64;
    for _ in 0..count {
        offsets.push(last);
        let next = (last as f64 * 1.2).round() as u64;
        last = next.max(last + 1);
        assert!(last > offsets[offsets.len() - 1], "offsets of buckets ascend");
    }
    offsets
}

fn latency_offsets() -> &'static [u64] {
    static OFFSETS: OnceLock<Vec<u64>> = OnceLock::new();
    OFFSETS.get_or_init(|| offsets(LATENCY_BUCKETS - 1))
}

/// How often values fell into each bucket. Bucket i counts values in (offset[i-1], offset[i]]; the
/// last bucket counts greater values.
#[derive(Debug)]
pub struct Histogram {
    buckets: [AtomicU64; LATENCY_BUCKETS],
    sum: AtomicU64,
    max: AtomicU64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self { buckets: std::array::from_fn(|_| AtomicU64::new(0)), sum: AtomicU64::new(0), max: AtomicU64::new(0) }
    }
}

/// The counts of a histogram at one moment. Values that are recorded meanwhile may be in the sum
/// and not yet in the buckets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Counts by bucket.
    pub buckets: Vec<u64>,
    /// The sum of the values.
    pub sum: u64,
    /// The greatest value.
    pub max: u64,
}

impl Histogram {
    /// Counts a value (latencies: microseconds).
    #[inline]
    pub fn record(&self, value: u64) {
        let bucket = latency_offsets().partition_point(|offset| *offset < value);
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
        if value > self.max.load(Ordering::Relaxed) {
            self.max.fetch_max(value, Ordering::Relaxed);
        }
    }

    /// The counts so far.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            buckets: self.buckets.iter().map(|bucket| bucket.load(Ordering::Relaxed)).collect(),
            sum: self.sum.load(Ordering::Relaxed),
            max: self.max.load(Ordering::Relaxed),
        }
    }
}

impl Snapshot {
    /// The values since an earlier snapshot of the same histogram. Their greatest value is not
    /// known: that of all stands in its place.
    pub fn since(&self, earlier: &Self) -> Self {
        let buckets = self.buckets.iter().zip(&earlier.buckets);
        Self {
            buckets: buckets.map(|(now, then)| now.saturating_sub(*then)).collect(),
            sum: self.sum.saturating_sub(earlier.sum),
            max: self.max,
        }
    }

    /// The values of this histogram and of another one together.
    pub fn with(mut self, other: &Self) -> Self {
        self.buckets.iter_mut().zip(&other.buckets).for_each(|(count, more)| *count += more);
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
        self
    }

    /// The number of values.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The offset below which the given share (0 to 1) of the values lies; 0 without values.
    pub fn percentile(&self, share: f64) -> u64 {
        let total = self.count();
        let wanted = (total as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if total > 0 && seen >= wanted {
                return latency_offsets().get(index).copied().unwrap_or(self.max);
            }
        }
        0
    }

    /// The mean of the values; 0 without values.
    pub fn mean(&self) -> f64 {
        match self.count() {
            0 => 0.0,
            count => self.sum as f64 / count as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_those_of_cassandra() {
        assert_eq!(offsets(14), [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 17, 20, 24]);
    }

    #[test]
    fn windows_and_sums_of_histograms() {
        let (one, two) = (Histogram::default(), Histogram::default());
        one.record(5);
        let before = one.snapshot();
        [7, 7, 9].into_iter().for_each(|value| one.record(value));
        two.record(1000);
        let window = one.snapshot().since(&before);
        assert_eq!((window.count(), window.sum), (3, 23));
        let both = window.with(&two.snapshot());
        assert_eq!((both.count(), both.sum, both.max), (4, 1023, 1000));
    }

    #[test]
    fn percentiles() {
        let histogram = Histogram::default();
        (1..=100).for_each(|value| histogram.record(value));
        let snapshot = histogram.snapshot();
        assert_eq!((snapshot.count(), snapshot.sum, snapshot.max), (100, 5050, 100));
        assert_eq!(snapshot.percentile(0.5), 50);
        assert_eq!(snapshot.percentile(0.05), 5);
        assert_eq!(Histogram::default().snapshot().percentile(0.99), 0);
    }
}
