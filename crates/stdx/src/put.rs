//! Appends to a byte vector the forms that [`crate::Cursor`] reads. Integers are big-endian.

/// Number of bytes that [`put_uvint`] appends, 1 to 9.
#[inline]
pub fn uvint_len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    if bits > 56 { 9 } else { bits.div_ceil(7) }
}

/// Appends an unsigned variable-length integer in its shortest form.
#[inline]
pub fn put_uvint(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        out.push(value as u8);
        return;
    }
    uvint_bytes(value, |bytes| out.extend_from_slice(bytes));
}

/// Calls `see` with the bytes that [`put_uvint`] would append, without a vector.
#[inline]
pub fn uvint_bytes<T>(value: u64, see: impl FnOnce(&[u8]) -> T) -> T {
    let length = uvint_len(value);
    let mut bytes = [0xff; 9];
    bytes[1..].copy_from_slice(&value.to_be_bytes());
    let start = 9 - length;
    if length < 9 {
        bytes[start] |= !(0xffu8 >> (length - 1));
    }
    see(&bytes[start..])
}

/// Appends a signed variable-length integer (zig-zag).
pub fn put_svint(out: &mut Vec<u8>, value: i64) {
    put_uvint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Appends two bytes.
pub fn put_u16(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends two bytes of a signed integer.
pub fn put_i16(out: &mut Vec<u8>, value: i16) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends four bytes.
pub fn put_u32(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends four bytes of a signed integer.
pub fn put_i32(out: &mut Vec<u8>, value: i32) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends eight bytes.
pub fn put_u64(out: &mut Vec<u8>, value: u64) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends eight bytes of a signed integer.
pub fn put_i64(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends eight bytes of a floating-point number.
pub fn put_f64(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Appends a u16 length and the bytes. The caller has checked that there are at most 65,535.
pub fn put_short_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).expect("checked by the caller: at most 65,535 bytes");
    put_u16(out, length);
    out.extend_from_slice(bytes);
}

/// Appends an i32 length and the bytes; None is the length -1.
pub fn put_int_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            let length = i32::try_from(bytes.len()).expect("no value has 2 GiB: frames are bounded below that");
            put_i32(out, length);
            out.extend_from_slice(bytes);
        }
        None => put_i32(out, -1),
    }
}

/// Appends a variable-length length and the bytes.
pub fn put_vbytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_uvint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a u16 length and the text.
pub fn put_utf(out: &mut Vec<u8>, text: &str) {
    put_short_bytes(out, text.as_bytes());
}
