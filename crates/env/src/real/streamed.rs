//! A file that is written once, from front to back, around the kernel's cache (`O_DIRECT`): a file
//! of gigabytes that comes from another node would push out of the cache what is read there, and
//! the copy into the cache costs more CPU than all else that a receiver does.
//!
//! The bytes are collected in a block whose place in memory, place in the file and length are
//! multiples of [`ALIGNMENT`], as the kernel asks for. What is left at the end is written through
//! the cache. A file system that takes no such writes gets all of them through the cache.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Advice, OFlags};

use super::disk::FILE_MODE;
use crate::WriteFile;

/// Bytes that are written at once.
const BLOCK_LENGTH: usize = 4 << 20;

/// Places in memory and in the file are multiples of so many bytes: no device asks for more.
const ALIGNMENT: usize = 4096;

const _: () = assert!(BLOCK_LENGTH.is_multiple_of(ALIGNMENT));

pub(super) struct Streamed {
    file: File,
    /// Whether writes still go around the cache. Never again after the first that does not.
    is_direct: bool,
    /// Room for a block, and as much more as its alignment may take.
    memory: Vec<u8>,
    /// Bytes of the block that were not written.
    filled: usize,
    /// Bytes that were taken.
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
        Ok(Self { file, is_direct, memory: vec![0; BLOCK_LENGTH + ALIGNMENT], filled: 0, position: 0 })
    }

    /// The block, at its place in the memory.
    fn block(&mut self) -> &mut [u8] {
        let skipped = self.memory.as_ptr().align_offset(ALIGNMENT);
        self.memory.get_mut(skipped..skipped + BLOCK_LENGTH).expect("the alignment has its room")
    }

    /// From now on all writes go through the cache.
    fn end_direct(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.is_direct) {
            let flags = rustix::fs::fcntl_getfl(&self.file)?;
            rustix::fs::fcntl_setfl(&self.file, flags - OFlags::DIRECT)?;
        }
        Ok(())
    }

    /// Writes what the block has.
    fn write_block(&mut self) -> io::Result<()> {
        let (length, offset) = (self.filled, self.position - self.filled as u64);
        if !length.is_multiple_of(ALIGNMENT) || !offset.is_multiple_of(ALIGNMENT as u64) {
            self.end_direct()?;
        }
        loop {
            let skipped = self.memory.as_ptr().align_offset(ALIGNMENT);
            let block = self.memory.get(skipped..skipped + length).expect("the alignment has its room");
            match self.file.write_all_at(block, offset) {
                Err(error) if self.is_direct && error.kind() == io::ErrorKind::InvalidInput => self.end_direct()?,
                Err(error) => return Err(error),
                Ok(()) => break,
            }
        }
        self.filled = 0;
        Ok(())
    }
}

impl WriteFile for Streamed {
    fn write_all(&mut self, data: &[u8]) -> io::Result<()> {
        let mut data = data;
        while !data.is_empty() {
            let filled = self.filled;
            let room = self.block().get_mut(filled..).expect("a block is never more than full");
            let (now, later) = data.split_at(data.len().min(room.len()));
            room.get_mut(..now.len()).expect("it is at most the room").copy_from_slice(now);
            self.filled += now.len();
            self.position += now.len() as u64;
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
