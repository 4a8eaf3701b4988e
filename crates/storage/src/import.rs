//! Importing makes SSTables from other directories SSTables of a table. Refreshing does so with
//! SSTables that were put into the table's own directory.
//!
//! 1. All SSTables of all directories are verified, and compared with the schema and with the
//!    ranges of the node. A directory where one fails is left out as a whole.
//! 2. The SSTables of a directory get new ids. A transaction log says what is added; their files
//!    are linked (or copied) and synced.
//! 3. They are opened; the log commits; they are in the view. A failure before leaves the table
//!    and the directory as they were.
//! 4. Unless a copy was asked for, the source's files go, Data.db first.
//!
//! A crash before the commit leaves the source as it was, one behind it the SSTables in the table;
//! between the commit and the end of 4 some may be in both, and importing them again changes no
//! answer. A refresh has no such moment: old names go with the same commit. The drop of the table
//! ends both, and waits for them: files go by their names, which those of a table that is made
//! again with the id may have. Agrees with `org.apache.cassandra.db.SSTableImporter`.

mod place_files;
mod schema_check;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schema::TableMetadata;
use sstable::verify::{Depth, verify};
use sstable::{Component, Descriptor, NoCache, SSTable};

use crate::engine::Engine;
use crate::error::StorageError;
use crate::files::{self, Operation, Transaction};
use crate::flush;
use crate::index::{self, built};
use crate::requests::index_builds::Held;
use crate::table::TableStore;
use crate::table::incoming::IncomingChange;
use crate::table::indexes::IndexStore;
use crate::token_ranges::{OutsideRanges, TokenRanges};
use place_files::{Reset, place_files, remove};

pub(crate) use place_files::reset_statistics;

/// The directories to import from, and how it is done.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// Directories with SSTables, on this machine.
    pub directories: Vec<PathBuf>,
    /// The level of the SSTables becomes 0.
    pub reset_level: bool,
    /// The SSTables do not count as repaired.
    pub clear_repaired: bool,
    /// Digests are compared before the import.
    pub verify: bool,
    /// Every row is read before the import.
    pub extended_verify: bool,
    /// The files are copied, and stay where they are.
    pub copy: bool,
    /// SSTables are refused that lack components of the table's attached indexes.
    pub require_indexes: bool,
}

/// Imports, and gives the directories that were left out, in the order in which they were given.
/// Partitions outside of the ranges `held` are refused; None: no partition is.
pub fn import(
    engine: &Engine,
    store: &Arc<TableStore>,
    options: &Options,
    held: Option<&TokenRanges>,
) -> Result<Vec<PathBuf>, StorageError> {
    let _counted = IncomingChange::begin(store)?;
    let _alone = store.importing.lock().expect("a panic in an import ends the process");
    let disk = &engine.env.disk;
    tracing::info!(table = store.name(), ?options, "loading new SSTables");
    for directory in &options.directories {
        if !disk.exists(directory) {
            return Err(StorageError::Refused { why: format!("Directory {} does not exist", directory.display()) });
        }
    }
    let mut failed = Vec::new();
    let mut sound = Vec::new();
    for directory in &options.directories {
        let checked = sources(engine, store, directory).and_then(|sources| {
            sources.iter().try_for_each(|source| check(engine, store, source, options, held)).map(|()| sources)
        });
        match checked {
            Ok(sources) => sound.push((directory, sources)),
            Err(error) => {
                tracing::error!(directory = %directory.display(), %error, "an SSTable cannot be imported");
                failed.push(directory);
            }
        }
    }
    let (mut count, brings) = (0, sound.iter().any(|(_, sources)| !sources.is_empty()));
    let held = if brings { Some(doubt_durably(engine, store, &store.view().indexes)?) } else { None };
    for (directory, sources) in sound {
        match import_all(engine, store, &sources, options) {
            Ok(()) => count += sources.len(),
            Err(error) => {
                tracing::error!(directory = %directory.display(), %error, "importing SSTables failed");
                failed.push(directory);
            }
        }
    }
    if brings {
        index::build::request_rebuild(engine, store, &store.view().indexes, held);
    }
    tracing::info!(table = store.name(), count, "done loading new SSTables");
    let in_order = options.directories.iter().filter(|directory| failed.contains(directory));
    Ok(in_order.cloned().collect())
}

/// Called before SSTables come whose rows these indexes of a table do not have. The note about
/// that ([`built::mark_incomplete`]) is durable when this returns. The files of the SSTables are
/// durable at once, so after a power cut that had taken the note an index would count as complete
/// without their rows. The jobs that bring SSTables do not wait for the commit log: the table of
/// the notes, which is small, is flushed instead. The caller gives the value to
/// [`index::build::request_rebuild`]: until then no build that runs already takes the note back,
/// and none notes an index that is created meanwhile.
pub(crate) fn doubt_durably<'e>(
    engine: &'e Engine,
    base: &Arc<TableStore>,
    indexes: &[Arc<IndexStore>],
) -> Result<Held<'e>, StorageError> {
    let held = engine.index_builder.hold(base, indexes.iter().map(|index| index.name()));
    if indexes.is_empty() {
        return Ok(held);
    }
    built::mark_incomplete(engine, base, indexes)?;
    if let Some(notes) = built::table(engine)
        && let Some(set) = flush::freeze(engine, &notes)
    {
        flush::flush_set(engine, &notes, &set)?;
    }
    Ok(held)
}

/// The SSTables of a directory that the table does not have. The directory may be the table's own:
/// no flush or compaction, and no stream, is about to put its files in the view meanwhile.
fn sources(engine: &Engine, store: &TableStore, directory: &Path) -> Result<Vec<Descriptor>, StorageError> {
    let _no_flush = flush::lock_flushes(store);
    let _no_change = store.replacing.lock().expect("a panic while SSTables are replaced ends the process");
    listed(engine, store, directory)
}

/// Does the work of [`sources`] for a caller that holds the locks.
fn listed(engine: &Engine, store: &TableStore, directory: &Path) -> Result<Vec<Descriptor>, StorageError> {
    let hidden_now = || sstable::txn_log::obsolete_files(&engine.env, &[directory.to_owned()]);
    // before and behind the look: a change that is given up in between has its files in the list,
    // and no log any more
    let mut hidden: BTreeSet<PathBuf> = hidden_now()?;
    let entries = engine.env.disk.list_dir(directory).map_err(|error| StorageError::io(directory, &error))?;
    hidden.extend(hidden_now()?);
    let view = store.view();
    let is_ours = |descriptor: &Descriptor| view.sstables.iter().any(|sstable| sstable.descriptor() == descriptor);
    let mut found = Vec::new();
    for entry in entries.into_iter().filter(|entry| !entry.is_dir) {
        let Some((descriptor, Some(Component::Data))) = Descriptor::parse(directory, &entry.name) else { continue };
        if !hidden.contains(&descriptor.path(Component::Data)) && !is_ours(&descriptor) {
            found.push(descriptor);
        }
    }
    found.sort_by_key(|descriptor| descriptor.id);
    Ok(found)
}

fn check(
    engine: &Engine,
    store: &TableStore,
    source: &Descriptor,
    options: &Options,
    held: Option<&TokenRanges>,
) -> Result<(), StorageError> {
    abort_if_over(engine, store)?;
    let sstable = open(engine, source, &store.table())?;
    if let Some(outside) = held.map(|held| held.first_outside(&sstable)).transpose()?.flatten() {
        let (file, outside) = (source.path(Component::Data), OutsideRanges(&outside));
        let why = format!("{}: {outside} (nodetool import --no-tokens takes it all the same)", file.display());
        return Err(StorageError::Refused { why });
    }
    if options.require_indexes {
        check_indexes(engine, store, &sstable)?;
    }
    let has_digest = engine.env.disk.exists(&source.path(Component::Digest));
    let depth = match options {
        Options { extended_verify: true, .. } => Depth::Extended,
        Options { verify: true, .. } if has_digest => Depth::Quick,
        Options { verify: true, .. } => Depth::Extended,
        _ => return Ok(()),
    };
    verify(&engine.env, &sstable, depth)?;
    Ok(())
}

/// Err: the SSTable lacks a component of an attached index of the table, or has one that does not
/// fit.
fn check_indexes(engine: &Engine, store: &TableStore, sstable: &SSTable) -> Result<(), StorageError> {
    let indexes = Arc::clone(&store.view().indexes);
    index::attached::components::open(&engine.env, &engine.caches, sstable, &indexes);
    match index::attached::components::indexes_without_components(sstable, &indexes).first() {
        None => Ok(()),
        Some(lacking) => {
            let file = sstable.descriptor().path(Component::Data);
            let why = format!(
                "{} has no component of index {} that Helenus can read (without --require-index-components it is made)",
                file.display(),
                lacking.name()
            );
            Err(StorageError::Refused { why })
        }
    }
}

/// Opens an SSTable that is to be one of the table.
pub(crate) fn open(
    engine: &Engine,
    descriptor: &Descriptor,
    table: &Arc<TableMetadata>,
) -> Result<SSTable, StorageError> {
    let sstable = SSTable::open(&engine.env, descriptor.clone(), table, Arc::new(NoCache))?;
    let mismatches = schema_check::mismatches(sstable.statistics(), table);
    if mismatches.is_empty() {
        return Ok(sstable);
    }
    let file = descriptor.path(Component::Data);
    let table = format!("{}.{}", table.keyspace, table.name);
    Err(StorageError::Refused { why: format!("{} does not fit {table}: {}", file.display(), mismatches.join("; ")) })
}

/// Err: the node is being drained, or the table was dropped meanwhile.
fn abort_if_over(engine: &Engine, store: &TableStore) -> Result<(), StorageError> {
    match engine.is_draining() || store.is_closed() {
        true => Err(StorageError::Refused { why: "SSTables import has been aborted".into() }),
        false => Ok(()),
    }
}

/// Brings SSTables in, all or none.
fn import_all(
    engine: &Engine,
    store: &Arc<TableStore>,
    sources: &[Descriptor],
    options: &Options,
) -> Result<(), StorageError> {
    if sources.is_empty() {
        return Ok(());
    }
    let (level, repaired, log_of) = (options.reset_level, options.clear_repaired, engine.host_id());
    let reset = Reset { level, repaired, log_of };
    let mut transaction = files::begin(engine, store, Operation::Write)?;
    let brought = add_all(engine, store, &mut transaction, sources, reset);
    let committed = brought.and_then(|sstables| transaction.commit().map(|()| sstables).map_err(StorageError::from));
    let result = committed.map(|sstables| store.replace_sstables(&[], sstables));
    files::settle(store, transaction);
    result?;
    if !options.copy {
        for source in sources {
            if let Err(error) = remove(&engine.env, source) {
                tracing::warn!(%error, sstable = source.prefix(), "an SSTable is imported, but cannot be removed where it was");
            }
        }
    }
    Ok(())
}

/// The SSTables under their new names, complete and durable.
fn add_all(
    engine: &Engine,
    store: &Arc<TableStore>,
    transaction: &mut Transaction,
    sources: &[Descriptor],
    reset: Reset,
) -> Result<Vec<Arc<SSTable>>, StorageError> {
    let mut sstables = Vec::new();
    for source in sources {
        abort_if_over(engine, store)?;
        let target = files::new_descriptor(engine, store, source.version);
        transaction.add(&target)?;
        tracing::info!(
            from = %source.path(Component::Data).display(),
            to = %target.path(Component::Data).display(),
            "bringing a new SSTable"
        );
        place_files(&engine.env, source, &target, reset)?;
        engine.env.disk.sync_dir(&target.directory).map_err(|error| StorageError::io(&target.directory, &error))?;
        // what was not verified is compared with the schema here
        open(engine, &target, &store.table())?;
        let cache: Arc<dyn sstable::FileCache> = Arc::clone(&engine.caches) as _;
        let sstable = Arc::new(SSTable::open(&engine.env, target, &store.table(), cache)?);
        index::attached::components::complete(engine, store, &sstable)?;
        sstables.push(sstable);
    }
    Ok(sstables)
}

/// Loads SSTables that were put into the table's directory; gives how many there were. They get new
/// ids and level 0.
pub fn refresh(engine: &Engine, store: &Arc<TableStore>) -> Result<usize, StorageError> {
    let _counted = IncomingChange::begin(store)?;
    let _alone = store.importing.lock().expect("a panic in an import ends the process");
    abort_if_over(engine, store)?;
    let mut found = Vec::new();
    for directory in store.directories.iter().filter(|directory| engine.env.disk.exists(directory)) {
        found.extend(sources(engine, store, directory)?);
    }
    // those that could not be opened at start may have been mended since; if not, they wait for a
    // scrub
    let is_left_out = |source: &Descriptor| store.left_out().iter().any(|left_out| left_out.descriptor == *source);
    found.retain(|source| !is_left_out(source) || open(engine, source, &store.table()).is_ok());
    let sources = found;
    if sources.is_empty() {
        tracing::info!(table = store.name(), "no new SSTables were found");
        return Ok(0);
    }
    let held = doubt_durably(engine, store, &store.view().indexes)?;
    let mut transaction = files::begin(engine, store, Operation::Write)?;
    let reset = Reset { level: true, repaired: false, log_of: engine.host_id() };
    // flushes go on meanwhile: the components of attached indexes may take long to make
    let brought = add_all(engine, store, &mut transaction, &sources, reset);
    let result = brought.and_then(|sstables| rename(engine, store, &mut transaction, &sources, sstables));
    files::settle(store, transaction);
    index::build::request_rebuild(engine, store, &store.view().indexes, Some(held));
    result.map(|()| sources.len())
}

/// Adds SSTables in the place of the ones that they are other names of. Err: a TRUNCATE or a scrub
/// has removed one of these since they were found. Their rows must not come back.
fn rename(
    engine: &Engine,
    store: &TableStore,
    transaction: &mut Transaction,
    sources: &[Descriptor],
    sstables: Vec<Arc<SSTable>>,
) -> Result<(), StorageError> {
    let _no_change = store.replacing.lock().expect("a panic while SSTables are replaced ends the process");
    for directory in store.directories.iter().filter(|directory| engine.env.disk.exists(directory)) {
        let there = listed(engine, store, directory)?;
        if let Some(gone) = sources.iter().find(|it| it.directory == *directory && !there.contains(it)) {
            let why = format!("{} was removed meanwhile: refresh again", gone.path(Component::Data).display());
            return Err(StorageError::Refused { why });
        }
    }
    transaction.remove_all(sources)?;
    transaction.commit()?;
    store.replace_sstables(&[], sstables);
    // under the lock: a scrub would otherwise add the rows of one of these SSTables once more
    sources.iter().for_each(|source| store.forget_left_out(source));
    Ok(())
}
