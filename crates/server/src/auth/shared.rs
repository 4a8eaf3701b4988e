//! `system_auth` where the ring has copies of it: read from the replicas at
//! `auth_read_consistency_level`, role by role, and kept for a while.
//!
//! A user's rows are on few nodes. So each user is read for himself, and needs only those nodes to
//! be up. Statements on roles read what they need without the caches.
//! Agrees with `RolesCache`, `PermissionsCache`, `NetworkPermissionsCache`,
//! `PasswordAuthenticator.CredentialsCache`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cluster::Node;
use cluster::system_rows::partition_key;
use cql::CqlError;
use cql::auth::{AuthSettings, PermissionSet, Role, Roles, RolesOf};
use schema::TableMetadata;
use types::Consistency;

use super::cache::{Cache, Kept, Timed};
use super::load::{self, Found, KEYSPACE, TABLES};
use crate::errors;

/// Rows of a table of `system_auth` that one statement may need at once. LIST ROLES, LIST USERS and
/// DROP ROLE need all of some tables; a role that is named needs its own.
const ROWS_MAX: u32 = 1 << 17;

/// Permissions by role and name of the resource.
type Permissions = BTreeMap<String, BTreeMap<String, PermissionSet>>;

/// The tables of the ring, and the caches of what was read of them.
pub(super) struct Shared {
    node: Arc<Node>,
    settings: AuthSettings,
    /// By role: it and those that it inherits.
    pub roles: Cache<Arc<BTreeMap<String, Role>>>,
    /// By role: its hash. A role without one is not kept.
    pub credentials: Cache<String>,
    /// By role: its permissions and those of the roles that it inherits.
    pub permissions: Cache<Arc<Permissions>>,
    /// By role: the datacenters that it may use; empty: all.
    pub datacenters: Cache<Arc<BTreeSet<String>>>,
}

/// The reason why the permissions of a user are not known, in Cassandra's words.
pub(super) struct Unknown(pub String);

impl Shared {
    pub fn new(node: Arc<Node>, settings: AuthSettings, config: &config::Auth) -> Self {
        Self {
            node,
            settings,
            roles: Cache::new(config.roles),
            credentials: Cache::new(config.credentials),
            permissions: Cache::new(config.permissions),
            datacenters: Cache::new(config.roles),
        }
    }

    /// Empties all caches.
    pub fn forget(&self) {
        self.roles.forget(None);
        self.credentials.forget(None);
        self.permissions.forget(None);
        self.datacenters.forget(None);
    }

    /// The roles and permissions of a user with all that he inherits, and until when they may be
    /// used.
    pub async fn user(&self, user: &str) -> Result<Timed<Roles>, Unknown> {
        let of_permissions = |error| Unknown(format!("Unable to perform authorization of permissions: {error}"));
        let (known, mut until) = self.inherited(user).await.map_err(|error| {
            of_permissions(format!("Unable to perform authorization of super-user permission: {error}"))
        })?;
        let mut roles = Roles { settings: self.settings.clone(), roles: (*known).clone(), ..Roles::default() };
        if self.settings.authorizes && !roles.is_super(user) {
            let found = self.permissions_of(user, &known).await;
            let (permissions, until_then) = found.map_err(|error| of_permissions(error.to_string()))?;
            (roles.permissions, until) = ((*permissions).clone(), until.min(until_then));
        }
        if self.settings.restricts_datacenters {
            let found = self.datacenters_of(user).await;
            let (datacenters, until_then) = found.map_err(|error| of_permissions(error.to_string()))?;
            roles.datacenters.insert(user.to_owned(), (*datacenters).clone());
            until = until.min(until_then);
        }
        Ok((roles, until))
    }

    /// The hash of a role's password; None: it has none, or there is no such role.
    pub async fn credentials_of(&self, role: &str) -> Result<Option<String>, CqlError> {
        let load = async || self.role(role).await.map(|role| role.and_then(|role| role.salted_hash));
        let (before, kept) = match self.credentials.get(role, self.node.env.now()) {
            Kept::Fresh((hash, _)) => return Ok(Some(hash)),
            Kept::Due(before, (hash, _)) => (before, Some(hash)),
            Kept::Nothing(before) => (before, None),
        };
        match load().await {
            Ok(Some(hash)) => {
                self.credentials.put(role, hash.clone(), before);
                Ok(Some(hash))
            }
            Ok(None) => {
                self.credentials.forget(Some(role));
                Ok(None)
            }
            Err(error) => kept.map_or(Err(error), |hash| Ok(Some(hash))),
        }
    }

    /// Whether a role may log in.
    pub async fn can_login(&self, role: &str) -> Result<bool, CqlError> {
        let (roles, _) = self.inherited(role).await?;
        Ok(roles.get(role).is_some_and(|role| role.can_login))
    }

    /// The roles that a statement asks for, as they are now.
    pub async fn read(&self, of: RolesOf<'_>) -> Result<Roles, CqlError> {
        match of {
            RolesOf::Everybody => self.everybody().await,
            RolesOf::Named(names) => self.named(names).await,
        }
    }

    async fn everybody(&self) -> Result<Roles, CqlError> {
        let mut roles = Roles { settings: self.settings.clone(), ..Roles::default() };
        for name in TABLES {
            self.add(&mut roles, name, None, self.settings.read_level).await?;
        }
        Ok(roles)
    }

    async fn named(&self, names: &[&str]) -> Result<Roles, CqlError> {
        let mut roles = Roles { settings: self.settings.clone(), ..Roles::default() };
        for name in names {
            self.add_inherited(&mut roles, name).await?;
        }
        let found: Vec<String> = roles.roles.keys().cloned().collect();
        for name in found {
            self.add(&mut roles, "role_permissions", Some(&name), self.settings.read_level).await?;
            let key = format!("roles/{name}");
            self.add(&mut roles, "network_permissions", Some(&key), self.settings.read_level).await?;
        }
        Ok(roles)
    }

    async fn inherited(&self, role: &str) -> Result<Timed<Arc<BTreeMap<String, Role>>>, CqlError> {
        let load = async || {
            let mut roles = Roles::default();
            self.add_inherited(&mut roles, role).await?;
            Ok(Arc::new(roles.roles))
        };
        self.cached(&self.roles, role, load).await
    }

    async fn permissions_of(
        &self,
        user: &str,
        roles: &BTreeMap<String, Role>,
    ) -> Result<Timed<Arc<Permissions>>, CqlError> {
        let load = async || {
            let mut found = Roles::default();
            for role in roles.keys() {
                self.add(&mut found, "role_permissions", Some(role), self.settings.read_level).await?;
            }
            Ok(Arc::new(found.permissions))
        };
        self.cached(&self.permissions, user, load).await
    }

    async fn datacenters_of(&self, role: &str) -> Result<Timed<Arc<BTreeSet<String>>>, CqlError> {
        let load = async || {
            let mut found = Roles::default();
            let key = format!("roles/{role}");
            self.add(&mut found, "network_permissions", Some(&key), self.settings.read_level).await?;
            Ok(Arc::new(found.datacenters.remove(role).unwrap_or_default()))
        };
        self.cached(&self.datacenters, role, load).await
    }

    async fn cached<V: Clone>(
        &self,
        cache: &Cache<V>,
        key: &str,
        load: impl AsyncFnOnce() -> Result<V, CqlError>,
    ) -> Result<Timed<V>, CqlError> {
        let (before, kept) = match cache.get(key, self.node.env.now()) {
            Kept::Fresh(timed) => return Ok(timed),
            Kept::Due(before, timed) => (before, Some(timed)),
            Kept::Nothing(before) => (before, None),
        };
        match load().await {
            Ok(value) => Ok((value.clone(), cache.put(key, value, before))),
            Err(error) => kept.ok_or(error),
        }
    }

    /// One role by itself.
    async fn role(&self, name: &str) -> Result<Option<Role>, CqlError> {
        let mut roles = Roles::default();
        self.add(&mut roles, "roles", Some(name), self.settings.read_level_of(name)).await?;
        Ok(roles.roles.remove(name))
    }

    /// Adds a role and those that it inherits.
    async fn add_inherited(&self, roles: &mut Roles, name: &str) -> Result<(), CqlError> {
        let mut next = vec![name.to_owned()];
        while let Some(name) = next.pop() {
            if roles.exists(&name) {
                continue;
            }
            if let Some(role) = self.role(&name).await? {
                next.extend(role.member_of.iter().cloned());
                roles.roles.insert(name, role);
            }
        }
        Ok(())
    }

    async fn add(&self, roles: &mut Roles, table: &str, key: Option<&str>, level: Consistency) -> Result<(), CqlError> {
        let schema = self.node.schema();
        let Some(table) = schema.table(KEYSPACE, table) else { return Ok(()) };
        load::add(roles, table, &rows(&self.node, table, key, level).await?);
        Ok(())
    }
}

/// Refuses a number of rows that is beyond [`ROWS_MAX`].
fn check(table: &TableMetadata, rows: usize) -> Result<(), CqlError> {
    if rows <= ROWS_MAX as usize {
        return Ok(());
    }
    Err(CqlError::Invalid(format!(
        "{}.{} has more than {ROWS_MAX} rows that the statement needs at once: name single roles",
        table.keyspace, table.name
    )))
}

/// The rows of a table, or of one of its partitions, as the ring has them at a level.
pub(super) async fn rows(
    node: &Node,
    table: &Arc<TableMetadata>,
    key: Option<&str>,
    level: Consistency,
) -> Result<Found, CqlError> {
    let key = key.map(|key| partition_key(table, &[key.as_bytes()]));
    let found = node.read_rows_at(table, key, level, ROWS_MAX + 1).await;
    let found = found.map_err(|error| errors::of_read(error, false))?;
    check(table, found.len())?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_rows_than_a_statement_may_need_are_refused() {
        let schema = schema::system::schema();
        let table = schema.table(KEYSPACE, "roles").expect("built in");
        assert_eq!(check(table, ROWS_MAX as usize), Ok(()));
        let refused = check(table, ROWS_MAX as usize + 1).expect_err("too many");
        assert_eq!(
            refused.to_string(),
            "system_auth.roles has more than 131072 rows that the statement needs at once: name single roles"
        );
    }
}
