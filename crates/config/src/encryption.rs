//! `client_encryption_options` and `server_encryption_options`: whether and how connections of
//! clients, and links between nodes, are encrypted (`EncryptionOptions`,
//! `PEMBasedSslContextFactory`).
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

/// The encryption of links between nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ServerEncryption {
    /// The links that this node encrypts when it opens them.
    pub internode: InternodeEncryption,
    /// Whether links without encryption are accepted from every node, on the same port.
    pub optional: bool,
    /// The private key and the certificates of this node, its own certificate first.
    pub identity: Pem,
    /// The private key and the certificates of links that this node opens; None:
    /// [`Self::identity`].
    pub outbound_identity: Option<Pem>,
    /// The certificates that sign those of the other nodes.
    pub trusted: Pem,
    /// Whether a node that opens a link must present a certificate.
    pub require_client_auth: bool,
    /// The accepted versions, TLSv1.2 and TLSv1.3; empty: both.
    pub protocols: Vec<String>,
    /// The cipher suites by their registered names; empty: all that the library has.
    pub cipher_suites: Vec<String>,
}

/// internode_encryption: the links that are encrypted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InternodeEncryption {
    /// None that this node opens. With `optional` it accepts encrypted ones.
    None,
    /// Links to nodes of other racks and data centers.
    BetweenRacks,
    /// Links to nodes of other data centers.
    BetweenDataCenters,
    /// All links.
    All,
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

/// The sub-keys of clients' connections that are honoured, and those without meaning for PEM.
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

/// The sub-keys that links between nodes have besides.
const KNOWN_OF_SERVERS: [&str; 5] = [
    "enable_legacy_ssl_storage_port",
    "internode_encryption",
    "legacy_ssl_storage_port_enabled",
    "outbound_keystore",
    "outbound_keystore_password",
];

const KEYSTORES: &str = "keystores of Java (JKS, PKCS12) are not read; say ssl_context_factory: {class_name: \
     PEMBasedSslContextFactory} and give PEM, which `openssl pkcs12 -in KEYSTORE -nodes` makes of a PKCS12 one";

/// Reads the sub-keys. None: connections are not encrypted. Err: a sub-key that cannot be honoured.
pub(crate) fn client_encryption(map: &Map<String, Json>) -> Result<Option<ClientEncryption>, String> {
    let optional = flag(map, "optional")?.unwrap_or(false);
    if !optional && !flag(map, "enabled")?.unwrap_or(false) {
        return Ok(None);
    }
    check_known(map, &KNOWN)?;
    let parameters = pem_parameters(map, &["private_key", "private_key_password", "trusted_certificates"])?;
    let part = |inline: &str, file: &str| part(map, parameters.as_ref(), inline, file);
    let identity = part("private_key", "keystore").ok_or(NO_IDENTITY)?;
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

/// Reads the sub-keys of links between nodes. None: they are not encrypted. Err: a sub-key that
/// cannot be honoured.
pub(crate) fn server_encryption(map: &Map<String, Json>) -> Result<Option<ServerEncryption>, String> {
    let optional = flag(map, "optional")?.unwrap_or(false);
    let internode = internode_encryption(map)?;
    for legacy in ["legacy_ssl_storage_port_enabled", "enable_legacy_ssl_storage_port"] {
        if flag(map, legacy)? == Some(true) {
            return Err(format!("{legacy} is not honoured: storage_port takes links with and without encryption"));
        }
    }
    if !optional && internode == InternodeEncryption::None {
        return Ok(None);
    }
    let known: Vec<&str> = KNOWN.into_iter().chain(KNOWN_OF_SERVERS).collect();
    check_known(map, &known)?;
    let parameters = pem_parameters(
        map,
        &[
            "private_key",
            "private_key_password",
            "trusted_certificates",
            "outbound_private_key",
            "outbound_private_key_password",
        ],
    )?;
    let part = |inline: &str, file: &str| part(map, parameters.as_ref(), inline, file);
    Ok(Some(ServerEncryption {
        internode,
        optional,
        identity: part("private_key", "keystore").ok_or(NO_IDENTITY)?,
        outbound_identity: part("outbound_private_key", "outbound_keystore"),
        trusted: part("trusted_certificates", "truststore").ok_or(
            "needs the certificates that sign those of the nodes: truststore, or the parameter trusted_certificates",
        )?,
        require_client_auth: flag(map, "require_client_auth")?.unwrap_or(false),
        protocols: protocols(map)?,
        cipher_suites: list(map, "cipher_suites")?,
    }))
}

fn internode_encryption(map: &Map<String, Json>) -> Result<InternodeEncryption, String> {
    match text(map, "internode_encryption").as_deref() {
        None | Some("none") => Ok(InternodeEncryption::None),
        Some("rack") => Ok(InternodeEncryption::BetweenRacks),
        Some("dc") => Ok(InternodeEncryption::BetweenDataCenters),
        Some("all") => Ok(InternodeEncryption::All),
        Some(other) => Err(format!("internode_encryption '{other}' is none of none, rack, dc, all")),
    }
}

const NO_IDENTITY: &str = "needs a private key with its certificates: keystore, or the parameter private_key";

/// Refuses sub-keys that are not there, or that are not honoured.
fn check_known(map: &Map<String, Json>, known: &[&str]) -> Result<(), String> {
    if let Some(unknown) = map.keys().find(|key| !known.contains(&key.as_str())) {
        return Err(format!("{unknown} is no sub-key"));
    }
    match flag(map, "require_endpoint_verification")? {
        Some(true) => Err("require_endpoint_verification is not honoured".to_owned()),
        _ => Ok(()),
    }
}

/// A key or certificates: a parameter of the factory with the text, or a sub-key with a file.
fn part(map: &Map<String, Json>, parameters: Option<&Map<String, Json>>, inline: &str, file: &str) -> Option<Pem> {
    let here = parameters.and_then(|parameters| text(parameters, inline)).map(Pem::Text);
    here.or_else(|| text(map, file).map(Pem::File))
}

fn pem_parameters(map: &Map<String, Json>, known: &[&str]) -> Result<Option<Map<String, Json>>, String> {
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
    fn links_between_nodes_are_encrypted_as_asked() {
        use serde_json::json;
        let read = |json: Json| server_encryption(json.as_object().expect("a map"));
        let pem = json!({"class_name": "org.apache.cassandra.security.PEMBasedSslContextFactory"});
        let shipped = json!({"internode_encryption": "none", "legacy_ssl_storage_port_enabled": false,
            "require_client_auth": false, "require_endpoint_verification": false});
        assert_eq!(read(shipped), Ok(None));
        let given = |more: Json| {
            let mut given = json!({"ssl_context_factory": pem, "keystore": "k.pem", "truststore": "t.pem"});
            let more = more.as_object().expect("a map").clone();
            given.as_object_mut().expect("a map").extend(more);
            read(given)
        };
        for (word, internode) in [
            ("rack", InternodeEncryption::BetweenRacks),
            ("dc", InternodeEncryption::BetweenDataCenters),
            ("all", InternodeEncryption::All),
        ] {
            let read = given(json!({"internode_encryption": word})).expect("honoured").expect("asked");
            assert_eq!((read.internode, read.optional), (internode, false));
            assert_eq!((read.identity, read.trusted), (Pem::File("k.pem".to_owned()), Pem::File("t.pem".to_owned())));
        }
        let transitional =
            given(json!({"optional": true, "outbound_keystore": "o.pem"})).expect("honoured").expect("asked");
        assert_eq!((transitional.internode, transitional.optional), (InternodeEncryption::None, true));
        assert_eq!(transitional.outbound_identity, Some(Pem::File("o.pem".to_owned())));
        for (asked, why) in [
            (json!({"internode_encryption": "some"}), "internode_encryption 'some' is none of"),
            (json!({"internode_encryption": "all", "colour": "red"}), "colour is no sub-key"),
            (json!({"internode_encryption": "all", "truststore": null}), "certificates that sign"),
            (
                json!({"internode_encryption": "all", "legacy_ssl_storage_port_enabled": true}),
                "legacy_ssl_storage_port_enabled",
            ),
            (json!({"enable_legacy_ssl_storage_port": true}), "enable_legacy_ssl_storage_port is not honoured"),
            (json!({"internode_encryption": "all", "ssl_context_factory": null}), "keystores of Java"),
        ] {
            assert!(given(asked.clone()).is_err_and(|error| error.contains(why)), "{asked}");
        }
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
