//! Ranges that move between nodes: the ways in and out of the ring.

use std::net::IpAddr;

use admin::verbs::{CleanupRequest, GetRemovalStatus, RangeMovement, RebuildRequest, ResumeBootstrap};
use admin::{Functions, Result};
use cluster::operations::tables::Selection;
use cluster::range_movements::rebuild::RebuildOptions;
use cluster::range_movements::{Mode, cleanup, decommission, rebuild, relocation, removal};

use super::{NodeAdmin, failed, invalid, of_operation, runtime, wait};
use crate::joining;

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(movement).add(resume_bootstrap).add(removal_status).add(clean_up);
}

fn movement(admin: &NodeAdmin, movement: &RangeMovement) -> Result<()> {
    let node = &admin.services.node;
    match movement {
        RangeMovement::Decommission { force } => {
            wait(decommission::decommission(node, *force))?;
            // as in Cassandra the process stays, and serves nobody
            runtime()?.block_on(admin.transport.stop_serving());
            Ok(())
        }
        RangeMovement::Remove(host_id) => wait(removal::remove(node, host_id)),
        RangeMovement::ForceRemoval => {
            removal::force(node);
            Ok(())
        }
        RangeMovement::Move(token) => wait(relocation::relocate(node, token)),
        RangeMovement::Rebuild(request) => wait(rebuild::rebuild(node, options(request)?)),
        RangeMovement::Join => enter(admin),
    }
}

fn resume_bootstrap(admin: &NodeAdmin, _: &ResumeBootstrap) -> Result<Option<String>> {
    enter(admin)?;
    Ok(admin.services.node.bootstrap_restart_reason())
}

/// The node becomes a member, and serves clients. One that is a member stays as it is, and one that
/// is on its way in already refuses.
fn enter(admin: &NodeAdmin) -> Result<()> {
    let node = &admin.services.node;
    let runtime = runtime()?;
    if matches!(node.mode(), Mode::Starting | Mode::Joining | Mode::JoiningFailed) {
        runtime.block_on(node.enter()).map_err(failed)?;
    }
    runtime.block_on(joining::serve_clients(&admin.services, &admin.transport)).map_err(failed)
}

fn options(request: &RebuildRequest) -> Result<RebuildOptions> {
    let sources =
        request.sources.as_deref().unwrap_or_default().split(',').map(str::trim).filter(|name| !name.is_empty());
    let parsed =
        sources.map(|name| name.parse::<IpAddr>().or_else(|_| invalid(format!("Unknown host specified {name}"))));
    Ok(RebuildOptions {
        source_data_center: request.source_data_center.clone(),
        keyspace: request.keyspace.clone(),
        ranges: rebuild::parse_ranges(request.tokens.as_deref().unwrap_or_default()).map_err(of_operation)?,
        sources: parsed.collect::<Result<_>>()?,
        excludes_local_data_center: request.excludes_local_data_center,
    })
}

fn removal_status(admin: &NodeAdmin, _: &GetRemovalStatus) -> Result<String> {
    Ok(removal::status(admin.cluster()))
}

fn clean_up(admin: &NodeAdmin, request: &CleanupRequest) -> Result<()> {
    let selection = Selection { keyspaces: &request.tables.keyspaces, tables: &request.tables.tables };
    wait(cleanup::cleanup(admin.cluster(), selection, request.jobs as usize))
}
