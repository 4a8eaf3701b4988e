//! Repairs of the management API. A repair is a job with the id `repair-NUMBER`, whose events are
//! those that nodetool shows ([`job`]); the node keeps them, so that no state is here.

use serde::Deserialize;
use serde_json::{Value, json};

use super::request::{Answer, ManagementRequest};
use crate::verb::{AdminError, Result};
use crate::verbs::{GetRepair, RepairEvent, RepairEventKind, RepairParallelism, RepairRequest, StopRepairs};

/// The beginning of a repair's id, which Reaper cuts off.
const PREFIX: &str = "repair-";

/// A repair of v0 and v1.
#[derive(Deserialize)]
struct RepairV1 {
    keyspace_name: Option<String>,
    tables: Option<Vec<String>>,
    full: Option<bool>,
}

/// A repair of v2.
#[derive(Deserialize)]
struct RepairV2 {
    keyspace: Option<String>,
    tables: Option<Vec<String>>,
    full_repair: Option<bool>,
    associated_tokens: Option<Vec<Range>>,
    repair_parallelism: Option<String>,
    datacenters: Option<Vec<String>>,
    repair_thread_count: Option<i64>,
}

#[derive(Deserialize)]
struct Range {
    start: i64,
    end: i64,
}

/// Begins a repair, and does not say which.
pub(super) fn begin_v0(call: &ManagementRequest<'_>) -> Result<Answer> {
    begin(call, plain(call)?).map(|_| Answer::ok())
}

pub(super) fn begin_v1(call: &ManagementRequest<'_>) -> Result<Answer> {
    begin(call, plain(call)?).map(|id| Answer::text(202, id))
}

pub(super) fn begin_v2(call: &ManagementRequest<'_>) -> Result<Answer> {
    let request: RepairV2 = call.body()?;
    let parallelism = match request.repair_parallelism.as_deref().map(str::to_ascii_lowercase).as_deref() {
        None | Some("sequential") => RepairParallelism::Sequential,
        Some("parallel") => RepairParallelism::Parallel,
        Some("dc_parallel" | "datacenter_aware") => RepairParallelism::DataCenterAware,
        Some(other) => return Err(AdminError::Invalid(format!("repair_parallelism: there is no {other}"))),
    };
    let threads = request.repair_thread_count.unwrap_or(1);
    let job_threads = u32::try_from(threads).ok().filter(|threads| *threads > 0).ok_or_else(|| {
        AdminError::Invalid(format!("Invalid repair thread count: {threads}. Value should be greater than 0"))
    })?;
    let incremental = !request.full_repair.unwrap_or(true);
    let id = begin(
        call,
        RepairRequest {
            keyspace: named(request.keyspace)?,
            tables: request.tables.unwrap_or_default(),
            // as in Cassandra an incremental repair validates all replicas at once
            parallelism: if incremental { RepairParallelism::Parallel } else { parallelism },
            incremental,
            job_threads,
            data_centers: request.datacenters.unwrap_or_default(),
            ranges: request.associated_tokens.into_iter().flatten().map(|range| (range.start, range.end)).collect(),
            ..RepairRequest::default()
        },
    )?;
    Ok(Answer::json(202, json!({"repair_id": id})))
}

fn plain(call: &ManagementRequest<'_>) -> Result<RepairRequest> {
    let request: RepairV1 = call.body()?;
    Ok(RepairRequest {
        keyspace: named(request.keyspace_name)?,
        tables: request.tables.unwrap_or_default(),
        incremental: !request.full.unwrap_or(false),
        job_threads: 1,
        ..RepairRequest::default()
    })
}

fn named(keyspace: Option<String>) -> Result<String> {
    let keyspace = keyspace.filter(|name| !name.trim().is_empty());
    keyspace.ok_or_else(|| AdminError::Invalid("keyspaceName must be specified".to_owned()))
}

/// The id of the repair; that of number 0 has ended, because there is one replica of everything.
fn begin(call: &ManagementRequest<'_>, request: RepairRequest) -> Result<String> {
    Ok(format!("{PREFIX}{}", call.ask(&request)?.unwrap_or(0)))
}

pub(super) fn stop(call: &ManagementRequest<'_>) -> Result<Answer> {
    call.ask(&StopRepairs {}).map(|()| Answer::text(202, ""))
}

/// The job of an id; None: the id is not that of a repair, or the node does not know it.
pub(super) fn job(call: &ManagementRequest<'_>, id: &str) -> Option<Value> {
    let number: i32 = id.strip_prefix(PREFIX)?.parse().ok()?;
    if number == 0 {
        let over = json!([{"status": "COMPLETE", "change_time": 0, "message": ""}]);
        return Some(json!({
            "id": id, "type": "repair", "status": "COMPLETED", "submit_time": 0, "end_time": 0, "error": null,
            "status_changes": over,
        }));
    }
    let told = call.ask(&GetRepair { number, from: 0 }).ok()?;
    let failure = told.events.iter().rfind(|event| event.kind == RepairEventKind::Error);
    let status = match (told.has_ended, failure) {
        (false, _) => "WAITING",
        (true, None) => "COMPLETED",
        (true, Some(_)) => "ERROR",
    };
    let end = told.events.last().filter(|_| told.has_ended).map_or(0, |event| event.at);
    let changes: Vec<_> = told.events.iter().map(change).collect();
    Some(json!({
        "id": id, "type": "repair", "status": status, "submit_time": told.events.first().map_or(0, |event| event.at),
        "end_time": end, "error": failure.map(|event| &event.text), "status_changes": changes,
    }))
}

fn change(event: &RepairEvent) -> Value {
    let status = match event.kind {
        RepairEventKind::Start => "START",
        RepairEventKind::Progress(_) => "PROGRESS",
        RepairEventKind::Notification => "NOTIFICATION",
        RepairEventKind::Error => "ERROR",
        RepairEventKind::Success => "SUCCESS",
        RepairEventKind::Complete => "COMPLETE",
    };
    json!({"status": status, "change_time": event.at, "message": event.text})
}
