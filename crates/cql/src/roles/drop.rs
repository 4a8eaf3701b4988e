//! DROP ROLE, DROP USER.
//!
//! Must agree with: `DropRoleStatement`, `CassandraRoleManager.dropRole`,
//! `CassandraAuthorizer.{revokeAllFrom,revokeAllOn}`.

use super::{RoleRequest, store, unauthorized, void_answer};
use crate::ast::{DropRole, Permission};
use crate::auth::Resource;
use crate::coordinator::Coordinator;
use crate::error::CqlError;
use crate::result::Answer;

impl<C: Coordinator> RoleRequest<'_, C> {
    pub(super) async fn drop_role(&self, drop: &DropRole<'_>) -> Result<Answer, CqlError> {
        let name = drop.name.as_str();
        let role = Resource::Role(name.to_owned());
        self.check_permission(Permission::Drop, &role)?;
        if self.roles.is_super(name) && !self.is_super() {
            return Err(unauthorized("Only superusers can drop a role with superuser status"));
        }
        let access = self.require_login()?;
        if !drop.if_exists && !self.roles.exists(name) {
            return Err(CqlError::invalid(format!("{name} doesn't exist")));
        }
        if *access.user == *name {
            return Err(CqlError::invalid("Cannot DROP primary role for current login"));
        }
        if !self.roles.exists(name) {
            return Ok(void_answer());
        }
        let mut changes = self.changes_of(name);
        changes.drop_role(name, &self.roles)?;
        if self.roles.settings.authorizes {
            store::revoke_all_from(&mut changes, name, &self.roles)?;
            store::revoke_all_on(&mut changes, &role, &self.roles)?;
        }
        if self.roles.settings.restricts_datacenters {
            changes.drop_datacenters(name)?;
        }
        changes.drop_cidr_groups(name)?;
        changes.write().await?;
        Ok(void_answer())
    }
}
