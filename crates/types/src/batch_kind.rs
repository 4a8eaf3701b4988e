//! Kinds of batches. The only type for them in the tree.
//!
//! Agrees with `org.apache.cassandra.cql3.statements.BatchStatement.Type`.

/// The kind of a batch: which of its statements happen together. The discriminants are the codes of
/// the native protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BatchKind {
    /// `BEGIN BATCH`: all of its statements happen, or none.
    Logged = 0,
    /// `BEGIN UNLOGGED BATCH`: atomic within each partition only.
    Unlogged = 1,
    /// `BEGIN COUNTER BATCH`: increments of counters.
    Counter = 2,
}

impl BatchKind {
    /// The kind of a code on the wire.
    pub fn from_code(code: u8) -> Option<Self> {
        [Self::Logged, Self::Unlogged, Self::Counter].into_iter().find(|kind| *kind as u8 == code)
    }
}
