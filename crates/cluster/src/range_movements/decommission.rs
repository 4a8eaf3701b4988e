//! `nodetool decommission`: this node hands its ranges on and leaves the ring for good.
//!
//! 1. It says LEAVING: the nodes that gain its ranges take their writes from then on; and SEVERITY
//!    by `severity_during_decommission`, so that it is asked last.
//! 2. Everything that Paxos has begun in its ranges is completed (`paxos_variant: v2`), and logged
//!    batches that it keeps are carried out. Each range is streamed to the node that gains it.
//!    Hints that it keeps for others go to another node.
//! 3. DECOMMISSIONED is on its disk, so that the directory does not come back; LEFT for the others,
//!    whose reads it refuses from then on ([`crate::out_of_range`]).
//!
//! A node that is killed on the way is a member again when it starts: it still has all its data.
//! While another node changes the ring a decommission is refused ([`super::changing_nodes`]), and
//! so it is where files of hints cannot be read, unless it is forced. Where a table is left out of
//! the schema because it cannot be read, a decommission beside a node of Cassandra is refused
//! (`crate::streaming::refuse_left_out`), forced or not.
//! `org.apache.cassandra.service.StorageService.{decommission,unbootstrap,leaveRing}`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use internode::payload::gossip::ApplicationState;
use membership::LocalApplicationStates;
use ring::primary::Ranges;
use ring::relocation::{Flows, subtract};
use ring::{EndpointId, Replication, Ring, State};

use super::changing_nodes::RequestedChange;
use super::flows::{ATTEMPTS_MAX, MovementStreams, PAUSE};
use crate::node::Node;
use crate::operations::{OperationError, Result};
use crate::range_movement_state::{BootstrapState, Mode};
use crate::streaming::{Operation, SessionEnd, refuse_left_out};
use crate::system_rows;

/// Longest time that a node that leaves waits for the logged batches that it keeps for others.
const BATCHES_WAIT_MAX: Duration = Duration::from_secs(60);

/// Time between two looks at these batches.
const BATCHES_LOOK: Duration = Duration::from_millis(500);

/// Ranges that have been handed on, by peer and keyspace.
type TransferredRanges = BTreeMap<(SocketAddr, String), Ranges>;

/// Hands everything on and leaves. `is_forced`: even where the others are fewer then than a
/// keyspace has copies, beside another node that changes the ring, and with files of hints that
/// cannot be read. The caller closes the doors for clients afterwards.
pub async fn decommission(node: &Arc<Node>, is_forced: bool) -> Result<()> {
    let movements = &node.membership_state.movements;
    let mode = movements.state().mode;
    if mode == Mode::Decommissioned {
        return Ok(());
    }
    let Some(local_states) = node.membership_state.local_states.get().filter(|_| node.membership().is_some()) else {
        return refused("no other normal nodes in the ring; decommission would be pointless");
    };
    node.refuse_without_gossip().map_err(OperationError::Failed)?;
    match mode == Mode::DecommissionFailed {
        true => refuse_concurrent_changes(node, is_forced)?,
        false => check(node, mode, is_forced)?,
    }
    let _running = movements.begin("decommissioning").map_err(OperationError::Failed)?;
    // the look waits for the disk; behind `begin` no other change of this node starts meanwhile
    let peers: Vec<SocketAddr> = node.ring().peers().map(|peer| peer.address).collect();
    refuse_left_out(node, &peers, |_| true).await.map_err(OperationError::Failed)?;
    if !is_forced {
        refuse_beside_lost_hints(node).await.map_err(OperationError::Failed)?;
    }
    movements.set_mode(Mode::Leaving);
    let tokens = node.ring().local().tokens.clone();
    let first = tokens.first().map_or(0, |token| token.0);
    let severity = movements.settings().severity_of_leaving;
    node.announce(|local| {
        if severity > 0.0 {
            local.set(ApplicationState::Severity, format!("{severity:?}"));
        }
        local_states.set_status(local, &format!("LEAVING,{first}"));
    });
    node.wait_until_known().await;
    if !is_forced && let Err(why) = node.check_precedence(&asked()).await {
        stay(node, local_states, severity);
        return refused(why);
    }
    let mut unbootstrapped = unbootstrap(node).await;
    if !is_forced && unbootstrapped.is_ok() {
        // a file may have turned out to be damaged when it was to be sent
        unbootstrapped = refuse_beside_lost_hints(node).await;
    }
    // gossip may have been stopped meanwhile, and then nobody has written to those who gain ranges
    let outcome = match unbootstrapped.and_then(|()| node.refuse_without_gossip()) {
        Ok(()) => node.save_bootstrap_state(BootstrapState::Decommissioned).await,
        Err(why) => Err(why),
    };
    if let Err(why) = outcome {
        movements.set_mode(Mode::DecommissionFailed);
        return Err(OperationError::Failed(format!("Error while decommissioning node: {why}")));
    }
    let expiry = node.env.clock.now_micros() / 1000 + i64::try_from(gossip::options::FORGET.as_millis()).unwrap_or(0);
    node.announce(|local| local_states.set_status(local, &format!("LEFT,{first},{expiry}")));
    node.wait_until_known().await;
    movements.set_mode(Mode::Decommissioned);
    node.stop_membership().await;
    Ok(())
}

/// Tells the others again that this node is a member, with the tokens that it has now: it may have
/// moved since it introduced itself.
fn stay(node: &Node, local_states: &LocalApplicationStates, severity: f64) {
    let tokens = node.ring().local().tokens.iter().map(|token| token.0).collect();
    let local_states = LocalApplicationStates { tokens, ..local_states.clone() };
    node.announce(|local| {
        if severity > 0.0 {
            local.set(ApplicationState::Severity, "0.0");
        }
        local_states.set_normal(local);
    });
    node.membership_state.movements.set_mode(Mode::Normal);
}

fn asked() -> RequestedChange {
    RequestedChange {
        what: "decommission this node".to_owned(),
        otherwise: "`nodetool decommission --force` leaves all the same; repair the others then, copies may be missing",
    }
}

fn refuse_concurrent_changes(node: &Node, is_forced: bool) -> Result<()> {
    match is_forced {
        true => Ok(()),
        false => node.refuse_concurrent_change(&asked(), |_| true).map_err(OperationError::Failed),
    }
}

/// Refuses to leave with files of hints that this node cannot read: nobody else has these hints.
/// Err: a sentence for the operator.
async fn refuse_beside_lost_hints(node: &Arc<Node>) -> std::result::Result<(), String> {
    // otherwise an operator wants no hints to go on
    if !node.handoff.settings.load().transfers_on_decommission {
        return Ok(());
    }
    let of_node = Arc::clone(node);
    let job = move || of_node.handoff.store.get().map(|store| store.left_alone()).unwrap_or_default();
    let names = node.env.blocking_long("hints", job).await.map_err(|full| full.to_string())?;
    match names.first() {
        None => Ok(()),
        Some(first) => Err(format!(
            "{} files of hints cannot be read here, {first} among them, and would be left behind: the log says why. \
             Take them away, or perform a forceful decommission to ignore.",
            names.len()
        )),
    }
}

fn refused<T>(why: impl Into<String>) -> Result<T> {
    Err(OperationError::Failed(why.into()))
}

/// Refuses what would lose copies, or comes beside another change of the ring.
fn check(node: &Node, mode: Mode, is_forced: bool) -> Result<()> {
    if mode != Mode::Normal {
        return refused(format!("Node in {mode} state; wait for status to become normal or restart"));
    }
    let ring = node.ring();
    let stays = |endpoint: &&ring::Endpoint| endpoint.owns_tokens() && endpoint.state != State::Leaving;
    let members: Vec<_> = ring.endpoints().iter().filter(stays).collect();
    if members.len() < 2 {
        return refused("no other normal nodes in the ring; decommission would be pointless");
    }
    refuse_concurrent_changes(node, is_forced)?;
    for (keyspace, placement) in node.shared_keyspaces(&ring).map_err(OperationError::Failed)? {
        let center = ring.local_data_center();
        let (copies, nodes) = match &placement.replication {
            Replication::NetworkTopology { factors } => (
                factors.get(center).copied().unwrap_or(0),
                members.iter().filter(|endpoint| endpoint.data_center == center).count(),
            ),
            other => (other.factor(), members.len()),
        };
        if !is_forced && nodes <= copies as usize {
            return refused(format!(
                "Not enough live nodes to maintain replication factor in keyspace {keyspace} (RF = {copies}, N = {nodes}). \
                 Perform a forceful decommission to ignore."
            ));
        }
        let is_gaining = |(_, end, _): (types::Token, types::Token, &[EndpointId])| {
            placement.pending(end).contains(&ring.local_id())
        };
        if placement.ranges().any(is_gaining) {
            return refused("data is currently moving to this node; unable to leave the ring");
        }
    }
    Ok(())
}

/// Waits until the logged batches that this node keeps for others are carried out: nobody can read
/// them once it has left. Those that it keeps after [`BATCHES_WAIT_MAX`] are kept by a second node
/// too.
async fn wait_for_batches(node: &Node) {
    let begun = node.env.now();
    let schema = node.schema();
    let table = schema.table("system", "batches").expect("a built-in table");
    let is_there = || !system_rows::read(&node.engine, table, None).is_ok_and(|rows| rows.is_empty());
    while is_there() {
        if node.env.elapsed(begun) >= BATCHES_WAIT_MAX {
            tracing::warn!("logged batches are still kept here; the other node that keeps each of them carries it out");
            return;
        }
        node.env.sleep(BATCHES_LOOK).await;
    }
}

/// Ends what others have begun on this node, and hands everything on. What has failed is tried
/// again.
async fn unbootstrap(node: &Arc<Node>) -> std::result::Result<(), String> {
    node.repair_paxos_before_movement("decommission").await?;
    wait_for_batches(node).await;
    let mut transferred = TransferredRanges::new();
    let mut attempt = 1;
    while let Err(why) = hand_on(node, &mut transferred).await {
        tracing::warn!(attempt, why, "not all data has gone");
        if attempt == ATTEMPTS_MAX {
            return Err(why);
        }
        attempt += 1;
        node.env.sleep(PAUSE).await;
    }
    node.transfer_hints().await
}

/// One attempt: streams what has not gone yet.
async fn hand_on(node: &Arc<Node>, transferred: &mut TransferredRanges) -> std::result::Result<(), String> {
    let ring = node.ring();
    let mut exchange = MovementStreams::default();
    for (keyspace, placement) in node.shared_keyspaces(&ring)? {
        let flows = ring.leaving_transfers(&placement, ring.local_id());
        exchange.hand_on(&ring, &keyspace, &rest(&ring, &keyspace, flows, transferred)?);
    }
    let transfers = exchange.transfers.clone();
    let on_end = |peer: SocketAddr, end: &SessionEnd| {
        for (keyspace, ranges) in transfers.get(&peer).into_iter().flatten().filter(|_| end.is_ok()) {
            node.record_transferred(Operation::Unbootstrap, peer, keyspace, ranges);
            transferred.entry((peer, keyspace.clone())).or_default().extend(ranges);
        }
    };
    exchange.run(node, Operation::Unbootstrap, on_end).await
}

/// The flows without what has gone. Err: an endpoint that is to have ranges is down.
fn rest(
    ring: &Ring,
    keyspace: &str,
    flows: Flows,
    transferred: &TransferredRanges,
) -> std::result::Result<Flows, String> {
    let mut rest = Flows::new();
    for (id, ranges) in flows {
        let endpoint = ring.endpoint(id);
        let ranges = match transferred.get(&(endpoint.address, keyspace.to_owned())) {
            Some(transferred) => subtract(&ranges, transferred),
            None => ranges,
        };
        if !ranges.is_empty() && !endpoint.is_up {
            return Err(format!("{} is to have ranges of keyspace {keyspace}, and is down", endpoint.address));
        }
        if !ranges.is_empty() {
            rest.insert(id, ranges);
        }
    }
    Ok(rest)
}
