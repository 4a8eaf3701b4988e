//! Repair: what the node that coordinates a repair and the replicas tell each other.
//!
//! ```text
//! 105 PREPARE          i32 n, n × table id, 16 bytes parent session, ranges, bool incremental,
//!                      i64 repairedAt (ms), bool global, i32 preview kind
//! 106 SNAPSHOT         job
//! 101 VALIDATION_REQ   job, u32 time (s)
//! 102 VALIDATION_RSP   job, bool success [, trees]
//! 103 SYNC_REQ         job, addr initiator, addr source, addr destination, ranges, i32 preview
//!                      kind, bool asymmetric
//! 104 SYNC_RSP         job, addr source, addr destination, bool success, i32 n, n × summary
//! 107 CLEANUP          16 bytes parent session
//! 108 to 115           see [`consistent`]
//!
//! job:      bool 1, 16 bytes parent session, 16 bytes session, utf keyspace, utf table, ranges
//! summary:  addr, addr, i32 n, n × file summary (received), i32 n, n × file summary (sent)
//! file summary: 16 bytes table id, i32 files, i64 bytes
//! ```
//!
//! Each of these is a request that is acknowledged by an empty REPAIR_RSP, the results (102, 104)
//! too. Trees are bytes here; the crate `repair` reads them. Agrees with
//! `org.apache.cassandra.repair.messages`.

pub mod consistent;

use std::net::SocketAddr;

use bytes::Bytes;
use md5::{Digest, Md5};
use schema::TableId;
use stdx::Cursor;

use super::reader::Reader;
use super::token_ranges::{Tokens, put_ranges, read_ranges};
use super::whole;
use crate::address::{SIZE_MIN, put_address, read_address};
use crate::error::InternodeError;
use crate::integers::read_count;
use crate::text::{put_utf, read_utf};

/// Bytes of a file summary.
const FILES_SIZE: usize = 16 + 4 + 8;
/// The fewest bytes of a summary: two addresses and two counts.
const SUMMARY_SIZE_MIN: usize = 2 * SIZE_MIN + 2 * 4;

/// A time-based UUID: of a parent session, which is a repair command, or of a session, which is a
/// set of ranges with the same replicas within it.
pub type SessionId = [u8; 16];

/// The data that a preview looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Preview {
    /// No preview: what differs is streamed.
    #[default]
    None,
    /// All data.
    All,
    /// Data that was not repaired.
    Unrepaired,
    /// Repaired data.
    Repaired,
}

impl Preview {
    const ALL: [Self; 4] = [Self::None, Self::All, Self::Unrepaired, Self::Repaired];

    /// Whether nothing is streamed.
    pub fn is_preview(self) -> bool {
        self != Self::None
    }

    /// The name as Cassandra prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::All => "ALL",
            Self::Unrepaired => "UNREPAIRED",
            Self::Repaired => "REPAIRED",
        }
    }

    fn put(self, out: &mut Vec<u8>) {
        stdx::put_i32(out, self as i32);
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, InternodeError> {
        let number = cursor.i32()?;
        let found = usize::try_from(number).ok().and_then(|at| Self::ALL.get(at).copied());
        found.ok_or(InternodeError::Value { part: "the kind of a preview", found: i64::from(number) })
    }
}

/// One table of a session. Names the validations and streams of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Job {
    /// The repair command.
    pub parent: SessionId,
    /// The session.
    pub session: SessionId,
    /// Name of the keyspace.
    pub keyspace: String,
    /// Name of the table.
    pub table: String,
    /// The ranges that are repaired.
    pub ranges: Vec<Tokens>,
}

impl Job {
    fn put(&self, out: &mut Vec<u8>) -> Result<(), InternodeError> {
        out.push(1);
        out.extend_from_slice(&self.parent);
        out.extend_from_slice(&self.session);
        put_utf(out, &self.keyspace)?;
        put_utf(out, &self.table)?;
        put_ranges(out, &self.ranges);
        Ok(())
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, InternodeError> {
        if !cursor.bool()? {
            return Err(InternodeError::Unsupported("a repair without a parent session"));
        }
        let (parent, session) = (read_id(cursor)?, read_id(cursor)?);
        let (keyspace, table) = (read_utf(cursor)?, read_utf(cursor)?);
        Ok(Self { parent, session, keyspace, table, ranges: read_ranges(cursor)? })
    }

    /// The id that all nodes derive from the job: a UUID of names (version 3).
    pub fn id(&self) -> [u8; 16] {
        let ranges: Vec<String> = self.ranges.iter().map(ToString::to_string).collect();
        let mut hash = Md5::new();
        hash.update(self.parent);
        hash.update(self.session);
        hash.update(&self.keyspace);
        hash.update(&self.table);
        hash.update(format!("[{}]", ranges.join(", ")));
        let mut id: [u8; 16] = hash.finalize().into();
        (id[6], id[8]) = (id[6] & 0x0f | 0x30, id[8] & 0x3f | 0x80);
        id
    }

    /// The payload of SNAPSHOT_MSG.
    pub fn encode(&self) -> Result<Vec<u8>, InternodeError> {
        let mut out = Vec::new();
        self.put(&mut out)?;
        Ok(out)
    }

    /// From a payload of SNAPSHOT_MSG.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, Self::read)
    }
}

/// PREPARE_MSG: a repair begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prepare {
    /// The tables.
    pub tables: Vec<TableId>,
    /// The repair command.
    pub parent: SessionId,
    /// The ranges of all sessions.
    pub ranges: Vec<Tokens>,
    /// Only data that was not repaired is repaired, and counts as repaired afterwards.
    pub is_incremental: bool,
    /// The time since 1970 in milliseconds that repaired data is marked with. 0: none is marked.
    pub repaired_at: i64,
    /// All replicas take part.
    pub is_global: bool,
    /// Whether it is a preview, and of which data.
    pub preview: Preview,
}

impl Prepare {
    /// The payload.
    ///
    /// # Panics
    /// When there are 2^31 tables, which no schema has.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        stdx::put_i32(&mut out, i32::try_from(self.tables.len()).expect("a schema has fewer tables"));
        self.tables.iter().for_each(|table| out.extend_from_slice(&table.0));
        out.extend_from_slice(&self.parent);
        put_ranges(&mut out, &self.ranges);
        out.push(u8::from(self.is_incremental));
        stdx::put_i64(&mut out, self.repaired_at);
        out.push(u8::from(self.is_global));
        self.preview.put(&mut out);
        out
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| {
            let count = read_count(cursor, 16, "the number of tables of a repair")?;
            let tables = (0..count).map(|_| read_id(cursor).map(TableId)).collect::<Result<_, _>>()?;
            Ok(Self {
                tables,
                parent: read_id(cursor)?,
                ranges: read_ranges(cursor)?,
                is_incremental: cursor.bool()?,
                repaired_at: cursor.i64()?,
                is_global: cursor.bool()?,
                preview: Preview::read(cursor)?,
            })
        })
    }
}

/// VALIDATION_REQ: asks for the trees of a table's ranges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValidationRequest {
    /// The table and the ranges.
    pub job: Job,
    /// The time in seconds by which all replicas judge what is expired or may be purged.
    pub now: u32,
}

impl ValidationRequest {
    /// The payload.
    pub fn encode(&self) -> Result<Vec<u8>, InternodeError> {
        let mut out = self.job.encode()?;
        stdx::put_u32(&mut out, self.now);
        Ok(out)
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| Ok(Self { job: Job::read(cursor)?, now: cursor.u32()? }))
    }
}

/// VALIDATION_RSP: the trees, or that there are none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ValidationResponse {
    /// The table and the ranges.
    pub job: Job,
    /// The trees as bytes; None: the validation failed.
    pub trees: Option<Bytes>,
}

impl ValidationResponse {
    /// The payload.
    pub fn encode(&self) -> Result<Vec<u8>, InternodeError> {
        let mut out = self.job.encode()?;
        out.push(u8::from(self.trees.is_some()));
        self.trees.iter().for_each(|trees| out.extend_from_slice(trees));
        Ok(out)
    }

    /// From a payload. Whether the trees are trees is not looked at.
    pub fn decode(payload: &Bytes) -> Result<Self, InternodeError> {
        Reader::whole(payload, |reader| {
            let (job, is_success) = (Job::read(&mut reader.cursor)?, reader.cursor.bool()?);
            let trees = if is_success { Some(reader.take(reader.cursor.remaining())?) } else { None };
            Ok(Self { job, trees })
        })
    }
}

/// SYNC_REQ: asks the source to stream with the destination what differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyncRequest {
    /// The table.
    pub job: Job,
    /// The node that coordinates the repair.
    pub initiator: SocketAddr,
    /// The node that is asked, which opens the streams.
    pub source: SocketAddr,
    /// The node with which the source streams.
    pub destination: SocketAddr,
    /// The ranges that differ.
    pub ranges: Vec<Tokens>,
    /// Whether it is a preview.
    pub preview: Preview,
    /// The source only requests; it sends nothing.
    pub is_asymmetric: bool,
}

impl SyncRequest {
    /// The payload.
    pub fn encode(&self) -> Result<Vec<u8>, InternodeError> {
        let mut out = self.job.encode()?;
        [self.initiator, self.source, self.destination].iter().for_each(|address| put_address(&mut out, *address));
        put_ranges(&mut out, &self.ranges);
        self.preview.put(&mut out);
        out.push(u8::from(self.is_asymmetric));
        Ok(out)
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| {
            Ok(Self {
                job: Job::read(cursor)?,
                initiator: read_address(cursor)?,
                source: read_address(cursor)?,
                destination: read_address(cursor)?,
                ranges: read_ranges(cursor)?,
                preview: Preview::read(cursor)?,
                is_asymmetric: cursor.bool()?,
            })
        })
    }
}

/// The files of a table that were streamed in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Files {
    /// The table.
    pub table: TableId,
    /// The number of files.
    pub count: i32,
    /// Their bytes.
    pub bytes: i64,
}

/// The files that one stream session has moved.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamSummary {
    /// The node that opened the session.
    pub coordinator: SocketAddr,
    /// The other node.
    pub peer: SocketAddr,
    /// The files that the coordinator received.
    pub received: Vec<Files>,
    /// The files that the coordinator sent.
    pub sent: Vec<Files>,
}

/// SYNC_RSP: the streams have ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyncResponse {
    /// The table.
    pub job: Job,
    /// The node that was asked.
    pub source: SocketAddr,
    /// The node with which it streamed.
    pub destination: SocketAddr,
    /// Whether all was streamed.
    pub is_success: bool,
    /// The files that were streamed.
    pub summaries: Vec<StreamSummary>,
}

impl SyncResponse {
    /// The payload.
    ///
    /// # Panics
    /// When there are 2^31 summaries, which no session has.
    pub fn encode(&self) -> Result<Vec<u8>, InternodeError> {
        let mut out = self.job.encode()?;
        put_address(&mut out, self.source);
        put_address(&mut out, self.destination);
        out.push(u8::from(self.is_success));
        put_count(&mut out, self.summaries.len());
        for summary in &self.summaries {
            put_address(&mut out, summary.coordinator);
            put_address(&mut out, summary.peer);
            for files in [&summary.received, &summary.sent] {
                put_count(&mut out, files.len());
                for of_table in files {
                    out.extend_from_slice(&of_table.table.0);
                    stdx::put_i32(&mut out, of_table.count);
                    stdx::put_i64(&mut out, of_table.bytes);
                }
            }
        }
        Ok(out)
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| {
            let job = Job::read(cursor)?;
            let (source, destination) = (read_address(cursor)?, read_address(cursor)?);
            let is_success = cursor.bool()?;
            let count = read_count(cursor, SUMMARY_SIZE_MIN, "the number of stream summaries")?;
            let summaries = (0..count).map(|_| read_summary(cursor)).collect::<Result<_, _>>()?;
            Ok(Self { job, source, destination, is_success, summaries })
        })
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    stdx::put_i32(out, i32::try_from(count).expect("a repair has fewer streams"));
}

fn read_summary(cursor: &mut Cursor<'_>) -> Result<StreamSummary, InternodeError> {
    let (coordinator, peer) = (read_address(cursor)?, read_address(cursor)?);
    Ok(StreamSummary { coordinator, peer, received: read_files(cursor)?, sent: read_files(cursor)? })
}

fn read_files(cursor: &mut Cursor<'_>) -> Result<Vec<Files>, InternodeError> {
    let count = read_count(cursor, FILES_SIZE, "the number of tables of a stream summary")?;
    let read = |cursor: &mut Cursor<'_>| {
        Ok(Files { table: TableId(read_id(cursor)?), count: cursor.i32()?, bytes: cursor.i64()? })
    };
    (0..count).map(|_| read(cursor)).collect()
}

fn read_id(cursor: &mut Cursor<'_>) -> Result<SessionId, InternodeError> {
    Ok(*cursor.take(16)?.first_chunk().expect("sixteen bytes were taken"))
}
