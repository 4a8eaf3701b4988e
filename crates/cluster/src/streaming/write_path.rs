//! Adding the rows that a session has received of a table: as files, or row by row through the
//! path of writes. The path of writes is for tables with `cdc = true` on a node with change data
//! capture, because the commit log's segments are captured; and for base tables of materialized
//! views where the views are not streamed beside the base (repair, bulk load), because each write
//! keeps them.
//!
//! Rows as writes are there one after the other, not all at once, and they do not count as
//! repaired. They are on disk before the session hears of the end; the files that came go then. A
//! crash in between leaves some of the rows, and the session fails, so that all of them come again.
//! `org.apache.cassandra.db.streaming.CassandraStreamReceiver`, `finished` and
//! `sendThroughWritePath`.

use std::sync::Arc;

use rows::{Mutation, PartitionUpdate, ReadContext, ReadMode, Updates};
use schema::TableMetadata;
use sstable::SSTable;
use storage::StorageError;
use storage::received::Receiving;
use streaming::Operation;

use crate::node::Node;
use crate::stripes::Held;

/// Updates that a job reads at once. Each has a bound of its own.
const UPDATES_MAX: usize = 32;

/// Adds all that has come. Err: a sentence; of rows that take the path of writes some may be there.
pub(super) async fn add(node: &Arc<Node>, operation: Operation, receiving: Receiving) -> Result<(), String> {
    if !takes_write_path(node, operation, &receiving.store().table()) {
        return receiving.finish(&node.engine).await.map(drop).map_err(|error| error.to_string());
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
        write(node, &receiving, &sstable).await?;
    }
    node.engine.flush(receiving.store()).await.map_err(|error| error.to_string())?;
    job(node, move || receiving.abandon()).await
}

/// Whether rows of a table may not come as files.
fn takes_write_path(node: &Node, operation: Operation, table: &TableMetadata) -> bool {
    let builds_views = matches!(operation, Operation::Other | Operation::BulkLoad | Operation::Repair);
    let schema = node.schema();
    let has_views = || schema.keyspace(&table.keyspace).is_some_and(|of| of.views_of(table.id).next().is_some());
    if builds_views && has_views() {
        return true;
    }
    let is_captured = table.params.cdc == Some(true) && node.engine.options.commitlog.capture.is_some();
    is_captured && node.transfers.settings.load().captures
}

/// Writes the rows of one SSTable.
async fn write(node: &Arc<Node>, receiving: &Receiving, sstable: &SSTable) -> Result<(), String> {
    let stream = sstable.scan_all(&ReadContext::new(ReadMode::Background)).map_err(|error| error.to_string())?;
    let mut updates = Updates::new(receiving.store().table(), Box::new(stream));
    loop {
        let read = job(node, move || (some(&mut updates), updates)).await?;
        updates = read.1;
        let some = read.0.map_err(|error| error.to_string())?;
        if some.is_empty() {
            return Ok(());
        }
        receiving.check_table().map_err(|error: StorageError| error.to_string())?;
        for update in some {
            let applied = node.replica.apply(&[Mutation::of(update)], Held::new()).await;
            applied.map_err(|error| error.to_string())?;
        }
    }
}

/// The next updates; none: there are no more.
fn some(updates: &mut Updates) -> Result<Vec<PartitionUpdate>, rows::ReadError> {
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
