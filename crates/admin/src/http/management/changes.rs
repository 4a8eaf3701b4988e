//! The endpoints of the management API that change the node. `NAME_now` answers when the work is
//! done; NAME alone is the work of a job.

use serde::Deserialize;
use serde_json::json;

use super::request::{Answer, ManagementRequest};
use crate::verb::{AdminError, Result};
use crate::verbs::{
    CleanupRequest, ClearSnapshots, Compact, CompactRequest, Drain, Flush, GetKeyspaces, GetSnapshots, GossipChange,
    HandoffChange, RangeMovement, RebuildRequest, Refresh, ReloadSeeds, SSTableRequest, SSTableWork,
    SetCompactionThroughput, SetLoggingLevel, SnapshotRequest, TableSelection,
};

/// The word with which a client asks for all keyspaces.
const ALL: &str = "ALL";

fn invalid<T>(why: impl Into<String>) -> Result<T> {
    Err(AdminError::Invalid(why.into()))
}

/// Answers OK when some work is done.
fn done(work: Result<()>) -> Result<Answer> {
    work.map(|()| Answer::ok())
}

/// Tables of a keyspace, and how many SSTables at a time.
#[derive(Deserialize, Default)]
#[serde(default)]
struct KeyspaceRequest {
    jobs: u32,
    keyspace_name: Option<String>,
    tables: Option<Vec<String>>,
}

/// The tables that a request names. Without a keyspace all are meant.
fn tables(keyspace: Option<String>, tables: Option<Vec<String>>) -> TableSelection {
    let keyspaces = keyspace.filter(|name| !name.trim().is_empty() && name != ALL).into_iter().collect();
    TableSelection { keyspaces, tables: tables.unwrap_or_default() }
}

pub(super) fn nothing(_: &ManagementRequest<'_>) -> Result<Answer> {
    Ok(Answer::ok())
}

/// Cassandra refuses these in the same way.
pub(super) fn of_dse(_: &ManagementRequest<'_>) -> Result<Answer> {
    Ok(Answer::text(400, "this is only possible on DSE"))
}

pub(super) fn reload_seeds(call: &ManagementRequest<'_>) -> Result<Answer> {
    Ok(Answer::json(200, json!(call.ask(&ReloadSeeds {})?)))
}

pub(super) fn refresh(call: &ManagementRequest<'_>) -> Result<Answer> {
    let Some(keyspace) = call.value("keyspaceName") else { return invalid("Must provide a keyspace name") };
    let Some(table) = call.value("table") else { return invalid("table must be provided") };
    done(call.ask(&Refresh { keyspace: keyspace.to_owned(), table: table.to_owned() }))
}

pub(super) fn cleanup_now(call: &ManagementRequest<'_>) -> Result<Answer> {
    done(cleanup(call))
}

pub(super) fn cleanup(call: &ManagementRequest<'_>) -> Result<()> {
    let request: KeyspaceRequest = call.body()?;
    if request.keyspace_name.as_deref().is_some_and(|name| name == "system" || name == "system_schema") {
        // every node has these for itself
        return Ok(());
    }
    let keyspace = request.keyspace_name.filter(|name| name != "NON_LOCAL_STRATEGY");
    call.ask(&CleanupRequest { tables: tables(keyspace, request.tables), jobs: request.jobs })
}

pub(super) fn flush_now(call: &ManagementRequest<'_>) -> Result<Answer> {
    done(flush(call))
}

pub(super) fn flush(call: &ManagementRequest<'_>) -> Result<()> {
    let request: KeyspaceRequest = call.body()?;
    call.ask(&Flush { tables: tables(request.keyspace_name, request.tables) })
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Compaction {
    split_output: bool,
    user_defined: bool,
    start_token: Option<String>,
    end_token: Option<String>,
    keyspace_name: Option<String>,
    user_defined_files: Option<Vec<String>>,
    tables: Option<Vec<String>>,
}

pub(super) fn compact_now(call: &ManagementRequest<'_>) -> Result<Answer> {
    done(compact(call))
}

pub(super) fn compact(call: &ManagementRequest<'_>) -> Result<()> {
    let request: Compaction = call.body()?;
    let token = |given: Option<String>| given.filter(|text| !text.trim().is_empty());
    let (first, last) = (token(request.start_token), token(request.end_token));
    let in_range = first.is_some() || last.is_some();
    if request.split_output && (request.user_defined || in_range) {
        return invalid("Invalid option combination: Can not use split-output here");
    }
    if request.user_defined && in_range {
        return invalid("Invalid option combination: Can not provide tokens when using user-defined");
    }
    if request.user_defined {
        let files = request.user_defined_files.unwrap_or_default();
        if files.is_empty() {
            return invalid("Must provide a file if setting userDefined to true");
        }
        return call.ask(&CompactRequest { tables: TableSelection::default(), what: Compact::Files(files) });
    }
    let what = match in_range {
        true => Compact::Tokens { first: first.unwrap_or_default(), last: last.unwrap_or_default() },
        false => Compact::All { split: request.split_output },
    };
    call.ask(&CompactRequest { tables: tables(request.keyspace_name, request.tables), what })
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Scrub {
    disable_snapshot: bool,
    skip_corrupted: bool,
    check_data: Option<bool>,
    reinsert_overflowed_ttl: bool,
    jobs: u32,
    keyspace_name: Option<String>,
    tables: Option<Vec<String>>,
}

pub(super) fn scrub_now(call: &ManagementRequest<'_>) -> Result<Answer> {
    done(scrub(call))
}

pub(super) fn scrub(call: &ManagementRequest<'_>) -> Result<()> {
    let request: Scrub = call.body()?;
    let work = SSTableWork::Scrub {
        no_snapshot: request.disable_snapshot,
        skip_corrupted: request.skip_corrupted,
        no_validate: !request.check_data.unwrap_or(true),
        reinsert_overflowed_ttl: request.reinsert_overflowed_ttl,
    };
    work_on(call, tables(request.keyspace_name, request.tables), request.jobs, work)
}

pub(super) fn collect_now(call: &ManagementRequest<'_>) -> Result<Answer> {
    done(collect(call))
}

pub(super) fn collect(call: &ManagementRequest<'_>) -> Result<()> {
    let request: KeyspaceRequest = call.body()?;
    let cells = match call.value("tombstoneOption").unwrap_or("ROW").to_ascii_uppercase().as_str() {
        "ROW" => false,
        "CELL" => true,
        _ => return invalid("tombstoneOption must be either ROW or CELL"),
    };
    let work = SSTableWork::GarbageCollect { cells };
    work_on(call, tables(request.keyspace_name, request.tables), request.jobs, work)
}

pub(super) fn upgrade_now(call: &ManagementRequest<'_>) -> Result<Answer> {
    done(upgrade(call))
}

pub(super) fn upgrade(call: &ManagementRequest<'_>) -> Result<()> {
    let request: KeyspaceRequest = call.body()?;
    // the management API hands on the opposite of what the parameter says, and its clients know
    let work = SSTableWork::Upgrade { include_all: call.switch("excludeCurrentVersion"), max_timestamp: i64::MAX };
    work_on(call, tables(request.keyspace_name, request.tables), request.jobs, work)
}

/// Works on SSTables, keyspace by keyspace. Err: some were left out.
fn work_on(call: &ManagementRequest<'_>, of: TableSelection, jobs: u32, work: SSTableWork) -> Result<()> {
    let keyspaces = match of.keyspaces.is_empty() {
        true => call.ask(&GetKeyspaces {})?.into_iter().map(|keyspace| keyspace.name).collect(),
        false => of.keyspaces,
    };
    for keyspace in keyspaces {
        let request =
            SSTableRequest { keyspace: keyspace.clone(), tables: of.tables.clone(), jobs, work: work.clone() };
        let outcome = call.ask(&request)?;
        if outcome.status != 0 {
            let why = match outcome.status {
                1 => "it was stopped before its end",
                _ => "another operation had some of the SSTables",
            };
            return Err(AdminError::Failed(format!("keyspace {keyspace}: {why}; see the log of the node")));
        }
    }
    Ok(())
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct TakeSnapshot {
    snapshot_name: Option<String>,
    keyspaces: Option<Vec<String>>,
    table_name: Option<String>,
    skip_flush: Option<bool>,
    keyspace_tables: Option<Vec<String>>,
}

pub(super) fn take_snapshot(call: &ManagementRequest<'_>) -> Result<Answer> {
    let request: TakeSnapshot = call.body()?;
    let keyspaces = request.keyspaces.unwrap_or_default();
    let pairs = request.keyspace_tables.unwrap_or_default();
    let Some(name) = request.snapshot_name.filter(|name| !name.trim().is_empty()) else {
        return invalid("snapshot_name must be provided");
    };
    if name.contains('/') {
        return invalid("Snapshot name cannot contain /");
    }
    if !keyspaces.is_empty() && !pairs.is_empty() {
        return invalid("When specifying keyspace_tables, specifying keyspaces is not allowed");
    }
    let tables = match (request.table_name, keyspaces.as_slice()) {
        (Some(table), [keyspace]) => vec![(keyspace.clone(), table)],
        (Some(_), _) => return invalid("Exactly 1 keyspace must be specified when specifying table_name"),
        (None, _) => pairs.iter().map(|pair| named(pair)).collect::<Result<_>>()?,
    };
    let skip_flush = request.skip_flush.unwrap_or(false);
    done(call.ask(&SnapshotRequest { name, keyspaces, tables, skip_flush }))
}

fn named(pair: &str) -> Result<(String, String)> {
    match pair.split_once('.') {
        Some((keyspace, table)) => Ok((keyspace.to_owned(), table.to_owned())),
        None => invalid(format!("{pair} is not of the form keyspace.table")),
    }
}

/// Without names all snapshots go; without keyspaces those of all keyspaces.
pub(super) fn clear_snapshots(call: &ManagementRequest<'_>) -> Result<Answer> {
    let mut names: Vec<_> = call.values("snapshotNames").map(str::to_owned).collect();
    if names.is_empty() {
        names = call.ask(&GetSnapshots {})?.into_iter().map(|snapshot| snapshot.name).collect();
        names.sort();
        names.dedup();
    }
    let keyspaces: Vec<_> = call.values("keyspaces").map(str::to_owned).collect();
    for name in names {
        call.ask(&ClearSnapshots { name: Some(name), keyspaces: keyspaces.clone() })?;
    }
    Ok(Answer::ok())
}

pub(super) fn drain(call: &ManagementRequest<'_>) -> Result<Answer> {
    done(call.ask(&Drain {}))
}

pub(super) fn decommission_now(call: &ManagementRequest<'_>) -> Result<Answer> {
    done(decommission(call))
}

pub(super) fn decommission(call: &ManagementRequest<'_>) -> Result<()> {
    call.ask(&RangeMovement::Decommission { force: call.switch("force") })
}

pub(super) fn rebuild(call: &ManagementRequest<'_>) -> Result<()> {
    let source_data_center = call.value("src_dc").map(str::to_owned);
    call.ask(&RangeMovement::Rebuild(RebuildRequest { source_data_center, ..RebuildRequest::default() }))
}

pub(super) fn move_to(call: &ManagementRequest<'_>) -> Result<()> {
    let Some(token) = call.value("newToken") else { return invalid("newToken must be specified") };
    call.ask(&RangeMovement::Move(token.to_owned()))
}

pub(super) fn assassinate(call: &ManagementRequest<'_>) -> Result<Answer> {
    let Some(address) = call.value("address") else { return invalid("Address must be provided") };
    done(call.ask(&GossipChange::Assassinate(address.to_owned())))
}

pub(super) fn set_compaction_throughput(call: &ManagementRequest<'_>) -> Result<Answer> {
    let Some(Ok(mebibytes)) = call.value("value").map(str::parse::<u32>) else {
        return invalid("value must be a number of MiB a second");
    };
    done(call.ask(&SetCompactionThroughput { bytes_per_second: u64::from(mebibytes) << 20 }))
}

pub(super) fn set_logging_level(call: &ManagementRequest<'_>) -> Result<Answer> {
    let of = |name: &str| call.value(name).unwrap_or_default().to_owned();
    done(call.ask(&SetLoggingLevel { logger: of("target"), level: of("rawLevel") }))
}

pub(super) fn truncate_hints(call: &ManagementRequest<'_>) -> Result<Answer> {
    done(call.ask(&HandoffChange::Truncate(call.value("host").map(str::to_owned))))
}
