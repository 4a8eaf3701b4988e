//! `server_encryption_options` as `links` takes it: the PEM files are read here, at the start and
//! when [`crate::certificates`] looks at them.

use config::{InternodeEncryption, Pem, ServerEncryption};
use env::Env;
use links::{Encryption, Scope};
use tls::TlsOptions;

use crate::certificates::{TlsFiles, WatchedCertificates};
use crate::client_encryption::text;

/// How links between nodes are encrypted, and the look at the files while the node runs. Err: what
/// is wrong with the files.
pub(crate) fn open(env: &Env, options: &ServerEncryption) -> Result<(Encryption, WatchedCertificates), String> {
    let scope = scope(options);
    if options.require_client_auth && matches!(scope, Scope::BetweenRacks | Scope::BetweenDataCenters) {
        tracing::warn!(
            "require_client_auth is weak with internode_encryption rack and dc: a node that lies about its address is \
             taken for a near one, whose links need no certificate; say all"
        );
    }
    let read = read(env, options)?;
    let encryption = encrypted(env, scope, &read)?;
    let (of_env, used, options) = (env.clone(), encryption.clone(), options.clone());
    let watched = WatchedCertificates {
        key: "server_encryption_options",
        last_read: Ok(read),
        read: Box::new(move |env| self::read(env, &options)),
        apply: Box::new(move |read| {
            used.take_over(&encrypted(&of_env, scope, read)?);
            Ok(())
        }),
    };
    Ok((encryption, watched))
}

fn encrypted(env: &Env, scope: Scope, read: &TlsFiles) -> Result<Encryption, String> {
    Encryption::open(env, scope, &read.accept, read.connect.as_ref().unwrap_or(&read.accept))
}

fn scope(options: &ServerEncryption) -> Scope {
    match options.internode {
        InternodeEncryption::None => Scope::None,
        InternodeEncryption::BetweenRacks => Scope::BetweenRacks,
        InternodeEncryption::BetweenDataCenters => Scope::BetweenDataCenters,
        InternodeEncryption::All => Scope::All,
    }
}

fn read(env: &Env, options: &ServerEncryption) -> Result<TlsFiles, String> {
    let tls = |identity: &Pem| {
        Ok::<_, String>(TlsOptions {
            identity: text(env, identity)?,
            trusted: Some(text(env, &options.trusted)?),
            require_client_auth: options.require_client_auth,
            optional: options.optional,
            protocols: options.protocols.clone(),
            cipher_suites: options.cipher_suites.clone(),
        })
    };
    let connect = options.outbound_identity.as_ref().map(tls).transpose()?;
    Ok(TlsFiles { accept: tls(&options.identity)?, connect })
}
