//! The requests of clients and the answers that they heard, operation by operation.
//!
//! A key is a register that holds a number or nothing. Two kinds of keys are used: *versioned*
//! keys have one writer, which numbers its writes and deletions in ascending order, so a reader
//! can tell which is newer; *contended* keys are written by all clients.

use std::sync::{Arc, Mutex, PoisonError};

/// The operation that a client asks for on a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Reads the value.
    Read,
    /// Sets the value. On a versioned key the value is the version.
    Write(u64),
    /// Removes the value. The number is the version of the deletion.
    Delete(u64),
    /// Sets the value to `to` if it is `from`.
    CompareAndSet {
        /// The value that the key must have; None: it must have no value.
        from: Option<u64>,
        /// The value that the key has afterwards.
        to: u64,
    },
}

/// The answer that the client heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The change was made.
    Done,
    /// The value that the read gave; None: the key had no value.
    Value(Option<u64>),
    /// The condition did not hold; the value that the key had instead, None: no value.
    Refused(Option<u64>),
    /// The operation certainly failed: it changed nothing and gave nothing.
    Failed,
    /// No answer: the operation may have taken effect, may do so later, or never.
    Unknown,
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The client that asked. A client does one operation after the other.
    pub client: usize,
    /// The key of the operation.
    pub key: u64,
    /// The request.
    pub action: Action,
    /// The answer.
    pub outcome: Outcome,
    /// When the client asked, nanoseconds on the timeline of the simulation.
    pub asked: u64,
    /// When the client heard the answer, nanoseconds. `u64::MAX`: it heard none, and the operation
    /// may still take effect.
    pub heard: u64,
}

/// The record of the operations of all clients; clones share it.
#[derive(Clone, Default)]
pub struct History(Arc<Mutex<Vec<Operation>>>);

impl History {
    /// Notes that an operation begins, and gives its number. Until it ends it has no answer.
    pub fn begin(&self, client: usize, key: u64, action: Action, now: u64) -> usize {
        let mut operations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        operations.push(Operation { client, key, action, outcome: Outcome::Unknown, asked: now, heard: u64::MAX });
        operations.len() - 1
    }

    /// Notes that an operation has ended.
    pub fn end(&self, number: usize, outcome: Outcome, now: u64) {
        let mut operations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let operation = operations.get_mut(number).expect("it has begun");
        operation.outcome = outcome;
        if outcome != Outcome::Unknown {
            operation.heard = now;
        }
    }

    /// All operations, in the order in which they began.
    pub fn operations(&self) -> Vec<Operation> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Operation {
    /// The version that a write or a deletion of a versioned key carries.
    pub fn version(&self) -> Option<u64> {
        match self.action {
            Action::Write(version) | Action::Delete(version) => Some(version),
            Action::Read | Action::CompareAndSet { .. } => None,
        }
    }

    /// Whether the change was acknowledged.
    pub fn is_acknowledged(&self) -> bool {
        self.outcome == Outcome::Done
    }

    /// Whether the operation may have changed something.
    pub fn may_have_taken_effect(&self) -> bool {
        matches!(self.outcome, Outcome::Done | Outcome::Unknown)
    }

    /// The value that a read gave.
    pub fn read_value(&self) -> Option<Option<u64>> {
        match (self.action, self.outcome) {
            (Action::Read, Outcome::Value(value)) => Some(value),
            _ => None,
        }
    }
}
