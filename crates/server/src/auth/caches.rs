//! The part of the caches that operators see and change. A node alone has no caches.

use std::collections::BTreeSet;

use admin::verbs::AuthCacheKind;
use config::AuthCache;
use env::Instant;

use super::cache::Cache;
use super::roles::Auth;
use super::shared::RingRoles;

/// A cache, whatever it holds.
pub(super) trait AnyCache {
    /// Empties the cache, or takes one role out.
    fn forget(&self, role: Option<&str>);
    /// The roles whose entries may be used.
    fn roles(&self, now: Instant) -> Vec<String>;
    /// The settings in force.
    fn settings(&self) -> AuthCache;
    /// Changes the settings.
    fn set(&self, settings: AuthCache);
}

impl<V: Clone> AnyCache for Cache<V> {
    fn forget(&self, role: Option<&str>) {
        self.forget(role);
    }

    fn roles(&self, now: Instant) -> Vec<String> {
        self.keys(now)
    }

    fn settings(&self) -> AuthCache {
        self.settings()
    }

    fn set(&self, settings: AuthCache) {
        self.set(settings);
    }
}

fn cache(ring_roles: &RingRoles, kind: AuthCacheKind) -> &dyn AnyCache {
    match kind {
        AuthCacheKind::Credentials => &ring_roles.credentials,
        AuthCacheKind::NetworkPermissions => &ring_roles.datacenters,
        AuthCacheKind::Permissions => &ring_roles.permissions,
        AuthCacheKind::Roles => &ring_roles.roles,
    }
}

impl Auth {
    /// The settings of a cache; None: this node is alone and has no such cache.
    pub fn cache_settings(&self, kind: AuthCacheKind) -> Option<AuthCache> {
        self.ring_roles().map(|ring_roles| cache(ring_roles, kind).settings())
    }

    /// Changes the settings of a cache until the next start.
    pub fn set_cache(&self, kind: AuthCacheKind, settings: AuthCache) {
        if let Some(ring_roles) = self.ring_roles() {
            cache(ring_roles, kind).set(settings);
            self.forget_user_access();
        }
    }

    /// A cache forgets a role, or everything.
    pub fn invalidate(&self, kind: AuthCacheKind, role: Option<&str>) {
        if let Some(ring_roles) = self.ring_roles() {
            cache(ring_roles, kind).forget(role);
            self.forget_user_access();
        }
    }

    /// The roles that a cache has an entry for.
    pub fn cached_roles(&self, kind: AuthCacheKind, now: Instant) -> Vec<String> {
        self.ring_roles().map(|ring_roles| cache(ring_roles, kind).roles(now)).unwrap_or_default()
    }

    /// The roles that the cache of permissions has an entry for, each with the resources that the
    /// role has permissions on, its own or inherited.
    pub fn cached_permissions(&self, now: Instant) -> BTreeSet<(String, String)> {
        let cached = self.ring_roles().map(|ring_roles| ring_roles.permissions.values(now)).unwrap_or_default();
        let resources = cached.iter().flat_map(|(role, permissions)| {
            let of_roles = permissions.values().flat_map(|resources| resources.keys());
            of_roles.map(move |resource| (role.clone(), resource.clone()))
        });
        resources.collect()
    }
}
