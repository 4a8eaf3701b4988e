//! How a keyspace is replicated, parsed once from the options that `system_schema.keyspaces` holds.
//!
//! The options are checked and expanded (`replication_factor` of NetworkTopologyStrategy stands for
//! every data center that is not named) when a statement makes them, in `schema::replication`. Here
//! they are read as they are stored. Transient replication (`3/1`) is refused by name: its replicas
//! would be taken for full ones.
//! Agrees with `org.apache.cassandra.locator.ReplicationFactor`, `SimpleStrategy`,
//! `NetworkTopologyStrategy` and `LocalStrategy`.

use std::collections::BTreeMap;
use std::fmt;

const PACKAGE: &str = "org.apache.cassandra.locator.";
const FACTOR: &str = "replication_factor";

/// The rule by which the copies of a partition are placed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Replication {
    /// Every node keeps its own data: `system` and `system_schema`.
    Local,
    /// The endpoints that follow each other on the ring hold the copies, whatever their racks.
    Simple {
        /// Number of copies of a partition.
        factor: u32,
    },
    /// Each data center has its own number of copies, in different racks while there are some.
    NetworkTopology {
        /// Number of copies by the name of the data center. None of them is 0.
        factors: BTreeMap<String, u32>,
    },
}

/// Why options are not a replication.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReplicationError {
    /// The class is none of the three.
    UnknownStrategy(String),
    /// A number of copies is missing or not a number.
    Factor(String),
    /// `3/1`: three copies, one of them transient.
    Transient(String),
}

impl fmt::Display for ReplicationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownStrategy(class) => write!(f, "Unable to find replication strategy class '{class}'"),
            Self::Factor(text) => write!(f, "\"{text}\" is not a replication factor"),
            Self::Transient(text) => write!(f, "transient replication (\"{text}\") is not supported"),
        }
    }
}

impl std::error::Error for ReplicationError {}

impl Replication {
    /// The replication of a class (with its package or without) and its options.
    pub fn parse(class: &str, options: &BTreeMap<String, String>) -> Result<Self, ReplicationError> {
        match class.strip_prefix(PACKAGE).unwrap_or(class) {
            "LocalStrategy" => Ok(Self::Local),
            "SimpleStrategy" => {
                let text = options.get(FACTOR).map_or("", String::as_str);
                Ok(Self::Simple { factor: factor(text)? })
            }
            "NetworkTopologyStrategy" => {
                let factors = options.iter().map(|(name, text)| Ok((name.clone(), factor(text)?)));
                let factors: Result<BTreeMap<_, _>, ReplicationError> = factors.collect();
                let mut factors = factors?;
                factors.retain(|_, factor| *factor > 0);
                Ok(Self::NetworkTopology { factors })
            }
            _ => Err(ReplicationError::UnknownStrategy(class.to_owned())),
        }
    }

    /// Copies of a partition, over all data centers. A sum that is too large for its type stays at
    /// the greatest number: one that began at 0 again would make a quorum of a few replicas.
    pub fn factor(&self) -> u32 {
        match self {
            Self::Local => 1,
            Self::Simple { factor } => *factor,
            Self::NetworkTopology { factors } => factors.values().fold(0u32, |sum, factor| sum.saturating_add(*factor)),
        }
    }

    /// Number of copies in one data center; None: the strategy does not know data centers.
    pub fn factor_in(&self, data_center: &str) -> Option<u32> {
        match self {
            Self::Local | Self::Simple { .. } => None,
            Self::NetworkTopology { factors } => Some(factors.get(data_center).copied().unwrap_or(0)),
        }
    }
}

fn factor(text: &str) -> Result<u32, ReplicationError> {
    if text.contains('/') {
        return Err(ReplicationError::Transient(text.to_owned()));
    }
    text.parse().map_err(|_| ReplicationError::Factor(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(class: &str, options: &[(&str, &str)]) -> Result<Replication, String> {
        let options = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Replication::parse(class, &options).map_err(|error| error.to_string())
    }

    #[test]
    fn stored_options_are_read() {
        let network = |factors: &[(&str, u32)]| Replication::NetworkTopology {
            factors: factors.iter().map(|(name, factor)| ((*name).to_owned(), *factor)).collect(),
        };
        let full = "org.apache.cassandra.locator.NetworkTopologyStrategy";
        assert_eq!(parsed("LocalStrategy", &[]), Ok(Replication::Local));
        assert_eq!(parsed("SimpleStrategy", &[(FACTOR, "3")]), Ok(Replication::Simple { factor: 3 }));
        assert_eq!(parsed(full, &[("dc1", "3"), ("dc2", "0")]), Ok(network(&[("dc1", 3)])));
        let huge = network(&[("dc1", 2_147_483_647), ("dc2", 2_147_483_647), ("dc3", 3)]);
        assert_eq!(huge.factor(), u32::MAX, "copies are not counted from 0 again");
        let refused = |class, options: &[(&str, &str)]| parsed(class, options).expect_err("refused");
        assert_eq!(refused(full, &[("dc1", "3/1")]), "transient replication (\"3/1\") is not supported");
        assert_eq!(refused("SimpleStrategy", &[]), "\"\" is not a replication factor");
        assert_eq!(
            refused("EverywhereStrategy", &[]),
            "Unable to find replication strategy class 'EverywhereStrategy'"
        );
    }
}
