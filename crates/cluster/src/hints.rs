//! Hints: mutations that a replica has not taken, kept until it takes them.
//!
//! A coordinator gives [`Node::hint`] every mutation that a replica of it could not be sent,
//! refused or did not answer in time, and `Node::hint_self` every mutation of which it is a
//! replica and that it could not apply. The mutation goes into a file of its target ([`::hints`]).
//! Every ten seconds the dispatcher ([`dispatch`]) looks which nodes are up again and sends them
//! their hints, at a pace ([`sending::Pace`]). Hints that other nodes send are taken by
//! `crate::serve::hint`.
//!
//! Hints make a replica equal sooner; that it becomes equal is the business of read repair and
//! repair, since a hint is refused where memory is full, where the disk fails, and after
//! `max_hint_window`. Level ANY alone counts a hint as an answer, and waits until the hint is on
//! the disk ([`Node::hints_durable`]); Cassandra waits for its memory only.
//!
//! Agrees with `org.apache.cassandra.service.StorageProxy` (`shouldHint`, `submitHint`) and
//! `org.apache.cassandra.hints.HintsService`.

mod dispatch;
mod operations;
mod transfer;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use env::defects::{Defect, is_on};
use hints::{Entry, HintError, HintStore, HostId, StoreOptions};
use ring::{Endpoint, Ring};
use rows::Mutation;
use types::FailureReason;

pub use operations::HostHints;

use crate::handoff::{HandoffFigures, HandoffSettings};
use crate::node::Node;

/// How hints are kept and sent.
#[derive(Clone, Debug)]
pub struct HintOptions {
    /// The options of the files of hints.
    pub store: StoreOptions,
    /// The settings at the start.
    pub settings: HandoffSettings,
    /// `max_hints_delivery_threads`: hosts that are sent hints at one time.
    pub deliveries_max: usize,
}

/// Completes when every hint that was kept before the wait began is durable.
#[must_use = "hints are on the disk only when this completes"]
pub struct HintsDurable(Option<hints::HintsDurable>);

impl Future for HintsDurable {
    type Output = Result<(), FailureReason>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            None => Poll::Ready(Err(FailureReason::Unknown)),
            Some(durable) => Poll::Ready(ready!(Pin::new(durable).poll(context)).map_err(|_| FailureReason::Unknown)),
        }
    }
}

/// A mutation that may become a hint: its bytes, and nothing else of it.
#[derive(Clone, Debug)]
pub struct Hintable {
    /// The mutation, encoded.
    payload: Bytes,
    /// The least gc_grace of its tables, seconds.
    gc_grace: u32,
}

impl Hintable {
    /// A mutation with its encoded form.
    pub fn new(mutation: &Mutation, payload: Bytes) -> Self {
        Self { payload, gc_grace: least_gc_grace(mutation) }
    }

    /// Bytes of the mutation.
    pub fn size(&self) -> usize {
        self.payload.len()
    }
}

/// Whether a hint was kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HintOutcome {
    /// A hint is kept, and the endpoint gets it when it is up.
    Yes,
    /// There is no room for the hint now.
    NotYet,
    /// No hint is kept, and none ever will be: the mutation is too large, or the node keeps no
    /// hints at all.
    No,
}

impl Node {
    /// Begins to keep hints; they are sent when the node has joined. Called once, before it joins.
    pub fn start_hints(self: &Arc<Self>, options: HintOptions) -> Result<(), HintError> {
        let HintOptions { store, settings, deliveries_max } = options;
        let store = HintStore::open(&self.env, store)?;
        self.handoff.settings.store(Arc::new(settings));
        if self.handoff.store.set(store).is_ok() {
            let dispatcher = dispatch::start(self, deliveries_max);
            *self.handoff.dispatcher.lock().unwrap_or_else(PoisonError::into_inner) = Some(dispatcher);
        }
        Ok(())
    }

    /// Sends no more hints, and writes to the disk what is in memory. Called when the node stops,
    /// by a thread that may wait for the disk.
    pub fn stop_hints(&self) {
        let dispatcher = self.handoff.dispatcher.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(dispatcher) = dispatcher {
            drop(dispatcher.stop);
            if let Err(panic) = dispatcher.thread.join() {
                tracing::error!(panic, "the thread that sends hints had panicked");
            }
        }
        if let Some(store) = self.handoff.store.get() {
            store.close();
        }
    }

    /// Keeps a mutation for an endpoint that has not taken it. True: it is kept, and will be sent
    /// when the endpoint is up. False: there is no hint, because hinted handoff is off, the
    /// endpoint has been down for too long, or there is no room; the endpoint gets the mutation by
    /// read repair or repair. Never waits.
    pub fn hint(&self, endpoint: &Endpoint, mutation: &Hintable) -> bool {
        if is_on(Defect::NoHealing) {
            return false;
        }
        let now_millis = self.env.clock.now_micros() / 1000;
        let is_kept =
            self.may_hint(endpoint, true) && self.keep(endpoint.host_id, mutation, now_millis) == HintOutcome::Yes;
        if !is_kept {
            self.handoff.figures.refused.add(1);
        }
        is_kept
    }

    /// Keeps a mutation from the record of a batch for a host that has not taken it, also where
    /// hinted handoff is off and where the host has been down for too long: the record goes, so
    /// nobody else has it. The hint is as old as the batch, written at `written_millis`:
    /// later than its gc_grace, deletions that it must not undo may be purged. Agrees with
    /// `BatchlogManager.ReplayingBatch`, which writes its hints without `StorageProxy.shouldHint`.
    /// Never waits.
    pub(crate) fn hint_in_any_case(&self, host_id: HostId, mutation: &Hintable, written_millis: i64) -> HintOutcome {
        if is_on(Defect::NoHealing) {
            return HintOutcome::No;
        }
        let kept = self.keep(host_id, mutation, written_millis);
        if kept != HintOutcome::Yes {
            self.handoff.figures.refused.add(1);
        }
        kept
    }

    /// Keeps a mutation that this node coordinates, is a replica of and has not applied: it was too
    /// slow, or failed. Others may have acknowledged the mutation, and nobody else has a hint of
    /// it. The hint is kept also where hinted handoff is off: Cassandra applies such a mutation
    /// later whatever its settings are (`StorageProxy.LocalMutationRunnable`), from a queue that
    /// ends with the process. `begun_millis`: when the request began. The hint is as old, so that
    /// it brings back nothing of tables that were truncated since. False: there is no hint. Never
    /// waits.
    pub(crate) fn hint_self(&self, mutation: &Hintable, begun_millis: i64) -> bool {
        if is_on(Defect::NoHealing) {
            return false;
        }
        let host_id = self.identity.host_id;
        let is_kept = self.has_room_for(&host_id) && self.keep(host_id, mutation, begun_millis) == HintOutcome::Yes;
        if !is_kept {
            self.handoff.figures.refused.add(1);
        }
        is_kept
    }

    /// The wait that consistency level ANY needs: the hints that [`Self::hint`] has kept so far are
    /// on the disk.
    pub fn hints_durable(&self) -> HintsDurable {
        HintsDurable(self.handoff.store.get().map(HintStore::durable))
    }

    /// Keeps a hint, which may have come from another node, for all replicas of its partition.
    /// True: the hint is kept for each replica that gets hints at all.
    pub(crate) fn hint_all_replicas(&self, ring: &Ring, mutation: &Mutation, entry: &Entry) -> bool {
        let (Some(store), Some(update)) = (self.handoff.store.get(), mutation.updates.first()) else { return false };
        let Some(placement) = ring.placement(&update.table.keyspace) else { return true };
        let token = mutation.key.token;
        let replicas = placement.natural(token).iter().chain(placement.pending(token));
        let hinted = replicas.map(|replica| ring.endpoint(*replica)).filter(|replica| self.may_hint(replica, false));
        let mut is_kept = true;
        for replica in hinted {
            is_kept &= store.add(replica.host_id, entry);
        }
        is_kept
    }

    /// Whether an endpoint gets hints (`StorageProxy.shouldHint`). A hint that came from another
    /// node is kept also for an endpoint whose window is over by its oldest hint.
    fn may_hint(&self, endpoint: &Endpoint, is_new: bool) -> bool {
        let settings = self.handoff.settings.load();
        if !settings.is_enabled
            || endpoint.host_id == self.identity.host_id
            || settings.disabled_data_centers.contains(&endpoint.data_center)
        {
            return false;
        }
        if is_new && self.handoff.past_window.load().binary_search(&endpoint.host_id).is_ok() {
            self.handoff.figures.past_window.add(1);
            return false;
        }
        self.has_room_for(&endpoint.host_id)
    }

    /// Whether the hints of a host may become more.
    fn has_room_for(&self, host_id: &HostId) -> bool {
        let size_max = self.handoff.settings.load().size_per_host_max;
        self.handoff.store.get().is_some_and(|store| size_max == 0 || store.size(host_id) <= size_max)
    }

    fn keep(&self, host_id: HostId, mutation: &Hintable, created_millis: i64) -> HintOutcome {
        let Some(store) = self.handoff.store.get() else { return HintOutcome::No };
        // made before the store is entered: its lock is held for a copy only
        let entry = Entry::new(created_millis, mutation.gc_grace, |out| out.extend_from_slice(&mutation.payload));
        match entry.filter(HintStore::fits_in_memory) {
            None => HintOutcome::No,
            Some(entry) if store.add(host_id, &entry) => HintOutcome::Yes,
            Some(_) => HintOutcome::NotYet,
        }
    }

    /// Looks which hosts are past the window: they have been down for longer, or their oldest hint
    /// is older.
    pub(crate) fn renew_hint_window(&self) {
        let (Some(store), Some(messenger)) = (self.handoff.store.get(), self.messenger()) else { return };
        let settings = self.handoff.settings.load();
        let now = Duration::from_nanos(self.env.clock.monotonic_nanos());
        let oldest_allowed = self.env.clock.now_micros() / 1000 - millis(settings.window);
        let is_down_too_long = messenger.with_gossip(|gossip| {
            let peers = gossip.peers().iter().filter(|(_, peer)| !peer.is_alive);
            let late = peers.filter(|(_, peer)| now.saturating_sub(peer.since) > settings.window);
            late.map(|(address, _)| *address).collect::<Vec<_>>()
        });
        let ring = self.ring();
        let past = ring.peers().filter(|endpoint| {
            is_down_too_long.contains(&endpoint.address)
                || settings.is_window_persistent
                    && store.oldest_millis(&endpoint.host_id).is_some_and(|oldest| oldest < oldest_allowed)
        });
        let mut past: Vec<HostId> = past.map(|endpoint| endpoint.host_id).collect();
        past.sort_unstable();
        self.handoff.past_window.store(Arc::new(past));
    }

    /// The settings of hinted handoff.
    pub fn handoff_settings(&self) -> Arc<HandoffSettings> {
        self.handoff.settings.load_full()
    }

    /// Changes the settings.
    pub fn change_handoff_settings(&self, change: impl Fn(&mut HandoffSettings)) {
        self.handoff.settings.rcu(|settings| {
            let mut settings = HandoffSettings::clone(settings);
            change(&mut settings);
            settings
        });
        self.renew_hint_window();
    }

    /// The figures of hinted handoff.
    pub fn handoff_figures(&self) -> &HandoffFigures {
        &self.handoff.figures
    }

    /// Whether hints are kept and not sent.
    pub fn is_handoff_paused(&self) -> bool {
        self.handoff.is_paused.load(Ordering::Relaxed)
    }
}

/// The least gc_grace of a mutation's tables, seconds.
pub(crate) fn least_gc_grace(mutation: &Mutation) -> u32 {
    let graces = mutation.updates.iter().map(|update| update.table.params.gc_grace_seconds);
    graces.min().map_or(0, |grace| u32::try_from(grace).unwrap_or(0))
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
