//! Strategies: which SSTables of a table are compacted next, and into what.
//!
//! A strategy is a function from the state of a table ([`State`]) to a [`Choice`]. It knows no
//! disk, no clock and no lock: time and dice are part of the state, and its memory from one choice
//! to the next is a [`Memory`] that the caller gives. One strategy a file; what they share is in
//! [`tombstones`], [`expired`], [`overlaps`] and [`shards`]. The SSTables of a choice are all of
//! one repair state.
//!
//! Options are those of the schema, which has checked them; an option that cannot be read keeps
//! its default. Agrees with
//! `org.apache.cassandra.db.compaction.{AbstractCompactionStrategy,CompactionStrategyManager}`.

pub mod auto;
pub mod expired;
pub mod kind;
pub mod leveled;
pub mod options;
pub mod output;
pub mod overlaps;
pub mod shards;
pub mod size_tiered;
pub mod time_window;
pub mod tombstones;
pub mod unified;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use types::Token;

use kind::Kind;
use leveled::{LEVELS, LeveledOptions};
use options::{CommonOptions, read_bool};
use output::Output;
use size_tiered::SizeTieredOptions;
use time_window::TimeWindowOptions;
use unified::UnifiedOptions;

/// The facts about an SSTable that a strategy sees.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Candidate {
    /// Its index in its list.
    pub index: usize,
    /// Bytes of its data file.
    pub size: u64,
    /// The level that its statistics name.
    pub level: u32,
    /// Token of its first partition.
    pub first: Token,
    /// Token of its last partition.
    pub last: Token,
    /// Smallest write timestamp in it.
    pub min_timestamp: i64,
    /// Greatest write timestamp in it.
    pub max_timestamp: i64,
    /// The second at which the last of its data may be purged; `u32::MAX`: some of it never may.
    pub max_local_deletion_time: u32,
    /// Estimated share of its cells that are droppable tombstones, 0 to 1.
    pub droppable: f64,
    /// When it was written, milliseconds since 1970.
    pub created: u64,
    /// Share of the ring that its tokens cover, 0 to 1; None: its statistics do not say.
    pub coverage: Option<f64>,
    /// True: a compaction has it; it is seen, but may not be chosen.
    pub compacting: bool,
}

impl Candidate {
    /// Whether some token may be in both SSTables.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

/// The state of a table from which a strategy chooses.
#[derive(Clone, Copy, Debug)]
pub struct State<'a> {
    /// SSTables of one repair state, those that are being compacted included. `index` is the
    /// position in this list.
    pub sstables: &'a [Candidate],
    /// The table's other SSTables: tombstones in `sstables` may delete data in them.
    pub others: &'a [Candidate],
    /// Smallest timestamp in memtables; `i64::MAX` if they are empty.
    pub memtable_min_timestamp: i64,
    /// The second before which tombstones must have been written to be purged.
    pub gc_before: u32,
    /// False: tombstones of these SSTables stay (`only_purge_repaired_tombstones`).
    pub may_purge: bool,
    /// The present time, milliseconds since 1970.
    pub now_millis: u64,
    /// Mean bytes of a flush; NaN: there was none yet.
    pub flush_size: f64,
    /// A random number.
    pub dice: u64,
}

impl State<'_> {
    /// SSTables that are not being compacted.
    pub fn free(&self) -> Vec<Candidate> {
        self.sstables.iter().filter(|candidate| !candidate.compacting).copied().collect()
    }

    /// Whether these are places of SSTables, each once, that are not being compacted.
    fn are_free(&self, places: &[usize]) -> bool {
        let distinct: BTreeSet<&usize> = places.iter().collect();
        let is_free = |place: &usize| self.sstables.get(*place).is_some_and(|candidate| !candidate.compacting);
        !places.is_empty() && distinct.len() == places.len() && places.iter().all(is_free)
    }

    /// All of the table's SSTables that some of these overlap, without these.
    pub fn overlapping(&self, these: &[Candidate]) -> Vec<Candidate> {
        let is_one = |other: &Candidate| these.iter().any(|one| one.index == other.index);
        let near = self.sstables.iter().filter(|other| !is_one(other));
        let all = near.chain(self.others);
        all.filter(|other| these.iter().any(|one| one.overlaps(other))).copied().collect()
    }
}

/// The memory of a strategy from one choice to the next. Lost with the process, as in Cassandra.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Memory {
    /// When fully expired SSTables were looked for last, milliseconds since 1970; None: they were
    /// not yet.
    pub expired_checked_at: Option<u64>,
    /// Start of the newest window seen, milliseconds since 1970.
    pub highest_window: i64,
    /// For each level, the number of compactions since it took part in one.
    pub rounds_without: [u32; LEVELS],
    /// The flush size that levels by density are counted from, bytes; 0: not yet known.
    pub flush_size: u64,
}

/// The SSTables to compact, and the form of the output.
#[derive(Clone, PartialEq, Debug)]
pub struct Choice {
    /// Positions in [`State::sstables`], at least one.
    pub inputs: Vec<usize>,
    /// The kind of the compaction.
    pub kind: Kind,
    /// The form of the output.
    pub output: Output,
}

impl Choice {
    fn compaction(inputs: &[Candidate], output: Output) -> Self {
        Self { inputs: inputs.iter().map(|candidate| candidate.index).collect(), kind: Kind::Compaction, output }
    }

    fn tombstones(input: &Candidate, output: Output) -> Self {
        Self { inputs: vec![input.index], kind: Kind::TombstoneCompaction, output }
    }
}

/// A table's strategy and its options.
#[derive(Clone, PartialEq, Debug)]
pub enum Strategy {
    /// `SizeTieredCompactionStrategy`
    SizeTiered(SizeTieredOptions),
    /// `LeveledCompactionStrategy`
    Leveled(LeveledOptions),
    /// `TimeWindowCompactionStrategy`
    TimeWindow(TimeWindowOptions),
    /// `UnifiedCompactionStrategy`
    Unified(UnifiedOptions),
}

impl Strategy {
    /// The strategy of a table's `compaction` map.
    pub fn of(map: &BTreeMap<String, String>) -> Self {
        match schema::params::compaction::short_class(map) {
            "LeveledCompactionStrategy" => Self::Leveled(LeveledOptions::from_map(map)),
            "TimeWindowCompactionStrategy" => Self::TimeWindow(TimeWindowOptions::from_map(map)),
            "UnifiedCompactionStrategy" => Self::Unified(UnifiedOptions::from_map(map)),
            _ => Self::SizeTiered(SizeTieredOptions::from_map(map)),
        }
    }

    /// Replaces the thresholds of the schema, in SSTables.
    pub fn with_thresholds(mut self, min: usize, max: usize) -> Self {
        let size_tiered = match &mut self {
            Self::SizeTiered(options) => options,
            Self::Leveled(options) => &mut options.size_tiered,
            Self::TimeWindow(options) => &mut options.size_tiered,
            Self::Unified(_) => return self,
        };
        (size_tiered.min_threshold, size_tiered.max_threshold) = (min.max(2), max.max(2));
        self
    }

    /// The SSTables to compact next; None: there is nothing to do.
    pub fn choose(&self, state: &State<'_>, memory: &mut Memory) -> Option<Choice> {
        let choice = match self {
            Self::SizeTiered(options) => size_tiered::choose(state, options),
            Self::Leveled(options) => leveled::choose(state, options, memory),
            Self::TimeWindow(options) => time_window::choose(state, options, memory),
            Self::Unified(options) => unified::choose(state, options, memory),
        };
        let are_free = choice.as_ref().is_none_or(|choice| state.are_free(&choice.inputs));
        assert!(are_free, "a strategy chooses SSTables once each, and none that is being compacted");
        choice
    }

    /// Estimated number of compactions that are still to be done.
    pub fn pending(&self, state: &State<'_>, memory: &Memory) -> usize {
        match self {
            Self::SizeTiered(options) => size_tiered::pending(&state.free(), options),
            Self::Leveled(options) => leveled::pending(state, options),
            Self::TimeWindow(options) => time_window::pending(state, options, memory),
            Self::Unified(options) => unified::pending(state, options, memory),
        }
    }

    /// Compacts all SSTables: each choice is a compaction of its own. `split`: not into one great
    /// SSTable.
    pub fn major(&self, state: &State<'_>, split: bool) -> Vec<Choice> {
        let free = state.free();
        let groups = match self {
            Self::Unified(_) => overlaps::connected(&free),
            _ => vec![free],
        };
        let groups = groups.into_iter().filter(|group| !group.is_empty());
        groups
            .map(|group| {
                let inputs = group.iter().map(|candidate| candidate.index).collect();
                Choice { inputs, kind: Kind::MajorCompaction, output: self.major_output(&group, split) }
            })
            .collect()
    }

    fn major_output(&self, inputs: &[Candidate], split: bool) -> Output {
        match self {
            Self::SizeTiered(_) if split => Output::Halves { total: inputs.iter().map(|input| input.size).sum() },
            Self::SizeTiered(_) | Self::TimeWindow(_) => Output::One { level: 0 },
            Self::Leveled(options) => Output::Levels { size_max: options.size_max, fanout: options.fanout },
            Self::Unified(options) => unified::output(inputs, options),
        }
    }

    /// The form of the output of SSTables that an operator named.
    pub fn named_output(&self, inputs: &[Candidate]) -> Output {
        match (self, inputs) {
            (Self::Leveled(options), [single]) if single.level > 0 => {
                Output::Sized { level: single.level, size_max: options.size_max }
            }
            (Self::Unified(options), _) => unified::output(inputs, options),
            _ => Output::One { level: 0 },
        }
    }

    /// The form of the output of a flush of about `flush_size` bytes.
    pub fn flush_output(&self, flush_size: f64) -> Output {
        match self {
            Self::Unified(options) => Output::Shards { count: shards::count(flush_size, &options.sharding) },
            _ => Output::One { level: 0 },
        }
    }
}

/// `enabled`: the strategy may choose by itself.
pub fn is_enabled(map: &BTreeMap<String, String>) -> bool {
    read_bool(map, "enabled", true)
}

/// `only_purge_repaired_tombstones`.
pub fn only_purges_repaired(map: &BTreeMap<String, String>) -> bool {
    read_bool(map, "only_purge_repaired_tombstones", false)
}

impl CommonOptions {
    fn of(map: &BTreeMap<String, String>) -> Self {
        let default = Self::default();
        Self {
            tombstone_threshold: options::read(map, "tombstone_threshold", default.tombstone_threshold),
            tombstone_interval: options::read(map, "tombstone_compaction_interval", default.tombstone_interval),
            unchecked_tombstones: read_bool(map, "unchecked_tombstone_compaction", false),
        }
    }
}
