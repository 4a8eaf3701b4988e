//! The hints of a node: in memory until the writer has put them into files, and the files by host.
//!
//! [`HintStore::add`] copies an entry into the buffer of its host and never waits. The writer
//! ([`crate::writer`], one background task) puts the buffers into the hosts' files and syncs them:
//! after `hints_flush_period`, at once when a quarter of the room is used, and at once when a
//! caller waits for [`HintStore::durable`]. A sender of hints takes the files of a host one after
//! the other ([`HintStore::take_file`]) and gives each back: [`HintStore::remove_sent`],
//! [`HintStore::put_back`] or [`HintStore::set_corrupted`].
//!
//! Bounds: [`crate::shared::BUFFER_SIZE_MAX`] in memory, beyond which a hint is refused and
//! counted; on the disk `max_hints_size_per_host`, which the caller compares with
//! [`HintStore::size`].
//!
//! What must hold: bytes leave a buffer only when a sync has covered them in a file, or when the
//! hints of their host are removed; a host has one open file at most and one that is being sent.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use env::rare::{Rare, happens};
use env::{Env, Wake};

use crate::blocks::Compression;
use crate::descriptor::{HostId, Version};
use crate::entry::Entry;
use crate::error::HintError;
use crate::files::{HintFile, Host, PendingHints};
use crate::found_files;
use crate::shared::{BUFFER_SIZE_EAGER, BUFFER_SIZE_MAX, ENTRY_SIZE_MAX, Figures, Settings, Shared, State};
use crate::writer;

/// How a store is opened.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// `hints_directory`
    pub directory: PathBuf,
    /// The version of new files, which follows from the version of the ring's messages.
    pub version: Version,
    /// `hints_compression`
    pub compression: Option<Compression>,
    /// Sizes and times.
    pub settings: Settings,
}

/// The hints of a node. Dropping it ends its writer without a last sync: see [`HintStore::close`].
pub struct HintStore {
    pub(crate) shared: Arc<Shared>,
    writer: Wake,
}

impl HintStore {
    /// Opens the store of a directory, which is made if it is not there, and starts the writer.
    pub fn open(env: &Env, options: StoreOptions) -> Result<Self, HintError> {
        let StoreOptions { directory, version, compression, settings } = options;
        env.disk.create_dir_durable(&directory)?;
        let mut state = State::default();
        let (files, left_alone) = found_files::find_files(env.disk.as_ref(), &directory)?;
        for file in files {
            state.last_millis = state.last_millis.max(file.descriptor.millis);
            state.hosts.entry(file.descriptor.host_id).or_default().files.push_back(file);
        }
        let (state, outputs, figures) = (Mutex::new(state), Mutex::default(), Figures::default());
        let shared = Arc::new(Shared {
            env: env.clone(),
            directory,
            version,
            compression,
            settings,
            left_alone,
            state,
            outputs,
            figures,
        });
        let of_writer = Arc::downgrade(&shared);
        let step = move || of_writer.upgrade().map_or(env::Next::Done, |shared| writer::step(&shared));
        let writer = env.tasks.background("hints", Box::new(step));
        Ok(Self { shared, writer })
    }

    /// Whether a hint is small enough to be taken at all.
    pub fn fits_in_memory(entry: &Entry) -> bool {
        entry.bytes().len() <= ENTRY_SIZE_MAX
    }

    /// Takes a hint for a host. False: there is no room for it.
    pub fn add(&self, host_id: HostId, entry: &Entry) -> bool {
        let size = entry.bytes().len();
        let mut state = self.shared.state();
        let has_no_room = state.buffered + size > BUFFER_SIZE_MAX || happens(Rare::HintIsRefused);
        if state.is_closed || !Self::fits_in_memory(entry) || has_no_room {
            drop(state);
            self.shared.figures.refused.add(1);
            return false;
        }
        state.hosts.entry(host_id).or_default().buffer.extend_from_slice(entry.bytes());
        let was_empty = state.buffered_since.is_none();
        state.buffered_since.get_or_insert_with(|| self.shared.env.now());
        let before = state.buffered;
        state.buffered += size;
        state.added += 1;
        let is_full = before < BUFFER_SIZE_EAGER && state.buffered >= BUFFER_SIZE_EAGER;
        drop(state);
        self.shared.figures.added.add(1);
        if was_empty || is_full {
            self.writer.wake();
        }
        true
    }

    /// Completes when every hint that was taken before is on the disk. `Err`: an attempt to write
    /// them has failed; they may become durable yet.
    pub fn durable(&self) -> HintsDurable {
        let upto = self.shared.state().added;
        HintsDurable { shared: Arc::clone(&self.shared), writer: self.writer.clone(), upto }
    }

    /// The figures.
    pub fn figures(&self) -> &Figures {
        &self.shared.figures
    }

    /// Bytes kept for a host.
    pub fn size(&self, host_id: &HostId) -> u64 {
        self.shared.state().hosts.get(host_id).map_or(0, Host::size)
    }

    /// When the oldest file of a host was begun, milliseconds since 1970.
    pub fn oldest_millis(&self, host_id: &HostId) -> Option<i64> {
        self.shared.state().hosts.get(host_id).and_then(Host::oldest_millis)
    }

    /// The hosts that have hints which are not being sent.
    pub fn hosts(&self) -> Vec<HostId> {
        let state = self.shared.state();
        state.hosts.iter().filter(|(_, host)| host.has_hints()).map(|(host_id, _)| *host_id).collect()
    }

    /// Whether nothing waits for any host, and nothing is being sent. Files that cannot be read do
    /// not count.
    pub fn is_empty(&self) -> bool {
        self.shared.state().hosts.values().all(|host| !host.has_hints() && host.sending.is_none())
    }

    /// The names of the files that are there and cannot be read: their hints are sent to nobody.
    /// Waits for the disk.
    pub fn left_alone(&self) -> Vec<String> {
        let state = self.shared.state();
        let corrupted = state.hosts.values().flat_map(|host| &host.corrupted).map(|file| file.descriptor.file_name());
        let mut names: Vec<String> = self.shared.left_alone.iter().cloned().chain(corrupted).collect();
        drop(state);
        // an operator may have taken some of the files away
        names.retain(|name| self.shared.env.disk.exists(&self.shared.directory.join(name)));
        names
    }

    /// The hints that wait in files.
    pub fn pending(&self) -> Vec<PendingHints> {
        let state = self.shared.state();
        state.hosts.iter().filter_map(|(host_id, host)| host.pending(*host_id)).collect()
    }

    /// The oldest file of a host, which the caller sends. If there is none, the file that is being
    /// written is completed with the hints in memory and closed. None: no hint waits, or a file is
    /// being sent already. Waits for the disk.
    pub fn take_file(&self, host_id: &HostId) -> Option<HintFile> {
        if let Some(file) = self.shared.state().take(host_id) {
            return Some(file);
        }
        if self.shared.state().hosts.get(host_id).is_none_or(|host| host.sending.is_some()) {
            return None;
        }
        writer::close_file(&self.shared, host_id);
        self.shared.state().take(host_id)
    }

    /// The path of a file of this store.
    pub fn path(&self, file: &HintFile) -> PathBuf {
        file.path(&self.shared.directory)
    }

    /// Removes a file that was sent as a whole.
    pub fn remove_sent(&self, file: HintFile) {
        self.shared.state().end_sending(&file);
        self.shared.remove(&file);
    }

    /// Takes back a file that was not sent as a whole, as the next one to be taken. It is removed
    /// if the hints of its host were removed meanwhile.
    pub fn put_back(&self, file: HintFile) {
        let mut state = self.shared.state();
        if state.end_sending(&file) {
            drop(state);
            return self.shared.remove(&file);
        }
        state.hosts.entry(file.descriptor.host_id).or_default().files.push_front(file);
    }

    /// Takes back a file that cannot be read to its end: it stays on the disk and is left alone.
    pub fn set_corrupted(&self, file: HintFile) {
        let mut state = self.shared.state();
        if state.end_sending(&file) {
            drop(state);
            return self.shared.remove(&file);
        }
        state.hosts.entry(file.descriptor.host_id).or_default().corrupted.push(file);
    }

    /// Removes the files that wait for a host, or without a host all of them. A file that is being
    /// sent is removed when it comes back; the file that is being written stays.
    pub fn truncate(&self, host_id: Option<&HostId>) {
        let mut removed = Vec::new();
        let mut state = self.shared.state();
        for (id, host) in &mut state.hosts {
            if host_id.is_none_or(|wanted| wanted == id) {
                removed.extend(host.files.drain(..));
                removed.append(&mut host.corrupted);
                host.is_forgotten = host.sending.is_some();
            }
        }
        drop(state);
        removed.iter().for_each(|file| self.shared.remove(file));
    }

    /// Removes all hints of a host that has left the ring. Waits for the disk.
    pub fn forget(&self, host_id: &HostId) {
        if self.shared.state().hosts.contains_key(host_id) {
            writer::close_file(&self.shared, host_id);
            self.truncate(Some(host_id));
            let mut state = self.shared.state();
            if state.hosts.get(host_id).is_some_and(|host| !host.has_hints() && host.sending.is_none()) {
                state.hosts.remove(host_id);
            }
        }
    }

    /// Writes the hints in memory and closes all files; further hints are refused. Waits for the
    /// disk.
    pub fn close(&self) {
        self.shared.state().is_closed = true;
        self.close_files();
    }

    /// Writes the hints in memory and closes all files. Gives when the last file was begun,
    /// milliseconds since 1970: those that are begun later have a later time. Waits for the disk.
    pub fn close_files(&self) -> i64 {
        let hosts: Vec<HostId> = self.shared.state().hosts.keys().copied().collect();
        hosts.iter().for_each(|host_id| writer::close_file(&self.shared, host_id));
        self.shared.state().last_millis
    }
}

/// The wait of [`HintStore::durable`].
#[must_use = "hints are on the disk only when this completes"]
pub struct HintsDurable {
    shared: Arc<Shared>,
    writer: Wake,
    upto: u64,
}

/// Hints could not be written to the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotWritten;

impl Future for HintsDurable {
    type Output = Result<(), NotWritten>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.shared.state();
        if state.durable >= self.upto {
            return Poll::Ready(Ok(()));
        }
        if state.failed >= self.upto {
            return Poll::Ready(Err(NotWritten));
        }
        if !state.waiting.iter().any(|waker| waker.will_wake(context.waker())) {
            state.waiting.push(context.waker().clone());
        }
        let was_urgent = std::mem::replace(&mut state.is_urgent, true);
        drop(state);
        if !was_urgent {
            self.writer.wake();
        }
        Poll::Pending
    }
}
