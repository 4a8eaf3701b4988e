//! The tables of `system_auth` as one value.
//!
//! Must agree with: `CassandraRoleManager`, `CassandraAuthorizer`, `CassandraNetworkAuthorizer`, as
//! far as they read.

use std::collections::{BTreeMap, BTreeSet};

use types::Consistency;

use super::{Access, PermissionSet};

/// The role that a new ring has. It is read and written at QUORUM, whatever the configuration says
/// (`CassandraRoleManager.DEFAULT_SUPERUSER_CONSISTENCY_LEVEL`): otherwise nodes that start
/// together could bring it back after it was dropped.
pub const DEFAULT_SUPERUSER: &str = "cassandra";

/// The roles that somebody asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RolesOf<'a> {
    /// All there are, with identities and CIDR groups.
    Everybody,
    /// The roles with these names, with all that they inherit. Identities and CIDR groups may be
    /// left out.
    Named(&'a [&'a str]),
}

/// The keys of cassandra.yaml that say how clients log in and whether permissions are checked.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AuthSettings {
    /// PasswordAuthenticator: clients log in.
    pub authenticates: bool,
    /// CassandraAuthorizer: permissions are needed.
    pub authorizes: bool,
    /// CassandraNetworkAuthorizer: roles may be kept to datacenters.
    pub restricts_datacenters: bool,
    /// The datacenter of this node.
    pub data_center: String,
    /// The level at which `system_auth` is read.
    pub read_level: Consistency,
    /// The level at which `system_auth` is written.
    pub write_level: Consistency,
}

impl AuthSettings {
    /// The level at which the rows of a role are read.
    pub fn read_level_of(&self, role: &str) -> Consistency {
        if role == DEFAULT_SUPERUSER { Consistency::Quorum } else { self.read_level }
    }

    /// The level at which the rows of a role are written.
    pub fn write_level_of(&self, role: &str) -> Consistency {
        if role == DEFAULT_SUPERUSER { Consistency::Quorum } else { self.write_level }
    }
}

/// A role.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Role {
    /// SUPERUSER
    pub is_superuser: bool,
    /// LOGIN
    pub can_login: bool,
    /// bcrypt; None: no password opens it.
    pub salted_hash: Option<String>,
    /// When that was written, microseconds since 1970.
    pub hash_written: Option<i64>,
    /// Roles granted to it.
    pub member_of: BTreeSet<String>,
}

/// All roles and what they may do. A snapshot: it never changes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Roles {
    /// The authentication keys of the configuration.
    pub settings: AuthSettings,
    /// By name.
    pub roles: BTreeMap<String, Role>,
    /// Permissions by role and name of the resource.
    pub permissions: BTreeMap<String, BTreeMap<String, PermissionSet>>,
    /// The datacenters of roles; none or an empty set: all.
    pub datacenters: BTreeMap<String, BTreeSet<String>>,
    /// CIDR groups that have been defined.
    pub cidr_groups: BTreeSet<String>,
    /// Roles of identities.
    pub identities: BTreeMap<String, String>,
}

impl Roles {
    /// The role exists.
    pub fn exists(&self, role: &str) -> bool {
        self.roles.contains_key(role)
    }

    /// A role and those granted to it, directly or through others. Empty: there is no such role.
    pub fn all_of(&self, role: &str) -> BTreeSet<&str> {
        let mut found = BTreeSet::new();
        let mut next: Vec<&str> = vec![role];
        while let Some(name) = next.pop() {
            if let Some((name, role)) = self.roles.get_key_value(name)
                && found.insert(name.as_str())
            {
                next.extend(role.member_of.iter().map(String::as_str));
            }
        }
        found
    }

    /// A role and those granted to it directly.
    pub fn direct_of(&self, role: &str) -> BTreeSet<&str> {
        let Some((name, role)) = self.roles.get_key_value(role) else { return BTreeSet::new() };
        let granted = role.member_of.iter().filter(|name| self.exists(name));
        granted.chain([name]).map(String::as_str).collect()
    }

    /// The role, or one that it inherits, is a superuser.
    pub fn is_super(&self, role: &str) -> bool {
        self.all_of(role).iter().any(|role| self.roles[*role].is_superuser)
    }

    /// The role may log in. Not inherited.
    pub fn can_login(&self, role: &str) -> bool {
        self.roles.get(role).is_some_and(|role| role.can_login)
    }

    /// The datacenters of a role as LIST ROLES shows them.
    pub fn datacenters_of(&self, role: &str) -> String {
        if !self.settings.restricts_datacenters {
            return "ALL".to_owned();
        }
        if !self.can_login(role) {
            return "n/a".to_owned();
        }
        match self.datacenters.get(role) {
            Some(some) if !some.is_empty() && !self.is_super(role) => {
                some.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
            }
            _ => "ALL".to_owned(),
        }
    }

    /// The role may be used in this node's datacenter.
    pub fn has_local_access(&self, role: &str) -> bool {
        if !self.settings.restricts_datacenters {
            return true;
        }
        let is_local = |some: &BTreeSet<String>| some.is_empty() || some.contains(&self.settings.data_center);
        self.can_login(role) && (self.is_super(role) || self.datacenters.get(role).is_none_or(is_local))
    }

    /// The permissions of a client that has logged in with the role `user`.
    pub fn access(&self, user: &str) -> Access {
        Access::new(self, user)
    }

    /// The permissions on a resource that were granted to the role itself, without those that it
    /// inherits.
    pub fn granted(&self, role: &str, resource: &str) -> PermissionSet {
        let of_role = self.permissions.get(role);
        of_role.and_then(|resources| resources.get(resource)).copied().unwrap_or_default()
    }

    /// The roles that were granted something on a resource.
    pub fn holders_on<'r>(&'r self, resource: &'r str) -> impl Iterator<Item = &'r str> {
        let holds = move |(role, resources): (&'r String, &'r BTreeMap<String, PermissionSet>)| {
            resources.contains_key(resource).then_some(role.as_str())
        };
        self.permissions.iter().filter_map(holds)
    }
}
