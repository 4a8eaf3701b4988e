//! The conditions of all statements by row, and their changes.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use rows::{
    ClusteringValues, ColumnData, ColumnFilter, DataLimits, DeletionTime, PartitionRange, PartitionUpdate, ReadCommand,
    Row, Slice, Slices,
};
use schema::{ClusteringComparator, ColumnId, ColumnMetadata, TableMetadata};
use types::DecoratedKey;

use super::BoundStatement;
use crate::context::{Bindings, MadeValues};
use crate::coordinator::CasPartition;
use crate::error::CqlError;
use crate::restrictions::StatementKind;
use crate::sources::{Sources, TransactionSources};
use crate::statements::conditions::{BoundCondition, Conditions};
use crate::statements::modification::{ExistingRows, ModificationPlan, Written};

/// The conditions on one row.
enum RowConditions {
    NotExists,
    Exists,
    Columns(Vec<BoundCondition>),
}

/// A clustering in the order of its table.
struct OrderedClustering<'a> {
    row: ClusteringValues,
    comparator: &'a ClusteringComparator,
}

impl PartialEq for OrderedClustering<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for OrderedClustering<'_> {}

impl PartialOrd for OrderedClustering<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for OrderedClustering<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.comparator.compare_values(&self.row, &other.row)
    }
}

/// The conditions and changes of all statements, which are of one partition.
pub(super) struct Request<'a> {
    pub table: &'a Arc<TableMetadata>,
    pub key: DecoratedKey,
    /// The columns of the answer when a condition fails; None: all columns.
    pub shown: Option<Vec<&'a ColumnMetadata>>,
    statements: &'a [BoundStatement<'a>],
    static_conditions: Option<RowConditions>,
    /// The conditions by row. A batch may have 65535 statements, whose rows come in any order.
    row_conditions: BTreeMap<OrderedClustering<'a>, RowConditions>,
    /// A statement with conditions changes static columns.
    changes_static: bool,
    /// A statement changes rows.
    changes_rows: bool,
}

fn invalid<T>(message: impl Into<String>) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

impl<'a> Request<'a> {
    pub fn of(statements: &'a [BoundStatement<'a>], is_batch: bool, sources: &dyn Sources) -> Result<Self, CqlError> {
        let mut request: Option<Self> = None;
        let made = MadeValues::default();
        for (plan, values) in statements {
            made.begin_statement();
            let bindings = Bindings { values, sources, made: &made };
            let key = only_key(plan, is_batch, &bindings)?;
            let request = match &mut request {
                None => request.insert(Self::empty(statements, plan, key, is_batch)),
                Some(request) if request.key != key => {
                    return invalid("Batch with conditions cannot span multiple partitions");
                }
                Some(request) => request,
            };
            if plan.restrictions.has_clustering_in() {
                let what = if plan.kind == StatementKind::Delete { "deletions" } else { "updates" };
                return invalid(format!("IN on the clustering key columns is not supported with conditional {what}"));
            }
            request.changes_rows |= plan.changes_rows();
            if plan.conditions.is_none() {
                // Cassandra knows the rows of a statement before it looks at the next one
                plan.check_rows(&bindings)?;
            } else {
                request.changes_static |= !plan.static_operations.is_empty();
                request.add(plan, &bindings)?;
            }
        }
        request.ok_or_else(|| CqlError::invalid("Invalid empty batch"))
    }

    fn empty(
        statements: &'a [BoundStatement<'a>],
        plan: &'a ModificationPlan,
        key: DecoratedKey,
        is_batch: bool,
    ) -> Self {
        let table = &plan.table;
        // in a batch the answer shows the keys, so that each row can be recognised
        let keys = if is_batch { table.partition_key.iter().chain(&table.clustering).collect() } else { Vec::new() };
        Self {
            table,
            key,
            shown: Some(keys),
            statements,
            static_conditions: None,
            row_conditions: BTreeMap::new(),
            changes_static: false,
            changes_rows: false,
        }
    }

    fn add(&mut self, plan: &'a ModificationPlan, bindings: &Bindings<'_>) -> Result<(), CqlError> {
        let row = if plan.applies_only_to_static() {
            None
        } else {
            let mut row = plan.restrictions.clusterings(&plan.table, bindings)?.pop();
            // a row of a dense table that is named by fewer columns has nulls in the others; the
            // names alone would stand for every row that begins with them
            if let Some(row) = row.as_mut().filter(|row| plan.table.flags.dense && !row.is_empty()) {
                row.resize(plan.table.clustering.len(), None);
            }
            row
        };
        match &plan.conditions {
            Conditions::None => {}
            Conditions::NotExists => {
                self.shown = None;
                self.add_existence(row, RowConditions::NotExists)?;
            }
            Conditions::Exists => {
                self.shown = None;
                self.add_existence(row, RowConditions::Exists)?;
            }
            conditions @ Conditions::Columns(_) => {
                for is_static in [false, true] {
                    let mut bound = Vec::new();
                    for condition in conditions.of(is_static) {
                        bound.push(condition.bind(bindings)?);
                        self.show(&condition.column);
                    }
                    if !bound.is_empty() {
                        self.add_columns(if is_static { None } else { row.clone() }, bound)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn show(&mut self, column: &'a ColumnMetadata) {
        if let Some(shown) = &mut self.shown
            && !shown.iter().any(|other| other.id == column.id)
        {
            shown.push(column);
        }
    }

    /// Puts the conditions of a row where no statement before has any. Otherwise those that are
    /// there are returned, with the given ones. None stands for the static row.
    fn put(
        &mut self,
        row: Option<ClusteringValues>,
        conditions: RowConditions,
    ) -> Option<(&mut RowConditions, RowConditions)> {
        let Some(row) = row else {
            return match &mut self.static_conditions {
                Some(known) => Some((known, conditions)),
                none => {
                    *none = Some(conditions);
                    None
                }
            };
        };
        let table = self.table;
        match self.row_conditions.entry(OrderedClustering { row, comparator: &table.comparator }) {
            Entry::Occupied(known) => Some((known.into_mut(), conditions)),
            Entry::Vacant(place) => {
                place.insert(conditions);
                None
            }
        }
    }

    fn add_existence(&mut self, row: Option<ClusteringValues>, wanted: RowConditions) -> Result<(), CqlError> {
        match self.put(row, wanted) {
            None => {}
            Some((RowConditions::Columns(_), wanted)) => {
                let not = if matches!(wanted, RowConditions::NotExists) { "NOT " } else { "" };
                return invalid(format!("Cannot mix IF conditions and IF {not}EXISTS for the same row"));
            }
            Some(
                (RowConditions::NotExists, RowConditions::NotExists) | (RowConditions::Exists, RowConditions::Exists),
            ) => {}
            Some(_) => return invalid("Cannot mix IF EXISTS and IF NOT EXISTS conditions for the same row"),
        }
        Ok(())
    }

    fn add_columns(&mut self, row: Option<ClusteringValues>, bound: Vec<BoundCondition>) -> Result<(), CqlError> {
        match self.put(row, RowConditions::Columns(bound)) {
            None => {}
            Some((RowConditions::Columns(known), RowConditions::Columns(bound))) => known.extend(bound),
            Some(_) => return invalid("Cannot mix IF conditions and IF NOT EXISTS for the same row"),
        }
        Ok(())
    }

    /// No condition is on a row, so that the first live row suffices to know whether the partition
    /// exists.
    pub fn looks_at_static_only(&self) -> bool {
        self.row_conditions.is_empty()
    }

    /// The read command for the conditions.
    pub fn command(&self, now: u32) -> ReadCommand {
        let comparator = &self.table.comparator;
        let (slices, rows) = if self.looks_at_static_only() {
            (Slices::all(), 1)
        } else {
            let names = self.row_conditions.keys().map(|place| Slice::of_prefix(place.row.clone()));
            (Slices::normalized(names.collect(), comparator), u32::MAX)
        };
        ReadCommand {
            table: Arc::clone(self.table),
            range: PartitionRange::Key(self.key.clone()),
            slices,
            reversed: false,
            columns: ColumnFilter::Some(self.columns()),
            now,
            limits: DataLimits { rows, per_partition: rows },
            indexes: Vec::new(),
        }
    }

    /// The columns to read: all static (or regular) columns if statements change such columns,
    /// otherwise those that conditions compare.
    fn columns(&self) -> Arc<[ColumnId]> {
        let all =
            |wanted: bool, list: &'a [ColumnMetadata]| list.iter().filter(move |_| wanted).map(|column| column.id);
        let mut ids: Vec<_> =
            all(self.changes_static, &self.table.statics).chain(all(self.changes_rows, &self.table.regulars)).collect();
        for (plan, _) in self.statements.iter().filter(|(plan, _)| !plan.conditions.is_none()) {
            ids.extend(
                [true, false].into_iter().flat_map(|is_static| plan.conditions.of(is_static)).map(|c| c.column.id),
            );
            let operations = plan.static_operations.iter().chain(&plan.operations);
            ids.extend(operations.filter(|operation| operation.requires_read()).map(|operation| operation.column()));
        }
        ids.sort_unstable();
        ids.dedup();
        ids.into()
    }

    /// Whether every condition holds.
    pub fn holds(&self, partition: &CasPartition) -> Result<bool, CqlError> {
        let static_conditions =
            self.static_conditions.iter().map(|conditions| (partition.static_row.as_ref(), conditions));
        let row_conditions = self.row_conditions.iter().map(|(place, conditions)| {
            let order = |row: &Row| place.comparator.compare_values(&row.clustering, &place.row);
            let at = partition.rows.partition_point(|row| order(row) == Ordering::Less);
            (partition.rows.get(at).filter(|row| order(row) == Ordering::Equal), conditions)
        });
        for (row, conditions) in static_conditions.chain(row_conditions) {
            let holds = match conditions {
                RowConditions::NotExists => row.is_none(),
                RowConditions::Exists => row.is_some(),
                RowConditions::Columns(conditions) => {
                    let mut all = true;
                    for condition in conditions {
                        all = all && condition.holds(row)?;
                    }
                    all
                }
            };
            if !holds {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The changes of all statements, at one timestamp. Deletions get the timestamp one step
    /// before, so that they do not delete what the same transaction writes.
    pub fn update(
        &self,
        partition: CasPartition,
        timestamp: i64,
        now: u32,
        sources: &dyn Sources,
    ) -> Result<PartitionUpdate, CqlError> {
        let existing = ExistingRows::of_partition(self.key.clone(), partition.static_row, partition.rows);
        let (mut updates, mut written) = (Vec::with_capacity(self.statements.len()), Written::default());
        let sources = TransactionSources::new(sources, timestamp);
        let made = MadeValues::default();
        for (plan, values) in self.statements {
            made.begin_statement();
            let bindings = Bindings { values, sources: &sources, made: &made };
            updates.extend(plan.updates_at(&bindings, timestamp, now, &existing, &mut written)?);
        }
        let mut all = PartitionUpdate::new(Arc::clone(self.table), self.key.clone());
        all.merge(updates);
        delete_before(&mut all, timestamp);
        Ok(all)
    }
}

fn only_key(plan: &ModificationPlan, is_batch: bool, bindings: &Bindings<'_>) -> Result<DecoratedKey, CqlError> {
    let key = plan.restrictions.keys(&plan.table, bindings)?.pop();
    if plan.restrictions.key_in {
        return if is_batch {
            invalid("Batch with conditions cannot span multiple partitions (you cannot use IN on the partition key)")
        } else {
            let what = if plan.kind == StatementKind::Delete { "deletions" } else { "updates" };
            invalid(format!("IN on the partition key is not supported with conditional {what}"))
        };
    }
    key.ok_or_else(|| CqlError::invalid("Conditional statements need the whole partition key"))
}

fn delete_before(update: &mut PartitionUpdate, timestamp: i64) {
    let earlier = |deletion: &mut DeletionTime| {
        if !deletion.is_live() {
            deletion.marked_for_delete_at = timestamp - 1;
        }
    };
    earlier(&mut update.deletion);
    update.range_deletions.iter_mut().for_each(|(_, deletion)| earlier(deletion));
    for row in update.static_row.iter_mut().chain(&mut update.rows) {
        earlier(&mut row.deletion);
        for data in &mut row.columns {
            if let ColumnData::Complex(complex) = data {
                earlier(&mut complex.deletion);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use rows::{Liveness, PartitionHead, PartitionStream, ReadError, Unfiltered};
    use schema::{Schema, TableId};
    use types::Consistency;

    use super::*;
    use crate::coordinator::CasRequest;
    use crate::ddl::restore::{RestoreOptions, restore};
    use crate::sources::NoSources;
    use crate::values::BoundValue;

    /// A partition that lies ready.
    struct Ready {
        head: Option<PartitionHead>,
        rows: std::vec::IntoIter<Row>,
    }

    impl PartitionStream for Ready {
        fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
            Ok(self.head.take())
        }

        fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
            Ok(self.rows.next().map(Unfiltered::Row))
        }
    }

    /// The largest batch, of rows in no order. Looking for each row among all that were read would
    /// take minutes here.
    #[test]
    fn the_rows_of_a_large_batch_are_found() {
        const ROWS: i32 = 65_535;
        // has no divisor in common with the number of rows, so every row comes once
        const STRIDE: i64 = 7919;
        let text = "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
            CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k, c));";
        let restoring = RestoreOptions { keyspace: None, now_micros: 1, id_of: &TableId::of_system_table };
        let schema = Arc::new(restore(text, &restoring, Schema::default()).expect("statements").schema);
        let update = "UPDATE ks.t SET v = 1 WHERE k = 1 AND c = ? IF EXISTS";
        let prepared = crate::prepare(update, None, &schema).expect("valid");
        let bytes = |c: i32| Bytes::copy_from_slice(&c.to_be_bytes());
        let shuffled = (0..i64::from(ROWS)).map(|at| i32::try_from(at * STRIDE % i64::from(ROWS)).expect("in range"));
        let values: Vec<_> = shuffled.map(|c| [BoundValue::Bytes(bytes(c))]).collect();
        let plan = prepared.modification(&values[0]).expect("an update");
        let statements: Vec<BoundStatement<'_>> = values.iter().map(|values| (plan, values.as_slice())).collect();
        let request = Request::of(&statements, true, &NoSources).expect("of one partition");

        let rows = (0..ROWS).map(|c| {
            let mut row = Row::new([Some(bytes(c))].into_iter().collect());
            row.liveness = Liveness::new(1);
            row
        });
        let head = PartitionHead::new(request.key.clone(), DeletionTime::LIVE, None);
        let asked = CasRequest {
            command: request.command(1),
            first_row_only: false,
            tombstone_failure: u64::MAX,
            serial: Consistency::Serial,
            commit: Consistency::One,
        };
        let mut stream = Ready { head: Some(head), rows: rows.collect::<Vec<_>>().into_iter() };
        let mut partition = CasPartition::read(&mut stream, &asked).expect("in memory");
        assert_eq!(partition.rows.len(), values.len());
        assert_eq!(request.holds(&partition), Ok(true));
        partition.rows.remove(4711);
        assert_eq!(request.holds(&partition), Ok(false), "a row is missing");
    }
}
