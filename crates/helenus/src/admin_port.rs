//! The options by which tools find the admin port of a node.

use std::path::PathBuf;

use admin::http::{Client, ClientTls, Login, NodeAddress, Password};
use clap::Args;

/// The admin port of a node, as nodetool names it.
#[derive(Args)]
pub struct AdminPort {
    /// The node's host.
    #[arg(short = 'H', long, default_value = "127.0.0.1")]
    host: String,
    /// The node's admin port.
    #[arg(short = 'p', long, default_value_t = admin::http::PORT)]
    port: u16,
    /// The file with the node's token [default: the node says where it is].
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Role that asks; a superuser needs no token.
    #[arg(short = 'u', long, requires = "password_file")]
    username: Option<String>,
    /// File with lines of a role and its password.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// Encrypt the connection; PEM file of the authorities that sign the node's certificate.
    #[arg(long, value_name = "FILE")]
    truststore: Option<PathBuf>,
    /// PEM file of the key and the certificate to show to a node that asks for one.
    #[arg(long, value_name = "FILE", requires = "truststore")]
    keystore: Option<PathBuf>,
}

impl AdminPort {
    /// The node. Err: a file that cannot be used.
    pub fn client(&self) -> Result<Client, String> {
        let login = self.username.clone().zip(self.password_file.clone());
        let tls = self.truststore.clone().map(|trusted| ClientTls { trusted, identity: self.keystore.clone() });
        let address = NodeAddress {
            host: self.host.clone(),
            port: self.port,
            token_file: self.token_file.clone(),
            login: login.map(|(user, file)| Login { user, password: Password::File(file) }),
            tls,
        };
        Client::open(env::real::env(), address).map_err(|error| error.to_string())
    }
}
