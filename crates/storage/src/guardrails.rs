//! Guardrails of partitions and collections as SSTables have them: size and tombstones, size and
//! elements. Findings are told in the log, and nothing is refused, because the data was accepted
//! long before its flush or compaction. A statement that adds to a collection is checked with what
//! it adds alone (`cql::guardrails`), so only here a collection is seen whole. Beside them the
//! limits on searches, which reads check (`crate::index::attached::guard`).
//!
//! Must agree with: `Guardrails.partitionSize`, `partitionTombstones`, `collectionSize` and
//! `itemsPerCollection`, and `SortedTableWriter` (`endPartition`, `guardCollectionSize`), which
//! asks them. Cassandra looks at every row of a compaction; here rows that are copied as they are
//! encoded are left out: this node has looked at them when it encoded them.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rows::command::IndexLimits;
use rows::{Cell, ColumnData, Row};
use schema::TableMetadata;
use schema::system::is_system_keyspace;
use sstable::{Component, RowWatch, SSTableWriter, WrittenPartition};
use types::DecoratedKey;
use types::ident::qualified;

/// A value above which a warning is logged and one above which an error is. None: never.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Threshold {
    /// Values greater than this are warnings.
    pub warn: Option<u64>,
    /// Values greater than this are errors.
    pub fail: Option<u64>,
}

/// The limits of a partition of an SSTable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PartitionGuards {
    /// partition_size: bytes before compression
    pub size: Threshold,
    /// partition_tombstones
    pub tombstones: Threshold,
}

/// The limits of a collection in a row of an SSTable. Frozen ones are values.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CollectionGuards {
    /// collection_size: bytes of what is live
    pub size: Threshold,
    /// items_per_collection: live elements
    pub items: Threshold,
}

/// The guardrails that the storage checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GuardrailValues {
    /// `sai_sstable_indexes_per_query_` (`warn_threshold`, `fail_threshold`).
    pub searches: IndexLimits,
    /// `partition_size_` and `partition_tombstones_` (`warn_threshold`, `fail_threshold`).
    pub partitions: PartitionGuards,
    /// `collection_size_` and `items_per_collection_` (`warn_threshold`, `fail_threshold`).
    pub collections: CollectionGuards,
}

/// The guardrails in force, which an operator changes while the node runs.
#[derive(Debug)]
pub struct Guards(ArcSwap<GuardrailValues>);

impl From<GuardrailValues> for Guards {
    fn from(guards: GuardrailValues) -> Self {
        Self(ArcSwap::from_pointee(guards))
    }
}

impl Default for Guards {
    fn default() -> Self {
        let (partitions, collections) = (PartitionGuards::default(), CollectionGuards::default());
        GuardrailValues { searches: IndexLimits::NONE, partitions, collections }.into()
    }
}

impl Guards {
    /// The guardrails as they are now.
    pub fn values(&self) -> GuardrailValues {
        **self.0.load()
    }

    /// Changes the guardrails.
    pub fn set(&self, guards: GuardrailValues) {
        self.0.store(Arc::new(guards));
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Violation {
    Warning { of: u64 },
    Failure { of: u64 },
}

impl Threshold {
    fn violation(&self, value: u64) -> Option<Violation> {
        let over = |threshold: &u64| value > *threshold;
        let failure = self.fail.filter(over).map(|of| Violation::Failure { of });
        failure.or_else(|| self.warn.filter(over).map(|of| Violation::Warning { of }))
    }
}

impl PartitionGuards {
    /// Called when a partition has been written: logs the limits that it exceeds.
    pub(crate) fn check(&self, writer: &SSTableWriter, key: &[u8], written: WrittenPartition) {
        let file = || writer.descriptor().path(Component::Data).display().to_string();
        let what = || partition(writer.table(), key, &file());
        if let Some(violation) = self.size.violation(written.size) {
            log_violation(violation, &size_text(violation, &what(), written.size));
        }
        if let Some(violation) = self.tombstones.violation(written.tombstones) {
            log_violation(violation, &tombstones_text(violation, &what(), written.tombstones));
        }
    }
}

/// Bytes for which a deletion counts, also that of a collection.
const DELETION_SIZE: u64 = 8 + 4;
/// Bytes for which a cell counts besides its value and its path: timestamp, TTL, deletion time.
const CELL_SIZE: u64 = 8 + 4 + 8;

impl CollectionGuards {
    /// A watch over the rows of a new SSTable; `now`: seconds since 1970. None: there are no
    /// limits, or no collections.
    pub(crate) fn watch(self, table: &TableMetadata, now: u32) -> Option<RowWatch> {
        let mut columns = table.statics.iter().chain(&table.regulars);
        let has_collections = columns.any(|column| column.ty.is_collection() && column.is_complex());
        let is_wanted = self != Self::default() && has_collections && !is_system_keyspace(&table.keyspace);
        is_wanted.then(|| {
            Box::new(move |table: &TableMetadata, key: &DecoratedKey, row: &Row| {
                self.check(table, &key.key, row, now);
            }) as RowWatch
        })
    }

    fn check(&self, table: &TableMetadata, key: &[u8], row: &Row, now: u32) {
        for data in &row.columns {
            let ColumnData::Complex(complex) = data else { continue };
            let Some(column) = table.column(complex.column).filter(|column| column.ty.is_collection()) else {
                continue;
            };
            let live = || complex.cells.iter().filter(move |cell| cell.is_live(now));
            let (items, size) = (live().count() as u64, DELETION_SIZE + live().map(cell_size).sum::<u64>());
            if items == 0 {
                continue;
            }
            let what = || {
                let (row, table) = (row_text(table, key, row), qualified(&table.keyspace, &table.name));
                format!("{} in row {row} in table {table}", column.name)
            };
            if let Some(violation) = self.size.violation(size) {
                log_violation(violation, &collection_size_text(violation, &what(), size));
            }
            if let Some(violation) = self.items.violation(items) {
                log_violation(violation, &items_text(violation, &what(), items));
            }
        }
    }
}

fn cell_size(cell: &Cell) -> u64 {
    (cell.value.len() + cell.path.as_ref().map_or(0, |path| path.len())) as u64 + CELL_SIZE
}

/// The primary key of a row as CQL has it.
fn row_text(table: &TableMetadata, key: &[u8], row: &Row) -> String {
    let of_key = types::composite::decompose(key, table.partition_key.len()).unwrap_or_default();
    let of_row = row.clustering.iter().map(|value| value.as_deref().unwrap_or_default());
    let columns = table.partition_key.iter().chain(&table.clustering);
    let values = columns.zip(of_key.into_iter().chain(of_row));
    let literals: Vec<String> = values.map(|(column, value)| types::to_text(&column.ty, value)).collect();
    match literals.as_slice() {
        [one] => one.clone(),
        several => format!("({})", several.join(", ")),
    }
}

fn log_violation(violation: Violation, text: &str) {
    match violation {
        Violation::Warning { .. } => tracing::warn!("{text}"),
        Violation::Failure { .. } => tracing::error!("{text}"),
    }
}

fn partition(table: &TableMetadata, key: &[u8], file: &str) -> String {
    format!("{}.{}:{} on sstable {file}", table.keyspace, table.name, table.partition_key_text(key))
}

fn size_text(violation: Violation, partition: &str, size: u64) -> String {
    format!(
        "Guardrail partition_size violated: Partition {partition} has size {size}, this exceeds {}. Too large partitions can cause \
         performance problems.",
        threshold_text(violation)
    )
}

fn tombstones_text(violation: Violation, partition: &str, tombstones: u64) -> String {
    format!(
        "Guardrail partition_tombstones violated: Partition {partition} has {tombstones} tombstones, this exceeds {}. Partitions with too \
         many tombstones can cause performance problems.",
        threshold_text(violation)
    )
}

fn collection_size_text(violation: Violation, collection: &str, size: u64) -> String {
    format!(
        "Guardrail collection_size violated: Detected collection {collection} of size {size}, this exceeds {}.",
        threshold_text(violation)
    )
}

fn items_text(violation: Violation, collection: &str, items: u64) -> String {
    format!(
        "Guardrail items_per_collection violated: Detected collection {collection} with {items} items, this exceeds {}.",
        threshold_text(violation)
    )
}

fn threshold_text(violation: Violation) -> String {
    match violation {
        Violation::Warning { of } => format!("the warning threshold of {of}"),
        Violation::Failure { of } => format!("the failure threshold of {of}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_greater_than_a_threshold_violates_it() {
        let both = Threshold { warn: Some(2), fail: Some(4) };
        let found: Vec<_> = (2..=5).map(|value| both.violation(value)).collect();
        let (warning, failure) = (Some(Violation::Warning { of: 2 }), Some(Violation::Failure { of: 4 }));
        assert_eq!(found, [None, warning, warning, failure]);
        assert_eq!(Threshold { warn: None, fail: Some(4) }.violation(4), None);
        assert_eq!(Threshold::default().violation(u64::MAX), None);
    }
}
