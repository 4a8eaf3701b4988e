//! Sessions of incremental repairs, for operators.

use std::sync::PoisonError;

use admin::verbs::{
    CancelRepair, CleanUpRepairs, CleanedUpRepairs, GetPendingRepairs, GetRepairSchedule, GetRepairSessions,
    GetRepairSettings, GetRepaired, PendingRepairData, PendingRepairInfo, RepairScheduleInfo, RepairSessionInfo,
    RepairSettingsInfo, RepairedInfo, RepairedTables, ScheduledTable, SetRepairSetting,
};
use admin::{AdminError, Functions, Result};
use cluster::repair::sessions_admin::{PendingSum, ReleasedData, RepairedRanges, TableChoice};
use cluster::repair::{Token, Tokens};

use super::{NodeAdmin, invalid, of_operation, runtime};
use crate::joining;

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(sessions).add(pending).add(repaired).add(clean_up).add(cancel).add(schedule);
    functions.add(settings).add(set_setting);
}

fn tokens(range: Option<(i64, i64)>) -> Option<Tokens> {
    range.map(|(start, end)| Tokens { start: Token(start), end: Token(end) })
}

fn choice(of: &RepairedTables) -> TableChoice<'_> {
    TableChoice { keyspace: of.keyspace.as_deref(), tables: &of.tables, range: tokens(of.range) }
}

fn sessions(admin: &NodeAdmin, get: &GetRepairSessions) -> Result<Vec<RepairSessionInfo>> {
    let node = &admin.services.node;
    let now = node.env.clock.now_micros() / 1_000_000;
    let info = |session: cluster::repair::LocalSession| RepairSessionInfo {
        id: cluster::clock::uuid_text(&session.id),
        state: session.state.name().to_owned(),
        idle_seconds: now - session.last_update,
        coordinator: session.coordinator.to_string(),
        participants: session.participants.iter().map(ToString::to_string).collect(),
    };
    Ok(node.repair_sessions(get.all, tokens(get.range)).into_iter().map(info).collect())
}

fn pending(admin: &NodeAdmin, get: &GetPendingRepairs) -> Result<Vec<PendingRepairInfo>> {
    let found = admin.services.node.pending_repairs(choice(&get.of)).map_err(of_operation)?;
    let data = |sum: PendingSum| PendingRepairData {
        bytes: sum.bytes,
        sstables: sum.sstables as u64,
        sessions: sum.sessions as u64,
    };
    let info = |of: cluster::repair::sessions_admin::PendingRepairs| PendingRepairInfo {
        keyspace: of.keyspace,
        table: of.table,
        pending: data(of.pending),
        finalized: data(of.finalized),
        failed: data(of.failed),
    };
    Ok(found.into_iter().map(info).collect())
}

fn repaired(admin: &NodeAdmin, get: &GetRepaired) -> Result<Vec<RepairedInfo>> {
    let found = admin.services.node.repaired_ranges(choice(&get.of)).map_err(of_operation)?;
    let info = |of: RepairedRanges| RepairedInfo {
        keyspace: of.keyspace,
        table: of.table,
        sections: of.sections.into_iter().map(|(range, at)| (range.start.0, range.end.0, at)).collect(),
    };
    Ok(found.into_iter().map(info).collect())
}

fn clean_up(admin: &NodeAdmin, request: &CleanUpRepairs) -> Result<Vec<CleanedUpRepairs>> {
    let done = runtime()?.block_on(admin.services.node.clean_up_repairs(choice(&request.of), request.force));
    let info = |of: ReleasedData| CleanedUpRepairs {
        keyspace: of.keyspace,
        table: of.table,
        successful: of.released as u64,
        unsuccessful: of.busy as u64,
    };
    Ok(done.map_err(of_operation)?.into_iter().map(info).collect())
}

fn cancel(admin: &NodeAdmin, request: &CancelRepair) -> Result<()> {
    let Some(id) = types::literal::parse_uuid(&request.session) else {
        return invalid(format!("Invalid UUID string: {}", request.session));
    };
    admin.services.node.cancel_repair(id, request.force).map_err(of_operation)
}

fn settings(admin: &NodeAdmin, _: &GetRepairSettings) -> Result<RepairSettingsInfo> {
    let settings = admin.services.auto_repair.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(RepairSettingsInfo {
        is_on: settings.is_on != Some(false),
        check_seconds: settings.check_every.as_secs(),
        full: settings.shown().into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    })
}

fn set_setting(admin: &NodeAdmin, request: &SetRepairSetting) -> Result<()> {
    let mut settings = admin.services.auto_repair.lock().unwrap_or_else(PoisonError::into_inner);
    // a setting that cannot be honoured leaves all as they were
    let mut changed = settings.clone();
    changed.change(&request.name, &request.value).map_err(AdminError::Invalid)?;
    admin.cluster().set_repair_schedule(joining::repair_schedule(&changed));
    *settings = changed;
    Ok(())
}

fn schedule(admin: &NodeAdmin, _: &GetRepairSchedule) -> Result<RepairScheduleInfo> {
    let node = &admin.services.node;
    let (standing, now) = (node.repair_schedule(), node.env.clock.now_micros() / 1_000_000);
    let seconds = |seconds: i64| u64::try_from(seconds).unwrap_or(0);
    let table = |of: cluster::repair::TableProgress| ScheduledTable {
        keyspace: of.keyspace,
        table: of.table,
        age_seconds: (of.repaired_at > 0).then(|| seconds(now - of.repaired_at)),
        grace_seconds: seconds(of.grace),
        due: of.due as u64,
        blocked: of.blocked as u64,
    };
    let (usual_latency, latency) = standing.latencies;
    Ok(RepairScheduleInfo {
        off: standing.off.map(str::to_owned),
        phase: standing.status.phase.name().to_owned(),
        active: node.scheduled_repairs_of_ring().iter().map(types::literal::print_uuid).collect(),
        tables: standing.tables.into_iter().map(table).collect(),
        usual_latency,
        latency,
    })
}
