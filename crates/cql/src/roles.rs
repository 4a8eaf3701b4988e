//! Statements on roles and permissions. What they need to know stands in a snapshot
//! ([`crate::auth::Roles`]); what they change are rows of `system_auth`, written by statements of
//! CQL as Cassandra writes them ([`store`]), after which the snapshot follows.
//!
//! Of each statement the steps are Cassandra's, in its order: may he (`authorize`), can it be
//! (`validate`), do it (`execute`).
//! Must agree with:
//! `org.apache.cassandra.cql3.statements.{AuthenticationStatement,AuthorizationStatement}` and what
//! inherits them.

mod alter;
mod create;
mod drop;
mod grant_role;
mod identities;
mod list_permissions;
mod list_roles;
mod options;
mod permissions;
pub(crate) mod store;

use std::sync::Arc;

use types::CqlType;

use crate::ast::{Permission, Resource as NamedResource, RoleOption, Statement};
use crate::auth::{Access, Resource, Roles, RolesOf};
use crate::coordinator::Coordinator;
use crate::error::CqlError;
use crate::options::{ClientState, QueryOptions};
use crate::result::{Answer, ColumnSpec, CqlResult, ResultMetadata, ResultSet};

/// The request that a statement on roles belongs to: the user who asks, and the roles at that
/// moment.
pub(crate) struct RoleRequest<'a, C> {
    coordinator: &'a C,
    options: &'a QueryOptions,
    roles: Arc<Roles>,
    /// None: nobody has to log in here.
    access: Option<&'a Access>,
    /// The connection's keyspace.
    keyspace: Option<&'a str>,
}

/// Whether a statement is one of these.
pub(crate) fn is_of_roles(statement: &Statement<'_>) -> bool {
    matches!(
        statement,
        Statement::CreateRole(_)
            | Statement::AlterRole(_)
            | Statement::DropRole(_)
            | Statement::ListRoles(_)
            | Statement::AddIdentity(_)
            | Statement::DropIdentity(_)
            | Statement::ChangePermissions(_)
            | Statement::ChangeRole(_)
            | Statement::ListPermissions(_)
    )
}

/// Executes a statement on roles.
pub(crate) async fn execute<C: Coordinator>(
    statement: &Statement<'_>,
    options: &QueryOptions,
    client: &ClientState,
    coordinator: &C,
) -> Result<Answer, CqlError> {
    let names = roles_named_in(statement);
    let needed = names.as_deref().map_or(RolesOf::Everybody, RolesOf::Named);
    let roles = coordinator.roles(needed).await?;
    let (access, keyspace) = (client.access.as_deref(), client.keyspace.as_deref());
    let request = RoleRequest { coordinator, options, roles, access, keyspace };
    match statement {
        Statement::CreateRole(create) => request.create(create).await,
        Statement::AlterRole(alter) => request.alter(alter).await,
        Statement::DropRole(drop) => request.drop_role(drop).await,
        Statement::ListRoles(list) => request.list_roles(list),
        Statement::AddIdentity(add) => request.add_identity(add).await,
        Statement::DropIdentity(drop) => request.drop_identity(drop).await,
        Statement::ChangePermissions(change) => request.change_permissions(change).await,
        Statement::ChangeRole(change) => request.change_role(change).await,
        Statement::ListPermissions(list) => request.list_permissions(list),
        _ => Err(CqlError::Server("not a statement on roles".to_owned())),
    }
}

/// The roles that a statement has to know; None: all of them, or their identities or CIDR groups.
/// Fewer roles are on fewer nodes, which may not all be up.
fn roles_named_in<'a>(statement: &'a Statement<'_>) -> Option<Vec<&'a str>> {
    match statement {
        Statement::AlterRole(alter) if !alter.options.iter().any(is_of_cidr) => Some(vec![alter.name.as_str()]),
        Statement::ChangeRole(change) => Some(vec![change.role.as_str(), change.grantee.as_str()]),
        Statement::ListRoles(list) => list.of.as_ref().map(|role| vec![role.as_str()]),
        Statement::ListPermissions(list) if list.resource.is_none() => list.of.as_ref().map(|role| vec![role.as_str()]),
        Statement::ChangePermissions(change) if !matches!(change.resource, NamedResource::Role(_)) => {
            Some(vec![change.role.as_str()])
        }
        _ => None,
    }
}

fn is_of_cidr(option: &RoleOption<'_>) -> bool {
    matches!(option, RoleOption::Cidrs(_) | RoleOption::AllCidrs)
}

impl<C: Coordinator> RoleRequest<'_, C> {
    fn is_super(&self) -> bool {
        self.access.is_some_and(|access| access.is_super)
    }

    /// The permission is needed; the refusal does not say which.
    fn check_permission(&self, permission: Permission, resource: &Resource) -> Result<(), CqlError> {
        let Some(access) = self.access else { return Ok(()) };
        access.check(permission, resource).map_err(|_| {
            let user = &access.user;
            unauthorized(format!("User {user} does not have sufficient privileges to perform the requested operation"))
        })
    }

    /// The access of the user. A client that has not logged in is refused: it learns nothing of
    /// roles.
    fn require_login(&self) -> Result<&Access, CqlError> {
        let Some(access) = self.access else {
            return Err(unauthorized("You have to be logged in and not anonymous to perform this request"));
        };
        access.check_login()?;
        Ok(access)
    }
}

fn unauthorized(message: impl Into<String>) -> CqlError {
    CqlError::Unauthorized(message.into())
}

fn void_answer() -> Answer {
    CqlResult::Void.into()
}

/// Rows of a table that does not exist: LIST shows them.
struct Listing {
    metadata: ResultMetadata,
    rows: Vec<u8>,
    row_count: u32,
}

impl Listing {
    fn new(table: &str, columns: &[(&str, CqlType)]) -> Self {
        let (keyspace, table): (Arc<str>, Arc<str>) = (Arc::from("system_auth"), Arc::from(table));
        let column = |(name, ty): &(&str, CqlType)| ColumnSpec {
            keyspace: Arc::clone(&keyspace),
            table: Arc::clone(&table),
            name: Arc::from(*name),
            ty: ty.clone(),
        };
        Self {
            metadata: ResultMetadata { columns: columns.iter().map(column).collect() },
            rows: Vec::new(),
            row_count: 0,
        }
    }

    /// A row of serialized values.
    fn row(&mut self, values: &[&[u8]]) {
        for value in values {
            let length = i32::try_from(value.len()).expect("names are short");
            self.rows.extend_from_slice(&length.to_be_bytes());
            self.rows.extend_from_slice(value);
        }
        self.row_count += 1;
    }

    fn finish(self) -> Answer {
        let Self { metadata, rows, row_count } = self;
        CqlResult::Rows(ResultSet { metadata: Arc::new(metadata), rows: rows.into(), row_count, paging_state: None })
            .into()
    }
}
