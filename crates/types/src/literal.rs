//! Text forms of values: what a string literal means for a type, and the CQL literal of a value.
//! Agrees with `AbstractType.fromString` and `CQL3Type.toCQLLiteral`.

/// Lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0x0f)]).collect()
}
