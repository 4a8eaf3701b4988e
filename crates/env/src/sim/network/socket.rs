//! A socket: one side of a connection, as its machine's kernel keeps it.
//!
//! A socket outlives its stream: after the stream is dropped it stays until the written bytes have
//! arrived. Invariants: `unacknowledged` counts bytes in `outgoing` and bytes that have arrived
//! without the acknowledgement having come back; segments arrive in the order in which they stand
//! in `outgoing`, and at most one event [`super::Event::Arrive`] exists for a socket.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::task::Waker;

use bytes::Bytes;

use super::{Event, RECEIVE_BUFFER_MAX, SEND_BUFFER_MAX, SimNetwork, State};

/// A piece of a connection's bytes, as it is sent at once.
pub(super) enum Segment {
    Data(Bytes),
    /// The end: no more bytes follow.
    Fin,
}

impl Segment {
    pub(super) fn len(&self) -> usize {
        match self {
            Segment::Data(data) => data.len(),
            Segment::Fin => 0,
        }
    }
}

/// The state of the first outgoing segment of a socket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sending {
    /// There is no outgoing segment.
    Idle,
    /// The segment is under way; its arrival is an event.
    UnderWay,
    /// The other side has no room for the segment; its reader tells when there is some.
    AwaitsRoom,
}

/// A socket: see the head of this file.
pub(super) struct Socket {
    pub(super) machine: usize,
    /// The other side; it may be gone.
    pub(super) peer: u64,
    pub(super) peer_machine: usize,
    pub(super) peer_address: SocketAddr,
    pub(super) outgoing: VecDeque<(Segment, u64)>,
    pub(super) sending: Sending,
    pub(super) unacknowledged: usize,
    /// The time at which the link has taken all bytes that were written so far.
    pub(super) link_free_at: u64,
    /// How often the first outgoing segment was sent again; `tried_since` has the time of the
    /// first try.
    pub(super) tries: u32,
    pub(super) tried_since: u64,
    pub(super) incoming: VecDeque<u8>,
    /// True: everything that the other side wrote has arrived.
    pub(super) is_finished: bool,
    /// True: the application writes no more.
    pub(super) is_shut: bool,
    /// True: the application has dropped the stream.
    pub(super) is_dropped: bool,
    /// True: nothing moves on this connection any more.
    pub(super) is_hung: bool,
    /// Nanoseconds without an acknowledgement after which the kernel ends this side of a hung
    /// connection (TCP_USER_TIMEOUT); 0: it never does. Set when the connection is made.
    pub(super) user_timeout: u64,
    pub(super) failure: Option<io::ErrorKind>,
    pub(super) reader: Option<Waker>,
    pub(super) writer: Option<Waker>,
}

impl Socket {
    pub(super) fn new(machine: usize, peer: u64, peer_machine: usize, peer_address: SocketAddr) -> Self {
        Socket {
            machine,
            peer,
            peer_machine,
            peer_address,
            outgoing: VecDeque::new(),
            sending: Sending::Idle,
            unacknowledged: 0,
            link_free_at: 0,
            tries: 0,
            tried_since: 0,
            incoming: VecDeque::new(),
            is_finished: false,
            is_shut: false,
            is_dropped: false,
            is_hung: false,
            user_timeout: 0,
            failure: None,
            reader: None,
            writer: None,
        }
    }

    pub(super) fn has_room_to_receive(&self) -> bool {
        self.incoming.len() < RECEIVE_BUFFER_MAX
    }

    pub(super) fn room_to_send(&self) -> usize {
        SEND_BUFFER_MAX.saturating_sub(self.unacknowledged)
    }
}

impl SimNetwork {
    /// Puts a segment behind the other outgoing ones of a socket. `now` is the sender's time,
    /// which may be ahead of the timeline.
    pub(super) fn send(&self, state: &mut State, now: u64, id: u64, segment: Segment) {
        let Some(socket) = state.sockets.get(&id) else { return };
        let (from, to) = (socket.machine, socket.peer_machine);
        let link = state.link(from, to);
        let delay = self.delay(state, from, to);
        let bytes = segment.len();
        let socket = state.sockets.get_mut(&id).expect("looked up above");
        socket.link_free_at = socket.link_free_at.max(now).saturating_add(link.time_of(bytes));
        let last = socket.outgoing.back().map_or(0, |(_, at)| *at);
        let arrives_at = last.max(socket.link_free_at.saturating_add(delay));
        socket.outgoing.push_back((segment, arrives_at));
        socket.unacknowledged += bytes;
        assert!(socket.unacknowledged <= SEND_BUFFER_MAX, "a send buffer keeps its bound");
        let unacknowledged = socket.unacknowledged;
        if socket.sending == Sending::Idle {
            socket.sending = Sending::UnderWay;
            socket.tried_since = now;
            state.schedule(arrives_at, Event::Arrive { socket: id });
        }
        state.figures.unacknowledged_most = state.figures.unacknowledged_most.max(unacknowledged);
    }

    /// Called when the application drops the stream of a socket.
    pub(super) fn drop_socket(&self, state: &mut State, now: u64, id: u64) {
        let Some(socket) = state.sockets.get_mut(&id) else { return };
        let (reader, writer) = (socket.reader.take(), socket.writer.take());
        state.to_drop.extend(reader.into_iter().chain(writer));
        let socket = state.sockets.get_mut(&id).expect("looked up above");
        socket.is_dropped = true;
        if socket.failure.is_some() {
            state.sockets.remove(&id);
        } else if !socket.incoming.is_empty() {
            self.remove_with_reset(state, now, id);
        } else if !std::mem::replace(&mut socket.is_shut, true) {
            self.send(state, now, id, Segment::Fin);
        } else if socket.outgoing.is_empty() {
            state.sockets.remove(&id);
        }
    }

    /// Removes a socket, and tells the other side if the link lets it.
    pub(super) fn remove_with_reset(&self, state: &mut State, now: u64, id: u64) {
        let Some(socket) = state.sockets.remove(&id) else { return };
        state.to_drop.extend(socket.reader.into_iter().chain(socket.writer));
        if !socket.is_hung {
            self.send_reset(state, now, socket.machine, socket.peer);
        }
    }

    /// Sends a reset, once: if it is lost the other side does not hear of it.
    pub(super) fn send_reset(&self, state: &mut State, now: u64, from: usize, to_socket: u64) {
        let Some(to) = state.sockets.get(&to_socket).map(|socket| socket.machine) else { return };
        if self.passes(state, from, to) {
            let at = now.saturating_add(self.delay(state, from, to));
            state.schedule(at, Event::Reset { socket: to_socket });
        }
    }

    /// Fails a socket's connection: its buffers are emptied, and the tasks that wait for it get
    /// the error.
    pub(super) fn fail(&self, state: &mut State, id: u64, failure: io::ErrorKind) {
        let Some(socket) = state.sockets.get_mut(&id) else { return };
        socket.failure = Some(failure);
        socket.outgoing.clear();
        socket.unacknowledged = 0;
        let (is_dropped, reader, writer) = (socket.is_dropped, socket.reader.take(), socket.writer.take());
        state.wake(reader);
        state.wake(writer);
        if is_dropped {
            state.sockets.remove(&id);
        }
    }
}
