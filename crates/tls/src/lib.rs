//! TLS of connections: certificates and keys given as PEM, and a connection wrapped before anything
//! else is read of it.
//!
//! With `optional` the first byte says what a client speaks: 0x16 begins a TLS handshake, and no
//! version of the native protocol has that number. Agrees with `client_encryption_options` and
//! `PEMBasedSslContextFactory`. Certificates are not read again while the node runs.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use env::{Env, Stream};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion, version};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio_rustls::TlsAcceptor;

/// From the connection to the end of the handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// The content type of a handshake record.
const HANDSHAKE_RECORD: u8 = 0x16;

/// How connections are to be encrypted. Names are those that Java has for them.
#[derive(Clone, Default)]
pub struct TlsOptions {
    /// PEM of the private key and of its chain of certificates.
    pub identity: String,
    /// PEM of the authorities whose clients are trusted. Only asked with `require_client_auth`.
    pub trusted: Option<String>,
    /// Clients must show a certificate of a trusted authority.
    pub require_client_auth: bool,
    /// Clients need not encrypt.
    pub optional: bool,
    /// `TLSv1.2`, `TLSv1.3`; empty: both.
    pub protocols: Vec<String>,
    /// In the order in which they are preferred; empty: all.
    pub cipher_suites: Vec<String>,
}

/// How connections are encrypted.
pub struct Tls {
    env: Env,
    acceptor: TlsAcceptor,
    optional: bool,
}

impl Tls {
    /// Takes keys and certificates. Err: what is wrong with them.
    pub fn open(env: &Env, options: &TlsOptions) -> Result<Self, String> {
        let identity = &options.identity;
        let chain: Vec<CertificateDer<'static>> = certificates(identity)?;
        if chain.is_empty() {
            return Err("no certificate stands beside the private key".to_owned());
        }
        if identity.contains("ENCRYPTED PRIVATE KEY") || identity.contains("Proc-Type: 4,ENCRYPTED") {
            return Err(
                "the private key is encrypted, which is not read; `openssl pkey -in KEY` decrypts it".to_owned()
            );
        }
        let key =
            PrivateKeyDer::from_pem_slice(identity.as_bytes()).map_err(|error| format!("private key: {error}"))?;
        let provider = Arc::new(CryptoProvider { cipher_suites: suites(options)?, ..ring::default_provider() });
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions(options))
            .map_err(|error| error.to_string())?;
        let builder = match &options.trusted {
            Some(trusted) if options.require_client_auth => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(trusted)? {
                    roots.add(certificate).map_err(|error| format!("trusted certificates: {error}"))?;
                }
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| format!("trusted certificates: {error}"))?)
            }
            _ => builder.with_no_client_auth(),
        };
        let config = builder.with_single_cert(chain, key).map_err(|error| error.to_string())?;
        Ok(Self { env: env.clone(), acceptor: TlsAcceptor::from(Arc::new(config)), optional: options.optional })
    }

    /// The connection behind its encryption; with `optional` as it is when the client does not
    /// encrypt.
    pub async fn accept(&self, stream: Box<dyn Stream>) -> io::Result<Box<dyn Stream>> {
        match self.env.timeout(HANDSHAKE_MAX, self.hand_shake(stream)).await {
            Ok(accepted) => accepted,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    async fn hand_shake(&self, mut stream: Box<dyn Stream>) -> io::Result<Box<dyn Stream>> {
        if !self.optional {
            return Ok(Box::new(self.acceptor.accept(stream).await?));
        }
        let first = stream.read_u8().await?;
        let whole = Sniffed { first: Some(first), stream };
        match first {
            HANDSHAKE_RECORD => Ok(Box::new(self.acceptor.accept(whole).await?)),
            _ => Ok(Box::new(whole)),
        }
    }
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<_, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    all.map_err(|error| format!("certificates: {error}"))
}

fn versions(options: &TlsOptions) -> Vec<&'static SupportedProtocolVersion> {
    let is_asked = |name: &str| options.protocols.is_empty() || options.protocols.iter().any(|asked| asked == name);
    let both = [("TLSv1.2", &version::TLS12), ("TLSv1.3", &version::TLS13)];
    both.into_iter().filter_map(|(name, version)| is_asked(name).then_some(version)).collect()
}

/// Those that are asked for, in that order, by the names that Java has for them.
fn suites(options: &TlsOptions) -> Result<Vec<SupportedCipherSuite>, String> {
    let all = ring::ALL_CIPHER_SUITES;
    if options.cipher_suites.is_empty() {
        return Ok(all.to_vec());
    }
    let name = |suite: &SupportedCipherSuite| suite.suite().as_str().unwrap_or_default().replace("TLS13_", "TLS_");
    let find = |asked: &String| {
        all.iter().find(|suite| name(suite) == *asked).copied().ok_or_else(|| {
            let known: Vec<String> = all.iter().map(name).collect();
            format!("cipher suite {asked} is not there; these are: {}", known.join(", "))
        })
    };
    options.cipher_suites.iter().map(find).collect()
}

/// A stream of which the first byte has been looked at.
struct Sniffed {
    first: Option<u8>,
    stream: Box<dyn Stream>,
}

impl AsyncRead for Sniffed {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if out.remaining() > 0
            && let Some(first) = self.first.take()
        {
            out.put_slice(&[first]);
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, out)
    }
}

impl AsyncWrite for Sniffed {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
