//! SSTables of the real Cassandra, and a way to run a verb on them.

use std::path::{Path, PathBuf};

use sstable::{Component, Descriptor};

/// An SSTable of keyspace `fx`.
pub struct Fixture {
    pub descriptor: Descriptor,
}

impl Fixture {
    pub fn data(&self) -> PathBuf {
        self.descriptor.path(Component::Data)
    }

    /// A file that was recorded beside it.
    pub fn beside(&self, ending: &str) -> PathBuf {
        self.descriptor.directory.join(format!("{}-{ending}", self.descriptor.prefix()))
    }

    /// The text of a compressed file that was recorded beside it; None: there is none.
    pub fn text_beside(&self, ending: &str) -> Option<String> {
        let bytes = std::fs::read(self.beside(ending)).ok()?;
        Some(match ending.ends_with(".gz") {
            true => captures::text(&bytes),
            false => String::from_utf8(bytes).unwrap(),
        })
    }
}

/// A folder for each table.
pub fn root() -> PathBuf {
    match std::env::var_os("HELENUS_FIXTURES") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fixtures"),
    }
}

/// All of a version, with those of views and indexes.
pub fn all(version: &str) -> Vec<Fixture> {
    let mut found = Vec::new();
    for table in sorted_entries(&root()) {
        let directory = table.join(version);
        if directory.is_dir() {
            collect(&directory, &mut found);
            for inner in sorted_entries(&directory).into_iter().filter(|path| path.is_dir()) {
                collect(&inner, &mut found);
            }
        }
    }
    assert!(!found.is_empty(), "no fixtures in {}", root().display());
    found
}

fn collect(directory: &Path, found: &mut Vec<Fixture>) {
    for path in sorted_entries(directory) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Some((descriptor, Some(Component::Data))) = Descriptor::parse(directory, &name) {
            found.push(Fixture { descriptor });
        }
    }
}

fn sorted_entries(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

/// The result of a verb.
pub struct VerbOutput {
    pub code: u8,
    pub out: String,
    pub err: String,
}

/// Runs a verb.
pub fn run(arguments: &[&str]) -> VerbOutput {
    let env = env::real::env();
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
    let code = tools::run(&arguments, &mut tools::Context { env: &env, out: &mut out, err: &mut err });
    VerbOutput { code, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
}
