//! The parameters of QUERY, EXECUTE and BATCH.
//!
//! ```text
//! [consistency] flags (u8; u32 from version 5 on), then by flag, in this order:
//! 0001 values | 0002 skip metadata | 0004 page size | 0008 paging state
//! 0010 serial consistency | 0020 timestamp | 0040 names for values
//! 0080 keyspace (v5) | 0100 now in seconds (v5)
//! ```
//! Agrees with `org.apache.cassandra.cql3.QueryOptions`.

use bytes::Bytes;
use types::Consistency;

use super::Values;
use crate::decode_error::DecodeError;
use crate::version::ProtocolVersion;
use crate::wire::{Reader, Text};

const VALUES: u32 = 0x0001;
const SKIP_METADATA: u32 = 0x0002;
const PAGE_SIZE: u32 = 0x0004;
const PAGING_STATE: u32 = 0x0008;
const SERIAL_CONSISTENCY: u32 = 0x0010;
const TIMESTAMP: u32 = 0x0020;
const NAMES_FOR_VALUES: u32 = 0x0040;
const KEYSPACE: u32 = 0x0080;
const NOW_IN_SECONDS: u32 = 0x0100;

/// The parameters of an execution.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryParameters {
    /// The consistency level.
    pub consistency: Consistency,
    /// The bound values, by position or by name.
    pub values: Values,
    /// Whether the client needs no result metadata, because it knows it.
    pub skip_metadata: bool,
    /// Most rows of an answer; `None` if not given. A negative value means "no pages", and 0 is
    /// refused when the statement is executed, as in Cassandra.
    pub page_size: Option<i32>,
    /// The position behind the last page, as the server gave it; None for the first page.
    pub paging_state: Option<Bytes>,
    /// The consistency level of the condition of a conditional update.
    pub serial_consistency: Option<Consistency>,
    /// The write timestamp in microseconds, for statements that have none of their own. Never
    /// `i64::MIN`.
    pub timestamp: Option<i64>,
    /// The keyspace in place of the connection's (version 5).
    pub keyspace: Option<Text>,
    /// The time that decides what has expired, in seconds, in place of the clock (version 5).
    pub now_in_seconds: Option<u32>,
}

impl QueryParameters {
    /// Parameters with a consistency level and nothing else.
    pub fn new(consistency: Consistency) -> Self {
        Self {
            consistency,
            values: Values::default(),
            skip_metadata: false,
            page_size: None,
            paging_state: None,
            serial_consistency: None,
            timestamp: None,
            keyspace: None,
            now_in_seconds: None,
        }
    }

    pub(super) fn decode(reader: &mut Reader<'_>, version: ProtocolVersion) -> Result<Self, DecodeError> {
        let mut parameters = Self::new(reader.consistency()?);
        let flags = read_flags(reader, version)?;
        if flags & VALUES != 0 {
            let body = reader.body();
            parameters.values = Values::decode(reader, body, version, flags & NAMES_FOR_VALUES != 0)?;
        }
        parameters.skip_metadata = flags & SKIP_METADATA != 0;
        parameters.decode_rest(flags, reader)?;
        Ok(parameters)
    }

    /// Reads the parameters of a BATCH, whose values stand with its statements, by position. As in
    /// Cassandra, values and names that stand here are passed over, and the flag for names alone
    /// means nothing (CASSANDRA-10246: the specification has names in the statements, which no
    /// server could assign to them).
    pub(super) fn decode_for_batch(reader: &mut Reader<'_>, version: ProtocolVersion) -> Result<Self, DecodeError> {
        let mut parameters = Self::new(reader.consistency()?);
        let flags = read_flags(reader, version)?;
        if flags & VALUES != 0 {
            let body = reader.body();
            Values::decode(reader, body, version, flags & NAMES_FOR_VALUES != 0)?;
        }
        parameters.decode_rest(flags, reader)?;
        Ok(parameters)
    }

    fn decode_rest(&mut self, flags: u32, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        if flags & PAGE_SIZE != 0 {
            self.page_size = Some(reader.i32("a page size")?);
        }
        if flags & PAGING_STATE != 0 {
            self.paging_state = reader.bytes("a paging state")?;
        }
        if flags & SERIAL_CONSISTENCY != 0 {
            self.serial_consistency = Some(reader.consistency()?);
        }
        if flags & TIMESTAMP != 0 {
            let timestamp = reader.i64("a timestamp")?;
            if timestamp == i64::MIN {
                return Err(DecodeError::Timestamp);
            }
            self.timestamp = Some(timestamp);
        }
        if flags & KEYSPACE != 0 {
            self.keyspace = Some(reader.string("a keyspace")?);
        }
        if flags & NOW_IN_SECONDS != 0 {
            self.now_in_seconds = Some(reader.u32("the current time")?);
        }
        Ok(())
    }
}

/// Reads the flags. Below version 5 they are one byte, and bit 0080 is not a flag.
fn read_flags(reader: &mut Reader<'_>, version: ProtocolVersion) -> Result<u32, DecodeError> {
    if version >= ProtocolVersion::V5 {
        reader.u32("the query flags")
    } else {
        Ok(u32::from(reader.u8("the query flags")?) & !KEYSPACE)
    }
}
