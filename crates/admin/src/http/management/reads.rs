//! The endpoints of the management API that read.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::request::{Answer, ManagementRequest};
use crate::units::{date_time, file_size};
use crate::verb::{AdminError, Result};
use crate::verbs::{
    GetCompactions, GetGossip, GetKeyspaces, GetNode, GetRing, GetSchemaVersions, GetSnapshots, GetStreams,
    GetTableCompaction, KeyspaceInfo, NodeInfo, StreamSessionInfo, StreamWayInfo,
};

/// The optional parts of the management API that are here, by its names.
const FEATURES: [&str; 8] = [
    "async_sstable_tasks",
    "rebuild",
    "async_upgrade_sstable_task",
    "async_compaction_task",
    "async_scrub_task",
    "async_move_task",
    "async_gc_task",
    "async_flush_task",
];

/// The process answers.
pub(super) fn liveness() -> Answer {
    Answer::ok()
}

/// Clients are served, and the node is not about to stop.
pub(super) fn readiness(call: &ManagementRequest<'_>) -> Result<Answer> {
    let node = call.ask(&GetNode {})?;
    match is_ready(&node) {
        true => Ok(Answer::ok()),
        false => Ok(Answer::text(500, format!("not ready: the node is {}", node.mode))),
    }
}

/// Whether clients should come to a node.
pub(in crate::http) fn is_ready(node: &NodeInfo) -> bool {
    let stops = matches!(node.mode.as_str(), "DRAINING" | "DRAINED" | "LEAVING" | "DECOMMISSIONED");
    node.native_transport_active && !stops
}

pub(super) fn pid(_: &ManagementRequest<'_>) -> Result<Answer> {
    Ok(Answer::text(200, std::process::id().to_string()))
}

pub(super) fn release(call: &ManagementRequest<'_>) -> Result<Answer> {
    Ok(Answer::text(200, call.ask(&GetNode {})?.release_version))
}

pub(super) fn features(call: &ManagementRequest<'_>) -> Result<Answer> {
    let node = call.ask(&GetNode {})?;
    let told = json!({
        "cassandra_version": node.release_version, "mgmt_version": node.helenus_version, "features": FEATURES,
    });
    Ok(Answer::json(200, told))
}

pub(super) fn local_data_center(call: &ManagementRequest<'_>) -> Result<Answer> {
    Ok(Answer::text(200, call.ask(&GetNode {})?.data_center))
}

/// The values that each node tells of itself by gossip, with its tokens as a list.
pub(super) fn endpoints(call: &ManagementRequest<'_>) -> Result<Answer> {
    let (node, ring) = (call.ask(&GetNode {})?, call.ask(&GetRing::default())?);
    let mut endpoints = Vec::new();
    for state in call.ask(&GetGossip {})? {
        let in_ring = ring.endpoints.iter().find(|endpoint| endpoint.address == state.address);
        let is_local = state.address == node.address && state.storage_port == node.storage_port;
        let mut told: Map<String, Value> =
            state.states.into_iter().map(|(name, _, value)| (name, Value::String(value))).collect();
        if let Some(endpoint) = in_ring {
            let tokens: Vec<_> = endpoint.tokens.iter().map(i64::to_string).collect();
            told.insert("TOKENS".to_owned(), json!(tokens.join(",")));
        }
        let own = [
            ("ENDPOINT_IP", state.address),
            ("IS_ALIVE", (is_local || in_ring.is_some_and(|endpoint| endpoint.is_up)).to_string()),
            ("PARTITIONER", node.partitioner.clone()),
            ("CLUSTER_NAME", node.cluster_name.clone()),
            ("IS_LOCAL", is_local.to_string()),
        ];
        told.extend(own.map(|(name, value)| (name.to_owned(), Value::String(value))));
        endpoints.push(Value::Object(told));
    }
    Ok(Answer::entity(Value::Array(endpoints)))
}

pub(super) fn keyspaces(call: &ManagementRequest<'_>) -> Result<Answer> {
    let wanted = call.value("keyspaceName");
    let known = call.ask(&GetKeyspaces {})?.into_iter().map(|keyspace| keyspace.name);
    let names: Vec<_> = known.filter(|name| wanted.is_none_or(|wanted| wanted == name)).collect();
    Ok(Answer::json(200, json!(names)))
}

/// The keyspace that a call names; Err: the answer that says that there is none.
fn keyspace(call: &ManagementRequest<'_>, what: &str) -> Result<std::result::Result<KeyspaceInfo, Answer>> {
    let Some(wanted) = call.value("keyspaceName") else {
        return Err(AdminError::Invalid(format!("{what} failed. Non-empty 'keyspaceName' must be provided")));
    };
    let known = call.ask(&GetKeyspaces {})?.into_iter().find(|keyspace| keyspace.name == wanted);
    let unknown = || Answer::text(404, format!("{what} failed. Keyspace '{wanted}' does not exist."));
    Ok(known.ok_or_else(unknown))
}

pub(super) fn replication(call: &ManagementRequest<'_>) -> Result<Answer> {
    let keyspace = match keyspace(call, "Get keyspace replication")? {
        Ok(keyspace) => keyspace,
        Err(answer) => return Ok(answer),
    };
    let class = format!("org.apache.cassandra.locator.{}", keyspace.replication_class);
    let options = keyspace.replication_options.into_iter().map(|(name, value)| (name, json!(value)));
    let told: Map<_, _> = options.chain([("class".to_owned(), json!(class))]).collect();
    Ok(Answer::json(200, Value::Object(told)))
}

pub(super) fn table_names(call: &ManagementRequest<'_>) -> Result<Answer> {
    let tables = keyspace(call, "List tables")?.map_or_else(|_| Vec::new(), |keyspace| keyspace.tables);
    Ok(Answer::json(200, json!(tables)))
}

/// The tables of a keyspace with the options of their compaction.
pub(super) fn tables(call: &ManagementRequest<'_>) -> Result<Answer> {
    let Ok(keyspace) = keyspace(call, "List tables")? else { return Ok(Answer::json(200, json!([]))) };
    let told: Vec<_> = call
        .ask(&GetTableCompaction { keyspace: keyspace.name })?
        .into_iter()
        .map(|(name, options)| json!({"name": name, "compaction": options.into_iter().collect::<BTreeMap<_, _>>()}))
        .collect();
    Ok(Answer::json(200, Value::Array(told)))
}

pub(super) fn compactions(call: &ManagementRequest<'_>) -> Result<Answer> {
    let running = call.ask(&GetCompactions {})?.running;
    let told = running.into_iter().map(|compaction| {
        json!({
            "id": compaction.id, "compactionId": compaction.id, "operationId": compaction.id,
            "keyspace": compaction.keyspace, "columnfamily": compaction.table, "completed": compaction.completed,
            "total": compaction.total, "taskType": compaction.kind, "operationType": compaction.kind, "unit": "bytes",
            "sstables": "", "targetDirectory": "", "description": "",
        })
    });
    Ok(Answer::json(200, told.collect()))
}

pub(super) fn snapshots(call: &ManagementRequest<'_>) -> Result<Answer> {
    let wants = |name: &str, value: &str| {
        let mut wanted = call.values(name).peekable();
        wanted.peek().is_none() || wanted.any(|wanted| wanted == value)
    };
    let all = call.ask(&GetSnapshots {})?.into_iter();
    let wanted = all.filter(|of| wants("snapshotNames", &of.name) && wants("keyspaces", &of.keyspace));
    let told = wanted.map(|snapshot| {
        json!({
            "Snapshot name": snapshot.name,
            "Keyspace name": snapshot.keyspace,
            "Column family name": snapshot.table,
            "True size": file_size(snapshot.true_size),
            "Size on disk": file_size(snapshot.size_on_disk),
            "Creation time": snapshot.created_at.map_or_else(|| "null".to_owned(), created),
            "Expiration time": "null",
        })
    });
    Ok(Answer::entity(told.collect()))
}

fn created(at: i64) -> String {
    format!("{}Z", date_time(at))
}

/// The streaming sessions that run, by their plans.
pub(super) fn streams(call: &ManagementRequest<'_>) -> Result<Answer> {
    let mut by_plan: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for session in call.ask(&GetStreams {})? {
        let told = stream(&session);
        by_plan.entry(session.plan).or_default().push(told);
    }
    let told = by_plan.into_iter().map(|(plan, sessions)| json!({plan: sessions}));
    Ok(Answer::entity(told.collect()))
}

fn stream(session: &StreamSessionInfo) -> Value {
    let way = |way: &StreamWayInfo| [way.files, way.files_done, way.bytes, way.bytes_done].map(|of| of.to_string());
    let (receiving, sending) = (way(&session.receiving), way(&session.sending));
    json!({
        "PEER": session.peer, "USING_CONNECTION": session.peer, "STREAM_OPERATION": session.operation,
        "TOTAL_FILES_TO_RECEIVE": receiving[0], "TOTAL_FILES_RECEIVED": receiving[1],
        "TOTAL_SIZE_TO_RECEIVE": receiving[2], "TOTAL_SIZE_RECEIVED": receiving[3],
        "TOTAL_FILES_TO_SEND": sending[0], "TOTAL_FILES_SENT": sending[1],
        "TOTAL_SIZE_TO_SEND": sending[2], "TOTAL_SIZE_SENT": sending[3],
    })
}

/// Which nodes have which version of the schema; those that have not answered under UNREACHABLE.
pub(super) fn schema_versions(call: &ManagementRequest<'_>) -> Result<Answer> {
    let mut by_version: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for node in call.ask(&GetSchemaVersions {})? {
        let version = node.version.unwrap_or_else(|| "UNREACHABLE".to_owned());
        by_version.entry(version).or_default().push(node.address);
    }
    Ok(Answer::json(200, json!(by_version)))
}

pub(super) fn full_query_log(_: &ManagementRequest<'_>) -> Result<Answer> {
    Ok(Answer::entity(json!(false)))
}

/// The replicas of each range of a keyspace; without a keyspace, of the first one that nodes share.
pub(super) fn ranges(call: &ManagementRequest<'_>) -> Result<Answer> {
    let known = call.ask(&GetKeyspaces {})?;
    let found = match call.value("keyspaceName") {
        Some(wanted) => known.into_iter().find(|keyspace| keyspace.name == wanted),
        None => known.into_iter().find(|keyspace| keyspace.replication_class != "LocalStrategy"),
    };
    let Some(keyspace) = found else { return Ok(Answer::text(404, "keyspace not found")) };
    let ring = call.ask(&GetRing { keyspace: Some(keyspace.name) })?;
    let address = |place: &usize| ring.endpoints.get(*place).map(|endpoint| endpoint.address.clone());
    let told = ring.ranges.iter().map(|range| {
        let endpoints: Vec<_> = range.replicas.iter().filter_map(address).collect();
        json!({"tokens": [range.start, range.end], "endpoints": endpoints})
    });
    Ok(Answer::json(200, json!({"token_range_to_endpoints": told.collect::<Value>()})))
}
