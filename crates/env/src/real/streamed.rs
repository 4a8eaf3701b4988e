//! A file that is written once, from front to back, around the kernel's cache (`O_DIRECT`): a file
//! of gigabytes from another node would otherwise push data that is read out of the cache, and the
//! copy into the cache costs more CPU than all other work of a receiver.
//!
//! The bytes are collected in a block whose address in memory, offset in the file and length are
//! multiples of [`STREAMED_ALIGNMENT`], as the kernel demands. Bytes of a caller whose address and
//! offset agree are written from the caller's memory, without a copy into the block. The last
//! bytes of a file, which fill no page, are written through the cache. So are all bytes on a file
//! system that takes no writes around it.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Advice, OFlags};

use super::disk::FILE_MODE;
use crate::{STREAMED_ALIGNMENT, WriteFile};

/// Bytes of the block. Bytes of a caller that go through the block are written in pieces of this
/// size.
const BLOCK_LENGTH: usize = 4 << 20;

/// Number of bytes of a caller below which they are copied, because a call of the kernel costs
/// more than the copy.
const UNCOPIED_MIN: usize = 128 << 10;

const _: () = assert!(BLOCK_LENGTH.is_multiple_of(STREAMED_ALIGNMENT) && UNCOPIED_MIN >= 2 * STREAMED_ALIGNMENT);

pub(super) struct Streamed {
    file: File,
    /// Whether writes still go around the cache. It stays false after the first write that does
    /// not.
    is_direct: bool,
    /// The memory of the block, with room for its alignment.
    memory: Vec<u8>,
    /// Bytes of the block that are filled and not written yet.
    filled: usize,
    /// Bytes that were taken from the caller so far.
    position: u64,
}

impl Streamed {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        let open = |flags: OFlags| {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(FILE_MODE);
            options.custom_flags(flags.bits().cast_signed()).open(path)
        };
        let (file, is_direct) = match open(OFlags::DIRECT) {
            Ok(file) => (file, true),
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => (open(OFlags::empty())?, false),
            Err(error) => return Err(error),
        };
        Ok(Self { file, is_direct, memory: vec![0; BLOCK_LENGTH + STREAMED_ALIGNMENT], filled: 0, position: 0 })
    }

    /// The aligned block in `memory`.
    fn block(&mut self) -> &mut [u8] {
        let skipped = self.memory.as_ptr().align_offset(STREAMED_ALIGNMENT);
        self.memory.get_mut(skipped..skipped + BLOCK_LENGTH).expect("the alignment has its room")
    }

    /// Has all further writes go through the cache.
    fn end_direct(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_direct) {
            let flags = rustix::fs::fcntl_getfl(&self.file)?;
            rustix::fs::fcntl_setfl(&self.file, flags - OFlags::DIRECT)?;
        }
        Ok(())
    }

    /// Copies bytes into the block, which has room for them.
    fn collect(&mut self, bytes: &[u8]) {
        let filled = self.filled;
        let room = self.block().get_mut(filled..filled + bytes.len());
        room.expect("a block is never more than full").copy_from_slice(bytes);
        self.filled += bytes.len();
        self.position += bytes.len() as u64;
    }

    /// Writes the filled bytes of the block.
    fn write_block(&mut self) -> io::Result<()> {
        self.write_block_and(&[])
    }

    /// Writes the filled bytes of the block and `behind`, which is not in it.
    fn write_block_and(&mut self, behind: &[u8]) -> io::Result<()> {
        let (filled, begin) = (self.filled, self.position - self.filled as u64);
        let is_aligned = |length: usize| length.is_multiple_of(STREAMED_ALIGNMENT);
        if !is_aligned(filled) || !begin.is_multiple_of(STREAMED_ALIGNMENT as u64) {
            self.end_direct()?;
        }
        let length = filled + behind.len();
        let mut written = 0;
        while written < length {
            let skipped = self.memory.as_ptr().align_offset(STREAMED_ALIGNMENT);
            let block = self.memory.get(skipped..skipped + filled).expect("the alignment has its room");
            let mut both = [IoSlice::new(block), IoSlice::new(behind)];
            let mut left = &mut both[..];
            IoSlice::advance_slices(&mut left, written);
            match rustix::io::pwritev(&self.file, left, begin + written as u64).map_err(io::Error::from) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if self.is_direct && error.kind() == io::ErrorKind::InvalidInput => self.end_direct()?,
                Err(error) => return Err(error),
            }
        }
        self.filled = 0;
        self.position += behind.len() as u64;
        Ok(())
    }

    /// If address and offset of the bytes agree: how many of them complete the page that the block
    /// has begun, and how many behind those are whole pages. None: they do not agree.
    fn uncopied(&self, data: &[u8]) -> Option<(usize, usize)> {
        let head = self.filled.next_multiple_of(STREAMED_ALIGNMENT) - self.filled;
        if !self.is_direct || data.len() < head + UNCOPIED_MIN {
            return None;
        }
        let behind = data.get(head..)?;
        let is_placed = behind.as_ptr().align_offset(STREAMED_ALIGNMENT) == 0;
        is_placed.then(|| (head, behind.len() - behind.len() % STREAMED_ALIGNMENT))
    }
}

impl WriteFile for Streamed {
    fn write_all(&mut self, data: &[u8]) -> io::Result<()> {
        let mut data = data;
        if let Some((head, length)) = self.uncopied(data) {
            let (head, behind) = data.split_at(head);
            let (whole, rest) = behind.split_at(length);
            self.collect(head);
            self.write_block_and(whole)?;
            data = rest;
        }
        while !data.is_empty() {
            let (now, later) = data.split_at(data.len().min(BLOCK_LENGTH - self.filled));
            self.collect(now);
            data = later;
            if self.filled == BLOCK_LENGTH {
                self.write_block()?;
            }
        }
        Ok(())
    }

    fn write_at(&mut self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write_block()?;
        self.end_direct()?;
        self.file.write_all_at(data, offset)
    }

    fn sync_data(&mut self) -> io::Result<()> {
        self.write_block()?;
        self.file.sync_data()
    }

    fn set_len(&mut self, length: u64) -> io::Result<()> {
        self.write_block()?;
        self.file.set_len(length)
    }

    fn preallocate(&mut self, length: u64) -> io::Result<()> {
        super::disk::preallocate(&self.file, length)
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn drop_cache(&mut self) {
        let _ = rustix::fs::fadvise(&self.file, 0, None, Advice::DontNeed);
    }
}
