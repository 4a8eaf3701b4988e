//! `repairs`, `repair_sessions`, `repair_jobs`, `repair_participates`, `repair_validations`: the
//! course of repairs that this node coordinates or takes part in. Agrees with
//! `org.apache.cassandra.db.virtual.LocalRepairTables`; the latest thousand of each are kept.

use std::sync::atomic::Ordering;

use cluster::repair::Tokens;
use cluster::repair::options::{Parallelism, RepairOptions};
use cluster::repair::records::{End, Record, RecordState, Step, Subject};
use internode::payload::repair::Preview;

use super::VirtualTable;
use super::row::{VirtualRow, collected};
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[
    VirtualTable::of_views("repair_jobs", |services| rows(services, Subject::Job, job)),
    VirtualTable::of_views("repair_participates", |services| rows(services, Subject::Participation, participation)),
    VirtualTable::of_views("repair_sessions", |services| rows(services, Subject::Session, session)),
    VirtualTable::of_views("repair_validations", |services| rows(services, Subject::Validation, validation)),
    VirtualTable::of_views("repairs", commands),
];

fn rows(
    services: &Services,
    subject: Subject,
    row: fn(&Record, &RecordState, VirtualRow) -> VirtualRow,
) -> Vec<VirtualRow> {
    let now = services.node.env.clock.now_micros() / 1000;
    let of_record = |record: &std::sync::Arc<Record>| {
        let state = record.state();
        let common = common(record, &state, now);
        row(record, &state, common)
    };
    services.node.repair_records(subject).iter().map(of_record).collect()
}

/// The columns that all of the tables have.
fn common(record: &Record, state: &RecordState, now: i64) -> VirtualRow {
    let (success, failure, skipped) = match &state.end {
        Some((End::Success(text), at)) => (Some((text.as_deref(), *at)), None, None),
        Some((End::Failure(why), at)) => (None, Some((why.as_str(), *at)), None),
        Some((End::Skipped(why), at)) => (None, None, Some((why.as_str(), *at))),
        None => (None, None, None),
    };
    let begun = state.at(Step::Init).unwrap_or(0);
    let until = if state.end.is_some() { state.updated() } else { now };
    VirtualRow::default()
        .bytes("id", record.facts.id.to_vec())
        .boolean("completed", state.end.is_some())
        .bigint("duration_millis", until.saturating_sub(begun))
        .bigint("last_updated_at", state.updated())
        .maybe_text("failure_cause", failure.or(skipped).map(|(why, _)| why))
        .maybe_text("success_message", success.and_then(|(text, _)| text))
        .bigint("state_init_timestamp", begun)
        .maybe_bigint("state_success_timestamp", success.map(|(_, at)| at))
        .maybe_bigint("state_failure_timestamp", failure.map(|(_, at)| at))
        .maybe_bigint("state_skipped_timestamp", skipped.map(|(_, at)| at))
}

/// The status as the last step or the end.
fn status(state: &RecordState) -> &'static str {
    match (&state.end, state.steps.last()) {
        (Some((End::Success(_), _)), _) => "success",
        (Some((End::Failure(_), _)), _) => "failure",
        (Some((End::Skipped(_), _)), _) => "skipped",
        (None, Some((step, _))) => name(*step),
        (None, None) => name(Step::Init),
    }
}

fn name(step: Step) -> &'static str {
    match step {
        Step::Init => "init",
        Step::Setup => "setup",
        Step::Accept => "accept",
        Step::Start => "start",
        Step::PrepareStart => "prepare_start",
        Step::PrepareComplete => "prepare_complete",
        Step::RepairStart => "repair_start",
        Step::RepairComplete => "repair_complete",
        Step::JobsStart => "jobs_start",
        Step::SnapshotStart => "snapshot_start",
        Step::SnapshotComplete => "snapshot_complete",
        Step::ValidationStart => "validation_start",
        Step::ValidationComplete => "validation_complete",
        Step::StreamStart => "stream_start",
        Step::SendingTrees => "sending_trees",
    }
}

fn texts(ranges: &[Tokens]) -> impl Iterator<Item = String> {
    ranges.iter().map(ToString::to_string)
}

fn nodes(nodes: &[std::net::SocketAddr]) -> impl Iterator<Item = String> {
    nodes.iter().map(|node| format!("/{node}"))
}

/// A set of ids.
fn ids(ids: &[[u8; 16]]) -> Vec<Vec<u8>> {
    let ids: std::collections::BTreeSet<[u8; 16]> = ids.iter().copied().collect();
    ids.into_iter().map(Vec::from).collect()
}

fn job(record: &Record, state: &RecordState, row: VirtualRow) -> VirtualRow {
    let facts = &record.facts;
    row.text("keyspace_name", &facts.keyspace)
        .maybe_text("table_name", facts.tables.first().map(String::as_str))
        .bytes("repair_id", facts.repair.to_vec())
        .bytes("session_id", facts.session.to_vec())
        .texts("ranges", texts(&facts.ranges))
        .texts("participants", nodes(&facts.nodes))
        .text("status", status(state))
        .maybe_bigint("state_start_timestamp", state.at(Step::Start))
        .maybe_bigint("state_snapshot_start_timestamp", state.at(Step::SnapshotStart))
        .maybe_bigint("state_snapshot_complete_timestamp", state.at(Step::SnapshotComplete))
        .maybe_bigint("state_validation_start_timestamp", state.at(Step::ValidationStart))
        .maybe_bigint("state_validation_complete_timestamp", state.at(Step::ValidationComplete))
        .maybe_bigint("state_stream_start_timestamp", state.at(Step::StreamStart))
}

fn session(record: &Record, state: &RecordState, row: VirtualRow) -> VirtualRow {
    let facts = &record.facts;
    row.text("keyspace_name", &facts.keyspace)
        .texts("table_names", facts.tables.iter().cloned())
        .bytes("repair_id", facts.repair.to_vec())
        .texts("ranges", texts(&facts.ranges))
        .texts("participants", nodes(&facts.nodes))
        .collection("jobs", &ids(&state.children))
        .text("status", status(state))
        .maybe_bigint("state_start_timestamp", state.at(Step::Start))
        .maybe_bigint("state_jobs_start_timestamp", state.at(Step::JobsStart))
}

fn participation(record: &Record, state: &RecordState, row: VirtualRow) -> VirtualRow {
    let facts = &record.facts;
    row.maybe_text("initiator", nodes(&facts.nodes).next().as_deref())
        .text_set("tables", facts.tables.iter().cloned())
        .texts("ranges", texts(&facts.ranges))
        .boolean("incremental", facts.is_incremental)
        .boolean("global", facts.is_global)
        .text("preview_kind", facts.preview.name())
        .maybe_bigint("repaired_at", (facts.repaired_at > 0).then_some(facts.repaired_at))
        .collection("validations", &ids(&state.children))
}

fn validation(record: &Record, state: &RecordState, row: VirtualRow) -> VirtualRow {
    let facts = &record.facts;
    let (partitions, bytes) = (record.partitions.load(Ordering::Relaxed), record.bytes.load(Ordering::Relaxed));
    let expected = record.expected();
    let progress = match (&state.end, expected) {
        (Some(_), _) => 100.0,
        (None, Some((_, total))) if total > 0 => (bytes as f64 / total as f64 * 100.0).min(99.0),
        _ => 0.0,
    };
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    row.text("keyspace_name", &facts.keyspace)
        .maybe_text("table_name", facts.tables.first().map(String::as_str))
        .bytes("repair_id", facts.repair.to_vec())
        .bytes("session_id", facts.session.to_vec())
        .texts("ranges", texts(&facts.ranges))
        .maybe_text("initiator", nodes(&facts.nodes).next().as_deref())
        .text("status", status(state))
        .maybe_bigint("estimated_partitions", expected.map(|(partitions, _)| number(partitions)))
        .maybe_bigint("estimated_total_bytes", expected.map(|(_, bytes)| number(bytes)))
        .count("partitions_processed", partitions)
        .count("bytes_read", bytes)
        .bytes("progress_percentage", (progress as f32).to_be_bytes().to_vec())
        .maybe_bigint("state_accept_timestamp", state.at(Step::Accept))
        .maybe_bigint("state_start_timestamp", state.at(Step::Start))
        .maybe_bigint("state_sending_trees_timestamp", state.at(Step::SendingTrees))
}

fn commands(services: &Services) -> Vec<VirtualRow> {
    let now = services.node.env.clock.now_micros() / 1000;
    let commands = services.node.repair_commands();
    let records = services.node.repair_records(Subject::Command);
    let of_command = |command: &std::sync::Arc<cluster::repair::command::Command>| {
        let record = records.iter().find(|record| record.facts.id == command.id)?;
        let (facts, state) = (&record.facts, record.state());
        let lists = |lists: &[Vec<Tokens>]| -> Vec<Vec<u8>> {
            let list = |ranges: &Vec<Tokens>| collected(&texts(ranges).map(String::into_bytes).collect::<Vec<_>>());
            lists.iter().map(list).collect()
        };
        let row = common(record, &state, now)
            .int("command_id", command.number)
            .text("keyspace_name", &facts.keyspace)
            .texts("table_names", facts.tables.iter().cloned())
            .text("type", kind(facts.preview, facts.is_incremental))
            .texts("participants", nodes(&state.nodes))
            .collection("ranges", &lists(&state.common))
            .collection("unfiltered_ranges", &lists(&state.common))
            .collection("sessions", &ids(&state.children))
            .text("status", status(&state))
            .text_set("options_ranges", texts(&facts.ranges))
            .maybe_bigint("state_setup_timestamp", state.at(Step::Setup))
            .maybe_bigint("state_start_timestamp", state.at(Step::Start))
            .maybe_bigint("state_prepare_start_timestamp", state.at(Step::PrepareStart))
            .maybe_bigint("state_prepare_complete_timestamp", state.at(Step::PrepareComplete))
            .maybe_bigint("state_repair_start_timestamp", state.at(Step::RepairStart))
            .maybe_bigint("state_repair_complete_timestamp", state.at(Step::RepairComplete));
        Some(with_options(row, &command.options))
    };
    commands.iter().filter_map(of_command).collect()
}

/// Adds the options of a repair, but for its ranges.
fn with_options(row: VirtualRow, options: &RepairOptions) -> VirtualRow {
    row.text_set("options_column_families", options.tables.iter().cloned())
        .text_set("options_data_centers", options.data_centers.iter().cloned())
        .text_set("options_hosts", options.hosts.iter().cloned())
        .boolean("options_incremental", options.is_incremental)
        .boolean("options_force_repair", options.is_forced)
        .boolean("options_ignore_unreplicated_keyspaces", options.ignores_unreplicated)
        .int("options_job_threads", i32::try_from(options.job_threads.max(1)).unwrap_or(i32::MAX))
        .boolean("options_optimise_streams", options.optimises_streams)
        .text("options_parallelism", parallelism(options.parallelism))
        .text("options_preview_kind", options.preview.name())
        .boolean("options_primary_range", options.is_primary_range)
        .boolean("options_pull_repair", options.is_pull)
        .boolean("options_subrange_repair", !options.ranges.is_empty())
        .boolean("options_trace", options.is_traced)
}

/// The kind of a repair in words.
fn kind(preview: Preview, is_incremental: bool) -> &'static str {
    match (preview, is_incremental) {
        (Preview::All, _) => "preview full",
        (Preview::Repaired, _) => "preview repaired",
        (Preview::Unrepaired, _) => "preview unrepaired",
        (Preview::None, true) => "incremental",
        (Preview::None, false) => "full",
    }
}

/// The name of the enumeration's constant in Cassandra.
fn parallelism(parallelism: Parallelism) -> &'static str {
    match parallelism {
        Parallelism::Parallel => "PARALLEL",
        Parallelism::Sequential => "SEQUENTIAL",
        Parallelism::DataCenterAware => "DATACENTER_AWARE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A preview says which data it looks at, and never that it is incremental.
    #[test]
    fn a_preview_says_what_it_compares() {
        let previews = [Preview::All, Preview::Repaired, Preview::Unrepaired];
        assert_eq!(previews.map(|one| kind(one, true)), ["preview full", "preview repaired", "preview unrepaired"]);
        assert_eq!([true, false].map(|incremental| kind(Preview::None, incremental)), ["incremental", "full"]);
    }

    #[test]
    fn a_traced_repair_says_so() {
        for is_traced in [false, true] {
            let options = RepairOptions { is_traced, ..RepairOptions::default() };
            let row = with_options(VirtualRow::default(), &options);
            assert_eq!(row.get("options_trace").map(|value| value.to_vec()), Some(vec![u8::from(is_traced)]));
        }
    }
}
