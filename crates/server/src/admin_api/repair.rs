//! Repairs: an operator's call starts one, and asks for its events until it has ended.

use admin::verbs::{
    GetRepair, RepairEvent, RepairEventKind, RepairEvents, RepairParallelism, RepairPreview, RepairRequest, StopRepairs,
};
use admin::{Functions, Result};
use cluster::repair::Preview;
use cluster::repair::command::EventKind;
use cluster::repair::options::{Parallelism, RepairOptions};
use cluster::repair::{Token, Tokens};

use super::{NodeAdmin, invalid, of_operation, runtime};

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(repair).add(stop).add(events);
}

fn stop(admin: &NodeAdmin, _: &StopRepairs) -> Result<()> {
    let commands = admin.services.node.repair_commands();
    commands
        .iter()
        .filter(|command| !command.has_ended())
        .for_each(|command| command.cancel("an operator stops all repairs"));
    Ok(())
}

fn repair(admin: &NodeAdmin, request: &RepairRequest) -> Result<Option<i32>> {
    let node = &admin.services.node;
    let local = node.ring().local_data_center().to_owned();
    let options = RepairOptions {
        parallelism: match request.parallelism {
            RepairParallelism::Parallel => Parallelism::Parallel,
            RepairParallelism::Sequential => Parallelism::Sequential,
            RepairParallelism::DataCenterAware => Parallelism::DataCenterAware,
        },
        is_primary_range: request.primary_range,
        is_incremental: request.incremental,
        job_threads: usize::try_from(request.job_threads).unwrap_or(usize::MAX),
        tables: request.tables.clone(),
        data_centers: if request.local_data_center { vec![local] } else { request.data_centers.clone() },
        hosts: request.hosts.clone(),
        preview: match request.preview {
            RepairPreview::None => Preview::None,
            RepairPreview::All => Preview::All,
            RepairPreview::Unrepaired => Preview::Unrepaired,
            RepairPreview::Repaired => Preview::Repaired,
        },
        ranges: request.ranges.iter().map(|(start, end)| Tokens { start: Token(*start), end: Token(*end) }).collect(),
        is_pull: request.pull,
        is_forced: request.force,
        optimises_streams: request.optimise_streams,
        ignores_unreplicated: request.ignore_unreplicated,
        repairs_paxos: request.repair_paxos,
        is_paxos_only: request.paxos_only,
        is_traced: request.trace,
    };
    let command = node.start_repair(&request.keyspace, options).map_err(of_operation)?;
    Ok(command.map(|command| command.number))
}

fn events(admin: &NodeAdmin, get: &GetRepair) -> Result<RepairEvents> {
    let from = usize::try_from(get.from).unwrap_or(usize::MAX);
    let told = runtime()?.block_on(admin.services.node.repair_events(get.number, from));
    let Some((events, has_ended)) = told else {
        return invalid(format!("there is no repair command #{}", get.number));
    };
    let event = |event: cluster::repair::command::Event| {
        let kind = match event.kind {
            EventKind::Start => RepairEventKind::Start,
            EventKind::Progress(percent) => RepairEventKind::Progress(percent),
            EventKind::Notification => RepairEventKind::Notification,
            EventKind::Error => RepairEventKind::Error,
            EventKind::Success => RepairEventKind::Success,
            EventKind::Complete => RepairEventKind::Complete,
        };
        RepairEvent { at: event.at_millis, kind, text: event.text }
    };
    Ok(RepairEvents { events: events.into_iter().map(event).collect(), has_ended })
}
