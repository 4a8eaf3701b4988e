//! Requests to the saver of the caches (`crate::cache_saver`), and its progress.

use std::collections::VecDeque;

use env::Instant;
use env::sync::Mutex;
use env::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::caches::saved::{HotEntries, Kind};

/// The state of the cache saver, besides the caches.
#[derive(Default)]
pub struct CacheSaver {
    pub(crate) load: AtomicBool,
    keys_to_save: AtomicU64,
    rows_to_save: AtomicU64,
    pub(crate) state: Mutex<State>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) keys_saved: Option<Instant>,
    pub(crate) rows_saved: Option<Instant>,
    pub(crate) loading: Option<Loading>,
}

pub(crate) struct Loading {
    pub(crate) begun: Instant,
    pub(crate) todo: VecDeque<(Kind, HotEntries)>,
    pub(crate) loaded: u64,
}

impl CacheSaver {
    /// Most keys, and most keys of rows, that are saved.
    pub fn keys_to_save(&self) -> (u64, u64) {
        (self.keys_to_save.load(Ordering::Relaxed), self.rows_to_save.load(Ordering::Relaxed))
    }

    /// Changes how many keys, and how many keys of rows, are saved.
    pub fn set_keys_to_save(&self, keys: u64, rows: u64) {
        self.keys_to_save.store(keys, Ordering::Relaxed);
        self.rows_to_save.store(rows, Ordering::Relaxed);
    }
}
