//! A file is read in one sitting.

use crate::Tree;

/// Beyond this a file holds two subjects, or tests that outgrew it; it fails.
const LINES_MAX: usize = 1200;
/// Beyond this it is printed.
const LINES_WARN: usize = 800;

/// Files over the limit; those that come near it are printed.
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
