//! [`Watch`]: an observer of a load while it goes on.

use std::net::SocketAddr;

/// The share that one node is to get.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Planned {
    /// The node's broadcast address with the storage port.
    pub peer: SocketAddr,
    /// Parts of SSTables.
    pub files: usize,
    /// Bytes on the way.
    pub bytes: u64,
}

/// An observer that is told how far a load is. Called by the thread that sends: it must not wait.
pub trait Watch: Send + Sync {
    /// The shares that will be sent.
    fn planned(&self, _plan: &[Planned]) {}

    /// Bytes of files were sent to a node.
    fn sent(&self, _peer: SocketAddr, _bytes: u64) {}
}
