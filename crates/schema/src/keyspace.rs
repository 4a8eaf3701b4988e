//! Keyspaces, and the snapshot of all keyspaces.

use std::collections::BTreeMap;
use std::sync::Arc;

use types::UserType;

use crate::function::{AggregateMetadata, FunctionKey, FunctionMetadata};
use crate::schema_row::SchemaRow;
use crate::{TableId, TableMetadata};

/// Replication of a keyspace: the full class name and its options, as in
/// `system_schema.keyspaces.replication`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Replication {
    /// `org.apache.cassandra.locator.SimpleStrategy` and the like.
    pub class: String,
    /// Everything but `class`.
    pub options: BTreeMap<String, String>,
}

/// A keyspace with its tables and types.
#[derive(Clone, PartialEq, Debug)]
pub struct KeyspaceMetadata {
    /// The name.
    pub name: String,
    /// `durable_writes`; false: writes skip the commit log.
    pub durable_writes: bool,
    /// How its data is replicated.
    pub replication: Replication,
    /// The tables by name.
    pub tables: BTreeMap<String, Arc<TableMetadata>>,
    /// The user types by name.
    pub user_types: BTreeMap<String, Arc<UserType>>,
    /// The stored rows of its functions and aggregates, from which these are read
    /// ([`KeyspaceMetadata::read_functions`]). A row that cannot be read is kept unchanged.
    pub function_rows: Vec<SchemaRow>,
    /// The user-defined functions by name and argument types.
    pub functions: BTreeMap<FunctionKey, Arc<FunctionMetadata>>,
    /// The user-defined aggregates by name and argument types.
    pub aggregates: BTreeMap<FunctionKey, Arc<AggregateMetadata>>,
    /// Whether the keyspace is virtual, that is, not stored: system_views and
    /// system_virtual_schema.
    pub is_virtual: bool,
}

impl KeyspaceMetadata {
    /// The materialized views of a table of this keyspace.
    pub fn views_of(&self, table: TableId) -> impl Iterator<Item = &Arc<TableMetadata>> {
        self.tables.values().filter(move |other| other.view.as_ref().is_some_and(|view| view.base_id == table))
    }
}

/// Everything that exists, at one moment. Never changed in place.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Schema {
    /// The keyspaces by name.
    pub keyspaces: BTreeMap<String, Arc<KeyspaceMetadata>>,
    /// The stored tables of all keyspaces by id.
    pub tables_by_id: BTreeMap<TableId, Arc<TableMetadata>>,
    /// `system.local.schema_version`: a digest of all rows of the schema tables.
    pub version: [u8; 16],
}

impl Schema {
    /// A keyspace by name.
    pub fn keyspace(&self, name: &str) -> Option<&Arc<KeyspaceMetadata>> {
        self.keyspaces.get(name)
    }

    /// A table by the names of its keyspace and itself.
    pub fn table(&self, keyspace: &str, table: &str) -> Option<&Arc<TableMetadata>> {
        self.keyspaces.get(keyspace)?.tables.get(table)
    }

    /// A table by id.
    pub fn table_by_id(&self, id: TableId) -> Option<&Arc<TableMetadata>> {
        self.tables_by_id.get(&id)
    }

    /// The schema with this keyspace in place of the one with its name.
    pub fn with_keyspace(&self, keyspace: KeyspaceMetadata) -> Self {
        let mut next = self.clone();
        next.put_keyspace(keyspace);
        next
    }

    /// The schema without the keyspace of this name.
    pub fn without_keyspace(&self, name: &str) -> Self {
        let mut next = self.clone();
        next.forget_tables_of(name);
        next.keyspaces.remove(name);
        next
    }

    pub(crate) fn put_keyspace(&mut self, keyspace: KeyspaceMetadata) {
        self.forget_tables_of(&keyspace.name);
        for table in keyspace.tables.values() {
            self.tables_by_id.insert(table.id, Arc::clone(table));
        }
        self.keyspaces.insert(keyspace.name.clone(), Arc::new(keyspace));
    }

    fn forget_tables_of(&mut self, keyspace: &str) {
        self.tables_by_id.retain(|_, table| table.keyspace != keyspace);
    }
}
