//! Time-UUIDs (version 1): the time that they hold, and the least and greatest of a millisecond.
//!
//! Agrees with `org.apache.cassandra.utils.TimeUUID`. Clock, clock sequence and node come from the
//! caller.

/// Units of 100 ns from 1582-10-15, where UUID time begins, to 1970.
const EPOCH_TICKS: i64 = 122_192_928_000_000_000;
const TICKS_PER_MICRO: i64 = 10;
const TICKS_PER_MILLI: i64 = 10_000;

// 141,427 days
const _: () = assert!(EPOCH_TICKS == 141_427 * 86_400_000 * TICKS_PER_MILLI);

/// 2010-01-01 in milliseconds since 1970. The times of prepended list elements are mirrored around
/// it.
pub const LIST_REFERENCE_MILLIS: i64 = 1_262_304_000_000;
/// Least clock sequence and node in the order of time-UUIDs, which compares signed bytes.
const LSB_MIN: u64 = 0x8080_8080_8080_8080;
const LSB_MAX: u64 = 0x7f7f_7f7f_7f7f_7f7f;

/// The time-UUID at `unix_ticks` units of 100 ns since 1970, with `clock_seq_node` as its last
/// eight bytes. For a time before 1582-10-15 or after the year 5236 the result has another time:
/// the four highest bits of the time are lost, because the version stands there.
pub fn from_parts(unix_ticks: i64, clock_seq_node: u64) -> [u8; 16] {
    let mut uuid = overwritten(unix_ticks, clock_seq_node);
    uuid[6] = uuid[6] & 0x0f | 0x10;
    uuid
}

/// As [`from_parts`], except for a time that needs the bits of the version: there the bits of both
/// are combined, and the result is no time-UUID. Cassandra makes and then refuses the same bytes.
fn overwritten(unix_ticks: i64, clock_seq_node: u64) -> [u8; 16] {
    let time = unix_ticks.wrapping_add(EPOCH_TICKS) as u64;
    let high = time << 32 | time >> 16 & 0xffff_0000 | time >> 48 | 0x1000;
    let mut uuid = [0; 16];
    uuid[..8].copy_from_slice(&high.to_be_bytes());
    uuid[8..].copy_from_slice(&clock_seq_node.to_be_bytes());
    uuid
}

/// The time-UUID at `unix_micros` microseconds since 1970.
pub fn from_micros(unix_micros: i64, clock_seq_node: u64) -> [u8; 16] {
    from_parts(unix_micros.wrapping_mul(TICKS_PER_MICRO), clock_seq_node)
}

/// Time of a time-UUID in units of 100 ns since 1970.
pub fn unix_ticks(uuid: &[u8; 16]) -> i64 {
    let time = crate::compare::time_of(uuid) & 0x0fff_ffff_ffff_ffff;
    (time as i64).wrapping_sub(EPOCH_TICKS)
}

/// Time of a time-UUID in microseconds since 1970.
pub fn unix_micros(uuid: &[u8; 16]) -> i64 {
    let time = crate::compare::time_of(uuid) & 0x0fff_ffff_ffff_ffff;
    time as i64 / TICKS_PER_MICRO - EPOCH_TICKS / TICKS_PER_MICRO
}

/// Time of a time-UUID in milliseconds since 1970.
pub fn unix_millis(uuid: &[u8; 16]) -> i64 {
    unix_micros(uuid) / 1000
}

/// The least time-UUID of a millisecond (`minTimeuuid`); bytes that are none where no time-UUID has
/// the time.
pub fn min_of_millis(unix_millis: i64) -> [u8; 16] {
    overwritten(unix_millis.wrapping_mul(TICKS_PER_MILLI), LSB_MIN)
}

/// The greatest time-UUID of a millisecond (`maxTimeuuid`); bytes that are none where no time-UUID
/// has the time.
pub fn max_of_millis(unix_millis: i64) -> [u8; 16] {
    overwritten(unix_millis.wrapping_add(1).wrapping_mul(TICKS_PER_MILLI).wrapping_sub(1), LSB_MAX)
}

/// Whether the bytes are a version-1 UUID.
pub fn is_timeuuid(bytes: &[u8]) -> bool {
    bytes.len() == 16 && bytes[6] >> 4 == 1
}

/// A UUID as text.
pub fn uuid_text(uuid: &[u8; 16]) -> String {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CqlType, compare};
    use std::cmp::Ordering;

    #[test]
    fn known_time() {
        // 50554d6e-29bb-11e5-b345-feff819cdc9f
        let uuid = [0x50, 0x55, 0x4d, 0x6e, 0x29, 0xbb, 0x11, 0xe5, 0xb3, 0x45, 0xfe, 0xff, 0x81, 0x9c, 0xdc, 0x9f];
        let ticks = unix_ticks(&uuid);
        assert_eq!(from_parts(ticks, 0xb345_feff_819c_dc9f), uuid);
        assert_eq!(unix_micros(&uuid), ticks / 10);
        assert!(is_timeuuid(&uuid));
    }

    #[test]
    fn ends_of_a_millisecond_enclose_it() {
        for millis in [0, 1, 1_700_000_000_000, -1] {
            let inside = from_micros(millis * 1000 + 500, 0x8000_0000_0000_0000);
            let order = |a: &[u8; 16], b: &[u8; 16]| compare(&CqlType::TimeUuid, a, b);
            assert_eq!(order(&min_of_millis(millis), &inside), Ordering::Less);
            assert_eq!(order(&inside, &max_of_millis(millis)), Ordering::Less);
            assert_eq!(order(&max_of_millis(millis), &min_of_millis(millis + 1)), Ordering::Less);
        }
    }

    #[test]
    fn times_before_the_first_are_none() {
        let first = -EPOCH_TICKS / TICKS_PER_MILLI;
        assert!(is_timeuuid(&min_of_millis(first)) && is_timeuuid(&max_of_millis(first)));
        assert!(!is_timeuuid(&min_of_millis(first - 1)) && !is_timeuuid(&max_of_millis(first - 1)));
    }
}
