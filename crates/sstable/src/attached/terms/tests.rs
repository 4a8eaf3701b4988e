//! Keys and terms against plain lists, for histories drawn from a seed: what is written is found,
//! by every kind of range, whatever the segments; damaged bytes are refused or read, and never
//! panic.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use rows::ReadMode;
use schema::TableMetadata;
use types::{CqlType, DecoratedKey};

use super::super::keys::{KeysCursor, Place, RowKeys, RowKeysWriter};
use super::{TermIndex, TermRange, TermsWriter};

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
            let estimate = index.estimate(&range, ReadMode::Background).unwrap();
            assert!(wanted.is_empty() || estimate > 0, "seed {seed} {range:?}");
        }
        for _ in 0..200 {
            let mut damaged = bytes.to_vec();
            let at = drawn.below(damaged.len() as u64) as usize;
            damaged[at] ^= 1 << drawn.below(8);
            if let Ok(index) = TermIndex::over(damaged.into()) {
                let _ = index.rows(&TermRange::default(), ReadMode::Background);
                let _ = index.estimate(&ranges(&mut drawn, terms), ReadMode::Background);
            }
        }
    }
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
            for c in 0..drawn.below(12) as i32 {
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
        for _ in 0..200 {
            let mut damaged = bytes.to_vec();
            let at = drawn.below(damaged.len() as u64) as usize;
            damaged[at] ^= 1 << drawn.below(8);
            let Ok(keys) = RowKeys::over(damaged.into()) else { continue };
            let mut cursor = KeysCursor::new(Arc::new(keys), ReadMode::Background);
            let _ = cursor.lower_bound(&places[0], &table);
            let _ = cursor.place(drawn.below(places.len() as u64 + 3) as u32);
        }
    }
}
