//! Protocol versions, and the answer to a client with another version.
//!
//! Supported are 3, 4, 5 and, behind the beta flag, 6, which in Cassandra 5.0 differs from 5 by
//! that flag only. Agrees with `org.apache.cassandra.transport.ProtocolVersion`. Drivers parse the
//! texts, so they must not change.

use std::fmt;

/// A protocol version that this server supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ProtocolVersion {
    /// Version 3: 16-bit stream ids, no unset values.
    V3 = 3,
    /// Version 4: unset values, custom payloads, warnings, more types.
    V4 = 4,
    /// Version 5: checksummed segments, result metadata ids, per-request keyspace.
    V5 = 5,
    /// Version 6 (beta): like 5, with the beta flag in every envelope.
    V6 = 6,
}

impl ProtocolVersion {
    /// The highest stable version. Answers to unknown versions carry it.
    pub const CURRENT: ProtocolVersion = ProtocolVersion::V5;

    /// All versions, in the order in which SUPPORTED lists them.
    pub const ALL: [ProtocolVersion; 4] = [Self::V3, Self::V4, Self::V5, Self::V6];

    /// The version of this number; None: it is not supported.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.number() == number)
    }

    /// The number in the envelope header.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Whether envelopes travel in checksummed segments after STARTUP.
    pub fn has_segments(self) -> bool {
        self >= Self::V5
    }

    /// Whether clients must ask for it with the beta flag.
    pub fn is_beta(self) -> bool {
        self == Self::V6
    }

    /// The name in SUPPORTED and in error texts: `5/v5`, `6/v6-beta`.
    pub fn name(self) -> &'static str {
        match self {
            Self::V3 => "3/v3",
            Self::V4 => "4/v4",
            Self::V5 => "5/v5",
            Self::V6 => "6/v6-beta",
        }
    }
}

impl fmt::Display for ProtocolVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The text of the answer to an unsupported version. Drivers parse it.
pub fn invalid_version_message(number: u8) -> String {
    let names = ProtocolVersion::ALL.map(ProtocolVersion::name).join(", ");
    format!("Invalid or unsupported protocol version ({number}); supported versions are ({names})")
}

/// The text of the answer to a beta version without the beta flag.
pub fn beta_flag_message(version: ProtocolVersion) -> String {
    format!("Beta version of the protocol used ({version}), but USE_BETA flag is unset")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_that_drivers_parse() {
        assert_eq!(
            invalid_version_message(66),
            "Invalid or unsupported protocol version (66); supported versions are (3/v3, 4/v4, 5/v5, 6/v6-beta)"
        );
    }

    #[test]
    fn numbers() {
        for version in ProtocolVersion::ALL {
            assert_eq!(ProtocolVersion::from_number(version.number()), Some(version));
        }
        for number in [0, 1, 2, 7, 65, 66, 127] {
            assert_eq!(ProtocolVersion::from_number(number), None);
        }
    }
}
