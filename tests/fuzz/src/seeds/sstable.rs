//! Components of SSTables of Cassandra, and of the same content in small blocks as we write it.

use std::collections::BTreeMap;

use ::sstable::attached::{GraphWriter, RowKeysWriter, TermsWriter};
use ::sstable::{Cardinality, Component, CompressionParams, Version};
use rows::ReadMode;

use crate::bodies::whole::CASES;
use crate::fixtures::{FileSet, components};

const SMALL: [&str; 5] = ["dels_desc", "ttls", "types_all", "cs_static", "altered"];

/// `Statistics.db`.
pub fn statistics() -> Vec<Vec<u8>> {
    components(&SMALL, Component::Statistics)
}

/// Sketches, sparse and dense.
pub fn cardinality() -> Vec<Vec<u8>> {
    let sketch = |count: u32| {
        let mut sketch = Cardinality::default();
        (0..count).for_each(|key| sketch.add(&key.to_be_bytes()));
        sketch.write()
    };
    [0, 9, 60, 9000].map(sketch).into()
}

/// `CompressionInfo.db`.
pub fn compression_info() -> Vec<Vec<u8>> {
    components(
        &["cmp_deflate_64k", "cmp_lz4_4k", "cmp_ratio", "cmp_snappy_16k", "cmp_zstd_16k", "ttls"],
        Component::CompressionInfo,
    )
}

/// Chunks of each compressor.
///
/// # Panics
/// When one does not compress.
pub fn chunk() -> Vec<Vec<u8>> {
    let text: Vec<u8> = (0..900u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
    let classes = ["LZ4Compressor", "SnappyCompressor", "DeflateCompressor", "ZstdCompressor", "NoopCompressor"];
    let mut seeds = Vec::new();
    for (which, class) in classes.iter().enumerate() {
        let map = BTreeMap::from([("class".to_owned(), (*class).to_owned())]);
        let params = CompressionParams::from_schema(&map).expect("a known compressor").expect("compression");
        for length in [20, text.len()] {
            let mut seed = vec![which as u8];
            seed.extend_from_slice(&(length as u32).to_be_bytes());
            params.compress(&text[..length], &mut seed).expect("compressed");
            seeds.push(seed);
        }
    }
    seeds
}

fn written() -> Vec<&'static FileSet> {
    let sets = CASES.iter().map(|case| &case.set);
    sets.filter(|set| !set.bytes(Component::Crc).is_empty()).collect()
}

fn with_length(first: &[u8], second: &[u8]) -> Vec<u8> {
    [&(first.len() as u16).to_be_bytes(), first, second].concat()
}

/// Data with its `CRC.db`.
pub fn crc() -> Vec<Vec<u8>> {
    let small = |chunk: usize| {
        let data: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let mut crc = (chunk as u32).to_be_bytes().to_vec();
        crc.resize(4 + 4 * data.len().div_ceil(chunk), 0);
        ::sstable::fuzzing::seal_crc(&mut crc, &data);
        with_length(&data, &crc)
    };
    let mut seeds: Vec<_> = [100, 1000, 65_536].map(small).into();
    seeds.extend(written().iter().map(|set| with_length(set.bytes(Component::Data), set.bytes(Component::Crc))));
    seeds
}

/// `Filter.db`.
pub fn filter() -> Vec<Vec<u8>> {
    components(&SMALL, Component::Filter)
}

/// `Rows.db` and `Partitions.db`.
pub fn partition_index() -> Vec<Vec<u8>> {
    let pair = |set: &FileSet| with_length(set.bytes(Component::Rows), set.bytes(Component::Partitions));
    let sets = CASES.iter().map(|case| &case.set);
    sets.filter(|set| !set.bytes(Component::Partitions).is_empty()).map(pair).collect()
}

/// `Summary.db` and `Index.db`.
pub fn big_index() -> Vec<Vec<u8>> {
    let pair = |set: &FileSet| with_length(set.bytes(Component::Summary), set.bytes(Component::Index));
    let sets = CASES.iter().map(|case| &case.set);
    sets.filter(|set| !set.bytes(Component::Index).is_empty()).map(pair).collect()
}

/// Entries of `Rows.db`.
pub fn row_index() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for set in written() {
        let (partitions, rows) = (set.bytes(Component::Partitions), set.bytes(Component::Rows));
        for position in ::sstable::fuzzing::row_index_positions(partitions).into_iter().take(3) {
            seeds.push([&(position as u16).to_be_bytes(), rows].concat());
        }
    }
    seeds
}

/// A file of an attached index, and its first block by itself.
fn attached(write: impl FnOnce(&dyn env::Disk, std::path::PathBuf) -> Result<(), ::sstable::Error>) -> Vec<Vec<u8>> {
    let sim = env::sim::Sim::new(1);
    let (disk, path) = (sim.env().disk, std::path::PathBuf::from(env::sim::DATA).join("component"));
    disk.create_dir_all(std::path::Path::new(env::sim::DATA)).expect("a sound disk");
    write(&*disk, path.clone()).expect("a sound disk");
    let whole = disk.read_all(&path, 1 << 20).expect("a sound disk");
    let block = whole.get(10..whole.len().min(400)).unwrap_or_default().to_vec();
    vec![whole, block]
}

/// `Attached+Keys.db`.
pub fn attached_keys() -> Vec<Vec<u8>> {
    attached(|disk, path| {
        let mut writer = RowKeysWriter::create(disk, path)?;
        for partition in 0..5u8 {
            let key = types::DecoratedKey::new(vec![partition; 3].into());
            writer.add(&key, None)?;
            for row in 0..20u8 {
                let clustering = [Some(vec![row / 4].into()), (row % 3 > 0).then(|| vec![row; 2].into())];
                writer.add(&key, Some(&clustering.into_iter().collect()))?;
            }
        }
        writer.finish(9)
    })
}

/// `Attached+index+Graph.db`.
pub fn attached_graph() -> Vec<Vec<u8>> {
    attached(|disk, path| {
        let mut writer = GraphWriter::create(disk, path, types::Similarity::Euclidean, 4)?;
        for row in 0..60u8 {
            let vector: Vec<u8> = (1..5u8).flat_map(|at| f32::from(row.wrapping_mul(at)).to_be_bytes()).collect();
            writer.add(&vector, row.into())?;
        }
        writer.finish(b"definition", 60, 9)
    })
}

/// `Attached+index+Terms.db`.
pub fn attached_terms() -> Vec<Vec<u8>> {
    attached(|disk, path| {
        let mut writer = TermsWriter::create(disk, path)?;
        for row in 0..200u32 {
            writer.add(format!("term {}", row % 30).as_bytes(), row)?;
            writer.add(b"often", row)?;
        }
        writer.finish(b"definition", 200, 9)
    })
}

/// Serialization headers with the rows written against them.
///
/// # Panics
/// When a fixture cannot be read.
pub fn rows() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for case in CASES.iter() {
        let sim = case.set.disk();
        let sstable = case.set.open(&sim).expect("a whole SSTable");
        let header = ::sstable::fuzzing::header_of(case.set.bytes(Component::Statistics)).expect("a header");
        let chunk = sstable.data().read_chunk(0, ReadMode::Background).expect("a chunk");
        seeds.push(with_length(&header, &chunk));
        for row in ::sstable::fuzzing::places_of_rows(&sstable).into_iter().take(3) {
            seeds.push(with_length(&header, chunk.get(row..).unwrap_or_default()));
        }
    }
    seeds
}

/// File names and tables of contents.
pub fn names() -> Vec<Vec<u8>> {
    let mut seeds = components(&["ttls"], Component::Toc);
    seeds.extend(components(&["ttls"], Component::Digest));
    for name in [
        "da-1-bti-Data.db\nnb-123456-big-Summary.db",
        "da-3h5p_0mqw_15d741y94v06x3ppet-bti-Rows.db\noa-3h5p_0mqw_15d741y94v06x3ppet-big-TOC.txt",
        "da-1-bti-SAI+aa+Meta.db",
    ] {
        seeds.push(name.into());
    }
    seeds
}

/// Logs of transactions.
pub fn txn_log() -> Vec<Vec<u8>> {
    let logs = [
        "ADD:[/data/da-1-bti-,0,8][0]\nREMOVE:[/data/da-2-bti-,0,1][0]\nCOMMIT:[,0,0][2613697770]\n",
        "REMOVE:[/old/place/da-22-bti-,0,1][0]\nADD:[/data/da-2-bti-,0,8][0]\n",
        "REMOVE:[/data/da-1-bti-,0,2][0]\nABORT:[,0,0][0]\n",
    ];
    logs.iter().map(|log| ::sstable::txn_log::sealed(log.as_bytes())).collect()
}

/// Each component of each set of files.
pub fn whole() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (which, case) in CASES.iter().enumerate() {
        for (number, (component, bytes)) in case.set.files.iter().enumerate() {
            for flags in 0..=1 {
                if flags == 0 || matches!(component, Component::Statistics | Component::Data) {
                    seeds.push([&[which as u8, number as u8, flags], &bytes[..]].concat());
                }
            }
        }
    }
    debug_assert!(seeds.len() > Version::WRITABLE.len());
    seeds
}
