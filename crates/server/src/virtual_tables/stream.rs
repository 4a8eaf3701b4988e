//! Made-up rows as the stream of a read: partitions in the order of their tokens, rows in clustering order, cut to the command.

use std::collections::BTreeMap;

use rows::{Cell, ClusteringValues, Liveness, PartitionHead, PartitionStream, ReadCommand, ReadError, Row, Unfiltered};
use types::DecoratedKey;

use super::row::VirtualRow;

/// Partitions that are all in memory.
pub(super) struct Partitions {
    partitions: std::vec::IntoIter<(DecoratedKey, Vec<Row>)>,
    rows: std::vec::IntoIter<Row>,
}

/// What a command asks for of the rows of its table. `now`: microseconds.
pub(super) fn partitions(command: &ReadCommand, rows: Vec<VirtualRow>, now: i64) -> Partitions {
    let table = &command.table;
    let mut by_key: BTreeMap<DecoratedKey, Vec<Row>> = BTreeMap::new();
    for made in rows {
        let components: Vec<&[u8]> =
            table.partition_key.iter().map(|column| made.get(&column.name).map_or(&[][..], |value| value)).collect();
        let key = cluster::system_rows::partition_key(table, &components);
        let clustering: ClusteringValues =
            table.clustering.iter().map(|column| Some(made.get(&column.name).cloned().unwrap_or_default())).collect();
        let wanted = command.slices.0.iter().any(|slice| slice.contains(&clustering, &table.comparator));
        if !wanted || !command.range.contains(&key) {
            continue;
        }
        let mut row = Row::new(clustering);
        row.liveness = Liveness::new(now);
        for column in &table.regulars {
            if let Some(value) = made.get(&column.name) {
                row.add_cell(Cell::live(column.id, now, value.clone()));
            }
        }
        by_key.entry(key).or_default().push(row);
    }
    let mut partitions: Vec<(DecoratedKey, Vec<Row>)> = by_key.into_iter().collect();
    for (_, rows) in &mut partitions {
        rows.sort_by(|a, b| table.comparator.compare_values(&a.clustering, &b.clustering));
        if command.reversed {
            rows.reverse();
        }
    }
    Partitions { partitions: partitions.into_iter(), rows: Vec::new().into_iter() }
}

impl PartitionStream for Partitions {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let Some((key, rows)) = self.partitions.next() else { return Ok(None) };
        self.rows = rows.into_iter();
        Ok(Some(PartitionHead { key, deletion: rows::DeletionTime::LIVE, static_row: None }))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(self.rows.next().map(Unfiltered::Row))
    }
}
