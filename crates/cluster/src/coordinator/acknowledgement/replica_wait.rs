//! The wait of a write that went to several nodes, or of several such writes of one request.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use env::{Env, Instant, Sleep};
use types::FailureReason;

use crate::coordinator::acknowledgement::Acknowledgement;
use crate::coordinator::error::RequestError;
use crate::coordinator::pending_write::PendingWrite;
use crate::coordinator::write_answers::Progress;
use crate::hints::HintsDurable;
use crate::replica::apply::{Logged, WriteError};

/// A function that is called once every mutation of the request has its answers.
pub(crate) type CompletionHook = Box<dyn FnOnce() + Send>;

/// The wait of a request whose mutations went to several nodes.
pub(crate) struct ReplicaWait {
    env: Env,
    /// The mutations of the request. Each has answers of its own; the request is done when all are.
    sent: Vec<Arc<PendingWrite>>,
    /// The wait for this node's log, for mutations of which this node is a replica; None: it has
    /// ended, or there is none.
    log: Option<Logged>,
    /// Why this node failed, if it did.
    cause: Option<WriteError>,
    begun: Instant,
    /// How long the wait may take, from `begun` on.
    limit: Duration,
    /// The timer of `limit`; None until the wait is polled for the first time.
    timer: Option<Sleep>,
    /// True once the time is over.
    is_late: bool,
    /// Level ANY: the wait for hints that stand for answers.
    hints: Option<HintsDurable>,
    on_completion: Option<CompletionHook>,
    /// True: the write is not done before the log of this node has it, whatever the others answer.
    needs_log: bool,
}

/// The answers to all mutations.
enum WaitProgress {
    Waiting,
    /// Each mutation has as many answers as its level needs.
    Enough,
    /// Each mutation has as many answers if hints count, and these are not known to be durable.
    WithHints,
    /// The mutation at this position has too few answers.
    TooFew(usize),
}

impl ReplicaWait {
    /// The wait for mutations that were sent. `log`: what this node waits for, or why it failed.
    pub fn new(
        env: &Env,
        sent: Vec<Arc<PendingWrite>>,
        log: Result<Option<Logged>, WriteError>,
        begun: Instant,
        limit: Duration,
    ) -> Self {
        let (log, cause) = match log {
            Ok(log) => (log, None),
            Err(cause) => (None, Some(cause)),
        };
        let of_wait = Self {
            env: env.clone(),
            sent,
            log,
            cause,
            begun,
            limit,
            timer: None,
            is_late: false,
            hints: None,
            on_completion: None,
            needs_log: false,
        };
        match (&of_wait.log, &of_wait.cause) {
            (Some(_), _) => {}
            (None, None) => of_wait.answer_here(Ok(())),
            (None, Some(cause)) => {
                let elapsed = i64::try_from(env.elapsed(begun).as_micros()).unwrap_or(i64::MAX);
                let begun_millis = env.clock.now_micros().saturating_sub(elapsed) / 1000;
                // the hint first: at level ANY it is an answer, and without it all may have failed
                of_wait.sent.iter().for_each(|sent| sent.hint_self(begun_millis));
                let is_late = *cause == WriteError::TimedOut;
                of_wait.answer_here(Err(if is_late { FailureReason::Timeout } else { FailureReason::Unknown }));
            }
        }
        of_wait
    }

    /// Lets the write be done only when the log of this node has it, whatever others answer.
    pub fn requiring_log(mut self) -> Self {
        self.needs_log = true;
        self
    }

    /// Adds further mutations that were sent to the wait.
    pub fn with_mutations(mut self, more: impl IntoIterator<Item = Arc<PendingWrite>>) -> Self {
        self.sent.extend(more);
        self
    }

    /// Calls `act` when all answers that the level needs have come, unless this node has failed to
    /// apply its own part. The record of a batch stays then, and its hosts send this node its part
    /// again.
    pub fn on_completion(mut self, act: CompletionHook) -> Self {
        self.on_completion = Some(act);
        self
    }

    /// The wait; None where all answers have come.
    pub fn into_acknowledgement(mut self) -> Result<Option<Acknowledgement>, RequestError> {
        let is_answered = self.sent.iter().all(|sent| sent.answers().progress() == Progress::Enough);
        let is_done = is_answered && !(self.needs_log && self.log.is_some());
        if !is_done {
            return Ok(Some(Acknowledgement::of_replicas(self)));
        }
        self.finish().map(|()| None)
    }

    fn answer_here(&self, answer: Result<(), FailureReason>) {
        self.sent.iter().for_each(|sent| sent.answer_here(answer));
    }

    fn poll_log(&mut self, context: &mut Context<'_>) {
        let Some(log) = &mut self.log else { return };
        let Poll::Ready(durable) = Pin::new(log).poll(context) else { return };
        self.log = None;
        match durable {
            Ok(()) => self.answer_here(Ok(())),
            Err(cause) => {
                self.answer_here(Err(FailureReason::Unknown));
                self.cause = Some(cause);
            }
        }
    }

    fn wait_progress(&self, context: &mut Context<'_>) -> WaitProgress {
        let mut all = WaitProgress::Enough;
        if self.needs_log && self.cause.is_some() {
            return WaitProgress::TooFew(0);
        }
        if self.needs_log && self.log.is_some() {
            all = WaitProgress::Waiting;
        }
        for (position, sent) in self.sent.iter().enumerate() {
            match sent.progress(context) {
                Progress::Enough => {}
                _ if sent.is_met_by_hint() => {
                    if matches!(all, WaitProgress::Enough) {
                        all = WaitProgress::WithHints;
                    }
                }
                Progress::TooFew => return WaitProgress::TooFew(position),
                Progress::Waiting => all = WaitProgress::Waiting,
            }
        }
        all
    }

    fn poll_hints(&mut self, context: &mut Context<'_>) -> Poll<Result<(), FailureReason>> {
        if self.hints.is_none() {
            self.hints = self.sent.first().and_then(|sent| sent.node()).map(|node| node.hints_durable());
        }
        match &mut self.hints {
            Some(hints) => Pin::new(hints).poll(context),
            None => Poll::Ready(Err(FailureReason::Unknown)),
        }
    }

    fn failed(&mut self, position: usize, cause: WriteError) -> RequestError {
        let mut answers = self.sent[position].answers();
        if cause == WriteError::TimedOut {
            // EACH_QUORUM: together they may be as many as the level needs, and one data center
            // lacks some
            answers.received = answers.received.min(answers.block_for.saturating_sub(1));
        }
        RequestError::of_write(cause, answers)
    }

    /// The cause of too few answers: why this node failed, unless peers are to blame.
    fn cause_of(&mut self, position: usize) -> WriteError {
        match self.cause.take() {
            Some(cause) if self.sent[position].is_here() => cause,
            _ if self.sent[position].answers().are_late() => WriteError::TimedOut,
            _ => WriteError::Peers,
        }
    }

    fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let rest = self.limit.saturating_sub(self.env.elapsed(self.begun));
        let env = &self.env;
        self.timer.get_or_insert_with(|| env.sleep(rest)).as_mut().poll(context)
    }

    fn finish(&mut self) -> Result<(), RequestError> {
        if let Some(act) = self.on_completion.take().filter(|_| self.cause.is_none()) {
            act();
        }
        Ok(())
    }
}

impl Future for ReplicaWait {
    type Output = Result<(), RequestError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.poll_log(context);
        loop {
            match this.wait_progress(context) {
                WaitProgress::Enough => return Poll::Ready(this.finish()),
                WaitProgress::TooFew(position) => {
                    let cause = this.cause_of(position);
                    return Poll::Ready(Err(this.failed(position, cause)));
                }
                WaitProgress::WithHints => match this.poll_hints(context) {
                    Poll::Ready(Ok(())) => return Poll::Ready(this.finish()),
                    Poll::Ready(Err(_)) => {
                        let unmet = |sent: &Arc<PendingWrite>| sent.progress(context) != Progress::Enough;
                        let position = this.sent.iter().position(unmet).unwrap_or(0);
                        return Poll::Ready(Err(this.failed(position, WriteError::Peers)));
                    }
                    Poll::Pending if this.is_late => return Poll::Pending,
                    Poll::Pending => {}
                },
                WaitProgress::Waiting => {}
            }
            std::task::ready!(this.poll_timer(context));
            if this.is_late || !this.hint_unanswered() {
                let unmet =
                    |sent: &Arc<PendingWrite>| sent.progress(context) != Progress::Enough && !sent.is_met_by_hint();
                let position = this.sent.iter().position(unmet).unwrap_or(0);
                return Poll::Ready(Err(this.failed(position, WriteError::TimedOut)));
            }
            this.is_late = true;
        }
    }
}

impl ReplicaWait {
    /// Called when the time is over. At level ANY hints take the place of the missing answers.
    /// False: at other levels they do not.
    fn hint_unanswered(&self) -> bool {
        let unmet: Vec<_> = self.sent.iter().filter(|sent| sent.is_any()).collect();
        unmet.iter().for_each(|sent| sent.hint_unanswered());
        !unmet.is_empty()
    }
}
