//! The native protocol's own bounds. All others are `transport::limits`.

/// A statement that is not prepared counts with this multiple of its text, for the tree that it is
/// parsed to. In a text of [`transport::limits::LARGE_BODY`] or more the terms are counted instead:
/// it may be one long value or many short ones.
pub(crate) const PARSED_TIMES: usize = 16;

/// A large text counts with this at least, as the longest one does whose terms are not counted.
pub(crate) const PARSED_MIN: usize = 1 << 20;

const _: () = assert!(PARSED_MIN == transport::limits::LARGE_BODY * PARSED_TIMES);

/// Bytes that a large text counts with for each of its terms: for nodes of the tree, and for a
/// part of the plan of its statement.
pub(crate) const TERM_SIZE: usize = 128;

/// Bytes that a statement of a BATCH that is not prepared counts with besides its tree: its plan is
/// kept until the batch is done.
pub(crate) const PLAN_SIZE: usize = 1536;

/// Bytes that a prepared statement of a BATCH counts with: for its part of the decoded message, the
/// list of its values, and the update of a partition that is made of it.
pub(crate) const STATEMENT_SIZE: usize = 1 << 10;

/// Bytes that a value of a BATCH counts with besides its own: for its place in the decoded message,
/// and for the cell that is made of it.
pub(crate) const BOUND_SIZE: usize = 128;

/// A long value is held so many times on its way: as it came, as the log's record, and as the
/// memtable's row (docs/notes/0011).
pub(crate) const VALUE_TIMES: usize = 3;

/// A page of this size or more that is compressed whole (versions 3 and 4) stands apart from the
/// out buffer and counts as a large result, as the page did.
pub(crate) const COMPRESSED_APART: usize = 64 << 10;

/// The largest request body of a client before STARTUP, and of one that has to log in and has not
/// yet.
pub(crate) const UNKNOWN_FRAME_SIZE_MAX: usize = 64 << 10;

/// Options of STARTUP that are kept for `system_views.clients`. Drivers send about ten.
pub(crate) const OPTIONS_MAX: usize = 32;

/// Bytes of these options together, and of the name and of the version of a driver each. The option
/// that exceeds them is not kept, and none behind it.
pub(crate) const OPTIONS_SIZE_MAX: usize = 8 << 10;

// a STARTUP may have all the options that are kept
const _: () = assert!(OPTIONS_SIZE_MAX < UNKNOWN_FRAME_SIZE_MAX);

/// Logins that may fail on one connection; with the last it is closed.
pub(crate) const FAILED_LOGINS_MAX: u32 = 10;
