//! Ranges of tokens, as messages of repair write them.
//!
//! ```text
//! ranges:  i32 n, n × range
//! range:   u8 5, token start, token end
//! token:   i32 8, i64
//! ```
//!
//! 5: tokens, without the start and with the end. Agrees with `org.apache.cassandra.dht.Range` and
//! `Token.serializer`.

use std::fmt;

use stdx::Cursor;
use types::Token;

use crate::error::InternodeError;
use crate::integers::read_count;

const TOKEN_SIZE: i32 = 8;
/// Flags of a range of tokens without its start and with its end.
const TOKEN_RANGE: u8 = 5;
/// Bytes of a range.
const RANGE_SIZE: usize = 1 + 2 * (4 + TOKEN_SIZE as usize);

/// The tokens after `start` up to and with `end`. An end that is not after the start: over the end
/// of the ring.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Tokens {
    /// The start, which is not part of the range.
    pub start: Token,
    /// The end, which is.
    pub end: Token,
}

impl fmt::Display for Tokens {
    /// As Cassandra prints ranges.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "({},{}]", self.start.0, self.end.0)
    }
}

/// Appends a token.
pub fn put_token(out: &mut Vec<u8>, token: Token) {
    stdx::put_i32(out, TOKEN_SIZE);
    stdx::put_i64(out, token.0);
}

/// Reads a token.
pub fn read_token(cursor: &mut Cursor<'_>) -> Result<Token, InternodeError> {
    match cursor.i32()? {
        TOKEN_SIZE => Ok(Token(cursor.i64()?)),
        size => Err(InternodeError::Value { part: "the size of a token", found: i64::from(size) }),
    }
}

/// Appends ranges.
///
/// # Panics
/// When there are 2^31 ranges, which no ring has.
pub fn put_ranges(out: &mut Vec<u8>, ranges: &[Tokens]) {
    stdx::put_i32(out, i32::try_from(ranges.len()).expect("a ring has fewer ranges"));
    for range in ranges {
        out.push(TOKEN_RANGE);
        put_token(out, range.start);
        put_token(out, range.end);
    }
}

/// Reads ranges.
pub fn read_ranges(cursor: &mut Cursor<'_>) -> Result<Vec<Tokens>, InternodeError> {
    let count = read_count(cursor, RANGE_SIZE, "the number of ranges of a repair")?;
    let mut ranges = Vec::with_capacity(count);
    for _ in 0..count {
        match cursor.u8()? {
            TOKEN_RANGE => ranges.push(Tokens { start: read_token(cursor)?, end: read_token(cursor)? }),
            flags => return Err(InternodeError::Value { part: "the flags of a range", found: i64::from(flags) }),
        }
    }
    Ok(ranges)
}
