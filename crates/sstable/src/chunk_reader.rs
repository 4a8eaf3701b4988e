//! Data.db chunk by chunk: chunk i in, its uncompressed bytes out, by way of a cache that the caller gives.
//!
//! Every chunk that comes from the disk has its CRC-32 verified. Without compression the chunks are those of CRC.db (64 KiB).
//! In inline mode a read that would wait for the device gives `ReadError::WouldBlock`.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use env::ReadFile;
use rows::{Corruption, ReadContext, ReadError, ReadMode, ReadStats};
use stdx::Cursor;

use crate::compression_info::{CHUNK_CHECKSUM_LEN, CompressionInfo};
use crate::data_writer::PLAIN_CHUNK_LENGTH;
use crate::error::Malformed;
use crate::flights::{Fetched, Flights};

/// Keeps uncompressed chunks of open files. Ids of files are never used twice in a process.
pub trait ChunkCache: Send + Sync {
    /// A chunk that was put in, if it is still there.
    fn get(&self, file: u64, chunk: u64) -> Option<Bytes>;
    /// Offers a chunk.
    fn insert(&self, file: u64, chunk: u64, bytes: &Bytes);
}

/// Keeps nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCache;

impl ChunkCache for NoCache {
    fn get(&self, _file: u64, _chunk: u64) -> Option<Bytes> {
        None
    }

    fn insert(&self, _file: u64, _chunk: u64, _bytes: &Bytes) {}
}

/// How the data is laid out in the file.
#[derive(Debug)]
enum Layout {
    Compressed(CompressionInfo),
    /// Without checksums where there was no CRC.db.
    Plain {
        chunk_length: usize,
        checksums: Option<Bytes>,
    },
}

/// An open Data.db.
pub struct DataFile {
    path: PathBuf,
    file: Arc<dyn ReadFile>,
    id: u64,
    layout: Layout,
    length: u64,
    cache: Arc<dyn ChunkCache>,
    /// Chunks that are being read.
    flights: Flights,
}

impl std::fmt::Debug for DataFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataFile").field("path", &self.path).field("id", &self.id).finish_non_exhaustive()
    }
}

fn next_file_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl DataFile {
    /// With CompressionInfo.db.
    pub fn compressed(
        path: PathBuf,
        file: Arc<dyn ReadFile>,
        info: CompressionInfo,
        cache: Arc<dyn ChunkCache>,
    ) -> Self {
        let length = info.data_length;
        Self {
            path,
            file,
            id: next_file_id(),
            layout: Layout::Compressed(info),
            length,
            cache,
            flights: Flights::default(),
        }
    }

    /// With CRC.db.
    pub fn plain(
        path: PathBuf,
        file: Arc<dyn ReadFile>,
        crc: &Bytes,
        cache: Arc<dyn ChunkCache>,
    ) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(crc);
        let chunk_length = cursor.u32()? as usize;
        let length = file.len();
        if chunk_length == 0 || chunk_length > crate::compressor::CHUNK_LENGTH_MAX {
            return Err(Malformed::at(0, format!("checksums of {chunk_length} bytes each")));
        }
        let checksums = crc.slice_ref(cursor.rest());
        if (checksums.len() as u64 / CHUNK_CHECKSUM_LEN) < length.div_ceil(chunk_length as u64) {
            return Err(Malformed::at(0, format!("too few checksums for {length} bytes")));
        }
        let layout = Layout::Plain { chunk_length, checksums: Some(checksums) };
        Ok(Self { path, file, id: next_file_id(), layout, length, cache, flights: Flights::default() })
    }

    /// Not compressed, and without CRC.db: nothing is checked.
    pub fn unchecked(path: PathBuf, file: Arc<dyn ReadFile>, cache: Arc<dyn ChunkCache>) -> Self {
        let layout = Layout::Plain { chunk_length: PLAIN_CHUNK_LENGTH, checksums: None };
        let length = file.len();
        Self { path, file, id: next_file_id(), layout, length, cache, flights: Flights::default() }
    }

    /// Bytes of the uncompressed data.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Bytes on disk.
    pub fn stored_length(&self) -> u64 {
        self.file.len()
    }

    /// Bytes of a chunk, the last one may have less.
    pub fn chunk_length(&self) -> usize {
        match &self.layout {
            Layout::Compressed(info) => info.params.chunk_length,
            Layout::Plain { chunk_length, .. } => *chunk_length,
        }
    }

    /// How it is compressed.
    pub fn compression(&self) -> Option<&CompressionInfo> {
        match &self.layout {
            Layout::Compressed(info) => Some(info),
            Layout::Plain { .. } => None,
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the cache knows the file by.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The file handle, for advice.
    pub fn file(&self) -> &Arc<dyn ReadFile> {
        &self.file
    }

    /// Corruption at a place in the uncompressed data.
    pub fn corruption(&self, position: u64, what: impl Into<String>) -> Corruption {
        Corruption { path: self.path.clone(), offset: position, what: what.into() }
    }

    /// Chunk number `index`.
    #[inline]
    pub fn chunk(&self, index: u64, context: &ReadContext) -> Result<Bytes, ReadError> {
        if context.interrupt.as_ref().is_some_and(|interrupt| interrupt.is_over()) {
            return Err(ReadError::TimedOut);
        }
        if let Some(bytes) = self.cache.get(self.id, index) {
            ReadStats::add(&context.stats.chunks_cached, 1);
            return Ok(bytes);
        }
        let read = || {
            let bytes = self.read_chunk(index, context.mode)?;
            ReadStats::add(&context.stats.chunks_read, 1);
            ReadStats::add(&context.stats.bytes_read, self.stored_chunk_length(index, bytes.len()));
            self.cache.insert(self.id, index, &bytes);
            Ok(bytes)
        };
        match context.mode {
            ReadMode::Inline => read(),
            ReadMode::Background => match self.flights.fetch(index, read)? {
                Fetched::Own(bytes) => Ok(bytes),
                Fetched::Shared(bytes) => {
                    ReadStats::add(&context.stats.chunks_cached, 1);
                    Ok(bytes)
                }
            },
        }
    }

    /// Bytes on disk of a chunk that was read and has `length` bytes.
    fn stored_chunk_length(&self, index: u64, length: usize) -> u64 {
        let stored = match &self.layout {
            Layout::Compressed(info) => info.chunk(index, self.file.len()).map_or(length, |place| place.length),
            Layout::Plain { .. } => length,
        };
        stored as u64
    }

    /// Chunk number `index` for a scan that must not push others out of the cache: nothing is put in.
    pub fn chunk_for_scan(&self, index: u64, context: &ReadContext) -> Result<Bytes, ReadError> {
        if context.interrupt.as_ref().is_some_and(|interrupt| interrupt.is_over()) {
            return Err(ReadError::TimedOut);
        }
        ReadStats::add(&context.stats.chunks_read, 1);
        match self.cache.get(self.id, index) {
            Some(bytes) => Ok(bytes),
            None => self.read_chunk(index, context.mode),
        }
    }

    /// The chunk from disk, not from the cache.
    pub fn read_chunk(&self, index: u64, mode: ReadMode) -> Result<Bytes, ReadError> {
        match &self.layout {
            Layout::Compressed(info) => self.read_compressed(info, index, mode),
            Layout::Plain { chunk_length, checksums } => {
                self.read_plain(*chunk_length, checksums.as_ref(), index, mode)
            }
        }
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64, mode: ReadMode) -> Result<(), ReadError> {
        let done = match mode {
            ReadMode::Inline => self.file.read_at_nowait(buffer, offset),
            ReadMode::Background => self.file.read_at(buffer, offset).map(|()| true),
        };
        match done {
            Ok(true) => Ok(()),
            Ok(false) => Err(ReadError::WouldBlock),
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
                Err(self.corruption(offset, "the file ends in a chunk").into())
            }
            Err(error) => Err(ReadError::Io { path: self.path.clone(), message: error.to_string() }),
        }
    }

    fn read_compressed(&self, info: &CompressionInfo, index: u64, mode: ReadMode) -> Result<Bytes, ReadError> {
        let place = info.chunk(index, self.file.len()).map_err(|error| self.corruption(error.offset, error.what))?;
        let mut stored = vec![0; place.length + CHUNK_CHECKSUM_LEN as usize];
        self.read_at(&mut stored, place.offset, mode)?;
        let (body, checksum) = stored.split_at(place.length);
        let expected = Cursor::new(checksum).u32().unwrap_or_default();
        self.check(expected, body, place.offset)?;
        info.decompress(body, index).map_err(|what| {
            let what = format!("chunk {index} does not decompress: {what}");
            self.corruption(place.offset, what).into()
        })
    }

    fn read_plain(
        &self,
        chunk_length: usize,
        checksums: Option<&Bytes>,
        index: u64,
        mode: ReadMode,
    ) -> Result<Bytes, ReadError> {
        let start = index.saturating_mul(chunk_length as u64);
        let length = self.length.saturating_sub(start).min(chunk_length as u64) as usize;
        if length == 0 {
            return Err(self.corruption(start, "a position behind the end of the data").into());
        }
        let mut bytes = vec![0; length];
        self.read_at(&mut bytes, start, mode)?;
        let Some(checksums) = checksums else { return Ok(bytes.into()) };
        let mut cursor = Cursor::new(checksums);
        let place = (index as usize).saturating_mul(CHUNK_CHECKSUM_LEN as usize);
        let expected = cursor.skip(place).and_then(|()| cursor.u32());
        let expected = expected.map_err(|_| self.corruption(start, format!("chunk {index} has no checksum")))?;
        self.check(expected, &bytes, start)?;
        Ok(bytes.into())
    }

    fn check(&self, expected: u32, bytes: &[u8], offset: u64) -> Result<(), ReadError> {
        let found = crc32fast::hash(bytes);
        if found == expected {
            return Ok(());
        }
        Err(self.corruption(offset, format!("checksum {expected:08x} is stored, {found:08x} computed")).into())
    }
}
