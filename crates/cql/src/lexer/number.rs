//! Tokens that begin with a digit, and those that end like them: numbers, durations, blobs, UUIDs.
//!
//! Must agree with: the rules `INTEGER`, `FLOAT`, `DURATION`, `HEXNUMBER`, `UUID` of Cassandra's
//! `Lexer.g`.

use super::Kind;

/// The length of a UUID in text form.
const UUID_LENGTH: usize = 36;

/// The token at the start of `rest`, which begins with a digit.
pub(super) fn scan(rest: &[u8]) -> (Kind, usize) {
    if rest[0] == b'0' && matches!(rest.get(1), Some(b'x' | b'X')) {
        return (Kind::Hex, 2 + hex_digits_length(&rest[2..]));
    }
    if rest.get(8) == Some(&b'-')
        && let Some(length) = uuid_length(rest)
    {
        return (Kind::Uuid, length);
    }
    scan_negative(rest)
}

/// How many hex digits `rest` begins with. Blobs are long: whole chunks first, each without a
/// branch a byte.
fn hex_digits_length(rest: &[u8]) -> usize {
    let (chunks, _) = rest.as_chunks::<16>();
    let is_hex = |chunk: &&[u8; 16]| chunk.iter().fold(true, |all, byte| all & byte.is_ascii_hexdigit());
    let whole = chunks.iter().take_while(is_hex).count() * 16;
    whole + rest[whole..].iter().take_while(|byte| byte.is_ascii_hexdigit()).count()
}

/// As [`scan`], after a minus: no blob, no UUID.
pub(super) fn scan_negative(rest: &[u8]) -> (Kind, usize) {
    let digits = digits_length(rest);
    match rest.get(digits) {
        Some(b'.') => scan_point(rest, digits),
        Some(byte) if byte.is_ascii_alphabetic() || *byte == 0xC2 => scan_suffix(rest, digits),
        _ => (Kind::Integer, digits),
    }
}

/// A number with a point after `digits` digits; two points are a range, three a float and a range.
fn scan_point(rest: &[u8], digits: usize) -> (Kind, usize) {
    if rest.get(digits + 1) == Some(&b'.') {
        return match rest.get(digits + 2) {
            Some(b'.') => (Kind::Float, digits + 1),
            _ => (Kind::Integer, digits),
        };
    }
    let mut length = digits + 1;
    length += digits_length(&rest[length..]);
    (Kind::Float, length + exponent_length(&rest[length..]))
}

/// A number followed by a letter: an exponent, the units of a duration, or something that is not
/// ours.
fn scan_suffix(rest: &[u8], digits: usize) -> (Kind, usize) {
    let exponent = exponent_length(&rest[digits..]);
    if exponent > 0 {
        return (Kind::Float, digits + exponent);
    }
    let mut length = digits;
    let mut end = 0;
    loop {
        let unit = unit_length(&rest[length..]);
        if unit == 0 {
            break;
        }
        end = length + unit;
        let more = digits_length(&rest[end..]);
        if more == 0 {
            break;
        }
        length = end + more;
    }
    if end > 0 { (Kind::Duration, end) } else { (Kind::Integer, digits) }
}

/// The length of a unit of a duration: `y mo w d h m s ms us µs ns`.
fn unit_length(rest: &[u8]) -> usize {
    let second = rest.get(1).copied().unwrap_or(0).to_ascii_lowercase();
    match rest.first().copied().unwrap_or(0).to_ascii_lowercase() {
        b'm' if second == b'o' || second == b's' => 2,
        b'u' | b'n' if second == b's' => 2,
        b'y' | b'w' | b'd' | b'h' | b'm' | b's' => 1,
        0xC2 if second == 0xB5 && matches!(rest.get(2), Some(b's' | b'S')) => 3,
        _ => 0,
    }
}

/// The length of `e10`, `E-5`; 0 if there is none.
fn exponent_length(rest: &[u8]) -> usize {
    if !matches!(rest.first(), Some(b'e' | b'E')) {
        return 0;
    }
    let sign = usize::from(matches!(rest.get(1), Some(b'+' | b'-')));
    match digits_length(&rest[1 + sign..]) {
        0 => 0,
        digits => 1 + sign + digits,
    }
}

fn digits_length(rest: &[u8]) -> usize {
    rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len())
}

/// 36 if a UUID stands at the start of `rest`.
pub(super) fn uuid_length(rest: &[u8]) -> Option<usize> {
    let uuid = rest.get(..UUID_LENGTH)?;
    let fits = uuid.iter().enumerate().all(|(at, byte)| match at {
        8 | 13 | 18 | 23 => *byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    });
    fits.then_some(UUID_LENGTH)
}

/// The length of an ISO 8601 duration at the start of `rest`, which begins with `P`.
pub(super) fn iso_duration_length(rest: &[u8]) -> Option<usize> {
    alternative_length(rest).or_else(|| designated_length(rest))
}

/// `P0001-02-03T04:05:06`.
fn alternative_length(rest: &[u8]) -> Option<usize> {
    const FORM: &[u8] = b"Pdddd-dd-ddTdd:dd:dd";
    let given = rest.get(..FORM.len())?;
    let fits = given.iter().zip(FORM).all(|(byte, form)| match form {
        b'd' => byte.is_ascii_digit(),
        _ => byte == form,
    });
    fits.then_some(FORM.len())
}

/// `P1Y2M3DT4H5M6S`, `P2W`, `PT5M`: designators in their order, at least one.
fn designated_length(rest: &[u8]) -> Option<usize> {
    let mut at = 1;
    if let Some(weeks) = designator_length(&rest[at..], b'W') {
        return Some(at + weeks);
    }
    let mut found = false;
    for designator in *b"YMD" {
        if let Some(length) = designator_length(&rest[at..], designator) {
            at += length;
            found = true;
        }
    }
    if rest.get(at) != Some(&b'T') {
        return found.then_some(at);
    }
    let mut end = at + 1;
    let mut found_time = false;
    for designator in *b"HMS" {
        if let Some(length) = designator_length(&rest[end..], designator) {
            end += length;
            found_time = true;
        }
    }
    match (found_time, found) {
        (true, _) => Some(end),
        (false, true) => Some(at),
        (false, false) => None,
    }
}

/// The length of digits followed by `designator`.
fn designator_length(rest: &[u8], designator: u8) -> Option<usize> {
    let digits = digits_length(rest);
    (digits > 0 && rest.get(digits) == Some(&designator)).then_some(digits + 1)
}
