//! The caches of what was read of `system_auth`.

use serde::{Deserialize, Serialize};

/// A cache of what was read of `system_auth`, by role.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthCacheKind {
    /// Hashes of passwords.
    Credentials,
    /// The datacenters that roles may use. Its settings are those of the roles.
    NetworkPermissions,
    /// The permissions of roles.
    Permissions,
    /// Roles with those that they inherit.
    Roles,
}

/// Asks for the settings of a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GetAuthCache {
    /// The cache.
    pub cache: AuthCacheKind,
}

/// The settings of a cache.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AuthCacheInfo {
    /// An entry is used for so long, milliseconds; 0: nothing is kept.
    pub validity_millis: u64,
    /// An entry that is older is read again when it is used, milliseconds.
    pub update_interval_millis: u64,
    /// Entries at most.
    pub entries_max: usize,
    /// Entries are read again whether they are used or not.
    pub updates_actively: bool,
}

/// Changes a cache until the next start.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AuthCacheChange {
    /// The cache forgets a role, or everything.
    Invalidate(AuthCacheKind, Option<String>),
    /// Sets what is given.
    Set {
        /// The cache.
        cache: AuthCacheKind,
        /// Milliseconds.
        validity_millis: Option<u64>,
        /// Milliseconds; less than 0: nobody sets it any more, and the validity stands for it.
        update_interval_millis: Option<i64>,
        /// Entries at most.
        entries_max: Option<usize>,
    },
}
