//! FAILURE_RSP: why a replica could not do what it was asked (`RequestFailureReason`).

use types::FailureReason;

use crate::error::InternodeError;
use crate::integers::{put_uvint32, read_uvint32};
use crate::payload::whole;

/// The reasons in the order of their codes.
const REASONS: [FailureReason; 8] = [
    FailureReason::Unknown,
    FailureReason::ReadTooManyTombstones,
    FailureReason::Timeout,
    FailureReason::IncompatibleSchema,
    FailureReason::ReadSize,
    FailureReason::NodeDown,
    FailureReason::IndexNotAvailable,
    FailureReason::ReadTooManyIndexes,
];

/// The reason with a code; a code that is not known is `Unknown`.
pub fn reason_of(code: i32) -> FailureReason {
    usize::try_from(code).ok().and_then(|code| REASONS.get(code).copied()).unwrap_or(FailureReason::Unknown)
}

/// The payload.
pub fn encode(reason: FailureReason) -> Vec<u8> {
    let mut out = Vec::new();
    put_uvint32(&mut out, i32::from(reason.code()));
    out
}

/// From a payload.
pub fn decode(payload: &[u8]) -> Result<FailureReason, InternodeError> {
    whole(payload, |cursor| Ok(reason_of(read_uvint32(cursor, "a reason of failure")?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_places_in_the_list() {
        for (place, reason) in REASONS.iter().enumerate() {
            assert_eq!(usize::from(reason.code()), place);
            assert_eq!(decode(&encode(*reason)), Ok(*reason));
        }
        assert_eq!(decode(&[77]), Ok(FailureReason::Unknown));
        assert!(decode(&[1, 1]).is_err());
    }
}
