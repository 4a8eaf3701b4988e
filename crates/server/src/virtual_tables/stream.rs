//! Made-up rows as the stream of a read: partitions in the order of their keys, rows in clustering order, cut to the command.
//!
//! Cassandra's virtual tables have a `LocalPartitioner`: not the token but the key itself, by its type, gives the order.

use std::cmp::Ordering;

use rows::command::RingBound;
use rows::{
    Cell, ClusteringValues, Liveness, PartitionHead, PartitionRange, PartitionStream, ReadCommand, ReadError, Row,
    Unfiltered,
};
use types::{CqlType, DecoratedKey};

use super::row::VirtualRow;

/// Partitions that are all in memory.
pub(super) struct Partitions {
    partitions: std::vec::IntoIter<(DecoratedKey, Vec<Row>)>,
    rows: std::vec::IntoIter<Row>,
}

/// What a command asks for of the rows of its table. `now`: microseconds.
pub(super) fn partitions(command: &ReadCommand, rows: Vec<VirtualRow>, now: i64) -> Partitions {
    let table = &command.table;
    let mut partitions: Vec<(DecoratedKey, Vec<Row>)> = Vec::new();
    for made in rows {
        let components: Vec<&[u8]> =
            table.partition_key.iter().map(|column| made.get(&column.name).map_or(&[][..], |value| value)).collect();
        let key = cluster::system_rows::partition_key(table, &components);
        let clustering: ClusteringValues =
            table.clustering.iter().map(|column| Some(made.get(&column.name).cloned().unwrap_or_default())).collect();
        let wanted = command.slices.0.iter().any(|slice| slice.contains(&clustering, &table.comparator));
        if !wanted || !is_in_range(&command.range, &key, &table.partition_key_type) {
            continue;
        }
        let mut row = Row::new(clustering);
        row.liveness = Liveness::new(now);
        for column in &table.regulars {
            if let Some(value) = made.get(&column.name) {
                row.add_cell(Cell::live(column.id, now, value.clone()));
            }
        }
        match partitions.iter_mut().find(|(known, _)| *known == key) {
            Some((_, rows)) => rows.push(row),
            None => partitions.push((key, vec![row])),
        }
    }
    partitions.sort_by(|a, b| types::compare(&table.partition_key_type, &a.0.key, &b.0.key));
    for (_, rows) in &mut partitions {
        rows.sort_by(|a, b| table.comparator.compare_values(&a.clustering, &b.clustering));
        if command.reversed {
            rows.reverse();
        }
    }
    Partitions { partitions: partitions.into_iter(), rows: Vec::new().into_iter() }
}

fn is_in_range(range: &PartitionRange, key: &DecoratedKey, ty: &CqlType) -> bool {
    let (start, end) = match range {
        PartitionRange::Key(wanted) => return wanted == key,
        PartitionRange::Range { start, end } => (start, end),
    };
    let holds = |bound: &RingBound, beyond: Ordering| match bound {
        RingBound::Open => true,
        RingBound::Token { token, inclusive } => key.token.cmp(token) == beyond || (*inclusive && key.token == *token),
        RingBound::Key { key: bound, inclusive } => {
            types::compare(ty, &key.key, &bound.key) == beyond || (*inclusive && *key == *bound)
        }
    };
    holds(start, Ordering::Greater) && holds(end, Ordering::Less)
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
