//! A limit of memory that many owners share: each takes bytes from it and gives them back.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes that everybody who holds this `ByteBudget` uses together. It counts what is taken
/// and tells when the limit is reached. It refuses nothing: an owner that takes more than is left
/// must have a reason.
#[derive(Debug)]
pub struct ByteBudget {
    used: AtomicUsize,
    limit: usize,
}

impl ByteBudget {
    /// A budget of `limit` bytes, none of them taken.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), limit })
    }

    /// Bytes that are taken now; may be more than the limit.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Bytes of the budget. Never changes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes that nobody has taken.
    pub fn left(&self) -> usize {
        self.limit.saturating_sub(self.used())
    }

    /// Whether as many bytes are taken as the limit, or more.
    pub fn is_used_up(&self) -> bool {
        self.used() >= self.limit
    }

    /// Takes bytes, even if fewer are left; None where the budget is used up.
    pub fn take_if_any(self: &Arc<Self>, bytes: usize) -> Option<ByteReservation> {
        let more = |used: usize| (used < self.limit).then(|| used.saturating_add(bytes));
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        Some(ByteReservation { budget: Arc::clone(self), bytes })
    }

    /// Takes bytes, even if fewer are left.
    pub fn take(self: &Arc<Self>, bytes: usize) -> ByteReservation {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        ByteReservation { budget: Arc::clone(self), bytes }
    }
}

/// Bytes taken from a [`ByteBudget`]. Dropping it gives them back.
#[derive(Debug)]
pub struct ByteReservation {
    budget: Arc<ByteBudget>,
    bytes: usize,
}

impl ByteReservation {
    /// Bytes taken by this owner.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Takes more bytes or gives some back, so that this owner has `bytes`.
    pub fn set(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.budget.used.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else {
            let given_back = self.bytes - bytes;
            let before = self.budget.used.fetch_sub(given_back, Ordering::Relaxed);
            // where an owner is dropped by a panic, another panic would abort the process
            let is_balanced = before >= given_back || std::thread::panicking();
            assert!(is_balanced, "bytes that are given back to a budget were taken from it");
        }
        self.bytes = bytes;
    }
}

impl Drop for ByteReservation {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_given_back() {
        let budget = ByteBudget::new(100);
        let mut some = budget.take(60);
        assert!(!budget.is_used_up());
        let more = budget.take(60);
        assert!(budget.is_used_up() && budget.take_if_any(1).is_none());
        some.set(10);
        assert_eq!((budget.used(), some.bytes()), (70, 10));
        drop(more);
        assert_eq!(budget.take_if_any(200).map(|much| (much.bytes(), budget.used())), Some((200, 210)));
        drop(some);
        assert_eq!(budget.used(), 0);
    }
}
