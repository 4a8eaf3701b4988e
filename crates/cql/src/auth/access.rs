//! The permissions of one user: his roles' permissions merged, found by keyspace and table without
//! making a name.
//!
//! Must agree with: `ClientState.ensurePermission` and `AuthenticatedUser`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use schema::{Schema, TableMetadata, system};

use super::{AuthSettings, PermissionSet, Resource, Roles};
use crate::ast::Permission;
use crate::error::CqlError;

/// The permissions of one user, as of one snapshot of the roles.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// His role.
    pub user: Arc<str>,
    /// It, or one that it inherits, is a superuser.
    pub is_super: bool,
    /// The user's role and those that it inherits.
    pub roles: BTreeSet<String>,
    /// Permissions are asked for at all.
    authorizes: bool,
    /// Roles may be kept to datacenters.
    restricts_datacenters: bool,
    /// The datacenter of this node, which the user may not use; None: the user may use it.
    barred_from: Option<String>,
    /// Why it is not known what the user may do; None: it is known.
    unknown: Option<String>,
    all_keyspaces: PermissionSet,
    keyspaces: BTreeMap<String, KeyspaceAccess>,
    /// On what is not data, by name.
    others: BTreeMap<String, PermissionSet>,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct KeyspaceAccess {
    keyspace: PermissionSet,
    all_tables: PermissionSet,
    tables: BTreeMap<String, PermissionSet>,
}

/// Tables of `system` that everybody may read: drivers and tools cannot do without.
const READABLE: [&str; 5] = ["local", "peers", "peers_v2", "size_estimates", "table_estimates"];

impl Access {
    pub(super) fn new(roles: &Roles, user: &str) -> Self {
        let all = roles.all_of(user);
        let settings = &roles.settings;
        let mut access = Self {
            user: Arc::from(user),
            is_super: all.iter().any(|role| roles.roles[*role].is_superuser),
            roles: all.iter().map(|role| (*role).to_owned()).collect(),
            authorizes: settings.authorizes,
            restricts_datacenters: settings.restricts_datacenters,
            unknown: None,
            barred_from: (!roles.has_local_access(user)).then(|| settings.data_center.clone()),
            all_keyspaces: PermissionSet::NONE,
            keyspaces: BTreeMap::new(),
            others: BTreeMap::new(),
        };
        for (resource, permissions) in all.iter().filter_map(|role| roles.permissions.get(*role)).flatten() {
            access.add(resource, *permissions);
        }
        access
    }

    /// The access of a user whose roles or permissions could not be read: what everybody may do,
    /// and nothing where roles may be kept to datacenters. `why` goes into each refusal.
    pub fn unknown(settings: &AuthSettings, user: &str, why: String) -> Self {
        let nothing = Roles { settings: settings.clone(), ..Roles::default() };
        Self { barred_from: None, unknown: Some(why), ..Self::new(&nothing, user) }
    }

    /// Permissions are asked for at all.
    pub(crate) fn is_checked(&self) -> bool {
        self.authorizes
    }

    fn add(&mut self, name: &str, permissions: PermissionSet) {
        let place = match Resource::from_name(name) {
            Some(Resource::AllKeyspaces) => &mut self.all_keyspaces,
            Some(Resource::Keyspace(keyspace)) => &mut self.keyspaces.entry(keyspace).or_default().keyspace,
            Some(Resource::AllTables(keyspace)) => &mut self.keyspaces.entry(keyspace).or_default().all_tables,
            Some(Resource::Table(keyspace, table)) => {
                self.keyspaces.entry(keyspace).or_default().tables.entry(table).or_default()
            }
            _ => self.others.entry(name.to_owned()).or_default(),
        };
        *place = place.union(permissions);
    }

    /// The user's own permissions on a resource, not those on its parents.
    pub fn on(&self, resource: &Resource) -> PermissionSet {
        if !self.authorizes || self.is_super {
            return resource.applicable();
        }
        let of_keyspace = |keyspace: &String, which: fn(&KeyspaceAccess) -> PermissionSet| {
            self.keyspaces.get(keyspace).map_or(PermissionSet::NONE, which)
        };
        match resource {
            Resource::AllKeyspaces => self.all_keyspaces,
            Resource::Keyspace(keyspace) => of_keyspace(keyspace, |access| access.keyspace),
            Resource::AllTables(keyspace) => of_keyspace(keyspace, |access| access.all_tables),
            Resource::Table(keyspace, table) => self.on_table(keyspace, table),
            other => self.others.get(&other.name()).copied().unwrap_or_default(),
        }
    }

    fn on_table(&self, keyspace: &str, table: &str) -> PermissionSet {
        let tables = self.keyspaces.get(keyspace).map(|access| &access.tables);
        tables.and_then(|tables| tables.get(table)).copied().unwrap_or_default()
    }

    /// The permission is held on the table or one of its parents. Allocates nothing.
    pub fn has_on_table(&self, permission: Permission, table: &TableMetadata) -> bool {
        !self.authorizes || self.is_super || self.is_granted(permission, &table.keyspace, &table.name, true)
    }

    /// Granted on a table, all tables of its keyspace, the keyspace; `root`: or on all keyspaces.
    fn is_granted(&self, permission: Permission, keyspace: &str, table: &str, root: bool) -> bool {
        let in_keyspace = self.keyspaces.get(keyspace).is_some_and(|access| {
            access.all_tables.union(access.keyspace).contains(permission)
                || access.tables.get(table).is_some_and(|on| on.contains(permission))
        });
        in_keyspace || (root && self.all_keyspaces.contains(permission))
    }

    /// He may use this node at all.
    pub fn check_login(&self) -> Result<(), CqlError> {
        if self.restricts_datacenters {
            self.check_known()?;
        }
        match &self.barred_from {
            None => Ok(()),
            Some(datacenter) => {
                Err(CqlError::Unauthorized(format!("You do not have access to this datacenter ({datacenter})")))
            }
        }
    }

    /// Refuses where the node does not know what the user may do.
    fn check_known(&self) -> Result<(), CqlError> {
        match &self.unknown {
            None => Ok(()),
            Some(why) => Err(CqlError::Unauthorized(why.clone())),
        }
    }

    /// SELECT or MODIFY of a table: the check of every statement on data.
    pub fn check_table(&self, permission: Permission, table: &TableMetadata) -> Result<(), CqlError> {
        self.check_login()?;
        if !self.authorizes || self.is_super {
            return Ok(());
        }
        let (keyspace, name) = (table.keyspace.as_str(), table.name.as_str());
        let is_system = system::is_system_keyspace(keyspace);
        if is_system && permission == Permission::Select && is_readable(keyspace, name) {
            return Ok(());
        }
        self.check_known()?;
        // what is granted on all keyspaces is not granted on those of the system
        if self.is_granted(permission, keyspace, name, !is_system) {
            return Ok(());
        }
        Err(self.refusal(permission, &Resource::Table(keyspace.to_owned(), name.to_owned())))
    }

    /// A permission on a resource or one of its parents.
    pub fn check(&self, permission: Permission, resource: &Resource) -> Result<(), CqlError> {
        if !self.authorizes {
            return Ok(());
        }
        self.check_known()?;
        let of_system = !self.is_super && resource.data_keyspace().is_some_and(system::is_system_keyspace);
        let is_asked = |resource: &Resource| !of_system || *resource != Resource::AllKeyspaces;
        if resource.chain().filter(is_asked).any(|resource| self.on(&resource).contains(permission)) {
            return Ok(());
        }
        Err(self.refusal(permission, resource))
    }

    fn refusal(&self, permission: Permission, resource: &Resource) -> CqlError {
        let user = &self.user;
        CqlError::Unauthorized(format!(
            "User {user} has no {permission} permission on {resource} or any of its parents"
        ))
    }
}

fn is_readable(keyspace: &str, table: &str) -> bool {
    match keyspace {
        "system" => READABLE.contains(&table),
        "system_schema" | "system_virtual_schema" => true,
        "system_traces" => matches!(table, "events" | "sessions"),
        _ => false,
    }
}

/// Refuses changes of the schema of what is not the user's to change, whoever he is.
pub(crate) fn check_changeable(permission: Permission, resource: &Resource) -> Result<(), CqlError> {
    let Some(keyspace) = resource.data_keyspace() else { return Ok(()) };
    let refuse = |why: String| Err(CqlError::Unauthorized(why));
    if system::is_local_keyspace(keyspace) || system::VIRTUAL_KEYSPACES.contains(&keyspace) {
        return refuse(format!("{keyspace} keyspace is not user-modifiable."));
    }
    let alters_keyspace = permission == Permission::Alter && matches!(resource, Resource::Keyspace(_));
    if system::REPLICATED_KEYSPACES.contains(&keyspace) && !alters_keyspace {
        return refuse(format!("Cannot {permission} {resource}"));
    }
    Ok(())
}

/// The resource is there to be granted permissions on. MBeans are not: there is no JVM.
pub(crate) fn exists(resource: &Resource, roles: &Roles, schema: &Schema) -> bool {
    match resource {
        Resource::AllKeyspaces | Resource::AllRoles | Resource::AllFunctions | Resource::AllMbeans => true,
        Resource::Keyspace(keyspace) | Resource::AllTables(keyspace) | Resource::KeyspaceFunctions(keyspace) => {
            schema.keyspace(keyspace).is_some()
        }
        Resource::Table(keyspace, table) => schema.table(keyspace, table).is_some(),
        Resource::Role(role) => roles.exists(role),
        Resource::Function(keyspace, name, _) => schema.keyspace(keyspace).is_some_and(|found| {
            let functions = found
                .functions
                .values()
                .filter(|function| function.name == *name)
                .map(|function| Resource::function(keyspace, name, function.arguments.iter().map(|(_, ty)| ty)));
            let aggregates = found.aggregates.values().filter(|aggregate| aggregate.name == *name);
            let aggregates = aggregates.map(|aggregate| Resource::function(keyspace, name, &aggregate.arguments));
            functions.chain(aggregates).any(|known| known == *resource)
        }),
        Resource::Mbean(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows that say which datacenters a user may use cannot be read.
    #[test]
    fn a_user_who_may_be_barred_is_refused() {
        for restricts_datacenters in [false, true] {
            let settings = AuthSettings { authenticates: true, restricts_datacenters, ..AuthSettings::default() };
            let access = Access::unknown(&settings, "ann", "nobody answers".to_owned());
            let refusal = restricts_datacenters.then(|| CqlError::Unauthorized("nobody answers".to_owned()));
            assert_eq!(access.check_login().err(), refusal);
        }
    }
}
