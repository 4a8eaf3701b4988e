//! Messaging versions and which of them a node speaks.

use crate::error::InternodeError;

/// A version of the layout of payloads. The envelope and gossip are the same in both.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum MessagingVersion {
    /// VERSION_40: Cassandra 4.0, 4.1, and 5.0 with `storage_compatibility_mode: CASSANDRA_4`, the
    /// default of cassandra.yaml.
    V12,
    /// VERSION_50: Cassandra 5.0 with `storage_compatibility_mode` UPGRADING or NONE.
    V13,
}

impl MessagingVersion {
    /// The number in handshakes and in gossip's NET_VERSION.
    pub const fn number(self) -> u8 {
        match self {
            Self::V12 => 12,
            Self::V13 => 13,
        }
    }

    /// The version with this number, if we speak it.
    pub const fn from_number(number: i32) -> Option<Self> {
        match number {
            12 => Some(Self::V12),
            13 => Some(Self::V13),
            _ => None,
        }
    }
}

/// The versions that one side of a link accepts, both ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VersionRange {
    /// The lowest accepted version.
    pub min: u8,
    /// The highest accepted version.
    pub max: u8,
}

impl VersionRange {
    /// The versions that a node accepts for messages when its current version is `current`: a node
    /// of version 13 still speaks 12.
    pub const fn of_messages(current: MessagingVersion) -> Self {
        Self { min: 12, max: current.number() }
    }

    /// The versions that a node accepts for streams: its current version alone.
    pub const fn of_streams(current: MessagingVersion) -> Self {
        Self { min: current.number(), max: current.number() }
    }

    /// The version that an acceptor with this range names to an opener with range `opener`.
    pub fn choose(self, opener: Self) -> u8 {
        self.min.max(self.max.min(opener.max))
    }

    /// Whether the ranges have a version in common.
    pub fn meets(self, other: Self) -> bool {
        self.min <= other.max && other.min <= self.max
    }

    /// The version that a peer chose, if it lies in this range.
    pub fn accept(self, chosen: i32) -> Result<MessagingVersion, InternodeError> {
        let version = MessagingVersion::from_number(chosen).filter(|version| {
            let number = version.number();
            self.min <= number && number <= self.max
        });
        version.ok_or(InternodeError::Value { part: "the version of a link", found: i64::from(chosen) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sides_choose_the_highest_common_version() {
        let (four, five) =
            (VersionRange::of_messages(MessagingVersion::V12), VersionRange::of_messages(MessagingVersion::V13));
        for (acceptor, opener, chosen) in [(four, four, 12), (four, five, 12), (five, four, 12), (five, five, 13)] {
            assert_eq!(acceptor.choose(opener), chosen);
            assert!(acceptor.meets(opener));
        }
        let streams =
            (VersionRange::of_streams(MessagingVersion::V12), VersionRange::of_streams(MessagingVersion::V13));
        assert!(!streams.0.meets(streams.1));
        assert_eq!(four.accept(12), Ok(MessagingVersion::V12));
        assert!(four.accept(13).is_err());
        assert!(five.accept(14).is_err());
    }
}
