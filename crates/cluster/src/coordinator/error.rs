//! Why a request was not carried out: what a client is told of the plan and of the replicas.

use std::net::SocketAddr;

use ring::{InsufficientReplicas, ReplicationError};
use rows::{Mutation, PartitionUpdate, Row};
use schema::system::is_local_keyspace;
use storage::StorageError;
use types::{Consistency, ReplicaFailure, WriteKind};

use crate::coordinator::write_answers::WriteAnswers;
use crate::replica::apply::WriteError;
use crate::replica::read::ReadOutcome;

/// Why a request was not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestError {
    /// Fewer replicas are up than the level needs; nothing was sent.
    Unavailable {
        /// The level that the client asked for.
        level: Consistency,
        /// The number of replicas that the level needs, and of those that are up.
        shortage: InsufficientReplicas,
    },
    /// The keyspace's replication is one that this node cannot place; nothing was sent.
    Unplaced {
        /// The keyspace.
        keyspace: String,
        /// The reason why its replication places nothing.
        error: ReplicationError,
    },
    /// A conditional statement, or a read at SERIAL, did not come to an agreement of its replicas
    /// that its client could be told.
    Cas(FailedCas),
    /// A write was sent and not acknowledged by as many as its level needs. Boxed, so that results
    /// stay small.
    Write(Box<FailedWrite>),
}

/// A write that was not acknowledged by as many as its level needs. It may be there nevertheless.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedWrite {
    /// The end of the wait on this node: out of time, or the failure of this node.
    pub cause: WriteError,
    /// The answers that came, and those that did not.
    pub answers: WriteAnswers,
    /// The keyspace and the keys of a mutation that is too large, as they are told; empty: they are
    /// not known, or the cause is another.
    pub largest: String,
}

/// The end of a conditional statement without an outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FailedCas {
    /// Its time is over.
    TimedOut {
        /// The serial level, or the commit level where the statement was decided.
        level: Consistency,
        /// [`WriteKind::Cas`]: nothing is known to be decided. [`WriteKind::Simple`]: the statement
        /// is decided, and too few replicas are known to have its change.
        kind: WriteKind,
        /// Answers that came.
        received: u32,
        /// Answers that were waited for.
        block_for: u32,
        /// How often another statement's ballot was later.
        contentions: u32,
    },
    /// Some replicas have accepted the statement's change and a majority has not: a later statement
    /// may find it and finish it.
    Unknown {
        /// The serial level.
        level: Consistency,
        /// Replicas that have accepted.
        accepted: u32,
        /// Replicas that are a majority.
        required: u32,
    },
    /// A replica knows a commit that the majority should have known, and
    /// `paxos_on_linearizability_violations` is `fail`.
    Violated {
        /// The serial level.
        level: Consistency,
        /// Promises that came.
        received: u32,
        /// Promises that are enough.
        block_for: u32,
    },
}

impl RequestError {
    /// The error of a write that too few replicas acknowledged.
    pub(crate) fn of_write(cause: WriteError, answers: WriteAnswers) -> Self {
        Self::Write(Box::new(FailedWrite { cause, answers, largest: String::new() }))
    }

    /// The error of a write of these mutations: names the largest of them if it is too large.
    #[cold]
    pub(crate) fn of_mutations(mut self, mutations: &[Mutation]) -> Self {
        if let Self::Write(failed) = &mut self
            && let WriteError::Storage(StorageError::MutationTooLarge { .. }) = failed.cause
        {
            failed.largest = largest_of(mutations);
        }
        self
    }
}

/// Most bytes of a text that names keys.
const KEYS_SIZE_MAX: usize = 1024;

/// The keyspace, and the tables with their keys, of the largest of some mutations; its largest
/// updates come first. Agrees with `MutationExceededMaxSizeException`, which shows the first key
/// whatever its length is.
fn largest_of(mutations: &[Mutation]) -> String {
    // the record of a batch has all mutations, and is none of the client's
    let of_clients = |mutation: &&Mutation| {
        mutation.updates.first().is_some_and(|update| !is_local_keyspace(&update.table.keyspace))
    };
    let size = |mutation: &&Mutation| mutation.updates.iter().map(data_size).sum::<usize>();
    let Some(largest) = mutations.iter().filter(of_clients).max_by_key(size) else {
        return String::new();
    };
    let mut updates: Vec<&PartitionUpdate> = largest.updates.iter().collect();
    updates.sort_by_key(|update| std::cmp::Reverse(data_size(update)));
    let keyspace = updates.first().map_or("", |update| update.table.keyspace.as_str());
    let mut text = format!(" for keyspace: {keyspace}. Top keys are: ");
    let start = text.len();
    for (at, update) in updates.iter().enumerate() {
        let key = format!("{}.{}", update.table.name, update.table.partition_key_text(&update.key.key));
        let separator = if at == 0 { "" } else { ", " };
        let room = KEYS_SIZE_MAX.saturating_sub(text.len() - start + separator.len());
        if at > 0 && key.len() > room {
            text.push_str(&format!(" and {} more.", updates.len() - at));
            break;
        }
        text.push_str(separator);
        text.push_str(&key[..key.floor_char_boundary(room)]);
    }
    text
}

fn data_size(update: &PartitionUpdate) -> usize {
    update.rows.iter().chain(&update.static_row).map(Row::data_size).sum()
}

/// Why a read gave nothing. `E` is the error of what builds the answer.
#[derive(Debug)]
pub enum FailedRead<E> {
    /// Nothing was read.
    Refused(RequestError),
    /// Too few replicas answered, or what builds the answer failed.
    Failed {
        /// The end of the read on this node: out of time, refused, or failed.
        outcome: ReadOutcome<E>,
        /// The level that the client asked for.
        level: Consistency,
        /// Answers that the level needs.
        block_for: u32,
        /// Answers that came.
        received: u32,
        /// The replica that failed.
        endpoint: SocketAddr,
    },
    /// Too few replicas answered a read that other nodes have a share in. Boxed, so that results
    /// stay small.
    Unanswered(Box<FailedAnswers>),
    /// The read would hold more than it may; the sentence says of what.
    Overloaded(String),
    /// A read at SERIAL or LOCAL_SERIAL has seen a write that did not become durable.
    Serial {
        /// Why the write did not become durable.
        cause: WriteError,
        /// The level that the client asked for.
        level: Consistency,
        /// The replica that failed.
        endpoint: SocketAddr,
    },
}

/// The answers of a read's replicas that were too few.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedAnswers {
    /// The level that the client asked for.
    pub level: Consistency,
    /// Answers that the level needs.
    pub block_for: u32,
    /// Answers that came.
    pub received: u32,
    /// Whether data was among them.
    pub data_present: bool,
    /// Replicas that failed, in the order in which they said so.
    pub failures: Vec<ReplicaFailure>,
    /// True: the time of the read was over, or every replica that failed ran out of time.
    pub timed_out: bool,
}

impl<E> FailedRead<E> {
    /// The error of a read that too few replicas answered.
    pub(crate) fn of_answers(answers: FailedAnswers) -> Self {
        Self::Unanswered(Box::new(answers))
    }

    /// Gives the failure with another type for the error of the function that builds the answer.
    pub fn map<F>(self, convert: impl FnOnce(E) -> F) -> FailedRead<F> {
        match self {
            Self::Refused(error) => FailedRead::Refused(error),
            Self::Unanswered(answers) => FailedRead::Unanswered(answers),
            Self::Overloaded(sentence) => FailedRead::Overloaded(sentence),
            Self::Serial { cause, level, endpoint } => FailedRead::Serial { cause, level, endpoint },
            Self::Failed { outcome, level, block_for, received, endpoint } => {
                let outcome = match outcome {
                    ReadOutcome::Failed(error) => ReadOutcome::Failed(convert(error)),
                    ReadOutcome::Overloaded => ReadOutcome::Overloaded,
                    ReadOutcome::TimedOut => ReadOutcome::TimedOut,
                };
                FailedRead::Failed { outcome, level, block_for, received, endpoint }
            }
        }
    }
}
