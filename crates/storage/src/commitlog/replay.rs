//! Replay: the records that the log holds at the start, in order (Cassandra's `CommitLogReplayer`,
//! without looking into mutations).
//!
//! Opening cuts a torn tail by zeroing it (its bytes are kept beside the log: `torn`), before any
//! newer segment can exist; so a second crash finds a clean end there, and from then on everything
//! unreadable is corruption. Segments that were prepared and never written are empty, and follow
//! the last one in use.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use env::{Disk, Env};

use super::buffer::{FILE_LEN_MAX, SegmentBuffer};
use super::compressed::Places;
use super::reader::{Bad, Item, SegmentReader};
use super::segments::{Segment, TEMPORARY};
use super::{LogError, LogPosition, ReplayPolicy, compressed, format, torn};

/// Whether a file is one that this log made on the way to a segment.
fn is_ours(name: &str) -> bool {
    name.starts_with("CommitLog-") || name.starts_with("spare")
}

/// The position at which a record ends, and its bytes; None: the record was not wanted.
type Seen = (LogPosition, Option<Bytes>);

/// The records of all segments found at start, in order. Ends after an error. One segment at a time
/// is in memory, in a buffer that the next one takes over where nobody holds a record any more.
pub struct Replay {
    disk: Arc<dyn Disk>,
    policy: ReplayPolicy,
    files: Vec<(u64, PathBuf)>,
    /// Number of segments at the front that hold records, or may.
    used: usize,
    /// Segments of which nothing is read.
    left_out: BTreeSet<u64>,
    next: usize,
    buffer: SegmentBuffer,
    current: Option<(PathBuf, SegmentReader)>,
    /// The segment whose unreadable end is a torn tail that was not cut, because nothing may be
    /// written. None: there is none.
    torn: Option<PathBuf>,
    failed: bool,
}

impl Replay {
    pub(super) fn open(env: &Env, directory: &Path, policy: ReplayPolicy) -> Result<Replay, LogError> {
        let disk = env.disk.clone();
        for entry in disk.list_dir(directory).map_err(LogError::io(directory))? {
            // `CommitLog-…`: what else ends so is not ours
            if entry.name.ends_with(TEMPORARY) && is_ours(&entry.name) {
                let path = directory.join(&entry.name);
                disk.remove_file(&path).map_err(LogError::io(&path))?;
            }
        }
        let mut replay = Self::of_directory(disk, directory, policy)?;
        replay.settle_tail()?;
        Ok(replay)
    }

    /// Opens a replay that leaves the segments as they are; a directory that does not exist has
    /// none.
    pub(super) fn open_read_only(env: &Env, directory: &Path, policy: ReplayPolicy) -> Result<Replay, LogError> {
        let disk = env.disk.clone();
        if !disk.exists(directory) {
            return Ok(Self::of_files(disk, policy, Vec::new()));
        }
        let mut replay = Self::of_directory(disk, directory, policy)?;
        replay.torn = replay.last_in_use()?;
        Ok(replay)
    }

    fn of_directory(disk: Arc<dyn Disk>, directory: &Path, policy: ReplayPolicy) -> Result<Replay, LogError> {
        let mut files = Vec::new();
        for entry in disk.list_dir(directory).map_err(LogError::io(directory))? {
            if let Some((_, id)) = format::parse_file_name(&entry.name) {
                files.push((id, directory.join(&entry.name)));
            }
        }
        files.sort();
        Ok(Self::of_files(disk, policy, files))
    }

    fn of_files(disk: Arc<dyn Disk>, policy: ReplayPolicy, files: Vec<(u64, PathBuf)>) -> Replay {
        let (used, left_out, buffer) = (files.len(), BTreeSet::new(), SegmentBuffer::default());
        Replay { disk, policy, files, used, left_out, next: 0, buffer, current: None, torn: None, failed: false }
    }

    fn file(&self, index: usize) -> Option<(u64, PathBuf)> {
        self.files.get(index).cloned()
    }

    /// The last segment that holds records. Those behind it are not read again.
    fn last_in_use(&mut self) -> Result<Option<PathBuf>, LogError> {
        while let Some((id, path)) = self.used.checked_sub(1).and_then(|last| self.file(last)) {
            match self.read_segment(id, &path) {
                Ok(Some((reader, _))) => {
                    let is_blank = reader.is_blank();
                    self.buffer.take_back(reader.into_content());
                    if !is_blank {
                        return Ok(Some(path));
                    }
                }
                Ok(None) => {}
                Err(LogError::Corrupt { .. }) => return Ok(None),
                Err(error) => return Err(error),
            }
            self.used -= 1;
        }
        Ok(None)
    }

    /// Begins again with the first record.
    pub fn rewind(&mut self) {
        if let Some((_, reader)) = self.current.take() {
            self.buffer.take_back(reader.into_content());
        }
        (self.next, self.failed) = (0, false);
    }

    /// Nothing is read of these segments.
    pub(super) fn leave_out(&mut self, segments: BTreeSet<u64>) {
        self.left_out = segments;
    }

    /// The segments that hold something, or may, and their files, in order.
    pub(super) fn used(&self) -> impl Iterator<Item = (u64, &Path)> {
        self.files.iter().take(self.used).map(|(id, path)| (*id, path.as_path()))
    }

    /// The segments with the bytes of their files.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (u64, u64)> {
        self.files.iter().map(|(id, path)| (*id, self.disk.file_len(path).unwrap_or(0)))
    }

    /// The highest segment id in use.
    pub(super) fn last_id(&self) -> Option<u64> {
        self.files.last().map(|(id, _)| *id)
    }

    pub(super) fn segments(&self) -> BTreeMap<u64, Segment> {
        let size = |path: &PathBuf| self.disk.file_len(path).unwrap_or(0);
        self.files.iter().map(|(id, path)| (*id, Segment::replayed(path.clone(), size(path)))).collect()
    }

    /// Settles the last segment in use: what cannot be read at its end becomes zeros, unless
    /// sections follow, in which case it is no tail; and its last section is written and synced
    /// again. That section may be in the kernel's memory only, because its writer died before the
    /// sync, or the sync failed, which Linux forgets. A later power cut could then tear a section
    /// that is not the last one any more.
    fn settle_tail(&mut self) -> Result<(), LogError> {
        while let Some((id, path)) = self.used.checked_sub(1).and_then(|last| self.file(last)) {
            match self.read_segment(id, &path) {
                Ok(Some((reader, unpacked))) if !reader.is_blank() => {
                    return self.settle_segment(&path, reader, unpacked.as_ref());
                }
                Ok(Some((reader, _))) => self.buffer.take_back(reader.into_content()),
                Ok(None) => {}
                Err(LogError::Corrupt { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
            self.used -= 1;
        }
        Ok(())
    }

    fn settle_segment(
        &mut self,
        path: &Path,
        mut reader: SegmentReader,
        unpacked: Option<&Places>,
    ) -> Result<(), LogError> {
        let bad = reader.find_map(|item| match item {
            Item::Entry(..) | Item::Unwanted(_) => None,
            Item::Bad(bad) => Some(bad),
        });
        let settled = match (bad, unpacked) {
            (Some(Bad { followed: true, .. }), _) => Ok(()),
            (bad, Some(unpacked)) => self.settle_compressed(path, reader.last_section().0, unpacked, bad),
            (bad, None) => self.rewrite_tail(path, &reader, bad),
        };
        self.buffer.take_back(reader.into_content());
        settled
    }

    fn rewrite_tail(&self, path: &Path, reader: &SegmentReader, bad: Option<Bad>) -> Result<(), LogError> {
        let (start, end) = reader.last_section();
        let mut tail = reader.content().get(start as usize..).unwrap_or_default().to_vec();
        match bad {
            Some(Bad { offset, reason, .. }) => {
                let kept = (offset.saturating_sub(start) as usize).min(tail.len());
                let torn = tail.get_mut(kept..).expect("not longer than the tail");
                torn::keep(&*self.disk, path, offset, reason, torn);
                torn.fill(0);
            }
            None => tail.truncate((end - start) as usize),
        }
        let mut file = self.disk.open_write(path).map_err(LogError::io(path))?;
        let written = file.write_at(&tail, u64::from(start));
        written.and_then(|()| file.sync_data()).map_err(LogError::io(path))
    }

    /// Cuts off a torn compressed section as a whole: the file ends where it began.
    fn settle_compressed(&self, path: &Path, last: u32, places: &Places, bad: Option<Bad>) -> Result<(), LogError> {
        let mut file = self.disk.open_write(path).map_err(LogError::io(path))?;
        let settled = match bad {
            Some(Bad { offset, reason, .. }) => {
                let start = places.stored(offset).0;
                let length = self.disk.file_len(path).unwrap_or(0).saturating_sub(start.into());
                let mut torn = vec![0; usize::try_from(length.min(FILE_LEN_MAX)).unwrap_or(0)];
                let read = self.disk.open_read(path).and_then(|file| file.read_at(&mut torn, start.into()));
                read.map_err(LogError::io(path))?;
                torn::keep(&*self.disk, path, start, reason, &torn);
                file.set_len(u64::from(start))
            }
            None => {
                let (start, end) = places.stored(last);
                let mut section = vec![0; end.saturating_sub(start) as usize];
                let read = self.disk.open_read(path).and_then(|file| file.read_at(&mut section, u64::from(start)));
                read.and_then(|()| file.write_at(&section, u64::from(start)))
            }
        };
        settled.and_then(|()| file.sync_data()).map_err(LogError::io(path))
    }

    /// A reader of a segment, and where its sections are stored if it is compressed; `None` when
    /// the file holds only zeros.
    fn read_segment(&mut self, id: u64, path: &Path) -> Result<Option<(SegmentReader, Option<Places>)>, LogError> {
        let read = self.disk.open_read(path).and_then(|file| self.buffer.read(&*file));
        let content = read.map_err(LogError::io(path))?;
        let Some(header) = format::read_header(&content) else {
            let is_blank = format::zeros(&content) == content.len();
            self.buffer.take_back(content);
            if is_blank {
                return Ok(None);
            }
            return Err(LogError::Corrupt { path: path.to_owned(), offset: 0, reason: "unreadable segment header" });
        };
        if !format::VERSIONS_READ.contains(&header.version) {
            let what = format!("version {}", header.version);
            return Err(LogError::Unsupported { path: path.to_owned(), what });
        }
        if header.id != id {
            let reason = "the segment's id differs from its file name";
            return Err(LogError::Corrupt { path: path.to_owned(), offset: 4, reason });
        }
        if header.is_plain() {
            return Ok(Some((SegmentReader::new(content, id, header.len), None)));
        }
        let unsupported = |what| LogError::Unsupported { path: path.to_owned(), what };
        let compressor = compressed::compressor(&header).map_err(unsupported)?;
        let (plain, places) = compressed::unpack(&content, &header, compressor);
        self.buffer.take_back(content);
        Ok(Some((SegmentReader::new(Bytes::from(plain), id, header.len), Some(places))))
    }

    /// Opens the next segment; `false` when there is none.
    fn open_next(&mut self) -> Result<bool, LogError> {
        let Some((id, path)) = self.file(self.next).filter(|_| self.next < self.used) else {
            return Ok(false);
        };
        self.next += 1;
        if self.left_out.contains(&id) {
            return Ok(true);
        }
        match self.read_segment(id, &path) {
            Ok(segment) => self.current = segment.map(|(reader, _)| (path, reader)),
            Err(error @ LogError::Corrupt { .. }) if self.policy == ReplayPolicy::Ignore => {
                tracing::warn!(%error, "ignored in replay, as configured");
            }
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    fn corrupt(&self, path: &Path, bad: Bad) -> Result<(), LogError> {
        if !bad.followed && self.torn.as_deref() == Some(path) {
            tracing::info!(path = %path.display(), bad.offset, bad.reason, "passing over the torn tail of the commit log");
            return Ok(());
        }
        let error = LogError::Corrupt { path: path.to_owned(), offset: bad.offset, reason: bad.reason };
        if self.policy == ReplayPolicy::Stop {
            return Err(error);
        }
        tracing::warn!(%error, "ignored in replay, as configured");
        Ok(())
    }

    fn advance(&mut self, wanted: &dyn Fn(&[u8]) -> bool) -> Result<Option<Seen>, LogError> {
        loop {
            let Some((path, mut reader)) = self.current.take() else {
                if self.open_next()? {
                    continue;
                }
                return Ok(None);
            };
            let seen = match reader.next_wanted(wanted) {
                Some(Item::Entry(position, record)) => Some((position, Some(record))),
                Some(Item::Unwanted(position)) => Some((position, None)),
                Some(Item::Bad(bad)) => {
                    self.corrupt(&path, bad)?;
                    None
                }
                None => {
                    self.buffer.take_back(reader.into_content());
                    continue;
                }
            };
            self.current = Some((path, reader));
            if seen.is_some() {
                return Ok(seen);
            }
        }
    }

    /// The next record, with its bytes if they are wanted. The checksum of an unwanted record is
    /// not looked at; this is for callers that read all of them later.
    pub fn next_wanted(&mut self, wanted: &dyn Fn(&[u8]) -> bool) -> Option<Result<Seen, LogError>> {
        if self.failed {
            return None;
        }
        let item = self.advance(wanted).transpose();
        self.failed = matches!(item, Some(Err(_)));
        item
    }
}

impl Iterator for Replay {
    type Item = Result<(LogPosition, Bytes), LogError>;

    fn next(&mut self) -> Option<Self::Item> {
        let seen = self.next_wanted(&|_| true)?;
        Some(seen.map(|(position, record)| (position, record.expect("all are wanted"))))
    }
}
