//! Resources as statements name them, and the permissions that can be on them.
//!
//! Must agree with: the rule `resource` of the grammar, and what its actions refuse.

use types::CqlType;

use super::{PermissionSet, Resource};
use crate::ast::{self, ChangePermissions, Permissions, Statement};
use crate::context::NO_KEYSPACE;
use crate::error::CqlError;

/// Refuses GRANT and REVOKE of what their resource cannot have: where Cassandra's parser does.
pub(crate) fn check_applicable(statement: &Statement<'_>) -> Result<(), CqlError> {
    match statement {
        // a table without keyspace is of the connection's: which it is does not matter here
        Statement::ChangePermissions(change) => applicable(change, Some("")).map(drop),
        Statement::ListPermissions(list) => {
            list.resource.as_ref().map_or(Ok(()), |of| resource(of, Some("")).map(drop))
        }
        _ => Ok(()),
    }
}

/// The resource that a GRANT or REVOKE names, with those of the named permissions that this kind of
/// resource can have.
pub(crate) fn applicable(
    change: &ChangePermissions<'_>,
    keyspace: Option<&str>,
) -> Result<(Resource, PermissionSet), CqlError> {
    let resource = resource(&change.resource, keyspace)?;
    check_functions(&resource)?;
    let permissions = permission_set(&change.permissions).intersection(resource.applicable());
    if permissions.is_empty() {
        let class = resource.class();
        let message = format!("Resource type {class} does not support any of the requested permissions");
        return Err(CqlError::Syntax(message));
    }
    Ok((resource, permissions))
}

fn check_functions(resource: &Resource) -> Result<(), CqlError> {
    match resource {
        Resource::KeyspaceFunctions(keyspace) | Resource::Function(keyspace, ..) if keyspace == "system" => {
            Err(CqlError::invalid("Altering permissions on builtin functions is not supported"))
        }
        _ => Ok(()),
    }
}

/// Permissions as a set.
pub(crate) fn permission_set(permissions: &Permissions) -> PermissionSet {
    match permissions {
        Permissions::All => PermissionSet::ALL,
        Permissions::Some(some) => some.iter().copied().collect(),
    }
}

/// The resource that a statement names. `keyspace` is the connection's.
pub(crate) fn resource(named: &ast::Resource<'_>, keyspace: Option<&str>) -> Result<Resource, CqlError> {
    let text = |ident: &ast::Ident<'_>| ident.as_str().to_owned();
    Ok(match named {
        ast::Resource::AllKeyspaces => Resource::AllKeyspaces,
        ast::Resource::Keyspace(keyspace) => Resource::Keyspace(text(keyspace)),
        ast::Resource::AllTables(keyspace) => Resource::AllTables(text(keyspace)),
        ast::Resource::Table(name) => {
            let keyspace = name.keyspace().or(keyspace).ok_or_else(|| CqlError::invalid(NO_KEYSPACE))?;
            Resource::Table(keyspace.to_owned(), text(&name.name))
        }
        ast::Resource::AllRoles => Resource::AllRoles,
        ast::Resource::Role(role) => Resource::Role(text(role)),
        ast::Resource::AllFunctions => Resource::AllFunctions,
        ast::Resource::KeyspaceFunctions(keyspace) => Resource::KeyspaceFunctions(text(keyspace)),
        ast::Resource::Function(name, arguments) => function(name, arguments)?,
        ast::Resource::AllMbeans => Resource::AllMbeans,
        ast::Resource::Mbean(name) | ast::Resource::Mbeans(name) => {
            if !name.contains(':') || !name.contains(['=', '*']) {
                return Err(CqlError::Syntax(format!("{name} is not a valid JMX object name")));
            }
            Resource::Mbean(name.to_string())
        }
    })
}

fn function(name: &ast::QualifiedName<'_>, arguments: &[ast::TypeName<'_>]) -> Result<Resource, CqlError> {
    let Some(keyspace) = name.keyspace() else {
        return Err(CqlError::invalid("In this context function name must be explictly qualified by a keyspace"));
    };
    let types: Result<Vec<_>, CqlError> = arguments.iter().map(argument_type).collect();
    Ok(Resource::function(keyspace, name.name.as_str(), &types?))
}

/// The type of an argument. User types are refused: a permission on a function that takes one is
/// granted on all functions of its keyspace.
fn argument_type(name: &ast::TypeName<'_>) -> Result<CqlType, CqlError> {
    let text = name.to_string();
    types::cql_name::parse(&text, &|_| None)
        .ok_or_else(|| CqlError::invalid(format!("The type {text} is not supported for arguments of functions here")))
}
