//! How inserts of a profile split and revisit partitions. These words take precedence over the
//! profile's own `insert`.

use super::words::Words;
use crate::Result;
use crate::distribution::{Distribution, Ratio};

/// Default of the number of partly written partitions that may wait for another visit.
const REVISIT: Distribution = Distribution::uniform(1, 1_000_000);

/// The option `-insert`.
pub struct Insert {
    /// Number of inserts into which the rows of a partition are split.
    pub visits: Distribution,
    /// The index of the partly written partition that is next; an index beyond those that wait
    /// begins a new partition. Its greatest value bounds how many wait.
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
