//! Figures of the read repairs that this node coordinated.
//!
//! Agrees with `org.apache.cassandra.metrics.ReadRepairMetrics`. Its `Attempted` and
//! `RepairedBackground` are not here: nothing has raised them since Cassandra 4.0.

use metrics::Counter;

/// Reads of partitions whose replicas gave different digests, since the start. All replicas of such
/// a read were asked for data.
#[derive(Default)]
pub struct ReadRepairMetrics {
    /// Reads of tables with `read_repair = 'BLOCKING'`: the read waits until replicas have what
    /// they lacked.
    pub repaired_blocking: Counter,
    /// Reads of tables with `read_repair = 'NONE'`: replicas are not told what they lack.
    pub reconcile_read: Counter,
}
