//! Which ranges of the ring a profile's `token_range_queries` go through.

use super::words::Words;
use crate::Result;

/// `-tokenrange`.
pub struct TokenRanges {
    /// From the first again after the last; else the run ends there.
    pub wrap: bool,
    /// Parts of each range between two tokens of the ring.
    pub split: u64,
}

impl TokenRanges {
    /// Reads the words of `-tokenrange`: each range once and whole when nothing is said.
    pub fn parse(mut words: Words) -> Result<Self> {
        let split = words.number("split-factor=")?.unwrap_or(1);
        let ranges = Self { wrap: words.flag("wrap"), split: u64::try_from(split)?.max(1) };
        words.end()?;
        Ok(ranges)
    }
}
