//! `server_encryption_options` as `links` takes it: the PEM files are read here, once, at the
//! start.

use config::{InternodeEncryption, Pem, ServerEncryption};
use env::Env;
use links::{Encryption, Scope};
use tls::TlsOptions;

use crate::client_encryption::text;

/// How links between nodes are encrypted. Err: what is wrong with the files.
pub(crate) fn open(env: &Env, options: &ServerEncryption) -> Result<Encryption, String> {
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
    let scope = match options.internode {
        InternodeEncryption::None => Scope::None,
        InternodeEncryption::BetweenRacks => Scope::BetweenRacks,
        InternodeEncryption::BetweenDataCenters => Scope::BetweenDataCenters,
        InternodeEncryption::All => Scope::All,
    };
    if options.require_client_auth && matches!(scope, Scope::BetweenRacks | Scope::BetweenDataCenters) {
        tracing::warn!(
            "require_client_auth is weak with internode_encryption rack and dc: a node that lies about its address is \
             taken for a near one, whose links need no certificate; say all"
        );
    }
    let inbound = tls(&options.identity)?;
    let outbound = options.outbound_identity.as_ref().map(tls).transpose()?;
    Encryption::open(env, scope, &inbound, outbound.as_ref().unwrap_or(&inbound))
}
