//! Rows of a virtual table as the stream of a read: partitions in the order of their keys, rows in
//! clustering order, only those that the command asks for.
//!
//! Cassandra's virtual tables have a `LocalPartitioner`: not the token but the key itself, by its
//! type, gives the order. Of several rows with one primary key the last one is shown, as
//! `SimpleDataSet` has it.

use std::cmp::Ordering;

use rows::command::RingBound;
use rows::{
    Cell, ClusteringValues, Liveness, PartitionHead, PartitionRange, PartitionStream, ReadCommand, ReadError, Row,
    Unfiltered,
};
use schema::TableMetadata;
use types::DecoratedKey;

use super::row::VirtualRow;

/// Partitions that are all in memory.
pub(super) struct VirtualPartitions {
    partitions: std::vec::IntoIter<(DecoratedKey, Vec<Row>)>,
    rows: std::vec::IntoIter<Row>,
}

/// The rows that a command asks for, of all rows of its table. `now`: microseconds since 1970.
/// `newest_first`: partitions in reversed order.
pub(super) fn partitions(
    command: &ReadCommand,
    rows: Vec<VirtualRow>,
    newest_first: bool,
    now: i64,
) -> VirtualPartitions {
    let table = &command.table;
    let ty = &table.partition_key_type;
    let order = |a: &[u8], b: &[u8]| if newest_first { types::compare(ty, b, a) } else { types::compare(ty, a, b) };
    let mut found: Vec<(DecoratedKey, Row)> = Vec::new();
    for made in rows {
        let components: Vec<&[u8]> =
            table.partition_key.iter().map(|column| made.get(&column.name).map_or(&[][..], |value| value)).collect();
        let key = cluster::system_rows::partition_key(table, &components);
        if !is_in_range(&command.range, &key, order) {
            continue;
        }
        let clustering: ClusteringValues =
            table.clustering.iter().map(|column| Some(made.get(&column.name).cloned().unwrap_or_default())).collect();
        if command.slices.contains(&clustering, &table.comparator) {
            found.push((key, stored_row(&made, clustering, table, now)));
        }
    }
    found.sort_by(|(key_a, a), (key_b, b)| {
        let rows = || {
            let rows = table.comparator.compare_values(&a.clustering, &b.clustering);
            if command.reversed { rows.reverse() } else { rows }
        };
        order(&key_a.key, &key_b.key).then_with(rows)
    });
    // the sort is stable: the row that was made later is the later of two
    found.dedup_by(|later, kept| {
        let is_same =
            later.0 == kept.0 && table.comparator.compare_values(&later.1.clustering, &kept.1.clustering).is_eq();
        if is_same {
            std::mem::swap(later, kept);
        }
        is_same
    });
    let mut partitions: Vec<(DecoratedKey, Vec<Row>)> = Vec::new();
    for (key, row) in found {
        match partitions.last_mut() {
            Some((known, rows)) if *known == key => rows.push(row),
            _ => partitions.push((key, vec![row])),
        }
    }
    VirtualPartitions { partitions: partitions.into_iter(), rows: Vec::new().into_iter() }
}

fn stored_row(made: &VirtualRow, clustering: ClusteringValues, table: &TableMetadata, now: i64) -> Row {
    let mut row = Row::new(clustering);
    row.liveness = Liveness::new(now);
    for column in &table.regulars {
        if let Some(value) = made.get(&column.name) {
            row.add_cell(Cell::live(column.id, now, value.clone()));
        }
    }
    row
}

/// A token of these tables is the key itself, so ranges have keys for ends.
fn is_in_range(range: &PartitionRange, key: &DecoratedKey, order: impl Fn(&[u8], &[u8]) -> Ordering) -> bool {
    let (start, end) = match range {
        PartitionRange::Key(wanted) => return wanted == key,
        PartitionRange::Range { start, end } => (start, end),
    };
    let holds = |bound: &RingBound, beyond: Ordering| match bound {
        RingBound::Open | RingBound::Token { .. } => true,
        RingBound::Key { key: bound, inclusive } => {
            let found = order(&key.key, &bound.key);
            found == beyond || (*inclusive && found.is_eq())
        }
    };
    holds(start, Ordering::Greater) && holds(end, Ordering::Less)
}

impl PartitionStream for VirtualPartitions {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let Some((key, rows)) = self.partitions.next() else { return Ok(None) };
        self.rows = rows.into_iter();
        Ok(Some(PartitionHead::new(key, rows::DeletionTime::LIVE, None)))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(self.rows.next().map(Unfiltered::Row))
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    /// A client has hung up and opened its port again, and the former connection is still there.
    #[test]
    fn a_primary_key_has_one_row() {
        let schema = schema::system::schema();
        let table = schema.table("system_views", "clients").expect("built in");
        let connection = |hostname: &str| {
            VirtualRow::default()
                .inet("address", IpAddr::from([192, 0, 2, 1]))
                .int("port", 9)
                .text("hostname", hostname)
        };
        let range = PartitionRange::Range { start: RingBound::Open, end: RingBound::Open };
        let command = ReadCommand::whole(table, range);
        let mut found = partitions(&command, vec![connection("former"), connection("present")], false, 1);
        assert!(found.next_partition().is_ok_and(|head| head.is_some()));
        match found.next_unfiltered() {
            Ok(Some(Unfiltered::Row(row))) => {
                assert_eq!(cluster::system_rows::text(table, &row, "hostname").as_deref(), Some("present"));
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(found.next_unfiltered().ok(), Some(None));
    }
}
