//! The messages of streaming links: one byte of type, then a body.
//!
//! ```text
//! 10 STREAM_INIT     init.rs            opens a session; first message of a control link
//!  1 PREPARE_SYN     prepare.rs         requests and summaries of the initiator
//!  8 PREPARE_SYNACK  prepare.rs         summaries of the follower
//!  9 PREPARE_ACK     –                  the follower may send
//!  2 STREAM          header.rs          a file's header; the file's data follows
//!  3 RECEIVED        16 bytes table id, i32 sequence number
//!  5 COMPLETE        –                  the follower has sent and received everything
//!  6 SESSION_FAILED  –
//!  7 KEEP_ALIVE      –                  of no session
//! ```
//!
//! The bytes are the same in messaging versions 12 and 13. Integers are big-endian;
//! `org.apache.cassandra.streaming.messages.StreamMessage`.

pub mod content;
pub mod header;
pub mod init;
pub mod prepare;

use schema::TableId;
use stdx::Cursor;

use crate::error::StreamingError;
use header::FileHeader;
use init::StreamInit;
use prepare::{PrepareSyn, Summary};

/// The id of a plan, a time UUID: the sessions of one operation share it.
pub type PlanId = [u8; 16];

/// Most bytes of a message other than STREAM. A PREPARE_SYN has 24 bytes for each range of each
/// keyspace: with 256 tokens on each of 300 nodes and three replicas, a node that joins asks for
/// up to 6 MB of ranges in ten keyspaces.
pub const CONTROL_SIZE_MAX: usize = 16 << 20;

/// Most bytes of the header of a STREAM message that is taken. The header of a Cassandra lists the
/// chunks that are sent, 12 bytes each: at 16 KiB a chunk this admits files of 680 GiB before
/// compression, at 4 KiB of 170 GiB. This much memory, and 16 bytes for each chunk, are needed
/// until the file has come.
pub const HEADER_SIZE_MAX: usize = 512 << 20;

/// Most chunks that a header of this node lists. Sections that touch more go without the
/// compression of their file, so that a receiver that takes only headers of 128 MiB gets them,
/// too.
pub const CHUNKS_MAX: u64 = 8 << 20;

/// A message of a streaming link.
#[derive(Clone, PartialEq, Debug)]
pub enum Message {
    /// Opens a session: the first message of its control link; or names the session of a file
    /// link.
    Init(StreamInit),
    /// The initiator asks for data and announces its own.
    PrepareSyn(PrepareSyn),
    /// The follower announces its data.
    PrepareSynAck(Vec<Summary>),
    /// The initiator awaits the files that the follower has announced.
    PrepareAck,
    /// A file; its data follows.
    Stream(Box<FileHeader>),
    /// A file has come.
    Received(Received),
    /// The follower has sent and received all files.
    Complete,
    /// The sender has given the session up.
    SessionFailed,
    /// Only keeps a link from looking idle.
    KeepAlive,
}

/// RECEIVED: the file that has come, by its number in its table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Received {
    /// The table.
    pub table: TableId,
    /// The file's number among those that the sender has for the table in this session, from 0 on.
    pub sequence: i32,
}

impl Message {
    /// The name of the message in Cassandra's enumeration.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Init(_) => "STREAM_INIT",
            Self::PrepareSyn(_) => "PREPARE_SYN",
            Self::PrepareSynAck(_) => "PREPARE_SYNACK",
            Self::PrepareAck => "PREPARE_ACK",
            Self::Stream(_) => "STREAM",
            Self::Received(_) => "RECEIVED",
            Self::Complete => "COMPLETE",
            Self::SessionFailed => "SESSION_FAILED",
            Self::KeepAlive => "KEEP_ALIVE",
        }
    }

    const fn number(&self) -> u8 {
        match self {
            Self::PrepareSyn(_) => 1,
            Self::Stream(_) => 2,
            Self::Received(_) => 3,
            Self::Complete => 5,
            Self::SessionFailed => 6,
            Self::KeepAlive => 7,
            Self::PrepareSynAck(_) => 8,
            Self::PrepareAck => 9,
            Self::Init(_) => 10,
        }
    }

    /// Appends the message.
    ///
    /// # Errors
    /// A name in the message is longer than its length can say.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), StreamingError> {
        out.push(self.number());
        match self {
            Self::Init(init) => init.put(out),
            Self::PrepareSyn(syn) => syn.put(out),
            Self::PrepareSynAck(summaries) => {
                prepare::put_summaries(out, summaries);
                Ok(())
            }
            Self::Stream(header) => header.put(out),
            Self::Received(received) => {
                out.extend_from_slice(&received.table.0);
                stdx::put_i32(out, received.sequence);
                Ok(())
            }
            Self::PrepareAck | Self::Complete | Self::SessionFailed | Self::KeepAlive => Ok(()),
        }
    }

    /// The message at the start of `bytes`, and its length without the data that follows STREAM.
    ///
    /// # Errors
    /// [`StreamingError::wanted`] tells whether the message is wrong or only not complete yet.
    pub fn decode(bytes: &[u8]) -> Result<(Self, usize), StreamingError> {
        let mut cursor = Cursor::new(bytes);
        let message = match cursor.u8()? {
            1 => Self::PrepareSyn(PrepareSyn::get(&mut cursor)?),
            2 => Self::Stream(Box::new(FileHeader::get(&mut cursor)?)),
            3 => Self::Received(Received { table: get_table(&mut cursor)?, sequence: cursor.i32()? }),
            5 => Self::Complete,
            6 => Self::SessionFailed,
            7 => Self::KeepAlive,
            8 => Self::PrepareSynAck(prepare::get_summaries(&mut cursor)?),
            9 => Self::PrepareAck,
            10 => Self::Init(StreamInit::get(&mut cursor)?),
            other => {
                return Err(StreamingError::Value { part: "the type of a stream message", found: i64::from(other) });
            }
        };
        Ok((message, cursor.position()))
    }
}

/// Most bytes of a message that begins with this byte.
pub(crate) const fn size_max(kind: u8) -> usize {
    if kind == 2 { HEADER_SIZE_MAX } else { CONTROL_SIZE_MAX }
}

pub(crate) fn get_uuid(cursor: &mut Cursor<'_>) -> Result<[u8; 16], StreamingError> {
    Ok(*cursor.take(16)?.first_chunk().expect("sixteen bytes were taken"))
}

pub(crate) fn get_table(cursor: &mut Cursor<'_>) -> Result<TableId, StreamingError> {
    get_uuid(cursor).map(TableId)
}

/// Reads a truth value and, if it is true, a UUID.
pub(crate) fn get_optional_uuid(cursor: &mut Cursor<'_>) -> Result<Option<[u8; 16]>, StreamingError> {
    if cursor.bool()? { get_uuid(cursor).map(Some) } else { Ok(None) }
}

pub(crate) fn put_optional_uuid(out: &mut Vec<u8>, uuid: Option<&[u8; 16]>) {
    out.push(u8::from(uuid.is_some()));
    out.extend(uuid.into_iter().flatten());
}

/// Reads a count of elements of at least `size_min` bytes each, all of which are there. Elements
/// that have not come yet are missing bytes, so a reader learns at once how many it waits for.
pub(crate) fn get_count(cursor: &mut Cursor<'_>, size_min: usize, part: &'static str) -> Result<usize, StreamingError> {
    let found = cursor.i32()?;
    let count = usize::try_from(found).map_err(|_| StreamingError::Value { part, found: i64::from(found) })?;
    cursor.clone().skip(count.saturating_mul(size_min))?;
    Ok(count)
}

#[cfg(test)]
mod tests;
