//! A session: one side of the exchange of files between two nodes, as a state machine.
//!
//! ```text
//! initiator                              follower
//! STREAM_INIT, PREPARE_SYN        →      collects what is asked for
//! takes note of what will come    ←      PREPARE_SYNACK
//! PREPARE_ACK (if anything comes) →      sends its files
//! sends its files                 →
//!                                 ←→     RECEIVED for each file
//!                                 ←      COMPLETE, once all is sent and received
//! closes the links
//! ```
//!
//! 1. The caller gives [`Event`]s and carries out [`Effect`]s; it has the links, the files and the
//!    clock.
//! 2. A file counts as received when it is written. When all files of a table are there the caller
//!    adds them to the table at once ([`Effect::Add`]); the session waits for that.
//! 3. The end is told once ([`Effect::Finished`]); after it no event has an effect.
//! 4. The initiator completes only if the follower has. The follower completes when it sends
//!    COMPLETE: if the link breaks before that message arrives, the initiator fails alone, with
//!    all files at both sides. Cassandra's sessions are the same.
//! 5. An initiator that has COMPLETE may still add files to its tables, for hours where that builds
//!    indexes. The session needs nothing of the peer then, so the end of the link does not end it.
//!
//! A session of a preview ends behind PREPARE_SYNACK. Agrees with
//! `org.apache.cassandra.streaming.StreamSession`.

mod files;

use std::collections::BTreeMap;

use bytes::BytesMut;
use schema::TableId;

use crate::link::{Incoming, LinkReader};
use crate::message::init::{Preview, StreamInit};
use crate::message::prepare::{PrepareSyn, StreamRequest, Summary};
use crate::message::{Message, Received};
pub use files::{OfferedFiles, ReceivedFile};
use files::{ReceiveTask, TransferTask};

/// Times of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Milliseconds between KEEP_ALIVE messages of the initiator (`streaming_keep_alive_period`).
    pub keep_alive_ms: u64,
    /// Milliseconds after which a session in which nothing has happened fails
    /// (`stream_transfer_task_timeout`, which Cassandra counts for each file on its own).
    pub silence_max_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { keep_alive_ms: 300_000, silence_max_ms: 12 * 3_600_000 }
    }
}

/// The side of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The node that opened the session.
    Initiator,
    /// The node that has taken the session of an initiator.
    Follower,
}

/// A thing that has happened.
#[derive(Clone, PartialEq, Debug)]
pub enum Event {
    /// A message has come on the control link. STREAM_INIT and STREAM are not among them.
    Message(Message),
    /// The files of this side that [`Effect::Collect`] has asked for.
    Collected(Vec<OfferedFiles>),
    /// A file has come and is written.
    Arrived(ReceivedFile),
    /// The files that came for a table have been added to it.
    Added(TableId),
    /// Bytes of a file were sent or received.
    Progress,
    /// This side cannot go on: a file link broke, the disk failed, an operator stopped it.
    Broken(String),
    /// The control link has ended.
    LinkEnded,
    /// Time has passed in which nothing else has happened.
    Tick,
}

impl Event {
    /// The next event of a control link, taken out of `input`: a message, or [`Event::Broken`] for
    /// bytes that are not valid on such a link. `None`: more bytes must come.
    pub fn of_control_link(reader: &mut LinkReader, input: &mut BytesMut) -> Option<Self> {
        Some(match reader.next(input) {
            Ok(None) => return None,
            Ok(Some(Incoming::Message(message @ (Message::Stream(_) | Message::Init(_))))) => {
                Self::Broken(format!("{} came on a control link", message.name()))
            }
            Ok(Some(Incoming::Message(message))) => Self::Message(message),
            Ok(Some(Incoming::Data(_) | Incoming::EndOfFile)) => {
                Self::Broken("a file came on a control link".to_owned())
            }
            Err(error) => Self::Broken(error.to_string()),
        })
    }
}

/// A thing that the caller is to do. Effects are carried out in their order.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    /// Send a message on the control link.
    Send(Message),
    /// Flush the tables and collect the files that are asked for, and tell of them by
    /// [`Event::Collected`].
    Collect(Vec<StreamRequest>),
    /// Send these files on file links.
    SendFiles(Vec<Received>),
    /// Add all files of this table that came, and tell of it by [`Event::Added`].
    Add(TableId),
    /// Close all links of the session. Files that were received and not added are given up.
    Close,
    /// The session has ended. Err: the reason, a sentence.
    Finished(Result<(), String>),
}

/// The state of a session, in the order in which one follows the other.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum State {
    /// Not both sides know yet which files will be sent.
    Preparing,
    /// Both sides know the files, and these are on their way.
    Streaming,
    /// The initiator has sent and received all files, and waits for COMPLETE.
    WaitComplete,
    /// The session has ended.
    Ended,
}

/// One side of a session.
#[derive(Debug)]
pub struct Session {
    role: Role,
    limits: Limits,
    is_preview: bool,
    state: State,
    /// True: the follower has sent COMPLETE.
    has_complete: bool,
    /// True: the follower has been asked for its files, and has not told of them yet.
    is_collecting: bool,
    /// Files that the peer does not have yet, by table.
    sending: BTreeMap<TableId, TransferTask>,
    /// Tables of which files are to come, until they are added.
    receiving: BTreeMap<TableId, ReceiveTask>,
    /// When something happened last in the session, milliseconds of the caller's clock.
    active_ms: u64,
    /// When KEEP_ALIVE was sent last, milliseconds of the caller's clock.
    kept_alive_ms: u64,
}

impl Session {
    /// Begins the initiator's side: asks for data and offers files.
    pub fn initiate(
        init: StreamInit,
        requests: Vec<StreamRequest>,
        offers: Vec<OfferedFiles>,
        limits: Limits,
        now_ms: u64,
    ) -> (Self, Vec<Effect>) {
        let mut session = Self::new(Role::Initiator, init.preview, limits, now_ms);
        let summaries = session.offer(offers);
        let effects = vec![
            Effect::Send(Message::Init(init)),
            Effect::Send(Message::PrepareSyn(PrepareSyn { requests, summaries })),
        ];
        (session, effects)
    }

    /// Begins the follower's side, for a STREAM_INIT that has come.
    pub fn follow(init: &StreamInit, limits: Limits, now_ms: u64) -> Self {
        Self::new(Role::Follower, init.preview, limits, now_ms)
    }

    fn new(role: Role, preview: Preview, limits: Limits, now_ms: u64) -> Self {
        Self {
            role,
            limits,
            is_preview: preview != Preview::None,
            state: State::Preparing,
            has_complete: false,
            is_collecting: false,
            sending: BTreeMap::new(),
            receiving: BTreeMap::new(),
            active_ms: now_ms,
            kept_alive_ms: now_ms,
        }
    }

    /// Whether the end has been told.
    pub fn is_ended(&self) -> bool {
        self.state == State::Ended
    }

    /// Whether a file that begins to arrive is one that was announced and has not come.
    ///
    /// # Errors
    /// A sentence; the caller has to give the session [`Event::Broken`].
    pub fn admit(&self, file: &ReceivedFile) -> Result<(), String> {
        match self.receiving.get(&file.id.table) {
            Some(expected) if !self.is_ended() => expected.admit(file),
            _ => Err(format!("a file of table {} was not announced", file.id.table)),
        }
    }

    /// The effects of an event at a time of the caller's clock.
    pub fn on_event(&mut self, event: Event, now_ms: u64) -> Vec<Effect> {
        if self.is_ended() {
            return Vec::new();
        }
        if event != Event::Tick {
            self.active_ms = now_ms;
        }
        let done = match event {
            Event::Message(message) => self.message(message),
            Event::Collected(offers) => self.collected(offers),
            Event::Arrived(file) => self.arrived(&file),
            Event::Added(table) => self.added(table),
            Event::Progress => Ok(self.keep_alive(now_ms)),
            Event::Broken(why) => Err(why),
            Event::LinkEnded if self.needs_no_peer() => Ok(Vec::new()),
            Event::LinkEnded => return self.end(Err("the link to the peer has ended".to_owned())),
            Event::Tick => self.tick(now_ms),
        };
        done.unwrap_or_else(|why| self.fail(why))
    }

    fn message(&mut self, message: Message) -> Result<Vec<Effect>, String> {
        match (self.role, message) {
            (_, Message::KeepAlive) => Ok(Vec::new()),
            (_, Message::Received(id)) => self.acknowledged(id),
            (_, Message::SessionFailed) => {
                Ok(self.end(Err("the peer has given the session up; its log says why".to_owned())))
            }
            (Role::Follower, Message::PrepareSyn(syn)) => self.asked(syn),
            (Role::Follower, Message::PrepareAck) => self.start(),
            (Role::Initiator, Message::PrepareSynAck(summaries)) => self.answered(&summaries),
            (Role::Initiator, Message::Complete) => {
                self.has_complete = true;
                Ok(self.maybe_complete())
            }
            (role, message) => Err(format!("{} came to the {role:?} of a session", message.name())),
        }
    }

    /// Called for the follower: takes PREPARE_SYN.
    fn asked(&mut self, syn: PrepareSyn) -> Result<Vec<Effect>, String> {
        // files that this side has offered wait for PREPARE_ACK
        if self.state != State::Preparing || self.is_collecting || !self.sending.is_empty() {
            return Err("PREPARE_SYN came twice".to_owned());
        }
        self.expect(&syn.summaries)?;
        self.is_collecting = true;
        Ok(vec![Effect::Collect(syn.requests)])
    }

    /// Called for the follower when the files that the initiator asked for are known.
    fn collected(&mut self, offers: Vec<OfferedFiles>) -> Result<Vec<Effect>, String> {
        assert!(self.is_collecting && self.role == Role::Follower, "only a follower that was asked collects");
        self.is_collecting = false;
        let mut effects = vec![Effect::Send(Message::PrepareSynAck(self.offer(offers)))];
        if self.is_preview {
            effects.extend(self.end(Ok(())));
            return Ok(effects);
        }
        // without files of its own the follower gets no PREPARE_ACK
        if self.sending.is_empty() {
            self.enter_state(State::Streaming);
        }
        effects.extend(self.maybe_complete());
        Ok(effects)
    }

    /// Called for the initiator: takes PREPARE_SYNACK.
    fn answered(&mut self, summaries: &[Summary]) -> Result<Vec<Effect>, String> {
        if self.state != State::Preparing {
            return Err("PREPARE_SYNACK came twice".to_owned());
        }
        self.expect(summaries)?;
        if self.is_preview {
            return Ok(self.end(Ok(())));
        }
        let mut effects = Vec::new();
        if !summaries.is_empty() {
            effects.push(Effect::Send(Message::PrepareAck));
        }
        effects.extend(self.start()?);
        Ok(effects)
    }

    /// Called when the peer awaits this side's files (PREPARE_ACK). A follower that has announced
    /// no files refuses the message: before PREPARE_SYN it would end the session as complete, with
    /// nothing sent or received.
    fn start(&mut self) -> Result<Vec<Effect>, String> {
        let is_unasked = self.role == Role::Follower && self.sending.is_empty();
        if self.state != State::Preparing || self.is_collecting || is_unasked {
            return Err("PREPARE_ACK came when no files were announced, or twice".to_owned());
        }
        self.enter_state(State::Streaming);
        let files: Vec<Received> = self.sending.iter().flat_map(|(table, sending)| sending.missing(*table)).collect();
        let mut effects = if files.is_empty() { Vec::new() } else { vec![Effect::SendFiles(files)] };
        effects.extend(self.maybe_complete());
        Ok(effects)
    }

    /// Takes RECEIVED. A repeated one has no effect.
    fn acknowledged(&mut self, id: Received) -> Result<Vec<Effect>, String> {
        let Some(sending) = self.sending.get_mut(&id.table) else {
            return Err(format!("RECEIVED of table {}, of which nothing is sent", id.table));
        };
        sending.acknowledge(id.sequence)?;
        Ok(self.maybe_complete())
    }

    fn arrived(&mut self, file: &ReceivedFile) -> Result<Vec<Effect>, String> {
        self.admit(file)?;
        let Some(expected) = self.receiving.get_mut(&file.id.table) else { return Ok(Vec::new()) };
        expected.take(file);
        let mut effects = vec![Effect::Send(Message::Received(file.id))];
        if expected.is_whole() {
            effects.push(Effect::Add(file.id.table));
        }
        Ok(effects)
    }

    fn added(&mut self, table: TableId) -> Result<Vec<Effect>, String> {
        let expected = self.receiving.remove(&table);
        assert!(expected.is_some_and(|expected| expected.is_whole()), "a table is added when its files are there");
        Ok(self.maybe_complete())
    }

    fn tick(&mut self, now_ms: u64) -> Result<Vec<Effect>, String> {
        if now_ms.saturating_sub(self.active_ms) >= self.limits.silence_max_ms {
            return Err("nothing has happened for stream_transfer_task_timeout".to_owned());
        }
        Ok(self.keep_alive(now_ms))
    }

    /// Sends KEEP_ALIVE when it is due. Files go over other links, so nothing else may pass the
    /// control link for hours, and what stands between the nodes may forget an idle link. While
    /// bytes of files come or go there is no tick, but progress.
    fn keep_alive(&mut self, now_ms: u64) -> Vec<Effect> {
        if self.role == Role::Follower || now_ms.saturating_sub(self.kept_alive_ms) < self.limits.keep_alive_ms {
            return Vec::new();
        }
        self.kept_alive_ms = now_ms;
        vec![Effect::Send(Message::KeepAlive)]
    }

    /// Notes files of this side; gives their summaries.
    fn offer(&mut self, offers: Vec<OfferedFiles>) -> Vec<Summary> {
        let mut summaries = Vec::with_capacity(offers.len());
        for offer in offers.into_iter().filter(|offer| !offer.files.is_empty()) {
            summaries.push(offer.summary());
            let before = self.sending.insert(offer.table, TransferTask::new(offer.files.len()));
            assert!(before.is_none(), "the files of a table are one offer");
        }
        summaries
    }

    /// Notes the files that the peer will send.
    fn expect(&mut self, summaries: &[Summary]) -> Result<(), String> {
        for summary in summaries.iter().filter(|summary| summary.files > 0) {
            if self.receiving.insert(summary.table, ReceiveTask::new(summary)).is_some() {
                return Err(format!("two summaries of table {}", summary.table));
            }
        }
        Ok(())
    }

    /// Ends the session if there is nothing left to send, to receive or to wait for.
    fn maybe_complete(&mut self) -> Vec<Effect> {
        let is_sent = self.sending.values().all(TransferTask::is_done);
        if self.state == State::Preparing || !is_sent || !self.receiving.is_empty() {
            return Vec::new();
        }
        match self.role {
            Role::Follower => {
                let mut effects = vec![Effect::Send(Message::Complete)];
                effects.extend(self.end(Ok(())));
                effects
            }
            Role::Initiator if self.has_complete => self.end(Ok(())),
            Role::Initiator => {
                self.enter_state(State::WaitComplete);
                Vec::new()
            }
        }
    }

    /// Whether nothing is left but to add files, all of which have come, to tables of this side.
    pub fn needs_no_peer(&self) -> bool {
        self.has_complete
            && !self.receiving.is_empty()
            && self.sending.values().all(TransferTask::is_done)
            && self.receiving.values().all(ReceiveTask::is_whole)
    }

    /// Gives the session up, and tells the peer.
    fn fail(&mut self, why: String) -> Vec<Effect> {
        let mut effects = vec![Effect::Send(Message::SessionFailed)];
        effects.extend(self.end(Err(why)));
        effects
    }

    fn enter_state(&mut self, to: State) {
        assert!(self.state <= to, "a session only goes forward");
        self.state = to;
    }

    /// Only the initiator closes the links of a session that is complete: what the follower sent
    /// last may still be on its way.
    fn end(&mut self, result: Result<(), String>) -> Vec<Effect> {
        assert!(self.state != State::Ended, "the end of a session is told once");
        let is_done = self.receiving.is_empty() && self.sending.values().all(TransferTask::is_done);
        assert!(is_done || self.is_preview || result.is_err(), "a session is complete when all files are there");
        self.enter_state(State::Ended);
        let closes = self.role == Role::Initiator || result.is_err();
        let close = closes.then_some(Effect::Close);
        close.into_iter().chain([Effect::Finished(result)]).collect()
    }
}

#[cfg(test)]
mod tests;
