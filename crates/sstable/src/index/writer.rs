//! Writes the index components of an SSTable, of either format, as partitions and their blocks pass
//! in order.

use bytes::Bytes;
use env::Disk;
use rows::codec::DeletionTimeForm;
use rows::{ClusteringPrefix, DeletionTime};
use schema::TableMetadata;
use types::{CqlType, DecoratedKey};

use super::partition_index::PartitionIndexWriter;
use super::promoted::PromotedWriter;
use super::row_index::RowIndexWriter;
use super::summary::SummaryBuilder;
use super::{Block, PartitionPosition};
use crate::data_writer::ComponentFile;
use crate::descriptor::{Component, Descriptor};
use crate::error::Error;
use crate::filter::KeyHash;
use crate::read_schema::values_comparable;
use crate::version::Format;
use stdx::{put_short_bytes, put_uvint};

/// Index bytes wait for so many before they are written.
const INDEX_BUFFER: usize = 256 * 1024;

/// A block that is complete.
pub struct FinishedBlock<'a> {
    /// The position of its first unfiltered.
    pub first: &'a ClusteringPrefix,
    /// The position of its last unfiltered.
    pub last: &'a ClusteringPrefix,
    /// Where it starts, and what is open there.
    pub block: Block,
    /// Where it ends, from the partition's start; the last block ends behind the end-of-partition
    /// byte.
    pub end: u64,
    /// The range deletion that is open behind the block.
    pub open_behind: DeletionTime,
}

/// A partition that is complete.
pub struct FinishedPartition<'a> {
    /// Its key.
    pub key: &'a DecoratedKey,
    /// The hash of the key.
    pub hash: KeyHash,
    /// In Data.db.
    pub start: u64,
    /// The deletion of the whole partition.
    pub deletion: &'a DeletionTime,
    /// The end-of-partition byte, from the partition's start.
    pub end_offset: u64,
}

/// The index components being written.
pub enum IndexWriter {
    /// Partitions.db and Rows.db.
    Bti(Box<BtiIndexWriter>),
    /// Index.db and Summary.db.
    Big(Box<BigIndexWriter>),
}

impl IndexWriter {
    /// Creates the files.
    pub fn create(disk: &dyn Disk, descriptor: &Descriptor, table: &TableMetadata) -> Result<Self, Error> {
        let create = |component| ComponentFile::create(disk, descriptor.path(component));
        Ok(match descriptor.format {
            Format::Bti => Self::Bti(Box::new(BtiIndexWriter {
                partitions: PartitionIndexWriter::default(),
                partitions_file: create(Component::Partitions)?,
                rows: RowIndexWriter::default(),
                rows_file: create(Component::Rows)?,
            })),
            Format::Big => Self::Big(Box::new(BigIndexWriter {
                form: descriptor.version.deletion_times(),
                types: table.clustering.iter().map(|column| column.ty.clone()).collect(),
                file: create(Component::Index)?,
                out: Vec::new(),
                written: 0,
                promoted: PromotedWriter::default(),
                head_length: 0,
                summary: SummaryBuilder::new(u32::try_from(table.params.min_index_interval).unwrap_or(1)),
            })),
        })
    }

    /// Blocks of the current partition so far.
    pub fn blocks(&self) -> u64 {
        match self {
            Self::Bti(writer) => writer.rows.blocks(),
            Self::Big(writer) => writer.promoted.blocks() as u64,
        }
    }

    /// Adds a block to the current partition.
    pub fn add_block(&mut self, block: &FinishedBlock<'_>, table: &TableMetadata) {
        match self {
            Self::Bti(writer) => writer.add_block(block, table),
            Self::Big(writer) => writer.add_block(block),
        }
    }

    /// Ends the partition.
    pub fn end_partition(&mut self, partition: &FinishedPartition<'_>) -> Result<(), Error> {
        match self {
            Self::Bti(writer) => writer.end_partition(partition),
            Self::Big(writer) => writer.end_partition(partition),
        }
    }

    /// Completes the files and syncs them. Gives what they are.
    pub fn finish(self, disk: &dyn Disk, descriptor: &Descriptor) -> Result<[Component; 2], Error> {
        match self {
            Self::Bti(writer) => writer.finish(),
            Self::Big(writer) => writer.finish(disk, descriptor),
        }
    }
}

/// Writes the tries.
pub struct BtiIndexWriter {
    partitions: PartitionIndexWriter,
    partitions_file: ComponentFile,
    rows: RowIndexWriter,
    rows_file: ComponentFile,
}

impl BtiIndexWriter {
    fn add_block(&mut self, block: &FinishedBlock<'_>, table: &TableMetadata) {
        let comparable = |prefix: &ClusteringPrefix| values_comparable(&table.comparator, &prefix.values, prefix.kind);
        self.rows.add_block(&comparable(block.first), comparable(block.last), block.block);
    }

    fn end_partition(&mut self, partition: &FinishedPartition<'_>) -> Result<(), Error> {
        let FinishedPartition { key, hash, start, deletion, end_offset } = partition;
        let entry = self.rows.finish_partition(&key.key, *start, deletion, *end_offset);
        let place = entry.map_or(PartitionPosition::Data(*start), PartitionPosition::Rows);
        let mut comparable = Vec::with_capacity(key.key.len() + 16);
        key.encode_comparable(&mut comparable);
        self.partitions.add(&key.key, comparable, hash.index_byte(), place);
        self.flush(INDEX_BUFFER)
    }

    fn flush(&mut self, threshold: usize) -> Result<(), Error> {
        if self.partitions.out.bytes.len() >= threshold {
            self.partitions_file.write(&self.partitions.out.take())?;
        }
        if self.rows.out.bytes.len() >= threshold {
            self.rows_file.write(&self.rows.out.take())?;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<[Component; 2], Error> {
        self.partitions.finish();
        self.flush(0)?;
        self.partitions_file.sync()?;
        self.rows_file.sync()?;
        Ok([Component::Partitions, Component::Rows])
    }
}

/// Writes entries and takes samples. Held in memory: the samples, and the blocks of the current
/// partition.
pub struct BigIndexWriter {
    form: DeletionTimeForm,
    types: Vec<CqlType>,
    file: ComponentFile,
    out: Vec<u8>,
    written: u64,
    promoted: PromotedWriter,
    /// Bytes of the current partition before its first unfiltered; known with its first block.
    head_length: u64,
    summary: SummaryBuilder,
}

impl BigIndexWriter {
    fn add_block(&mut self, block: &FinishedBlock<'_>) {
        if self.promoted.blocks() == 0 {
            self.head_length = block.block.offset;
        }
        let range = (block.block.offset, block.end);
        self.promoted.add((block.first, block.last), range, &block.open_behind, &self.types, self.form);
    }

    fn end_partition(&mut self, partition: &FinishedPartition<'_>) -> Result<(), Error> {
        let key: &Bytes = &partition.key.key;
        self.summary.add(key, self.written + self.out.len() as u64);
        put_short_bytes(&mut self.out, key);
        put_uvint(&mut self.out, partition.start);
        self.promoted.finish(&mut self.out, self.head_length, partition.deletion, self.form);
        if self.out.len() >= INDEX_BUFFER { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.file.write(&self.out)?;
        self.written += self.out.len() as u64;
        self.out.clear();
        Ok(())
    }

    fn finish(mut self, disk: &dyn Disk, descriptor: &Descriptor) -> Result<[Component; 2], Error> {
        self.flush()?;
        self.file.sync()?;
        ComponentFile::write_whole(disk, &descriptor.path(Component::Summary), &self.summary.finish())?;
        Ok([Component::Index, Component::Summary])
    }
}
