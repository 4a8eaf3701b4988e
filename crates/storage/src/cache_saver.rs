//! The cache saver: one background task that removes cache entries of removed files, saves which
//! entries are hot, and after a start reads them again.
//!
//! - Saving: by period, and when the node is drained. A file is replaced as one durable step; a
//!   crash leaves the old one or the new one.
//! - Loading begins when the node is ready ([`Engine::load_caches`]), goes on at
//!   [`LOAD_BYTES_PER_SECOND`] at most, and ends at `cache_load_timeout` wherever it is. A file
//!   that cannot be read is named once in the log, and removed.
//!
//! Agrees in role with `org.apache.cassandra.cache.AutoSavingCache`.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use env::{Instant, Next};
use schema::TableId;
use types::DecoratedKey;

use crate::caches::saved::{self, HotEntries, Kind, SAVED_FILE_MAX};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::options::SavedCaches;
use crate::requests::cache_saver::{CacheSaver, Loading};
use crate::table::TableStore;
use sstable::SSTable;

/// Bytes of chunks a second that are read again after a start: a tenth or so of what a disk gives.
pub const LOAD_BYTES_PER_SECOND: u64 = 64 << 20;
/// Bytes of chunks that are read in one step.
const LOAD_STEP_BYTES: u64 = 4 << 20;
/// Bytes for which a key counts: reading it again reads an index, or a block or two.
const KEY_BYTES: u64 = 16 << 10;

impl CacheSaver {
    /// Registers the task.
    pub(crate) fn start(engine: &Arc<Engine>) {
        if let Some(saved) = &engine.options.saved_caches {
            engine.cache_saver.set_keys_to_save(saved.keys_to_save, saved.rows_to_save);
        }
        let weak: Weak<Engine> = Arc::downgrade(engine);
        let step = move || match weak.upgrade() {
            None => Next::Done,
            Some(engine) => engine.cache_saver.step(&engine),
        };
        let wake = engine.env.tasks.background("caches", Box::new(step));
        wake.wake();
        let _ = engine.caches.saver.set(wake);
    }

    /// Called when the node is ready: begins to read the saved entries.
    pub(crate) fn load(&self, engine: &Engine) {
        self.load.store(true, Ordering::Release);
        engine.caches.wake_saver();
    }

    fn step(&self, engine: &Engine) -> Next {
        engine.caches.sweep();
        let Some(saved) = &engine.options.saved_caches else { return Next::Idle };
        if engine.is_stopped() {
            return Next::Idle;
        }
        let mut state = self.state.lock().expect("nothing panics inside");
        if self.load.swap(false, Ordering::Acquire) {
            let todo = [Kind::Keys, Kind::Rows, Kind::Chunks].into_iter().flat_map(|kind| read(engine, saved, kind));
            state.loading = Some(Loading { begun: engine.env.now(), todo: todo.collect(), loaded: 0 });
        }
        if let Some(loading) = &mut state.loading {
            match loading.step(engine, saved.load_timeout) {
                Some(pause) => return Next::After(pause),
                None => state.loading = None,
            }
        }
        let now = engine.env.now();
        let mut next: Option<Duration> = None;
        let mut is_due = |last: &mut Option<Instant>, period: Option<Duration>| {
            let Some(period) = period else { return false };
            let since = engine.env.elapsed(*last.get_or_insert(now));
            let due = since >= period;
            if due {
                *last = Some(now);
            }
            let left = if due { period } else { period - since };
            next = Some(next.map_or(left, |next| next.min(left)));
            due
        };
        let due = (is_due(&mut state.keys_saved, saved.keys_period), is_due(&mut state.rows_saved, saved.rows_period));
        drop(state);
        let kinds = [(Kind::Chunks, due.0), (Kind::Keys, due.0), (Kind::Rows, due.1)];
        kinds.into_iter().filter(|(_, due)| *due).for_each(|(kind, _)| save_or_tell(engine, saved, kind));
        next.map_or(Next::Idle, Next::After)
    }

    /// Saves all caches whose period is not zero, now.
    pub(crate) fn save_all(&self, engine: &Engine) {
        let Some(saved) = engine.options.saved_caches.as_ref().filter(|_| !engine.options.read_only) else { return };
        if self.state.lock().expect("nothing panics inside").loading.is_some() {
            // what was saved before is better than the half of it
            return;
        }
        let kinds =
            [(Kind::Chunks, saved.keys_period), (Kind::Keys, saved.keys_period), (Kind::Rows, saved.rows_period)];
        for (kind, _) in kinds.into_iter().filter(|(_, period)| period.is_some()) {
            save_or_tell(engine, saved, kind);
        }
    }
}

fn save_or_tell(engine: &Engine, saved: &SavedCaches, kind: Kind) {
    if let Err(error) = save(engine, saved, kind) {
        tracing::warn!(file = kind.file_name(), %error, "what is hot could not be saved");
    }
}

/// An SSTable's name beneath its table: directories of indexes lie beneath their base's.
fn name_of(sstable: &SSTable) -> String {
    let descriptor = sstable.descriptor();
    let directory = descriptor.directory.file_name().unwrap_or_default().to_string_lossy();
    format!("{directory}/{}", descriptor.prefix())
}

/// Every SSTable, with its table.
fn sstables(engine: &Engine) -> Vec<(TableId, Arc<SSTable>)> {
    let stores = engine.stores().into_iter();
    stores
        .flat_map(|store| {
            let id = store.id;
            store.view().sstables.iter().map(|sstable| (id, Arc::clone(sstable))).collect::<Vec<_>>()
        })
        .collect()
}

fn save(engine: &Engine, saved: &SavedCaches, kind: Kind) -> Result<(), StorageError> {
    let path = saved.directory.join(kind.file_name());
    let hot = hot(engine, kind);
    let disk = &engine.env.disk;
    let done = if hot.is_empty() {
        if disk.exists(&path) { disk.remove_file(&path) } else { Ok(()) }
    } else {
        let content = saved::encode(kind, &hot);
        if content.len() as u64 > SAVED_FILE_MAX {
            let why = format!("{} would be {} bytes long", path.display(), content.len());
            return Err(StorageError::Refused { why });
        }
        let beside = engine.options.commitlog_directory.parent();
        let made = match beside.filter(|above| saved.directory.starts_with(above)) {
            Some(above) => disk.create_dir_below(above, &saved.directory),
            None => disk.create_dir_durable(&saved.directory),
        };
        made.and_then(|()| disk.replace_file(&path, &content))
    };
    done.map_err(|error| StorageError::io(&path, &error))
}

/// The entries of a cache, by name.
fn hot(engine: &Engine, kind: Kind) -> Vec<HotEntries> {
    let (keys_to_save, rows_to_save) = engine.cache_saver.keys_to_save();
    let count = |most: u64| usize::try_from(most).unwrap_or(usize::MAX);
    if kind == Kind::Rows {
        let mut hot: BTreeMap<TableId, HotEntries> = BTreeMap::new();
        for (table, key) in engine.caches.rows.keys().take(count(rows_to_save)) {
            hot.entry(table).or_insert_with(|| HotEntries::of(table, String::new())).keys.push(key);
        }
        return hot.into_values().collect();
    }
    let sstables = sstables(engine);
    let mut files: BTreeMap<u64, HotEntries> =
        sstables.iter().map(|(table, sstable)| (sstable.file_id(), HotEntries::of(*table, name_of(sstable)))).collect();
    match kind {
        Kind::Keys => {
            for (file, key) in engine.caches.keys.keys().take(count(keys_to_save)) {
                files.entry(file).and_modify(|hot| hot.keys.push(key));
            }
        }
        _ => {
            for (file, chunk) in engine.caches.chunks.places() {
                files.entry(file).and_modify(|hot| hot.chunks.push(chunk));
            }
        }
    }
    let mut hot: Vec<HotEntries> =
        files.into_values().filter(|hot| !hot.chunks.is_empty() || !hot.keys.is_empty()).collect();
    for hot in &mut hot {
        hot.chunks.sort_unstable();
        hot.chunks.dedup();
    }
    hot
}

/// The saved entries; none, where the file cannot be read.
fn read(engine: &Engine, saved: &SavedCaches, kind: Kind) -> Vec<(Kind, HotEntries)> {
    let path = saved.directory.join(kind.file_name());
    let disk = &engine.env.disk;
    if !disk.exists(&path) {
        return Vec::new();
    }
    let content = disk.read_all(&path, SAVED_FILE_MAX).map_err(|error| error.to_string());
    match content.and_then(|content| saved::decode(kind, &content)) {
        Ok(hot) => hot.into_iter().map(|hot| (kind, hot)).collect(),
        Err(why) => {
            tracing::warn!(file = %path.display(), why, "a saved cache is not used and removed");
            if !engine.options.read_only {
                let _ = disk.remove_file(&path);
            }
            Vec::new()
        }
    }
}

impl Loading {
    /// Reads some of the entries. None: that was all. Some: how long to wait before the next step.
    fn step(&mut self, engine: &Engine, timeout: Duration) -> Option<Duration> {
        let begun = engine.env.now();
        let stores: BTreeMap<TableId, Arc<TableStore>> =
            engine.stores().into_iter().map(|store| (store.id, store)).collect();
        let mut left = LOAD_STEP_BYTES;
        while left > 0 {
            let is_late = engine.env.elapsed(self.begun) >= timeout;
            if is_late && !self.todo.is_empty() {
                tracing::info!("cache_load_timeout has come: the rest of what was hot is read when it is wanted");
                self.todo.clear();
            }
            let Some((kind, hot)) = self.todo.front_mut() else {
                tracing::info!(entries = self.loaded, "what was hot is in the caches again");
                return None;
            };
            let store = stores.get(&TableId(hot.table));
            self.loaded += store.map_or(0, |store| load_some(store, *kind, hot, &mut left));
            if left > 0 {
                self.todo.pop_front();
            }
        }
        let due = Duration::from_secs_f64(LOAD_STEP_BYTES as f64 / LOAD_BYTES_PER_SECOND as f64);
        Some(due.saturating_sub(engine.env.elapsed(begun)))
    }
}

/// Reads the hot entries of a file or table until `left` bytes are read, and gives their number.
/// After an entry that cannot be read, the rest of the file is left alone.
fn load_some(store: &TableStore, kind: Kind, hot: &mut HotEntries, left: &mut u64) -> u64 {
    let view = store.view();
    let sstable = view.sstables.iter().find(|sstable| name_of(sstable) == hot.sstable);
    let mut load_one = || -> Option<u64> {
        match (kind, sstable) {
            (Kind::Rows, _) => {
                let key = DecoratedKey::new(Bytes::from(hot.keys.pop()?));
                crate::read::row_cache::warm(store, &key).ok().map(|()| KEY_BYTES)
            }
            (Kind::Keys, Some(sstable)) => sstable.warm_position(Bytes::from(hot.keys.pop()?)).ok().map(|()| KEY_BYTES),
            (Kind::Chunks, Some(sstable)) => sstable.data().warm(hot.chunks.pop()?).ok(),
            (_, None) => None,
        }
    };
    let mut loaded = 0;
    while *left > 0 {
        let Some(bytes) = load_one() else { break };
        *left = left.saturating_sub(bytes.max(1));
        loaded += 1;
    }
    loaded
}
