//! ALTER ROLE, ALTER USER.
//!
//! Must agree with: `AlterRoleStatement`, `CassandraRoleManager.alterRole`.

use super::options::Options;
use super::{RoleRequest, unauthorized, void_answer};
use crate::ast::{AlterRole, Permission};
use crate::auth::{Access, Resource};
use crate::coordinator::Coordinator;
use crate::error::CqlError;
use crate::result::Answer;

/// Between two changes of a role's password (`cassandra.role_password_update_min_interval_in_ms`).
const PASSWORD_INTERVAL_MS: i64 = 5000;

impl<C: Coordinator> RoleRequest<'_, C> {
    pub(super) async fn alter(&self, alter: &AlterRole<'_>) -> Result<Answer, CqlError> {
        let (name, options) = (alter.name.as_str(), Options::of(&alter.options));
        self.may_alter(name, &options)?;
        options.validate(&self.roles)?;
        if options.is_empty() && options.datacenters.is_none() && options.cidrs.is_none() {
            return Err(CqlError::invalid("ALTER [ROLE|USER] can't be empty"));
        }
        options.validate_origins(&self.roles, &self.coordinator.cluster().data_centers)?;
        self.require_login()?;
        if !self.roles.exists(name) {
            return match alter.if_exists {
                true => Ok(void_answer()),
                false => Err(CqlError::invalid(format!("Role {name} doesn't exist"))),
            };
        }
        if options.datacenters.is_some() && !self.roles.settings.restricts_datacenters {
            return Err(CqlError::invalid(
                "ACCESS TO DATACENTERS operations not supported by AllowAllNetworkAuthorizer",
            ));
        }
        if options.password.is_some() {
            self.check_recent_password(name)?;
        }
        let hash = match (options.hashed, options.password) {
            (Some(hash), _) => Some(hash.to_owned()),
            (None, Some(password)) => Some(self.coordinator.hash_password(password.to_owned()).await?),
            (None, None) => None,
        };
        let mut changes = self.changes_of(name);
        changes.alter_role(name, options.superuser, options.login, hash)?;
        if let Some(datacenters) = &options.datacenters {
            changes.set_datacenters(name, datacenters)?;
        }
        if let Some(groups) = &options.cidrs {
            changes.set_cidr_groups(name, groups)?;
        }
        changes.write().await?;
        Ok(void_answer())
    }

    /// A password was set a moment ago: hashing takes long, and this may not be used to keep the
    /// node busy.
    fn check_recent_password(&self, name: &str) -> Result<(), CqlError> {
        let written = self.roles.roles.get(name).and_then(|role| role.hash_written);
        let since = |written: i64| self.coordinator.now_micros().saturating_sub(written) / 1000;
        match written {
            Some(written) if since(written) <= PASSWORD_INTERVAL_MS => Err(CqlError::Overloaded(format!(
                "Password for role {name} can only be changed every {PASSWORD_INTERVAL_MS}ms."
            ))),
            _ => Ok(()),
        }
    }

    /// An anonymous client is turned away later, with the sentence for it.
    fn may_alter(&self, name: &str, options: &Options<'_>) -> Result<(), CqlError> {
        let is_super = self.is_super();
        if options.superuser.is_some() && self.access.is_some_and(|access| access.roles.contains(name)) {
            return Err(unauthorized(
                "You aren't allowed to alter your own superuser status or that of a role granted to you",
            ));
        }
        for (given, what) in [
            (options.superuser.is_some(), "superuser status"),
            (options.datacenters.is_some(), "access to datacenters."),
            (options.cidrs.is_some(), "access from CIDR groups."),
        ] {
            if given && !is_super {
                return Err(unauthorized(format!("Only superusers are allowed to alter {what}")));
            }
        }
        match self.access {
            Some(access) if !is_super => self.may_alter_without_superuser(access, name, options),
            _ => Ok(()),
        }
    }

    /// Of himself one may change the password; of others with ALTER everything but what is a
    /// superuser's.
    fn may_alter_without_superuser(&self, access: &Access, name: &str, options: &Options<'_>) -> Result<(), CqlError> {
        if *access.user != *name {
            return self.check_permission(Permission::Alter, &Resource::Role(name.to_owned()));
        }
        if options.login.is_some() {
            return Err(unauthorized("You aren't allowed to alter LOGIN"));
        }
        Ok(())
    }
}
