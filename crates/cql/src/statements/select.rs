//! Executing a SELECT: the plan and the bound values become read commands; what they read becomes a
//! page of rows.
//!
//! Agrees with `org.apache.cassandra.cql3.statements.SelectStatement` and `service.pager`.

mod ann;
mod command_text;
mod group_by;
mod page;
mod plan;
mod replica_groups;
mod sizes;

use std::sync::{Arc, Mutex};

use rows::command::RingBound;
use rows::live::{ScannedCounts, TombstoneLimits};
use rows::{ColumnFilter, DataLimits, PartitionRange, PartitionStream, ReadCommand, Slices};
use schema::{ColumnId, Schema, TableMetadata};
use types::{Consistency, DecoratedKey};

pub(crate) use ann::AnnOrdering;
pub(crate) use group_by::GroupBy;
pub(crate) use plan::prepare;
pub use replica_groups::group_values;

use crate::context::{Bindings, MadeValues};
use crate::coordinator::{Coordinator, ReadOptions};
use crate::error::{CqlError, operation_failed};
use crate::functions::slow_calls;
use crate::guardrails::{Query, QueryGuards};
use crate::keys;
use crate::options::{Limits, QueryOptions};
use crate::paging::{PagingState, UNLIMITED};
use crate::restrictions::{BoundFilter, PartitionRestriction, Restrictions};
use crate::result::{Answer, CqlResult, ResultMetadata, ResultSet};
use crate::selection::{Column, Selection};
use crate::statements::modification::request_seconds;
use crate::terms::Term;
use crate::values::BoundValue;
use page::{Page, PageInput};
use sizes::PageSizeCheck;

/// A prepared SELECT.
#[derive(Debug)]
pub(crate) struct SelectPlan {
    /// The table.
    pub table: Arc<TableMetadata>,
    /// The selected columns and expressions.
    pub selection: Arc<Selection>,
    /// The selection for users without the UNMASK permission; None: no column of the table is
    /// masked.
    pub masked: Option<Arc<Selection>>,
    /// Names of the masked columns that WHERE restricts.
    pub masked_in_where: Vec<String>,
    /// The columns that are read.
    pub columns: ColumnFilter,
    /// The columns among them that the statement names; empty for `*`.
    pub named: Arc<[ColumnId]>,
    /// The prepared WHERE.
    pub restrictions: Restrictions,
    /// Columns of the result.
    pub metadata: Arc<ResultMetadata>,
    /// SELECT DISTINCT
    pub distinct: bool,
    /// SELECT JSON
    pub json: bool,
    /// ALLOW FILTERING
    pub allows_filtering: bool,
    /// GROUP BY
    pub group_by: Option<GroupBy>,
    /// Rows in the reversed order of the table.
    pub reversed: bool,
    /// Columns by which the rows of several partitions are sorted after they were read, with `true`
    /// for descending.
    pub post_order: Vec<(Column, bool)>,
    /// ORDER BY … ANN OF
    pub ann_ordering: Option<AnnOrdering>,
    /// LIMIT
    pub limit: Option<Term>,
    /// PER PARTITION LIMIT
    pub per_partition_limit: Option<Term>,
}

fn limit_value(term: Option<&Term>, bindings: &Bindings<'_>) -> Result<u32, CqlError> {
    let Some(term) = term else { return Ok(UNLIMITED) };
    let bytes = match term.eval(bindings)? {
        BoundValue::Bytes(bytes) => bytes,
        BoundValue::Null => return Err(CqlError::invalid("Invalid null value of limit")),
        BoundValue::Unset => return Ok(UNLIMITED),
    };
    let value = <[u8; 4]>::try_from(bytes.as_ref()).map_err(|_| CqlError::invalid("Invalid limit value"))?;
    match u32::try_from(i32::from_be_bytes(value)) {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => Err(CqlError::invalid("LIMIT must be strictly positive")),
    }
}

impl SelectPlan {
    fn aggregates(&self) -> bool {
        !self.selection.aggregates.is_empty() || self.group_by.is_some()
    }

    fn aggregates_everything(&self) -> bool {
        self.group_by.is_none() && !self.selection.aggregates.is_empty()
    }

    /// The selection for a client: with masks unless `unmasks`.
    fn shown(&self, unmasks: bool) -> &Arc<Selection> {
        self.masked.as_ref().filter(|_| !unmasks).unwrap_or(&self.selection)
    }

    /// The description of the statement that guardrails check.
    fn query(&self, options: &QueryOptions, schema: &Schema) -> Query<'_> {
        let restrictions = &self.restrictions;
        let uses_index = restrictions.uses_index || self.ann_ordering.is_some();
        Query {
            keyspace: &self.table.keyspace,
            consistency: options.consistency,
            groups: self.group_by.is_some(),
            allows_filtering: self.allows_filtering,
            intersects: restrictions.intersects() && self.is_reconciled(options.consistency, schema),
            searches_all: uses_index && restrictions.is_key_range(),
        }
    }

    /// Whether the coordinator puts together what several replicas have.
    fn is_reconciled(&self, level: Consistency, schema: &Schema) -> bool {
        let copies = schema.keyspace(&self.table.keyspace).map_or(1, |keyspace| keyspace.replication.factor());
        !self.table.is_virtual()
            && copies > 1
            && !matches!(level, Consistency::One | Consistency::LocalOne | Consistency::NodeLocal)
    }

    fn empty(&self) -> Page {
        Page {
            rows: bytes::Bytes::new(),
            row_count: 0,
            paging_state: None,
            scanned: Vec::new(),
            size: 0,
            is_too_large: false,
        }
    }
}

/// The partitions that a request reads.
enum Partitions {
    Keys(Vec<DecoratedKey>),
    Range(PartitionRange),
}

/// The partitions and rows that a request reads, computed from the plan and the bound values.
struct BoundSelect {
    /// None: the restrictions exclude every partition.
    partitions: Option<Partitions>,
    /// The rows that are read of each partition; empty if `partitions` is None.
    slices: Slices,
    /// LIMIT.
    limit: u32,
    /// Rows a page; None: all at once.
    page_size: Option<u32>,
    /// The read may find something: rows, or the static columns of a partition without rows.
    reads: bool,
    /// The conditions that rows are filtered by.
    filters: Vec<BoundFilter>,
    /// Conditions that the slices apply and an index may answer.
    slice_filters: Vec<BoundFilter>,
}

impl BoundSelect {
    /// Evaluates the restrictions. Both limits are evaluated first and conditions that filter rows
    /// next, so that errors come in Cassandra's order.
    fn of(plan: &SelectPlan, options: &QueryOptions, bindings: &Bindings<'_>) -> Result<Self, CqlError> {
        let limit = limit_value(plan.limit.as_ref(), bindings)?;
        limit_value(plan.per_partition_limit.as_ref(), bindings)?;
        if let Some(why) = plan.restrictions.refused {
            return Err(CqlError::invalid(why));
        }
        let (filters, slice_filters) = plan.restrictions.bound_filters(bindings)?;
        let is_static = |id: &ColumnId| plan.table.statics.iter().any(|column| column.id == *id);
        let reads_statics = !plan.restrictions.has_clustering_slice()
            && !plan.table.statics.is_empty()
            && plan.selection.fetched.iter().any(is_static);
        let (partitions, slices) = match &plan.restrictions.partition {
            PartitionRestriction::Keys(_) => {
                let keys = plan.restrictions.unchecked_keys(&plan.table, bindings)?;
                // without a partition the clustering restrictions are not evaluated, so errors in
                // them do not show
                let asks_for_none = keys.is_empty();
                let slices =
                    if asks_for_none { Slices::none() } else { plan.restrictions.slices(&plan.table, bindings)? };
                (Some(Partitions::Keys(keys)), slices)
            }
            _ => {
                // of a range of partitions the rows come first, and without rows the range is not
                // evaluated
                let slices = plan.restrictions.slices(&plan.table, bindings)?;
                if slices.0.is_empty() && !reads_statics {
                    (None, slices)
                } else {
                    match plan.restrictions.range(&plan.table, bindings)? {
                        Some(range) => (Some(Partitions::Range(range)), slices),
                        None => (None, Slices::none()),
                    }
                }
            }
        };
        let asks_for_none = match &partitions {
            None => true,
            Some(Partitions::Keys(keys)) => keys.is_empty(),
            Some(Partitions::Range(_)) => false,
        };
        let reads = !asks_for_none && (!slices.0.is_empty() || reads_statics);
        let page_size = options.page_size.filter(|size| *size > 0);
        Ok(Self { partitions, slices, limit, page_size, reads, filters, slice_filters })
    }

    fn keys(&self) -> Option<&[DecoratedKey]> {
        match &self.partitions {
            Some(Partitions::Keys(keys)) => Some(keys),
            _ => None,
        }
    }

    /// Refuses invalid partition keys, and paging of rows that are sorted after they were read.
    fn check(&self, plan: &SelectPlan) -> Result<(), CqlError> {
        if self.reads {
            self.keys().unwrap_or_default().iter().try_for_each(|key| keys::check(&key.key))?;
        }
        if self.is_paged(plan) && !plan.post_order.is_empty() {
            return Err(CqlError::invalid(
                "Cannot page queries with both ORDER BY and a IN restriction on the partition key; you must either remove \
                 the ORDER BY or the IN and sort client side, or disable paging for this query",
            ));
        }
        Ok(())
    }

    fn is_paged(&self, plan: &SelectPlan) -> bool {
        self.page_size.is_some() && (plan.aggregates() || self.reads)
    }

    /// Checks the guardrails on keys, IN products and page sizes.
    fn guard(&self, plan: &SelectPlan, query: &QueryGuards, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        if let Some(keys) = self.keys().filter(|_| plan.restrictions.key_in) {
            query.check_keys(&plan.table.name, keys.len(), warnings)?;
        }
        if plan.restrictions.names_rows_by_in(&plan.table) {
            query.check_product("clustering key", self.slices.0.len(), warnings)?;
        }
        let is_page = |size: &u32| self.is_paged(plan) && (plan.aggregates() || *size < self.limit);
        match self.page_size.filter(is_page) {
            Some(size) => query.check_page_size(&plan.table.name, size, warnings),
            None => Ok(()),
        }
    }
}

/// Executes a SELECT and returns one page of its rows. `unmasks`: the client sees masked columns in
/// clear.
pub(crate) async fn execute<C: Coordinator>(
    plan: &SelectPlan,
    values: &[BoundValue],
    options: &QueryOptions,
    unmasks: bool,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    if options.consistency == Consistency::Any {
        return Err(CqlError::invalid("ANY ConsistencyLevel is only supported for writes"));
    }
    let bindings = Bindings { values, sources: coordinator, made: &MadeValues::default() };
    let guards = options.guardrails.as_ref().map(|guardrails| &guardrails.query);
    let mut answer_warnings = Vec::new();
    if let Some(query) = guards {
        query.check(&plan.query(options, &coordinator.schema()), &mut answer_warnings)?;
    }
    let mut bound = BoundSelect::of(plan, options, &bindings)?;
    let consistency = match &plan.ann_ordering {
        None => options.consistency,
        Some(_) => ann::check(plan, options, &mut bound, &mut answer_warnings)?,
    };
    bound.check(plan)?;
    if let Some(query) = guards {
        bound.guard(plan, query, &mut answer_warnings)?;
    }
    let now = request_seconds(options, coordinator);
    let selection = plan.shown(unmasks || !options.limits.switches.masking);
    let filters = std::mem::take(&mut bound.filters);
    let mut input = page_input(plan, selection, filters, &bindings, options, bound.page_size, now)?;
    input.slice_filters = std::mem::take(&mut bound.slice_filters);
    input.recheck_empty_values();
    if let Some(keys) = bound.keys() {
        input.single_key = keys.len() == 1;
        input.last_key = keys.last().map(|key| key.key.clone());
    }
    input.results = coordinator.results().cloned();
    let is_sized = options.limits.result_size_warn.or(options.limits.result_size_fail).is_some();
    let tokens: Vec<_> = bound.keys().filter(|_| is_sized).into_iter().flatten().map(|key| key.token).collect();
    let commands = match bound.partitions {
        Some(partitions) if !bound.slices.0.is_empty() && input.remaining > 0 => {
            commands(plan, partitions, &bound.slices, &input)
        }
        _ => Vec::new(),
    };
    answer_warnings.extend(warnings(plan));
    let input = Arc::new(input);
    let mut is_told = false;
    let page = if commands.is_empty() && !plan.aggregates_everything() {
        plan.empty()
    } else {
        let read_options = ReadOptions { consistency, wanted_rows: input.wanted_rows() };
        let input = Arc::clone(&input);
        let of_read = Arc::clone(&input);
        let is_collecting = slow_calls::is_collecting();
        let build = move |stream: &mut dyn PartitionStream| {
            if !is_collecting {
                return page::build(&of_read, stream);
            }
            let (built, calls) = slow_calls::collect(|| page::build(&of_read, stream));
            of_read.put_slow_calls(calls);
            built
        };
        let read = coordinator.read(commands, &read_options, build).await;
        if is_collecting {
            slow_calls::record_all(|| input.put_slow_calls(Vec::new()));
        }
        let mut failures = Vec::new();
        if coordinator.has_replica_findings() {
            let key = input.last_key.clone().unwrap_or_default();
            let key = plan.table.decorate(key);
            let text = command_text::of(plan, &key, &bindings, options, &input)?;
            let tokens = sizes::tokens_of_read(plan, key.token, &bindings)?;
            let found = coordinator.replica_findings(&text, &tokens);
            is_told = found.of_tombstones;
            answer_warnings.extend(found.warnings);
            failures = found.failures;
        }
        read.map_err(|error| {
            coordinator.add_error_warnings(std::mem::take(&mut answer_warnings));
            with_findings(error, failures)
        })?
    };
    answer_warnings.extend(coordinator.read_warnings());
    if is_sized {
        match sizes::check(plan, &page, &tokens, &bindings, options, coordinator)? {
            PageSizeCheck::Fits(warning) => answer_warnings.extend(warning),
            PageSizeCheck::TooLarge { warning, error } => {
                answer_warnings.push(warning);
                coordinator.add_error_warnings(answer_warnings);
                return Err(error);
            }
        }
    }
    for scanned in &page.scanned {
        let command = command_text::of(plan, &scanned.key, &bindings, options, &input)?;
        let warning = of_tombstones(scanned, &command);
        coordinator.report_tombstones(&plan.table, &warning);
        // replicas have warned of the same tombstones
        answer_warnings.extend((!is_told).then_some(warning));
    }
    let result = CqlResult::Rows(ResultSet {
        metadata: Arc::clone(&plan.metadata),
        rows: page.rows,
        row_count: page.row_count,
        paging_state: page.paging_state.map(|state| state.encode()),
    });
    Ok(Answer { result, warnings: answer_warnings })
}

/// The failure of a read whose replicas have ended it for a threshold says so, as Cassandra does.
fn with_findings(error: CqlError, failures: Vec<String>) -> CqlError {
    match (error, failures.into_iter().next()) {
        (CqlError::ReadFailure { consistency, received, block_for, failures, data_present, .. }, Some(why)) => {
            let message = operation_failed(&why, &failures);
            CqlError::ReadFailure { consistency, received, block_for, failures, data_present, message }
        }
        (error, _) => error,
    }
}

fn warnings(plan: &SelectPlan) -> Vec<String> {
    let mut warnings = Vec::new();
    if plan.aggregates() {
        if !plan.restrictions.restricts_key {
            warnings.push("Aggregation query used without partition key".to_owned());
        } else if plan.restrictions.key_in {
            warnings.push("Aggregation query used on multiple partition keys (IN restriction)".to_owned());
        }
    }
    warnings
}

fn of_tombstones(scanned: &ScannedCounts, command: &str) -> String {
    let ScannedCounts { key, tombstones, live_rows } = scanned;
    format!(
        "Read {live_rows} live rows and {tombstones} tombstone cells for query {command}; token {} \
         (see tombstone_warn_threshold)",
        key.token.0
    )
}

/// Rows of a page in which Cassandra reads a statement with GROUP BY whose client asks for no pages
/// (`SelectStatement.DEFAULT_PAGE_SIZE`).
const GROUP_BY_PAGE: u32 = 10_000;

/// The thresholds for tombstones. There are none for the node's own tables, because no user writes
/// them. For aggregates they count for as many rows as a page has: Cassandra reads in such pages
/// what it aggregates.
fn tombstone_limits(plan: &SelectPlan, limits: &Limits, page_size: Option<u32>) -> TombstoneLimits {
    if schema::system::is_local_keyspace(&plan.table.keyspace) {
        return TombstoneLimits::NONE;
    }
    let (warn, failure) = (limits.tombstone_warn, limits.tombstone_failure);
    let page_size = page_size.or(plan.group_by.is_some().then_some(GROUP_BY_PAGE));
    let each_rows = page_size.filter(|_| plan.aggregates()).map_or(u64::MAX, u64::from);
    TombstoneLimits { warn, failure, each_partition: plan.restrictions.names_keys(), each_rows }
}

fn page_input(
    plan: &SelectPlan,
    selection: &Arc<Selection>,
    filters: Vec<BoundFilter>,
    bindings: &Bindings<'_>,
    options: &QueryOptions,
    page_size: Option<u32>,
    now: u32,
) -> Result<PageInput, CqlError> {
    let user_limit = limit_value(plan.limit.as_ref(), bindings)?;
    let per_partition = limit_value(plan.per_partition_limit.as_ref(), bindings)?;
    let selection = if selection.has_terms { Arc::new(selection.bind(bindings)?) } else { Arc::clone(selection) };
    let (partition_filters, row_filters) = filters.into_iter().partition(BoundFilter::is_of_partition);
    let paged = page_size.filter(|size| *size < user_limit && !plan.aggregates_everything());
    // groups are read in pages, as in Cassandra, also where a page has room for all that LIMIT
    // allows
    let is_resumed = paged.is_some() || plan.group_by.is_some();
    let state = options.paging_state.as_ref().filter(|_| is_resumed);
    let resume =
        state.map(|state| PagingState::decode(state, &plan.table.comparator, plan.table.is_compact())).transpose()?;
    let remaining = resume.as_ref().map_or(user_limit, |state| state.remaining.min(user_limit));
    let mut indexes = plan.restrictions.searches(bindings)?;
    let ann_ordering = match &plan.ann_ordering {
        None => None,
        Some(ann_ordering) => {
            let ann_ordering = Box::new(ann_ordering.bind(bindings)?);
            indexes.push(ann_ordering.search());
            Some(ann_ordering)
        }
    };
    Ok(PageInput {
        table: Arc::clone(&plan.table),
        indexes,
        selection,
        json: plan.json,
        partition_filters,
        row_filters,
        slice_filters: Vec::new(),
        group_by: plan.group_by.as_ref().map(|group_by| group_by.bind(bindings)).transpose()?,
        aggregates: plan.aggregates(),
        distinct: plan.distinct,
        post_order: plan.post_order.clone(),
        reversed: plan.reversed,
        ann_ordering,
        shows_static_only: plan.restrictions.shows_static_only(),
        per_partition: if plan.distinct { 1 } else { per_partition },
        remaining,
        page: paged,
        resume,
        last_key: None,
        single_key: false,
        now,
        tombstones: tombstone_limits(plan, &options.limits, page_size),
        size_max: options.limits.result_size_fail,
        results: None,
        slow_calls: Mutex::default(),
    })
}

/// The read commands of a page, in the order of the answer.
fn commands(plan: &SelectPlan, partitions: Partitions, slices: &Slices, input: &PageInput) -> Vec<ReadCommand> {
    let is_filtered = !input.row_filters.is_empty() || !input.partition_filters.is_empty();
    // the read does not count the rows of a static compact table, because some are hidden
    let hint = if input.ann_ordering.is_some() {
        input.remaining
    } else if is_filtered || input.aggregates || plan.table.is_static_compact() {
        u32::MAX
    } else if input.post_order.is_empty() {
        input.row_limit()
    } else {
        u32::MAX
    };
    let counts_rows = input.row_filters.is_empty() && (plan.distinct || !input.aggregates);
    let per_partition = if counts_rows { input.per_partition } else { u32::MAX };
    let command = |range: PartitionRange, slices: Slices| ReadCommand {
        table: Arc::clone(&plan.table),
        range,
        slices,
        reversed: plan.reversed,
        columns: plan.columns.clone(),
        now: input.now,
        limits: DataLimits { rows: hint, per_partition },
        indexes: input.indexes.clone(),
    };
    let resume = input.resume.as_ref();
    match partitions {
        Partitions::Keys(keys) => {
            let mut commands = Vec::with_capacity(keys.len());
            let mut keys = keys.into_iter();
            if let Some(state) = resume {
                // skip to the key where the last page ended; the paging state of a statement with
                // one key has no key
                let is_wanted = |key: &DecoratedKey| match &state.key {
                    Some(wanted) => *wanted == key.key,
                    None => input.single_key,
                };
                let found = keys.by_ref().find(is_wanted);
                if let Some(key) = found
                    && state.remaining_in_partition > 0
                {
                    let slices = match &state.row {
                        Some(row) => slices.behind(row, plan.reversed, &plan.table.comparator),
                        None => slices.clone(),
                    };
                    if !slices.0.is_empty() {
                        commands.push(command(PartitionRange::Key(key), slices));
                    }
                }
            }
            commands.extend(keys.map(|key| command(PartitionRange::Key(key), slices.clone())));
            commands
        }
        Partitions::Range(range) => {
            let Some((state, key)) = resume.and_then(|state| Some((state, state.key.clone()?))) else {
                return vec![command(range, slices.clone())];
            };
            let key = plan.table.decorate(key);
            let mut commands = Vec::with_capacity(2);
            if let Some(row) = state.row.as_ref().filter(|_| state.remaining_in_partition > 0) {
                let slices = slices.behind(row, plan.reversed, &plan.table.comparator);
                if !slices.0.is_empty() {
                    commands.push(command(PartitionRange::Key(key.clone()), slices));
                }
            }
            let end = match range {
                PartitionRange::Range { end, .. } => end,
                PartitionRange::Key(_) => RingBound::Open,
            };
            let start = RingBound::Key { key, inclusive: false };
            commands.push(command(PartitionRange::Range { start, end }, slices.clone()));
            commands
        }
    }
}
