//! Work of several steps that must not stop in the middle: it goes on even if its caller is gone,
//! such as the client of a request.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::{Env, Tasks};

/// A future that, once it was polled, runs to its end: if it is dropped before, a worker thread of
/// its own takes it over. If the system has no thread for that, the future is dropped, and the log
/// says so.
pub struct RunToCompletion<T: Send + 'static> {
    tasks: Arc<dyn Tasks>,
    name: &'static str,
    /// The future; None: it has come to its end.
    future: Option<Pin<Box<dyn Future<Output = T> + Send>>>,
    has_begun: bool,
}

impl<T: Send + 'static> RunToCompletion<T> {
    pub(crate) fn new(env: &Env, name: &'static str, future: Pin<Box<dyn Future<Output = T> + Send>>) -> Self {
        Self { tasks: Arc::clone(&env.tasks), name, future: Some(future), has_begun: false }
    }
}

impl<T: Send + 'static> Future for RunToCompletion<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        self.has_begun = true;
        let future = self.future.as_mut().expect("a future is not polled after its end");
        let polled = future.as_mut().poll(context);
        if polled.is_ready() {
            self.future = None;
        }
        polled
    }
}

impl<T: Send + 'static> Drop for RunToCompletion<T> {
    fn drop(&mut self) {
        let Some(future) = self.future.take().filter(|_| self.has_begun) else { return };
        let rest = Box::new(move || -> crate::LocalFuture { Box::pin(async move { drop(future.await) }) });
        if let Err(error) = self.tasks.try_spawn_local_worker(self.name, rest) {
            tracing::error!(name = self.name, %error, "work stops in the middle: the system has no thread to end it");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::sim::Sim;

    #[test]
    fn what_has_begun_ends_without_whoever_awaits_it() {
        let sim = Sim::new(1);
        let steps = Arc::new(AtomicU32::new(0));
        let work = || {
            let (env, steps) = (sim.env(), Arc::clone(&steps));
            async move {
                for _ in 0..2 {
                    env.sleep(Duration::from_secs(1)).await;
                    steps.fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        // awaited; never polled; given up in the middle
        sim.block_on(sim.env().run_to_completion("work", work()));
        assert_eq!(steps.load(Ordering::Relaxed), 2);
        drop(sim.env().run_to_completion("work", work()));
        sim.block_on(sim.env().sleep(Duration::from_secs(5)));
        assert_eq!(steps.load(Ordering::Relaxed), 2);
        let env = sim.env();
        let given_up = env.timeout(Duration::from_millis(1500), env.run_to_completion("work", work()));
        assert!(sim.block_on(given_up).is_err());
        assert_eq!(steps.load(Ordering::Relaxed), 3);
        sim.block_on(sim.env().sleep(Duration::from_secs(5)));
        assert_eq!(steps.load(Ordering::Relaxed), 4);
    }
}
