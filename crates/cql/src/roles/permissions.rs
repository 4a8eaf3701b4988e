//! GRANT permissions ON resource TO role, REVOKE permissions ON resource FROM role.
//!
//! Must agree with: `PermissionsManagementStatement`, `GrantPermissionsStatement`,
//! `RevokePermissionsStatement`.

use schema::system;

use super::{RoleRequest, store, unauthorized};
use crate::ast::{ChangePermissions, Permission};
use crate::auth::{self, PermissionSet, Resource, exists};
use crate::coordinator::Coordinator;
use crate::error::CqlError;
use crate::result::{Answer, CqlResult};

/// All that can be granted on what belongs to the system.
const ON_SYSTEM: PermissionSet = PermissionSet::of(&[Permission::Select, Permission::Describe, Permission::Alter]);

impl<C: Coordinator> RoleRequest<'_, C> {
    pub(super) async fn change_permissions(&self, change: &ChangePermissions<'_>) -> Result<Answer, CqlError> {
        let (resource, permissions) = auth::applicable(change, self.keyspace)?;
        let role = change.role.as_str();
        if let Some(access) = self.access {
            access.check(Permission::Authorize, &resource)?;
            permissions.iter().try_for_each(|permission| access.check(permission, &resource))?;
        }
        self.require_login()?;
        if !self.roles.exists(role) {
            return Err(CqlError::invalid(format!("Role {role} doesn't exist")));
        }
        if !exists(&resource, &self.roles, &self.coordinator.schema()) {
            return Err(CqlError::invalid(format!("Resource {resource} doesn't exist")));
        }
        if change.grant && is_of_system(&resource) && !permissions.without(ON_SYSTEM).is_empty() {
            return Err(unauthorized(
                "Granting permissions on system keyspaces is strictly limited, this operation is not permitted",
            ));
        }
        if !self.roles.settings.authorizes {
            let verb = if change.grant { "GRANT" } else { "REVOKE" };
            // an exception that nobody there turns into a refusal
            return Err(CqlError::Server(format!(
                "java.lang.UnsupportedOperationException: {verb} operation is not supported by AllowAllAuthorizer"
            )));
        }
        self.write(role, &resource, permissions, change.grant).await
    }

    async fn write(
        &self,
        role: &str,
        resource: &Resource,
        permissions: PermissionSet,
        grant: bool,
    ) -> Result<Answer, CqlError> {
        let before = self.roles.granted(role, &resource.name());
        let (changed, same) = match grant {
            true => (permissions.without(before), permissions.intersection(before)),
            false => (permissions.intersection(before), permissions.without(before)),
        };
        let mut changes = store::RoleBatch::new(self.coordinator, self.options, self.roles.settings.write_level);
        match grant {
            true => store::grant(&mut changes, role, resource, changed)?,
            false => store::revoke(&mut changes, role, resource, changed, before)?,
        }
        changes.write().await?;
        let was = if grant { "already" } else { "not" };
        let warning = format!("Role '{role}' was {was} granted {} on {resource}", same.names());
        let warnings = if same.is_empty() { Vec::new() } else { vec![warning] };
        Ok(Answer { result: CqlResult::Void, warnings })
    }
}

fn is_of_system(resource: &Resource) -> bool {
    let is_stored =
        |keyspace: &str| system::is_local_keyspace(keyspace) || system::REPLICATED_KEYSPACES.contains(&keyspace);
    resource.data_keyspace().is_some_and(is_stored)
}
