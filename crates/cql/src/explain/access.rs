//! The way to the rows of a SELECT: path, slices, consistency, filters, order, limits, page.

use rows::report::ReplicaReport;
use rows::{PartitionRange, ReadCommand, SearchOperator};

use super::lines::{Lines, shortened};
use super::{Execution, format};
use crate::context::Bindings;
use crate::error::CqlError;
use crate::result::CqlResult;
use crate::selection::Column;
use crate::statements::select::SelectPlan;
use crate::terms::Term;

/// Characters of a filter that are shown.
const FILTER_MAX: usize = 50;

/// The ways to rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Path {
    /// No row can be meant.
    Nothing,
    /// Rows by their whole clustering.
    Names,
    /// A slice from the start of a partition.
    Slice,
    /// A slice from somewhere in a partition: the row index says where.
    IndexedSlice,
    /// A slice against the order of the table.
    Reversed,
    /// Partitions of a range of tokens.
    TokenRange,
    /// All partitions.
    Scan,
    /// Rows that a secondary index names.
    Index,
}

impl Path {
    /// The way of the first command.
    pub fn of(commands: &[ReadCommand]) -> Self {
        let Some(command) = commands.first() else { return Self::Nothing };
        if !command.indexes.is_empty() {
            return Self::Index;
        }
        let starts_inside = command.slices.0.first().is_some_and(|slice| !slice.start.values.is_empty());
        match &command.range {
            range @ PartitionRange::Range { .. } if *range == PartitionRange::all() => Self::Scan,
            PartitionRange::Range { .. } => Self::TokenRange,
            PartitionRange::Key(_) if is_of_names(command) => Self::Names,
            PartitionRange::Key(_) if command.reversed => Self::Reversed,
            PartitionRange::Key(_) if starts_inside => Self::IndexedSlice,
            PartitionRange::Key(_) => Self::Slice,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Names => "names",
            Self::Slice => "slice",
            Self::IndexedSlice => "indexed slice",
            Self::Reversed => "reversed slice",
            Self::TokenRange => "token range",
            Self::Scan => "full scan",
            Self::Index => "index",
        }
    }

    fn detail(self) -> &'static str {
        match self {
            Self::Nothing => "the conditions leave no row",
            Self::Names => "rows by their whole primary key",
            Self::Slice => "from the start of the partition, row by row",
            Self::IndexedSlice => "the row index leads to the block where it starts",
            Self::Reversed => "block after block backwards, against the order",
            Self::TokenRange => "every partition of a range of tokens",
            Self::Scan => "every partition of the table",
            Self::Index => "rows that the most selective index names",
        }
    }
}

fn is_of_names(command: &ReadCommand) -> bool {
    !command.slices.0.is_empty() && command.slices.0.iter().all(|slice| format::is_row(&command.table, slice))
}

/// Adds the lines on the way to the rows.
pub(super) fn add_lines(
    lines: &mut Lines,
    plan: &SelectPlan,
    execution: &Execution<'_>,
    bindings: &Bindings<'_>,
) -> Result<(), CqlError> {
    let table = format!("{}.{}", plan.table.keyspace, plan.table.name);
    let read = execution.recording.reads.first();
    let commands = read.map_or(&[][..], |read| &read.commands);
    let path = Path::of(commands);
    let keys = commands.iter().filter(|command| matches!(command.range, PartitionRange::Key(_))).count();
    lines.add("access", &table, path.name(), keys as u64, path.detail());
    if let Some(command) = commands.first() {
        let count = command.slices.0.len() as u64;
        if !command.slices.is_all() {
            let (figure, names) = (if path == Path::Names { "rows by name" } else { "slices" }, &command.slices);
            lines.add("access", &table, figure, count, &format::slices(&plan.table, names));
        }
    }
    for index in commands.first().iter().flat_map(|command| &command.indexes) {
        let detail = match index.operator {
            SearchOperator::Suffix | SearchOperator::Contains => "all its terms are compared, rows are read by name",
            SearchOperator::Prefix => "a range of its terms; the rows that they name are read by name",
            _ => "the rows that its entries name are read by name",
        };
        lines.add("access", &index.name, "candidate index", 1, detail);
    }
    if let Some(read) = read {
        let block_for = u64::from(read.report.block_for);
        lines.add("access", &table, "replicas", block_for, &format!("consistency {}", read.consistency.name()));
        replicas(lines, &read.report.replicas);
    }
    for filter in &plan.restrictions.filters {
        let text = shortened(&filter.text(bindings)?, FILTER_MAX);
        let on = if matches!(filter.column, Column::PartitionKey { .. } | Column::Static { .. }) {
            "partition"
        } else {
            "row"
        };
        lines.add("filter", &filter.name, &format!("on each {on}"), 1, &text);
    }
    order(lines, plan);
    limits(lines, plan, execution, bindings)
}

/// The replicas of a read among several nodes, and their answers.
fn replicas(lines: &mut Lines, replicas: &[ReplicaReport]) {
    for replica in replicas {
        let whose = if replica.is_local { "this node" } else { "another node" };
        let add = |lines: &mut Lines, figure: &str, value: u64, detail: &str| {
            lines.add_nonzero("replica", &replica.address, figure, value, detail);
        };
        add(lines, "data", replica.data, whose);
        add(lines, "digest", replica.digest, whose);
        add(lines, "spare", replica.spare, "asked where another one fails or is late");
        let Some(answers) = replica.answers else { continue };
        add(lines, "answers", answers.count, "that came");
        add(lines, "failures", answers.failed, "or answers that did not come in time");
        add(lines, "answer us", answers.micros_max, "from the request to the slowest answer");
        add(lines, "answer bytes", answers.bytes, "of data; digests count for none");
    }
}

fn order(lines: &mut Lines, plan: &SelectPlan) {
    if plan.group_by.is_some() {
        lines.add("group", "", "aggregates", plan.selection.aggregates.len() as u64, "one row for each group");
    } else if !plan.selection.aggregates.is_empty() {
        lines.add("group", "", "aggregates", plan.selection.aggregates.len() as u64, "all rows make one");
    }
    if let Some(ann_ordering) = &plan.ann_ordering {
        lines.add(
            "order",
            &ann_ordering.name,
            "nearest",
            1,
            "each replica gives its nearest rows, sorted by score in memory",
        );
    }
    if !plan.post_order.is_empty() {
        let columns = plan.post_order.len() as u64;
        lines.add("order", "", "sorted columns", columns, "all partitions are read, then sorted in memory");
    }
}

fn limits(
    lines: &mut Lines,
    plan: &SelectPlan,
    execution: &Execution<'_>,
    bindings: &Bindings<'_>,
) -> Result<(), CqlError> {
    let value = |term: &Option<Term>| -> Result<Option<u64>, CqlError> {
        let Some(term) = term else { return Ok(None) };
        let bytes = term.eval_option(bindings)?;
        Ok(bytes.and_then(|bytes| bytes.as_ref().try_into().ok()).map(|bytes| u64::from(u32::from_be_bytes(bytes))))
    };
    if let Some(limit) = value(&plan.per_partition_limit)? {
        lines.add("limit", "", "rows a partition", limit, "PER PARTITION LIMIT: goes on with the next there");
    }
    if let Some(limit) = value(&plan.limit)? {
        lines.add("limit", "", "rows", limit, "LIMIT: reading stops there");
    }
    if let Some(size) = execution.options.page_size.filter(|size| *size > 0) {
        let more = match &execution.answer.result {
            CqlResult::Rows(rows) if execution.analyze && rows.paging_state.is_some() => ", there are more",
            CqlResult::Rows(_) if execution.analyze => ", it is the last",
            _ => "",
        };
        let which = if execution.options.paging_state.is_some() { "the page asked for" } else { "the first page" };
        lines.add("limit", "", "rows a page", u64::from(size), &format!("{which}{more}"));
    }
    Ok(())
}
