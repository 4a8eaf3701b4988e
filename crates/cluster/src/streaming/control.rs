//! The task that drives a session: messages of its control link and news of its files go into the
//! state machine ([`::streaming::Session`]), and this task carries out the effects.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use env::{Instant, Stream};
use gossip::Status;
use links::Peer;
use membership::Messenger;
use schema::TableId;
use sending::OutgoingFile;
use storage::received::{ReceivedSSTables, TruncationEpoch};
use streaming::session::Limits;
use streaming::{Effect, Event, LinkReader, Message, Operation, PrepareSyn, Session, StreamInit};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::mpsc;

use super::collect::{self, Wanted};
use super::plan::{SessionEnd, SessionSummary, StreamFailure};
use super::{checks, sender, write_path};
use crate::clock::uuid_text;
use crate::node::Node;
use crate::streaming_state::{self, LiveSession, SessionKey};

/// Most news of files that may wait for the task. A sender of further news waits.
const EVENTS_MAX: usize = 64;

/// How often the session is told the time.
const TICK: Duration = Duration::from_secs(1);

/// Time for which the peer may be down, with nothing happening in the session, before the session
/// fails. Otherwise a peer whose machine has lost its power, which closes no link, would be waited
/// for until `stream_transfer_task_timeout`. Cassandra's sessions end when the peer is removed
/// from the ring.
const DOWN_MAX: Duration = Duration::from_secs(60);

/// Time without anything new from a peer that hibernates, after which it counts as down. Gossip
/// never marks such a node alive: it replaces another node at the same address, and fetches its
/// data.
const HIBERNATING_SILENCE_MAX: Duration = Duration::from_secs(30);

/// Number of looks, with a pause between them, whether a superseded attempt of a file has given up
/// its part.
const GIVING_UP_LOOKS: u32 = 100;
const GIVING_UP_PAUSE: Duration = Duration::from_millis(100);

/// Bytes taken from a control link at once.
const READ_SIZE: usize = 64 << 10;

/// A session's part of a plan, as this node opens it.
pub(super) struct OwnSession {
    pub init: StreamInit,
    pub peer: SocketAddr,
    /// As [`super::StreamPlan::since`].
    pub since: Option<TruncationEpoch>,
    pub requests: Vec<streaming::StreamRequest>,
    pub transfers: Vec<Wanted>,
}

fn now_ms(node: &Node) -> u64 {
    node.env.clock.monotonic_nanos() / 1_000_000
}

fn limits(node: &Node) -> Limits {
    let settings = node.streaming_state.settings.load();
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    Limits { keep_alive_ms: millis(settings.keep_alive), silence_max_ms: millis(settings.silence_max) }
}

/// Opens a session with a peer and runs it to its end.
pub(super) async fn initiate(node: &Arc<Node>, opening: OwnSession) -> SessionEnd {
    let OwnSession { init, peer, since, requests, transfers } = opening;
    let failed = |reason: String| StreamFailure { peer, reason };
    let (tell, events) = mpsc::channel(EVENTS_MAX);
    let key = SessionKey { plan: init.plan, peer, index: init.session_index, follows: false };
    // before the files are looked for, which takes its time: a TRUNCATE that begins meanwhile ends
    // the stream of a repair
    let begun_at = since.unwrap_or_else(|| node.engine.truncation_epoch());
    checks::can_hand_on(node, peer, &transfers).await.map_err(failed)?;
    let files = collect::files(node, &init, peer, transfers).await.map_err(failed)?;
    let offers = sending::offers(&files);
    let (session, effects) = Session::initiate(init.clone(), requests, offers, limits(node), now_ms(node));
    let live = Arc::new(LiveSession::new(key, init, session, &node.env, begun_at, tell));
    files.into_iter().for_each(|file| live.keep(file));
    node.streaming_state.begin(Arc::clone(&live)).map_err(|why| failed(why.to_owned()))?;
    let opener = node.messenger().and_then(membership::Messenger::streams);
    let opened = match opener {
        Some(opener) => opener.open(peer).await.map_err(|error| format!("no link can be opened: {error}")),
        None => Err("this node is in no ring".to_owned()),
    };
    let stream = match opened {
        Ok(stream) => stream,
        Err(why) => {
            end(node, &live, Err(why.clone()));
            return Err(failed(why));
        }
    };
    let (read, write) = tokio::io::split(stream);
    let input = (LinkReader::new(), BytesMut::new());
    let control =
        SessionTask { node: Arc::clone(node), live, read, write, input, events, is_linked: true, down_since: None };
    control.drive(effects.into()).await.map_err(failed)
}

/// Runs a session that a peer has opened to its end.
pub(super) async fn follow(
    node: &Arc<Node>,
    from: Peer,
    init: StreamInit,
    stream: Box<dyn Stream>,
    input: (LinkReader, BytesMut),
) {
    if init.from != from.address {
        tracing::warn!(peer = %from.address, named = %init.from, "a streaming session names another node than its link");
        return;
    }
    let (tell, events) = mpsc::channel(EVENTS_MAX);
    let key = SessionKey { plan: init.plan, peer: init.from, index: init.session_index, follows: true };
    let session = Session::follow(&init, limits(node), now_ms(node));
    let live = Arc::new(LiveSession::new(key, init, session, &node.env, node.engine.truncation_epoch(), tell));
    let (read, mut write) = tokio::io::split(stream);
    if let Err(why) = node.streaming_state.begin(Arc::clone(&live)) {
        tracing::warn!(peer = %from.address, why, "a streaming session is refused");
        drop(send(node, &mut write, &Message::SessionFailed).await);
        return;
    }
    // the end is told in the log
    let control =
        SessionTask { node: Arc::clone(node), live, read, write, input, events, is_linked: true, down_since: None };
    drop(control.drive(VecDeque::new()).await);
}

/// Whether the peer of a session is down, as far as this node knows.
fn is_peer_down(node: &Node, peer: SocketAddr) -> bool {
    let ring = node.ring();
    if !ring.endpoints().iter().any(|endpoint| endpoint.address == peer && !endpoint.is_up) {
        return false;
    }
    let now = Duration::from_nanos(node.env.clock.monotonic_nanos());
    let is_heard = |known: &gossip::Peer| {
        known.status() == Some(Status::Hibernate) && known.silence(now) < HIBERNATING_SILENCE_MAX
    };
    let hibernates =
        |members: &Messenger| members.with_gossip(|gossip| gossip.peers().get(&peer).is_some_and(is_heard));
    let is_waited_for = node.messenger().is_some_and(hibernates);
    !is_waited_for
}

/// Ends the session: only its outcome is kept. Files that have come and are not in their table are
/// given up by a job, which may wait for the disk.
fn end(node: &Node, live: &LiveSession, result: Result<(), String>) {
    let is_complete = result.is_ok();
    node.streaming_state.end(&live.key, live.snapshot(node.env.now()), result);
    let left = live.end(is_complete);
    if !left.is_empty() {
        // where too many jobs wait, the refused job is dropped here and gives the files up
        let _ = node.env.tasks.run("stream", Box::new(move || drop(left)));
    }
}

async fn send(node: &Node, write: &mut WriteHalf<Box<dyn Stream>>, message: &Message) -> Result<(), String> {
    let mut out = Vec::new();
    message.encode(&mut out).map_err(|error| error.to_string())?;
    sender::write(node, write, &out).await
}

/// The files of a table, all of which have come. An attempt of a file that came again over another
/// link may still have to give up its part.
async fn take_table_files(node: &Node, live: &LiveSession, table: TableId) -> Result<ReceivedSSTables, String> {
    let mut incoming = live.take_incoming(table).ok_or_else(|| format!("the files of table {table} are not there"))?;
    for _ in 0..GIVING_UP_LOOKS {
        incoming = match streaming_state::Incoming::take(incoming) {
            Ok(receiving) => return Ok(receiving),
            Err(incoming) => incoming,
        };
        node.env.sleep(GIVING_UP_PAUSE).await;
    }
    Err(format!("a file of table {table} is still being written"))
}

/// The files that a peer has asked for, if it may have them.
async fn asked_for(node: &Arc<Node>, live: &LiveSession, wanted: Vec<Wanted>) -> Result<Vec<OutgoingFile>, String> {
    checks::check_requested(node, live, &wanted)?;
    checks::can_hand_on(node, live.key.peer, &wanted).await?;
    collect::files(node, &live.init, live.key.peer, wanted).await
}

struct SessionTask {
    node: Arc<Node>,
    live: Arc<LiveSession>,
    read: ReadHalf<Box<dyn Stream>>,
    write: WriteHalf<Box<dyn Stream>>,
    input: (LinkReader, BytesMut),
    events: mpsc::Receiver<Event>,
    /// False: the link has ended, and nothing more is read of it.
    is_linked: bool,
    /// Since when the peer has been down and nothing has happened; None: it was up, or something
    /// happened, when the session looked last.
    down_since: Option<Instant>,
}

impl SessionTask {
    async fn drive(mut self, mut effects: VecDeque<Effect>) -> Result<SessionSummary, String> {
        self.tell_begin();
        let mut closes = false;
        let result = loop {
            let Some(effect) = effects.pop_front() else {
                let event = self.next().await;
                let event = self.without_dropped(event);
                effects.extend(self.live.on_event(event, now_ms(&self.node)));
                continue;
            };
            match effect {
                Effect::Send(message) => {
                    self.note(&message);
                    if let Err(why) = send(&self.node, &mut self.write, &message).await {
                        tracing::debug!(peer = %self.live.key.peer, why, "a message of a stream is not sent");
                        effects.extend(self.live.on_event(Event::LinkEnded, now_ms(&self.node)));
                    }
                }
                Effect::Collect(requests) => self.collect(requests),
                Effect::SendFiles(files) => sender::start(&self.node, &self.live, files),
                Effect::Add(table) => self.add(table),
                Effect::Close => closes = true,
                Effect::Finished(result) => break result,
            }
        };
        end(&self.node, &self.live, result.clone());
        self.tell_end(&result);
        let summary = SessionSummary {
            received: self.live.progress.receiving().announced.clone(),
            sent: self.live.progress.sending().announced.clone(),
        };
        if closes {
            drop(self.write.shutdown().await);
        } else {
            self.await_close().await;
        }
        self.live.close_links();
        result.map(|()| summary)
    }

    /// Called for the follower of a complete session: waits until the initiator closes the link.
    /// The last message of this node may still be on its way. An initiator that adds files to its
    /// tables, which can take hours, may take the end of the link for the failure of the session
    /// (Cassandra does). A peer that is down, or that says nothing for
    /// `stream_transfer_task_timeout`, is not waited for.
    async fn await_close(&mut self) {
        let mut heard = self.node.env.now();
        let mut passed_over = [0; 64];
        self.down_since = None;
        loop {
            tokio::select! {
                biased;
                read = self.read.read(&mut passed_over) => match read {
                    Ok(0) | Err(_) => return,
                    Ok(_) => (heard, self.down_since) = (self.node.env.now(), None),
                },
                () = self.node.env.sleep(TICK) => {
                    let silence_max = self.node.streaming_state.settings.load().silence_max;
                    let is_silent = self.node.env.elapsed(heard) >= silence_max;
                    if is_silent || self.tick() != Event::Tick {
                        return;
                    }
                }
            }
        }
    }

    /// The next thing that happens.
    async fn next(&mut self) -> Event {
        loop {
            let (reader, input) = &mut self.input;
            match Event::of_control_link(reader, input) {
                Some(Event::Message(message)) => return self.checked(message).await,
                Some(event) => return event,
                None => {}
            }
            input.reserve(READ_SIZE);
            tokio::select! {
                biased;
                event = self.events.recv() => {
                    self.down_since = None;
                    return event.unwrap_or(Event::LinkEnded);
                }
                read = self.read.read_buf(input), if self.is_linked => match read {
                    Ok(0) | Err(_) => {
                        self.is_linked = false;
                        return Event::LinkEnded;
                    }
                    Ok(_) => {}
                },
                () = self.node.env.sleep(TICK) => return self.tick(),
            }
            self.down_since = None;
        }
    }

    /// Called when nothing has happened for a while.
    fn tick(&mut self) -> Event {
        if self.live.needs_no_peer() || !is_peer_down(&self.node, self.live.key.peer) {
            self.down_since = None;
            return Event::Tick;
        }
        let since = *self.down_since.get_or_insert_with(|| self.node.env.now());
        match self.node.env.elapsed(since) >= DOWN_MAX {
            true => Event::Broken("the peer is down".to_owned()),
            false => Event::Tick,
        }
    }

    /// The event of a message; if what the message announces cannot be taken, the event of a
    /// failure.
    async fn checked(&self, message: Message) -> Event {
        let summaries = match &message {
            Message::PrepareSyn(PrepareSyn { summaries, .. }) | Message::PrepareSynAck(summaries) => summaries.clone(),
            _ => return Event::Message(message),
        };
        self.live.announce(&self.node.engine);
        match checks::check_announced(&self.node, &self.live, &summaries).await {
            Ok(()) => {
                self.live.progress.receiving().announced = summaries;
                Event::Message(message)
            }
            Err(why) => Event::Broken(why),
        }
    }

    /// Lets go of what has come of tables that were dropped, whose drops wait for that. Nobody
    /// wants their rows, and the session goes on without them; only a repair ends.
    fn without_dropped(&self, event: Event) -> Event {
        let dropped = self.live.take_dropped();
        let Some(name) = dropped.values().next().map(|incoming| incoming.receiving().store().name()) else {
            return event;
        };
        self.live.tell_dropped(dropped.keys().copied().filter(|table| self.live.passes_over(*table)));
        // as at the end of the session
        let _ = self.node.env.tasks.run("stream", Box::new(move || drop(dropped)));
        if self.live.init.operation == Operation::Repair {
            return Event::Broken(format!("{name} was dropped meanwhile"));
        }
        tracing::info!(peer = %self.live.key.peer, table = name, "files that come are passed over: their table was dropped");
        event
    }

    /// Takes note of what this side announces.
    fn note(&self, message: &Message) {
        if let Message::PrepareSyn(PrepareSyn { summaries, .. }) | Message::PrepareSynAck(summaries) = message {
            self.live.progress.sending().announced.clone_from(summaries);
        }
    }

    /// Called for the follower: finds the files that the initiator asks for.
    fn collect(&self, requests: Vec<streaming::StreamRequest>) {
        let (node, live) = (Arc::clone(&self.node), Arc::clone(&self.live));
        drop(tokio::task::spawn_local(async move {
            let wanted: Vec<Wanted> = requests.into_iter().map(Wanted::from).collect();
            let event = match asked_for(&node, &live, wanted).await {
                Ok(files) => {
                    let offers = sending::offers(&files);
                    files.into_iter().for_each(|file| live.keep(file));
                    Event::Collected(offers)
                }
                Err(why) => Event::Broken(why),
            };
            drop(live.events.send(event).await);
        }));
    }

    /// Adds the files that have come for a table to it.
    fn add(&self, table: TableId) {
        let (node, live) = (Arc::clone(&self.node), Arc::clone(&self.live));
        drop(tokio::task::spawn_local(async move {
            let added = match take_table_files(&node, &live, table).await {
                Ok(receiving) => write_path::add(&node, live.init.operation, receiving).await,
                Err(why) => Err(why),
            };
            let event = match added {
                Ok(()) => Event::Added(table),
                Err(_) if live.passes_over(table) => Event::Added(table),
                Err(why) => Event::Broken(why),
            };
            drop(live.events.send(event).await);
        }));
    }

    fn tell_begin(&self) {
        let LiveSession { key, init, .. } = &*self.live;
        let (plan, operation) = (uuid_text(&key.plan), init.operation.text());
        tracing::info!(plan, operation, peer = %key.peer, opened = if key.follows { "there" } else { "here" }, "a streaming session begins");
    }

    fn tell_end(&self, result: &Result<(), String>) {
        let LiveSession { key, init, progress, .. } = &*self.live;
        let (plan, operation) = (uuid_text(&key.plan), init.operation.text());
        let (received, sent) = (progress.receiving().done.bytes, progress.sending().done.bytes);
        match result {
            Ok(()) => {
                tracing::info!(plan, operation, peer = %key.peer, received, sent, "a streaming session is complete");
            }
            Err(why) => {
                tracing::error!(plan, operation, peer = %key.peer, received, sent, why, "a streaming session has failed");
            }
        }
    }
}
