//! The classes of authentication and authorization (`AuthConfig.applyAuth`), the consistency levels
//! at which `system_auth` is read and written, and how long what was read is kept.
//!
//! Levels and times count in a ring. A node alone follows each write to `system_auth` at once, so
//! it accepts them at every value.

use std::time::Duration;

use crate::reader::Reader;
use crate::value::short_class;

/// Whether users log in, and what is checked for them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Auth {
    /// Whether users have to log in (authenticator: PasswordAuthenticator)
    pub authenticates: bool,
    /// Whether permissions are checked (authorizer: CassandraAuthorizer)
    pub authorizes: bool,
    /// Whether access to datacenters is checked (network_authorizer: CassandraNetworkAuthorizer)
    pub restricts_datacenters: bool,
    /// native_transport_max_auth_threads: most passwords that are hashed at a time
    pub threads: usize,
    /// auth_read_consistency_level, in capitals
    pub read_level: String,
    /// auth_write_consistency_level, in capitals
    pub write_level: String,
    /// auth_cache_warming_enabled: the caches are filled before clients are served
    pub warms_caches: bool,
    /// roles_validity and the like; the datacenters of roles are kept by them too
    pub roles: AuthCache,
    /// permissions_validity and the like
    pub permissions: AuthCache,
    /// credentials_validity and the like
    pub credentials: AuthCache,
}

/// How long a cache keeps what it has read of `system_auth`, and how much of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AuthCache {
    /// NAME_validity: an entry is used no longer than this; zero: nothing is kept
    pub validity: Duration,
    /// NAME_update_interval: the first use after this time has the entry read again, which nobody
    /// waits for; None: nobody has set it, and the validity stands for it
    pub update_interval: Option<Duration>,
    /// NAME_cache_max_entries
    pub entries_max: usize,
    /// NAME_cache_active_update: every entry is read again each update interval, used or not
    pub updates_actively: bool,
}

impl AuthCache {
    /// The age from which on the first use of an entry has it read again.
    pub fn renewal_age(&self) -> Duration {
        self.update_interval.unwrap_or(self.validity)
    }
}

/// Levels at which `system_auth` may be read.
const READ_LEVELS: [&str; 9] =
    ["ONE", "TWO", "THREE", "QUORUM", "ALL", "LOCAL_QUORUM", "EACH_QUORUM", "LOCAL_ONE", "NODE_LOCAL"];

/// Levels at which `system_auth` may be written.
const WRITE_LEVELS: [&str; 10] =
    ["ANY", "ONE", "TWO", "THREE", "QUORUM", "ALL", "LOCAL_QUORUM", "EACH_QUORUM", "LOCAL_ONE", "NODE_LOCAL"];

pub(crate) fn auth(reader: &mut Reader<'_>) -> Auth {
    let auth = Auth {
        authenticates: is_second(reader, "authenticator", ["AllowAllAuthenticator", "PasswordAuthenticator"]),
        authorizes: is_second(reader, "authorizer", ["AllowAllAuthorizer", "CassandraAuthorizer"]),
        restricts_datacenters: is_second(
            reader,
            "network_authorizer",
            ["AllowAllNetworkAuthorizer", "CassandraNetworkAuthorizer"],
        ),
        threads: reader.maybe_int("native_transport_max_auth_threads").and_then(|n| n.try_into().ok()).unwrap_or(0),
        read_level: level(reader, "auth_read_consistency_level", &READ_LEVELS),
        write_level: level(reader, "auth_write_consistency_level", &WRITE_LEVELS),
        warms_caches: reader.boolean("auth_cache_warming_enabled"),
        roles: cache(reader, "roles"),
        permissions: cache(reader, "permissions"),
        credentials: cache(reader, "credentials"),
    };
    let asked = [
        (auth.authorizes, "authorizer", "CassandraAuthorizer"),
        (auth.restricts_datacenters, "network_authorizer", "CassandraNetworkAuthorizer"),
    ];
    for (_, key, class) in asked.into_iter().filter(|(is_asked, ..)| *is_asked && !auth.authenticates) {
        reader.problem(key, &format!("{class} needs authenticator: PasswordAuthenticator"));
    }
    if auth.threads == 0 {
        reader.problem("native_transport_max_auth_threads", "must be positive");
    }
    auth
}

/// The name of a consistency level in capitals, as Cassandra takes it in any case.
fn level(reader: &mut Reader<'_>, key: &str, levels: &[&str]) -> String {
    let level = reader.text(key).unwrap_or_default().to_ascii_uppercase();
    if !levels.contains(&level.as_str()) {
        reader.problem(key, &format!("'{level}' is none of {}", levels.join(", ")));
    }
    level
}

fn cache(reader: &mut Reader<'_>, name: &str) -> AuthCache {
    let validity = reader.duration(&format!("{name}_validity"));
    let update_interval = reader.maybe_quantity(&format!("{name}_update_interval")).map(Duration::from_nanos);
    let key = format!("{name}_cache_max_entries");
    let entries_max = reader.maybe_int(&key).and_then(|n| usize::try_from(n).ok()).unwrap_or_else(|| {
        reader.problem(&key, "must not be negative");
        0
    });
    AuthCache {
        validity,
        update_interval,
        entries_max,
        updates_actively: reader.boolean(&format!("{name}_cache_active_update")),
    }
}

/// Whether the class is the second of the two that exist, by its name with or without package.
fn is_second(reader: &mut Reader<'_>, key: &str, classes: [&str; 2]) -> bool {
    let text = reader.text(key).unwrap_or_default();
    let is_of_auth = text == short_class(&text) || text.starts_with("org.apache.cassandra.auth.");
    match classes.iter().position(|class| is_of_auth && *class == short_class(&text)) {
        Some(which) => which == 1,
        None => {
            reader.problem(key, &format!("'{text}' is none of {}", classes.join(", ")));
            false
        }
    }
}
