//! The tree's own rules, as tests: `cargo test -p tidy`. This file reads the tree; each rule has its file, a function from
//! the tree to what is wrong with it, a line each that names the file and what to do instead. What a compiler can check
//! is not here: banned calls with their replacements stand in `clippy.toml`, `unsafe` and missing documents in the lints.

#![allow(clippy::disallowed_methods)] // a tool for the tree at rest: it reads files as any test may

use std::path::{Path, PathBuf};

pub mod banned;
pub mod crates;
pub mod documents;
pub mod heads;
pub mod layers;
pub mod manifest;
pub mod size;

/// A file of the tree that the rules look at.
pub struct SourceFile {
    /// Relative to the root, with `/` between names.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// The files of the project, without what is built or fetched.
pub struct Tree {
    /// The directory of the workspace.
    pub root: PathBuf,
    /// In the order of their paths.
    pub files: Vec<SourceFile>,
}

/// Names of directories that hold nothing written by hand.
const SKIPPED: [&str; 6] = ["target", ".git", ".venv", "node_modules", "testdata", "helenus-data"];
/// Endings of files that the rules read.
const READ: [&str; 7] = ["rs", "toml", "md", "py", "sh", "go", "js"];

impl Tree {
    /// Reads the workspace that this crate stands in.
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

    /// The manifests of the crates in `crates/`, with the crate's name.
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
