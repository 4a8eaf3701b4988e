//! Requests that wait for their answer: by message id and peer, each with the time at which nobody
//! waits any more.
//!
//! Peers that do not answer leave room for the others. A peer may have half of the room that is
//! left, so the first one that hangs gets a third of all, and each further one a third of what
//! those before it have left: beside `n` that hang there is room for `CALLBACKS_MAX · (2/3)^n` more
//! requests. When older requests expire the shares become equal, and there is room for
//! `CALLBACKS_MAX / (1 + n / 2)`.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Requests that may wait at one time. A further one is refused, and its sender takes it as not
/// answered. The table of so many takes less than 30 MB, beside what each asker holds.
pub const CALLBACKS_MAX: usize = 200_000;

/// A peer may have this part of the room that is left.
const PEER_PART: usize = 2;

/// Requests that wait. `T` says what becomes of the answer.
#[derive(Debug)]
pub struct Callbacks<T> {
    waiting: HashMap<(u64, SocketAddr), (Duration, T)>,
    /// How many of them wait for each peer; a peer for which none waits is not there.
    by_peer: HashMap<SocketAddr, usize>,
    next: u64,
}

impl<T> Default for Callbacks<T> {
    fn default() -> Self {
        Self { waiting: HashMap::new(), by_peer: HashMap::new(), next: 0 }
    }
}

impl<T> Callbacks<T> {
    /// A new message id. Ids stay in 1 to 2^31 − 1: some places of the protocol hold no more.
    pub fn next_id(&mut self) -> u64 {
        self.next = if self.next >= i32::MAX as u64 { 1 } else { self.next + 1 };
        self.next
    }

    /// Whether one more request to a peer may wait.
    pub fn has_room(&self, peer: SocketAddr) -> bool {
        let left = CALLBACKS_MAX.saturating_sub(self.waiting.len());
        self.by_peer.get(&peer).copied().unwrap_or(0) < left / PEER_PART
    }

    /// Registers a request, of which `of` says what becomes of the answer; `until` is on the
    /// caller's monotonic clock. False: there is no room.
    pub fn add(&mut self, id: u64, peer: SocketAddr, until: Duration, of: impl FnOnce() -> T) -> bool {
        if !self.has_room(peer) {
            return false;
        }
        let before = self.waiting.insert((id, peer), (until, of()));
        assert!(before.is_none(), "an id names one request to a peer at a time");
        *self.by_peer.entry(peer).or_default() += 1;
        true
    }

    /// The request that an answer belongs to. An answer that comes twice, too late, or from another
    /// peer belongs to none.
    pub fn take(&mut self, id: u64, peer: SocketAddr, now: Duration) -> Option<T> {
        let found = self.waiting.remove(&(id, peer))?;
        self.forget_one(peer);
        Some(found).filter(|(until, _)| *until >= now).map(|(_, of)| of)
    }

    fn forget_one(&mut self, peer: SocketAddr) {
        let count = self.by_peer.get_mut(&peer).expect("a request that waits is counted");
        *count -= 1;
        if *count == 0 {
            self.by_peer.remove(&peer);
        }
    }

    /// Requests that nobody has answered in time.
    pub fn expire(&mut self, now: Duration) -> Vec<(SocketAddr, T)> {
        let late = self.waiting.extract_if(|_, (until, _)| *until < now);
        let mut late: Vec<_> = late.map(|((id, peer), (_, of))| (id, peer, of)).collect();
        late.iter().for_each(|(_, peer, _)| self.forget_one(*peer));
        late.sort_by_key(|(id, peer, _)| (*id, *peer));
        late.into_iter().map(|(_, peer, of)| (peer, of)).collect()
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// None waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_once_in_time_and_from_the_peer_that_was_asked() {
        let (peer, other) = ("127.0.0.2:7000".parse().unwrap(), "127.0.0.3:7000".parse().unwrap());
        let second = Duration::from_secs(1);
        let mut callbacks = Callbacks::default();
        let ids: Vec<_> = (0..4).map(|_| callbacks.next_id()).collect();
        assert!(ids.iter().all(|id| callbacks.add(*id, peer, second, || *id)));
        assert_eq!(callbacks.take(ids[0], other, Duration::ZERO), None);
        assert_eq!(callbacks.take(ids[0], peer, Duration::ZERO), Some(ids[0]));
        assert_eq!(callbacks.take(ids[0], peer, Duration::ZERO), None);
        assert_eq!(callbacks.take(ids[1], peer, second * 2), None);
        assert_eq!(callbacks.expire(second * 2), [(peer, ids[2]), (peer, ids[3])]);
        assert!(callbacks.is_empty() && callbacks.by_peer.is_empty());
    }

    /// However many peers hang, there is room for the next one; when they have been given up their
    /// room is free again.
    #[test]
    fn peers_that_hang_leave_room_for_others() {
        let mut callbacks = Callbacks::default();
        let mut fill = |number: u16| {
            let peer = SocketAddr::new("127.0.0.1".parse().unwrap(), number);
            let mut count = 0_u32;
            while callbacks.has_room(peer) {
                let id = callbacks.next_id();
                assert!(callbacks.add(id, peer, Duration::ZERO, || ()));
                count += 1;
            }
            count
        };
        assert_eq!([1, 2, 3, 4, 5, 6].map(&mut fill), [66_667, 44_444, 29_630, 19_753, 13_169, 8_779]);
        assert!((7..20).all(|peer| fill(peer) > 0));
        callbacks.expire(Duration::from_secs(1));
        assert!(callbacks.is_empty() && callbacks.by_peer.is_empty());
    }
}
