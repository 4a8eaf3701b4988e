//! The common part of the caches: entries weighed in bytes, a capacity that can be changed, hits
//! and misses counted.

use std::hash::Hash;

use env::sync::atomic::{AtomicU64, Ordering};
use quick_cache::sync::Cache;
use quick_cache::{Equivalent, Weighter};

use super::Usage;

/// A cache within a budget of bytes. Shared by all workers.
pub(super) struct Counted<K, V, W> {
    /// The entries, for functions that differ from one cache to the other.
    pub entries: Cache<K, V, W>,
    capacity: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl<K: Eq + Hash, V: Clone, W: Weighter<K, V> + Clone> Counted<K, V, W> {
    /// A cache of at most `capacity` bytes. `entry_estimate`: bytes that an entry takes about,
    /// from which the first size of the tables follows.
    pub fn new(capacity: u64, entry_estimate: u64, weighter: W) -> Self {
        let estimate = usize::try_from(capacity / entry_estimate).unwrap_or(usize::MAX).max(16);
        Self {
            entries: Cache::with_weighter(estimate, capacity, weighter),
            capacity: AtomicU64::new(capacity),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        }
    }

    /// Entries and bytes that the cache holds, and its hits and misses.
    pub fn usage(&self) -> Usage {
        Usage {
            capacity: self.capacity(),
            size: self.entries.weight(),
            entries: self.entries.len() as u64,
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }

    /// The most bytes that the cache keeps. This takes no lock; [`Counted::usage`] takes one for
    /// each part of the cache.
    #[inline]
    pub fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Whether the capacity is 0, so that nothing is kept.
    #[inline]
    pub fn is_off(&self) -> bool {
        self.capacity() == 0
    }

    /// Sets the most bytes that are kept from now on.
    pub fn set_capacity(&self, capacity: u64) {
        self.capacity.store(capacity, Ordering::Relaxed);
        self.entries.set_capacity(capacity);
    }

    /// The entry, counted as a hit or a miss.
    #[inline]
    pub fn get<Q: Hash + Equivalent<K>>(&self, key: &Q) -> Option<V> {
        let found = self.entries.get(key);
        self.count(found.is_some());
        found
    }

    /// Counts a look-up as a hit or as a miss.
    #[inline]
    pub fn count(&self, hit: bool) {
        let counter = if hit { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
