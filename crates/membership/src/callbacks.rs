//! Requests that wait for their answer: by message id and peer, each with the time at which nobody
//! waits any more. Their number has a bound, and so have the bytes that askers keep for them: a
//! write is kept until each of its replicas has answered, so that a silent replica gets a hint.
//!
//! Peers that do not answer leave room for the others. A peer may have half of the room that is
//! left, so the first one that hangs gets a third of all, and each further one a third of what
//! those before it have left: beside `n` that hang there is room for `CALLBACKS_MAX · (2/3)^n` more
//! requests. When older requests expire the shares become equal, and there is room for
//! `CALLBACKS_MAX / (1 + n / 2)`. Bytes are shared in the same way. A request that keeps nothing,
//! as a read does, has room whatever others keep.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Requests that may wait at one time. A further one is refused, and its sender takes it as not
/// answered. The table of so many takes some 30 MB, beside what each asker keeps.
pub const CALLBACKS_MAX: usize = 200_000;

/// Bytes that may be kept for requests that wait, where nobody has said how many. Beyond them a
/// request that keeps something is refused like one that is too many.
pub const KEPT_SIZE_MAX: usize = 256 << 20;

/// A peer may have this part of the room that is left.
const PEER_PART: usize = 2;

/// Requests that wait. `T` says what becomes of the answer.
#[derive(Debug)]
pub struct Callbacks<T> {
    waiting: HashMap<(u64, SocketAddr), Waiting<T>>,
    /// The requests that wait for each peer; a peer for which none waits is not there.
    by_peer: HashMap<SocketAddr, Room>,
    /// Bytes that are kept for all of them.
    bytes: usize,
    /// The most of these bytes.
    bytes_max: usize,
    next: u64,
}

#[derive(Debug)]
struct Waiting<T> {
    until: Duration,
    /// Bytes that are kept until the answer comes.
    bytes: usize,
    of: T,
}

/// A number of requests, and the bytes that are kept for them.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    count: usize,
    bytes: usize,
}

impl<T> Default for Callbacks<T> {
    fn default() -> Self {
        Self { waiting: HashMap::new(), by_peer: HashMap::new(), bytes: 0, bytes_max: KEPT_SIZE_MAX, next: 0 }
    }
}

impl<T> Callbacks<T> {
    /// A new message id. Ids stay in 1 to 2^31 − 1: some places of the protocol hold no more.
    pub fn next_id(&mut self) -> u64 {
        self.next = if self.next >= i32::MAX as u64 { 1 } else { self.next + 1 };
        self.next
    }

    /// From now on about so many bytes are kept at most for requests that wait: a peer for which
    /// nothing is kept has room for one request, however large that is.
    pub fn set_bytes_max(&mut self, bytes: usize) {
        self.bytes_max = bytes;
    }

    /// Whether one more request to a peer may wait, for which so many bytes are kept.
    pub fn has_room(&self, peer: SocketAddr, bytes: usize) -> bool {
        let of_peer = self.by_peer.get(&peer).copied().unwrap_or_default();
        let left = CALLBACKS_MAX.saturating_sub(self.waiting.len());
        let bytes_left = self.bytes_max.saturating_sub(self.bytes);
        of_peer.count < left / PEER_PART && (bytes.min(of_peer.bytes) == 0 || of_peer.bytes < bytes_left / PEER_PART)
    }

    /// Registers a request, of which `of` says what becomes of the answer, and for which `bytes`
    /// are kept until then; `until` is on the caller's monotonic clock. False: there is no room.
    pub fn add(&mut self, id: u64, peer: SocketAddr, until: Duration, bytes: usize, of: impl FnOnce() -> T) -> bool {
        if !self.has_room(peer, bytes) {
            return false;
        }
        let before = self.waiting.insert((id, peer), Waiting { until, bytes, of: of() });
        assert!(before.is_none(), "an id names one request to a peer at a time");
        let of_peer = self.by_peer.entry(peer).or_default();
        of_peer.count += 1;
        of_peer.bytes += bytes;
        self.bytes += bytes;
        true
    }

    /// The request that an answer belongs to. An answer that comes twice, too late, or from another
    /// peer belongs to none.
    pub fn take(&mut self, id: u64, peer: SocketAddr, now: Duration) -> Option<T> {
        let found = self.waiting.remove(&(id, peer))?;
        self.forget_one(peer, found.bytes);
        Some(found).filter(|found| found.until >= now).map(|found| found.of)
    }

    fn forget_one(&mut self, peer: SocketAddr, bytes: usize) {
        let of_peer = self.by_peer.get_mut(&peer).expect("a request that waits is counted");
        assert!(of_peer.bytes >= bytes && self.bytes >= bytes, "the bytes of a request are given back once");
        of_peer.count -= 1;
        of_peer.bytes -= bytes;
        self.bytes -= bytes;
        if of_peer.count == 0 {
            self.by_peer.remove(&peer);
        }
    }

    /// Requests that nobody has answered in time.
    pub fn expire(&mut self, now: Duration) -> Vec<(SocketAddr, T)> {
        let late = self.waiting.extract_if(|_, waiting| waiting.until < now);
        let mut late: Vec<_> = late.map(|((id, peer), waiting)| (id, peer, waiting)).collect();
        late.iter().for_each(|(_, peer, waiting)| self.forget_one(*peer, waiting.bytes));
        late.sort_by_key(|(id, peer, _)| (*id, *peer));
        late.into_iter().map(|(_, peer, waiting)| (peer, waiting.of)).collect()
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
        assert!(ids.iter().all(|id| callbacks.add(*id, peer, second, 0, || *id)));
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
            while callbacks.has_room(peer, 0) {
                let id = callbacks.next_id();
                assert!(callbacks.add(id, peer, Duration::ZERO, 0, || ()));
                count += 1;
            }
            count
        };
        assert_eq!([1, 2, 3, 4, 5, 6].map(&mut fill), [66_667, 44_444, 29_630, 19_753, 13_169, 8_779]);
        assert!((7..20).all(|peer| fill(peer) > 0));
        callbacks.expire(Duration::from_secs(1));
        assert!(callbacks.is_empty() && callbacks.by_peer.is_empty());
    }

    /// Peers that hang share the bytes as they share the number, and what keeps nothing has room.
    #[test]
    fn bytes_that_are_kept_have_a_bound() {
        const SIZE: usize = 10;
        let mut callbacks = Callbacks::default();
        callbacks.set_bytes_max(900 * SIZE);
        let peer_of = |number: u16| SocketAddr::new("127.0.0.1".parse().unwrap(), number);
        let mut fill = |number: u16| {
            let mut ids = Vec::new();
            while callbacks.has_room(peer_of(number), SIZE) {
                let id = callbacks.next_id();
                assert!(callbacks.add(id, peer_of(number), Duration::ZERO, SIZE, || ()));
                ids.push(id);
            }
            let id = callbacks.next_id();
            assert!(!callbacks.add(id, peer_of(number), Duration::ZERO, 1, || ()));
            assert!(callbacks.add(id, peer_of(number), Duration::ZERO, 0, || ()));
            ids
        };
        let filled = [1, 2].map(&mut fill);
        assert_eq!(filled.each_ref().map(Vec::len), [300, 200]);
        // an answer makes room
        assert_eq!(callbacks.take(filled[1][0], peer_of(2), Duration::ZERO), Some(()));
        assert!(callbacks.has_room(peer_of(2), SIZE));
        // one request to each peer goes, however large it is and whatever others keep
        let id = callbacks.next_id();
        assert!([3, 4].iter().all(|peer| callbacks.add(id, peer_of(*peer), Duration::ZERO, 5000 * SIZE, || ())));
        assert!(!callbacks.has_room(peer_of(3), SIZE) && callbacks.has_room(peer_of(5), SIZE));
        callbacks.expire(Duration::from_secs(1));
        assert!(callbacks.is_empty() && callbacks.bytes == 0);
    }
}
