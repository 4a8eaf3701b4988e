//! `streaming`: streams of SSTables that run, and the last ones that have ended; a row a plan.
//! Agrees with `StreamingVirtualTable` and `StreamingState`, which remember by size and time.

use std::collections::BTreeMap;

use cluster::streaming::{SessionProgress, Totals};

use super::VirtualTable;
use super::row::VirtualRow;
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[VirtualTable::of_views("streaming", rows)];

fn rows(services: &Services) -> Vec<VirtualRow> {
    let node = &services.node;
    let mut plans: BTreeMap<_, Vec<SessionProgress>> = BTreeMap::new();
    for session in node.ended_streams().into_iter().chain(node.stream_progress()) {
        plans.entry((session.plan, session.follows)).or_default().push(session);
    }
    plans.values().map(|sessions| row(sessions)).collect()
}

/// The row of a plan, which has at least one session.
fn row(sessions: &[SessionProgress]) -> VirtualRow {
    let first = &sessions[0];
    let sum = |of: fn(&SessionProgress) -> Totals| {
        sessions.iter().map(of).fold(Totals::default(), |sum, totals| Totals {
            files: sum.files + totals.files,
            bytes: sum.bytes + totals.bytes,
        })
    };
    let (to_receive, received) = (sum(|session| session.to_receive), sum(|session| session.received));
    let (to_send, sent) = (sum(|session| session.to_send), sum(|session| session.sent));
    let failure = sessions.iter().find_map(|session| session.end.as_ref()?.as_ref().err());
    let runs = sessions.iter().any(|session| session.end.is_none());
    let status = match (runs, failure) {
        (true, _) => "start",
        (false, Some(_)) => "failure",
        (false, None) => "success",
    };
    let (done, all) = (received.bytes + sent.bytes, to_receive.bytes + to_send.bytes);
    let share = match (runs, all) {
        (false, _) => 1.0,
        (true, 0) => 0.0,
        (true, all) => (done as f64 / all as f64).min(0.99),
    };
    let begun = sessions.iter().map(|session| session.begun_millis).min().unwrap_or(0);
    let millis = |session: &SessionProgress| i64::try_from(session.millis).unwrap_or(i64::MAX);
    let updated = sessions.iter().map(|session| session.begun_millis.saturating_add(millis(session))).max();
    let updated = updated.unwrap_or(begun);
    let (succeeded, failed) = (status == "success", status == "failure");
    VirtualRow::default()
        .bytes("id", first.plan.to_vec())
        .bytes("follower", vec![u8::from(first.follows)])
        .text("operation", first.operation.text())
        .texts("peers", peers(sessions))
        .text("status", status)
        .bytes("progress_percentage", ((share * 100.0).floor() as f32).to_be_bytes().to_vec())
        .bigint("last_updated_at", updated)
        .bigint("duration_millis", updated - begun)
        .maybe_text("failure_cause", failure.map(String::as_str))
        .count("bytes_to_receive", to_receive.bytes)
        .count("bytes_received", received.bytes)
        .count("bytes_to_send", to_send.bytes)
        .count("bytes_sent", sent.bytes)
        .count("files_to_receive", to_receive.files)
        .count("files_received", received.files)
        .count("files_to_send", to_send.files)
        .count("files_sent", sent.files)
        .bigint("status_init_timestamp", begun)
        .bigint("status_start_timestamp", begun)
        .maybe_bigint("status_success_timestamp", succeeded.then_some(updated))
        .maybe_bigint("status_failure_timestamp", failed.then_some(updated))
}

/// The other ends, each as Java prints it.
fn peers(sessions: &[SessionProgress]) -> Vec<String> {
    let mut names: Vec<String> = sessions.iter().map(|session| format!("/{}", session.peer)).collect();
    names.sort();
    names.dedup();
    names
}
