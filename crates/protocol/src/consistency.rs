//! Consistency levels and write types, with their codes and names on the wire.
//!
//! Agrees with `org.apache.cassandra.db.ConsistencyLevel` and `WriteType`.

use std::fmt;

/// How many replicas have to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
#[allow(missing_docs)] // the names are the field's own
pub enum Consistency {
    Any = 0,
    One = 1,
    Two = 2,
    Three = 3,
    Quorum = 4,
    All = 5,
    LocalQuorum = 6,
    EachQuorum = 7,
    Serial = 8,
    LocalSerial = 9,
    LocalOne = 10,
    NodeLocal = 11,
}

const ALL: [(Consistency, &str); 12] = [
    (Consistency::Any, "ANY"),
    (Consistency::One, "ONE"),
    (Consistency::Two, "TWO"),
    (Consistency::Three, "THREE"),
    (Consistency::Quorum, "QUORUM"),
    (Consistency::All, "ALL"),
    (Consistency::LocalQuorum, "LOCAL_QUORUM"),
    (Consistency::EachQuorum, "EACH_QUORUM"),
    (Consistency::Serial, "SERIAL"),
    (Consistency::LocalSerial, "LOCAL_SERIAL"),
    (Consistency::LocalOne, "LOCAL_ONE"),
    (Consistency::NodeLocal, "NODE_LOCAL"),
];

impl Consistency {
    /// The level of a code on the wire.
    pub fn from_code(code: u16) -> Option<Self> {
        ALL.get(usize::from(code)).map(|(level, _)| *level)
    }

    /// The code on the wire.
    pub fn code(self) -> u16 {
        self as u16
    }

    /// The level of a name, in any case.
    pub fn from_name(name: &str) -> Option<Self> {
        ALL.iter().find(|(_, known)| known.eq_ignore_ascii_case(name)).map(|(level, _)| *level)
    }

    /// The name: `LOCAL_QUORUM`.
    pub fn name(self) -> &'static str {
        ALL[self as usize].1
    }

    /// Whether it is one of the two levels of conditional updates.
    pub fn is_serial(self) -> bool {
        matches!(self, Self::Serial | Self::LocalSerial)
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What kind of write timed out or failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // the names are the field's own
pub enum WriteType {
    Simple,
    Batch,
    UnloggedBatch,
    Counter,
    BatchLog,
    Cas,
    View,
    Cdc,
}

impl WriteType {
    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "SIMPLE",
            Self::Batch => "BATCH",
            Self::UnloggedBatch => "UNLOGGED_BATCH",
            Self::Counter => "COUNTER",
            Self::BatchLog => "BATCH_LOG",
            Self::Cas => "CAS",
            Self::View => "VIEW",
            Self::Cdc => "CDC",
        }
    }
}

impl fmt::Display for WriteType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_positions() {
        for (position, (level, name)) in ALL.iter().enumerate() {
            assert_eq!(usize::from(level.code()), position);
            assert_eq!(Consistency::from_code(level.code()), Some(*level));
            assert_eq!(Consistency::from_name(&name.to_lowercase()), Some(*level));
            assert_eq!(level.to_string(), *name);
        }
        assert_eq!(Consistency::from_code(12), None);
        assert_eq!(Consistency::from_name("quorums"), None);
    }
}
