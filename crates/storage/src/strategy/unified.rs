//! Unified compaction: levels by density, in each of which as many SSTables may overlap as its
//! scaling parameter says.
//!
//! 1. SSTables are put in levels by density (bytes by share of the ring), each level up to fanout
//!    times as dense as the one before. `T4`: fanout 4, compacted when 4 overlap; `L4`: fanout 4,
//!    compacted when 2 do; `N`: both 2.
//! 2. In each level the sets of overlapping SSTables are formed; those with at least threshold
//!    many, and what `overlap_inclusion_method` adds, are buckets.
//! 3. In the level with most overlaps, one of the buckets with most overlaps is compacted: whole
//!    up to fanout many; where more have come together than that, the oldest of them, as many as
//!    make SSTables of one of the levels above.
//! 4. Expired SSTables are added, which are looked for every
//!    `expired_sstable_check_frequency_seconds`.
//!
//! Outputs are split at the ends of [`shards`]. A level where nothing is to be done does not keep
//! others waiting (in Cassandra it can: the level with most overlaps is taken before it is asked
//! whether they are enough). `unsafe_aggressive_sstable_expiration` needs a system property in
//! Cassandra, without which it has no effect; here there is none. Agrees with
//! `org.apache.cassandra.db.compaction.UnifiedCompactionStrategy` and `unified.Controller`.

use std::collections::BTreeMap;
use std::ops::Range;

use super::expired::find_periodically;
use super::options::{read, read_bytes, read_share};
use super::overlaps::{Inclusion, Sections};
use super::shards::{self, Sharding};
use super::{Candidate, Choice, Memory, State};
use crate::strategy::output::Output;

/// Most levels: enough for any disk.
const LEVELS_MAX: usize = 64;
/// Largest absolute value of a scaling parameter; a larger one would make no difference.
const SCALING_MAX: i32 = 1 << 20;

/// Options of the strategy, with Cassandra's defaults.
#[derive(Clone, PartialEq, Debug)]
pub struct UnifiedOptions {
    /// `scaling_parameters`: one for each level; the last one is for all further levels, too.
    /// Positive: tiered; negative: leveled.
    pub scaling: Vec<i32>,
    /// How outputs are split into shards.
    pub sharding: Sharding,
    /// `flush_size_override`, bytes; 0: the measured size counts.
    pub flush_size_override: u64,
    /// `max_sstables_to_compact`: most SSTables of one compaction
    pub sstables_max: usize,
    /// `expired_sstable_check_frequency_seconds`, milliseconds.
    pub expired_every_millis: u64,
    /// `overlap_inclusion_method`
    pub inclusion: Inclusion,
}

impl UnifiedOptions {
    /// The options in a table's `compaction` map.
    pub fn from_map(map: &BTreeMap<String, String>) -> Self {
        let scaling = map.get("scaling_parameters").map_or("T4", String::as_str);
        let scaling: Option<Vec<i32>> = scaling.split(',').map(|one| parse_scaling(one.trim())).collect();
        let method = map.get("overlap_inclusion_method").map(|method| method.to_uppercase());
        Self {
            scaling: scaling.unwrap_or_else(|| vec![2]),
            sharding: Sharding {
                base: read(map, "base_shard_count", 4u32).max(1),
                target_size: read_bytes(map, "target_sstable_size", 1 << 30).max(1) as f64,
                size_min: read_bytes(map, "min_sstable_size", 100 << 20) as f64,
                growth: read_share(map, "sstable_growth", 0.333).clamp(0.0, 1.0),
            },
            flush_size_override: read_bytes(map, "flush_size_override", 0),
            sstables_max: match read(map, "max_sstables_to_compact", 0i64) {
                ..=0 => usize::MAX,
                most => most as usize,
            },
            expired_every_millis: read(map, "expired_sstable_check_frequency_seconds", 600u64).saturating_mul(1000),
            inclusion: match method.as_deref() {
                Some("NONE") => Inclusion::None,
                Some("SINGLE") => Inclusion::Single,
                _ => Inclusion::Transitive,
            },
        }
    }

    fn scaling(&self, level: usize) -> i32 {
        self.scaling.get(level).or(self.scaling.last()).copied().unwrap_or(2)
    }

    fn fanout(&self, level: usize) -> usize {
        2 + self.scaling(level).unsigned_abs() as usize
    }

    fn threshold(&self, level: usize) -> usize {
        2 + usize::try_from(self.scaling(level)).unwrap_or(0)
    }

    /// The density up to which SSTables are in the lowest level.
    fn lowest_density(&self, flush_size: u64) -> f64 {
        let base = (flush_size.max(1 << 20)) as f64 * (1.0 - 0.9 / self.fanout(0) as f64);
        (base * self.fanout(0) as f64).floor()
    }

    /// The flush size from which levels are counted. It changes only if the measured size is far
    /// from the known one, so that levels stay where they are.
    fn flush_size(&self, measured: f64, known: u64) -> u64 {
        if self.flush_size_override > 0 {
            return self.flush_size_override;
        }
        if known == 0 || (1.0 - known as f64 / measured).abs() > 0.5 {
            return ((measured / (1 << 20) as f64).ceil() as u64).saturating_mul(1 << 20);
        }
        known
    }
}

/// The scaling parameter of a text such as "T4", "L10" or "N", or of a number.
fn parse_scaling(text: &str) -> Option<i32> {
    let fanout = |digits: &str| digits.parse::<i32>().ok().filter(|fanout| *fanout >= 2);
    let parameter = match (text, text.strip_prefix('T'), text.strip_prefix('L')) {
        ("N", ..) => 0,
        (_, Some(digits), _) => fanout(digits)? - 2,
        (_, _, Some(digits)) => 2 - fanout(digits)?,
        _ => text.parse().ok()?,
    };
    Some(parameter.clamp(-SCALING_MAX, SCALING_MAX))
}

/// SSTables of about the same density.
#[derive(Clone, PartialEq, Debug)]
pub struct Level {
    /// Number of the level; 0: the least dense.
    pub index: usize,
    /// Its SSTables.
    pub sstables: Vec<Candidate>,
    /// The sets of SSTables of the level that overlap.
    pub sections: Sections,
}

impl Level {
    /// The largest number of SSTables of the level that overlap.
    pub fn overlap(&self) -> usize {
        self.sections.overlap(0..self.sections.sizes.len())
    }
}

/// The levels that have SSTables.
pub fn levels(sstables: &[Candidate], options: &UnifiedOptions, flush_size: u64) -> Vec<Level> {
    let mut levels: BTreeMap<usize, Vec<Candidate>> = BTreeMap::new();
    for candidate in sstables {
        let density = shards::density(candidate);
        let mut index = 0;
        let mut end = options.lowest_density(flush_size);
        while density >= end && index + 1 < LEVELS_MAX {
            index += 1;
            end = (end * options.fanout(index) as f64).floor();
        }
        levels.entry(index).or_default().push(*candidate);
    }
    levels.into_iter().map(|(index, sstables)| Level { index, sections: Sections::of(&sstables), sstables }).collect()
}

/// The SSTables to compact next.
pub fn choose(state: &State<'_>, options: &UnifiedOptions, memory: &mut Memory) -> Option<Choice> {
    memory.flush_size = options.flush_size(state.flush_size, memory.flush_size);
    let expired = find_periodically(state, options.expired_every_millis, &mut memory.expired_checked_at, false);
    let goes = |candidate: &Candidate| expired.iter().any(|other| other.index == candidate.index);
    let free: Vec<Candidate> = state.free().into_iter().filter(|candidate| !goes(candidate)).collect();
    let levels = levels(&free, options, memory.flush_size);
    let due = levels.iter().filter(|level| level.overlap() >= options.threshold(level.index));
    // of equals the lower one: its compactions are smaller
    let level = due.min_by_key(|level| std::cmp::Reverse(level.overlap()));
    let chosen = level.map(|level| of_level(level, options, state.dice)).unwrap_or_default();
    if chosen.is_empty() && expired.is_empty() {
        return None;
    }
    let output = output(&chosen, options);
    let all: Vec<Candidate> = chosen.into_iter().chain(expired).collect();
    Some(Choice::compaction(&all, output))
}

/// The form of the output of SSTables that are compacted together.
pub fn output(inputs: &[Candidate], options: &UnifiedOptions) -> Output {
    Output::Shards { count: shards::count(shards::combined_density(inputs), &options.sharding) }
}

fn of_level(level: &Level, options: &UnifiedOptions, dice: u64) -> Vec<Candidate> {
    let most = level.overlap();
    let mut buckets = level.sections.buckets(options.threshold(level.index), options.inclusion);
    buckets.retain(|bucket| level.sections.overlap(bucket.clone()) == most);
    let Some(place) = dice.checked_rem(buckets.len() as u64) else { return Vec::new() };
    buckets.get(place as usize).map(|bucket| of_bucket(level, bucket, options)).unwrap_or_default()
}

/// All SSTables of a bucket or, if too many overlap, its oldest: until a section would have more
/// than the limit.
fn of_bucket(level: &Level, bucket: &Range<usize>, options: &UnifiedOptions) -> Vec<Candidate> {
    let part = |run: &Range<usize>| run.start.max(bucket.start)..run.end.min(bucket.end);
    let runs = level.sections.runs.iter().map(part);
    let mut all: Vec<(Candidate, Range<usize>)> = level.sstables.iter().copied().zip(runs).collect();
    all.retain(|(_, run)| !run.is_empty());
    all.sort_by_key(|(candidate, _)| (candidate.max_timestamp, candidate.index));
    let limit = limit(level.sections.overlap(bucket.clone()), level.index, options);
    let mut counts = vec![0; bucket.len()];
    let fits = |(_, run): &(Candidate, Range<usize>)| {
        let counts = &mut counts[run.start - bucket.start..run.end - bucket.start];
        counts.iter_mut().for_each(|count| *count += 1);
        counts.iter().all(|count| *count <= limit)
    };
    all.into_iter().take_while(fits).map(|(candidate, _)| candidate).collect()
}

/// Most SSTables of a section that may be compacted at once, if `overlap` SSTables overlap.
fn limit(overlap: usize, level: usize, options: &UnifiedOptions) -> usize {
    let fanout = options.fanout(level);
    let most = options.sstables_max.max(fanout);
    if overlap <= fanout {
        overlap
    } else if overlap <= fanout.saturating_mul(options.fanout(level + 1)) || most == fanout {
        most
    } else {
        limit_of_steps(overlap.min(most), level, options)
    }
}

/// The most SSTables that, compacted at once, make one of a level above without a remainder:
/// fanout times fanout times …
fn limit_of_steps(overlap: usize, level: usize, options: &UnifiedOptions) -> usize {
    let mut pick = options.fanout(level);
    let mut above = level + 1;
    loop {
        let next = pick.saturating_mul(options.fanout(above));
        if next > overlap {
            break;
        }
        (pick, above) = (next, above + 1);
    }
    if options.scaling(level) < 0 { pick * (overlap / pick).max(1) } else { pick }
}

/// Estimated number of compactions that are still to be done.
pub fn pending(state: &State<'_>, options: &UnifiedOptions, memory: &Memory) -> usize {
    let flush_size = options.flush_size(state.flush_size, memory.flush_size);
    let levels = levels(&state.free(), options, flush_size);
    let of_level = |level: &Level| -> usize {
        let threshold = options.threshold(level.index);
        let buckets = level.sections.buckets(threshold, options.inclusion);
        buckets.into_iter().map(|bucket| level.sections.overlap(bucket) / threshold).sum()
    };
    levels.iter().map(of_level).sum()
}

#[cfg(test)]
mod tests;
