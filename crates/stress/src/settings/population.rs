//! The seeds of operations; each seed is a partition.

use super::command::Load;
use super::words::Words;
use crate::Result;
use crate::distribution::{Distribution, parse_range};

/// Number of seeds if neither a number of operations nor a population is given.
const SEEDS: i64 = 1_000_000;

/// The option `-pop`.
#[derive(Clone)]
pub enum Population {
    /// The seeds in order, and from the first again after the last unless the sequence ends there.
    Sequence {
        first: i64,
        last: i64,
        wrap: bool,
        /// For reads: how many writes ago the seed was written.
        lookback: Option<Distribution>,
    },
    /// Drawn at random.
    Drawn(Distribution),
}

impl Population {
    /// Reads the words of `-pop`. By default a write takes 1 to its count in order, and a read
    /// draws from as many.
    pub fn parse(mut words: Words, load: &Load) -> Result<Self> {
        let sequence = words.value("seq=");
        let drawn = words.value("dist=");
        let wrap = !words.flag("no-wrap");
        let lookback = words.distribution("read-lookback=")?;
        words.refuse("contents=", "rows of a partition are written in the order in which their numbers make them")?;
        words.end()?;
        let count = load.count.map_or(SEEDS, |count| (count as i64).max(1));
        if sequence.is_none() && (!wrap || lookback.is_some()) {
            return Err("-pop: no-wrap and read-lookback= belong to seq=".into());
        }
        if let Some(lookback) = &lookback
            && lookback.min() < 0
        {
            return Err("-pop read-lookback= may not be negative".into());
        }
        match (sequence, drawn) {
            (Some(_), Some(_)) => Err("-pop takes seq= or dist=, not both".into()),
            (Some(range), None) => {
                let (first, last) = parse_range(&range)?;
                Ok(Self::Sequence { first, last, wrap, lookback })
            }
            (None, Some(text)) => Ok(Self::Drawn(Distribution::parse(&text)?)),
            (None, None) if load.only_writes() => Ok(Self::Sequence { first: 1, last: count, wrap, lookback }),
            (None, None) => Ok(Self::Drawn(Distribution::gaussian(1, count)?)),
        }
    }
}
