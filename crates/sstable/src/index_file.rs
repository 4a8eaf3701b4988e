//! An index component (Partitions.db, Rows.db, Index.db) read page by page.
//!
//! Pages have 4 KiB, counted from the start of the file; no node of a trie crosses one, which the
//! writers of both Cassandra and this crate see to. A page comes from the cache of chunks or from
//! the disk. In inline mode a page that would have to be waited for gives `ReadError::WouldBlock`;
//! a page that the disk cannot give is an error with component and offset. So a bad sector fails
//! the reads that meet it; a mapped file would raise SIGBUS and end the process (docs/notes/0013).
//!
//! Index components have no checksums: what a page holds is checked by whoever decodes it.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use env::ReadFile;
use rows::{ReadError, ReadMode};

use crate::error::{IndexError, Malformed};
use crate::file_cache::{FileCache, next_file_id};

/// Bytes of a page: the unit in which a file is read, and in which a trie is laid out.
pub const PAGE_SIZE: usize = 4096;

const PAGE: u64 = PAGE_SIZE as u64;

const _: () = assert!(PAGE_SIZE.is_power_of_two());

/// How pages are come by.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// Whether the disk may be waited for.
    pub mode: ReadMode,
    /// Pages that come from the disk are offered to the cache. Walks over a whole index do not:
    /// they want each page once.
    pub keeps: bool,
}

impl Access {
    /// May wait, and keeps what it reads.
    pub const WAITING: Self = Self { mode: ReadMode::Background, keeps: true };

    /// May wait, and keeps nothing: for opening files, and for walks over all of them.
    pub const IN_PASSING: Self = Self { mode: ReadMode::Background, keeps: false };
}

/// An open index component; clones share it.
#[derive(Clone)]
pub struct IndexFile(Arc<Source>);

enum Source {
    Memory(Bytes),
    Disk(OnDisk),
}

struct OnDisk {
    path: PathBuf,
    file: Arc<dyn ReadFile>,
    /// The number by which the cache knows the file's pages.
    id: u64,
    cache: Arc<dyn FileCache>,
}

impl fmt::Debug for IndexFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IndexFile of {} bytes", self.len())
    }
}

impl From<Bytes> for IndexFile {
    fn from(bytes: Bytes) -> Self {
        Self(Arc::new(Source::Memory(bytes)))
    }
}

impl From<Vec<u8>> for IndexFile {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes::from(bytes).into()
    }
}

impl IndexFile {
    /// A file whose pages go through a cache.
    pub fn on_disk(path: PathBuf, file: Arc<dyn ReadFile>, cache: Arc<dyn FileCache>) -> Self {
        Self(Arc::new(Source::Disk(OnDisk { path, file, id: next_file_id(), cache })))
    }

    /// The number by which the cache knows the file's pages; `None`: it is in memory.
    pub fn id(&self) -> Option<u64> {
        match &*self.0 {
            Source::Memory(_) => None,
            Source::Disk(disk) => Some(disk.id),
        }
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        match &*self.0 {
            Source::Memory(bytes) => bytes.len() as u64,
            Source::Disk(disk) => disk.file.len(),
        }
    }

    /// The page of that number. The last one may be shorter; behind it there is none.
    pub fn page(&self, number: u64, access: Access) -> Result<Bytes, IndexError> {
        Ok(self.found(number, access)?.bytes)
    }

    fn found(&self, number: u64, access: Access) -> Result<Found, IndexError> {
        let start = number.checked_mul(PAGE).filter(|start| *start < self.len());
        let Some(start) = start else {
            return Err(Malformed::at(number.saturating_mul(PAGE), "a position beyond the end of the file").into());
        };
        let length = PAGE.min(self.len() - start) as usize;
        match &*self.0 {
            Source::Memory(bytes) => {
                Ok(Found { bytes: bytes.slice(start as usize..start as usize + length), is_fresh: false })
            }
            Source::Disk(disk) => disk.page(number, start, length, access),
        }
    }

    /// A few bytes from `start` on, all of which the file has to have: at the cost of one search in
    /// the cache where they do not cross a page.
    pub fn record(&self, start: u64, length: usize, access: Access) -> Result<Found, IndexError> {
        let (number, skipped) = (start / PAGE, (start % PAGE) as usize);
        let ends = || IndexError::from(Malformed::at(start, "the file ends in a record"));
        if skipped + length <= PAGE_SIZE {
            let found = self.found(number, access)?;
            if found.bytes.len() < skipped + length {
                return Err(ends());
            }
            return Ok(Found { bytes: found.bytes.slice(skipped..skipped + length), ..found });
        }
        let mut joined = Vec::with_capacity(length);
        let mut is_fresh = false;
        for number in number.. {
            let found = self.found(number, access)?;
            is_fresh |= found.is_fresh;
            let from = if joined.is_empty() { skipped } else { 0 };
            let to = found.bytes.len().min(from + length - joined.len());
            joined.extend_from_slice(found.bytes.get(from..to).ok_or_else(ends)?);
            if joined.len() >= length {
                break;
            }
        }
        Ok(Found { bytes: joined.into(), is_fresh })
    }

    /// The bytes from `start` on, `length` of them or as many as the file has.
    pub fn bytes(&self, start: u64, length: usize, access: Access) -> Result<Bytes, IndexError> {
        Pages::new(self.clone(), access).bytes(start, length)
    }
}

/// Bytes of a file.
#[derive(Clone, Debug)]
pub struct Found {
    pub bytes: Bytes,
    /// A page of them came from the disk, not from the cache.
    pub is_fresh: bool,
}

/// Pages that a search has at hand: on its way down a trie it meets three or four, and walks go up
/// and down between the last ones.
const PAGES_HELD: usize = 4;

/// A file with the pages that a search has at hand.
#[derive(Clone, Debug)]
pub struct Pages {
    file: IndexFile,
    access: Access,
    /// Each with its number.
    held: [Option<(u64, Bytes)>; PAGES_HELD],
    /// The slot that the next page goes to.
    next: usize,
}

impl Pages {
    /// None at hand yet.
    pub fn new(file: IndexFile, access: Access) -> Self {
        Self { file, access, held: Default::default(), next: 0 }
    }

    /// Bytes of the file.
    pub fn len(&self) -> u64 {
        self.file.len()
    }

    /// From here on the disk may be waited for.
    pub fn wait(&mut self) {
        self.access.mode = ReadMode::Background;
    }

    /// The page of that number.
    #[inline]
    pub fn page(&mut self, number: u64) -> Result<&Bytes, IndexError> {
        let has = |slot: &Option<(u64, Bytes)>| slot.as_ref().is_some_and(|(held, _)| *held == number);
        let slot = match self.held.iter().position(has) {
            Some(slot) => slot,
            None => self.load(number)?,
        };
        let page = self.held.get(slot).and_then(Option::as_ref);
        Ok(&page.expect("the slot was found or has just been filled").1)
    }

    fn load(&mut self, number: u64) -> Result<usize, IndexError> {
        let page = self.file.page(number, self.access)?;
        let slot = self.next;
        self.held[slot] = Some((number, page));
        self.next = (slot + 1) % PAGES_HELD;
        Ok(slot)
    }

    /// The bytes from `start` on, `length` of them or as many as the file has.
    pub fn bytes(&mut self, start: u64, length: usize) -> Result<Bytes, IndexError> {
        let end = start.saturating_add(length as u64).min(self.len());
        if start >= end {
            return Ok(Bytes::new());
        }
        let (first, last) = (start / PAGE, (end - 1) / PAGE);
        let skipped = (start % PAGE) as usize;
        if first == last {
            return Ok(self.page(first)?.slice(skipped..skipped + (end - start) as usize));
        }
        let mut joined = Vec::with_capacity((end - start) as usize);
        for number in first..=last {
            let page = self.page(number)?;
            let from = if number == first { skipped } else { 0 };
            let to = ((end - number * PAGE) as usize).min(page.len());
            joined.extend_from_slice(page.get(from..to).unwrap_or_default());
        }
        assert_eq!(joined.len() as u64, end - start, "pages of an index cover it without gaps");
        Ok(joined.into())
    }
}

impl OnDisk {
    fn page(&self, number: u64, start: u64, length: usize, access: Access) -> Result<Found, IndexError> {
        let cached = match access.keeps {
            true => self.cache.chunk(self.id, number),
            false => self.cache.chunk_for_scan(self.id, number),
        };
        if let Some(bytes) = cached {
            return Ok(Found { bytes, is_fresh: false });
        }
        let mut page = vec![0; length];
        let done = match access.mode {
            ReadMode::Inline => self.file.read_at_nowait(&mut page, start),
            ReadMode::Background => self.file.read_at(&mut page, start).map(|()| true),
        };
        if !done.map_err(|error| self.error(start, &error))? {
            return Err(ReadError::WouldBlock.into());
        }
        let bytes = Bytes::from(page);
        if access.keeps {
            self.cache.insert_chunk(self.id, number, &bytes);
        }
        Ok(Found { bytes, is_fresh: true })
    }

    fn error(&self, offset: u64, error: &io::Error) -> IndexError {
        match error.kind() {
            io::ErrorKind::UnexpectedEof => Malformed::at(offset, "the file ends in a page").into(),
            _ => ReadError::Io { path: self.path.clone(), message: format!("offset {offset}: {error}") }.into(),
        }
    }
}

impl Drop for OnDisk {
    fn drop(&mut self) {
        self.cache.forget(self.id, self.file.len().div_ceil(PAGE));
    }
}
