//! Everything that the schema tables hold, in memory while one change is made: deletions included,
//! because a schema is sent to other nodes with them.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use rows::{ColumnData, DeletionTime, Liveness, Mutation, PartitionStream, PartitionUpdate, ReadError, Row, Slice};
use rows::{Unfiltered, range_tombstones};
use schema::TableMetadata;
use schema::system::is_local_keyspace;
use schema::system_schema::{SchemaRow, SchemaTable};
use types::DecoratedKey;

use super::version::SchemaDigest;

/// The content of the schema tables at one moment, in the order in which it is digested.
#[derive(Clone, Default, PartialEq)]
pub struct StoredSchema {
    partitions: BTreeMap<(SchemaTable, DecoratedKey), PartitionUpdate>,
}

impl StoredSchema {
    /// Adds the content of a schema table.
    pub(super) fn add(
        &mut self,
        table: SchemaTable,
        empty: impl Fn(DecoratedKey) -> PartitionUpdate,
        stream: &mut dyn PartitionStream,
    ) -> Result<(), ReadError> {
        while let Some(head) = stream.next_partition()? {
            let mut partition = empty(head.key.clone());
            partition.deletion = head.deletion;
            let mut open = None;
            while let Some(unfiltered) = stream.next_unfiltered()? {
                match unfiltered {
                    Unfiltered::Row(row) => partition.rows.push(row),
                    Unfiltered::Marker(marker) => {
                        if let Some((start, deletion)) = open.take() {
                            let end = range_tombstones::as_end(&marker.position);
                            partition.range_deletions.push((Slice { start, end }, deletion));
                        }
                        let start = || range_tombstones::as_start(&marker.position);
                        open = marker.open.map(|deletion| (start(), deletion));
                    }
                }
            }
            self.partitions.insert((table, head.key), partition);
        }
        Ok(())
    }

    /// Merges mutations of schema tables into the content; gives the names of the keyspaces that
    /// they touch. Updates of other tables are left out.
    pub fn merge(&mut self, mutations: &[Mutation]) -> BTreeSet<String> {
        let mut touched = BTreeSet::new();
        for update in mutations.iter().flat_map(|mutation| &mutation.updates) {
            let Some(table) = schema_table(&update.table) else { continue };
            let empty = || PartitionUpdate::new(update.table.clone(), update.key.clone());
            let partition = self.partitions.entry((table, update.key.clone())).or_insert_with(empty);
            partition.merge([update.clone()]);
            touched.insert(name_of(&update.key));
        }
        touched
    }

    /// The version of the schema. Keyspaces that are local to the node do not count.
    pub fn version(&self, now: u32) -> [u8; 16] {
        let mut digest = SchemaDigest::default();
        for (_, partition) in self.of_ring() {
            let rows = live_rows(partition, now);
            if !rows.is_empty() {
                digest.partition(partition, &rows);
            }
        }
        digest.version()
    }

    /// The live rows; with `names`, those of these keyspaces only.
    pub fn rows(&self, names: Option<&BTreeSet<String>>, now: u32) -> Vec<SchemaRow> {
        let mut rows = Vec::new();
        for ((table, key), partition) in &self.partitions {
            let keyspace = name_of(key);
            if names.is_some_and(|names| !names.contains(&keyspace)) {
                continue;
            }
            for row in live_rows(partition, now) {
                rows.push(SchemaRow {
                    table: *table,
                    keyspace: keyspace.clone(),
                    clustering: row.clustering.iter().map(|value| value.clone().unwrap_or_default()).collect(),
                    cells: cells(&row, &partition.table),
                });
            }
        }
        rows
    }

    /// The live row at the place of `wanted`, with the timestamp of its liveness.
    pub fn row(&self, wanted: &SchemaRow, now: u32) -> Option<(i64, SchemaRow)> {
        let key = DecoratedKey::new(Bytes::copy_from_slice(wanted.keyspace.as_bytes()));
        let partition = self.partitions.get(&(wanted.table, key))?;
        let is_there = |row: &&Row| row.clustering.iter().flatten().eq(&wanted.clustering);
        let row = live_row(partition, partition.rows.iter().find(is_there)?, now)?;
        Some((row.liveness.timestamp, SchemaRow { cells: cells(&row, &partition.table), ..wanted.clone() }))
    }

    /// The names of the keyspaces that have a live row of their own.
    pub fn keyspaces(&self, now: u32) -> BTreeSet<String> {
        let own = self.partitions.iter().filter(|((table, _), _)| *table == SchemaTable::Keyspaces);
        own.filter(|(_, partition)| !live_rows(partition, now).is_empty()).map(|((_, key), _)| name_of(key)).collect()
    }

    /// The newest timestamp that is stored, deletions included. A change must be newer to have an
    /// effect, whatever the clock says.
    pub fn newest(&self) -> i64 {
        self.of_ring().map(|(_, partition)| partition.max_timestamp()).max().unwrap_or(i64::MIN)
    }

    /// Everything but the local keyspaces, deletions included, as one mutation for each keyspace:
    /// the answer to another node that asks for the schema.
    pub fn mutations(&self) -> Vec<Mutation> {
        let mut mutations: BTreeMap<&DecoratedKey, Vec<PartitionUpdate>> = BTreeMap::new();
        for (key, partition) in self.of_ring() {
            mutations.entry(key).or_default().push(partition.clone());
        }
        mutations.into_iter().map(|(key, updates)| Mutation { key: key.clone(), updates }).collect()
    }

    /// The partitions that nodes of a ring have in common.
    fn of_ring(&self) -> impl Iterator<Item = (&DecoratedKey, &PartitionUpdate)> {
        let all = self.partitions.iter().map(|((_, key), partition)| (key, partition));
        all.filter(|(key, _)| !is_local_keyspace(&name_of(key)))
    }
}

/// The schema table that `table` is; None: it is none.
pub fn schema_table(table: &TableMetadata) -> Option<SchemaTable> {
    SchemaTable::from_name(&table.name).filter(|_| table.keyspace == super::KEYSPACE)
}

/// The name of the keyspace to which a partition belongs.
fn name_of(key: &DecoratedKey) -> String {
    String::from_utf8_lossy(&key.key).into_owned()
}

fn live_rows(partition: &PartitionUpdate, now: u32) -> Vec<Row> {
    partition.rows.iter().filter_map(|row| live_row(partition, row, now)).collect()
}

/// A row without deletions and without what is deleted or expired.
fn live_row(partition: &PartitionUpdate, row: &Row, now: u32) -> Option<Row> {
    let mut row = row.clone();
    let over = partition.range_deletions.iter();
    let over = over.filter(|(slice, _)| slice.contains(&row.clustering, &partition.table.comparator));
    let over = over.fold(partition.deletion.merge(row.deletion), |all, (_, deletion)| all.merge(*deletion));
    row.deletion = DeletionTime::LIVE;
    if !over.is_live() {
        row.drop_shadowed(&over);
    }
    if !row.liveness.is_live(now) {
        row.liveness = Liveness::EMPTY;
    }
    row.columns.retain(|data| matches!(data, ColumnData::Simple(cell) if cell.is_live(now)));
    row.is_live(now).then_some(row)
}

fn cells(row: &Row, table: &TableMetadata) -> Vec<(String, Bytes)> {
    let named = |data: &ColumnData| match data {
        ColumnData::Simple(cell) => table.column(cell.column).map(|column| (column.name.clone(), cell.value.clone())),
        ColumnData::Complex(_) => None,
    };
    row.columns.iter().filter_map(named).collect()
}
