//! Rows of traces in `system_traces`.

use rows::Mutation;
use storage::StorageError;

use crate::node::Node;

/// Writes the rows of a trace to memtables and commit log without waiting until the log is durable:
/// a crash may lose the trace.
pub fn keep(node: &Node, rows: &[Mutation]) -> Result<(), StorageError> {
    node.engine.apply(rows).map(drop)
}
