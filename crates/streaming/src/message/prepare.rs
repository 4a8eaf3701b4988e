//! PREPARE_SYN and PREPARE_SYNACK: the ranges that are asked for and the files that will be sent.
//!
//! ```text
//! PREPARE_SYN:     i32 n, n × request | i32 m, m × summary
//! PREPARE_SYNACK:  i32 m, m × summary
//! request:  utf keyspace | i32 number of tables | addr endpoint
//!           | i32 n, n × range (full) | i32 m, m × range (transient) | utf table names
//! range:    i32 8, i64 left | i32 8, i64 right
//! summary:  16 bytes table id | i32 files | i64 bytes
//! ```
//!
//! Ranges of repair messages have a flag byte in front; these ranges have none.
//! `org.apache.cassandra.streaming.{StreamRequest,StreamSummary}`.

use std::net::SocketAddr;

use internode::address::{SIZE_MIN, put_address, read_address};
use internode::text::{put_utf, read_utf};
use schema::TableId;
use stdx::Cursor;
use types::Token;

use super::{get_count, get_table};
use crate::error::StreamingError;

/// Bytes of a token on the wire.
const TOKEN_SIZE: i32 = 8;
/// Bytes of a range on the wire.
const RANGE_SIZE: usize = 2 * (4 + TOKEN_SIZE as usize);
/// Bytes of a summary on the wire.
const SUMMARY_SIZE: usize = 16 + 4 + 8;
/// The fewest bytes of a request: two texts' lengths, counts, an address.
const REQUEST_SIZE_MIN: usize = 2 + 4 + SIZE_MIN + 4 + 4;

/// A part of the ring: the tokens after `left` up to `right`, which is included. A range whose
/// `left` is not smaller than its `right` leads over the ring's end; equal ones are the whole ring.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TokenRange {
    /// The token before the first one of the range.
    pub left: Token,
    /// The last token.
    pub right: Token,
}

/// The ranges of one keyspace that the initiator wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StreamRequest {
    /// The keyspace's name.
    pub keyspace: String,
    /// The node that the ranges are for: the initiator, or 0.0.0.0:0 in repairs.
    pub endpoint: SocketAddr,
    /// Ranges of which all data is wanted.
    pub full: Vec<TokenRange>,
    /// Ranges of transient replication, of which data that was not repaired is wanted.
    pub transient: Vec<TokenRange>,
    /// Names of tables; empty: all tables of the keyspace.
    pub tables: Vec<String>,
}

/// The files of a table that will be sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Summary {
    /// The table.
    pub table: TableId,
    /// Number of files. An SSTable that goes whole counts as many files as it has components, so
    /// this is not the number of STREAM messages.
    pub files: i32,
    /// Bytes that will be sent: for sections without compression the bytes before compression, for
    /// sections with compression the stored chunks with their checksums, for whole SSTables their
    /// components.
    pub bytes: i64,
}

/// The content of PREPARE_SYN.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PrepareSyn {
    /// The ranges that the initiator wants.
    pub requests: Vec<StreamRequest>,
    /// The files that the initiator will send.
    pub summaries: Vec<Summary>,
}

impl PrepareSyn {
    pub(super) fn put(&self, out: &mut Vec<u8>) -> Result<(), StreamingError> {
        put_count(out, self.requests.len());
        self.requests.iter().try_for_each(|request| put_request(out, request))?;
        put_summaries(out, &self.summaries);
        Ok(())
    }

    pub(super) fn get(cursor: &mut Cursor<'_>) -> Result<Self, StreamingError> {
        let count = get_count(cursor, REQUEST_SIZE_MIN, "the number of stream requests")?;
        let requests = (0..count).map(|_| get_request(cursor)).collect::<Result<_, _>>()?;
        Ok(Self { requests, summaries: get_summaries(cursor)? })
    }
}

/// # Panics
/// When there are 2^31 elements: messages are bounded far below.
fn put_count(out: &mut Vec<u8>, count: usize) {
    stdx::put_i32(out, i32::try_from(count).expect("a stream message has fewer elements"));
}

fn put_request(out: &mut Vec<u8>, request: &StreamRequest) -> Result<(), StreamingError> {
    put_utf(out, &request.keyspace)?;
    put_count(out, request.tables.len());
    put_address(out, request.endpoint);
    for ranges in [&request.full, &request.transient] {
        put_count(out, ranges.len());
        for token in ranges.iter().flat_map(|range| [range.left, range.right]) {
            stdx::put_i32(out, TOKEN_SIZE);
            stdx::put_i64(out, token.0);
        }
    }
    for table in &request.tables {
        put_utf(out, table)?;
    }
    Ok(())
}

fn get_request(cursor: &mut Cursor<'_>) -> Result<StreamRequest, StreamingError> {
    let keyspace = read_utf(cursor)?;
    // the names stand at the end; each has a length of two bytes
    let tables = get_count(cursor, 2, "the number of tables of a stream request")?;
    let endpoint = read_address(cursor)?;
    let (full, transient) = (get_ranges(cursor)?, get_ranges(cursor)?);
    let tables = (0..tables).map(|_| read_utf(cursor)).collect::<Result<_, _>>()?;
    Ok(StreamRequest { keyspace, endpoint, full, transient, tables })
}

fn get_ranges(cursor: &mut Cursor<'_>) -> Result<Vec<TokenRange>, StreamingError> {
    let count = get_count(cursor, RANGE_SIZE, "the number of ranges of a stream request")?;
    (0..count).map(|_| Ok(TokenRange { left: get_token(cursor)?, right: get_token(cursor)? })).collect()
}

fn get_token(cursor: &mut Cursor<'_>) -> Result<Token, StreamingError> {
    match cursor.i32()? {
        TOKEN_SIZE => Ok(Token(cursor.i64()?)),
        other => Err(StreamingError::Value { part: "the size of a token", found: i64::from(other) }),
    }
}

pub(super) fn put_summaries(out: &mut Vec<u8>, summaries: &[Summary]) {
    put_count(out, summaries.len());
    for summary in summaries {
        out.extend_from_slice(&summary.table.0);
        stdx::put_i32(out, summary.files);
        stdx::put_i64(out, summary.bytes);
    }
}

pub(super) fn get_summaries(cursor: &mut Cursor<'_>) -> Result<Vec<Summary>, StreamingError> {
    let count = get_count(cursor, SUMMARY_SIZE, "the number of stream summaries")?;
    (0..count).map(|_| get_summary(cursor)).collect()
}

fn get_summary(cursor: &mut Cursor<'_>) -> Result<Summary, StreamingError> {
    let summary = Summary { table: get_table(cursor)?, files: cursor.i32()?, bytes: cursor.i64()? };
    if summary.files < 0 || summary.bytes < 0 {
        let found = i64::from(summary.files).min(summary.bytes);
        return Err(StreamingError::Value { part: "the files or bytes of a stream summary", found });
    }
    Ok(summary)
}
