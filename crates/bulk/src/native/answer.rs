//! Decodes what a node answers: READY, AUTHENTICATE, AUTH_SUCCESS, ERROR, and RESULT with rows.
//! The bytes are a node's and are not trusted.

use bytes::Bytes;
use stdx::{Cursor, CursorError};

/// The version of requests.
pub const VERSION: u8 = 4;
/// The version of answers: that of requests with the bit of answers.
const ANSWER_VERSION: u8 = 0x80 | VERSION;
/// Bytes of a frame's header.
pub const HEADER_SIZE: usize = 9;
/// Bytes of the longest answer: the schema of a keyspace is shorter.
const BODY_SIZE_MAX: usize = 64 << 20;
/// Types within types: deeper ones are refused.
const DEPTH_MAX: usize = 32;

/// The body begins with a list of warnings.
const WITH_WARNINGS: u8 = 0x08;
/// Flags that a node sets only if it was asked to: compression, tracing, a payload.
const NEVER: u8 = 0x01 | 0x02 | 0x04;

/// Requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Opcode {
    /// The first message.
    Startup = 0x01,
    /// A statement.
    Query = 0x07,
    /// Name and password.
    AuthResponse = 0x0f,
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// Statements are taken.
    Ready,
    /// A login is wanted.
    Authenticate,
    /// The login is good.
    AuthSuccess,
    /// Rows.
    Rows(Answer),
    /// A result without rows.
    Nothing,
}

/// Rows of an answer.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Values by row and column; None: null.
    pub rows: Vec<Vec<Option<Bytes>>>,
}

impl Answer {
    /// A value by row and name; None: it is null, or there is no such column.
    pub fn value(&self, row: usize, column: &str) -> Option<&Bytes> {
        let place = self.columns.iter().position(|name| name == column)?;
        self.rows.get(row)?.get(place)?.as_ref()
    }

    /// As [`Self::value`], as text.
    pub fn text(&self, row: usize, column: &str) -> Option<String> {
        self.value(row, column).map(|value| String::from_utf8_lossy(value).into_owned())
    }
}

/// Bytes of the frame at the start of `input`, its header included; None: the header is not whole.
///
/// # Errors
/// The header is none of an answer, or the body too long.
pub fn frame_size(input: &[u8]) -> Result<Option<usize>, String> {
    let Some(header) = input.get(..HEADER_SIZE) else { return Ok(None) };
    let mut cursor = Cursor::new(header);
    let version = cursor.u8().map_err(|error| error.to_string())?;
    if version != ANSWER_VERSION {
        return Err(format!("an answer of version {version:#04x}: is this the port for clients?"));
    }
    cursor.skip(4).map_err(|error| error.to_string())?;
    let length = cursor.u32().map_err(|error| error.to_string())? as usize;
    match length <= BODY_SIZE_MAX {
        true => Ok(Some(HEADER_SIZE + length)),
        false => Err(format!("an answer of {length} bytes, the limit is {BODY_SIZE_MAX}")),
    }
}

/// Decodes a frame: its header of [`HEADER_SIZE`] bytes, and its body.
///
/// # Errors
/// The node's own words, or what is wrong with the bytes.
pub fn decode(header: &[u8], body: &[u8]) -> Result<Reply, String> {
    let [_, flags, _, _, opcode, ..] = *header else { return Err("an answer without header".to_owned()) };
    if flags & NEVER != 0 {
        return Err(format!("an answer with the flags {flags:#04x}, which were not asked for"));
    }
    let mut cursor = Cursor::new(body);
    let decoded = (|| {
        if flags & WITH_WARNINGS != 0 {
            for _ in 0..cursor.u16()? {
                cursor.short_bytes()?;
            }
        }
        decode_body(opcode, &mut cursor)
    })();
    decoded.unwrap_or_else(|error: CursorError| Err(format!("an answer that cannot be read: {error}")))
}

type Decoded<T> = Result<Result<T, String>, CursorError>;

fn decode_body(opcode: u8, cursor: &mut Cursor<'_>) -> Decoded<Reply> {
    Ok(match opcode {
        0x00 => {
            let _code = cursor.i32()?;
            Err(text(cursor)?)
        }
        0x02 => Ok(Reply::Ready),
        0x03 => Ok(Reply::Authenticate),
        0x10 => Ok(Reply::AuthSuccess),
        0x08 => match cursor.i32()? {
            2 => return Ok(rows(cursor)?.map(Reply::Rows)),
            _ => Ok(Reply::Nothing),
        },
        other => Err(format!("an answer of the kind {other:#04x}")),
    })
}

fn text(cursor: &mut Cursor<'_>) -> Result<String, CursorError> {
    Ok(String::from_utf8_lossy(cursor.short_bytes()?).into_owned())
}

fn rows(cursor: &mut Cursor<'_>) -> Decoded<Answer> {
    let (has_one_table, has_more, has_no_metadata) = (0x1, 0x2, 0x4);
    let (flags, count) = (cursor.i32()?, cursor.i32()?);
    let Ok(count) = usize::try_from(count) else { return Ok(Err(format!("an answer of {count} columns"))) };
    if flags & (has_more | has_no_metadata) != 0 {
        return Ok(Err(format!("rows with the flags {flags:#x}")));
    }
    if flags & has_one_table != 0 {
        cursor.short_bytes()?;
        cursor.short_bytes()?;
    }
    let mut columns = Vec::new();
    for _ in 0..count {
        if flags & has_one_table == 0 {
            cursor.short_bytes()?;
            cursor.short_bytes()?;
        }
        columns.push(text(cursor)?);
        if let Err(why) = skip_type(cursor, 0)? {
            return Ok(Err(why));
        }
    }
    let count = cursor.i32()?;
    if columns.is_empty() && count > 0 {
        return Ok(Err("rows without columns".to_owned()));
    }
    let mut rows = Vec::new();
    for _ in 0..count {
        let mut row = Vec::new();
        for _ in &columns {
            row.push(cursor.int_bytes()?.map(Bytes::copy_from_slice));
        }
        rows.push(row);
    }
    Ok(Ok(Answer { columns, rows }))
}

/// Passes over the type of a column.
fn skip_type(cursor: &mut Cursor<'_>, depth: usize) -> Decoded<()> {
    if depth > DEPTH_MAX {
        return Ok(Err("a column's type is too deep".to_owned()));
    }
    let within = match cursor.u16()? {
        0x00 => {
            cursor.short_bytes()?;
            0
        }
        0x20 | 0x22 => 1,
        0x21 => 2,
        0x30 => {
            cursor.short_bytes()?;
            cursor.short_bytes()?;
            for _ in 0..cursor.u16()? {
                cursor.short_bytes()?;
                if let Err(why) = skip_type(cursor, depth + 1)? {
                    return Ok(Err(why));
                }
            }
            0
        }
        0x31 => cursor.u16()?,
        _ => 0,
    };
    for _ in 0..within {
        if let Err(why) = skip_type(cursor, depth + 1)? {
            return Ok(Err(why));
        }
    }
    Ok(Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fuzzing;

    const HEADER: [u8; HEADER_SIZE] = [0x84, 0, 0, 0, 0x08, 0, 0, 0, 0];

    #[test]
    fn rows_are_found_behind_types_of_any_depth() {
        let Ok(Reply::Rows(answer)) = decode(&HEADER, &fuzzing::rows()) else { panic!("rows") };
        assert_eq!(answer.columns, ["tokens", "m"]);
        assert_eq!((answer.text(0, "tokens").as_deref(), answer.value(0, "m")), (Some("value"), None));
    }

    #[test]
    fn no_cut_and_no_changed_byte_panics() {
        let whole = fuzzing::rows();
        for end in 0..whole.len() {
            assert!(decode(&HEADER, &whole[..end]).is_err(), "cut at {end}");
        }
        for place in 0..whole.len() {
            for bit in 0..8 {
                let mut changed = whole.clone();
                changed[place] ^= 1 << bit;
                drop(decode(&HEADER, &changed));
            }
        }
    }

    #[test]
    fn an_error_is_the_nodes_words() {
        let mut body = Vec::new();
        stdx::put_i32(&mut body, 0x2200);
        stdx::put_short_bytes(&mut body, b"'ks' not found in keyspaces");
        let mut header = HEADER;
        header[4] = 0x00;
        assert_eq!(decode(&header, &body), Err("'ks' not found in keyspaces".to_owned()));
        assert_eq!(frame_size(&[0x84, 0, 0, 0, 0, 0x7f]), Ok(None));
        assert!(frame_size(&[0x84, 0, 0, 0, 0, 0x7f, 0, 0, 0]).is_err());
    }
}
