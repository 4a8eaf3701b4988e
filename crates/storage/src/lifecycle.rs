//! The engine's beginning and end: background tasks start, and a drain leaves nothing to replay.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::engine::Engine;
use crate::error::StorageError;
use crate::requests::cache_saver::CacheSaver;
use crate::requests::drops::Dropper;
use crate::requests::flushes::Flusher;
use crate::requests::index_builds::IndexBuilder;
use crate::requests::operations::Compactor;

impl Engine {
    /// Starts the background work.
    pub(crate) fn start(self: &Arc<Self>) {
        Flusher::start(self);
        Dropper::start(self);
        Compactor::start(self);
        IndexBuilder::start(self);
        CacheSaver::start(self);
    }

    /// Refuses writes from now on, flushes everything, syncs the log and removes its segments: a
    /// start from here, of this node or of a Cassandra on the same SSTables, has nothing to replay.
    pub async fn drain(&self) -> Result<(), StorageError> {
        if self.is_stopped() {
            return Ok(());
        }
        self.draining.store(true, Ordering::Release);
        if self.options.read_only {
            self.stopped.store(true, Ordering::Release);
            return Ok(());
        }
        for store in self.tables() {
            if store.view().memtable_size() > 0 {
                self.flush(&store).await?;
            }
        }
        // who waits for a sync is answered; what was appended is durable or was reported as not
        self.log.sync().await.map_err(StorageError::from)?;
        let ended = self.env.blocking("commitlog-end", self.log.end_job()).await;
        ended.unwrap_or_else(|_| self.log.end()).map_err(StorageError::from)?;
        self.cache_saver.save_all(self);
        self.stopped.store(true, Ordering::Release);
        Ok(())
    }

    /// Reads, in the background, the entries again that were hot when the caches were saved last.
    /// Called when the node is ready.
    pub fn load_caches(&self) {
        self.cache_saver.load(self);
    }
}
