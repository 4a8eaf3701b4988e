//! The facts about a response that a measurement wants: whether it is an error, how many rows it
//! has, where the next page begins.

use protocol::{Opcode, ProtocolVersion};
use stdx::Cursor;

use crate::Result;

const ROWS: i32 = 2;
const HAS_MORE_PAGES: i32 = 0x0002;
const NO_METADATA: i32 = 0x0004;

/// A RESULT.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// How many rows it holds; 0 if it is of another kind.
    pub rows: u32,
    /// The rows; empty when metadata was sent, which nobody here looks through.
    pub content: &'a [u8],
    /// Where the next page begins.
    pub paging_state: Option<&'a [u8]>,
}

impl<'a> Answer<'a> {
    /// Reads a body.
    pub fn read(body: &'a [u8]) -> Result<Self> {
        let mut cursor = Cursor::new(body);
        let mut answer = Self { rows: 0, content: &[], paging_state: None };
        if cursor.i32()? != ROWS {
            return Ok(answer);
        }
        let (flags, _columns) = (cursor.i32()?, cursor.i32()?);
        if flags & HAS_MORE_PAGES != 0 {
            answer.paging_state = cursor.int_bytes()?;
        }
        if flags & NO_METADATA != 0 {
            answer.rows = cursor.u32()?;
            answer.content = cursor.rest();
        }
        Ok(answer)
    }
}

/// A response's opcode: nothing for those that say that all is well, the text of an error, and an
/// error for what was not asked for.
pub fn judge(opcode: u8, body: &[u8]) -> Result<()> {
    match opcode {
        code if code == Opcode::Result as u8 || code == Opcode::Ready as u8 => Ok(()),
        code if code == Opcode::Error as u8 => {
            let mut cursor = Cursor::new(body);
            let number = cursor.i32()?;
            let text = String::from_utf8_lossy(cursor.short_bytes()?).into_owned();
            Err(format!("error {number:#06x}: {text}").into())
        }
        other => Err(format!("an answer of opcode {other:#04x}").into()),
    }
}

/// The version that the client speaks: frames of version 4 need no checksums, which keeps this side
/// of the socket cheap.
pub const VERSION: u8 = ProtocolVersion::V4 as u8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_and_without_more_pages() {
        let last = b"\0\0\0\x02\0\0\0\x04\0\0\0\x01\0\0\0\x03abc";
        assert_eq!(Answer::read(last).unwrap(), Answer { rows: 3, content: b"abc", paging_state: None });
        let more = b"\0\0\0\x02\0\0\0\x06\0\0\0\x01\0\0\0\x02xy\0\0\0\x01abc";
        assert_eq!(Answer::read(more).unwrap(), Answer { rows: 1, content: b"abc", paging_state: Some(b"xy") });
        assert_eq!(Answer::read(b"\0\0\0\x01").unwrap().rows, 0);
        assert!(Answer::read(b"\0\0\0\x02\0\0").is_err());
    }

    #[test]
    fn an_error_is_told() {
        let error = judge(0, b"\0\0\x22\0\0\x03bad").unwrap_err();
        assert_eq!(error.to_string(), "error 0x2200: bad");
        assert!(judge(8, b"").is_ok() && judge(3, b"").is_err());
    }
}
