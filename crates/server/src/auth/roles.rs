//! The roles that every check is decided from, and what each user may do.
//!
//! A node alone has a snapshot of its own tables. After each write to `system_auth` they are read
//! again before the write is answered, off the workers and one read at a time, so the snapshot is
//! never older than what a client has been told. A request that changes them may end before its
//! read, when its client goes away: then the next request that needs the roles reads the tables
//! ([`RoleChange`]). Rows also change without a request, by a TTL or an import: these are seen
//! after the shortest validity of the configuration. In a ring the rows are on some of the nodes:
//! they are read at a level and kept for a while ([`super::shared`]), and a write through another
//! node is seen when that time has passed. A write through this node empties the caches.
//!
//! The permissions of a user now are a [`UserAccess`]. Each connection keeps one and asks again
//! when it no longer holds. Agrees in role with
//! `org.apache.cassandra.auth.{Roles,RolesCache,PermissionsCache,NetworkPermissionsCache}`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use cluster::Node;
use cql::CqlError;
use cql::auth::{Access, AuthSettings, Roles, RolesOf};
use env::Instant;
use storage::StorageError;
use types::Consistency;

use super::first_password::FirstPassword;
use super::load::{KEYSPACE, load};
use super::passwords::Passwords;
use super::setup::{self, Setup};
use super::shared::{RingRoles, UnknownPermissions};

/// Shortest time between two reads of the tables on a node alone when no change asks for a read.
/// The configuration may say zero; otherwise every request would then read all roles.
const VALIDITY_MIN: Duration = Duration::from_secs(1);

/// Number of known users at which those that no connection uses any more are forgotten. A vault
/// may make a role that lives for an hour, and nothing tells that such a role does not log in any
/// more; without the limit the map would grow for ever.
const USERS_MAX: usize = 1024;

/// The permissions of a user, for as long as they hold ([`Auth::is_valid`]).
#[derive(Clone)]
pub struct UserAccess {
    /// The permissions. Each request of the user is checked against them.
    pub access: Arc<Access>,
    /// [`Auth::generation`] when the access was worked out. In a later generation the access
    /// does not hold.
    generation: u64,
    /// The access holds before this time.
    until: Instant,
    /// The time at which the access was worked out.
    made: Instant,
}

/// A user who has logged in.
#[derive(Default)]
struct User {
    user_access: Mutex<Option<UserAccess>>,
    /// Held while the access is worked out: requests that wait for it take the same result.
    turn: tokio::sync::Mutex<()>,
}

/// The place where the roles are stored.
enum RoleSource {
    /// On this node, which is alone.
    Local(LocalRoles),
    /// On some nodes of the ring.
    Ring(Arc<RingRoles>),
}

struct LocalRoles {
    current: ArcSwap<Snapshot>,
    /// Number of changes of the tables that have ended without a read of the tables behind them.
    unread: AtomicU64,
    /// Time for which a snapshot holds, if nothing changes.
    validity: Duration,
    /// Held while a request reads the tables again.
    reading: tokio::sync::Mutex<()>,
}

/// The tables of a node alone at one moment.
struct Snapshot {
    roles: Arc<Roles>,
    /// [`LocalRoles::unread`] before the tables were read.
    unread: u64,
    /// The snapshot holds before this time.
    until: Instant,
}

impl LocalRoles {
    /// Whether the snapshot has every change of the tables that is known here.
    fn is_complete(&self, snapshot: &Snapshot) -> bool {
        snapshot.unread == self.unread.load(Ordering::Acquire)
    }
}

/// A change of `system_auth` by a request. If the value is dropped before [`RoleChange::finish`]
/// has read the tables, because the request fails or its client goes away, the next request that
/// needs the roles reads them: the change may be in force all the same.
#[must_use]
pub struct RoleChange<'a> {
    auth: &'a Auth,
    is_read: bool,
}

impl RoleChange<'_> {
    /// The change is in force: the roles and permissions that are known here are read again.
    pub async fn finish(mut self) -> Result<(), CqlError> {
        self.auth.reload().await?;
        self.is_read = true;
        Ok(())
    }
}

impl Drop for RoleChange<'_> {
    fn drop(&mut self) {
        if !self.is_read {
            self.auth.mark_unread();
        }
    }
}

/// The roles in force, where clients log in.
pub struct Auth {
    node: Arc<Node>,
    settings: AuthSettings,
    source: RoleSource,
    /// Grows when the permissions of all users have to be worked out again.
    generation: AtomicU64,
    /// The users that have logged in, by name.
    users: Mutex<BTreeMap<Arc<str>, Arc<User>>>,
    /// Hashes and compares passwords.
    pub passwords: Passwords,
    /// The password that the default superuser gets, if this node makes it.
    first_password: FirstPassword,
    /// Makes the default superuser in a ring; None before the node has joined, and where another
    /// node makes it.
    setup: OnceLock<Setup>,
}

impl Auth {
    /// Opens the roles. A node alone reads them, and makes the default superuser if there is no
    /// role. In a ring nothing is read before somebody logs in, and [`Auth::has_joined`] makes the
    /// default superuser.
    pub fn open(
        node: Arc<Node>,
        config: &config::Auth,
        first_password: FirstPassword,
    ) -> Result<Arc<Self>, StorageError> {
        let level = |name: &str| Consistency::from_name(name).unwrap_or_default();
        let settings = AuthSettings {
            authenticates: config.authenticates,
            authorizes: config.authorizes,
            restricts_datacenters: config.restricts_datacenters,
            data_center: node.identity.data_center.clone(),
            read_level: level(&config.read_level),
            write_level: level(&config.write_level),
        };
        let passwords = Passwords::new(&node.env, config.threads, config.credentials.validity);
        let source = match node.identity.joins {
            true => RoleSource::Ring(RingRoles::start(Arc::clone(&node), settings.clone(), config)),
            false => RoleSource::Local(open_local_roles(&node, &settings, config, &passwords, &first_password)?),
        };
        Ok(Arc::new(Self {
            node,
            settings,
            source,
            generation: AtomicU64::new(0),
            users: Mutex::default(),
            passwords,
            first_password,
            setup: OnceLock::new(),
        }))
    }

    /// The node is a member of its ring: the default superuser is made if nobody has made it.
    /// `is_first_seed`: whether this node is the first of its ring's seeds.
    pub fn has_joined(&self, is_first_seed: bool) {
        if self.first_password.may_be_made(is_first_seed) {
            let is_alone = is_first_seed && self.node.ring().endpoints().len() == 1;
            let _ = self.setup.set(setup::start(&self.node, self.first_password.clone(), is_alone));
        } else {
            tracing::info!("a ring without roles gets its first password from the first of the seeds");
        }
    }

    /// Whether writes to tables of this keyspace may change the roles.
    pub fn is_auth_keyspace(keyspace: &str) -> bool {
        keyspace == KEYSPACE
    }

    /// A request is going to write `system_auth`.
    pub fn begin_change(&self) -> RoleChange<'_> {
        RoleChange { auth: self, is_read: false }
    }

    /// Whether the access of a user still says what the user may do.
    pub fn is_valid(&self, user_access: &UserAccess, now: Instant) -> bool {
        user_access.generation == self.generation.load(Ordering::Acquire) && now < user_access.until
    }

    /// The permissions of a user now. Where they cannot be read, the access knows why.
    pub async fn user_access(&self, name: &Arc<str>) -> UserAccess {
        let user = self.user(name);
        let asked = self.node.env.now();
        let _turn = user.turn.lock().await;
        let known = user.user_access.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known
            && (self.is_valid(&known, asked) || self.was_made_since(&known, asked))
        {
            return known;
        }
        let user_access = self.derive_access(name).await;
        *user.user_access.lock().unwrap_or_else(PoisonError::into_inner) = Some(user_access.clone());
        user_access
    }

    fn was_made_since(&self, user_access: &UserAccess, asked: Instant) -> bool {
        user_access.generation == self.generation.load(Ordering::Acquire) && user_access.made >= asked
    }

    fn user(&self, name: &Arc<str>) -> Arc<User> {
        user_of(&mut self.users.lock().unwrap_or_else(PoisonError::into_inner), name)
    }

    async fn derive_access(&self, name: &str) -> UserAccess {
        // before the roles are read: otherwise a change in between would be missed
        let generation = self.generation.load(Ordering::Acquire);
        let (access, until) = match &self.source {
            RoleSource::Local(local) => {
                let snapshot = self.snapshot(local).await;
                (snapshot.roles.access(name), snapshot.until)
            }
            RoleSource::Ring(ring_roles) => match ring_roles.user(name).await {
                Ok((roles, until)) => (roles.access(name), until),
                Err(UnknownPermissions(why)) => (Access::unknown(&self.settings, name, why), self.node.env.now()),
            },
        };
        UserAccess { access: Arc::new(access), generation, until, made: self.node.env.now() }
    }

    /// The roles that a statement needs, as they are now.
    pub async fn roles(&self, of: RolesOf<'_>) -> Result<Arc<Roles>, CqlError> {
        match &self.source {
            RoleSource::Local(local) => Ok(Arc::clone(&self.snapshot(local).await.roles)),
            RoleSource::Ring(ring_roles) => ring_roles.read(of).await.map(Arc::new),
        }
    }

    /// The hash of a role's password; None: it has none, or there is no such role.
    pub(super) async fn credentials_of(&self, role: &str) -> Result<Option<String>, CqlError> {
        match &self.source {
            RoleSource::Local(local) => {
                let snapshot = self.snapshot(local).await;
                Ok(snapshot.roles.roles.get(role).and_then(|role| role.salted_hash.clone()))
            }
            RoleSource::Ring(ring_roles) => ring_roles.credentials_of(role).await,
        }
    }

    /// Whether a role may log in.
    pub(super) async fn can_login(&self, role: &str) -> Result<bool, CqlError> {
        match &self.source {
            RoleSource::Local(local) => Ok(self.snapshot(local).await.roles.can_login(role)),
            RoleSource::Ring(ring_roles) => ring_roles.can_login(role).await,
        }
    }

    /// `system_auth` was written through this node: the roles and permissions that are known here
    /// are read again.
    async fn reload(&self) -> Result<(), CqlError> {
        match &self.source {
            RoleSource::Local(local) => {
                let _turn = local.reading.lock().await;
                self.read_again(local).await?;
            }
            RoleSource::Ring(ring_roles) => ring_roles.forget(),
        }
        self.forget_user_access();
        Ok(())
    }

    /// Notes that `system_auth` may have been written and was not read again.
    fn mark_unread(&self) {
        match &self.source {
            RoleSource::Local(local) => {
                local.unread.fetch_add(1, Ordering::AcqRel);
            }
            RoleSource::Ring(ring_roles) => ring_roles.forget(),
        }
        self.forget_user_access();
    }

    /// The caches of the ring's roles; None: this node is alone.
    pub(super) fn ring_roles(&self) -> Option<&RingRoles> {
        match &self.source {
            RoleSource::Local(_) => None,
            RoleSource::Ring(ring_roles) => Some(ring_roles),
        }
    }

    /// The permissions of each user are worked out again at his next request.
    pub(super) fn forget_user_access(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// The snapshot of a node alone, read again if it does not hold any more. One that is only old
    /// is read again by one request, and the others go on with it.
    async fn snapshot(&self, local: &LocalRoles) -> Arc<Snapshot> {
        let known = local.current.load_full();
        let is_complete = local.is_complete(&known);
        if is_complete && self.node.env.now() < known.until {
            return known;
        }
        let _turn = match local.reading.try_lock() {
            Ok(turn) => turn,
            Err(_) if is_complete => return known,
            Err(_) => local.reading.lock().await,
        };
        // another request may have read the tables while this one waited for its turn
        let known = local.current.load_full();
        if local.is_complete(&known) && self.node.env.now() < known.until {
            return known;
        }
        let unread = local.unread.load(Ordering::Acquire);
        if self.read_again(local).await.is_err() {
            // not at once again: the disk or the threads have enough to do
            let until = self.node.env.now().plus(VALIDITY_MIN);
            local.current.store(Arc::new(Snapshot { roles: Arc::clone(&known.roles), unread, until }));
        }
        local.current.load_full()
    }

    /// Reads the tables of a node alone; the caller holds [`LocalRoles::reading`].
    async fn read_again(&self, local: &LocalRoles) -> Result<(), CqlError> {
        // before the tables are read: otherwise a change in between would be missed
        let unread = local.unread.load(Ordering::Acquire);
        let (node, settings) = (Arc::clone(&self.node), self.settings.clone());
        let loaded = self.node.env.blocking("roles", move || load(&node, settings)).await;
        match loaded {
            Ok(Ok(roles)) => {
                let until = self.node.env.now().plus(local.validity);
                local.current.store(Arc::new(Snapshot { roles: Arc::new(roles), unread, until }));
                Ok(())
            }
            Ok(Err(error)) => Err(stale(&error.to_string())),
            Err(_) => Err(stale("too much background work waits")),
        }
    }
}

/// The user of this name, added if it is not known. At [`USERS_MAX`] other users are forgotten;
/// their permissions are worked out again at their next request.
fn user_of(users: &mut BTreeMap<Arc<str>, Arc<User>>, name: &Arc<str>) -> Arc<User> {
    if users.len() >= USERS_MAX && !users.contains_key(name) {
        // a request that waits for its turn holds the user
        users.retain(|_, user| Arc::strong_count(user) > 1);
    }
    Arc::clone(users.entry(Arc::clone(name)).or_default())
}

fn stale(why: &str) -> CqlError {
    tracing::error!(why, "system_auth cannot be read again: the roles in force are those from before");
    CqlError::Server(format!("system_auth was written but could not be read again ({why})"))
}

fn open_local_roles(
    node: &Node,
    settings: &AuthSettings,
    config: &config::Auth,
    passwords: &Passwords,
    first: &FirstPassword,
) -> Result<LocalRoles, StorageError> {
    let read = |error| StorageError::Refused { why: format!("system_auth cannot be read: {error}") };
    let mut roles = load(node, settings.clone()).map_err(read)?;
    if roles.roles.is_empty() && !node.is_read_only() {
        let hash = passwords.hash_now(&first.take(&node.env)).unwrap_or_default();
        let rows: Vec<_> = setup::default_superuser_row(node, &hash).into_iter().collect();
        node.write_system_rows(&rows)?;
        setup::log_created();
        roles = load(node, settings.clone()).map_err(read)?;
    } else {
        setup::log_kept(first);
    }
    let shortest = config.roles.validity.min(config.permissions.validity).min(config.credentials.validity);
    let validity = shortest.max(VALIDITY_MIN);
    let snapshot = Snapshot { roles: Arc::new(roles), unread: 0, until: node.env.now().plus(validity) };
    Ok(LocalRoles {
        current: ArcSwap::from_pointee(snapshot),
        unread: AtomicU64::new(0),
        validity,
        reading: tokio::sync::Mutex::default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_whom_nobody_asks_for_are_forgotten() {
        let mut users = BTreeMap::new();
        let first = user_of(&mut users, &Arc::from("first"));
        for number in 0..3 * USERS_MAX {
            user_of(&mut users, &Arc::from(format!("v-token-app-{number}")));
            assert!(users.len() <= USERS_MAX, "{number}");
        }
        assert!(Arc::ptr_eq(&first, &user_of(&mut users, &Arc::from("first"))), "a request holds the first");
    }
}
