//! Operations on a contended key are linearizable: each takes effect at one moment between its
//! question and its answer, and all answers are those of one register.
//!
//! The search of Wing and Gong with Lowe's memory, as in Knossos and Porcupine, for each key on its
//! own:
//! 1. Candidates for the next moment are the operations that began before any other one that is
//!    left has ended.
//! 2. A candidate whose answer the register would have given is taken, and the search goes on from
//!    there; else the next.
//! 3. A state of the search (the operations that are taken, and the value of the register) is
//!    visited once.
//! 4. The history is linearizable when all operations with an answer are taken. One without an
//!    answer may be taken at any later moment, or never.
//! 5. A candidate that leaves the register as it is and whose answer is right is taken at once,
//!    with no other tried in its place: in every order that explains the rest it can stand here.
//!    For the same reason an operation without an answer is taken only where it changes the
//!    register.
//!
//! An operation that certainly failed is no part of the history.

use std::collections::HashSet;

use super::{Finding, by_key};
use crate::history::{Action, Operation, Outcome};

/// Number of states of a search at which it is given up. That is a finding: the history is too
/// wide to judge.
const STATES_MAX: usize = 2_000_000;

/// Judges these operations: see the head of this file.
pub fn check(operations: &[Operation]) -> Vec<Finding> {
    by_key(operations).into_values().filter_map(check_key).collect()
}

fn check_key(mut operations: Vec<Operation>) -> Option<Finding> {
    // A read without an answer and an operation that failed say nothing.
    operations
        .retain(|one| one.outcome != Outcome::Failed && (one.outcome, one.action) != (Outcome::Unknown, Action::Read));
    operations.sort_by_key(|one| (one.asked, one.heard));
    let what = match search(&operations) {
        SearchResult::Found => return None,
        SearchResult::None { farthest } => {
            format!("no order explains key {}, not behind\n{farthest}", operations[0].key)
        }
        SearchResult::GivenUp => format!("key {}: more than {STATES_MAX} states", operations[0].key),
    };
    Some(Finding { judge: "linearizable", what })
}

enum SearchResult {
    Found,
    /// There is no order: the longest explanation, and the operations that could not follow it.
    None {
        farthest: String,
    },
    GivenUp,
}

/// The operations that are taken, a bit for each.
type Taken = Box<[u64]>;

fn has(taken: &Taken, number: usize) -> bool {
    taken.get(number / 64).is_some_and(|word| word >> (number % 64) & 1 == 1)
}

fn with(taken: &Taken, number: usize) -> Taken {
    let mut after = taken.clone();
    after[number / 64] |= 1 << (number % 64);
    after
}

fn search(operations: &[Operation]) -> SearchResult {
    let answered = operations.iter().filter(|one| one.outcome != Outcome::Unknown).count();
    let nothing: Taken = vec![0; operations.len().div_ceil(64)].into();
    let mut visited: HashSet<(Taken, Option<u64>)> = HashSet::new();
    // each entry: what is taken, what the register holds, how many with an answer are taken
    let mut open = vec![(nothing, None, 0)];
    let mut farthest = (0, String::new());
    while let Some((taken, value, count)) = open.pop() {
        if count == answered {
            return SearchResult::Found;
        }
        if !visited.insert((taken.clone(), value)) {
            continue;
        }
        if visited.len() > STATES_MAX {
            return SearchResult::GivenUp;
        }
        let candidates = candidates(operations, &taken);
        if count >= farthest.0 {
            farthest = (count, describe(operations, &candidates, value));
        }
        let is_free = |number: &usize| changes_nothing(value, &operations[*number]);
        if let Some(free) = candidates.iter().copied().find(is_free) {
            open.push((with(&taken, free), value, count + 1));
            continue;
        }
        // those without an answer first, so that the others are tried before them: the last is
        // popped first
        let (known, unknown): (Vec<usize>, Vec<usize>) =
            candidates.into_iter().partition(|number| operations[*number].outcome != Outcome::Unknown);
        for number in unknown.into_iter().chain(known.into_iter().rev()) {
            if let Some(next) = apply(value, &operations[number]) {
                let is_answered = operations[number].outcome != Outcome::Unknown;
                open.push((with(&taken, number), next, count + usize::from(is_answered)));
            }
        }
    }
    SearchResult::None { farthest: farthest.1 }
}

/// Operations that may take effect next: no other one that is left had ended before they began.
fn candidates(operations: &[Operation], taken: &Taken) -> Vec<usize> {
    let mut first_end = u64::MAX;
    let mut found = Vec::new();
    for (number, operation) in operations.iter().enumerate().filter(|(number, _)| !has(taken, *number)) {
        if operation.asked > first_end {
            break;
        }
        first_end = first_end.min(operation.heard);
        found.push(number);
    }
    found
}

/// Whether an operation gave the right answer and leaves the register as it is.
fn changes_nothing(value: Option<u64>, operation: &Operation) -> bool {
    operation.outcome != Outcome::Unknown && apply(value, operation) == Some(value)
}

/// The value of the register after an operation; None: it would have answered otherwise, or it has
/// no answer and would change nothing.
fn apply(value: Option<u64>, operation: &Operation) -> Option<Option<u64>> {
    match (operation.action, operation.outcome) {
        (Action::Read, Outcome::Value(seen)) => (seen == value).then_some(value),
        (Action::Write(to), Outcome::Done | Outcome::Unknown) => Some(Some(to)),
        (Action::Delete(_), Outcome::Done | Outcome::Unknown) => Some(None),
        (Action::CompareAndSet { from, to }, Outcome::Done) => (from == value).then_some(Some(to)),
        (Action::CompareAndSet { from, to }, Outcome::Unknown) => (from == value).then_some(Some(to)),
        (Action::CompareAndSet { from, .. }, Outcome::Refused(seen)) => {
            (seen == value && from != value).then_some(value)
        }
        _ => None,
    }
}

fn describe(operations: &[Operation], candidates: &[usize], value: Option<u64>) -> String {
    let lines = candidates.iter().map(|number| format!("  {:?}\n", operations[*number]));
    format!("  the register holds {value:?}, and next can be\n{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(action: Action, outcome: Outcome, asked: u64, heard: u64) -> Operation {
        Operation { client: 0, key: 1, action, outcome, asked, heard }
    }

    fn is_linearizable(operations: &[Operation]) -> bool {
        check(operations).is_empty()
    }

    const UNKNOWN: u64 = u64::MAX;

    #[test]
    fn answers_of_one_register() {
        use Action::*;
        use Outcome::*;
        let one = operation(Write(1), Done, 0, 10);
        let two = operation(Write(2), Done, 5, 15);
        assert!(is_linearizable(&[one, two, operation(Read, Value(Some(1)), 20, 30)]), "side by side, either is last");
        assert!(is_linearizable(&[one, two, operation(Read, Value(Some(2)), 20, 30)]));
        assert!(!is_linearizable(&[one, two, operation(Read, Value(None), 20, 30)]), "lost");
        assert!(!is_linearizable(&[one, operation(Read, Value(Some(3)), 20, 30)]), "invented");
        let after = [one, two, operation(Read, Value(Some(1)), 20, 30), operation(Read, Value(Some(2)), 40, 50)];
        assert!(!is_linearizable(&after), "once it is 1 it stays so");
        let during = operation(Write(3), Done, 0, 100);
        let turned = [during, operation(Read, Value(Some(3)), 10, 20), operation(Read, Value(None), 30, 40)];
        assert!(!is_linearizable(&turned), "new, then old");
        let right = [during, operation(Read, Value(None), 10, 20), operation(Read, Value(Some(3)), 30, 40)];
        assert!(is_linearizable(&right));
    }

    #[test]
    fn who_hears_nothing_may_have_done_it_later_or_never() {
        use Action::*;
        use Outcome::*;
        let unknown = operation(Write(1), Unknown, 0, UNKNOWN);
        assert!(is_linearizable(&[unknown]));
        assert!(is_linearizable(&[unknown, operation(Read, Value(None), 20, 30)]));
        assert!(is_linearizable(&[
            unknown,
            operation(Read, Value(None), 20, 30),
            operation(Read, Value(Some(1)), 40, 50)
        ]));
        assert!(!is_linearizable(&[
            unknown,
            operation(Read, Value(Some(1)), 20, 30),
            operation(Read, Value(None), 40, 50)
        ]));
        assert!(!is_linearizable(&[operation(Read, Value(Some(1)), 1, 5), operation(Write(1), Unknown, 6, UNKNOWN)]));
    }

    #[test]
    fn conditions() {
        use Outcome::*;
        let set =
            |from, to, outcome, asked, heard| operation(Action::CompareAndSet { from, to }, outcome, asked, heard);
        assert!(is_linearizable(&[set(None, 1, Done, 0, 10), set(Some(1), 2, Done, 20, 30)]));
        assert!(!is_linearizable(&[set(None, 1, Done, 0, 10), set(None, 2, Done, 5, 15)]), "both cannot be first");
        assert!(is_linearizable(&[set(None, 1, Done, 0, 10), set(None, 2, Refused(Some(1)), 5, 15)]));
        assert!(!is_linearizable(&[set(None, 1, Done, 0, 10), set(None, 2, Refused(None), 20, 30)]));
        assert!(is_linearizable(&[set(None, 1, Unknown, 0, UNKNOWN), set(Some(1), 2, Done, 20, 30)]));
    }

    /// Clients of a node that dies again and again: each life leaves conditional writes without an
    /// answer, and reads side by side. One that shows nothing at the end makes the search look at
    /// every order.
    #[test]
    fn many_operations_without_an_answer_take_little_time() {
        let mut operations = Vec::new();
        for number in 0..120_u64 {
            let (from, at) = (number.checked_sub(1), number * 100);
            let write = |to| Action::CompareAndSet { from, to };
            operations.push(operation(write(number), Outcome::Done, at + 20, at + 30));
            operations.extend(
                (0..3).map(|lost| operation(write(1_000_000 + number * 3 + lost), Outcome::Unknown, at + 25, UNKNOWN)),
            );
            operations.extend(
                (0..6)
                    .map(|read| operation(Action::Read, Outcome::Value(Some(number)), at + 20 + read, at + 50 + read)),
            );
        }
        assert!(is_linearizable(&operations));
        operations.push(operation(Action::Read, Outcome::Value(None), 90_000, 90_001));
        let [finding] = check(&operations).try_into().expect("one");
        assert!(finding.what.starts_with("no order explains"), "{}", finding.what);
    }

    #[test]
    fn a_long_history_takes_little_time() {
        let mut operations = Vec::new();
        for number in 0..2000_u64 {
            operations.push(operation(Action::Write(number), Outcome::Done, number * 10, number * 10 + 55));
        }
        operations.push(operation(Action::Read, Outcome::Value(Some(1999)), 90_000, 90_001));
        assert!(is_linearizable(&operations));
    }
}
