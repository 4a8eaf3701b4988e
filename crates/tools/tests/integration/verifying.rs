//! `verify`: sound files pass, every damage is found and named.

use sstable::Component;

use crate::fixtures::{self, run};
use crate::golden::VERSIONS;
use crate::writing::{copy, fixture};

#[test]
fn files_of_cassandra_are_sound() {
    for fixture in VERSIONS.into_iter().flat_map(fixtures::all) {
        let ran = run(&["verify", "-e", fixture.data().to_str().unwrap()]);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    }
}

/// One byte of a component is changed, or the component is gone.
#[test]
fn damage_is_named() {
    let like = fixture("wide_ci");
    for component in Component::ALL {
        let (directory, data) = copy(&like);
        let path = directory.path().join(like.descriptor.file_name(component));
        if !path.exists() {
            continue;
        }
        let whole = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let target = directory.path().to_str().unwrap();
        let ran = run(&["verify", "-e", if component == Component::Data { data.to_str().unwrap() } else { target }]);
        // without Digest.crc32 or TOC.txt there is nothing to compare with, and that is told too
        assert_eq!(ran.code, 1, "{component:?} is gone: {}{}", ran.out, ran.err);
        assert!(format!("{}{}", ran.out, ran.err).contains(component.name()), "{component:?}: {}", ran.out);
        for place in 1..8 {
            let mut bytes = whole.clone();
            let at = bytes.len() * place / 8;
            bytes[at] ^= 0x10;
            std::fs::write(&path, &bytes).unwrap();
            let ran = run(&["verify", "-e", target]);
            assert!(ran.code <= 1, "{}", ran.err);
            if matches!(component, Component::Data | Component::Digest | Component::Statistics) {
                assert_eq!(ran.code, 1, "{component:?} at {at}: {}{}", ran.out, ran.err);
            }
        }
    }
}

#[test]
fn every_bad_chunk_is_named() {
    let (_directory, data) = copy(&fixture("cmp_lz4_4k"));
    let mut bytes = std::fs::read(&data).unwrap();
    for at in [5_000, 20_000, 35_000] {
        bytes[at] ^= 1;
    }
    std::fs::write(&data, bytes).unwrap();
    let ran = run(&["verify", data.to_str().unwrap()]);
    assert_eq!(ran.code, 1);
    assert_eq!(ran.out.lines().filter(|line| line.contains("checksum")).count(), 4, "{}", ran.out);
    assert!(ran.out.contains("Data.db is corrupt at offset"), "{}", ran.out);
}
