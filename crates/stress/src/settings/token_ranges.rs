//! The ranges of the ring that a profile's `token_range_queries` read.

use super::words::Words;
use crate::Result;

/// The option `-tokenrange`.
pub struct TokenRanges {
    /// Whether to begin again after the last range; false: the run ends.
    pub wrap: bool,
    /// Number of parts of each range between two tokens of the ring.
    pub split: u64,
}

impl TokenRanges {
    /// Reads the words of `-tokenrange`. By default each range is read once and whole.
    pub fn parse(mut words: Words) -> Result<Self> {
        let split = words.number("split-factor=")?.unwrap_or(1);
        let ranges = Self { wrap: words.flag("wrap"), split: u64::try_from(split)?.max(1) };
        words.end()?;
        Ok(ranges)
    }
}
