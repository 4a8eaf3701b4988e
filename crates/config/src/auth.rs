//! Who may do what: the classes of authentication and authorization (`AuthConfig.applyAuth`).
//!
//! How long roles, permissions and credentials may be kept without looking again (`roles_validity` and its like) is accepted at every
//! value: what is kept follows each write at once.

use crate::reader::Reader;
use crate::value::short_class;

/// Who may do what.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Auth {
    /// authenticator: PasswordAuthenticator
    pub authenticates: bool,
    /// authorizer: CassandraAuthorizer
    pub authorizes: bool,
    /// network_authorizer: CassandraNetworkAuthorizer
    pub restricts_datacenters: bool,
    /// native_transport_max_auth_threads: passwords that are hashed at a time
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

/// Whether the class is the second of those that there are, by its name with or without package.
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
