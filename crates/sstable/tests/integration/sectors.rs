//! Index components on a disk with sectors that cannot be read, and on one that would have to be
//! waited for: an error that names component and offset, or `WouldBlock`, and never more than the
//! read that met it.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use env::sim::{DATA, EIO, Fault, Op, Sim};
use rows::{PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadError, ReadMode};
use sstable::{Component, Descriptor, FileCache, NoCache, SSTable};
use types::DecoratedKey;

use crate::fixtures::{self, Fixture, VERSIONS};

/// Keeps every chunk and page.
#[derive(Default)]
struct KeepsAll(Mutex<HashMap<(u64, u64), Bytes>>);

impl FileCache for KeepsAll {
    fn chunk(&self, file: u64, chunk: u64) -> Option<Bytes> {
        self.0.lock().unwrap().get(&(file, chunk)).cloned()
    }

    fn chunk_for_scan(&self, file: u64, chunk: u64) -> Option<Bytes> {
        self.chunk(file, chunk)
    }

    fn insert_chunk(&self, file: u64, chunk: u64, bytes: &Bytes) {
        self.0.lock().unwrap().insert((file, chunk), bytes.clone());
    }

    fn caches_scans_of(&self, _length: u64) -> bool {
        true
    }
}

/// The fixture's files on a simulated disk.
fn on(sim: &Sim, fixture: &Fixture, cache: Arc<dyn FileCache>) -> SSTable {
    let env = sim.env();
    let descriptor = Descriptor { directory: Path::new(DATA).to_owned(), ..fixture.descriptor.clone() };
    for component in Component::ALL.into_iter().filter(|component| fixture.descriptor.path(*component).exists()) {
        let mut file = env.disk.create(&descriptor.path(component)).unwrap();
        file.write_all(&fixture.bytes(component)).unwrap();
    }
    SSTable::open(&env, descriptor, &fixture.table(), cache).unwrap()
}

/// Keys of a fixture that are read, at most.
const KEYS: usize = 50;

fn keys(sstable: &SSTable) -> Vec<DecoratedKey> {
    let mut stream = sstable.scan_all(&ReadContext::new(ReadMode::Background)).unwrap();
    let all: Vec<_> = std::iter::from_fn(|| stream.next_partition().unwrap().map(|head| head.key)).collect();
    let step = all.len() / KEYS + 1;
    all.into_iter().step_by(step).collect()
}

/// The number of unfiltereds of a partition, read by its key.
fn read(sstable: &SSTable, key: &DecoratedKey, mode: ReadMode) -> Result<usize, ReadError> {
    let command = ReadCommand::whole(sstable.table(), PartitionRange::Key(key.clone()));
    let mut stream = sstable.read(&command, &ReadContext::new(mode))?;
    let mut count = 0;
    while stream.next_partition()?.is_some() {
        while stream.next_unfiltered()?.is_some() {
            count += 1;
        }
    }
    Ok(count)
}

/// With row indexes, and with more partitions than a page of the index has room for.
fn some() -> Vec<Fixture> {
    let mut found = fixtures::all(&VERSIONS);
    found.retain(|fixture| ["wide", "blobs", "many_parts"].iter().any(|name| fixture.table_name.contains(name)));
    assert!(found.len() >= VERSIONS.len());
    found
}

#[test]
fn a_sector_of_an_index_that_cannot_be_read_is_an_error_with_its_place() {
    let mut struck = Vec::new();
    for fixture in some() {
        let sim = Sim::new(1);
        let sstable = on(&sim, &fixture, Arc::new(NoCache));
        let keys = keys(&sstable);
        for component in [Component::Partitions, Component::Rows, Component::Index] {
            let sound: Vec<_> = keys.iter().map(|key| read(&sstable, key, ReadMode::Background).unwrap()).collect();
            let name = component.name();
            sim.disk().inject(Fault { errno: EIO, times: u64::MAX, ..Fault::next(Op::Read, name) });
            for (key, sound) in keys.iter().zip(&sound) {
                match read(&sstable, key, ReadMode::Background) {
                    // not every partition is in every component
                    Ok(count) => assert_eq!(count, *sound),
                    Err(ReadError::Io { path, message }) => {
                        assert!(path.to_string_lossy().ends_with(name), "{name}: {}", path.display());
                        assert!(message.starts_with("offset "), "{message}");
                        struck.push(component);
                    }
                    Err(other) => panic!("{name} of {:?}: {other}", fixture.descriptor),
                }
            }
            sim.disk().heal();
        }
        assert!(keys.iter().all(|key| read(&sstable, key, ReadMode::Background).is_ok()), "it is well again");
    }
    for component in [Component::Partitions, Component::Rows, Component::Index] {
        assert!(struck.contains(&component), "no read met a bad sector of {}", component.name());
    }
}

#[test]
fn a_page_of_an_index_that_is_not_in_memory_is_not_waited_for() {
    for fixture in some() {
        let sim = Sim::new(1);
        let sstable = on(&sim, &fixture, Arc::new(KeepsAll::default()));
        let keys = keys(&sstable);
        sim.disk().set_cold_percent(100);
        for key in &keys {
            let before = sim.disk().count(Op::Read);
            let cold = read(&sstable, key, ReadMode::Inline);
            assert_eq!(sim.disk().count(Op::Read), before, "an inline read waits for no disk");
            let there = read(&sstable, key, ReadMode::Background).unwrap();
            if !matches!(cold, Err(ReadError::WouldBlock)) {
                assert_eq!(cold.unwrap(), there);
            }
            let before = sim.disk().count(Op::Read);
            assert_eq!(read(&sstable, key, ReadMode::Inline).unwrap(), there, "what was read is kept");
            assert_eq!(sim.disk().count(Op::Read), before);
        }
    }
}
