//! Resources that permissions are granted on: data, roles, functions, MBeans. Each kind is a tree,
//! and permissions are inherited down the tree.
//!
//! Must agree with:
//! `org.apache.cassandra.auth.{DataResource,RoleResource,FunctionResource,JMXResource}`: names are
//! what stands in the tables, the displayed form what clients see.

use std::fmt;

use types::CqlType;

use super::PermissionSet;
use crate::ast::Permission::{Alter, Authorize, Create, Describe, Drop, Execute, Modify, Select, SelectMasked, Unmask};

/// A resource that permissions are granted on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Resource {
    /// ALL KEYSPACES
    AllKeyspaces,
    /// KEYSPACE
    Keyspace(String),
    /// ALL TABLES IN KEYSPACE
    AllTables(String),
    /// TABLE: keyspace and name.
    Table(String, String),
    /// ALL ROLES
    AllRoles,
    /// ROLE
    Role(String),
    /// ALL FUNCTIONS
    AllFunctions,
    /// ALL FUNCTIONS IN KEYSPACE
    KeyspaceFunctions(String),
    /// FUNCTION: keyspace, name, marshal classes of the arguments between `^`.
    Function(String, String, String),
    /// ALL MBEANS
    AllMbeans,
    /// MBEAN, MBEANS
    Mbean(String),
}

const ON_KEYSPACES: PermissionSet =
    PermissionSet::of(&[Create, Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked]);
const ON_TABLES: PermissionSet = PermissionSet::of(&[Alter, Drop, Select, Modify, Authorize, Unmask, SelectMasked]);
const ON_ALL_ROLES: PermissionSet = PermissionSet::of(&[Create, Alter, Drop, Authorize, Describe]);
const ON_ROLES: PermissionSet = PermissionSet::of(&[Alter, Drop, Authorize, Describe]);
const ON_ALL_FUNCTIONS: PermissionSet = PermissionSet::of(&[Create, Alter, Drop, Authorize, Execute]);
const ON_FUNCTIONS: PermissionSet = PermissionSet::of(&[Alter, Drop, Authorize, Execute]);
const ON_MBEANS: PermissionSet = PermissionSet::of(&[Authorize, Describe, Execute, Modify, Select]);

impl Resource {
    /// A function with arguments of these types.
    pub fn function<'t>(keyspace: &str, name: &str, arguments: impl IntoIterator<Item = &'t CqlType>) -> Self {
        let classes: Vec<String> = arguments.into_iter().map(|ty| types::marshal::print(ty, false)).collect();
        Self::Function(keyspace.to_owned(), name.to_owned(), classes.join("^"))
    }

    /// The permissions that can be granted on it.
    pub fn applicable(&self) -> PermissionSet {
        match self {
            Self::AllKeyspaces | Self::Keyspace(_) | Self::AllTables(_) => ON_KEYSPACES,
            Self::Table(..) => ON_TABLES,
            Self::AllRoles => ON_ALL_ROLES,
            Self::Role(_) => ON_ROLES,
            Self::AllFunctions | Self::KeyspaceFunctions(_) => ON_ALL_FUNCTIONS,
            Self::Function(..) => ON_FUNCTIONS,
            Self::AllMbeans | Self::Mbean(_) => ON_MBEANS,
        }
    }

    /// The class of the tree, as an error names it.
    pub fn class(&self) -> &'static str {
        match self {
            Self::AllKeyspaces | Self::Keyspace(_) | Self::AllTables(_) | Self::Table(..) => "DataResource",
            Self::AllRoles | Self::Role(_) => "RoleResource",
            Self::AllFunctions | Self::KeyspaceFunctions(_) | Self::Function(..) => "FunctionResource",
            Self::AllMbeans | Self::Mbean(_) => "JMXResource",
        }
    }

    /// The resource from which this one inherits permissions; None at the root of a tree.
    pub fn parent(&self) -> Option<Self> {
        Some(match self {
            Self::AllKeyspaces | Self::AllRoles | Self::AllFunctions | Self::AllMbeans => return None,
            Self::Keyspace(_) => Self::AllKeyspaces,
            Self::AllTables(keyspace) => Self::Keyspace(keyspace.clone()),
            Self::Table(keyspace, _) => Self::AllTables(keyspace.clone()),
            Self::Role(_) => Self::AllRoles,
            Self::KeyspaceFunctions(_) => Self::AllFunctions,
            Self::Function(keyspace, ..) => Self::KeyspaceFunctions(keyspace.clone()),
            Self::Mbean(_) => Self::AllMbeans,
        })
    }

    /// It, its parent, and so on to the root.
    pub fn chain(&self) -> impl Iterator<Item = Self> {
        std::iter::successors(Some(self.clone()), Self::parent)
    }

    /// The keyspace of data.
    pub fn data_keyspace(&self) -> Option<&str> {
        match self {
            Self::Keyspace(keyspace) | Self::AllTables(keyspace) | Self::Table(keyspace, _) => Some(keyspace),
            _ => None,
        }
    }

    /// How the tables name it.
    pub fn name(&self) -> String {
        match self {
            Self::AllKeyspaces => "data".to_owned(),
            Self::Keyspace(keyspace) => format!("data/{keyspace}"),
            Self::AllTables(keyspace) => format!("data/{keyspace}/*"),
            Self::Table(keyspace, table) => format!("data/{keyspace}/{table}"),
            Self::AllRoles => "roles".to_owned(),
            Self::Role(role) => format!("roles/{role}"),
            Self::AllFunctions => "functions".to_owned(),
            Self::KeyspaceFunctions(keyspace) => format!("functions/{keyspace}"),
            Self::Function(keyspace, name, arguments) => format!("functions/{keyspace}/{name}[{arguments}]"),
            Self::AllMbeans => "mbean".to_owned(),
            Self::Mbean(name) => format!("mbean/{name}"),
        }
    }

    /// By the name in the tables. None: no resource is called so.
    pub fn from_name(name: &str) -> Option<Self> {
        let (tree, rest) = match name.split_once('/') {
            None => (name, None),
            Some((tree, rest)) => (tree, Some(rest)),
        };
        Some(match (tree, rest) {
            ("data", None) => Self::AllKeyspaces,
            ("data", Some(rest)) => match rest.split_once('/') {
                None => Self::Keyspace(rest.to_owned()),
                Some((keyspace, "*")) => Self::AllTables(keyspace.to_owned()),
                Some((keyspace, table)) => Self::Table(keyspace.to_owned(), table.to_owned()),
            },
            ("roles", None) => Self::AllRoles,
            ("roles", Some(role)) => Self::Role(role.to_owned()),
            ("functions", None) => Self::AllFunctions,
            ("functions", Some(rest)) => match rest.split_once('/') {
                None => Self::KeyspaceFunctions(rest.to_owned()),
                Some((keyspace, function)) => {
                    let (name, arguments) = function.strip_suffix(']')?.rsplit_once('[')?;
                    Self::Function(keyspace.to_owned(), name.to_owned(), arguments.to_owned())
                }
            },
            ("mbean", None) => Self::AllMbeans,
            ("mbean", Some(name)) => Self::Mbean(name.to_owned()),
            _ => return None,
        })
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllKeyspaces => f.write_str("<all keyspaces>"),
            Self::Keyspace(keyspace) => write!(f, "<keyspace {keyspace}>"),
            Self::AllTables(keyspace) => write!(f, "<all tables in {keyspace}>"),
            Self::Table(keyspace, table) => write!(f, "<table {keyspace}.{table}>"),
            Self::AllRoles => f.write_str("<all roles>"),
            Self::Role(role) => write!(f, "<role {role}>"),
            Self::AllFunctions => f.write_str("<all functions>"),
            Self::KeyspaceFunctions(keyspace) => write!(f, "<all functions in {keyspace}>"),
            Self::Function(keyspace, name, arguments) => {
                let types = arguments.split('^').filter(|class| !class.is_empty());
                let types: Vec<String> = types
                    .map(|class| types::marshal::parse(class).map_or(class.to_owned(), |(ty, _)| ty.cql_name()))
                    .collect();
                write!(f, "<function {keyspace}.{name}({})>", types.join(", "))
            }
            Self::AllMbeans => f.write_str("<all mbeans>"),
            Self::Mbean(name) => write!(f, "<mbean {name}>"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_again_and_chains_end_at_their_root() {
        let text = str::to_owned;
        let each = [
            (Resource::Table(text("k"), text("t")), "data/k/t", "<table k.t>", 4),
            (Resource::AllTables(text("k")), "data/k/*", "<all tables in k>", 3),
            (Resource::Keyspace(text("k")), "data/k", "<keyspace k>", 2),
            (Resource::AllKeyspaces, "data", "<all keyspaces>", 1),
            (Resource::Role(text("a/b")), "roles/a/b", "<role a/b>", 2),
            (Resource::KeyspaceFunctions(text("k")), "functions/k", "<all functions in k>", 2),
            (
                Resource::function("k", "f", [&CqlType::Int, &CqlType::Text]),
                "functions/k/f[org.apache.cassandra.db.marshal.Int32Type^org.apache.cassandra.db.marshal.UTF8Type]",
                "<function k.f(int, text)>",
                3,
            ),
            (Resource::Mbean(text("a:type=*")), "mbean/a:type=*", "<mbean a:type=*>", 2),
        ];
        for (resource, name, shown, steps) in each {
            assert_eq!((resource.name().as_str(), resource.to_string().as_str()), (name, shown));
            assert_eq!(Resource::from_name(name).as_ref(), Some(&resource));
            assert_eq!(resource.chain().count(), steps, "{name}");
        }
        for broken in ["", "date", "functions/k/f", "functions/k/f[x"] {
            assert_eq!(Resource::from_name(broken), None, "{broken}");
        }
    }
}
