//! Reads that other nodes have a share in.
//!
//! 1. The read is split into parts that have replicas of their own ([`super::parts`]); a range as
//!    far as each round needs it, in the ring as it is then.
//! 2. The replicas of a part are asked: of a partition the nearest for data and the others for a
//!    digest of it, of a range all for data. Where digests differ, those replicas are asked for
//!    data, too. A replica of a partition that fails, or takes longer than `speculative_retry` lets
//!    the read wait, is replaced by another one that is up, if there is one: one that is to give
//!    its data behind a digest, too.
//!    Replicas check the conditions of the statement where they may ([`super::filtering`]); answers
//!    that differ are completed then ([`super::protection`]).
//! 3. What builds the answer reads the merge of it all ([`super::part_read`]). Where that ends
//!    early, because a part has not been asked for or a replica has more to say, it is asked for,
//!    and the answer is built again from the beginning. Further portions are twice as large each
//!    time, so the work stays in proportion to what is read.
//! 4. Replicas that lack something of what was read are told before the client hears of it
//!    ([`super::read_repair`]): a later read does not see less.
//!
//! A read that would hold too much goes on as a scan ([`super::scan`]). While large results use up
//! their share of memory ([`crate::result_room`]) a read begins with small portions; where it has
//! more than [`SMALL_SIZE_MAX`] of answers it waits for its turn before it asks for more.
//!
//! A small answer is looked through and built on the worker, a larger one on the threads for long
//! jobs. Agrees in effect with `org.apache.cassandra.service.reads.{AbstractReadExecutor,
//! ReadCallback,DigestResolver,DataResolver}` and `reads.range.RangeCommandIterator`.

mod first_answers;
mod planning;
mod replies;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use env::Instant;
use futures_util::future::join_all;
use internode::payload::read_answer::AnswerKind;
use membership::Messenger;
use rows::command::TraceSink;
use rows::replicas::FurtherRead;
use rows::{Build, BuildError, BuildResult, ReadError, WantedRows};
use stdx::ByteReservation;
use types::{Consistency, FailureReason, ReplicaFailure};

use first_answers::FirstAnswers;

use super::contacts::Contact;
use super::error::{FailedAnswers, FailedRead};
use super::part_read::{Missing, PartRead, Portion, READING_SIZE_MAX, ReadRepair, ReadingStream};
use super::parts::Part;
use super::scan::{self, FetchRequest, ScanError, ScanOutcome};
use crate::coordinator::error::RequestError;
use crate::node::Node;
use crate::replica::apply::within;
use crate::replica::read::{ReadFigures, ReadOutcome, ReadRequest, Warnings};
use crate::result_room::ResultRoom;

/// Parts that are asked for at once, unless those before had little. Partitions by key are all
/// wanted.
const PARTS_MAX: usize = 16;
/// Parts that are asked for at once where those before had little. Each round trip builds the
/// answer again from the beginning, so that many small rounds would cost more than all the rows.
const SMALL_PARTS_MAX: usize = 64;
/// Bytes that these parts have together, if they are like those before: this node reads its share
/// of them on the worker.
const SMALL_PARTS_SIZE: usize = 256 << 10;
/// Stretches of a range that are asked for at first. Each time that the read goes on to further
/// ones twice as many are asked for, because those before had little.
const STRETCHES_FIRST: usize = 1;

/// A read that holds more bytes of answers goes on as a scan, which holds no more than a portion of
/// each replica.
const SCAN_SIZE: usize = 16 << 20;

/// Most bytes of answers that are read, and built into a result, on the worker; more of them go to
/// a thread for long jobs.
pub(super) const INLINE_SIZE_MAX: usize = 128 << 10;

/// Most bytes of answers with which a read is neither counted nor waits while large results use up
/// their share of memory.
const SMALL_SIZE_MAX: usize = 64 << 10;

/// The result of building the answer, what was missing for it, what replicas lack, and the live
/// rows and tombstones that it read.
type Attempt<B> = (BuildResult<B>, Option<Missing>, Vec<ReadRepair>, [u64; 2]);

/// One read among nodes.
pub(super) struct DistributedRead<'n> {
    pub node: &'n Node,
    pub messenger: &'n Messenger,
    pub level: Consistency,
    /// The sink of trace lines, whose session is named in messages to other nodes; None: the
    /// request is not traced.
    pub trace: Option<Arc<dyn TraceSink>>,
    /// Sentences that the client is to be warned with.
    pub warnings: &'n Warnings,
    deadline: Instant,
    /// The largest number of answers that a part of the read waits for.
    block_for: u32,
    /// The rows that are looked for; None: every row.
    wanted_rows: Option<Arc<WantedRows>>,
}

impl<'n> DistributedRead<'n> {
    /// A read at a level that may take `limit` from now on.
    pub fn new(
        node: &'n Node,
        messenger: &'n Messenger,
        level: Consistency,
        limit: Duration,
        warnings: &'n Warnings,
        trace: Option<Arc<dyn TraceSink>>,
    ) -> Self {
        let deadline = node.env.now().plus(limit);
        Self { node, messenger, level, trace, warnings, deadline, block_for: 1, wanted_rows: None }
    }

    /// Has this read wait for the answers that these parts need.
    pub fn waiting_for(self, parts: &[Part]) -> Self {
        let most = parts.iter().map(|part| part.contacts.asked.len()).max();
        Self { block_for: most.map_or(1, count).max(1), ..self }
    }

    /// Has the replicas of this read check the conditions on these rows, as far as they can.
    pub fn looking_for(self, wanted_rows: Option<Arc<WantedRows>>) -> Self {
        Self { wanted_rows, ..self }
    }

    /// Builds something from the stream of all parts.
    pub async fn read<B: Build>(
        &self,
        parts: Vec<Part>,
        request: ReadRequest,
        figures: &ReadFigures,
        build: B,
    ) -> Result<B::Built, FailedRead<B::Error>> {
        let mut window = STRETCHES_FIRST;
        let wanted_rows = self.wanted_rows.as_deref();
        let mut parts: Arc<Vec<PartRead>> =
            Arc::new(parts.into_iter().map(|part| PartRead::new(part, wanted_rows)).collect());
        let (mut taken, mut room) = match &request.results {
            Some(room) if room.budget.is_used_up() => (None, Some(room)),
            results => (results.as_ref().map(|room| room.budget.take(0)), None),
        };
        if room.is_some() {
            Arc::make_mut(&mut parts).iter_mut().for_each(PartRead::begin_small);
        }
        let build = Arc::new(build);
        let mut missing = Missing::Part(0);
        loop {
            let asked = Arc::make_mut(&mut parts);
            let size = self.fetch(asked, missing, &mut window, &mut taken).await?;
            if size > SMALL_SIZE_MAX
                && let Some(room) = room.take()
            {
                taken = Some(self.enter(room, size).await?);
                asked.iter_mut().for_each(PartRead::grow_large);
            }
            if size > SCAN_SIZE && self.node.env.tasks.jobs_may_wait() {
                return self.scan(parts, window, taken, figures, build).await;
            }
            let (result, lacking, repairs, counts) = self.attempt(&parts, &build, size).await?;
            match (result, lacking) {
                (Err(error), Some(lacking)) if error.is_blocked() => missing = lacking,
                (Err(error), _) => return Err(self.failed(ReadOutcome::Failed(error))),
                (Ok(built), _) => {
                    figures.add_rows(counts);
                    self.repair(repairs).await?;
                    return Ok(built);
                }
            }
        }
    }
}

impl DistributedRead<'_> {
    /// Builds something from parts whose replicas have answered already. No replica is repaired.
    /// Also tells whether replicas had to be asked for more.
    pub async fn build_of<B: Build>(
        &self,
        parts: Vec<PartRead>,
        results: Option<&Arc<ResultRoom>>,
        figures: &ReadFigures,
        build: B,
    ) -> Result<(B::Built, bool), FailedRead<B::Error>> {
        let mut parts = Arc::new(parts);
        let mut size = parts.iter().map(|asked| asked.size).sum();
        let mut taken = results.map(|room| room.budget.take(size));
        let (build, mut window, mut was_extended) = (Arc::new(build), STRETCHES_FIRST, false);
        loop {
            let (result, missing, _, counts) = self.attempt(&parts, &build, size).await?;
            match (result, missing) {
                (Err(error), Some(missing)) if error.is_blocked() => {
                    size = self.fetch(Arc::make_mut(&mut parts), missing, &mut window, &mut taken).await?;
                    was_extended = true;
                }
                (Err(error), _) => return Err(self.failed(ReadOutcome::Failed(error))),
                (Ok(built), _) => {
                    figures.add_rows(counts);
                    return Ok((built, was_extended));
                }
            }
        }
    }

    /// Waits for memory for the result of a read that turns out to be large while results use up
    /// their share. Its answers so far have `size` bytes: they are few, and not counted before.
    /// Afterwards the read waits for nothing but other nodes and threads, so reads that are counted
    /// never wait for each other.
    async fn enter<E>(&self, room: &ResultRoom, size: usize) -> Result<ByteReservation, FailedRead<E>> {
        let env = &self.node.env;
        let entered = async {
            loop {
                let _turn = room.enter(env).await?;
                if let Some(mut expected) = room.expect_one() {
                    expected.set(expected.bytes().max(size));
                    return Some(expected);
                }
            }
        };
        match within(env, self.time_left(), entered).await {
            Some(Some(taken)) => Ok(taken),
            Some(None) => Err(self.failed(ReadOutcome::Overloaded)),
            None => Err(self.failed(ReadOutcome::TimedOut)),
        }
    }

    pub(super) fn tell_trace(&self, line: impl FnOnce() -> String) {
        if let Some(trace) = &self.trace {
            trace.event(line());
        }
    }

    /// Time that the read still has.
    pub(super) fn time_left(&self) -> Duration {
        self.deadline.since(self.node.env.now())
    }

    /// Asks for what is missing, and gives the bytes of all answers that are held.
    pub async fn fetch<E: From<ReadError>>(
        &self,
        parts: &mut Vec<PartRead>,
        missing: Missing,
        window: &mut usize,
        taken: &mut Option<ByteReservation>,
    ) -> Result<usize, FailedRead<E>> {
        match missing {
            Missing::Part(next) => {
                let most = parts_at_once(next, parts[..next].iter().map(|asked| asked.size).sum());
                let keys = parts[next..].iter().take_while(|asked| !asked.part.is_of_range()).count();
                let count = if keys > 0 { keys.min(most) } else { most.min(*window) };
                self.plan_ahead(parts, next, count).map_err(FailedRead::Refused)?;
                parts[next..].iter_mut().take(count).for_each(|asked| asked.limit_first_portion(count, PARTS_MAX));
                self.ask_parts(parts, next, count).await?;
                if keys == 0 {
                    *window = (*window * 2).min(SMALL_PARTS_MAX);
                }
            }
            Missing::Further(part, lacks) => self.ask_further(&mut parts[part], lacks).await?,
        }
        let size = parts.iter().map(|asked| asked.size).sum();
        if let Some(taken) = taken {
            taken.set(size);
        }
        if size <= READING_SIZE_MAX {
            return Ok(size);
        }
        Err(self.too_large())
    }

    /// The error of a read that would hold more than [`READING_SIZE_MAX`].
    pub(super) fn too_large<E: From<ReadError>>(&self) -> FailedRead<E> {
        let what = format!("the answers of replicas to one read exceed {} MiB: read in pages", READING_SIZE_MAX >> 20);
        self.failed(ReadOutcome::Failed(ReadError::Malformed { offset: 0, what }.into()))
    }

    /// Builds the answer from a scan: on a thread that waits for portions.
    async fn scan<B: Build>(
        &self,
        parts: Arc<Vec<PartRead>>,
        mut window: usize,
        mut taken: Option<ByteReservation>,
        figures: &ReadFigures,
        build: Arc<B>,
    ) -> Result<B::Built, FailedRead<B::Error>> {
        let fetch = async |FetchRequest { mut parts, missing, repairs }: FetchRequest| {
            self.repair::<B::Error>(repairs).await?;
            self.fetch::<B::Error>(&mut parts, missing, &mut window, &mut taken).await?;
            Ok::<_, FailedRead<B::Error>>(parts)
        };
        let scanned = scan::run(&self.node.env, &self.node.scans, || self.time_left(), parts, build, fetch).await;
        let ScanOutcome { result, repairs, counts } = scanned.map_err(|unended| match unended {
            ScanError::TimedOut => self.failed(ReadOutcome::TimedOut),
            ScanError::Overloaded => self.failed(ReadOutcome::Overloaded),
            ScanError::Fetch(error) => error,
        })?;
        let built = result.map_err(|error| self.failed(ReadOutcome::Failed(error)))?;
        figures.add_rows(counts);
        self.repair(repairs).await?;
        Ok(built)
    }

    /// Asks the replicas of the parts from `next` on that were not asked yet, at most `window`
    /// parts. Refused where the first of them lacks replicas.
    async fn ask_parts<E: From<ReadError>>(
        &self,
        parts: &mut Vec<PartRead>,
        next: usize,
        window: usize,
    ) -> Result<(), FailedRead<E>> {
        if let Some(shortage) = parts.get(next).and_then(|asked| asked.part.contacts.shortage) {
            return Err(FailedRead::Refused(RequestError::Unavailable { level: self.level, shortage }));
        }
        // a part that lacks replicas may not be needed: those before it are asked alone
        let able = parts.iter().skip(next).take(window).take_while(|asked| asked.part.contacts.shortage.is_none());
        let wanted = next..next + able.count();
        let are_planned = parts[wanted.clone()].iter().all(|asked| asked.part.contacts.is_planned);
        assert!(are_planned, "whoever is asked for a part was chosen before");
        let answers = join_all(parts[wanted.clone()].iter().map(|asked| self.ask_first(asked))).await;
        // bytes that the read holds now
        let mut held: usize = parts.iter().map(|asked| asked.size).sum();
        held += answers.iter().flatten().map(FirstAnswers::size).sum::<usize>();
        let wanted: Vec<PartRead> = parts.drain(wanted).collect();
        let mut answered = Vec::with_capacity(wanted.len());
        for (mut asked, answer) in wanted.into_iter().zip(answers) {
            let first = answer.map_err(FailedRead::of_answers)?;
            let size = first.size();
            let FirstAnswers { command, portions, confirmed } = first;
            let add = move |asked: &mut PartRead| {
                let mut portions = portions.into_iter();
                portions.try_for_each(|(contact, portion)| {
                    asked.add_first(contact, &command, portion).map_err(|error| (contact, error))
                })
            };
            self.add_to(&mut asked, size, add).await?;
            asked.confirmed = confirmed;
            if asked.is_protected() {
                answered.extend(self.protected(asked, &mut held).await?);
            } else {
                answered.push(asked);
            }
        }
        parts.splice(next..next, answered);
        Ok(())
    }

    /// Asks the replicas of a part for what they lack.
    async fn ask_further<E: From<ReadError>>(
        &self,
        asked: &mut PartRead,
        lacks: Vec<FurtherRead>,
    ) -> Result<(), FailedRead<E>> {
        if asked.spread() {
            // the next attempt finds what each of them lacks
            return Ok(());
        }
        asked.grow();
        let questions = lacks.iter().map(|further| (further, asked.further(further)));
        let (known, open): (Vec<_>, Vec<_>) = questions.partition(|(_, command)| command.is_none());
        let contact = |further: &FurtherRead| asked.replicas[further.replica()].0;
        let asking = open.iter().filter_map(|(further, command)| {
            let question = asked.question(command.as_ref()?);
            let (contact, sent) = (contact(further), Arc::clone(&question));
            Some(async move { (question, self.ask(contact, &sent, AnswerKind::Data).await) })
        });
        let block_for = count(asked.replicas.len());
        let failed = |received, failures: Vec<ReplicaFailure>| {
            let timed_out = failures.iter().all(|failure| failure.reason == FailureReason::Timeout);
            let (level, data_present) = (self.level, true);
            FailedRead::of_answers(FailedAnswers { level, block_for, received, data_present, failures, timed_out })
        };
        let Some(answers) = within(&self.node.env, self.time_left(), join_all(asking)).await else {
            return Err(failed(block_for - count(open.len()), Vec::new()));
        };
        for (further, _) in known {
            asked.add_nothing(further);
        }
        let mut portions = Vec::with_capacity(open.len());
        for ((further, command), (question, (contact, reply))) in open.into_iter().zip(answers) {
            let data = match reply {
                Ok(reply) => reply.data.unwrap_or_default(),
                Err(reason) => {
                    let failure = ReplicaFailure { endpoint: contact.address, reason };
                    return Err(failed(block_for - 1, vec![failure]));
                }
            };
            let (portion, command) = (Portion::new(data, &question), command.expect("it was asked"));
            portions.push((contact, further.clone(), command, portion));
        }
        let size = portions.iter().map(|(.., portion)| portion.size).sum();
        let add = move |asked: &mut PartRead| {
            portions.into_iter().try_for_each(|(contact, further, command, portion)| {
                asked.add_further(&further, &command, portion).map_err(|error| (contact, error))
            })
        };
        self.add_to(asked, size, add).await
    }

    /// Adds answers of so many bytes to a part. Each answer is read through once for that: large
    /// ones on a thread for long jobs.
    async fn add_to<E: From<ReadError>>(
        &self,
        asked: &mut PartRead,
        size: usize,
        add: impl FnOnce(&mut PartRead) -> Result<(), (Contact, ReadError)> + Send + 'static,
    ) -> Result<(), FailedRead<E>> {
        let added = if size <= INLINE_SIZE_MAX {
            add(asked)
        } else {
            let mut moved = asked.clone();
            let added = self.long("look through", move || add(&mut moved).map(|()| moved)).await?;
            added.map(|moved| *asked = moved)
        };
        added.map_err(|(contact, error)| self.unreadable(contact, error))
    }

    /// Runs a job on a thread for long jobs within the time of the read.
    pub(super) async fn long<T: Send + 'static, E>(
        &self,
        name: &str,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, FailedRead<E>> {
        match within(&self.node.env, self.time_left(), self.node.env.blocking_long(name, job)).await {
            Some(Ok(done)) => Ok(done),
            Some(Err(_)) => Err(self.failed(ReadOutcome::Overloaded)),
            None => Err(self.failed(ReadOutcome::TimedOut)),
        }
    }

    /// Builds the answer from what the replicas have answered so far.
    async fn attempt<B: Build>(
        &self,
        parts: &Arc<Vec<PartRead>>,
        build: &Arc<B>,
        size: usize,
    ) -> Result<Attempt<B>, FailedRead<B::Error>> {
        if size <= INLINE_SIZE_MAX {
            return Ok(attempt(parts, &**build));
        }
        let (parts, build) = (Arc::clone(parts), Arc::clone(build));
        self.long("merge", move || attempt(&parts, &*build)).await
    }

    /// The error of a read one of whose answers cannot be used.
    pub(super) fn unreadable<E: From<ReadError>>(&self, contact: Contact, error: ReadError) -> FailedRead<E> {
        let peer = contact.address;
        tracing::warn!(%peer, %error, "the answer of a replica to a read cannot be used");
        self.failed(ReadOutcome::Failed(error.into()))
    }

    /// This node failed, not a replica. The client is told how many answers the read waits for: a
    /// driver that hears of as many answers as were waited for tries a read again.
    pub(super) fn failed<E>(&self, outcome: ReadOutcome<E>) -> FailedRead<E> {
        self.node.failed_read(outcome, self.level, self.block_for)
    }
}

/// How many parts are asked for at once after `answered` parts gave `size` bytes together. Many at
/// once only if the parts before had few bytes.
fn parts_at_once(answered: usize, size: usize) -> usize {
    let each = size / answered.max(1);
    let fitting = SMALL_PARTS_SIZE / each.max(1);
    answered.min(fitting).clamp(PARTS_MAX, SMALL_PARTS_MAX)
}

fn attempt<B: Build>(parts: &Arc<Vec<PartRead>>, build: &B) -> Attempt<B> {
    let mut stream = ReadingStream::new(parts);
    let result = build.build(&mut stream);
    let counts = stream.counts();
    let (missing, repairs) = stream.end();
    (result, missing, repairs, counts)
}

pub(super) fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
