//! Size-tiered compaction: SSTables of similar size are compacted together.
//!
//! 1. SSTables are put in buckets: one joins a bucket when its size is within [bucket_low,
//!    bucket_high] times the bucket's average, or both are below min_sstable_size.
//! 2. Of the buckets with at least min_threshold SSTables, cut to max_threshold, the one whose
//!    SSTables are largest on average is compacted.
//! 3. If there is none, the largest SSTable with enough droppable tombstones is compacted alone.
//!
//! Agrees with `org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy` without its choice
//! by read rates, which are not kept: of buckets that are equally hot Cassandra takes that of the
//! largest SSTables. (A comment in its source says the smallest;
//! `tests/drivers/python/compaction_choices.txt` shows what it does.)

use std::collections::BTreeMap;

use super::options::{CommonOptions, read};
use super::tombstones::worth_dropping;
use super::{Candidate, Choice, State};
use crate::strategy::output::Output;

/// Options of the strategy, with Cassandra's defaults.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SizeTieredOptions {
    /// The options of all strategies.
    pub common: CommonOptions,
    /// `min_threshold`: a bucket with fewer SSTables is left alone.
    pub min_threshold: usize,
    /// `max_threshold`: most SSTables that are compacted at once.
    pub max_threshold: usize,
    /// `bucket_low`: lower end of a bucket, times its average.
    pub bucket_low: f64,
    /// `bucket_high`: upper end of a bucket, times its average.
    pub bucket_high: f64,
    /// `min_sstable_size`, bytes: smaller SSTables are all in one bucket.
    pub min_sstable_size: u64,
}

impl Default for SizeTieredOptions {
    fn default() -> Self {
        Self {
            common: CommonOptions::default(),
            min_threshold: 4,
            max_threshold: 32,
            bucket_low: 0.5,
            bucket_high: 1.5,
            min_sstable_size: 50 << 20,
        }
    }
}

impl SizeTieredOptions {
    /// The options in a table's `compaction` map; a missing one keeps its default.
    pub fn from_map(map: &BTreeMap<String, String>) -> Self {
        let default = Self::default();
        Self {
            common: CommonOptions::of(map),
            min_threshold: read(map, "min_threshold", default.min_threshold).max(2),
            max_threshold: read(map, "max_threshold", default.max_threshold).max(2),
            bucket_low: read(map, "bucket_low", default.bucket_low),
            bucket_high: read(map, "bucket_high", default.bucket_high),
            min_sstable_size: read(map, "min_sstable_size", default.min_sstable_size),
        }
    }
}

/// The SSTables to compact next.
pub fn choose(state: &State<'_>, options: &SizeTieredOptions) -> Option<Choice> {
    let free = state.free();
    let output = Output::One { level: 0 };
    if let Some(bucket) = largest_full_bucket(&free, options) {
        return Some(Choice::compaction(&bucket, output));
    }
    let worth = free.iter().filter(|candidate| worth_dropping(candidate, state, &options.common));
    worth.max_by_key(|candidate| candidate.size).map(|candidate| Choice::tombstones(candidate, output))
}

/// The bucket with the largest SSTables, of those that have enough.
pub fn largest_full_bucket(candidates: &[Candidate], options: &SizeTieredOptions) -> Option<Vec<Candidate>> {
    let full = buckets(candidates, options).into_iter().filter(|bucket| bucket.len() >= options.min_threshold);
    let mut chosen = full.max_by(|a, b| average(a).total_cmp(&average(b)))?;
    chosen.truncate(options.max_threshold);
    Some(chosen)
}

/// How many compactions the strategy would still do.
pub fn pending(candidates: &[Candidate], options: &SizeTieredOptions) -> usize {
    buckets(candidates, options)
        .iter()
        .filter(|bucket| bucket.len() >= options.min_threshold)
        .map(|bucket| bucket.len().div_ceil(options.max_threshold))
        .sum()
}

fn average(bucket: &[Candidate]) -> f64 {
    bucket.iter().map(|candidate| candidate.size as f64).sum::<f64>() / bucket.len() as f64
}

/// Buckets of similar size, each sorted by size.
fn buckets(candidates: &[Candidate], options: &SizeTieredOptions) -> Vec<Vec<Candidate>> {
    let mut sorted = candidates.to_vec();
    sorted.sort_by_key(|candidate| (candidate.size, candidate.index));
    let small = options.min_sstable_size as f64;
    let mut buckets: Vec<(f64, Vec<Candidate>)> = Vec::new();
    for candidate in sorted {
        let size = candidate.size as f64;
        let place = buckets.iter_mut().find(|(sum, bucket)| {
            let average = sum / bucket.len() as f64;
            (size > average * options.bucket_low && size < average * options.bucket_high)
                || (size < small && average < small)
        });
        match place {
            Some((sum, bucket)) => {
                *sum += size;
                bucket.push(candidate);
            }
            None => buckets.push((size, vec![candidate])),
        }
    }
    buckets.into_iter().map(|(_, bucket)| bucket).collect()
}
