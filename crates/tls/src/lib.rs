//! TLS of connections: certificates and keys given as PEM, and a connection wrapped before anything
//! else is read of it.
//!
//! [`Tls`] wraps connections that are accepted: of clients, and of other nodes. With `optional` the
//! first byte says what a peer speaks: 0x16 begins a TLS handshake; neither a version of the native
//! protocol nor the magic number of a link between nodes begins with it. [`Connector`] wraps
//! connections that this node opens. Both can take over other keys and certificates while
//! connections come and go: a connection keeps those with which its handshake began. Agrees with
//! `client_encryption_options`, `server_encryption_options` and `PEMBasedSslContextFactory`.

mod connector;

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwap;
use env::{Env, Stream};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ProtocolVersion, RootCertStore, ServerConfig, ServerConnection, SupportedCipherSuite, SupportedProtocolVersion,
    version,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio_rustls::TlsAcceptor;

pub use connector::Connector;

/// From the connection to the end of the handshake.
const HANDSHAKE_MAX: Duration = Duration::from_secs(10);
/// The names that Java has for the versions.
const TLS_12: &str = "TLSv1.2";
const TLS_13: &str = "TLSv1.3";
/// The content type of a handshake record.
const HANDSHAKE_RECORD: u8 = 0x16;

/// How connections are to be encrypted. Names are those that Java has for them.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct TlsOptions {
    /// PEM of the private key and of its chain of certificates. Empty: a [`Connector`] shows none.
    pub identity: String,
    /// PEM of the authorities whose peers are trusted. Of clients only asked with
    /// `require_client_auth`; a [`Connector`] always needs it.
    pub trusted: Option<String>,
    /// Peers that open a connection must show a certificate of a trusted authority.
    pub require_client_auth: bool,
    /// Peers that open a connection need not encrypt.
    pub optional: bool,
    /// `TLSv1.2`, `TLSv1.3`; empty: both.
    pub protocols: Vec<String>,
    /// In the order in which they are preferred; empty: all.
    pub cipher_suites: Vec<String>,
}

/// How accepted connections are encrypted. Clones share their keys and certificates.
#[derive(Clone)]
pub struct Tls {
    env: Env,
    /// Protocol, keys and certificates of the next handshake. [`Tls::take_over`] replaces them.
    config: Arc<ArcSwap<ServerConfig>>,
    optional: bool,
}

/// How an accepted connection is encrypted. Names are those that Java has for them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncryptionInfo {
    /// `TLSv1.2` or `TLSv1.3`.
    pub protocol: &'static str,
    /// The cipher suite, such as `TLS_AES_256_GCM_SHA384`.
    pub cipher_suite: String,
}

impl EncryptionInfo {
    /// Of a connection whose handshake is done.
    fn of(connection: &ServerConnection) -> Self {
        // no other version is served
        let is_13 = connection.protocol_version() == Some(ProtocolVersion::TLSv1_3);
        let suite = connection.negotiated_cipher_suite();
        Self {
            protocol: if is_13 { TLS_13 } else { TLS_12 },
            cipher_suite: suite.as_ref().map(name_of).unwrap_or_default(),
        }
    }
}

impl Tls {
    /// Takes keys and certificates. Err: what is wrong with them.
    pub fn open(env: &Env, options: &TlsOptions) -> Result<Self, String> {
        let (chain, key) = identity(&options.identity)?;
        let provider = provider(options)?;
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&versions(options))
            .map_err(|error| error.to_string())?;
        let builder = match &options.trusted {
            Some(trusted) if options.require_client_auth => {
                let verifier = WebPkiClientVerifier::builder_with_provider(roots(trusted)?, provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| format!("trusted certificates: {error}"))?)
            }
            _ => builder.with_no_client_auth(),
        };
        let config = builder.with_single_cert(chain, key).map_err(|error| error.to_string())?;
        Ok(Self { env: env.clone(), config: Arc::new(ArcSwap::from_pointee(config)), optional: options.optional })
    }

    /// Uses the protocols, keys and certificates of `other` in handshakes that begin from now on.
    /// Sessions of TLS that could be resumed end with the old ones: a client whose certificate is
    /// trusted no longer does not come back by a session.
    pub fn take_over(&self, other: &Self) {
        self.config.store(other.config.load_full());
    }

    /// Whether connections without encryption are served, too.
    pub fn is_optional(&self) -> bool {
        self.optional
    }

    /// The connection behind its encryption; with `optional` as it is when the peer does not
    /// encrypt.
    pub async fn accept(&self, stream: Box<dyn Stream>) -> io::Result<Box<dyn Stream>> {
        Ok(self.accept_with_info(stream).await?.0)
    }

    /// As [`Tls::accept`], and tells how the connection is encrypted; None: it is not.
    pub async fn accept_with_info(
        &self,
        stream: Box<dyn Stream>,
    ) -> io::Result<(Box<dyn Stream>, Option<EncryptionInfo>)> {
        match self.env.timeout(HANDSHAKE_MAX, self.hand_shake(stream)).await {
            Ok(accepted) => accepted,
            Err(_) => Err(io::ErrorKind::TimedOut.into()),
        }
    }

    async fn hand_shake(&self, mut stream: Box<dyn Stream>) -> io::Result<(Box<dyn Stream>, Option<EncryptionInfo>)> {
        let first = stream.read_u8().await?;
        let whole = PeekedStream { first: Some(first), stream };
        match first {
            HANDSHAKE_RECORD => {
                let acceptor = TlsAcceptor::from(self.config.load_full());
                let accepted = acceptor.accept(whole).await?;
                let encrypted = EncryptionInfo::of(accepted.get_ref().1);
                Ok((Box::new(accepted), Some(encrypted)))
            }
            _ if self.optional => Ok((Box::new(whole), None)),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the peer does not encrypt, which is required here")),
        }
    }
}

/// Keys and certificates are secrets or long, so they are not printed.
impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("optional", &self.optional).finish_non_exhaustive()
    }
}

/// A chain of certificates, the node's own first, and its private key.
type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn identity(pem: &str) -> Result<Identity, String> {
    let chain = certificates(pem)?;
    if chain.is_empty() {
        return Err("no certificate stands beside the private key".to_owned());
    }
    if pem.contains("ENCRYPTED PRIVATE KEY") || pem.contains("Proc-Type: 4,ENCRYPTED") {
        return Err("the private key is encrypted, which is not read; `openssl pkey -in KEY` decrypts it".to_owned());
    }
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| format!("private key: {error}"))?;
    Ok((chain, key))
}

/// The authorities of a PEM text.
fn roots(pem: &str) -> Result<Arc<RootCertStore>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots.add(certificate).map_err(|error| format!("trusted certificates: {error}"))?;
    }
    match roots.is_empty() {
        true => Err("trusted certificates: there are none".to_owned()),
        false => Ok(Arc::new(roots)),
    }
}

fn provider(options: &TlsOptions) -> Result<Arc<CryptoProvider>, String> {
    Ok(Arc::new(CryptoProvider { cipher_suites: suites(options)?, ..ring::default_provider() }))
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<_, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    all.map_err(|error| format!("certificates: {error}"))
}

fn versions(options: &TlsOptions) -> Vec<&'static SupportedProtocolVersion> {
    let is_asked = |name: &str| options.protocols.is_empty() || options.protocols.iter().any(|asked| asked == name);
    let both = [(TLS_12, &version::TLS12), (TLS_13, &version::TLS13)];
    both.into_iter().filter_map(|(name, version)| is_asked(name).then_some(version)).collect()
}

/// The suites that are asked for, in that order, by the names that Java has for them.
fn suites(options: &TlsOptions) -> Result<Vec<SupportedCipherSuite>, String> {
    let all = ring::ALL_CIPHER_SUITES;
    if options.cipher_suites.is_empty() {
        return Ok(all.to_vec());
    }
    let find = |asked: &String| {
        all.iter().find(|suite| name_of(suite) == *asked).copied().ok_or_else(|| {
            let known: Vec<String> = all.iter().map(name_of).collect();
            format!("cipher suite {asked} is not there; these are: {}", known.join(", "))
        })
    };
    options.cipher_suites.iter().map(find).collect()
}

/// The name that Java has for a suite.
fn name_of(suite: &SupportedCipherSuite) -> String {
    suite.suite().as_str().unwrap_or_default().replace("TLS13_", "TLS_")
}

/// A stream of which the first byte has been looked at.
struct PeekedStream {
    first: Option<u8>,
    stream: Box<dyn Stream>,
}

impl AsyncRead for PeekedStream {
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

impl AsyncWrite for PeekedStream {
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
