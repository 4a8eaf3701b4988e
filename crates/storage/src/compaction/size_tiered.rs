//! Size-tiered compaction: SSTables of similar size are compacted together.
//!
//! 1. SSTables are put in buckets: one joins a bucket when its size is within [bucket_low, bucket_high] times the
//!    bucket's average, or both are below min_sstable_size.
//! 2. Of the buckets with at least min_threshold SSTables, cut to max_threshold, the one whose SSTables are smallest on
//!    average is compacted.
//! 3. When there is none, an SSTable alone is rewritten if enough of it is droppable tombstones.
//!
//! Agrees with `org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy` (whose choice by read hotness needs read
//! rates that are not kept: the smallest bucket stands in for the hottest).

use std::collections::BTreeMap;

use super::Candidate;

/// Options of the strategy, with Cassandra's defaults.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SizeTieredOptions {
    /// A bucket of fewer is left alone.
    pub min_threshold: usize,
    /// No more are compacted at once.
    pub max_threshold: usize,
    /// Lower end of a bucket, times its average.
    pub bucket_low: f64,
    /// Upper end of a bucket, times its average.
    pub bucket_high: f64,
    /// SSTables below are of one bucket.
    pub min_sstable_size: u64,
    /// Share of droppable tombstones from which an SSTable alone is compacted.
    pub tombstone_threshold: f64,
    /// Seconds that an SSTable must have been there before it is compacted alone: what could not be dropped now can not be
    /// dropped a moment later either.
    pub tombstone_compaction_interval: u32,
    /// `enabled: false`: nothing is compacted by itself.
    pub enabled: bool,
}

impl Default for SizeTieredOptions {
    fn default() -> Self {
        Self {
            min_threshold: 4,
            max_threshold: 32,
            bucket_low: 0.5,
            bucket_high: 1.5,
            min_sstable_size: 50 << 20,
            tombstone_threshold: 0.2,
            tombstone_compaction_interval: 86_400,
            enabled: true,
        }
    }
}

impl SizeTieredOptions {
    /// From a table's `compaction` map; what is missing keeps its default.
    pub fn from_map(map: &BTreeMap<String, String>) -> Self {
        fn read<T: std::str::FromStr>(map: &BTreeMap<String, String>, key: &str, default: T) -> T {
            map.get(key).and_then(|text| text.trim().parse().ok()).unwrap_or(default)
        }
        let default = Self::default();
        Self {
            min_threshold: read(map, "min_threshold", default.min_threshold).max(2),
            max_threshold: read(map, "max_threshold", default.max_threshold).max(2),
            bucket_low: read(map, "bucket_low", default.bucket_low),
            bucket_high: read(map, "bucket_high", default.bucket_high),
            min_sstable_size: read(map, "min_sstable_size", default.min_sstable_size),
            tombstone_threshold: read(map, "tombstone_threshold", default.tombstone_threshold),
            tombstone_compaction_interval: read(
                map,
                "tombstone_compaction_interval",
                default.tombstone_compaction_interval,
            ),
            enabled: read(map, "enabled", default.enabled),
        }
    }
}

/// The SSTables to compact next (their `index`), or none.
pub fn choose(candidates: &[Candidate], options: &SizeTieredOptions) -> Vec<usize> {
    if !options.enabled {
        return Vec::new();
    }
    let full = buckets(candidates, options).into_iter().filter(|bucket| bucket.len() >= options.min_threshold);
    let chosen = full.min_by(|a, b| average(a).total_cmp(&average(b)));
    if let Some(mut bucket) = chosen {
        bucket.truncate(options.max_threshold);
        return bucket.iter().map(|candidate| candidate.index).collect();
    }
    let worst = candidates
        .iter()
        .filter(|candidate| candidate.droppable_tombstones > options.tombstone_threshold)
        .filter(|candidate| candidate.age > options.tombstone_compaction_interval)
        .max_by(|a, b| a.droppable_tombstones.total_cmp(&b.droppable_tombstones));
    worst.map(|candidate| vec![candidate.index]).unwrap_or_default()
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
    let mut buckets: Vec<Vec<Candidate>> = Vec::new();
    for candidate in sorted {
        let size = candidate.size as f64;
        let small = options.min_sstable_size as f64;
        let place = buckets.iter_mut().find(|bucket| {
            let average = average(bucket);
            (size > average * options.bucket_low && size < average * options.bucket_high)
                || (size < small && average < small)
        });
        match place {
            Some(bucket) => bucket.push(candidate),
            None => buckets.push(vec![candidate]),
        }
    }
    buckets
}

#[cfg(test)]
mod tests {
    use super::*;

    /// "10 11 9 10" in MiB to candidates; "@0.5" gives droppable tombstones, "!" behind it a young SSTable.
    fn draw(picture: &str) -> Vec<Candidate> {
        let draw_one = |(index, text): (usize, &str)| {
            let age = if text.ends_with('!') { 60 } else { 100_000 };
            let (size, droppable) = text.trim_end_matches('!').split_once('@').unwrap_or((text, "0"));
            let (size, droppable_tombstones) = (size.parse::<u64>().expect("MiB"), droppable.parse().expect("share"));
            Candidate { index, size: size << 20, min_timestamp: 0, droppable_tombstones, age }
        };
        picture.split_whitespace().enumerate().map(draw_one).collect()
    }

    #[test]
    fn choices() {
        let cases: [(&str, &[usize]); 9] = [
            ("100 200@0.3 400@0.5! 800@0.1", &[1]),
            ("", &[]),
            ("100 100 100", &[]),
            ("100 110 90 100", &[2, 0, 3, 1]),
            ("1 2 3 49", &[0, 1, 2, 3]),
            ("100 100 100 100 1000 1000 1000 1000", &[0, 1, 2, 3]),
            ("100 200 400 800", &[]),
            ("100 200@0.3 400@0.5 800@0.1", &[2]),
            ("1000 1000 1000 1000 60", &[0, 1, 2, 3]),
        ];
        for (picture, expected) in cases {
            assert_eq!(choose(&draw(picture), &SizeTieredOptions::default()), expected, "{picture}");
        }
        let disabled = SizeTieredOptions { enabled: false, ..SizeTieredOptions::default() };
        assert_eq!(choose(&draw("1 1 1 1"), &disabled), Vec::<usize>::new());
        let many = "1 ".repeat(40);
        assert_eq!(choose(&draw(&many), &SizeTieredOptions::default()).len(), 32);
        assert_eq!(pending(&draw(&many), &SizeTieredOptions::default()), 2);
    }
}
