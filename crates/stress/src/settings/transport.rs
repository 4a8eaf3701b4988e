//! TLS between this tool and the nodes; certificates and keys are PEM files, as for the server.

use std::path::PathBuf;

use super::words::Words;
use crate::Result;

/// The option `-transport`.
pub struct Transport {
    /// The certificates one of which must have signed a node's certificate.
    pub trusted: PathBuf,
    /// The certificate and key of this tool, for nodes that ask for one.
    pub identity: Option<PathBuf>,
    pub version: Version,
    /// Names of cipher suites; empty: those of the library.
    pub ciphers: Vec<String>,
}

/// Versions of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    Any,
    Tls12,
    Tls13,
}

impl Transport {
    /// Reads the words of `-transport`. None: connections are not encrypted.
    pub fn parse(mut words: Words) -> Result<Option<Self>> {
        if words.is_empty() {
            return Ok(None);
        }
        for password in ["truststore-password=", "keystore-password="] {
            words.refuse(
                password,
                "PEM files are read here, without a password (`openssl pkcs12 -nodes` and `openssl pkey` write them)",
            )?;
        }
        words.refuse("ssl-alg=", "it chooses among Java's implementations; there is but one here")?;
        let trusted = words.value("truststore=").map(PathBuf::from);
        let identity = words.value("keystore=").map(PathBuf::from);
        let version = match words.value("ssl-protocol=").as_deref() {
            None | Some("TLS") => Version::Any,
            Some("TLSv1.2") => Version::Tls12,
            Some("TLSv1.3") => Version::Tls13,
            Some(other) => {
                return Err(format!("-transport ssl-protocol={other} is not TLS, TLSv1.2 or TLSv1.3").into());
            }
        };
        let ciphers = words.value("ssl-ciphers=").unwrap_or_default();
        let ciphers = ciphers.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect();
        words.end()?;
        let trusted =
            trusted.ok_or("-transport needs truststore=FILE.pem: the certificates that nodes' are signed by")?;
        Ok(Some(Self { trusted, identity, version, ciphers }))
    }
}
