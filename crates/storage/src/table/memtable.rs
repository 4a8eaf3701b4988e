//! Memtables: what was written to one shard of one table and is not yet in an SSTable.
//!
//! A memtable sits behind a door, its mutex: [`Memtable::enter`] runs bounded CPU work on the
//! contents and nothing waits inside. Rows are kept in their serial form (`rows::codec`, message
//! framing, against a header of the memtable's own) in an arena, in an ordered map from the
//! byte-comparable form of their clustering: a small row costs its bytes, its key and a map entry.
//! A write to a row that is there decodes, merges and encodes it again.
//!
//! A frozen memtable takes no more writes; it stays readable until its SSTable is in the view.
//! Agrees in role with `org.apache.cassandra.db.memtable.Memtable`; reading it is in
//! `memtable::read`.

mod arena;
mod partition;
pub mod read;
mod replaced;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use env::Env;
use env::defects::{Defect, is_on};
use env::sync::atomic::{AtomicUsize, Ordering};
use env::sync::{Mutex, MutexGuard};
use rows::codec::{EncodingStats, EncodingStatsCollector, Header};
use rows::{PartitionUpdate, Row};
use schema::TableMetadata;
use types::{DecoratedKey, Token};

use crate::commitlog::{Appended, LogPosition};
use crate::table::entries::{self, Change, Entry};
use crate::table::indexes::{Attached, IndexStore};
use arena::Arena;
pub use partition::{EncodedRows, MemtablePartition};
use replaced::Watched;

/// Bytes of bookkeeping counted for each partition: an entry of the ordered map, seven tenths of
/// whose places are taken.
const PARTITION_OVERHEAD: usize = 240;
const _: () = assert!((size_of::<DecoratedKey>() + size_of::<MemtablePartition>()) * 10 <= PARTITION_OVERHEAD * 7);

/// A memtable; these fields are read without its door.
pub struct Memtable {
    contents: Mutex<Contents>,
    /// Bytes held, bookkeeping included. Written inside the door.
    size: AtomicUsize,
    /// The table as it was when the memtable was made: its header is of these columns.
    pub table: Arc<TableMetadata>,
    /// The header that rows are encoded against.
    pub header: Header,
    /// Memtables of the table's indexes: written only while this door is held (except for entries
    /// that do not come from a write), and frozen together with it.
    attached: Option<Attached>,
}

/// The contents behind the door.
pub struct Contents {
    frozen: bool,
    partitions: BTreeMap<DecoratedKey, MemtablePartition>,
    /// The partitions of which a read is under way that will enter again.
    watched: Watched,
    arena: Arena,
    stats: EncodingStatsCollector,
    rows: usize,
    /// Whether there are cells of columns that the table has dropped: from the commit log, or from
    /// a request that began before the drop.
    has_dropped: bool,
    /// First and last commit-log position of the records in this memtable; None while it has none.
    log_range: Option<Appended>,
}

/// A writer inside the door.
pub struct WriteGuard<'a> {
    memtable: &'a Memtable,
    contents: MutexGuard<'a, Contents>,
}

impl WriteGuard<'_> {
    /// Applies an update whose record is at `position` of the commit log (None: not logged).
    /// Gives the bytes by which the memtable grew.
    pub fn apply(&mut self, update: &PartitionUpdate, position: Option<LogPosition>) -> usize {
        self.apply_encoded(update, position.map(Appended::one), EncodedRows::default())
    }

    /// Does the work of `apply` with rows that [`Memtable::encode_large`] has encoded, for a
    /// record that was appended with others. Which record it was is not known, so the positions of
    /// all count. Otherwise the record could be replayed although it was flushed, perhaps after a
    /// compaction has purged its deletion.
    pub fn apply_encoded(
        &mut self,
        update: &PartitionUpdate,
        appended: Option<Appended>,
        encoded: EncodedRows,
    ) -> usize {
        if let Some(appended) = appended {
            let range = self.contents.log_range.unwrap_or(appended);
            let (first, last) = (range.first.min(appended.first), range.last.max(appended.last));
            self.contents.log_range = Some(Appended { first, last });
        }
        let memtable = self.memtable;
        let indexed = match &memtable.attached {
            None => {
                self.contents.apply(update, &memtable.table, &memtable.header, None, encoded);
                0
            }
            Some(attached) => self.apply_indexed(update, attached, encoded),
        };
        let size = self.contents.size();
        let before = memtable.size.swap(size, Ordering::Relaxed);
        assert!(before <= size, "a memtable only grows: {size} bytes, before {before}");
        size - before + indexed
    }

    /// Applies an update to the base table before the indexes. A reader that finds an index entry
    /// looks up the base row; in the other order it could see an entry without a row and take it
    /// for stale.
    fn apply_indexed(&mut self, update: &PartitionUpdate, attached: &Attached, encoded: EncodedRows) -> usize {
        let now = attached.env.clock.now_seconds();
        let mut found: Vec<Vec<Entry>> = attached.indexes.iter().map(|_| Vec::new()).collect();
        let mut observe = |before: Option<&Row>, after: &Row, is_static: bool| {
            let change = Change { key: &update.key.key, before, after, is_static };
            for ((index, _), found) in attached.indexes.iter().zip(&mut found) {
                entries::of_change(&index.definition, &change, now, found);
            }
        };
        self.contents.apply(update, &self.memtable.table, &self.memtable.header, Some(&mut observe), encoded);
        let mut added = 0;
        for ((index, memtable), found) in attached.indexes.iter().zip(found) {
            if found.is_empty() {
                continue;
            }
            // a door inside a door, always in this order; frozen only together
            let mut guard = WriteGuard { memtable, contents: memtable.enter() };
            for entry in &found {
                added += guard.apply(&crate::table::indexes::update(&index.definition, entry), None);
            }
        }
        added
    }
}

/// A function that is called for each row that an update changes: the row before, the row after,
/// and whether it is the static row.
type Observer<'a> = &'a mut dyn FnMut(Option<&Row>, &Row, bool);

/// The memtable is being flushed: the writer takes the table's new one.
#[derive(Debug, PartialEq, Eq)]
pub struct Frozen;

impl Memtable {
    /// An empty memtable. `now_micros` is the base from which timestamps are encoded.
    pub fn new(table: Arc<TableMetadata>, now_micros: i64) -> Self {
        let now_seconds = u32::try_from(now_micros / 1_000_000).unwrap_or(0);
        let stats = EncodingStats {
            // a minute back: clients' clocks are not ours, and a negative delta takes nine bytes
            min_timestamp: now_micros - 60_000_000,
            min_local_deletion_time: now_seconds.saturating_sub(60),
            min_ttl: 0,
        };
        let header = Header::with_dropped(&table, stats);
        let contents = Contents {
            frozen: false,
            partitions: BTreeMap::new(),
            watched: Watched::default(),
            arena: Arena::default(),
            stats: EncodingStatsCollector::default(),
            rows: 0,
            has_dropped: false,
            log_range: None,
        };
        Self { contents: Mutex::new(contents), size: AtomicUsize::new(0), table, header, attached: None }
    }

    /// An empty memtable with those of the table's indexes.
    pub fn with_indexes(table: Arc<TableMetadata>, env: &Env, indexes: &[Arc<IndexStore>]) -> Self {
        let now = env.clock.now_micros();
        let attached = (!indexes.is_empty()).then(|| {
            let memtable = |index: &Arc<IndexStore>| Arc::new(Self::new(Arc::clone(&index.definition.table), now));
            let indexes = indexes.iter().map(|index| (Arc::clone(index), memtable(index))).collect();
            Attached { env: env.clone(), indexes }
        });
        Self { attached, ..Self::new(table, now) }
    }

    /// The memtables of the table's indexes.
    pub fn indexes(&self) -> &[(Arc<IndexStore>, Arc<Memtable>)] {
        self.attached.as_ref().map_or(&[], |attached| &attached.indexes)
    }

    /// Bytes held, those of indexes included.
    pub fn total_size(&self) -> usize {
        self.size() + self.indexes().iter().map(|(_, memtable)| memtable.size()).sum::<usize>()
    }

    /// Locks the door. For bounded CPU work only: no disk, no waiting, no other door.
    fn enter(&self) -> MutexGuard<'_, Contents> {
        self.contents.lock().unwrap_or_else(|_| {
            // replaying the log is the recovery path: a memtable that is half changed is never
            // served
            tracing::error!("a panic inside a memtable's door: the process ends");
            std::process::abort()
        })
    }

    /// Encodes the large rows of an update as they will be kept, outside of the door: a row that is
    /// new is not copied inside.
    pub fn encode_large(&self, update: &PartitionUpdate) -> EncodedRows {
        EncodedRows::of(update, &self.header)
    }

    /// Enters to write. The caller appends the record to the commit log while it is inside, so that
    /// the positions of a memtable's writes are exactly those between its first and last.
    pub fn enter_to_write(&self) -> Result<WriteGuard<'_>, Frozen> {
        let contents = self.enter();
        if contents.frozen { Err(Frozen) } else { Ok(WriteGuard { memtable: self, contents }) }
    }

    /// Freezes memtables at one place of the commit log: they take no more writes, and the
    /// position that `cut` gives lies between their records and those of the memtables that come
    /// after them.
    ///
    /// The doors of all of them are held while `cut` runs, entered in the order in which a writer
    /// enters them (shards ascend), so `cut` may take no lock but the log's, and puts the next
    /// memtables in place: a writer that finds its memtable frozen looks for them at once.
    pub fn freeze<T>(memtables: &[Arc<Memtable>], cut: impl FnOnce() -> T) -> T {
        let enter = || memtables.iter().map(|memtable| memtable.enter()).collect();
        let mut doors: Vec<_> = enter();
        if is_on(Defect::FreezeLate) {
            doors.clear();
        }
        let cut = cut();
        if is_on(Defect::FreezeLate) {
            doors = enter();
        }
        for (memtable, contents) in memtables.iter().zip(&mut doors) {
            contents.frozen = true;
            for (_, memtable) in memtable.indexes() {
                memtable.enter().frozen = true;
            }
        }
        cut
    }

    /// Bytes held.
    pub fn size(&self) -> usize {
        self.size.load(Ordering::Relaxed)
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.enter().partitions.is_empty()
    }

    /// Whether the memtable has something of a partition.
    pub fn contains(&self, key: &DecoratedKey) -> bool {
        self.enter().partitions.contains_key(key)
    }

    /// Number of rows of a partition, deleted ones included.
    pub fn rows_of(&self, key: &DecoratedKey) -> usize {
        self.enter().partitions.get(key).map_or(0, |partition| partition.rows.len())
    }

    /// Numbers of partitions and of rows.
    pub fn counts(&self) -> (usize, usize) {
        let contents = self.enter();
        (contents.partitions.len(), contents.rows)
    }

    /// Tokens of the first and of the last partition; None: there is none.
    pub fn span(&self) -> Option<(Token, Token)> {
        let contents = self.enter();
        let (first, last) = (contents.partitions.first_key_value()?.0, contents.partitions.last_key_value()?.0);
        Some((first.token, last.token))
    }

    /// Smallest timestamp, deletion time and TTL written.
    pub fn stats(&self) -> EncodingStatsCollector {
        self.enter().stats
    }

    /// Whether there are cells of columns that the table had dropped before the memtable was made.
    pub fn has_dropped(&self) -> bool {
        self.enter().has_dropped
    }

    /// First and last commit-log position of the records in this memtable; None: nothing of it was
    /// logged.
    pub fn log_range(&self) -> Option<Appended> {
        self.enter().log_range
    }
}

impl Contents {
    fn apply(
        &mut self,
        update: &PartitionUpdate,
        table: &TableMetadata,
        header: &Header,
        observer: Option<Observer<'_>>,
        encoded: EncodedRows,
    ) {
        let partition = if self.partitions.contains_key(&update.key) {
            self.partitions.get_mut(&update.key).expect("it is there")
        } else {
            // the key of the update is a slice of a request's buffer
            let key = self.arena.copy(&update.key.key);
            self.arena.account(PARTITION_OVERHEAD);
            self.partitions.entry(DecoratedKey { key, ..update.key.clone() }).or_default()
        };
        if !self.watched.is_empty() {
            self.watched.note(update, table, partition);
        }
        self.stats.deletion(&update.deletion);
        for row in update.static_row.iter().chain(&update.rows) {
            self.stats.row(row);
        }
        if table.dropped_columns().next().is_some() && !self.has_dropped {
            let mut columns = update.static_row.iter().chain(&update.rows).flat_map(|row| &row.columns);
            self.has_dropped = columns.any(|data| table.column(data.column()).is_none());
        }
        for (_, deletion) in &update.range_deletions {
            self.stats.deletion(deletion);
        }
        self.rows += partition.apply(update, table, header, &mut self.arena, observer, encoded);
    }

    fn size(&self) -> usize {
        self.arena.size()
    }
}
