//! The files of one host, as the store knows them.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use crate::descriptor::{Descriptor, HostId};
use crate::reader::Position;

/// A file to which nothing is written any more.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HintFile {
    /// The head of the file.
    pub descriptor: Descriptor,
    /// Bytes on the disk.
    pub size: u64,
    /// Everything before this position was taken by the host.
    pub sent: Position,
    /// The hints that the host has taken of the page that begins at `sent`, by their indexes in
    /// the page. Known in memory only: after a restart the whole page is sent again.
    pub taken: BTreeSet<usize>,
}

impl HintFile {
    /// The path of the file.
    pub fn path(&self, directory: &Path) -> PathBuf {
        directory.join(self.descriptor.file_name())
    }
}

/// The hints that wait for one host, as operators see them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PendingHints {
    /// The host.
    pub host_id: HostId,
    /// Number of files that wait, including the one that is being sent.
    pub files: usize,
    /// Bytes of these files.
    pub size: u64,
    /// When the newest of these files was begun, milliseconds since 1970.
    pub newest_millis: i64,
    /// When the oldest of these files was begun, milliseconds since 1970.
    pub oldest_millis: i64,
    /// Number of files that cannot be read and are left alone.
    pub corrupted_files: usize,
    /// Bytes of the files that cannot be read.
    pub corrupted_size: u64,
}

/// The hints of one host, in memory and on the disk.
#[derive(Default)]
pub(crate) struct Host {
    /// Entries that are in no file yet.
    pub buffer: Vec<u8>,
    /// The file that is being written: when it was begun, milliseconds since 1970, and its bytes.
    /// None: no file is.
    pub open: Option<(i64, u64)>,
    /// Files that wait, oldest first.
    pub files: VecDeque<HintFile>,
    /// The file that is being sent: when it was begun, milliseconds since 1970, and its bytes.
    /// None: no file is.
    pub sending: Option<(i64, u64)>,
    /// Files that cannot be read.
    pub corrupted: Vec<HintFile>,
    /// True: the file that is being sent is removed as soon as it comes back, with all hints of
    /// this host.
    pub is_forgotten: bool,
}

impl Host {
    /// Bytes on the disk and in memory.
    pub fn size(&self) -> u64 {
        let files: u64 = self.files.iter().chain(&self.corrupted).map(|file| file.size).sum();
        let of = |file: Option<(i64, u64)>| file.map_or(0, |(_, size)| size);
        files + of(self.open) + of(self.sending) + self.buffer.len() as u64
    }

    /// When the oldest file was begun, milliseconds since 1970; None: there is no file.
    pub fn oldest_millis(&self) -> Option<i64> {
        let sending = self.sending.map(|(millis, _)| millis);
        sending.or(self.files.front().map(|file| file.descriptor.millis)).or(self.open.map(|(millis, _)| millis))
    }

    /// Whether any hint waits, on the disk or in memory.
    pub fn has_hints(&self) -> bool {
        !self.buffer.is_empty() || self.open.is_some() || !self.files.is_empty()
    }

    pub fn pending(&self, host_id: HostId) -> Option<PendingHints> {
        let waiting = self.files.iter().map(|file| (file.descriptor.millis, file.size));
        let all: Vec<(i64, u64)> = self.sending.into_iter().chain(waiting).chain(self.open).collect();
        let (oldest_millis, newest_millis) =
            (all.iter().map(|file| file.0).min()?, all.iter().map(|file| file.0).max()?);
        Some(PendingHints {
            host_id,
            files: all.len(),
            size: all.iter().map(|file| file.1).sum(),
            newest_millis,
            oldest_millis,
            corrupted_files: self.corrupted.len(),
            corrupted_size: self.corrupted.iter().map(|file| file.size).sum(),
        })
    }
}
