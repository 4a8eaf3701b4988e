//! Locks by what they protect, from a table of a fixed number of them: two things may share one.
//!
//! For steps that read, wait for the disk and then write: held at the edge, between doors, never
//! inside one. Several locks are taken in the order of the table, so that tasks never wait for
//! each other in a circle. Agrees in role with the striped locks of
//! `org.apache.cassandra.db.CounterMutation` and `service.paxos.PaxosState`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use tokio::sync::{Mutex, OwnedMutexGuard};

/// Number of locks: with some thousands under way at once few wait for the lock of another thing.
const STRIPES: usize = 4096;

/// The table.
pub struct Stripes(Box<[Arc<Mutex<()>>]>);

/// Locks that are held until this is dropped, wherever it has been moved to: into a job of the
/// background, too.
pub type StripeGuards = Vec<OwnedMutexGuard<()>>;

impl Default for Stripes {
    fn default() -> Self {
        Self((0..STRIPES).map(|_| Arc::default()).collect())
    }
}

impl Stripes {
    /// The place of something in the table.
    pub fn of(thing: impl Hash) -> usize {
        let mut hasher = DefaultHasher::new();
        thing.hash(&mut hasher);
        usize::try_from(hasher.finish() % STRIPES as u64).expect("less than the number of stripes")
    }

    /// The locks of all these places; None: another task has one of them.
    pub fn try_lock(&self, mut places: Vec<usize>) -> Option<StripeGuards> {
        places.sort_unstable();
        places.dedup();
        places.into_iter().map(|place| Arc::clone(&self.0[place]).try_lock_owned().ok()).collect()
    }

    /// Waits for the locks of all these places.
    pub async fn lock(&self, mut places: Vec<usize>) -> StripeGuards {
        places.sort_unstable();
        places.dedup();
        let mut held = Vec::with_capacity(places.len());
        for place in places {
            held.push(Arc::clone(&self.0[place]).lock_owned().await);
        }
        held
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods)] // threads that meet
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    /// Tasks on several threads that take two stripes each, in whatever order they name them: none
    /// waits for ever, and what a stripe protects is never seen by two.
    #[test]
    fn pairs_of_stripes_in_any_order() {
        let stripes = Arc::new(Stripes::default());
        let values: Arc<[AtomicU64; 5]> = Arc::default();
        let threads: Vec<_> = (0..4usize)
            .map(|thread| {
                let (stripes, values) = (Arc::clone(&stripes), Arc::clone(&values));
                std::thread::spawn(move || {
                    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
                    runtime.block_on(async {
                        for round in 0..500usize {
                            let (a, b) = ((thread + round) % 5, (thread * 3 + round * 2 + 1) % 5);
                            let _held = stripes.lock(vec![a, b]).await;
                            for place in [a, b] {
                                let seen = values[place].load(Ordering::Relaxed);
                                tokio::task::yield_now().await;
                                values[place].store(seen + 1, Ordering::Relaxed);
                            }
                        }
                    });
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
        let sum: u64 = values.iter().map(|value| value.load(Ordering::Relaxed)).sum();
        assert_eq!(sum, 4 * 500 * 2);
    }
}
