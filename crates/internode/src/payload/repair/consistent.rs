//! Incremental repair: the messages by which all participants agree that data is repaired.
//!
//! ```text
//! 108 PREPARE_CONSISTENT_REQ  16 bytes session, addr coordinator, i32 n, n × addr participant
//! 109 PREPARE_CONSISTENT_RSP  16 bytes session, addr participant, bool success
//! 110 FINALIZE_PROPOSE        16 bytes session
//! 111 FINALIZE_PROMISE        16 bytes session, addr participant, bool promised
//! 112 FINALIZE_COMMIT         16 bytes session
//! 113 FAILED_SESSION          16 bytes session
//! 114 STATUS_REQ              16 bytes session
//! 115 STATUS_RSP              16 bytes session, i32 state
//! ```
//!
//! The session is the parent session of the repair. The payloads of one session alone are read by
//! [`decode_uuid`](crate::payload::simple::decode_uuid). Agrees with
//! `org.apache.cassandra.repair.messages` and `repair.consistent.ConsistentSession.State`.

use std::net::SocketAddr;

use super::{SessionId, read_id};
use crate::address::{SIZE_MIN, put_address, read_address};
use crate::error::InternodeError;
use crate::integers::read_count;
use crate::payload::whole;

/// PREPARE_CONSISTENT_REQ: the participants put the data that is repaired apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PrepareConsistent {
    /// The session.
    pub session: SessionId,
    /// The node that coordinates it.
    pub coordinator: SocketAddr,
    /// The nodes that take part, the coordinator among them.
    pub participants: Vec<SocketAddr>,
}

impl PrepareConsistent {
    /// The payload.
    ///
    /// # Panics
    /// When there are 2^31 participants, which no ring has.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.session.to_vec();
        put_address(&mut out, self.coordinator);
        stdx::put_i32(&mut out, i32::try_from(self.participants.len()).expect("a ring has fewer nodes"));
        self.participants.iter().for_each(|participant| put_address(&mut out, *participant));
        out
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| {
            let (session, coordinator) = (read_id(cursor)?, read_address(cursor)?);
            let count = read_count(cursor, SIZE_MIN, "the number of participants of a repair")?;
            let participants = (0..count).map(|_| read_address(cursor)).collect::<Result<_, _>>()?;
            Ok(Self { session, coordinator, participants })
        })
    }
}

/// PREPARE_CONSISTENT_RSP and FINALIZE_PROMISE: what a participant says to a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vote {
    /// The session.
    pub session: SessionId,
    /// The node that says it.
    pub participant: SocketAddr,
    /// Whether the step is done, and the session may go on.
    pub is_yes: bool,
}

impl Vote {
    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.session.to_vec();
        put_address(&mut out, self.participant);
        out.push(u8::from(self.is_yes));
        out
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| {
            Ok(Self { session: read_id(cursor)?, participant: read_address(cursor)?, is_yes: cursor.bool()? })
        })
    }
}

/// How far a session is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SessionState {
    /// Participants put the data apart.
    Preparing,
    /// The data is apart.
    Prepared,
    /// Trees are compared and data is streamed.
    Repairing,
    /// The participant will commit when it is told.
    FinalizePromised,
    /// The data counts as repaired.
    Finalized,
    /// The data counts as not repaired, as before.
    Failed,
}

impl SessionState {
    const ALL: [Self; 6] =
        [Self::Preparing, Self::Prepared, Self::Repairing, Self::FinalizePromised, Self::Finalized, Self::Failed];

    /// The name as Cassandra prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Preparing => "PREPARING",
            Self::Prepared => "PREPARED",
            Self::Repairing => "REPAIRING",
            Self::FinalizePromised => "FINALIZE_PROMISED",
            Self::Finalized => "FINALIZED",
            Self::Failed => "FAILED",
        }
    }

    /// The state with a number, as messages and `system.repairs` hold it.
    pub fn from_number(number: i32) -> Option<Self> {
        usize::try_from(number).ok().and_then(|at| Self::ALL.get(at).copied())
    }
}

/// STATUS_RSP: how far a session is at a participant.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// The session.
    pub session: SessionId,
    /// How far it is.
    pub state: SessionState,
}

impl Status {
    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = self.session.to_vec();
        stdx::put_i32(&mut out, self.state as i32);
        out
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| {
            let (session, number) = (read_id(cursor)?, cursor.i32()?);
            let bad = InternodeError::Value { part: "the state of a repair session", found: i64::from(number) };
            Ok(Self { session, state: SessionState::from_number(number).ok_or(bad)? })
        })
    }
}
