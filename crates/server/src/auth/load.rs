//! Rows of the tables of `system_auth` as the values that checks need.
//!
//! Agrees with `CassandraRoleManager`, `CassandraAuthorizer.bulkLoader`,
//! `CassandraNetworkAuthorizer.bulkLoader`.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use cluster::Node;
use cluster::system_rows::{elements, text, value};
use cql::ast::Permission;
use cql::auth::{AuthSettings, PermissionSet, Role, Roles};
use rows::{ColumnData, ReadError, Row};
use schema::TableMetadata;
use types::DecoratedKey;

/// The keyspace of these tables.
pub(super) const KEYSPACE: &str = "system_auth";

/// The tables that [`add`] reads.
pub(super) const TABLES: [&str; 5] =
    ["roles", "role_permissions", "network_permissions", "cidr_groups", "identity_to_role"];

/// Live rows with their keys.
pub(super) type AuthRows = Vec<(DecoratedKey, Row)>;

/// The roles as this node's own tables have them now. Reads all of them: not on a worker.
pub(super) fn load(node: &Node, settings: AuthSettings) -> Result<Roles, ReadError> {
    let mut roles = Roles { settings, ..Roles::default() };
    let schema = node.schema();
    for table in TABLES.into_iter().filter_map(|name| schema.table(KEYSPACE, name)) {
        add(&mut roles, table, &node.read_system_rows(table)?);
    }
    Ok(roles)
}

/// Adds the rows of one of the tables to roles.
pub(super) fn add(roles: &mut Roles, table: &Arc<TableMetadata>, found: &AuthRows) {
    for (key, row) in found {
        let key = string(&key.key);
        match table.name.as_str() {
            "roles" => drop(roles.roles.insert(key, role(table, row))),
            "role_permissions" => add_permissions(roles, table, key, row),
            "network_permissions" => {
                // the key is the name of the resource
                let role = key.strip_prefix("roles/").unwrap_or(&key).to_owned();
                roles.datacenters.insert(role, frozen_texts(value(table, row, "dcs")));
            }
            "cidr_groups" => drop(roles.cidr_groups.insert(key)),
            "identity_to_role" => {
                roles.identities.insert(key, text(table, row, "role").unwrap_or_default());
            }
            _ => {}
        }
    }
}

/// A row of `roles`.
fn role(table: &TableMetadata, row: &Row) -> Role {
    let flag = |name: &str| value(table, row, name).is_some_and(|value| value.as_ref() == [1]);
    Role {
        is_superuser: flag("is_superuser"),
        can_login: flag("can_login"),
        salted_hash: text(table, row, "salted_hash"),
        hash_written: written(table, row, "salted_hash"),
        member_of: elements(table, row, "member_of").iter().map(|name| string(name)).collect(),
    }
}

fn add_permissions(roles: &mut Roles, table: &TableMetadata, role: String, row: &Row) {
    let names = elements(table, row, "permissions");
    let permissions: PermissionSet = names.iter().filter_map(|name| Permission::from_name(&string(name))).collect();
    if let (Some(Some(resource)), false) = (row.clustering.first(), permissions.is_empty()) {
        roles.permissions.entry(role).or_default().insert(string(resource), permissions);
    }
}

/// When a column was written.
fn written(table: &TableMetadata, row: &Row, name: &str) -> Option<i64> {
    match row.column(table.column_by_name(name)?.id)? {
        ColumnData::Simple(cell) => Some(cell.timestamp),
        ColumnData::Complex(_) => None,
    }
}

fn string(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn frozen_texts(set: Option<&Bytes>) -> BTreeSet<String> {
    set.map(|set| types::collection::elements(set).map(string).collect()).unwrap_or_default()
}
