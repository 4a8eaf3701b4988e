//! FAILURE_RSP: why a replica could not do what it was asked (`RequestFailureReason`).

use crate::error::InternodeError;
use crate::integers::{put_uvint32, read_uvint32};
use crate::payload::whole;

/// Why a replica failed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs)] // the names are those of the protocol
pub enum FailureReason {
    Unknown,
    ReadTooManyTombstones,
    Timeout,
    IncompatibleSchema,
    ReadSize,
    NodeDown,
    IndexNotAvailable,
    ReadTooManyIndexes,
}

impl FailureReason {
    const ALL: [Self; 8] = [
        Self::Unknown,
        Self::ReadTooManyTombstones,
        Self::Timeout,
        Self::IncompatibleSchema,
        Self::ReadSize,
        Self::NodeDown,
        Self::IndexNotAvailable,
        Self::ReadTooManyIndexes,
    ];

    /// The number in messages between nodes, and in answers to clients of version 5.
    pub const fn code(self) -> i32 {
        self as i32
    }

    /// The reason with a code; a code that is not known is `Unknown`.
    pub fn from_code(code: i32) -> Self {
        usize::try_from(code).ok().and_then(|code| Self::ALL.get(code).copied()).unwrap_or(Self::Unknown)
    }

    /// The payload.
    pub fn encode(self) -> Vec<u8> {
        let mut out = Vec::new();
        put_uvint32(&mut out, self.code());
        out
    }

    /// From a payload.
    pub fn decode(payload: &[u8]) -> Result<Self, InternodeError> {
        whole(payload, |cursor| Ok(Self::from_code(read_uvint32(cursor, "a reason of failure")?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_places_in_the_list() {
        for (place, reason) in FailureReason::ALL.iter().enumerate() {
            assert_eq!(reason.code(), place as i32);
            assert_eq!(FailureReason::decode(&reason.encode()), Ok(*reason));
        }
        assert_eq!(FailureReason::decode(&[77]), Ok(FailureReason::Unknown));
        assert!(FailureReason::decode(&[1, 1]).is_err());
    }
}
