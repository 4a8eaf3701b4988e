//! The native protocol's own bounds. All others are `transport::limits`.

/// Factor by which the text of an unprepared statement counts, for the tree that it is parsed to.
/// In a text of [`transport::limits::LARGE_BODY`] or more the terms are counted instead: it may be
/// one long value or many short ones.
pub(crate) const PARSED_TIMES: usize = 16;

/// Fewest bytes for which a large text counts: as much as the longest text whose terms are not
/// counted.
pub(crate) const PARSED_MIN: usize = 1 << 20;

const _: () = assert!(PARSED_MIN == transport::limits::LARGE_BODY * PARSED_TIMES);

/// Bytes that a large text counts with for each of its terms: for nodes of the tree, and for a
/// part of the plan of its statement.
pub(crate) const TERM_SIZE: usize = 128;

/// Bytes for which an unprepared statement of a BATCH counts besides its tree: its plan is kept
/// until the batch is done.
pub(crate) const PLAN_SIZE: usize = 1536;

/// Bytes for which a prepared statement of a BATCH counts: for its part of the decoded message,
/// the list of its values, and the update of a partition that is made of it.
pub(crate) const STATEMENT_SIZE: usize = 1 << 10;

/// Bytes for which a value of a BATCH counts besides its own: for its place in the decoded
/// message, and for the cell that is made of it.
pub(crate) const BOUND_SIZE: usize = 128;

/// Number of times that a long value is held on its way: as it came, as the log's record, and as
/// the memtable's row (docs/notes/0011).
pub(crate) const VALUE_TIMES: usize = 3;

/// Bytes from which on a page that is compressed as a whole (versions 3 and 4) stands apart from
/// the out buffer and counts as a large result, as the page did.
pub(crate) const COMPRESSED_APART: usize = 64 << 10;

/// Bytes of the largest request body of a client before STARTUP, and before its login if it has to
/// log in.
pub(crate) const UNKNOWN_FRAME_SIZE_MAX: usize = 64 << 10;

/// Most options of STARTUP that are kept for `system_views.clients`. Drivers send about ten.
pub(crate) const OPTIONS_MAX: usize = 32;

/// Most bytes of these options together, and of the name and the version of a driver each. The
/// option that exceeds the limit and those behind it are not kept.
pub(crate) const OPTIONS_SIZE_MAX: usize = 8 << 10;

// a STARTUP may have all the options that are kept
const _: () = assert!(OPTIONS_SIZE_MAX < UNKNOWN_FRAME_SIZE_MAX);

/// Logins that may fail on one connection; with the last it is closed.
pub(crate) const FAILED_LOGINS_MAX: u32 = 10;
