//! The storage as a whole: whether it serves or drains, what memory it takes, with which options it
//! was opened; drain and stop.

use storage::requests::flushes::FlushFigures;
use storage::{EngineOptions, StorageError};

use super::{Result, invalid};
use crate::node::Node;
use crate::range_movement_state::Mode;

/// How far the node is on its way from serving to drained. It only goes forwards.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StorageState {
    /// Reads and writes are served.
    Serving,
    /// Writes are refused and memtables are being flushed.
    Draining,
    /// Everything is flushed and nothing is written any more.
    Drained,
}

/// How far the node is on its way from serving to drained.
pub fn state(node: &Node) -> StorageState {
    match (node.engine.is_stopped(), node.engine.is_draining()) {
        (true, _) => StorageState::Drained,
        (false, true) => StorageState::Draining,
        (false, false) => StorageState::Serving,
    }
}

/// Whether the node has its place and keeps it: it is a member that neither leaves nor moves, or is
/// none because of `join_ring: false` and has not been told to join.
pub(super) fn is_in_place(node: &Node) -> bool {
    match node.mode() {
        Mode::Normal => true,
        Mode::Starting => !node.membership_state.movements.settings().joins,
        _ => false,
    }
}

/// Refuses to start a service (`native transport`, `gossip`) of a node that ends, or that has no
/// place in its ring yet. With `join_ring: false` a node has none, and serves all the same until it
/// is told to join.
/// Agrees with `StorageService.checkServiceAllowedToStart`, texts included.
pub fn check_may_start(node: &Node, service: &str) -> Result<()> {
    match state(node) {
        StorageState::Draining => invalid(format!("Unable to start {service} because the node is draining.")),
        StorageState::Drained => invalid(format!("Unable to start {service} because the node was drained.")),
        StorageState::Serving if is_in_place(node) => Ok(()),
        StorageState::Serving => {
            invalid(format!("Unable to start {service} because the node is not in the normal state."))
        }
    }
}

/// Refuses writes from now on and flushes all memtables, so that the next start has nothing to
/// replay.
pub async fn drain(node: &Node) -> std::result::Result<(), StorageError> {
    node.engine.drain().await
}

/// Ends the background work of the storage. The node cannot be used after this.
pub fn stop(node: &Node) {
    node.engine.stop();
}

/// The options that the storage was opened with.
pub fn options(node: &Node) -> &EngineOptions {
    &node.engine.options
}

/// Bytes that memtables hold, and the most that they may hold.
pub fn memtable_bytes(node: &Node) -> (usize, usize) {
    node.engine.memory.usage()
}

/// Tries of flushes, and of compactions that a strategy chose, that have failed since the start.
pub fn background_failures(node: &Node) -> u64 {
    node.engine.background_failures()
}

/// The flushes of all tables.
pub fn flushes(node: &Node) -> FlushFigures {
    node.engine.flusher.figures()
}
