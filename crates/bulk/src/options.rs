//! The options of a load.

use std::net::IpAddr;

use tls::TlsOptions;

use crate::native::Access;

/// Bytes a second; 0: without a limit. Each limit holds for all peers together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Throttle {
    /// Of parts of SSTables.
    pub parts: u64,
    /// Of these to other data centers than that of the node which was asked for the ring, beside
    /// the first limit.
    pub parts_inter_dc: u64,
    /// As `parts`, of SSTables that go whole.
    pub entire: u64,
    /// As `parts_inter_dc`, of SSTables that go whole.
    pub entire_inter_dc: u64,
}

/// The options of a load.
#[derive(Clone)]
pub struct Options {
    /// Where the ring is asked for, and how.
    pub access: Access,
    /// The keyspace into which rows are loaded.
    pub keyspace: String,
    /// The table into which rows are loaded.
    pub table: String,
    /// The port on which nodes listen for each other; None: as the ring tells.
    pub storage_port: Option<u16>,
    /// Encryption of links to the nodes (`server_encryption_options`); None: there is none.
    pub internode_tls: Option<TlsOptions>,
    /// Addresses of nodes to which nothing is streamed.
    pub ignored: Vec<IpAddr>,
    /// Sessions with each node at one time, at least 1.
    pub connections_per_host: usize,
    /// Limits of the pace.
    pub throttle: Throttle,
}
