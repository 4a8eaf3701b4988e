//! Repair of Paxos: everything that was begun in ranges of a table is completed, so that ballots
//! before a low bound can be forgotten.
//!
//! ```text
//! 45 START_PREPARE   table id, endpoint state of the sender, ranges      55: history message
//! 47 FINISH_PREPARE  history message                                     58: empty
//! 46 CLEANUP         16 bytes session, table id, ranges                  56: empty
//! 57 (a request)     16 bytes session, bool success, bool, [utf]         none
//! 48 COMPLETE        table id, ballot low bound, ranges                  59: empty
//!
//! history message: table id, ballot, history
//! history: uvint32 n, n × (i32 8, token, ballot), ballot
//! ranges:  i32 n, n × (u8 5, i32 8, token, i32 8, token)
//! ```
//!
//! Agrees with `org.apache.cassandra.service.paxos.cleanup` and `PaxosRepairHistory`.

use schema::TableId;
use stdx::Cursor;
use types::Token;

use super::electorate::bounded_count;
use super::{Ballot, read_ballot};
use crate::error::InternodeError;
use crate::integers::put_uvint32;
use crate::payload::gossip::EndpointState;
use crate::payload::token_ranges::{put_ranges, put_token, read_ranges, read_token};
use crate::payload::whole;
use crate::text::{put_utf, read_utf};

/// Bytes of an entry of a history: a token and a ballot.
const ENTRY_SIZE: usize = 4 + 8 + 16;

pub use crate::payload::token_ranges::Tokens;

/// Up to which ballot everything is completed, by tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct History {
    /// Tokens in ascending order, each with the ballot of the tokens up to and with it, from the
    /// token before on.
    pub entries: Vec<(Token, Ballot)>,
    /// The ballot of the tokens after the last entry.
    pub last: Ballot,
}

/// PAXOS2_CLEANUP_START_PREPARE_REQ.
#[derive(Clone, PartialEq, Debug)]
pub struct StartPrepare {
    /// The table.
    pub table: TableId,
    /// The sender's own state in gossip: a repair that a change of the ring needs must not run
    /// before its replicas know of the change.
    pub state: EndpointState,
    /// The ranges.
    pub ranges: Vec<Tokens>,
}

/// PAXOS2_CLEANUP_START_PREPARE_RSP and PAXOS2_CLEANUP_FINISH_PREPARE_REQ.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CleanupHistory {
    /// The table.
    pub table: TableId,
    /// A ballot after every one that was seen: earlier ones are refused from now on.
    pub high_bound: Ballot,
    /// The ballots up to which each token range is completed already.
    pub history: History,
}

/// PAXOS2_CLEANUP_REQ: asks a replica to complete what is not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cleanup {
    /// The id under which the outcome is told.
    pub session: [u8; 16],
    /// The table.
    pub table: TableId,
    /// The ranges.
    pub ranges: Vec<Tokens>,
}

/// PAXOS2_CLEANUP_RSP2: the outcome of a cleanup.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CleanupOutcome {
    /// The id of the request.
    pub session: [u8; 16],
    /// Whether everything was completed.
    pub is_success: bool,
    /// Why not.
    pub why: Option<String>,
}

/// PAXOS2_CLEANUP_COMPLETE_REQ: everything below the low bound is completed on all replicas.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Complete {
    /// The table.
    pub table: TableId,
    /// The low bound.
    pub low_bound: Ballot,
    /// The ranges.
    pub ranges: Vec<Tokens>,
}

impl History {
    fn put(&self, out: &mut Vec<u8>) {
        put_uvint32(out, i32::try_from(self.entries.len()).expect("a ring has fewer ranges"));
        for (token, ballot) in &self.entries {
            put_token(out, *token);
            out.extend_from_slice(ballot.bytes());
        }
        out.extend_from_slice(self.last.bytes());
    }

    fn read(cursor: &mut Cursor<'_>) -> Result<Self, InternodeError> {
        let part = "the number of entries of a Paxos history";
        let count = bounded_count(cursor, ENTRY_SIZE, part)?;
        let mut entries: Vec<(Token, Ballot)> = Vec::with_capacity(count);
        for _ in 0..count {
            let (token, ballot) = (read_token(cursor)?, read_ballot(cursor)?);
            if entries.last().is_some_and(|(before, _)| *before >= token) {
                return Err(InternodeError::Unsupported("a Paxos history whose tokens do not ascend"));
            }
            entries.push((token, ballot));
        }
        Ok(Self { entries, last: read_ballot(cursor)? })
    }
}

impl StartPrepare {
    /// The payload.
    pub fn encode(&self) -> Result<Vec<u8>, InternodeError> {
        let mut out = self.table.0.to_vec();
        self.state.put(&mut out)?;
        put_ranges(&mut out, &self.ranges);
        Ok(out)
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| {
            Ok(Self { table: read_table(cursor)?, state: EndpointState::read(cursor)?, ranges: read_ranges(cursor)? })
        })
    }
}

impl CleanupHistory {
    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.table.0.to_vec();
        out.extend_from_slice(self.high_bound.bytes());
        self.history.put(&mut out);
        out
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| {
            let (table, high_bound) = (read_table(cursor)?, read_ballot(cursor)?);
            Ok(Self { table, high_bound, history: History::read(cursor)? })
        })
    }
}

impl Cleanup {
    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = [&self.session[..], &self.table.0].concat();
        put_ranges(&mut out, &self.ranges);
        out
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| {
            Ok(Self { session: read_uuid(cursor)?, table: read_table(cursor)?, ranges: read_ranges(cursor)? })
        })
    }
}

impl CleanupOutcome {
    /// The payload.
    pub fn encode(&self) -> Result<Vec<u8>, InternodeError> {
        let mut out = self.session.to_vec();
        out.extend_from_slice(&[u8::from(self.is_success), u8::from(self.why.is_some())]);
        if let Some(why) = &self.why {
            put_utf(&mut out, why)?;
        }
        Ok(out)
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| {
            let (session, is_success) = (read_uuid(cursor)?, cursor.bool()?);
            let why = if cursor.bool()? { Some(read_utf(cursor)?) } else { None };
            Ok(Self { session, is_success, why })
        })
    }
}

impl Complete {
    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.table.0.to_vec();
        out.extend_from_slice(self.low_bound.bytes());
        put_ranges(&mut out, &self.ranges);
        out
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| {
            Ok(Self { table: read_table(cursor)?, low_bound: read_ballot(cursor)?, ranges: read_ranges(cursor)? })
        })
    }
}

fn read_uuid(cursor: &mut Cursor<'_>) -> Result<[u8; 16], InternodeError> {
    Ok(*cursor.take(16)?.first_chunk().expect("sixteen bytes were taken"))
}

fn read_table(cursor: &mut Cursor<'_>) -> Result<TableId, InternodeError> {
    read_uuid(cursor).map(TableId)
}
