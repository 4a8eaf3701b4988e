//! The partitions of a stream as updates of bounded size, so that rows which lie in files can take
//! the path of writes. A partition of many rows becomes several updates; together they are the
//! partition.
//!
//! A deletion of a range is in the update in which the range ends, as a whole. Agrees with
//! `org.apache.cassandra.db.rows.ThrottledUnfilteredIterator`, which cuts ranges too.

use std::sync::Arc;

use schema::TableMetadata;

use super::PartitionUpdate;
use crate::range_tombstones::{as_end, as_start};
use crate::{Bound, DeletionTime, PartitionHead, PartitionStream, ReadError, Slice, Unfiltered};

/// Rows and markers of an update. Agrees with `CassandraStreamReceiver.MAX_ROWS_PER_BATCH`.
const ITEMS_MAX: usize = 100;

/// Bytes of rows behind which an update ends. One row may be larger.
const BYTES_MAX: usize = 256 << 10;

/// A stream read as updates.
pub struct Updates {
    table: Arc<TableMetadata>,
    stream: Box<dyn PartitionStream>,
    /// The partition of which more may come.
    head: Option<PartitionHead>,
    /// The range that is open, from its first bound on.
    open: Option<(Bound, DeletionTime)>,
}

impl Updates {
    /// All of `stream`, which is in the order of the table's clustering.
    pub fn new(table: Arc<TableMetadata>, stream: Box<dyn PartitionStream>) -> Self {
        Self { table, stream, head: None, open: None }
    }

    /// The next update, which changes something. None: the stream has ended. After an error the
    /// stream cannot be read on.
    pub fn next_update(&mut self) -> Result<Option<PartitionUpdate>, ReadError> {
        loop {
            let mut update = match &self.head {
                Some(head) => PartitionUpdate::new(Arc::clone(&self.table), head.key.clone()),
                None => {
                    let Some(head) = self.stream.next_partition()? else { return Ok(None) };
                    let mut update = PartitionUpdate::new(Arc::clone(&self.table), head.key.clone());
                    update.deletion = head.deletion;
                    update.static_row = head.static_row.as_deref().cloned();
                    self.head = Some(head);
                    update
                }
            };
            self.take_items(&mut update)?;
            if !update.is_empty() {
                return Ok(Some(update));
            }
        }
    }

    fn take_items(&mut self, update: &mut PartitionUpdate) -> Result<(), ReadError> {
        let mut bytes = 0;
        for _ in 0..ITEMS_MAX {
            match self.stream.next_unfiltered()? {
                None => {
                    (self.head, self.open) = (None, None);
                    return Ok(());
                }
                Some(Unfiltered::Row(row)) => {
                    bytes += row.encoded_room();
                    update.rows.push(row);
                }
                Some(Unfiltered::Marker(marker)) => {
                    // of a damaged file more may end than has begun: that deletes nothing
                    if let Some((start, deletion)) = self.open.take().filter(|_| marker.close.is_some()) {
                        update.range_deletions.push((Slice { start, end: as_end(&marker.position) }, deletion));
                    }
                    if let Some(deletion) = marker.open {
                        self.open = Some((as_start(&marker.position), deletion));
                    }
                }
            }
            if bytes >= BYTES_MAX {
                return Ok(());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use bytes::Bytes;
    use schema::table::ColumnSpec;
    use schema::{ColumnKind, TableFlags, TableId, TableKind, TableParams};
    use types::{CqlType, DecoratedKey};

    use super::*;
    use crate::{ClusteringPrefix, ClusteringValues, Liveness, RangeTombstoneMarker, Row};

    fn table() -> Arc<TableMetadata> {
        let spec =
            |name: &str, kind| ColumnSpec { name: name.into(), kind, position: 0, ty: CqlType::Int, reversed: false };
        let specs = vec![spec("k", ColumnKind::PartitionKey), spec("c", ColumnKind::Clustering)];
        let (kind, flags, params) = (TableKind::Regular, TableFlags::COMPOUND, TableParams::default());
        Arc::new(TableMetadata::new(TableId([1; 16]), "k", "t", kind, flags, params, specs, BTreeMap::new(), None))
    }

    fn at(value: i32) -> ClusteringValues {
        [Some(Bytes::copy_from_slice(&value.to_be_bytes()))].into_iter().collect()
    }

    fn row(value: i32) -> Row {
        Row { liveness: Liveness::new(1), ..Row::new(at(value)) }
    }

    /// Partitions of rows 0 to `rows`, each with a range deleted from 1 to `range`, if that is more
    /// than 1.
    struct Given {
        left: Vec<(i32, i32)>,
        items: std::vec::IntoIter<Unfiltered>,
    }

    impl PartitionStream for Given {
        fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
            let Some((rows, range)) = self.left.pop() else { return Ok(None) };
            let marker = |position: ClusteringPrefix, opens: bool| {
                let deletion = Some(DeletionTime::new(9, 9));
                let (close, open) = if opens { (None, deletion) } else { (deletion, None) };
                Unfiltered::Marker(RangeTombstoneMarker { position, close, open })
            };
            let mut items = Vec::new();
            for value in 0..rows {
                if value == 1 && range > 1 {
                    items.push(marker(ClusteringPrefix::start(at(1), true), true));
                }
                items.push(Unfiltered::Row(row(value)));
                if value == range && range > 1 {
                    items.push(marker(ClusteringPrefix::end(at(range), true), false));
                }
            }
            self.items = items.into_iter();
            let key = DecoratedKey::new(Bytes::copy_from_slice(&rows.to_be_bytes()));
            Ok(Some(PartitionHead::new(key, DeletionTime::new(3, 3), None)))
        }

        fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
            Ok(self.items.next())
        }
    }

    #[test]
    fn updates_are_bounded_and_together_the_partitions() {
        let cases = [(0, 0), (1, 0), (100, 0), (101, 0), (350, 0), (350, 300), (5, 3), (99, 97)];
        for (rows, range) in cases {
            let given = Given { left: vec![(rows, range)], items: Vec::new().into_iter() };
            let mut updates = Updates::new(table(), Box::new(given));
            let (mut found, mut deletions, mut ranges) = (Vec::new(), 0, Vec::new());
            while let Some(update) = updates.next_update().expect("sound") {
                assert!(update.rows.len() + update.range_deletions.len() <= ITEMS_MAX);
                deletions += usize::from(!update.deletion.is_live());
                found.extend(update.rows);
                ranges.extend(update.range_deletions);
            }
            assert_eq!(deletions, 1, "the deletion of the partition comes once");
            assert_eq!(found, (0..rows).map(row).collect::<Vec<_>>(), "{rows} rows");
            let (start, end) = (ClusteringPrefix::start(at(1), true), ClusteringPrefix::end(at(range), true));
            let expected = (range > 1).then(|| (Slice { start, end }, DeletionTime::new(9, 9)));
            assert_eq!(ranges, expected.into_iter().collect::<Vec<_>>(), "{rows} rows");
        }
    }
}
