//! The identity of this node in gossip, and the constants of gossip.

use std::net::SocketAddr;
use std::time::Duration;

/// Time from the begin of a round to that of the next.
pub const ROUND: Duration = Duration::from_secs(1);

/// The class of the partitioner, as nodes compare it. There is no other one here.
pub const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";

/// Time for which an answer to an ECHO_REQ is awaited; after it another one is sent.
///
/// Cassandra never sends a second one for the same state. A node that missed the first would stay
/// down there until its restart; here it does not.
pub const ECHO_LIFE: Duration = Duration::from_secs(10);

/// Time for which gossip about a removed endpoint is ignored (twice the ring delay), because
/// others still tell of it.
pub const QUARANTINE: Duration = Duration::from_secs(60);

/// Time of silence after which an endpoint without tokens is forgotten: it was a client that only
/// listened, or a node that gave up.
pub const SILENT_CLIENT: Duration = Duration::from_secs(30);

/// Time after which a joining node is forgotten if nothing is heard of it. Longer than
/// [`SILENT_CLIENT`], because streaming may keep a joining node from gossip. Cassandra's members
/// wait as long (`Gossiper.FAILED_BOOTSTRAP_TIMEOUT`).
pub const SILENT_JOINING: Duration = Duration::from_secs(300);

/// Time after which a dead endpoint without tokens is forgotten, unless its status names another
/// time.
pub const FORGET: Duration = Duration::from_secs(3 * 24 * 3600);

/// Time between two rounds above which this process itself has stood still. Then no peer is
/// convicted, and for as long afterwards, because the silence was this node's own.
pub const LOCAL_PAUSE: Duration = Duration::from_secs(5);

/// Seconds in the future beyond which a generation is refused: the clock of its node is wrong, and
/// no later start could have a greater generation.
pub const GENERATION_AHEAD_MAX: i64 = 365 * 24 * 3600;

const _: () = {
    assert!(ROUND.as_secs() < LOCAL_PAUSE.as_secs(), "an ordinary round is no pause of the process");
    assert!(ROUND.as_secs() < ECHO_LIFE.as_secs(), "an echo has time for more than a round");
    assert!(SILENT_CLIENT.as_secs() < SILENT_JOINING.as_secs(), "a silent node that joins outlasts a client");
    assert!(SILENT_JOINING.as_secs() < FORGET.as_secs(), "news of an end outlast a failed joining");
    assert!(SILENT_CLIENT.as_secs() < QUARANTINE.as_secs(), "others forget a silent client meanwhile");
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
    /// Options with the default threshold.
    pub fn new(local: SocketAddr, cluster: &str, seeds: Vec<SocketAddr>) -> Self {
        Self { local, cluster: cluster.to_owned(), seeds, convict_threshold: 8.0 }
    }
}
