//! A request of another node, from its arrival to its answer.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use internode::{Envelope, Header, Parameter};
use links::Peer;
use membership::Messenger;
use rows::command::TraceSink;
use types::FailureReason;

use crate::in_flight_requests::{CALLS_MAX, CALLS_SIZE_MAX};
use crate::node::Node;
use crate::traces::TracedEvents;

/// The room of one request among those that are under way; given back when dropped.
struct Room {
    node: Arc<Node>,
    bytes: usize,
}

impl Room {
    /// Takes room for a request; None: there is no room.
    fn take(node: &Arc<Node>, bytes: usize) -> Option<Self> {
        let in_flight = &node.in_flight_requests;
        let calls = in_flight.calls.fetch_add(1, Ordering::Relaxed) + 1;
        let total = in_flight.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // gives back what was taken where it is too much
        let room = Self { node: Arc::clone(node), bytes };
        (calls <= CALLS_MAX && total <= CALLS_SIZE_MAX).then_some(room)
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        let in_flight = &self.node.in_flight_requests;
        let calls = in_flight.calls.fetch_sub(1, Ordering::Relaxed);
        let bytes = in_flight.bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        debug_assert!(calls > 0 && bytes >= self.bytes, "room is given back once");
    }
}

/// A request of another node.
pub(crate) struct Call {
    /// This node.
    pub node: Arc<Node>,
    /// Sends the answer.
    pub via: Messenger,
    /// The peer that asks.
    pub from: Peer,
    /// Verb, id and expiry of the request.
    pub header: Header,
    /// The verb's payload.
    pub payload: Bytes,
    /// The share in the tracing session of the request; None: it is not traced.
    trace: Option<Arc<TracedEvents>>,
    room: Room,
}

impl Call {
    /// Serves a request as a task of the calling thread, or answers that there is no room for it.
    pub fn spawn<F: Future<Output = ()> + 'static>(
        node: &Arc<Node>,
        via: &Messenger,
        from: &Peer,
        message: Envelope,
        serve: impl FnOnce(Self) -> F,
    ) {
        let Envelope { header, payload } = message;
        match Room::take(node, payload.len()) {
            Some(room) => {
                let trace = TracedEvents::of_message(node, &header).map(Arc::new);
                if let Some(trace) = &trace {
                    trace.event(format!("{} message received from /{}", header.verb.name(), from.address));
                }
                let (verb, peer) = (header.verb, from.address.ip());
                let (node, via, traced) = (Arc::clone(node), via.clone(), trace.clone());
                let served = serve(Self { node, via, from: *from, header, payload, trace, room });
                drop(match traced {
                    None => tokio::task::spawn_local(served),
                    Some(trace) => tokio::task::spawn_local(async move {
                        served.await;
                        trace.end_span(verb.name(), vec![("network.peer.address", peer.to_string())], None);
                        trace.finish(Vec::new()).await;
                    }),
                });
            }
            None => via.answer(from, &header, Err(FailureReason::Unknown)),
        }
    }

    /// Counts further bytes for the request until it is answered: for what is made of its payload.
    /// A request that comes later may find no room because of them; this one goes on.
    pub fn keep(&mut self, bytes: usize) {
        self.node.in_flight_requests.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.room.bytes += bytes;
    }

    /// Answers with the payload of the verb's answer, or with the reason of a failure.
    pub fn answer(self, answer: Result<Bytes, FailureReason>) {
        self.answer_with(answer, Vec::new());
    }

    /// As `Call::answer`, with parameters in the answer's header.
    pub fn answer_with(self, answer: Result<Bytes, FailureReason>, parameters: Vec<Parameter>) {
        if let Some(trace) = &self.trace {
            trace.event(format!("Enqueuing response to /{}", self.from.address));
        }
        self.via.answer_with(&self.from, &self.header, answer, parameters);
    }

    /// The sink of lines of the request's trace; None: it is not traced.
    pub fn trace(&self) -> Option<Arc<dyn TraceSink>> {
        self.trace.clone().map(|trace| trace as Arc<dyn TraceSink>)
    }

    /// Time for which the sender still waits for the answer.
    pub fn time_left(&self) -> Duration {
        let now = self.node.env.clock.now_micros() / 1000;
        let gone = u64::try_from(self.header.age(now)).unwrap_or(0);
        Duration::from_millis(self.header.life.saturating_sub(gone))
    }
}
