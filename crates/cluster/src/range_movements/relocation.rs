//! `nodetool move`: a node with one token owns another instead.
//!
//! The node says MOVING with its new token: each replica that gains a range by that, the node
//! itself among them, takes the range's writes from then on. The node fetches the ranges that it
//! gains and hands on those that it loses. Then it writes the new token to its disk and says
//! NORMAL. A node that is killed on the way has its old token when it starts again. While another
//! node changes the ring a move is refused ([`super::changing_nodes`]). Where a table is left out
//! of the schema because it cannot be read, a move beside a node of Cassandra is refused, too.
//! `org.apache.cassandra.service.StorageService.move`, `RangeRelocator`.

use std::net::SocketAddr;
use std::sync::Arc;

use ring::relocation::SourceChoice;
use types::Token;

use super::bootstrap::describe;
use super::changing_nodes::RequestedChange;
use super::flows::{MovementStreams, refuse_missing};
use crate::node::Node;
use crate::operations::{OperationError, Result};
use crate::range_movement_state::Mode;
use crate::streaming::{Operation, refuse_left_out};

/// Moves this node to a token.
pub async fn relocate(node: &Arc<Node>, token: &str) -> Result<()> {
    let failed = |why: String| OperationError::Failed(why);
    let movements = &node.membership_state.movements;
    let Ok(to) = token.parse().map(Token) else {
        return Err(OperationError::Invalid(format!("For input string: \"{token}\"")));
    };
    let Some(local_states) = node.membership_state.local_states.get() else {
        return Err(failed("this node is alone: it owns all tokens".to_owned()));
    };
    let mode = node.mode();
    if mode != Mode::Normal {
        // a node without data would be a member at the end
        return Err(failed(format!("Node in {mode} state; wait for status to become normal or restart")));
    }
    node.refuse_without_gossip().map_err(failed)?;
    let ring = node.ring();
    if ring.tokens().any(|(owned, _)| owned == to) {
        return Err(failed(format!("target token {token} is already owned by another node.")));
    }
    if ring.local().tokens.len() > 1 {
        return Err(failed("This node has more than one token and cannot be moved thusly.".to_owned()));
    }
    let change = RequestedChange {
        what: "move this node".to_owned(),
        otherwise: "A node that is started with consistent_rangemovement=false moves all the same; repair it then, \
                    copies may be missing",
    };
    node.refuse_concurrent_change(&change, |_| true).map_err(failed)?;
    let local = ring.local_id();
    let keyspaces = node.shared_keyspaces(&ring).map_err(failed)?;
    let is_gaining = keyspaces
        .iter()
        .any(|(_, placement)| placement.ranges().any(|(_, end, _)| placement.pending(end).contains(&local)));
    if is_gaining {
        return Err(failed("data is currently moving to this node; unable to leave the ring".to_owned()));
    }
    let _running = movements.begin("moving").map_err(failed)?;
    let peers: Vec<SocketAddr> = ring.peers().map(|peer| peer.address).collect();
    refuse_left_out(node, &peers, |_| true).await.map_err(failed)?;
    let from = ring.local().tokens.first().map_or(0, |token| token.0);
    movements.set_mode(Mode::Moving);
    node.announce(|local| local_states.set_status(local, &format!("MOVING,{}", to.0)));
    node.wait_until_known().await;
    let settle = |at: i64| {
        let local_states = membership::LocalApplicationStates { tokens: vec![at], ..local_states.clone() };
        node.announce(|local| local_states.set_normal(local));
        movements.set_mode(Mode::Normal);
    };
    if let Err(why) = node.check_precedence(&change).await {
        settle(from);
        return Err(failed(why));
    }
    let moved = match node.repair_paxos_before_movement("move").await {
        Ok(()) => exchange(node, to).await,
        Err(why) => Err(why),
    };
    let moved = match moved.and_then(|()| node.refuse_without_gossip()) {
        Ok(()) => keep(node, from, to).await,
        Err(why) => Err(why),
    };
    settle(if moved.is_ok() { to.0 } else { from });
    moved.map_err(|why| failed(format!("Interrupted while waiting for stream/fetch ranges to finish: {why}")))
}

/// Writes the new token. Err: the node stays at the old one. Otherwise it would say for as long as
/// it runs that it moves, and no other node could change the ring.
async fn keep(node: &Node, from: i64, to: Token) -> std::result::Result<(), String> {
    let kept = node.save_tokens(&[to]).await;
    if kept.is_err() && node.save_tokens(&[Token(from)]).await.is_err() {
        // nothing can be written; the new token may be durable all the same
        tracing::error!(
            from,
            to = to.0,
            "the tokens of this node cannot be written: look at them after its next start"
        );
    }
    kept
}

/// Fetches the ranges that this node gains, and hands on those that it loses.
async fn exchange(node: &Arc<Node>, to: Token) -> std::result::Result<(), String> {
    let ring = node.ring();
    let strict = node.membership_state.movements.settings().is_consistent;
    let choice = SourceChoice { strict, may_give: &|_| true };
    let mut exchange = MovementStreams::default();
    for (keyspace, placement) in node.shared_keyspaces(&ring)? {
        let flows = ring.moving_flows(&placement, ring.local_id(), to, choice);
        let (fetches, transfers) = flows.map_err(|error| describe(&ring, &keyspace, &error))?;
        refuse_missing(&keyspace, &placement, &fetches.missing)?;
        exchange.fetch(&ring, &keyspace, &fetches.from);
        exchange.hand_on(&ring, &keyspace, &transfers);
    }
    exchange.run(node, Operation::Relocation, |_, _| {}).await
}
