//! The roles in force: a snapshot of `system_auth` that every check is decided from.
//!
//! After each write to `system_auth` it is read again before the write is answered, so it is never
//! older than what a client has been told. Reading again is off the workers, one at a time. What a
//! user may do is worked out once for each snapshot. Agrees in role with
//! `org.apache.cassandra.auth.{Roles,RolesCache,PermissionsCache,NetworkPermissionsCache}`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use bytes::Bytes;
use cluster::Node;
use cluster::system_rows::SystemRow;
use cql::CqlError;
use cql::auth::{Access, AuthSettings, Roles};
use storage::StorageError;

use super::load::load;
use super::passwords::Passwords;

/// The keyspace whose tables are followed.
const KEYSPACE: &str = "system_auth";
/// The role that there is when there is no other, and its password.
const DEFAULT_SUPERUSER: &str = "cassandra";

/// One snapshot, with what has been worked out of it.
pub struct Current {
    /// The roles.
    pub roles: Arc<Roles>,
    /// By user; no more than have logged in.
    accesses: Mutex<BTreeMap<Arc<str>, Arc<Access>>>,
}

impl Current {
    fn new(roles: Roles) -> Arc<Self> {
        Arc::new(Self { roles: Arc::new(roles), accesses: Mutex::default() })
    }

    /// What a user may do.
    pub fn access(&self, user: &Arc<str>) -> Arc<Access> {
        let mut known = self.accesses.lock().unwrap_or_else(PoisonError::into_inner);
        let access = known.entry(Arc::clone(user)).or_insert_with(|| Arc::new(self.roles.access(user)));
        Arc::clone(access)
    }
}

/// Who may do what, where clients log in.
pub struct Auth {
    node: Arc<Node>,
    settings: AuthSettings,
    current: ArcSwap<Current>,
    /// Held while the tables are read again.
    reading: tokio::sync::Mutex<()>,
    /// Hashes.
    pub passwords: Passwords,
}

impl Auth {
    /// Reads the roles; without any, the default superuser is made.
    pub fn open(node: Arc<Node>, config: &config::Auth) -> Result<Arc<Self>, StorageError> {
        let settings = AuthSettings {
            authenticates: config.authenticates,
            authorizes: config.authorizes,
            restricts_datacenters: config.restricts_datacenters,
            data_center: node.identity.data_center.clone(),
        };
        let passwords = Passwords::new(&node.env, config.threads);
        let read = |error| StorageError::Refused { why: format!("system_auth cannot be read: {error}") };
        let mut roles = load(&node, settings.clone()).map_err(read)?;
        if roles.roles.is_empty() && !node.is_read_only() {
            make_default_superuser(&node, &passwords)?;
            roles = load(&node, settings.clone()).map_err(read)?;
        }
        let current = ArcSwap::new(Current::new(roles));
        Ok(Arc::new(Self { node, settings, current, reading: tokio::sync::Mutex::default(), passwords }))
    }

    /// The roles as they are now.
    pub fn current(&self) -> arc_swap::Guard<Arc<Current>> {
        self.current.load()
    }

    /// A table of this keyspace was written: the roles may have changed.
    pub fn follows(keyspace: &str) -> bool {
        keyspace == KEYSPACE
    }

    /// Reads the tables again.
    pub async fn reload(&self) -> Result<(), CqlError> {
        let _turn = self.reading.lock().await;
        let (node, settings) = (Arc::clone(&self.node), self.settings.clone());
        let loaded = self.node.env.blocking("roles", move || load(&node, settings)).await;
        match loaded {
            Ok(Ok(roles)) => {
                self.current.store(Current::new(roles));
                Ok(())
            }
            Ok(Err(error)) => Err(stale(&error.to_string())),
            Err(_) => Err(stale("too much background work waits")),
        }
    }
}

fn stale(why: &str) -> CqlError {
    tracing::error!(why, "system_auth was written but cannot be read: the roles in force are those from before");
    CqlError::Server(format!("system_auth was written but could not be read again ({why})"))
}

/// Written at timestamp 0, so that whatever else is ever written of the role stands.
fn make_default_superuser(node: &Node, passwords: &Passwords) -> Result<(), StorageError> {
    let schema = node.schema();
    let Some(table) = schema.table(KEYSPACE, "roles") else { return Ok(()) };
    let hash = passwords.hash_now(DEFAULT_SUPERUSER).unwrap_or_default();
    let row = SystemRow::new(table, &[DEFAULT_SUPERUSER.as_bytes()], &[], 0, None)
        .set("is_superuser", Bytes::from_static(&[1]))
        .set("can_login", Bytes::from_static(&[1]))
        .set("salted_hash", Bytes::from(hash));
    node.write_system_rows(&[row.finish()])?;
    tracing::info!("Created default superuser role '{DEFAULT_SUPERUSER}'");
    Ok(())
}
