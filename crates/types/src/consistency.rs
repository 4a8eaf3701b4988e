//! Consistency levels: how many replicas take part in a request before it is answered.
//!
//! The only type for them in the tree. Codes and names are those of the native protocol. How many
//! replicas a level means for a keyspace is computed where replication is known, not here.
//! Agrees with `org.apache.cassandra.db.ConsistencyLevel`.

use std::fmt;

/// A consistency level. The discriminants are the codes of the native protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u16)]
#[allow(missing_docs)] // the names are the field's own
pub enum Consistency {
    Any = 0,
    #[default]
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

/// Every level with its name, in the order of the codes.
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

// a level is found by its code, and its name by the level
const _: () = {
    let mut code = 0;
    while code < ALL.len() {
        assert!(ALL[code].0 as usize == code);
        code += 1;
    }
};

impl Consistency {
    /// All levels, in the order of their codes.
    pub fn all() -> impl Iterator<Item = Self> {
        ALL.iter().map(|(level, _)| *level)
    }

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

    /// Whether this is SERIAL or LOCAL_SERIAL, the two levels of conditional statements.
    pub fn is_serial(self) -> bool {
        matches!(self, Self::Serial | Self::LocalSerial)
    }

    /// Whether only replicas of the coordinator's data center count.
    pub fn is_datacenter_local(self) -> bool {
        matches!(self, Self::LocalOne | Self::LocalQuorum | Self::LocalSerial)
    }
}

impl fmt::Display for Consistency {
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
