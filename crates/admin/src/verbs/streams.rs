//! Streams of SSTables between nodes: how far they are, and their throttles.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Asks for the streaming sessions that run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetStreams {}

/// A streaming session that runs.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StreamSessionInfo {
    /// The plan's id: the sessions of one operation share it.
    pub plan: String,
    /// Why data is streamed, such as `Rebuild`.
    pub operation: String,
    /// The other node, `address:port`.
    pub peer: String,
    /// The session's number among those of the plan with this node.
    pub index: i32,
    /// The other node has opened the session.
    pub follows: bool,
    /// Milliseconds since the session began.
    pub millis: u64,
    /// The files that come to this node.
    pub receiving: StreamWayInfo,
    /// The files that this node sends.
    pub sending: StreamWayInfo,
    /// Files that were sent again, because the link that took them was lost.
    pub resent: u64,
}

/// One way of a session.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StreamWayInfo {
    /// Files in all.
    pub files: u64,
    /// Bytes in all.
    pub bytes: u64,
    /// Files that are done.
    pub files_done: u64,
    /// Bytes that are done.
    pub bytes_done: u64,
    /// Bytes done and bytes in all of each file that has begun, by its name.
    pub by_file: BTreeMap<String, (u64, u64)>,
}

/// Asks for the throttles of streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetStreamThroughput {}

/// The throttles of streams, bytes a second; 0: without a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct StreamThroughputInfo {
    /// Parts of SSTables, to all nodes.
    pub all: u64,
    /// Beside that, to nodes of other data centers.
    pub inter_dc: u64,
    /// Whole SSTables, to all nodes.
    pub entire: u64,
    /// Beside that, to nodes of other data centers.
    pub entire_inter_dc: u64,
}

/// Sets a throttle until the next start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SetStreamThroughput {
    /// The throttle of whole SSTables, or that of their parts.
    pub entire: bool,
    /// The throttle to other data centers, or that to all nodes.
    pub inter_dc: bool,
    /// Bytes a second; 0: without a limit.
    pub bytes_per_second: u64,
}
