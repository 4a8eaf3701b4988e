//! The tables of `system_auth` read into a snapshot.
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

/// The roles as the tables have them now. Reads all of them: not on a worker.
pub(super) fn load(node: &Node, settings: AuthSettings) -> Result<Roles, ReadError> {
    let mut roles = Roles { settings, ..Roles::default() };
    each(node, "roles", |table, key, row| {
        let flag = |name: &str| value(table, row, name).is_some_and(|value| value.as_ref() == [1]);
        let role = Role {
            is_superuser: flag("is_superuser"),
            can_login: flag("can_login"),
            salted_hash: text(table, row, "salted_hash"),
            hash_written: written(table, row, "salted_hash"),
            member_of: elements(table, row, "member_of").iter().map(|name| string(name)).collect(),
        };
        roles.roles.insert(key, role);
    })?;
    each(node, "role_permissions", |table, key, row| {
        let names = elements(table, row, "permissions");
        let permissions: PermissionSet = names.iter().filter_map(|name| Permission::from_name(&string(name))).collect();
        if let (Some(Some(resource)), false) = (row.clustering.first(), permissions.is_empty()) {
            roles.permissions.entry(key).or_default().insert(string(resource), permissions);
        }
    })?;
    each(node, "network_permissions", |table, key, row| {
        // the key is the name of the resource
        let role = key.strip_prefix("roles/").unwrap_or(&key).to_owned();
        roles.datacenters.insert(role, frozen_texts(value(table, row, "dcs")));
    })?;
    each(node, "cidr_groups", |_, key, _| {
        roles.cidr_groups.insert(key);
    })?;
    each(node, "identity_to_role", |table, key, row| {
        roles.identities.insert(key, text(table, row, "role").unwrap_or_default());
    })?;
    Ok(roles)
}

fn each(node: &Node, name: &str, mut take: impl FnMut(&TableMetadata, String, &Row)) -> Result<(), ReadError> {
    let schema = node.schema();
    let Some(table) = schema.table("system_auth", name).map(Arc::clone) else { return Ok(()) };
    let found: Vec<(DecoratedKey, Row)> = node.read_system_rows(&table)?;
    for (key, row) in &found {
        take(&table, string(&key.key), row);
    }
    Ok(())
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
