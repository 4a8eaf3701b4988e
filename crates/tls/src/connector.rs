//! [`Connector`]: TLS of connections that this node opens.
//!
//! The peer must show a certificate that a trusted authority has signed. The name in the
//! certificate is not compared with the peer's address, as in Cassandra without
//! `require_endpoint_verification`: certificates of nodes often name nothing that can be looked up.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use arc_swap::ArcSwap;
use env::Stream;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio_rustls::TlsConnector;

use crate::{TlsOptions, identity, provider, roots, versions};

/// How connections that this node opens are encrypted. Clones share their keys and certificates.
#[derive(Clone)]
pub struct Connector(Arc<ArcSwap<ClientConfig>>);

impl Connector {
    /// Takes keys and certificates. Err: what is wrong with them. The certificate is shown to peers
    /// that ask for it; with an empty `identity` there is none.
    pub fn open(options: &TlsOptions) -> Result<Self, String> {
        let trusted = options.trusted.as_deref().ok_or("trusted certificates: there are none")?;
        let provider = provider(options)?;
        let verifier = WebPkiServerVerifier::builder_with_provider(roots(trusted)?, Arc::clone(&provider)).build();
        let chain_verifier = ChainVerifier(verifier.map_err(|error| format!("trusted certificates: {error}"))?);
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions(options))
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(chain_verifier));
        let config = match options.identity.is_empty() {
            true => builder.with_no_client_auth(),
            false => {
                let (chain, key) = identity(&options.identity)?;
                builder.with_client_auth_cert(chain, key).map_err(|error| error.to_string())?
            }
        };
        Ok(Self(Arc::new(ArcSwap::from_pointee(config))))
    }

    /// Uses the protocols, keys and certificates of `other` for connections that are opened from
    /// now on.
    pub fn take_over(&self, other: &Self) {
        self.0.store(other.0.load_full());
    }

    /// The connection behind its encryption. The caller limits the time.
    pub async fn connect(&self, to: IpAddr, stream: Box<dyn Stream>) -> io::Result<Box<dyn Stream>> {
        let name = ServerName::IpAddress(to.into());
        Ok(Box::new(TlsConnector::from(self.0.load_full()).connect(name, stream).await?))
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector(..)")
    }
}

/// Checks who has signed the certificate, and not the name in it.
#[derive(Debug)]
struct ChainVerifier(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for ChainVerifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        // the name is checked last: an error of the name says that the chain is good
        match self.0.verify_server_cert(certificate, between, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
