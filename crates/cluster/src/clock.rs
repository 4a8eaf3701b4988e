//! Write timestamps and UUIDs: never the same twice, never going back while the process lives.
//!
//! Agrees with `org.apache.cassandra.service.ClientState.getTimestamp` and `utils.TimeUUID`.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use env::{Clock, Env, Random};

pub use types::timeuuid::uuid_text;

/// 100-ns steps from the UUID epoch (15 October 1582) to 1970.
const UUID_EPOCH_OFFSET: u64 = 0x01B2_1DD2_1381_4000;

/// Clock of write timestamps, microseconds since 1970. Shared by all workers: two requests never
/// get the same one.
pub struct WriteClock {
    clock: Arc<dyn Clock>,
    last: AtomicI64,
}

impl WriteClock {
    /// A clock that follows the wall clock. Every timestamp that it gives is later than `micros`.
    pub fn after(env: &Env, micros: i64) -> Self {
        Self { clock: Arc::clone(&env.clock), last: AtomicI64::new(micros) }
    }

    /// The last timestamp that was given; before the first, the time that was given to
    /// [`Self::after`].
    pub fn last_micros(&self) -> i64 {
        self.last.load(Ordering::Relaxed)
    }

    /// The next timestamp: the time of the wall clock, or the last timestamp plus one where the
    /// wall clock stands or goes back.
    pub fn next_micros(&self) -> i64 {
        let wall = self.clock.now_micros();
        let later = |last: i64| Some(wall.max(last.saturating_add(1)));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later).expect("later always gives one");
        wall.max(last.saturating_add(1))
    }
}

/// Maker of time UUIDs (version 1) and random ones (version 4).
pub struct TimeUuids {
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    /// The time in the last UUID, in 100-ns steps since 1582.
    last: AtomicU64,
    /// Clock sequence and node: the second half of every time UUID of this process.
    clock_seq_and_node: [u8; 8],
}

impl TimeUuids {
    /// A maker with a random clock sequence and node id, as RFC 4122 allows for nodes without a
    /// hardware address.
    pub fn new(env: &Env) -> Self {
        let mut half = [0u8; 8];
        env.random.fill(&mut half);
        half[0] = (half[0] & 0x3f) | 0x80;
        half[2] |= 0x01;
        let (clock, random) = (Arc::clone(&env.clock), Arc::clone(&env.random));
        Self { clock, random, last: AtomicU64::new(0), clock_seq_and_node: half }
    }

    /// A time UUID never given before.
    pub fn next(&self) -> [u8; 16] {
        let wall = u64::try_from(self.clock.now_micros()).unwrap_or(0) * 10 + UUID_EPOCH_OFFSET;
        let later = |last: u64| Some(wall.max(last + 1));
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, later).expect("later always gives one");
        let mut uuid = time_half(wall.max(last + 1));
        uuid[8..].copy_from_slice(&self.clock_seq_and_node);
        uuid
    }

    /// A random UUID.
    pub fn random(&self) -> [u8; 16] {
        let mut uuid = [0u8; 16];
        self.random.fill(&mut uuid);
        uuid[6] = (uuid[6] & 0x0f) | 0x40;
        uuid[8] = (uuid[8] & 0x3f) | 0x80;
        uuid
    }
}

/// The first half of a time UUID, the second zero.
fn time_half(steps: u64) -> [u8; 16] {
    let mut uuid = [0u8; 16];
    uuid[..4].copy_from_slice(&(steps as u32).to_be_bytes());
    uuid[4..6].copy_from_slice(&((steps >> 32) as u16).to_be_bytes());
    uuid[6..8].copy_from_slice(&(((steps >> 48) as u16 & 0x0fff) | 0x1000).to_be_bytes());
    uuid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_and_uuids_do_not_repeat() {
        let env = env::real::env();
        let clock = WriteClock::after(&env, 0);
        let uuids = TimeUuids::new(&env);
        let mut stamps: Vec<i64> = (0..2000).map(|_| clock.next_micros()).collect();
        assert!(stamps.is_sorted());
        stamps.dedup();
        assert_eq!(stamps.len(), 2000);
        assert_eq!(Some(clock.last_micros()), stamps.last().copied());
        let ahead = WriteClock::after(&env, stamps[0] + 3_600_000_000);
        assert_eq!(ahead.next_micros(), stamps[0] + 3_600_000_001);
        let mut ids: Vec<[u8; 16]> = (0..2000).map(|_| uuids.next()).collect();
        assert!(ids.iter().all(|id| id[6] >> 4 == 1 && id[8] >> 6 == 2));
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), 2000);
        assert_eq!(uuids.random()[6] >> 4, 4);
    }

    #[test]
    fn the_epoch_of_uuids() {
        // 1970-01-01T00:00:00Z
        assert_eq!(uuid_text(&time_half(UUID_EPOCH_OFFSET)), "13814000-1dd2-11b2-0000-000000000000");
    }
}
