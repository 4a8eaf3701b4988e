//! Adding the rows that a session has received of a table: as files, or row by row through the
//! path of writes. The path of writes is for tables with `cdc = true` on a node with change data
//! capture, because the commit log's segments are captured; and for base tables of materialized
//! views where the views are not streamed beside the base (repair, bulk load), because each write
//! keeps them.
//!
//! Rows that are added as writes are visible one after the other, not all at once, and do not
//! count as repaired. They are on disk before the session is told of the end; the received files
//! are removed then. A crash in between leaves some of the rows, and the session fails, so that
//! all of them come again. Each write first looks whether a TRUNCATE has removed its row since the
//! sender told of it (`storage::received`), and waits for the end of one that is under way.
//! `org.apache.cassandra.db.streaming.CassandraStreamReceiver`, `finished` and
//! `sendThroughWritePath`.

use std::sync::Arc;
use std::time::Duration;

use rows::{Mutation, PartitionUpdate, ReadContext, ReadMode, Updates};
use schema::TableMetadata;
use sstable::SSTable;
use storage::StorageError;
use storage::received::{ReceivedSSTables, TruncationEffect};
use streaming::Operation;

use super::receiver::told;
use crate::node::Node;
use crate::replica::apply::{WhenBusy, WriteError};
use crate::replica::views::parts::Parts;
use crate::stripes::StripeGuards;

/// Most updates that a job reads at once. Each has a bound of its own.
const UPDATES_MAX: usize = 32;

/// Time between two looks whether a truncation has ended.
const TRUNCATION_PAUSE: Duration = Duration::from_millis(100);

/// Adds all files that have come. Err: a sentence; some of the rows that take the path of writes
/// may be there then.
pub(super) async fn add(node: &Arc<Node>, operation: Operation, receiving: ReceivedSSTables) -> Result<(), String> {
    if !takes_write_path(node, operation, &receiving.store().table()) {
        let store = Arc::clone(receiving.store());
        return receiving.finish(&node.engine).await.map(drop).map_err(|error| told(node, &store, &error));
    }
    let of_job = Arc::clone(node);
    let opened = job(node, move || (receiving.readers(&of_job.engine), receiving)).await?;
    let (readers, receiving) = (opened.0.map_err(|error| error.to_string())?, opened.1);
    tracing::info!(
        table = receiving.store().name(),
        sstables = readers.len(),
        "received rows take the path of writes, for views or change data capture of the table"
    );
    for sstable in readers {
        if !write(node, &receiving, &sstable).await? {
            tracing::info!(
                table = receiving.store().name(),
                "the rest of received rows is dropped: the table was truncated since the sender told of them"
            );
            break;
        }
    }
    node.engine.flush(receiving.store()).await.map_err(|error| error.to_string())?;
    job(node, move || receiving.abandon()).await
}

/// Whether rows of a table must take the path of writes.
fn takes_write_path(node: &Node, operation: Operation, table: &TableMetadata) -> bool {
    let builds_views = matches!(operation, Operation::Other | Operation::BulkLoad | Operation::Repair);
    let schema = node.schema();
    let has_views = || schema.keyspace(&table.keyspace).is_some_and(|of| of.views_of(table.id).next().is_some());
    if builds_views && has_views() {
        return true;
    }
    let is_captured = table.params.cdc == Some(true) && node.engine.options.commitlog.capture.is_some();
    is_captured && node.streaming_state.settings.load().captures
}

/// Writes the rows of one SSTable. False: a TRUNCATE has removed those that are left.
async fn write(node: &Arc<Node>, receiving: &ReceivedSSTables, sstable: &SSTable) -> Result<bool, String> {
    let stream = sstable.scan_all(&ReadContext::new(ReadMode::Background)).map_err(|error| error.to_string())?;
    let mut updates = Updates::new(receiving.store().table(), Box::new(stream));
    loop {
        let read = job(node, move || (next_updates(&mut updates), updates)).await?;
        updates = read.1;
        let some = read.0.map_err(|error| error.to_string())?;
        if some.is_empty() {
            return Ok(true);
        }
        for update in some {
            if !apply(node, receiving, update).await? {
                return Ok(false);
            }
        }
    }
}

/// Writes an update, in parts where its changes of views are too large: the sender has it. False: a
/// TRUNCATE has removed its rows.
async fn apply(node: &Arc<Node>, receiving: &ReceivedSSTables, update: PartitionUpdate) -> Result<bool, String> {
    let mutations = [Mutation::of(update)];
    let mut parts: Option<Parts> = None;
    loop {
        // full memtables and the full buffer of the log are waited for outside of the gate: a
        // TRUNCATE that makes room closes it. Others may have taken the room while this write
        // waited for the gate.
        node.engine.admit().await;
        let open = receiving.store().streamed_writes.read().await;
        match receiving.truncation_effect().map_err(|error| error.to_string())? {
            TruncationEffect::Removed => return Ok(false),
            TruncationEffect::Begun => {}
            TruncationEffect::Nothing if !node.engine.has_room() => continue,
            TruncationEffect::Nothing => {
                let is_left = match &mut parts {
                    Some(parts) => parts.apply_next().await,
                    None => {
                        match node.replica.apply_admitted(&mutations, &[], StripeGuards::new(), WhenBusy::Fails).await {
                            Err(error) if node.replica.takes_in_parts(&mutations, &error) => {
                                parts = Some(node.replica.parts_of(&mutations));
                                Ok(true)
                            }
                            applied => applied.map(|_| false),
                        }
                    }
                };
                match is_left {
                    Ok(true) => continue,
                    Ok(false) => return Ok(true),
                    Err(WriteError::Storage(StorageError::Busy)) => {
                        drop(open);
                        node.engine.log.wait_for_room().await;
                        continue;
                    }
                    Err(error) => return Err(error.to_string()),
                }
            }
        }
        drop(open);
        node.env.sleep(TRUNCATION_PAUSE).await;
    }
}

/// The next updates; none: there are no more.
fn next_updates(updates: &mut Updates) -> Result<Vec<PartitionUpdate>, rows::ReadError> {
    let mut found = Vec::new();
    while found.len() < UPDATES_MAX {
        match updates.next_update()? {
            Some(update) => found.push(update),
            None => break,
        }
    }
    Ok(found)
}

async fn job<T: Send + 'static>(node: &Node, job: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    node.env.blocking_long("stream", job).await.map_err(|full| full.to_string())
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use storage::received::IfTruncated;

    use super::*;
    use crate::testing::{SimNode, poll};

    /// A streamed write has been admitted and waits for its gate, and others take the room
    /// meanwhile. It does not wait for room inside the gate, which a TRUNCATE that makes room has
    /// to close.
    #[test]
    fn a_write_without_room_leaves_the_gate_to_a_truncation() {
        let machine = SimNode::new(Duration::from_secs(2));
        let node = &machine.node;
        let store = node.engine.table_by_name("system_auth", "roles").expect("a built-in table");
        let begun = ReceivedSSTables::begin(&node.engine, &store, node.engine.truncation_epoch(), IfTruncated::Drop);
        let receiving = begun.expect("a sound disk");
        let update = machine.role(1, 1).updates.remove(0);
        let mut write = pin!(apply(node, &receiving, update));
        let close = || Arc::clone(&store.streamed_writes).try_write_owned();
        let closed = close().expect("nobody has passed");
        assert!(poll(write.as_mut()).is_pending(), "the gate is closed");
        let (_, budget) = node.engine.memory.usage();
        node.engine.memory.take(budget);
        drop(closed);
        assert!(poll(write.as_mut()).is_pending(), "there is no room");
        assert!(close().is_ok(), "the write waits for room inside the gate");
        node.engine.memory.release(budget);
        assert_eq!(machine.sim.block_on(write), Ok(true));
        assert_eq!(machine.count("system_auth", "roles"), 1);
    }

    /// A streamed write does not wait for room in the buffer of the log inside its gate either.
    #[test]
    fn a_write_that_the_log_has_no_room_for_leaves_the_gate_to_a_truncation() {
        let machine = SimNode::new(Duration::from_secs(2));
        let node = &machine.node;
        let store = node.engine.table_by_name("system_auth", "roles").expect("a built-in table");
        let begun = ReceivedSSTables::begin(&node.engine, &store, node.engine.truncation_epoch(), IfTruncated::Drop);
        let receiving = begun.expect("a sound disk");
        machine.fill_log();
        // memtables have room, as on a larger node
        node.engine.memory.release(node.engine.memory.usage().0);
        let mut write = pin!(apply(node, &receiving, machine.role(2, 100).updates.remove(0)));
        assert!(poll(write.as_mut()).is_pending(), "there is no room");
        let close = Arc::clone(&store.streamed_writes).try_write_owned();
        assert!(close.is_ok(), "the write waits for room inside the gate");
        drop(close);
        assert_eq!(machine.sim.block_on(write), Ok(true));
        assert_eq!(machine.count("system_auth", "roles"), 2);
    }
}
