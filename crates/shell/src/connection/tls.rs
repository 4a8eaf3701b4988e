//! TLS to the server, by cqlsh's settings: a trusted certificate, validation, a client's own
//! certificate.
//!
//! As in cqlsh, a server's certificate must be signed by the trusted one; the name in it is not
//! checked. Without validation every certificate is accepted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, version};
use tokio_rustls::TlsConnector;

/// The trusted certificates, and the one that this client shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// PEM file of the trusted certificates.
    pub trusted: Option<PathBuf>,
    /// Whether the server's certificate is checked.
    pub validate: bool,
    /// PEM files of this client's certificate and of its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// Reads certificates and keys.
pub fn connector(settings: &TlsSettings) -> Result<TlsConnector, String> {
    let provider: Arc<CryptoProvider> = Arc::new(ring::default_provider());
    let mut trusted = Vec::new();
    let chain = match (&settings.trusted, settings.validate) {
        (_, false) => None,
        (None, true) => {
            return Err("the server's certificate is to be checked, but no trusted one is named: set certfile in [ssl] of cqlshrc or SSL_CERTFILE, or validate = false (SSL_VALIDATE=false) to trust any".into());
        }
        (Some(path), true) => {
            let mut roots = RootCertStore::empty();
            trusted = certificates(path)?;
            for certificate in trusted.clone() {
                roots.add(certificate).map_err(|error| format!("{}: {error}", path.display()))?;
            }
            let built = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build();
            Some(built.map_err(|error| format!("{}: {error}", path.display()))?)
        }
    };
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&version::TLS13, &version::TLS12])
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(ChainVerifier { chain, trusted, provider }));
    let config = match &settings.identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key_path)) => {
            let key = PrivateKeyDer::from_pem_file(key_path)
                .map_err(|error| format!("{}: {error} (a key in PEM without a password)", key_path.display()))?;
            let own = builder.with_client_auth_cert(certificates(certificate)?, key);
            own.map_err(|error| format!("{}: {error}", certificate.display()))?
        }
    };
    Ok(TlsConnector::from(Arc::new(config)))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let shown = path.display();
    let text = std::fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let read = read.map_err(|error| format!("{shown}: {error}"))?;
    match read.is_empty() {
        true => Err(format!("{shown} holds no certificate in PEM")),
        false => Ok(read),
    }
}

/// Checks the chain of a certificate, but not its name; without a chain nothing is checked.
#[derive(Debug)]
struct ChainVerifier {
    chain: Option<Arc<WebPkiServerVerifier>>,
    /// The trusted certificates. A node may show one of them itself: such a certificate is signed
    /// by its own key and has no chain. Its last day is not checked.
    trusted: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ChainVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        if self.trusted.iter().any(|trusted| trusted.as_ref() == end_entity.as_ref()) {
            return Ok(ServerCertVerified::assertion());
        }
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // the name is checked last, so the chain is good
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, cert, signed, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
