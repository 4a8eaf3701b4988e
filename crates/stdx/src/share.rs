//! A share of the memory that many take from and give back to.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many bytes for all who know it. It counts and says when it is used up; who takes more all the same has a reason.
#[derive(Debug)]
pub struct Share {
    used: AtomicUsize,
    limit: usize,
}

impl Share {
    /// A share of which nothing is used.
    pub fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { used: AtomicUsize::new(0), limit })
    }

    /// What is taken, bytes.
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// What there is, bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Nothing is left.
    pub fn is_used_up(&self) -> bool {
        self.used() >= self.limit
    }

    /// Takes bytes, whether or not there are as many.
    pub fn take(self: &Arc<Self>, bytes: usize) -> Taken {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        Taken { share: Arc::clone(self), bytes }
    }
}

/// What was taken of a [`Share`]; given back when it is dropped.
#[derive(Debug)]
pub struct Taken {
    share: Arc<Share>,
    bytes: usize,
}

impl Taken {
    /// How many bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Of what.
    pub fn share(&self) -> &Share {
        &self.share
    }

    /// Takes more, or gives some of it back, until it is so many bytes.
    pub fn set(&mut self, bytes: usize) {
        if bytes > self.bytes {
            self.share.used.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else {
            self.share.used.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_dropped_is_given_back() {
        let share = Share::new(100);
        let mut some = share.take(60);
        assert!(!share.is_used_up());
        let more = share.take(60);
        assert!(share.is_used_up());
        some.set(10);
        assert_eq!((share.used(), some.bytes()), (70, 10));
        drop(more);
        drop(some);
        assert_eq!(share.used(), 0);
    }
}
