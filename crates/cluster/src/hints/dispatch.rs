//! Sending hints to hosts that are up again.
//!
//! One thread. Every [`PERIOD`] it looks for which hosts hints wait, and sends to those that are
//! up, to `max_hints_delivery_threads` of them at a time: file by file, oldest first, each page by
//! page. The hints of a page go out at the pace of `hinted_handoff_throttle`, divided by the number
//! of other nodes; all answers of a page are waited for. A hint that is refused or not answered
//! ends the sending to this host, which goes on from that page at a later round, with the hints of
//! the page that were not taken. A hint may come twice, and applying it twice changes nothing. A
//! file that was sent whole is removed.
//!
//! The hints of a host that was replaced go to the node that has replaced it: that node has the
//! ranges, and may have fetched them from a replica that lacks the mutations. Cassandra keeps such
//! hints for ever.
//!
//! A Cassandra that has just come up gets its hints when it has the schema of this node
//! ([`would_forget_hints`]).
//!
//! The hints of this node itself ([`Node::hint_self`]) are not sent but applied, as if they had
//! come from another node, and at no pace.
//!
//! `org.apache.cassandra.hints.HintsDispatchTrigger`, `HintsDispatchExecutor`, `HintsDispatcher`.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use env::LocalFutureFactory;
use futures_util::future::join_all;
use gossip::{Peer, Status};
use hints::{Hint, HintError, HintFile, HostId, Page, Reader};
use internode::Verb;
use internode::payload::gossip::{ApplicationState, EndpointState};
use internode::payload::hint::HintMessage;
use membership::{Request, RequestFailure};
use sending::Pace;
use tokio::sync::{Semaphore, oneshot};

use crate::handoff::Dispatcher;
use crate::node::Node;
use crate::repair_state::schedule::turns::{self, ScheduleStatus};
use crate::replica::apply::within;

/// Time between two looks at which hosts are up (`HintsService.startDispatch`).
pub(super) const PERIOD: Duration = Duration::from_secs(10);

/// Time between two looks for files whose hints have all expired (`HintsCleanupTrigger`).
const CLEANUP_PERIOD: Duration = Duration::from_secs(60 * 60);

/// Time after which a Cassandra that has come up gets its hints even though it tells another
/// schema than that of this node: schemas that differ for so long may differ for good. A Cassandra
/// that has been started asks for the schemas of others at once.
const SCHEMA_WAIT: Duration = Duration::from_secs(90);

/// Starts the thread.
pub(super) fn start(node: &Arc<Node>, deliveries_max: usize) -> Dispatcher {
    let (stop, stopped) = oneshot::channel();
    let (env, node) = (node.env.clone(), Arc::downgrade(node));
    let tasks = Arc::clone(&env.tasks);
    let make: LocalFutureFactory = Box::new(move || {
        let rounds = async move {
            tokio::select! {
                _ = stopped => {}
                () = rounds(env, node, deliveries_max.max(1)) => {}
            }
        };
        Box::pin(rounds)
    });
    Dispatcher { stop, thread: tasks.spawn_local_worker("hints", make) }
}

/// Sends hints in rounds until the node is gone.
async fn rounds(env: env::Env, node: Weak<Node>, deliveries_max: usize) {
    let (sending, room) = (Rc::<RefCell<BTreeSet<HostId>>>::default(), Rc::new(Semaphore::new(deliveries_max)));
    let mut cleaned = env.now();
    loop {
        env.sleep(PERIOD).await;
        let Some(node) = node.upgrade() else { return };
        node.renew_hint_window();
        node.forget_hosts_that_left();
        if node.env.elapsed(cleaned) >= CLEANUP_PERIOD {
            cleaned = node.env.now();
            node.clean_up_hints();
        }
        for host_id in node.hosts_to_send_to() {
            if sending.borrow_mut().insert(host_id) {
                let (node, sending, room) = (Arc::clone(&node), Rc::clone(&sending), Rc::clone(&room));
                drop(tokio::task::spawn_local(async move {
                    if let Ok(_turn) = room.acquire().await {
                        node.send_hints(host_id).await;
                    }
                    sending.borrow_mut().remove(&host_id);
                }));
            }
        }
    }
}

/// The end of sending a file.
enum SendOutcome {
    Whole,
    /// The host did not take everything; the file knows from where on.
    Part,
}

impl Node {
    /// Hosts that have left the ring, or were removed from it, get no hints any more: others have
    /// their data.
    fn forget_hosts_that_left(&self) {
        let Some(messenger) = self.messenger() else { return };
        let left: Vec<HostId> = messenger.with_gossip(|gossip| {
            let has_left = |peer: &&Peer| matches!(peer.status(), Some(Status::Left(_) | Status::Removed(_)));
            let ids =
                gossip.peers().values().filter(has_left).filter_map(|peer| peer.state.value(ApplicationState::HostId));
            ids.filter_map(types::literal::parse_uuid).collect()
        });
        let ring = self.ring();
        // the id may have come back under another address
        let is_gone = |host_id: &&HostId| ring.endpoints().iter().all(|endpoint| endpoint.host_id != **host_id);
        left.iter().filter(is_gone).for_each(|host_id| self.forget_hints(host_id));
    }

    /// Removes files whose hints have all expired, if that is wanted.
    fn clean_up_hints(&self) {
        let Some(store) = self.handoff.store.get().filter(|_| self.handoff.settings.load().cleans_up) else { return };
        for host_id in store.hosts() {
            // from the oldest on, up to the first file that is still worth something
            while let Some(file) = store.take_file(&host_id) {
                if !self.is_expired(&store.path(&file)).unwrap_or(false) {
                    store.put_back(file);
                    break;
                }
                tracing::info!(file = file.descriptor.file_name(), "a file of hints has expired and is removed");
                store.remove_sent(file);
            }
        }
    }

    /// Whether every hint of a file has expired.
    fn is_expired(&self, path: &Path) -> Result<bool, HintError> {
        let mut reader = Reader::open(self.env.disk.as_ref(), path)?;
        let now_millis = self.env.clock.now_micros() / 1000;
        loop {
            let page = reader.page()?;
            for hint in &page.hints {
                if Hint::decode(hint)?.is_live(u32::MAX, now_millis) {
                    return Ok(false);
                }
            }
            if page.is_last {
                return Ok(true);
            }
        }
    }

    fn hosts_to_send_to(&self) -> Vec<HostId> {
        let Some(store) = self.handoff.store.get().filter(|_| !self.is_handoff_paused()) else { return Vec::new() };
        store.hosts().into_iter().filter(|host_id| self.is_there(&self.taker_of(host_id))).collect()
    }

    /// The host that gets the hints of a host: itself, or the one that has replaced it.
    fn taker_of(&self, host_id: &HostId) -> HostId {
        let ring = self.ring.load();
        let is_there = |id: &HostId| ring.endpoints().iter().any(|endpoint| endpoint.host_id == *id);
        if is_there(host_id) {
            return *host_id;
        }
        let replacements = self.membership_state.replacements.lock().unwrap_or_else(PoisonError::into_inner);
        replacements.successor(host_id, is_there).unwrap_or(*host_id)
    }

    /// Whether a host can take hints now: it is up and knows their tables, or it is this node,
    /// which has joined.
    fn is_there(&self, host_id: &HostId) -> bool {
        match *host_id == self.identity.host_id {
            true => self.messenger().is_some(),
            false => self.address_of_live(host_id).is_some_and(|address| self.keeps_hints(address)),
        }
    }

    /// Whether a node that is up would apply the hints that it gets now, or refuse them, so that
    /// none is lost.
    fn keeps_hints(&self, address: SocketAddr) -> bool {
        let Some(messenger) = self.messenger() else { return true };
        let schema = types::literal::print_uuid(&self.schema().version);
        let now = Duration::from_nanos(self.env.clock.monotonic_nanos());
        messenger.with_gossip(|gossip| {
            let peer = gossip.peers().get(&address);
            peer.is_none_or(|peer| !would_forget_hints(&peer.state, &schema, now.saturating_sub(peer.since)))
        })
    }

    /// The address of a host that is up.
    fn address_of_live(&self, host_id: &HostId) -> Option<SocketAddr> {
        let ring = self.ring.load();
        ring.peers().find(|endpoint| endpoint.is_up && endpoint.host_id == *host_id).map(|endpoint| endpoint.address)
    }

    /// Sends the files of a host until none is left or the host does not take one.
    async fn send_hints(&self, host_id: HostId) {
        let Some(store) = self.handoff.store.get() else { return };
        let mut pace = Pace::new(&self.env);
        let mut taker = self.taker_of(&host_id);
        while !self.is_handoff_paused() && self.is_there(&taker) {
            let Some(file) = store.take_file(&host_id) else { return };
            if !self.send_whole(file, &taker, &mut pace).await {
                return;
            }
            taker = self.taker_of(&host_id);
        }
    }

    /// Sends a file to a host, and gives it back to the store. False: not all of it was taken, and
    /// no other file of its host is to be tried now.
    pub(super) async fn send_whole(&self, mut file: HintFile, to: &HostId, pace: &mut Pace) -> bool {
        let Some(store) = self.handoff.store.get() else { return false };
        let name = file.descriptor.file_name();
        match self.send_file(&mut file, to, pace).await {
            Ok(SendOutcome::Whole) => {
                tracing::info!(file = name, "the hints of a file were sent");
                store.remove_sent(file);
                true
            }
            Ok(SendOutcome::Part) => {
                tracing::info!(file = name, "the hints of a file were sent in part; the rest goes later");
                store.put_back(file);
                false
            }
            Err(HintError::Io(error)) => {
                tracing::error!(file = name, %error, "a file of hints cannot be read now; it is tried again");
                store.put_back(file);
                false
            }
            Err(error) => {
                tracing::error!(file = name, %error, "a file of hints is damaged: it is left alone");
                store.set_corrupted(file);
                true
            }
        }
    }

    async fn send_file(&self, file: &mut HintFile, to: &HostId, pace: &mut Pace) -> Result<SendOutcome, HintError> {
        let Some(store) = self.handoff.store.get() else { return Ok(SendOutcome::Part) };
        let mut reader = Reader::open(self.env.disk.as_ref(), &store.path(file))?;
        reader.seek(file.sent)?;
        loop {
            let page = reader.page()?;
            let is_last = page.is_last;
            assert!(page.start >= file.sent, "the pages of a file are sent in their order");
            if file.sent != page.start {
                file.taken.clear();
            }
            file.sent = page.start;
            if !self.send_page(file, to, page, pace).await? {
                return Ok(SendOutcome::Part);
            }
            if is_last {
                return Ok(SendOutcome::Whole);
            }
        }
    }

    /// Sends the hints of a page of a file that the host `to` has not taken yet, and waits for
    /// their answers. The file knows then which were taken. False: not all were.
    ///
    /// A host can refuse a few of the hints again and again, for instance for lack of room for
    /// those that it keeps for others. Were the whole page sent each time, all of its hints would
    /// have to be taken at once, and those that the host keeps for others would pile up there.
    async fn send_page(
        &self,
        file: &mut HintFile,
        to: &HostId,
        page: Page,
        pace: &mut Pace,
    ) -> Result<bool, HintError> {
        let figures = &self.handoff.figures;
        figures.damaged.add(page.damaged);
        let (own, host_id) = (&self.identity.host_id, file.descriptor.host_id);
        if to == own {
            return Ok(self.take_page(file, &page).await);
        }
        // only a node that leaves sends hints to another node than the one that takes them
        let is_transfer = *to != self.taker_of(&host_id);
        // this node gives its own hints to another one only when it leaves, and nobody keeps hints
        // for a node that has left: whoever gets them applies them, or keeps them for all replicas.
        // The node that has replaced their host does the same
        let host_id = if host_id == *own || !is_transfer { *to } else { host_id };
        let mut answers = Vec::with_capacity(page.hints.len());
        for (place, hint) in page.hints.into_iter().enumerate().filter(|(place, _)| !file.taken.contains(place)) {
            let now_millis = self.env.clock.now_micros() / 1000;
            let head = Hint::decode(&hint)?;
            if !head.is_live(u32::MAX, now_millis) {
                figures.expired.add(1);
                continue;
            }
            let rate = if is_transfer { self.handoff.settings.load().throttle } else { self.throttle_of_one() };
            let wait = pace.take(self.env.now(), hint.len(), rate);
            if !wait.is_zero() {
                self.env.sleep(wait).await;
            }
            let (Some(messenger), Some(to)) = (self.messenger(), self.address_of_live(to)) else { return Ok(false) };
            if self.is_handoff_paused() {
                return Ok(false);
            }
            let message = HintMessage { host_id, hint: Bytes::clone(&hint) };
            let request = Request::new(Verb::HintReq, message.encode(), self.timeouts().write);
            answers.push((place, messenger.request(to, request)));
        }
        let mut all_taken = true;
        for (place, answer) in answers {
            let answer = answer.await;
            match &answer {
                Ok(_) => figures.succeeded.add(1),
                Err(RequestFailure::TimedOut) => figures.timed_out.add(1),
                Err(RequestFailure::Failed(_) | RequestFailure::Refused) => figures.failed.add(1),
            }
            match answer {
                Ok(_) => drop(file.taken.insert(place)),
                Err(_) => all_taken = false,
            }
        }
        Ok(all_taken)
    }

    /// Applies the hints of a page of a file, which are for this node itself and were not applied
    /// yet. False: not all were applied.
    async fn take_page(&self, file: &mut HintFile, page: &Page) -> bool {
        let figures = &self.handoff.figures;
        let limit = self.timeouts().write;
        let Some(take) = self.handoff.apply_own_hint.get() else { return false };
        let hints = page.hints.iter().enumerate().filter(|(place, _)| !file.taken.contains(place));
        let (places, hints): (Vec<usize>, Vec<Bytes>) = hints.map(|(place, hint)| (place, Bytes::clone(hint))).unzip();
        let taking = hints.into_iter().map(|hint| within(&self.env, limit, take(hint)));
        let mut all_taken = true;
        for (place, taken) in places.into_iter().zip(join_all(taking).await) {
            match taken {
                Some(Ok(())) => figures.succeeded.add(1),
                Some(Err(_)) => figures.failed.add(1),
                None => figures.timed_out.add(1),
            }
            match taken {
                Some(Ok(())) => drop(file.taken.insert(place)),
                _ => all_taken = false,
            }
        }
        all_taken
    }

    /// Bytes a second that hints to one node may have: `hinted_handoff_throttle` is for all other
    /// nodes together.
    fn throttle_of_one(&self) -> u64 {
        let throttle = self.handoff.settings.load().throttle;
        let others = self.ring.load().peers().count().max(1) as u64;
        if throttle == 0 { 0 } else { (throttle / others).max(1) }
    }

    /// Stops sending hints until [`Self::resume_handoff`]; they are still kept.
    pub fn pause_handoff(&self) {
        self.handoff.is_paused.store(true, Ordering::Relaxed);
        tracing::info!("hints are not sent any more");
    }

    /// Ends the pause that [`Self::pause_handoff`] began.
    pub fn resume_handoff(&self) {
        self.handoff.is_paused.store(false, Ordering::Relaxed);
        tracing::info!("hints are sent again");
    }
}

/// Whether a node that has been up for this time would forget hints. A Cassandra takes the table of
/// a hint that it does not know for dropped, and answers as if it had applied the hint. The sender
/// removes the hint then, though the table may only not have come yet: it was made while that node
/// was down. A Helenus refuses such a hint until it has the schema of the others.
fn would_forget_hints(told: &EndpointState, own_schema: &str, up_for: Duration) -> bool {
    let is_helenus = told.value(turns::STATE).and_then(ScheduleStatus::parse).is_some();
    let has_schema = told.value(ApplicationState::Schema) == Some(own_schema);
    !is_helenus && !has_schema && up_for < SCHEMA_WAIT
}

#[cfg(test)]
mod tests {
    use internode::payload::gossip::VersionedValue;

    use super::*;

    #[test]
    fn a_cassandra_gets_hints_when_it_has_the_schema() {
        let state = |values: &[(ApplicationState, &str)]| {
            let value = |text: &str| VersionedValue { value: text.to_owned(), version: 1 };
            let values = values.iter().map(|&(of, text)| (of, value(text))).collect();
            EndpointState { generation: 1, heartbeat: 1, values }
        };
        let (behind, agreed) = (state(&[(ApplicationState::Schema, "b")]), state(&[(ApplicationState::Schema, "a")]));
        let helenus = state(&[(ApplicationState::Schema, "b"), (turns::STATE, "helenus repair=off since=0")]);
        let forgets = |told: &EndpointState, up_for| would_forget_hints(told, "a", up_for);
        assert!(forgets(&behind, Duration::ZERO) && forgets(&state(&[]), Duration::from_secs(89)));
        assert!(!forgets(&agreed, Duration::ZERO));
        assert!(!forgets(&behind, SCHEMA_WAIT), "the schemas may differ for good");
        assert!(!forgets(&helenus, Duration::ZERO), "it refuses what it does not know");
    }
}
