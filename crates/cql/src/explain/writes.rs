//! INSERT, UPDATE, DELETE and BATCH: what is written where, what has to be read first, and how long
//! it took.

use rows::dead::{DeadKind, GracePeriod, PassedCounts};
use rows::{ColumnData, Mutation, PartitionHead, PartitionUpdate, Unfiltered};
use types::BatchKind;

use super::ExplainCoordinator;
use super::lines::Lines;
use super::recording::{RecordedCondition, RecordedWrite};
use super::{Execution, format, sources};
use crate::prepare::Plan;
use crate::statements::modification::ModificationPlan;

/// Mutations that are told of one by one.
const MUTATIONS_MAX: usize = 16;

/// Adds the lines of a write.
pub(super) fn add_lines<C: ExplainCoordinator>(
    lines: &mut Lines,
    plan: &Plan,
    execution: &Execution<'_>,
    coordinator: &C,
) {
    let statements: &[ModificationPlan] = match plan {
        Plan::Modification(plan) => std::slice::from_ref(plan),
        Plan::Batch(plan) => &plan.statements,
        _ => &[],
    };
    let Some(first) = statements.first() else { return };
    access(lines, plan, statements.len(), first, execution);
    for read in &execution.recording.reads {
        sources::sources(lines, &first.table, &read.report);
        if let Some(run) = &read.report.run {
            lines.add("read", "", "rows", run.passed.rows, "that were there before");
            lines.add("read", "", "micros", run.micros, "");
        }
    }
    if let Some(condition) = &execution.recording.condition {
        conditional(lines, condition, execution, coordinator);
    }
    for write in &execution.recording.writes {
        written(lines, write, execution, coordinator);
    }
    if execution.analyze {
        lines.add("time", "total", "micros", execution.micros, "without parsing, and the way to the client");
    }
}

fn access(lines: &mut Lines, plan: &Plan, count: usize, first: &ModificationPlan, execution: &Execution<'_>) {
    let table = format!("{}.{}", first.table.keyspace, first.table.name);
    let figure = match plan {
        Plan::Batch(plan) => match plan.kind {
            BatchKind::Logged => "logged batch",
            BatchKind::Unlogged => "unlogged batch",
            BatchKind::Counter => "counter batch",
        },
        _ => match first.kind.name() {
            "INSERT" => "insert",
            "UPDATE" => "update",
            _ => "delete",
        },
    };
    let done = if execution.analyze { "carried out: what it writes is written" } else { "not carried out" };
    lines.add("access", &table, figure, count as u64, done);
    let consistency = format!("consistency {}", execution.options.consistency.name());
    lines.add("access", &table, "consistency", 1, &consistency);
    if first.table.is_counter() {
        lines.add("access", &table, "counter", 1, "what is there is read under a lock, then written");
    }
    if !execution.recording.reads.is_empty() && execution.recording.condition.is_none() && !first.table.is_counter() {
        lines.add(
            "access",
            &table,
            "reads before",
            execution.recording.reads.len() as u64,
            "list elements are found by what is there",
        );
    }
}

fn conditional<C: ExplainCoordinator>(
    lines: &mut Lines,
    condition: &RecordedCondition,
    execution: &Execution<'_>,
    coordinator: &C,
) {
    let serial = format!("the partition is read and decided on at {}", condition.serial.name());
    lines.add("condition", "", "reads", 1, &serial);
    match condition.applied {
        None => {}
        Some(true) => lines.add("condition", "", "applied", 1, "it held"),
        Some(false) => lines.add("condition", "", "applied", 0, "it did not hold: nothing was written"),
    }
    if let Some(update) = &condition.update {
        mutation(lines, &Mutation::of(update.clone()), execution, coordinator);
    }
    if execution.analyze {
        lines.add("time", "condition", "micros", condition.micros, "lock, read, decision, write, log");
    }
}

fn written<C: ExplainCoordinator>(
    lines: &mut Lines,
    write: &RecordedWrite,
    execution: &Execution<'_>,
    coordinator: &C,
) {
    let count = write.mutations.len();
    if write.options.logged_batch {
        lines.add("batchlog", "system.batches", "rows", 1, "written before, removed after the mutations");
    }
    write.mutations.iter().take(MUTATIONS_MAX).for_each(|each| mutation(lines, each, execution, coordinator));
    let left_out = count.saturating_sub(MUTATIONS_MAX) as u64;
    lines.add_nonzero("mutation", "", "mutations left out", left_out, "like those above, not shown");
    let bytes: usize = write.mutations.iter().map(size).sum();
    lines.add("commit log", "", "bytes", bytes as u64, &format!("of {}", format::count(count as u64, "mutation")));
    if execution.analyze {
        lines.add("time", "write", "micros", write.micros, "memtables, commit log, waiting until it is durable");
    }
}

fn size(mutation: &Mutation) -> usize {
    let mut bytes = Vec::new();
    rows::codec::encode_mutation(&mut bytes, mutation);
    bytes.len()
}

fn mutation<C: ExplainCoordinator>(lines: &mut Lines, mutation: &Mutation, execution: &Execution<'_>, coordinator: &C) {
    let Some(first) = mutation.updates.first() else { return };
    let key = format::key(&first.table, &mutation.key);
    let token = mutation.key.token.0;
    if let Some((shard, count)) = coordinator.shard_of(&mutation.key) {
        lines.add("mutation", &key, "shard", shard as u64, &format!("of {count}; token {token}"));
    } else {
        lines.add("mutation", &key, "bytes", size(mutation) as u64, &format!("token {token}"));
    }
    mutation.updates.iter().for_each(|each| update(lines, each, execution, coordinator));
}

fn update<C: ExplainCoordinator>(lines: &mut Lines, update: &PartitionUpdate, _: &Execution<'_>, coordinator: &C) {
    let table = format!("{}.{}", update.table.keyspace, update.table.name);
    let seconds = u32::try_from(update.table.params.gc_grace_seconds).unwrap_or(0);
    let grace = GracePeriod { now: coordinator.now_seconds(), seconds };
    let mut passed = PassedCounts::default();
    let static_row = update.static_row.clone();
    passed.head(&PartitionHead::new(update.key.clone(), update.deletion, static_row), &grace);
    let mut cells = 0;
    for row in update.rows.iter().chain(&update.static_row) {
        let of_column = |data: &ColumnData| match data {
            ColumnData::Simple(_) => 1,
            ColumnData::Complex(complex) => complex.cells.len() as u64,
        };
        cells += row.columns.iter().map(of_column).sum::<u64>();
    }
    for row in &update.rows {
        passed.unfiltered(&Unfiltered::Row(row.clone()), &grace);
    }
    for (_, deletion) in &update.range_deletions {
        passed.dead(DeadKind::Range, deletion.local_deletion_time, &grace);
    }
    lines.add("update", &table, "rows", update.rows.len() as u64 + u64::from(update.static_row.is_some()), "");
    lines.add_nonzero("update", &table, "cells", cells, "");
    for kind in DeadKind::ALL {
        lines.add_nonzero("update", &table, &format!("{} tombstones", kind.name()), passed.of(kind), "");
    }
    if let Some((first, _)) = passed.purgeable_from {
        let detail = format!("they may go from {} on", format::time(first));
        lines.add("update", &table, "gc_grace_seconds", u64::from(seconds), &detail);
    }
}
