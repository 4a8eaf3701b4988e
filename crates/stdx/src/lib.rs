//! Small things that the standard library lacks: a checked cursor, variable-length integers,
//! hashes, a sorted map in blocks, counted shares of memory.
//!
//! The lowest crate: it knows nothing of Cassandra's model and does no I/O.

pub mod block_map;
pub mod byte_budget;
pub mod crc24;
pub mod cursor;
pub mod memory_text;
pub mod murmur3;
pub mod put;

pub use block_map::BlockMap;
pub use byte_budget::{ByteBudget, ByteReservation};
pub use crc24::crc24;
pub use cursor::{Cursor, CursorError};
pub use memory_text::memory_text;
pub use murmur3::murmur3;
pub use put::*;
