//! The memory for large results, and the turns of the requests that build one: few at a time, the
//! others in the order in which they came.
//!
//! A result counts from where it is built until it is sent. Small ones are not counted and wait for
//! nothing, so that clients which do not take their results hold up each other and no other
//! client.

use std::sync::Arc;
use std::time::Duration;

use env::Env;
use stdx::{ByteBudget, ByteReservation};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Most reads that build large results, or are the next to do so: as many as there are threads for
/// them, and some that wait.
const BUILDING_MAX: usize = 32;

/// Bytes for which a large result counts before its size is known: a full page, but no more than a
/// part of the whole memory for results.
const EXPECTED: usize = 8 << 20;
const EXPECTED_PART: usize = 4;

/// Time between two looks whether there is memory again.
const LOOK: Duration = Duration::from_millis(5);

/// The memory for large results, and the number of requests that may build one at a time.
#[derive(Debug)]
pub struct ResultRoom {
    /// The bytes that large results may take, and the bytes that they take now.
    pub budget: Arc<ByteBudget>,
    building: Semaphore,
}

impl ResultRoom {
    /// Makes room for so many bytes.
    pub fn new(bytes: usize) -> Self {
        Self { budget: ByteBudget::new(bytes), building: Semaphore::new(BUILDING_MAX) }
    }

    /// Waits for a turn, and then for memory. None: there will be none, because the node stops.
    pub async fn enter(&self, env: &Env) -> Option<SemaphorePermit<'_>> {
        let permit = self.building.acquire().await.ok()?;
        while self.budget.is_used_up() {
            env.sleep(LOOK).await;
        }
        Some(permit)
    }

    /// Takes memory for a result that is about to be built. None: other requests have taken it.
    pub fn expect_one(&self) -> Option<ByteReservation> {
        (!self.budget.is_used_up()).then(|| self.budget.take(EXPECTED.min(self.budget.limit() / EXPECTED_PART)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_results_wait_for_memory() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let env = env::real::env();
        let room = ResultRoom::new(1000);
        runtime.block_on(async {
            let all = room.budget.take(1000);
            assert!(room.expect_one().is_none());
            {
                let mut waiting = std::pin::pin!(room.enter(&env));
                let soon = env.sleep(LOOK * 4);
                tokio::select! {
                    _ = &mut waiting => panic!("there is no memory"),
                    () = soon => {}
                }
                drop(all);
                assert!(waiting.await.is_some());
            }
            let expected = room.expect_one().expect("there is memory");
            assert_eq!(expected.bytes(), 250);
        });
        assert_eq!(room.budget.used(), 0);
    }
}
