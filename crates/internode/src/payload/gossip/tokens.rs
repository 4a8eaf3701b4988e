//! The value of TOKENS: bytes as Latin-1 characters, per token an `i32` length (8) and the token
//! big-endian, then an `i32` 0.
//!
//! The order says nothing: Cassandra's tokens come sorted as decimal text after a restart
//! (`TokenSerializer`).

use stdx::Cursor;

use crate::error::InternodeError;

/// The most tokens that an endpoint is believed to have: Cassandra takes up to 1,536 by
/// `num_tokens`.
pub const TOKENS_MAX: usize = 4096;

/// The text for these tokens.
pub fn text_of(tokens: &[i64]) -> String {
    let mut bytes = Vec::with_capacity(tokens.len() * 12 + 4);
    for token in tokens {
        stdx::put_i32(&mut bytes, 8);
        stdx::put_i64(&mut bytes, *token);
    }
    stdx::put_i32(&mut bytes, 0);
    bytes.into_iter().map(char::from).collect()
}

/// The tokens in a text.
pub fn tokens_of(text: &str) -> Result<Vec<i64>, InternodeError> {
    let bad = |found: i64| InternodeError::Value { part: "the value of TOKENS", found };
    let latin: Result<Vec<u8>, _> = text.chars().map(|c| u8::try_from(u32::from(c))).collect();
    let bytes = latin.map_err(|_| bad(-1))?;
    let mut cursor = Cursor::new(&bytes);
    let mut tokens = Vec::new();
    loop {
        match cursor.i32()? {
            0 => return Ok(tokens),
            8 if tokens.len() < TOKENS_MAX => tokens.push(cursor.i64()?),
            other => return Err(bad(i64::from(other))),
        }
    }
}
