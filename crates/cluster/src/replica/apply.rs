//! Writes on this node: into the engine, and durable as configured when they return.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use env::{Env, Instant, Sleep};
use rows::{Mutation, ReadError, Row};
use storage::commitlog::{LogError, LogPosition, WaitDurable};
use storage::write::Applied;
use storage::{Engine, StorageError};

use crate::node::Node;
use crate::sampling::of_write;
use crate::stripes::Held;

/// A write of so many bytes in few rows does not run on a worker: half a millisecond.
const LARGE_WRITE: usize = 1 << 20;
/// A slow disk takes so much.
const BYTES_A_SECOND: usize = 8 << 20;
/// See [`LARGE_WRITE`]: of more rows each is small, and counting them costs.
const LARGE_ROWS_MAX: usize = 16;

/// Why a write is not known to be durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WriteError {
    /// It took longer than its timeout. It may become durable yet.
    TimedOut,
    /// The engine refused it, or the log failed.
    Storage(StorageError),
    /// What had to be read first could not be; nothing was written.
    Read(ReadError),
    /// Too many reads wait for the disk; nothing was written.
    Overloaded,
}

impl From<StorageError> for WriteError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<LogError> for WriteError {
    fn from(error: LogError) -> Self {
        Self::Storage(error.into())
    }
}

/// The wait for the log of a write that is in the memtables. Completes when it is durable, or out of time.
#[must_use = "the write is durable only when this completes"]
pub struct Acknowledgement {
    engine: Arc<Engine>,
    durable: WaitDurable,
    begun: Instant,
    /// So long it may take from then on.
    rest: Duration,
    /// From the first time on that somebody waits for it.
    timer: Option<Sleep>,
}

impl Future for Acknowledgement {
    type Output = Result<(), WriteError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let env = &this.engine.env;
        if let Poll::Ready(durable) = Pin::new(&mut this.durable).poll(context) {
            this.engine.waiting_on_commit.record(micros(env.elapsed(this.begun)));
            return Poll::Ready(durable.map_err(WriteError::from));
        }
        let rest = || this.rest.saturating_sub(env.elapsed(this.begun));
        let timer = this.timer.get_or_insert_with(|| env.sleep(rest()));
        timer.as_mut().poll(context).map(|()| Err(WriteError::TimedOut))
    }
}

impl Node {
    /// Applies mutations as one step; they are durable when it returns.
    pub async fn write(&self, mutations: &[Mutation]) -> Result<(), WriteError> {
        match self.append(mutations).await? {
            None => Ok(()),
            Some(acknowledged) => acknowledged.await,
        }
    }

    /// The same up to the wait for the log, which is given unless nothing is to be waited for: it needs nothing of the mutations any more.
    pub async fn append(&self, mutations: &[Mutation]) -> Result<Option<Acknowledgement>, WriteError> {
        let timeout = self.timeouts().write + more_time(mutations);
        let begun = self.env.now();
        let applied = within(&self.env, timeout, self.apply(mutations)).await.unwrap_or(Err(WriteError::TimedOut))?;
        let Some(position) = applied else { return Ok(None) };
        let durable = self.engine.log.wait_durable(position);
        match durable.now() {
            Some(settled) => Ok(settled.map(|()| None)?),
            None => {
                let engine = Arc::clone(&self.engine);
                let rest = timeout.saturating_sub(self.env.elapsed(begun));
                Ok(Some(Acknowledgement { engine, durable, begun: self.env.now(), rest, timer: None }))
            }
        }
    }

    /// Waits for the log, and counts how long when it was not durable at once.
    pub(crate) async fn wait_durable(&self, position: LogPosition) -> Result<(), LogError> {
        let mut durable = self.engine.log.wait_durable(position);
        let mut begun = None;
        std::future::poll_fn(move |context| {
            let polled = Pin::new(&mut durable).poll(context);
            match (&polled, begun) {
                (Poll::Pending, None) => begun = Some(self.env.now()),
                (Poll::Ready(_), Some(begun)) => self.engine.waiting_on_commit.record(micros(self.env.elapsed(begun))),
                _ => {}
            }
            polled
        })
        .await
    }

    /// Applies mutations as one step, and gives the position that the log must be durable up to.
    pub(crate) async fn apply(&self, mutations: &[Mutation]) -> Result<Option<LogPosition>, WriteError> {
        self.apply_holding(mutations, Held::new()).await
    }

    /// The same under locks, which are released when memtables have the write or when it is refused. A job in the
    /// background that applies it takes the locks along: it ends after this future where that is dropped.
    pub(crate) async fn apply_holding(
        &self,
        mutations: &[Mutation],
        held: Held,
    ) -> Result<Option<LogPosition>, WriteError> {
        if self.engine.options.read_only {
            return Err(StorageError::ReadOnly.into());
        }
        self.engine.admit().await;
        let mut held = held;
        loop {
            let begun = self.env.now();
            let (applied, still_held) = self.apply_once(mutations, held).await?;
            held = still_held;
            match applied {
                Err(StorageError::Busy) => self.engine.log.ready().await,
                Ok(applied) => {
                    self.record_write_latency(mutations, begun);
                    if self.sampling.is_on() {
                        of_write(&self.sampling, mutations);
                    }
                    return Ok(applied.position);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Large values are copied and checksummed elsewhere: others on this worker do not wait for that.
    async fn apply_once(
        &self,
        mutations: &[Mutation],
        held: Held,
    ) -> Result<(Result<Applied, StorageError>, Held), WriteError> {
        if large_values(mutations) == 0 {
            return Ok((self.engine.apply(mutations), held));
        }
        let (engine, mutations) = (Arc::clone(&self.engine), mutations.to_vec());
        let applied = self.env.blocking("write", move || (engine.apply(&mutations), held));
        applied.await.map_err(|_| WriteError::Overloaded)
    }

    fn record_write_latency(&self, mutations: &[Mutation], begun: Instant) {
        let micros = micros(self.env.elapsed(begun));
        // of a batch the first table stands for all
        if let Some(store) =
            mutations.first().and_then(|m| m.updates.first()).and_then(|u| self.engine.table(u.table.id))
        {
            store.metrics.write_latency.record(micros);
        }
    }
}

/// Bytes of few rows with many of them; 0: it is not so.
fn large_values(mutations: &[Mutation]) -> usize {
    let [mutation] = mutations else { return 0 };
    let [update] = &mutation.updates[..] else { return 0 };
    if update.rows.len() > LARGE_ROWS_MAX {
        return 0;
    }
    let bytes = update.rows.iter().map(Row::data_size).sum();
    if bytes >= LARGE_WRITE { bytes } else { 0 }
}

/// The timeout is meant for small writes: while the disk takes a large one nothing is wrong.
fn more_time(mutations: &[Mutation]) -> Duration {
    Duration::from_secs((large_values(mutations) / BYTES_A_SECOND) as u64)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Awaits a future for at most `limit`; what is done at the first poll needs no timer. `None`: time is over.
pub(crate) async fn within<F: Future>(env: &Env, limit: Duration, future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut timer = None;
    std::future::poll_fn(move |context| {
        if let Poll::Ready(output) = future.as_mut().poll(context) {
            return Poll::Ready(Some(output));
        }
        let timer = timer.get_or_insert_with(|| env.sleep(limit));
        timer.as_mut().poll(context).map(|()| None)
    })
    .await
}
