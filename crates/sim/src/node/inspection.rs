//! A look at the nodes themselves when all is quiet: their schema versions, their views by gossip,
//! and a repair of everything.

use std::time::Duration;

use cluster::operations::gossip;
use cluster::repair::command::EventKind;
use cluster::repair::options::RepairOptions;
use env::sim::World;
use internode::payload::gossip::ApplicationState;

use super::running_nodes::RunningNodes;
use super::workload::KEYSPACE;
use crate::judges::converged::{Facts, View};

/// Longest time that the repair of a run's few rows may take.
const REPAIR_MAX: Duration = Duration::from_secs(600);

/// States of gossip whose values change all the time.
const RESTLESS: [ApplicationState; 3] = [ApplicationState::Load, ApplicationState::Severity, ApplicationState::X8];

/// The schema version of each node.
pub(super) fn schema_versions(running: &RunningNodes<'_>) -> Vec<[u8; 16]> {
    running.nodes().map(|node| node.services.node.schema().version).collect()
}

/// The view that each node has of all nodes, with its own name.
pub(super) fn views(running: &RunningNodes<'_>) -> Vec<(String, View)> {
    let view = |node: &std::sync::Arc<cluster::Node>| {
        let ring = node.ring();
        let facts = |known: gossip::KnownEndpoint| {
            let of_state = |(state, value): (ApplicationState, internode::payload::gossip::VersionedValue)| {
                (format!("{state:?}"), value.value)
            };
            let endpoint = ring.endpoints().iter().find(|endpoint| endpoint.address == known.address);
            let values = known.state.values.into_iter().filter(|(state, _)| !RESTLESS.contains(state));
            let mut facts: Facts = values.map(of_state).collect();
            facts.insert("generation".to_owned(), known.state.generation.to_string());
            facts.insert("is up".to_owned(), endpoint.is_some_and(|endpoint| endpoint.is_up).to_string());
            (known.address.to_string(), facts)
        };
        (node.identity.broadcast.to_string(), gossip::known_endpoints(node).into_iter().map(facts).collect())
    };
    running.nodes().map(|node| view(&node.services.node)).collect()
}

/// A full repair of the keyspace by the first node, which has a copy of everything. Err: the
/// repair's reason.
pub(super) fn repair(world: &World, running: &RunningNodes<'_>) -> Result<(), String> {
    let first = running.nodes().next().expect("all nodes run");
    let begun = first.services.node.start_repair(KEYSPACE, RepairOptions::default());
    let command = begun.map_err(|error| error.to_string())?.ok_or("there is nothing to repair")?;
    if !world.run_until(REPAIR_MAX, || command.has_ended()) {
        return Err(format!("no end within {REPAIR_MAX:?}"));
    }
    let (events, _) = command.events(0);
    match events.iter().any(|event| event.kind == EventKind::Success) {
        true => Ok(()),
        false => Err(events.into_iter().map(|event| event.text).collect::<Vec<_>>().join("; ")),
    }
}
