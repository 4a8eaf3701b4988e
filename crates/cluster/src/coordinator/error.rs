//! Why a request was not carried out: what a client is told of the plan and of the replicas.

use std::net::SocketAddr;

use ring::{ReplicationError, Shortage};
use types::{Consistency, ReplicaFailure};

use crate::coordinator::answers::Answers;
use crate::replica::apply::WriteError;
use crate::replica::read::ReadOutcome;

/// Why a request was not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestError {
    /// Fewer replicas are up than the level needs; nothing was sent.
    Unavailable {
        /// The level that the client asked for.
        level: Consistency,
        /// How many are needed, and up.
        shortage: Shortage,
    },
    /// The keyspace's replication is one that this node cannot place; nothing was sent.
    Unplaced {
        /// The keyspace.
        keyspace: String,
        /// What is wrong with its replication.
        error: ReplicationError,
    },
    /// A conditional statement, or a read at SERIAL, of a partition that other nodes have copies
    /// of: they would have to agree by Paxos, which this node does not speak yet. Nothing was sent.
    NeedsPaxos {
        /// The keyspace.
        keyspace: String,
    },
    /// A write was sent and not acknowledged by as many as its level needs. Boxed, so that results
    /// stay small.
    Write(Box<FailedWrite>),
}

/// A write that was not acknowledged by as many as its level needs. It may be there nevertheless.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FailedWrite {
    /// What happened here: out of time, or why this node failed.
    pub cause: WriteError,
    /// The answers that came, and those that did not.
    pub answers: Answers,
}

impl RequestError {
    /// Of a write.
    pub(crate) fn of_write(cause: WriteError, answers: Answers) -> Self {
        Self::Write(Box::new(FailedWrite { cause, answers }))
    }
}

/// Why a read gave nothing. `E` is the error of what builds the answer.
#[derive(Debug)]
pub enum FailedRead<E> {
    /// Nothing was read.
    Refused(RequestError),
    /// Too few replicas answered, or what builds the answer failed.
    Failed {
        /// What happened.
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
    /// A read at SERIAL or LOCAL_SERIAL has seen a write that did not become durable.
    Serial {
        /// Why not.
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
    /// The time of the read was over, or that of all replicas that failed.
    pub timed_out: bool,
}

impl<E> FailedRead<E> {
    /// Of answers that were too few.
    pub(crate) fn of_answers(answers: FailedAnswers) -> Self {
        Self::Unanswered(Box::new(answers))
    }

    /// The same with another error of what builds the answer.
    pub fn map<F>(self, convert: impl FnOnce(E) -> F) -> FailedRead<F> {
        match self {
            Self::Refused(error) => FailedRead::Refused(error),
            Self::Unanswered(answers) => FailedRead::Unanswered(answers),
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
