//! A node that is alone on a simulated machine, for tests of whole requests.

use std::net::SocketAddr;
use std::sync::Arc;

use cluster::{IdentityOptions, Node, Timeouts};
use config::Config;
use env::Env;
use storage::EngineOptions;

// the tests inside of the crate use this file too, and name the crate otherwise
use super::Services;

/// The address of the node, by which it is known and at which clients would find it.
pub fn address() -> SocketAddr {
    "127.0.0.1:9042".parse().expect("an address")
}

/// Starts the node on what is on the machine's disk, with the default configuration.
pub fn start(env: &Env, options: EngineOptions, num_tokens: u32, timeouts: Timeouts) -> Arc<Services> {
    let (engine, _) = storage::open(env, options).expect("a sound disk opens");
    let identity = IdentityOptions {
        cluster_name: "simulated".into(),
        adopt_cluster_name: false,
        num_tokens,
        adopt_tokens: false,
        initial_tokens: Vec::new(),
        host_id: None,
        takes_place: false,
        listen: address(),
        broadcast: address(),
        native: address(),
        place: None,
        joins: false,
    };
    let node = Node::open(engine, identity, timeouts).expect("a sound disk opens");
    let config = Config::load(None, &[], false).expect("the defaults");
    Arc::new(Services::new(node, config, Arc::default(), 1 << 20, 1 << 20, Arc::default()))
}
