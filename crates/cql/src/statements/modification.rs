//! INSERT, UPDATE, DELETE: planning, and turning a plan with bound values into mutations.
//!
//! A plan holds column ids and prepared terms: executing looks up no name. The usual statement (every key column by `=`,
//! simple columns) is a straight line from bound values to one row.
//! Agrees with `org.apache.cassandra.cql3.statements.{ModificationStatement,UpdateStatement,DeleteStatement}` and
//! `cql3.{Attributes,UpdateParameters}`.

mod apply;
mod assign;
mod existing;
mod indexed;
mod operation;
mod plan;

use std::sync::Arc;

use bytes::Bytes;
use rows::{
    Cell, ClusteringValues, DeletionTime, Liveness, Mutation, NO_DELETION_TIME, NO_TIMESTAMP, NO_TTL, PartitionUpdate,
    Row, Slices,
};
use schema::TableMetadata;
use schema::index::definition::IndexDefinition;
use types::{Consistency, CqlType};

pub(crate) use existing::{ExistingRows, read as read_existing};
pub(crate) use operation::Operation;
pub(crate) use plan::{prepare_delete, prepare_insert, prepare_update};

use crate::context::Bindings;
use crate::coordinator::{Coordinator, WriteOptions};
use crate::error::CqlError;
use crate::guardrails::{QueryGuards, Write};
use crate::keys;
use crate::options::QueryOptions;
use crate::restrictions::{Restrictions, StatementKind};
use crate::result::{Answer, CqlResult};
use crate::statements::conditional;
use crate::statements::conditions::Conditions;
use crate::terms::Term;
use crate::values::BoundValue;

/// The longest TTL: 20 years.
pub(crate) const MAX_TTL: i32 = 20 * 365 * 24 * 60 * 60;
/// The latest local deletion time that is written: what expires later expires then.
const MAX_DELETION_TIME: i64 = u32::MAX as i64 - 1;

/// A prepared INSERT, UPDATE or DELETE.
#[derive(Debug)]
pub(crate) struct ModificationPlan {
    /// Its table.
    pub table: Arc<TableMetadata>,
    /// Which statement.
    pub kind: StatementKind,
    /// Which partitions and rows.
    pub restrictions: Restrictions,
    /// Changes of static columns, by column id.
    pub static_operations: Vec<Operation>,
    /// Changes of regular columns, by column id.
    pub operations: Vec<Operation>,
    /// USING TIMESTAMP
    pub timestamp: Option<Term>,
    /// USING TTL
    pub ttl: Option<Term>,
    /// Some operation looks at what is there (list elements by index or value).
    pub requires_read: bool,
    /// IF
    pub conditions: Conditions,
    /// An INSERT gives no value to the one value column of a compact table, which is all that a row of it is: it is refused when
    /// it is executed.
    pub lacks_compact_value: bool,
    /// Indexes whose values have a greatest length.
    pub indexes: Arc<[IndexDefinition]>,
}

/// What a statement writes with: its time and how long what it writes lives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteTime {
    /// Microseconds.
    pub timestamp: i64,
    /// Seconds to live.
    pub ttl: u32,
    /// The clock, seconds.
    pub now: u32,
}

impl WriteTime {
    /// When what is written now expires.
    pub fn expiration(&self) -> u32 {
        if self.ttl == NO_TTL {
            return NO_DELETION_TIME;
        }
        let end = (i64::from(self.now) + i64::from(self.ttl)).min(MAX_DELETION_TIME);
        u32::try_from(end).expect("it was capped")
    }

    /// A deletion now.
    pub fn deletion(&self) -> DeletionTime {
        DeletionTime::new(self.timestamp, self.now)
    }

    /// A deletion of what was before an assignment of now.
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

/// A value to write, or nothing.
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
    /// A statement that gives its own timestamp.
    pub fn sets_timestamp(&self) -> bool {
        self.timestamp.is_some()
    }

    /// What conditions cannot stand with, said of each statement of a batch before anything is said of the batch.
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

    /// What a statement may not have, whatever its parts are.
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

    /// Rows, and not only static columns, are changed.
    pub fn changes_rows(&self) -> bool {
        self.table.clustering.is_empty() || self.restrictions.restricts_clustering
    }

    /// Nothing but static columns is changed or looked at, and no row is named.
    pub fn applies_only_to_static(&self) -> bool {
        let changes_only_static = !self.static_operations.is_empty() && self.operations.is_empty();
        changes_only_static && !self.conditions.applies_to_regular() && !self.restrictions.restricts_clustering
    }

    /// The time to write with. `default`: the request's timestamp, or the clock's.
    fn write_time(&self, bindings: &Bindings<'_>, default: i64, now: u32) -> Result<WriteTime, CqlError> {
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
        Ok(WriteTime { timestamp, ttl: self.time_to_live(bindings)?, now })
    }

    fn time_to_live(&self, bindings: &Bindings<'_>) -> Result<u32, CqlError> {
        let default = self.table.params.default_time_to_live;
        let Some(term) = &self.ttl else { return Ok(u32::try_from(default).unwrap_or(NO_TTL)) };
        let value = match term.eval(bindings)? {
            BoundValue::Bytes(bytes) => <[u8; 4]>::try_from(bytes.as_ref())
                .map(i32::from_be_bytes)
                .map_err(|_| CqlError::invalid("Invalid TTL value"))?,
            // as in Cassandra: null is no TTL at all, unset the table's
            BoundValue::Null => 0,
            BoundValue::Unset => default,
        };
        if value < 0 {
            return Err(CqlError::invalid(format!("A TTL must be greater or equal to 0, but was {value}")));
        }
        if value > MAX_TTL {
            return Err(CqlError::invalid(format!("ttl is too large. requested ({value}) maximum ({MAX_TTL})")));
        }
        Ok(u32::try_from(value).expect("it is not negative"))
    }

    /// The updates that the statement makes, one for each partition. `default`: the request's timestamp, or the clock's.
    /// IN () selects nothing: then nothing else is looked at.
    pub fn updates(
        &self,
        bindings: &Bindings<'_>,
        default: i64,
        now: u32,
        existing: &ExistingRows,
    ) -> Result<Vec<PartitionUpdate>, CqlError> {
        self.updates_with(bindings, existing, || self.write_time(bindings, default, now))
    }

    /// The updates, written at a time whatever the statement says: that of the transaction which it is part of.
    pub fn updates_at(
        &self,
        bindings: &Bindings<'_>,
        timestamp: i64,
        now: u32,
        existing: &ExistingRows,
    ) -> Result<Vec<PartitionUpdate>, CqlError> {
        let time = || Ok(WriteTime { timestamp, ..self.write_time(bindings, timestamp, now)? });
        self.updates_with(bindings, existing, time)
    }

    fn updates_with(
        &self,
        bindings: &Bindings<'_>,
        existing: &ExistingRows,
        time: impl FnOnce() -> Result<WriteTime, CqlError>,
    ) -> Result<Vec<PartitionUpdate>, CqlError> {
        let keys = self.restrictions.keys(&self.table, bindings)?;
        let target = self.target(bindings)?;
        if target.is_nothing() && self.restrictions.restricts_clustering {
            return Ok(Vec::new());
        }
        let time = time()?;
        let mut updates = Vec::with_capacity(keys.len());
        for key in keys {
            let mut update = PartitionUpdate::new(Arc::clone(&self.table), key);
            self.fill(&mut update, &target, bindings, &time, existing)?;
            if !self.indexes.is_empty() {
                indexed::check(&update, &self.indexes)?;
            }
            updates.push(update);
        }
        Ok(updates)
    }

    /// What of each partition the statement is about.
    fn target(&self, bindings: &Bindings<'_>) -> Result<Extent, CqlError> {
        let width = self.restrictions.clustering_width();
        let all = self.table.clustering.len();
        if self.kind == StatementKind::Delete && self.operations.is_empty() && self.static_operations.is_empty() {
            if width == 0 {
                return Ok(if all == 0 { Extent::Partition } else { Extent::WholePartition });
            }
            if width < all || self.restrictions.has_clustering_slice() {
                return Ok(Extent::Ranges(self.restrictions.slices(&self.table, bindings)?));
            }
            let rows = self.restrictions.clusterings(&self.table, bindings)?;
            rows.iter().try_for_each(|clustering| self.check_dense(clustering))?;
            return Ok(Extent::Rows(rows));
        }
        if self.restrictions.has_clustering_slice()
            || (!self.operations.is_empty() && self.kind == StatementKind::Delete && width < all)
        {
            return Err(CqlError::invalid("Range deletions are not supported for specific columns"));
        }
        if width < all && !(self.table.flags.dense && width > 0) {
            return Ok(Extent::StaticOnly);
        }
        let mut rows = self.restrictions.clusterings(&self.table, bindings)?;
        for clustering in &mut rows {
            self.check_dense(clustering)?;
            clustering.resize(all, None);
        }
        Ok(Extent::Rows(rows))
    }

    /// Where the only clustering column of a compact table is the name of a cell, it may not be empty.
    fn check_dense(&self, clustering: &ClusteringValues) -> Result<(), CqlError> {
        let is_empty = |value: &Option<Bytes>| value.as_ref().is_none_or(Bytes::is_empty);
        if self.table.flags.dense && !self.table.flags.compound && clustering.first().is_none_or(is_empty) {
            let name = &self.table.clustering[0].name;
            return Err(CqlError::invalid(format!("Invalid empty or null value for column {name}")));
        }
        Ok(())
    }

    fn fill(
        &self,
        update: &mut PartitionUpdate,
        target: &Extent,
        bindings: &Bindings<'_>,
        time: &WriteTime,
        existing: &ExistingRows,
    ) -> Result<(), CqlError> {
        match target {
            Extent::Partition | Extent::WholePartition => {
                if self.kind == StatementKind::Delete {
                    update.deletion = time.deletion();
                    return Ok(());
                }
            }
            Extent::Ranges(slices) => {
                update.range_deletions.extend(slices.0.iter().cloned().map(|slice| (slice, time.deletion())));
                return Ok(());
            }
            Extent::Rows(clusterings) => {
                for clustering in clusterings {
                    keys::check_clustering(clustering)?;
                    self.add_row(update, clustering.clone(), bindings, time, existing)?;
                }
            }
            Extent::StaticOnly => {}
        }
        // as in Cassandra once for each row that is named: counters and lists show it
        let times = if let Extent::Rows(rows) = target { rows.len() } else { 1 };
        let times = if self.static_operations.is_empty() { 0 } else { times };
        for _ in 0..times {
            let mut row = Row::new(ClusteringValues::new());
            let before = existing.row(&update.key, None);
            self.apply(&self.static_operations, &mut row, bindings, time, before)?;
            if !row.is_empty() {
                update.add_static(row);
            }
        }
        Ok(())
    }

    fn add_row(
        &self,
        update: &mut PartitionUpdate,
        clustering: ClusteringValues,
        bindings: &Bindings<'_>,
        time: &WriteTime,
        existing: &ExistingRows,
    ) -> Result<(), CqlError> {
        if let (true, Some(value)) = (self.lacks_compact_value, self.table.compact_value()) {
            return Err(CqlError::invalid(format!(
                "Column {} is mandatory for this COMPACT STORAGE table",
                value.name
            )));
        }
        let before = existing.row(&update.key, Some(&clustering));
        let mut row = Row::new(clustering);
        let changes_nothing = self.operations.is_empty() && self.static_operations.is_empty();
        match (self.kind, self.table.compact_value()) {
            (StatementKind::Insert, None) => row.liveness = time.liveness(),
            // a row of a compact table is its one cell
            (StatementKind::Insert, Some(value)) if changes_nothing && value.ty == CqlType::Empty => {
                row.add_cell(cell(value.id, None, Some(Bytes::new()), time));
            }
            (StatementKind::Delete, None) if changes_nothing => row.deletion = time.deletion(),
            (StatementKind::Delete, Some(value)) if changes_nothing => row.add_cell(cell(value.id, None, None, time)),
            _ => {}
        }
        row.columns.reserve(self.operations.len());
        self.apply(&self.operations, &mut row, bindings, time, before)?;
        if !row.is_empty() {
            update.add_row(row);
        }
        Ok(())
    }

    fn apply(
        &self,
        operations: &[Operation],
        row: &mut Row,
        bindings: &Bindings<'_>,
        time: &WriteTime,
        before: Option<&Row>,
    ) -> Result<(), CqlError> {
        for operation in operations {
            if operation.requires_read() && !row.columns.is_empty() {
                let pending = existing::with_pending(before, row, &self.table, time.now);
                operation.apply(row, &self.table, bindings, time, Some(&pending))?;
            } else {
                operation.apply(row, &self.table, bindings, time, before)?;
            }
        }
        Ok(())
    }
}

/// What of a partition is changed.
enum Extent {
    /// All of it: there are no clustering columns, and one row.
    Partition,
    /// All of it.
    WholePartition,
    /// The rows in ranges.
    Ranges(Slices),
    /// Rows.
    Rows(Vec<ClusteringValues>),
    /// The static row.
    StaticOnly,
}

impl Extent {
    fn is_nothing(&self) -> bool {
        match self {
            Self::Ranges(slices) => slices.0.is_empty(),
            Self::Rows(rows) => rows.is_empty(),
            Self::Partition | Self::WholePartition | Self::StaticOnly => false,
        }
    }
}

/// The default write timestamp of a request.
pub(crate) fn default_timestamp<C: Coordinator>(options: &QueryOptions, coordinator: &C) -> i64 {
    options.timestamp.unwrap_or_else(|| coordinator.now_micros())
}

/// The clock of a request, seconds.
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

/// Asks the guardrails that bind the client about the levels of a request.
pub(crate) fn guard_levels(options: &QueryOptions, warnings: &mut Vec<String>) -> Result<(), CqlError> {
    let Some(guardrails) = &options.guardrails else { return Ok(()) };
    let serial = options.serial_consistency.unwrap_or(Consistency::Serial);
    guardrails.write.check_levels(options.consistency, serial, warnings)
}

/// Asks the guardrails that bind the client about a statement.
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

/// What IN relations multiply to, as for reads.
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

/// Asks the guardrails that bind the client about what is to be written.
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
    let bindings = Bindings { values, sources: coordinator };
    let mut warnings = Vec::new();
    guard_levels(options, &mut warnings)?;
    guard(plan, &bindings, options, coordinator, &mut warnings)?;
    let now = request_seconds(options, coordinator);
    let default = default_timestamp(options, coordinator);
    let existing = if plan.requires_read {
        read_existing(plan, &bindings, options, now, coordinator).await?
    } else {
        ExistingRows::default()
    };
    let updates = plan.updates(&bindings, default, now, &existing)?;
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

/// SERIAL consistency is for lightweight transactions; counters are read before they are written.
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
