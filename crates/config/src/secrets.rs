//! The secret parts of a configuration: passwords, private keys and the paths of key stores,
//! however deep they stand.
//!
//! `settings` and debugging output show [`REDACTED`] in their place. Agrees with `@Redacted` on the
//! fields of `org.apache.cassandra.config.EncryptionOptions` and with the parameters that
//! `SettingsTable` hides; Cassandra shows the `private_key` of `PEMBasedSslContextFactory`, which
//! is hidden here.

use serde_json::Value as Json;

/// The text that is shown instead of a secret, as in Cassandra.
pub const REDACTED: &str = "<REDACTED>";

/// Ends of the names of keys whose values are secret.
const SECRET_ENDS: [&str; 6] = ["password", "passphrase", "private_key", "secret", "keystore", "truststore"];

/// Whether the value of a key or parameter of this name is secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_ENDS.iter().any(|end| name.ends_with(end))
}

/// A copy of a value in which every secret is replaced.
pub fn redacted(json: &Json) -> Json {
    match json {
        Json::Array(items) => Json::Array(items.iter().map(redacted).collect()),
        Json::Object(map) => {
            let entry = |(name, value): (&String, &Json)| {
                let shown = if is_secret(name) { Json::String(REDACTED.to_owned()) } else { redacted(value) };
                (name.clone(), shown)
            };
            Json::Object(map.iter().map(entry).collect())
        }
        other => other.clone(),
    }
}

/// A value as Java writes maps and lists, secrets replaced: `{a=b, c=[d, e]}`.
pub fn java_text(json: &Json) -> String {
    match json {
        Json::String(text) => text.clone(),
        Json::Array(items) => {
            let items: Vec<String> = items.iter().map(java_text).collect();
            format!("[{}]", items.join(", "))
        }
        Json::Object(map) => {
            let entry = |(name, value): (&String, &Json)| {
                let shown = if is_secret(name) { REDACTED.to_owned() } else { java_text(value) };
                format!("{name}={shown}")
            };
            let entries: Vec<String> = map.iter().map(entry).collect();
            format!("{{{}}}", entries.join(", "))
        }
        other => other.to_string(),
    }
}
