//! PAXOS2_PREPARE_RSP and PAXOS2_COMMIT_AND_PREPARE_RSP: what comes of a prepare.
//!
//! ```text
//! u8 00 rejected: ballot that supersedes
//! u8 01 permitted, with 02 has an accepted proposal, 04 has an answer to the read, 08 proposals
//!    are stable, 10 only the read is permitted
//!   uvint low bound, [02] commit accepted, commit latest, [04] READ_RSP
//!   uvint32 n, n × (addr, bool, [endpoint state])
//!   [10] ballot that supersedes
//! ```
//!
//! Agrees with `org.apache.cassandra.service.paxos.PaxosPrepare.ResponseSerializer`.

use std::net::SocketAddr;

use bytes::Bytes;
use stdx::put_uvint;

use super::electorate::bounded_count;
use super::{Ballot, Commit, read_ballot};
use crate::address::{self, put_address, read_address};
use crate::error::InternodeError;
use crate::integers::put_uvint32;
use crate::payload::gossip::EndpointState;
use crate::payload::read_response::ReadResponse;
use crate::payload::reader::{Reader, Tables};

const PERMITTED: u8 = 0x01;
const HAS_ACCEPTED: u8 = 0x02;
const HAS_READ: u8 = 0x04;
const IS_STABLE: u8 = 0x08;
const READ_ONLY: u8 = 0x10;
const KNOWN_FLAGS: u8 = PERMITTED | HAS_ACCEPTED | HAS_READ | IS_STABLE | READ_ONLY;

/// The outcome of a prepare.
#[derive(Clone, PartialEq, Debug)]
pub enum PrepareV2Answer {
    /// The ballot is too late.
    Rejected {
        /// The latest ballot that the replica has witnessed.
        superseded_by: Ballot,
    },
    /// The ballot is promised, or at least its read is up to date.
    Permitted(Box<Permission>),
}

/// The state of a partition that a replica tells with a promise.
#[derive(Clone, PartialEq, Debug)]
pub struct Permission {
    /// The time of the ballot below which a repair has completed everything, units of 100 ns since
    /// 1582-10-15.
    pub low_bound: u64,
    /// The proposal that was accepted last and is not known to be committed.
    pub accepted: Option<Commit>,
    /// The latest commit; that of [`Ballot::NONE`] if there is none.
    pub committed: Commit,
    /// The answer to the read. None: no read was asked for.
    pub read: Option<ReadResponse>,
    /// Whether no proposal can have been decided between what is told here and the read.
    pub is_stable: bool,
    /// If the replica knows another electorate: what it knows of the nodes of both. None: it knows
    /// nothing of a node.
    pub endpoints: Vec<(SocketAddr, Option<EndpointState>)>,
    /// If only the read is permitted: the latest ballot that the replica has witnessed. None: the
    /// ballot is promised.
    pub superseded_by: Option<Ballot>,
}

impl PrepareV2Answer {
    /// The payload.
    pub fn encode(&self) -> Result<Vec<u8>, InternodeError> {
        match self {
            Self::Rejected { superseded_by } => Ok([&[0], &superseded_by.bytes()[..]].concat()),
            Self::Permitted(permission) => permission.encode(),
        }
    }

    /// From a payload. `tables` finds the table.
    pub fn decode(payload: &Bytes, tables: &Tables<'_>) -> Result<Self, InternodeError> {
        Reader::whole(payload, |reader| match reader.cursor.u8()? {
            0 => Ok(Self::Rejected { superseded_by: read_ballot(&mut reader.cursor)? }),
            flags if flags & PERMITTED != 0 && flags & !KNOWN_FLAGS == 0 => {
                Ok(Self::Permitted(Box::new(Permission::read(reader, flags, tables)?)))
            }
            flags => Err(InternodeError::Value { part: "the flags of a promise", found: i64::from(flags) }),
        })
    }
}

impl Permission {
    fn flags(&self) -> u8 {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        PERMITTED
            | flag(self.accepted.is_some(), HAS_ACCEPTED)
            | flag(self.read.is_some(), HAS_READ)
            | flag(self.is_stable, IS_STABLE)
            | flag(self.superseded_by.is_some(), READ_ONLY)
    }

    fn encode(&self) -> Result<Vec<u8>, InternodeError> {
        let mut out = vec![self.flags()];
        put_uvint(&mut out, self.low_bound);
        self.accepted.iter().for_each(|accepted| accepted.put(&mut out));
        self.committed.put(&mut out);
        self.read.iter().for_each(|read| out.extend_from_slice(&read.encode()));
        put_uvint32(&mut out, i32::try_from(self.endpoints.len()).expect("a partition has fewer replicas"));
        for (address, state) in &self.endpoints {
            put_address(&mut out, *address);
            out.push(u8::from(state.is_some()));
            if let Some(state) = state {
                state.put(&mut out)?;
            }
        }
        self.superseded_by.iter().for_each(|by| out.extend_from_slice(by.bytes()));
        Ok(out)
    }

    fn read(reader: &mut Reader<'_>, flags: u8, tables: &Tables<'_>) -> Result<Self, InternodeError> {
        let has = |flag: u8| flags & flag != 0;
        Ok(Self {
            low_bound: reader.cursor.uvint()?,
            accepted: has(HAS_ACCEPTED).then(|| Commit::read(reader, tables)).transpose()?,
            committed: Commit::read(reader, tables)?,
            read: has(HAS_READ).then(|| ReadResponse::read(reader)).transpose()?,
            is_stable: has(IS_STABLE),
            endpoints: read_endpoints(reader)?,
            superseded_by: has(READ_ONLY).then(|| read_ballot(&mut reader.cursor)).transpose()?,
        })
    }
}

fn read_endpoints(reader: &mut Reader<'_>) -> Result<Vec<(SocketAddr, Option<EndpointState>)>, InternodeError> {
    let cursor = &mut reader.cursor;
    let count = bounded_count(cursor, address::SIZE_MIN + 1, "the number of endpoints of a promise")?;
    let mut endpoints = Vec::with_capacity(count);
    for _ in 0..count {
        let address = read_address(cursor)?;
        let state = if cursor.bool()? { Some(EndpointState::read(cursor)?) } else { None };
        endpoints.push((address, state));
    }
    Ok(endpoints)
}
