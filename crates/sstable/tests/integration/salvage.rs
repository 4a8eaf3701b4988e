//! A salvage of damaged files gives the rows that a twin, which knows where everything stands,
//! calls undamaged.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use rows::codec::{EncodingStats, Header};
use rows::{
    Cell, ClusteringValues, ColumnData, DeletionTime, PartitionHead, PartitionStream, ReadContext, ReadMode, Row,
    Unfiltered,
};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use sstable::salvage::{Lost, SalvageReport, SalvageStream};
use sstable::{Component, Descriptor, SSTableId, SSTableWriter, Version, WriterOptions};
use types::{CqlType, DecoratedKey};

use crate::fixtures::{self, Fixture};
use crate::model::Random;

const VERSIONS: [&str; 3] = ["da", "oa", "nb"];

/// A thing of the intact file and where it stands in the uncompressed data.
#[derive(Clone, Debug)]
struct Placed<T> {
    from: u64,
    to: u64,
    what: T,
}

/// A partition of the intact file.
struct Twin {
    head: Placed<PartitionHead>,
    rows: Vec<Placed<Unfiltered>>,
}

impl Twin {
    fn end(&self) -> u64 {
        self.rows.last().map_or(self.head.to, |row| row.to) + 1
    }
}

/// A copy of a fixture's files.
struct Copy {
    _directory: tempfile::TempDir,
    descriptor: Descriptor,
}

impl Copy {
    fn of(fixture: &Fixture) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let descriptor = Descriptor { directory: directory.path().to_owned(), ..fixture.descriptor.clone() };
        for component in Component::ALL {
            if fixture.descriptor.path(component).exists() {
                std::fs::copy(fixture.descriptor.path(component), descriptor.path(component)).unwrap();
            }
        }
        Self { _directory: directory, descriptor }
    }

    fn change(&self, component: Component, change: impl FnOnce(&mut Vec<u8>)) {
        let path = self.descriptor.path(component);
        let mut bytes = std::fs::read(&path).unwrap();
        change(&mut bytes);
        std::fs::write(&path, bytes).unwrap();
    }

    fn remove(&self, component: Component) {
        let path = self.descriptor.path(component);
        if path.exists() {
            std::fs::remove_file(path).unwrap();
        }
    }

    fn salvage(&self) -> SalvageStream {
        SalvageStream::open(&env::real::env(), &self.descriptor, None).unwrap()
    }
}

/// All of an intact file with places, by way of the salvage itself (that it equals a plain read is
/// a test of its own).
fn twins(stream: &mut SalvageStream) -> Vec<Twin> {
    let mut twins = Vec::new();
    let mut from = 0;
    while let Some(head) = stream.next_partition().unwrap() {
        let mut twin = Twin { head: Placed { from, to: 0, what: head }, rows: Vec::new() };
        let mut at = None;
        while let Some(unfiltered) = stream.next_unfiltered().unwrap() {
            twin.rows.push(Placed { from: at.unwrap_or(0), to: stream.position(), what: unfiltered });
            at = Some(stream.position());
        }
        from = stream.position();
        twins.push(twin);
    }
    twins
}

/// All of an intact file with exact places, from a plain read.
fn placed(fixture: &Fixture) -> Vec<Twin> {
    let sstable = fixture.open();
    let mut stream = sstable.scan_all(&ReadContext::new(ReadMode::Background)).unwrap();
    let mut twins = Vec::new();
    let mut from = 0;
    while let Some(head) = stream.next_partition().unwrap() {
        let mut at = stream.position();
        let mut twin = Twin { head: Placed { from, to: at, what: head }, rows: Vec::new() };
        while let Some(unfiltered) = stream.next_unfiltered().unwrap() {
            twin.rows.push(Placed { from: at, to: stream.position(), what: unfiltered });
            at = stream.position();
        }
        from = twin.end();
        twins.push(twin);
    }
    twins
}

type Given = BTreeMap<Vec<u8>, (PartitionHead, Vec<Unfiltered>)>;

fn give(stream: &mut SalvageStream) -> Given {
    let mut given = Given::new();
    loop {
        while let Some(head) = stream.next_partition().unwrap() {
            let mut rows = Vec::new();
            while let Some(unfiltered) = stream.next_unfiltered().unwrap() {
                rows.push(unfiltered);
            }
            assert!(given.insert(head.key.key.to_vec(), (head, rows)).is_none(), "a partition twice");
        }
        if !stream.next_pass() {
            return given;
        }
    }
}

fn touches(report: &SalvageReport, from: u64, to: u64) -> bool {
    report.lost.iter().any(|lost| lost.from < to && from < lost.to)
}

/// The rows that were given and those that the report calls lost are all there were; nothing is
/// given that was not there.
fn check(twins: &[Twin], given: &Given, report: &SalvageReport, context: &str) {
    let mut found = 0;
    for twin in twins {
        let (head, key) = (&twin.head, twin.head.what.key.key.to_vec());
        let Some((given_head, rows)) = given.get(&key) else {
            assert!(touches(report, head.from, twin.end()), "{context}: {key:02x?} is neither given nor lost");
            continue;
        };
        found += 1;
        assert_eq!(*given_head, head.what, "{context}");
        // both are in the order of the partition; markers may be cut, rows not
        let mut given_rows = rows.iter().filter(|row| matches!(row, Unfiltered::Row(_))).peekable();
        for row in twin.rows.iter().filter(|row| matches!(row.what, Unfiltered::Row(_))) {
            let is_given = given_rows.next_if(|given| **given == row.what).is_some();
            let is_lost = touches(report, row.from, row.to);
            assert_ne!(is_given, is_lost, "{context}: {key:02x?} {}..{}", row.from, row.to);
        }
        assert!(given_rows.next().is_none(), "{context}: a wrong row");
        if !touches(report, head.from, twin.end()) {
            assert!(rows.iter().eq(twin.rows.iter().map(|row| &row.what)), "{context}: {key:02x?} is not whole");
        }
        check_markers(rows, context);
    }
    assert_eq!(found, given.len(), "{context}: a partition that was not there");
}

fn behind(length: u64) -> Lost {
    Lost { from: length, to: u64::MAX, keys: Vec::new(), why: String::new() }
}

/// Every range deletion that is opened is closed.
fn check_markers(rows: &[Unfiltered], context: &str) {
    let mut open = None;
    for row in rows {
        if let Unfiltered::Marker(marker) = row {
            assert_eq!(marker.close, open, "{context}");
            open = marker.open;
        }
    }
    assert_eq!(open, None, "{context}: a range deletion without end");
}

#[test]
fn intact_files_are_given_whole() {
    for fixture in fixtures::all(&VERSIONS) {
        let copy = Copy::of(&fixture);
        let mut stream = copy.salvage();
        let first = give(&mut stream);
        assert!(stream.report().is_whole(), "{:?}: {:?}", fixture.descriptor, stream.report());
        assert_eq!(stream.position(), stream.data().length(), "{:?}", fixture.descriptor);
        for component in [Component::Partitions, Component::Rows, Component::Index] {
            copy.remove(component);
        }
        let mut stream = copy.salvage();
        assert!(give(&mut stream) == first, "{:?}", fixture.descriptor);
        assert_eq!(stream.report().bytes_lost, 0);
    }
}

#[test]
fn what_is_given_equals_a_plain_read() {
    for fixture in fixtures::all(&["da"]) {
        let salvaged = twins(&mut Copy::of(&fixture).salvage());
        let plain = placed(&fixture);
        assert_eq!(salvaged.len(), plain.len());
        for (salvaged, plain) in salvaged.iter().zip(&plain) {
            assert_eq!(salvaged.head.what, plain.head.what, "{:?}", fixture.descriptor);
            assert!(salvaged.rows.iter().map(|row| &row.what).eq(plain.rows.iter().map(|row| &row.what)));
        }
    }
}

/// Bytes of Data.db are changed; with the index, and without.
#[test]
fn damaged_chunks_are_passed_over() {
    let env = env::real::env();
    let mut random = Random::new(11);
    let mut cut = 0;
    for fixture in fixtures::all(&["da"]) {
        let twins = placed(&fixture);
        let is_small = fixture.bytes(Component::Data).len() < 100_000;
        for round in 0..if is_small { 6 } else { 2 } {
            let copy = Copy::of(&fixture);
            let mut changed = Vec::new();
            for _ in 0..=random.below(3) {
                copy.change(Component::Data, |bytes| {
                    let at = random.below(bytes.len() as u64) as usize;
                    bytes[at] ^= 1 << random.below(8);
                    changed.push(at);
                });
            }
            if round % 2 == 1 {
                copy.remove(Component::Partitions);
                copy.remove(Component::Rows);
            }
            let mut stream = SalvageStream::open(&env, &copy.descriptor, Some(&fixture.table())).unwrap();
            let given = give(&mut stream);
            let report = stream.report();
            let context = format!("{:?} round {round} at {changed:?} {report:?}", fixture.descriptor);
            check(&twins, &given, report, &context);
            assert!(report.bytes_lost > 0, "{context}");
            // what lies wholly in sound chunks is not lost
            let data = stream.data();
            let chunk = data.chunk_length() as u64;
            let sound = |from: u64, to: u64| {
                (from / chunk..to.div_ceil(chunk)).all(|index| data.read_chunk(index, ReadMode::Background).is_ok())
            };
            for twin in twins.iter().filter(|twin| sound(twin.head.from, twin.end())) {
                assert!(given.contains_key(&twin.head.what.key.key.to_vec()), "{context}: {} is sound", twin.head.from);
            }
            cut += report.partitions_cut;
        }
    }
    assert!(cut > 10, "too few partitions were cut for the test to mean something");
}

#[test]
fn cut_files_are_given_up_to_the_cut() {
    let mut random = Random::new(12);
    for fixture in fixtures::all(&["da"]) {
        let twins = placed(&fixture);
        let copy = Copy::of(&fixture);
        copy.change(Component::Data, |bytes| bytes.truncate(random.below(bytes.len() as u64) as usize));
        let Ok(mut stream) = SalvageStream::open(&env::real::env(), &copy.descriptor, None) else { continue };
        let given = give(&mut stream);
        let mut report = stream.report().clone();
        // what is behind the end of an uncompressed file is not there to be lost
        report.lost.push(behind(stream.data().length()));
        check(&twins, &given, &report, &format!("{:?} {report:?}", fixture.descriptor));
    }
}

/// Any component changed anywhere: no panic, and no row that was not there.
#[test]
fn damage_anywhere_gives_no_wrong_row() {
    let mut random = Random::new(13);
    for fixture in fixtures::small(&["da"]) {
        let twins = placed(&fixture);
        for component in [Component::Partitions, Component::Rows, Component::CompressionInfo, Component::Crc] {
            if !fixture.descriptor.path(component).exists() || fixture.bytes(component).is_empty() {
                continue;
            }
            for round in 0..8 {
                let copy = Copy::of(&fixture);
                copy.change(component, |bytes| {
                    let at = random.below(bytes.len() as u64) as usize;
                    if round % 4 == 0 { bytes.truncate(at) } else { bytes[at] ^= 1 << random.below(8) }
                });
                let Ok(mut stream) = SalvageStream::open(&env::real::env(), &copy.descriptor, None) else { continue };
                let given = give(&mut stream);
                let mut report = stream.report().clone();
                // CompressionInfo.db has no checksum: it may say that the data is shorter
                report.lost.push(behind(stream.data().length()));
                check(&twins, &given, &report, &format!("{:?} {component:?} {report:?}", fixture.descriptor));
            }
        }
    }
}

/// A table of int columns of one kind beside its key.
fn table(columns: &[&str], kind: ColumnKind) -> Arc<TableMetadata> {
    let spec =
        |name: &str, kind| ColumnSpec { name: name.to_owned(), kind, position: 0, ty: CqlType::Int, reversed: false };
    let mut specs = vec![spec("k", ColumnKind::PartitionKey), spec("c", ColumnKind::Clustering)];
    specs.extend(columns.iter().map(|name| spec(name, kind)));
    let (id, params) = (TableId([9; 16]), TableParams::default());
    let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
    Arc::new(TableMetadata::new(id, "ks", "t", kind, flags, params, specs, BTreeMap::new(), None))
}

/// Without Statistics.db the columns are those of the schema. Where one was dropped since, rows are
/// lost, and no value is given as one of another column.
#[test]
fn no_value_is_given_as_one_of_another_column() {
    let columns = ["v", "w", "x"];
    // the value of an int column
    let value = |name: &str| Bytes::from(name.repeat(4));
    for kind in [ColumnKind::Regular, ColumnKind::Static] {
        let written = table(&columns, kind);
        let directory = fixtures::output("salvage-columns");
        let env = env::real::env();
        let descriptor = Descriptor::new(directory.path(), Version::DA, SSTableId::Sequence(1));
        let options = WriterOptions::for_table(&written, 7).unwrap();
        let header = Header::for_table(&written, EncodingStats::default());
        let mut writer = SSTableWriter::new(&env, descriptor.clone(), Arc::clone(&written), options, header).unwrap();
        // a partition for each set of columns
        let mut partitions: Vec<(DecoratedKey, u32)> =
            (1..8u32).map(|set| (DecoratedKey::new(Bytes::copy_from_slice(&set.to_be_bytes())), set)).collect();
        partitions.sort();
        for (key, set) in partitions {
            let mut row = match kind {
                ColumnKind::Static => Row::new(ClusteringValues::new()),
                _ => Row::new([Some(value("c"))].into_iter().collect()),
            };
            for (_, name) in columns.iter().enumerate().filter(|(bit, _)| set & (1u32 << *bit) != 0) {
                row.add_cell(Cell::live(written.column_by_name(name).unwrap().id, 5, value(name)));
            }
            writer.start_partition(&key, DeletionTime::LIVE);
            match kind {
                ColumnKind::Static => writer.static_row(&row),
                _ => writer.append(&Unfiltered::Row(row)).unwrap(),
            }
            writer.end_partition().unwrap();
        }
        writer.finish().unwrap();
        std::fs::remove_file(descriptor.path(Component::Statistics)).unwrap();
        let given = |table| give(&mut SalvageStream::open(&env, &descriptor, Some(table)).unwrap());
        assert_eq!(given(&written).len(), 7, "{kind:?}: under its own columns nothing is lost");
        let altered = table(&["v", "x"], kind);
        for (head, unfiltereds) in given(&altered).into_values() {
            let rows = unfiltereds.iter().filter_map(|one| match one {
                Unfiltered::Row(row) => Some(row),
                Unfiltered::Marker(_) => None,
            });
            for data in rows.chain(head.static_row.as_deref()).flat_map(|row| &row.columns) {
                let ColumnData::Simple(cell) = data else { panic!("there are no collections") };
                assert_eq!(cell.value, value(&altered.column(cell.column).unwrap().name), "{kind:?}");
            }
        }
    }
}
