//! Why a node did not start, and how a start waits for a future.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use cluster::NodeError;
use env::LocalFuture;
use storage::StorageError;

/// Why a node did not start.
#[derive(Debug)]
pub enum StartError {
    /// This address cannot be listened on: the port of clients, of other nodes or of the operator.
    Port(SocketAddr, io::Error),
    /// The content of the directory cannot be opened; why.
    Directory(String),
    /// The directory, the commit log, the schema or the identity cannot be opened.
    Node(NodeError),
    /// The configured sizes of the caches are more than the memory leaves them.
    Memory(String),
    /// The keys or certificates of `client_encryption_options`, `server_encryption_options` or
    /// `admin_encryption_options` cannot be used.
    Encryption(String),
    /// The strategy or an option of `default_compaction` is refused.
    DefaultCompaction(String),
    /// The value of a key of the commit log is refused.
    CommitLog(String),
    /// The node could not join its ring.
    Join(String),
    /// The worker threads could not be started.
    Workers(io::Error),
    /// The node was told to stop while it was on its way into its ring, and has been drained. The
    /// next start goes on from there.
    Stopped,
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port(address, error) if error.kind() == io::ErrorKind::AddrInUse => {
                write!(
                    f,
                    "{address} is in use; is Helenus or Cassandra already running there? (--port, --admin-port, storage_port)"
                )
            }
            Self::Port(address, error) => write!(f, "cannot listen on {address}: {error}"),
            Self::Directory(why)
            | Self::Memory(why)
            | Self::CommitLog(why)
            | Self::Join(why)
            | Self::Encryption(why) => f.write_str(why),
            Self::DefaultCompaction(why) => write!(f, "default_compaction: {why}"),
            Self::Node(error) => error.fmt(f),
            Self::Stopped => f.write_str("stopped on the way into the ring"),
            Self::Workers(error) => write!(f, "cannot start the workers: {error}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<StorageError> for StartError {
    fn from(error: StorageError) -> Self {
        Self::Node(error.into())
    }
}

impl From<NodeError> for StartError {
    fn from(error: NodeError) -> Self {
        Self::Node(error)
    }
}

/// Runs a future to its end, on whatever the clock and the network of the node are.
pub type Drive<'d> = &'d dyn Fn(LocalFuture) -> Result<(), StartError>;
