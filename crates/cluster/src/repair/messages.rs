//! Messages of repair: sent until they are acknowledged, and results that are waited for as long as
//! the other node lives.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use env::Instant;
use internode::Verb;
use membership::{Request, Unanswered};
use tokio::sync::oneshot;

use crate::node::Node;
use crate::repairs::command::Command;
use crate::repairs::{Awaited, Told};
use crate::traces::parameters_of_repair;

/// The life of a message with trees.
const TREES_LIFE: Duration = Duration::from_secs(300);
/// Sends of one message, the first included, if it cannot be sent or is not acknowledged.
const ATTEMPTS: u32 = 3;
/// Time before a message is sent again.
const PAUSE: Duration = Duration::from_secs(1);
/// Time between two looks whether the other node lives while a result is waited for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A node that was down for so long without a break counts as dead. Cassandra waits until phi is
/// twice the threshold of conviction, which is about as long.
const DEAD_AFTER: Duration = Duration::from_secs(20);

/// Since when nodes are down, as far as somebody has looked.
#[derive(Default)]
pub(super) struct Liveness {
    down_since: HashMap<SocketAddr, Instant>,
}

impl Liveness {
    /// Looks at a node: whether it has been down for long, or is no member any more.
    pub fn is_dead(&mut self, node: &Node, address: SocketAddr) -> bool {
        if address == node.identity.broadcast || is_up(node, address) {
            self.down_since.remove(&address);
            return false;
        }
        let since = *self.down_since.entry(address).or_insert_with(|| node.env.now());
        node.env.elapsed(since) >= DEAD_AFTER
    }
}

/// The generation of a node in gossip, which is that of its last start.
pub(super) fn generation(node: &Node, address: SocketAddr) -> Option<i32> {
    node.members()?.with_gossip(|gossip| Some(gossip.state(address)?.generation))
}

/// Whether a node has started again since it was in a generation: it knows nothing of what it was
/// asked or has asked before.
pub(super) fn has_restarted(node: &Node, address: SocketAddr, since: Option<i32>) -> bool {
    let now = generation(node, address);
    since.is_some() && now.is_some() && now != since
}

/// Whether requests may be sent to a node.
pub(super) fn is_up(node: &Node, address: SocketAddr) -> bool {
    address == node.identity.broadcast || node.ring().peers().any(|peer| peer.address == address && peer.is_up)
}

impl Node {
    /// The life of a message of repair (`repair_request_timeout`).
    pub(super) fn repair_request_timeout(&self) -> Duration {
        self.repairs.turns.load().settings.request_timeout
    }

    /// Sends a message of repair until it is acknowledged. Err: it was not.
    pub(super) async fn tell_repair(&self, to: SocketAddr, verb: Verb, payload: Vec<u8>) -> Result<(), Unanswered> {
        self.tell_repair_of(None, to, verb, payload).await
    }

    /// As [`Self::tell_repair`], for a command that may be traced.
    pub(super) async fn tell_repair_of(
        &self,
        command: Option<&Command>,
        to: SocketAddr,
        verb: Verb,
        payload: Vec<u8>,
    ) -> Result<(), Unanswered> {
        let parameters = parameters_of_repair(command.and_then(Command::traced));
        let payload = Bytes::from(payload);
        let life = if verb == Verb::ValidationRsp { TREES_LIFE } else { self.repair_request_timeout() };
        let mut attempt = 1;
        loop {
            let Some(messenger) = self.members() else { return Err(Unanswered::Refused) };
            match messenger
                .request(to, Request { parameters: parameters.clone(), ..Request::new(verb, payload.clone(), life) })
                .await
            {
                Ok(_) => return Ok(()),
                // the other node knows better
                Err(failed @ Unanswered::Failed(_)) => return Err(failed),
                Err(unanswered) if attempt == ATTEMPTS || !is_up(self, to) => return Err(unanswered),
                Err(_) => {}
            }
            attempt += 1;
            self.env.sleep(PAUSE).await;
        }
    }

    /// Waits for a result of another node. Err: why it does not come.
    pub(super) async fn await_repair(
        &self,
        command: &Command,
        from: SocketAddr,
        what: &Awaited,
        mut told: oneshot::Receiver<Told>,
    ) -> Result<Told, String> {
        let (mut liveness, begun) = (Liveness::default(), generation(self, from));
        loop {
            if let Ok(came) = self.env.timeout(LOOK_EVERY, &mut told).await {
                return came.map_err(|_| "another request took its place".to_owned());
            }
            let is_gone = liveness.is_dead(self, from) || has_restarted(self, from, begun);
            let dead = is_gone.then(|| format!("Endpoint {from} died"));
            if let Some(why) = dead.or_else(|| command.cancelled()) {
                self.repairs.forget(what);
                return Err(why);
            }
        }
    }
}
