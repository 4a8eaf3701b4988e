//! `utf`: text in Java's modified UTF-8 behind a length of two bytes.
//!
//! U+0000 is `C0 80`, and a character beyond U+FFFF is two surrogates of three bytes each. Gossip's
//! TOKENS hold raw bytes as Latin-1 characters, so that most of them travel in that form
//! (`java.io.DataOutput.writeUTF`).

use stdx::{Cursor, CursorError};

use crate::error::InternodeError;

/// The most bytes that the form of a text can have.
const SIZE_MAX: usize = u16::MAX as usize;

/// Appends the form of `text`.
///
/// # Errors
/// The form is longer than its length can say.
pub fn put_utf(out: &mut Vec<u8>, text: &str) -> Result<(), InternodeError> {
    let start = out.len();
    out.extend_from_slice(&[0, 0]);
    for unit in text.encode_utf16() {
        match unit {
            0x01..=0x7f => out.push(unit as u8),
            0 | 0x80..=0x7ff => out.extend_from_slice(&[0xc0 | (unit >> 6) as u8, 0x80 | (unit & 0x3f) as u8]),
            _ => out.extend_from_slice(&[
                0xe0 | (unit >> 12) as u8,
                0x80 | (unit >> 6 & 0x3f) as u8,
                0x80 | (unit & 0x3f) as u8,
            ]),
        }
    }
    let size = out.len() - start - 2;
    let length =
        u16::try_from(size).map_err(|_| InternodeError::Value { part: "the length of a text", found: size as i64 })?;
    out[start..start + 2].copy_from_slice(&length.to_be_bytes());
    debug_assert!(size <= SIZE_MAX, "a text's length fits in two bytes");
    Ok(())
}

/// Reads a text. Surrogates that have no partner are refused: no text of ours could hold them.
pub fn read_utf(cursor: &mut Cursor<'_>) -> Result<String, InternodeError> {
    let offset = cursor.position();
    let bytes = cursor.short_bytes()?;
    let not_text = || InternodeError::Bytes(CursorError::NotText { offset });
    if bytes.is_ascii() && !bytes.contains(&0) {
        return std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| not_text());
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter().copied();
    while let Some(first) = rest.next() {
        let mut more =
            || rest.next().filter(|byte| byte & 0xc0 == 0x80).map(|byte| u16::from(byte & 0x3f)).ok_or_else(not_text);
        units.push(match first {
            0x00..=0x7f => u16::from(first),
            0xc0..=0xdf => u16::from(first & 0x1f) << 6 | more()?,
            0xe0..=0xef => u16::from(first & 0x0f) << 12 | more()? << 6 | more()?,
            _ => return Err(not_text()),
        });
    }
    String::from_utf16(&units).map_err(|_| not_text())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put_utf(&mut out, text).unwrap();
        let mut cursor = Cursor::new(&out);
        assert_eq!(read_utf(&mut cursor).as_deref(), Ok(text));
        assert!(cursor.is_empty());
        out
    }

    #[test]
    fn forms_are_those_of_java() {
        assert_eq!(round_trip("lab"), [0, 3, b'l', b'a', b'b']);
        assert_eq!(round_trip("\0"), [0, 2, 0xc0, 0x80]);
        assert_eq!(round_trip("\u{ff}"), [0, 2, 0xc3, 0xbf]);
        assert_eq!(round_trip("\u{1f600}"), [0, 6, 0xed, 0xa0, 0xbd, 0xed, 0xb8, 0x80]);
        round_trip("a\0é€\u{10ffff}z");
    }

    #[test]
    fn broken_forms_are_refused() {
        for bytes in [&[0, 1, 0xc0][..], &[0, 2, 0xc0, 0x20], &[0, 1, 0xff], &[0, 3, 0xed, 0xa0, 0xbd], &[0, 5, b'a']] {
            assert!(read_utf(&mut Cursor::new(bytes)).is_err(), "{bytes:?}");
        }
        assert!(put_utf(&mut Vec::new(), &"é".repeat(40_000)).is_err());
    }
}
