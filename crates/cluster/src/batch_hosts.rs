//! The strategy by which nodes are chosen that keep the records of logged batches.
//!
//! Plain settings: the choice itself is the coordinator's (`coordinator/batch/hosts.rs`). Agrees
//! with `org.apache.cassandra.config.Config.BatchlogEndpointStrategy`.

/// `batchlog_endpoint_strategy`; the default is `random_remote`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BatchHosts {
    /// The fastest nodes by the dynamic snitch, where there is one (`dynamic_remote`, `dynamic`).
    pub by_latency: bool,
    /// This node's rack counts as another rack does (`prefer_local`, `dynamic`). Drawn nodes are
    /// one of this rack and one of another.
    pub prefers_own_rack: bool,
}
