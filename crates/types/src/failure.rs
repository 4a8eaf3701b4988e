//! Why a replica could not do what a coordinator asked for, as clients and nodes are told.
//!
//! Agrees with `org.apache.cassandra.exceptions.RequestFailureReason`.

use std::net::SocketAddr;

/// The reason of a failure. The discriminants are the codes of the native protocol and of messages
/// between nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum FailureReason {
    /// Any other reason.
    Unknown = 0,
    /// A read passed more tombstones than it may.
    ReadTooManyTombstones = 1,
    /// The replica did not get to it in time.
    Timeout = 2,
    /// The replica has another schema.
    IncompatibleSchema = 3,
    /// A read found more data than it may.
    ReadSize = 4,
    /// The replica was down when the request was sent.
    NodeDown = 5,
    /// An index that the read needs is not built.
    IndexNotAvailable = 6,
    /// A read would have searched more indexes than it may.
    ReadTooManyIndexes = 7,
}

impl FailureReason {
    /// The code on the wire.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::ReadTooManyTombstones => "READ_TOO_MANY_TOMBSTONES",
            Self::Timeout => "TIMEOUT",
            Self::IncompatibleSchema => "INCOMPATIBLE_SCHEMA",
            Self::ReadSize => "READ_SIZE",
            Self::NodeDown => "NODE_DOWN",
            Self::IndexNotAvailable => "INDEX_NOT_AVAILABLE",
            Self::ReadTooManyIndexes => "READ_TOO_MANY_INDEXES",
        }
    }
}

/// A replica that failed, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaFailure {
    /// The replica, by the address that other nodes know.
    pub endpoint: SocketAddr,
    /// Its reason.
    pub reason: FailureReason,
}
