//! Data.db chunk by chunk: chunk i in, its uncompressed bytes out, by way of a cache that the
//! caller gives.
//!
//! Every chunk that comes from the disk has its CRC-32 verified. Without compression the chunks are
//! those of CRC.db (64 KiB). In inline mode a read that would wait for the device gives
//! `ReadError::WouldBlock`. A walk over many chunks reads around the cache
//! ([`DataFile::chunk_for_scan`]): it takes what is there, puts nothing in, and reads ahead.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use env::ReadFile;
use rows::{Corruption, ReadContext, ReadError, ReadMode, ReadStats};
use stdx::Cursor;

use crate::compression_info::{CHUNK_CHECKSUM_LEN, CompressionInfo};
use crate::data_writer::PLAIN_CHUNK_LENGTH;
use crate::error::Malformed;
use crate::file_cache::{FileCache, next_file_id};
use crate::read_ahead::ReadAhead;
use crate::shared_reads::{Fetched, SharedReads};

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

/// Chunks that a read takes from the kernel's cache, checks and decompresses on a worker: one of 16
/// KiB takes 10 to 20 µs.
const INLINE_CHUNKS_MAX: u64 = 64;

thread_local! {
    /// Where the stored bytes of a chunk lie while it is checked and decompressed. As large as the
    /// largest chunk this thread has read.
    static STORED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// An open Data.db.
pub struct DataFile {
    path: PathBuf,
    file: Arc<dyn ReadFile>,
    id: u64,
    layout: Layout,
    length: u64,
    cache: Arc<dyn FileCache>,
    /// Chunks that are being read.
    shared_reads: SharedReads,
}

impl std::fmt::Debug for DataFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataFile").field("path", &self.path).field("id", &self.id).finish_non_exhaustive()
    }
}

/// A long read goes on behind others: a worker has other requests.
fn yield_to_other_jobs(context: &ReadContext) -> Result<(), ReadError> {
    let is_long = context.mode == ReadMode::Inline && ReadStats::get(&context.stats.chunks_read) >= INLINE_CHUNKS_MAX;
    if is_long { Err(ReadError::WouldBlock) } else { Ok(()) }
}

impl DataFile {
    /// With CompressionInfo.db.
    pub fn compressed(
        path: PathBuf,
        file: Arc<dyn ReadFile>,
        info: CompressionInfo,
        cache: Arc<dyn FileCache>,
    ) -> Self {
        let length = info.data_length;
        Self {
            path,
            file,
            id: next_file_id(),
            layout: Layout::Compressed(info),
            length,
            cache,
            shared_reads: SharedReads::default(),
        }
    }

    /// With CRC.db.
    pub fn plain(
        path: PathBuf,
        file: Arc<dyn ReadFile>,
        crc: &Bytes,
        cache: Arc<dyn FileCache>,
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
        Ok(Self { path, file, id: next_file_id(), layout, length, cache, shared_reads: SharedReads::default() })
    }

    /// Not compressed, and without CRC.db: nothing is checked.
    pub fn unchecked(path: PathBuf, file: Arc<dyn ReadFile>, cache: Arc<dyn FileCache>) -> Self {
        let layout = Layout::Plain { chunk_length: PLAIN_CHUNK_LENGTH, checksums: None };
        let length = file.len();
        Self { path, file, id: next_file_id(), layout, length, cache, shared_reads: SharedReads::default() }
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

    /// The number by which the cache knows the file.
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

    /// The cache of the file's chunks.
    pub(crate) fn cache(&self) -> &dyn FileCache {
        &*self.cache
    }

    /// Chunk number `index`.
    #[inline]
    pub fn chunk(&self, index: u64, context: &ReadContext) -> Result<Bytes, ReadError> {
        if context.is_over() {
            return Err(ReadError::TimedOut);
        }
        if let Some(bytes) = self.cache.chunk(self.id, index) {
            ReadStats::add(&context.stats.chunks_cached, 1);
            return Ok(bytes);
        }
        yield_to_other_jobs(context)?;
        let read = || {
            let bytes = self.read_chunk(index, context.mode)?;
            self.count_read(index, &bytes, context);
            self.cache.insert_chunk(self.id, index, &bytes);
            Ok(bytes)
        };
        match context.mode {
            ReadMode::Inline => read(),
            ReadMode::Background => match self.shared_reads.fetch(index, read)? {
                Fetched::Own(bytes) => Ok(bytes),
                Fetched::Shared(bytes) => {
                    ReadStats::add(&context.stats.chunks_cached, 1);
                    Ok(bytes)
                }
            },
        }
    }

    /// Chunk number `index` of a walk that must not push others out of the cache: nothing is put
    /// in. Where the walk may wait, it reads ahead.
    pub fn chunk_for_scan(&self, index: u64, context: &ReadContext, ahead: &mut ReadAhead) -> Result<Bytes, ReadError> {
        if context.is_over() {
            return Err(ReadError::TimedOut);
        }
        if let Some(bytes) = self.cache.chunk_for_scan(self.id, index) {
            ReadStats::add(&context.stats.chunks_cached, 1);
            return Ok(bytes);
        }
        yield_to_other_jobs(context)?;
        let bytes = match context.mode {
            ReadMode::Inline => self.read_chunk(index, ReadMode::Inline),
            ReadMode::Background => self.read_chunk_by(index, |offset, length, content| {
                let stored = ahead.bytes(&*self.file, offset, length);
                content(stored.map_err(|error| self.read_error(offset, &error))?)
            }),
        }?;
        self.count_read(index, &bytes, context);
        Ok(bytes)
    }

    /// Offers a chunk to the cache, unless it is there. Gives the bytes that were read of the disk.
    pub fn warm(&self, index: u64) -> Result<u64, ReadError> {
        if self.cache.chunk_for_scan(self.id, index).is_some() {
            return Ok(0);
        }
        let bytes = self.read_chunk(index, ReadMode::Background)?;
        self.cache.insert_chunk(self.id, index, &bytes);
        Ok(self.stored_chunk_length(index, bytes.len()))
    }

    fn count_read(&self, index: u64, bytes: &Bytes, context: &ReadContext) {
        ReadStats::add(&context.stats.chunks_read, 1);
        ReadStats::add(&context.stats.bytes_read, self.stored_chunk_length(index, bytes.len()));
    }

    /// Bytes on disk of a chunk that was read and has `length` bytes.
    fn stored_chunk_length(&self, index: u64, length: usize) -> u64 {
        let stored = match &self.layout {
            Layout::Compressed(info) => info.chunk(index, self.file.len()).map_or(length, |place| place.length),
            Layout::Plain { .. } => length,
        };
        stored as u64
    }

    /// The chunk from disk, not from the cache.
    pub fn read_chunk(&self, index: u64, mode: ReadMode) -> Result<Bytes, ReadError> {
        self.read_chunk_by(index, |offset, length, content| {
            STORED.with_borrow_mut(|stored| {
                stored.resize(length, 0);
                self.read_at(stored, offset, mode)?;
                content(stored)
            })
        })
    }

    /// The chunk from its stored bytes; `stored` gives those at an offset, of a length, to a
    /// function.
    fn read_chunk_by(
        &self,
        index: u64,
        stored: impl FnOnce(u64, usize, &dyn Fn(&[u8]) -> Result<Bytes, ReadError>) -> Result<Bytes, ReadError>,
    ) -> Result<Bytes, ReadError> {
        match &self.layout {
            Layout::Compressed(info) => {
                let place = info.chunk(index, self.file.len());
                let place = place.map_err(|error| self.corruption(error.offset, error.what))?;
                let length = place.length + CHUNK_CHECKSUM_LEN as usize;
                stored(place.offset, length, &|stored| self.decompressed(info, index, place.offset, stored))
            }
            Layout::Plain { chunk_length, checksums } => {
                let start = index.saturating_mul(*chunk_length as u64);
                let length = self.length.saturating_sub(start).min(*chunk_length as u64) as usize;
                if length == 0 {
                    return Err(self.corruption(start, "a position behind the end of the data").into());
                }
                stored(start, length, &|stored| self.plain_content(checksums.as_ref(), index, start, stored))
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
            Err(error) => Err(self.read_error(offset, &error)),
        }
    }

    fn read_error(&self, offset: u64, error: &std::io::Error) -> ReadError {
        match error.kind() {
            std::io::ErrorKind::UnexpectedEof => self.corruption(offset, "the file ends in a chunk").into(),
            _ => ReadError::Io { path: self.path.clone(), message: error.to_string() },
        }
    }

    /// `stored`: with its checksum.
    fn decompressed(&self, info: &CompressionInfo, index: u64, offset: u64, stored: &[u8]) -> Result<Bytes, ReadError> {
        let Some((body, checksum)) = stored.split_last_chunk::<4>() else {
            return Err(self.corruption(offset, "a chunk without checksum").into());
        };
        self.check(u32::from_be_bytes(*checksum), body, offset)?;
        info.decompress(body, index).map_err(|what| {
            let what = format!("chunk {index} does not decompress: {what}");
            self.corruption(offset, what).into()
        })
    }

    fn plain_content(
        &self,
        checksums: Option<&Bytes>,
        index: u64,
        start: u64,
        stored: &[u8],
    ) -> Result<Bytes, ReadError> {
        if let Some(checksums) = checksums {
            let mut cursor = Cursor::new(checksums);
            let place = (index as usize).saturating_mul(CHUNK_CHECKSUM_LEN as usize);
            let expected = cursor.skip(place).and_then(|()| cursor.u32());
            let expected = expected.map_err(|_| self.corruption(start, format!("chunk {index} has no checksum")))?;
            self.check(expected, stored, start)?;
        }
        Ok(Bytes::copy_from_slice(stored))
    }

    fn check(&self, expected: u32, bytes: &[u8], offset: u64) -> Result<(), ReadError> {
        let found = crc32fast::hash(bytes);
        if found == expected {
            return Ok(());
        }
        Err(self.corruption(offset, format!("checksum {expected:08x} is stored, {found:08x} computed")).into())
    }
}

impl Drop for DataFile {
    fn drop(&mut self) {
        self.cache.forget(self.id, self.length.div_ceil(self.chunk_length().max(1) as u64));
    }
}
