//! One streaming operation over several peers, and its end. A plan is made by an operation that
//! changes the topology, repairs, or loads files; [`run`] opens a session with each peer, all at
//! once. `org.apache.cassandra.streaming.{StreamPlan,StreamResultFuture,StreamState}`.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use storage::received::TruncationEpoch;
use streaming::{Operation, PlanId, Preview, StreamInit, StreamRequest, Summary, TokenRange};
use tokio::sync::oneshot;

use super::collect::Wanted;
use super::control::{self, OwnSession};
use crate::node::Node;
use crate::streaming_state::Command;

/// One operation over several peers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamPlan {
    /// The purpose of the streams.
    pub operation: Operation,
    /// The incremental repair that the data belongs to: the parent session's id. Only SSTables of
    /// that repair are sent then, by either side.
    pub pending_repair: Option<[u8; 16]>,
    /// With another value than [`Preview::None`] both sides only tell how much they would send.
    pub preview: Preview,
    /// A repair: a moment of this node from before its replicas were compared. A TRUNCATE of this
    /// node since then fails the streams of its table. None: the begin of the session is meant.
    pub since: Option<TruncationEpoch>,
    /// The peers, each once. A peer of which nothing is wanted and to which nothing is sent is
    /// passed over.
    pub peers: Vec<PeerStreams>,
}

/// The part of a plan that one peer has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeerStreams {
    /// The peer's broadcast address with its storage port.
    pub peer: SocketAddr,
    /// The ranges that the peer is to send to this node.
    pub requests: Vec<RangeRequest>,
    /// The ranges that this node sends to the peer. Their tables are flushed first.
    pub transfers: Vec<RangeTransfer>,
}

/// Ranges of a keyspace that one side is to send.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeRequest {
    /// The keyspace.
    pub keyspace: String,
    /// Names of tables; empty: all tables of the keyspace.
    pub tables: Vec<String>,
    /// The ranges, (left, right].
    pub ranges: Vec<TokenRange>,
}

/// Ranges of a keyspace that this node sends.
pub type RangeTransfer = RangeRequest;

/// The end of a plan.
#[derive(Clone, PartialEq, Debug)]
pub struct StreamOutcome {
    /// The plan's id, a time UUID made when it was begun.
    pub plan_id: PlanId,
    /// The end of the session with each peer, in the order of the plan.
    pub sessions: Vec<(SocketAddr, SessionEnd)>,
}

/// The end of a session.
pub type SessionEnd = Result<SessionSummary, StreamFailure>;

impl StreamOutcome {
    /// Whether every session has ended well.
    pub fn is_complete(&self) -> bool {
        self.sessions.iter().all(|(_, end)| end.is_ok())
    }

    /// The sessions that failed.
    pub fn failures(&self) -> impl Iterator<Item = &StreamFailure> {
        self.sessions.iter().filter_map(|(_, end)| end.as_ref().err())
    }
}

/// The amount of what was streamed in a session; in a preview, of what would have been.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SessionSummary {
    /// Files and bytes of each table that this node has received. They are in the tables.
    pub received: Vec<Summary>,
    /// Files and bytes of each table that the peer has taken.
    pub sent: Vec<Summary>,
}

/// The failure of a session. Files of a table that had not come completely are removed. Tables
/// that had come completely may have stayed, which does no harm: the same rows may be streamed
/// again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamFailure {
    /// The peer.
    pub peer: SocketAddr,
    /// The reason, a sentence.
    pub reason: String,
}

impl fmt::Display for StreamFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the stream with {} has failed: {}", self.peer, self.reason)
    }
}

impl std::error::Error for StreamFailure {}

/// Runs a plan: completes when all its sessions have ended.
pub async fn run(node: &Arc<Node>, plan: StreamPlan) -> StreamOutcome {
    run_with_hook(node, plan, |_, _| {}).await
}

/// Runs a plan; `on_end` is told of the end of the session with each peer as it comes, so that what
/// was received from that peer need not be asked for again.
pub async fn run_with_hook(
    node: &Arc<Node>,
    plan: StreamPlan,
    mut on_end: impl FnMut(SocketAddr, &SessionEnd),
) -> StreamOutcome {
    let plan_id = node.uuids.next();
    let StreamPlan { operation, pending_repair, preview, since, peers } = plan;
    let connections = node.streaming_state.settings.load().connections_per_host.max(1);
    let distinct = peers.iter().map(|streams| streams.peer).collect::<BTreeSet<SocketAddr>>().len();
    assert_eq!(distinct, peers.len(), "a plan names each peer once");
    let mut running = FuturesUnordered::new();
    let mut peers_ends: Vec<PeerEnd> = Vec::with_capacity(peers.len());
    for (place, streams) in peers.into_iter().enumerate() {
        let peer = streams.peer;
        let parts = split(streams, connections);
        peers_ends.push(PeerEnd { peer, running: parts.len(), end: Ok(SessionSummary::default()) });
        for (session_index, PeerStreams { requests, transfers, .. }) in (0..).zip(parts) {
            let from = node.identity.broadcast;
            let init = StreamInit { from, session_index, plan: plan_id, operation, pending_repair, preview };
            let requests = requests.into_iter().map(|request| asked(operation, from, request)).collect();
            let transfers = transfers.into_iter().map(Wanted::from).collect();
            let (tell, told) = oneshot::channel();
            let of_session = Arc::clone(node);
            let command = Command::Run(Box::new(move || {
                Box::pin(async move {
                    let opening = OwnSession { init, peer, since, requests, transfers };
                    drop(tell.send(control::initiate(&of_session, opening).await));
                })
            }));
            let is_begun = node.streaming_state.command(command);
            running.push(async move {
                let lost = || Err(StreamFailure { peer, reason: "this node streams nothing now".to_owned() });
                (place, if is_begun { told.await.unwrap_or_else(|_| lost()) } else { lost() })
            });
        }
    }
    while let Some((place, end)) = running.next().await {
        let whole = &mut peers_ends[place];
        whole.take(end);
        if whole.running == 0 {
            on_end(whole.peer, &whole.end);
        }
    }
    assert!(peers_ends.iter().all(|whole| whole.running == 0), "a plan has ended when all of its sessions have");
    let sessions = peers_ends.into_iter().map(|whole| (whole.peer, whole.end)).collect();
    StreamOutcome { plan_id, sessions }
}

/// The sessions with one peer, seen as one.
struct PeerEnd {
    peer: SocketAddr,
    /// Number of sessions that have not ended.
    running: usize,
    /// The sum of the sessions that have ended; the first failure, if there is one.
    end: SessionEnd,
}

impl PeerEnd {
    /// Notes that one of the sessions has ended.
    fn take(&mut self, end: SessionEnd) {
        assert!(self.running > 0, "a session ends once");
        self.running -= 1;
        match (&mut self.end, end) {
            (Ok(sum), Ok(more)) => {
                add(&mut sum.received, more.received);
                add(&mut sum.sent, more.sent);
            }
            (whole @ Ok(_), failed @ Err(_)) => *whole = failed,
            (Err(_), _) => {}
        }
    }
}

/// Adds files and bytes table by table.
fn add(sum: &mut Vec<Summary>, more: Vec<Summary>) {
    for summary in more {
        match sum.iter_mut().find(|known| known.table == summary.table) {
            Some(known) => {
                known.files = known.files.saturating_add(summary.files);
                known.bytes = known.bytes.saturating_add(summary.bytes);
            }
            None => sum.push(summary),
        }
    }
}

/// The parts of a peer's streams for the sessions of `streaming_connections_per_host`: requests and
/// transfers in turn. There is at least one part; none of the others is empty.
fn split(streams: PeerStreams, connections: usize) -> Vec<PeerStreams> {
    let PeerStreams { peer, requests, transfers } = streams;
    let count = connections.min(requests.len().max(transfers.len())).max(1);
    let mut parts = vec![PeerStreams { peer, requests: Vec::new(), transfers: Vec::new() }; count];
    requests.into_iter().zip((0..count).cycle()).for_each(|(request, part)| parts[part].requests.push(request));
    transfers.into_iter().zip((0..count).cycle()).for_each(|(transfer, part)| parts[part].transfers.push(transfer));
    parts
}

/// A request as it goes over the link.
fn asked(operation: Operation, from: SocketAddr, request: RangeRequest) -> StreamRequest {
    let RangeRequest { keyspace, tables, ranges } = request;
    // Cassandra's repairs name nobody
    let endpoint = match operation {
        Operation::Repair => SocketAddr::from(([0, 0, 0, 0], 0)),
        _ => from,
    };
    StreamRequest { keyspace, endpoint, full: ranges, transient: Vec::new(), tables }
}
