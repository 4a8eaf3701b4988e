//! Time window compaction: SSTables whose newest data is of one window of time become one SSTable.
//!
//! 1. SSTables that only have expired data are removed whole. They are looked for every
//!    `expired_sstable_check_frequency_seconds`; they come in addition to what follows.
//! 2. Windows from the newest on: in the current one (the newest ever seen) SSTables are compacted
//!    by size; of one before it, two or more are compacted, smallest first, at most
//!    `max_threshold`.
//! 3. If there is none of that, the smallest SSTable alone for its tombstones, if one of the
//!    tombstone options is given.
//!
//! `unsafe_aggressive_sstable_expiration` needs a system property in Cassandra, without which it
//! has no effect; here there is none. Agrees with `TimeWindowCompactionStrategy` and
//! `TimeWindowCompactionStrategyOptions` of `org.apache.cassandra.db.compaction`.

use std::collections::BTreeMap;

use super::expired::find_periodically;
use super::options::read;
use super::size_tiered::{SizeTieredOptions, largest_full_bucket};
use super::tombstones::worth_dropping;
use super::{Candidate, Choice, Memory, State};
use crate::strategy::output::Output;

/// Options of the strategy, with Cassandra's defaults.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TimeWindowOptions {
    /// The options for the current window, and those that all strategies have.
    pub size_tiered: SizeTieredOptions,
    /// `compaction_window_size` times `compaction_window_unit`, milliseconds.
    pub window_millis: i64,
    /// `timestamp_resolution`
    pub resolution: Resolution,
    /// `expired_sstable_check_frequency_seconds`, milliseconds.
    pub expired_every_millis: u64,
    /// Whether SSTables are compacted alone for their tombstones.
    pub for_tombstones: bool,
}

/// The unit of timestamps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Resolution {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Microseconds, as CQL's timestamps are.
    Microseconds,
    /// Nanoseconds.
    Nanoseconds,
}

impl Resolution {
    fn millis(self, timestamp: i64) -> i64 {
        match self {
            Self::Seconds => timestamp.saturating_mul(1000),
            Self::Milliseconds => timestamp,
            Self::Microseconds => timestamp / 1000,
            Self::Nanoseconds => timestamp / 1_000_000,
        }
    }
}

impl TimeWindowOptions {
    /// The options in a table's `compaction` map.
    pub fn from_map(map: &BTreeMap<String, String>) -> Self {
        let word = |name: &str| map.get(name).map_or("", String::as_str);
        let unit_seconds = match word("compaction_window_unit") {
            "MINUTES" => 60i64,
            "HOURS" => 3600,
            _ => 86_400,
        };
        let resolution = match word("timestamp_resolution") {
            "SECONDS" => Resolution::Seconds,
            "MILLISECONDS" => Resolution::Milliseconds,
            "NANOSECONDS" => Resolution::Nanoseconds,
            _ => Resolution::Microseconds,
        };
        let tombstone_options =
            ["unchecked_tombstone_compaction", "tombstone_compaction_interval", "tombstone_threshold"];
        Self {
            size_tiered: SizeTieredOptions::from_map(map),
            window_millis: unit_seconds
                .saturating_mul(read(map, "compaction_window_size", 1i64).max(1))
                .saturating_mul(1000),
            resolution,
            expired_every_millis: read(map, "expired_sstable_check_frequency_seconds", 600u64).saturating_mul(1000),
            for_tombstones: tombstone_options.iter().any(|name| map.get(*name).is_some_and(|value| value != "false")),
        }
    }
}

/// The SSTables to compact next.
pub fn choose(state: &State<'_>, options: &TimeWindowOptions, memory: &mut Memory) -> Option<Choice> {
    let expired = find_periodically(state, options.expired_every_millis, &mut memory.expired_checked_at, true);
    let goes = |candidate: &Candidate| expired.iter().any(|other| other.index == candidate.index);
    let free: Vec<Candidate> = state.free().into_iter().filter(|candidate| !goes(candidate)).collect();
    let windows = windows(&free, options);
    memory.highest_window = memory.highest_window.max(windows.keys().next_back().copied().unwrap_or(0));
    let mut chosen = in_windows(&windows, options, memory.highest_window).0;
    let output = Output::One { level: 0 };
    if chosen.is_empty() && options.for_tombstones {
        let worth = free.iter().filter(|candidate| worth_dropping(candidate, state, &options.size_tiered.common));
        let smallest = worth.min_by_key(|candidate| candidate.size);
        if let Some(alone) = smallest.filter(|_| expired.is_empty()) {
            return Some(Choice::tombstones(alone, output));
        }
        chosen.extend(smallest);
    }
    chosen.extend(expired);
    (!chosen.is_empty()).then(|| Choice::compaction(&chosen, output))
}

/// Estimated number of compactions that are still to be done.
pub fn pending(state: &State<'_>, options: &TimeWindowOptions, memory: &Memory) -> usize {
    let windows = windows(&state.free(), options);
    let newest = windows.keys().next_back().copied().unwrap_or(0);
    in_windows(&windows, options, memory.highest_window.max(newest)).1
}

/// SSTables by the start of their window, milliseconds since 1970.
pub fn windows(sstables: &[Candidate], options: &TimeWindowOptions) -> BTreeMap<i64, Vec<Candidate>> {
    let mut windows: BTreeMap<i64, Vec<Candidate>> = BTreeMap::new();
    for candidate in sstables {
        // whole seconds, as in Cassandra, and towards zero
        let millis = options.resolution.millis(candidate.max_timestamp) / 1000 * 1000;
        windows.entry(millis - millis % options.window_millis).or_default().push(*candidate);
    }
    windows
}

/// The SSTables of the newest window where there is something to do, and the number of compactions
/// in all windows.
fn in_windows(
    windows: &BTreeMap<i64, Vec<Candidate>>,
    options: &TimeWindowOptions,
    current: i64,
) -> (Vec<Candidate>, usize) {
    let (min, max) = (options.size_tiered.min_threshold, options.size_tiered.max_threshold);
    let mut chosen = Vec::new();
    let mut pending = 0;
    for (start, window) in windows.iter().rev() {
        let some = if *start >= current {
            largest_full_bucket(window, &options.size_tiered).filter(|_| window.len() >= min).unwrap_or_default()
        } else if window.len() >= 2 {
            let mut sorted = window.clone();
            sorted.sort_by_key(|candidate| (candidate.size, candidate.index));
            sorted.truncate(max);
            sorted
        } else {
            continue;
        };
        if some.is_empty() {
            continue;
        }
        let rest = window.len().saturating_sub(max);
        pending += 1 + if rest > min { rest.div_ceil(max) } else { 0 };
        if chosen.is_empty() {
            chosen = some;
        }
    }
    (chosen, pending)
}
