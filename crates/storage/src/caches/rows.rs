//! The row cache: the data of SSTables on partitions, for tables that want it (`caching =
//! {'rows_per_partition': N}`): head, and the first rows.
//!
//! An entry is the merged data of the SSTables of one moment; memtables are not in it, and are
//! read beside it every time. It names its files, and is valid as long as exactly these may hold
//! the partition. So a write makes no entry stale, and a flush, compaction, truncation or import
//! need not tell the cache: the entries concerned are not valid any more when they are looked up.
//! An entry depends neither on the clock (a reader leaves out expired cells) nor on the columns
//! and rows that a read asks for.
//!
//! Rows are kept in their serial form, without the chunks they came from. How an entry is read and
//! made is in `read::row_cache`. Agrees in role with
//! `org.apache.cassandra.cache.{RowCacheKey,SerializingCache}`, which keeps memtables' rows too and
//! forgets a partition with each write to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use env::sync::Mutex;
use quick_cache::Weighter;
use rows::codec::{DELETION_TIME_EPOCH, EncodingStats, Header, TIMESTAMP_EPOCH};
use rows::{Bound, DeletionTime};
use schema::{TableId, TableMetadata};
use types::DecoratedKey;

use super::Usage;
use super::counted::Counted;
use super::partition_key::{PartitionKey, PartitionKeyRef};

/// Bytes counted for an entry besides its content.
const OVERHEAD: u64 = 320;
/// Most bytes of rows in an entry: of a longer partition only the beginning is kept.
pub(crate) const ENTRY_BYTES_MAX: u64 = 1 << 20;
/// One part in so many of each part of the cache that a single entry may take.
const ENTRY_SHARE: u64 = 4;
/// Estimated bytes of an entry, from which the first size of the tables follows.
const ENTRY_ESTIMATE: u64 = 1 << 10;

/// The serial form of a table's rows.
pub(crate) struct Form {
    /// The table's schema. Entries of another schema are not valid.
    pub table: Arc<TableMetadata>,
    /// The header that the rows are encoded against.
    pub header: Header,
}

/// The part of a partition that SSTables hold and the cache keeps.
pub(crate) struct CachedPartition {
    pub form: Arc<Form>,
    /// Numbers of the files that the entry is made of, in the order of the view.
    pub sources: Box<[u64]>,
    /// The key of the partition; None: the files do not have it, and their Bloom filters were
    /// wrong.
    pub key: Option<DecoratedKey>,
    pub deletion: DeletionTime,
    pub static_row: Option<Bytes>,
    /// Rows and markers in clustering order.
    pub content: Bytes,
    /// The offset in `content` at which each row or marker begins.
    pub starts: Box<[u32]>,
    /// Whether there are range deletions in `content`.
    pub has_markers: bool,
    /// Rows behind this bound are not in the entry; None: it has all rows.
    pub covered_to: Option<Bound>,
}

impl CachedPartition {
    /// Bytes that the entry takes.
    pub fn size(&self) -> u64 {
        let key = self.key.as_ref().map_or(0, |key| key.key.len());
        let static_row = self.static_row.as_ref().map_or(0, Bytes::len);
        (key + static_row + self.content.len() + self.starts.len() * 4 + self.sources.len() * 8) as u64
    }
}

type Key = PartitionKey<TableId>;

#[derive(Clone)]
struct PartitionWeight;

impl Weighter<Key, Arc<CachedPartition>> for PartitionWeight {
    fn weight(&self, key: &Key, partition: &Arc<CachedPartition>) -> u64 {
        key.key.len() as u64 + partition.size() + OVERHEAD
    }
}

/// The row cache. Shared by all workers.
pub struct RowCache {
    partitions: Counted<Key, Arc<CachedPartition>, PartitionWeight>,
    /// The forms by table, each for as long as an entry has it: a table that is dropped, or whose
    /// rows are not cached any more, leaves none behind.
    forms: Mutex<BTreeMap<TableId, Weak<Form>>>,
}

/// How many rows of each partition are kept for a table; None: the table wants no rows cached.
pub(crate) fn rows_wanted(table: &TableMetadata) -> Option<u32> {
    match table.params.caching.get("rows_per_partition").map(String::as_str) {
        None | Some("NONE") => None,
        Some("ALL") => Some(u32::MAX),
        Some(count) => count.parse().ok(),
    }
}

impl RowCache {
    /// A cache of at most `capacity` bytes; 0: the cache is off.
    pub fn new(capacity: u64) -> Self {
        Self { partitions: Counted::new(capacity, ENTRY_ESTIMATE, PartitionWeight), forms: Mutex::default() }
    }

    /// Entries and bytes that the cache holds, and its hits and misses.
    pub fn usage(&self) -> Usage {
        self.partitions.usage()
    }

    /// Whether the capacity is 0, so that nothing is kept.
    #[inline]
    pub fn is_off(&self) -> bool {
        self.partitions.is_off()
    }

    pub(super) fn set_capacity(&self, capacity: u64) {
        self.partitions.set_capacity(capacity);
    }

    /// Forgets everything.
    pub fn clear(&self) {
        self.partitions.entries.clear();
        self.forms.lock().expect("nothing panics inside").clear();
    }

    /// Table and key of every entry, in no order.
    pub fn keys(&self) -> impl Iterator<Item = (TableId, Box<[u8]>)> + '_ {
        self.partitions.entries.iter().map(|(key, _)| (key.of, key.key))
    }

    /// Most bytes of rows that an entry may have.
    pub(crate) fn entry_bytes_max(&self) -> usize {
        (self.partitions.entries.shard_capacity() / ENTRY_SHARE).min(ENTRY_BYTES_MAX) as usize
    }

    /// The serial form of a table's rows, under this schema.
    pub(crate) fn form(&self, table: &Arc<TableMetadata>) -> Arc<Form> {
        let mut forms = self.forms.lock().expect("nothing panics inside");
        let known = forms.get(&table.id).and_then(Weak::upgrade);
        if let Some(form) = known.filter(|form| Arc::ptr_eq(&form.table, table)) {
            return form;
        }
        let stats =
            EncodingStats { min_timestamp: TIMESTAMP_EPOCH, min_local_deletion_time: DELETION_TIME_EPOCH, min_ttl: 0 };
        let form = Arc::new(Form { table: Arc::clone(table), header: Header::for_table(table, stats) });
        forms.retain(|_, form| form.strong_count() > 0);
        forms.insert(table.id, Arc::downgrade(&form));
        form
    }

    pub(crate) fn get(&self, table: TableId, key: &[u8]) -> Option<Arc<CachedPartition>> {
        self.partitions.entries.get(&PartitionKeyRef { of: table, key })
    }

    /// As `get`, without counting as a use of the entry: for reports that must not change the
    /// cache.
    pub(crate) fn peek(&self, table: TableId, key: &[u8]) -> Option<Arc<CachedPartition>> {
        self.partitions.entries.peek(&PartitionKeyRef { of: table, key })
    }

    pub(crate) fn insert(&self, table: TableId, key: &[u8], partition: &Arc<CachedPartition>) {
        self.partitions.entries.insert(Key { of: table, key: key.into() }, Arc::clone(partition));
    }

    /// Counts whether the cache could answer a read.
    pub(crate) fn count(&self, hit: bool) {
        self.partitions.count(hit);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_lasts_as_long_as_an_entry_has_it() {
        let (cache, schema) = (RowCache::new(1 << 20), schema::system::schema());
        let table = |name: &str| schema.table("system", name).expect("a built-in table");
        let known = || -> Vec<TableId> { cache.forms.lock().expect("nothing panics inside").keys().copied().collect() };
        let (local, peers) = (table("local"), table("peers_v2"));
        let first = cache.form(local);
        assert!(Arc::ptr_eq(&first, &cache.form(local)), "one form for all entries");
        let second = cache.form(peers);
        assert_eq!(known().len(), 2);
        // the last entry of the first table is gone
        drop(first);
        drop((second, cache.form(table("repairs"))));
        assert!(!known().contains(&local.id), "{:?}", known());
    }
}
