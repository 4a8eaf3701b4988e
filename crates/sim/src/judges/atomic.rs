//! A logged batch happens as a whole or not at all, and an acknowledged one happens.

use std::collections::BTreeSet;

use super::Finding;

/// The facts about batches that write their number to two tables each.
#[derive(Clone, Debug, Default)]
pub struct Batches {
    /// Numbers of batches that were acknowledged.
    pub acknowledged: BTreeSet<u64>,
    /// Numbers of all batches that were sent.
    pub sent: BTreeSet<u64>,
    /// The numbers that the tables hold at the end.
    pub tables: [BTreeSet<u64>; 2],
}

/// Judges these batches: see the head of this file.
pub fn check(batches: &Batches) -> Vec<Finding> {
    let [first, second] = &batches.tables;
    let half = |number: &u64, place: &str| format!("batch {number} is in one of its tables, the {place}");
    let halves = first.difference(second).map(|number| half(number, "first"));
    let halves = halves.chain(second.difference(first).map(|number| half(number, "second")));
    let lost =
        batches.acknowledged.difference(first).map(|number| format!("batch {number} was acknowledged and is lost"));
    let invented = first.difference(&batches.sent).map(|number| format!("batch {number} was never sent"));
    halves.chain(lost).chain(invented).map(|what| Finding { judge: "atomic", what }).collect()
}
