//! Keys and terms against plain lists, for histories drawn from a seed: what is written is found,
//! by every kind of range, whatever the segments; damaged bytes are refused or read, and never
//! panic.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use env::ReadFile;
use rows::ReadMode;
use schema::TableMetadata;
use types::{CqlType, DecoratedKey};

use super::super::blocks::{BlockFile, Kind};
use super::super::keys::{KeysCursor, Place, RowKeys, RowKeysWriter};
use super::{TermIndex, TermRange, TermsWriter};
use crate::file_cache::NoCache;
use crate::index_file::IndexFile;

/// A sequence of numbers from a seed.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

fn written(write: impl FnOnce(&dyn env::Disk, std::path::PathBuf)) -> Bytes {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("file");
    let disk = env::real::env().disk;
    write(&*disk, path.clone());
    disk.read_all(&path, 1 << 30).unwrap().into()
}

fn ranges(drawn: &mut Drawn, terms: u64) -> TermRange {
    let end = |drawn: &mut Drawn| match drawn.below(4) {
        0 => None,
        kind => Some((term(drawn.below(terms)), kind == 1)),
    };
    match drawn.below(3) {
        0 => TermRange::one(&term(drawn.below(terms))),
        _ => TermRange { lower: end(drawn), upper: end(drawn), part: None },
    }
}

fn term(number: u64) -> Vec<u8> {
    format!("term {:03}{}", number, "x".repeat(number as usize % 5)).into_bytes()
}

#[test]
fn terms_are_found_as_in_a_map() {
    for seed in 0..12 {
        let mut drawn = Drawn(seed);
        let (rows, terms) = (1 + drawn.below(3000) as u32, 1 + drawn.below(400));
        let mut model: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::new();
        let segment = 200 + drawn.below(60_000) as usize;
        let bytes = written(|disk, path| {
            let mut writer = TermsWriter::with_segments_of(disk, path, segment).unwrap();
            for row in 0..rows {
                // a common term, for long lists, and drawn ones
                for number in (0..drawn.below(3)).map(|_| drawn.below(terms)).chain((row % 2 == 0).then_some(7)) {
                    writer.add(&term(number), row).unwrap();
                    model.entry(term(number)).or_default().push(row);
                }
            }
            writer.finish(b"definition", rows, 17).unwrap();
        });
        let index = TermIndex::over(bytes.clone()).unwrap();
        assert_eq!((index.fingerprint(), index.of_data()), (&b"definition"[..], (rows, 17)));
        for _ in 0..60 {
            let range = ranges(&mut drawn, terms);
            let is_in = |term: &&Vec<u8>| !range.is_before(term) && !range.is_behind(term);
            let mut wanted: Vec<u32> = model.keys().filter(is_in).flat_map(|term| &model[term]).copied().collect();
            wanted.sort_unstable();
            wanted.dedup();
            let set = index.rows(&range, ReadMode::Background).unwrap();
            let (mut found, mut hint, mut from) = (Vec::new(), 0, 0);
            while let Some(row) = set.at_or_after(from, &mut hint) {
                found.push(row);
                from = row + 1;
            }
            assert_eq!(found, wanted, "seed {seed} {range:?}");
            let estimate = index.estimate(&range, u64::MAX, ReadMode::Background).unwrap();
            assert!(wanted.is_empty() || estimate > 0, "seed {seed} {range:?}");
            // fewer than there are, but enough
            let enough = 1 + drawn.below(500);
            let limited = index.estimate(&range, enough, ReadMode::Background).unwrap();
            assert!(limited == estimate || limited >= enough, "seed {seed} {range:?}: {limited} of {estimate}");
        }
        for _ in 0..200 {
            let mut damaged = bytes.to_vec();
            let at = drawn.below(damaged.len() as u64) as usize;
            damaged[at] ^= 1 << drawn.below(8);
            if let Ok(index) = TermIndex::over(damaged.into()) {
                let _ = index.rows(&TermRange::default(), ReadMode::Background);
                let _ = index.estimate(&ranges(&mut drawn, terms), 1 + drawn.below(500), ReadMode::Background);
            }
        }
    }
}

/// A dictionary of one block, whose few terms have many rows each: a range of some of them counts
/// as those rows, not as a part of a block.
#[test]
fn ranges_of_few_terms_with_many_rows_are_counted() {
    let bytes = written(|disk, path| {
        let mut writer = TermsWriter::create(disk, path).unwrap();
        (0..7_000).for_each(|row| writer.add(&term(u64::from(row % 7)), row).unwrap());
        writer.finish(b"definition", 7_000, 17).unwrap();
    });
    let index = TermIndex::over(bytes).unwrap();
    let from = |number: u64| Some((term(number), true));
    let estimate =
        |lower, upper| index.estimate(&TermRange { lower, upper, part: None }, u64::MAX, ReadMode::Background).unwrap();
    assert_eq!(estimate(None, None), 7_000);
    assert_eq!(estimate(from(0), None), 7_000);
    assert_eq!(estimate(from(2), from(4)), 3_000);
    assert_eq!(estimate(None, from(0)), 1_000);
    assert_eq!(estimate(from(5), from(1)), 0);
}

/// A file whose bytes change.
struct Changing(Mutex<Vec<u8>>);

impl ReadFile for Changing {
    fn len(&self) -> u64 {
        self.0.lock().unwrap().len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<()> {
        let start = offset as usize;
        buffer.copy_from_slice(&self.0.lock().unwrap()[start..start + buffer.len()]);
        Ok(())
    }

    fn read_at_nowait(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<bool> {
        self.read_at(buffer, offset).map(|()| true)
    }

    fn advise_sequential(&self) {}

    fn drop_cache(&self, _offset: u64, _length: u64) {}
}

/// The checksum of a block that was found right is not computed again, unless the disk gives it
/// anew: what it gives then may be damaged.
#[test]
fn a_block_that_the_disk_gives_again_is_checked_again() {
    let bytes = written(|disk, path| {
        let mut writer = TermsWriter::create(disk, path).unwrap();
        (0..100).for_each(|row| writer.add(&term(u64::from(row)), row).unwrap());
        writer.finish(b"definition", 100, 17).unwrap();
    });
    let file = Arc::new(Changing(Mutex::new(bytes.to_vec())));
    let on_disk = IndexFile::on_disk("terms".into(), Arc::clone(&file) as Arc<dyn ReadFile>, Arc::new(NoCache));
    let (blocks, footer) = BlockFile::over(on_disk, Path::new("terms"), Kind::Terms).unwrap();
    let index = TermIndex::of(blocks, &footer).unwrap();
    let all = || index.rows(&TermRange::default(), ReadMode::Background);
    assert!(all().is_ok());
    file.0.lock().unwrap()[40] ^= 1;
    let error = all().unwrap_err().to_string();
    assert!(error.contains("checksum"), "{error}");
}

fn table() -> Arc<TableMetadata> {
    let spec = |name: &str, kind, position| schema::table::ColumnSpec {
        name: name.to_owned(),
        kind,
        position,
        ty: CqlType::Int,
        reversed: name == "d",
    };
    let columns = vec![
        spec("k", schema::ColumnKind::PartitionKey, 0),
        spec("c", schema::ColumnKind::Clustering, 0),
        spec("d", schema::ColumnKind::Clustering, 1),
    ];
    Arc::new(TableMetadata::new(
        schema::TableId::of_system_table("ks", "t"),
        "ks",
        "t",
        schema::TableKind::Regular,
        schema::TableFlags::COMPOUND,
        schema::TableParams::default(),
        columns,
        BTreeMap::new(),
        None,
    ))
}

#[test]
fn keys_are_found_by_number_and_by_place() {
    let table = table();
    let int = |value: i32| Some(Bytes::copy_from_slice(&value.to_be_bytes()));
    for seed in 0..20 {
        let mut drawn = Drawn(seed);
        let mut keys: Vec<_> =
            (0..1 + drawn.below(60)).map(|k| DecoratedKey::new(Bytes::from(format!("key {k}")))).collect();
        keys.sort();
        let mut places = Vec::new();
        for key in keys {
            places.push(Place::partition(key.clone()));
            // every seventh partition takes several blocks
            let most = if drawn.below(7) == 0 { 400 } else { 12 };
            for c in 0..drawn.below(most) as i32 {
                let clusterings = (0..drawn.below(4) as i32).rev();
                places.extend(clusterings.map(|d| Place::row(key.clone(), [int(c), int(d)].into_iter().collect())));
            }
        }
        let bytes = written(|disk, path| {
            let mut writer = RowKeysWriter::create(disk, path).unwrap();
            for place in &places {
                let clustering = match &place.position {
                    super::super::Position::Partition => None,
                    super::super::Position::Row(values) => Some(values),
                };
                writer.add(&place.key, clustering).unwrap();
            }
            writer.finish(5).unwrap();
        });
        let keys = Arc::new(RowKeys::over(bytes.clone()).unwrap());
        assert_eq!((keys.rows() as usize, keys.data_length()), (places.len(), 5));
        let mut cursor = KeysCursor::new(Arc::clone(&keys), ReadMode::Background);
        for (number, place) in places.iter().enumerate() {
            assert_eq!(cursor.place(number as u32).unwrap(), *place);
            assert_eq!(cursor.lower_bound(place, &table).unwrap(), number as u32);
            let mut other = KeysCursor::new(Arc::clone(&keys), ReadMode::Background);
            assert_eq!(other.lower_bound(place, &table).unwrap(), number as u32, "seed {seed}");
        }
        for number in 0..62 {
            let key = DecoratedKey::new(Bytes::from(format!("key {number}")));
            let rows = places.iter().filter(|place| place.key == key).count() as u32;
            let blocks = keys.blocks_of(&key, u32::MAX, ReadMode::Background).unwrap();
            assert_eq!(keys.rows_in(&key, &blocks, ReadMode::Background).unwrap(), rows, "seed {seed} key {number}");
            assert!(rows <= blocks.rows_max() && blocks.rows_max() <= rows + 2 * 64, "seed {seed} key {number}");
            let most = drawn.below(300) as u32;
            let blocks = keys.blocks_of(&key, most, ReadMode::Background).unwrap();
            let counted = keys.rows_in(&key, &blocks, ReadMode::Background).unwrap();
            assert!(counted == rows || counted >= most && rows > most, "seed {seed} key {number} most {most}");
        }
        for _ in 0..200 {
            let mut damaged = bytes.to_vec();
            let at = drawn.below(damaged.len() as u64) as usize;
            damaged[at] ^= 1 << drawn.below(8);
            let Ok(keys) = RowKeys::over(damaged.into()) else { continue };
            let mut cursor = KeysCursor::new(Arc::new(keys), ReadMode::Background);
            let _ = cursor.lower_bound(&places[0], &table);
            let _ = cursor.place(drawn.below(places.len() as u64 + 3) as u32);
            if let Ok(blocks) = cursor.keys().blocks_of(&places[0].key, 100, ReadMode::Background) {
                let _ = cursor.keys().rows_in(&places[0].key, &blocks, ReadMode::Background);
            }
        }
    }
}
