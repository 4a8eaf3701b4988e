//! A cache of rows of `system_auth`, by role.
//!
//! An entry is used until its validity ends. The first use after the update interval starts a new
//! read of the entry in the background; requests use the old value until the read has ended. If
//! the read fails the next use starts another one. An entry whose read began before the cache was
//! emptied is not kept. When the cache is full the entry that was read first goes. Agrees with
//! `org.apache.cassandra.auth.AuthCache`, without active updates.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use config::AuthCache;
use env::Instant;

/// Longest time for which a caller uses an entry that is due before it asks the cache again.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Values by role, and the settings that say how long each of them may be used.
pub(super) struct Cache<V> {
    state: Mutex<State<V>>,
}

struct State<V> {
    settings: AuthCache,
    entries: BTreeMap<String, Entry<V>>,
    /// The keys whose entries are being read again beside requests.
    renewing: BTreeSet<String>,
    /// How often the cache was emptied, whole or in part.
    emptied: u64,
}

struct Entry<V> {
    value: V,
    /// The time at which the read of the entry began.
    read: Instant,
}

/// The state of a cache before a read. The result of the read is kept only if the cache still has
/// this state.
#[derive(Clone, Copy)]
pub(super) struct ReadStart {
    emptied: u64,
    now: Instant,
}

/// A value, and the time from which its next use reads it again.
pub(super) type Timed<V> = (V, Instant);

/// The answer of a cache to a key.
pub(super) enum CacheLookup<V> {
    /// Nothing that may be used.
    Nothing,
    /// A value that may be used.
    Fresh(Timed<V>),
    /// A value that may be used, and that the caller has read again beside its request. Other
    /// callers get the value as [`CacheLookup::Fresh`] until the read has ended ([`Cache::put`],
    /// [`Cache::end_renewal`]).
    Due(Timed<V>),
}

impl<V: Clone> Cache<V> {
    /// An empty cache.
    pub fn new(settings: AuthCache) -> Self {
        let (entries, renewing) = (BTreeMap::new(), BTreeSet::new());
        Self { state: Mutex::new(State { settings, entries, renewing, emptied: 0 }) }
    }

    /// Looks a key up.
    pub fn get(&self, key: &str, now: Instant) -> CacheLookup<V> {
        self.with(|state| {
            let (validity, update_interval) = (state.settings.validity, state.settings.renewal_age());
            let Some(entry) = state.entries.get(key) else { return CacheLookup::Nothing };
            let age = now.since(entry.read);
            if age >= validity {
                return CacheLookup::Nothing;
            }
            if age < update_interval {
                return CacheLookup::Fresh((entry.value.clone(), entry.read.plus(validity.min(update_interval))));
            }
            let timed = (entry.value.clone(), entry.read.plus(validity).min(now.plus(RECHECK_INTERVAL)));
            match state.renewing.insert(key.to_owned()) {
                true => CacheLookup::Due(timed),
                false => CacheLookup::Fresh(timed),
            }
        })
    }

    /// The state before a read that begins now.
    pub fn start_read(&self, now: Instant) -> ReadStart {
        self.with(|state| ReadStart { emptied: state.emptied, now })
    }

    /// The read of an entry that was due has ended, or did not begin: the next use may begin
    /// another.
    pub fn end_renewal(&self, key: &str) {
        self.with(|state| state.renewing.remove(key));
    }

    /// Keeps what was read, and says until when it may be used.
    pub fn put(&self, key: &str, value: V, read_start: ReadStart) -> Instant {
        self.with(|state| {
            let AuthCache { validity, entries_max, .. } = state.settings;
            let update_interval = state.settings.renewal_age();
            state.renewing.remove(key);
            if validity.is_zero() || entries_max == 0 || state.emptied != read_start.emptied {
                return read_start.now;
            }
            state.entries.insert(key.to_owned(), Entry { value, read: read_start.now });
            if state.entries.len() > entries_max {
                let oldest = state.entries.iter().min_by_key(|(_, entry)| entry.read).map(|(key, _)| key.clone());
                oldest.map(|key| state.entries.remove(&key));
            }
            read_start.now.plus(validity.min(update_interval))
        })
    }

    /// Empties the cache, or takes one key out.
    pub fn forget(&self, key: Option<&str>) {
        self.with(|state| {
            state.emptied += 1;
            match key {
                Some(key) => drop(state.entries.remove(key)),
                None => state.entries.clear(),
            }
        });
    }

    /// The keys whose entries may be used.
    pub fn keys(&self, now: Instant) -> Vec<String> {
        self.with(|state| {
            let validity = state.settings.validity;
            let fresh = state.entries.iter().filter(|(_, entry)| now.since(entry.read) < validity);
            fresh.map(|(key, _)| key.clone()).collect()
        })
    }

    /// The values that may be used, by key.
    pub fn values(&self, now: Instant) -> Vec<(String, V)> {
        self.with(|state| {
            let validity = state.settings.validity;
            let fresh = state.entries.iter().filter(|(_, entry)| now.since(entry.read) < validity);
            fresh.map(|(key, entry)| (key.clone(), entry.value.clone())).collect()
        })
    }

    /// The settings in force.
    pub fn settings(&self) -> AuthCache {
        self.with(|state| state.settings)
    }

    /// Changes the settings. They apply to existing entries, too.
    pub fn set(&self, settings: AuthCache) {
        self.with(|state| state.settings = settings);
    }

    fn with<T>(&self, act: impl FnOnce(&mut State<V>) -> T) -> T {
        act(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn cache(validity: u64, update_interval: u64, entries_max: usize) -> Cache<u32> {
        let (validity, update_interval) = (Duration::from_secs(validity), Some(Duration::from_secs(update_interval)));
        Cache::new(AuthCache { validity, update_interval, entries_max, updates_actively: false })
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn put(cache: &Cache<u32>, key: &str, value: u32, now: u64) -> Instant {
        cache.put(key, value, cache.start_read(at(now)))
    }

    fn shown(cache: &Cache<u32>, key: &str, now: u64) -> String {
        match cache.get(key, at(now)) {
            CacheLookup::Nothing => "nothing".to_owned(),
            CacheLookup::Fresh((value, until)) => format!("{value} until {}", until.as_nanos() / 1_000_000_000),
            CacheLookup::Due((value, until)) => format!("{value}, due, until {}", until.as_nanos() / 1_000_000_000),
        }
    }

    #[test]
    fn an_entry_is_used_read_again_and_given_up() {
        let cache = cache(10, 4, 100);
        assert_eq!(put(&cache, "a", 1, 100), at(104));
        assert_eq!(shown(&cache, "a", 103), "1 until 104");
        // one reads it again, and everybody uses it meanwhile
        assert_eq!(shown(&cache, "a", 104), "1, due, until 105");
        assert_eq!(shown(&cache, "a", 105), "1 until 106");
        cache.end_renewal("a");
        assert_eq!(shown(&cache, "a", 106), "1, due, until 107");
        cache.end_renewal("a");
        assert_eq!(shown(&cache, "a", 109), "1, due, until 110");
        assert_eq!(shown(&cache, "a", 110), "nothing");
        put(&cache, "a", 2, 109);
        assert_eq!(shown(&cache, "a", 110), "2 until 113");
        assert_eq!(shown(&cache, "a", 113), "2, due, until 114", "the read before has ended");
        assert_eq!((cache.keys(at(118)), cache.keys(at(119))), (vec!["a".to_owned()], Vec::new()));
    }

    /// The interval is the validity also where nodetool changes the validity.
    #[test]
    fn an_update_interval_that_nobody_has_set_is_the_validity() {
        let seconds = Duration::from_secs;
        let settings =
            AuthCache { validity: seconds(10), update_interval: None, entries_max: 100, updates_actively: false };
        let cache = Cache::new(settings);
        assert_eq!(put(&cache, "a", 1, 100), at(110));
        cache.set(AuthCache { validity: seconds(60), ..settings });
        assert_eq!(shown(&cache, "a", 150), "1 until 160");
    }

    #[test]
    fn validity_zero_keeps_nothing() {
        let cache = cache(0, 0, 100);
        assert_eq!(put(&cache, "a", 1, 100), at(100));
        assert_eq!(shown(&cache, "a", 100), "nothing");
    }

    #[test]
    fn the_oldest_makes_room() {
        let cache = cache(10, 10, 2);
        put(&cache, "a", 1, 101);
        put(&cache, "b", 2, 100);
        put(&cache, "c", 3, 102);
        assert_eq!(cache.keys(at(103)), ["a", "c"]);
    }

    #[test]
    fn what_was_read_before_the_cache_was_emptied_is_not_kept() {
        let cache = cache(10, 10, 100);
        let read_start = cache.start_read(at(100));
        cache.forget(None);
        assert_eq!(cache.put("a", 1, read_start), at(100));
        assert_eq!(shown(&cache, "a", 100), "nothing");
        put(&cache, "a", 2, 101);
        cache.forget(Some("b"));
        assert_eq!(shown(&cache, "a", 101), "2 until 111");
        cache.forget(Some("a"));
        assert_eq!(shown(&cache, "a", 101), "nothing");
    }
}
