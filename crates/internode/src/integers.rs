//! `uvint32`: a Java int, sign-extended to 64 bits and written as an unsigned variable-length
//! integer.
//!
//! A negative int takes nine bytes. A value outside of a signed int is refused
//! (`org.apache.cassandra.utils.vint.VIntCoding.checkedCast`).

use stdx::Cursor;

use crate::error::InternodeError;

/// Appends the form of `value`.
pub fn put_uvint32(out: &mut Vec<u8>, value: i32) {
    stdx::put_uvint(out, i64::from(value) as u64);
}

/// Reads a value; `part` names it in the error.
pub fn read_uvint32(cursor: &mut Cursor<'_>, part: &'static str) -> Result<i32, InternodeError> {
    let found = cursor.uvint()? as i64;
    i32::try_from(found).map_err(|_| InternodeError::Value { part, found })
}

/// Reads a count or a length: not negative.
pub fn read_length(cursor: &mut Cursor<'_>, part: &'static str) -> Result<usize, InternodeError> {
    let found = read_uvint32(cursor, part)?;
    usize::try_from(found).map_err(|_| InternodeError::Value { part, found: i64::from(found) })
}

/// Reads a count as an `i32`: not negative, and not more than the bytes that are left could hold at
/// `size_min` bytes each. So nothing is allocated for elements that are not there.
pub fn read_count(cursor: &mut Cursor<'_>, size_min: usize, part: &'static str) -> Result<usize, InternodeError> {
    let found = cursor.i32()?;
    let count = usize::try_from(found).ok().filter(|count| count.saturating_mul(size_min) <= cursor.remaining());
    count.ok_or(InternodeError::Value { part, found: i64::from(found) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_kept_and_larger_values_refused() {
        for value in [0, 1, 127, 128, i32::MAX, -1, i32::MIN] {
            let mut out = Vec::new();
            put_uvint32(&mut out, value);
            assert_eq!(out.len() == 9, value < 0, "{value}");
            assert_eq!(read_uvint32(&mut Cursor::new(&out), "it"), Ok(value));
        }
        let mut out = Vec::new();
        stdx::put_uvint(&mut out, 1 << 31);
        assert_eq!(out.len(), 5);
        assert!(read_uvint32(&mut Cursor::new(&out), "it").is_err());
        assert!(read_length(&mut Cursor::new(&[0xff; 9]), "it").is_err());
    }

    #[test]
    fn a_count_is_bounded_by_the_bytes_that_are_there() {
        let bytes = [0, 0, 0, 2, 1, 2, 3, 4];
        assert_eq!(read_count(&mut Cursor::new(&bytes), 2, "it"), Ok(2));
        assert!(read_count(&mut Cursor::new(&bytes), 3, "it").is_err());
        assert!(read_count(&mut Cursor::new(&[0xff; 8]), 1, "it").is_err());
    }
}
