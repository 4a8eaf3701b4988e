//! Reads of a versioned key do not go back: a read that begins after another one has ended shows
//! nothing older.
//!
//! One exception, which docs/compatibility.md names: an ordinary read may show a write that still
//! waits for the commit log, and the end of the node's process takes such a write back. So a read
//! may go back behind a version that was not acknowledged when the process ended. A version that
//! was acknowledged before, or that a read of the next process has shown, stays.
//!
//! Not checked: a value that follows a read of nothing, since nothing has no version.

use super::{Finding, by_key};
use crate::history::{Action, Operation};

/// Judges these operations: see the head of this file. `ends` are the moments at which processes
/// had ended that show a write before it is durable, nanoseconds on the timeline of the
/// simulation, ascending; empty if no process does so.
pub fn check(operations: &[Operation], ends: &[u64]) -> Vec<Finding> {
    let of_one =
        |of_key: &Vec<Operation>| of_key.iter().filter_map(|read| back(of_key, read, ends)).collect::<Vec<_>>();
    by_key(operations).values().flat_map(of_one).collect()
}

fn back(of_key: &[Operation], read: &Operation, ends: &[u64]) -> Option<Finding> {
    let value = read.read_value()?;
    let before = of_key.iter().filter(|one| one.heard < read.asked);
    let stays = before.filter(|one| !may_be_taken_back(of_key, one, read, ends));
    let newest = stays.filter_map(|one| one.read_value()?).max()?;
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

/// Whether the process ended between two reads, and the version that the first one showed was not
/// acknowledged by then.
fn may_be_taken_back(of_key: &[Operation], first: &Operation, second: &Operation, ends: &[u64]) -> bool {
    // the first end after the first read began: a later process has that version on its disk or
    // not at all
    let Some(end) = ends.iter().find(|end| first.asked < **end && **end < second.heard) else { return false };
    let shown = first.read_value().flatten();
    let acknowledged = |one: &Operation| one.is_acknowledged() && one.heard < *end && one.version() == shown;
    !of_key.iter().any(acknowledged)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::Outcome;

    fn operation(action: Action, outcome: Outcome, asked: u64) -> Operation {
        Operation { client: 0, key: 1, action, outcome, asked, heard: asked + 1 }
    }

    fn read(version: u64, asked: u64) -> Operation {
        operation(Action::Read, Outcome::Value(Some(version)), asked)
    }

    /// A write that waits, a read that shows it at 20, and a read that does not at 40.
    fn goes_back() -> Vec<Operation> {
        let waits = Operation { heard: u64::MAX, ..operation(Action::Write(2), Outcome::Unknown, 10) };
        vec![operation(Action::Write(1), Outcome::Done, 0), waits, read(2, 20), read(1, 40)]
    }

    #[test]
    fn the_end_of_a_process_takes_back_what_was_not_acknowledged() {
        assert_eq!(check(&goes_back(), &[30]), []);
    }

    #[test]
    fn nothing_else_takes_a_version_back() {
        assert_eq!(check(&goes_back(), &[]).len(), 1, "no process ended");
        assert_eq!(check(&goes_back(), &[5, 50]).len(), 1, "none ended between the two reads");
    }

    #[test]
    fn the_end_of_a_process_takes_back_nothing_that_was_acknowledged() {
        let mut operations = goes_back();
        operations.push(operation(Action::Write(2), Outcome::Done, 25));
        assert_eq!(check(&operations, &[30]).len(), 1);
    }

    #[test]
    fn a_version_that_the_next_process_showed_stays() {
        let mut operations = goes_back();
        operations.insert(3, read(2, 35));
        assert_eq!(check(&operations, &[30]).len(), 1);
    }
}
