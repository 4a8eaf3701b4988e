//! SSTables that come from other nodes: written while they come, in the table all at once.
//!
//! 1. [`ReceivedSSTables::begin`] opens a transaction of the table's files.
//! 2. Each file that comes is written on its own, several at the same time: partitions
//!    ([`ReceivedSSTables::write_rows`]) or whole components ([`ReceivedSSTables::whole`]). After
//!    a crash no file of them is left.
//! 3. [`ReceivedSSTables::finish`] compares them with the schema, opens them, writes the entries
//!    of their rows to the indexes of the table (`crate::index::prefill`), and commits; from then
//!    on reads see all of them, by the indexes too. A crash leaves all of that or no row.
//!
//! A TRUNCATE that begins on this node after the sender has told of its files removes their rows:
//! the sender had read all of them before ([`IfTruncated`] says what becomes of the stream). Rows
//! of a sender that told of its files after the TRUNCATE stay, because some may have been written
//! since; the sender's own TRUNCATE has removed the others, if it came before the sender's look at
//! its SSTables. A sender whose TRUNCATE comes later has its receivers truncate again
//! (`cluster::coordinator::truncate`). The timestamps of cells are not looked at, because clients
//! choose them. Cassandra adds everything that comes after the TRUNCATE.
//!
//! Where rows have to pass the path of writes instead, [`ReceivedSSTables::readers`] gives them,
//! and [`ReceivedSSTables::abandon`] removes the files behind it. A stream that is given up leaves
//! the table as it was. SSTables that come whole keep their bytes; the stream says their level and
//! repair state, which are written anew into Statistics.db. Agrees with
//! `org.apache.cassandra.db.streaming.CassandraStreamReceiver`.

mod whole;

use std::sync::{Arc, PoisonError};
use std::task::Poll;

use env::sync::Mutex;
use rows::codec::Header;
use rows::{PartitionStream, ReadError};
use sstable::{Descriptor, SSTable, SSTableWriter, Version};

use crate::engine::Engine;
use crate::error::StorageError;
use crate::files::{self, DroppedColumns, NewSSTable, Operation, PendingPartition, Transaction};
use crate::import;
use crate::index;
use crate::inherited::Inherited;
use crate::table::TableStore;
use crate::table::incoming::IncomingChange;
pub use crate::table::{TruncationEffect, TruncationEpoch};
pub use whole::WholeSSTable;

/// The properties of an SSTable at its sender that it keeps here.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// The level in the leveled strategy.
    pub level: u32,
    /// When it was repaired, milliseconds since 1970; 0: it was not.
    pub repaired_at: i64,
    /// The incremental repair under way that has the SSTable; None: none has.
    pub pending_repair: Option<[u8; 16]>,
}

/// The answer to a TRUNCATE that removes the rows that come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IfTruncated {
    /// The rows are dropped, which is no failure: they are not wanted any more.
    Drop,
    /// Nothing is added, and there is an error: the rows have to be compared again.
    Fail,
}

/// The SSTables of one table that come in one session.
pub struct ReceivedSSTables {
    store: Arc<TableStore>,
    /// The moment of this engine at which the sender told of the files.
    announced: TruncationEpoch,
    if_truncated: IfTruncated,
    files: Mutex<Files>,
    /// The last field, which goes behind the files.
    _counted: IncomingChange,
}

#[derive(Default)]
struct Files {
    /// The transaction of the change; None: the change has ended.
    transaction: Option<Transaction>,
    /// SSTables that are whole and synced.
    done: Vec<Descriptor>,
}

/// An SSTable whose rows come piece by piece.
pub struct ReceivedRows {
    header: Header,
    keys: u64,
    origin: Origin,
    /// The writer of the SSTable; None: no row has come yet.
    writer: Option<SSTableWriter>,
    /// The partition of which rows may still come.
    partition: Option<PendingPartition>,
}

impl ReceivedRows {
    /// Gives up what was written.
    pub fn abort(self) {
        self.writer.into_iter().for_each(SSTableWriter::abort);
    }
}

/// Most partitions that the Bloom filter of a received SSTable is made for: 80 MiB at ten bits a
/// partition. The sender's number is not trusted with more memory.
const KEYS_MAX: usize = 1 << 26;

impl ReceivedSSTables {
    /// Begins; nothing is written yet. `announced`: the moment of this engine
    /// ([`Engine::truncation_epoch`]) at which the sender had read all rows that it sends.
    pub fn begin(
        engine: &Engine,
        store: &Arc<TableStore>,
        announced: TruncationEpoch,
        if_truncated: IfTruncated,
    ) -> Result<Self, StorageError> {
        let counted = IncomingChange::begin(store)?;
        let transaction = files::begin(engine, store, Operation::Write)?;
        let files = Mutex::new(Files { transaction: Some(transaction), done: Vec::new() });
        Ok(Self { store: Arc::clone(store), announced, if_truncated, files, _counted: counted })
    }

    fn files(&self) -> env::sync::MutexGuard<'_, Files> {
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
        let mut rows = self.rows(header.clone(), keys, origin)?;
        match self.write_some(engine, &mut rows, stream) {
            Ok(true) => self.take_rows(rows),
            Ok(false) => {
                rows.abort();
                Err(StorageError::Refused { why: "a stream of rows that never waits was expected".into() })
            }
            Err(error) => {
                rows.abort();
                Err(error)
            }
        }
    }

    /// Refuses an SSTable before anything of it has come: `header` is the sender's, resolved for
    /// the table.
    pub fn check(&self, header: &Header) -> Result<(), StorageError> {
        check_columns(header, &self.store)
    }

    /// The writer of an SSTable whose rows come piece by piece: [`Self::write_some`] until the rows
    /// have ended, then [`Self::take_rows`]; or [`ReceivedRows::abort`].
    pub fn rows(&self, header: Header, keys: u64, origin: Origin) -> Result<ReceivedRows, StorageError> {
        self.check(&header)?;
        Ok(ReceivedRows { header, keys, origin, writer: None, partition: None })
    }

    /// Writes the rows that a stream has. False: the stream has no more for now
    /// ([`ReadError::WouldBlock`]); the next call goes on where this one has ended. True: the
    /// stream has ended.
    pub fn write_some(
        &self,
        engine: &Engine,
        rows: &mut ReceivedRows,
        stream: &mut dyn PartitionStream,
    ) -> Result<bool, StorageError> {
        loop {
            if rows.partition.is_none() {
                match at_once(stream.next_partition())? {
                    Poll::Ready(Some(head)) => rows.partition = Some(PendingPartition::new(head)),
                    Poll::Ready(None) => return Ok(true),
                    Poll::Pending => return Ok(false),
                }
            }
            if rows.writer.is_none() {
                rows.writer = Some(self.writer(engine, (&rows.header, rows.keys, rows.origin))?);
            }
            let (Some(partition), Some(writer)) = (&mut rows.partition, &mut rows.writer) else {
                unreachable!("both were just made")
            };
            loop {
                match at_once(stream.next_unfiltered())? {
                    Poll::Ready(Some(unfiltered)) => {
                        partition.begin(writer);
                        writer.append(&unfiltered)?;
                    }
                    Poll::Ready(None) => break,
                    Poll::Pending => return Ok(false),
                }
            }
            if let Some(partition) = rows.partition.take() {
                partition.end(writer, &engine.options.guards.values().partitions)?;
            }
        }
    }

    /// Takes an SSTable whose rows have all come.
    pub fn take_rows(&self, rows: ReceivedRows) -> Result<(), StorageError> {
        assert!(rows.partition.is_none(), "an SSTable is complete at the end of a partition");
        match rows.writer {
            Some(writer) if writer.partition_count() > 0 => {
                let finished = writer.finish()?;
                self.files().done.push(finished.descriptor);
            }
            Some(writer) => writer.abort(),
            None => {}
        }
        Ok(())
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
        files::writer(engine, &self.store, self.files().transaction(), &new)
    }

    /// An SSTable whose components come as they are. `version` is the sender's.
    pub fn whole(&self, engine: &Engine, version: Version) -> Result<WholeSSTable, StorageError> {
        let target = files::new_descriptor(engine, &self.store, version);
        self.files().transaction().add(&target)?;
        Ok(WholeSSTable::new(&engine.env, target))
    }

    /// The table.
    pub fn store(&self) -> &Arc<TableStore> {
        &self.store
    }

    /// Takes an SSTable that has come whole.
    pub fn take(&self, engine: &Engine, whole: WholeSSTable, origin: Origin) -> Result<(), StorageError> {
        let descriptor = whole.finish(origin, engine.host_id())?;
        self.files().done.push(descriptor);
        Ok(())
    }

    /// Adds all files that have come to the table, after the entries of their rows in the indexes;
    /// gives the number of SSTables, 0 if a TRUNCATE has removed their rows. After an error none
    /// of them is there.
    pub async fn finish(self, engine: &Arc<Engine>) -> Result<usize, StorageError> {
        let store = Arc::clone(&self.store);
        let (of_job, this) = (Arc::clone(engine), self);
        let opened = run_blocking(engine, move || (this.readers(&of_job), this)).await?;
        let this = opened.1;
        let filled = match opened.0 {
            Ok(sstables) => index::prefill::fill(engine, &store, &sstables).await.map(|filled| (sstables, filled)),
            Err(error) => Err(error),
        };
        let of_job = Arc::clone(engine);
        run_blocking(engine, move || match filled {
            Ok((sstables, filled)) => this.publish(&of_job, sstables, &filled),
            Err(error) => {
                this.abandon();
                Err(error)
            }
        })
        .await?
    }

    /// The effect of truncations of this node on the rows that come. Err: the rows may not be
    /// added, because the table was dropped, or truncated if that is a failure.
    pub fn truncation_effect(&self) -> Result<TruncationEffect, StorageError> {
        let store = &self.store;
        let why = match (store.is_closed(), store.truncation_effect(self.announced), self.if_truncated) {
            (true, _, _) => "dropped",
            (false, TruncationEffect::Begun | TruncationEffect::Removed, IfTruncated::Fail) => "truncated",
            (false, since, _) => return Ok(since),
        };
        Err(StorageError::Refused { why: format!("{} was {why} meanwhile", store.name()) })
    }

    /// Readers of the SSTables that have come, which are not in the table; compared with the
    /// schema. None where a TRUNCATE has removed the rows.
    pub fn readers(&self, engine: &Engine) -> Result<Vec<Arc<SSTable>>, StorageError> {
        if self.truncation_effect()? == TruncationEffect::Removed {
            return Ok(Vec::new());
        }
        let store = &self.store;
        let cache: Arc<dyn sstable::FileCache> = Arc::clone(&engine.caches) as _;
        let open = |descriptor: &Descriptor| {
            let synced = engine.env.disk.sync_dir(&descriptor.directory);
            synced.map_err(|error| StorageError::io(&descriptor.directory, &error))?;
            import::open(engine, descriptor, &store.table())?;
            let sstable = SSTable::open(&engine.env, descriptor.clone(), &store.table(), Arc::clone(&cache))?;
            Ok(Arc::new(sstable))
        };
        self.files().done.iter().map(open).collect()
    }

    /// Commits; from now on reads see the SSTables. After an error none of them is there.
    fn publish(
        self,
        engine: &Engine,
        sstables: Vec<Arc<SSTable>>,
        filled: &index::prefill::FilledIndexes,
    ) -> Result<usize, StorageError> {
        let store = Arc::clone(&self.store);
        let Files { transaction, done } = std::mem::take(&mut *self.files());
        let mut transaction = transaction.expect("a change ends once");
        let added = self.add_all(engine, &mut transaction, (sstables, done.len()), filled);
        files::settle(&store, transaction);
        added
    }

    /// Adds the SSTables, of which there are `came` unless a TRUNCATE has removed their rows.
    fn add_all(
        &self,
        engine: &Engine,
        transaction: &mut Transaction,
        (sstables, came): (Vec<Arc<SSTable>>, usize),
        filled: &index::prefill::FilledIndexes,
    ) -> Result<usize, StorageError> {
        let store = &self.store;
        self.truncation_effect()?;
        for sstable in &sstables {
            index::attached::components::complete(engine, store, sstable)?;
        }
        let missing = filled.missing_indexes(store);
        let held = match missing.is_empty() {
            true => None,
            false => Some(import::doubt_durably(engine, store, &missing)?),
        };
        let added = self.add(transaction, sstables, came)?;
        // indexes that were created since the entries were written are made again with the new rows
        index::build::request_rebuild(engine, store, &filled.missing_indexes(store), held);
        Ok(added)
    }

    /// Adds the SSTables under a lock for which a truncation that removes SSTables waits. So
    /// either the look finds that the rows are removed, or the truncation finds the SSTables in
    /// the view and removes them.
    fn add(
        &self,
        transaction: &mut Transaction,
        sstables: Vec<Arc<SSTable>>,
        came: usize,
    ) -> Result<usize, StorageError> {
        let store = &self.store;
        let _alone = store.replacing.lock().expect("a panic while SSTables are replaced ends the process");
        if self.truncation_effect()? == TruncationEffect::Removed {
            tracing::info!(
                table = store.name(),
                sstables = came,
                "SSTables of another node are dropped: the table was truncated since the node told of them"
            );
            return Ok(0);
        }
        assert_eq!(sstables.len(), came, "every SSTable that came is added");
        transaction.commit()?;
        store.add_received(sstables, self.announced);
        Ok(came)
    }

    /// Gives up all files that have come.
    pub fn abandon(self) {
        drop(self);
    }
}

impl Drop for ReceivedSSTables {
    /// Gives up the files that were not added.
    fn drop(&mut self) {
        if let Some(transaction) = std::mem::take(&mut *self.files()).transaction {
            files::settle(&self.store, transaction);
        }
    }
}

impl Files {
    fn transaction(&mut self) -> &mut Transaction {
        self.transaction.as_mut().expect("the change has not ended")
    }
}

/// The next item of a stream, without waiting. Pending: the stream has none for now.
fn at_once<T>(next: Result<Option<T>, ReadError>) -> Result<Poll<Option<T>>, StorageError> {
    match next {
        Ok(next) => Ok(Poll::Ready(next)),
        Err(ReadError::WouldBlock) => Ok(Poll::Pending),
        Err(error) => Err(error.into()),
    }
}

/// Refuses rows with a column that the table has not and never had: its cells would be passed over
/// in silence. The schema of the two nodes differs then, and the stream is to be tried again.
fn check_columns(header: &Header, store: &TableStore) -> Result<(), StorageError> {
    match header.unknown_column() {
        None => Ok(()),
        Some(column) => {
            let why = format!("Unknown column {} of {} in a stream", column.name, store.name());
            Err(StorageError::Refused { why })
        }
    }
}

/// Runs a job that may wait for the disk on a thread for such jobs.
async fn run_blocking<T: Send + 'static>(
    engine: &Engine,
    job: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StorageError> {
    let done = engine.env.blocking_long("stream", job).await;
    done.map_err(|full| StorageError::Refused { why: full.to_string() })
}
