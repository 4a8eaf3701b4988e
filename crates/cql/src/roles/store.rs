//! The rows of `system_auth` that statements change, written by the statements of CQL that
//! Cassandra writes them with.
//!
//! All that one statement changes is one write: on one node its records stand side by side in the
//! log. The key of `network_permissions` is the resource's name (`roles/NAME`), not the role's, as
//! there. Different from Cassandra: the row in the index of resources goes only with the last
//! permission, so that dropping the resource finds them all.
//! Must agree with: `CassandraRoleManager`, `CassandraAuthorizer`, `CassandraNetworkAuthorizer`,
//! `CIDRPermissionsManager`.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use schema::Schema;
use types::{BatchKind, Consistency};

use super::RoleRequest;
use crate::auth::{PermissionSet, Resource, Roles};
use crate::coordinator::Coordinator;
use crate::error::CqlError;
use crate::options::{Limits, QueryOptions};
use crate::prepare::{PreparedStatement, prepare};
use crate::statements::{batch, modification};
use crate::values::BoundValue;

/// Statements on the tables of roles that are executed as one batch.
pub(crate) struct RoleBatch<'a, C> {
    coordinator: &'a C,
    options: &'a QueryOptions,
    schema: Arc<Schema>,
    /// The level at which they are written.
    level: Consistency,
    statements: Vec<(PreparedStatement, Vec<BoundValue>)>,
}

impl<'a, C: Coordinator> RoleRequest<'a, C> {
    /// Changes that belong to a role: it says the level at which they are written.
    pub(super) fn changes_of(&self, role: &str) -> RoleBatch<'a, C> {
        RoleBatch::new(self.coordinator, self.options, self.roles.settings.write_level_of(role))
    }
}

fn text(text: &str) -> BoundValue {
    BoundValue::Bytes(Bytes::copy_from_slice(text.as_bytes()))
}

fn boolean(value: bool) -> BoundValue {
    BoundValue::Bytes(Bytes::copy_from_slice(&[u8::from(value)]))
}

/// A set of texts, serialized; its elements must come in order.
fn texts<'t>(elements: impl ExactSizeIterator<Item = &'t str>) -> Result<BoundValue, CqlError> {
    let size = |size: usize| i32::try_from(size).map_err(|_| CqlError::invalid("The set is too large"));
    let mut bytes = size(elements.len())?.to_be_bytes().to_vec();
    for element in elements {
        bytes.extend_from_slice(&size(element.len())?.to_be_bytes());
        bytes.extend_from_slice(element.as_bytes());
    }
    Ok(BoundValue::Bytes(Bytes::from(bytes)))
}

fn names(permissions: PermissionSet) -> Result<BoundValue, CqlError> {
    let names: BTreeSet<&str> = permissions.iter().map(crate::ast::Permission::name).collect();
    texts(names.into_iter())
}

impl<'a, C: Coordinator> RoleBatch<'a, C> {
    /// Nothing yet, to be written at a level.
    pub(crate) fn new(coordinator: &'a C, options: &'a QueryOptions, level: Consistency) -> Self {
        Self { coordinator, options, schema: coordinator.schema(), level, statements: Vec::new() }
    }

    fn add(&mut self, query: &str, values: Vec<BoundValue>) -> Result<(), CqlError> {
        self.statements.push((prepare(query, Some("system_auth"), &self.schema)?, values));
        Ok(())
    }

    /// Writes them.
    pub(crate) async fn write(self) -> Result<(), CqlError> {
        if self.statements.is_empty() {
            return Ok(());
        }
        let statements = self.statements.iter();
        let plans = statements.map(|(prepared, values)| Ok((prepared.modification(values)?, values.as_slice())));
        let plans = plans.collect::<Result<Vec<_>, CqlError>>()?;
        // its own time and limits: not the client's
        let limits = Limits { batch_size_warn: usize::MAX, batch_size_fail: usize::MAX, ..Limits::default() };
        let protocol_version = self.options.protocol_version;
        let options = QueryOptions { consistency: self.level, protocol_version, limits, ..QueryOptions::default() };
        let timestamp = modification::default_timestamp(&options, self.coordinator);
        batch::execute_all(BatchKind::Unlogged, &plans, timestamp, &options, self.coordinator).await.map(drop)
    }

    pub(super) fn create_role(
        &mut self,
        role: &str,
        is_super: bool,
        login: bool,
        hash: Option<String>,
    ) -> Result<(), CqlError> {
        let mut values = vec![text(role), boolean(is_super), boolean(login)];
        match hash {
            Some(hash) => {
                values.push(text(&hash));
                let query = "INSERT INTO roles (role, is_superuser, can_login, salted_hash) VALUES (?, ?, ?, ?)";
                self.add(query, values)
            }
            None => self.add("INSERT INTO roles (role, is_superuser, can_login) VALUES (?, ?, ?)", values),
        }
    }

    pub(super) fn alter_role(
        &mut self,
        role: &str,
        is_super: Option<bool>,
        login: Option<bool>,
        hash: Option<String>,
    ) -> Result<(), CqlError> {
        let assignments = [
            ("is_superuser", is_super.map(boolean)),
            ("can_login", login.map(boolean)),
            ("salted_hash", hash.as_deref().map(text)),
        ];
        for (column, value) in assignments {
            if let Some(value) = value {
                self.add(&format!("UPDATE roles SET {column} = ? WHERE role = ?"), vec![value, text(role)])?;
            }
        }
        Ok(())
    }

    /// The role goes, out of its members too, and its identities.
    pub(super) fn drop_role(&mut self, role: &str, roles: &Roles) -> Result<(), CqlError> {
        self.add("DELETE FROM roles WHERE role = ?", vec![text(role)])?;
        let members = roles.roles.iter().filter(|(_, other)| other.member_of.contains(role));
        let mut has_members = false;
        for (member, _) in members {
            has_members = true;
            let query = "UPDATE roles SET member_of = member_of - ? WHERE role = ?";
            self.add(query, vec![texts([role].into_iter())?, text(member)])?;
        }
        if has_members {
            self.add("DELETE FROM role_members WHERE role = ?", vec![text(role)])?;
        }
        for (identity, _) in roles.identities.iter().filter(|(_, of)| *of == role) {
            self.drop_identity(identity)?;
        }
        Ok(())
    }

    /// A role is granted to another, or no more.
    pub(super) fn set_member(&mut self, member: &str, role: &str, is_member: bool) -> Result<(), CqlError> {
        let (update, entry) = match is_member {
            true => (
                "UPDATE roles SET member_of = member_of + ? WHERE role = ?",
                "INSERT INTO role_members (role, member) VALUES (?, ?)",
            ),
            false => (
                "UPDATE roles SET member_of = member_of - ? WHERE role = ?",
                "DELETE FROM role_members WHERE role = ? AND member = ?",
            ),
        };
        self.add(update, vec![texts([role].into_iter())?, text(member)])?;
        self.add(entry, vec![text(role), text(member)])
    }

    pub(super) fn set_datacenters(&mut self, role: &str, names: &BTreeSet<&str>) -> Result<(), CqlError> {
        let key = Resource::Role(role.to_owned()).name();
        let query = "UPDATE network_permissions SET dcs = ? WHERE role = ?";
        self.add(query, vec![texts(names.iter().copied())?, text(&key)])
    }

    pub(super) fn drop_datacenters(&mut self, role: &str) -> Result<(), CqlError> {
        let key = Resource::Role(role.to_owned()).name();
        self.add("DELETE FROM network_permissions WHERE role = ?", vec![text(&key)])
    }

    pub(super) fn set_cidr_groups(&mut self, role: &str, groups: &BTreeSet<&str>) -> Result<(), CqlError> {
        let query = "UPDATE cidr_permissions SET cidr_groups = ? WHERE role = ?";
        self.add(query, vec![texts(groups.iter().copied())?, text(role)])
    }

    pub(super) fn drop_cidr_groups(&mut self, role: &str) -> Result<(), CqlError> {
        self.add("DELETE FROM cidr_permissions WHERE role = ?", vec![text(role)])
    }

    pub(super) fn add_identity(&mut self, identity: &str, role: &str) -> Result<(), CqlError> {
        let query = "INSERT INTO identity_to_role (identity, role) VALUES (?, ?)";
        self.add(query, vec![text(identity), text(role)])
    }

    pub(super) fn drop_identity(&mut self, identity: &str) -> Result<(), CqlError> {
        self.add("DELETE FROM identity_to_role WHERE identity = ?", vec![text(identity)])
    }
}

/// A role gets permissions that it did not have.
pub(crate) fn grant<C: Coordinator>(
    changes: &mut RoleBatch<'_, C>,
    role: &str,
    resource: &Resource,
    permissions: PermissionSet,
) -> Result<(), CqlError> {
    if permissions.is_empty() {
        return Ok(());
    }
    let name = resource.name();
    let query = "UPDATE role_permissions SET permissions = permissions + ? WHERE role = ? AND resource = ?";
    changes.add(query, vec![names(permissions)?, text(role), text(&name)])?;
    changes
        .add("INSERT INTO resource_role_permissons_index (resource, role) VALUES (?, ?)", vec![text(&name), text(role)])
}

/// A role loses permissions, of those that it has.
pub(super) fn revoke<C: Coordinator>(
    changes: &mut RoleBatch<'_, C>,
    role: &str,
    resource: &Resource,
    permissions: PermissionSet,
    before: PermissionSet,
) -> Result<(), CqlError> {
    if permissions.is_empty() {
        return Ok(());
    }
    let name = resource.name();
    let query = "UPDATE role_permissions SET permissions = permissions - ? WHERE role = ? AND resource = ?";
    changes.add(query, vec![names(permissions)?, text(role), text(&name)])?;
    if before.without(permissions).is_empty() {
        let query = "DELETE FROM resource_role_permissons_index WHERE resource = ? AND role = ?";
        changes.add(query, vec![text(&name), text(role)])?;
    }
    Ok(())
}

/// A role is gone.
pub(super) fn revoke_all_from<C: Coordinator>(
    changes: &mut RoleBatch<'_, C>,
    role: &str,
    roles: &Roles,
) -> Result<(), CqlError> {
    for name in roles.permissions.get(role).into_iter().flat_map(|resources| resources.keys()) {
        let query = "DELETE FROM resource_role_permissons_index WHERE resource = ? AND role = ?";
        changes.add(query, vec![text(name), text(role)])?;
    }
    changes.add("DELETE FROM role_permissions WHERE role = ?", vec![text(role)])
}

/// A resource is gone.
pub(crate) fn revoke_all_on<C: Coordinator>(
    changes: &mut RoleBatch<'_, C>,
    resource: &Resource,
    roles: &Roles,
) -> Result<(), CqlError> {
    let name = resource.name();
    for role in roles.holders_on(&name) {
        let query = "DELETE FROM role_permissions WHERE role = ? AND resource = ?";
        changes.add(query, vec![text(role), text(&name)])?;
    }
    changes.add("DELETE FROM resource_role_permissons_index WHERE resource = ?", vec![text(&name)])
}
