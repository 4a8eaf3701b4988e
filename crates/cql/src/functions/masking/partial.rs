//! `mask_inner` and `mask_outer`: a text whose middle or whose ends are replaced by a character.
//! Positions count UTF-16 units, as in Java's strings.
//!
//! Agrees with `org.apache.cassandra.cql3.functions.masking.PartialMaskingFunction`.

use types::CqlType;

use super::super::{Function, Outcome};
use crate::error::CqlError;

/// The character that replaces others, unless the call names one.
const PADDING: u16 = b'*' as u16;

/// The types of the arguments, which are fixed from the second on.
pub(super) fn types(given: &[CqlType]) -> Vec<CqlType> {
    let rest = [CqlType::Int, CqlType::Int, CqlType::Text];
    given.iter().take(1).chain(rest.iter()).take(given.len()).cloned().collect()
}

/// Keeps that many characters at the beginning and at the end, and replaces those between.
pub(super) fn inner(function: &Function, arguments: &[Option<&[u8]>], out: &mut Vec<u8>) -> Outcome {
    mask(function, arguments, out, |at, begin, end| at >= begin && at <= end)
}

/// Replaces that many characters at the beginning and at the end.
pub(super) fn outer(function: &Function, arguments: &[Option<&[u8]>], out: &mut Vec<u8>) -> Outcome {
    mask(function, arguments, out, |at, begin, end| at < begin || at > end)
}

fn mask(
    function: &Function,
    arguments: &[Option<&[u8]>],
    out: &mut Vec<u8>,
    covers: fn(i64, i64, i64) -> bool,
) -> Outcome {
    let padding = padding(function, arguments.get(3).copied().flatten())?;
    let [Some(value), begin, end, ..] = arguments else { return Ok(false) };
    let int = |value: &Option<&[u8]>| value.and_then(|value| value.try_into().ok()).map_or(0, i32::from_be_bytes);
    let units: Vec<u16> = String::from_utf8_lossy(value).encode_utf16().collect();
    let size = i32::try_from(units.len()).unwrap_or(i32::MAX);
    // in 32 bits, as in Java: a count far below zero becomes a place before the first character
    let (begin, end) = (i64::from(int(begin)), i64::from((size - 1).wrapping_sub(int(end))));
    let masked = units.iter().zip(0i64..).map(|(unit, at)| if covers(at, begin, end) { padding } else { *unit });
    // Java prints half of a surrogate pair as '?'
    let text: String = char::decode_utf16(masked).map(|unit| unit.unwrap_or('?')).collect();
    out.extend_from_slice(text.as_bytes());
    Ok(true)
}

fn padding(function: &Function, given: Option<&[u8]>) -> Result<u16, CqlError> {
    let Some(given) = given else { return Ok(PADDING) };
    let text = String::from_utf8_lossy(given);
    let mut units = text.encode_utf16();
    match (units.next(), units.next()) {
        (Some(unit), None) => Ok(unit),
        _ => Err(CqlError::invalid(format!(
            "The padding argument for function {} should be single-character, but '{text}' has {} characters.",
            function.full_name(),
            text.encode_utf16().count()
        ))),
    }
}
