//! The identity of this node in gossip, and the constants of gossip.

use std::net::SocketAddr;
use std::time::Duration;

/// A round begins so long after the former one.
pub const ROUND: Duration = Duration::from_secs(1);

/// The partitioner's class as nodes compare it: the only one that we have.
pub const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";

/// An ECHO_REQ is worth an answer for so long; after that another one is sent.
///
/// Cassandra never sends a second one for the same state. A node that missed the first would stay
/// down there until its restart; here it does not.
pub const ECHO_LIFE: Duration = Duration::from_secs(10);

/// Gossip about an endpoint that was removed is ignored for so long (twice the ring delay): others
/// still tell of it.
pub const QUARANTINE: Duration = Duration::from_secs(60);

/// An endpoint without tokens that is silent for so long is forgotten: a client that only listened,
/// or a node that gave up.
pub const SILENT_CLIENT: Duration = Duration::from_secs(30);

/// As [`SILENT_CLIENT`], for a node that is joining: streaming may keep it from gossip. Cassandra's
/// members wait as long (`Gossiper.FAILED_BOOTSTRAP_TIMEOUT`).
pub const SILENT_JOINING: Duration = Duration::from_secs(300);

/// A dead endpoint without tokens is forgotten after so long, unless its status names the time.
pub const FORGET: Duration = Duration::from_secs(3 * 24 * 3600);

/// Where this process stood still for longer between two rounds nobody is convicted, nor for as
/// long after that: the silence was ours.
pub const LOCAL_PAUSE: Duration = Duration::from_secs(5);

/// A generation further in the future is refused: its clock is wrong, and nothing could follow it.
/// Seconds.
pub const GENERATION_AHEAD_MAX: i64 = 365 * 24 * 3600;

const _: () = {
    assert!(ROUND.as_secs() < LOCAL_PAUSE.as_secs(), "an ordinary round is no pause of the process");
    assert!(ROUND.as_secs() < ECHO_LIFE.as_secs(), "an echo has time for more than a round");
    assert!(SILENT_CLIENT.as_secs() < SILENT_JOINING.as_secs(), "who joins is kept longer than who only listens");
    assert!(SILENT_JOINING.as_secs() < FORGET.as_secs(), "who has left is told of longer than who never came");
    assert!(SILENT_CLIENT.as_secs() < QUARANTINE.as_secs(), "who is removed is ignored until others forget it too");
};

/// The identity of this node in gossip: its address, cluster and seeds.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// The broadcast address, by which all others know it.
    pub local: SocketAddr,
    /// cluster_name: nodes of another cluster are not answered.
    pub cluster: String,
    /// The seeds, this node among them or not.
    pub seeds: Vec<SocketAddr>,
    /// phi_convict_threshold
    pub convict_threshold: f64,
}

impl Options {
    /// With the default threshold.
    pub fn new(local: SocketAddr, cluster: &str, seeds: Vec<SocketAddr>) -> Self {
        Self { local, cluster: cluster.to_owned(), seeds, convict_threshold: 8.0 }
    }
}
