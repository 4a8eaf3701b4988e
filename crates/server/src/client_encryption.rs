//! `client_encryption_options` as `transport` takes it: the PEM files are read here, once, at the
//! start.
//!
//! What the certificates and keys in them are good for is decided in `tls`.

use std::path::Path;

use config::{ClientEncryption, Pem};
use env::Env;
use tls::{Tls, TlsOptions};

/// The most bytes that a PEM file may have. A chain of certificates is shorter.
const PEM_SIZE_MAX: u64 = 1 << 20;

/// How client connections are encrypted. Err: what is wrong with the files.
pub(crate) fn open(env: &Env, options: &ClientEncryption) -> Result<Tls, String> {
    let trusted = options.trusted.as_ref().filter(|_| options.require_client_auth);
    Tls::open(
        env,
        &TlsOptions {
            identity: text(env, &options.identity)?,
            trusted: trusted.map(|trusted| text(env, trusted)).transpose()?,
            require_client_auth: options.require_client_auth,
            optional: options.optional,
            protocols: options.protocols.clone(),
            cipher_suites: options.cipher_suites.clone(),
        },
    )
}

/// The text of keys and certificates.
pub(crate) fn text(env: &Env, pem: &Pem) -> Result<String, String> {
    match pem {
        Pem::Text(text) => Ok(text.clone()),
        Pem::File(path) => {
            let bytes = env.disk.read_all(Path::new(path), PEM_SIZE_MAX).map_err(|error| format!("{path}: {error}"))?;
            String::from_utf8(bytes).map_err(|_| format!("{path} is not PEM (keystores of Java are not read)"))
        }
    }
}
