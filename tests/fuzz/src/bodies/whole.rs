//! A whole SSTable of which one component is damaged: opened, read forwards, backwards and by key,
//! verified.
//!
//! Input: `u8` which set of files, `u8` which of its components, `u8` flags, then the component's
//! bytes. Flags: 1 the damage is made to fit its checksums (Statistics.db, CRC.db).
//!
//! No panic, no end that does not come, and no wrong row that a checksum could have caught: where
//! the damaged component has one, each answer is an error or that of the undamaged files.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use rows::command::{ColumnFilter, DataLimits};
use rows::{
    PartitionHead, PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadError, ReadMode, Slice, Slices,
    Unfiltered,
};
use schema::TableMetadata;
use sstable::verify::{Depth, verify};
use sstable::{Component, KeyHash, SSTable, Version};
use types::DecoratedKey;

use crate::fixtures::{FileSet, content, put};

/// The damage is sealed with fresh checksums.
const SEALED: u8 = 1;
/// Rows of damaged files that are read before it is enough. Honest ones have fewer.
const UNFILTEREDS_MAX: usize = 20_000;

type Partition = (PartitionHead, Vec<Unfiltered>);
/// The partitions that a read gave; its error as text.
type Answer = Result<Vec<Partition>, String>;

/// A set of files with the answers that are right.
pub struct Case {
    /// The files.
    pub set: FileSet,
    keys: Vec<DecoratedKey>,
    slices: Vec<Slices>,
    answers: Vec<Answer>,
}

/// The sets of files.
pub static CASES: LazyLock<Vec<Case>> = LazyLock::new(|| {
    let mut sets = Vec::new();
    for table in ["dels_desc", "ttls", "st_basic", "cs_static", "comp_pk_ck", "ck_nested"] {
        for version in crate::fixtures::VERSIONS {
            sets.push(FileSet::of_cassandra(table, version));
        }
    }
    for (table, block, version) in
        [("ck_mixed", 256, Version::DA), ("dels_desc", 64, Version::DA), ("ck_text", 64, Version::NB)]
    {
        sets.push(FileSet::of_cassandra(table, "da").written(block, version));
    }
    sets.into_iter().map(Case::new).collect()
});

impl Case {
    fn new(set: FileSet) -> Self {
        let sim = set.disk();
        let sstable = set.open(&sim).expect("a whole SSTable");
        verify(&sim.env(), &sstable, Depth::Extended).expect("a sound SSTable");
        let partitions = content(&sstable);
        let mut keys: Vec<_> = partitions.iter().map(|(head, _)| head.key.clone()).collect();
        keys.truncate(4);
        keys.push(DecoratedKey::new(Bytes::from_static(b"\0\x01absent\0")));
        let slices = slices(&set.table, &partitions);
        let mut case = Self { set, keys, slices, answers: Vec::new() };
        case.answers = case.ask(&sstable);
        assert!(case.answers.iter().all(Result::is_ok));
        case
    }

    /// Every read, always in the same order.
    fn ask(&self, sstable: &SSTable) -> Vec<Answer> {
        let context = ReadContext::new(ReadMode::Background);
        let mut answers = vec![collect(sstable.scan_all(&context))];
        for key in &self.keys {
            for slices in &self.slices {
                for reversed in [false, true] {
                    answers.push(self.read(sstable, key, slices, reversed));
                }
            }
        }
        answers
    }

    fn read(&self, sstable: &SSTable, key: &DecoratedKey, slices: &Slices, reversed: bool) -> Answer {
        if !sstable.may_contain(key, KeyHash::of(&key.key)) {
            return Ok(Vec::new());
        }
        let command = ReadCommand {
            table: Arc::clone(&self.set.table),
            range: PartitionRange::Key(key.clone()),
            slices: slices.clone(),
            reversed,
            columns: ColumnFilter::All,
            now: 0,
            limits: DataLimits::NONE,
            indexes: Vec::new(),
        };
        if !sstable.may_match(&command) {
            return Ok(Vec::new());
        }
        collect(sstable.read(&command, &ReadContext::new(ReadMode::Background)))
    }
}

/// Everything; around a row in the middle.
fn slices(table: &TableMetadata, partitions: &[Partition]) -> Vec<Slices> {
    let mut slices = vec![Slices::all()];
    let middle = partitions.iter().filter_map(|(_, unfiltereds)| unfiltereds.get(unfiltereds.len() / 2)).next();
    if let Some(middle) = middle.filter(|_| !table.clustering.is_empty()) {
        let one = Slice::of_prefix(middle.values().clone());
        let rest = Slice { start: one.start.clone(), end: Slice::all().end };
        slices.extend([Slices::from(vec![one]), Slices::from(vec![rest])]);
    }
    slices
}

fn collect<S: PartitionStream>(stream: Result<S, ReadError>) -> Answer {
    let mut partitions = Vec::new();
    let mut count = 0;
    let read = || -> Result<(), ReadError> {
        let mut stream = stream?;
        while let Some(head) = stream.next_partition()? {
            let mut unfiltereds = Vec::new();
            while let Some(unfiltered) = stream.next_unfiltered()? {
                unfiltereds.push(unfiltered);
                count += 1;
                assert!(count < UNFILTEREDS_MAX, "a read that does not end");
            }
            partitions.push((head, unfiltereds));
            assert!(partitions.len() < UNFILTEREDS_MAX, "a scan that does not end");
        }
        Ok(())
    };
    match read() {
        Ok(()) => Ok(partitions),
        Err(error) => Err(error.to_string()),
    }
}

/// The body.
pub fn sstable(data: &[u8]) {
    let Some((&[which, component, flags], bytes)) = data.split_first_chunk::<3>() else { return };
    let case = &CASES[usize::from(which) % CASES.len()];
    let component = case.set.files[usize::from(component) % case.set.files.len()].0;
    let mut bytes = bytes.to_vec();
    if flags & SEALED != 0 {
        seal(case, component, &mut bytes);
    }
    let sim = case.set.disk();
    let path = case.set.descriptor.path(component);
    put(&sim, &path, &bytes);
    let Ok(sstable) = case.set.open(&sim) else { return };
    let answers = case.ask(&sstable);
    if is_checked(component) && flags & SEALED == 0 {
        for (number, (found, right)) in answers.iter().zip(&case.answers).enumerate() {
            assert!(found.is_err() || found == right, "answer {number} is wrong after damage to {}", path.display());
        }
    }
    let verdict = verify(&sim.env(), &sstable, Depth::Extended);
    let whole = case.set.bytes(component);
    if component == Component::Data && bytes != whole {
        assert!(verdict.is_err(), "damage to {} verifies", path.display());
    }
}

fn seal(case: &Case, component: Component, bytes: &mut [u8]) {
    match component {
        Component::Statistics => sstable::fuzzing::seal_statistics(bytes),
        Component::Crc => sstable::fuzzing::seal_crc(bytes, case.set.bytes(Component::Data)),
        _ => {}
    }
}

/// A checksum tells of damage to it; or no read depends on it.
fn is_checked(component: Component) -> bool {
    use Component::{CompressionInfo, Crc, Data, Digest, Statistics, Toc};
    matches!(component, Data | Statistics | Crc | CompressionInfo | Digest | Toc)
}
