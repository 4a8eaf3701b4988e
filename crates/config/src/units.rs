//! Durations, sizes and rates with units, as cassandra.yaml writes them: `10ms`, `32MiB`,
//! `64MiB/s`.
//!
//! Agrees with `org.apache.cassandra.config.DurationSpec`, `DataStorageSpec` and `DataRateSpec`:
//! case matters, durations and sizes have no fractions, and no value is below the smallest unit of
//! its key.

/// Units of time and their nanoseconds, smallest first.
pub const TIME: &[(&str, u64)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
    ("d", 86_400_000_000_000),
];
/// Units of data and their bytes, smallest first.
pub const DATA: &[(&str, u64)] = &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)];
/// Units of rates and their bytes a second, smallest first.
pub const RATE: &[(&str, u64)] = &[("B/s", 1), ("KiB/s", 1 << 10), ("MiB/s", 1 << 20)];

/// Reads a number with one of the units, none smaller than `least`. The result counts the smallest
/// unit of the list.
pub fn parse(text: &str, units: &[(&str, u64)], least: &str) -> Result<u64, String> {
    let from = units.iter().position(|(unit, _)| *unit == least).unwrap_or(0);
    let accepted: Vec<&str> = units[from..].iter().map(|(unit, _)| *unit).collect();
    let text = text.trim().replace('µ', "u");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let factor = units[from..].iter().find(|(known, _)| *known == unit).map(|(_, factor)| *factor);
    match (number.parse::<u64>(), factor) {
        (Ok(number), Some(factor)) => number.checked_mul(factor).ok_or_else(|| format!("{text} is too large")),
        _ => Err(format!(
            "'{text}' is not a number with a unit (accepted: {}; case matters, no negative values)",
            accepted.join(", ")
        )),
    }
}

/// Reads a rate in bytes a second; Cassandra allows fractions here.
pub fn parse_rate(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.').len();
    let (number, unit) = text.split_at(digits);
    let factor = RATE.iter().find(|(known, _)| *known == unit).map(|(_, factor)| *factor);
    match (number.parse::<f64>(), factor) {
        (Ok(number), Some(factor)) => Ok((number * factor as f64) as u64),
        _ => Err(format!("'{text}' is not a number with a unit (accepted: B/s, KiB/s, MiB/s; case matters)")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_read_as_cassandra_does() {
        assert_eq!(parse("10ms", TIME, "ms"), Ok(10_000_000));
        assert_eq!(parse("3h", TIME, "ms"), Ok(10_800_000_000_000));
        assert!(parse("5 ms", TIME, "ms").is_err());
        assert_eq!(parse("32MiB", DATA, "MiB"), Ok(32 << 20));
        assert_eq!(parse_rate("64MiB/s"), Ok(64 << 20));
        assert_eq!(parse_rate("0.5MiB/s"), Ok(512 << 10));
        for bad in ["10", "10us", "-1ms", "10MS", "ms", "99999999999999999999ms", ""] {
            assert!(parse(bad, TIME, "ms").is_err(), "{bad}");
        }
        for bad in ["32mb", "32MB", "1KiB"] {
            assert!(parse(bad, DATA, "MiB").is_err(), "{bad}");
        }
    }
}
