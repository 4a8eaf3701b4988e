//! An open SSTable: what it covers, and the streams that read it.
//!
//! Opening maps the index components, the filter and the chunk offsets, and parses Statistics.db: nothing is read ahead. An
//! [`SSTable`] is a handle: clones share everything. What depends on the schema, the mapping of its columns, is apart,
//! so that after an ALTER [`SSTable::with_schema`] gives a handle for the new schema over the same files.
//! Agrees with `org.apache.cassandra.io.sstable.format.bti.BtiTableReader`.

mod clip;
mod cursor;
mod partition;
mod stream;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use env::{Disk, Env};
use rows::codec::Header;
use rows::{Corruption, ReadCommand, ReadContext, ReadError};
use schema::TableMetadata;
use types::byte_comparable::encode_decorated_key;
use types::{DecoratedKey, Token};

use crate::chunk_reader::{ChunkCache, DataFile};
use crate::compression_info::CompressionInfo;
use crate::descriptor::{Component, Descriptor};
use crate::error::{Error, Malformed};
use crate::filter::{Filter, KeyHash};
use crate::partition_index::{PartitionIndex, PartitionPosition};
use crate::row_index::RowIndexEntry;
use crate::statistics::Statistics;
use crate::version::Format;

pub use stream::SSTableStream;

/// Statistics.db, digests and tables of contents longer than this are refused.
pub(crate) const SMALL_FILE_MAX: u64 = 256 * 1024 * 1024;

/// An open SSTable.
#[derive(Clone, Debug)]
pub struct SSTable {
    shared: Arc<Shared>,
    schema: Arc<Resolved>,
}

/// What the files give.
#[derive(Debug)]
struct Shared {
    descriptor: Descriptor,
    data: DataFile,
    partitions: PartitionIndex,
    rows: Bytes,
    filter: Option<Filter>,
    statistics: Statistics,
    first: DecoratedKey,
    last: DecoratedKey,
    /// Bytes of all components.
    disk_size: u64,
}

/// What the schema makes of it.
#[derive(Debug)]
struct Resolved {
    table: Arc<TableMetadata>,
    header: Header,
}

impl SSTable {
    /// Opens the files.
    pub fn open(
        env: &Env,
        descriptor: Descriptor,
        table: &Arc<TableMetadata>,
        cache: Arc<dyn ChunkCache>,
    ) -> Result<Self, Error> {
        let statistics_path = descriptor.path(Component::Statistics);
        if !descriptor.version.is_readable() || descriptor.format != Format::Bti {
            let what = format!("SSTables of version {:?} are not read", descriptor.version);
            return Err(Error::Unsupported { path: statistics_path, what });
        }
        let disk = &*env.disk;
        let statistics =
            disk.read_all(&statistics_path, SMALL_FILE_MAX).map_err(|error| Error::io(&statistics_path, error))?;
        let statistics =
            Statistics::read(&statistics.into(), descriptor.version).map_err(|error| error.of(&statistics_path, 0))?;
        let resolved = Resolved::new(&statistics, table).map_err(|error| error.of(&statistics_path, 0))?;
        let partitions_path = descriptor.path(Component::Partitions);
        let partitions =
            PartitionIndex::open(&map(disk, &partitions_path)?).map_err(|error| error.of(&partitions_path, 0))?;
        let filter_path = descriptor.path(Component::Filter);
        let filter = if disk.exists(&filter_path) {
            Some(Filter::open(&map(disk, &filter_path)?).map_err(|error| error.of(&filter_path, 0))?)
        } else {
            None
        };
        let shared = Shared {
            data: open_data(disk, &descriptor, cache)?,
            rows: map(disk, &descriptor.path(Component::Rows))?,
            first: DecoratedKey::new(Bytes::copy_from_slice(partitions.first_key())),
            last: DecoratedKey::new(Bytes::copy_from_slice(partitions.last_key())),
            disk_size: disk_size(disk, &descriptor),
            descriptor,
            partitions,
            filter,
            statistics,
        };
        Ok(Self { shared: Arc::new(shared), schema: Arc::new(resolved) })
    }

    /// The same files under another schema of the table.
    pub fn with_schema(&self, table: &Arc<TableMetadata>) -> Result<Self, Error> {
        let path = self.shared.descriptor.path(Component::Statistics);
        let resolved = Resolved::new(&self.shared.statistics, table).map_err(|error| error.of(&path, 0))?;
        Ok(Self { shared: Arc::clone(&self.shared), schema: Arc::new(resolved) })
    }

    /// Its place and name.
    pub fn descriptor(&self) -> &Descriptor {
        &self.shared.descriptor
    }

    /// The schema it is read under.
    pub fn table(&self) -> &Arc<TableMetadata> {
        &self.schema.table
    }

    /// What rows are decoded against.
    pub fn header(&self) -> &Header {
        &self.schema.header
    }

    /// What Statistics.db holds.
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
        self.shared.partitions.count()
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

    /// Bytes of the Bloom filter.
    pub fn filter_size(&self) -> usize {
        self.shared.filter.as_ref().map_or(0, Filter::memory_size)
    }

    /// What its chunks are known by in the cache.
    pub fn file_id(&self) -> u64 {
        self.shared.data.id()
    }

    /// The data file, for checks and advice.
    pub fn data(&self) -> &DataFile {
        &self.shared.data
    }

    /// False: the key is surely not here.
    #[inline]
    pub fn may_contain(&self, key: &DecoratedKey, hash: KeyHash) -> bool {
        *key >= self.shared.first
            && *key <= self.shared.last
            && self.shared.filter.as_ref().is_none_or(|filter| filter.may_contain(hash))
    }

    /// Whether some partition lies between two tokens, both included.
    pub fn overlaps(&self, first: Token, last: Token) -> bool {
        self.shared.first.token <= last && self.shared.last.token >= first
    }

    /// False: nothing that the command asks for can be in here, whatever the partition: no slice meets what is covered, and
    /// there are neither partition deletions nor static columns.
    pub fn may_match(&self, command: &ReadCommand) -> bool {
        let stats = &self.shared.statistics.stats;
        if stats.has_partition_deletions || !self.schema.header.statics.is_empty() || command.slices.is_all() {
            return true;
        }
        let comparator = &self.schema.table.comparator;
        command.slices.0.iter().any(|slice| {
            slice.start.compare(&stats.covered.end, comparator).is_lt()
                && slice.end.compare(&stats.covered.start, comparator).is_gt()
        })
    }

    /// What the command asks for.
    pub fn read(&self, command: &ReadCommand, context: &ReadContext) -> Result<SSTableStream, ReadError> {
        SSTableStream::new(self.clone(), command, context)
    }

    /// Everything, for compactions, verifications and tools: does not disturb the cache.
    pub fn scan_all(&self, context: &ReadContext) -> Result<SSTableStream, ReadError> {
        SSTableStream::all(self.clone(), context)
    }

    fn index_error(&self, error: Malformed, component: Component) -> ReadError {
        let corruption: Corruption = error.of(&self.shared.descriptor.path(component), 0);
        corruption.into()
    }

    fn find(&self, key: &DecoratedKey, hash: KeyHash) -> Result<Option<PartitionPosition>, ReadError> {
        let mut comparable = Vec::with_capacity(key.key.len() + 16);
        encode_decorated_key(key.token, &key.key, &mut comparable);
        self.shared
            .partitions
            .candidate(&comparable, hash.index_byte())
            .map_err(|error| self.index_error(error, Component::Partitions))
    }

    fn row_index(&self, position: u64) -> Result<(Bytes, RowIndexEntry), ReadError> {
        RowIndexEntry::read(&self.shared.rows, position).map_err(|error| self.index_error(error, Component::Rows))
    }
}

impl Resolved {
    fn new(statistics: &Statistics, table: &Arc<TableMetadata>) -> Result<Self, Malformed> {
        Ok(Self { table: Arc::clone(table), header: statistics.header.resolve(table)? })
    }
}

fn map(disk: &dyn Disk, path: &Path) -> Result<Bytes, Error> {
    let file = disk.open_read(path).map_err(|error| Error::io(path, error))?;
    if file.is_empty() {
        return Ok(Bytes::new());
    }
    let map = file.map().map_err(|error| Error::io(path, error))?;
    Ok(map.bytes().clone())
}

/// Components that are not there count nothing.
fn disk_size(disk: &dyn Disk, descriptor: &Descriptor) -> u64 {
    Component::ALL.into_iter().filter_map(|component| disk.file_len(&descriptor.path(component)).ok()).sum()
}

fn open_data(disk: &dyn Disk, descriptor: &Descriptor, cache: Arc<dyn ChunkCache>) -> Result<DataFile, Error> {
    let path = descriptor.path(Component::Data);
    let file = disk.open_read(&path).map_err(|error| Error::io(&path, error))?;
    let info_path = descriptor.path(Component::CompressionInfo);
    if disk.exists(&info_path) {
        let info = CompressionInfo::open(&map(disk, &info_path)?).map_err(|error| error.of(&info_path, 0))?;
        return Ok(DataFile::compressed(path, file, info, cache));
    }
    let crc_path: PathBuf = descriptor.path(Component::Crc);
    let crc = map(disk, &crc_path)?;
    DataFile::plain(path, file, &crc, cache).map_err(|error| error.of(&crc_path, 0).into())
}
