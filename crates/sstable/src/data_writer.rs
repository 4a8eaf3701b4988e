//! Writes Data.db with its checksums: compressed in chunks (CompressionInfo.db) or as it is
//! (CRC.db), and Digest.crc32.
//!
//! Bytes are appended to [`DataWriter::buffer`] and moved on by [`DataWriter::flush_full_chunks`];
//! what is held in memory is at most a chunk and [`WRITE_BUFFER`] beyond what was appended since.
//! Agrees with `org.apache.cassandra.io.compress.CompressedSequentialWriter` and
//! `org.apache.cassandra.io.util.{ChecksummedSequentialWriter,DataIntegrityMetadata}`.

use std::path::{Path, PathBuf};

use env::{Disk, WriteFile};
use stdx::{put_u32, put_u64};

use crate::compression_info::{CHUNK_CHECKSUM_LEN, put_head, stored_length_max};
use crate::compressor::{CHUNK_LENGTH_MAX, CompressionParams, Effort};
use crate::descriptor::{Component, Descriptor};
use crate::error::Error;

/// Bytes that one checksum of CRC.db covers.
pub(crate) const PLAIN_CHUNK_LENGTH: usize = 64 * 1024;
/// Chunks are written when so many bytes of them wait.
const WRITE_BUFFER: usize = 128 * 1024;
/// Offsets and checksums are written when so many bytes of them wait.
const SIDE_BUFFER: usize = 64 * 1024;

// the buffer holds a whole plain chunk
const _: () = assert!(WRITE_BUFFER >= PLAIN_CHUNK_LENGTH);
const _: () = assert!(PLAIN_CHUNK_LENGTH <= CHUNK_LENGTH_MAX);

/// A component being written.
pub(crate) struct ComponentFile {
    pub path: PathBuf,
    file: Box<dyn WriteFile>,
}

impl ComponentFile {
    pub fn create(disk: &dyn Disk, path: PathBuf) -> Result<Self, Error> {
        let file = disk.create(&path).map_err(|error| Error::io(&path, error))?;
        Ok(Self { path, file })
    }

    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.file.write_all(bytes).map_err(|error| Error::io(&self.path, error))
    }

    pub fn write_at(&mut self, bytes: &[u8], offset: u64) -> Result<(), Error> {
        self.file.write_at(bytes, offset).map_err(|error| Error::io(&self.path, error))
    }

    pub fn sync(&mut self) -> Result<(), Error> {
        self.file.sync_data().map_err(|error| Error::io(&self.path, error))
    }

    /// A whole small file, synced.
    pub fn write_whole(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let mut file = Self::create(disk, path.to_owned())?;
        file.write(bytes)?;
        file.sync()
    }
}

/// Lengths of a Data.db that is complete.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DataSummary {
    /// Bytes of data.
    pub length: u64,
    /// Bytes on disk.
    pub stored_length: u64,
    /// Compressed bytes by bytes; -1 without compression.
    pub compression_ratio: f64,
}

/// Data.db being written.
pub struct DataWriter {
    data: ComponentFile,
    /// CompressionInfo.db or CRC.db.
    side: ComponentFile,
    side_buffer: Vec<u8>,
    compression: Option<CompressionParams>,
    /// Appended and not yet written. Append here.
    pub buffer: Vec<u8>,
    /// Chunks that are complete and not in the file yet.
    waiting: Vec<u8>,
    flushed: u64,
    stored: u64,
    chunks: u64,
    digest: crc32fast::Hasher,
    digest_path: PathBuf,
    /// Chunks that can hardly be compressed may be compressed with less effort.
    is_quick: bool,
    /// The effort for the next chunk, chosen by how far the last one was compressed.
    effort: Effort,
}

/// A chunk that keeps more than this share of its length can hardly be compressed.
const POOR_COMPRESSION_RATIO: f64 = 0.6;

impl DataWriter {
    /// Creates the files. `is_quick`: see [`crate::WriterOptions::is_quick`].
    pub fn create(
        disk: &dyn Disk,
        descriptor: &Descriptor,
        compression: Option<CompressionParams>,
        is_quick: bool,
    ) -> Result<Self, Error> {
        let data = ComponentFile::create(disk, descriptor.path(Component::Data))?;
        let side_component = if compression.is_some() { Component::CompressionInfo } else { Component::Crc };
        let side = ComponentFile::create(disk, descriptor.path(side_component))?;
        let mut side_buffer = Vec::new();
        match &compression {
            // lengths are filled in at the end
            Some(params) => put_head(&mut side_buffer, params, 0, 0),
            None => put_u32(&mut side_buffer, PLAIN_CHUNK_LENGTH as u32),
        }
        Ok(Self {
            data,
            side,
            side_buffer,
            compression,
            buffer: Vec::new(),
            waiting: Vec::new(),
            flushed: 0,
            stored: 0,
            chunks: 0,
            digest: crc32fast::Hasher::new(),
            digest_path: descriptor.path(Component::Digest),
            is_quick,
            effort: Effort::Table,
        })
    }

    /// The component beside Data.db.
    pub fn side_component(&self) -> Component {
        if self.compression.is_some() { Component::CompressionInfo } else { Component::Crc }
    }

    /// Where the next appended byte goes.
    #[inline]
    pub fn position(&self) -> u64 {
        self.flushed + self.buffer.len() as u64
    }

    /// Bytes that are on disk so far, or on the way there; without compression also those of the
    /// chunk that is not full.
    pub fn stored_length(&self) -> u64 {
        if self.compression.is_some() { self.stored } else { self.position() }
    }

    fn chunk_length(&self) -> usize {
        self.compression.as_ref().map_or(PLAIN_CHUNK_LENGTH, |params| params.chunk_length)
    }

    /// Writes the chunks that are full.
    #[inline]
    pub fn flush_full_chunks(&mut self) -> Result<(), Error> {
        if self.buffer.len() < self.chunk_length() {
            return Ok(());
        }
        let length = self.chunk_length();
        let buffer = std::mem::take(&mut self.buffer);
        let (full, rest) = buffer.split_at(buffer.len() / length * length);
        for chunk in full.chunks(length) {
            self.write_chunk(chunk)?;
        }
        let rest_len = rest.len();
        self.buffer = buffer;
        self.buffer.drain(..self.buffer.len() - rest_len);
        Ok(())
    }

    fn write_chunk(&mut self, chunk: &[u8]) -> Result<(), Error> {
        assert!((1..=self.chunk_length()).contains(&chunk.len()), "a chunk holds {} bytes", chunk.len());
        assert_eq!(self.flushed, self.chunks * self.chunk_length() as u64, "only the last chunk is short");
        let start = self.waiting.len();
        match &self.compression {
            None => {
                put_u32(&mut self.side_buffer, crc32fast::hash(chunk));
                self.waiting.extend_from_slice(chunk);
            }
            Some(params) => {
                put_u64(&mut self.side_buffer, self.stored);
                let compressed = params.compress_with(self.effort, chunk, &mut self.waiting);
                compressed.map_err(|error| Error::io(&self.data.path, error))?;
                let kept = (self.waiting.len() - start) as f64;
                self.effort = if self.is_quick && kept > POOR_COMPRESSION_RATIO * chunk.len() as f64 {
                    Effort::Quick
                } else {
                    Effort::Table
                };
                if self.waiting.len() - start >= params.compressed_length_max {
                    self.waiting.truncate(start);
                    self.waiting.extend_from_slice(chunk);
                    // only a short last chunk: a reader knows by its stored length that it is not
                    // compressed
                    self.waiting.resize(start + chunk.len().max(params.compressed_length_max), 0);
                }
                let length = self.waiting.len() - start;
                assert!(length <= stored_length_max(params.chunk_length), "a reader takes a chunk of this length");
                let checksum = crc32fast::hash(&self.waiting[start..]);
                put_u32(&mut self.waiting, checksum);
            }
        }
        let written = &self.waiting[start..];
        self.digest.update(written);
        self.stored += written.len() as u64;
        self.flushed += chunk.len() as u64;
        self.chunks += 1;
        if self.waiting.len() >= WRITE_BUFFER {
            self.write_waiting()?;
        }
        if self.side_buffer.len() >= SIDE_BUFFER {
            self.side.write(&self.side_buffer)?;
            self.side_buffer.clear();
        }
        Ok(())
    }

    fn write_waiting(&mut self) -> Result<(), Error> {
        self.data.write(&self.waiting)?;
        self.waiting.clear();
        Ok(())
    }

    /// Writes the last chunk, the checksums and the digest; all is synced.
    pub fn finish(mut self, disk: &dyn Disk) -> Result<DataSummary, Error> {
        self.flush_full_chunks()?;
        let last = std::mem::take(&mut self.buffer);
        if !last.is_empty() {
            self.write_chunk(&last)?;
        }
        assert_eq!(self.chunks, self.flushed.div_ceil(self.chunk_length() as u64), "chunks hold all bytes");
        self.write_waiting()?;
        self.side.write(&self.side_buffer)?;
        if let Some(params) = &self.compression {
            let mut head = Vec::new();
            put_head(&mut head, params, self.flushed, self.chunks);
            self.side.write_at(&head, 0)?;
        }
        self.data.sync()?;
        self.side.sync()?;
        let digest = self.digest.finalize().to_string();
        ComponentFile::write_whole(disk, &self.digest_path, digest.as_bytes())?;
        let compressed = self.stored - self.chunks * CHUNK_CHECKSUM_LEN * u64::from(self.compression.is_some());
        let compression_ratio = match self.compression {
            Some(_) if self.flushed > 0 => compressed as f64 / self.flushed as f64,
            _ => -1.0,
        };
        Ok(DataSummary { length: self.flushed, stored_length: self.stored, compression_ratio })
    }
}
