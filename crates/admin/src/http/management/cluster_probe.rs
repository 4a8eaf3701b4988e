//! Whether a keyspace with so many replicas in each data center could be read and written at a
//! consistency level, with the nodes that are up now: what an operator asks before it stops a node.
//!
//! Replicas are placed as by NetworkTopologyStrategy, for each range of the ring. Agrees with
//! `checkConsistencyLevel` of the management API.

use std::collections::BTreeMap;

use serde_json::{Map, json};

use super::request::{Answer, ManagementRequest};
use crate::verb::{AdminError, Result};
use crate::verbs::{EndpointInfo, GetNode, GetRing, RingInfo};

/// The replicas that a request waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RequiredReplicas {
    /// This number of replicas, of all data centers.
    Of(usize),
    /// More than half of all.
    Quorum,
    /// All.
    All,
    /// One of the local data center.
    LocalOne,
    /// More than half of the local data center.
    LocalQuorum,
    /// More than half of each data center.
    EachQuorum,
}

/// Most replicas in a data center that are asked about.
const REPLICAS_MAX: usize = 1000;

pub(super) fn check(call: &ManagementRequest<'_>) -> Result<Answer> {
    let wanted = match call.value("consistency_level").unwrap_or("LOCAL_QUORUM").to_ascii_uppercase().as_str() {
        "ONE" => RequiredReplicas::Of(1),
        "TWO" => RequiredReplicas::Of(2),
        "THREE" => RequiredReplicas::Of(3),
        "QUORUM" => RequiredReplicas::Quorum,
        "ALL" => RequiredReplicas::All,
        "LOCAL_ONE" => RequiredReplicas::LocalOne,
        "LOCAL_QUORUM" => RequiredReplicas::LocalQuorum,
        "EACH_QUORUM" => RequiredReplicas::EachQuorum,
        other => return Err(AdminError::Invalid(format!("consistency_level: there is no {other}"))),
    };
    let replicas =
        call.value("rf_per_dc").unwrap_or("3").parse().ok().filter(|count| (1..=REPLICAS_MAX).contains(count));
    let Some(replicas) = replicas else {
        return Err(AdminError::Invalid(format!("rf_per_dc must be a number from 1 to {REPLICAS_MAX}")));
    };
    let ring = call.ask(&GetRing::default())?;
    let local = call.ask(&GetNode {})?.data_center;
    let bad = unserved(&ring, &local, wanted, replicas);
    match bad.is_empty() {
        true => Ok(Answer::text(200, "")),
        false => Ok(Answer::json(500, json!(bad))),
    }
}

/// The ranges that could not be served, each with the replicas that are down or what is missing.
fn unserved(ring: &RingInfo, local: &str, wanted: RequiredReplicas, count: usize) -> Map<String, serde_json::Value> {
    let tokens = ring.tokens();
    let centers: Vec<_> = ring.by_data_center().into_iter().map(|(name, of)| Center::new(name, &of)).collect();
    let mut bad = Map::new();
    let starts = tokens.iter().skip(tokens.len().saturating_sub(1)).chain(&tokens);
    for (place, ((start, _), (end, _))) in starts.zip(&tokens).enumerate() {
        let clockwise = tokens.iter().skip(place).chain(tokens.iter().take(place)).map(|(_, owner)| *owner);
        let by_center: BTreeMap<&str, Vec<&EndpointInfo>> =
            centers.iter().map(|center| (center.name, center.replicas(clockwise.clone(), count))).collect();
        if is_served(&by_center, local, wanted, count) {
            continue;
        }
        let down = by_center.values().flatten().filter(|replica| !replica.is_up);
        let mut why: Vec<_> = down.map(|replica| replica.name(true)).collect();
        if why.is_empty() {
            let found: usize = by_center.values().map(Vec::len).sum();
            why.push(format!("more replicas are required, but only {found} nodes are in the ring"));
        }
        bad.insert(format!("[{start}, {end}]"), json!(why));
    }
    bad
}

/// A data center, as the placement needs it.
struct Center<'a> {
    name: &'a str,
    nodes: usize,
    racks: usize,
}

impl<'a> Center<'a> {
    fn new(name: &'a str, endpoints: &[&EndpointInfo]) -> Self {
        let mut racks: Vec<_> = endpoints.iter().map(|endpoint| endpoint.rack.as_str()).collect();
        racks.sort_unstable();
        racks.dedup();
        Self { name, nodes: endpoints.len(), racks: racks.len() }
    }

    /// The replicas of a range here: the next nodes of the ring, of other racks first.
    fn replicas<'b>(&self, clockwise: impl Iterator<Item = &'b EndpointInfo>, count: usize) -> Vec<&'b EndpointInfo> {
        let wanted = count.min(self.nodes);
        let mut repeats = count.saturating_sub(self.racks);
        let mut racks = Vec::new();
        let mut replicas: Vec<&EndpointInfo> = Vec::new();
        for owner in clockwise.filter(|owner| owner.data_center == self.name) {
            if replicas.len() >= wanted {
                break;
            }
            if replicas.iter().any(|replica| replica.host_id == owner.host_id) {
                continue;
            }
            if !racks.contains(&owner.rack.as_str()) {
                racks.push(owner.rack.as_str());
            } else if repeats > 0 {
                repeats -= 1;
            } else {
                continue;
            }
            replicas.push(owner);
        }
        replicas
    }
}

fn is_served(
    by_center: &BTreeMap<&str, Vec<&EndpointInfo>>,
    local: &str,
    wanted: RequiredReplicas,
    count: usize,
) -> bool {
    let up = |replicas: &[&EndpointInfo]| replicas.iter().filter(|replica| replica.is_up).count();
    let all: usize = by_center.values().map(|replicas| up(replicas)).sum();
    let here = by_center.get(local).map_or(0, |replicas| up(replicas));
    let factor = count * by_center.len();
    match wanted {
        RequiredReplicas::Of(least) => all >= least,
        RequiredReplicas::Quorum => all > factor / 2,
        RequiredReplicas::All => all >= factor,
        RequiredReplicas::LocalOne => here >= 1,
        RequiredReplicas::LocalQuorum => here > count / 2,
        RequiredReplicas::EachQuorum => by_center.values().all(|replicas| up(replicas) > count / 2),
    }
}
