//! Each decoder of this crate as a function over any bytes: what fuzz targets run, and the everyday
//! tests over seeds and mutations of them. Here because the decoders are not public; nothing in the
//! program calls this.
//!
//! A function returns when the bytes were read or refused; what must hold beyond that is asserted.
//! Checksums keep mutated bytes away from what lies behind them, so where there are any the bytes
//! are read twice: as they are, and [`sealed`] again.

mod index;
mod rows;
mod sealed;
mod seeds;

use std::io;
use std::path::Path;
use std::sync::Arc;

use ::rows::ReadMode;
use bytes::Bytes;
use env::ReadFile;

use crate::attached::{KeysCursor, RowKeys, TermIndex, TermRange, VectorGraph, any_keys_block, any_terms_block};
use crate::chunk_reader::DataFile;
use crate::compression_info::CompressionInfo;
use crate::compressor::{CHUNK_LENGTH_MAX, Compressor};
use crate::descriptor::{Descriptor, parse_toc, print_toc};
use crate::file_cache::NoCache;
use crate::filter::{Filter, KeyHash};
use crate::statistics::{Cardinality, Statistics};
use crate::version::Version;

pub use index::{big_index, partition_index, row_index};
pub use rows::rows;
pub use sealed::{seal_crc, seal_statistics};
pub use seeds::{header_of, places_of_rows, row_index_positions};

/// One of each form.
const VERSIONS: [Version; 6] = [Version::DA, Version::OA, Version::NB, Version(*b"me"), Version(*b"mc"), Version::MA];
/// Most chunks that are asked for of one file.
const CHUNKS_MAX: u64 = 64;

/// `Statistics.db`, in every version: what can be read can be used and written.
pub fn statistics(data: &[u8]) {
    let mut resealed = data.to_vec();
    seal_statistics(&mut resealed);
    for bytes in [Bytes::copy_from_slice(data), Bytes::from(resealed)] {
        for version in VERSIONS {
            let Ok(statistics) = Statistics::read(&bytes, version) else { continue };
            use_statistics(&statistics);
            if let Ok(again) = Statistics::read(&statistics.write(Version::DA).into(), Version::DA) {
                use_statistics(&again);
            }
        }
    }
}

fn use_statistics(statistics: &Statistics) {
    let stats = &statistics.stats;
    for histogram in [&stats.partition_sizes, &stats.cells_per_partition] {
        let mut sum = histogram.clone();
        sum.merge(histogram);
        let _ = (sum.count(), sum.max(), sum.mean());
    }
    for time in [i64::MIN, 0, 1_500_000_000, i64::MAX] {
        let _ = stats.tombstones.sum(time);
    }
    let _ = stats.tombstones.clone().finish();
    if let Some(cardinality) = &statistics.cardinality {
        let mut sum = cardinality.clone();
        sum.merge(cardinality);
        let _ = (sum.estimate(), cardinality.clone().write());
    }
    if let Ok(table) = statistics.header.table("ks", "t") {
        let _ = statistics.header.resolve(&table);
    }
}

/// The keys of rows of attached indexes: what opens can be read by number.
pub fn attached_keys(data: &[u8]) {
    any_keys_block(data);
    let Ok(keys) = RowKeys::over(Bytes::copy_from_slice(data)) else { return };
    let rows = keys.rows();
    let mut cursor = KeysCursor::new(Arc::new(keys), ReadMode::Background);
    for row in [0, 1, rows / 2, rows.saturating_sub(1), rows] {
        let _ = cursor.place(row);
    }
}

/// The vectors of attached indexes: what opens can be searched.
pub fn attached_graph(data: &[u8]) {
    let Ok(graph) = VectorGraph::over(Bytes::copy_from_slice(data)) else { return };
    // a search takes a bit for each node, of which the file has at most one a byte
    for wanted in [1, 1000] {
        let _ = graph.search(&[0.5; 4], wanted, 1, ReadMode::Background);
    }
}

/// The terms of attached indexes: what opens can be searched.
pub fn attached_terms(data: &[u8]) {
    any_terms_block(data);
    let Ok(terms) = TermIndex::over(Bytes::copy_from_slice(data)) else { return };
    // a set of rows takes a bit for each row that the file names
    if terms.of_data().0 > 1 << 24 {
        return;
    }
    let one = terms.ends().map(|(least, _)| TermRange::one(least)).unwrap_or_default();
    for range in [TermRange::default(), one] {
        let _ = terms.estimate(&range, u64::MAX, ReadMode::Background);
        let _ = terms.rows(&range, ReadMode::Background);
    }
}

/// The sketch of partition keys.
pub fn cardinality(data: &[u8]) {
    if let Some(mut sketch) = Cardinality::read(data) {
        let _ = sketch.estimate();
        sketch.merge(&sketch.clone());
        sketch.add(data);
        let bytes = sketch.write();
        assert!(Cardinality::read(&bytes).is_some(), "a sketch that was written is not read");
    }
}

/// `CompressionInfo.db`, with chunks of the file itself as data.
pub fn compression_info(data: &[u8]) {
    let file = Bytes::copy_from_slice(data);
    VERSIONS.iter().for_each(|version| chunks_of(&file, *version));
}

fn chunks_of(file: &Bytes, version: Version) {
    let Ok(info) = CompressionInfo::open(file, version) else { return };
    for index in (0..info.chunk_count.min(CHUNKS_MAX)).chain([u64::MAX - 1]) {
        let _ = info.uncompressed_length(index);
        let Ok(place) = info.chunk(index, file.len() as u64) else { continue };
        let stored = file.get(place.offset as usize..place.offset as usize + place.length);
        let stored = stored.expect("a chunk that is said to lie in the file does");
        if let Ok(bytes) = info.decompress(stored, index) {
            assert_eq!(bytes.len(), info.uncompressed_length(index));
        }
    }
    let data = Arc::new(Memory(file.clone()));
    let data = DataFile::compressed(Path::new("Data.db").into(), data, info, Arc::new(NoCache));
    read_chunks(&data);
}

/// A compressed chunk: `u8` compressor, `u32` length that is claimed, the stored bytes.
pub fn chunk(data: &[u8]) {
    let Some((&[which, a, b, c, d], stored)) = data.split_first_chunk() else { return };
    let compressors = [Compressor::Lz4, Compressor::Snappy, Compressor::Deflate, Compressor::Zstd, Compressor::Noop];
    let compressor = compressors[usize::from(which) % compressors.len()];
    let length = u32::from_be_bytes([a, b, c, d]) as usize % (CHUNK_LENGTH_MAX + 1);
    if let Ok(bytes) = compressor.decompress(stored, length) {
        assert_eq!(bytes.len(), length);
    }
}

/// `CRC.db` and the data that it is of: `u16` length of the data, the data, CRC.db.
pub fn crc(data: &[u8]) {
    let Some((length, rest)) = data.split_first_chunk::<2>() else { return };
    let (data, crc) = rest.split_at((u16::from_be_bytes(*length) as usize).min(rest.len()));
    let mut resealed = crc.to_vec();
    seal_crc(&mut resealed, data);
    for crc in [Bytes::copy_from_slice(crc), resealed.into()] {
        let file = Arc::new(Memory(Bytes::copy_from_slice(data)));
        let path = Path::new("Data.db").to_owned();
        if let Ok(data) = DataFile::plain(path, file, &crc, Arc::new(NoCache)) {
            read_chunks(&data);
        }
    }
}

fn read_chunks(data: &DataFile) {
    let count = data.length().div_ceil(data.chunk_length() as u64).min(CHUNKS_MAX);
    for index in (0..=count).chain([u64::MAX]) {
        if let Ok(bytes) = data.read_chunk(index, ReadMode::Background) {
            assert!(bytes.len() <= data.chunk_length() && !bytes.is_empty());
        }
    }
}

/// `Filter.db`.
pub fn filter(data: &[u8]) {
    for version in [Version::DA, Version::MA] {
        if let Ok(filter) = Filter::open(&Bytes::copy_from_slice(data), version) {
            ask(&filter, data);
        }
    }
}

fn ask(filter: &Filter, data: &[u8]) {
    for key in data.chunks(8).take(64) {
        let _ = filter.may_contain(KeyHash::of(key));
    }
    for hash in [KeyHash { h0: i64::MIN, h1: i64::MIN }, KeyHash { h0: -1, h1: i64::MAX }] {
        let _ = filter.may_contain(hash);
    }
}

/// Names of files, and the content of TOC.txt: what is read prints to what reads as the same.
pub fn names(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let directory = Path::new("data");
    for name in text.lines() {
        if let Some((descriptor, component)) = Descriptor::parse(directory, name) {
            let printed = component.map_or_else(|| descriptor.prefix(), |component| descriptor.file_name(component));
            let again = component.map_or_else(|| printed.clone() + "-x", |_| printed.clone());
            assert_eq!(Descriptor::parse(directory, &again), Some((descriptor, component)), "{name}");
        }
    }
    let toc = parse_toc(text);
    let mut again = parse_toc(&print_toc(&toc));
    again.sort_unstable();
    let mut toc = toc;
    toc.sort_unstable();
    assert_eq!(toc, again);
}

/// A file in memory.
pub(crate) struct Memory(Bytes);

#[cfg(test)]
impl Memory {
    /// A file of this content.
    pub fn new(content: Vec<u8>) -> Self {
        Self(content.into())
    }
}

impl ReadFile for Memory {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let content = start.checked_add(buffer.len()).and_then(|end| self.0.get(start..end));
        buffer.copy_from_slice(content.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn read_at_nowait(&self, buffer: &mut [u8], offset: u64) -> io::Result<bool> {
        self.read_at(buffer, offset).map(|()| true)
    }

    fn advise_sequential(&self) {}

    fn drop_cache(&self, _offset: u64, _length: u64) {}
}
