//! LIST permissions [ON resource] [OF role] [NORECURSIVE].
//!
//! Must agree with: `ListPermissionsStatement`, `CassandraAuthorizer.list`.

use std::collections::BTreeSet;

use types::CqlType;

use super::{Listing, RoleRequest, unauthorized, void_answer};
use crate::ast::{ListPermissions, Permission};
use crate::auth::{self, Access, PermissionSet, Resource, exists};
use crate::coordinator::Coordinator;
use crate::error::CqlError;
use crate::result::Answer;

impl<C: Coordinator> RoleRequest<'_, C> {
    pub(super) fn list_permissions(&self, list: &ListPermissions<'_>) -> Result<Answer, CqlError> {
        let access = self.require_login()?;
        let resource = list.resource.as_ref().map(|named| auth::resource(named, self.keyspace)).transpose()?;
        if let Some(resource) = &resource
            && !exists(resource, &self.roles, &self.coordinator.schema())
        {
            return Err(CqlError::invalid(format!("{resource} doesn't exist")));
        }
        let of = list.of.as_ref().map(|role| role.as_str());
        if let Some(role) = of
            && !self.roles.exists(role)
        {
            return Err(CqlError::invalid(format!("<role {role}> doesn't exist")));
        }
        if !self.roles.settings.authorizes {
            return Err(CqlError::invalid("LIST PERMISSIONS operation is not supported by AllowAllAuthorizer"));
        }
        check_visible(access, of)?;
        let names: Option<BTreeSet<String>> = resource.map(|resource| match list.recursive {
            true => resource.chain().map(|resource| resource.name()).collect(),
            false => BTreeSet::from([resource.name()]),
        });
        Ok(self.rows(auth::permission_set(&list.permissions), names.as_ref(), of))
    }

    /// Of one role with what it inherits, or of everybody; on some resources, or on all.
    fn rows(&self, asked: PermissionSet, names: Option<&BTreeSet<String>>, of: Option<&str>) -> Answer {
        let mut listing = Listing::new(
            "permissions",
            &[
                ("role", CqlType::Text),
                ("username", CqlType::Text),
                ("resource", CqlType::Text),
                ("permission", CqlType::Text),
            ],
        );
        let of = of.map(|role| self.roles.all_of(role));
        let of_role = |role: &str| of.as_ref().is_none_or(|roles| roles.contains(role));
        for (role, resources) in self.roles.permissions.iter().filter(|(role, _)| of_role(role)) {
            for (name, permissions) in
                resources.iter().filter(|(name, _)| names.is_none_or(|names| names.contains(*name)))
            {
                let shown = Resource::from_name(name).map_or_else(|| name.clone(), |resource| resource.to_string());
                for permission in permissions.intersection(asked).iter() {
                    let (role, name) = (role.as_bytes(), permission.name().as_bytes());
                    listing.row(&[role, role, shown.as_bytes(), name]);
                }
            }
        }
        if listing.row_count == 0 { void_answer() } else { listing.finish() }
    }
}

/// Everybody sees what he himself has; of others who may describe them.
fn check_visible(access: &Access, of: Option<&str>) -> Result<(), CqlError> {
    let describes = |resource: &Resource| access.on(resource).contains(Permission::Describe);
    let visible = access.is_super
        || of.is_some_and(|role| access.roles.contains(role))
        || describes(&Resource::AllRoles)
        || of.is_some_and(|role| describes(&Resource::Role(role.to_owned())));
    if visible {
        return Ok(());
    }
    Err(unauthorized(format!("You are not authorized to view {}'s permissions", of.unwrap_or("everyone"))))
}
