//! A mutation on its way to its replicas: which have it, which do not, and which get a hint.
//!
//! Shared by the request that waits ([`super::acknowledgement`]) and by membership, which tells of
//! each peer once ([`membership::RequestCallback`]). The request may be over long before
//! the last peer has answered: a peer that fails or does not answer in time gets its hint all
//! the same. Agrees in role with `org.apache.cassandra.service.AbstractWriteResponseHandler`.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Waker};

use internode::payload::simple::Truncated;
use internode::{Envelope, Verb};
use membership::{KeptBytes, RequestCallback, RequestFailure};
use ring::{EndpointId, Ring};
use stdx::{ByteBudget, ByteReservation};
use types::{Consistency, FailureReason, ReplicaFailure};

use super::write_answers::{AnswerScope, Progress, WriteAnswers};
use crate::hints::{HintOutcome, Hintable};
use crate::node::Node;

/// A mutation on its way to its replicas.
pub(crate) struct PendingWrite {
    node: Weak<Node>,
    /// The ring by which the replicas were chosen.
    ring: Arc<Ring>,
    /// Live replicas, and where the answer of each counts.
    replicas: Vec<(EndpointId, AnswerScope)>,
    /// The mutation for a replica that does not take it. Nothing else of it is kept: its rows would
    /// keep the whole message of the client alive. None: the request leaves no hints.
    hintable: Option<Hintable>,
    state: Mutex<State>,
}

struct State {
    answers: WriteAnswers,
    /// For each replica whether its answer was counted.
    is_counted: Vec<bool>,
    /// Number of peers whose answer or failure membership has not told yet.
    unanswered_peers: usize,
    /// True once a hint was kept. At level ANY a hint counts as an answer once it is durable.
    has_hint: bool,
    /// When the batch was written from whose record the mutation comes, milliseconds since 1970.
    /// Each replica has to get it then, by a hint in any case, because the record goes. None: it
    /// comes from no record.
    written_millis: Option<i64>,
    /// There was no room for a hint that a replica must have.
    lacks_hint: bool,
    /// The bytes of the mutation, counted while a peer is unheard of. None: the mutation was not
    /// sent yet, there is no peer, or all are heard of.
    kept: Option<ByteReservation>,
    /// The task that waits for the answers; None: no task waits yet.
    waker: Option<Waker>,
    /// The task that waits until no peer is left; None: no task waits for that.
    on_settled: Option<Waker>,
}

impl PendingWrite {
    /// A mutation before it is sent. `replicas`: the live ones, this node among them or not.
    pub fn new(
        node: Weak<Node>,
        ring: Arc<Ring>,
        replicas: Vec<(EndpointId, AnswerScope)>,
        hintable: Option<Hintable>,
        answers: WriteAnswers,
    ) -> Self {
        let unanswered_peers = replicas.iter().filter(|(id, _)| *id != ring.local_id()).count();
        let is_repeated =
            |(at, (id, _)): (usize, &(EndpointId, AnswerScope))| replicas[..at].iter().any(|other| other.0 == *id);
        assert!(!replicas.iter().enumerate().any(is_repeated), "a replica is sent a mutation once");
        let is_counted = vec![false; replicas.len()];
        let (has_hint, written_millis, lacks_hint) = (false, None, false);
        let (kept, waker, on_settled) = (None, None, None);
        let state = State {
            answers,
            is_counted,
            unanswered_peers,
            has_hint,
            written_millis,
            lacks_hint,
            kept,
            waker,
            on_settled,
        };
        Self { node, ring, replicas, hintable, state: Mutex::new(state) }
    }

    /// The state of a request that leaves no hints, because it is no mutation, or not a final one.
    pub fn without_hints(ring: Arc<Ring>, replicas: Vec<(EndpointId, AnswerScope)>, answers: WriteAnswers) -> Self {
        Self::new(Weak::new(), ring, replicas, None, answers)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this node is one of the replicas.
    pub fn is_here(&self) -> bool {
        self.replicas.iter().any(|(id, _)| *id == self.ring.local_id())
    }

    /// The live replicas without this node.
    pub fn peers(&self) -> impl Iterator<Item = EndpointId> {
        let local = self.ring.local_id();
        self.replicas.iter().map(|(id, _)| *id).filter(move |id| *id != local)
    }

    /// Called when the mutation is about to be sent: its bytes count once until every peer has
    /// answered or failed.
    pub fn keep(&self, budget: &Arc<ByteBudget>) -> KeptBytes {
        let bytes = self.hintable.as_ref().map_or(0, Hintable::size);
        let mut state = self.state();
        assert!(state.kept.is_none(), "the bytes of a mutation are counted once");
        if bytes > 0 && state.unanswered_peers > 0 {
            state.kept = Some(budget.take(bytes));
        }
        KeptBytes { bytes, left: budget.left() }
    }

    /// The answer of this node, if it is a replica.
    pub fn answer_here(&self, answer: Result<(), FailureReason>) {
        if self.is_here() {
            self.count(self.ring.local_id(), answer);
        }
    }

    fn count(&self, from: EndpointId, answer: Result<(), FailureReason>) {
        let Some(at) = self.replicas.iter().position(|(id, _)| *id == from) else { return };
        let (_, counted) = &self.replicas[at];
        let mut state = self.state();
        let was_counted = std::mem::replace(&mut state.is_counted[at], true);
        assert!(!was_counted, "the answer of a replica counts once");
        match answer {
            Ok(()) => state.answers.receive_of(*counted),
            Err(reason) => {
                let endpoint = self.ring.endpoint(from).address;
                state.answers.fail_of(*counted, ReplicaFailure { endpoint, reason });
            }
        }
        wake(state);
    }

    /// Whether the answer of every peer was counted.
    fn are_peers_counted(&self, state: &State) -> bool {
        let local = self.ring.local_id();
        let mut replicas = self.replicas.iter().zip(&state.is_counted);
        replicas.all(|((id, _), is_counted)| *is_counted || *id == local)
    }

    /// Keeps a hint for a replica that is down or has failed.
    pub fn hint(&self, replica: EndpointId) {
        if replica == self.ring.local_id() {
            return;
        }
        let (Some(hintable), Some(node)) = (&self.hintable, self.node.upgrade()) else { return };
        let endpoint = self.ring.endpoint(replica);
        let written_millis = self.state().written_millis;
        let kept = match written_millis {
            Some(written_millis) => node.hint_in_any_case(endpoint.host_id, hintable, written_millis),
            None if node.hint(endpoint, hintable) => HintOutcome::Yes,
            None => HintOutcome::No,
        };
        let mut state = self.state();
        match kept {
            HintOutcome::Yes => {
                state.has_hint = true;
                wake(state);
            }
            HintOutcome::NotYet => state.lacks_hint = true,
            HintOutcome::No => {}
        }
    }

    /// Keeps a hint for this node, which is a replica and has not applied the mutation: the request
    /// may be acknowledged by what others answer. `begun_millis`: when the request began,
    /// milliseconds since 1970.
    pub fn hint_self(&self, begun_millis: i64) {
        if !self.is_here() {
            return;
        }
        let (Some(hintable), Some(node)) = (&self.hintable, self.node.upgrade()) else { return };
        if node.hint_self(hintable, begun_millis) {
            let mut state = self.state();
            state.has_hint = true;
            wake(state);
        }
    }

    /// From now on every replica that does not answer gets a hint in any case, as old as the batch
    /// of the mutation, which was written at `written_millis`. Called before anything is sent.
    pub fn require_hints(&self, written_millis: i64) {
        self.state().written_millis = Some(written_millis);
    }

    /// Whether a replica has neither answered nor a hint that it must have.
    pub fn lacks_hint(&self) -> bool {
        self.state().lacks_hint
    }

    /// Keeps a hint for every peer that has not answered in time.
    pub fn hint_unanswered(&self) {
        if self.state().unanswered_peers > 0 {
            self.peers().for_each(|peer| self.hint(peer));
        }
    }

    /// The meaning of the answers so far. Where they may change, `context` is woken when they do.
    pub fn progress(&self, context: &mut Context<'_>) -> Progress {
        let mut state = self.state();
        let progress = state.answers.progress();
        if progress == Progress::Waiting && !state.waker.as_ref().is_some_and(|known| known.will_wake(context.waker()))
        {
            state.waker = Some(context.waker().clone());
        }
        progress
    }

    /// The answers so far.
    pub fn answers(&self) -> WriteAnswers {
        self.state().answers.clone()
    }

    /// Whether a hint is an answer that the level is content with.
    pub fn is_any(&self) -> bool {
        self.state().answers.level == Consistency::Any
    }

    /// Whether a hint is an answer that the level is content with, and a hint was kept.
    pub fn is_met_by_hint(&self) -> bool {
        let state = self.state();
        state.answers.level == Consistency::Any && state.has_hint
    }

    /// Whether every peer has answered, or has a hint where that is possible. Where not, `context`
    /// is woken when it is so.
    pub fn is_settled(&self, context: &Context<'_>) -> bool {
        let mut state = self.state();
        if state.unanswered_peers > 0 {
            state.on_settled = Some(context.waker().clone());
        }
        state.unanswered_peers == 0
    }

    /// Whether a hint was kept.
    pub fn has_hint(&self) -> bool {
        self.state().has_hint
    }

    /// The node that has sent it, while it is there.
    pub fn node(&self) -> Option<Arc<Node>> {
        self.node.upgrade()
    }
}

/// The content of an answer. That of a truncation can be that nothing was done.
pub(crate) fn result_of(message: &Envelope) -> Result<(), FailureReason> {
    match message.header.verb {
        Verb::TruncateRsp => match Truncated::decode(&message.payload) {
            Ok(Truncated { success: true, .. }) => Ok(()),
            _ => Err(FailureReason::Unknown),
        },
        _ => Ok(()),
    }
}

/// Wakes the tasks that wait, outside of the lock.
fn wake(mut state: MutexGuard<'_, State>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

impl RequestCallback for PendingWrite {
    fn on_outcome(&self, peer: SocketAddr, answer: Result<Envelope, RequestFailure>) {
        let Some(from) = self.peers().find(|id| self.ring.endpoint(*id).address == peer) else { return };
        match answer {
            Ok(message) => self.count(from, result_of(&message)),
            Err(why) => {
                // the hint first: at level ANY it is an answer, and without it all may have failed
                self.hint(from);
                let reason = match why {
                    // as Cassandra tells of a message that found no room in its queue
                    RequestFailure::Refused => FailureReason::Timeout,
                    other => other.reason(),
                };
                self.count(from, Err(reason));
            }
        }
        let mut state = self.state();
        assert!(state.unanswered_peers > 0, "membership tells of a peer once");
        state.unanswered_peers -= 1;
        debug_assert!(
            state.unanswered_peers > 0 || self.are_peers_counted(&state),
            "the answer of a peer that is heard of is counted"
        );
        let (settled, kept) = match state.unanswered_peers {
            0 => (state.on_settled.take(), state.kept.take()),
            _ => (None, None),
        };
        drop(state);
        drop(kept);
        if let Some(waker) = settled {
            waker.wake();
        }
    }
}
