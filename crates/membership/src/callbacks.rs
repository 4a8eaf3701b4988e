//! Requests that wait for their answer: by message id and peer, each with the time at which nobody
//! waits any more.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Requests that may wait at one time; a further one is refused, and its sender takes it as not
/// answered.
pub const CALLBACKS_MAX: usize = 100_000;

/// Requests that wait. `T` says what becomes of the answer.
#[derive(Debug)]
pub struct Callbacks<T> {
    waiting: HashMap<(u64, SocketAddr), (Duration, T)>,
    next: u64,
}

impl<T> Default for Callbacks<T> {
    fn default() -> Self {
        Self { waiting: HashMap::new(), next: 0 }
    }
}

impl<T> Callbacks<T> {
    /// A new message id. Ids stay in 1 to 2^31 − 1: some places of the protocol hold no more.
    pub fn next_id(&mut self) -> u64 {
        self.next = if self.next >= i32::MAX as u64 { 1 } else { self.next + 1 };
        self.next
    }

    /// Registers a request; `until` is on the caller's monotonic clock. False: too many wait.
    pub fn add(&mut self, id: u64, peer: SocketAddr, until: Duration, of: T) -> bool {
        if self.waiting.len() >= CALLBACKS_MAX {
            return false;
        }
        let before = self.waiting.insert((id, peer), (until, of));
        assert!(before.is_none(), "an id names one request to a peer at a time");
        true
    }

    /// The request that an answer belongs to. An answer that comes twice, too late, or from another
    /// peer belongs to none.
    pub fn take(&mut self, id: u64, peer: SocketAddr, now: Duration) -> Option<T> {
        self.waiting.remove(&(id, peer)).filter(|(until, _)| *until >= now).map(|(_, of)| of)
    }

    /// Requests that nobody has answered in time.
    pub fn expire(&mut self, now: Duration) -> Vec<(SocketAddr, T)> {
        let late = self.waiting.extract_if(|_, (until, _)| *until < now);
        let mut late: Vec<_> = late.map(|((id, peer), (_, of))| (id, peer, of)).collect();
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
        assert!(ids.iter().all(|id| callbacks.add(*id, peer, second, *id)));
        assert_eq!(callbacks.take(ids[0], other, Duration::ZERO), None);
        assert_eq!(callbacks.take(ids[0], peer, Duration::ZERO), Some(ids[0]));
        assert_eq!(callbacks.take(ids[0], peer, Duration::ZERO), None);
        assert_eq!(callbacks.take(ids[1], peer, second * 2), None);
        assert_eq!(callbacks.expire(second * 2), [(peer, ids[2]), (peer, ids[3])]);
        assert!(callbacks.is_empty());
    }
}
