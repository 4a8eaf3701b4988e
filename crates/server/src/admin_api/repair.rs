//! Repairs: an operator's call starts one, and asks for its events until it has ended.

use std::net::{IpAddr, SocketAddr};

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
    let resolve = |name: &str| node.env.network.resolve_one(name);
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
        hosts: request.hosts.iter().map(|host| address_of(host, resolve)).collect(),
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

/// A host that an operator names, by its address. A name without an address stays as it is, and
/// the repair is refused. `resolve`: looks up a name.
fn address_of(host: &str, resolve: impl Fn(&str) -> Option<IpAddr>) -> String {
    let host = host.trim();
    if host.parse::<IpAddr>().is_ok() || host.parse::<SocketAddr>().is_ok() {
        return host.to_owned();
    }
    let with_port = host.rsplit_once(':').and_then(|(name, port)| Some((name, port.parse::<u16>().ok()?)));
    match (resolve(with_port.map_or(host, |(name, _)| name)), with_port) {
        (Some(address), Some((_, port))) => SocketAddr::new(address, port).to_string(),
        (Some(address), None) => address.to_string(),
        (None, _) => host.to_owned(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_may_be_named() {
        let resolve = |name: &str| (name == "second").then_some(IpAddr::from([10, 0, 0, 2]));
        let cases = [
            ("10.0.0.1", "10.0.0.1"),
            ("10.0.0.1:7001", "10.0.0.1:7001"),
            ("::1", "::1"),
            (" second ", "10.0.0.2"),
            ("second:7001", "10.0.0.2:7001"),
            ("nobody", "nobody"),
            ("second:port", "second:port"),
        ];
        for (host, expected) in cases {
            assert_eq!(address_of(host, resolve), expected);
        }
    }
}
