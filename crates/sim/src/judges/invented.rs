//! No value is invented, and none comes back: a value that a read of a versioned key shows was
//! written by a request from before the end of the read, and is not older than a deletion that was
//! acknowledged before the read began.
//!
//! Not checked: whether a refused write is visible nevertheless, if its refusal is not certain.

use super::{Finding, by_key};
use crate::history::{Action, Operation, Outcome};

/// Judges these operations: see the head of this file.
pub fn check(operations: &[Operation]) -> Vec<Finding> {
    by_key(operations).values().flat_map(|of_key| of_key.iter().filter_map(|read| wrong(of_key, read))).collect()
}

fn wrong(of_key: &[Operation], read: &Operation) -> Option<Finding> {
    let seen = read.read_value()??;
    let is_origin = |one: &&Operation| {
        one.action == Action::Write(seen) && one.outcome != Outcome::Failed && one.asked < read.heard
    };
    if !of_key.iter().any(|one| is_origin(&one)) {
        return Some(finding(format!("nobody wrote what {read:?} shows")));
    }
    let deletion = of_key.iter().find(|one| {
        matches!(one.action, Action::Delete(version) if version > seen)
            && one.is_acknowledged()
            && one.heard < read.asked
    });
    deletion.map(|deletion| finding(format!("{deletion:?} was acknowledged, and {read:?} shows what was deleted")))
}

fn finding(what: String) -> Finding {
    Finding { judge: "invented", what }
}
