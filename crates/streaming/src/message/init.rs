//! STREAM_INIT: the first message of a control link.
//!
//! ```text
//! addr from | i32 session index | 16 bytes plan id | utf operation
//! | bool, [16 bytes pending repair] | i32 preview kind
//! ```
//!
//! `org.apache.cassandra.streaming.messages.StreamInitMessage`.

use std::net::SocketAddr;

use internode::address::{put_address, read_address};
use internode::text::{put_utf, read_utf};
use stdx::Cursor;

use super::{PlanId, get_optional_uuid, get_uuid, put_optional_uuid};
use crate::error::StreamingError;

/// The purpose of a stream. `org.apache.cassandra.streaming.StreamOperation`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Operation {
    /// Any other operation; also a text that is not known.
    Other,
    /// A node was removed by `nodetool removenode`.
    RestoreReplicaCount,
    /// A node leaves the ring.
    Unbootstrap,
    /// A node moves to another token.
    Relocation,
    /// A node joins the ring.
    Bootstrap,
    /// `nodetool rebuild`.
    Rebuild,
    /// Loading SSTables from outside of the ring.
    BulkLoad,
    /// Repair.
    Repair,
}

impl Operation {
    const ALL: [Self; 8] = [
        Self::Other,
        Self::RestoreReplicaCount,
        Self::Unbootstrap,
        Self::Relocation,
        Self::Bootstrap,
        Self::Rebuild,
        Self::BulkLoad,
        Self::Repair,
    ];

    /// The text on the wire, in logs and in `nodetool netstats`.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Other => "Other",
            Self::RestoreReplicaCount => "Restore replica count",
            Self::Unbootstrap => "Unbootstrap",
            Self::Relocation => "Relocation",
            Self::Bootstrap => "Bootstrap",
            Self::Rebuild => "Rebuild",
            Self::BulkLoad => "Bulk Load",
            Self::Repair => "Repair",
        }
    }

    /// The operation of a text, whatever the case of its letters.
    pub fn from_text(text: &str) -> Self {
        Self::ALL.into_iter().find(|operation| operation.text().eq_ignore_ascii_case(text)).unwrap_or(Self::Other)
    }

    /// Whether received SSTables keep the level that they had at the sender.
    pub const fn keeps_level(self) -> bool {
        matches!(self, Self::Unbootstrap | Self::Relocation | Self::Bootstrap | Self::Rebuild)
    }
}

/// The data that a session only previews. `org.apache.cassandra.streaming.PreviewKind`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Preview {
    /// The session is no preview: it streams.
    None,
    /// The preview is about all data.
    All,
    /// The preview is about data that was not repaired.
    Unrepaired,
    /// The preview is about data that was repaired.
    Repaired,
}

impl Preview {
    const fn number(self) -> i32 {
        match self {
            Self::None => 0,
            Self::All => 1,
            Self::Unrepaired => 2,
            Self::Repaired => 3,
        }
    }

    fn from_number(found: i32) -> Result<Self, StreamingError> {
        let all = [Self::None, Self::All, Self::Unrepaired, Self::Repaired];
        let known = all.into_iter().find(|preview| preview.number() == found);
        known.ok_or(StreamingError::Value { part: "the preview kind of a stream", found: i64::from(found) })
    }
}

/// The content of STREAM_INIT.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamInit {
    /// The initiator's broadcast address.
    pub from: SocketAddr,
    /// The session's number among those that the plan has with the same peer, from 0 on.
    pub session_index: i32,
    /// The plan.
    pub plan: PlanId,
    /// The purpose of the stream.
    pub operation: Operation,
    /// The parent session's id of the incremental repair that the data belongs to; None: there is
    /// none.
    pub pending_repair: Option<[u8; 16]>,
    /// The kind of preview, in which only summaries are sent; [`Preview::None`]: the session
    /// streams.
    pub preview: Preview,
}

impl StreamInit {
    pub(super) fn put(&self, out: &mut Vec<u8>) -> Result<(), StreamingError> {
        put_address(out, self.from);
        stdx::put_i32(out, self.session_index);
        out.extend_from_slice(&self.plan);
        put_utf(out, self.operation.text())?;
        put_optional_uuid(out, self.pending_repair.as_ref());
        stdx::put_i32(out, self.preview.number());
        Ok(())
    }

    pub(super) fn get(cursor: &mut Cursor<'_>) -> Result<Self, StreamingError> {
        Ok(Self {
            from: read_address(cursor)?,
            session_index: cursor.i32()?,
            plan: get_uuid(cursor)?,
            operation: Operation::from_text(&read_utf(cursor)?),
            pending_repair: get_optional_uuid(cursor)?,
            preview: Preview::from_number(cursor.i32()?)?,
        })
    }
}
