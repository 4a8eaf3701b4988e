//! Reading before writing: the rows in which a statement changes list elements by index or by
//! value.
//!
//! Agrees with `org.apache.cassandra.cql3.statements.ModificationStatement.readRequiredLists`.

use std::collections::BTreeMap;
use std::sync::Arc;

use rows::live::TombstoneLimits;
use rows::{ClusteringValues, ColumnFilter, DataLimits, LiveRows, PartitionRange, ReadCommand, Row, Slice, Slices};
use schema::ClusteringComparator;
use types::{Consistency, DecoratedKey};

use super::ModificationPlan;
use crate::context::Bindings;
use crate::coordinator::{Coordinator, ReadOptions};
use crate::error::CqlError;
use crate::options::QueryOptions;
use crate::restrictions::check_combinations;

/// The live rows of the partitions that a statement changes, as they are before it.
#[derive(Default, Debug)]
pub(crate) struct ExistingRows {
    /// For each partition its static row, and its rows in the order of the table.
    partitions: BTreeMap<DecoratedKey, (Option<Row>, Vec<Row>)>,
}

impl ExistingRows {
    /// The rows of one partition.
    pub fn of_partition(key: DecoratedKey, static_row: Option<Row>, rows: Vec<Row>) -> Self {
        Self { partitions: BTreeMap::from([(key, (static_row, rows))]) }
    }

    /// The static row of a partition.
    pub fn static_row(&self, key: &DecoratedKey) -> Option<&Row> {
        let (static_row, _) = self.partitions.get(key)?;
        static_row.as_ref()
    }

    /// The row whose clustering is equal in the order of the table: 1.00 finds the row of 1.
    pub fn row(
        &self,
        key: &DecoratedKey,
        clustering: &ClusteringValues,
        comparator: &ClusteringComparator,
    ) -> Option<&Row> {
        let (_, rows) = self.partitions.get(key)?;
        let at = rows.binary_search_by(|row| comparator.compare_values(&row.clustering, clustering)).ok()?;
        rows.get(at)
    }
}

/// Reads the rows that the operations of a statement need.
pub(crate) async fn read<C: Coordinator>(
    plan: &ModificationPlan,
    bindings: &Bindings<'_>,
    options: &QueryOptions,
    now: u32,
    coordinator: &C,
) -> Result<ExistingRows, CqlError> {
    // the key comes first: of several mistakes one in the key is told
    let keys = plan.restrictions.keys(&plan.table, bindings)?;
    let slices = if plan.operations.is_empty() {
        Slices::none()
    } else {
        let clusterings = plan.restrictions.clusterings(&plan.table, bindings)?;
        Slices::normalized(clusterings.into_iter().map(Slice::of_prefix).collect(), &plan.table.comparator)
    };
    check_combinations(keys.len(), slices.0.len())?;
    let names_rows = plan.operations.is_empty() || !slices.0.is_empty();
    if options.consistency == Consistency::Any && names_rows {
        return Err(CqlError::invalid("Write operation require a read but consistency ANY is not supported on reads"));
    }
    let commands: Vec<_> = keys
        .into_iter()
        .map(|key| ReadCommand {
            table: Arc::clone(&plan.table),
            range: PartitionRange::Key(key),
            slices: slices.clone(),
            reversed: false,
            columns: ColumnFilter::All,
            now,
            limits: DataLimits::NONE,
            indexes: Vec::new(),
        })
        .collect();
    let table = Arc::clone(&plan.table);
    let limits =
        TombstoneLimits { failure: options.limits.tombstone_failure, each_partition: true, ..TombstoneLimits::NONE };
    let read_options = ReadOptions { consistency: options.consistency, wanted_rows: None };
    let build = move |stream: &mut dyn rows::PartitionStream| {
        let mut live = LiveRows::new(stream, Arc::clone(&table), now, limits);
        let mut found = ExistingRows::default();
        while let Some(partition) = live.next_partition()? {
            let mut rows = Vec::new();
            while let Some(row) = live.next_row()? {
                rows.push(row);
            }
            found.partitions.insert(partition.key, (partition.static_row, rows));
        }
        Ok(found)
    };
    coordinator.read(commands, &read_options, build).await
}
