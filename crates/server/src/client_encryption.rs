//! `client_encryption_options` as `transport` takes it, and `admin_encryption_options` as `admin`
//! does: the PEM files are read here, at the start and when [`crate::certificates`] looks at them.
//!
//! What the certificates and keys in them are good for is decided in `tls`.

use std::path::Path;

use config::{ClientEncryption, Pem};
use env::Env;
use tls::{Tls, TlsOptions};

use crate::certificates::{TlsFiles, WatchedCertificates};

/// The most bytes that a PEM file may have. A chain of certificates is shorter.
const PEM_SIZE_MAX: u64 = 1 << 20;

/// How connections are encrypted, and the look at the files of `key` while the node runs. Err: what
/// is wrong with the files, behind the key.
pub(crate) fn open(
    env: &Env,
    key: &'static str,
    options: &ClientEncryption,
) -> Result<(Tls, WatchedCertificates), String> {
    let behind_key = |why: String| format!("{key}: {why}");
    let read = read(env, options).map_err(behind_key)?;
    let tls = Tls::open(env, &read.accept).map_err(behind_key)?;
    let (options, of_env, used) = (options.clone(), env.clone(), tls.clone());
    let watched = WatchedCertificates {
        key,
        last_read: Ok(read),
        read: Box::new(move |env| self::read(env, &options)),
        apply: Box::new(move |read| {
            used.take_over(&Tls::open(&of_env, &read.accept)?);
            Ok(())
        }),
    };
    Ok((tls, watched))
}

fn read(env: &Env, options: &ClientEncryption) -> Result<TlsFiles, String> {
    let trusted = options.trusted.as_ref().filter(|_| options.require_client_auth);
    let accept = TlsOptions {
        identity: text(env, &options.identity)?,
        trusted: trusted.map(|trusted| text(env, trusted)).transpose()?,
        require_client_auth: options.require_client_auth,
        optional: options.optional,
        protocols: options.protocols.clone(),
        cipher_suites: options.cipher_suites.clone(),
    };
    Ok(TlsFiles { accept, connect: None })
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
