//! The rules of the tree, as tests: `cargo test -p tidy`.
//!
//! This file reads the tree. Each rule has a file of its own: a function from the tree to its
//! findings, a line each, which names the file and says what to do instead. Rules that a compiler
//! can check are elsewhere: banned calls with their replacements are in `clippy.toml`, `unsafe` and
//! missing documentation in the lints.

#![allow(clippy::disallowed_methods)] // a tool for the tree at rest: it reads files as any test may

use std::path::{Path, PathBuf};

pub mod banned;
pub mod crates;
pub mod documents;
pub mod heads;
pub mod layers;
pub mod licences;
pub mod manifest;
pub mod prose;
pub mod size;

/// A file that the rules look at.
pub struct SourceFile {
    /// The path relative to the root, with `/` between names.
    pub path: String,
    /// The content.
    pub text: String,
}

/// The files of the project, without built and downloaded ones.
pub struct Tree {
    /// The directory of the workspace.
    pub root: PathBuf,
    /// The files, ordered by path.
    pub files: Vec<SourceFile>,
}

/// Directories without files written by hand.
const SKIPPED: [&str; 6] = ["target", ".git", ".venv", "node_modules", "testdata", "helenus-data"];
/// Endings of the files that the rules read.
const READ: [&str; 7] = ["rs", "toml", "md", "py", "sh", "go", "js"];

impl Tree {
    /// Reads the workspace to which this crate belongs.
    pub fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"))
            .ancestors()
            .nth(2)
            .expect("crates/tidy stands two levels below the root");
        let mut files = Vec::new();
        collect(root, root, &mut files);
        files.sort_by(|a, b| a.path.cmp(&b.path));
        Self { root: root.to_path_buf(), files }
    }

    /// The Rust sources.
    pub fn rust(&self) -> impl Iterator<Item = &SourceFile> {
        self.files.iter().filter(|file| file.path.ends_with(".rs"))
    }

    /// The content of a file by its path.
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files.iter().find(|file| file.path == path).map(|file| file.text.as_str())
    }

    /// The manifests of the crates in `crates/`, each with the name of its crate.
    pub fn manifests(&self) -> impl Iterator<Item = (&str, &SourceFile)> {
        self.files.iter().filter_map(|file| {
            let name = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
            (!name.contains('/')).then_some((name, file))
        })
    }
}

fn collect(root: &Path, directory: &Path, files: &mut Vec<SourceFile>) {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
        let kind = entry.file_type().expect("a listed entry has a type");
        if kind.is_dir() && !SKIPPED.contains(&name.as_str()) {
            collect(root, &path, files);
        } else if kind.is_file() && name.rsplit_once('.').is_some_and(|(_, ending)| READ.contains(&ending)) {
            let relative = path.strip_prefix(root).expect("walked from the root").to_string_lossy().replace('\\', "/");
            files.extend(std::fs::read_to_string(&path).ok().map(|text| SourceFile { path: relative, text }));
        }
    }
}
