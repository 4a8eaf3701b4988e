//! Hints: what a figure means, and what may be done about it. A line each, led by the figure that
//! it is drawn from.

use rows::ReadCommand;
use rows::dead::DeadKind;
use rows::report::{CommandReport, Decision, SourceKind};
use schema::TableMetadata;
use types::ident::maybe_quote;

use super::access::Path;
use super::lines::Lines;
use super::{Execution, format};
use crate::result::CqlResult;
use crate::statements::select::SelectPlan;

/// So many dead for each row that is returned are worth a word.
const DEAD_PER_ROW: u64 = 2;
/// Fewer dead than this are not.
const DEAD_FEW: u64 = 10;
/// So many rows passed for each that is returned are worth a word.
const PASSED_PER_ROW: u64 = 10;
/// Rows passed that are not.
const PASSED_FEW: u64 = 100;
/// A partition in so many SSTables is worth a word.
const SSTABLES_MANY: u64 = 4;
/// Partitions of an IN that are worth a word.
const PARTITIONS_MANY: usize = 10;
/// Rows by name that lie in so many blocks are worth a word.
const BLOCKS_MANY: u64 = 16;
/// Rows of a read without a filter and without an end that are.
const ROWS_WIDE: u64 = 10_000;

/// Adds the lines of the hints.
pub(super) fn add_lines(lines: &mut Lines, plan: &SelectPlan, execution: &Execution<'_>) {
    let Some(read) = execution.recording.reads.first() else { return };
    let path = Path::of(&read.commands);
    if path == Path::Reversed {
        let wanted = order_wanted(&plan.table);
        lines.add("hint", "order", "reversed", 1, "the rows are wanted against the order of the table:");
        lines.add("hint", "order", "reversed", 1, &format!("CLUSTERING ORDER BY ({wanted}) reads them forwards"));
    }
    if path == Path::Scan && !read.report.is_virtual {
        lines.add("hint", "access", "full scan", 1, "it grows with the table: name a partition if you can");
    }
    if read.commands.len() >= PARTITIONS_MANY {
        let count = read.commands.len() as u64;
        lines.add("hint", "access", "partitions", count, "read one by one: ask for each by itself, at once");
    }
    sstables(lines, &read.report.commands);
    if path == Path::Names {
        names(lines, &read.commands, &read.report.commands);
    }
    if let Some(run) = &read.report.run {
        let returned = match &execution.answer.result {
            CqlResult::Rows(rows) => u64::from(rows.row_count),
            _ => 0,
        };
        tombstones(lines, &run.passed, returned, &plan.table);
        filtering(lines, run.passed.rows, returned, plan);
        if path != Path::Scan && plan.restrictions.filters.is_empty() {
            wide(lines, run.passed.rows, run.passed.partitions, returned);
        }
    }
}

fn order_wanted(table: &TableMetadata) -> String {
    let turned = |column: &schema::ColumnMetadata| {
        format!("{} {}", maybe_quote(&column.name), if column.reversed { "ASC" } else { "DESC" })
    };
    table.clustering.iter().map(turned).collect::<Vec<_>>().join(", ")
}

fn sstables(lines: &mut Lines, commands: &[CommandReport]) {
    let read = |command: &CommandReport| {
        let is_read = |source: &&rows::report::SourceReport| {
            source.kind == SourceKind::SSTable && source.decision == Decision::Read
        };
        command.sources.iter().filter(is_read).count() as u64
    };
    let most = commands.iter().filter(|command| command.key.is_some()).map(read).max().unwrap_or(0);
    if most >= SSTABLES_MANY {
        lines.add("hint", "sstables", "read", most, "the partition is spread: compaction would join them");
    }
}

/// Rows by name, each on a page of its own.
fn names(lines: &mut Lines, commands: &[ReadCommand], reports: &[CommandReport]) {
    let blocks = |source: &rows::report::SourceReport| match (&source.measured, source.blocks) {
        (Some(figures), _) => figures.blocks.wanted,
        (None, Some(blocks)) => blocks.wanted,
        (None, None) => 0,
    };
    let most = reports.iter().flat_map(|report| &report.sources).map(blocks).max().unwrap_or(0);
    let wanted = commands.first().map_or(0, |command| command.slices.0.len() as u64);
    if most >= BLOCKS_MANY && most.saturating_mul(2) >= wanted {
        let detail = format!(
            "{} by name lie in {}: each is read for itself",
            format::count(wanted, "row"),
            format::count(most, "block")
        );
        lines.add("hint", "names", "blocks", most, &detail);
        let detail = "rows asked for together cost least where they lie together in the clustering order";
        lines.add("hint", "names", "blocks", most, detail);
    }
}

/// Many rows of few partitions.
fn wide(lines: &mut Lines, passed: u64, partitions: u64, returned: u64) {
    if passed < ROWS_WIDE || partitions == 0 || passed / partitions < ROWS_WIDE {
        return;
    }
    let detail = format!(
        "{} passed for {}: a slice or a LIMIT would end it",
        format::count(passed, "row"),
        format::count(returned, "row")
    );
    lines.add("hint", "access", "wide scan", passed, &detail);
}

fn tombstones(lines: &mut Lines, passed: &rows::dead::PassedCounts, returned: u64, table: &TableMetadata) {
    let dead = passed.tombstones();
    if dead < DEAD_FEW || dead < returned.saturating_mul(DEAD_PER_ROW) {
        return;
    }
    for kind in DeadKind::ALL {
        let count = passed.of(kind);
        if count > 0 {
            let what = match kind {
                DeadKind::Expired => "expired cell".to_owned(),
                kind => format!("{} tombstone", kind.name()),
            };
            let rows = format::count(returned, "row");
            lines.add("hint", "tombstones", kind.name(), count, &format!("{} for {rows}", format::count(count, &what)));
        }
    }
    if passed.purgeable > 0 {
        let count = format::number(passed.purgeable);
        let detail =
            format!("{count} may go with the next compaction of what they lie in: nodetool garbagecollect does it now");
        lines.add("hint", "tombstones", "purgeable now", passed.purgeable, &detail);
    }
    if let Some((first, _)) = passed.purgeable_from {
        let later = dead - passed.purgeable;
        let detail = format!("{} may go from {} on", format::number(later), format::time(first));
        lines.add("hint", "tombstones", "purgeable later", later, &detail);
        let grace = u64::try_from(table.params.gc_grace_seconds).unwrap_or(0);
        let days = grace / 86_400;
        let detail = match days {
            0 => "gc_grace_seconds of the table".to_owned(),
            days => format!("gc_grace_seconds of the table: {}", format::count(days, "day")),
        };
        lines.add("hint", "tombstones", "gc_grace_seconds", grace, &detail);
    }
}

fn filtering(lines: &mut Lines, passed: u64, returned: u64, plan: &SelectPlan) {
    let filters = &plan.restrictions.filters;
    if filters.is_empty() || passed < PASSED_FEW || passed < returned.saturating_mul(PASSED_PER_ROW) {
        return;
    }
    let rows = format::number(returned);
    lines.add(
        "hint",
        "filtering",
        "rows",
        passed,
        &format!("filtering passed {} for {rows}:", format::count(passed, "row")),
    );
    // no index finds the rows that a NOT IN leaves
    let mut names: Vec<_> =
        filters.iter().filter(|filter| !filter.is_not_in()).map(|filter| maybe_quote(&filter.name)).collect();
    names.dedup();
    if names.is_empty() {
        return;
    }
    let names = names.join(", ");
    lines.add("hint", "filtering", "rows", passed, &format!("an index on {names}, or a table keyed by {names}"));
}
