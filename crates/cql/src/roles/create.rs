//! CREATE ROLE, CREATE USER.
//!
//! Must agree with: `CreateRoleStatement`, `CassandraRoleManager.createRole`.

use super::options::Options;
use super::{RoleRequest, store, unauthorized, void_answer};
use crate::ast::{CreateRole, Permission};
use crate::auth::Resource;
use crate::coordinator::Coordinator;
use crate::error::CqlError;
use crate::result::Answer;

impl<C: Coordinator> RoleRequest<'_, C> {
    pub(super) async fn create(&self, create: &CreateRole<'_>) -> Result<Answer, CqlError> {
        let (name, options) = (create.name.as_str(), Options::of(&create.options));
        self.check_permission(Permission::Create, &Resource::AllRoles)?;
        if options.superuser == Some(true) && !self.is_super() {
            return Err(unauthorized("Only superusers can create a role with superuser status"));
        }
        options.validate(&self.roles)?;
        if name.is_empty() {
            return Err(CqlError::invalid("Role name can't be an empty string"));
        }
        options.validate_origins(&self.roles, &self.coordinator.cluster().data_centers)?;
        let access = self.require_login()?;
        if self.roles.exists(name) {
            return match create.if_not_exists {
                true => Ok(void_answer()),
                false => Err(CqlError::invalid(format!("{name} already exists"))),
            };
        }
        if self.roles.identities.values().any(|role| role == name) {
            let why = format!("Cannot create a role '{name}' when identities already exists for it");
            return Err(CqlError::Server(why));
        }
        let hash = match (options.hashed, options.password) {
            (Some(hash), _) => Some(hash.to_owned()),
            (None, Some(password)) => Some(self.coordinator.hash_password(password.to_owned()).await?),
            (None, None) => None,
        };
        let mut changes = self.changes_of(name);
        changes.create_role(name, options.superuser.unwrap_or(false), options.login.unwrap_or(false), hash)?;
        if self.roles.settings.restricts_datacenters {
            changes.set_datacenters(name, &options.datacenters.unwrap_or_default())?;
        }
        changes.set_cidr_groups(name, &options.cidrs.unwrap_or_default())?;
        if self.roles.settings.authorizes {
            let role = Resource::Role(name.to_owned());
            let missing = role.applicable().without(self.roles.granted(&access.user, &role.name()));
            store::grant(&mut changes, &access.user, &role, missing)?;
        }
        changes.write().await?;
        Ok(void_answer())
    }
}
