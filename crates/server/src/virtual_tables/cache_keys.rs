//! `*_cache_keys`: what the caches of authentication hold. There are no such caches: nothing is in them, and making them forget
//! something is done at once. Agrees with `RolesCacheKeysTable` and its kin.

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
