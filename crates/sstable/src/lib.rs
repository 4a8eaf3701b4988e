//! SSTables: readers and writers of Cassandra's files.
//!
//! A file set is named by a [`Descriptor`]. [`SSTableWriter`] writes one in version `da` (BTI),
//! `oa` or `nb` (big); [`SSTable`] opens one, also of the big versions from `ma` on, and gives
//! [`rows::PartitionStream`]s. Rooms: `version` (in what versions differ), `descriptor` (names),
//! `compressor` and `compression_info` and `chunk_reader`, `read_ahead` and `data_writer` (Data.db
//! as a container), `file_cache` (what is kept of open files), `index` (Partitions.db and Rows.db
//! over `trie`; Index.db and Summary.db), `filter`, `statistics`, `attached` (indexes beside an
//! SSTable), `txn_log` (file sets that appear and vanish as one), `verify`. The bytes of rows are
//! `rows::codec`'s. Nothing here knows which SSTables a table has, nor when to write one.

pub mod attached;
mod chunk_reader;
mod compression_info;
mod compressor;
mod data_writer;
mod descriptor;
mod error;
mod file_cache;
mod filter;
#[doc(hidden)]
pub mod fuzzing;
mod index;
mod index_file;
mod position;
mod read_ahead;
mod read_schema;
mod reader;
pub mod salvage;
mod shared_reads;
mod statistics;
mod trie;
pub mod txn_log;
pub mod verify;
mod version;
mod writer;

pub use chunk_reader::DataFile;
pub use compression_info::{CHUNK_CHECKSUM_LEN, CompressionInfo, StoredChunk};
pub use compressor::{CHUNK_LENGTH_DEFAULT, CHUNK_LENGTH_MAX, CompressionParams, Compressor};
pub use data_writer::DataSummary;
pub use descriptor::{Component, Descriptor, NotAnSSTable, SSTableId, parse_toc, print_toc};
pub use error::{Error, Malformed};
pub use file_cache::{FileCache, NoCache};
pub use filter::{FilterSpec, KeyHash};
pub use index::PartitionPosition;
pub use reader::{OpenFiles, SSTable, SSTableStream, clip};
pub use statistics::{
    Cardinality, CommitLogPosition, HeaderColumn, HeaderComponent, Histogram, MURMUR3_PARTITIONER, STATISTICS_SIZE_MAX,
    Statistics, Stats, StatsCollector, TombstoneHistogram,
};
pub use version::{Format, Version};
pub use writer::{FinishedSSTable, KEY_LENGTH_MAX, RowWatch, SSTableWriter, WriterOptions, WrittenPartition};
