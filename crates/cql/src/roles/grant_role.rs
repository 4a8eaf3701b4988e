//! GRANT role TO role, REVOKE role FROM role.
//!
//! Must agree with: `RoleManagementStatement`, `CassandraRoleManager.{grantRole,revokeRole}`.

use super::{RoleRequest, void_answer};
use crate::ast::{ChangeRole, Permission};
use crate::auth::Resource;
use crate::coordinator::Coordinator;
use crate::error::CqlError;
use crate::result::Answer;

impl<C: Coordinator> RoleRequest<'_, C> {
    pub(super) async fn change_role(&self, change: &ChangeRole<'_>) -> Result<Answer, CqlError> {
        let (role, grantee) = (change.role.as_str(), change.grantee.as_str());
        self.check_permission(Permission::Authorize, &Resource::Role(role.to_owned()))?;
        self.require_login()?;
        for name in [role, grantee] {
            if !self.roles.exists(name) {
                return Err(CqlError::invalid(format!("{name} doesn't exist")));
            }
        }
        if change.grant {
            for (member, of) in [(grantee, role), (role, grantee)] {
                if self.roles.all_of(member).contains(of) {
                    return Err(CqlError::invalid(format!("{member} is a member of {of}")));
                }
            }
        } else if !self.roles.direct_of(grantee).contains(role) {
            return Err(CqlError::invalid(format!("{grantee} is not a member of {role}")));
        }
        let mut changes = self.changes_of(grantee);
        changes.set_member(grantee, role, change.grant)?;
        changes.write().await?;
        Ok(void_answer())
    }
}
