//! `nodetool removenode`: a node that does not come back is taken out of the ring, and the others
//! fetch what it had from each other.
//!
//! The coordinator tells in the place of the removed node that it is `removing`, with its own host
//! id as REMOVAL_COORDINATOR. The nodes that gain ranges by that fetch them, and tell the
//! coordinator (REPLICATION_DONE_REQ). When all have done so the coordinator tells `removed`, and
//! the removed node is forgotten. A coordinator that is killed on the way leaves the node
//! `removing`; the removal is asked for again, from any node. While another node changes the ring
//! a removal is refused ([`super::changing_nodes`]).
//!
//! Before it tells that of the removed node a coordinator waits for `ring_delay`, and tells all the
//! while which node it is about to remove (`REMOVES`): once a node is `removing` that cannot be
//! taken back. Of two coordinators that begin at the same moment, and have not heard of each other
//! then, the one with the lowest address goes on.
//! `org.apache.cassandra.service.StorageService.{removeNode,restoreReplicaCount,
//! forceRemoveCompletion,getRemovalStatus}`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use env::{Instant, LocalFutureFactory};
use gossip::{Gossip, Now, Peer, Status};
use internode::Verb;
use internode::payload::gossip::ApplicationState;
use membership::{Messenger, Request};
use ring::primary::Ranges;
use ring::relocation::subtract;
use ring::{Endpoint, EndpointId, Ring, State};

use super::changing_nodes::RequestedChange;
use super::flows::{ATTEMPTS_MAX, MovementStreams, PAUSE, refuse_missing};
use crate::node::Node;
use crate::operations::{OperationError, Result};
use crate::range_movement_state::{Mode, Removal};
use crate::streaming::{Operation, SessionEnd};

/// Time between two looks at which nodes have told that they have the data.
const LOOK: Duration = Duration::from_millis(100);

/// The time from the news that a node is removed until this node begins to fetch what it gains.
const BEGIN: Duration = Duration::from_millis(1);

/// The word by which a coordinator tells that it is about to remove a node, before the host id of
/// that node, as REMOVAL_COORDINATOR of its own state. Cassandra passes it on, and reads that value
/// of nodes alone that are `removing`.
const REMOVES: &str = "REMOVES,";

/// Attempts between two lines of the log that tell of a member that is waited for.
const WAITING_LINES: usize = 60;

/// Ranges by keyspace that have come.
type FetchedRanges = BTreeMap<String, Ranges>;

/// The removal that this node coordinates, in Cassandra's words.
pub fn status(node: &Node) -> String {
    match &node.membership_state.movements.state().removal {
        None => "No token removals in process.".to_owned(),
        Some(removal) => {
            let waiting: Vec<_> = removal.waiting.iter().map(|address| format!("/{}", address.ip())).collect();
            format!(
                "Removing token ({}). Waiting for replication confirmation from [{}].",
                removal.token,
                waiting.join(",")
            )
        }
    }
}

/// Removes a node that is down, named by its host id. Returns when the others have its data.
pub async fn remove(node: &Arc<Node>, host_id: &str) -> Result<()> {
    let Some(messenger) = node.messenger() else { return failed("this node is alone: there is nobody to remove") };
    let id = types::literal::parse_uuid(host_id)
        .ok_or_else(|| OperationError::Invalid(format!("Invalid UUID string: {host_id}")))?;
    let ring = node.ring();
    let removed = removable(&ring, id)?;
    let endpoint = ring.endpoint(removed).clone();
    node.refuse_without_gossip().map_err(OperationError::Failed)?;
    refuse_concurrent_changes(node, &endpoint, |_| true)?;
    let (mut waiting, begun) = (gaining_nodes(node, &ring, removed)?.up, node.env.now());
    {
        let mut state = node.membership_state.movements.state();
        if state.removal.is_some() {
            return failed(
                "This node is already processing a removal. Wait for it to complete, or use 'removenode force' if this \
                 has failed.",
            );
        }
        let token = endpoint.tokens.first().map_or(0, |token| token.0);
        state.removal = Some(Removal { address: endpoint.address, token, begun, waiting: waiting.clone() });
    }
    let (coordinator, host_id) =
        (types::literal::print_uuid(&node.identity.host_id), types::literal::print_uuid(&endpoint.host_id));
    let _intent = Intent::tell(node, messenger, &host_id, begun);
    let generation = |gossip: &mut Gossip| gossip.peers().get(&endpoint.address).map(|peer| peer.state.generation);
    let seen = messenger.with_gossip(generation);
    // as in Cassandra: whoever thinks that the node is up still has time to say so
    let delay = node.membership_state.movements.settings().ring_delay;
    node.env.sleep(delay.max(time_of_confirmations(node))).await;
    if !is_under_way(node, begun) {
        return failed("The removal was ended by 'removenode force' before it had begun");
    }
    // gossip may have been stopped meanwhile, or another change have begun
    let own = node.identity.broadcast;
    let heard = node.refuse_without_gossip().map_err(OperationError::Failed);
    if let Err(error) = heard.and_then(|()| refuse_concurrent_changes(node, &endpoint, |other| other < own)) {
        forget(node, endpoint.address);
        return Err(error);
    }
    // a node that has come up since then gains ranges too
    let ring = node.ring();
    if let Ok(gaining) = removable(&ring, id).and_then(|removed| gaining_nodes(node, &ring, removed)) {
        waiting.extend(gaining.up);
        for endpoint in gaining.down.difference(&waiting) {
            tracing::warn!(%endpoint, "a node is down and will not receive the data of the one that is removed");
        }
    }
    // a node that has confirmed before it was told has confirmed an earlier removal:
    // REPLICATION_DONE_REQ does not say which one it is about, and those of the last removal have
    // expired by now
    if let Some(removal) = &mut node.membership_state.movements.state().removal {
        removal.waiting = waiting;
    }
    let now = now(node);
    let told = messenger.with_gossip(|gossip| {
        gossip.advertise_removing(endpoint.address, &host_id, &coordinator, seen.unwrap_or_default(), now)
    });
    if let Err(why) = told {
        node.membership_state.movements.state().removal = None;
        return failed(why);
    }
    // others may end the removal, too, and the node may have been started after all
    while removing(node).contains(&endpoint.address) && waits(node, endpoint.address) {
        node.env.sleep(LOOK).await;
    }
    end(node, &endpoint)
}

/// The member with a host id, which must be down.
fn removable(ring: &Ring, id: [u8; 16]) -> Result<EndpointId> {
    let Some(removed) = ring.endpoints().iter().position(|endpoint| endpoint.host_id == id) else {
        return failed("Host ID not found.");
    };
    let removed = EndpointId(u32::try_from(removed).unwrap_or(u32::MAX));
    let endpoint = ring.endpoint(removed);
    if removed == ring.local_id() {
        return failed("Cannot remove self");
    }
    if !endpoint.owns_tokens() {
        return failed("Node to be removed is not a member of the token ring");
    }
    if endpoint.is_up {
        return failed(format!(
            "Node /{} is alive and owns this ID. Use decommission command to remove it from the ring",
            endpoint.address
        ));
    }
    Ok(removed)
}

/// Refuses a removal beside another change of the ring. A node that joins, leaves or moves would
/// own ranges afterwards that it has not fetched: which ranges flow is computed without the change
/// of the other one. Beside a node that joins and is down nothing is refused: it fetches everything
/// anew when it comes again. A node that died while it left or moved, or whose removal was
/// interrupted, is removed whatever others do: otherwise such a node would stay in the ring, and
/// two of them would wait for each other. `is_ahead`: whether a node that is about to remove one
/// goes first.
fn refuse_concurrent_changes(node: &Node, removed: &Endpoint, is_ahead: impl Fn(SocketAddr) -> bool) -> Result<()> {
    if removed.state != State::Normal || !node.membership_state.movements.settings().is_consistent {
        return Ok(());
    }
    let mode = node.mode();
    if !matches!(mode, Mode::Normal | Mode::Starting) {
        return failed(format!(
            "This node changes the ring itself ({mode}): ask another one when it has come to its end"
        ));
    }
    let change = RequestedChange {
        what: format!("remove {}", removed.address),
        otherwise: "A node that cannot come to its end without the one that is to be removed is stopped first, if it \
                    joins, and started again, if it leaves or moves",
    };
    let counts = |other: &Endpoint| other.address != removed.address && (other.is_up || !other.state.is_joining());
    node.refuse_concurrent_change(&change, counts).map_err(OperationError::Failed)?;
    match others_about_to_remove(node).into_iter().find(|(other, _)| is_ahead(*other)) {
        None => Ok(()),
        Some((other, host_id)) => failed(format!(
            "Cannot {} while another node changes the ring: {other} is about to remove the node with host id \
             {host_id}: wait until that one is gone, or end its removal (`nodetool removenode force` there)",
            change.what
        )),
    }
}

/// Nodes that are up and about to remove another one, with the host id of that one.
fn others_about_to_remove(node: &Node) -> Vec<(SocketAddr, String)> {
    let Some(messenger) = node.messenger() else { return Vec::new() };
    let told = |(address, peer): (&SocketAddr, &Peer)| {
        let told = peer.state.value(ApplicationState::RemovalCoordinator).filter(|_| peer.is_alive)?;
        Some((*address, told.strip_prefix(REMOVES)?.to_owned()))
    };
    messenger.with_gossip(|gossip| gossip.peers().iter().filter_map(told).collect())
}

/// While this value exists the others are told that this node is about to remove another one, or
/// does so.
struct Intent<'a> {
    node: &'a Node,
    messenger: &'a Messenger,
    /// When the removal began.
    begun: Instant,
}

impl<'a> Intent<'a> {
    fn tell(node: &'a Node, messenger: &'a Messenger, host_id: &str, begun: Instant) -> Self {
        let told = format!("{REMOVES}{host_id}");
        messenger.with_gossip(|gossip| gossip.local.set(ApplicationState::RemovalCoordinator, told));
        Self { node, messenger, begun }
    }
}

impl Drop for Intent<'_> {
    /// Takes back what the others were told. A removal that was ended by `removenode force` while
    /// it waited comes to its end when the next one may have begun, whose intent stays.
    fn drop(&mut self) {
        self.messenger.with_gossip(|gossip| {
            let state = self.node.membership_state.movements.state();
            if state.removal.as_ref().is_none_or(|removal| removal.begun == self.begun) {
                gossip.local.set(ApplicationState::RemovalCoordinator, "");
            }
        });
    }
}

/// The end of a removal that this node coordinates: the others are told, unless the removed node
/// has told of itself meanwhile.
fn end(node: &Node, endpoint: &Endpoint) -> Result<()> {
    let address = endpoint.address;
    let status = node
        .messenger()
        .and_then(|messenger| messenger.with_gossip(|gossip| gossip.peers().get(&address).map(Peer::status)));
    match status {
        Some(Some(Status::Removing)) => finish(node, address),
        // it has been removed by another way, by `removenode force` or `assassinate`
        None | Some(Some(Status::Removed(_) | Status::Left(_))) => forget(node, address),
        Some(_) => {
            forget(node, address);
            return failed(format!("Node /{address} has come back while it was removed: it stays in the ring"));
        }
    }
    Ok(())
}

/// Whether this node coordinates the removal that began at a time. After `removenode force` it may
/// coordinate another one of the same node.
fn is_under_way(node: &Node, begun: Instant) -> bool {
    node.membership_state.movements.state().removal.as_ref().is_some_and(|removal| removal.begun == begun)
}

/// The time from now on for which confirmations of the last removal that this node coordinated may
/// still come. 0: there are none. A removal that was forced has ended without them.
fn time_of_confirmations(node: &Node) -> Duration {
    let ended = node.membership_state.movements.state().removal_ended;
    ended.map_or(Duration::ZERO, |ended| node.timeouts().misc.saturating_sub(node.env.elapsed(ended)))
}

/// Whether a removal that this node coordinates waits for nodes that fetch data.
fn waits(node: &Node, address: SocketAddr) -> bool {
    let state = node.membership_state.movements.state();
    state.removal.as_ref().is_some_and(|removal| removal.address == address && !removal.waiting.is_empty())
}

/// Forgets a removal that this node coordinated.
fn forget(node: &Node, address: SocketAddr) {
    let mut state = node.membership_state.movements.state();
    if state.removal.as_ref().is_some_and(|removal| removal.address == address) {
        state.end_removal(node.env.now());
    }
}

/// Ends a removal without waiting for the nodes that have not told that they have the data.
pub fn force(node: &Node) {
    let removal = node.membership_state.movements.state().removal.clone();
    let leaving = removing(node);
    if removal.is_none() && leaving.is_empty() {
        return tracing::warn!("No nodes to force removal on, call 'removenode' first");
    }
    if let Some(removal) = &removal {
        tracing::warn!(waiting = ?removal.waiting, "the removal is not confirmed by all");
    }
    leaving.into_iter().for_each(|address| finish(node, address));
    // its node may not be removed any more: it has come back, or was removed by another way
    node.membership_state.movements.state().end_removal(node.env.now());
}

/// The nodes that are being removed.
pub(super) fn removing(node: &Node) -> Vec<SocketAddr> {
    let Some(messenger) = node.messenger() else { return Vec::new() };
    messenger.with_gossip(|gossip| {
        let is_removing = |status: Option<Status>| status == Some(Status::Removing);
        gossip.peers().iter().filter(|(_, peer)| is_removing(peer.status())).map(|(address, _)| *address).collect()
    })
}

/// Tells all that a node is removed, if it has not come back since this node looked.
fn finish(node: &Node, address: SocketAddr) {
    let now = now(node);
    if let Some(messenger) = node.messenger() {
        messenger.with_gossip(|gossip| {
            let peer = gossip.peers().get(&address).filter(|peer| peer.status() == Some(Status::Removing));
            let Some(state) = peer.map(|peer| &peer.state) else { return };
            let host_id = state.value(ApplicationState::HostId).map(str::to_owned);
            gossip.advertise_removed(address, &host_id.unwrap_or_default(), now);
            node.follow(gossip);
        });
    }
    forget(node, address);
}

/// The time in the form that gossip takes.
pub(super) fn now(node: &Node) -> Now {
    Now {
        monotonic: Duration::from_nanos(node.env.clock.monotonic_nanos()),
        wall_millis: node.env.clock.now_micros() / 1000,
    }
}

fn failed<T>(why: impl Into<String>) -> Result<T> {
    Err(OperationError::Failed(why.into()))
}

/// The nodes that gain ranges when one is removed.
#[derive(Default)]
struct GainingNodes {
    up: BTreeSet<SocketAddr>,
    down: BTreeSet<SocketAddr>,
}

fn gaining_nodes(node: &Node, ring: &Ring, removed: EndpointId) -> Result<GainingNodes> {
    let mut gaining = GainingNodes::default();
    for (_, placement) in node.shared_keyspaces(ring).map_err(OperationError::Failed)? {
        // the only copy is lost: nobody can fetch it
        if placement.replication.factor() == 1 {
            continue;
        }
        for id in ring.removal_gains(&placement, removed) {
            let endpoint = ring.endpoint(id);
            let nodes = if endpoint.is_up { &mut gaining.up } else { &mut gaining.down };
            nodes.insert(endpoint.address);
        }
    }
    Ok(gaining)
}

/// Notes that a node has told that it has the data of the removed one (REPLICATION_DONE_REQ).
pub(crate) fn confirm_replication(node: &Node, by: SocketAddr) {
    match &mut node.membership_state.movements.state().removal {
        Some(removal) => drop(removal.waiting.remove(&by)),
        None => tracing::info!(%by, "a node has the data of a removed one; this node waits for nobody"),
    }
}

/// Gossip tells that an endpoint is being removed: this node fetches what it gains by that, and
/// tells the coordinator of the removal. A node without links to others does so later
/// ([`follow_all_removing`]).
pub(crate) fn follow_removing(node: &Arc<Node>, gossip: &Gossip, endpoint: SocketAddr) {
    if node.membership().is_none() {
        return;
    }
    let Some(peer) = gossip.peers().get(&endpoint).filter(|peer| peer.status() == Some(Status::Removing)) else {
        return;
    };
    let coordinator = peer.state.value(ApplicationState::RemovalCoordinator);
    let Some(coordinator) = coordinator.and_then(|text| text.strip_prefix("REMOVER,")).map(str::to_owned) else {
        return;
    };
    if !begins_to_follow(node, gossip, (endpoint, peer.state.generation)) {
        return;
    }
    tracing::info!(%endpoint, coordinator, "a node is being removed from the ring");
    let weak = Arc::downgrade(node);
    let make: LocalFutureFactory = Box::new(move || {
        Box::pin(async move {
            let Some(node) = weak.upgrade() else { return };
            // the caller has the lock of gossip, and a simulated thread runs before it is given
            // back
            node.env.sleep(BEGIN).await;
            restore_replica_count(&node, endpoint).await;
            send_replication_done(&node, endpoint, &coordinator).await;
        })
    });
    if let Err(error) = node.env.tasks.try_spawn_local_worker("restore", make) {
        tracing::error!(%endpoint, %error, "no thread restores the copies of a removed node; repair this node");
    }
}

/// Notes that this node follows a removal, which is told in a generation; false: it does so
/// already. Removals that have ended are forgotten.
fn begins_to_follow(node: &Node, gossip: &Gossip, removal: (SocketAddr, i32)) -> bool {
    let is_under_way = |(address, generation): &(SocketAddr, i32)| {
        let peer = gossip.peers().get(address).filter(|peer| peer.status() == Some(Status::Removing));
        peer.is_some_and(|peer| peer.state.generation == *generation)
    };
    let mut followed = node.membership_state.followed_removals.lock().unwrap_or_else(PoisonError::into_inner);
    followed.retain(is_under_way);
    followed.insert(removal)
}

/// Follows the removals that this node heard of while it got in touch with the others.
pub(crate) fn follow_all_removing(node: &Arc<Node>, gossip: &Gossip) {
    gossip.peers().keys().for_each(|endpoint| follow_removing(node, gossip, *endpoint));
}

/// Whether a node is being removed still.
fn is_being_removed(node: &Node, endpoint: SocketAddr) -> bool {
    node.membership().is_some() && removing(node).contains(&endpoint)
}

/// Fetches the ranges that this node gains by the removal of another. What does not come is asked
/// for again for `ring_delay` at least: a node that has just been started sees others up later. As
/// long as another member is down that is not being removed, and may be the one that has the data,
/// it goes on until the end of the removal (`nodetool removenode force`). Cassandra gives up at the
/// first failure and says that it is done.
async fn restore_replica_count(node: &Arc<Node>, removed: SocketAddr) {
    let begun = node.env.now();
    let patience = node.membership_state.movements.settings().ring_delay;
    let (mut attempt, mut fetched) = (1, FetchedRanges::new());
    while let Err(why) = fetch_gained(node, removed, &mut fetched).await {
        let down = member_that_is_down(node, removed);
        let is_enough = attempt >= ATTEMPTS_MAX && node.env.elapsed(begun) >= patience && down.is_none();
        if is_enough || !is_being_removed(node, removed) {
            tracing::warn!(endpoint = %removed, why, "the copies of a removed node are not restored; repair this node");
            return;
        }
        match down {
            // the same line for hours would hide others
            Some(down) if attempt.is_multiple_of(WAITING_LINES) => tracing::warn!(
                endpoint = %removed,
                attempt,
                why,
                %down,
                "not all copies of a removed node have come, and a member is down that may have them: start it, or end \
                 the removal with `nodetool removenode force` and repair this node"
            ),
            Some(_) if attempt > ATTEMPTS_MAX => {}
            _ => tracing::warn!(endpoint = %removed, attempt, why, "not all copies of a removed node have come"),
        }
        attempt += 1;
        node.env.sleep(PAUSE).await;
    }
}

/// A member that is down, apart from the one that is removed. Others that are being removed do not
/// count: they are not expected back, and two removals would wait for each other for ever where
/// both nodes had the only copies of a range.
fn member_that_is_down(node: &Node, removed: SocketAddr) -> Option<SocketAddr> {
    let (ring, gone) = (node.ring(), removing(node));
    let is_expected = |endpoint: &Endpoint| {
        endpoint.owns_tokens() && endpoint.address != removed && !gone.contains(&endpoint.address)
    };
    let down = ring.endpoints().iter().find(|endpoint| is_expected(endpoint) && !endpoint.is_up);
    down.map(|endpoint| endpoint.address)
}

/// One attempt: fetches everything that has not come yet. Err: what has not come.
async fn fetch_gained(
    node: &Arc<Node>,
    removed: SocketAddr,
    fetched: &mut FetchedRanges,
) -> std::result::Result<(), String> {
    let ring = node.ring();
    let Some(index) = ring.endpoints().iter().position(|endpoint| endpoint.address == removed) else { return Ok(()) };
    let removed = EndpointId(u32::try_from(index).unwrap_or(u32::MAX));
    let (mut exchange, mut without_source) = (MovementStreams::default(), Ok(()));
    for (keyspace, placement) in node.shared_keyspaces(&ring)? {
        let fetches = ring.removal_fetches(&placement, removed, ring.local_id()).map_err(|error| error.to_string())?;
        let has = fetched.get(&keyspace);
        let rest = |ranges: &Ranges| has.map_or_else(|| ranges.clone(), |has| subtract(ranges, has));
        without_source = without_source.and(refuse_missing(&keyspace, &placement, &rest(&fetches.missing)));
        let from = fetches.from.iter().map(|(id, ranges)| (*id, rest(ranges)));
        exchange.fetch(&ring, &keyspace, &from.filter(|(_, ranges)| !ranges.is_empty()).collect());
    }
    let requests = exchange.requests.clone();
    let on_end = |peer: SocketAddr, end: &SessionEnd| {
        for (keyspace, ranges) in requests.get(&peer).into_iter().flatten().filter(|_| end.is_ok()) {
            fetched.entry(keyspace.clone()).or_default().extend(ranges);
        }
    };
    exchange.run(node, Operation::RestoreReplicaCount, on_end).await?;
    without_source
}

/// Tells the coordinator of a removal, again and again, until it answers or the removal has ended:
/// a node that has just been started sees the coordinator up later, and waits for it.
async fn send_replication_done(node: &Node, removed: SocketAddr, coordinator: &str) {
    let Some(messenger) = node.messenger() else { return };
    let id = types::literal::parse_uuid(coordinator);
    while is_being_removed(node, removed) {
        let ring = node.ring();
        let known = ring.endpoints().iter().find(|endpoint| Some(endpoint.host_id) == id);
        if let Some(endpoint) = known.filter(|endpoint| endpoint.address == node.identity.broadcast) {
            return confirm_replication(node, endpoint.address);
        }
        let Some(endpoint) = known.filter(|endpoint| endpoint.is_up) else {
            tracing::debug!(coordinator, "who removes a node is down itself");
            node.env.sleep(PAUSE).await;
            continue;
        };
        let request = Request::new(Verb::ReplicationDoneReq, bytes::Bytes::new(), node.timeouts().misc);
        if messenger.request(endpoint.address, request).await.is_ok() {
            return;
        }
        node.env.sleep(LOOK).await;
    }
}
