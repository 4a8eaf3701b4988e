//! BATCH: the updates of all statements are merged by partition, so that each partition gets one
//! mutation.
//!
//! Agrees with `org.apache.cassandra.cql3.statements.{BatchStatement,BatchUpdatesCollector}`,
//! messages included.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use rows::{Cell, ClusteringValues, ColumnData, Mutation, NO_TTL, PartitionUpdate, Row};
use schema::TableMetadata;
use types::BatchKind;
use types::ident::maybe_quote;

use super::modification::{
    ExistingRows, ModificationPlan, Written, check_consistency, default_timestamp, guard, guard_levels, guard_update,
    prepare_delete, prepare_insert, prepare_update, read_existing, request_seconds,
};
use crate::ast::{self, Modification};
use crate::context::{Bindings, MadeValues, PrepareContext, Receiver};
use crate::coordinator::{Coordinator, WriteOptions};
use crate::error::CqlError;
use crate::options::{Limits, QueryOptions};
use crate::restrictions::check_combinations;
use crate::result::{Answer, CqlResult};
use crate::statements::conditional;
use crate::terms::{self, Term};
use crate::values::BoundValue;

/// A prepared BATCH.
#[derive(Debug)]
pub(crate) struct BatchPlan {
    /// The kind of the batch.
    pub kind: BatchKind,
    /// USING TIMESTAMP of the batch.
    pub timestamp: Option<Term>,
    /// The statements of the batch.
    pub statements: Vec<ModificationPlan>,
}

fn invalid<T>(message: &str) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

/// Prepares a BATCH.
pub(crate) fn prepare(
    context: &mut PrepareContext<'_>,
    batch: &ast::Batch<'_>,
    keyspace: Option<&str>,
) -> Result<BatchPlan, CqlError> {
    if batch.using.ttl.is_some() {
        return invalid("Global TTL on the BATCH statement is not supported.");
    }
    let mut statements = Vec::with_capacity(batch.statements.len());
    for statement in &batch.statements {
        statements.push(match statement {
            Modification::Insert(insert) => prepare_insert(context, insert, keyspace)?,
            Modification::Update(update) => prepare_update(context, update, keyspace)?,
            Modification::Delete(delete) => prepare_delete(context, delete, keyspace)?,
        });
    }
    (context.keyspace, context.table) = (Arc::from("[batch]"), Arc::from("[batch]"));
    let timestamp = match &batch.using.timestamp {
        None => None,
        Some(term) => Some(terms::prepare(context, term, &Receiver::new("[timestamp]", types::CqlType::BigInt))?),
    };
    validate(batch.kind, timestamp.is_some(), statements.iter())?;
    Ok(BatchPlan { kind: batch.kind, timestamp, statements })
}

/// Refuses statements that may not stand together in a batch, then clauses that its statements may
/// not have.
fn validate<'p>(
    kind: BatchKind,
    has_timestamp: bool,
    plans: impl Iterator<Item = &'p ModificationPlan> + Clone,
) -> Result<(), CqlError> {
    let is_counter_batch = kind == BatchKind::Counter;
    let has_conditions = plans.clone().any(|plan| !plan.conditions.is_none());
    if has_timestamp && has_conditions {
        return invalid("Cannot provide custom timestamp for conditional BATCH");
    }
    if has_timestamp && is_counter_batch {
        return invalid("Cannot provide custom timestamp for counter BATCH");
    }
    if has_timestamp && plans.clone().any(ModificationPlan::sets_timestamp) {
        return invalid("Timestamp must be set either on BATCH or individual statements");
    }
    let has_counters = plans.clone().any(|plan| plan.table.is_counter());
    let has_others = plans.clone().any(|plan| !plan.table.is_counter());
    if has_timestamp && has_counters {
        return invalid("Cannot provide custom timestamp for a BATCH containing counters");
    }
    if is_counter_batch && has_others {
        return invalid("Cannot include non-counter statement in a counter batch");
    }
    if has_counters && has_others {
        return invalid("Counter and non-counter mutations cannot exist in the same batch");
    }
    if kind == BatchKind::Logged && has_counters {
        return invalid("Cannot include a counter statement in a logged batch");
    }
    if plans.clone().any(|plan| plan.table.is_virtual()) {
        if kind == BatchKind::Logged {
            return invalid("Cannot include a virtual table statement in a logged batch");
        }
        if plans.clone().any(|plan| !plan.table.is_virtual()) {
            return invalid("Mutations for virtual and regular tables cannot exist in the same batch");
        }
        if has_conditions {
            return invalid("Conditional BATCH statements cannot include mutations for virtual tables");
        }
    }
    let mut tables = plans.clone().map(|plan| plan.table.id);
    let first = tables.next();
    if has_conditions && tables.any(|table| Some(table) != first) {
        return invalid("Batch with conditions cannot span multiple tables");
    }
    plans.into_iter().try_for_each(ModificationPlan::validate)
}

/// Executes a BATCH statement.
pub(crate) async fn execute<C: Coordinator>(
    plan: &BatchPlan,
    values: &[BoundValue],
    options: &QueryOptions,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    let bindings = Bindings { values, sources: coordinator, made: &MadeValues::default() };
    let mut timestamp = default_timestamp(options, coordinator);
    if let Some(term) = &plan.timestamp {
        timestamp = match term.eval(&bindings)? {
            BoundValue::Bytes(bytes) => <[u8; 8]>::try_from(bytes.as_ref())
                .map(i64::from_be_bytes)
                .map_err(|_| CqlError::invalid("Invalid timestamp value"))?,
            BoundValue::Null => return invalid("Invalid null value of timestamp"),
            BoundValue::Unset => timestamp,
        };
    }
    let statements: Vec<_> = plan.statements.iter().map(|statement| (statement, values)).collect();
    execute_all(plan.kind, &statements, timestamp, options, coordinator).await
}

/// Executes the statements of a batch, each with its values.
pub(crate) async fn execute_all<C: Coordinator>(
    kind: BatchKind,
    statements: &[(&ModificationPlan, &[BoundValue])],
    timestamp: i64,
    options: &QueryOptions,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    let plans = statements.iter().map(|(plan, _)| *plan);
    validate(kind, false, plans.clone())?;
    if plans.clone().any(|plan| !plan.conditions.is_none()) {
        return conditional::execute(statements, true, options, coordinator).await;
    }
    check_consistency(options.consistency, plans)?;
    let now = request_seconds(options, coordinator);
    let (mut gathered, mut written) = (GatheredUpdates::default(), Written::default());
    let mut named_by_in = 0;
    let mut warnings = Vec::new();
    guard_levels(options, &mut warnings)?;
    let made = MadeValues::default();
    for (at, (plan, values)) in statements.iter().enumerate() {
        made.begin_statement();
        let bindings = Bindings { values, sources: coordinator, made: &made };
        let existing = if plan.requires_read {
            let read = read_existing(plan, &bindings, options, now, coordinator).await;
            read.map_err(|error| match error {
                CqlError::Invalid(_) => first_error(error, &statements[at..], coordinator),
                error => error,
            })?
        } else {
            ExistingRows::default()
        };
        guard(plan, &bindings, options, coordinator, &mut warnings)?;
        let updates = plan.updates(&bindings, timestamp, now, &existing, &mut written);
        let updates = updates.map_err(|error| first_error(error, &statements[at..], coordinator))?;
        // the first row of each statement is bounded by the length of the request
        let rows = |update: &PartitionUpdate| (update.rows.len() + update.range_deletions.len()).max(1);
        named_by_in += updates.iter().map(rows).sum::<usize>().saturating_sub(1);
        check_combinations(1, named_by_in)?;
        for update in updates {
            guard_update(&update, options, &mut warnings)?;
            gathered.add(update);
        }
    }
    if kind == BatchKind::Logged {
        warn_of_grace(statements, &mut warnings);
    }
    let mutations = gathered.mutations();
    if mutations.is_empty() {
        return Ok(Answer { result: CqlResult::Void, warnings });
    }
    check_size(&mutations, &options.limits, coordinator, &mut warnings)?;
    if kind != BatchKind::Logged {
        warn_of_partitions(&mutations, &options.limits, &mut warnings);
    }
    let logged_batch = kind == BatchKind::Logged && mutations.len() > 1;
    let counters = statements.iter().any(|(plan, _)| plan.table.is_counter());
    let write = WriteOptions { consistency: options.consistency, logged_batch, batch: Some(kind), counters };
    coordinator.mutate(mutations, &write).await?;
    Ok(Answer { result: CqlResult::Void, warnings })
}

/// The mistake that the client is told when a statement of a batch has one. Cassandra evaluates the
/// partition keys of all statements before anything else. `rest`: the statement and those behind
/// it.
fn first_error<C: Coordinator>(
    error: CqlError,
    rest: &[(&ModificationPlan, &[BoundValue])],
    coordinator: &C,
) -> CqlError {
    let of_keys = |(plan, values): &(&ModificationPlan, &[BoundValue])| {
        plan.restrictions
            .keys(&plan.table, &Bindings { values, sources: coordinator, made: &MadeValues::default() })
            .err()
    };
    rest.iter().find_map(of_keys).unwrap_or(error)
}

/// Updates by keyspace, key and table, in the order in which the statements name them first. They
/// are merged at the end, all at once: merging one by one would take n² steps for n rows of a
/// partition in random order.
#[derive(Default)]
struct GatheredUpdates {
    places: Vec<KeyUpdates>,
    /// For each key the indexes in `places` of its updates, one for each keyspace.
    by_key: BTreeMap<Bytes, Vec<usize>>,
}

/// The updates of one key in one keyspace: for each table at least one.
struct KeyUpdates(Vec<Vec<PartitionUpdate>>);

impl KeyUpdates {
    fn update(&self) -> Option<&PartitionUpdate> {
        self.0.first()?.first()
    }

    fn add(&mut self, update: PartitionUpdate) {
        let same_table = |updates: &&mut Vec<PartitionUpdate>| {
            updates.first().is_some_and(|first| first.table.id == update.table.id)
        };
        match self.0.iter_mut().find(same_table) {
            Some(updates) => updates.push(update),
            None => self.0.push(vec![update]),
        }
    }

    fn mutation(self) -> Option<Mutation> {
        let merged = |updates: Vec<PartitionUpdate>| {
            let mut updates = updates.into_iter();
            let mut first = updates.next()?;
            first.merge(updates);
            Some(first)
        };
        let updates: Vec<PartitionUpdate> = self.0.into_iter().filter_map(merged).collect();
        Some(Mutation { key: updates.first()?.key.clone(), updates })
    }
}

impl GatheredUpdates {
    fn add(&mut self, update: PartitionUpdate) {
        if update.is_empty() {
            return;
        }
        let of_key = match self.by_key.get_mut(&update.key.key) {
            Some(of_key) => of_key,
            None => self.by_key.entry(update.key.key.clone()).or_default(),
        };
        let same_keyspace = |index: &&usize| {
            let named = self.places.get(**index).and_then(KeyUpdates::update);
            named.is_some_and(|named| named.table.keyspace == update.table.keyspace)
        };
        let index = of_key.iter().find(same_keyspace).copied().unwrap_or(self.places.len());
        match self.places.get_mut(index) {
            Some(place) => place.add(update),
            None => {
                of_key.push(index);
                self.places.push(KeyUpdates(vec![vec![update]]));
            }
        }
    }

    fn mutations(self) -> Vec<Mutation> {
        self.places.into_iter().filter_map(KeyUpdates::mutation).collect()
    }
}

/// The names of tables as a warning shows them, each once, and how many there are.
fn names_of<'t>(tables: impl Iterator<Item = &'t Arc<TableMetadata>>) -> (String, usize) {
    let name = |table: &Arc<TableMetadata>| format!("{}.{}", maybe_quote(&table.keyspace), maybe_quote(&table.name));
    let names: BTreeSet<String> = tables.map(name).collect();
    let count = names.len();
    (format!("[{}]", names.into_iter().collect::<Vec<_>>().join(", ")), count)
}

fn table_names(mutations: &[Mutation]) -> (String, usize) {
    names_of(mutations.iter().flat_map(|mutation| &mutation.updates).map(|update| &update.table))
}

/// Warns of tables whose writes the batch log does not bring back: a record that is older than the
/// least gc_grace_seconds of its tables is not replayed.
fn warn_of_grace(statements: &[(&ModificationPlan, &[BoundValue])], warnings: &mut Vec<String>) {
    let tables = statements.iter().map(|(plan, _)| &plan.table);
    let mut without = tables.filter(|table| table.params.gc_grace_seconds == 0).peekable();
    if without.peek().is_none() {
        return;
    }
    let (names, count) = names_of(without);
    let plural = if count == 1 { "" } else { "s" };
    warnings.push(format!(
        "Executing a LOGGED BATCH on table{plural} {names}, configured with a gc_grace_seconds of 0. The \
         gc_grace_seconds is used to TTL batchlog entries, so setting gc_grace_seconds too low on tables involved in \
         an atomic batch might cause batchlog entries to expire before being replayed."
    ));
}

/// Refuses a batch that is too large, and warns of one that is large. Both are told to the node,
/// too: its operator may know nothing of the clients.
fn check_size<C: Coordinator>(
    mutations: &[Mutation],
    limits: &Limits,
    coordinator: &C,
    warnings: &mut Vec<String>,
) -> Result<(), CqlError> {
    if mutations.len() <= 1 {
        return Ok(());
    }
    let size: usize = mutations.iter().flat_map(|mutation| &mutation.updates).map(update_size).sum();
    let exceeds = |threshold: usize, of: &dyn Fn(usize) -> String| {
        let (names, _) = table_names(mutations);
        let [size, by, threshold] = [size, size - threshold, threshold].map(of);
        format!("Batch for {names} is of size {size}, exceeding specified threshold of {threshold} by {by}.")
    };
    let in_words = |bytes: usize| stdx::memory_text(bytes as u64);
    if size > limits.batch_size_fail {
        let line = exceeds(limits.batch_size_fail, &in_words);
        coordinator.report_large_batch(&format!("{line} (see batch_size_fail_threshold)"), true);
        return invalid("Batch too large");
    }
    if size > limits.batch_size_warn {
        coordinator.report_large_batch(&exceeds(limits.batch_size_warn, &in_words), false);
        warnings.push(exceeds(limits.batch_size_warn, &|bytes| bytes.to_string()));
    }
    Ok(())
}

fn warn_of_partitions(mutations: &[Mutation], limits: &Limits, warnings: &mut Vec<String>) {
    let keys: BTreeSet<_> = mutations.iter().map(|mutation| &mutation.key.key).collect();
    if mutations.len() > 1 && keys.len() > limits.unlogged_batch_partitions_warn {
        let (names, count) = table_names(mutations);
        let plural = if count == 1 { "" } else { "s" };
        warnings.push(format!(
            "Unlogged batch covering {} partitions detected against table{plural} {names}. You should use a logged batch \
             for atomicity, or asynchronous writes for performance.",
            keys.len()
        ));
    }
}

/// Size of an update in bytes, as Cassandra counts it for the thresholds of batches
/// (`PartitionUpdate.dataSize`).
fn update_size(update: &PartitionUpdate) -> usize {
    const TIMESTAMP: usize = 8;
    const EXPIRY: usize = 4 + 8;
    const DELETION: usize = 12;
    const ROW_DELETION: usize = DELETION + 1;
    /// Bytes that Cassandra counts for a static row, even where there is none.
    const NO_STATIC_ROW: usize = TIMESTAMP + ROW_DELETION;
    const RANGE: usize = 8 + 4;
    let clustering = |values: &ClusteringValues| -> usize { values.iter().flatten().map(Bytes::len).sum() };
    let cell = |cell: &Cell| TIMESTAMP + EXPIRY + cell.value.len() + cell.path.as_ref().map_or(0, Bytes::len);
    let row = |row: &Row| {
        let columns = row.columns.iter().map(|data| match data {
            ColumnData::Simple(simple) => cell(simple),
            ColumnData::Complex(complex) => DELETION + complex.cells.iter().map(cell).sum::<usize>(),
        });
        let expiry = if row.liveness.ttl == NO_TTL { 0 } else { EXPIRY };
        clustering(&row.clustering) + TIMESTAMP + expiry + ROW_DELETION + columns.sum::<usize>()
    };
    let ranges = update.range_deletions.iter();
    let ranges = ranges.map(|(slice, _)| RANGE + clustering(&slice.start.values) + clustering(&slice.end.values));
    let ranges = if update.range_deletions.is_empty() { 0 } else { 4 + ranges.sum::<usize>() };
    let static_row = update.static_row.as_ref().map_or(NO_STATIC_ROW, row);
    static_row + update.rows.iter().map(row).sum::<usize>() + TIMESTAMP + ranges
}
