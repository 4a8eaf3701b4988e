//! Every Rust file begins with a head that says what the file is; a module is named by its file.

use crate::Tree;

/// A shorter head says nothing.
const HEAD_CHARACTERS_MIN: usize = 20;

/// Finds files without a `//!` head, and `mod.rs` files.
pub fn check(tree: &Tree) -> Vec<String> {
    let mut wrong = Vec::new();
    for file in tree.rust() {
        let first = file.text.lines().next().unwrap_or_default();
        if !first.starts_with("//! ") || first.len() < HEAD_CHARACTERS_MIN {
            wrong.push(format!(
                "{}: open it with a `//!` head: what it is, where it stands, what it must hold",
                file.path
            ));
        }
        if file.path.ends_with("/mod.rs") {
            wrong.push(format!("{}: name the module by its file, `name.rs` beside `name/`", file.path));
        }
    }
    wrong
}
