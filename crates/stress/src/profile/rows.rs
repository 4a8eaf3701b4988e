//! The rows of a partition, generated from its seed: a number of values of the first clustering
//! column, within each a number of values of the second, and so on
//! (org.apache.cassandra.stress.generate.PartitionIterator).
//!
//! Invariants: the content of a partition follows from its key alone, and the cells of a row from
//! its key and clustering alone. So two seeds that give the same key (with a small `population`)
//! write the same rows, and any reader can check a row.

use std::collections::HashSet;

use scylla::value::CqlValue;

use crate::distribution::{Distribution, Ratio};
use crate::value::{Generator, hash, mix, unit};

/// A clustering column.
pub struct Level {
    pub name: String,
    pub generator: Generator,
    /// Number of values within one value of the level before.
    pub count: Distribution,
}

/// The generator of rows.
pub struct Rows {
    pub partition_key: Vec<(String, Generator)>,
    pub levels: Vec<Level>,
    pub statics: Vec<(String, Generator)>,
    pub regular: Vec<(String, Generator)>,
    /// Share of a row's regular columns that have a value.
    pub population: Ratio,
}

/// A partition: its key, and the number from which its content follows.
pub struct Partition {
    pub key: Vec<CqlValue>,
    pub id: u64,
}

/// A row: its clustering, and the number from which its cells follow.
#[derive(Clone)]
pub struct Row {
    clustering: Vec<CqlValue>,
    pub id: u64,
}

/// The source of a column's values.
#[derive(Clone, Copy)]
pub enum ValueSource {
    Key(usize),
    Level(usize),
    Static(usize),
    Regular(usize),
}

/// The seed of a child by its number.
fn child(parent: u64, number: u64) -> u64 {
    mix(mix(parent) ^ number)
}

/// The number of the element that has this value within its parent.
pub fn id_within(parent: u64, value: &CqlValue) -> u64 {
    mix(parent ^ hash(value))
}

impl Rows {
    /// The partition of a seed.
    pub fn partition(&self, seed: u64) -> Partition {
        let key: Vec<CqlValue> = self.partition_key.iter().map(|(_, generator)| generator.value(seed)).collect();
        let id = key.iter().fold(0, id_within);
        Partition { key, id }
    }

    /// Greatest number of rows.
    pub fn most(&self) -> f64 {
        self.levels.iter().map(|level| level.count.max() as f64).product()
    }

    fn count(&self, level: usize, parent: u64) -> u64 {
        self.levels[level].count.draw_of(parent).max(0) as u64
    }

    fn within(&self, level: usize, row: &Row, number: u64) -> Row {
        let value = self.levels[level].generator.value(child(row.id, number));
        let id = id_within(row.id, &value);
        Row { clustering: row.clustering.iter().cloned().chain([value]).collect(), id }
    }

    /// All rows of a partition, at most `most`, each clustering once.
    pub fn all(&self, partition: &Partition, most: usize) -> Vec<Row> {
        let mut rows = vec![Row { clustering: Vec::new(), id: partition.id }];
        for level in 0..self.levels.len() {
            let mut seen = HashSet::new();
            let longer = |row: Row| (0..self.count(level, row.id)).map(move |number| self.within(level, &row, number));
            rows = rows.into_iter().flat_map(longer).filter(|row| seen.insert(row.id)).take(most).collect();
        }
        rows
    }

    /// The row of a partition that `draw` selects.
    pub fn one(&self, partition: &Partition, draw: u64) -> Row {
        let mut row = Row { clustering: Vec::new(), id: partition.id };
        for level in 0..self.levels.len() {
            let number = mix(draw ^ level as u64) % self.count(level, row.id).max(1);
            row = self.within(level, &row, number);
        }
        row
    }

    /// The source of a column's values; None if the table has no such column.
    pub fn source_of(&self, column: &str) -> Option<ValueSource> {
        let at = |columns: &[(String, Generator)]| columns.iter().position(|(name, _)| name == column);
        at(&self.partition_key)
            .map(ValueSource::Key)
            .or_else(|| self.levels.iter().position(|level| level.name == column).map(ValueSource::Level))
            .or_else(|| at(&self.statics).map(ValueSource::Static))
            .or_else(|| at(&self.regular).map(ValueSource::Regular))
    }

    /// The value of a column in a row, whether an insert writes it or not.
    pub fn value(&self, partition: &Partition, row: &Row, source: ValueSource) -> CqlValue {
        match source {
            ValueSource::Key(at) => partition.key[at].clone(),
            ValueSource::Level(at) => row.clustering[at].clone(),
            ValueSource::Static(at) => self.statics[at].1.value(partition.id),
            ValueSource::Regular(at) => self.regular[at].1.value(row.id),
        }
    }

    /// The value of a column in a row; None if the row has none.
    pub fn cell(&self, partition: &Partition, row: &Row, source: ValueSource) -> Option<CqlValue> {
        let is_there = match source {
            ValueSource::Regular(at) => unit(child(row.id, at as u64)) < self.population.draw(row.id),
            _ => true,
        };
        is_there.then(|| self.value(partition, row, source))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scylla::frame::response::result::{ColumnType, NativeType};

    fn rows(population: i64, share: &str) -> Rows {
        let generator = |name: &str, population| {
            let population = Distribution::uniform(1, population);
            Generator::new(name, ColumnType::Native(NativeType::BigInt), Distribution::fixed(8), population)
                .expect("a type")
        };
        let level = |name: &str, count| Level { name: name.to_owned(), generator: generator(name, population), count };
        Rows {
            partition_key: vec![("p".to_owned(), generator("p", population))],
            levels: vec![level("a", Distribution::fixed(3)), level("b", Distribution::uniform(1, 5))],
            statics: Vec::new(),
            regular: vec![("v".to_owned(), generator("v", 1 << 40))],
            population: Ratio::parse(share).expect("a share"),
        }
    }

    fn values(rows: &Rows, partition: &Partition, row: &Row) -> [CqlValue; 4] {
        ["p", "a", "b", "v"].map(|column| rows.value(partition, row, rows.source_of(column).expect("a column")))
    }

    #[test]
    fn a_row_that_is_drawn_is_one_of_the_partitions_rows() {
        let rows = rows(1 << 40, "FIXED(1)/1");
        let partition = rows.partition(7);
        let all: Vec<_> = rows.all(&partition, 1000).iter().map(|row| values(&rows, &partition, row)).collect();
        assert!((3..=15).contains(&all.len()), "{}", all.len());
        for draw in 0..100 {
            assert!(all.contains(&values(&rows, &partition, &rows.one(&partition, draw))));
        }
        assert_eq!(rows.all(&partition, 2).len(), 2, "bounded");
        assert!(rows.source_of("q").is_none());
    }

    #[test]
    fn the_same_key_holds_the_same_rows_and_no_clustering_comes_twice() {
        let rows = rows(3, "FIXED(1)/1");
        let all = |seed| {
            let partition = rows.partition(seed);
            let values = |row: &Row| format!("{:?}", values(&rows, &partition, row));
            (format!("{:?}", partition.key), rows.all(&partition, 1000).iter().map(values).collect::<Vec<_>>())
        };
        let mut by_key = std::collections::HashMap::new();
        for seed in 0..50 {
            let (key, rows) = all(seed);
            let clusterings: HashSet<_> =
                rows.iter().map(|row| row.rsplit_once("BigInt").map(|(clustering, _)| clustering.to_owned())).collect();
            assert_eq!(clusterings.len(), rows.len());
            assert_eq!(by_key.entry(key).or_insert_with(|| rows.clone()), &rows);
        }
        assert!(by_key.len() <= 3);
    }

    #[test]
    fn a_share_of_the_cells_is_left_out_and_always_the_same() {
        let rows = rows(1 << 40, "FIXED(1)/4");
        let cell = |seed| {
            let partition = rows.partition(seed);
            rows.cell(&partition, &rows.one(&partition, 1), ValueSource::Regular(0))
        };
        let there = (0..4000).filter(|seed| cell(*seed).is_some()).count();
        assert!((900..1100).contains(&there), "{there}");
        assert!((0..100).all(|seed| cell(seed) == cell(seed)));
    }
}
