//! Messages of repair: sent until they are acknowledged, and results that are waited for as long as
//! the other node lives and knows the request.
//!
//! A result may take days, so its age says nothing. It may also have been lost, or the other node
//! may have forgotten the repair while one of the two stood still, although both are up again. The
//! request is therefore sent again every minute: a node that works at it, or has told its result,
//! acknowledges it and does nothing twice; any other node refuses it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use env::Instant;
use internode::Verb;
use internode::payload::gossip::ApplicationState;
use membership::{Request, RequestFailure};
use tokio::sync::oneshot;

use crate::node::Node;
use crate::repair_state::command::Command;
use crate::repair_state::{RepairResult, RepairResultKey};
use crate::traces::parameters_of_repair;

/// The life of a message with trees.
const TREES_LIFE: Duration = Duration::from_secs(300);
/// Sends of one message, the first included, if it cannot be sent or is not acknowledged.
const ATTEMPTS: u32 = 3;
/// Time before a message is sent again.
const PAUSE: Duration = Duration::from_secs(1);
/// Time between two looks whether the other node lives while a result is waited for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Time between two sends of a request whose result has not come.
const ASK_EVERY: Duration = Duration::from_secs(60);
/// Number of sends in a row that were refused or not acknowledged, after which the result is not
/// waited for any longer. One refusal says little: the other node also refuses messages for which
/// it has no room at the moment.
const ASKS_MAX: u32 = 3;
/// The first major version of Cassandra whose nodes do not carry out a request twice that comes
/// twice. Helenus tells the same version of itself.
const MAJOR_VERSION_MIN: u32 = 5;
/// Time after which a node that was down without a break counts as dead. Cassandra waits until phi
/// is twice the threshold of conviction, which is about as long.
const DEAD_AFTER: Duration = Duration::from_secs(20);

/// The nodes that were found down, each with the time since when it is.
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

/// How long a result of another node is waited for, while that node lives.
pub(super) enum Patience {
    /// This request asked for the result. It is sent again every [`ASK_EVERY`].
    Asks(Verb, Bytes),
    /// The result comes within this time or does not come.
    For(Duration),
}

/// The generation of a node in gossip, which is that of its last start.
pub(super) fn generation(node: &Node, address: SocketAddr) -> Option<i32> {
    node.messenger()?.with_gossip(|gossip| Some(gossip.state(address)?.generation))
}

/// Whether a node has started again since it was in a generation: it knows nothing of what it was
/// asked or has asked before.
pub(super) fn has_restarted(node: &Node, address: SocketAddr, since: Option<i32>) -> bool {
    let now = generation(node, address);
    since.is_some() && now.is_some() && now != since
}

/// Whether a node may be sent a request of repair that it has already. False also where gossip does
/// not tell its version.
fn takes_requests_again(node: &Node, address: SocketAddr) -> bool {
    let major = |messenger: &membership::Messenger| {
        messenger.with_gossip(|gossip| {
            let release = gossip.state(address)?.value(ApplicationState::ReleaseVersion)?;
            release.split('.').next()?.parse::<u32>().ok()
        })
    };
    node.messenger().and_then(major).is_some_and(|major| major >= MAJOR_VERSION_MIN)
}

/// Whether requests may be sent to a node.
pub(super) fn is_up(node: &Node, address: SocketAddr) -> bool {
    address == node.identity.broadcast || node.ring().peers().any(|peer| peer.address == address && peer.is_up)
}

impl Node {
    /// The life of a message of repair (`repair_request_timeout`).
    pub(super) fn repair_request_timeout(&self) -> Duration {
        self.repairs.permits.load().settings.request_timeout
    }

    /// Sends a message of repair until it is acknowledged. Err: it was not.
    pub(super) async fn tell_repair(
        &self,
        to: SocketAddr,
        verb: Verb,
        payload: impl Into<Bytes>,
    ) -> Result<(), RequestFailure> {
        self.tell_repair_of(None, to, verb, payload).await
    }

    /// As [`Self::tell_repair`], for a command that may be traced.
    pub(super) async fn tell_repair_of(
        &self,
        command: Option<&Command>,
        to: SocketAddr,
        verb: Verb,
        payload: impl Into<Bytes>,
    ) -> Result<(), RequestFailure> {
        let parameters = parameters_of_repair(command.and_then(Command::traced));
        let payload = payload.into();
        let life = if verb == Verb::ValidationRsp { TREES_LIFE } else { self.repair_request_timeout() };
        let mut attempt = 1;
        loop {
            let Some(messenger) = self.messenger() else { return Err(RequestFailure::Refused) };
            match messenger
                .request(to, Request { parameters: parameters.clone(), ..Request::new(verb, payload.clone(), life) })
                .await
            {
                Ok(_) => return Ok(()),
                // the other node knows better
                Err(failed @ RequestFailure::Failed(_)) => return Err(failed),
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
        what: &RepairResultKey,
        result: oneshot::Receiver<RepairResult>,
        patience: Patience,
    ) -> Result<RepairResult, String> {
        let why = tokio::select! {
            biased;
            came = result => return came.map_err(|_| "another request took its place".to_owned()),
            why = self.await_node_failure(command, from) => why,
            why = self.await_timeout(command, from, patience) => why,
        };
        self.repairs.forget(what);
        Err(why)
    }

    /// Looks at another node until that node is gone or the command is to end, and says which.
    async fn await_node_failure(&self, command: &Command, from: SocketAddr) -> String {
        let (mut liveness, begun) = (Liveness::default(), generation(self, from));
        loop {
            self.env.sleep(LOOK_EVERY).await;
            if liveness.is_dead(self, from) || has_restarted(self, from, begun) {
                return format!("Endpoint {from} died");
            }
            if let Some(why) = command.cancelled() {
                return why;
            }
        }
    }

    /// Waits until a result is not to be expected any more, and says why.
    async fn await_timeout(&self, command: &Command, from: SocketAddr, patience: Patience) -> String {
        let (verb, payload) = match patience {
            Patience::Asks(verb, payload) => (verb, payload),
            Patience::For(time) => {
                self.env.sleep(time).await;
                return format!("Endpoint {from} has told no result for {} seconds", time.as_secs());
            }
        };
        let mut in_vain = 0;
        loop {
            self.env.sleep(ASK_EVERY).await;
            // this node's own part tells its end by a call, which cannot be lost
            if from == self.identity.broadcast || !takes_requests_again(self, from) {
                continue;
            }
            match self.tell_repair_of(Some(command), from, verb, payload.clone()).await {
                Ok(()) => in_vain = 0,
                Err(why) => {
                    in_vain += 1;
                    let verb = verb.name();
                    tracing::info!(%why, in_vain, peer = %from, verb, "a repair's request is not acknowledged again");
                    if in_vain >= ASKS_MAX {
                        return format!("Endpoint {from} does not acknowledge {verb} any more: {why}");
                    }
                }
            }
        }
    }
}
