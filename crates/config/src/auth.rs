//! The classes of authentication and authorization (`AuthConfig.applyAuth`).
//!
//! The times for which roles, permissions and credentials may be cached (`roles_validity` and the
//! like) are accepted at every value, because the node's cache follows each write at once.

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
}

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
