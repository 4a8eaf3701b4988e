//! Which seeds operations take: each seed is a partition.

use super::command::{Command, Load};
use super::words::Words;
use crate::Result;
use crate::distribution::{Distribution, parse_range};

/// Seeds when neither a number of operations nor a population is given.
const SEEDS: i64 = 1_000_000;

/// `-pop`.
#[derive(Clone)]
pub enum Population {
    /// One after the other; again from the first after the last, unless it ends there.
    Sequence { first: i64, last: i64, wrap: bool },
    /// Drawn.
    Drawn(Distribution),
}

impl Population {
    /// Reads the words of `-pop`. Without them a write takes 1 to its count in turn, a read draws from as many.
    pub fn parse(mut words: Words, load: &Load) -> Result<Self> {
        let sequence = words.value("seq=");
        let drawn = words.value("dist=");
        let wrap = !words.flag("no-wrap");
        words.end()?;
        let count = load.count.map_or(SEEDS, |count| (count as i64).max(1));
        match (sequence, drawn, &load.command) {
            (Some(_), Some(_), _) => Err("-pop takes seq= or dist=, not both".into()),
            (Some(range), None, _) => {
                let (first, last) = parse_range(&range)?;
                Ok(Self::Sequence { first, last, wrap })
            }
            (None, Some(_), _) if !wrap => Err("-pop: no-wrap belongs to seq=".into()),
            (None, Some(text), _) => Ok(Self::Drawn(Distribution::parse(&text)?)),
            (None, None, Command::Write | Command::CounterWrite) => Ok(Self::Sequence { first: 1, last: count, wrap }),
            (None, None, _) => Ok(Self::Drawn(Distribution::gaussian(1, count)?)),
        }
    }

    /// The seed of the operation of this number; none once a sequence that does not wrap is over.
    pub fn seed(&self, number: u64, random: &mut impl rand::Rng) -> Option<i64> {
        match self {
            Self::Sequence { first, last, wrap } => {
                let seeds = (last - first + 1) as u64;
                (*wrap || number < seeds).then(|| first + (number % seeds) as i64)
            }
            Self::Drawn(distribution) => Some(distribution.draw(number, random)),
        }
    }
}
