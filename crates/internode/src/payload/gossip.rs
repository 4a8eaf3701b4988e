//! Gossip: digests and endpoint states, and the messages made of them.
//!
//! ```text
//! digest          addr endpoint, i32 generation, i32 max version
//! SYN             utf cluster name, utf partitioner class, i32 n, n digests
//! ACK             i32 n, n digests that the sender asks for, i32 m, m × (addr, endpoint state)
//! ACK2            i32 m, m × (addr, endpoint state)
//! SHUTDOWN        version 13: the sender's endpoint state; version 12: nothing
//! endpoint state  i32 generation, i32 heartbeat version, i32 k,
//!                 k × (i32 application state, utf value, i32 version)
//! ```
//!
//! `org.apache.cassandra.gms.GossipDigestSyn`, `GossipDigestAck`, `GossipDigestAck2`,
//! `GossipShutdown`, `EndpointState`.

pub mod tokens;

use std::net::SocketAddr;

use stdx::Cursor;

use crate::address::{self, put_address, read_address};
use crate::error::InternodeError;
use crate::integers::read_count;
use crate::payload::whole;
use crate::text::{put_utf, read_utf};
use crate::version::MessagingVersion;

/// The subject of a value of gossip (`ApplicationState`); the discriminants are the numbers on the
/// wire.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
#[allow(missing_docs)] // the names are those of the protocol
pub enum ApplicationState {
    Status,
    Load,
    Schema,
    Dc,
    Rack,
    ReleaseVersion,
    RemovalCoordinator,
    InternalIp,
    RpcAddress,
    X11Padding,
    Severity,
    NetVersion,
    HostId,
    Tokens,
    RpcReady,
    InternalAddressAndPort,
    NativeAddressAndPort,
    StatusWithPort,
    SstableVersions,
    DiskUsage,
    IndexStatus,
    X1,
    X2,
    X3,
    X4,
    X5,
    X6,
    X7,
    X8,
    X9,
    X10,
}

impl ApplicationState {
    /// All states and the names that nodetool prints, in the order of their numbers.
    pub const ALL: [(Self, &'static str); 31] = [
        (Self::Status, "STATUS"),
        (Self::Load, "LOAD"),
        (Self::Schema, "SCHEMA"),
        (Self::Dc, "DC"),
        (Self::Rack, "RACK"),
        (Self::ReleaseVersion, "RELEASE_VERSION"),
        (Self::RemovalCoordinator, "REMOVAL_COORDINATOR"),
        (Self::InternalIp, "INTERNAL_IP"),
        (Self::RpcAddress, "RPC_ADDRESS"),
        (Self::X11Padding, "X_11_PADDING"),
        (Self::Severity, "SEVERITY"),
        (Self::NetVersion, "NET_VERSION"),
        (Self::HostId, "HOST_ID"),
        (Self::Tokens, "TOKENS"),
        (Self::RpcReady, "RPC_READY"),
        (Self::InternalAddressAndPort, "INTERNAL_ADDRESS_AND_PORT"),
        (Self::NativeAddressAndPort, "NATIVE_ADDRESS_AND_PORT"),
        (Self::StatusWithPort, "STATUS_WITH_PORT"),
        (Self::SstableVersions, "SSTABLE_VERSIONS"),
        (Self::DiskUsage, "DISK_USAGE"),
        (Self::IndexStatus, "INDEX_STATUS"),
        (Self::X1, "X1"),
        (Self::X2, "X2"),
        (Self::X3, "X3"),
        (Self::X4, "X4"),
        (Self::X5, "X5"),
        (Self::X6, "X6"),
        (Self::X7, "X7"),
        (Self::X8, "X8"),
        (Self::X9, "X9"),
        (Self::X10, "X10"),
    ];

    /// The state with a number. A larger number makes the whole message unreadable.
    pub fn from_number(number: i32) -> Option<Self> {
        usize::try_from(number).ok().and_then(|number| Self::ALL.get(number)).map(|(state, _)| *state)
    }

    /// The name that nodetool prints.
    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// A value with the counter's value of its last change. The counter is the endpoint's own.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VersionedValue {
    /// The text; [`crate::payload::gossip`]'s page in docs/formats says what each state holds.
    pub value: String,
    /// Never the same for two values of one generation.
    pub version: i32,
}

/// The state of one endpoint as a node knows or sends it.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct EndpointState {
    /// Seconds since 1970 at which the endpoint's process started, or more.
    pub generation: i32,
    /// The counter's value of the last heartbeat.
    pub heartbeat: i32,
    /// In the order in which they were sent.
    pub values: Vec<(ApplicationState, VersionedValue)>,
}

impl EndpointState {
    /// The value of one state.
    pub fn value(&self, state: ApplicationState) -> Option<&str> {
        self.values.iter().find(|(found, _)| *found == state).map(|(_, value)| value.value.as_str())
    }

    /// The greatest version among heartbeat and values.
    pub fn max_version(&self) -> i32 {
        self.values.iter().map(|(_, value)| value.version).fold(self.heartbeat, i32::max)
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) -> Result<(), InternodeError> {
        stdx::put_i32(out, self.generation);
        stdx::put_i32(out, self.heartbeat);
        put_count(out, self.values.len());
        for (state, VersionedValue { value, version }) in &self.values {
            stdx::put_i32(out, i32::from(*state as u8));
            put_utf(out, value)?;
            stdx::put_i32(out, *version);
        }
        Ok(())
    }

    pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Self, InternodeError> {
        let (generation, heartbeat) = (cursor.i32()?, cursor.i32()?);
        // a value takes at least its number, the length of its text and its version
        let count = read_count(cursor, 10, "the number of application states")?;
        let mut values = Vec::with_capacity(count);
        for _ in 0..count {
            let number = cursor.i32()?;
            let bad = InternodeError::Value { part: "an application state", found: i64::from(number) };
            let state = ApplicationState::from_number(number).ok_or(bad)?;
            values.push((state, VersionedValue { value: read_utf(cursor)?, version: cursor.i32()? }));
        }
        Ok(Self { generation, heartbeat, values })
    }
}

/// How much of an endpoint's state the sender knows, or asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Digest {
    /// The endpoint that the state is of.
    pub endpoint: SocketAddr,
    /// Its generation.
    pub generation: i32,
    /// The greatest version known.
    pub max_version: i32,
}

impl Digest {
    const SIZE_MIN: usize = address::SIZE_MIN + 8;

    fn put_all(out: &mut Vec<u8>, digests: &[Self]) {
        put_count(out, digests.len());
        for digest in digests {
            put_address(out, digest.endpoint);
            stdx::put_i32(out, digest.generation);
            stdx::put_i32(out, digest.max_version);
        }
    }

    fn read_all(cursor: &mut Cursor<'_>) -> Result<Vec<Self>, InternodeError> {
        let count = read_count(cursor, Self::SIZE_MIN, "the number of digests")?;
        let mut digests = Vec::with_capacity(count);
        for _ in 0..count {
            let endpoint = read_address(cursor)?;
            digests.push(Self { endpoint, generation: cursor.i32()?, max_version: cursor.i32()? });
        }
        Ok(digests)
    }
}

/// States, each with its endpoint.
pub type States = Vec<(SocketAddr, EndpointState)>;

fn put_states(out: &mut Vec<u8>, states: &States) -> Result<(), InternodeError> {
    put_count(out, states.len());
    for (endpoint, state) in states {
        put_address(out, *endpoint);
        state.put(out)?;
    }
    Ok(())
}

fn read_states(cursor: &mut Cursor<'_>) -> Result<States, InternodeError> {
    let count = read_count(cursor, address::SIZE_MIN + 12, "the number of endpoint states")?;
    let mut states = Vec::with_capacity(count);
    for _ in 0..count {
        states.push((read_address(cursor)?, EndpointState::read(cursor)?));
    }
    Ok(states)
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    stdx::put_i32(out, i32::try_from(count).expect("a ring has fewer endpoints"));
}

/// GOSSIP_DIGEST_SYN: a round begins. Without digests it is a shadow round's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Syn {
    /// cluster_name: a node of another cluster does not answer.
    pub cluster: String,
    /// The partitioner's class, with its package.
    pub partitioner: String,
    /// All that the sender knows of.
    pub digests: Vec<Digest>,
}

impl Syn {
    /// The payload.
    pub fn encode(&self) -> Result<Vec<u8>, InternodeError> {
        let mut out = Vec::new();
        put_utf(&mut out, &self.cluster)?;
        put_utf(&mut out, &self.partitioner)?;
        Digest::put_all(&mut out, &self.digests);
        Ok(out)
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| {
            let (cluster, partitioner) = (read_utf(cursor)?, read_utf(cursor)?);
            Ok(Self { cluster, partitioner, digests: Digest::read_all(cursor)? })
        })
    }
}

/// GOSSIP_DIGEST_ACK: what the sender knows better, and what it asks for.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Ack {
    /// Endpoints of which the sender wants states above these versions.
    pub digests: Vec<Digest>,
    /// States that the sender knows better than its peer.
    pub states: States,
}

impl Ack {
    /// The payload.
    pub fn encode(&self) -> Result<Vec<u8>, InternodeError> {
        let mut out = Vec::new();
        Digest::put_all(&mut out, &self.digests);
        put_states(&mut out, &self.states)?;
        Ok(out)
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| Ok(Self { digests: Digest::read_all(cursor)?, states: read_states(cursor)? }))
    }
}

/// GOSSIP_DIGEST_ACK2: what was asked for.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Ack2 {
    /// The states.
    pub states: States,
}

impl Ack2 {
    /// The payload.
    pub fn encode(&self) -> Result<Vec<u8>, InternodeError> {
        let mut out = Vec::new();
        put_states(&mut out, &self.states)?;
        Ok(out)
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| Ok(Self { states: read_states(cursor)? }))
    }
}

/// GOSSIP_SHUTDOWN: the sender stops. Version 12 has no state in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shutdown {
    /// All that the sender tells of itself, with status `shutdown`.
    pub state: Option<EndpointState>,
}

impl Shutdown {
    /// The payload for a link of `version`.
    pub fn encode(&self, version: MessagingVersion) -> Result<Vec<u8>, InternodeError> {
        let mut out = Vec::new();
        if let (MessagingVersion::V13, Some(state)) = (version, &self.state) {
            state.put(&mut out)?;
        }
        Ok(out)
    }

    /// From a payload of a link of `version`.
    pub fn decode(payload: &[u8], version: MessagingVersion) -> Result<Self, InternodeError> {
        whole(payload, |cursor| {
            let state = match version {
                MessagingVersion::V12 => None,
                MessagingVersion::V13 => Some(EndpointState::read(cursor)?),
            };
            Ok(Self { state })
        })
    }
}

#[cfg(test)]
mod tests;
