//! Ranges that flow, as a plan of streams; and the end of the plan.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use ring::primary::Ranges;
use ring::relocation::Flows;
use ring::{Replication, Ring};

use crate::node::Node;
use crate::streaming::{
    Operation, PeerStreams, Preview, RangeRequest, RangeTransfer, SessionEnd, StreamPlan, TokenRange, run_with_hook,
};

/// How often a plan is made anew, for the ranges that have not come yet, when its streams have
/// failed.
pub(crate) const ATTEMPTS_MAX: usize = 3;

/// Time between two attempts.
pub(crate) const PAUSE: std::time::Duration = std::time::Duration::from_secs(2);

/// The ranges of keyspaces that flow between this node and others.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct MovementStreams {
    /// By peer: keyspaces with the ranges that the peer gives.
    pub requests: BTreeMap<SocketAddr, BTreeMap<String, Ranges>>,
    /// By peer: keyspaces with the ranges that the peer gets.
    pub transfers: BTreeMap<SocketAddr, BTreeMap<String, Ranges>>,
}

impl MovementStreams {
    /// Adds ranges of a keyspace that this node fetches.
    pub fn fetch(&mut self, ring: &Ring, keyspace: &str, flows: &Flows) {
        add(&mut self.requests, ring, keyspace, flows);
    }

    /// Adds ranges of a keyspace that this node hands on.
    pub fn hand_on(&mut self, ring: &Ring, keyspace: &str, flows: &Flows) {
        add(&mut self.transfers, ring, keyspace, flows);
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty() && self.transfers.is_empty()
    }

    /// The peers, each once, ascending.
    fn peers(&self) -> Vec<SocketAddr> {
        let mut peers: Vec<_> = self.requests.keys().chain(self.transfers.keys()).copied().collect();
        peers.sort_unstable();
        peers.dedup();
        peers
    }

    fn plan(&self, operation: Operation) -> StreamPlan {
        let of = |flows: &BTreeMap<SocketAddr, BTreeMap<String, Ranges>>, peer: SocketAddr| {
            let keyspaces = flows.get(&peer).into_iter().flatten();
            keyspaces.map(|(keyspace, ranges)| (keyspace.clone(), token_ranges(ranges))).collect::<Vec<_>>()
        };
        let peers = self.peers().into_iter().map(|peer| PeerStreams {
            peer,
            requests: of(&self.requests, peer)
                .into_iter()
                .map(|(keyspace, ranges)| RangeRequest { keyspace, tables: Vec::new(), ranges })
                .collect(),
            transfers: of(&self.transfers, peer)
                .into_iter()
                .map(|(keyspace, ranges)| RangeTransfer { keyspace, tables: Vec::new(), ranges })
                .collect(),
        });
        StreamPlan { operation, pending_repair: None, preview: Preview::None, since: None, peers: peers.collect() }
    }

    /// Streams everything; `on_end` is called for each peer when its streams end. Err: the errors
    /// of the streams that failed.
    pub async fn run(
        &self,
        node: &Arc<Node>,
        operation: Operation,
        on_end: impl FnMut(SocketAddr, &SessionEnd),
    ) -> Result<(), String> {
        if self.is_empty() {
            return Ok(());
        }
        let outcome = run_with_hook(node, self.plan(operation), on_end).await;
        let failures: Vec<String> = outcome.failures().map(ToString::to_string).collect();
        match failures.is_empty() {
            true => Ok(()),
            false => Err(failures.join("; ")),
        }
    }
}

fn add(to: &mut BTreeMap<SocketAddr, BTreeMap<String, Ranges>>, ring: &Ring, keyspace: &str, flows: &Flows) {
    for (id, ranges) in flows {
        assert!(*id != ring.local_id(), "ranges flow between this node and others");
        let of_peer = to.entry(ring.endpoint(*id).address).or_default();
        of_peer.entry(keyspace.to_owned()).or_default().extend(ranges);
    }
}

fn token_ranges(ranges: &Ranges) -> Vec<TokenRange> {
    ranges.iter().map(|(left, right)| TokenRange { left: *left, right: *right }).collect()
}

/// Refuses to go on without ranges that no live replica can give: their new owner would answer
/// requests for data that it does not have. Data with one copy is lost with its replica; an
/// operator who goes on without it is told so.
pub(crate) fn refuse_missing(keyspace: &str, placement: &ring::Placement, missing: &Ranges) -> Result<(), String> {
    let Some((left, right)) = missing.first() else { return Ok(()) };
    let what = format!(
        "Unable to find sufficient sources for streaming range ({},{}] in keyspace {keyspace}",
        left.0, right.0
    );
    match placement.replication.factor() {
        1 => {
            tracing::warn!("{what} with RF=1. Keyspace might be missing data.");
            Ok(())
        }
        _ => Err(what),
    }
}

impl Node {
    /// The keyspaces that the nodes of a ring share, with their placements, by name. Err: a
    /// keyspace that cannot be placed, so that nobody knows where its data belongs.
    pub(crate) fn shared_keyspaces(&self, ring: &Ring) -> Result<Vec<(String, Arc<ring::Placement>)>, String> {
        let schema = self.schema();
        let mut shared = Vec::new();
        for keyspace in schema.keyspaces.values().filter(|keyspace| !keyspace.is_virtual) {
            match ring.placed(&keyspace.name) {
                Some(Ok(placement)) if placement.replication != Replication::Local => {
                    shared.push((keyspace.name.clone(), Arc::clone(placement)));
                }
                Some(Ok(_)) | None => {}
                Some(Err(error)) => return Err(format!("the keyspace {} cannot be placed: {error}", keyspace.name)),
            }
        }
        Ok(shared)
    }
}
