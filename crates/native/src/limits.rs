//! The native protocol's own bounds. All others are `transport::limits`.

/// A statement that is not prepared counts with this multiple of its text, for the tree that it is
/// parsed to, up to [`PARSED_MAX`]. A longer text is taken for a long value rather than for many
/// short ones.
pub(crate) const PARSED_TIMES: usize = 16;

/// See [`PARSED_TIMES`].
pub(crate) const PARSED_MAX: usize = 1 << 20;

/// A long value is held so many times on its way: as it came, as the log's record, and as the
/// memtable's row (docs/notes/0011).
pub(crate) const VALUE_TIMES: usize = 3;

/// A page of this size or more that is compressed whole (versions 3 and 4) stands apart from the
/// out buffer and counts as a large result, as the page did.
pub(crate) const COMPRESSED_APART: usize = 64 << 10;

/// The largest request body of a client that has to log in and has not yet.
pub(crate) const UNKNOWN_FRAME_SIZE_MAX: usize = 64 << 10;

/// Logins that may fail on one connection; with the last it is closed.
pub(crate) const FAILED_LOGINS_MAX: u32 = 10;
