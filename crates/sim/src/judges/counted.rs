//! Counters count: each increment that was acknowledged once, each without an answer once or not at
//! all, and nothing else.

use super::Finding;

/// The facts about a counter at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Increments by one that were acknowledged.
    pub acknowledged: u64,
    /// Increments by one without an answer.
    pub unknown: u64,
    /// The value that the counter has.
    pub value: u64,
}

/// See the module.
pub fn check(counters: &[(u64, Counted)]) -> Vec<Finding> {
    let is_right = |one: &Counted| (one.acknowledged..=one.acknowledged + one.unknown).contains(&one.value);
    let wrong = counters.iter().filter(|(_, counted)| !is_right(counted));
    wrong.map(|(key, counted)| Finding { judge: "counted", what: format!("key {key}: {counted:?}") }).collect()
}
