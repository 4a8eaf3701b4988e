//! INSERT, UPDATE, DELETE and BATCH: what is written where, what has to be read first, and how long
//! it took.

use rows::dead::{DeadKind, Grace, Passed};
use rows::{ColumnData, Mutation, PartitionHead, PartitionUpdate, Unfiltered};
use types::BatchKind;

use super::Explain;
use super::table::Lines;
use super::watching::{SeenCondition, SeenWrite};
use super::{Told, sources, words};
use crate::prepare::Plan;
use crate::statements::modification::ModificationPlan;

/// Mutations that are told of one by one.
const MUTATIONS_MAX: usize = 16;

/// Tells of it.
pub(super) fn tell<C: Explain>(lines: &mut Lines, plan: &Plan, told: &Told<'_>, coordinator: &C) {
    let statements: &[ModificationPlan] = match plan {
        Plan::Modification(plan) => std::slice::from_ref(plan),
        Plan::Batch(plan) => &plan.statements,
        _ => &[],
    };
    let Some(first) = statements.first() else { return };
    access(lines, plan, statements.len(), first, told);
    for read in &told.seen.reads {
        sources::sources(lines, &first.table, &read.report);
        if let Some(run) = &read.report.run {
            lines.add("read", "", "rows", run.passed.rows, "that were there before");
            lines.add("read", "", "micros", run.micros, "");
        }
    }
    if let Some(condition) = &told.seen.condition {
        conditional(lines, condition, told, coordinator);
    }
    for write in &told.seen.writes {
        written(lines, write, told, coordinator);
    }
    if told.analyze {
        lines.add("time", "total", "micros", told.micros, "without parsing, and the way to the client");
    }
}

fn access(lines: &mut Lines, plan: &Plan, count: usize, first: &ModificationPlan, told: &Told<'_>) {
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
    let done = if told.analyze { "carried out: what it writes is written" } else { "not carried out" };
    lines.add("access", &table, figure, count as u64, done);
    let consistency = format!("consistency {}", told.options.consistency.name());
    lines.add("access", &table, "consistency", 1, &consistency);
    if first.table.is_counter() {
        lines.add("access", &table, "counter", 1, "what is there is read under a lock, then written");
    }
    if !told.seen.reads.is_empty() && told.seen.condition.is_none() && !first.table.is_counter() {
        lines.add(
            "access",
            &table,
            "reads before",
            told.seen.reads.len() as u64,
            "list elements are found by what is there",
        );
    }
}

fn conditional<C: Explain>(lines: &mut Lines, condition: &SeenCondition, told: &Told<'_>, coordinator: &C) {
    let serial = format!("the partition is read and decided on at {}", condition.serial.name());
    lines.add("condition", "", "reads", 1, &serial);
    match condition.applied {
        None => {}
        Some(true) => lines.add("condition", "", "applied", 1, "it held"),
        Some(false) => lines.add("condition", "", "applied", 0, "it did not hold: nothing was written"),
    }
    if let Some(update) = &condition.update {
        mutation(lines, &Mutation::of(update.clone()), told, coordinator);
    }
    if told.analyze {
        lines.add("time", "condition", "micros", condition.micros, "lock, read, decision, write, log");
    }
}

fn written<C: Explain>(lines: &mut Lines, write: &SeenWrite, told: &Told<'_>, coordinator: &C) {
    let count = write.mutations.len();
    if write.options.logged_batch {
        lines.add("batchlog", "system.batches", "rows", 1, "written before, removed after the mutations");
    }
    write.mutations.iter().take(MUTATIONS_MAX).for_each(|each| mutation(lines, each, told, coordinator));
    let left_out = count.saturating_sub(MUTATIONS_MAX) as u64;
    lines.add_some("mutation", "", "mutations left out", left_out, "like those above, not shown");
    let bytes: usize = write.mutations.iter().map(size).sum();
    lines.add("commit log", "", "bytes", bytes as u64, &format!("of {}", words::count(count as u64, "mutation")));
    if told.analyze {
        lines.add("time", "write", "micros", write.micros, "memtables, commit log, waiting until it is durable");
    }
}

fn size(mutation: &Mutation) -> usize {
    let mut bytes = Vec::new();
    rows::codec::encode_mutation(&mut bytes, mutation);
    bytes.len()
}

fn mutation<C: Explain>(lines: &mut Lines, mutation: &Mutation, told: &Told<'_>, coordinator: &C) {
    let Some(first) = mutation.updates.first() else { return };
    let key = words::key(&first.table, &mutation.key);
    let token = mutation.key.token.0;
    if let Some((shard, count)) = coordinator.shard_of(&mutation.key) {
        lines.add("mutation", &key, "shard", shard as u64, &format!("of {count}; token {token}"));
    } else {
        lines.add("mutation", &key, "bytes", size(mutation) as u64, &format!("token {token}"));
    }
    mutation.updates.iter().for_each(|each| update(lines, each, told, coordinator));
}

fn update<C: Explain>(lines: &mut Lines, update: &PartitionUpdate, _: &Told<'_>, coordinator: &C) {
    let table = format!("{}.{}", update.table.keyspace, update.table.name);
    let seconds = u32::try_from(update.table.params.gc_grace_seconds).unwrap_or(0);
    let grace = Grace { now: coordinator.now_seconds(), seconds };
    let mut passed = Passed::default();
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
    lines.add_some("update", &table, "cells", cells, "");
    for kind in DeadKind::ALL {
        lines.add_some("update", &table, &format!("{} tombstones", kind.name()), passed.of(kind), "");
    }
    if let Some((first, _)) = passed.purgeable_from {
        let detail = format!("they may go from {} on", words::time(first));
        lines.add("update", &table, "gc_grace_seconds", u64::from(seconds), &detail);
    }
}
