//! Each component of each format missing, empty, replaced by a directory, and cut at every place:
//! docs/formats/sstable-damage.md, line by line.

use std::path::Path;
use std::sync::Arc;

use rows::{PartitionHead, PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadError, ReadMode, Unfiltered};
use sstable::verify::{Depth, verify};
use sstable::{Component, Descriptor, KeyHash, NoCache, SSTable, SSTableStream};

use crate::fixtures::{self, Fixture};

type Content = Vec<(PartitionHead, Vec<Unfiltered>)>;

/// The damage to a component.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Damage {
    Missing,
    Empty,
    Directory,
}

/// The expected outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    /// All is read as before.
    Same,
    /// Opening says which file it is.
    Refused,
    /// Opens; a read that needs the file says which it is.
    ReadFails,
}

use Damage::{Directory, Empty, Missing};
use Outcome::{ReadFails, Refused, Same};

/// The table of the document. Where there is no such component a line is passed over.
const TABLE: [(Component, Damage, Outcome); 33] = [
    (Component::Data, Missing, Refused),
    (Component::Data, Empty, ReadFails),
    (Component::Data, Directory, Refused),
    (Component::Statistics, Missing, Refused),
    (Component::Statistics, Empty, Refused),
    (Component::Statistics, Directory, Refused),
    (Component::CompressionInfo, Missing, Refused),
    (Component::CompressionInfo, Empty, Refused),
    (Component::CompressionInfo, Directory, Refused),
    (Component::Crc, Missing, Same),
    (Component::Crc, Empty, Refused),
    (Component::Crc, Directory, Refused),
    (Component::Filter, Missing, Same),
    (Component::Filter, Empty, Same),
    (Component::Filter, Directory, Refused),
    (Component::Digest, Missing, Same),
    (Component::Digest, Empty, Same),
    (Component::Digest, Directory, Same),
    (Component::Toc, Missing, Same),
    (Component::Toc, Empty, Same),
    (Component::Toc, Directory, Same),
    (Component::Partitions, Missing, Refused),
    (Component::Partitions, Empty, Refused),
    (Component::Partitions, Directory, Refused),
    (Component::Rows, Missing, Refused),
    (Component::Rows, Empty, ReadFails),
    (Component::Rows, Directory, Refused),
    (Component::Index, Missing, Refused),
    (Component::Index, Empty, Refused),
    (Component::Index, Directory, Refused),
    (Component::Summary, Missing, Same),
    (Component::Summary, Empty, Same),
    (Component::Summary, Directory, Refused),
];

fn content(sstable: &SSTable) -> Result<Content, ReadError> {
    rest(sstable.scan_all(&ReadContext::new(ReadMode::Background))?)
}

fn rest(mut stream: SSTableStream) -> Result<Content, ReadError> {
    let mut partitions = Vec::new();
    while let Some(head) = stream.next_partition()? {
        let mut unfiltereds = Vec::new();
        while let Some(unfiltered) = stream.next_unfiltered()? {
            unfiltereds.push(unfiltered);
        }
        partitions.push((head, unfiltereds));
    }
    Ok(partitions)
}

/// Each partition by its key.
fn by_key(sstable: &SSTable, whole: &Content) -> Result<Content, ReadError> {
    let mut partitions = Vec::new();
    for (head, _) in whole {
        if !sstable.may_contain(&head.key, KeyHash::of(&head.key.key)) {
            continue;
        }
        let command = ReadCommand::whole(sstable.table(), PartitionRange::Key(head.key.clone()));
        partitions.extend(rest(sstable.read(&command, &ReadContext::new(ReadMode::Background))?)?);
    }
    Ok(partitions)
}

fn copy(fixture: &Fixture, directory: &Path) -> Descriptor {
    let descriptor = Descriptor { directory: directory.to_owned(), ..fixture.descriptor.clone() };
    for component in Component::ALL.into_iter().filter(|component| fixture.descriptor.path(*component).exists()) {
        std::fs::write(descriptor.path(component), fixture.bytes(component)).unwrap();
    }
    descriptor
}

fn damage(path: &Path, how: Damage) {
    std::fs::remove_file(path).unwrap();
    match how {
        Missing => {}
        Empty => std::fs::write(path, b"").unwrap(),
        Directory => std::fs::create_dir(path).unwrap(),
    }
}

fn open(fixture: &Fixture, descriptor: &Descriptor) -> Result<SSTable, sstable::Error> {
    SSTable::open(&env::real::env(), descriptor.clone(), &fixture.table(), Arc::new(NoCache))
}

/// Compressed, uncompressed, with a row index.
fn tables() -> Vec<Fixture> {
    let mut found = fixtures::all(&fixtures::VERSIONS);
    found.retain(|fixture| {
        matches!(fixture.table_name.as_str(), "dels_desc" | "kv_nocomp" | "ck_nested" | "comp_pk_ck")
    });
    found
}

#[test]
fn each_component_can_be_gone() {
    let env = env::real::env();
    let mut seen = std::collections::BTreeSet::new();
    for fixture in tables() {
        let whole = content(&fixture.open()).unwrap();
        for (component, how, expected) in TABLE {
            if !fixture.descriptor.path(component).exists() || fixture.bytes(component).is_empty() {
                continue;
            }
            let directory = tempfile::tempdir().unwrap();
            let descriptor = copy(&fixture, directory.path());
            let path = descriptor.path(component);
            damage(&path, how);
            let what = format!("{:?} {component:?} {how:?}", fixture.descriptor);
            let named = |error: String| {
                let path = path.display().to_string();
                assert!(
                    error.contains(&path) && (error.contains(" at offset ") || how == Directory),
                    "{what}: {error}"
                );
            };
            match (open(&fixture, &descriptor), expected) {
                (Err(error), Refused) => named(error.to_string()),
                (Ok(sstable), Same) => {
                    assert_eq!(content(&sstable).unwrap(), whole, "{what}");
                    assert_eq!(by_key(&sstable, &whole).unwrap(), whole, "{what}");
                    if how == Missing {
                        let error = verify(&env, &sstable, Depth::Normal).unwrap_err().to_string();
                        assert!(error.contains(component.name()), "{what}: {error}");
                    }
                }
                (Ok(sstable), ReadFails) => {
                    let needs_it = component == Component::Data || by_key(&sstable, &whole).is_err();
                    assert!(needs_it, "{what}");
                    named(content(&sstable).and(by_key(&sstable, &whole)).unwrap_err().to_string());
                }
                (outcome, _) => panic!("{what}: {expected:?} expected, {:?}", outcome.map(|_| "opened")),
            }
            seen.insert((component, format!("{how:?}")));
        }
    }
    assert_eq!(seen.len(), TABLE.len(), "{seen:?}");
}

/// Lengths to which a file is cut: all of a short one, some of a long one, and the ends of both.
fn cuts(length: usize) -> Vec<usize> {
    let step = length.div_ceil(CUTS_MAX).max(1);
    let mut cuts: Vec<usize> = (0..length).step_by(step).collect();
    cuts.extend(length.saturating_sub(CUTS_MAX / 4)..length);
    cuts
}

/// So many places of a file are tried.
const CUTS_MAX: usize = 64;

#[test]
fn cut_components_are_named_or_answer_as_before() {
    for fixture in tables().into_iter().filter(|fixture| fixture.table_name != "kv_nocomp") {
        let whole = content(&fixture.open()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        let descriptor = copy(&fixture, directory.path());
        for component in Component::ALL.into_iter().filter(|component| fixture.descriptor.path(*component).exists()) {
            let bytes = fixture.bytes(component);
            for length in cuts(bytes.len()) {
                std::fs::write(descriptor.path(component), &bytes[..length]).unwrap();
                let what = format!("{} cut to {length} of {}", descriptor.path(component).display(), bytes.len());
                let prefix = directory.path().join(descriptor.prefix()).display().to_string();
                let named = |error: String| {
                    assert!(error.contains(&prefix) && error.contains(" at offset "), "{what}: {error}");
                };
                match open(&fixture, &descriptor) {
                    Err(error) => {
                        let error = error.to_string();
                        assert!(error.contains(component.name()), "{what}: {error}");
                        named(error);
                    }
                    Ok(sstable) => {
                        for answer in [content(&sstable), by_key(&sstable, &whole)] {
                            match answer {
                                Ok(answer) => assert_eq!(answer, whole, "{what}"),
                                Err(error) => named(error.to_string()),
                            }
                        }
                    }
                }
            }
            std::fs::write(descriptor.path(component), &bytes).unwrap();
        }
    }
}

#[test]
fn a_file_that_may_not_be_read_is_named() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = tables().remove(0);
    let directory = tempfile::tempdir().unwrap();
    let descriptor = copy(&fixture, directory.path());
    let path = descriptor.path(Component::Statistics);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o000)).unwrap();
    // the administrator may read everything: nothing can be shown then
    if std::fs::read(&path).is_err() {
        let error = open(&fixture, &descriptor).unwrap_err();
        assert!(matches!(error, sstable::Error::Io { .. }), "{error}");
        assert!(error.to_string().contains(&path.display().to_string()), "{error}");
    }
}
