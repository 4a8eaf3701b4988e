//! Estimated histogram: counts in buckets whose limits grow by a fifth.
//!
//! Agrees with `org.apache.cassandra.utils.EstimatedHistogram` and its serializer: the first limit
//! is written twice, so that each count, overflow included, stands beside the limit below it.

use stdx::{Cursor, put_i64, put_u32, put_u64};

use crate::error::Malformed;

/// More buckets than this are a sign of corruption.
const BUCKETS_MAX: u32 = 4096;

/// Bucket i counts values above limit i-1, up to limit i; the last counts what is above all limits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    limits: Vec<i64>,
    counts: Vec<u64>,
}

impl Histogram {
    /// With so many limits: 1, then each a fifth more.
    pub fn new(limit_count: usize) -> Self {
        let mut limits: Vec<i64> = vec![1];
        while limits.len() < limit_count {
            let last = limits.last().copied().unwrap_or(1);
            let next = (last as f64 * 1.2).round() as i64;
            limits.push(next.max(last + 1));
        }
        Self { counts: vec![0; limits.len() + 1], limits }
    }

    /// The empty histogram of partition sizes in bytes.
    pub fn of_partition_sizes() -> Self {
        Self::new(155)
    }

    /// The empty histogram of cells in a partition.
    pub fn of_cell_counts() -> Self {
        Self::new(118)
    }

    /// Counts a value.
    pub fn add(&mut self, value: u64) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        let bucket = self.limits.partition_point(|limit| *limit < value);
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
    }

    /// Upper limit and count of each bucket; the overflow has the greatest limit.
    pub fn buckets(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        let limits = self.limits.iter().copied().chain([i64::MAX]);
        limits.zip(self.counts.iter().copied())
    }

    /// Number of values.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// The upper limit of the greatest bucket with a value; 0 without values.
    pub fn max(&self) -> i64 {
        self.buckets().filter(|bucket| bucket.1 > 0).last().map_or(0, |bucket| bucket.0)
    }

    /// Mean of the values, each taken for its bucket's limit.
    pub fn mean(&self) -> f64 {
        let count = self.count();
        let sum: f64 = self.buckets().map(|(limit, count)| limit as f64 * count as f64).sum();
        if count == 0 { 0.0 } else { sum / count as f64 }
    }

    /// Adds the counts of another with the same limits; one with others is left out.
    pub fn merge(&mut self, other: &Self) {
        if self.limits == other.limits {
            self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count = count.saturating_add(*more));
        }
    }

    pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Self, Malformed> {
        let at = cursor.position() as u64;
        let count = cursor.u32()?;
        if !(2..=BUCKETS_MAX).contains(&count) {
            return Err(Malformed::at(at, format!("a histogram of {count} buckets")));
        }
        let mut limits = Vec::with_capacity(count as usize);
        let mut counts = Vec::with_capacity(count as usize);
        for index in 0..count {
            let limit = cursor.i64()?;
            counts.push(cursor.u64()?);
            if index > 0 {
                limits.push(limit);
            }
        }
        Ok(Self { limits, counts })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        assert_eq!(self.counts.len(), self.limits.len() + 1, "a bucket lies below each limit, and one above all");
        put_u32(out, self.counts.len() as u32);
        for (index, count) in self.counts.iter().enumerate() {
            put_i64(out, self.limits[index.saturating_sub(1)]);
            put_u64(out, *count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_and_buckets_are_those_of_cassandra() {
        let mut histogram = Histogram::of_partition_sizes();
        assert_eq!(histogram.limits[..8], [1, 2, 3, 4, 5, 6, 7, 8]);
        assert_eq!(histogram.limits[8..14], [10, 12, 14, 17, 20, 24]);
        assert_eq!(histogram.limits.last(), Some(&3_520_571_548_412));
        assert_eq!(Histogram::of_cell_counts().limits.last(), Some(&4_139_110_981));
        for value in [0, 1, 2, 9, 10, u64::MAX] {
            histogram.add(value);
        }
        assert_eq!(histogram.counts[0], 2);
        assert_eq!((histogram.counts[1], histogram.counts[8], histogram.counts[155]), (1, 2, 1));
        let mut bytes = Vec::new();
        histogram.write(&mut bytes);
        assert_eq!(Histogram::read(&mut Cursor::new(&bytes)), Ok(histogram));
    }
}
