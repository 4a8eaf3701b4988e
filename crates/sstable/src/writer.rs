//! Writes one SSTable, partition by partition in the order of their decorated keys, row by row in
//! clustering order.
//!
//! Nothing is held back but a chunk of data, what the index waits with, the Bloom filter and the
//! statistics: memory does not grow with the size of a partition (in the big format by some tens of
//! bytes a block of it, which its index begins with the sum of). Durable order: every component is
//! synced, then TOC.txt, then the directory. A file set that must appear or vanish as one is the
//! matter of `txn_log`. Agrees with
//! `org.apache.cassandra.io.sstable.format.{SortedTableWriter,bti.BtiTableWriter,
//! bti.BtiFormatPartitionWriter,big.BigTableWriter,big.BigFormatPartitionWriter}`.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use env::{Disk, Env};
use rows::codec::{
    DeletionTimeForm, EncodedRow, Framing, Header, encode_marker, encode_row, put_deletion_time, put_end_of_partition,
};
use rows::{ClusteringPrefix, DeletionTime, PrefixKind, Row, Unfiltered};
use schema::TableMetadata;
use stdx::put_short_bytes;
use types::{DecoratedKey, Token};

use crate::compressor::CompressionParams;
use crate::data_writer::{ComponentFile, DataSummary, DataWriter};
use crate::descriptor::{Component, Descriptor, print_toc};
use crate::error::Error;
use crate::filter::{FilterBuilder, FilterSpec, KeyHash};
use crate::index::Block;
use crate::index::writer::{FinishedBlock, FinishedPartition, IndexWriter};
use crate::statistics::{
    CommitLogPosition, HeaderComponent, LOCAL_PARTITIONER, MURMUR3_PARTITIONER, Statistics, StatsCollector,
};

/// Longest partition key.
pub const KEY_LENGTH_MAX: usize = u16::MAX as usize;

/// How an SSTable is to be written, and what its statistics say of its origin.
#[derive(Clone, Debug)]
pub struct WriterOptions {
    /// `column_index_size`; None: the format's default.
    pub row_index_block: Option<usize>,
    /// How Data.db is compressed.
    pub compression: Option<CompressionParams>,
    /// Chunks that can hardly be compressed are compressed with less effort: others wait for this
    /// file.
    pub is_quick: bool,
    /// The table's `bloom_filter_fp_chance`.
    pub filter_chance: f64,
    /// About how many partitions there will be.
    pub estimated_keys: u64,
    /// Level of the leveled strategy.
    pub level: u32,
    /// Milliseconds; 0: not repaired.
    pub repaired_at: i64,
    /// Repair session.
    pub pending_repair: Option<[u8; 16]>,
    /// Transient replication.
    pub is_transient: bool,
    /// Host id of this node.
    pub originating_host: Option<[u8; 16]>,
    /// Fraction of the ring that the SSTable's tokens are of; None: not known, as Cassandra leaves
    /// it but for the unified strategy.
    pub token_space_coverage: Option<f64>,
    /// Parts of the commit log that are in here.
    pub commit_log_intervals: Vec<(CommitLogPosition, CommitLogPosition)>,
}

impl WriterOptions {
    /// As a table's schema wants it; errors are of its compression options.
    pub fn for_table(table: &TableMetadata, estimated_keys: u64) -> Result<Self, String> {
        Ok(Self {
            row_index_block: None,
            compression: CompressionParams::from_schema(&table.params.compression)?,
            is_quick: false,
            filter_chance: table.params.bloom_filter_fp_chance,
            estimated_keys,
            level: 0,
            repaired_at: 0,
            pending_repair: None,
            is_transient: false,
            originating_host: None,
            token_space_coverage: None,
            commit_log_intervals: Vec::new(),
        })
    }
}

/// A complete SSTable on disk.
#[derive(Clone, PartialEq, Debug)]
pub struct FinishedSSTable {
    /// Where.
    pub descriptor: Descriptor,
    /// Its files.
    pub components: Vec<Component>,
    /// Lengths of Data.db.
    pub data: DataSummary,
    /// Number of partitions.
    pub partitions: u64,
    /// The content of Statistics.db.
    pub statistics: Statistics,
}

/// Size and tombstones of a partition that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WrittenPartition {
    /// Bytes of it in Data.db, before compression.
    pub size: u64,
    /// Deletions of every kind, and what has expired.
    pub tombstones: u64,
}

/// Looks at each row of the open partition that a writer encodes, static rows included. Rows that
/// are copied as they are encoded are not shown.
pub type RowWatch = Box<dyn Fn(&TableMetadata, &DecoratedKey, &Row) + Send + Sync>;

/// Where in the open partition the writer is.
struct OpenPartition {
    key: DecoratedKey,
    deletion: DeletionTime,
    start: u64,
    awaits_static_row: bool,
    /// Start of the last unfiltered, from the partition's start.
    previous: u64,
    first: Option<ClusteringPrefix>,
    last: Option<ClusteringPrefix>,
    /// The row index block being filled.
    block: Option<OpenBlock>,
    /// Range deletion that is open behind the last unfiltered.
    open_marker: DeletionTime,
}

struct OpenBlock {
    first: ClusteringPrefix,
    block: Block,
}

/// Writes one SSTable.
pub struct SSTableWriter {
    disk: Arc<dyn Disk>,
    descriptor: Descriptor,
    table: Arc<TableMetadata>,
    options: WriterOptions,
    header: Header,
    data: DataWriter,
    index: IndexWriter,
    /// Bytes of rows that make a block.
    row_index_block: u64,
    deletion_times: DeletionTimeForm,
    first_key: Bytes,
    filter: Option<FilterBuilder>,
    stats: StatsCollector,
    partition: Option<OpenPartition>,
    last_key: Option<DecoratedKey>,
    count: u64,
    /// None: nobody looks at the rows.
    watch: Option<RowWatch>,
}

impl SSTableWriter {
    /// Creates the files. `header` has the columns that the rows may have, and the bases of their
    /// deltas. The descriptor's version must be one that is written.
    pub fn new(
        env: &Env,
        descriptor: Descriptor,
        table: Arc<TableMetadata>,
        options: WriterOptions,
        header: Header,
    ) -> Result<Self, Error> {
        if !descriptor.version.is_writable() {
            let what = format!("SSTables of version {} are not written", descriptor.version.name());
            return Err(Error::Unsupported { path: descriptor.path(Component::Data), what });
        }
        let disk = Arc::clone(&env.disk);
        let now = env.clock.now_seconds();
        let data = DataWriter::create(&*disk, &descriptor, options.compression.clone(), options.is_quick)?;
        let index = IndexWriter::create(&*disk, &descriptor, &table)?;
        let row_index_block = options.row_index_block.unwrap_or(descriptor.version.row_index_block_default()) as u64;
        let filter =
            FilterSpec::for_chance(options.filter_chance).map(|spec| FilterBuilder::new(spec, options.estimated_keys));
        Ok(Self {
            stats: StatsCollector::new(&table, now),
            disk,
            deletion_times: descriptor.version.deletion_times(),
            descriptor,
            table,
            options,
            header,
            data,
            index,
            row_index_block,
            first_key: Bytes::new(),
            filter,
            partition: None,
            last_key: None,
            count: 0,
            watch: None,
        })
    }

    /// Shows the rows that are encoded from now on.
    pub fn watch_rows(&mut self, watch: RowWatch) {
        self.watch = Some(watch);
    }

    fn show(&self, row: &Row) {
        if let (Some(watch), Some(partition)) = (&self.watch, &self.partition) {
            watch(&self.table, &partition.key, row);
        }
    }

    /// The SSTable being written.
    pub fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    /// The schema that it is written by.
    pub fn table(&self) -> &TableMetadata {
        &self.table
    }

    /// Bytes of Data.db on disk so far.
    pub fn stored_length(&self) -> u64 {
        self.data.stored_length()
    }

    /// Begins a partition. Its key must be greater than the one before. A deletion with a negative
    /// timestamp has no form in Data.db from `oa` on (Cassandra writes one that it cannot read
    /// again): it is written at timestamp 0.
    pub fn start_partition(&mut self, key: &DecoratedKey, deletion: DeletionTime) {
        assert!(self.partition.is_none(), "the partition before has ended");
        assert!(self.last_key.as_ref().is_none_or(|last| last < key), "partitions are written in order");
        assert!(key.key.len() <= KEY_LENGTH_MAX, "keys are checked where they come in");
        let form = self.deletion_times;
        let deletion =
            if form.can_hold(&deletion) { deletion } else { DeletionTime::new(0, deletion.local_deletion_time) };
        let start = self.data.position();
        put_short_bytes(&mut self.data.buffer, &key.key);
        put_deletion_time(&mut self.data.buffer, &deletion, form);
        self.stats.start_partition(&deletion);
        self.partition = Some(OpenPartition {
            key: key.clone(),
            deletion,
            start,
            awaits_static_row: !self.header.statics.is_empty(),
            previous: 0,
            first: None,
            last: None,
            block: None,
            open_marker: DeletionTime::LIVE,
        });
    }

    /// Writes the static row, before any other row.
    pub fn static_row(&mut self, row: &Row) {
        let Some(partition) = &mut self.partition else { panic!("a static row outside of a partition") };
        if !partition.awaits_static_row {
            debug_assert!(row.is_empty(), "the header has no static columns");
            return;
        }
        assert!(partition.first.is_none(), "the static row stands before the rows");
        partition.awaits_static_row = false;
        encode_row(&mut self.data.buffer, row, true, &self.header, Framing::Disk { previous_size: 0 });
        if !row.is_empty() {
            self.stats.row(row);
            self.show(row);
        }
    }

    /// Writes a row or marker behind those before it in clustering order.
    pub fn append(&mut self, unfiltered: &Unfiltered) -> Result<(), Error> {
        let here = ClusteringPrefix { kind: unfiltered.kind(), values: unfiltered.values().clone() };
        let framing = Framing::Disk { previous_size: self.begin_unfiltered(here)? };
        match unfiltered {
            Unfiltered::Row(row) => {
                encode_row(&mut self.data.buffer, row, false, &self.header, framing);
                self.stats.row(row);
                self.show(row);
            }
            Unfiltered::Marker(marker) => {
                encode_marker(&mut self.data.buffer, marker, &self.header, framing);
                self.stats.marker(marker);
                if let Some(partition) = &mut self.partition {
                    partition.open_marker = marker.open.unwrap_or(DeletionTime::LIVE);
                }
            }
        }
        self.end_unfiltered()
    }

    /// Writes a row that is copied; this writer's header must hold rows of its own.
    pub fn append_encoded(&mut self, mut row: EncodedRow) -> Result<(), Error> {
        let values = std::mem::take(&mut row.clustering);
        let previous_size = self.begin_unfiltered(ClusteringPrefix { kind: PrefixKind::Clustering, values })?;
        row.encode(&mut self.data.buffer, &self.header, previous_size);
        self.stats.encoded_row(&row.facts);
        self.end_unfiltered()
    }

    /// Notes the position of the row or marker that is written next; gives its distance in the file
    /// to the one before. A position that does not ascend fails the write in every build: a reader
    /// that searches by position would not find such rows, and nothing could mend the file. Two
    /// markers may stand at one position, one that closes a range and one that opens a range.
    fn begin_unfiltered(&mut self, here: ClusteringPrefix) -> Result<u64, Error> {
        self.end_static_row();
        let position = self.data.position();
        let last = self.partition.as_ref().and_then(|partition| partition.last.as_ref());
        let follows = |last: &ClusteringPrefix| match last.compare(&here, &self.table.comparator) {
            Ordering::Less => true,
            Ordering::Equal => last.kind != here.kind,
            Ordering::Greater => false,
        };
        if let Some(last) = last.filter(|last| !follows(last)) {
            return Err(self.broken(format!("rows are out of order: {here:?} follows {last:?}")));
        }
        let Some(partition) = &mut self.partition else { panic!("a row outside of a partition") };
        let offset = position - partition.start;
        if partition.block.is_none() {
            let block = Block { offset, open: partition.open_marker };
            partition.block = Some(OpenBlock { first: here.clone(), block });
        }
        if partition.first.is_none() {
            partition.first = Some(here.clone());
        }
        partition.last = Some(here);
        Ok(offset - std::mem::replace(&mut partition.previous, offset))
    }

    /// The source of what is written is wrong: this fails the flush or the compaction, and the
    /// memtables or SSTables that it reads stay.
    fn broken(&self, what: String) -> Error {
        Error::corrupt(&self.descriptor.path(Component::Data), self.data.position(), what)
    }

    fn end_unfiltered(&mut self) -> Result<(), Error> {
        let Some(partition) = &self.partition else { return Ok(()) };
        // a block cannot begin where a deletion is open that has no form in the index: it grows
        // until none is
        let may_end = self.deletion_times.can_hold(&partition.open_marker);
        let block_start = partition.block.as_ref().map_or(0, |open| open.block.offset);
        if may_end && self.data.position() - partition.start - block_start >= self.row_index_block {
            self.end_block();
        }
        self.data.flush_full_chunks()
    }

    /// A partition without static row in an SSTable with static columns has an empty one.
    fn end_static_row(&mut self) {
        if self.partition.as_ref().is_some_and(|partition| partition.awaits_static_row) {
            self.static_row(&Row::new(Default::default()));
        }
    }

    fn end_block(&mut self) {
        let Some(partition) = &mut self.partition else { return };
        let (Some(open), Some(last)) = (partition.block.take(), &partition.last) else { return };
        let end = self.data.position() - partition.start;
        let OpenBlock { first, block } = &open;
        assert!(end > block.offset, "a block of a partition is not empty");
        let block = FinishedBlock { first, last, block: *block, end, open_behind: partition.open_marker };
        self.index.add_block(&block, &self.table);
    }

    /// Ends the partition.
    pub fn end_partition(&mut self) -> Result<WrittenPartition, Error> {
        if self.partition.as_ref().is_some_and(|partition| !partition.open_marker.is_live()) {
            return Err(self.broken("a range tombstone is open at the end of its partition".to_owned()));
        }
        self.end_static_row();
        let end = self.data.position();
        put_end_of_partition(&mut self.data.buffer);
        if self.index.blocks() > 0 {
            self.end_block();
        }
        let Some(partition) = self.partition.take() else { panic!("no partition to end") };
        assert!(partition.start < end, "a partition is not empty");
        let end_offset = end - partition.start;
        let OpenPartition { key, start, deletion, .. } = &partition;
        let hash = KeyHash::of(&key.key);
        if let Some(filter) = &mut self.filter {
            filter.add(hash);
        }
        self.index.end_partition(&FinishedPartition { key, hash, start: *start, deletion, end_offset })?;
        if self.count == 0 {
            self.first_key = Bytes::copy_from_slice(&key.key);
        }
        let ends = partition.first.as_ref().zip(partition.last.as_ref());
        let size = self.data.position() - partition.start;
        assert_eq!(size, end_offset + 1, "a partition ends with one byte");
        let tombstones = self.stats.end_partition(&key.key, size, ends);
        self.last_key = Some(partition.key);
        self.count += 1;
        self.data.flush_full_chunks()?;
        Ok(WrittenPartition { size, tombstones })
    }

    /// The share of the ring between the first and the last partition goes into the statistics, as
    /// the unified strategy wants it.
    pub fn note_token_space_coverage(&mut self) {
        let Some(last) = &self.last_key else { return };
        let width = i128::from(last.token.0) - i128::from(Token::of_key(&self.first_key).0) + 1;
        assert!(width > 0, "the last partition does not stand before the first");
        self.options.token_space_coverage = Some(width as f64 / (1u128 << 64) as f64);
    }

    /// Partitions so far.
    pub fn partition_count(&self) -> u64 {
        self.count
    }

    /// Completes all components and makes them durable.
    pub fn finish(self) -> Result<FinishedSSTable, Error> {
        assert!(self.partition.is_none(), "the last partition has ended");
        assert!(self.count > 0, "an SSTable has at least one partition");
        let disk = &*self.disk;
        let mut components =
            vec![Component::Data, self.data.side_component(), Component::Digest, Component::Statistics, Component::Toc];
        components.extend(self.index.finish(disk, &self.descriptor)?);
        if let Some(filter) = self.filter {
            ComponentFile::write_whole(disk, &self.descriptor.path(Component::Filter), &filter.finish())?;
            components.push(Component::Filter);
        }
        let data = self.data.finish(disk)?;
        assert!(data.length >= self.count, "a partition has a byte at least");
        let (mut stats, cardinality) = self.stats.finish();
        assert_eq!(stats.partition_sizes.count(), self.count, "the statistics count each partition once");
        stats.compression_ratio = data.compression_ratio;
        stats.first_key = self.first_key;
        stats.last_key = self.last_key.map(|last| Bytes::copy_from_slice(&last.key)).unwrap_or_default();
        stats.level = self.options.level;
        stats.repaired_at = self.options.repaired_at;
        stats.pending_repair = self.options.pending_repair;
        stats.is_transient = self.options.is_transient;
        stats.originating_host = self.options.originating_host;
        stats.token_space_coverage = self.options.token_space_coverage.unwrap_or(f64::NAN);
        stats.commit_log_intervals = self.options.commit_log_intervals;
        let partitioner = if self.table.local_order.is_some() { LOCAL_PARTITIONER } else { MURMUR3_PARTITIONER };
        let statistics = Statistics {
            partitioner: partitioner.to_owned(),
            filter_chance: self.options.filter_chance,
            cardinality: Some(cardinality),
            stats,
            header: HeaderComponent::of(&self.table, &self.header),
        };
        ComponentFile::write_whole(
            disk,
            &self.descriptor.path(Component::Statistics),
            &statistics.write(self.descriptor.version),
        )?;
        components.sort_unstable();
        assert!(components.is_sorted_by(|a, b| a < b), "each component is written once");
        let toc = print_toc(&components);
        ComponentFile::write_whole(disk, &self.descriptor.path(Component::Toc), toc.as_bytes())?;
        let directory = &self.descriptor.directory;
        disk.sync_dir(directory).map_err(|error| Error::io(directory, error))?;
        Ok(FinishedSSTable { descriptor: self.descriptor, components, data, partitions: self.count, statistics })
    }

    /// Gives up: removes what was written.
    pub fn abort(self) {
        let Self { disk, descriptor, .. } = self;
        for component in Component::ALL {
            let path = descriptor.path(component);
            if disk.exists(&path)
                && let Err(error) = disk.remove_file(&path)
            {
                tracing::warn!("{} stays behind: {error}", path.display());
            }
        }
    }
}
