//! A file is short enough to be read at once.

use crate::Tree;

/// A longer file fails: it has two subjects, or tests that should have a file of their own.
const LINES_MAX: usize = 1200;
/// A longer file is reported without failing.
const LINES_WARN: usize = 800;

/// Finds files over the limit, and prints those that come near it.
pub fn check(tree: &Tree) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in tree.rust() {
        let lines = file.text.lines().count();
        if lines > LINES_MAX {
            wrong.push(format!(
                "{}: {lines} lines, more than {LINES_MAX}: split it by subject, or move its tests to `name/tests.rs`",
                file.path
            ));
        } else if lines > LINES_WARN {
            println!("{}: {lines} lines; past {LINES_WARN} a file wants splitting", file.path);
        }
    }
    wrong
}
