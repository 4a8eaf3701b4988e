//! Versions before `nb`. The files are those of Cassandra in `nb`, rewritten by the rules of the
//! older versions: Statistics.db without checksums and later fields, CompressionInfo.db without the
//! greatest compressed length, the words of Filter.db turned round.

use std::path::Path;
use std::sync::Arc;

use rows::{ReadContext, ReadMode, Slice};
use sstable::verify::{Depth, verify};
use sstable::{Component, Descriptor, NoCache, SSTable, Version};

use crate::dump;
use crate::fixtures::{self, Fixture};

const STATS: u32 = 2;
const POSITION_LEN: usize = 12;

fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(*bytes[at..].first_chunk().unwrap())
}

/// The components of a checksummed file, with those of STATS that a version does not have taken
/// out.
fn statistics(fixture: &Fixture, version: &str) -> Vec<u8> {
    let file = fixture.bytes(Component::Statistics);
    let count = be32(&file, 0) as usize;
    let entry = |index: usize| (be32(&file, 8 + index * 8), be32(&file, 12 + index * 8) as usize);
    let mut out = (count as u32).to_be_bytes().to_vec();
    let mut bodies = Vec::new();
    for index in 0..count {
        let (kind, start) = entry(index);
        let end = if index + 1 < count { entry(index + 1).1 } else { file.len() };
        let mut body = file[start..end - 4].to_vec();
        if kind == STATS {
            strip(&mut body, fixture.statistics().stats.commit_log_intervals.len(), version);
        }
        out.extend_from_slice(&kind.to_be_bytes());
        out.extend_from_slice(&((4 + count * 8 + bodies.len()) as u32).to_be_bytes());
        bodies.extend_from_slice(&body);
    }
    out.extend_from_slice(&bodies);
    out
}

/// Behind the cells and rows: lower position, intervals, pending repair, transient, host.
fn strip(body: &mut Vec<u8>, intervals: usize, version: &str) {
    let host_at = body.len() - 17;
    assert_eq!(body[host_at - 2..=host_at], [0, 0, 1], "no session, not transient, a host");
    if version < "me" {
        body.truncate(host_at);
    }
    body.drain(host_at - 2..host_at);
    let intervals_at = host_at - 2 - 4 - intervals * 2 * POSITION_LEN;
    if version < "mc" {
        body.truncate(intervals_at);
    }
    if version < "mb" {
        body.truncate(intervals_at - POSITION_LEN);
    }
}

/// Bytes of CompressionInfo.db before the chunk length.
fn options_len(file: &[u8]) -> usize {
    let utf = |at: usize| at + 2 + usize::from(u16::from_be_bytes(*file[at..].first_chunk().unwrap()));
    let count_at = utf(0);
    (0..be32(file, count_at) * 2).fold(count_at + 4, |at, _| utf(at))
}

/// Writes the set as `version`; None: it has what the version has no form for.
fn downgrade(fixture: &Fixture, version: &str, directory: &Path) -> Option<Descriptor> {
    let descriptor = Descriptor::new(directory, Version::from_name(version).unwrap(), fixture.descriptor.id);
    for component in Component::ALL.into_iter().filter(|component| fixture.descriptor.path(*component).exists()) {
        let mut bytes = fixture.bytes(component);
        match component {
            Component::Statistics => bytes = statistics(fixture, version),
            Component::Filter => bytes[8..].chunks_exact_mut(8).for_each(<[u8]>::reverse),
            Component::CompressionInfo => {
                let at = options_len(&bytes) + 4;
                if be32(&bytes, at) != i32::MAX as u32 {
                    return None;
                }
                bytes.drain(at..at + 4);
            }
            _ => {}
        }
        std::fs::write(descriptor.path(component), bytes).unwrap();
    }
    Some(descriptor)
}

#[test]
fn older_versions_are_read() {
    let env = env::real::env();
    let mut count = 0;
    for fixture in fixtures::small(&["nb"]) {
        // null values leave bytes behind the statistics
        if fixture.table_name == "cs_dense2" {
            continue;
        }
        let golden = fixture.golden_lines();
        for version in ["ma", "mb", "mc", "md", "me"] {
            let directory = tempfile::tempdir().unwrap();
            let Some(descriptor) = downgrade(&fixture, version, directory.path()) else { continue };
            let sstable = SSTable::open(&env, descriptor, &fixture.table(), Arc::new(NoCache)).unwrap();
            let (now, then) = (fixture.statistics().stats, sstable.statistics().stats.clone());
            // from md on nothing of what was read is left out
            if version >= "md" {
                let file = std::fs::read(sstable.descriptor().path(Component::Statistics)).unwrap();
                assert!(sstable.statistics().write(sstable.descriptor().version) == file);
            }
            assert_eq!(then.originating_host.is_some(), version == "me");
            assert_eq!(then.covered, if version < "md" { Slice::all() } else { now.covered.clone() });
            assert_eq!((then.total_rows, &then.tombstones), (now.total_rows, &now.tombstones));
            if version > "ma" {
                assert_eq!(then.commit_log_intervals, now.commit_log_intervals);
            }
            verify(&env, &sstable, Depth::Extended).unwrap();
            let mut stream = sstable.scan_all(&ReadContext::new(ReadMode::Background)).unwrap();
            assert_eq!(dump::lines(sstable.table(), &mut stream), golden, "{:?} as {version}", fixture.descriptor);
            count += 1;
        }
    }
    assert!(count > 200, "{count} sets");
}
