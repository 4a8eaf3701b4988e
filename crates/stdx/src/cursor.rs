//! A checked cursor over bytes that are not trusted. Every read tells whether the bytes were there;
//! no read panics or allocates.
//!
//! All integers are big-endian. The forms `uvint`, `svint`, `utf`, short, int and v-bytes are
//! described in docs/formats/README.md, "Conventions"; [`crate::put`] writes them.

use std::fmt;

/// Why bytes could not be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CursorError {
    /// Fewer bytes are left than the read needs.
    Truncated {
        /// Offset in the cursor's bytes at which the read began.
        offset: usize,
        /// Bytes that the read needs from there on.
        needed: usize,
    },
    /// A length below zero where none is allowed.
    NegativeLength {
        /// Offset of the length.
        offset: usize,
    },
    /// Text that is not UTF-8.
    NotText {
        /// Offset at which the text's length stands.
        offset: usize,
    },
}

impl fmt::Display for CursorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { offset, needed } => write!(f, "{needed} bytes expected at {offset}, fewer are there"),
            Self::NegativeLength { offset } => write!(f, "a negative length at {offset}"),
            Self::NotText { offset } => write!(f, "text that is not UTF-8 at {offset}"),
        }
    }
}

impl std::error::Error for CursorError {}

/// A read position in a slice of bytes. A read that fails because bytes are missing leaves the
/// position at or before the missing bytes.
#[derive(Clone, Debug)]
pub struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Cursor<'a> {
    /// A cursor at the start of `bytes`.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// Bytes read so far.
    #[inline]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Bytes left.
    #[inline]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Whether no byte is left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// All bytes that are left; the position stays.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.position..]
    }

    /// Reads the next `count` bytes.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], CursorError> {
        match self.bytes[self.position..].get(..count) {
            Some(taken) => {
                self.position += count;
                Ok(taken)
            }
            None => Err(CursorError::Truncated { offset: self.position, needed: count }),
        }
    }

    /// Passes over `count` bytes.
    #[inline]
    pub fn skip(&mut self, count: usize) -> Result<(), CursorError> {
        self.take(count).map(|_| ())
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], CursorError> {
        match self.bytes[self.position..].first_chunk::<N>() {
            Some(taken) => {
                self.position += N;
                Ok(*taken)
            }
            None => Err(CursorError::Truncated { offset: self.position, needed: N }),
        }
    }

    /// Reads one byte.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, CursorError> {
        Ok(self.array::<1>()?[0])
    }

    /// Reads one byte as a truth value: every value but 0 is true.
    pub fn bool(&mut self) -> Result<bool, CursorError> {
        Ok(self.u8()? != 0)
    }

    /// Reads two bytes.
    #[inline]
    pub fn u16(&mut self) -> Result<u16, CursorError> {
        Ok(u16::from_be_bytes(self.array()?))
    }

    /// Reads two bytes as a signed integer.
    pub fn i16(&mut self) -> Result<i16, CursorError> {
        Ok(i16::from_be_bytes(self.array()?))
    }

    /// Reads four bytes.
    #[inline]
    pub fn u32(&mut self) -> Result<u32, CursorError> {
        Ok(u32::from_be_bytes(self.array()?))
    }

    /// Reads four bytes as a signed integer.
    #[inline]
    pub fn i32(&mut self) -> Result<i32, CursorError> {
        Ok(i32::from_be_bytes(self.array()?))
    }

    /// Reads eight bytes.
    pub fn u64(&mut self) -> Result<u64, CursorError> {
        Ok(u64::from_be_bytes(self.array()?))
    }

    /// Reads eight bytes as a signed integer.
    pub fn i64(&mut self) -> Result<i64, CursorError> {
        Ok(i64::from_be_bytes(self.array()?))
    }

    /// Reads eight bytes as a floating-point number.
    pub fn f64(&mut self) -> Result<f64, CursorError> {
        Ok(f64::from_be_bytes(self.array()?))
    }

    /// Reads an unsigned variable-length integer: the number of leading one bits in the first byte
    /// is the number of bytes that follow.
    #[inline]
    pub fn uvint(&mut self) -> Result<u64, CursorError> {
        let start = self.position;
        let first = self.u8()?;
        if first < 0x80 {
            return Ok(u64::from(first));
        }
        let extra = first.leading_ones() as usize;
        let Ok(tail) = self.take(extra) else {
            self.position = start;
            return Err(CursorError::Truncated { offset: start, needed: extra + 1 });
        };
        let mut value = if extra >= 7 { 0 } else { u64::from(first) & (0x7f >> extra) };
        for byte in tail {
            value = value << 8 | u64::from(*byte);
        }
        Ok(value)
    }

    /// Reads a signed variable-length integer (zig-zag).
    pub fn svint(&mut self) -> Result<i64, CursorError> {
        let encoded = self.uvint()?;
        Ok((encoded >> 1) as i64 ^ -((encoded & 1) as i64))
    }

    /// Reads a u16 length and as many bytes.
    pub fn short_bytes(&mut self) -> Result<&'a [u8], CursorError> {
        let length = usize::from(self.u16()?);
        self.take(length)
    }

    /// Reads an i32 length and as many bytes; a negative length is None.
    pub fn int_bytes(&mut self) -> Result<Option<&'a [u8]>, CursorError> {
        match usize::try_from(self.i32()?) {
            Ok(length) => self.take(length).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// Reads a variable-length length and as many bytes.
    #[inline]
    pub fn vbytes(&mut self) -> Result<&'a [u8], CursorError> {
        let offset = self.position;
        let length = self.uvint()?;
        match usize::try_from(length) {
            Ok(length) => self.take(length),
            Err(_) => Err(CursorError::Truncated { offset, needed: usize::MAX }),
        }
    }

    /// Reads a u16 length and as many bytes of UTF-8.
    pub fn utf(&mut self) -> Result<&'a str, CursorError> {
        let offset = self.position;
        std::str::from_utf8(self.short_bytes()?).map_err(|_| CursorError::NotText { offset })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::put::{put_svint, put_uvint, uvint_len};

    #[test]
    fn variable_length_integers_round_trip_in_their_shortest_form() {
        let mut values = vec![0, 1, 127, 128, 16_383, 16_384, u64::MAX, u64::MAX - 1, 1 << 56, (1 << 56) - 1];
        values.extend((0..64).flat_map(|bit| [1u64 << bit, (1u64 << bit) - 1]));
        for value in values {
            let mut out = Vec::new();
            put_uvint(&mut out, value);
            assert_eq!(out.len(), uvint_len(value), "{value}");
            assert_eq!(Cursor::new(&out).uvint(), Ok(value));
            for cut in 0..out.len() {
                assert!(Cursor::new(&out[..cut]).uvint().is_err());
            }
            let mut out = Vec::new();
            put_svint(&mut out, value as i64);
            assert_eq!(Cursor::new(&out).svint(), Ok(value as i64));
        }
    }

    #[test]
    fn forms_of_a_few_integers() {
        let cases: [(u64, &[u8]); 5] = [
            (0, &[0]),
            (128, &[0x80, 0x80]),
            (300, &[0x81, 0x2c]),
            (1 << 14, &[0xc0, 0x40, 0]),
            (u64::MAX, &[0xff; 9]),
        ];
        for (value, bytes) in cases {
            let mut out = Vec::new();
            put_uvint(&mut out, value);
            assert_eq!(out, bytes);
        }
    }
}
