//! Counters count each acknowledged increment once, each increment without an answer once or not
//! at all, and nothing else.

use super::Finding;

/// The facts about a counter at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Increments by one that were acknowledged.
    pub acknowledged: u64,
    /// Increments by one without an answer.
    pub unknown: u64,
    /// The value of the counter at the end.
    pub value: u64,
}

/// Judges these counters: see the head of this file.
pub fn check(counters: &[(u64, Counted)]) -> Vec<Finding> {
    let is_right = |one: &Counted| (one.acknowledged..=one.acknowledged + one.unknown).contains(&one.value);
    let wrong = counters.iter().filter(|(_, counted)| !is_right(counted));
    wrong.map(|(key, counted)| Finding { judge: "counted", what: format!("key {key}: {counted:?}") }).collect()
}
