//! The SSTables beside those of a compaction, which may delete rows in them: for garbage
//! collection.
//!
//! As long as a compaction runs its inputs are in the view, so the deletions of other SSTables
//! that concern them cannot be purged. SSTables that cannot be read are passed over. Agrees with
//! `org.apache.cassandra.db.compaction.CompactionController.shadowSources`.

use std::sync::Arc;

use rows::garbage_skipping::ShadowSources;
use rows::{MergeStream, PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadMode};
use sstable::{KeyHash, SSTable};

use crate::table::TableStore;

/// Partitions of the SSTables that are not compacted, if they have something that may delete.
/// `cells`: also cells that may replace others.
pub fn of_inputs(store: &Arc<TableStore>, inputs: &[Arc<SSTable>], cells: bool) -> ShadowSources {
    let (store, inputs) = (Arc::clone(store), inputs.to_vec());
    let suspect = store.changes().suspect.clone();
    let oldest = inputs.iter().map(|input| input.statistics().stats.min_timestamp).min().unwrap_or(i64::MIN);
    Box::new(move |key| {
        let hash = KeyHash::of(&key.key);
        let is_input = |sstable: &SSTable| inputs.iter().any(|input| input.descriptor() == sstable.descriptor());
        let may_delete = |sstable: &SSTable| {
            let stats = &sstable.statistics().stats;
            let has_tombstones = stats.has_partition_deletions || stats.tombstones.bins().next().is_some();
            stats.max_timestamp > oldest && (cells || has_tombstones)
        };
        let mut streams: Vec<Box<dyn PartitionStream>> = Vec::new();
        let view = store.view();
        for sstable in &view.sstables {
            let is_read = !is_input(sstable) && may_delete(sstable) && !suspect.contains(sstable.descriptor());
            if is_read && sstable.may_contain(key, hash) {
                let command = ReadCommand::whole(sstable.table(), PartitionRange::Key(key.clone()));
                streams.push(Box::new(sstable.read(&command, &ReadContext::new(ReadMode::Background))?));
            }
        }
        let table = &view.table;
        Ok((!streams.is_empty()).then(|| MergeStream::boxed(table, streams, false)))
    })
}
