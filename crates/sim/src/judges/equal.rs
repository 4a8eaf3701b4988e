//! Replicas are equal after quiet and repair: all have the same rows.
//!
//! Not checked: deletions that only one of two replicas has, as long as both show the same rows.

use std::collections::BTreeMap;
use std::fmt::Debug;

use super::Finding;

/// Judges the content of each replica.
pub fn check<K: Ord + Clone + Debug, V: PartialEq + Debug>(replicas: &[BTreeMap<K, V>]) -> Vec<Finding> {
    let Some((first, others)) = replicas.split_first() else { return Vec::new() };
    let differ = |other: &BTreeMap<K, V>| {
        let keys = first.keys().chain(other.keys());
        keys.filter(|key| first.get(key) != other.get(key)).min().cloned()
    };
    let finding = |(number, other): (usize, &BTreeMap<K, V>)| {
        let key = differ(other)?;
        let (one, two) = (first.get(&key), other.get(&key));
        let what = format!("key {key:?} is {one:?} on the first replica and {two:?} on replica {}", number + 2);
        Some(Finding { judge: "equal", what })
    };
    others.iter().enumerate().filter_map(finding).collect()
}
