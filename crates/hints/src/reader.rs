//! The hints of a file, page by page.
//!
//! A position in a file is the number of bytes of entries before it, uncompressed. In a compressed
//! file a position is found again by passing the heads of its blocks. Only the hints of a page are
//! in memory, and the bytes that were read ahead (a chunk of [`CHUNK_SIZE`], or a block).
//!
//! An entry whose hint is damaged is passed over and counted. Bytes that are no entry at all end
//! the file with an error, because the next entry cannot be found; an entry that is cut off by the
//! end of the file ends it without an error. `org.apache.cassandra.hints.HintsReader`.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use env::{Disk, ReadFile};

use crate::blocks::{BLOCK_HEAD, block_head};
use crate::descriptor::{Descriptor, HEAD_SIZE_MAX};
use crate::entry::{Found, find};
use crate::error::HintError;

/// Bytes of hints behind which a page ends (`HintsReader.PAGE_SIZE`).
pub const PAGE_SIZE: usize = 512 << 10;
/// Bytes of a plain file that are read at a time.
const CHUNK_SIZE: usize = 128 << 10;

/// A position in a file: the number of bytes of entries before it, uncompressed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Position(pub u64);

/// Hints that follow each other in a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// The position at which the page begins.
    pub start: Position,
    /// The hints of the page, in the order of the file.
    pub hints: Vec<Bytes>,
    /// Number of entries that did not match their checksums.
    pub damaged: u64,
    /// True: the file ends behind this page.
    pub is_last: bool,
}

/// A file that is being read.
pub struct Reader {
    file: Arc<dyn ReadFile>,
    /// The head of the file.
    pub descriptor: Descriptor,
    /// Bytes of the head.
    head: u64,
    /// Offset in the file of the first byte that has not been read.
    next: u64,
    /// Uncompressed content that was read and not given yet.
    buffer: Vec<u8>,
    /// Bytes at the start of `buffer` that were given already.
    given: usize,
    /// The position of the first byte that was not given.
    at: u64,
}

impl Reader {
    /// Opens a file and reads its head.
    pub fn open(disk: &dyn Disk, path: &Path) -> Result<Self, HintError> {
        let file = disk.open_read(path)?;
        let mut head = vec![0; usize::try_from(file.len()).unwrap_or(usize::MAX).min(HEAD_SIZE_MAX)];
        file.read_at(&mut head, 0)?;
        let (descriptor, head) = Descriptor::decode(&head)?;
        file.advise_sequential();
        let head = head as u64;
        Ok(Self { file, descriptor, head, next: head, buffer: Vec::new(), given: 0, at: 0 })
    }

    /// Goes to a position at which a page of this file began.
    pub fn seek(&mut self, to: Position) -> Result<(), HintError> {
        self.buffer.clear();
        self.given = 0;
        self.at = to.0;
        if self.descriptor.compression.is_none() {
            self.next = self.head.saturating_add(to.0);
            return Ok(());
        }
        let (mut place, mut next) = (0, self.head);
        while let Some((plain, compressed)) = self.block_at(next)? {
            if place + u64::from(plain) > to.0 {
                break;
            }
            place += u64::from(plain);
            next += BLOCK_HEAD as u64 + u64::from(compressed);
        }
        self.next = next;
        let within = to.0.checked_sub(place).ok_or_else(|| self.corrupt("the place lies before its block"))?;
        let within = usize::try_from(within).map_err(|_| self.corrupt("the place lies behind the file"))?;
        if within > 0 && !self.fill(within)? {
            return Err(self.corrupt("the place lies behind the file"));
        }
        self.given = within;
        Ok(())
    }

    /// The next page. No hints and `is_last`: the file has ended.
    pub fn page(&mut self) -> Result<Page, HintError> {
        let mut page = Page { start: Position(self.at), hints: Vec::new(), damaged: 0, is_last: false };
        while self.at - page.start.0 < PAGE_SIZE as u64 {
            match find(self.unread()) {
                Found::Hint(hint, whole) => {
                    page.hints.push(Bytes::copy_from_slice(hint));
                    self.pass(whole);
                }
                Found::Damaged(whole) => {
                    page.damaged += 1;
                    self.pass(whole);
                }
                Found::Incomplete(count) => match self.fill(count) {
                    Ok(true) => {}
                    Ok(false) => {
                        page.is_last = true;
                        break;
                    }
                    Err(error) if page.hints.is_empty() => return Err(error),
                    // the hints before are given first; the next page meets the error again
                    Err(_) => break,
                },
                Found::Nothing if page.hints.is_empty() => {
                    if !self.is_zero_to_the_end()? {
                        return Err(self.corrupt("no hint begins here"));
                    }
                    page.is_last = true;
                    break;
                }
                // the hints before are given first; the next page meets this place again
                Found::Nothing => break,
            }
        }
        Ok(page)
    }

    /// The length of the file up to the end of the last given entry. Nothing behind it could be
    /// read.
    pub fn sound_length(&self) -> u64 {
        match self.descriptor.compression {
            None => {
                assert!(self.head + self.at <= self.next, "what was given was read before");
                self.head + self.at
            }
            Some(_) => self.next,
        }
    }

    fn unread(&self) -> &[u8] {
        self.buffer.get(self.given..).unwrap_or_default()
    }

    fn pass(&mut self, count: usize) {
        assert!(count <= self.buffer.len() - self.given, "only what was read is given");
        self.given += count;
        self.at += count as u64;
    }

    /// Reads until `buffer` has `count` bytes that were not given. False: the file ends before.
    fn fill(&mut self, count: usize) -> Result<bool, HintError> {
        self.buffer.drain(..self.given);
        self.given = 0;
        while self.buffer.len() < count {
            if !self.read_more(count - self.buffer.len())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads the next chunk or block. False: the file ends here.
    fn read_more(&mut self, wanted: usize) -> Result<bool, HintError> {
        if self.descriptor.compression.is_some() {
            return self.read_block();
        }
        let left = usize::try_from(self.file.len().saturating_sub(self.next)).unwrap_or(usize::MAX);
        // what the file cannot give is not made room for
        if left == 0 || left < wanted {
            return Ok(false);
        }
        let (before, count) = (self.buffer.len(), left.min(wanted.max(CHUNK_SIZE)));
        self.buffer.resize(before + count, 0);
        let place = self.buffer.get_mut(before..).expect("made longer before");
        self.file.read_at(place, self.next)?;
        self.next += count as u64;
        Ok(true)
    }

    fn read_block(&mut self) -> Result<bool, HintError> {
        let Some((plain, compressed)) = self.block_at(self.next)? else { return Ok(false) };
        let mut bytes = vec![0; compressed as usize];
        self.file.read_at(&mut bytes, self.next + BLOCK_HEAD as u64)?;
        let compression = self.descriptor.compression.as_ref().expect("asked of compressed files only");
        let opened = compression.open_block(&bytes, plain).map_err(|error| HintError::Corrupt(error, self.at))?;
        self.buffer.extend_from_slice(&opened);
        self.next += BLOCK_HEAD as u64 + u64::from(compressed);
        Ok(true)
    }

    /// The lengths of the block at a place of the file; None: the file ends before the block does.
    fn block_at(&self, place: u64) -> Result<Option<(u32, u32)>, HintError> {
        let left = self.file.len().saturating_sub(place);
        if left < BLOCK_HEAD as u64 {
            return Ok(None);
        }
        let mut head = [0; BLOCK_HEAD];
        self.file.read_at(&mut head, place)?;
        let (plain, compressed) = block_head(&head, self.at)?;
        Ok((BLOCK_HEAD as u64 + u64::from(compressed) <= left).then_some((plain, compressed)))
    }

    /// Whether the rest of the file has only zeros: space that a writer reserved and did not fill,
    /// which counts as the end of the file. Nothing behind the present position can be read
    /// afterwards; the position stays.
    fn is_zero_to_the_end(&mut self) -> Result<bool, HintError> {
        loop {
            if self.unread().iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            self.given = self.buffer.len();
            if !self.fill(1)? {
                return Ok(true);
            }
        }
    }

    fn corrupt(&self, how: &str) -> HintError {
        HintError::Corrupt(how.to_owned(), self.at)
    }
}
