//! Files with bytes changed or cut are refused or read, never answered with a panic; and verification finds every
//! change of Data.db.

use std::sync::Arc;

use rows::{PartitionStream, ReadContext, ReadMode};
use sstable::verify::{Depth, verify};
use sstable::{Component, Descriptor, NoCache, SSTable};

use crate::fixtures;
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
    for fixture in fixtures::all(&fixtures::VERSIONS) {
        let sstable = fixture.open();
        let verified = verify(&env, &sstable, Depth::Extended).unwrap();
        assert_eq!(verified.partitions, sstable.partition_count());
    }
}

#[test]
fn damage_is_an_error_or_an_answer() {
    let env = env::real::env();
    let mut random = Random::new(5);
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
            for round in 0..12 {
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
