//! The commit log's figures.

use metrics::Histogram;
use storage::commitlog::Stats;

use crate::node::Node;

/// The figures of the commit log: its size, its syncs and what waits for them.
pub fn stats(node: &Node) -> Stats {
    node.engine.log.stats()
}

/// How long writes waited until the commit log was durable, in microseconds.
pub fn waiting_on_commit(node: &Node) -> &Histogram {
    &node.engine.waiting_on_commit
}
