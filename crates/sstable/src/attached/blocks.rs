//! The outer layer of the components: blocks with checksums, found by their number.
//!
//! ```text
//! file    := head block* offset* footer trailer
//! head    := "HelenusA" version:u8 kind:u8
//! block   := payload crc32:u32            at the offset of its number
//! offset  := u64                          one a block, and the end of the last
//! footer  := payload crc32:u32
//! trailer := offsets_at:u64 footer_at:u64 blocks:u64 crc32:u32
//! ```
//!
//! All numbers are big-endian. A checksum is of the payload before it. A file without a trailer was
//! not completed. Memory: a writer holds eight bytes a block, a reader a bit a block.
//!
//! A block's checksum is compared when the block is read for the first time, and again when the
//! disk, not the cache, gives one of the pages of the read.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use env::Disk;
use rows::{ReadError, ReadMode};
use stdx::Cursor;
use stdx::put::{put_u32, put_u64};

use super::damaged;
use crate::data_writer::ComponentFile;
use crate::error::{Error, IndexError};
use crate::file_cache::FileCache;
use crate::index_file::{Access, Found, IndexFile};

const MAGIC: &[u8; 8] = b"HelenusA";
/// 1: the first.
const VERSION: u8 = 1;
const HEAD: usize = 10;
const CRC: usize = 4;
const TRAILER: usize = 28;
/// Bytes that a writer collects before it writes.
const WRITE_BUFFER: usize = 256 << 10;
/// The longest block: a key or a term may be as long as a value of a key, 64 KiB, several times.
pub const BLOCK_SIZE_MAX: usize = 16 << 20;

/// Which of the components a file is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Keys of rows.
    Keys = 1,
    /// Terms of an index.
    Terms = 2,
    /// Vectors of an index.
    Graph = 3,
}

/// A file that is being written.
pub struct BlockWriter {
    file: ComponentFile,
    buffer: Vec<u8>,
    written: u64,
    offsets: Vec<u64>,
}

impl BlockWriter {
    pub fn create(disk: &dyn Disk, path: PathBuf, kind: Kind) -> Result<Self, Error> {
        let file = ComponentFile::create(disk, path)?;
        let mut buffer = Vec::with_capacity(WRITE_BUFFER);
        buffer.extend_from_slice(MAGIC);
        buffer.extend_from_slice(&[VERSION, kind as u8]);
        Ok(Self { file, buffer, written: 0, offsets: Vec::new() })
    }

    fn position(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    fn append(&mut self, payload: &[u8]) -> Result<(), Error> {
        assert!(payload.len() <= BLOCK_SIZE_MAX, "a block has an end");
        self.buffer.extend_from_slice(payload);
        put_u32(&mut self.buffer, crc32fast::hash(payload));
        if self.buffer.len() >= WRITE_BUFFER {
            self.write_out()?;
        }
        Ok(())
    }

    fn write_out(&mut self) -> Result<(), Error> {
        self.file.write(&self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Appends a block and gives its number.
    pub fn put(&mut self, payload: &[u8]) -> Result<u64, Error> {
        let number = self.offsets.len() as u64;
        self.offsets.push(self.position());
        self.append(payload)?;
        Ok(number)
    }

    /// Completes and syncs the file.
    pub fn finish(mut self, footer: &[u8]) -> Result<(), Error> {
        let (blocks, offsets_at) = (self.offsets.len() as u64, self.position());
        self.offsets.push(offsets_at);
        assert!(self.offsets.is_sorted(), "blocks follow each other");
        for offset in std::mem::take(&mut self.offsets) {
            put_u64(&mut self.buffer, offset);
            if self.buffer.len() >= WRITE_BUFFER {
                self.write_out()?;
            }
        }
        let footer_at = self.position();
        self.append(footer)?;
        let mut trailer = Vec::with_capacity(TRAILER);
        put_u64(&mut trailer, offsets_at);
        put_u64(&mut trailer, footer_at);
        put_u64(&mut trailer, blocks);
        let crc = crc32fast::hash(&trailer);
        put_u32(&mut trailer, crc);
        self.buffer.extend_from_slice(&trailer);
        self.write_out()?;
        self.file.sync()
    }
}

/// An open file.
pub struct BlockFile {
    path: PathBuf,
    file: IndexFile,
    offsets_at: u64,
    blocks: u64,
    /// A bit for each block whose checksum was found right.
    checked: Box<[AtomicU64]>,
}

impl fmt::Debug for BlockFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} with {} blocks", self.path.display(), self.blocks)
    }
}

impl BlockFile {
    /// Opens a file; gives its footer as well.
    pub fn open(disk: &dyn Disk, path: &Path, cache: Arc<dyn FileCache>, kind: Kind) -> Result<(Self, Bytes), Error> {
        let file = disk.open_read(path).map_err(|error| Error::open(path, error))?;
        Self::over(IndexFile::on_disk(path.to_owned(), file, cache), path, kind)
            .map_err(|error| Error::corrupt(path, 0, error.into_malformed().what))
    }

    /// The same over bytes, for tests and fuzzing.
    pub fn over(file: IndexFile, path: &Path, kind: Kind) -> Result<(Self, Bytes), IndexError> {
        let length = file.len();
        if length < (HEAD + TRAILER) as u64 {
            return Err(damaged(format!("{length} bytes are no component of an index")).into());
        }
        let head = file.bytes(0, HEAD, Access::IN_PASSING)?;
        if head.get(..8) != Some(MAGIC.as_slice()) || head.get(8..) != Some([VERSION, kind as u8].as_slice()) {
            return Err(damaged("the head is not that of this component").into());
        }
        let trailer = file.bytes(length - TRAILER as u64, TRAILER, Access::IN_PASSING)?;
        let (numbers, crc) = trailer.split_at_checked(TRAILER - CRC).ok_or_else(|| damaged("no trailer"))?;
        if Cursor::new(crc).u32()? != crc32fast::hash(numbers) {
            return Err(damaged("the file was not completed").into());
        }
        let mut numbers = Cursor::new(numbers);
        let (offsets_at, footer_at, blocks) = (numbers.u64()?, numbers.u64()?, numbers.u64()?);
        let offsets = blocks.checked_add(1).and_then(|count| count.checked_mul(8));
        let end = offsets.and_then(|bytes| offsets_at.checked_add(bytes));
        let footer_end = length - TRAILER as u64;
        if end != Some(footer_at) || footer_at > footer_end {
            return Err(damaged("the parts of the file do not meet").into());
        }
        let checked = (0..blocks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        let this = Self { path: path.to_owned(), file, offsets_at, blocks, checked };
        let footer = this.stored(footer_at, footer_end, Access::IN_PASSING)?;
        Ok((this, payload_of(&footer.bytes, footer_at)?))
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// The bytes of a block, or of the footer, and of the checksum, which is not compared.
    fn stored(&self, start: u64, end: u64, access: Access) -> Result<Found, IndexError> {
        let length = end.checked_sub(start).filter(|length| *length >= CRC as u64);
        let length = length.filter(|length| *length <= (BLOCK_SIZE_MAX + CRC) as u64);
        let length = length.ok_or_else(|| damaged("a block of a length that none has").behind(start))? as usize;
        self.file.record(start, length, access)
    }

    fn payload(&self, number: u64, access: Access) -> Result<Bytes, IndexError> {
        let Ends { start, end, are_fresh } = self.ends_of(number, access)?;
        let found = self.stored(start, end, access)?;
        if are_fresh || found.is_fresh || !self.is_checked(number) {
            let payload = payload_of(&found.bytes, start)?;
            self.note_checked(number);
            return Ok(payload);
        }
        Ok(found.bytes.slice(..found.bytes.len() - CRC))
    }

    fn is_checked(&self, number: u64) -> bool {
        let word = self.checked.get((number / 64) as usize);
        word.is_some_and(|word| word.load(Ordering::Relaxed) & 1 << (number % 64) != 0)
    }

    fn note_checked(&self, number: u64) {
        if let Some(word) = self.checked.get((number / 64) as usize) {
            word.fetch_or(1 << (number % 64), Ordering::Relaxed);
        }
    }

    /// The payload of a block.
    pub fn block(&self, number: u64, mode: ReadMode) -> Result<Bytes, ReadError> {
        self.payload(number, Access { mode, keeps: true }).map_err(|error| error.of(&self.path))
    }

    /// Where a block begins and ends, its checksum included.
    fn ends_of(&self, number: u64, access: Access) -> Result<Ends, IndexError> {
        if number >= self.blocks {
            return Err(damaged(format!("block {number} of {}", self.blocks)).into());
        }
        let offsets = self.file.record(self.offsets_at + number * 8, 16, access)?;
        let mut cursor = Cursor::new(&offsets.bytes);
        let (start, end) = (cursor.u64()?, cursor.u64()?);
        if end > self.offsets_at {
            return Err(damaged("a block behind the last").behind(start).into());
        }
        Ok(Ends { start, end, are_fresh: offsets.is_fresh })
    }

    /// An error of content, in this file.
    pub fn error(&self, error: impl Into<IndexError>) -> ReadError {
        error.into().of(&self.path)
    }
}

/// Where a block begins and ends in its file.
struct Ends {
    start: u64,
    end: u64,
    /// The disk, not the cache, gave the offsets.
    are_fresh: bool,
}

/// The payload of a block that begins at `start`, whose checksum is compared.
fn payload_of(stored: &Bytes, start: u64) -> Result<Bytes, IndexError> {
    let split = stored.len().checked_sub(CRC).and_then(|length| stored.split_at_checked(length));
    let (payload, crc) = split.ok_or_else(|| damaged("the file ends in a block").behind(start))?;
    if Cursor::new(crc).u32()? != crc32fast::hash(payload) {
        return Err(damaged("a checksum that does not fit").behind(start).into());
    }
    Ok(stored.slice(..payload.len()))
}

/// Records of one length in blocks that follow each other, all of one length but the last: a record
/// is found without the offset of its block, and read without the rest of it.
pub struct Records {
    /// The number of the first block.
    first: u64,
    /// Where the first block begins.
    start: u64,
    /// Bytes of a record.
    size: usize,
    /// Records of a block; the last may have fewer.
    of_block: u64,
    count: u64,
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} records of {} bytes", self.count, self.size)
    }
}

impl Records {
    /// The records that begin in block `first` of a file.
    pub fn over(file: &BlockFile, first: u64, size: usize, of_block: u64, count: u64) -> Result<Self, IndexError> {
        assert!(of_block > 0 && of_block * size as u64 <= BLOCK_SIZE_MAX as u64, "blocks of a writer");
        let blocks = count.div_ceil(of_block);
        let end_of_last = first.checked_add(blocks).filter(|end| *end <= file.blocks);
        end_of_last.ok_or_else(|| damaged("records in blocks that are not there"))?;
        let mut this = Self { first, start: 0, size, of_block, count };
        if blocks > 0 {
            this.start = file.ends_of(first, Access::IN_PASSING)?.start;
            let end = file.ends_of(first + blocks - 1, Access::IN_PASSING)?.end;
            if end.checked_sub(this.start) != Some(count * size as u64 + blocks * CRC as u64) {
                return Err(damaged("blocks of another length than their records have").behind(this.start).into());
            }
        }
        Ok(this)
    }

    /// A record by its number.
    pub fn get(&self, file: &BlockFile, number: u64, mode: ReadMode) -> Result<Bytes, ReadError> {
        self.record(file, number, Access { mode, keeps: true }).map_err(|error| error.of(&file.path))
    }

    fn record(&self, file: &BlockFile, number: u64, access: Access) -> Result<Bytes, IndexError> {
        if number >= self.count {
            return Err(damaged(format!("record {number} of {}", self.count)).into());
        }
        let block = number / self.of_block;
        let block_start = self.start + block * (self.of_block * self.size as u64 + CRC as u64);
        let record_start = block_start + number % self.of_block * self.size as u64;
        let found = file.file.record(record_start, self.size, access)?;
        if found.is_fresh || !file.is_checked(self.first + block) {
            let records = self.of_block.min(self.count - block * self.of_block);
            let block_end = block_start + records * self.size as u64 + CRC as u64;
            payload_of(&file.stored(block_start, block_end, access)?.bytes, block_start)?;
            file.note_checked(self.first + block);
        }
        Ok(found.bytes)
    }
}
