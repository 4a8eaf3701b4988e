//! Histogram of the times at which tombstones may go: local deletion times of deletions and of what
//! expires.
//!
//! Times are rounded up to a minute; beyond [`BINS_MAX`] distinct ones the two nearest are joined
//! at their weighted mean. Agrees with
//! `org.apache.cassandra.utils.streamhist.StreamingTombstoneHistogramBuilder` and
//! `TombstoneHistogram`.

use std::collections::BTreeMap;

use rows::codec::DeletionTimeForm;
use stdx::{Cursor, put_f64, put_i64, put_u32, put_u64};

use crate::error::Malformed;

/// Bins of a finished histogram.
const BINS_MAX: usize = 100;
/// More bins than this in a file are a sign of corruption: Cassandra writes [`BINS_MAX`] unless
/// told otherwise.
const BINS_READ_MAX: u32 = 100_000;
/// Distinct times that are kept until joined.
const SPOOL_MAX: usize = 1000;
const ROUND_SECONDS: i64 = 60;
/// Greatest local deletion time.
const TIME_MAX: i64 = u32::MAX as i64 - 1;
/// Greatest local deletion time before `oa`.
const SIGNED_TIME_MAX: i64 = i32::MAX as i64 - 1;

// joining leaves more times than a finished histogram has, so that the last joining decides
const _: () = assert!(SPOOL_MAX / 2 > BINS_MAX && BINS_MAX < BINS_READ_MAX as usize);

/// Times (seconds) and how many tombstones have them, ascending.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TombstoneHistogram {
    bins: BTreeMap<i64, u64>,
}

fn round_up(seconds: i64) -> i64 {
    seconds.saturating_add(ROUND_SECONDS - 1) / ROUND_SECONDS * ROUND_SECONDS
}

impl TombstoneHistogram {
    /// Counts a tombstone.
    pub fn add(&mut self, local_deletion_time: u32) {
        *self.bins.entry(round_up(i64::from(local_deletion_time))).or_default() += 1;
        if self.bins.len() > SPOOL_MAX {
            self.shrink(SPOOL_MAX / 2);
        }
    }

    /// Joins nearest neighbours until at most `limit` bins are left.
    fn shrink(&mut self, limit: usize) {
        while self.bins.len() > limit {
            let pairs = self.bins.iter().zip(self.bins.iter().skip(1));
            let nearest = pairs.min_by_key(|((a, _), (b, _))| b.abs_diff(**a));
            let Some(((a, a_count), (b, b_count))) = nearest else { return };
            let (a, a_count, b, b_count) = (*a, *a_count, *b, *b_count);
            let sum = a_count.saturating_add(b_count);
            let mean =
                (i128::from(a) * i128::from(a_count) + i128::from(b) * i128::from(b_count)) / i128::from(sum.max(1));
            let mean = (mean as i64).min(TIME_MAX);
            let joined = round_up(mean.max(a + 1).min(b));
            self.bins.remove(&a);
            self.bins.remove(&b);
            *self.bins.entry(joined).or_default() += sum;
        }
    }

    /// Ready to be written.
    pub fn finish(mut self) -> Self {
        let before: u64 = self.bins.values().sum();
        self.shrink(BINS_MAX);
        let after: u64 = self.bins.values().sum();
        assert!(self.bins.len() <= BINS_MAX && before == after, "a histogram of {before} tombstones counts {after}");
        self
    }

    /// Times and counts.
    pub fn bins(&self) -> impl Iterator<Item = (i64, u64)> + '_ {
        self.bins.iter().map(|(time, count)| (*time, *count))
    }

    /// About how many tombstones have a time up to `time`: what a compaction could drop then. A bin
    /// counts in part when `time` lies between it and the one before.
    pub fn sum(&self, time: i64) -> f64 {
        let mut sum = 0.0;
        let mut previous: Option<(i64, f64)> = None;
        for (point, count) in self.bins() {
            let count = count as f64;
            if point > time {
                let Some((before, before_count)) = previous else { return 0.0 };
                let weight = (time as f64 - before as f64) / (point as f64 - before as f64);
                let at = before_count + (count - before_count) * weight;
                return sum - before_count + (before_count + at) * weight / 2.0 + before_count / 2.0;
            }
            sum += count;
            previous = Some((point, count));
        }
        sum
    }

    /// Signed: points are doubles and counts longs. Times that are none are as late as the form can
    /// say.
    pub(super) fn read(cursor: &mut Cursor<'_>, form: DeletionTimeForm) -> Result<Self, Malformed> {
        cursor.u32()?;
        let at = cursor.position() as u64;
        let count = cursor.u32()?;
        if count > BINS_READ_MAX {
            return Err(Malformed::at(at, format!("a tombstone histogram of {count} bins")));
        }
        let mut bins = BTreeMap::new();
        for _ in 0..count {
            let (point, count) = match form {
                DeletionTimeForm::Signed => (within(cursor.f64()? as i64, SIGNED_TIME_MAX), cursor.u64()?),
                DeletionTimeForm::Unsigned => (within(cursor.i64()?, TIME_MAX), u64::from(cursor.u32()?)),
            };
            let bin: &mut u64 = bins.entry(point).or_default();
            *bin = bin.saturating_add(count.min(i32::MAX as u64));
        }
        Ok(Self { bins })
    }

    /// Gives how many bytes of what Cassandra reserves for it are not used.
    pub(super) fn write(&self, out: &mut Vec<u8>, form: DeletionTimeForm) -> usize {
        put_u32(out, self.bins.len() as u32);
        put_u32(out, self.bins.len() as u32);
        for (point, count) in self.bins() {
            let count = count.min(i32::MAX as u64);
            match form {
                DeletionTimeForm::Signed => {
                    put_f64(out, point as f64);
                    put_u64(out, count);
                }
                DeletionTimeForm::Unsigned => {
                    put_i64(out, point);
                    put_u32(out, count as u32);
                }
            }
        }
        if form == DeletionTimeForm::Unsigned { self.bins.len() * 4 } else { 0 }
    }
}

fn within(point: i64, most: i64) -> i64 {
    if (0..=most).contains(&point) { point } else { most }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_rounded_and_joined() {
        let mut histogram = TombstoneHistogram::default();
        for time in [60, 61, 119, 120] {
            histogram.add(time);
        }
        assert_eq!(histogram.bins().collect::<Vec<_>>(), [(60, 1), (120, 3)]);
        for time in 0..50_000u32 {
            histogram.add(time * 977);
        }
        let histogram = histogram.finish();
        assert!(histogram.bins().count() <= BINS_MAX);
        assert_eq!(histogram.bins().map(|bin| bin.1).sum::<u64>(), 50_004);
        for form in [DeletionTimeForm::Unsigned, DeletionTimeForm::Signed] {
            let mut bytes = Vec::new();
            histogram.write(&mut bytes, form);
            assert_eq!(TombstoneHistogram::read(&mut Cursor::new(&bytes), form), Ok(histogram.clone()));
        }
    }
}
