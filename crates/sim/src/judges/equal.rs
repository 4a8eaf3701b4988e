//! Replicas are equal after quiet: what one holds all hold.

use std::collections::BTreeMap;
use std::fmt::Debug;

use super::Finding;

/// The content of each replica.
pub fn check<V: PartialEq + Debug>(replicas: &[BTreeMap<u64, V>]) -> Vec<Finding> {
    let Some((first, others)) = replicas.split_first() else { return Vec::new() };
    let differ = |other: &BTreeMap<u64, V>| {
        let keys = first.keys().chain(other.keys());
        keys.filter(|key| first.get(key) != other.get(key)).min().copied()
    };
    let finding = |(number, other): (usize, &BTreeMap<u64, V>)| {
        let key = differ(other)?;
        let (one, two) = (first.get(&key), other.get(&key));
        let what = format!("key {key} is {one:?} on the first replica and {two:?} on replica {}", number + 2);
        Some(Finding { judge: "equal", what })
    };
    others.iter().enumerate().filter_map(finding).collect()
}
