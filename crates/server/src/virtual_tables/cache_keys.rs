//! `*_cache_keys`: the keys in the caches of authentication. There are no such caches, so the
//! tables are empty, and deleting a key from them has no effect. Agrees with `RolesCacheKeysTable`
//! and its kin.

use super::{Mutable, VirtualTable};

pub(super) const TABLES: &[VirtualTable] = &[
    keys_of("credentials_cache_keys"),
    keys_of("jmx_permissions_cache_keys"),
    keys_of("network_permissions_cache_keys"),
    keys_of("permissions_cache_keys"),
    keys_of("roles_cache_keys"),
];

const fn keys_of(name: &'static str) -> VirtualTable {
    VirtualTable {
        mutable: Some(Mutable { delete_partition: Some(|_, _| {}), truncate: |_| {} }),
        ..VirtualTable::of_views(name, |_| Vec::new())
    }
}
