//! Writes SSTables again: the part that `upgrade`, `split` and `salvage` share.
//!
//! New SSTables appear, and the SSTables that they replace vanish, as one step: through a
//! transaction log in the directory that is written to. Until the log commits, the new SSTables do
//! not count; a crash leaves the old state.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use env::Env;
use rows::codec::Header;
use rows::{Cell, ColumnData, DeletionTime, NO_DELETION_TIME, PartitionHead, PartitionStream, Row, Unfiltered};
use schema::TableMetadata;
use sstable::salvage::SalvageStream;
use sstable::txn_log::{Operation, Transaction};
use sstable::{
    Component, CompressionParams, Descriptor, FinishedSSTable, SSTable, SSTableId, SSTableStream, SSTableWriter,
    Statistics, Version, WriterOptions,
};

use crate::failure::Failure;
use crate::open;
use crate::progress::Progress;

/// The latest deletion time that versions before `oa` can express; seconds since 1970.
const DELETION_TIME_MAX_SIGNED: u32 = i32::MAX as u32 - 1;

/// A stream of an SSTable that tells its position in the file.
pub trait Positioned: PartitionStream {
    /// The position in the uncompressed data, bytes.
    fn place(&self) -> u64;
}

impl Positioned for SSTableStream {
    fn place(&self) -> u64 {
        self.position()
    }
}

impl Positioned for SalvageStream {
    fn place(&self) -> u64 {
        self.position()
    }
}

/// How new SSTables are written.
#[derive(Clone)]
pub struct Recipe {
    /// The table that the rows belong to.
    pub table: Arc<TableMetadata>,
    /// The serialization header: columns and the bases of timestamps and deletion times.
    pub header: Header,
    /// The version of the new SSTables.
    pub version: Version,
    /// Compression, filter, and what is taken over from the source.
    pub options: WriterOptions,
}

impl Recipe {
    /// Writes as the source was written, with its level, repaired state and origin.
    pub fn like(
        table: &Arc<TableMetadata>,
        header: &Header,
        statistics: &Statistics,
        compression: Option<CompressionParams>,
        keys: u64,
    ) -> Self {
        let stats = &statistics.stats;
        let options = WriterOptions {
            row_index_block: None,
            is_quick: false,
            compression,
            filter_chance: statistics.filter_chance,
            estimated_keys: keys,
            level: stats.level,
            repaired_at: stats.repaired_at,
            pending_repair: stats.pending_repair,
            is_transient: stats.is_transient,
            originating_host: stats.originating_host,
            token_space_coverage: None,
            commit_log_intervals: stats.commit_log_intervals.clone(),
        };
        Self { table: Arc::clone(table), header: known_columns(header), version: Version::DA, options }
    }

    /// Writes as an open SSTable was written.
    pub fn of(sstable: &SSTable) -> Self {
        let compression = sstable.data().compression().map(|info| info.params.clone());
        Self::like(sstable.table(), sstable.scan_header(), sstable.statistics(), compression, sstable.partition_count())
    }

    /// Writes in this version.
    pub fn in_version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// Writes with the compression and the filter that the table's schema asks for.
    pub fn by_schema(mut self) -> Result<Self, Failure> {
        let params = &self.table.params;
        self.options.compression = CompressionParams::from_schema(&params.compression).map_err(Failure::new)?;
        self.options.filter_chance = params.bloom_filter_fp_chance;
        Ok(self)
    }
}

/// Refuses a schema that neither has a column of the SSTable nor has dropped it. The cells of the
/// column would be left out otherwise, and the SSTable that has them removed.
pub fn check_columns(header: &Header, descriptor: &Descriptor) -> Result<(), Failure> {
    let Some(column) = header.unknown_column() else { return Ok(()) };
    let file = descriptor.path(Component::Data);
    Err(Failure::new(format!(
        "{} has the column {}, which the schema has not and never had: its cells would be lost. Give a schema that has \
         the column (--schema)",
        file.display(),
        column.name
    )))
}

/// The header without the columns that the schema has dropped, so that nothing is written of them.
fn known_columns(header: &Header) -> Header {
    let known = |columns: &[rows::codec::CodecColumn]| columns.iter().filter(|one| one.id.is_some()).cloned().collect();
    Header::new(header.stats, header.clustering.clone(), known(&header.statics), known(&header.regulars))
}

/// SSTables that are being written into a directory.
pub struct Output<'a> {
    env: &'a Env,
    directory: PathBuf,
    recipe: Recipe,
    /// The name of the next SSTable.
    id: SSTableId,
    transaction: Transaction,
    writer: Option<SSTableWriter>,
    /// The SSTables that are complete.
    pub finished: Vec<FinishedSSTable>,
    /// Deletion and expiration times that the version cannot express and that were moved to the
    /// latest that it can.
    pub capped: u64,
}

impl<'a> Output<'a> {
    /// Begins in a directory. New names have the form of the name of `like`: a number or a UUID.
    /// `named`: the SSTables that the verb works on; see [`next_id`].
    pub fn new(
        env: &'a Env,
        directory: &Path,
        recipe: Recipe,
        like: SSTableId,
        named: &[Descriptor],
    ) -> Result<Self, Failure> {
        env.disk.create_dir_durable(directory).map_err(|error| wrong(directory, &error))?;
        let id = next_id(env, directory, like, named)?;
        let uuid = new_uuid(env);
        let transaction = Transaction::begin(env, directory, Operation::Write, uuid, recipe.version)?;
        Ok(Self {
            env,
            directory: directory.to_owned(),
            recipe,
            id,
            transaction,
            writer: None,
            finished: Vec::new(),
            capped: 0,
        })
    }

    /// Writes all partitions of a stream. A new SSTable begins at the first partition behind
    /// `piece_max` bytes of Data.db.
    pub fn write_all(
        &mut self,
        stream: &mut dyn Positioned,
        piece_max: u64,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        while let Some(head) = stream.next_partition()? {
            if self.writer.as_ref().is_some_and(|writer| writer.stored_length() >= piece_max) {
                self.finish_piece()?;
            }
            self.write_partition(head, stream, progress)?;
        }
        Ok(())
    }

    fn write_partition(
        &mut self,
        mut head: PartitionHead,
        stream: &mut dyn Positioned,
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        let caps = !self.recipe.version.has_unsigned_deletion_times();
        let mut capped = 0;
        if caps {
            capped += cap_deletion(&mut head.deletion);
            capped += head.static_row.as_deref_mut().map_or(0, cap_row);
        }
        let writer = self.writer()?;
        writer.start_partition(&head.key, head.deletion);
        if let Some(row) = &head.static_row {
            writer.static_row(row);
        }
        while let Some(mut unfiltered) = stream.next_unfiltered()? {
            if caps {
                capped += cap(&mut unfiltered);
            }
            writer.append(&unfiltered)?;
            progress.at(stream.place());
        }
        writer.end_partition()?;
        self.capped += capped;
        Ok(())
    }

    fn writer(&mut self) -> Result<&mut SSTableWriter, Failure> {
        if self.writer.is_none() {
            let descriptor = Descriptor::new(&self.directory, self.recipe.version, self.id);
            self.id = match self.id {
                SSTableId::Sequence(number) => SSTableId::Sequence(number + 1),
                SSTableId::Uuid(_) => SSTableId::Uuid(new_uuid(self.env)),
            };
            self.transaction.add(&descriptor)?;
            let Recipe { table, header, options, .. } = self.recipe.clone();
            self.writer = Some(SSTableWriter::new(self.env, descriptor, table, options, header)?);
        }
        self.writer.as_mut().ok_or_else(|| Failure::new("no writer"))
    }

    /// Completes the SSTable that is being written; the next partition begins another.
    pub fn finish_piece(&mut self) -> Result<(), Failure> {
        if let Some(writer) = self.writer.take() {
            self.finished.push(writer.finish()?);
        }
        Ok(())
    }

    /// Has the SSTables that are complete count as not repaired: rows are lost, and a repair passes
    /// over what counts as repaired, so that other replicas would never send these rows again.
    pub fn forget_repair(&self) -> Result<(), Failure> {
        for done in &self.finished {
            let mut statistics = open::statistics(self.env, &done.descriptor)?;
            let stats = &mut statistics.stats;
            (stats.repaired_at, stats.pending_repair, stats.is_transient) = (0, None, false);
            let path = done.descriptor.path(Component::Statistics);
            let written = self.env.disk.replace_file(&path, &statistics.write(done.descriptor.version));
            written.map_err(|error| wrong(&path, &error))?;
        }
        Ok(())
    }

    /// Commits: from now on the new SSTables count, and the replaced ones are removed.
    pub fn commit(mut self, replaced: &[Descriptor]) -> Result<(Vec<FinishedSSTable>, u64), Failure> {
        let done = self.finish_piece().and_then(|()| {
            self.transaction.remove_all(replaced)?;
            Ok(self.transaction.commit()?)
        });
        if let Err(failure) = done {
            self.abandon();
            return Err(failure);
        }
        self.transaction.settle()?;
        Ok((self.finished, self.capped))
    }

    /// Gives up: removes the new SSTables and keeps the old ones.
    pub fn abandon(mut self) {
        drop(self.writer.take());
        // a file that cannot be removed now is removed when a node starts, because the transaction
        // log names it
        let _ = self.transaction.settle();
    }
}

fn wrong(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("{}: {error}", path.display()))
}

fn new_uuid(env: &Env) -> [u8; 16] {
    types::timeuuid::from_micros(env.clock.now_micros(), env.random.next_u64())
}

/// A name that no SSTable of the directory has, nor one in the other directories of the same table
/// that `named` lie in: a table with two SSTables of one name in two data directories cannot be
/// backed up. Other data directories of a node are not known here.
fn next_id(env: &Env, directory: &Path, like: SSTableId, named: &[Descriptor]) -> Result<SSTableId, Failure> {
    if let SSTableId::Uuid(_) = like {
        return Ok(SSTableId::Uuid(new_uuid(env)));
    }
    let others = named.iter().map(|descriptor| descriptor.directory.as_path());
    let mut directories: BTreeSet<&Path> = others.filter(|other| other.file_name() == directory.file_name()).collect();
    directories.insert(directory);
    let mut greatest = 0;
    for directory in directories {
        let entries = env.disk.list_dir(directory).map_err(|error| wrong(directory, &error))?;
        let ids = entries.iter().filter_map(|entry| match Descriptor::parse(directory, &entry.name)?.0.id {
            SSTableId::Sequence(number) => Some(number),
            SSTableId::Uuid(_) => None,
        });
        greatest = greatest.max(ids.max().unwrap_or_default());
    }
    Ok(SSTableId::Sequence(greatest + 1))
}

/// Links the files of an SSTable into a snapshot in its directory. Gives the snapshot's directory.
pub fn snapshot(env: &Env, descriptor: &Descriptor, name: &str) -> Result<PathBuf, Failure> {
    let directory = descriptor.directory.join("snapshots").join(name);
    env.disk.create_dir_durable(&directory).map_err(|error| wrong(&directory, &error))?;
    for component in Component::ALL {
        let path = descriptor.path(component);
        let link = directory.join(descriptor.file_name(component));
        if env.disk.exists(&path) && !env.disk.exists(&link) {
            env.disk.hard_link(&path, &link).map_err(|error| wrong(&link, &error))?;
        }
    }
    env.disk.sync_dir(&directory).map_err(|error| wrong(&directory, &error))?;
    Ok(directory)
}

fn cap_time(seconds: &mut u32) -> u64 {
    if *seconds == NO_DELETION_TIME || *seconds <= DELETION_TIME_MAX_SIGNED {
        return 0;
    }
    *seconds = DELETION_TIME_MAX_SIGNED;
    1
}

fn cap_deletion(deletion: &mut DeletionTime) -> u64 {
    if deletion.is_live() { 0 } else { cap_time(&mut deletion.local_deletion_time) }
}

fn cap_row(row: &mut Row) -> u64 {
    let mut capped = cap_time(&mut row.liveness.local_expiration_time) + cap_deletion(&mut row.deletion);
    for data in &mut row.columns {
        let cells: &mut [Cell] = match data {
            ColumnData::Simple(cell) => std::slice::from_mut(cell),
            ColumnData::Complex(complex) => {
                capped += cap_deletion(&mut complex.deletion);
                &mut complex.cells
            }
        };
        capped += cells.iter_mut().map(|cell| cap_time(&mut cell.local_deletion_time)).sum::<u64>();
    }
    capped
}

fn cap(unfiltered: &mut Unfiltered) -> u64 {
    match unfiltered {
        Unfiltered::Row(row) => cap_row(row),
        Unfiltered::Marker(marker) => {
            [&mut marker.close, &mut marker.open].into_iter().flatten().map(cap_deletion).sum()
        }
    }
}
