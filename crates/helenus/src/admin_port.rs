//! The options by which tools find the admin port of a node.

use std::path::PathBuf;

use admin::http::{Client, NodeAddress};
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
}

impl AdminPort {
    /// The node.
    pub fn client(&self) -> Client {
        let address = NodeAddress { host: self.host.clone(), port: self.port, token_file: self.token_file.clone() };
        Client::new(env::real::env(), address)
    }
}
