//! Writes of a replica go into the memtables and the commit log in one step. The wait for the log
//! is a step of its own.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use env::defects::{Defect, is_on};
use env::{Env, Instant, Sleep};
use rows::{Mutation, PartitionUpdate, ReadError, Row};
use storage::commitlog::{LogError, LogPosition, WaitDurable};
use storage::write::Applied;
use storage::{Engine, StorageError};

use super::Replica;
use crate::sampling::sample_write;
use crate::stripes::StripeGuards;

/// Bytes of a write in few rows from which on it does not run on a worker, because it takes half a
/// millisecond.
const LARGE_WRITE: usize = 1 << 20;
/// Bytes a second that a slow disk takes.
const BYTES_A_SECOND: usize = 8 << 20;
/// Most rows of a large write ([`LARGE_WRITE`]). If there are more each is small, and counting
/// their bytes would cost time.
const LARGE_ROWS_MAX: usize = 16;

/// Why a write is not known to be durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum WriteError {
    /// The write took longer than its timeout, and may become durable yet.
    TimedOut,
    /// The engine refused the write, or the log failed.
    Storage(StorageError),
    /// A read that the write needs failed; nothing was written.
    Read(ReadError),
    /// Too many reads wait for the disk; nothing was written.
    Overloaded,
    /// Too many of the other replicas failed.
    Peers,
}

impl std::fmt::Display for WriteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TimedOut => f.write_str("out of time"),
            Self::Storage(error) => error.fmt(f),
            Self::Read(error) => error.fmt(f),
            Self::Overloaded => f.write_str("too much background work waits"),
            Self::Peers => f.write_str("other replicas failed"),
        }
    }
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

/// The behaviour of a write while the buffer of the commit log is full.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WhenBusy {
    /// The write waits for room, and is tried again.
    Waits,
    /// The write fails with [`StorageError::Busy`], and nothing of it is applied: its caller holds
    /// something that others may need meanwhile.
    Fails,
}

/// The wait for this node's commit log up to a position. Completes when the log is durable up to
/// there.
pub(crate) struct Logged {
    engine: Arc<Engine>,
    durable: WaitDurable,
    begun: Instant,
}

impl Logged {
    /// A timer that ends `rest` after the wait began.
    pub fn sleep_until(&self, rest: Duration) -> Sleep {
        let env = &self.engine.env;
        env.sleep(rest.saturating_sub(env.elapsed(self.begun)))
    }
}

impl Future for Logged {
    type Output = Result<(), WriteError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let durable = std::task::ready!(Pin::new(&mut self.durable).poll(context));
        let engine = &self.engine;
        engine.waiting_on_commit.record(micros(engine.env.elapsed(self.begun)));
        Poll::Ready(durable.map_err(WriteError::from))
    }
}

impl Replica {
    /// The wait for the log up to a position; None: nothing is to be waited for.
    pub fn logged(&self, position: LogPosition) -> Result<Option<Logged>, WriteError> {
        if is_on(Defect::NoWait) {
            return Ok(None);
        }
        let durable = self.engine.log.wait_durable(position);
        match durable.now() {
            Some(settled) => Ok(settled.map(|()| None)?),
            None => Ok(Some(Logged { engine: Arc::clone(&self.engine), durable, begun: self.env.now() })),
        }
    }

    /// Applies mutations as one step, and gives the position that the log must be durable up to;
    /// None: nothing is logged.
    ///
    /// Locks that the writer holds are released when memtables have the write or when it is
    /// refused. A job in the background that applies a large write takes the locks along: it ends
    /// after this future where that is dropped.
    pub async fn apply(&self, mutations: &[Mutation], held: StripeGuards) -> Result<Option<LogPosition>, WriteError> {
        self.apply_encoded(mutations, &[], held).await
    }

    /// Does the work of `Replica::apply`. `encoded`: the records of the mutations, if they were
    /// encoded before; empty: they were not.
    pub async fn apply_encoded(
        &self,
        mutations: &[Mutation],
        encoded: &[Bytes],
        held: StripeGuards,
    ) -> Result<Option<LogPosition>, WriteError> {
        if self.engine.options.read_only {
            return Err(StorageError::ReadOnly.into());
        }
        self.engine.admit().await;
        self.apply_admitted(mutations, encoded, held, WhenBusy::Waits).await
    }

    /// Does the work of `Replica::apply_encoded`. The caller has waited for room in memtables
    /// (`Engine::admit`) before, because it holds something now that the task which makes room may
    /// need.
    pub(crate) async fn apply_admitted(
        &self,
        mutations: &[Mutation],
        encoded: &[Bytes],
        mut held: StripeGuards,
        when_busy: WhenBusy,
    ) -> Result<Option<LogPosition>, WriteError> {
        if is_on(Defect::ForgetDeletion) && mutations.iter().any(deletes_a_partition) {
            return Ok(None);
        }
        loop {
            let begun = self.env.now();
            let number = self.engine.views_number();
            if let Some(views) = self.engine.views_over(mutations) {
                // boxed: the future of other writes stays as small as it is
                let position = Box::pin(self.apply_with_views(mutations, held, views, when_busy)).await?;
                self.note_write(mutations, begun);
                return Ok(position);
            }
            let (applied, still_held) = self.apply_once(mutations, encoded, number, held).await?;
            held = still_held;
            match applied {
                Err(StorageError::Busy) if when_busy == WhenBusy::Waits => self.engine.log.wait_for_room().await,
                Err(StorageError::ViewsChanged) => {}
                Ok(applied) => {
                    self.note_write(mutations, begun);
                    return Ok(applied.position);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn note_write(&self, mutations: &[Mutation], begun: Instant) {
        self.record_write_latency(mutations, begun);
        if self.sampling.is_on() {
            sample_write(&self.sampling, mutations);
        }
    }

    /// Applies mutations. Large values are copied and checksummed on another thread, so that other
    /// requests of the worker do not wait.
    async fn apply_once(
        &self,
        mutations: &[Mutation],
        encoded: &[Bytes],
        number: u64,
        held: StripeGuards,
    ) -> Result<(Result<Applied, StorageError>, StripeGuards), WriteError> {
        if large_values(mutations) == 0 {
            return Ok((self.engine.apply_without_views(mutations, encoded, number), held));
        }
        let (engine, mutations, encoded) = (Arc::clone(&self.engine), mutations.to_vec(), encoded.to_vec());
        let write = move || (engine.apply_without_views(&mutations, &encoded, number), held);
        let applied = self.env.blocking("write", write);
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

/// Whether a mutation deletes a partition of a user.
fn deletes_a_partition(mutation: &Mutation) -> bool {
    let of_user = |update: &&PartitionUpdate| !schema::system::is_system_keyspace(&update.table.keyspace);
    mutation.updates.iter().filter(of_user).any(|update| !update.deletion.is_live())
}

/// Bytes of mutations that have few rows with many bytes; 0: these are no such mutations.
pub(super) fn large_values(mutations: &[Mutation]) -> usize {
    let [mutation] = mutations else { return 0 };
    let [update] = &mutation.updates[..] else { return 0 };
    if update.rows.len() > LARGE_ROWS_MAX {
        return 0;
    }
    let bytes = update.rows.iter().map(Row::data_size).sum();
    if bytes >= LARGE_WRITE { bytes } else { 0 }
}

/// Time that a write may take beyond its timeout. The timeout is meant for small writes: a large
/// one may wait for the disk longer although nothing is wrong.
pub(crate) fn more_time(mutations: &[Mutation]) -> Duration {
    Duration::from_secs((large_values(mutations) / BYTES_A_SECOND) as u64)
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

/// Awaits a future for at most `limit`; what is done at the first poll needs no timer. `None`: time
/// is over.
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
