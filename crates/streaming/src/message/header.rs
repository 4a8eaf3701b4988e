//! STREAM's header: the session, the file and the content of its data.
//!
//! ```text
//! 16 bytes table id | addr sender | 16 bytes plan id | bool sent by the follower
//! | i32 session index | i32 sequence number | i64 repaired at | bool, [16 bytes pending repair]
//! | content (content.rs)
//! ```
//!
//! `org.apache.cassandra.streaming.messages.StreamMessageHeader`.

use std::net::SocketAddr;

use internode::address::{put_address, read_address};
use schema::TableId;
use stdx::Cursor;

use super::content::Content;
use super::{PlanId, get_optional_uuid, get_table, get_uuid, put_optional_uuid};
use crate::error::StreamingError;

/// The header of a file.
#[derive(Clone, PartialEq, Debug)]
pub struct FileHeader {
    /// The table.
    pub table: TableId,
    /// The sender's broadcast address. With the plan, the index and the direction it names the
    /// session.
    pub sender: SocketAddr,
    /// The plan.
    pub plan: PlanId,
    /// Whether the session's follower sends the file.
    pub by_follower: bool,
    /// The session's number among those of the plan with the same peer.
    pub session_index: i32,
    /// The file's number among those of the table in this session, from 0 on.
    pub sequence: i32,
    /// When the data was repaired, milliseconds since 1970; 0: not repaired.
    pub repaired_at: i64,
    /// The incremental repair under way that the data belongs to; None: none.
    pub pending_repair: Option<[u8; 16]>,
    /// The data that follows.
    pub content: Content,
}

impl FileHeader {
    pub(super) fn put(&self, out: &mut Vec<u8>) -> Result<(), StreamingError> {
        out.extend_from_slice(&self.table.0);
        put_address(out, self.sender);
        out.extend_from_slice(&self.plan);
        out.push(u8::from(self.by_follower));
        stdx::put_i32(out, self.session_index);
        stdx::put_i32(out, self.sequence);
        stdx::put_i64(out, self.repaired_at);
        put_optional_uuid(out, self.pending_repair.as_ref());
        self.content.put(out, self.table)
    }

    pub(super) fn get(cursor: &mut Cursor<'_>) -> Result<Self, StreamingError> {
        let table = get_table(cursor)?;
        Ok(Self {
            table,
            sender: read_address(cursor)?,
            plan: get_uuid(cursor)?,
            by_follower: cursor.bool()?,
            session_index: cursor.i32()?,
            sequence: cursor.i32()?,
            repaired_at: cursor.i64()?,
            pending_repair: get_optional_uuid(cursor)?,
            content: Content::get(cursor, table)?,
        })
    }
}
