//! `*_cache_keys`: the keys in the caches of what was read of `system_auth`. A node alone has no
//! such caches, and nobody has one of permissions on MBeans: these tables are empty. The
//! permissions of a role are kept together: the keys are the resources that a role in the cache has
//! permissions on, and deleting one key forgets all of the role. Agrees with `RolesCacheKeysTable`
//! and its kin; Cassandra's keys of permissions are the resources that were asked for.

use admin::verbs::AuthCacheKind;

use super::row::VirtualRow;
use super::{Mutable, VirtualTable};
use crate::services::Services;

pub(super) const TABLES: &[VirtualTable] = &[
    keys_of(
        "credentials_cache_keys",
        |services| rows(services, AuthCacheKind::Credentials),
        |services, key| forget(services, AuthCacheKind::Credentials, Some(key)),
        |services| forget(services, AuthCacheKind::Credentials, None),
    ),
    keys_of("jmx_permissions_cache_keys", |_| Vec::new(), |_, _| {}, |_| {}),
    keys_of(
        "network_permissions_cache_keys",
        |services| rows(services, AuthCacheKind::NetworkPermissions),
        |services, key| forget(services, AuthCacheKind::NetworkPermissions, Some(key)),
        |services| forget(services, AuthCacheKind::NetworkPermissions, None),
    ),
    keys_of(
        "permissions_cache_keys",
        permissions,
        |services, key| forget(services, AuthCacheKind::Permissions, Some(key)),
        |services| forget(services, AuthCacheKind::Permissions, None),
    ),
    keys_of(
        "roles_cache_keys",
        |services| rows(services, AuthCacheKind::Roles),
        |services, key| forget(services, AuthCacheKind::Roles, Some(key)),
        |services| forget(services, AuthCacheKind::Roles, None),
    ),
];

const fn keys_of(
    name: &'static str,
    rows: fn(&Services) -> Vec<VirtualRow>,
    delete: fn(&Services, &[&[u8]]),
    truncate: fn(&Services),
) -> VirtualTable {
    VirtualTable {
        mutable: Some(Mutable { delete_partition: Some(delete), truncate }),
        ..VirtualTable::of_views(name, rows)
    }
}

fn rows(services: &Services, cache: AuthCacheKind) -> Vec<VirtualRow> {
    let now = services.node.env.now();
    let roles = services.auth.as_ref().map(|auth| auth.cached_roles(cache, now)).unwrap_or_default();
    roles.iter().map(|role| VirtualRow::default().text("role", role)).collect()
}

fn permissions(services: &Services) -> Vec<VirtualRow> {
    let now = services.node.env.now();
    let keys = services.auth.as_ref().map(|auth| auth.cached_permissions(now)).unwrap_or_default();
    keys.iter().map(|(role, resource)| VirtualRow::default().text("role", role).text("resource", resource)).collect()
}

/// The cache forgets the role that a key begins with, or, without a key, everything.
fn forget(services: &Services, cache: AuthCacheKind, key: Option<&[&[u8]]>) {
    let Some(auth) = &services.auth else { return };
    match key.map(|key| key.first().map(|role| String::from_utf8_lossy(role))) {
        Some(Some(role)) => auth.invalidate(cache, Some(&role)),
        Some(None) => {}
        None => auth.invalidate(cache, None),
    }
}
