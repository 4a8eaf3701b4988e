//! Why a request was not carried out: what a client is told of the plan and of the replicas.

use std::net::SocketAddr;

use ring::{ReplicationError, Shortage};
use types::Consistency;

use crate::coordinator::answers::Answers;
use crate::replica::apply::WriteError;
use crate::replica::read::ReadOutcome;

/// Why a request was not carried out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RequestError {
    /// Fewer replicas are up than the level needs; nothing was sent.
    Unavailable {
        /// What the client asked for.
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
    /// A write was sent and not acknowledged by as many as its level needs. Boxed, so that results stay small.
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
        /// What the client asked for.
        level: Consistency,
        /// Answers that the level needs.
        block_for: u32,
        /// Answers that came.
        received: u32,
        /// The replica that failed.
        endpoint: SocketAddr,
    },
    /// A read at SERIAL or LOCAL_SERIAL has seen a write that did not become durable.
    Serial {
        /// Why not.
        cause: WriteError,
        /// What the client asked for.
        level: Consistency,
        /// The replica that failed.
        endpoint: SocketAddr,
    },
}

impl<E> FailedRead<E> {
    /// The same with another error of what builds the answer.
    pub fn map<F>(self, convert: impl FnOnce(E) -> F) -> FailedRead<F> {
        match self {
            Self::Refused(error) => FailedRead::Refused(error),
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
