//! Nothing is invented, and nothing comes back: what a read of a versioned key shows was asked for
//! before the read ended, and is not older than a deletion that was acknowledged before the read
//! began.
//!
//! Not checked: whether a write that was refused shows nevertheless, where the refusal is not
//! certain.

use super::{Finding, by_key};
use crate::history::{Action, Operation, Outcome};

/// See the module.
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
