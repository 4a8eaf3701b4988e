//! The state of a store: buffers and lists, which the store, its writer and its waits share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use env::{Env, Instant};
use metrics::Counter;

use crate::blocks::Compression;
use crate::descriptor::{HostId, Version};
use crate::files::{HintFile, Host};
use crate::output::Output;

/// Most bytes of hints of all hosts that wait in memory for the writer
/// (`HintsService.MIN_BUFFER_SIZE`). A further hint is refused.
pub const BUFFER_SIZE_MAX: usize = 32 << 20;
/// Bytes from which on the writer does not wait for `hints_flush_period`.
pub(crate) const BUFFER_SIZE_EAGER: usize = BUFFER_SIZE_MAX / 4;
/// Most bytes of an entry. A larger one is refused, as Cassandra refuses one that is larger than
/// half a buffer.
pub const ENTRY_SIZE_MAX: usize = BUFFER_SIZE_MAX / 2;
/// The shortest pause between two attempts at writing after one has failed, where
/// `hints_flush_period` is shorter or 0. Otherwise a full disk would keep a core busy, and fill the
/// log with a warning for each attempt.
pub(crate) const RETRY_PAUSE_MIN: Duration = Duration::from_secs(1);

const _: () = {
    assert!(BUFFER_SIZE_EAGER < BUFFER_SIZE_MAX, "the writer begins before hints are refused");
    assert!(ENTRY_SIZE_MAX <= BUFFER_SIZE_MAX, "the largest entry finds room in an empty buffer");
    assert!(ENTRY_SIZE_MAX <= i32::MAX as usize, "the size of an entry is a number of a file");
};

/// Sizes and times of a store.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// `max_hints_file_size` in bytes: a file that has reached it is closed.
    pub file_size_max: u64,
    /// `hints_flush_period`
    pub flush_period: Duration,
}

impl Default for Settings {
    /// The values of cassandra.yaml of 5.0.
    fn default() -> Self {
        Self { file_size_max: 128 << 20, flush_period: Duration::from_secs(10) }
    }
}

/// Figures of a store since it was opened.
#[derive(Default, Debug)]
pub struct Figures {
    /// Hints that were taken, one for each host.
    pub added: Counter,
    /// Hints that were refused because memory was full.
    pub refused: Counter,
    /// Attempts at writing files that failed; their hints are kept in memory and written again.
    pub failed_writes: Counter,
}

/// The part of a store that its writer and its waits share.
pub(crate) struct Shared {
    pub env: Env,
    pub directory: PathBuf,
    pub version: Version,
    pub compression: Option<Compression>,
    pub settings: Settings,
    /// The names of the files that could not be read when the store was opened.
    pub left_alone: Vec<String>,
    /// Guards buffers and lists: a copy or a look-up, never I/O.
    pub state: Mutex<State>,
    /// The files that are being written. Held during I/O, by the writer and by callers that close
    /// files; taken before `state`.
    pub outputs: Mutex<BTreeMap<HostId, Output>>,
    pub figures: Figures,
}

#[derive(Default)]
pub(crate) struct State {
    pub hosts: BTreeMap<HostId, Host>,
    /// Bytes in the buffers, those that are being written included.
    pub buffered: usize,
    /// When the oldest of the buffered bytes came; None: there are none.
    pub buffered_since: Option<Instant>,
    /// Number of hints taken so far, which is the number of the last one.
    pub added: u64,
    /// Every hint up to this number is on the disk, or was removed.
    pub durable: u64,
    /// An attempt to write every hint up to this number has failed.
    pub failed: u64,
    /// True: a caller waits for the disk, and the writer writes at once.
    pub is_urgent: bool,
    pub waiting: Vec<Waker>,
    /// The time of the last file, milliseconds since 1970; it makes the names of files unique.
    pub last_millis: i64,
    pub is_closed: bool,
}

impl Shared {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes a file: first the checksum, so that a file that a crash leaves without one is
    /// checked at the next start.
    pub fn remove(&self, file: &HintFile) {
        let checksum = self.directory.join(file.descriptor.checksum_name());
        let path = file.path(&self.directory);
        let removed = match self.env.disk.remove_file(&checksum) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => self.env.disk.remove_file(&path),
        };
        if let Err(error) = removed {
            tracing::warn!(path = %path.display(), %error, "a hint file cannot be removed; its hints are sent again after the next start");
        }
    }
}

impl State {
    pub fn take(&mut self, host_id: &HostId) -> Option<HintFile> {
        let host = self.hosts.get_mut(host_id).filter(|host| host.sending.is_none())?;
        let file = host.files.pop_front()?;
        let is_oldest = |other: &HintFile| file.descriptor.millis <= other.descriptor.millis;
        debug_assert!(host.files.iter().all(is_oldest), "the file that is sent is the oldest one of its host");
        host.sending = Some((file.descriptor.millis, file.size));
        Some(file)
    }

    /// Called when the caller gives back the file that was being sent. True: it has to be removed.
    pub fn end_sending(&mut self, file: &HintFile) -> bool {
        let Some(host) = self.hosts.get_mut(&file.descriptor.host_id) else { return true };
        assert_eq!(host.sending, Some((file.descriptor.millis, file.size)), "the file that comes back was taken");
        host.sending = None;
        std::mem::take(&mut host.is_forgotten)
    }

    /// Takes the wakers of those who wait for the disk.
    pub fn wake_all(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.waiting)
    }
}
