//! The flusher: one background task that writes memtables out, one table at a time. A flush that
//! failed is tried again after a while; meanwhile other tables have their turn, whose directories
//! may be on another disk. Flushes are asked for by memory, by the log, by an operator, or because
//! of the age of memtables.
//!
//! Memtables are written only once the commit log has their records. Otherwise a mutation of
//! several tables, a schema change above all, could survive a crash in the one table that was just
//! flushed and be lost in the others. A log that has failed will never have them; then only
//! flushes of operators are carried out, because everything that was acknowledged is in the log.
//! An operator who asks for a flush gets it, because the log's disk may be lost; schema tables are
//! not flushed even then. A log that lacks room or descriptors may have it soon, so flushes that
//! no operator waits for are put off for a while; then they go on, because they may make room.

use std::sync::{Arc, Weak};
use std::task::Context;
use std::time::Duration;

use env::Next;
use env::sync::atomic::Ordering;

use crate::commitlog::LogError;
use crate::engine::{self, Engine};
use crate::error::StorageError;
use crate::requests::flushes::{Flusher, Request};
use crate::table::view::FlushSet;
use crate::{flush, schema_tables};

/// Pause before a failed flush is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Time for which a flush that no operator waits for is put off during a shortage of the log.
const SHORTAGE_WAIT_MAX: Duration = Duration::from_secs(10);

impl Flusher {
    /// Registers the task.
    pub fn start(engine: &Arc<Engine>) {
        let weak: Weak<Engine> = Arc::downgrade(engine);
        let step = move || match weak.upgrade() {
            None => Next::Done,
            Some(engine) => engine.flusher.step(&engine),
        };
        let wake = engine.env.tasks.background("flush", Box::new(step));
        wake.wake();
        *engine.flusher.wake.lock().expect("no panic inside") = Some(wake);
    }

    /// The first request whose time has come. Err: when the task has to look again.
    fn next(&self, engine: &Arc<Engine>) -> Result<Request, Next> {
        let now = engine.env.now();
        let waker = engine::waker(engine, |engine| engine.flusher.wake());
        let mut context = Context::from_waker(&waker);
        let mut queue = self.queue.lock().expect("no panic inside");
        let due = queue.iter_mut().position(|request| request.is_due(now, &mut context));
        if let Some(request) = due.and_then(|due| queue.remove(due)) {
            return Ok(request);
        }
        let earliest = queue.iter().filter_map(|request| request.again_at).filter(|at| *at > now).min();
        Err(earliest.map_or(Next::Idle, |at| Next::After(at.since(now))))
    }

    /// Asks for flushes of tables whose memtables are as old as the table lets them become
    /// (`memtable_flush_period_in_ms`). Gives when to look again; None: no table has such a period.
    /// Empty memtables are looked at again after a period, as in Cassandra. Nothing is asked for
    /// while memtables that are frozen already wait for their flush: otherwise a disk that refuses
    /// flushes for hours would leave a frozen set for each period, and each read of the table
    /// looks into all of them.
    fn request_aged(&self, engine: &Engine) -> Option<Duration> {
        if engine.options.read_only {
            return None;
        }
        let now = engine.env.clock.monotonic_nanos();
        let mut earliest = None;
        for store in engine.tables() {
            let Some(period) = store.flush_period_nanos() else { continue };
            let age = now.saturating_sub(store.active_since.load(Ordering::Relaxed));
            let left = period.saturating_sub(age);
            if left == 0 && store.view().active_size() > 0 && !self.is_behind(&store) {
                // a flush that is not made, for instance because the log has failed, is asked for
                // again after a period, and not at once
                store.active_since.store(now, Ordering::Relaxed);
                self.request(&store, None);
            }
            let wait = if left == 0 { period } else { left };
            earliest = Some(earliest.map_or(wait, |other: u64| other.min(wait)));
        }
        earliest.map(Duration::from_nanos)
    }

    fn step(&self, engine: &Arc<Engine>) -> Next {
        let mut request = match self.next(engine) {
            Ok(request) => request,
            Err(next) => return look_again_within(next, self.request_aged(engine)),
        };
        let is_asked_for = !request.done.is_empty() && request.store.table().keyspace != schema_tables::KEYSPACE;
        if engine.log.is_stopped() && !is_asked_for {
            answer(&mut request, &Err(LogError::Stopped.into()));
            return Next::Again;
        }
        let set = request.set.take().or_else(|| flush::freeze(engine, &request.store));
        if let Some(set) = &set
            && !engine.log.is_settled(set.up_to)
        {
            let (set, logged) = (Some(Arc::clone(set)), Some(engine.log.sync()));
            self.queue.lock().expect("no panic inside").push_back(Request { set, logged, ..request });
            return Next::Again;
        }
        if let Some(set) = &set
            && request.done.is_empty()
            && engine.log.is_held_up(set.up_to)
        {
            let now = engine.env.now();
            let until = request.waits_for_log_until.unwrap_or(now.plus(SHORTAGE_WAIT_MAX));
            if now < until {
                let (set, again_at) = (Some(Arc::clone(set)), Some(now.plus(RETRY)));
                self.put_back(Request { set, again_at, logged: None, waits_for_log_until: Some(until), ..request });
                return Next::Again;
            }
        }
        let result = match &set {
            None => Ok(()),
            Some(set) => flush::flush_set(engine, &request.store, set).map(|_| ()),
        };
        answer(&mut request, &result);
        match result {
            Ok(()) => engine.compactor.wake(),
            Err(error) => {
                tracing::error!(table = request.store.name(), %error, "a flush failed and will be tried again");
                self.failures.add(1);
                engine.inspect(&request.store, &error);
                let again_at = Some(engine.env.now().plus(RETRY));
                self.put_back(Request { set, again_at, has_failed: true, logged: None, ..request });
            }
        }
        // while this flush was due, no other was asked for, and memtables may have filled up:
        // writers wait for memory then, and no write is left that would ask for the next flush
        if engine.memory.wants_flush() {
            engine.flush_largest();
        }
        // flushes that are always due do not keep tables from being looked at
        self.request_aged(engine);
        Next::Again
    }

    /// Puts a failed request back, unless the same request is in the queue already.
    fn put_back(&self, failed: Request) {
        let mut queue = self.queue.lock().expect("no panic inside");
        let is_same = |other: &Arc<FlushSet>| failed.set.as_ref().is_some_and(|set| Arc::ptr_eq(set, other));
        if !queue.iter().any(|request| request.set.as_ref().is_some_and(is_same)) {
            queue.push_back(failed);
        }
    }
}

/// The next step of a task that has nothing to do, where it is to look again after a while.
fn look_again_within(next: Next, look_again: Option<Duration>) -> Next {
    match (next, look_again) {
        (Next::Idle, Some(wait)) => Next::After(wait),
        (Next::After(other), Some(wait)) => Next::After(other.min(wait)),
        (next, _) => next,
    }
}

fn answer(request: &mut Request, result: &Result<(), StorageError>) {
    for done in request.done.drain(..) {
        // who asked may have gone
        let _ = done.send(result.clone());
    }
}
