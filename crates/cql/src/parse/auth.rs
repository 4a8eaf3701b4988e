//! `GRANT`, `REVOKE`, `LIST`.
//!
//! Must agree with: the rules `grantPermissionsStatement`, `revokePermissionsStatement`,
//! `grantRoleStatement`, `revokeRoleStatement`, `listPermissionsStatement`, `listRolesStatement`,
//! `listUsersStatement`, `permissionOrAll`, `resource`.

use super::{Parser, Result};
use crate::ast::{
    ChangePermissions, ChangeRole, Ident, ListPermissions, ListRoles, Permission, Permissions, Resource, Statement,
};
use crate::lexer::{Keyword, Kind};

impl<'a> Parser<'a> {
    pub(super) fn grant_or_revoke(&mut self) -> Result<Statement<'a>> {
        let grant = self.at_keyword(Keyword::Grant);
        self.advance()?;
        if !self.at_permissions() {
            let role = self.role_name()?;
            let grantee = self.grantee(grant)?;
            return Ok(Statement::ChangeRole(ChangeRole { grant, role, grantee }));
        }
        let permissions = self.permissions()?;
        self.expect_keyword(Keyword::On)?;
        let resource = self.resource()?;
        let role = self.grantee(grant)?;
        Ok(Statement::ChangePermissions(ChangePermissions { grant, permissions, resource, role }))
    }

    /// `TO role` of a grant, `FROM role` of a revocation.
    fn grantee(&mut self, grant: bool) -> Result<Ident<'a>> {
        self.expect_keyword(if grant { Keyword::To } else { Keyword::From })?;
        self.role_name()
    }

    /// Whether a permission begins here, and not a role with the name of one.
    fn at_permissions(&self) -> bool {
        match self.token.kind {
            Kind::Keyword(Keyword::All | Keyword::Unmask | Keyword::SelectMasked) => matches!(
                self.peek(),
                Kind::Comma | Kind::Keyword(Keyword::On | Keyword::Permission | Keyword::Permissions)
            ),
            Kind::Keyword(keyword) => permission(keyword).is_some(),
            _ => false,
        }
    }

    fn permissions(&mut self) -> Result<Permissions> {
        if self.accept_keyword(Keyword::All)? {
            self.accept_keyword(Keyword::Permissions)?;
            return Ok(Permissions::All);
        }
        Ok(Permissions::Some(self.comma_separated(Self::permission)?))
    }

    fn permission(&mut self) -> Result<Permission> {
        let Kind::Keyword(keyword) = self.token.kind else {
            return Err(self.expected("a permission"));
        };
        let Some(permission) = permission(keyword) else {
            return Err(self.expected("a permission"));
        };
        self.advance()?;
        self.accept_keyword(Keyword::Permission)?;
        Ok(permission)
    }

    fn resource(&mut self) -> Result<Resource<'a>> {
        match (self.token.kind, self.peek()) {
            (Kind::Keyword(Keyword::All), Kind::Keyword(what)) => self.all_of(what),
            (Kind::Keyword(Keyword::Keyspace | Keyword::Schema), _) => {
                self.advance()?;
                self.keyspace_name().map(Resource::Keyspace)
            }
            (Kind::Keyword(Keyword::Role), next) if !ends_table(next) => {
                self.advance()?;
                self.role_name().map(Resource::Role)
            }
            (Kind::Keyword(Keyword::Function), next) if !ends_table(next) => {
                self.advance()?;
                let name = self.function_name()?;
                Ok(Resource::Function(name, self.parenthesised_or_empty(Self::type_name)?))
            }
            (Kind::Keyword(Keyword::Mbean), Kind::String | Kind::DollarString) => {
                self.advance()?;
                self.string("the name of an MBean").map(Resource::Mbean)
            }
            (Kind::Keyword(Keyword::Mbeans), Kind::String | Kind::DollarString) => {
                self.advance()?;
                self.string("a pattern of MBeans").map(Resource::Mbeans)
            }
            _ => {
                self.accept_keyword(Keyword::Table)?;
                self.table_name().map(Resource::Table)
            }
        }
    }

    /// `ALL …`, or a table called `all`; `what` is the next token.
    fn all_of(&mut self, what: Keyword) -> Result<Resource<'a>> {
        let of = match what {
            Keyword::Keyspaces => Resource::AllKeyspaces,
            Keyword::Roles => Resource::AllRoles,
            Keyword::Mbeans => Resource::AllMbeans,
            Keyword::Functions | Keyword::Tables => {
                self.advance()?;
                self.advance()?;
                return self.all_in_keyspace(what);
            }
            _ => return self.table_name().map(Resource::Table),
        };
        self.advance()?;
        self.advance()?;
        Ok(of)
    }

    fn all_in_keyspace(&mut self, what: Keyword) -> Result<Resource<'a>> {
        if what == Keyword::Functions && !self.at_keyword(Keyword::In) {
            return Ok(Resource::AllFunctions);
        }
        self.expect_keyword(Keyword::In)?;
        self.expect_keyword(Keyword::Keyspace)?;
        let keyspace = self.keyspace_name()?;
        Ok(match what {
            Keyword::Functions => Resource::KeyspaceFunctions(keyspace),
            _ => Resource::AllTables(keyspace),
        })
    }

    pub(super) fn list(&mut self) -> Result<Statement<'a>> {
        self.expect_keyword(Keyword::List)?;
        if self.accept_keyword(Keyword::Users)? {
            return Ok(Statement::ListRoles(ListRoles { users: true, of: None, recursive: true }));
        }
        if self.accept_keyword(Keyword::Roles)? {
            let of = self.optional_of()?;
            let recursive = !self.accept_keyword(Keyword::Norecursive)?;
            return Ok(Statement::ListRoles(ListRoles { users: false, of, recursive }));
        }
        let permissions = self.permissions()?;
        let resource = match self.accept_keyword(Keyword::On)? {
            true => Some(self.resource()?),
            false => None,
        };
        let of = self.optional_of()?;
        let recursive = !self.accept_keyword(Keyword::Norecursive)?;
        Ok(Statement::ListPermissions(ListPermissions { permissions, resource, of, recursive }))
    }

    fn optional_of(&mut self) -> Result<Option<Ident<'a>>> {
        match self.accept_keyword(Keyword::Of)? {
            true => self.role_name().map(Some),
            false => Ok(None),
        }
    }
}

/// Whether a token ends the name of a table as a resource: then the word before was that table.
fn ends_table(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Dot
            | Kind::End
            | Kind::Semicolon
            | Kind::Keyword(Keyword::To | Keyword::From | Keyword::Of | Keyword::Norecursive)
    )
}

fn permission(keyword: Keyword) -> Option<Permission> {
    Some(match keyword {
        Keyword::Create => Permission::Create,
        Keyword::Alter => Permission::Alter,
        Keyword::Drop => Permission::Drop,
        Keyword::Select => Permission::Select,
        Keyword::Modify => Permission::Modify,
        Keyword::Authorize => Permission::Authorize,
        Keyword::Describe => Permission::Describe,
        Keyword::Execute => Permission::Execute,
        Keyword::Unmask => Permission::Unmask,
        Keyword::SelectMasked => Permission::SelectMasked,
        _ => return None,
    })
}
