//! ADD IDENTITY, DROP IDENTITY: names that certificates give, and the roles that they stand for.
//!
//! Must agree with: `AddIdentityStatement`, `DropIdentityStatement`.

use super::{RoleRequest, unauthorized, void_answer};
use crate::ast::{AddIdentity, DropIdentity, Permission};
use crate::auth::Resource;
use crate::coordinator::Coordinator;
use crate::error::CqlError;
use crate::result::Answer;

impl<C: Coordinator> RoleRequest<'_, C> {
    pub(super) async fn add_identity(&self, add: &AddIdentity<'_>) -> Result<Answer, CqlError> {
        let (identity, role) = (add.identity.as_str(), add.role.as_str());
        self.check_permission(Permission::Create, &Resource::AllRoles)?;
        if !self.is_super() && self.roles.roles.get(role).is_some_and(|role| role.is_superuser) {
            return Err(unauthorized("Only superusers can bind identities to a role with superuser status"));
        }
        self.require_login()?;
        if !self.roles.exists(role) {
            return Err(CqlError::invalid(format!("Can not add identity for non-existent role '{role}'")));
        }
        if self.roles.identities.contains_key(identity) {
            return match add.if_not_exists {
                true => Ok(void_answer()),
                false => Err(CqlError::invalid(format!("{identity} already exists"))),
            };
        }
        let mut changes = self.changes_of(role);
        changes.add_identity(identity, role)?;
        changes.write().await?;
        Ok(void_answer())
    }

    pub(super) async fn drop_identity(&self, drop: &DropIdentity<'_>) -> Result<Answer, CqlError> {
        let identity = drop.identity.as_str();
        let role = self.roles.identities.get(identity);
        let resource = role.map_or(Resource::AllRoles, |role| Resource::Role(role.clone()));
        self.check_permission(Permission::Drop, &resource)?;
        if !self.is_super() && role.is_some_and(|role| self.roles.is_super(role)) {
            return Err(unauthorized("Only superusers can remove identity bindings from a role with superuser status"));
        }
        self.require_login()?;
        if role.is_none() {
            return match drop.if_exists {
                true => Ok(void_answer()),
                false => Err(CqlError::invalid(format!("identity '{identity}' doesn't exist"))),
            };
        }
        let mut changes = self.changes_of(role.map_or("", String::as_str));
        changes.drop_identity(identity)?;
        changes.write().await?;
        Ok(void_answer())
    }
}
