//! An open SSTable: what it covers, and the streams that read it.
//!
//! Opening reads the filter and the chunk offsets, and parses Statistics.db; the index components
//! are read as they are needed. An [`SSTable`] is a handle: clones share everything. What depends
//! on the schema, the mapping of its columns, is apart, so that after an ALTER
//! [`SSTable::with_schema`] gives a handle for the new schema over the same files. Agrees with
//! `org.apache.cassandra.io.sstable.format.{bti.BtiTableReader,big.BigTableReader}`.

mod check_written;
pub mod clip;
mod cursor;
mod explain;
mod open;
mod partition;
mod partition_offsets;
mod stream;
mod walk;

use std::sync::{Arc, Weak};

use bytes::Bytes;
use env::{Disk, Env};
use rows::codec::Header;
use rows::{PartitionRange, ReadCommand, ReadContext, ReadError, ReadMode};
use schema::TableMetadata;
use types::{DecoratedKey, Token};

use crate::attached::Attachments;
use crate::chunk_reader::DataFile;
use crate::compression_info::CompressionInfo;
use crate::data_writer::ComponentFile;
use crate::descriptor::{Component, Descriptor};
use crate::error::{Error, IndexError};
use crate::file_cache::FileCache;
use crate::filter::{Filter, KeyHash};
use crate::index::big_index::KeyOrder;
use crate::index::{Index, PartitionPosition, RowIndex};
use crate::index_file::{Access, IndexFile};
use crate::read_schema::ReadSchema;
use crate::statistics::{MURMUR3_PARTITIONER, Statistics};

pub use stream::SSTableStream;

/// Statistics.db, digests and tables of contents longer than this are refused.
pub(crate) const SMALL_FILE_MAX: u64 = 256 * 1024 * 1024;

/// An open SSTable.
#[derive(Clone, Debug)]
pub struct SSTable {
    shared: Arc<Shared>,
    schema: Arc<ReadSchema>,
}

/// The files of an SSTable, for as long as somebody has them open. Does not keep them open.
#[derive(Clone, Debug)]
pub struct OpenFiles {
    shared: Weak<Shared>,
    disk_size: u64,
}

impl OpenFiles {
    /// Bytes of the files; 0: nobody has them open any more.
    pub fn disk_size(&self) -> u64 {
        if self.shared.strong_count() > 0 { self.disk_size } else { 0 }
    }
}

/// The content of the files that does not depend on the schema.
#[derive(Debug)]
struct Shared {
    descriptor: Descriptor,
    data: DataFile,
    index: Index,
    filter: Option<Filter>,
    statistics: Statistics,
    first: DecoratedKey,
    last: DecoratedKey,
    order: KeyOrder,
    /// Bytes of all components.
    disk_size: u64,
    /// Components that were missing or wrong and could be done without.
    notes: Vec<String>,
    /// The open components of storage-attached indexes.
    attached: Attachments,
}

impl SSTable {
    /// Opens the files.
    pub fn open(
        env: &Env,
        descriptor: Descriptor,
        table: &Arc<TableMetadata>,
        cache: Arc<dyn FileCache>,
    ) -> Result<Self, Error> {
        open::open(env, descriptor, table, cache)
    }

    /// Writes the summary that had to be made, so that the next to open this has it. Nothing is
    /// written in the place of one that fits.
    pub fn keep_made_summary(&self, disk: &dyn Disk) -> Result<(), Error> {
        let Index::Big(index) = &self.shared.index else { return Ok(()) };
        let Some(made) = &index.made else { return Ok(()) };
        let path = self.shared.descriptor.path(Component::Summary);
        if disk.exists(&path) {
            // a snapshot may have it by another name
            disk.remove_file(&path).map_err(|error| Error::io(&path, error))?;
        }
        // half of one does not fit either
        ComponentFile::write_whole(disk, &path, made)
    }

    /// Components that were missing or wrong and could be done without, a sentence each with its
    /// file: for the log.
    pub fn notes(&self) -> &[String] {
        &self.shared.notes
    }

    /// False for legacy index tables: their keys are ordered by the type of what they index, have
    /// no tokens, and are not found by ring position; they can be scanned whole.
    pub fn has_tokens(&self) -> bool {
        self.shared.statistics.partitioner == MURMUR3_PARTITIONER
    }

    /// The same files under another schema of the table.
    pub fn with_schema(&self, table: &Arc<TableMetadata>) -> Result<Self, Error> {
        let path = self.shared.descriptor.path(Component::Statistics);
        let read_schema = ReadSchema::new(&self.shared.statistics, table).map_err(|error| error.of(&path, 0))?;
        Ok(Self { shared: Arc::clone(&self.shared), schema: Arc::new(read_schema) })
    }

    /// The open components of storage-attached indexes.
    pub fn attached(&self) -> &Attachments {
        &self.shared.attached
    }

    /// Its place and name.
    pub fn descriptor(&self) -> &Descriptor {
        &self.shared.descriptor
    }

    /// The schema it is read under.
    pub fn table(&self) -> &Arc<TableMetadata> {
        &self.schema.table
    }

    /// The header that the rows of reads are decoded against.
    pub fn header(&self) -> &Header {
        &self.schema.header
    }

    /// The header that the rows of [`Self::scan_all`] are decoded against: also columns that were
    /// dropped, where there may be cells that are newer.
    pub fn scan_header(&self) -> &Header {
        self.schema.rewriting.as_ref().map_or(&self.schema.header, |rewriting| &rewriting.header)
    }

    /// The content of Statistics.db.
    pub fn statistics(&self) -> &Statistics {
        &self.shared.statistics
    }

    /// The first key.
    pub fn first_key(&self) -> &DecoratedKey {
        &self.shared.first
    }

    /// The last key.
    pub fn last_key(&self) -> &DecoratedKey {
        &self.shared.last
    }

    /// Number of partitions.
    pub fn partition_count(&self) -> u64 {
        self.shared.index.count()
    }

    /// Bytes of Data.db before compression.
    pub fn data_length(&self) -> u64 {
        self.shared.data.length()
    }

    /// Bytes of Data.db on disk.
    pub fn stored_length(&self) -> u64 {
        self.shared.data.stored_length()
    }

    /// Bytes of all its files.
    pub fn disk_size(&self) -> u64 {
        self.shared.disk_size
    }

    /// A look at the files that goes on when this SSTable is dropped.
    pub fn open_files(&self) -> OpenFiles {
        OpenFiles { shared: Arc::downgrade(&self.shared), disk_size: self.shared.disk_size }
    }

    /// Bytes of the Bloom filter.
    pub fn filter_size(&self) -> usize {
        self.shared.filter.as_ref().map_or(0, Filter::memory_size)
    }

    /// Bytes of memory that say where the compressed chunks of the data are; 0: the data is not
    /// compressed.
    pub fn compression_metadata_size(&self) -> usize {
        self.shared.data.compression().map_or(0, CompressionInfo::offsets_size)
    }

    /// The number by which the cache knows the chunks of the data.
    pub fn file_id(&self) -> u64 {
        self.shared.data.id()
    }

    /// The numbers by which the cache knows the chunks of the data and the pages of the index.
    pub fn cached_files(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.file_id()).chain(self.shared.index.files().filter_map(IndexFile::id))
    }

    /// The data file, for checks and advice.
    pub fn data(&self) -> &DataFile {
        &self.shared.data
    }

    /// False: the key is surely not here.
    #[inline]
    pub fn may_contain(&self, key: &DecoratedKey, hash: KeyHash) -> bool {
        (*key >= self.shared.first && *key <= self.shared.last)
            && self.shared.filter.as_ref().is_none_or(|filter| filter.may_contain(hash))
    }

    /// Whether some partition lies between two tokens, both included.
    pub fn overlaps(&self, first: Token, last: Token) -> bool {
        self.shared.first.token <= last && self.shared.last.token >= first
    }

    /// False: nothing that the command asks for can be in here, whatever the partition: no slice
    /// meets what is covered, and there are neither partition deletions nor static columns.
    pub fn may_match(&self, command: &ReadCommand) -> bool {
        let has_partition_deletions = self.shared.statistics.stats.has_partition_deletions;
        has_partition_deletions || !self.schema.header.statics.is_empty() || self.meets_slices(command)
    }

    /// Whether some slice of a command meets the clusterings that are covered.
    pub fn meets_slices(&self, command: &ReadCommand) -> bool {
        if command.slices.is_all() {
            return true;
        }
        let stats = &self.shared.statistics.stats;
        let comparator = &self.schema.table.comparator;
        command.slices.0.iter().any(|slice| {
            slice.start.compare(&stats.covered.end, comparator).is_lt()
                && slice.end.compare(&stats.covered.start, comparator).is_gt()
        })
    }

    /// Reads the partitions and rows that a command asks for.
    pub fn read(&self, command: &ReadCommand, context: &ReadContext) -> Result<SSTableStream, ReadError> {
        SSTableStream::new(self.clone(), command, context)
    }

    /// Everything, for compactions, verifications and tools: does not disturb the cache. Cells of
    /// dropped columns that are newer than the drop are there too.
    pub fn scan_all(&self, context: &ReadContext) -> Result<SSTableStream, ReadError> {
        let schema = Arc::clone(self.schema.rewriting.as_ref().unwrap_or(&self.schema));
        SSTableStream::all(Self { shared: Arc::clone(&self.shared), schema }, context)
    }

    /// Everything as reads see it, for verifications: does not disturb the cache.
    pub(crate) fn scan_as_read(&self, context: &ReadContext) -> Result<SSTableStream, ReadError> {
        SSTableStream::all(self.clone(), context)
    }

    /// Everything, for whoever numbers the rows of the SSTable: does not disturb the cache. Rows
    /// are there, too, of which nothing is left because their columns were dropped, so that the
    /// numbers do not depend on the schema.
    pub fn scan_every_row(&self, context: &ReadContext) -> Result<SSTableStream, ReadError> {
        let mut stream = self.scan_all(context)?;
        stream.reader.keeps_empty = true;
        Ok(stream)
    }

    /// The partitions of a range, for repairs: does not disturb the cache. Rows are given as they
    /// are encoded where they have the columns of `target`.
    pub fn scan_range_encoded(
        &self,
        range: PartitionRange,
        context: &ReadContext,
        target: &Header,
    ) -> Result<SSTableStream, ReadError> {
        Ok(SSTableStream::over(self.clone(), range, context)?.encoded_for(target))
    }

    /// Everything, with rows as they are encoded where they can be copied into what is written
    /// against `target`.
    pub fn scan_encoded(&self, context: &ReadContext, target: &Header) -> Result<SSTableStream, ReadError> {
        Ok(self.scan_all(context)?.encoded_for(target))
    }

    fn index_error(&self, error: impl Into<IndexError>, component: Component) -> ReadError {
        error.into().of(&self.shared.descriptor.path(component))
    }

    /// The component that leads from keys to partitions.
    pub fn partitions_component(&self) -> Component {
        self.shared.index.partitions_component()
    }

    fn partitions_error(&self, error: impl Into<IndexError>) -> ReadError {
        self.index_error(error, self.partitions_component())
    }

    /// Where the partition of a key can be. In the list of a big index it takes a search; what came
    /// of it is kept.
    #[inline]
    fn find(&self, key: &DecoratedKey, hash: KeyHash, mode: ReadMode) -> Result<Option<PartitionPosition>, ReadError> {
        let access = Access { mode, keeps: true };
        let find = || self.shared.index.find(key, hash, access).map_err(|error| self.partitions_error(error));
        if !self.schema.caches_keys || matches!(self.shared.index, Index::Bti { .. }) {
            return find();
        }
        let (cache, file) = (self.shared.data.cache(), self.shared.data.id());
        if let Some(position) = cache.position(file, &key.key) {
            return Ok(Some(position));
        }
        let found = find()?;
        if let Some(position) = found {
            cache.insert_position(file, &key.key, position);
        }
        Ok(found)
    }

    /// Another place where the partition of a key can be in a legacy index that Cassandra wrote.
    #[cold]
    fn find_as_cassandra(&self, key: &DecoratedKey, mode: ReadMode) -> Result<Option<PartitionPosition>, ReadError> {
        let KeyOrder::Local(ty) = &self.shared.order else { return Ok(None) };
        let (hash, access) = (KeyHash::of(&key.key), Access { mode, keeps: true });
        let found = self.shared.index.find_as_cassandra(key, ty, hash, access);
        found.map_err(|error| self.partitions_error(error))
    }

    /// Has the cache keep where the partition of a key is.
    pub fn warm_position(&self, key: Bytes) -> Result<(), ReadError> {
        let key = self.shared.order.decorate(key);
        let hash = KeyHash::of(&key.key);
        if self.may_contain(&key, hash) {
            self.find(&key, hash, ReadMode::Background)?;
        }
        Ok(())
    }

    fn row_index(&self, position: u64, mode: ReadMode) -> Result<(Bytes, RowIndex), ReadError> {
        let (index, access) = (&self.shared.index, Access { mode, keeps: true });
        index.row_index(position, &self.schema, access).map_err(|error| self.index_error(error, index.rows_component()))
    }
}
