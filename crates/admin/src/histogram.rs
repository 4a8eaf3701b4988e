//! A histogram as it travels: counts by bucket. The offsets of the buckets are Cassandra's and do
//! not travel.
//!
//! Agrees with `org.apache.cassandra.utils.EstimatedHistogram`: bucket i holds values above offset
//! i-1 up to offset i, the last bucket holds values above all offsets.

use serde::{Deserialize, Serialize};

/// Counts by bucket.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct HistogramData {
    /// The counts; there is one bucket more than there are offsets.
    pub buckets: Vec<u64>,
    /// The sum of the values.
    pub sum: u64,
    /// The greatest value; 0: it is not known.
    #[serde(default)]
    pub greatest: u64,
}

impl From<metrics::Snapshot> for HistogramData {
    fn from(snapshot: metrics::Snapshot) -> Self {
        Self { buckets: snapshot.buckets, sum: snapshot.sum, greatest: snapshot.max }
    }
}

impl HistogramData {
    /// The number of values.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// The mean of the values; None without values.
    pub fn mean(&self) -> Option<f64> {
        match self.count() {
            0 => None,
            count => Some(self.sum as f64 / count as f64),
        }
    }

    /// Upper offsets of the buckets; the overflow bucket has none.
    pub fn offsets(&self) -> Vec<u64> {
        metrics::offsets(self.buckets.len().saturating_sub(1))
    }

    /// One of every `step` offsets with the number of values up to it; empty without values. The
    /// offsets are the same however great the values are.
    pub fn cumulative(&self, step: usize) -> Vec<(u64, u64)> {
        if self.count() == 0 {
            return Vec::new();
        }
        let (mut seen, mut found) = (0, Vec::new());
        for (place, (offset, count)) in (1_usize..).zip(self.offsets().into_iter().zip(&self.buckets)) {
            seen += count;
            if place.is_multiple_of(step) {
                found.push((offset, seen));
            }
        }
        found
    }

    /// The offset below which this share (0 to 1) of the values lies; 0 without values.
    pub fn percentile(&self, share: f64) -> u64 {
        let wanted = (self.count() as f64 * share).ceil() as u64;
        let mut seen = 0;
        for (index, count) in self.buckets.iter().enumerate() {
            seen += count;
            if wanted > 0 && seen >= wanted {
                return self.upper(index);
            }
        }
        0
    }

    /// The least value that there may be: one above the offset before the first used bucket.
    pub fn min(&self) -> u64 {
        match self.buckets.iter().position(|count| *count > 0) {
            None | Some(0) => 0,
            Some(index) => 1 + self.upper(index - 1),
        }
    }

    /// The greatest value that there may be: the offset of the last used bucket, or the greatest
    /// value where that is above all offsets.
    pub fn max(&self) -> u64 {
        self.buckets.iter().rposition(|count| *count > 0).map_or(0, |index| self.upper(index))
    }

    /// The figures of a column of nodetool's histograms: 50, 75, 95, 98, 99 per cent, min, max.
    pub fn column(&self) -> [u64; 7] {
        let at = |share| self.percentile(share);
        [at(0.5), at(0.75), at(0.95), at(0.98), at(0.99), self.min(), self.max()]
    }

    /// The offset of a bucket. The last bucket has none: its values are up to the greatest one.
    fn upper(&self, index: usize) -> u64 {
        let offsets = self.offsets();
        match offsets.get(index) {
            Some(offset) => *offset,
            None if self.greatest == 0 => u64::MAX,
            // the value may be in its bucket before it is known as the greatest
            None => self.greatest.max(offsets.last().copied().unwrap_or(0)),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A histogram of `count` values at each offset, over 90 offsets.
    pub(crate) fn of(values: &[(u64, u64)]) -> HistogramData {
        let mut histogram = HistogramData { buckets: vec![0; 91], ..HistogramData::default() };
        let offsets = histogram.offsets();
        for (offset, count) in values {
            let index = offsets.iter().position(|known| known == offset).expect("an offset");
            histogram.buckets[index] += count;
            histogram.sum += offset * count;
        }
        histogram
    }

    #[test]
    fn figures_are_bucket_bounds() {
        let histogram = of(&[(103, 10), (149, 70), (258, 16), (310, 2), (446, 1), (535, 1)]);
        assert_eq!(histogram.column(), [149, 149, 258, 310, 446, 87, 535]);
        assert_eq!(HistogramData::default().column(), [0; 7]);
        assert_eq!(HistogramData::default().mean(), None);
    }

    #[test]
    fn a_value_above_all_offsets_is_itself() {
        let histogram = metrics::Histogram::default();
        histogram.record(100);
        histogram.record(30_000_000);
        let data = HistogramData::from(histogram.snapshot());
        assert_eq!((data.column()[0], data.percentile(0.99), data.column()[6]), (103, 30_000_000, 30_000_000));
    }
}
