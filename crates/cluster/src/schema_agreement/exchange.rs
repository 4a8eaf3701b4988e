//! The task of a node that takes other nodes' rows, asks for them, and gives its own. It has a
//! thread of its own, because it waits for the disk; messages for it wait in a queue.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use env::defects::{Defect, is_on};
use internode::payload::gossip::ApplicationState;
use internode::{Envelope, Header, Verb};
use links::Peer;
use membership::{Messenger, Request, RequestFailure};
use rows::Mutation;
use storage::StorageError;
use tokio::sync::mpsc;
use types::FailureReason;

use super::messages;
use super::pulls::{Neighbour, Pulls, Version};
use crate::node::Node;
use crate::replica::apply::WriteError;
use crate::schema_inbox::{SchemaInbox, SchemaMessage, WAITING_MAX};

/// The largest payload that is taken. A schema of ten thousand tables has a tenth of it.
const PAYLOAD_MAX: usize = 64 << 20;
/// Life of a message about schemas (`request_timeout`).
const LIFE: Duration = Duration::from_secs(10);
/// Time between two looks at the neighbours.
const LOOK: Duration = Duration::from_secs(1);

impl Node {
    /// Pushes rows of a change to the nodes that are up, also to those that are no members yet: a
    /// node that joins gets writes of its ranges, and fetches data by the schema that it has.
    /// The push has no answer: a node that does not get the rows pulls them later.
    pub(crate) fn push_schema(&self, written: &[Mutation]) {
        let Some(messenger) = self.messenger().filter(|_| !written.is_empty()) else { return };
        let payload = Bytes::from(messages::encode(written));
        for neighbour in self.schema_followers().iter().filter(|neighbour| neighbour.exchanges) {
            let push = Request::new(Verb::SchemaPushReq, payload.clone(), LIFE).without_failure_response();
            if !messenger.tell(neighbour.address, push) {
                tracing::warn!(peer = %neighbour.address, "a schema change is not sent: too much waits for this node");
            }
        }
    }

    /// Starts the task; it ends with the node.
    pub(crate) fn start_schema_exchange(self: &Arc<Self>) {
        let (waiting, asked) = mpsc::channel(WAITING_MAX);
        if self.membership_state.exchange.set(SchemaInbox { waiting: waiting.clone() }).is_err() {
            return;
        }
        let node = Arc::downgrade(self);
        let run = move || -> Pin<Box<dyn Future<Output = ()>>> { Box::pin(run(node, waiting, asked)) };
        drop(self.env.tasks.spawn_local_worker("schema", Box::new(run)));
    }

    /// Takes a message about schemas from another node. False: it is not taken, because it is no
    /// message about schemas, is too large, or the queue is full.
    pub(crate) fn exchange_schema(&self, via: &Messenger, from: &Peer, message: Envelope) -> bool {
        let asked = match message.header.verb {
            Verb::SchemaPushReq if message.payload.len() > PAYLOAD_MAX => {
                tracing::error!(peer = %from.address, bytes = message.payload.len(), "a schema of this size is not taken");
                return false;
            }
            Verb::SchemaPushReq => SchemaMessage::Take(*from, message.payload),
            Verb::SchemaPullReq => SchemaMessage::Give(via.clone(), *from, message.header),
            _ => return false,
        };
        self.membership_state.exchange.get().is_some_and(|exchange| exchange.waiting.try_send(asked).is_ok())
    }

    /// Whether a neighbour may know tables that a schema of the version `own` does not have: the
    /// neighbour tells another version, or no neighbour is known yet. Neighbours with which schemas
    /// are not exchanged do not count, since nothing would come of them.
    pub(crate) fn may_lack_schema(&self, own: Version) -> bool {
        let neighbours = self.schema_neighbours();
        neighbours.is_empty() || neighbours.iter().any(|neighbour| neighbour.exchanges && neighbour.version != own)
    }

    /// Whether this node has all of the schema of a version: it is the one in force, or it came
    /// from a neighbour that tells of it.
    pub(super) fn has_schema(&self, version: &[u8]) -> bool {
        version == self.schema().version
            || self.membership_state.received_schemas.load().iter().any(|here| version == here)
    }

    /// Members of the ring that are alive, with their schemas.
    pub(super) fn schema_neighbours(&self) -> Vec<Neighbour> {
        self.live_with_schema(|peer, _| peer.is_member())
    }

    /// Nodes that are alive and follow the changes of this one, with their schemas: members, and
    /// nodes that exchange schemas and own no tokens yet.
    pub(super) fn schema_followers(&self) -> Vec<Neighbour> {
        self.live_with_schema(|peer, exchanges| peer.is_member() || exchanges)
    }

    /// The other nodes that are alive and count, with their schemas. `counts` is told of a peer and
    /// whether it exchanges schemas with this node.
    fn live_with_schema(&self, counts: impl Fn(&gossip::Peer, bool) -> bool) -> Vec<Neighbour> {
        let Some(messenger) = self.messenger() else { return Vec::new() };
        messenger.with_gossip(|gossip| {
            let own = gossip.local.state().value(ApplicationState::NetVersion).map(str::to_owned);
            let alive = gossip.peers().iter().filter(|(_, peer)| peer.is_alive && !peer.is_dead_state());
            let neighbour = |(address, peer): (&SocketAddr, &gossip::Peer)| {
                let value = |of| peer.state.value(of);
                let version = types::literal::parse_uuid(value(ApplicationState::Schema)?)?;
                let release = value(ApplicationState::ReleaseVersion);
                let exchanges = release.is_some_and(|release| release.starts_with(MAJOR_VERSION))
                    && value(ApplicationState::NetVersion) == own.as_deref();
                counts(peer, exchanges).then_some(Neighbour { address: *address, version, exchanges })
            };
            alive.filter_map(neighbour).collect()
        })
    }
}

/// Schemas are exchanged within a major version of Cassandra.
const MAJOR_VERSION: &str = "5";

async fn run(node: Weak<Node>, waiting: mpsc::Sender<SchemaMessage>, mut asked: mpsc::Receiver<SchemaMessage>) {
    let Some(env) = node.upgrade().map(|node| node.env.clone()) else { return };
    let now = || Duration::from_nanos(env.clock.monotonic_nanos());
    let mut pulls = Pulls::new(now());
    loop {
        let next = tokio::select! {
            next = asked.recv() => next,
            () = env.sleep(LOOK) => None,
        };
        let Some(node) = node.upgrade() else { return };
        match next {
            None => {}
            Some(SchemaMessage::Take(from, payload)) => {
                let taken = take(&node, from.address, &payload).await;
                if taken == MergeOutcome::NotYet {
                    pulls.hurry(now());
                }
            }
            Some(SchemaMessage::Give(via, from, header)) => give(&node, &via, &from, &header).await,
            Some(SchemaMessage::Pulled(from, version, answer)) => {
                let taken = pulled(&node, from, version, answer).await;
                if taken == MergeOutcome::NotYet {
                    pulls.hurry(now());
                }
                pulls.ended(now(), version, taken == MergeOutcome::Here);
            }
        }
        let Some(messenger) = node.messenger() else { continue };
        let neighbours = node.schema_neighbours();
        pulls.is_outside = node.membership_state.movements.state().mode.is_outside();
        for (peer, version) in pulls.look(now(), node.schema().version, &neighbours) {
            tracing::info!(%peer, "this node asks another one for its schema");
            let answer = messenger
                .request(peer, Request::new(Verb::SchemaPullReq, Bytes::new(), LIFE).without_failure_response());
            let waiting = waiting.clone();
            tokio::task::spawn_local(async move {
                let answer = answer.await;
                let _ = waiting.send(SchemaMessage::Pulled(peer, version, answer)).await;
            });
        }
        let received = pulls.received();
        if **node.membership_state.received_schemas.load() != received {
            node.membership_state.received_schemas.store(Arc::new(received));
        }
    }
}

/// The fate of rows that another node has sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum MergeOutcome {
    /// This node has the rows now.
    Here,
    /// The rows cannot be put in force yet, but can soon.
    NotYet,
    /// This node does not have the rows.
    Not,
}

async fn take(node: &Arc<Node>, from: SocketAddr, payload: &Bytes) -> MergeOutcome {
    if is_on(Defect::DeafToSchema) {
        return MergeOutcome::Not;
    }
    let mutations = match messages::decode(payload, &node.schema()) {
        Ok(mutations) => mutations,
        Err(error) => {
            tracing::error!(peer = %from, %error, "the schema of another node cannot be read");
            return MergeOutcome::Not;
        }
    };
    match node.merge_schema(mutations).await {
        Ok(changed) => {
            if changed {
                tracing::info!(peer = %from, "the schema has changed by what another node sent");
            }
            MergeOutcome::Here
        }
        Err(error) => {
            tracing::error!(peer = %from, %error, "the schema of another node cannot be put in force");
            match error {
                WriteError::Storage(StorageError::FilesOfDropped { .. }) => MergeOutcome::NotYet,
                _ => MergeOutcome::Not,
            }
        }
    }
}

async fn give(node: &Arc<Node>, via: &Messenger, from: &Peer, header: &Header) {
    let engine = Arc::clone(&node.engine);
    let job = move || storage::schema_change::all_rows(&engine).map(|rows| messages::encode(&rows));
    let answer = match node.env.blocking("schema", job).await {
        Ok(Ok(payload)) => Ok(Bytes::from(payload)),
        Ok(Err(error)) => {
            tracing::error!(peer = %from.address, %error, "the schema cannot be read for another node");
            Err(FailureReason::Unknown)
        }
        Err(_) => Err(FailureReason::Unknown),
    };
    via.answer(from, header, answer);
}

async fn pulled(
    node: &Arc<Node>,
    from: SocketAddr,
    version: Version,
    answer: Result<Envelope, RequestFailure>,
) -> MergeOutcome {
    // a push has come in between
    if node.schema().version == version {
        return MergeOutcome::Here;
    }
    match answer {
        Ok(answer) => take(node, from, &answer.payload).await,
        Err(error) => {
            tracing::warn!(peer = %from, %error, "another node does not give its schema; it is asked again later");
            MergeOutcome::Not
        }
    }
}
