//! Reads of a versioned key do not go back: a read that begins after another one has ended shows
//! nothing older.
//!
//! Not checked: a value that follows a read of nothing, since nothing has no version.

use super::{Finding, by_key};
use crate::history::{Action, Operation};

/// See the module.
pub fn check(operations: &[Operation]) -> Vec<Finding> {
    by_key(operations).values().flat_map(|of_key| of_key.iter().filter_map(|read| back(of_key, read))).collect()
}

fn back(of_key: &[Operation], read: &Operation) -> Option<Finding> {
    let value = read.read_value()?;
    let before = of_key.iter().filter(|one| one.heard < read.asked);
    let newest = before.filter_map(|one| one.read_value()?).max()?;
    let is_later = match value {
        Some(seen) => seen >= newest,
        None => of_key.iter().any(|one| {
            matches!(one.action, Action::Delete(version) if version > newest)
                && one.may_have_taken_effect()
                && one.asked < read.heard
        }),
    };
    let what = || format!("version {newest} had been read, and then {read:?}");
    (!is_later).then(|| Finding { judge: "monotonic", what: what() })
}
