//! How full the log is, as a percentage of its limits, and the waits that keep writers within
//! these.
//!
//! Counted are whole segments that memtables still need: by their bytes against `total_space`, by
//! what they would take to replay against `replay_budget`, whichever is more. Segments that
//! another process left, and those that wait for the archive, do not count, because no writer can
//! change that.
//!
//! - at 100 % flushes are asked for;
//! - from [`PAUSED`] on, when those take long, each write waits a little, in proportion;
//! - from [`HELD`] on writers wait until a flush has ended, but not longer than [`HELD_MAX`] each:
//!   nothing fails and nothing stands still, also where flushes fail.

use std::time::Duration;

use env::Env;
use env::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::Notify;

/// Load in percent from which on writes pause if flushes take long.
const PAUSED: u32 = 125;
/// Load in percent from which on writers wait for a flush. A segment of small rows is a quarter of
/// a server's budget, and the load grows by whole segments; the value leaves room for pauses
/// before.
pub(super) const HELD: u32 = 200;

// flushes are asked for, then writes pause, then they are held
const _: () = assert!(100 < PAUSED && PAUSED < HELD);

/// Longest pause of one write before that.
const PAUSE_MAX: Duration = Duration::from_millis(10);
/// Longest wait of one write, of the two seconds that it may take.
const HELD_MAX: Duration = Duration::from_secs(1);

const _: () = assert!(PAUSE_MAX.as_nanos() < HELD_MAX.as_nanos());

/// See the module.
#[derive(Default)]
pub(super) struct Load {
    percent: AtomicU32,
    eased: Notify,
}

impl Load {
    /// The percentage of `limit` that `amount` is.
    pub(super) fn percent_of(amount: u64, limit: u64) -> u32 {
        let percent = u128::from(amount) * 100 / u128::from(limit.max(1));
        u32::try_from(percent).unwrap_or(u32::MAX)
    }

    pub(super) fn percent(&self) -> u32 {
        self.percent.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, percent: u32) {
        if self.percent.swap(percent, Ordering::Relaxed) > percent {
            self.eased.notify_waiters();
        }
    }

    /// Whether a write need not wait.
    #[inline]
    pub(super) fn admits_at_once(&self) -> bool {
        self.percent() <= PAUSED
    }

    /// Waits as the load demands.
    pub(super) async fn admit(&self, env: &Env) {
        let begun = env.now();
        loop {
            let eased = self.eased.notified();
            let percent = self.percent();
            if percent < HELD {
                if percent > PAUSED {
                    let share = f64::from(percent - PAUSED) / f64::from(HELD - PAUSED);
                    env.sleep(PAUSE_MAX.mul_f64(share)).await;
                }
                return;
            }
            let rest = HELD_MAX.saturating_sub(env.elapsed(begun));
            if rest.is_zero() {
                return;
            }
            tokio::select! {
                biased;
                () = eased => {}
                () = env.sleep(rest) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use env::sim::Sim;

    use super::*;

    /// How long a write waits at a load.
    fn waits(percent: u32) -> Duration {
        let sim = Sim::new(1);
        let (env, load) = (sim.env(), Load::default());
        load.set(percent);
        let begun = env.now();
        sim.block_on(load.admit(&env));
        env.elapsed(begun)
    }

    #[test]
    fn writes_wait_by_the_load() {
        assert_eq!(waits(0), Duration::ZERO);
        assert_eq!(waits(PAUSED), Duration::ZERO);
        let halfway = waits((PAUSED + HELD) / 2);
        assert!(halfway > Duration::ZERO && halfway < PAUSE_MAX, "{halfway:?}");
        assert_eq!(waits(HELD), HELD_MAX);
        assert_eq!(waits(u32::MAX), HELD_MAX);
        assert_eq!((Load::percent_of(0, 0), Load::percent_of(3, 2), Load::percent_of(u64::MAX, 1)), (0, 150, u32::MAX));
    }

    #[test]
    fn a_flush_that_ends_lets_them_go() {
        let sim = Sim::new(1);
        let (env, load) = (sim.env(), Load::default());
        load.set(HELD);
        let begun = env.now();
        let ease = async {
            env.sleep(HELD_MAX / 4).await;
            load.set(HELD + 1);
            env.sleep(HELD_MAX / 4).await;
            load.set(PAUSED);
        };
        sim.block_on(async { tokio::join!(load.admit(&env), load.admit(&env), ease) });
        assert_eq!(env.elapsed(begun), HELD_MAX / 2);
    }
}
