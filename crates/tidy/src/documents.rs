//! The documents exist, ARCHITECTURE.md mentions every crate, and no text names the machine on
//! which it was written.

use crate::Tree;

/// The documents that a visitor looks for.
const DOCUMENTS: [&str; 6] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/compatibility.md", "docs/glossary.md"];
/// Beginnings of paths that exist on one machine only.
const PLACES: [&str; 3] = ["/work/", "/root/", "/home/"];

/// Finds missing documents, crates and files that ARCHITECTURE.md gets wrong, and paths of one
/// machine.
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
    wrong.extend(dead_paths(tree, map));
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

/// Sources that ARCHITECTURE.md names as `crate/src/file.rs` and that are not there.
fn dead_paths(tree: &Tree, map: &str) -> Vec<String> {
    let named = map.split('`').filter(|word| word.contains("/src/") && word.ends_with(".rs"));
    let dead = named.filter(|word| tree.text(&format!("crates/{word}")).is_none());
    dead.map(|word| format!("ARCHITECTURE.md: `{word}` does not exist: name the file that has its content now"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceFile;

    #[test]
    fn dead_paths_are_found() {
        let file = SourceFile { path: "crates/rows/src/cell.rs".into(), text: String::new() };
        let tree = Tree { root: std::path::PathBuf::new(), files: vec![file] };
        assert_eq!(dead_paths(&tree, "a `rows/src/cell.rs` b `rows::cell` c").len(), 0);
        assert_eq!(dead_paths(&tree, "`rows/src/cells.rs` and `rows/src/gone.rs`").len(), 2);
    }
}
