//! The answer of one replica to a read: how it is asked for, measured and understood.
//!
//! This node answers itself by a call, and a peer by a message. The dynamic snitch, the trace and
//! the thresholds of the request hear of either in the same way.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use env::Instant;
use internode::payload::read_answer::{Answer, AnswerError, AnswerKind, AnswerLimits};
use internode::payload::read_request::ReadRequest as Question;
use internode::payload::read_response::ReadResponse;
use internode::{Envelope, Flags};
use links::limits::MESSAGE_SIZE_MAX;
use membership::Request;
use rows::ReadError;
use rows::live::TombstoneLimits;
use types::FailureReason;

use super::{DistributedRead, INLINE_SIZE_MAX};
use crate::coordinator::contacts::Contact;
use crate::coordinator::part_read::Data;
use crate::node::Node;
use crate::replica::read::ReadOutcome;
use crate::thresholds::Exceeding;
use crate::traces;

/// Most bytes of this node's own answer that are kept as rows. A larger answer is encoded, because
/// rows take several times the memory of their bytes.
const BUFFERED_SIZE_MAX: usize = 64 << 10;

/// The limits of this node's own answer. They leave out tombstones, which are counted where the
/// result is built.
const LOCAL_LIMITS: AnswerLimits = AnswerLimits {
    tombstones: TombstoneLimits::NONE,
    size_max: MESSAGE_SIZE_MAX,
    buffered_size_max: BUFFERED_SIZE_MAX,
};

/// The version of digests that peers are told; it changes nothing in them.
const DIGEST_VERSION: i32 = 12;

/// The answer of a replica: data, a digest, or both.
pub struct Reply {
    pub data: Option<Data>,
    pub(super) digest: Option<[u8; 16]>,
}

/// The answer that a replica will give, or why it will not.
pub type PendingReply<'a> = Pin<Box<dyn Future<Output = (Contact, Result<Reply, FailureReason>)> + 'a>>;

impl Node {
    /// The dynamic snitch learns how long a read of this node itself took.
    pub(in crate::coordinator) fn record_local_latency(&self, begun: Instant) {
        if let Some(snitch) = self.membership_state.dynamic_snitch.get() {
            snitch.add(self.identity.broadcast, self.env.elapsed(begun));
        }
    }
}

/// This node's answer to its own read, while the read waits for it. If the wait is given up
/// because other replicas were faster, the time so far counts as its latency; otherwise a node
/// whose disk is slow would be taken for the nearest for ever.
struct OwnAnswer<'n> {
    node: &'n Node,
    begun: Instant,
    /// False: the time says nothing of how fast the node is.
    counts: bool,
}

impl Drop for OwnAnswer<'_> {
    fn drop(&mut self) {
        if self.counts {
            self.node.record_local_latency(self.begun);
        }
    }
}

impl DistributedRead<'_> {
    /// Asks a replica. A peer is sent its message before this returns.
    pub(in crate::coordinator) fn ask(
        &self,
        contact: Contact,
        question: &Arc<Question>,
        kind: AnswerKind,
    ) -> PendingReply<'_> {
        let question = Arc::clone(question);
        let asked = self.node.env.now();
        if contact.is_local {
            let rest = self.time_left();
            return Box::pin(async move {
                let mut own = OwnAnswer { node: self.node, begun: self.node.env.now(), counts: true };
                let tracks = self.node.tracks_thresholds();
                let limits = match tracks {
                    true => AnswerLimits { tombstones: self.node.tombstone_limits(&question), ..LOCAL_LIMITS },
                    false => LOCAL_LIMITS,
                };
                let trace = self.trace.clone();
                let answer = self.node.replica.answer(&question, kind, limits, rest, trace, tracks).await;
                self.note_own(contact, &answer, tracks, limits.tombstones.warn);
                let reply = answer.map(|answer| {
                    let data = answer.buffered.map(Data::Buffered).or(answer.data.map(Data::Encoded));
                    Reply { data, digest: answer.digest }
                });
                let reply = reply.map_err(|outcome| reason_of(outcome, tracks));
                own.counts = matches!(reply, Ok(_) | Err(FailureReason::Timeout));
                self.measure(contact, asked, &reply);
                (contact, reply)
            });
        }
        let payload = match kind {
            AnswerKind::Digest => question.for_digest(DIGEST_VERSION).encode(),
            AnswerKind::Data | AnswerKind::Both => question.encode(),
        };
        self.tell_trace(|| {
            let (verb, peer, size) = (question.verb().name(), contact.address, payload.len());
            format!("Sending {verb} message to /{peer} message size {size} bytes")
        });
        let parameters = traces::parameters(self.trace.as_deref());
        let request = Request::new(question.verb(), payload, self.time_left());
        let flags =
            if self.node.tracks_thresholds() { request.flags.with(Flags::TRACK_WARNINGS) } else { request.flags };
        let request = Request { parameters, flags, ..request };
        let sent = self.messenger.request(contact.address, request);
        Box::pin(async move {
            let answered = sent.await;
            if let Ok(envelope) = &answered {
                let (verb, peer) = (envelope.header.verb.name(), contact.address);
                self.tell_trace(|| format!("{verb} message received from /{peer}"));
            }
            let reply = match answered {
                Err(unanswered) => Err(unanswered.reason()),
                Ok(envelope) if let Some(reason) = self.exceeds(contact, &envelope) => Err(reason),
                Ok(envelope) => self.reply_in(envelope.payload, question, kind).await.map_err(|error| {
                    let peer = contact.address;
                    tracing::warn!(%peer, %error, "the answer of another node to a read cannot be read");
                    FailureReason::Unknown
                }),
            };
            self.measure(contact, asked, &reply);
            (contact, reply)
        })
    }

    /// Notes the answer of a replica if EXPLAIN ANALYZE asks for it.
    fn measure(&self, contact: Contact, asked: Instant, reply: &Result<Reply, FailureReason>) {
        if let Some(answers) = &self.warnings.answers {
            let bytes = reply.as_ref().ok().map(|reply| reply.data.as_ref().map_or(0, Data::size));
            answers.add(contact.address, self.node.env.elapsed(asked), bytes);
        }
    }

    /// Notes the thresholds that a replica found exceeded; gives why it ended its read, if it did.
    fn exceeds(&self, contact: Contact, answer: &Envelope) -> Option<FailureReason> {
        self.warnings.findings.add_told(contact.address, &answer.header.parameters)
    }

    /// Notes what this node's own answer passed, as other replicas tell it.
    fn note_own(&self, contact: Contact, answer: &Result<Answer, ReadOutcome<AnswerError>>, tracks: bool, warn: u64) {
        for Exceeding { measure, is_failure, number } in self.node.exceeded(answer, tracks, warn) {
            self.warnings.findings.add(contact.address, measure, is_failure, number);
        }
    }

    /// The answer in a payload. A digest of large data is made on a thread for long jobs.
    async fn reply_in(&self, payload: Bytes, question: Arc<Question>, kind: AnswerKind) -> Result<Reply, String> {
        if kind == AnswerKind::Data || payload.len() <= INLINE_SIZE_MAX {
            return reply_of(&payload, &question, kind);
        }
        let (of_job, same) = (payload.clone(), Arc::clone(&question));
        let long = self.node.env.blocking_long("digest", move || reply_of(&of_job, &same, kind));
        match long.await {
            Ok(reply) => reply,
            // no thread is free, which is not the peer's fault: the worker makes the digest
            Err(_) => reply_of(&payload, &question, kind),
        }
    }
}

/// Why this node has not answered itself. `tracks`: thresholds are tracked.
fn reason_of(outcome: ReadOutcome<AnswerError>, tracks: bool) -> FailureReason {
    match outcome {
        ReadOutcome::TimedOut | ReadOutcome::Failed(AnswerError::Read(ReadError::TimedOut)) => FailureReason::Timeout,
        ReadOutcome::Failed(AnswerError::Read(ReadError::IndexNotAvailable { .. })) => FailureReason::IndexNotAvailable,
        ReadOutcome::Failed(AnswerError::TooLarge { .. } | AnswerError::Read(ReadError::TooLarge { .. })) => {
            FailureReason::ReadSize
        }
        ReadOutcome::Failed(AnswerError::Read(ReadError::TooManyTombstones(_))) => FailureReason::ReadTooManyTombstones,
        ReadOutcome::Failed(AnswerError::Read(ReadError::TooManyIndexes { .. })) if tracks => {
            FailureReason::ReadTooManyIndexes
        }
        ReadOutcome::Overloaded => FailureReason::Unknown,
        ReadOutcome::Failed(AnswerError::Read(error)) => {
            tracing::error!(%error, "a read failed");
            FailureReason::Unknown
        }
    }
}

/// The answer in a payload, with its digest if digests are compared.
fn reply_of(payload: &Bytes, question: &Question, kind: AnswerKind) -> Result<Reply, String> {
    let response = ReadResponse::decode(payload).map_err(|error| error.to_string())?;
    let digest = match (&response, kind) {
        (ReadResponse::Data(_), AnswerKind::Data) => None,
        (response, _) => Some(response.digest(question).map_err(|error| error.to_string())?),
    };
    match response {
        ReadResponse::Data(data) => Ok(Reply { data: Some(Data::Encoded(data.partitions)), digest }),
        ReadResponse::Digest(_) if kind != AnswerKind::Digest => Err("a digest, where data was asked for".to_owned()),
        ReadResponse::Digest(_) => Ok(Reply { data: None, digest }),
    }
}
