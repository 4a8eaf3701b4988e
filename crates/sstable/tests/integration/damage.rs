//! Files with bytes changed or cut are refused or read, never answered with a panic; and
//! verification finds every change of Data.db.

use std::sync::Arc;

use rows::{ClusteringPrefix, PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadMode, Slice, Slices};
use sstable::verify::{Depth, verify};
use sstable::{Component, Descriptor, KeyHash, NoCache, SSTable};
use types::DecoratedKey;

use crate::fixtures::{self, Fixture};
use crate::model::Random;

fn read_all(sstable: &SSTable) {
    let Ok(mut stream) = sstable.scan_all(&ReadContext::new(ReadMode::Background)) else { return };
    while let Ok(Some(_)) = stream.next_partition() {
        while let Ok(Some(_)) = stream.next_unfiltered() {}
    }
}

#[test]
fn intact_files_verify() {
    let env = env::real::env();
    for fixture in fixtures::all(&fixtures::READABLE) {
        let sstable = fixture.open();
        let verified = verify(&env, &sstable, Depth::Extended).unwrap();
        assert_eq!(verified.partitions, sstable.partition_count());
    }
}

#[test]
fn damage_is_an_error_or_an_answer() {
    let env = env::real::env();
    let mut random = Random::new(5);
    let rounds = std::env::var("HELENUS_ROUNDS").map_or(4, |text| text.parse().unwrap());
    for fixture in fixtures::small(&fixtures::VERSIONS) {
        let table = fixture.table();
        let directory = tempfile::tempdir().unwrap();
        let descriptor = Descriptor { directory: directory.path().to_owned(), ..fixture.descriptor.clone() };
        let components: Vec<Component> =
            Component::ALL.into_iter().filter(|component| fixture.descriptor.path(*component).exists()).collect();
        for component in &components {
            std::fs::write(descriptor.path(*component), fixture.bytes(*component)).unwrap();
        }
        for component in &components {
            let whole = fixture.bytes(*component);
            if whole.is_empty() {
                continue;
            }
            for round in 0..rounds {
                let mut bytes = whole.clone();
                let at = random.below(bytes.len() as u64) as usize;
                if round % 4 == 0 {
                    bytes.truncate(at);
                } else {
                    bytes[at] ^= 1 << random.below(8);
                }
                std::fs::write(descriptor.path(*component), &bytes).unwrap();
                let opened = SSTable::open(&env, descriptor.clone(), &table, Arc::new(NoCache));
                let Ok(sstable) = opened else { continue };
                read_all(&sstable);
                let verdict = verify(&env, &sstable, Depth::Extended);
                if *component == Component::Data {
                    assert!(verdict.is_err(), "{:?} changed at {at}", fixture.descriptor);
                }
            }
            std::fs::write(descriptor.path(*component), &whole).unwrap();
        }
    }
}

/// All files of a fixture in a directory of their own.
fn copy(fixture: &Fixture, directory: &std::path::Path) -> Descriptor {
    let descriptor = Descriptor { directory: directory.to_owned(), ..fixture.descriptor.clone() };
    for component in Component::ALL.into_iter().filter(|component| fixture.descriptor.path(*component).exists()) {
        std::fs::write(descriptor.path(component), fixture.bytes(component)).unwrap();
    }
    descriptor
}

fn keys(sstable: &SSTable) -> Vec<DecoratedKey> {
    let mut stream = sstable.scan_all(&ReadContext::new(ReadMode::Background)).unwrap();
    std::iter::from_fn(|| stream.next_partition().unwrap().map(|head| head.key)).collect()
}

/// Reads a partition, or slices of it, by its key; gives whether it was there.
fn find(sstable: &SSTable, key: &DecoratedKey, slices: Slices, reversed: bool) -> Result<bool, rows::ReadError> {
    let whole = ReadCommand::whole(sstable.table(), PartitionRange::Key(key.clone()));
    let command = ReadCommand { slices, reversed, ..whole };
    let mut stream = sstable.read(&command, &ReadContext::new(ReadMode::Background))?;
    let found = stream.next_partition()?.is_some();
    while stream.next_unfiltered()?.is_some() {}
    Ok(found)
}

#[test]
fn searches_in_damaged_indexes_end() {
    let env = env::real::env();
    let mut random = Random::new(6);
    for fixture in fixtures::all(&fixtures::VERSIONS) {
        if !matches!(fixture.table_name.as_str(), "wide_ci" | "many_parts2") {
            continue;
        }
        let whole = fixture.open();
        let keys = keys(&whole);
        let mut rows = whole.scan_all(&ReadContext::new(ReadMode::Background)).unwrap();
        rows.next_partition().unwrap();
        let places: Vec<_> =
            std::iter::from_fn(|| rows.next_unfiltered().unwrap()).map(|one| one.values().clone()).collect();
        let directory = tempfile::tempdir().unwrap();
        let descriptor = copy(&fixture, directory.path());
        for component in [Component::Partitions, Component::Rows, Component::Index, Component::Summary] {
            if !fixture.descriptor.path(component).exists() || fixture.bytes(component).is_empty() {
                continue;
            }
            let intact = fixture.bytes(component);
            for round in 0..30 {
                let mut bytes = intact.clone();
                let at = random.below(bytes.len() as u64) as usize;
                match round % 10 {
                    0 => bytes.truncate(at),
                    _ => bytes[at] ^= 1 << random.below(8),
                }
                std::fs::write(descriptor.path(component), &bytes).unwrap();
                let opened = SSTable::open(&env, descriptor.clone(), whole.table(), Arc::new(NoCache));
                let Ok(sstable) = opened else { continue };
                for _ in 0..4 {
                    let key = &keys[random.below(keys.len() as u64) as usize];
                    let mut slices = Slices::all();
                    if let Some(values) = places.get(random.below(places.len() as u64 + 1) as usize) {
                        let start = ClusteringPrefix::start(values.clone(), true);
                        slices = Slices::from(vec![Slice { start, end: ClusteringPrefix::top() }]);
                    }
                    let _ = find(&sstable, key, slices.clone(), false);
                    let _ = find(&sstable, key, slices, true);
                }
            }
            std::fs::write(descriptor.path(component), &intact).unwrap();
        }
    }
}

#[test]
fn a_damaged_summary_hides_nothing() {
    let env = env::real::env();
    let mut random = Random::new(7);
    for fixture in fixtures::all(&["nb", "oa"]).into_iter().filter(|one| one.table_name == "many_parts2") {
        let keys = keys(&fixture.open());
        let directory = tempfile::tempdir().unwrap();
        let descriptor = copy(&fixture, directory.path());
        let path = descriptor.path(Component::Summary);
        let intact = fixture.bytes(Component::Summary);
        for round in 0..40 {
            let mut bytes = intact.clone();
            // behind the head
            let at = 24 + random.below(bytes.len() as u64 - 24) as usize;
            match round {
                0 => bytes.clear(),
                1..4 => bytes.truncate(at),
                _ => bytes[at] ^= 1 << random.below(8),
            }
            std::fs::write(&path, &bytes).unwrap();
            let sstable = SSTable::open(&env, descriptor.clone(), &fixture.table(), Arc::new(NoCache)).unwrap();
            assert_eq!(sstable.partition_count(), keys.len() as u64);
            for key in keys.iter().skip(round).step_by(7) {
                assert!(sstable.may_contain(key, KeyHash::of(&key.key)));
                assert!(find(&sstable, key, Slices::none(), false).unwrap(), "round {round} at {at}");
            }
        }
    }
}

#[test]
fn what_is_missing_is_named_or_done_without() {
    let env = env::real::env();
    for fixture in fixtures::all(&fixtures::VERSIONS) {
        if !matches!(fixture.table_name.as_str(), "kv_text" | "kv_nocomp") {
            continue;
        }
        let table = fixture.table();
        let there = Component::ALL.into_iter().filter(|component| fixture.descriptor.path(*component).exists());
        for component in there {
            let directory = tempfile::tempdir().unwrap();
            let descriptor = copy(&fixture, directory.path());
            std::fs::remove_file(descriptor.path(component)).unwrap();
            let opened = SSTable::open(&env, descriptor, &table, Arc::new(NoCache));
            let needed = matches!(
                component,
                Component::Data
                    | Component::Statistics
                    | Component::CompressionInfo
                    | Component::Index
                    | Component::Partitions
                    | Component::Rows
            );
            match opened {
                Ok(sstable) => {
                    assert!(!needed, "{component:?}");
                    let noted = matches!(component, Component::Summary | Component::Crc);
                    assert_eq!(sstable.notes().len(), usize::from(noted), "{:?}", sstable.notes());
                    assert!(keys(&sstable).iter().all(|key| find(&sstable, key, Slices::all(), false).unwrap()));
                }
                Err(error) => assert!(needed && error.to_string().contains(component.name()), "{error}"),
            }
        }
    }
}
