//! Memtables and SSTables: what becomes of each, and what reading it took; then what came of the
//! read as a whole.

use rows::dead::{DeadKind, PassedCounts};
use rows::report::{CommandReport, Decision, ReadReport, RunReport, SourceFigures, SourceKind, SourceReport};
use schema::TableMetadata;

use super::lines::Lines;
use super::{Execution, format};
use crate::result::CqlResult;

/// Adds the lines of all sources, and of the result of each read.
pub(super) fn add_lines(lines: &mut Lines, table: &TableMetadata, execution: &Execution<'_>) {
    for read in &execution.recording.reads {
        sources(lines, table, &read.report);
        if let Some(run) = &read.report.run {
            result(lines, run, execution);
            times(lines, &read.report, run, execution);
        }
    }
}

/// Tells of the sources of a read.
pub(super) fn sources(lines: &mut Lines, table: &TableMetadata, report: &ReadReport) {
    if report.is_virtual {
        lines.add("virtual", &table.name, "read", 1, "the node makes the rows up: nothing is stored");
    }
    for command in &report.commands {
        target(lines, table, command);
        command.sources.iter().for_each(|source| of_source(lines, source));
        lines.add_nonzero("sstable", "", "sources left out", command.sources_left_out, "more are looked at, not shown");
    }
    lines.add_nonzero(
        "partition",
        "",
        "partitions left out",
        report.commands_left_out,
        "read like those above, not shown",
    );
}

fn target(lines: &mut Lines, table: &TableMetadata, command: &CommandReport) {
    let (first, last) = command.shards;
    if let Some(index) = &command.index {
        lines.add("index", index, "shard", first as u64, "its entries of the value, with what they are read from:");
        return;
    }
    match &command.key {
        Some(key) => {
            let detail = format!("of {}; token {}", command.shard_count, key.token.0);
            lines.add("partition", &format::key(table, key), "shard", first as u64, &detail);
        }
        None => {
            let shards = (last - first + 1) as u64;
            lines.add("range", "", "shards", shards, &format!("of {}", command.shard_count));
        }
    }
}

fn of_source(lines: &mut Lines, source: &SourceReport) {
    let step = match source.kind {
        SourceKind::Memtable => "memtable",
        SourceKind::Flushing => "flushing",
        SourceKind::RowCache => "row cache",
        SourceKind::SSTable => "sstable",
    };
    let name = &source.name;
    match source.decision {
        Decision::Skip => return lines.add(step, name, "skip", 0, source.reason),
        Decision::Perhaps => lines.add(step, name, "read if needed", 1, source.reason),
        Decision::Read => lines.add(step, name, "read", 1, source.reason),
    }
    lines.add(
        step,
        name,
        "bytes",
        source.bytes,
        if source.kind == SourceKind::SSTable { "of Data.db" } else { "of it in memory" },
    );
    if let Some(blocks) = source.blocks {
        lines.add(step, name, "blocks", blocks.total, "of the partition, by its row index");
        lines.add(step, name, "candidate blocks", blocks.wanted, "can hold rows of the slices");
    }
    if let Some(figures) = &source.measured {
        measured(lines, step, source, figures);
    }
}

fn measured(lines: &mut Lines, step: &'static str, source: &SourceReport, figures: &SourceFigures) {
    let name = &source.name;
    if source.kind == SourceKind::SSTable {
        lines.add_nonzero(
            step,
            name,
            "false positives",
            figures.false_positives,
            "the filter let the key pass, it is not there",
        );
        lines.add(step, name, "blocks", figures.blocks.total, "of the partitions that were read");
        lines.add(step, name, "blocks read", figures.blocks.wanted, "");
        let cached = figures.chunks_cached * figures.chunk_length;
        lines.add_nonzero(
            step,
            name,
            "chunks cached",
            figures.chunks_cached,
            &format!("{} bytes", format::number(cached)),
        );
        let read = format!("{} bytes on disk", format::number(figures.bytes_read));
        lines.add_nonzero(step, name, "chunks read", figures.chunks_read, &read);
    }
    let partitions = match figures.passed.partitions {
        1 => String::new(),
        several => format!("of {}", format::count(several, "partition")),
    };
    lines.add(step, name, "rows", figures.passed.rows, &partitions);
    lines.add_nonzero(step, name, "tombstones", figures.passed.tombstones(), &kinds(&figures.passed));
    lines.add(step, name, "micros", figures.nanos / 1_000, "");
}

/// `3,112 row, 4 range`.
pub(super) fn kinds(passed: &PassedCounts) -> String {
    let some = DeadKind::ALL.iter().filter(|kind| passed.of(**kind) > 0);
    some.map(|kind| format!("{} {}", format::number(passed.of(*kind)), kind.name())).collect::<Vec<_>>().join(", ")
}

fn result(lines: &mut Lines, run: &RunReport, execution: &Execution<'_>) {
    let passed = &run.passed;
    lines.add("merged", "", "rows", passed.rows, "of all sources, reconciled, dead ones included");
    for kind in DeadKind::ALL {
        lines.add_nonzero("merged", "", &format!("{} tombstones", kind.name()), passed.of(kind), "");
    }
    if passed.tombstones() > 0 {
        lines.add("merged", "", "purgeable now", passed.purgeable, "gc_grace_seconds is over for these");
        if let Some((first, last)) = passed.purgeable_from {
            let detail = match (format::time(first), format::time(last)) {
                (first, last) if first == last => format!("from {first}"),
                (first, last) => format!("from {first} to {last}"),
            };
            lines.add("merged", "", "purgeable later", passed.tombstones() - passed.purgeable, &detail);
        }
    }
    if let CqlResult::Rows(rows) = &execution.answer.result {
        lines.add("result", "", "rows", u64::from(rows.row_count), "");
        lines.add("result", "", "bytes", rows.rows.len() as u64, "of the rows on the wire");
    }
}

fn times(lines: &mut Lines, report: &ReadReport, run: &RunReport, execution: &Execution<'_>) {
    let sources = report.commands.iter().flat_map(|command| &command.sources);
    let nanos: u64 = sources.filter_map(|source| source.measured.as_ref()).map(|figures| figures.nanos).sum();
    let in_sources = nanos / 1_000;
    let own = run.micros.saturating_sub(run.waited_micros);
    lines.add("time", "sources", "micros", in_sources, "memtables and SSTables, decoding included");
    lines.add(
        "time",
        "answer",
        "micros",
        own.saturating_sub(in_sources),
        "merging, filters, putting the page together",
    );
    let ran =
        if run.in_background { "in the background: the first try inline, the queue" } else { "inline, on the worker" };
    lines.add("time", "waiting", "micros", run.waited_micros, ran);
    lines.add("time", "total", "micros", execution.micros, "without parsing, and the way to the client");
}
