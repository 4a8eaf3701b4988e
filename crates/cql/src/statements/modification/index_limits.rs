//! The limits on what indexes hold: values that are too long, each being a partition key of the
//! hidden table of its index, and vectors that have no similarity to others.
//!
//! Agrees with `org.apache.cassandra.index.internal.CassandraIndex.validate` and with
//! `OnHeapGraph.validateIndexable`. A Cassandra replica applies such a vector to its commit log and
//! fails at the index, so that the replica never has the row, and no read repair can give the row
//! to that replica: a vector is refused before any replica is asked.

use bytes::Bytes;
use rows::{Cell, ColumnData, PartitionUpdate, Row};
use schema::TableMetadata;
use schema::index::definition::{IndexDefinition, IndexPart};

use types::similarity::floats;

use crate::error::CqlError;
use crate::keys;
use crate::statements::vectors;

/// Values of this many bytes or more are refused.
const VALUE_SIZE_END: usize = u16::MAX as usize;
/// Bytes of an entry of a map index besides those of key and value.
const ENTRY_OVERHEAD: usize = 6;

/// Refuses an update with a value that an index cannot hold.
pub(super) fn check(update: &PartitionUpdate, indexes: &[IndexDefinition]) -> Result<(), CqlError> {
    for index in indexes {
        let too_long = match index.part {
            IndexPart::PartitionKey(position) => of_key(&update.key.key, update.table.partition_key.len(), position),
            _ => update.rows.iter().chain(&update.static_row).map(|row| of_row(row, index)).max().unwrap_or(0),
        };
        if too_long >= VALUE_SIZE_END {
            return Err(refusal(&update.table, index, too_long));
        }
        if let Some(similarity) = index.vectors {
            let given = vectors_of(update, index);
            if let Some(reason) = given.iter().filter_map(|vector| vectors::refusal(&floats(vector), similarity)).next()
            {
                let (keyspace, table) = (&update.table.keyspace, &update.table.name);
                return Err(CqlError::invalid(format!("{reason} for ks: {keyspace}, table: {table}")));
            }
        }
    }
    Ok(())
}

/// The vectors that an update gives entries of an index. A deletion gives none.
fn vectors_of(update: &PartitionUpdate, index: &IndexDefinition) -> Vec<Bytes> {
    let live = |row: &&Row| !row.liveness.is_empty() || !row.columns.is_empty();
    let rows = || update.rows.iter().filter(live);
    match index.part {
        IndexPart::PartitionKey(position) => {
            let has_entries = update.static_row.as_ref().filter(live).is_some() || rows().next().is_some();
            let parts = keys::decompose(&update.key.key, update.table.partition_key.len());
            parts.get(position).filter(|_| has_entries).cloned().into_iter().collect()
        }
        IndexPart::Clustering(position) => {
            rows().filter_map(|row| row.clustering.get(position).cloned().flatten()).collect()
        }
        _ => {
            let cells = update.rows.iter().chain(&update.static_row).filter_map(|row| row.column(index.column.id));
            let given = cells.filter_map(|data| match data {
                ColumnData::Simple(cell) if !cell.is_tombstone() => Some(cell.value.clone()),
                _ => None,
            });
            given.collect()
        }
    }
}

fn of_key(key: &Bytes, width: usize, position: usize) -> usize {
    keys::decompose(key, width).get(position).map_or(0, Bytes::len)
}

/// The length of the longest value in a row.
fn of_row(row: &Row, index: &IndexDefinition) -> usize {
    let path = |cell: &Cell| cell.path.as_ref().map_or(0, Bytes::len);
    let length = |cell: &Cell| match index.part {
        IndexPart::Keys => path(cell),
        IndexPart::Entries => path(cell) + cell.value.len() + ENTRY_OVERHEAD,
        _ => cell.value.len(),
    };
    match (index.part, row.column(index.column.id)) {
        (IndexPart::Clustering(position), _) => {
            row.clustering.get(position).and_then(Option::as_ref).map_or(0, Bytes::len)
        }
        (_, None) => 0,
        (_, Some(ColumnData::Simple(cell))) => length(cell),
        (_, Some(ColumnData::Complex(complex))) => complex.cells.iter().map(length).max().unwrap_or(0),
    }
}

fn refusal(table: &TableMetadata, index: &IndexDefinition, size: usize) -> CqlError {
    CqlError::invalid(format!(
        "Cannot index value of size {size} for index {} on {}.{}({}) (maximum allowed size={VALUE_SIZE_END})",
        index.name, table.keyspace, table.name, index.column.name
    ))
}
