//! The form of a compaction's output: one SSTable or several, their levels, and where one ends and
//! the next begins. Pure: from keys and bytes it decides when to begin another.
//!
//! Agrees with `org.apache.cassandra.db.compaction.writers` and `unified.ShardedCompactionWriter`.

use env::rare::{Rare, happens};
use types::Token;

use super::shards;

/// Bytes of the smallest part that is still halved (`SplittingSizeTieredCompactionWriter`).
const HALF_MIN: u64 = 50_000_000;
/// Most halvings.
const HALVINGS_MAX: usize = 20;

/// The form of a compaction's output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// One SSTable.
    One {
        /// The level of the outputs.
        level: u32,
    },
    /// SSTables of about a size.
    Sized {
        /// The level of the outputs.
        level: u32,
        /// Bytes of a data file from which the next is begun.
        size_max: u64,
    },
    /// SSTables of about a size that fill one level after the other, from the first on.
    Levels {
        /// Bytes of a data file from which the next is begun.
        size_max: u64,
        /// How much more a level may hold than the one before.
        fanout: u64,
    },
    /// SSTables of half the bytes, a quarter, and so on.
    Halves {
        /// Bytes of the inputs.
        total: u64,
    },
    /// SSTables that end where equal parts of the ring do.
    Shards {
        /// Number of parts of the ring.
        count: u32,
    },
    /// The SSTable stays as it is, and only gets another level.
    LevelOnly {
        /// The new level.
        level: u32,
    },
}

/// The partitions that go into the SSTable that is begun next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Share {
    /// All partitions of the inputs.
    All,
    /// The partitions of so many bytes of the output, or of the bytes that are left.
    Bytes(u64),
    /// The partitions in a part of the ring.
    OfRing {
        /// The part begins behind this token.
        after: Token,
        /// The last token of the part. The least token: the part ends where the ring ends.
        end: Token,
    },
}

/// Decides when the next SSTable begins.
#[derive(Clone, Debug)]
pub struct Splitter {
    output: Output,
    /// Level of the SSTable that is written.
    level: u32,
    /// Bytes that the level has.
    in_level: u64,
    /// With [`Output::Halves`], the number of the part that is written, from 0.
    part: usize,
    /// With [`Output::Shards`], the boundary that was passed last; the least token before the
    /// first one.
    passed: Token,
    /// With [`Output::Shards`], the boundaries that are still ahead, nearest last.
    ahead: Vec<Token>,
    /// The first SSTable ends behind its first partition (a rare event).
    ends_early: bool,
}

impl Splitter {
    /// A splitter at the beginning of the output.
    pub fn new(output: Output) -> Self {
        let (level, ahead) = match output {
            Output::One { level } | Output::Sized { level, .. } | Output::LevelOnly { level } => (level, Vec::new()),
            Output::Levels { .. } => (1, Vec::new()),
            Output::Halves { .. } => (0, Vec::new()),
            Output::Shards { count } => (0, shards::boundaries(count).into_iter().rev().collect()),
        };
        let (passed, ends_early) = (Token::MIN, happens(Rare::OutputEnds));
        Self { output, level, in_level: 0, part: 0, passed, ahead, ends_early }
    }

    /// The level of the SSTable that is written, or begun next.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// Whether the SSTable's share of the ring is noted in its statistics.
    pub fn notes_coverage(&self) -> bool {
        matches!(self.output, Output::Shards { .. })
    }

    /// The partitions that the SSTable will have that is begun now.
    pub fn share(&self) -> Share {
        match self.output {
            Output::One { .. } | Output::LevelOnly { .. } => Share::All,
            Output::Sized { size_max, .. } | Output::Levels { size_max, .. } => Share::Bytes(size_max),
            Output::Halves { total } if is_halved(total, self.part) => Share::Bytes(part_size(total, self.part)),
            Output::Halves { .. } if self.part == 0 => Share::All,
            // the last part has as much as the one before it
            Output::Halves { total } => Share::Bytes(part_size(total, self.part - 1)),
            Output::Shards { .. } => {
                Share::OfRing { after: self.passed, end: self.ahead.last().copied().unwrap_or(Token::MIN) }
            }
        }
    }

    /// Called before a partition: whether it goes into another SSTable than the partition before
    /// it. `written`: bytes of the present SSTable.
    pub fn splits_before(&mut self, token: Token, written: u64) -> bool {
        match self.output {
            Output::One { .. } => self.ends_early(written),
            Output::LevelOnly { .. } => false,
            Output::Sized { size_max, .. } => written > size_max || self.ends_early(written),
            Output::Levels { size_max, fanout } => written > size_max && self.end_of_sstable(written, size_max, fanout),
            Output::Halves { total } => {
                let ends = written > part_size(total, self.part) && is_halved(total, self.part);
                self.part += usize::from(ends);
                ends
            }
            Output::Shards { .. } => {
                let before = self.ahead.len();
                while let Some(end) = self.ahead.pop_if(|end| *end < token) {
                    self.passed = end;
                }
                self.ahead.len() < before
            }
        }
    }

    /// Whether the present SSTable ends early, a rare event that was drawn for the whole
    /// compaction. It happens once at most: a compaction takes two SSTables at least, so there are
    /// never more after it than before. A table for which two SSTables are enough
    /// (`system.batches`) is then compacted a few times more. With a draw before each partition, a
    /// table of some hundred partitions was compacted for ever.
    fn ends_early(&mut self, written: u64) -> bool {
        written > 0 && std::mem::take(&mut self.ends_early)
    }

    fn end_of_sstable(&mut self, written: u64, size_max: u64, fanout: u64) -> bool {
        self.in_level = self.in_level.saturating_add(written);
        let level_max = (fanout as f64).powi(self.level as i32) * size_max as f64;
        if self.in_level as f64 > level_max {
            (self.in_level, self.level) = (0, self.level + 1);
        }
        true
    }
}

/// Bytes of a part: a half, a quarter …
fn part_size(total: u64, part: usize) -> u64 {
    total >> (part + 1).min(63)
}

/// Whether another part comes behind this one: the rest is halved once more.
fn is_halved(total: u64, part: usize) -> bool {
    part_size(total, part) >= HALF_MIN && part + 1 < HALVINGS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Levels and bytes of the SSTables that partitions of 1 MiB become.
    fn written(output: Output, partitions: i64) -> Vec<(u32, u64)> {
        let mut splitter = Splitter::new(output);
        let mut sstables = vec![(splitter.level(), 0)];
        for index in 0..partitions {
            let token = Token((i128::from(index) * (1 << 64) / i128::from(partitions) + i128::from(i64::MIN)) as i64);
            let bytes = sstables.last().map_or(0, |(_, bytes)| *bytes);
            if splitter.splits_before(token, bytes) && bytes > 0 {
                sstables.push((splitter.level(), 0));
            }
            if let Some((_, bytes)) = sstables.last_mut() {
                *bytes += MIB;
            }
        }
        sstables.iter().map(|(level, bytes)| (*level, bytes / MIB)).collect()
    }

    #[test]
    fn outputs_are_split() {
        assert_eq!(written(Output::One { level: 3 }, 100), [(3, 100)]);
        assert_eq!(written(Output::Sized { level: 2, size_max: 40 * MIB }, 100), [(2, 41), (2, 41), (2, 18)]);
        let levels = written(Output::Levels { size_max: 10 * MIB, fanout: 2 }, 100);
        assert_eq!(levels, [(1, 11), (1, 11), (2, 11), (2, 11), (2, 11), (2, 11), (3, 11), (3, 11), (3, 11), (3, 1)]);
        assert_eq!(written(Output::Halves { total: 200 * MIB }, 200), [(0, 101), (0, 51), (0, 48)]);
        assert_eq!(written(Output::Shards { count: 4 }, 100), [(0, 26), (0, 25), (0, 25), (0, 24)]);
    }

    #[test]
    fn shares_are_those_of_the_sstable_that_is_begun() {
        let mut halves = Splitter::new(Output::Halves { total: 200 * MIB });
        let shares = [0, 101 * MIB, 51 * MIB].map(|written| {
            halves.splits_before(Token(0), written);
            halves.share()
        });
        assert_eq!(shares, [100, 50, 50].map(|mib| Share::Bytes(mib * MIB)), "the last part is all that is left");
        let small = Splitter::new(Output::Halves { total: MIB });
        assert_eq!(small.share(), Share::All, "it is not halved");

        let mut shards = Splitter::new(Output::Shards { count: 4 });
        let parts = [i64::MIN + 1, -1, 0, 1, i64::MAX].map(|token| {
            shards.splits_before(Token(token), 0);
            shards.share()
        });
        let part = |after: i64, end: i64| Share::OfRing { after: Token(after), end: Token(end) };
        let (quarter, second) = (part(i64::MIN, -(1 << 62)), part(-(1 << 62), 0));
        assert_eq!(parts, [quarter, second, second, part(0, 1 << 62), part(1 << 62, i64::MIN)]);
    }

    #[test]
    fn an_sstable_ends_early_once_a_compaction() {
        let _switched = env::rare::begin(1, env::rare::EventChoice::All);
        for output in [Output::One { level: 0 }, Output::Sized { level: 1, size_max: 20_000 * MIB }] {
            let counts: Vec<usize> = (0..100).map(|_| written(output, 1_000).len()).collect();
            let early = counts.iter().filter(|count| **count == 2).count();
            assert!(counts.iter().all(|count| *count <= 2) && (10..60).contains(&early), "{counts:?}");
        }
    }
}
