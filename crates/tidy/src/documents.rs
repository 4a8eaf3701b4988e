//! The documents exist, ARCHITECTURE.md mentions every crate, and no text names the machine on
//! which it was written.

use crate::Tree;

/// The documents that a visitor looks for.
const DOCUMENTS: [&str; 6] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/compatibility.md", "docs/glossary.md"];
/// Beginnings of paths that exist on one machine only.
const PLACES: [&str; 3] = ["/work/", "/root/", "/home/"];

/// Finds missing documents, crates that ARCHITECTURE.md does not mention, and paths of one machine.
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
