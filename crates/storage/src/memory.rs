//! The budget of all memtables together, and the waits that keep writers within it.
//!
//! - from a third of the budget in memtables that take writes, the largest table is flushed, so
//!   that flushing overlaps with filling; while flushes fail, from a third of what their tables
//!   leave;
//! - from 60 % on each write waits a little, in proportion to the overshoot;
//! - at the whole of it writers wait until a flush has ended. Nothing is dropped and nothing fails.

use std::time::Duration;

use env::Env;
use env::defects::{Defect, is_on};
use env::sync::atomic::{AtomicIsize, Ordering};
use tokio::sync::Notify;

/// Longest pause of one write below the whole budget.
const PAUSE_MAX: Duration = Duration::from_millis(10);

/// Bytes in memtables, and the writers that wait until there are fewer.
pub struct MemtableMemory {
    budget: usize,
    /// Bytes in memtables. A writer counts its bytes after it has left the door, so a flush may
    /// give them back before: the number is below 0 for a moment then.
    used: AtomicIsize,
    freed: Notify,
}

impl MemtableMemory {
    /// A budget in bytes.
    pub fn new(budget: usize) -> Self {
        Self { budget, used: AtomicIsize::new(0), freed: Notify::new() }
    }

    /// Counts bytes that were added to memtables.
    #[inline]
    pub fn take(&self, bytes: usize) {
        self.used.fetch_add(bytes.cast_signed(), Ordering::Relaxed);
    }

    /// Counts bytes of memtables that were given back.
    pub fn release(&self, bytes: usize) {
        self.used.fetch_sub(bytes.cast_signed(), Ordering::Relaxed);
        self.freed.notify_waiters();
    }

    /// Bytes in use, and bytes allowed.
    pub fn usage(&self) -> (usize, usize) {
        (self.used(), self.budget)
    }

    #[inline]
    fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed).max(0).cast_unsigned()
    }

    /// Whether it is time to flush the largest table.
    #[inline]
    pub fn wants_flush(&self) -> bool {
        self.used() > self.budget / 3
    }

    /// Whether it is time to flush the largest table while flushes of other tables fail. `active`:
    /// bytes in memtables that take writes, of tables whose flush has not failed. The failed
    /// tables may keep more than a third of the budget; without this rule each write would then
    /// ask for a flush of a few bytes.
    pub fn wants_flush_beside_failed(&self, active: usize) -> bool {
        let kept = self.used().saturating_sub(active);
        active > self.budget.saturating_sub(kept) / 3
    }

    /// Whether writers wait until a flush has ended.
    pub fn is_full(&self) -> bool {
        self.used() >= self.budget
    }

    /// Whether a write need not wait.
    #[inline]
    pub fn admits_at_once(&self) -> bool {
        self.used() <= self.budget / 5 * 3
    }

    /// Waits as the budget demands.
    pub async fn admit(&self, env: &Env) {
        loop {
            let early = (!is_on(Defect::ListenLate)).then(|| self.freed.notified());
            let used = self.used();
            let relaxed = self.budget / 5 * 3;
            if used <= relaxed {
                return;
            }
            if used < self.budget {
                let overshoot = (used - relaxed) as f64 / (self.budget - relaxed).max(1) as f64;
                env.sleep(PAUSE_MAX.mul_f64(overshoot)).await;
                return;
            }
            early.unwrap_or_else(|| self.freed.notified()).await;
        }
    }
}
