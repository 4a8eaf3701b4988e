//! How inserts of a profile take partitions apart and put them together; what stands here goes before the profile's own `insert`.

use super::words::Words;
use crate::Result;
use crate::distribution::{Distribution, Ratio};

/// Partly written partitions that may wait to be visited again when nothing is said.
const REVISIT: Distribution = Distribution::uniform(1, 1_000_000);

/// `-insert`.
pub struct Insert {
    /// Inserts that a partition's rows are split into.
    pub visits: Distribution,
    /// Which of the partly written partitions is next: beyond those that wait, a new one is begun. Its largest number bounds how many wait.
    pub revisit: Distribution,
    pub partitions: Option<Distribution>,
    pub batch_type: Option<String>,
    pub select: Option<Ratio>,
    pub row_population: Option<Ratio>,
}

impl Insert {
    /// Reads the words of `-insert`.
    pub fn parse(mut words: Words) -> Result<Self> {
        let ratio = |text: Option<String>| text.map(|text| Ratio::parse(&text)).transpose();
        let insert = Self {
            visits: words.distribution("visits=")?.unwrap_or(Distribution::fixed(1)),
            revisit: words.distribution("revisit=")?.unwrap_or(REVISIT),
            partitions: words.distribution("partitions=")?,
            batch_type: words.value("batchtype="),
            select: ratio(words.value("select-ratio="))?,
            row_population: ratio(words.value("row-population-ratio="))?,
        };
        words.end()?;
        if insert.visits.min() < 1 || insert.revisit.min() < 0 {
            return Err("-insert: visits= begins at 1, revisit= at 0".into());
        }
        Ok(insert)
    }
}
