//! The files of Cassandra: `testdata/fixtures` of the repository, or a folder of the same layout
//! that HELENUS_FIXTURES names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use schema::TableMetadata;
use sstable::{Component, Descriptor, NoCache, SSTable, Statistics};

/// An SSTable of Cassandra with the name of its table.
pub struct Fixture {
    pub table_name: String,
    pub descriptor: Descriptor,
}

/// The versions that the everyday tests read.
pub const VERSIONS: [&str; 3] = ["nb", "oa", "da"];

/// All that are read; a folder that HELENUS_FIXTURES names may have them.
pub const READABLE: [&str; 9] = ["ma", "mb", "mc", "md", "me", "na", "nb", "oa", "da"];

/// All SSTables of these versions. Those of legacy indexes have another partitioner and are left
/// out.
pub fn all(versions: &[&str]) -> Vec<Fixture> {
    in_directories(versions, "view_", true)
}

/// The SSTables of legacy indexes.
pub fn indexes(versions: &[&str]) -> Vec<Fixture> {
    in_directories(versions, ".idx_", false)
}

fn in_directories(versions: &[&str], inner_prefix: &str, with_tables: bool) -> Vec<Fixture> {
    let root = root();
    let mut found = Vec::new();
    for table in sorted_entries(&root).into_iter().filter(|path| path.is_dir()) {
        let name = table.file_name().unwrap().to_string_lossy().into_owned();
        for version in versions {
            let directory = table.join(version);
            if directory.is_dir() {
                if with_tables {
                    collect(&directory, &name, &mut found);
                }
                for inner in sorted_entries(&directory).into_iter().filter(|path| path.is_dir()) {
                    if inner.file_name().unwrap().to_string_lossy().starts_with(inner_prefix) {
                        collect(&inner, &name, &mut found);
                    }
                }
            }
        }
    }
    assert!(!found.is_empty(), "no fixtures in {}", root.display());
    found
}

/// The small ones: what a test that is slow, or done many times, begins with.
pub fn small(versions: &[&str]) -> Vec<Fixture> {
    let mut found = all(versions);
    found.retain(|fixture| fixture.bytes(Component::Data).len() < SMALL_BYTES_MAX);
    found
}

/// Data.db of a small fixture is shorter.
const SMALL_BYTES_MAX: usize = 100_000;

/// The folder with a folder for each table; HELENUS_FIXTURES names another.
pub fn root() -> PathBuf {
    match std::env::var_os("HELENUS_FIXTURES") {
        Some(root) => PathBuf::from(root),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fixtures"),
    }
}

/// A directory for what a test writes; kept, under a name, in the one that HELENUS_KEEP names (to
/// show it to Cassandra's tools).
pub fn output(name: &str) -> tempfile::TempDir {
    let Some(root) = std::env::var_os("HELENUS_KEEP") else { return tempfile::tempdir().unwrap() };
    std::fs::create_dir_all(&root).unwrap();
    let mut directory = tempfile::Builder::new().prefix(&format!("{name}-")).tempdir_in(root).unwrap();
    directory.disable_cleanup(true);
    directory
}

fn collect(directory: &Path, table_name: &str, found: &mut Vec<Fixture>) {
    for path in sorted_entries(directory) {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if let Some((descriptor, Some(Component::Data))) = Descriptor::parse(directory, &name) {
            found.push(Fixture { table_name: table_name.to_owned(), descriptor });
        }
    }
}

fn sorted_entries(directory: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    entries
}

impl Fixture {
    pub fn bytes(&self, component: Component) -> Vec<u8> {
        std::fs::read(self.descriptor.path(component)).unwrap()
    }

    pub fn statistics(&self) -> Statistics {
        Statistics::read(&self.bytes(Component::Statistics).into(), self.descriptor.version).unwrap()
    }

    pub fn table(&self) -> Arc<TableMetadata> {
        Arc::new(self.statistics().header.table("fx", &self.table_name).unwrap())
    }

    pub fn open(&self) -> SSTable {
        SSTable::open(&env::real::env(), self.descriptor.clone(), &self.table(), Arc::new(NoCache)).unwrap()
    }

    /// Whether Cassandra's offline reader could read it.
    pub fn has_golden_lines(&self) -> bool {
        self.descriptor.directory.join(format!("{}-cells.jsonl.gz", self.descriptor.prefix())).exists()
    }

    /// The content according to Cassandra.
    pub fn golden_lines(&self) -> Vec<serde_json::Value> {
        let path = self.descriptor.directory.join(format!("{}-cells.jsonl.gz", self.descriptor.prefix()));
        let gz = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        captures::lines(&gz)
    }
}
