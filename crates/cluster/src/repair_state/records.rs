//! The course of repairs, for operators: what has begun and ended when, of commands, their sessions
//! and jobs, and of what this node does for other nodes. Kept in memory, the latest of each kind.
//!
//! Agrees with `org.apache.cassandra.repair.state`.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use internode::payload::repair::{Job, Preview, SessionId};
use internode::payload::token_ranges::Tokens;

/// Records of a kind that are kept; the oldest goes when another comes.
const KEPT_MAX: usize = 1000;

/// The subject of a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Subject {
    /// A repair that an operator has asked of this node.
    Command,
    /// Ranges of a command with the same replicas.
    Session,
    /// A table of a session.
    Job,
    /// A repair that this node takes part in.
    Participation,
    /// A validation of this node.
    Validation,
}

/// A step of a subject, named as the columns of `system_views` name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The record has been made.
    Init,
    /// The command looks for its tables and neighbours.
    Setup,
    /// The participant has taken the request.
    Accept,
    /// The work has begun.
    Start,
    /// The participants are asked to prepare.
    PrepareStart,
    /// All participants have prepared.
    PrepareComplete,
    /// The sessions of the command begin.
    RepairStart,
    /// The sessions of the command have ended.
    RepairComplete,
    /// The jobs of the session begin.
    JobsStart,
    /// The replicas are asked to keep their SSTables.
    SnapshotStart,
    /// All replicas keep their SSTables.
    SnapshotComplete,
    /// The replicas are asked for their trees.
    ValidationStart,
    /// The trees of all replicas are there.
    ValidationComplete,
    /// Ranges that differ are streamed.
    StreamStart,
    /// The trees go to the node that asked for them.
    SendingTrees,
}

/// The end of a subject.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// Success, with a sentence if there is one.
    Success(Option<String>),
    /// Nothing was to be done.
    Skipped(String),
    /// Failure, with its reason.
    Failure(String),
}

/// The facts about a subject that do not change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// The kind of subject.
    pub subject: Subject,
    /// The id of the subject.
    pub id: [u8; 16],
    /// The id of the command.
    pub repair: SessionId,
    /// The id of the session; for a command its own id.
    pub session: SessionId,
    /// Name of the keyspace.
    pub keyspace: String,
    /// Names of tables.
    pub tables: Vec<String>,
    /// The ranges.
    pub ranges: Vec<Tokens>,
    /// The nodes that take part, or the one that has asked.
    pub nodes: Vec<SocketAddr>,
    /// Whether the repair is incremental.
    pub is_incremental: bool,
    /// Whether all replicas take part.
    pub is_global: bool,
    /// Milliseconds since 1970 with which data counts as repaired; 0: it does not.
    pub repaired_at: i64,
    /// Whether nothing is streamed.
    pub preview: Preview,
}

impl Facts {
    /// The facts that follow from a job alone, for the job or for a node's part in it. The caller
    /// adds the nodes that take part, and the kind of the repair.
    pub fn of_job(subject: Subject, job: &Job) -> Self {
        Self {
            subject,
            id: job.id(),
            repair: job.parent,
            session: job.session,
            keyspace: job.keyspace.clone(),
            tables: vec![job.table.clone()],
            ranges: job.ranges.clone(),
            nodes: Vec::new(),
            is_incremental: false,
            is_global: false,
            repaired_at: 0,
            preview: Preview::None,
        }
    }
}

/// The part of a record that changes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecordState {
    /// Steps with their times, milliseconds since 1970, oldest first.
    pub steps: Vec<(Step, i64)>,
    /// The end and its time, milliseconds since 1970; None: the subject has not ended.
    pub end: Option<(End, i64)>,
    /// Records that belong to this one.
    pub children: Vec<[u8; 16]>,
    /// The nodes of a command, which are known after its begin.
    pub nodes: Vec<SocketAddr>,
    /// The ranges of a command, grouped by the nodes that hold them.
    pub common: Vec<Vec<Tokens>>,
}

impl RecordState {
    /// When a step was taken, milliseconds since 1970; None: it was not taken.
    pub fn at(&self, step: Step) -> Option<i64> {
        self.steps.iter().find(|(other, _)| *other == step).map(|(_, at)| *at)
    }

    /// When the record changed last, milliseconds since 1970.
    pub fn updated(&self) -> i64 {
        let last = self.steps.last().map_or(0, |(_, at)| *at);
        self.end.as_ref().map_or(last, |(_, at)| *at)
    }
}

/// A record.
#[derive(Debug)]
pub struct Record {
    /// The facts, which do not change.
    pub facts: Facts,
    state: Mutex<RecordState>,
    /// Validations: partitions that were hashed.
    pub partitions: AtomicU64,
    /// Validations: bytes that were read.
    pub bytes: AtomicU64,
    /// Validations: partitions and bytes that were expected.
    expected: Mutex<Option<(u64, u64)>>,
}

impl Record {
    fn locked(&self) -> MutexGuard<'_, RecordState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The course so far.
    pub fn state(&self) -> RecordState {
        self.locked().clone()
    }

    /// Notes a step at a time, milliseconds since 1970; the first of its kind counts.
    pub(crate) fn step(&self, step: Step, at: i64) {
        let mut state = self.locked();
        if state.at(step).is_none() && state.end.is_none() {
            state.steps.push((step, at));
        }
    }

    /// Notes the end at a time, milliseconds since 1970; the first end counts.
    pub(crate) fn end(&self, end: End, at: i64) {
        self.locked().end.get_or_insert((end, at));
    }

    /// Notes that another record belongs to this one.
    pub(crate) fn adopt(&self, child: [u8; 16]) {
        let mut state = self.locked();
        if state.children.len() < KEPT_MAX && !state.children.contains(&child) {
            state.children.push(child);
        }
    }

    /// Sets the nodes of a command, and its ranges grouped by the nodes that hold them.
    pub(crate) fn place(&self, nodes: Vec<SocketAddr>, common: Vec<Vec<Tokens>>) {
        let mut state = self.locked();
        (state.nodes, state.common) = (nodes, common);
    }

    /// Sets how many partitions and bytes a validation expects.
    pub(crate) fn expect(&self, partitions: u64, bytes: u64) {
        *self.expected.lock().unwrap_or_else(PoisonError::into_inner) = Some((partitions, bytes));
    }

    /// Partitions and bytes that a validation expects; None: not known yet.
    pub fn expected(&self) -> Option<(u64, u64)> {
        *self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the end by a result whose error is a sentence.
    pub(crate) fn end_with<T>(&self, result: &Result<T, String>, at: i64) {
        let end = match result {
            Ok(_) => End::Success(None),
            Err(why) => End::Failure(why.clone()),
        };
        self.end(end, at);
    }
}

/// The latest records.
#[derive(Debug, Default)]
pub(crate) struct Records {
    kept: Mutex<VecDeque<Arc<Record>>>,
}

/// How many repairs there were, for metrics: since the start of the process.
#[derive(Debug, Default)]
pub struct RepairCounts {
    /// Commands that have ended well.
    pub succeeded: AtomicU64,
    /// Commands that have failed.
    pub failed: AtomicU64,
    /// Validations of this node that have ended well.
    pub validations: AtomicU64,
    /// Validations of this node that have failed.
    pub validations_failed: AtomicU64,
    /// Bytes that validations have read.
    pub bytes_validated: AtomicU64,
    /// Partitions that validations have hashed.
    pub partitions_validated: AtomicU64,
    /// Exchanges of this node with another one that have ended well.
    pub exchanges: AtomicU64,
    /// Exchanges that have failed.
    pub exchanges_failed: AtomicU64,
}

impl RepairCounts {
    /// Counts a result as one more success or failure.
    pub(crate) fn count<T, E>(result: &Result<T, E>, well: &AtomicU64, failed: &AtomicU64) {
        let counter = if result.is_ok() { well } else { failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Records {
    /// Makes a record that begins at a time, milliseconds since 1970.
    pub fn begin(&self, facts: Facts, at: i64) -> Arc<Record> {
        let state = RecordState { steps: vec![(Step::Init, at)], ..RecordState::default() };
        let (subject, id) = (facts.subject, facts.id);
        let record = Arc::new(Record {
            facts,
            state: Mutex::new(state),
            partitions: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            expected: Mutex::default(),
        });
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|other| other.facts.subject != subject || other.facts.id != id);
        let of_kind = |other: &&Arc<Record>| other.facts.subject == subject;
        if kept.iter().filter(of_kind).count() >= KEPT_MAX
            && let Some(oldest) = kept.iter().position(|other| other.facts.subject == subject)
        {
            kept.remove(oldest);
        }
        kept.push_back(Arc::clone(&record));
        record
    }

    /// The records of a kind, oldest first.
    pub fn of(&self, subject: Subject) -> Vec<Arc<Record>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().filter(|record| record.facts.subject == subject).cloned().collect()
    }

    /// The record of a kind with an id.
    pub fn find(&self, subject: Subject, id: &[u8; 16]) -> Option<Arc<Record>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|record| record.facts.subject == subject && record.facts.id == *id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(subject: Subject, number: u16) -> Facts {
        let mut id = [0; 16];
        id[..2].copy_from_slice(&number.to_be_bytes());
        Facts {
            subject,
            id,
            repair: id,
            session: id,
            keyspace: "ks".to_owned(),
            tables: Vec::new(),
            ranges: Vec::new(),
            nodes: Vec::new(),
            is_incremental: false,
            is_global: true,
            repaired_at: 0,
            preview: Preview::None,
        }
    }

    #[test]
    fn the_latest_of_each_kind_are_kept() {
        let records = Records::default();
        for number in 0..KEPT_MAX as u16 + 5 {
            records.begin(facts(Subject::Job, number), i64::from(number));
        }
        records.begin(facts(Subject::Session, 1), 7);
        let jobs = records.of(Subject::Job);
        assert_eq!((jobs.len(), jobs[0].facts.id[1]), (KEPT_MAX, 5));
        let again = records.begin(facts(Subject::Job, 9), 99);
        assert_eq!((records.of(Subject::Job).len(), again.state().updated()), (KEPT_MAX, 99), "begun again");
        assert_eq!(records.of(Subject::Session).len(), 1);
    }

    #[test]
    fn the_first_end_counts() {
        let record = Records::default().begin(facts(Subject::Validation, 1), 5);
        record.step(Step::Start, 6);
        record.step(Step::Start, 7);
        record.end(End::Failure("it".to_owned()), 8);
        record.end(End::Success(None), 9);
        record.step(Step::SendingTrees, 10);
        let state = record.state();
        assert_eq!((state.at(Step::Start), state.updated(), state.at(Step::SendingTrees)), (Some(6), 8, None));
        assert_eq!(state.end, Some((End::Failure("it".to_owned()), 8)));
    }
}
