//! Texts for the console: slow statements, lines of the log, CREATE statements.
//!
//! These verbs show texts that users have written. Where roles are on they need a login or the
//! node's token ([`crate::verb::Effect::Shows`]).

use serde::{Deserialize, Serialize};

/// Asks for the slow statements that were reported last, the newest first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetSlowStatements {}

/// The slow statements that are kept.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SlowStatements {
    /// `slow_query_log_timeout`, milliseconds; None: no statement is slow.
    pub threshold_millis: Option<u64>,
    /// The statements, the newest report first.
    pub statements: Vec<SlowStatement>,
}

/// The slow executions of a statement in one report. Times are microseconds; rows, tombstones,
/// bytes and SSTables are the sum of all executions.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SlowStatement {
    /// When the report was made, milliseconds since 1970.
    pub at_millis: i64,
    /// The text without passwords; a long text is cut.
    pub statement: String,
    /// Slow executions.
    pub count: u64,
    /// The shortest of them.
    pub min_micros: u64,
    /// Their mean.
    pub mean_micros: u64,
    /// The longest of them.
    pub max_micros: u64,
    /// Live rows that were read.
    pub rows: u64,
    /// Tombstones that were passed.
    pub tombstones: u64,
    /// SSTables that were read.
    pub sstables: u64,
    /// Bytes that were read.
    pub bytes: u64,
}

/// Asks for the last lines of the log, the oldest first.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetLog {
    /// How many lines at most.
    pub count: u32,
    /// The least level: `ERROR`, `WARN`, `INFO`, `DEBUG`, `TRACE`; None: all.
    #[serde(default)]
    pub level: Option<String>,
    /// A text that a line must hold, in capital or small letters; None: any line.
    #[serde(default)]
    pub text: Option<String>,
}

/// A line of the log.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct LogEntry {
    /// When it was written, milliseconds since 1970.
    pub at_millis: i64,
    /// Its level.
    pub level: String,
    /// The part of the program that wrote it.
    pub logger: String,
    /// Its text.
    pub message: String,
}

/// Asks for the CREATE statements of a keyspace.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetSchema {
    /// The keyspace.
    pub keyspace: String,
}

/// An object of the schema.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SchemaObject {
    /// `keyspace`, `type`, `table` or `view`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The statement that makes it; a table's with those of its indexes.
    pub create: String,
}
