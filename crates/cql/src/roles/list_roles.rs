//! LIST ROLES [OF role] [NORECURSIVE], LIST USERS.
//!
//! Must agree with: `ListRolesStatement`, `ListUsersStatement`.

use std::collections::BTreeSet;
use std::sync::Arc;

use types::CqlType;

use super::{Listing, RoleRequest, unauthorized, void_answer};
use crate::ast::{ListRoles, Permission};
use crate::auth::Resource;
use crate::coordinator::Coordinator;
use crate::error::CqlError;
use crate::result::Answer;

/// A map of nothing.
const NO_OPTIONS: [u8; 4] = [0; 4];

impl<C: Coordinator> RoleRequest<'_, C> {
    pub(super) fn list_roles(&self, list: &ListRoles<'_>) -> Result<Answer, CqlError> {
        let access = self.require_login()?;
        let of = list.of.as_ref().map(|role| role.as_str());
        if let Some(role) = of
            && !self.roles.exists(role)
        {
            return Err(CqlError::invalid(format!("<role {role}> doesn't exist")));
        }
        let granted_to = |role: &str| match list.recursive && !list.users {
            true => self.roles.all_of(role),
            false => self.roles.direct_of(role),
        };
        let sees_all = access.on(&Resource::AllRoles).contains(Permission::Describe);
        let shown: BTreeSet<&str> = match of {
            None if sees_all => self.roles.roles.keys().map(String::as_str).collect(),
            None => granted_to(&access.user),
            Some(role) if sees_all || access.roles.contains(role) => granted_to(role),
            Some(role) => {
                return Err(unauthorized(format!("You are not authorized to view roles granted to {role} ")));
            }
        };
        if shown.is_empty() {
            return Ok(void_answer());
        }
        Ok(if list.users { self.users(&shown) } else { self.rows_of_roles(&shown) })
    }

    fn rows_of_roles(&self, shown: &BTreeSet<&str>) -> Answer {
        let map = CqlType::Map { key: Arc::new(CqlType::Text), value: Arc::new(CqlType::Text), frozen: true };
        let columns = [
            ("role", CqlType::Text),
            ("super", CqlType::Boolean),
            ("login", CqlType::Boolean),
            ("options", map),
            ("datacenters", CqlType::Text),
        ];
        let mut listing = Listing::new("roles", &columns);
        for name in shown {
            let Some(role) = self.roles.roles.get(*name) else { continue };
            let (is_super, can_login) = ([u8::from(role.is_superuser)], [u8::from(role.can_login)]);
            let datacenters = self.roles.datacenters_of(name);
            listing.row(&[name.as_bytes(), &is_super, &can_login, &NO_OPTIONS, datacenters.as_bytes()]);
        }
        listing.finish()
    }

    fn users(&self, shown: &BTreeSet<&str>) -> Answer {
        let columns = [("name", CqlType::Text), ("super", CqlType::Boolean), ("datacenters", CqlType::Text)];
        let mut listing = Listing::new("users", &columns);
        for name in shown.iter().filter(|name| self.roles.can_login(name)) {
            let is_super = [u8::from(self.roles.is_super(name))];
            listing.row(&[name.as_bytes(), &is_super, self.roles.datacenters_of(name).as_bytes()]);
        }
        listing.finish()
    }
}
