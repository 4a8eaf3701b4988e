//! The rows of a partition, from its seed: so many values of the first clustering column, within each so many of the second, and so on.

use scylla::value::CqlValue;

use crate::distribution::Distribution;
use crate::value::{Generator, mix};

/// A clustering column.
pub struct Level {
    pub name: String,
    pub generator: Generator,
    /// How many within one of the level before.
    pub count: Distribution,
}

/// How rows are made.
pub struct Rows {
    pub partition_key: Vec<(String, Generator)>,
    pub levels: Vec<Level>,
    pub statics: Vec<(String, Generator)>,
    pub regular: Vec<(String, Generator)>,
}

/// A row: the seeds of its levels, the last of which is its own.
pub struct Row {
    partition: u64,
    levels: Vec<u64>,
}

/// The seed of the child of this number.
fn child(parent: u64, number: u64) -> u64 {
    mix(mix(parent) ^ number)
}

impl Rows {
    /// How many rows there may be.
    pub fn most(&self) -> f64 {
        self.levels.iter().map(|level| level.count.max() as f64).product()
    }

    fn count(&self, level: usize, parent: u64) -> u64 {
        self.levels[level].count.draw_of(parent).max(0) as u64
    }

    /// All rows of a partition, up to `most`.
    pub fn all(&self, partition: u64, most: usize) -> Vec<Row> {
        let mut rows = vec![Row { partition, levels: Vec::new() }];
        for level in 0..self.levels.len() {
            let longer = |row: Row| {
                let parent = row.seed();
                (0..self.count(level, parent)).map(move |number| row.with(child(parent, number)))
            };
            rows = rows.into_iter().flat_map(longer).take(most).collect();
        }
        rows
    }

    /// One row of a partition, as `draw` wants it.
    pub fn one(&self, partition: u64, draw: u64) -> Row {
        let mut row = Row { partition, levels: Vec::with_capacity(self.levels.len()) };
        for level in 0..self.levels.len() {
            let parent = row.seed();
            let number = mix(draw ^ level as u64) % self.count(level, parent).max(1);
            row.levels.push(child(parent, number));
        }
        row
    }

    /// The row's value in a column; none where the table has no such column.
    pub fn value(&self, row: &Row, column: &str) -> Option<CqlValue> {
        let of = |columns: &[(String, Generator)], seed: u64| {
            columns.iter().find(|(name, _)| name == column).map(|(_, generator)| generator.value(seed))
        };
        let level = || {
            let at = self.levels.iter().position(|level| level.name == column)?;
            Some(self.levels[at].generator.value(row.levels[at]))
        };
        of(&self.partition_key, row.partition)
            .or_else(level)
            .or_else(|| of(&self.statics, row.partition))
            .or_else(|| of(&self.regular, row.seed()))
    }
}

impl Row {
    fn seed(&self) -> u64 {
        self.levels.last().copied().unwrap_or(self.partition)
    }

    fn with(&self, level: u64) -> Self {
        Self { partition: self.partition, levels: self.levels.iter().copied().chain([level]).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scylla::frame::response::result::{ColumnType, NativeType};

    fn rows() -> Rows {
        let generator = |name: &str| {
            let population = Distribution::uniform(1, 1 << 40);
            Generator::new(name, ColumnType::Native(NativeType::BigInt), Distribution::fixed(8), population)
                .expect("a type")
        };
        let level = |name: &str, count| Level { name: name.to_owned(), generator: generator(name), count };
        Rows {
            partition_key: vec![("p".to_owned(), generator("p"))],
            levels: vec![level("a", Distribution::fixed(3)), level("b", Distribution::uniform(1, 5))],
            statics: Vec::new(),
            regular: vec![("v".to_owned(), generator("v"))],
        }
    }

    #[test]
    fn a_row_that_is_drawn_is_one_of_the_partitions_rows() {
        let rows = rows();
        let values = |row: &Row| ["p", "a", "b", "v"].map(|column| format!("{:?}", rows.value(row, column)));
        let all: Vec<_> = rows.all(7, 1000).iter().map(&values).collect();
        assert!((3..=15).contains(&all.len()), "{}", all.len());
        for draw in 0..100 {
            assert!(all.contains(&values(&rows.one(7, draw))));
        }
        assert_eq!(rows.all(7, 2).len(), 2, "bounded");
        assert!(rows.value(&rows.one(7, 0), "q").is_none());
    }
}
