//! Secondary indexes as the schema remembers them. Agrees with `org.apache.cassandra.schema.IndexMetadata`.

pub mod definition;

use std::collections::BTreeMap;

/// What sort of index it is: `system_schema.indexes.kind`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IndexKind {
    /// Legacy index of a compact table.
    Keys,
    /// By class: SAI, SASI.
    Custom,
    /// Legacy index of a CQL table.
    Composites,
}

impl IndexKind {
    /// The text in the schema tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keys => "KEYS",
            Self::Custom => "CUSTOM",
            Self::Composites => "COMPOSITES",
        }
    }

    /// From the text in the schema tables.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Keys, Self::Custom, Self::Composites].into_iter().find(|kind| kind.name() == name)
    }
}

/// An index of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexMetadata {
    /// Its name, one of its keyspace.
    pub name: String,
    /// Its sort.
    pub kind: IndexKind,
    /// `target`, `class_name` and the class's own.
    pub options: BTreeMap<String, String>,
}
