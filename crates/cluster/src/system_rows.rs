//! Rows of the built-in tables by column name: how the node writes and reads what it keeps about
//! itself.

use std::sync::Arc;

use bytes::Bytes;
use rows::live::{LiveRows, TombstoneLimits};
use rows::{
    Cell, ClusteringValues, ColumnData, ColumnFilter, DataLimits, DeletionTime, Liveness, Mutation, PartitionRange,
    PartitionStream, PartitionUpdate, ReadCommand, ReadContext, ReadError, ReadMode, Row, Slices,
};
use schema::TableMetadata;
use storage::Engine;
use types::{CqlType, DecoratedKey};

/// A row that is being put together, as INSERT would.
pub struct SystemRow {
    update: PartitionUpdate,
    row: Row,
    timestamp: i64,
    /// TTL in seconds, and the second in which it ends; None: the row does not expire.
    expiry: Option<(u32, u32)>,
}

/// The key of a partition from its components.
pub fn partition_key(table: &TableMetadata, components: &[&[u8]]) -> DecoratedKey {
    let key = match components {
        [single] if table.partition_key.len() == 1 => single.to_vec(),
        several => types::composite::compose(several).expect("keys of built-in tables are short"),
    };
    table.decorate(Bytes::from(key))
}

impl SystemRow {
    /// Begins a row of a table. `expiry`: TTL in seconds, and the present second; None: the row
    /// does not expire.
    pub fn new(
        table: &Arc<TableMetadata>,
        key: &[&[u8]],
        clustering: &[&[u8]],
        timestamp: i64,
        expiry: Option<(u32, u32)>,
    ) -> Self {
        let clustering: ClusteringValues = clustering.iter().map(|value| Some(Bytes::copy_from_slice(value))).collect();
        let mut row = Row::new(clustering);
        let expiry = expiry.map(|(ttl, now)| (ttl, now.saturating_add(ttl)));
        row.liveness = match expiry {
            None => Liveness::new(timestamp),
            Some((ttl, end)) => Liveness::expiring(timestamp, ttl, end),
        };
        let update = PartitionUpdate::new(Arc::clone(table), partition_key(table, key));
        Self { update, row, timestamp, expiry }
    }

    fn cell(&self, name: &str, value: Bytes) -> Option<Cell> {
        let column = self.update.table.column_by_name(name)?;
        let mut cell = Cell::live(column.id, self.timestamp, value);
        if let Some((ttl, end)) = self.expiry {
            (cell.ttl, cell.local_deletion_time) = (ttl, end);
        }
        Some(cell)
    }

    /// Sets a column of one value.
    pub fn set(mut self, name: &str, value: impl Into<Bytes>) -> Self {
        if let Some(cell) = self.cell(name, value.into()) {
            self.row.add_cell(cell);
        }
        self
    }

    /// Sets a collection: for each element its path (list: time UUID, set: the element, map: the
    /// key) and value (set: empty).
    pub fn set_elements(mut self, name: &str, elements: impl IntoIterator<Item = (Bytes, Bytes)>) -> Self {
        let Some(column) = self.update.table.column_by_name(name) else { return self };
        let (id, table) = (column.id, Arc::clone(&self.update.table));
        let now = u32::try_from(self.timestamp / 1_000_000).unwrap_or(0);
        self.row.add_complex_deletion(id, DeletionTime::new(self.timestamp - 1, now));
        for (path, value) in elements {
            if let Some(cell) = self.cell(name, value) {
                self.row.add_complex_cell(&table, cell.at(path));
            }
        }
        self
    }

    /// The mutation.
    pub fn finish(mut self) -> Mutation {
        self.update.add_row(self.row);
        Mutation::of(self.update)
    }
}

/// The live rows of a table, or of one of its partitions. For small tables only, because all are
/// in memory at once.
pub fn read(
    engine: &Engine,
    table: &Arc<TableMetadata>,
    key: Option<DecoratedKey>,
) -> Result<Vec<(DecoratedKey, Row)>, ReadError> {
    let mut found = Vec::new();
    each(engine, table, key, |key, row| {
        found.push((key.clone(), row));
        true
    })?;
    Ok(found)
}

/// Gives the live rows of a table, or of one of its partitions, one after the other, until `take`
/// says false.
pub(crate) fn each(
    engine: &Engine,
    table: &Arc<TableMetadata>,
    key: Option<DecoratedKey>,
    mut take: impl FnMut(&DecoratedKey, Row) -> bool,
) -> Result<(), ReadError> {
    let command = command(table, key, engine.env.clock.now_seconds());
    let mut stream = engine.read(&command, &ReadContext::new(ReadMode::Background))?;
    each_of(stream.as_mut(), table, command.now, &mut take)
}

/// The read of a table, or of one of its partitions.
pub(crate) fn command(table: &Arc<TableMetadata>, key: Option<DecoratedKey>, now: u32) -> ReadCommand {
    ReadCommand {
        table: Arc::clone(table),
        range: key.map_or_else(PartitionRange::all, PartitionRange::Key),
        slices: Slices::all(),
        reversed: false,
        columns: ColumnFilter::All,
        now,
        limits: DataLimits::NONE,
        indexes: Vec::new(),
    }
}

/// Gives the live rows of a stream one after the other, until `take` says false.
pub(crate) fn each_of(
    stream: &mut dyn PartitionStream,
    table: &Arc<TableMetadata>,
    now: u32,
    take: &mut impl FnMut(&DecoratedKey, Row) -> bool,
) -> Result<(), ReadError> {
    let mut live = LiveRows::new(stream, Arc::clone(table), now, TombstoneLimits::NONE);
    while let Some(partition) = live.next_partition()? {
        while let Some(row) = live.next_row()? {
            if !take(&partition.key, row) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The value of a column that is no collection.
pub fn value<'r>(table: &TableMetadata, row: &'r Row, name: &str) -> Option<&'r Bytes> {
    match row.column(table.column_by_name(name)?.id)? {
        ColumnData::Simple(cell) => Some(&cell.value),
        ColumnData::Complex(_) => None,
    }
}

/// The elements of a set, the values of a list.
pub fn elements(table: &TableMetadata, row: &Row, name: &str) -> Vec<Bytes> {
    let Some(column) = table.column_by_name(name) else { return Vec::new() };
    match row.column(column.id) {
        Some(ColumnData::Complex(complex)) => complex
            .cells
            .iter()
            .map(|cell| match column.ty {
                CqlType::Set { .. } => cell.path.clone().unwrap_or_default(),
                _ => cell.value.clone(),
            })
            .collect(),
        _ => Vec::new(),
    }
}

/// The keys and values of a map.
pub fn pairs(table: &TableMetadata, row: &Row, name: &str) -> Vec<(Bytes, Bytes)> {
    match table.column_by_name(name).and_then(|column| row.column(column.id)) {
        Some(ColumnData::Complex(complex)) => {
            complex.cells.iter().map(|cell| (cell.path.clone().unwrap_or_default(), cell.value.clone())).collect()
        }
        _ => Vec::new(),
    }
}

/// The text of a column.
pub fn text(table: &TableMetadata, row: &Row, name: &str) -> Option<String> {
    String::from_utf8(value(table, row, name)?.to_vec()).ok()
}
