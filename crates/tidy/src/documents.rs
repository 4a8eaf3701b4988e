//! The documents exist, the map shows every crate, and nothing names the machine it was written on.

use crate::Tree;

/// What a visitor looks for.
const DOCUMENTS: [&str; 6] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/compatibility.md", "docs/glossary.md"];
/// Beginnings of paths that exist on one machine only.
const PLACES: [&str; 3] = ["/work/", "/root/", "/home/"];

/// Missing documents, crates without a word in ARCHITECTURE.md, and paths of somebody's machine.
pub fn check(tree: &Tree) -> Vec<String> {
    let mut wrong = Vec::new();
    for name in DOCUMENTS {
        if tree.text(name).is_none() {
            wrong.push(format!("{name}: missing"));
        }
    }
    let map = tree.text("ARCHITECTURE.md").unwrap_or_default();
    for (name, _) in tree.manifests() {
        if !map.contains(&format!("`{name}`")) && !map.contains(&format!("crates/{name}")) {
            wrong.push(format!("ARCHITECTURE.md: a paragraph on `{name}`"));
        }
    }
    for file in tree.files.iter().filter(|file| !file.path.starts_with("crates/tidy/")) {
        for place in PLACES.iter().filter(|place| file.text.contains(**place)) {
            wrong.push(format!(
                "{}: `{place}…` is a place on one machine: name it relative to the tree, or as a placeholder",
                file.path
            ));
        }
    }
    wrong
}
