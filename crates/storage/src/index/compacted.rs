//! Entries whose values a compaction of the base finds shadowed: they are removed while the base's
//! rows are merged.
//!
//! A write that finds the old value in the memtable removes its entry at once. An old value in an
//! SSTable, or one that a range or partition deletion shadows, is found only here. Agrees with
//! `SecondaryIndexManager.IndexGCTransaction`, and goes further: it also takes away entries of
//! values that were replaced, and of rows that are deleted for an index of the key (where
//! `CassandraIndex` takes none away).

use std::sync::Arc;

use rows::Row;
use rows::merge::RowObserver;
use types::DecoratedKey;

use crate::table::TableStore;
use crate::table::entries::{self, CellsByPath, Entry};
use crate::table::indexes::IndexStore;

/// An observer of a merge of the base's SSTables, which removes entries of shadowed values.
pub struct ShadowedEntries {
    store: Arc<TableStore>,
    indexes: Arc<[Arc<IndexStore>]>,
    found: Vec<Entry>,
}

impl ShadowedEntries {
    /// The observer for a table; None: the table has no indexes.
    pub fn observer(store: &Arc<TableStore>) -> Option<Box<dyn RowObserver>> {
        let indexes = Arc::clone(&store.view().indexes);
        (!indexes.is_empty())
            .then(|| Box::new(Self { store: Arc::clone(store), indexes, found: Vec::new() }) as Box<dyn RowObserver>)
    }

    fn of_version(&mut self, index: &IndexStore, key: &DecoratedKey, version: &Row, merged: Option<&Row>, now: u32) {
        let definition = &index.definition;
        if definition.is_of_key() {
            // only a deletion also covers what SSTables beside the compaction have of the row: all
            // of the row has the same entry
            let is_covered =
                |entry: &Entry| merged.is_none_or(|row| row.deletion.deletes(entry.row.deletion.marked_for_delete_at));
            let entry = entries::of_shadowed_row(definition, &key.key, version, now);
            self.found.extend(entry.filter(is_covered));
            return;
        }
        let left = merged.map(|row| entries::cells(definition, row)).unwrap_or_default();
        let (cells, left) = entries::differing(entries::cells(definition, version), left);
        let left = CellsByPath::of(left);
        for cell in cells {
            let stays = left.like(cell).is_some_and(|other| entries::have_one_entry(definition, other, cell));
            if !stays {
                entries::of_shadowed(definition, &key.key, version, cell, now, &mut self.found);
            }
        }
    }
}

impl RowObserver for ShadowedEntries {
    fn merged(&mut self, key: &DecoratedKey, versions: &[Row], merged: Option<&Row>) {
        let now = self.store.env.clock.now_seconds();
        let indexes = Arc::clone(&self.indexes);
        // entries beside SSTables are made anew with them
        for index in indexes.iter().filter(|index| !index.definition.is_attached()) {
            for version in versions {
                self.of_version(index, key, version, merged, now);
            }
            index.apply(self.store.shards.of(key.token), &self.found);
            self.found.clear();
        }
    }
}
