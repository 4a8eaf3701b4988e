//! Requests that wait for their answer, by message id and peer, each with the time at which the
//! wait ends. Their number has a bound. So have the bytes that callbacks keep for them: a write is
//! kept until each of its replicas has answered, so a silent replica gets a hint. The callback
//! says how many bytes may still be kept, because several requests may share what is kept.
//!
//! Peers that do not answer leave room for the others. A peer may have half of the room that is
//! left, so the first one that hangs gets a third of all, and each further one a third of what
//! those before it have left: beside `n` that hang there is room for `CALLBACKS_MAX · (2/3)^n` more
//! requests. When older requests expire the shares become equal, and there is room for
//! `CALLBACKS_MAX / (1 + n / 2)`. Bytes are shared in the same way. A request that keeps nothing,
//! as a read does, has room whatever others keep.
//!
//! Bytes are no reason to refuse a request to a peer that answers in time: a sender of many
//! requests asks [`Callbacks::is_busy`] before, and waits. Only a peer that is late
//! ([`LATE_AFTER`]) and has its part of the bytes is sent nothing more that is kept. Otherwise
//! writes of a healthy ring would fail, and leave hints, where a client has many of them under
//! way.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use crate::request::KeptBytes;

/// Most requests that may wait at one time. A further one is refused, and its sender takes it as
/// not answered. The table of so many takes some 30 MB, beside what each callback keeps.
pub const CALLBACKS_MAX: usize = 200_000;

const _: () = assert!(CALLBACKS_MAX < i32::MAX as usize, "there are more ids than requests that wait");

/// A peer may have this part of the room that is left.
const PEER_PART: usize = 2;

/// A peer is late when its latest answer took longer, or when requests wait and it has answered
/// none of them for longer. Longer than the way to another continent and back, or than the pause of
/// a disk that syncs; shorter than writers can be held back.
pub const LATE_AFTER: Duration = Duration::from_millis(500);

/// Requests that wait. `T` is the receiver of the answer.
#[derive(Debug)]
pub struct Callbacks<T> {
    waiting: HashMap<(u64, SocketAddr), Waiting<T>>,
    /// The requests that wait for each peer. A peer without waiting requests has no entry, unless
    /// it is slow.
    by_peer: HashMap<SocketAddr, Room>,
    next: u64,
}

#[derive(Debug)]
struct Waiting<T> {
    /// The time at which the request was sent, and that at which the wait ends, on the caller's
    /// monotonic clock.
    time: Range<Duration>,
    /// Bytes that are kept until the answer comes.
    bytes: usize,
    of: T,
}

/// The requests that wait for a peer. Times are on the caller's monotonic clock.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    count: usize,
    /// Bytes that are kept for these requests.
    bytes: usize,
    /// When the peer answered a request for which bytes are kept, or, if it has answered none,
    /// when the first that waits was added.
    heard: Duration,
    /// True: the latest answer to a request for which bytes are kept took longer than
    /// [`LATE_AFTER`], or did not come. A slow peer stays so until it answers faster.
    is_slow: bool,
}

/// The end of a request's wait.
#[derive(Clone, Copy)]
enum End {
    /// The peer has answered at this time, after this long.
    Answered { at: Duration, took: Duration },
    /// The peer has not answered in time; when the request was sent.
    Expired { begun: Duration },
    /// The request was not sent.
    NotSent,
}

impl Room {
    fn is_late(&self, now: Duration) -> bool {
        self.is_slow || now.saturating_sub(self.heard) > LATE_AFTER
    }

    /// Whether there is no room for more bytes for this peer. `left`: bytes that all peers
    /// together may still have. A peer for which nothing is kept has room for one request, however
    /// large that is.
    fn has_its_part(&self, left: usize) -> bool {
        self.bytes > 0 && self.bytes >= left / PEER_PART
    }
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

    /// Whether one more request to a peer may wait, for which these bytes are kept.
    pub fn has_room(&self, peer: SocketAddr, kept: KeptBytes, now: Duration) -> bool {
        let of_peer = self.by_peer.get(&peer).copied().unwrap_or_default();
        let left = CALLBACKS_MAX.saturating_sub(self.waiting.len());
        let is_refused = kept.bytes > 0 && of_peer.has_its_part(kept.left) && of_peer.is_late(now);
        of_peer.count < left / PEER_PART && !is_refused
    }

    /// Whether a peer that answers in time has used up its part of the kept bytes. `left`: bytes
    /// that all peers together may still have. A request to the peer has room all the same; a
    /// caller that can wait sends it later.
    pub fn is_busy(&self, peer: SocketAddr, left: usize, now: Duration) -> bool {
        self.by_peer.get(&peer).is_some_and(|of_peer| of_peer.has_its_part(left) && !of_peer.is_late(now))
    }

    /// Registers a request. `of`: the receiver of the answer. `kept`: the bytes that are kept
    /// until then. `time`: now and the end of the wait, on the caller's monotonic clock. False:
    /// there is no room.
    pub fn add(
        &mut self,
        id: u64,
        peer: SocketAddr,
        time: Range<Duration>,
        kept: KeptBytes,
        of: impl FnOnce() -> T,
    ) -> bool {
        let now = time.start;
        if !self.has_room(peer, kept, now) {
            return false;
        }
        let before = self.waiting.insert((id, peer), Waiting { time, bytes: kept.bytes, of: of() });
        assert!(before.is_none(), "an id names one request to a peer at a time");
        assert!(self.waiting.len() <= CALLBACKS_MAX, "the requests that wait have a bound");
        let of_peer = self.by_peer.entry(peer).or_default();
        of_peer.count += 1;
        if of_peer.bytes == 0 {
            of_peer.heard = now;
        }
        of_peer.bytes += kept.bytes;
        true
    }

    /// The request that an answer belongs to. An answer that comes twice, too late, or from another
    /// peer belongs to none: a request whose time is over stays until [`Callbacks::expire`], so
    /// that its receiver hears of it exactly once.
    pub fn take(&mut self, id: u64, peer: SocketAddr, now: Duration) -> Option<T> {
        let key = (id, peer);
        if self.waiting.get(&key)?.time.end < now {
            return None;
        }
        let found = self.waiting.remove(&key)?;
        let took = now.saturating_sub(found.time.start);
        self.forget_one(peer, found.bytes, End::Answered { at: now, took });
        Some(found.of)
    }

    /// Removes a request that was registered and is not sent after all.
    pub fn withdraw(&mut self, id: u64, peer: SocketAddr) -> Option<T> {
        let found = self.waiting.remove(&(id, peer))?;
        self.forget_one(peer, found.bytes, End::NotSent);
        Some(found.of)
    }

    fn forget_one(&mut self, peer: SocketAddr, bytes: usize, end: End) {
        let of_peer = self.by_peer.get_mut(&peer).expect("a request that waits is counted");
        assert!(of_peer.bytes >= bytes, "the bytes of a request are given back once");
        of_peer.count -= 1;
        of_peer.bytes -= bytes;
        match end {
            // reads take the time that they need, and say nothing of writes
            _ if bytes == 0 => {}
            End::Answered { at, took } => {
                of_peer.heard = at;
                of_peer.is_slow = took > LATE_AFTER;
            }
            // a peer that has answered something since is not the cause
            End::Expired { begun } => of_peer.is_slow |= of_peer.heard <= begun,
            End::NotSent => {}
        }
        assert!(of_peer.count > 0 || of_peer.bytes == 0, "nothing is kept for a peer for which no request waits");
        if of_peer.count == 0 && !of_peer.is_slow {
            self.by_peer.remove(&peer);
        }
    }

    /// Removes the requests that were not answered in time, and gives them.
    pub fn expire(&mut self, now: Duration) -> Vec<(SocketAddr, T)> {
        let late = self.waiting.extract_if(|_, waiting| waiting.time.end < now);
        let mut late: Vec<_> = late.map(|((id, peer), waiting)| (id, peer, waiting)).collect();
        late.iter().for_each(|(_, peer, waiting)| {
            let end = End::Expired { begun: waiting.time.start };
            self.forget_one(*peer, waiting.bytes, end);
        });
        let counted: usize = self.by_peer.values().map(|of_peer| of_peer.count).sum();
        assert_eq!(counted, self.waiting.len(), "each request that waits is counted for its peer");
        late.sort_by_key(|(id, peer, _)| (*id, *peer));
        late.into_iter().map(|(_, peer, waiting)| (peer, waiting.of)).collect()
    }

    /// Number of requests that wait.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: KeptBytes = KeptBytes { bytes: 0, left: 0 };

    #[test]
    fn an_answer_counts_once_in_time_and_from_the_peer_that_was_asked() {
        let (peer, other) = ("127.0.0.2:7000".parse().unwrap(), "127.0.0.3:7000".parse().unwrap());
        let second = Duration::from_secs(1);
        let mut callbacks = Callbacks::default();
        let ids: Vec<_> = (0..4).map(|_| callbacks.next_id()).collect();
        assert!(ids.iter().all(|id| callbacks.add(*id, peer, Duration::ZERO..second, NOTHING, || *id)));
        assert_eq!(callbacks.take(ids[0], other, Duration::ZERO), None);
        assert_eq!(callbacks.take(ids[0], peer, Duration::ZERO), Some(ids[0]));
        assert_eq!(callbacks.take(ids[0], peer, Duration::ZERO), None);
        assert_eq!(callbacks.take(ids[1], peer, second * 2), None);
        assert_eq!(callbacks.expire(second * 2), [(peer, ids[1]), (peer, ids[2]), (peer, ids[3])]);
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
            while callbacks.has_room(peer, NOTHING, Duration::ZERO) {
                let id = callbacks.next_id();
                assert!(callbacks.add(id, peer, Duration::ZERO..Duration::ZERO, NOTHING, || ()));
                count += 1;
            }
            count
        };
        assert_eq!([1, 2, 3, 4, 5, 6].map(&mut fill), [66_667, 44_444, 29_630, 19_753, 13_169, 8_779]);
        assert!((7..20).all(|peer| fill(peer) > 0));
        callbacks.expire(Duration::from_secs(1));
        assert!(callbacks.is_empty() && callbacks.by_peer.is_empty());
    }

    const SIZE: usize = 10;

    fn peer_of(number: u16) -> SocketAddr {
        SocketAddr::new("127.0.0.1".parse().unwrap(), number)
    }

    /// Adds a request of [`SIZE`] bytes; its id, unless there is no room.
    fn add(callbacks: &mut Callbacks<()>, number: u16, now: Duration, left: usize) -> Option<u64> {
        let id = callbacks.next_id();
        let time = now..now + LATE_AFTER * 4;
        callbacks.add(id, peer_of(number), time, KeptBytes { bytes: SIZE, left }, || ()).then_some(id)
    }

    /// A peer that answers in time is busy beyond its part and is refused nothing; one that is late
    /// is refused what is kept, and leaves the others their room.
    #[test]
    fn only_a_late_peer_is_refused_what_is_kept() {
        const LEFT: usize = 8 * SIZE;
        let (now, late) = (Duration::from_secs(1), Duration::from_secs(1) + LATE_AFTER * 2);
        let mut callbacks = Callbacks::default();
        let filled: Vec<u64> = (0..4).filter_map(|_| add(&mut callbacks, 1, now, LEFT)).collect();
        assert_eq!(filled.len(), 4);
        assert!(callbacks.is_busy(peer_of(1), LEFT, now) && !callbacks.is_busy(peer_of(1), LEFT + 2 * SIZE, now));
        let beyond = add(&mut callbacks, 1, now, LEFT).expect("it may be in time yet");
        // it has answered nothing for too long
        assert_eq!(add(&mut callbacks, 1, late, LEFT), None);
        assert!(!callbacks.is_busy(peer_of(1), LEFT, late), "nobody waits for a late peer");
        let id = callbacks.next_id();
        assert!(callbacks.add(id, peer_of(1), late..late, NOTHING, || ()), "a read keeps nothing");
        // one request to each other peer goes, whatever is left
        assert!(add(&mut callbacks, 2, late, 0).is_some());
        // an answer that took too long changes nothing, one in time does
        assert_eq!(callbacks.take(beyond, peer_of(1), late), Some(()));
        assert_eq!(add(&mut callbacks, 1, late, LEFT), None);
        let fast = add(&mut callbacks, 1, late, LEFT + 2 * SIZE).expect("it has less than its part");
        assert_eq!(callbacks.take(fast, peer_of(1), late), Some(()));
        assert!(callbacks.is_busy(peer_of(1), LEFT, late) && add(&mut callbacks, 1, late, LEFT).is_some());
    }

    /// A peer that has let all of its requests expire stays late until it answers, so that writers
    /// are held back once and not again after each expiry. A request that is not sent says nothing.
    #[test]
    fn a_peer_that_hangs_is_late_until_it_answers() {
        let mut callbacks = Callbacks::default();
        assert!(add(&mut callbacks, 1, Duration::ZERO, 0).is_some());
        let now = LATE_AFTER * 8;
        assert_eq!(callbacks.expire(now), [(peer_of(1), ())]);
        let first = add(&mut callbacks, 1, now, 0).expect("nothing is kept for it");
        assert_eq!(add(&mut callbacks, 1, now, 0), None);
        assert_eq!(callbacks.withdraw(first, peer_of(1)), Some(()));
        let again = add(&mut callbacks, 1, now, 0).expect("nothing is kept for it");
        assert_eq!(add(&mut callbacks, 1, now, 0), None);
        assert_eq!(callbacks.take(again, peer_of(1), now), Some(()));
        assert!(callbacks.is_empty() && callbacks.by_peer.is_empty());
    }
}
