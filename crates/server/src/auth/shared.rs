//! `system_auth` where the ring has copies of it: read from the replicas at
//! `auth_read_consistency_level`, role by role, and kept for a while.
//!
//! A user's rows are on few nodes. So each user is read for himself, and needs only those nodes to
//! be up. Statements on roles read what they need without the caches.
//! Agrees with `RolesCache`, `PermissionsCache`, `NetworkPermissionsCache`,
//! `PasswordAuthenticator.CredentialsCache`.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::Arc;

use cluster::Node;
use cluster::system_rows::partition_key;
use cql::CqlError;
use cql::auth::{AuthSettings, PermissionSet, Role, Roles, RolesOf};
use futures_util::future::join_all;
use schema::TableMetadata;
use tokio::sync::mpsc;
use types::Consistency;

use super::cache::{Cache, CacheLookup, Timed};
use super::load::{self, AuthRows, KEYSPACE, TABLES};
use super::renewal::{self, Renewal, RenewedCache};
use crate::errors;

/// Rows of a table of `system_auth` that one statement may need at once. LIST ROLES, LIST USERS and
/// DROP ROLE need all of some tables; a role that is named needs its own.
const ROWS_MAX: u32 = 1 << 17;

/// Partitions that are read at one time for one user: those of the roles that he inherits.
const READS_AT_ONCE: usize = 16;

/// Permissions by role and name of the resource.
type Permissions = BTreeMap<String, BTreeMap<String, PermissionSet>>;

/// The tables of the ring, and the caches of what was read of them.
pub(super) struct RingRoles {
    node: Arc<Node>,
    settings: AuthSettings,
    /// By role: the role and all roles that it inherits.
    pub roles: Cache<Arc<BTreeMap<String, Role>>>,
    /// By role: the hash of its password. A role without a password is not kept.
    pub credentials: Cache<String>,
    /// By role: its permissions and those of the roles that it inherits.
    pub permissions: Cache<Arc<Permissions>>,
    /// By role: the datacenters that it may use; empty: all.
    pub datacenters: Cache<Arc<BTreeSet<String>>>,
    /// The way to the thread that reads entries again that are due.
    renewals: mpsc::Sender<Renewal>,
}

/// The reason why the permissions of a user are not known, in Cassandra's words.
pub(super) struct UnknownPermissions(pub String);

impl RingRoles {
    /// Empty caches, and the thread that renews their entries.
    pub fn start(node: Arc<Node>, settings: AuthSettings, config: &config::Auth) -> Arc<Self> {
        let (renewals, due) = mpsc::channel(renewal::WAITING_MAX);
        let ring_roles = Arc::new(Self {
            node,
            settings,
            roles: Cache::new(config.roles),
            credentials: Cache::new(config.credentials),
            permissions: Cache::new(config.permissions),
            datacenters: Cache::new(config.roles),
            renewals,
        });
        renewal::start(&ring_roles.node.env, Arc::downgrade(&ring_roles), due);
        ring_roles
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
    pub async fn user(&self, user: &str) -> Result<Timed<Roles>, UnknownPermissions> {
        let of_permissions =
            |error| UnknownPermissions(format!("Unable to perform authorization of permissions: {error}"));
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
        match self.credentials.get(role, self.node.env.now()) {
            // boxed, as what `cached` loads
            CacheLookup::Nothing => Box::pin(self.load_credentials(role)).await,
            CacheLookup::Fresh((hash, _)) => Ok(Some(hash)),
            CacheLookup::Due((hash, _)) => {
                self.renew_beside(RenewedCache::Credentials, role);
                Ok(Some(hash))
            }
        }
    }

    async fn load_credentials(&self, role: &str) -> Result<Option<String>, CqlError> {
        let read_start = self.credentials.start_read(self.node.env.now());
        let hash = self.role(role).await?.and_then(|role| role.salted_hash);
        if let Some(hash) = &hash {
            self.credentials.put(role, hash.clone(), read_start);
        } else {
            self.credentials.forget(Some(role));
        }
        Ok(hash)
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
        self.cached(&self.roles, RenewedCache::Roles, role, || self.load_inherited(role)).await
    }

    async fn load_inherited(&self, role: &str) -> Result<Arc<BTreeMap<String, Role>>, CqlError> {
        let mut roles = Roles::default();
        self.add_inherited(&mut roles, role).await?;
        Ok(Arc::new(roles.roles))
    }

    async fn permissions_of(
        &self,
        user: &str,
        roles: &BTreeMap<String, Role>,
    ) -> Result<Timed<Arc<Permissions>>, CqlError> {
        self.cached(&self.permissions, RenewedCache::Permissions, user, || self.load_permissions(roles)).await
    }

    async fn load_permissions(&self, roles: &BTreeMap<String, Role>) -> Result<Arc<Permissions>, CqlError> {
        let mut found = Roles::default();
        let schema = self.node.schema();
        let Some(table) = schema.table(KEYSPACE, "role_permissions") else { return Ok(Arc::default()) };
        let names: Vec<&String> = roles.keys().collect();
        for some in names.chunks(READS_AT_ONCE) {
            let reads = some.iter().map(|name| rows(&self.node, table, Some(name.as_str()), self.settings.read_level));
            for of_role in join_all(reads).await {
                load::add(&mut found, table, &of_role?);
            }
        }
        Ok(Arc::new(found.permissions))
    }

    async fn datacenters_of(&self, role: &str) -> Result<Timed<Arc<BTreeSet<String>>>, CqlError> {
        self.cached(&self.datacenters, RenewedCache::Datacenters, role, || self.load_datacenters(role)).await
    }

    async fn load_datacenters(&self, role: &str) -> Result<Arc<BTreeSet<String>>, CqlError> {
        let mut found = Roles::default();
        let key = format!("roles/{role}");
        self.add(&mut found, "network_permissions", Some(&key), self.settings.read_level).await?;
        Ok(Arc::new(found.datacenters.remove(role).unwrap_or_default()))
    }

    /// The entry of a cache, or else the result of `load`. An entry that is due is used at once,
    /// and read again in the background.
    async fn cached<V: Clone, F: Future<Output = Result<V, CqlError>>>(
        &self,
        cache: &Cache<V>,
        of: RenewedCache,
        key: &str,
        load: impl FnOnce() -> F,
    ) -> Result<Timed<V>, CqlError> {
        match cache.get(key, self.node.env.now()) {
            // boxed: it is seldom, and would make the future of every request larger
            CacheLookup::Nothing => Box::pin(self.load_into(cache, key, load())).await,
            CacheLookup::Fresh(timed) => Ok(timed),
            CacheLookup::Due(timed) => {
                self.renew_beside(of, key);
                Ok(timed)
            }
        }
    }

    /// Keeps what `load` gives.
    async fn load_into<V: Clone>(
        &self,
        cache: &Cache<V>,
        key: &str,
        load: impl Future<Output = Result<V, CqlError>>,
    ) -> Result<Timed<V>, CqlError> {
        let read_start = cache.start_read(self.node.env.now());
        let value = load.await?;
        Ok((value.clone(), cache.put(key, value, read_start)))
    }

    /// Has an entry read again, while this request goes on with what it has.
    fn renew_beside(&self, of: RenewedCache, key: &str) {
        if self.renewals.try_send(Renewal { of, key: key.to_owned() }).is_err() {
            self.end_renewal(of, key);
        }
    }

    fn end_renewal(&self, of: RenewedCache, key: &str) {
        match of {
            RenewedCache::Roles => self.roles.end_renewal(key),
            RenewedCache::Credentials => self.credentials.end_renewal(key),
            RenewedCache::Permissions => self.permissions.end_renewal(key),
            RenewedCache::Datacenters => self.datacenters.end_renewal(key),
        }
    }

    /// Reads an entry again that is due. Where that fails the entry is used to its end.
    pub async fn renew(&self, renewal: &Renewal) {
        let Renewal { of, key } = renewal;
        let renewed = match of {
            RenewedCache::Roles => self.load_into(&self.roles, key, self.load_inherited(key)).await.map(drop),
            RenewedCache::Credentials => self.load_credentials(key).await.map(drop),
            RenewedCache::Permissions => self.renew_permissions(key).await,
            RenewedCache::Datacenters => {
                self.load_into(&self.datacenters, key, self.load_datacenters(key)).await.map(drop)
            }
        };
        if let Err(error) = renewed {
            tracing::debug!(role = key, ?of, %error, "an entry of the caches of system_auth could not be read again");
        }
        self.end_renewal(*of, key);
    }

    async fn renew_permissions(&self, user: &str) -> Result<(), CqlError> {
        let (roles, _) = self.inherited(user).await?;
        self.load_into(&self.permissions, user, self.load_permissions(&roles)).await.map(drop)
    }

    /// Reads one role without the roles that it inherits. None: there is no such role.
    async fn role(&self, name: &str) -> Result<Option<Role>, CqlError> {
        let mut roles = Roles::default();
        self.add(&mut roles, "roles", Some(name), self.settings.read_level_of(name)).await?;
        Ok(roles.roles.remove(name))
    }

    /// Adds a role and those that it inherits, level by level: those of a level are read at once.
    async fn add_inherited(&self, roles: &mut Roles, name: &str) -> Result<(), CqlError> {
        let mut next = BTreeSet::from([name.to_owned()]);
        loop {
            let level: Vec<String> = std::mem::take(&mut next).into_iter().filter(|name| !roles.exists(name)).collect();
            if level.is_empty() {
                return Ok(());
            }
            for some in level.chunks(READS_AT_ONCE) {
                let found = join_all(some.iter().map(|name| self.role(name))).await;
                for (name, role) in some.iter().zip(found) {
                    if let Some(role) = role? {
                        next.extend(role.member_of.iter().cloned());
                        roles.roles.insert(name.clone(), role);
                    }
                }
            }
        }
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
) -> Result<AuthRows, CqlError> {
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
