//! Leveled compaction: SSTables of equal size in levels, where those of a level do not overlap and
//! each level may hold ten times (`fanout_size`) the bytes of the one before.
//!
//! 1. Where more than 32 SSTables wait in L0, and there is something to be done in a higher level
//!    or nothing in L0, some of L0 are compacted by size, within L0.
//! 2. From the highest level down: a level that holds more than it may gives one SSTable, the
//!    first behind the one it gave last, to the next level, together with those that it overlaps
//!    there.
//! 3. Else L0: the oldest with all that overlap them, at most `max_threshold`; if they are more
//!    than one SSTable's worth, with what they overlap in L1, and into L1; if not, they stay in L0.
//! 4. A level that has taken no part in 25 compactions gives one SSTable to the next one above it
//!    that covers it.
//! 5. If there is none of that, one SSTable alone for its tombstones, from the highest level down.
//!
//! The level in the statistics of an SSTable counts as long as it fits: an SSTable that overlaps
//! another of its level, or names a level that does not exist, counts as L0 ([`levels`]), and has
//! its true level when it is written next. (Cassandra writes 0 into its statistics.) The SSTable
//! that a level gave last is found by the youngest one in the next level. Agrees with
//! `org.apache.cassandra.db.compaction.{LeveledCompactionStrategy,
//! LeveledManifest,LeveledGenerations}`.

use std::collections::BTreeMap;

use types::Token;

use super::options::{read, read_bool};
use super::size_tiered::{SizeTieredOptions, largest_full_bucket};
use super::tombstones::worth_dropping;
use super::{Candidate, Choice, Memory, State};
use crate::strategy::output::Output;

/// Number of levels: L0 to L8.
pub const LEVELS: usize = 9;
/// Number of SSTables in L0 above which they are compacted by size.
const L0_MAX: usize = 32;
/// Compactions that a level takes no part in before it is drawn into one.
const ROUNDS_WITHOUT_MAX: u32 = 25;
/// Bytes of a level, divided by the bytes that it may hold, above which it gives an SSTable.
const SCORE_MAX: f64 = 1.001;

/// Options of the strategy, with Cassandra's defaults.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LeveledOptions {
    /// The options for L0, and those that all strategies have.
    pub size_tiered: SizeTieredOptions,
    /// `sstable_size_in_mb`, bytes.
    pub size_max: u64,
    /// `fanout_size`
    pub fanout: u64,
    /// `single_sstable_uplevel`: an SSTable that overlaps nothing in the next level goes there
    /// without being written.
    pub single_uplevel: bool,
}

impl LeveledOptions {
    /// The options in a table's `compaction` map.
    pub fn from_map(map: &BTreeMap<String, String>) -> Self {
        Self {
            size_tiered: SizeTieredOptions::from_map(map),
            size_max: read(map, "sstable_size_in_mb", 160u64).max(1).saturating_mul(1 << 20),
            fanout: read(map, "fanout_size", 10u64).max(1),
            single_uplevel: read_bool(map, "single_sstable_uplevel", false),
        }
    }

    fn bytes_max(&self, level: usize) -> f64 {
        if level == 0 {
            4.0 * self.size_max as f64
        } else {
            self.size_max as f64 * (self.fanout as f64).powi(level as i32)
        }
    }
}

/// SSTables by the level that they count for, each level but the first in the order of tokens, and
/// without overlaps.
pub fn levels(sstables: &[Candidate]) -> [Vec<Candidate>; LEVELS] {
    let mut levels: [Vec<Candidate>; LEVELS] = Default::default();
    let mut sorted = sstables.to_vec();
    sorted.sort_by_key(|candidate| (candidate.level, candidate.first, candidate.last, candidate.index));
    for candidate in sorted {
        let fits = |level: &&mut Vec<Candidate>| level.last().is_none_or(|last| last.last < candidate.first);
        let place = levels.get_mut(candidate.level as usize).filter(|level| candidate.level == 0 || fits(level));
        match place {
            Some(level) => level.push(candidate),
            None => levels[0].push(Candidate { level: 0, ..candidate }),
        }
    }
    levels[0].sort_by_key(|candidate| (candidate.max_timestamp, candidate.index));
    let count: usize = levels.iter().map(Vec::len).sum();
    assert_eq!(count, sstables.len(), "each SSTable is in one level");
    let apart = |level: &Vec<Candidate>| level.windows(2).all(|pair| pair[0].last < pair[1].first);
    debug_assert!(levels.iter().skip(1).all(apart), "SSTables of a level do not overlap");
    levels
}

/// The SSTables to compact next.
pub fn choose(state: &State<'_>, options: &LeveledOptions, memory: &mut Memory) -> Option<Choice> {
    let levels = levels(state.sstables);
    if let Some((inputs, level)) = in_levels(&levels, options, memory) {
        let output = match inputs.as_slice() {
            [_] if options.single_uplevel => Output::LevelOnly { level },
            _ => Output::Sized { level, size_max: options.size_max },
        };
        return Some(Choice::compaction(&inputs, output));
    }
    let in_l0 = by_size(&levels[0], options).map(|bucket| Choice::compaction(&bucket, Output::One { level: 0 }));
    in_l0.or_else(|| for_tombstones(&levels, state, options))
}

/// The choice in the higher levels, then in L0. None: there is nothing to do, or some of L0 have
/// to be compacted by size first.
fn in_levels(
    levels: &[Vec<Candidate>; LEVELS],
    options: &LeveledOptions,
    memory: &mut Memory,
) -> Option<(Vec<Candidate>, u32)> {
    for level in (1..LEVELS - 1).rev() {
        let free = levels[level].iter().filter(|candidate| !candidate.compacting);
        let bytes: u64 = free.map(|candidate| candidate.size).sum();
        if bytes as f64 / options.bytes_max(level) <= SCORE_MAX {
            continue;
        }
        // reads pass all of L0: that it does not grow comes first
        if by_size(&levels[0], options).is_some() {
            return None;
        }
        let inputs = up_from(levels, level);
        if !inputs.is_empty() {
            let target = next_level(&inputs, options);
            return Some((with_starved(levels, inputs, target, memory), target));
        }
    }
    let inputs = up_from_l0(levels, options);
    let target = if inputs.is_empty() { return None } else { next_level(&inputs, options) };
    Some((inputs, target))
}

/// Some SSTables of an L0 with too many.
fn by_size(l0: &[Candidate], options: &LeveledOptions) -> Option<Vec<Candidate>> {
    if l0.len() <= L0_MAX {
        return None;
    }
    let free: Vec<Candidate> = l0.iter().filter(|candidate| !candidate.compacting).copied().collect();
    largest_full_bucket(&free, &options.size_tiered)
}

/// The level that SSTables become part of when they are compacted.
fn next_level(inputs: &[Candidate], options: &LeveledOptions) -> u32 {
    let (least, most) =
        inputs.iter().fold((u32::MAX, 0), |(least, most), input| (least.min(input.level), most.max(input.level)));
    match (least, most) {
        (0, 0) if total(inputs) < options.size_max => 0,
        (least, most) if least == most => most + 1,
        (_, most) => most,
    }
}

/// One SSTable of a level and those that it overlaps in the next: the first that are not being
/// compacted.
fn up_from(levels: &[Vec<Candidate>; LEVELS], level: usize) -> Vec<Candidate> {
    let (here, above) = (&levels[level], &levels[level + 1]);
    let start = last_compacted_token(above).map_or(0, |last| here.partition_point(|candidate| candidate.first <= last));
    let in_turn = here[start..].iter().chain(&here[..start]);
    let with_overlapping = in_turn.map(|candidate| {
        let overlapping = above.iter().filter(|other| other.overlaps(candidate));
        std::iter::once(candidate).chain(overlapping).copied().collect::<Vec<_>>()
    });
    with_overlapping.into_iter().find(|inputs| inputs.iter().all(|input| !input.compacting)).unwrap_or_default()
}

/// The end of the last compaction into the level above: the last token of the youngest SSTable in
/// it.
fn last_compacted_token(above: &[Candidate]) -> Option<Token> {
    above.iter().max_by_key(|candidate| (candidate.created, candidate.last)).map(|candidate| candidate.last)
}

/// SSTables of L0, oldest first, each with all that overlap it; and those that they overlap in L1
/// if they go there.
fn up_from_l0(levels: &[Vec<Candidate>; LEVELS], options: &LeveledOptions) -> Vec<Candidate> {
    let compacting: Vec<Candidate> = levels[0].iter().filter(|candidate| candidate.compacting).copied().collect();
    let busy = span(&compacting);
    let is_busy =
        |candidate: &Candidate| busy.is_some_and(|(first, last)| candidate.first <= last && first <= candidate.last);
    let mut remaining = levels[0].clone();
    let mut chosen: Vec<Candidate> = Vec::new();
    for candidate in &levels[0] {
        if chosen.iter().any(|other| other.index == candidate.index) {
            continue;
        }
        let of_remaining = |other: &&Candidate| other.overlaps(candidate) && other.index != candidate.index;
        let near: Vec<Candidate> =
            std::iter::once(candidate).chain(remaining.iter().filter(of_remaining)).copied().collect();
        if near.iter().any(|other| other.compacting) {
            continue;
        }
        remaining.retain(|other| !near.iter().any(|one| one.index == other.index));
        let fresh = |other: &Candidate| !is_busy(other) && !chosen.iter().any(|one| one.index == other.index);
        let near: Vec<Candidate> = near.into_iter().filter(fresh).collect();
        chosen.extend(near);
        if chosen.len() > options.size_tiered.max_threshold {
            chosen.sort_by_key(|candidate| (candidate.max_timestamp, candidate.index));
            chosen.truncate(options.size_tiered.max_threshold);
            break;
        }
    }
    if total(&chosen) > options.size_max
        && let Some((first, last)) = span(&chosen)
    {
        let overlapping = |other: &&Candidate| other.first <= last && first <= other.last;
        let in_l1: Vec<Candidate> = levels[1].iter().filter(overlapping).copied().collect();
        if in_l1.iter().any(|other| other.compacting) || compacting.iter().any(|other| overlapping(&other)) {
            return Vec::new();
        }
        chosen.extend(in_l1);
    }
    if chosen.len() < 2 { Vec::new() } else { chosen }
}

/// Adds an SSTable of the highest level if that has not taken part for long. Otherwise it would
/// keep data for ever that lower levels have deleted.
fn with_starved(
    levels: &[Vec<Candidate>; LEVELS],
    mut inputs: Vec<Candidate>,
    target: u32,
    memory: &mut Memory,
) -> Vec<Candidate> {
    memory.rounds_without.iter_mut().skip(1).for_each(|rounds| *rounds = rounds.saturating_add(1));
    if let Some(rounds) = memory.rounds_without.get_mut(target as usize) {
        *rounds = 0;
    }
    let Some(highest) = (1..LEVELS).rev().find(|level| !levels[*level].is_empty()) else { return inputs };
    let Some((first, last)) = span(&inputs).filter(|(first, last)| first < last) else { return inputs };
    if memory.rounds_without[highest] > ROUNDS_WITHOUT_MAX {
        let inside = |other: &&Candidate| first <= other.first && other.last <= last && !other.compacting;
        let starved = levels[highest].iter().filter(inside);
        let starved = starved.filter(|other| inputs.iter().all(|input| input.index != other.index)).copied().next();
        inputs.extend(starved);
    }
    inputs
}

fn for_tombstones(levels: &[Vec<Candidate>; LEVELS], state: &State<'_>, options: &LeveledOptions) -> Option<Choice> {
    let common = &options.size_tiered.common;
    let of_level = |level: &Vec<Candidate>| {
        let free = level.iter().filter(|candidate| !candidate.compacting);
        let worth = free.filter(|candidate| worth_dropping(candidate, state, common));
        worth.max_by(|a, b| a.droppable.total_cmp(&b.droppable)).copied()
    };
    let found = levels.iter().rev().find_map(of_level)?;
    Some(Choice::tombstones(&found, Output::Sized { level: found.level, size_max: options.size_max }))
}

/// Estimated number of compactions that are still to be done.
pub fn pending(state: &State<'_>, options: &LeveledOptions) -> usize {
    let levels = levels(state.sstables);
    let over = levels.iter().enumerate().map(|(level, sstables)| {
        let over = total(sstables) as f64 - (options.bytes_max(level) * SCORE_MAX).floor();
        (over.max(0.0) / options.size_max as f64).ceil() as usize
    });
    let max = options.size_tiered.max_threshold;
    let by_size = if levels[0].len() > max { levels[0].len() / max } else { 0 };
    over.sum::<usize>() + by_size
}

fn total(sstables: &[Candidate]) -> u64 {
    sstables.iter().map(|candidate| candidate.size).sum()
}

fn span(sstables: &[Candidate]) -> Option<(Token, Token)> {
    let first = sstables.iter().map(|candidate| candidate.first).min()?;
    let last = sstables.iter().map(|candidate| candidate.last).max()?;
    Some((first, last))
}
