//! Files of Cassandra as seeds.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use env::sim::{DATA, Sim};
use rows::{PartitionHead, PartitionStream, ReadContext, ReadMode, Unfiltered};
use schema::TableMetadata;
use sstable::{Component, Descriptor, NoCache, SSTable, SSTableId, SSTableWriter, Statistics, Version, WriterOptions};

/// The versions that are read: seeds are taken from the files of each.
pub const VERSIONS: [&str; 3] = ["da", "oa", "nb"];

/// The folder with a folder for each table.
pub fn root() -> PathBuf {
    crate::root().join("testdata/fixtures")
}

/// A file of the fixtures, unpacked if its name says so.
///
/// # Panics
/// When it is not there.
pub fn file(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    if path.extension().is_none_or(|ending| ending != "gz") {
        return bytes;
    }
    let mut unpacked = Vec::new();
    flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut unpacked).expect("a gzip file");
    unpacked
}

/// The first SSTable of a table in a version.
///
/// # Panics
/// When there is none.
pub fn descriptor(table: &str, version: &str) -> Descriptor {
    let directory = root().join(table).join(version);
    let entries = std::fs::read_dir(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let found = names.iter().find_map(|name| match Descriptor::parse(&directory, name)? {
        (descriptor, Some(Component::Data)) => Some(descriptor),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no SSTable in {}", directory.display()))
}

/// The bytes of a component; None: there is none.
pub fn component(descriptor: &Descriptor, component: Component) -> Option<Vec<u8>> {
    std::fs::read(descriptor.path(component)).ok()
}

/// A component in each version, of these tables.
pub fn components(tables: &[&str], which: Component) -> Vec<Vec<u8>> {
    let each = tables.iter().flat_map(|table| VERSIONS.map(|version| descriptor(table, version)));
    each.filter_map(|descriptor| component(&descriptor, which)).collect()
}

/// The files of an SSTable, in memory.
#[derive(Clone)]
pub struct FileSet {
    /// Version and name; the directory is that of the simulated disk.
    pub descriptor: Descriptor,
    /// As the files know it.
    pub table: Arc<TableMetadata>,
    /// Content of each component.
    pub files: Vec<(Component, Vec<u8>)>,
}

impl FileSet {
    /// An SSTable of Cassandra.
    ///
    /// # Panics
    /// When it is not there or cannot be read.
    pub fn of_cassandra(table: &str, version: &str) -> Self {
        let on_disk = descriptor(table, version);
        let files: Vec<_> =
            Component::ALL.into_iter().filter_map(|which| Some((which, component(&on_disk, which)?))).collect();
        Self::new(Descriptor { directory: DATA.into(), ..on_disk }, files)
    }

    fn new(descriptor: Descriptor, files: Vec<(Component, Vec<u8>)>) -> Self {
        let statistics = files.iter().find(|(which, _)| *which == Component::Statistics);
        let statistics = statistics.expect("statistics").1.clone();
        let statistics = Statistics::read(&statistics.into(), descriptor.version).expect("statistics that are whole");
        let table = Arc::new(statistics.header.table("ks", "t").expect("a table"));
        Self { descriptor, table, files }
    }

    /// Its content written by us, in small blocks, without compression.
    ///
    /// # Panics
    /// When it cannot be.
    pub fn written(&self, row_index_block: usize, version: Version) -> Self {
        let sim = self.disk();
        let original = self.open(&sim).expect("a whole SSTable");
        let options = WriterOptions {
            row_index_block: Some(row_index_block),
            compression: None,
            filter_chance: 0.01,
            estimated_keys: 8,
            ..WriterOptions::for_table(&self.table, 8).expect("options")
        };
        let descriptor = Descriptor::new(Path::new(DATA), version, SSTableId::Sequence(77));
        let (table, header) = (Arc::clone(&self.table), original.header().clone());
        let mut writer = SSTableWriter::new(&sim.env(), descriptor, table, options, header).expect("a writer");
        for (head, unfiltereds) in content(&original) {
            writer.start_partition(&head.key, head.deletion);
            head.static_row.iter().for_each(|row| writer.static_row(row));
            unfiltereds.iter().for_each(|unfiltered| writer.append(unfiltered).expect("appended"));
            writer.end_partition().expect("ended");
        }
        let descriptor = writer.finish().expect("finished").descriptor;
        let read = |which| sim.env().disk.read_all(&descriptor.path(which), 1 << 24).ok();
        let files = Component::ALL.into_iter().filter_map(|which| Some((which, read(which)?))).collect();
        Self::new(descriptor, files)
    }

    /// A machine with the files on its disk.
    ///
    /// # Panics
    /// When the disk does not take them.
    pub fn disk(&self) -> Sim {
        let sim = Sim::new(1);
        for (which, bytes) in &self.files {
            put(&sim, &self.descriptor.path(*which), bytes);
        }
        sim
    }

    /// Opens it there.
    pub fn open(&self, sim: &Sim) -> Result<SSTable, sstable::Error> {
        SSTable::open(&sim.env(), self.descriptor.clone(), &self.table, Arc::new(NoCache))
    }

    /// The bytes of a component; empty when there is none.
    pub fn bytes(&self, which: Component) -> &[u8] {
        self.files.iter().find(|(component, _)| *component == which).map_or(&[], |(_, bytes)| bytes)
    }
}

/// Writes a file of a simulated disk.
///
/// # Panics
/// When the disk does not take it.
pub fn put(sim: &Sim, path: &Path, bytes: &[u8]) {
    let written = sim.env().disk.create(path).and_then(|mut file| file.write_all(bytes));
    written.expect("the simulated disk takes a file");
}

/// All partitions of a whole SSTable.
///
/// # Panics
/// When it is not whole.
pub fn content(sstable: &SSTable) -> Vec<(PartitionHead, Vec<Unfiltered>)> {
    let mut stream = sstable.scan_all(&ReadContext::new(ReadMode::Background)).expect("a scan");
    let mut partitions = Vec::new();
    while let Some(head) = stream.next_partition().expect("a partition") {
        let mut unfiltereds = Vec::new();
        while let Some(unfiltered) = stream.next_unfiltered().expect("an unfiltered") {
            unfiltereds.push(unfiltered);
        }
        partitions.push((head, unfiltereds));
    }
    partitions
}
