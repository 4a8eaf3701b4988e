//! INSERT, UPDATE and DELETE: their plan, and executing it, which turns bound values into
//! mutations.
//!
//! A plan holds column ids and prepared terms, so that execution looks up no name. The usual
//! statement, with `=` on every key column and columns of one cell, goes straight from the bound
//! values to one row.
//! Agrees with
//! `org.apache.cassandra.cql3.statements.{ModificationStatement,UpdateStatement,DeleteStatement}`
//! and `cql3.{Attributes,UpdateParameters}`.

mod apply;
mod assign;
mod existing;
mod index_limits;
mod operation;
mod pending_row;
mod plan;

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use rows::{
    Cell, ClusteringValues, ColumnData, DeletionTime, Liveness, Mutation, NO_DELETION_TIME, NO_TIMESTAMP, NO_TTL,
    PartitionUpdate, Row, Slices,
};
use schema::TableMetadata;
use schema::index::definition::IndexDefinition;
use types::{Consistency, CqlType, DecoratedKey};

use apply::Writer;
pub(crate) use existing::{ExistingRows, read as read_existing};
pub(crate) use operation::Operation;
use pending_row::PendingRow;
pub(crate) use plan::{prepare_delete, prepare_insert, prepare_update};

use crate::context::{Bindings, MadeValues};
use crate::coordinator::{Coordinator, EXPIRATION_MAX_CASSANDRA_4, WriteOptions};
use crate::error::CqlError;
use crate::guardrails::{QueryGuards, Write};
use crate::keys;
use crate::options::QueryOptions;
use crate::restrictions::{Restrictions, StatementKind, check_combinations};
use crate::result::{Answer, CqlResult};
use crate::statements::conditional;
use crate::statements::conditions::Conditions;
use crate::terms::Term;
use crate::values::BoundValue;

/// The most values that the statements of a request write into the rows that they name behind the
/// first of each. The rows of IN have the same values: a few hundred kilobytes of CQL name so many
/// rows with so many elements of a list that their product would fill the memory.
const CELLS_MAX: usize = if cfg!(test) { 1 << 16 } else { 1 << 22 };

/// The most values of static columns that a statement of several rows writes, and looks through
/// before: lists and counters are written once for each row. More are refused, because their
/// product grows so fast that a few hundred kilobytes of CQL would fill the memory, or hold a
/// worker for minutes.
const STATIC_CELLS_MAX: usize = if cfg!(test) { 1 << 14 } else { 1 << 20 };

/// The longest TTL, in seconds: 20 years.
pub(crate) const TTL_MAX: i32 = 20 * 365 * 24 * 60 * 60;

/// A prepared INSERT, UPDATE or DELETE.
#[derive(Debug)]
pub(crate) struct ModificationPlan {
    /// The table.
    pub table: Arc<TableMetadata>,
    /// The statement: INSERT, UPDATE or DELETE.
    pub kind: StatementKind,
    /// The prepared WHERE: partitions and rows.
    pub restrictions: Restrictions,
    /// Changes of static columns, by column id.
    pub static_operations: Vec<Operation>,
    /// Changes of regular columns, by column id.
    pub operations: Vec<Operation>,
    /// USING TIMESTAMP
    pub timestamp: Option<Term>,
    /// USING TTL
    pub ttl: Option<Term>,
    /// Some operation reads the row before it writes (list elements by index or by value).
    pub requires_read: bool,
    /// IF
    pub conditions: Conditions,
    /// The statement is an INSERT without a value for the only value column of a compact table.
    /// Such a row would have no cell, so the statement is refused when it is executed.
    pub lacks_compact_value: bool,
    /// The indexes on the table, for their limits on the length of values.
    pub indexes: Arc<[IndexDefinition]>,
    /// The materialized views of the table, in the schema that the statement was prepared against.
    pub views: Vec<Arc<TableMetadata>>,
}

/// How much the statements of a request have written so far because one statement names several
/// rows.
#[derive(Default)]
pub(crate) struct Written {
    /// Rows of the present statement, static rows included.
    rows: usize,
    /// Values in the rows behind the first of each statement ([`CELLS_MAX`]).
    cells: usize,
    /// Values of static columns that were written, or looked through, once for each of several
    /// rows ([`STATIC_CELLS_MAX`]).
    static_cells: usize,
}

impl Written {
    /// Counts a row, or refuses it. The first row of a statement is bounded by the length of the
    /// request.
    fn add(&mut self, row: &Row) -> Result<(), CqlError> {
        if self.rows > 0 {
            self.cells += cells_of(row);
        }
        self.rows += 1;
        if self.cells <= CELLS_MAX {
            return Ok(());
        }
        Err(CqlError::invalid(format!(
            "The rows that the statement names would be given more than {CELLS_MAX} values together"
        )))
    }
}

fn cells_of(row: &Row) -> usize {
    row.columns.iter().map(ColumnData::cell_count).sum()
}

/// The timestamp and TTL that a statement writes with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteTime {
    /// Write timestamp, in microseconds.
    pub timestamp: i64,
    /// TTL in seconds; 0: no expiry.
    pub ttl: u32,
    /// The present time, in seconds since 1970.
    pub now: u32,
    /// The latest second since 1970 at which a cell may expire. Cells that would expire later
    /// expire then.
    pub expiration_max: u32,
}

impl WriteTime {
    /// The local deletion time of a cell with the TTL.
    pub fn expiration(&self) -> u32 {
        if self.ttl == NO_TTL {
            return NO_DELETION_TIME;
        }
        self.now.saturating_add(self.ttl).min(self.expiration_max)
    }

    /// A deletion at the timestamp of the statement.
    pub fn deletion(&self) -> DeletionTime {
        DeletionTime::new(self.timestamp, self.now)
    }

    /// The deletion of the former content of a column that is assigned: one step before the
    /// timestamp of the statement.
    pub fn overwrite(&self) -> DeletionTime {
        DeletionTime::new(self.timestamp.saturating_sub(1), self.now)
    }

    fn liveness(&self) -> Liveness {
        if self.ttl == NO_TTL {
            Liveness::new(self.timestamp)
        } else {
            Liveness::expiring(self.timestamp, self.ttl, self.expiration())
        }
    }
}

/// A cell with a value, or a tombstone if there is none.
pub(crate) fn cell(column: schema::ColumnId, path: Option<Bytes>, value: Option<Bytes>, time: &WriteTime) -> Cell {
    match value {
        Some(value) => Cell {
            column,
            timestamp: time.timestamp,
            ttl: time.ttl,
            local_deletion_time: time.expiration(),
            path,
            value,
        },
        None => Cell { path, ..Cell::tombstone(column, time.timestamp, time.now) },
    }
}

impl ModificationPlan {
    /// The statement has USING TIMESTAMP.
    pub fn sets_timestamp(&self) -> bool {
        self.timestamp.is_some()
    }

    /// Refuses combinations with IF. In a batch this is checked for each statement before the batch
    /// as a whole is.
    fn check_conditions(self) -> Result<Self, CqlError> {
        if self.conditions.is_none() {
            return Ok(self);
        }
        if self.table.is_counter() {
            return Err(CqlError::invalid("Conditional updates are not supported on counter tables"));
        }
        if self.timestamp.is_some() {
            return Err(CqlError::invalid("Cannot provide custom timestamp for conditional updates"));
        }
        Ok(self)
    }

    /// Refuses combinations of clauses that no statement may have.
    pub fn validate(&self) -> Result<(), CqlError> {
        let refuse = |what: &str| Err(CqlError::invalid(what));
        if self.table.is_counter() && self.timestamp.is_some() {
            return refuse("Cannot provide custom timestamp for counter updates");
        }
        if self.table.is_counter() && self.ttl.is_some() {
            return refuse("Cannot provide custom TTL for counter updates");
        }
        if self.table.is_virtual() && self.timestamp.is_some() {
            return refuse("Custom timestamp is not supported by virtual tables");
        }
        if self.table.is_virtual() && self.ttl.is_some() {
            return refuse("Expiring columns are not supported by virtual tables");
        }
        if self.table.is_virtual() && !self.conditions.is_none() {
            return refuse("Conditional updates are not supported by virtual tables");
        }
        Ok(())
    }

    /// The statement changes rows, not only static columns.
    pub fn changes_rows(&self) -> bool {
        self.table.clustering.is_empty() || self.restrictions.restricts_clustering
    }

    /// The statement writes and compares static columns only, and its WHERE names no row.
    pub fn applies_only_to_static(&self) -> bool {
        let changes_only_static = !self.static_operations.is_empty() && self.operations.is_empty();
        changes_only_static && !self.conditions.applies_to_regular() && !self.restrictions.restricts_clustering
    }

    /// The timestamp and TTL to write with. `default` is the request's timestamp, or the clock's.
    fn write_time(&self, bindings: &Bindings<'_>, default: i64, now: u32) -> Result<WriteTime, CqlError> {
        self.write_time_at(bindings, self.timestamp(bindings, default)?, now)
    }

    /// The TTL to write with, beside a timestamp that is known.
    fn write_time_at(&self, bindings: &Bindings<'_>, timestamp: i64, now: u32) -> Result<WriteTime, CqlError> {
        let expiration_max = bindings.sources.expiration_max();
        Ok(WriteTime { timestamp, ttl: self.time_to_live(bindings, now, expiration_max)?, now, expiration_max })
    }

    /// The timestamp to write with.
    fn timestamp(&self, bindings: &Bindings<'_>, default: i64) -> Result<i64, CqlError> {
        let timestamp = match &self.timestamp {
            None => default,
            Some(term) => match term.eval(bindings)? {
                BoundValue::Bytes(bytes) => <[u8; 8]>::try_from(bytes.as_ref())
                    .map(i64::from_be_bytes)
                    .map_err(|_| CqlError::invalid("Invalid timestamp value"))?,
                BoundValue::Null => return Err(CqlError::invalid("Invalid null value of timestamp")),
                BoundValue::Unset => default,
            },
        };
        if timestamp == NO_TIMESTAMP {
            return Err(CqlError::invalid(format!(
                "Out of bound timestamp, must be in [{}, {}]",
                NO_TIMESTAMP + 1,
                i64::MAX
            )));
        }
        Ok(timestamp)
    }

    /// The TTL to write with, at the present time and with the latest end that is possible, both in
    /// seconds since 1970.
    fn time_to_live(&self, bindings: &Bindings<'_>, now: u32, expiration_max: u32) -> Result<u32, CqlError> {
        let default = u32::try_from(self.table.params.default_time_to_live).unwrap_or(NO_TTL);
        let is_too_late = |ttl: u32| ttl != NO_TTL && now.saturating_add(ttl) > expiration_max;
        let Some(term) = &self.ttl else {
            // a deletion writes nothing that expires
            if is_too_late(default) && self.kind != StatementKind::Delete {
                return Err(self.expires_too_late(default, "default ", expiration_max));
            }
            return Ok(default);
        };
        let value = match term.eval(bindings)? {
            // as in Cassandra: null and no bytes mean no TTL, unset means the default of the table,
            // which is not refused: cells expire as late as is possible
            BoundValue::Bytes(bytes) if bytes.is_empty() => 0,
            BoundValue::Bytes(bytes) => <[u8; 4]>::try_from(bytes.as_ref())
                .map(i32::from_be_bytes)
                .map_err(|_| CqlError::invalid("Invalid TTL value"))?,
            BoundValue::Null => 0,
            BoundValue::Unset => return Ok(default),
        };
        if value > TTL_MAX {
            return Err(CqlError::invalid(format!("ttl is too large. requested ({value}) maximum ({TTL_MAX})")));
        }
        let Ok(ttl) = u32::try_from(value) else {
            return Err(CqlError::invalid(format!("A TTL must be greater or equal to 0, but was {value}")));
        };
        if is_too_late(ttl) {
            return Err(self.expires_too_late(ttl, "", expiration_max));
        }
        Ok(ttl)
    }

    /// Refuses a TTL that ends later than some node can say. Agrees with
    /// `ExpirationDateOverflowHandling`, whose policy is REJECT.
    fn expires_too_late(&self, ttl: u32, of: &str, expiration_max: u32) -> CqlError {
        let date = match expiration_max {
            EXPIRATION_MAX_CASSANDRA_4 => "2038-01-19T03:14:06+00:00",
            _ => "2106-02-07T06:28:13+00:00",
        };
        let (keyspace, name) = (&self.table.keyspace, &self.table.name);
        CqlError::invalid(format!(
            "Request on table {keyspace}.{name} with {of}ttl of {ttl} seconds exceeds maximum supported expiration date of \
             {date}. In order to avoid this use a lower TTL, change the expiration date overflow policy or upgrade to a \
             version where this limitation is fixed. See CASSANDRA-14092 and CASSANDRA-14227 for more details."
        ))
    }

    /// The updates that the statement makes, one for each partition. `default` is the request's
    /// timestamp, or the clock's. With an empty IN there are none, and nothing else is evaluated.
    pub fn updates(
        &self,
        bindings: &Bindings<'_>,
        default: i64,
        now: u32,
        existing: &ExistingRows,
        written: &mut Written,
    ) -> Result<Vec<PartitionUpdate>, CqlError> {
        self.updates_with(bindings, existing, written, || self.write_time(bindings, default, now))
    }

    /// The updates, written at the timestamp of the conditional transaction that the statement is
    /// part of.
    pub fn updates_at(
        &self,
        bindings: &Bindings<'_>,
        timestamp: i64,
        now: u32,
        existing: &ExistingRows,
        written: &mut Written,
    ) -> Result<Vec<PartitionUpdate>, CqlError> {
        let time = || Ok(WriteTime { timestamp, ..self.write_time(bindings, timestamp, now)? });
        self.updates_with(bindings, existing, written, time)
    }

    fn updates_with(
        &self,
        bindings: &Bindings<'_>,
        existing: &ExistingRows,
        written: &mut Written,
        time: impl FnOnce() -> Result<WriteTime, CqlError>,
    ) -> Result<Vec<PartitionUpdate>, CqlError> {
        let keys = self.restrictions.keys(&self.table, bindings)?;
        let target = self.target(bindings)?;
        if target.is_nothing() && self.restrictions.restricts_clustering {
            return Ok(Vec::new());
        }
        check_combinations(keys.len(), target.count())?;
        let time = time()?;
        written.rows = 0;
        let mut updates = Vec::with_capacity(keys.len());
        for key in keys {
            let mut update = PartitionUpdate::new(Arc::clone(&self.table), key);
            self.fill(&mut update, &target, bindings, &time, existing, written)?;
            if !self.indexes.is_empty() {
                index_limits::check(&update, &self.indexes)?;
            }
            updates.push(update);
        }
        Ok(updates)
    }

    /// Evaluates the statement's WHERE: a mistake in it is told. Ranges that end at null are told
    /// of when they are written, which is behind the checks of a batch.
    pub fn check_rows(&self, bindings: &Bindings<'_>) -> Result<(), CqlError> {
        if self.restrictions.has_clustering_slice() {
            return self.restrictions.slices(&self.table, bindings).map(drop);
        }
        self.target(bindings).map(drop)
    }

    /// The part of each partition that the statement changes.
    fn target(&self, bindings: &Bindings<'_>) -> Result<WriteTarget, CqlError> {
        let width = self.restrictions.clustering_width();
        let all = self.table.clustering.len();
        if self.kind == StatementKind::Delete && self.operations.is_empty() && self.static_operations.is_empty() {
            if width == 0 {
                return Ok(if all == 0 { WriteTarget::Partition } else { WriteTarget::WholePartition });
            }
            if width < all || self.restrictions.has_clustering_slice() {
                let slices = self.restrictions.slices(&self.table, bindings)?;
                self.check_ends(&slices)?;
                return Ok(WriteTarget::Ranges(slices));
            }
            let rows = self.restrictions.clusterings(&self.table, bindings)?;
            rows.iter().try_for_each(|clustering| self.check_dense(clustering))?;
            return Ok(WriteTarget::Rows(rows));
        }
        if self.restrictions.has_clustering_slice()
            || (!self.operations.is_empty() && self.kind == StatementKind::Delete && width < all)
        {
            return Err(CqlError::invalid("Range deletions are not supported for specific columns"));
        }
        if width < all && !(self.table.flags.dense && width > 0) {
            return Ok(WriteTarget::StaticOnly);
        }
        let mut rows = self.restrictions.clusterings(&self.table, bindings)?;
        for clustering in &mut rows {
            self.check_dense(clustering)?;
            clustering.resize(all, None);
        }
        Ok(WriteTarget::Rows(rows))
    }

    /// Refuses a range of rows that begins or ends at null. Cassandra sends such a deletion to its
    /// replicas, which throw and never take it: in a ring of both kinds, replicas would differ for
    /// ever, and each read that meets the difference would wait in its repair.
    fn check_ends(&self, slices: &Slices) -> Result<(), CqlError> {
        let ends = slices.0.iter().flat_map(|slice| [&slice.start, &slice.end]);
        match ends.filter_map(|end| end.values.iter().position(Option::is_none)).min() {
            None => Ok(()),
            Some(position) => {
                let name = self.table.clustering.get(position).map_or("", |column| &column.name);
                Err(CqlError::invalid(format!("Invalid null value in condition for column {name}")))
            }
        }
    }

    /// Refuses an empty value of the only clustering column of a compact table, because it is the
    /// name of a cell there.
    fn check_dense(&self, clustering: &ClusteringValues) -> Result<(), CqlError> {
        let is_empty = |value: &Option<Bytes>| value.as_ref().is_none_or(Bytes::is_empty);
        if self.table.flags.dense && !self.table.flags.compound && clustering.first().is_none_or(is_empty) {
            let name = &self.table.clustering[0].name;
            return Err(CqlError::invalid(format!("Invalid empty or null value for column {name}")));
        }
        Ok(())
    }

    /// Writes the changes of one partition. `written`: what was written before, of other
    /// partitions too.
    fn fill(
        &self,
        update: &mut PartitionUpdate,
        target: &WriteTarget,
        bindings: &Bindings<'_>,
        time: &WriteTime,
        existing: &ExistingRows,
        written: &mut Written,
    ) -> Result<(), CqlError> {
        match target {
            WriteTarget::Partition | WriteTarget::WholePartition => {
                if self.kind == StatementKind::Delete {
                    update.deletion = time.deletion();
                    return Ok(());
                }
            }
            WriteTarget::Ranges(slices) => {
                update.range_deletions.extend(slices.0.iter().cloned().map(|slice| (slice, time.deletion())));
                return Ok(());
            }
            WriteTarget::Rows(clusterings) => {
                for clustering in clusterings {
                    keys::check_clustering(clustering)?;
                    let row = self.row(&update.key, clustering.clone(), bindings, time, existing)?;
                    written.add(&row)?;
                    if !row.is_empty() {
                        update.add_row(row);
                    }
                }
            }
            WriteTarget::StaticOnly => {}
        }
        // as in Cassandra, operations on static columns are applied once for each row that is
        // named; counters and lists show it
        let rows = if let WriteTarget::Rows(rows) = target { rows.len() } else { 1 };
        match self.static_operations.iter().any(Operation::adds_up) {
            true if rows > 1 => self.add_statics(update, rows, bindings, time, existing, &mut written.static_cells),
            false if self.static_operations.is_empty() => Ok(()),
            _ if rows == 0 => Ok(()),
            _ => {
                let row = self.static_row(&update.key, bindings, time, existing)?;
                written.add(&row)?;
                if !row.is_empty() {
                    update.add_static(row);
                }
                Ok(())
            }
        }
    }

    /// The changes of static columns.
    fn static_row(
        &self,
        key: &DecoratedKey,
        bindings: &Bindings<'_>,
        time: &WriteTime,
        existing: &ExistingRows,
    ) -> Result<Row, CqlError> {
        let mut row = Row::new(ClusteringValues::new());
        self.apply(&self.static_operations, &mut row, bindings, time, existing.static_row(key))?;
        Ok(row)
    }

    /// Applies the operations on static columns so many times.
    fn add_statics(
        &self,
        update: &mut PartitionUpdate,
        times: usize,
        bindings: &Bindings<'_>,
        time: &WriteTime,
        existing: &ExistingRows,
        cells: &mut usize,
    ) -> Result<(), CqlError> {
        let looked_through = self.static_cells_read(existing.static_row(&update.key));
        let mut rows = Vec::new();
        for _ in 0..times {
            *cells += looked_through;
            let row = self.static_row(&update.key, bindings, time, existing)?;
            *cells += cells_of(&row);
            if *cells > STATIC_CELLS_MAX {
                return Err(CqlError::invalid(format!(
                    "The statement would read and write static columns once for each row that it names, with more than \
                     {STATIC_CELLS_MAX} values together"
                )));
            }
            rows.push(row);
        }
        // in pairs: a merge passes all elements of a list
        while rows.len() > 1 {
            let (mut merged, mut rest) = (Vec::with_capacity(rows.len().div_ceil(2)), rows.into_iter());
            while let Some(mut first) = rest.next() {
                if let Some(second) = rest.next() {
                    first.merge(second, &self.table);
                }
                merged.push(first);
            }
            rows = merged;
        }
        rows.into_iter().filter(|row| !row.is_empty()).for_each(|row| update.add_static(row));
        Ok(())
    }

    /// How many cells of the static row before the statement its operations look through.
    fn static_cells_read(&self, before: Option<&Row>) -> usize {
        let reading = self.static_operations.iter().filter(|operation| operation.requires_read());
        let columns: BTreeSet<_> = reading.map(Operation::column).collect();
        let cells = before.into_iter().flat_map(|row| &row.columns).filter(|data| columns.contains(&data.column()));
        cells.map(ColumnData::cell_count).sum()
    }

    /// Refuses the clustering of a row that lacks values, which restrictions have let through by
    /// mistake: such a row could be written and not be read again. Rows of dense tables may have
    /// nulls at the end.
    fn check_whole(&self, clustering: &ClusteringValues) -> Result<(), CqlError> {
        let all = self.table.clustering.len();
        let given = clustering.iter().filter(|value| value.is_some() || self.table.flags.dense).count();
        if clustering.len() == all && given == all {
            return Ok(());
        }
        Err(CqlError::Server(format!(
            "The row was not written: the statement gives {given} of {all} values of the clustering columns of {}.{}",
            self.table.keyspace, self.table.name
        )))
    }

    /// The changes of a row.
    fn row(
        &self,
        key: &DecoratedKey,
        clustering: ClusteringValues,
        bindings: &Bindings<'_>,
        time: &WriteTime,
        existing: &ExistingRows,
    ) -> Result<Row, CqlError> {
        if let (true, Some(value)) = (self.lacks_compact_value, self.table.compact_value()) {
            return Err(CqlError::invalid(format!(
                "Column {} is mandatory for this COMPACT STORAGE table",
                value.name
            )));
        }
        self.check_whole(&clustering)?;
        let before = existing.row(key, &clustering, &self.table.comparator);
        let mut row = Row::new(clustering);
        let changes_nothing = self.operations.is_empty() && self.static_operations.is_empty();
        match (self.kind, self.table.compact_value()) {
            (StatementKind::Insert, None) => row.liveness = time.liveness(),
            // rows of compact tables have no liveness: they are their cells
            (StatementKind::Insert, Some(value)) if changes_nothing && value.ty == CqlType::Empty => {
                row.add_cell(cell(value.id, None, Some(Bytes::new()), time));
            }
            (StatementKind::Delete, None) if changes_nothing => row.deletion = time.deletion(),
            (StatementKind::Delete, Some(value)) if changes_nothing => row.add_cell(cell(value.id, None, None, time)),
            _ => {}
        }
        row.columns.reserve(self.operations.len());
        self.apply(&self.operations, &mut row, bindings, time, before)?;
        Ok(row)
    }

    fn apply(
        &self,
        operations: &[Operation],
        row: &mut Row,
        bindings: &Bindings<'_>,
        time: &WriteTime,
        before: Option<&Row>,
    ) -> Result<(), CqlError> {
        let pending = PendingRow::new(row, &self.table, before, time.now);
        let mut writer = Writer { pending, bindings, time };
        operations.iter().try_for_each(|operation| operation.apply(&mut writer))?;
        writer.pending.finish();
        Ok(())
    }
}

/// The part of a partition that a statement changes.
enum WriteTarget {
    /// The only row of a table without clustering columns.
    Partition,
    /// The whole partition, static row included.
    WholePartition,
    /// The rows in ranges.
    Ranges(Slices),
    /// The rows of these clusterings.
    Rows(Vec<ClusteringValues>),
    /// Only the static row.
    StaticOnly,
}

impl WriteTarget {
    /// Rows or ranges that are changed in each partition.
    fn count(&self) -> usize {
        match self {
            Self::Ranges(slices) => slices.0.len(),
            Self::Rows(rows) => rows.len(),
            Self::Partition | Self::WholePartition | Self::StaticOnly => 1,
        }
    }

    fn is_nothing(&self) -> bool {
        match self {
            Self::Ranges(slices) => slices.0.is_empty(),
            Self::Rows(rows) => rows.is_empty(),
            Self::Partition | Self::WholePartition | Self::StaticOnly => false,
        }
    }
}

/// The write timestamp of a request: the client's, or the clock's.
pub(crate) fn default_timestamp<C: Coordinator>(options: &QueryOptions, coordinator: &C) -> i64 {
    options.timestamp.unwrap_or_else(|| coordinator.now_micros())
}

/// The present time of a request, in seconds: the client's, or the clock's.
pub(crate) fn request_seconds<C: Coordinator>(options: &QueryOptions, coordinator: &C) -> u32 {
    options.now_in_seconds.unwrap_or_else(|| coordinator.now_seconds())
}

/// Executes one statement.
pub(crate) async fn execute<C: Coordinator>(
    plan: &ModificationPlan,
    values: &[BoundValue],
    options: &QueryOptions,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    if !plan.conditions.is_none() {
        return conditional::execute(&[(plan, values)], false, options, coordinator).await;
    }
    let warnings = write(plan, values, options, coordinator).await?;
    Ok(Answer { result: CqlResult::Void, warnings })
}

/// Checks the guardrails on the consistency levels of a write.
pub(crate) fn guard_levels(options: &QueryOptions, warnings: &mut Vec<String>) -> Result<(), CqlError> {
    let Some(guardrails) = &options.guardrails else { return Ok(()) };
    let serial = options.serial_consistency.unwrap_or(Consistency::Serial);
    guardrails.write.check_levels(options.consistency, serial, warnings)
}

/// Checks the guardrails on a statement.
pub(crate) fn guard<C: Coordinator>(
    plan: &ModificationPlan,
    bindings: &Bindings<'_>,
    options: &QueryOptions,
    coordinator: &C,
    warnings: &mut Vec<String>,
) -> Result<(), CqlError> {
    let Some(guardrails) = &options.guardrails else { return Ok(()) };
    let now = coordinator.now_micros();
    let timestamp = match &plan.timestamp {
        Some(_) => Some(plan.write_time(bindings, now, 0)?.timestamp),
        None => None,
    };
    let mut operations = plan.static_operations.iter().chain(&plan.operations);
    let list_operation = operations.find_map(Operation::reading_list);
    guardrails.write.check(&Write { table: &plan.table, timestamp, list_operation }, now, warnings)?;
    guard_products(plan, bindings, &guardrails.query, warnings)
}

/// Checks the guardrails on the product of IN relations, as for reads.
fn guard_products(
    plan: &ModificationPlan,
    bindings: &Bindings<'_>,
    guards: &QueryGuards,
    warnings: &mut Vec<String>,
) -> Result<(), CqlError> {
    let (restrictions, table) = (&plan.restrictions, &plan.table);
    if guards.in_select_cartesian_product.is_off() {
        return Ok(());
    }
    if restrictions.key_in {
        guards.check_product("partition key", restrictions.keys(table, bindings)?.len(), warnings)?;
    }
    if restrictions.names_rows_by_in(table) {
        guards.check_product("clustering key", restrictions.clusterings(table, bindings)?.len(), warnings)?;
    }
    Ok(())
}

/// Checks the guardrails on the values to be written.
pub(crate) fn guard_update(
    update: &PartitionUpdate,
    options: &QueryOptions,
    warnings: &mut Vec<String>,
) -> Result<(), CqlError> {
    match &options.guardrails {
        Some(guardrails) => guardrails.write.check_update(update, warnings),
        None => Ok(()),
    }
}

async fn write<C: Coordinator>(
    plan: &ModificationPlan,
    values: &[BoundValue],
    options: &QueryOptions,
    coordinator: &C,
) -> Result<Vec<String>, CqlError> {
    check_consistency(options.consistency, [plan])?;
    let bindings = Bindings { values, sources: coordinator, made: &MadeValues::default() };
    let mut warnings = Vec::new();
    guard_levels(options, &mut warnings)?;
    guard(plan, &bindings, options, coordinator, &mut warnings)?;
    let now = request_seconds(options, coordinator);
    let default = default_timestamp(options, coordinator);
    // before the key, as in Cassandra, unlike in a batch
    let timestamp = plan.timestamp(&bindings, default)?;
    let existing = if plan.requires_read {
        read_existing(plan, &bindings, options, now, coordinator).await?
    } else {
        ExistingRows::default()
    };
    let time = || plan.write_time_at(&bindings, timestamp, now);
    let updates = plan.updates_with(&bindings, &existing, &mut Written::default(), time)?;
    updates.iter().try_for_each(|update| guard_update(update, options, &mut warnings))?;
    let mutations: Vec<_> = updates.into_iter().filter(|update| !update.is_empty()).map(Mutation::of).collect();
    if mutations.is_empty() {
        return Ok(warnings);
    }
    let counters = plan.table.is_counter();
    let write = WriteOptions { consistency: options.consistency, counters, ..WriteOptions::default() };
    coordinator.mutate(mutations, &write).await?;
    Ok(warnings)
}

/// Refuses consistency levels that a write cannot have: SERIAL is for conditional statements, and
/// ANY does not work for counters, which are read before they are written.
pub(crate) fn check_consistency<'p>(
    consistency: Consistency,
    plans: impl IntoIterator<Item = &'p ModificationPlan>,
) -> Result<(), CqlError> {
    let counters = plans.into_iter().map(|plan| &plan.table).find(|table| table.is_counter());
    match (counters, consistency) {
        (Some(table), Consistency::Any) => Err(CqlError::invalid(format!(
            "Consistency level ANY is not yet supported for counter table {}",
            table.name
        ))),
        (Some(_), level) if level.is_serial() => {
            Err(CqlError::invalid("Counter operations are inherently non-serializable"))
        }
        (None, level) if level.is_serial() => {
            Err(CqlError::invalid("You must use conditional updates for serializable writes"))
        }
        _ => Ok(()),
    }
}
