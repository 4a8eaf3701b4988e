//! `client_encryption_options`: whether and how connections of clients are encrypted
//! (`EncryptionOptions`, `PEMBasedSslContextFactory`).
//!
//! Keys and certificates are PEM, given as text or as files. Java keystores are refused with a hint
//! how to convert them to PEM. Every sub-key is honoured or refused by name.

use serde_json::{Map, Value as Json};

use crate::value::short_class;

/// The encryption of client connections.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientEncryption {
    /// Whether connections without encryption are served too, on the same port.
    pub optional: bool,
    /// The private key and the certificates of this node, its own certificate first.
    pub identity: Pem,
    /// The certificates that sign those of clients; None: not given.
    pub trusted: Option<Pem>,
    /// Whether clients must present a certificate.
    pub require_client_auth: bool,
    /// The accepted versions, TLSv1.2 and TLSv1.3; empty: both.
    pub protocols: Vec<String>,
    /// The cipher suites by their registered names; empty: all that the library has.
    pub cipher_suites: Vec<String>,
}

/// Keys and certificates in PEM form.
#[derive(Clone, PartialEq, Eq)]
pub enum Pem {
    /// The path of a file.
    File(String),
    /// The text itself.
    Text(String),
}

/// A key is a secret, so it is not printed.
impl std::fmt::Debug for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path) => write!(f, "File({path:?})"),
            Self::Text(_) => f.write_str("Text(..)"),
        }
    }
}

/// The sub-keys that are honoured, and those without meaning for PEM.
const KNOWN: [&str; 14] = [
    "accepted_protocols",
    "algorithm",
    "cipher_suites",
    "enabled",
    "keystore",
    "keystore_password",
    "optional",
    "protocol",
    "require_client_auth",
    "require_endpoint_verification",
    "ssl_context_factory",
    "store_type",
    "truststore",
    "truststore_password",
];

const KEYSTORES: &str = "keystores of Java (JKS, PKCS12) are not read; say ssl_context_factory: {class_name: \
     PEMBasedSslContextFactory} and give PEM, which `openssl pkcs12 -in KEYSTORE -nodes` makes of a PKCS12 one";

/// Reads the sub-keys. None: connections are not encrypted. Err: a sub-key that cannot be honoured.
pub(crate) fn client_encryption(map: &Map<String, Json>) -> Result<Option<ClientEncryption>, String> {
    let optional = flag(map, "optional")?.unwrap_or(false);
    if !optional && !flag(map, "enabled")?.unwrap_or(false) {
        return Ok(None);
    }
    if let Some(unknown) = map.keys().find(|key| !KNOWN.contains(&key.as_str())) {
        return Err(format!("{unknown} is no sub-key"));
    }
    if flag(map, "require_endpoint_verification")? == Some(true) {
        return Err("require_endpoint_verification is not honoured".to_owned());
    }
    let parameters = pem_parameters(map)?;
    let part = |inline: &str, file: &str| {
        let here = parameters.as_ref().and_then(|parameters| text(parameters, inline)).map(Pem::Text);
        here.or_else(|| text(map, file).map(Pem::File))
    };
    let identity = part("private_key", "keystore").ok_or_else(|| {
        "needs a private key with its certificates: keystore, or the parameter private_key".to_owned()
    })?;
    let trusted = part("trusted_certificates", "truststore");
    let require_client_auth = flag(map, "require_client_auth")?.unwrap_or(false);
    if require_client_auth && trusted.is_none() {
        return Err("require_client_auth needs a truststore, or the parameter trusted_certificates".to_owned());
    }
    let cipher_suites = list(map, "cipher_suites")?;
    Ok(Some(ClientEncryption {
        optional,
        identity,
        trusted,
        require_client_auth,
        protocols: protocols(map)?,
        cipher_suites,
    }))
}

fn pem_parameters(map: &Map<String, Json>) -> Result<Option<Map<String, Json>>, String> {
    let Some(Json::Object(factory)) = map.get("ssl_context_factory") else { return Err(KEYSTORES.to_owned()) };
    match factory.get("class_name").and_then(Json::as_str).map(short_class) {
        Some("PEMBasedSslContextFactory") => {}
        Some("DefaultSslContextFactory") | None => return Err(KEYSTORES.to_owned()),
        Some(other) => return Err(format!("ssl_context_factory '{other}' is not PEMBasedSslContextFactory")),
    }
    let parameters = match factory.get("parameters") {
        Some(Json::Object(parameters)) => parameters.clone(),
        _ => return Ok(None),
    };
    let known = ["private_key", "private_key_password", "trusted_certificates"];
    match parameters.keys().find(|key| !known.contains(&key.as_str())) {
        Some(unknown) => Err(format!("{unknown} is no parameter of PEMBasedSslContextFactory")),
        None => Ok(Some(parameters)),
    }
}

/// The accepted versions. `protocol: TLS` means any; `accepted_protocols` takes precedence.
fn protocols(map: &Map<String, Json>) -> Result<Vec<String>, String> {
    let mut asked = list(map, "accepted_protocols")?;
    if asked.is_empty() {
        asked.extend(text(map, "protocol").filter(|protocol| protocol != "TLS"));
    }
    match asked.iter().find(|protocol| !["TLSv1.2", "TLSv1.3"].contains(&protocol.as_str())) {
        Some(other) => Err(format!("protocol {other} is not spoken: TLSv1.2 and TLSv1.3 are")),
        None => Ok(asked),
    }
}

fn flag(map: &Map<String, Json>, key: &str) -> Result<Option<bool>, String> {
    match map.get(key) {
        None | Some(Json::Null) => Ok(None),
        Some(Json::Bool(flag)) => Ok(Some(*flag)),
        Some(other) => match other.as_str().map(str::to_ascii_lowercase).as_deref() {
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            _ => Err(format!("{key} is neither true nor false")),
        },
    }
}

fn text(map: &Map<String, Json>, key: &str) -> Option<String> {
    map.get(key).and_then(Json::as_str).filter(|text| !text.trim().is_empty()).map(str::to_owned)
}

fn list(map: &Map<String, Json>, key: &str) -> Result<Vec<String>, String> {
    match map.get(key) {
        None | Some(Json::Null) => Ok(Vec::new()),
        Some(Json::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| format!("{key} must be a list of names")))
            .collect(),
        Some(_) => Err(format!("{key} must be a list of names")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: Json) -> Result<Option<ClientEncryption>, String> {
        client_encryption(json.as_object().expect("a map"))
    }

    #[test]
    fn what_is_asked_is_read_or_refused() {
        use serde_json::json;
        let pem = json!({"class_name": "org.apache.cassandra.security.PEMBasedSslContextFactory"});
        assert_eq!(read(json!({"enabled": false, "keystore": "conf/.keystore"})), Ok(None));
        let read_pem = read(json!({"enabled": true, "ssl_context_factory": pem, "keystore": "a.pem"}));
        let encryption = read_pem.expect("honoured").expect("asked");
        assert_eq!((encryption.identity, encryption.optional), (Pem::File("a.pem".to_owned()), false));
        let inline = json!({"class_name": "PEMBasedSslContextFactory", "parameters": {"private_key": "KEY"}});
        let encryption =
            read(json!({"optional": true, "ssl_context_factory": inline})).expect("honoured").expect("asked");
        assert_eq!((encryption.identity, encryption.optional), (Pem::Text("KEY".to_owned()), true));
        for (asked, why) in [
            (json!({"enabled": true, "keystore": "conf/.keystore"}), "keystores of Java"),
            (json!({"enabled": true, "ssl_context_factory": pem}), "needs a private key"),
            (
                json!({"enabled": true, "ssl_context_factory": pem, "keystore": "k", "require_client_auth": true}),
                "needs a truststore",
            ),
            (
                json!({"enabled": true, "ssl_context_factory": pem, "keystore": "k", "protocol": "TLSv1.1"}),
                "TLSv1.1 is not spoken",
            ),
            (
                json!({"enabled": true, "ssl_context_factory": pem, "keystore": "k", "colour": "red"}),
                "colour is no sub-key",
            ),
            (
                json!({"enabled": true, "ssl_context_factory": {"class_name": "x.Other"}, "keystore": "k"}),
                "'Other' is not",
            ),
            (json!({"enabled": "perhaps"}), "neither true nor false"),
        ] {
            assert!(read(asked.clone()).is_err_and(|error| error.contains(why)), "{asked}");
        }
    }
}
