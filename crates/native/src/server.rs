//! Starts a native transport.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use env::Env;
use protocol::ProtocolVersion;
use stdx::ByteBudget;
use tls::Tls;
use transport::ServerLimits;

use crate::authenticator::{AllowAll, Authenticator};
use crate::handler::RequestHandler;
use crate::session::{NativeService, Shared};
use crate::{EventHub, Server};

/// The options that a native transport is started with.
pub struct ServerOptions {
    /// The address to listen on; port 0 takes any free one.
    pub address: SocketAddr,
    /// Number of workers; one for each core is right.
    pub workers: usize,
    /// Whether each worker is bound to a core.
    pub pin: bool,
    /// True: clients are served only after [`crate::ServerHandle::resume`].
    pub is_closed: bool,
    /// Limits of connections and requests.
    pub limits: ServerLimits,
    /// The judge of logins.
    pub authenticator: Arc<dyn Authenticator>,
    /// How connections are encrypted; None: they are not.
    pub tls: Option<Tls>,
    /// The hub from which events come.
    pub events: Arc<EventHub>,
    /// The memory that large results may take together. Results in out buffers count until they are
    /// written.
    pub results: Arc<ByteBudget>,
    /// `CQL_VERSION` of SUPPORTED.
    pub cql_version: String,
}

impl ServerOptions {
    /// Options for one worker on this address, with default limits and without logins.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            workers: 1,
            pin: false,
            is_closed: false,
            limits: ServerLimits::default(),
            authenticator: Arc::new(AllowAll),
            tls: None,
            events: Arc::default(),
            results: ByteBudget::new(usize::MAX),
            cql_version: "3.4.7".to_owned(),
        }
    }
}

/// Starts the workers; returns when all of them listen. `make_handler` is called on each worker's
/// thread with its number.
pub fn start<H: RequestHandler>(
    env: &Env,
    options: ServerOptions,
    make_handler: impl Fn(usize) -> H + Send + Sync + 'static,
) -> io::Result<Server> {
    let ServerOptions { address, workers, pin, is_closed, limits, authenticator, tls, events, results, cql_version } =
        options;
    let supported = supported(cql_version);
    let shared = Arc::new(Shared { limits: limits.clone(), authenticator, supported });
    let options = transport::ServerOptions { address, workers, pin, is_closed, limits, tls, events, results };
    Server::start(env, options, move |number| NativeService::new(make_handler(number), Arc::clone(&shared)))
}

/// The options of SUPPORTED, in the order in which Cassandra sends them.
fn supported(cql_version: String) -> Vec<(String, Vec<String>)> {
    let versions = ProtocolVersion::ALL.map(|version| version.name().to_owned()).to_vec();
    vec![
        ("PROTOCOL_VERSIONS".to_owned(), versions),
        ("COMPRESSION".to_owned(), vec!["snappy".to_owned(), "lz4".to_owned()]),
        ("CQL_VERSION".to_owned(), vec![cql_version]),
    ]
}
