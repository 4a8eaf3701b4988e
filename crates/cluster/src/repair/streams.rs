//! Streams of a repair: what differs between this node and another one.
//!
//! This node opens one session with the other: it asks for the ranges that differ and, unless it
//! only receives, offers what it has of them. In a preview both tell what they would send. Agrees
//! with `LocalSyncTask` and `StreamingRepairTask` of `org.apache.cassandra.repair`.

use std::net::SocketAddr;
use std::sync::Arc;

use env::defects::{Defect, is_on};
use internode::payload::repair::{Files, Job, Preview, SessionId, StreamSummary};
use internode::payload::token_ranges::Tokens;

use crate::node::Node;
use crate::streaming::{self, Operation, PeerStreams, RangeRequest, StreamPlan, Summary, TokenRange};

/// An exchange of ranges with another node.
pub(super) struct Exchange<'a> {
    /// The session and the table.
    pub job: &'a Job,
    /// The other node.
    pub peer: SocketAddr,
    /// The ranges that differ.
    pub ranges: &'a [Tokens],
    /// This node also sends; it always receives.
    pub sends: bool,
    /// In a preview nothing is streamed.
    pub preview: Preview,
    /// The session of an incremental repair: only its data is streamed, and stays its data. None:
    /// all data.
    pub pending: Option<SessionId>,
}

/// Streams, and gives what was streamed.
pub(super) async fn exchange(node: &Arc<Node>, exchange: Exchange<'_>) -> Result<Vec<StreamSummary>, String> {
    let Exchange { job, peer, ranges, sends, preview, pending } = exchange;
    if is_on(Defect::NoHealing) {
        return Ok(Vec::new());
    }
    // a TRUNCATE that comes behind this look finds the session, or makes its cut behind `since`
    let participation = node.repairs.participation(&job.parent).ok_or("the repair has ended here")?;
    let request = RangeRequest {
        keyspace: job.keyspace.clone(),
        tables: vec![job.table.clone()],
        ranges: ranges.iter().map(|range| TokenRange { left: range.start, right: range.end }).collect(),
    };
    let transfers = if sends { vec![request.clone()] } else { Vec::new() };
    let plan = StreamPlan {
        operation: Operation::Repair,
        pending_repair: pending.filter(|_| !preview.is_preview()),
        preview: previewed(preview),
        since: Some(participation.since),
        peers: vec![PeerStreams { peer, requests: vec![request], transfers }],
    };
    let outcome = streaming::run(node, plan).await;
    let local = node.identity.broadcast;
    let files = |summaries: &[Summary]| {
        let of = |summary: &Summary| Files { table: summary.table, count: summary.files, bytes: summary.bytes };
        summaries.iter().map(of).collect()
    };
    let summary = |(peer, end): (SocketAddr, streaming::SessionEnd)| {
        let done = end.map_err(|failure| failure.to_string())?;
        Ok(StreamSummary { coordinator: local, peer, received: files(&done.received), sent: files(&done.sent) })
    };
    outcome.sessions.into_iter().map(summary).collect()
}

fn previewed(preview: Preview) -> streaming::Preview {
    match preview {
        Preview::None => streaming::Preview::None,
        Preview::All => streaming::Preview::All,
        Preview::Unrepaired => streaming::Preview::Unrepaired,
        Preview::Repaired => streaming::Preview::Repaired,
    }
}
