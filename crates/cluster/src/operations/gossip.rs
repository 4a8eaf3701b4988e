//! Gossip for operators: what is known of each endpoint, the failure detector, links, and the
//! switches. Agrees with `GossiperMBean`, `FailureDetectorMBean` and `StorageServiceMBean`.

use std::net::SocketAddr;
use std::time::Duration;

use gossip::Local;
use internode::payload::gossip::{ApplicationState, EndpointState};
use internode::{MessagingVersion, Verb};
use links::{InboundCounts, OutboundCounts};
use membership::VerbCounts;

use super::{Result, failed, invalid, state};
use crate::node::Node;
use crate::peers::load;

/// The time within which an endpoint that is to be removed must not give a sign of life
/// (`StorageService.RING_DELAY_MILLIS`).
const RING_DELAY: Duration = Duration::from_secs(30);

/// The facts that this node knows of an endpoint.
#[derive(Clone, PartialEq, Debug)]
pub struct KnownEndpoint {
    /// The address by which the others know it.
    pub address: SocketAddr,
    /// The values that the endpoint tells of itself.
    pub state: EndpointState,
    /// The suspicion of the failure detector that the endpoint is down (phi); None: the endpoint
    /// is this node.
    pub phi: Option<f64>,
}

/// The facts of all endpoints, this node first. A node alone knows itself: what it would tell.
pub fn known_endpoints(node: &Node) -> Vec<KnownEndpoint> {
    let Some(messenger) = node.messenger() else {
        return vec![KnownEndpoint { address: node.identity.broadcast, state: single_node_state(node), phi: None }];
    };
    let now = Duration::from_nanos(node.env.clock.monotonic_nanos());
    messenger.with_gossip(|gossip| {
        let this = KnownEndpoint { address: node.identity.broadcast, state: gossip.local.state().clone(), phi: None };
        let others = gossip.peers().iter().map(|(address, peer)| KnownEndpoint {
            address: *address,
            state: peer.state.clone(),
            phi: gossip.phi(*address, now),
        });
        std::iter::once(this).chain(others).collect()
    })
}

/// The seeds, this node left out. A node alone has none.
pub fn seeds(node: &Node) -> Vec<SocketAddr> {
    let seeds = node.messenger().map(|messenger| messenger.with_gossip(|gossip| gossip.options().seeds.clone()));
    seeds.into_iter().flatten().filter(|seed| *seed != node.identity.broadcast).collect()
}

/// Looks the names of the seeds up again, which may wait for the network, and gives the seeds.
/// None: none of them has an address.
pub fn reload_seeds(node: &Node) -> Option<Vec<SocketAddr>> {
    if let (Some(messenger), Some(names)) = (node.messenger(), node.membership_state.seed_names.get()) {
        let found = (names.0)();
        if found.is_empty() {
            return None;
        }
        messenger.with_gossip(|gossip| gossip.set_seeds(found));
    }
    Some(seeds(node))
}

/// The values that a node alone would tell of itself.
fn single_node_state(node: &Node) -> EndpointState {
    let version = node.engine.options.sstable_version;
    let versions = format!("{}-{}", version.format().name(), version.name());
    let local_states = node.local_states(MessagingVersion::V13, versions);
    let mut local = Local::new(i32::try_from(node.identity.generation).unwrap_or(i32::MAX));
    local_states.set(&mut local);
    local_states.set_normal(&mut local);
    local.set(ApplicationState::Load, load(&node.engine));
    local.set(ApplicationState::RpcReady, "true");
    local.state().clone()
}

/// Whether the node takes part in gossip; None: it is alone.
pub fn is_active(node: &Node) -> Option<bool> {
    node.messenger()?;
    Some(node.membership().is_some_and(|membership| membership.is_gossiping()))
}

/// Stops gossip, or begins it again, which is refused while the node has no place in its ring
/// yet: it would say that it is a member. It is not stopped while the node joins, leaves or moves:
/// the others would forget that, and write past the node. On a node alone nothing changes.
/// `is_ready`: drivers may connect.
pub fn set_active(node: &Node, active: bool, is_ready: bool) -> Result<()> {
    match (active, is_active(node)) {
        (true, Some(false)) => state::check_may_start(node, "gossip")?,
        (false, Some(true)) if !state::is_in_place(node) => {
            return invalid(
                "Unable to stop gossip because the node is not in the normal state. Try to stop the node instead.",
            );
        }
        _ => {}
    }
    let Some(membership) = node.membership() else { return Ok(()) };
    match (active, node.membership_state.local_states.get()) {
        (true, Some(local_states)) => {
            tracing::warn!("gossip is begun by the operator");
            // the tokens that the node has now: it may have moved
            let tokens = node.ring().local().tokens.iter().map(|token| token.0).collect();
            let local_states = membership::LocalApplicationStates { tokens, ..local_states.clone() };
            membership.start_gossip(&local_states, is_ready);
        }
        (true, None) => {}
        (false, _) => {
            tracing::warn!("gossip is stopped by the operator; other nodes take this one for down");
            membership.stop_gossip();
        }
    }
    Ok(())
}

/// Removes an endpoint that does not come back, without its data being handed on. Takes half a
/// minute, in which it must not give a sign of life. Refused while this node takes no part in
/// gossip: the node would hear no sign of life of an endpoint that is well, and tell the others to
/// remove it once gossip begins again. Cassandra removes a live endpoint then.
pub async fn assassinate(node: &Node, address: SocketAddr) -> Result<()> {
    let Some(messenger) = node.messenger() else {
        return invalid("this node is alone: there is nobody to remove");
    };
    if address == node.identity.broadcast {
        return invalid("a node does not remove itself");
    }
    node.refuse_without_gossip().map_err(failed)?;
    tracing::warn!(%address, "an endpoint is removed by gossip (assassinate)");
    let heard = |state: &EndpointState| (state.generation, state.heartbeat);
    let seen = messenger.with_gossip(|gossip| gossip.peers().get(&address).map(|peer| heard(&peer.state)));
    if seen.is_some() {
        node.env.sleep(RING_DELAY).await;
    }
    // gossip may have been stopped meanwhile: a live endpoint would seem silent
    node.refuse_without_gossip().map_err(failed)?;
    let now = gossip::Now {
        monotonic: Duration::from_nanos(node.env.clock.monotonic_nanos()),
        wall_millis: node.env.clock.now_micros() / 1000,
    };
    let removed = messenger.with_gossip(|gossip| gossip.assassinate(address, seen, now));
    removed.map_err(|what| {
        failed(format!("Endpoint still alive: {address} {what} changed while trying to assassinate it"))
    })
}

/// Tells the others whether drivers may connect to this node.
pub fn set_ready(node: &Node, ready: bool) {
    if let Some(membership) = node.membership() {
        membership.set_ready(ready);
    }
}

/// The counts of the links that this node opens.
pub fn outbound(node: &Node) -> Vec<OutboundCounts> {
    node.messenger().map(|messenger| messenger.outbound_counts()).unwrap_or_default()
}

/// The counts of the links that other nodes open.
pub fn inbound(node: &Node) -> Vec<InboundCounts> {
    node.messenger().map(|messenger| messenger.inbound_counts()).unwrap_or_default()
}

/// The messages of other nodes by their verb. On a node alone the counts of every verb are 0.
pub fn verb_counts(node: &Node) -> Vec<VerbCounts> {
    let none = || Verb::ALL.iter().map(|verb| VerbCounts { verb: *verb, received: 0, dropped: 0 }).collect();
    node.messenger().map_or_else(none, |messenger| messenger.verb_counts())
}
