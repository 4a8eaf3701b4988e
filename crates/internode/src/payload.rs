//! Payloads, one file a family. Each is read from all of its bytes: what is left over is an error
//! of that message alone.

pub mod batch;
pub mod buffered_rows;
pub mod counter;
pub mod digest;
pub mod failure;
pub mod gossip;
pub mod hint;
pub mod partitions;
pub mod paxos;
pub mod read_answer;
pub mod read_request;
pub mod read_response;
mod reader;
pub mod repair;
pub mod schema;
pub mod simple;
pub mod token_ranges;

use stdx::Cursor;

use crate::error::InternodeError;

/// Reads a payload to its last byte.
pub(crate) fn whole<T>(
    payload: &[u8],
    read: impl FnOnce(&mut Cursor<'_>) -> Result<T, InternodeError>,
) -> Result<T, InternodeError> {
    let mut cursor = Cursor::new(payload);
    let value = read(&mut cursor)?;
    match cursor.remaining() {
        0 => Ok(value),
        left => Err(InternodeError::Trailing { left }),
    }
}
