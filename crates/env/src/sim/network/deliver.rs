//! Segments under way: arrival, acknowledgement, being sent again, giving up.

use std::io;

use super::socket::{Segment, Sending};
use super::{Event, GIVE_UP, RETRY_FIRST, RETRY_MAX, SimNetwork, State};

impl SimNetwork {
    /// The first outgoing segment of a socket reaches the other side, or does not.
    pub(super) fn arrive(&self, state: &mut State, now: u64, id: u64) {
        let Some(socket) = state.sockets.get(&id) else { return };
        let (from, to, peer) = (socket.machine, socket.peer_machine, socket.peer);
        if socket.failure.is_some() {
            return;
        }
        if socket.is_hung {
            let since = socket.tried_since;
            return self.wait_for_user_timeout(state, now, id, since, Event::Arrive { socket: id });
        }
        if !self.passes(state, from, to) {
            return self.try_again(state, now, id);
        }
        let is_fin = matches!(socket.outgoing.front(), Some((Segment::Fin, _)));
        // The other side has said its last, or nobody is left here who would read what it says.
        let is_last = is_fin && (socket.is_finished || socket.is_dropped);
        match state.sockets.get(&peer) {
            Some(other) if other.is_hung => {}
            Some(other) if other.failure.is_none() && (is_fin || !other.is_dropped) => self.deliver(state, now, id),
            _ if is_last => self.pop_fin(state, id),
            _ => {
                self.try_again(state, now, id);
                self.send_reset(state, now, to, id);
            }
        }
    }

    /// Ends a socket whose FIN reaches no living socket, as if the FIN was heard.
    fn pop_fin(&self, state: &mut State, id: u64) {
        let socket = state.sockets.get_mut(&id).expect("the caller has looked it up");
        socket.outgoing.clear();
        socket.sending = Sending::Idle;
        if socket.is_dropped {
            state.sockets.remove(&id);
        }
    }

    fn deliver(&self, state: &mut State, now: u64, id: u64) {
        let socket = state.sockets.get_mut(&id).expect("the caller has looked it up");
        let (from, to, peer) = (socket.machine, socket.peer_machine, socket.peer);
        let other = state.sockets.get(&peer).expect("the caller has looked it up");
        let has_room = other.has_room_to_receive();
        let socket = state.sockets.get_mut(&id).expect("looked up above");
        if !has_room && matches!(socket.outgoing.front(), Some((Segment::Data(_), _))) {
            socket.sending = Sending::AwaitsRoom;
            return;
        }
        let Some((segment, _)) = socket.outgoing.pop_front() else {
            socket.sending = Sending::Idle;
            return;
        };
        socket.tries = 0;
        socket.tried_since = now;
        match socket.outgoing.front().map(|(_, at)| *at) {
            Some(at) => state.schedule(at.max(now), Event::Arrive { socket: id }),
            None => socket.sending = Sending::Idle,
        }
        self.trace.record("segment", &[id, segment.len() as u64, now]);
        state.figures.delivered += 1;
        let bytes = segment.len();
        self.take_in(state, peer, segment);
        if bytes > 0 {
            let at = now.saturating_add(self.delay(state, to, from));
            state.schedule(at, Event::Acknowledge { socket: id, bytes, since: now });
        }
        let is_over = state.sockets.get(&id).is_some_and(|socket| socket.is_dropped && socket.outgoing.is_empty());
        if is_over {
            state.sockets.remove(&id);
        }
    }

    fn take_in(&self, state: &mut State, id: u64, segment: Segment) {
        let Some(socket) = state.sockets.get_mut(&id) else { return };
        assert!(!socket.is_finished, "nothing arrives behind a FIN");
        match segment {
            Segment::Data(data) => socket.incoming.extend(data),
            Segment::Fin => socket.is_finished = true,
        }
        let (unread, reader) = (socket.incoming.len(), socket.reader.take());
        state.figures.unread_most = state.figures.unread_most.max(unread);
        state.wake(reader);
    }

    /// Sends the first outgoing segment again later, unless that went on for too long.
    fn try_again(&self, state: &mut State, now: u64, id: u64) {
        let socket = state.sockets.get_mut(&id).expect("the caller has looked it up");
        if now.saturating_sub(socket.tried_since) >= nanos(GIVE_UP) {
            state.figures.given_up += 1;
            return self.fail(state, id, io::ErrorKind::TimedOut);
        }
        let wait = retry_wait(socket.tries);
        socket.tries += 1;
        state.figures.retried += 1;
        state.schedule(now.saturating_add(wait), Event::Arrive { socket: id });
    }

    /// Called for a hung socket whose bytes have not been acknowledged since `since`: its side
    /// ends at its user timeout, and the event is put off until then. Without a user timeout
    /// nothing happens any more.
    fn wait_for_user_timeout(&self, state: &mut State, now: u64, id: u64, since: u64, event: Event) {
        let limit = state.sockets.get(&id).map_or(0, |socket| socket.user_timeout);
        if limit == 0 {
            return;
        }
        let end = since.saturating_add(limit);
        if now < end {
            return state.schedule(end, event);
        }
        state.figures.given_up += 1;
        self.fail(state, id, io::ErrorKind::TimedOut);
    }

    pub(super) fn acknowledge(&self, state: &mut State, now: u64, id: u64, bytes: usize, since: u64) {
        let Some(socket) = state.sockets.get(&id) else { return };
        if socket.failure.is_some() {
            return;
        }
        if socket.is_hung {
            return self.wait_for_user_timeout(state, now, id, since, Event::Acknowledge { socket: id, bytes, since });
        }
        // The bytes have arrived, but their sender knows nothing of it, sends them again, and gives
        // up in the end.
        if !self.passes(state, socket.peer_machine, socket.machine) {
            if now.saturating_sub(since) >= nanos(GIVE_UP) {
                state.figures.given_up += 1;
                return self.fail(state, id, io::ErrorKind::TimedOut);
            }
            let at = now.saturating_add(nanos(RETRY_FIRST));
            return state.schedule(at, Event::Acknowledge { socket: id, bytes, since });
        }
        let socket = state.sockets.get_mut(&id).expect("looked up above");
        socket.unacknowledged =
            socket.unacknowledged.checked_sub(bytes).expect("what is acknowledged was sent and counted");
        let writer = socket.writer.take();
        state.wake(writer);
    }

    pub(super) fn hear_reset(&self, state: &mut State, id: u64) {
        let is_open = state.sockets.get(&id).is_some_and(|socket| socket.failure.is_none() && !socket.is_hung);
        if is_open {
            self.trace.record("reset", &[id]);
            state.figures.resets += 1;
            self.fail(state, id, io::ErrorKind::ConnectionReset);
        }
    }

    /// Called when a reader has made room for segments that the other side has to send.
    pub(super) fn make_room(&self, state: &mut State, now: u64, id: u64) {
        let Some(socket) = state.sockets.get(&id) else { return };
        let (machine, peer) = (socket.machine, socket.peer);
        let Some(other) = state.sockets.get_mut(&peer) else { return };
        if other.sending == Sending::AwaitsRoom {
            other.sending = Sending::UnderWay;
            other.tried_since = now;
            let from = other.machine;
            let at = now.saturating_add(self.delay(state, machine, from));
            state.schedule(at, Event::Arrive { socket: peer });
        }
    }
}

/// Nanoseconds until a segment is sent again, after so many tries.
pub(super) fn retry_wait(tries: u32) -> u64 {
    nanos(RETRY_FIRST).saturating_mul(1 << tries.min(16)).min(nanos(RETRY_MAX))
}

pub(super) fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
