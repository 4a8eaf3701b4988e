//! TLS to the nodes: a local socket for each node, and behind it the encrypted connection.
//!
//! The driver speaks without encryption to a listener on the loopback interface; each connection
//! that it accepts becomes one TLS connection to the node. The driver's own TLS would bring a
//! second cryptographic library, built from C, into the program. The cost: each request and answer
//! is copied once more and passes two more system calls. While the tool runs, every local user who
//! may open sockets can use the listeners.
//!
//! As in cassandra-stress, a node's certificate must be signed by a trusted one; the name in it is
//! not checked.

use std::collections::HashMap;
use std::future::Future;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme, version};
use scylla::errors::TranslationError;
use scylla::policies::address_translator::{AddressTranslator, UntranslatedPeer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;

use crate::Result;
use crate::settings::transport::{Transport, Version};

/// The listeners for nodes.
pub struct Tunnel {
    connector: TlsConnector,
    /// The port on which nodes listen.
    port: u16,
    /// The address of the listener for each node.
    listeners: Mutex<HashMap<SocketAddr, SocketAddr>>,
}

impl Tunnel {
    /// Reads certificates and keys.
    pub fn open(transport: &Transport, port: u16) -> Result<Self> {
        let connector = TlsConnector::from(Arc::new(config(transport)?));
        Ok(Self { connector, port, listeners: Mutex::default() })
    }

    /// The listener for a node. The first connection is opened here, so that an error is reported.
    pub async fn reach(&self, node: SocketAddr) -> Result<SocketAddr> {
        connect(&self.connector, node).await.map_err(|error| format!("TLS with {node}: {error}"))?;
        Ok(self.listener(node).await?)
    }

    async fn listener(&self, node: SocketAddr) -> std::io::Result<SocketAddr> {
        let mut listeners = self.listeners.lock().await;
        if let Some(address) = listeners.get(&node) {
            return Ok(*address);
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        tokio::spawn(stand(listener, self.connector.clone(), node));
        listeners.insert(node, address);
        Ok(address)
    }
}

/// Forwards connections until the program ends.
async fn stand(listener: TcpListener, connector: TlsConnector, node: SocketAddr) {
    while let Ok((mut inside, _)) = listener.accept().await {
        let connector = connector.clone();
        tokio::spawn(async move {
            let _ = inside.set_nodelay(true);
            // an error ends the connection, which the driver sees
            if let Ok(mut outside) = connect(&connector, node).await {
                let _ = tokio::io::copy_bidirectional(&mut inside, &mut outside).await;
            }
        });
    }
}

async fn connect(
    connector: &TlsConnector,
    node: SocketAddr,
) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let stream = TcpStream::connect(node).await?;
    stream.set_nodelay(true)?;
    connector.connect(ServerName::IpAddress(node.ip().into()), stream).await
}

impl AddressTranslator for Tunnel {
    fn translate_address<'life0, 'life1, 'async_trait>(
        &'life0 self,
        peer: &'life1 UntranslatedPeer<'_>,
    ) -> Pin<Box<dyn Future<Output = std::result::Result<SocketAddr, TranslationError>> + Send + 'async_trait>>
    where
        'life0: 'async_trait,
        'life1: 'async_trait,
        Self: 'async_trait,
    {
        let ip = peer.untranslated_address().ip();
        Box::pin(async move {
            // the port is the listener's; nodes listen on the port given with them, or on the
            // common one
            let named = self.listeners.lock().await.keys().find(|node| node.ip() == ip).copied();
            let node = named.unwrap_or(SocketAddr::new(ip, self.port));
            self.listener(node).await.map_err(|error| TranslationError::IoError(Arc::new(error)))
        })
    }
}

fn config(transport: &Transport) -> Result<ClientConfig> {
    let mut provider = ring::default_provider();
    if !transport.ciphers.is_empty() {
        let name = |suite: &rustls::SupportedCipherSuite| format!("{:?}", suite.suite()).replace("TLS13_", "TLS_");
        let known: Vec<String> = provider.cipher_suites.iter().map(name).collect();
        if let Some(unknown) = transport.ciphers.iter().find(|wanted| !known.contains(wanted)) {
            return Err(format!("-transport ssl-ciphers={unknown}: known are {}", known.join(",")).into());
        }
        provider.cipher_suites.retain(|suite| transport.ciphers.contains(&name(suite)));
    }
    let provider: Arc<CryptoProvider> = Arc::new(provider);
    let versions: &[&rustls::SupportedProtocolVersion] = match transport.version {
        Version::Any => &[&version::TLS13, &version::TLS12],
        Version::Tls12 => &[&version::TLS12],
        Version::Tls13 => &[&version::TLS13],
    };
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&transport.trusted)? {
        roots.add(certificate).map_err(|error| format!("{}: {error}", transport.trusted.display()))?;
    }
    let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone()).build()?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(ChainVerifier { chain }));
    Ok(match &transport.identity {
        None => builder.with_no_client_auth(),
        Some(path) => builder.with_client_auth_cert(certificates(path)?, key(path)?)?,
    })
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let shown = path.display();
    let text = std::fs::read(path).map_err(|error| format!("{shown}: {error}"))?;
    let read: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let read = read.map_err(|error| format!("{shown}: {error}"))?;
    if read.is_empty() {
        return Err(format!("{shown} holds no certificate in PEM; of a Java keystore one is made by `keytool -exportcert -rfc` or `openssl pkcs12 -nodes -in FILE`").into());
    }
    Ok(read)
}

fn key(path: &Path) -> Result<PrivateKeyDer<'static>> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| {
        let hint = "the key stands there in PEM, without a password, beside its certificate";
        format!("{}: {error} ({hint})", path.display()).into()
    })
}

/// Verifies the chain of a certificate, but not its name.
#[derive(Debug)]
struct ChainVerifier {
    chain: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for ChainVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        match self.chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
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
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls12_signature(message, cert, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        self.chain.verify_tls13_signature(message, cert, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}
