//! No acknowledged write of a versioned key is lost: a read that begins after the acknowledgement
//! shows that write or a newer change.
//!
//! Not checked: values that come back after an acknowledged deletion (`invented`), and keys with
//! more than one writer (`linearizable`).

use super::{Finding, by_key};
use crate::history::{Action, Operation};

/// Judges these operations: see the head of this file.
pub fn check(operations: &[Operation]) -> Vec<Finding> {
    by_key(operations).values().flat_map(|of_key| of_key.iter().filter_map(|read| lost(of_key, read))).collect()
}

fn lost(of_key: &[Operation], read: &Operation) -> Option<Finding> {
    let value = read.read_value()?;
    let before = of_key.iter().filter(|one| one.is_acknowledged() && one.heard < read.asked);
    let newest = before.filter(|one| one.version().is_some()).max_by_key(|one| one.version())?;
    let Action::Write(version) = newest.action else { return None };
    let is_there = match value {
        Some(seen) => seen >= version,
        // a deletion that is newer may have taken effect, whether its client knows it or not
        None => of_key.iter().any(|one| {
            matches!(one.action, Action::Delete(deleted) if deleted > version)
                && one.may_have_taken_effect()
                && one.asked < read.heard
        }),
    };
    let what = || format!("key {}: version {version} was acknowledged at {}, and {read:?}", read.key, newest.heard);
    (!is_there).then(|| Finding { judge: "acknowledged", what: what() })
}
