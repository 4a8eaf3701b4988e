//! Options of strategies as the schema has them: texts by name.
//!
//! Sizes ("100MiB") agree with `FBUtilities.parseHumanReadable`, shares ("33.3%") with
//! `FBUtilities.parsePercent`.

use std::collections::BTreeMap;
use std::str::FromStr;

/// Options that all strategies have, with Cassandra's defaults.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CommonOptions {
    /// `tombstone_threshold`: the share of droppable tombstones, 0 to 1, from which an SSTable
    /// alone is compacted.
    pub tombstone_threshold: f64,
    /// `tombstone_compaction_interval`: the age in seconds from which an SSTable is compacted for
    /// its tombstones. Tombstones that could not be dropped now cannot be dropped a moment later
    /// either.
    pub tombstone_interval: u64,
    /// `unchecked_tombstone_compaction`: true: also if other SSTables overlap it.
    pub unchecked_tombstones: bool,
}

impl Default for CommonOptions {
    fn default() -> Self {
        // the number that Cassandra has is a float of 32 bits
        Self { tombstone_threshold: f64::from(0.2f32), tombstone_interval: 86_400, unchecked_tombstones: false }
    }
}

/// The value of an option, or its default if it is missing or cannot be read.
pub fn read<T: FromStr>(map: &BTreeMap<String, String>, name: &str, default: T) -> T {
    map.get(name).and_then(|text| text.trim().parse().ok()).unwrap_or(default)
}

/// The value of an option as Java reads a boolean: everything but "true" is false.
pub fn read_bool(map: &BTreeMap<String, String>, name: &str, default: bool) -> bool {
    map.get(name).map_or(default, |text| text.trim().eq_ignore_ascii_case("true"))
}

/// A number of bytes: "1GiB", "512 KiB", "1.5MB", "1e9B".
pub fn read_bytes(map: &BTreeMap<String, String>, name: &str, default: u64) -> u64 {
    map.get(name).and_then(|text| parse_bytes(text)).unwrap_or(default)
}

/// A share: "0.333" or "33.3%".
pub fn read_share(map: &BTreeMap<String, String>, name: &str, default: f64) -> f64 {
    let parse = |text: &String| match text.trim().strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0).ok(),
        None => text.trim().parse().ok(),
    };
    map.get(name).and_then(parse).unwrap_or(default)
}

fn parse_bytes(text: &str) -> Option<u64> {
    let number_and_prefix = text.trim().strip_suffix('B')?;
    let letters = number_and_prefix.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let (number, prefix) = number_and_prefix.split_at(letters.len());
    let number: f64 = number.trim().parse().ok()?;
    let (letter, base) = match prefix.strip_suffix('i') {
        Some(letter) => (letter, 1024f64),
        None => (prefix, 1000f64),
    };
    let power = if letter.is_empty() { 0 } else { 1 + "KMGTPE".find(letter)? as i32 };
    // a cast of a float stops at the ends of the range
    Some((number * base.powi(power)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_shares() {
        let cases = [
            ("1GiB", Some(1 << 30)),
            ("100 MiB", Some(100 << 20)),
            ("1.5KB", Some(1500)),
            ("1e3B", Some(1000)),
            ("0B", Some(0)),
            ("7", None),
            ("MiB", None),
            ("1XiB", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_bytes(text), expected, "{text}");
        }
        let map = BTreeMap::from([("a".to_owned(), "25 %".to_owned()), ("b".to_owned(), "0.5".to_owned())]);
        assert_eq!(read_share(&map, "a", 0.0), 0.25);
        assert_eq!((read_share(&map, "b", 0.0), read_share(&map, "c", 0.7)), (0.5, 0.7));
    }
}
