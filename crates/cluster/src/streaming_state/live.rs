//! A session that runs: the state that its control link, its file links and its observers share.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use env::{Env, Instant, Stream};
use schema::TableId;
use sending::OutgoingFile;
use storage::received::{IfTruncated, ReceivedSSTables, TruncationEpoch};
use storage::{Engine, TableStore};
use streaming::{Effect, Event, Operation, PlanId, Received, ReceivedFile, Session, StreamInit};
use tokio::sync::{mpsc, watch};

use super::attempts::Attempts;
use super::progress::{Progress, SessionProgress};

/// The name of a session on this node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct SessionKey {
    /// The plan.
    pub plan: PlanId,
    /// The other end, by its broadcast address.
    pub peer: SocketAddr,
    /// The session's number among those of the plan with this peer.
    pub index: i32,
    /// True: the peer has opened the session.
    pub follows: bool,
}

/// A session that runs.
pub(crate) struct LiveSession {
    pub key: SessionKey,
    /// The purpose of the session, as its initiator told it.
    pub init: StreamInit,
    /// The begin of the session by the monotonic clock.
    begun: Instant,
    /// The begin of the session by the wall clock, milliseconds since 1970.
    pub begun_millis: i64,
    /// The begin of the session among the truncations of this node, taken before the session's
    /// files were looked for.
    pub begun_at: TruncationEpoch,
    /// When the peer told of the files that it sends. Empty: it has not told yet.
    announced_at: OnceLock<TruncationEpoch>,
    /// The tables of which the peer sends files, as they were when it told of that. Empty: it has
    /// not yet. The files of a table that is dropped are not kept open.
    announced: OnceLock<BTreeMap<TableId, Weak<TableStore>>>,
    /// Tables that were dropped while files of them came, which are passed over.
    dropped: watch::Sender<BTreeSet<TableId>>,
    /// Sends events to the task that drives the session.
    pub events: mpsc::Sender<Event>,
    /// Files and bytes so far, for observers.
    pub progress: Progress,
    session: Mutex<Session>,
    /// Files that the peer does not have yet. An SSTable stays open until the peer has it.
    outgoing: Mutex<BTreeMap<Received, Arc<OutgoingFile>>>,
    /// The files that come, by table.
    incoming: Mutex<BTreeMap<TableId, Arc<Incoming>>>,
    /// The files that come, and how often each was begun.
    pub attempts: Attempts,
    /// Signals each file that the peer says that it has.
    acknowledged: watch::Sender<()>,
    /// Whether the session is complete, once it has ended; None: it runs.
    ended: watch::Sender<Option<bool>>,
    /// Links on which all files were sent. A receiver of Cassandra fails its session when one of
    /// them ends before it has taken COMPLETE; so they stay open until the control link ends.
    sent: Mutex<Vec<Box<dyn Stream>>>,
}

/// The files of a table that come. Dropping it without [`Incoming::take`] removes the files that
/// have come, and may wait for the disk.
pub(crate) struct Incoming(Option<ReceivedSSTables>);

impl Incoming {
    pub fn receiving(&self) -> &ReceivedSSTables {
        self.0.as_ref().expect("only the last owner takes it")
    }

    /// The files that have come, to be added to the table. Err: one of them is still being written.
    pub fn take(this: Arc<Self>) -> Result<ReceivedSSTables, Arc<Self>> {
        Arc::try_unwrap(this).map(|mut incoming| incoming.0.take().expect("only the last owner takes it"))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        if let Some(receiving) = self.0.take() {
            receiving.abandon();
        }
    }
}

fn locked<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl LiveSession {
    pub fn new(
        key: SessionKey,
        init: StreamInit,
        session: Session,
        env: &Env,
        begun_at: TruncationEpoch,
        events: mpsc::Sender<Event>,
    ) -> Self {
        Self {
            key,
            init,
            begun: env.now(),
            begun_millis: env.clock.now_micros() / 1000,
            begun_at,
            announced_at: OnceLock::new(),
            announced: OnceLock::new(),
            dropped: watch::Sender::new(BTreeSet::new()),
            events,
            progress: Progress::default(),
            session: Mutex::new(session),
            outgoing: Mutex::default(),
            incoming: Mutex::default(),
            attempts: Attempts::new(),
            acknowledged: watch::Sender::new(()),
            ended: watch::Sender::new(None),
            sent: Mutex::default(),
        }
    }

    /// How far the session is.
    pub fn snapshot(&self, now: Instant) -> SessionProgress {
        let SessionKey { plan, peer, index, follows } = self.key;
        let (receiving, sending) = (self.progress.receiving(), self.progress.sending());
        SessionProgress {
            plan,
            peer,
            index,
            follows,
            operation: self.init.operation,
            begun_millis: self.begun_millis,
            millis: u64::try_from(now.since(self.begun).as_millis()).unwrap_or(u64::MAX),
            end: None,
            to_receive: receiving.total(),
            received: receiving.done,
            to_send: sending.total(),
            sent: sending.done,
            resent: sending.again,
            receiving: receiving.files.clone(),
            sending: sending.files.clone(),
        }
    }

    /// The effects of an event.
    pub fn on_event(&self, event: Event, now_ms: u64) -> Vec<Effect> {
        if let Event::Message(streaming::Message::Received(id)) = &event
            && let Some(file) = locked(&self.outgoing).remove(id)
        {
            self.progress.sending().done.files += file.weight.0 as u64;
            self.acknowledged.send_replace(());
        }
        locked(&self.session).on_event(event, now_ms)
    }

    /// Notes that the peer has told of the files that it sends: it had read everything in them
    /// before.
    pub fn announce(&self, engine: &Engine) {
        // a second announcement fails the session
        let _ = self.announced_at.set(engine.truncation_epoch());
    }

    /// When the peer told of the files that it sends. None: it has not told yet.
    pub fn announced_at(&self) -> Option<TruncationEpoch> {
        self.announced_at.get().copied()
    }

    /// The answer to a TRUNCATE that removes rows of the session. A repair fails, because its
    /// replicas were compared before the TRUNCATE. Any other session drops the rows and goes on
    /// with its other tables.
    pub fn if_truncated(&self) -> IfTruncated {
        match self.init.operation {
            Operation::Repair => IfTruncated::Fail,
            _ => IfTruncated::Drop,
        }
    }

    /// Whether files of a table are sent or were announced.
    pub fn is_about(&self, table: TableId) -> bool {
        let comes = self.progress.receiving().announced.iter().any(|summary| summary.table == table);
        comes || locked(&self.outgoing).keys().any(|id| id.table == table)
    }

    /// Files of these tables will come.
    pub fn expect_files_of<'a>(&self, stores: impl Iterator<Item = &'a Arc<TableStore>>) {
        // a second announcement fails the session
        let _ = self.announced.set(stores.map(|store| (store.id, Arc::downgrade(store))).collect());
    }

    /// The table of a file that was announced. None: it was dropped since. One that was made again
    /// with its id has nothing to do with the file.
    pub fn table(&self, id: TableId) -> Option<Arc<TableStore>> {
        let store = self.announced.get()?.get(&id)?.upgrade()?;
        (!store.is_closed()).then_some(store)
    }

    /// Whether files of a table, which were announced, are passed over, because it was dropped
    /// since. A repair of it fails instead.
    pub fn passes_over(&self, table: TableId) -> bool {
        self.init.operation != Operation::Repair && self.table(table).is_none()
    }

    /// Takes what has come of tables that were dropped since.
    pub fn take_dropped(&self) -> BTreeMap<TableId, Arc<Incoming>> {
        let mut incoming = locked(&self.incoming);
        let is_dropped = |incoming: &Incoming| incoming.receiving().store().is_closed();
        if !incoming.values().any(|incoming| is_dropped(incoming)) {
            return BTreeMap::new();
        }
        let (dropped, others) = std::mem::take(&mut *incoming).into_iter().partition(|(_, one)| is_dropped(one));
        *incoming = others;
        dropped
    }

    /// Tells those who take files of tables that the tables are dropped.
    pub fn tell_dropped(&self, tables: impl Iterator<Item = TableId>) {
        self.dropped.send_modify(|dropped| dropped.extend(tables));
    }

    /// Completes when it is told that a table was dropped while files of it came.
    pub async fn dropped(&self, table: TableId) {
        let mut dropped = self.dropped.subscribe();
        // the sender lives as long as the session
        let _ = dropped.wait_for(|dropped| dropped.contains(&table)).await;
    }

    /// Whether a file that begins to come is awaited.
    pub fn admit(&self, file: &ReceivedFile) -> Result<(), String> {
        locked(&self.session).admit(file)
    }

    /// Completes when the peer has all of these files.
    pub async fn has_taken(&self, files: &[Received]) {
        let mut acknowledged = self.acknowledged.subscribe();
        while files.iter().any(|id| locked(&self.outgoing).contains_key(id)) {
            // the sender lives as long as the session
            let _ = acknowledged.changed().await;
        }
    }

    /// Whether this side only adds files to its tables and needs nothing of the peer.
    pub fn needs_no_peer(&self) -> bool {
        locked(&self.session).needs_no_peer()
    }

    /// Registers a file that will be sent.
    pub fn keep(&self, file: OutgoingFile) {
        locked(&self.outgoing).insert(file.id, Arc::new(file));
    }

    /// A file that is to be sent. None: the session has ended.
    pub fn outgoing(&self, id: &Received) -> Option<Arc<OutgoingFile>> {
        locked(&self.outgoing).get(id).cloned()
    }

    /// The files of a table that come; `begin` makes the place for the first. Waits for the disk.
    pub fn incoming<E>(
        &self,
        table: TableId,
        begin: impl FnOnce() -> Result<ReceivedSSTables, E>,
    ) -> Result<Arc<Incoming>, E> {
        let mut incoming = locked(&self.incoming);
        if let Some(there) = incoming.get(&table) {
            return Ok(Arc::clone(there));
        }
        let begun = Arc::new(Incoming(Some(begin()?)));
        incoming.insert(table, Arc::clone(&begun));
        Ok(begun)
    }

    /// All files of a table that have come, to be added to it.
    pub fn take_incoming(&self, table: TableId) -> Option<Arc<Incoming>> {
        locked(&self.incoming).remove(&table)
    }

    /// Called when the session has ended: its file links end, and nothing is kept for it. Gives
    /// the files that have come; the caller has them removed on a thread that may wait for the
    /// disk.
    pub fn end(&self, is_complete: bool) -> BTreeMap<TableId, Arc<Incoming>> {
        self.ended.send_replace(Some(is_complete));
        locked(&self.outgoing).clear();
        std::mem::take(&mut *locked(&self.incoming))
    }

    pub fn is_ended(&self) -> bool {
        self.ended.borrow().is_some()
    }

    /// Keeps a link on which all files were sent.
    pub fn keep_link(&self, link: Box<dyn Stream>) {
        locked(&self.sent).push(link);
    }

    /// Closes the links on which files were sent: the control link has ended.
    pub fn close_links(&self) {
        locked(&self.sent).clear();
    }

    /// Completes when the session has ended.
    pub async fn ended(&self) {
        let mut ended = self.ended.subscribe();
        // the sender lives as long as the session
        let _ = ended.wait_for(Option::is_some).await;
    }

    /// Completes when the session has failed.
    pub async fn failed(&self) {
        let mut ended = self.ended.subscribe();
        let _ = ended.wait_for(|ended| *ended == Some(false)).await;
    }
}
