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

/// A table or view that nobody has dropped, and whose stored rows cannot be read. The node does not
/// serve it, and keeps its files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LeftOutTable {
    /// Its id.
    pub id: TableId,
    /// Whether it is a materialized view.
    pub is_view: bool,
    /// The base table of a view; None also where the view's row does not tell it.
    pub base_id: Option<TableId>,
    /// `allow_auto_snapshot`; None also where the row cannot be read: there is a snapshot then, if
    /// the node takes any.
    pub allow_auto_snapshot: Option<bool>,
}

/// Everything that exists, at one moment. Never changed in place.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Schema {
    /// The keyspaces by name.
    pub keyspaces: BTreeMap<String, Arc<KeyspaceMetadata>>,
    /// The stored tables of all keyspaces by id.
    pub tables_by_id: BTreeMap<TableId, Arc<TableMetadata>>,
    /// The tables that are left out, by the names of their keyspace and themselves. A keyspace that
    /// cannot be read is not in `keyspaces`, and all of its tables are here.
    pub left_out: BTreeMap<(String, String), LeftOutTable>,
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

    /// The schema without the keyspace of this name, and without its tables that are left out.
    pub fn without_keyspace(&self, name: &str) -> Self {
        let mut next = self.clone();
        next.forget_tables_of(name);
        next.keyspaces.remove(name);
        next.left_out.retain(|(keyspace, _), _| keyspace != name);
        next
    }

    /// The tables of a keyspace that are left out, with their names.
    pub fn left_out_of(&self, keyspace: &str) -> impl Iterator<Item = (&str, &LeftOutTable)> {
        let all = self.left_out.iter().filter(move |((of, _), _)| of == keyspace);
        all.map(|((_, name), table)| (name.as_str(), table))
    }

    /// A table that is left out, by the names of its keyspace and itself.
    pub fn left_out_table(&self, keyspace: &str, table: &str) -> Option<&LeftOutTable> {
        self.left_out.get(&(keyspace.to_owned(), table.to_owned()))
    }

    /// The schema in which this table is not left out any more: it is dropped.
    pub fn without_left_out(&self, keyspace: &str, table: &str) -> Self {
        let mut next = self.clone();
        next.left_out.remove(&(keyspace.to_owned(), table.to_owned()));
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
