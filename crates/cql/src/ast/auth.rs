//! Roles, permissions, identities.
//!
//! Must agree with: Cassandra's rules `grant…`, `revoke…`, `list…`, `…RoleStatement`,
//! `…UserStatement`, `…IdentityStatement`, `resource`, and `Permission`.

use std::borrow::Cow;

use super::{Ident, Literal, QualifiedName, TypeName};

/// `CREATE ROLE`, `CREATE USER`.
#[derive(Debug, Clone)]
pub struct CreateRole<'a> {
    /// The role.
    pub name: Ident<'a>,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// Its options. `CREATE USER` always gives `LOGIN` and `SUPERUSER`.
    pub options: Vec<RoleOption<'a>>,
}

/// `ALTER ROLE`, `ALTER USER`.
#[derive(Debug, Clone)]
pub struct AlterRole<'a> {
    /// The role.
    pub name: Ident<'a>,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// The options that change.
    pub options: Vec<RoleOption<'a>>,
}

/// One option of a role.
#[derive(Debug, Clone)]
pub enum RoleOption<'a> {
    /// `PASSWORD = '…'`.
    Password(Cow<'a, str>),
    /// `HASHED PASSWORD = '…'`.
    HashedPassword(Cow<'a, str>),
    /// `OPTIONS = {…}`.
    Options(Vec<(Literal<'a>, Literal<'a>)>),
    /// `SUPERUSER = …`.
    Superuser(bool),
    /// `LOGIN = …`.
    Login(bool),
    /// `ACCESS TO ALL DATACENTERS`.
    AllDatacenters,
    /// `ACCESS TO DATACENTERS {…}`.
    Datacenters(Vec<Cow<'a, str>>),
    /// `ACCESS FROM ALL CIDRS`.
    AllCidrs,
    /// `ACCESS FROM CIDRS {…}`.
    Cidrs(Vec<Cow<'a, str>>),
}

/// `DROP ROLE`, `DROP USER`.
#[derive(Debug, Clone)]
pub struct DropRole<'a> {
    /// The role.
    pub name: Ident<'a>,
    /// `IF EXISTS`.
    pub if_exists: bool,
}

/// `LIST ROLES [OF role] [NORECURSIVE]`, `LIST USERS`.
#[derive(Debug, Clone)]
pub struct ListRoles<'a> {
    /// `LIST USERS`: only those who may log in.
    pub users: bool,
    /// `OF`.
    pub of: Option<Ident<'a>>,
    /// Whether roles granted through other roles are listed.
    pub recursive: bool,
}

/// `ADD IDENTITY 'i' TO ROLE 'r'`.
#[derive(Debug, Clone)]
pub struct AddIdentity<'a> {
    /// The identity.
    pub identity: Ident<'a>,
    /// The role.
    pub role: Ident<'a>,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
}

/// `DROP IDENTITY 'i'`.
#[derive(Debug, Clone)]
pub struct DropIdentity<'a> {
    /// The identity.
    pub identity: Ident<'a>,
    /// `IF EXISTS`.
    pub if_exists: bool,
}

/// `GRANT permissions ON resource TO role`, `REVOKE permissions ON resource FROM role`.
#[derive(Debug, Clone)]
pub struct ChangePermissions<'a> {
    /// Whether they are granted or revoked.
    pub grant: bool,
    /// The permissions.
    pub permissions: Permissions,
    /// On what.
    pub resource: Resource<'a>,
    /// To or from whom.
    pub role: Ident<'a>,
}

/// `GRANT role TO role`, `REVOKE role FROM role`.
#[derive(Debug, Clone)]
pub struct ChangeRole<'a> {
    /// Whether it is granted or revoked.
    pub grant: bool,
    /// The role given.
    pub role: Ident<'a>,
    /// To or from whom.
    pub grantee: Ident<'a>,
}

/// `LIST permissions [ON resource] [OF role] [NORECURSIVE]`.
#[derive(Debug, Clone)]
pub struct ListPermissions<'a> {
    /// The permissions.
    pub permissions: Permissions,
    /// `ON`.
    pub resource: Option<Resource<'a>>,
    /// `OF`.
    pub of: Option<Ident<'a>>,
    /// Whether permissions of granted roles are listed.
    pub recursive: bool,
}

/// Which permissions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permissions {
    /// `ALL [PERMISSIONS]`.
    All,
    /// Named ones.
    Some(Vec<Permission>),
}

/// A permission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)] // they are their own words
pub enum Permission {
    Create,
    Alter,
    Drop,
    Select,
    Modify,
    Authorize,
    Describe,
    Execute,
    Unmask,
    SelectMasked,
}

/// The resource that permissions are granted on.
#[derive(Debug, Clone)]
pub enum Resource<'a> {
    /// `ALL KEYSPACES`.
    AllKeyspaces,
    /// `KEYSPACE k`.
    Keyspace(Ident<'a>),
    /// `[TABLE] t`.
    Table(QualifiedName<'a>),
    /// `ALL TABLES IN KEYSPACE k`.
    AllTables(Ident<'a>),
    /// `ALL ROLES`.
    AllRoles,
    /// `ROLE r`.
    Role(Ident<'a>),
    /// `ALL FUNCTIONS`.
    AllFunctions,
    /// `ALL FUNCTIONS IN KEYSPACE k`.
    KeyspaceFunctions(Ident<'a>),
    /// `FUNCTION f(types)`.
    Function(QualifiedName<'a>, Vec<TypeName<'a>>),
    /// `ALL MBEANS`.
    AllMbeans,
    /// `MBEAN '…'`.
    Mbean(Cow<'a, str>),
    /// `MBEANS '…'`.
    Mbeans(Cow<'a, str>),
}
