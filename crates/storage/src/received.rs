//! SSTables that come from other nodes: written while they come, in the table all at once.
//!
//! 1. [`Receiving::begin`] opens a transaction of the table's files.
//! 2. Each file that comes is written on its own, several at the same time: partitions
//!    ([`Receiving::write_rows`]) or whole components ([`Receiving::whole`]). After a crash nothing
//!    of them is left.
//! 3. [`Receiving::finish`] compares them with the schema, opens and commits them; from then on
//!    reads see all of them. The table's indexes are made again behind that, and answer queries
//!    meanwhile from what they have. Cassandra fills indexes with the received rows before the
//!    rows are visible.
//!
//! A stream that is given up leaves the table as it was ([`Receiving::abandon`]). SSTables that
//! come whole keep their bytes; level and repair state, which are the stream's to say, are written
//! anew into Statistics.db. Agrees with
//! `org.apache.cassandra.db.streaming.CassandraStreamReceiver` for tables without views and change
//! data capture.

mod whole;

use std::sync::{Arc, Mutex, PoisonError};

use rows::codec::Header;
use rows::{NO_TIMESTAMP, PartitionStream};
use sstable::{Descriptor, SSTable, SSTableWriter, Version};

use crate::engine::Engine;
use crate::error::StorageError;
use crate::files::{self, DroppedColumns, NewSSTable, Operation, PendingPartition, Transaction};
use crate::import;
use crate::index;
use crate::inherited::Inherited;
use crate::table::TableStore;
pub use whole::WholeSSTable;

/// The properties of an SSTable at its sender that it keeps here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// The level in the leveled strategy.
    pub level: u32,
    /// When it was repaired, milliseconds since 1970; 0: it was not.
    pub repaired_at: i64,
    /// The incremental repair under way that it belongs to.
    pub pending_repair: Option<[u8; 16]>,
}

/// The SSTables of one table that come in one session.
pub struct Receiving {
    store: Arc<TableStore>,
    files: Mutex<Files>,
}

struct Files {
    transaction: Transaction,
    /// SSTables that are whole and synced.
    done: Vec<Descriptor>,
}

/// Most partitions that the Bloom filter of a received SSTable is made for: 80 MiB at ten bits a
/// partition. The sender's number is not trusted with more memory.
const KEYS_MAX: usize = 1 << 26;

impl Receiving {
    /// Begins; nothing is written yet.
    pub fn begin(engine: &Engine, store: &Arc<TableStore>) -> Result<Self, StorageError> {
        let transaction = files::begin(engine, store, Operation::Write)?;
        let files = Mutex::new(Files { transaction, done: Vec::new() });
        Ok(Self { store: Arc::clone(store), files })
    }

    fn files(&self) -> std::sync::MutexGuard<'_, Files> {
        // what a panic leaves is settled like any other change that did not come to its end
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an SSTable of this node's own version with all partitions of a stream, which ascend.
    /// `header` is the sender's, resolved for the table; `keys` about the number of partitions.
    pub fn write_rows(
        &self,
        engine: &Engine,
        stream: &mut dyn PartitionStream,
        header: &Header,
        keys: u64,
        origin: Origin,
    ) -> Result<(), StorageError> {
        check_columns(header, &self.store)?;
        let mut writer: Option<SSTableWriter> = None;
        let written = loop {
            match self.write_partition(engine, stream, &mut writer, (header, keys, origin)) {
                Ok(true) => {}
                Ok(false) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        match (written, writer) {
            (Ok(()), Some(writer)) if writer.partition_count() > 0 => {
                let finished = writer.finish()?;
                self.files().done.push(finished.descriptor);
                Ok(())
            }
            (written, writer) => {
                writer.into_iter().for_each(SSTableWriter::abort);
                written
            }
        }
    }

    /// Writes the next partition; false: there is none.
    fn write_partition(
        &self,
        engine: &Engine,
        stream: &mut dyn PartitionStream,
        writer: &mut Option<SSTableWriter>,
        new: (&Header, u64, Origin),
    ) -> Result<bool, StorageError> {
        let Some(head) = stream.next_partition()? else { return Ok(false) };
        let writer = match writer {
            Some(writer) => writer,
            None => writer.insert(self.writer(engine, new)?),
        };
        let mut partition = PendingPartition::new(head);
        while let Some(unfiltered) = stream.next_unfiltered()? {
            partition.begin(writer);
            writer.append(&unfiltered)?;
        }
        partition.end(writer, &engine.options.partition_guards)?;
        Ok(true)
    }

    fn writer(
        &self,
        engine: &Engine,
        (header, keys, origin): (&Header, u64, Origin),
    ) -> Result<SSTableWriter, StorageError> {
        let table = self.store.table();
        let new = NewSSTable {
            operation: Operation::Write,
            stats: header.stats,
            keys: usize::try_from(keys).unwrap_or(usize::MAX).clamp(1, KEYS_MAX),
            log_range: None,
            inherited: Inherited {
                level: origin.level,
                repaired_at: origin.repaired_at,
                pending_repair: origin.pending_repair,
                ..Inherited::default()
            },
            dropped: DroppedColumns::of(&table, [header]),
            table,
        };
        files::writer(engine, &self.store, &mut self.files().transaction, &new)
    }

    /// An SSTable whose components come as they are. `version` is the sender's.
    pub fn whole(&self, engine: &Engine, version: Version) -> Result<WholeSSTable, StorageError> {
        let target = files::new_descriptor(engine, &self.store, version);
        self.files().transaction.add(&target)?;
        Ok(WholeSSTable::new(&engine.env, target))
    }

    /// Takes an SSTable that has come whole.
    pub fn take(&self, engine: &Engine, whole: WholeSSTable, origin: Origin) -> Result<(), StorageError> {
        let descriptor = whole.finish(origin, engine.host_id())?;
        self.files().done.push(descriptor);
        Ok(())
    }

    /// Adds all that has come to the table; gives the number of SSTables. After an error nothing of
    /// them is there.
    pub fn finish(self, engine: &Engine) -> Result<usize, StorageError> {
        let store = self.store;
        let Files { mut transaction, done } = self.files.into_inner().unwrap_or_else(PoisonError::into_inner);
        let _alone = store.importing.lock().expect("a panic in an import ends the process");
        let added = add_all(engine, &store, &mut transaction, &done);
        files::settle(&store, transaction);
        index::build::make_again(engine, &store);
        added.map(|()| done.len())
    }

    /// Gives up all that has come.
    pub fn abandon(self) {
        let files = self.files.into_inner().unwrap_or_else(PoisonError::into_inner);
        files::settle(&self.store, files.transaction);
    }
}

/// Refuses rows with a column that the table has not and never had: its cells would be passed over
/// in silence. The schema of the two nodes differs then, and the stream is to be tried again.
fn check_columns(header: &Header, store: &TableStore) -> Result<(), StorageError> {
    let mut columns = header.columns(true).iter().chain(header.columns(false));
    match columns.find(|column| column.id.is_none() && column.dropped_time == NO_TIMESTAMP) {
        None => Ok(()),
        Some(column) => {
            let why = format!("Unknown column {} of {} in a stream", column.name, store.name());
            Err(StorageError::Refused { why })
        }
    }
}

fn add_all(
    engine: &Engine,
    store: &Arc<TableStore>,
    transaction: &mut Transaction,
    done: &[Descriptor],
) -> Result<(), StorageError> {
    if store.is_closed() {
        return Err(StorageError::Refused { why: format!("{} was dropped meanwhile", store.name()) });
    }
    let cache: Arc<dyn sstable::FileCache> = Arc::clone(&engine.caches) as _;
    let mut sstables = Vec::with_capacity(done.len());
    for descriptor in done {
        let synced = engine.env.disk.sync_dir(&descriptor.directory);
        synced.map_err(|error| StorageError::io(&descriptor.directory, &error))?;
        import::open(engine, descriptor, &store.table())?;
        sstables.push(Arc::new(SSTable::open(&engine.env, descriptor.clone(), &store.table(), Arc::clone(&cache))?));
    }
    index::built::doubt(engine, store)?;
    transaction.commit()?;
    store.replace_sstables(&[], sstables);
    Ok(())
}
