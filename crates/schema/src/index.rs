//! Secondary indexes as the schema stores them. Agrees with
//! `org.apache.cassandra.schema.IndexMetadata`.

pub mod attached;
pub mod definition;
mod folding;
pub mod sasi;

use std::collections::BTreeMap;

/// The kind of an index: `system_schema.indexes.kind`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexKind {
    /// The legacy index of a compact table.
    Keys,
    /// An index of a class: SAI, SASI.
    Custom,
    /// The legacy index of a CQL table.
    Composites,
}

impl IndexKind {
    /// The text of `system_schema.indexes.kind`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keys => "KEYS",
            Self::Custom => "CUSTOM",
            Self::Composites => "COMPOSITES",
        }
    }

    /// Reads the text of `system_schema.indexes.kind`.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Keys, Self::Custom, Self::Composites].into_iter().find(|kind| kind.name() == name)
    }
}

/// An index of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexMetadata {
    /// The name, unique in its keyspace.
    pub name: String,
    /// The kind.
    pub kind: IndexKind,
    /// The options: `target`, `class_name` and those of the class.
    pub options: BTreeMap<String, String>,
}
