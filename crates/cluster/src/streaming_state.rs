//! The state of streams between nodes: settings, throttles, the sessions that run, and the way to
//! the thread on which they live. The verbs are in [`crate::streaming`].

mod attempts;
mod live;
mod progress;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::BytesMut;
use config::Streams;
use env::{Env, Instant, Joinable, LocalFuture, Stream};
use links::Peer;
use metrics::Counter;
use schema::{Schema, TableId};
use sending::Pace;
use storage::TableStore;
use storage::received::{TruncationEffect, TruncationEpoch};
use tokio::sync::mpsc;

pub(crate) use live::{Incoming, LiveSession, SessionKey};
pub use progress::{FileProgress, SessionProgress, Totals};

/// Most sessions of a node at one time, with all peers. A further session is refused.
pub(crate) const SESSIONS_MAX: usize = 1024;

/// Sessions that are remembered after their end (`system_views.streaming`). At the limit the
/// oldest goes.
const ENDED_MAX: usize = 1000;

/// Most dropped keyspaces that are remembered. Beyond this number the first ones by name are
/// forgotten, and a session fails that asks for one of them.
const DROPPED_MAX: usize = 10_000;

/// Most offers that are remembered. Beyond this number the oldest are forgotten.
const OFFERS_MAX: usize = 4096;

/// Most links and sessions that may wait for their thread, which takes them at once.
pub(crate) const COMMANDS_MAX: usize = 1024;

/// Counts of streams since the start.
#[derive(Default, Debug)]
pub struct StreamFigures {
    /// Bytes of files that were received.
    pub received: Counter,
    /// Bytes of files that were sent.
    pub sent: Counter,
    /// Files that were sent again, because the link that took them was lost.
    pub resent: Counter,
    /// Sessions that have ended well.
    pub completed: Counter,
    /// Sessions that have failed.
    pub failed: Counter,
}

/// Work for the thread of streams.
pub(crate) enum Command {
    /// A peer has opened a link; behind it the bytes that came with the handshake.
    Link(Peer, Box<dyn Stream>, BytesMut),
    /// A future of this node: a session that it opens.
    Run(Box<dyn FnOnce() -> LocalFuture + Send>),
}

/// The thread of streams. It ends when the sender is dropped.
pub(crate) struct Worker {
    pub commands: mpsc::Sender<Command>,
    pub thread: Box<dyn Joinable>,
}

/// Files of this node that a peer is told of.
struct Offer {
    peer: SocketAddr,
    /// The tables of the files, without those for which the offer was taken.
    tables: BTreeSet<TableId>,
    /// The moment from before the look at the SSTables of the tables.
    looked_at: TruncationEpoch,
    /// The end of the look.
    at: Instant,
}

/// The times at which the next bytes may go, by kind of stream.
struct Paces {
    parts: Pace,
    parts_inter_dc: Pace,
    entire: Pace,
    entire_inter_dc: Pace,
}

/// The state of streams.
pub(crate) struct StreamingState {
    pub settings: ArcSwap<Streams>,
    /// The thread of streams; None before the node has joined, and after it has left.
    pub worker: Mutex<Option<Worker>>,
    /// Counts since the start.
    pub figures: StreamFigures,
    sessions: Mutex<BTreeMap<SessionKey, Arc<LiveSession>>>,
    /// Sessions that have ended, oldest first.
    ended: Mutex<VecDeque<SessionProgress>>,
    /// Keyspaces that were dropped since the start of the process, and were not made again.
    dropped: Mutex<BTreeSet<String>>,
    /// The files that peers were told of, oldest first.
    offers: Mutex<VecDeque<Offer>>,
    paces: Mutex<Paces>,
}

impl StreamingState {
    pub fn new(env: &Env) -> Self {
        let pace = || Pace::new(env);
        let paces = Paces { parts: pace(), parts_inter_dc: pace(), entire: pace(), entire_inter_dc: pace() };
        Self {
            settings: ArcSwap::default(),
            worker: Mutex::new(None),
            figures: StreamFigures::default(),
            sessions: Mutex::new(BTreeMap::new()),
            ended: Mutex::default(),
            dropped: Mutex::default(),
            offers: Mutex::default(),
            paces: Mutex::new(paces),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<SessionKey, Arc<LiveSession>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the keyspaces that a change of the schema has dropped or made.
    pub fn note_change(&self, before: &Schema, after: &Schema) {
        let mut dropped = self.dropped.lock().unwrap_or_else(PoisonError::into_inner);
        dropped.extend(before.keyspaces.keys().cloned());
        dropped.retain(|name| !after.keyspaces.contains_key(name));
        while dropped.len() > DROPPED_MAX {
            dropped.pop_first();
        }
    }

    /// Whether this node has dropped a keyspace since its start.
    pub fn was_dropped(&self, keyspace: &str) -> bool {
        self.dropped.lock().unwrap_or_else(PoisonError::into_inner).contains(keyspace)
    }

    /// The offers of the last time that is this long. Older ones are forgotten.
    fn offers(&self, now: Instant, within: Duration) -> MutexGuard<'_, VecDeque<Offer>> {
        let mut offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
        offers.retain(|offer| now.since(offer.at) <= within);
        offers
    }

    /// Notes that a peer is told of files of these tables, which were looked for after a moment.
    /// The note is kept for a time.
    pub fn note_offer(
        &self,
        peer: SocketAddr,
        tables: BTreeSet<TableId>,
        looked_at: TruncationEpoch,
        (now, within): (Instant, Duration),
    ) {
        let mut offers = self.offers(now, within);
        if offers.len() == OFFERS_MAX {
            offers.pop_front();
        }
        offers.push_back(Offer { peer, tables, looked_at, at: now });
    }

    /// The peers that were told, within a time, of files of a table from before a truncation that
    /// has ended. Each offer is given once for a table.
    pub fn take_offers(&self, store: &TableStore, (now, within): (Instant, Duration)) -> BTreeSet<SocketAddr> {
        let mut offers = self.offers(now, within);
        let take = |offer: &mut Offer| {
            let is_meant = offer.tables.contains(&store.id)
                && store.truncation_effect(offer.looked_at) == TruncationEffect::Removed;
            (is_meant && offer.tables.remove(&store.id)).then_some(offer.peer)
        };
        offers.iter_mut().filter_map(take).collect()
    }

    /// Gives work to the thread. False: there is no thread, or too much waits for it.
    pub fn command(&self, command: Command) -> bool {
        let worker = self.worker.lock().unwrap_or_else(PoisonError::into_inner);
        worker.as_ref().is_some_and(|worker| worker.commands.try_send(command).is_ok())
    }

    /// Registers a session that begins. Err: why it may not begin.
    pub fn begin(&self, live: Arc<LiveSession>) -> Result<(), &'static str> {
        let mut sessions = self.sessions();
        if sessions.len() >= SESSIONS_MAX {
            return Err("too many streaming sessions run on this node");
        }
        if sessions.contains_key(&live.key) {
            return Err("a session of this plan and index runs already");
        }
        sessions.insert(live.key, live);
        Ok(())
    }

    /// Removes a session that has ended. Its sums are remembered, the names of its files are not.
    pub fn end(&self, key: &SessionKey, progress: SessionProgress, result: Result<(), String>) {
        self.sessions().remove(key);
        let figure = if result.is_ok() { &self.figures.completed } else { &self.figures.failed };
        figure.add(1);
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if ended.len() == ENDED_MAX {
            ended.pop_front();
        }
        let (receiving, sending) = (BTreeMap::new(), BTreeMap::new());
        ended.push_back(SessionProgress { end: Some(result), receiving, sending, ..progress });
    }

    /// The sessions that have ended, oldest first.
    pub fn ended(&self) -> Vec<SessionProgress> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The session of a name.
    pub fn session(&self, key: &SessionKey) -> Option<Arc<LiveSession>> {
        self.sessions().get(key).cloned()
    }

    /// How far the sessions are that run, in the order of their plans.
    pub fn progress(&self, now: Instant) -> Vec<SessionProgress> {
        self.all().iter().map(|live| live.snapshot(now)).collect()
    }

    /// The sessions that run.
    pub fn all(&self) -> Vec<Arc<LiveSession>> {
        self.sessions().values().cloned().collect()
    }

    /// Takes bytes that are to be sent; gives how long to wait before.
    pub fn throttle(&self, now: Instant, bytes: usize, is_entire: bool, is_inter_dc: bool) -> Duration {
        let settings = self.settings.load();
        let mut paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
        let Paces { parts, parts_inter_dc, entire, entire_inter_dc } = &mut *paces;
        let (own, own_rate, far, far_rate) = match is_entire {
            false => (parts, settings.throughput, parts_inter_dc, settings.inter_dc_throughput),
            true => (entire, settings.entire_throughput, entire_inter_dc, settings.entire_inter_dc_throughput),
        };
        let near = own.take(now, bytes, own_rate);
        if is_inter_dc { near.max(far.take(now, bytes, far_rate)) } else { near }
    }
}
