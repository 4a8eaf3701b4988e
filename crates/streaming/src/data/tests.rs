//! Data of SSTables that this crate's own writer makes, in each form and cut at each section; and
//! data that is damaged.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use env::sim::{DATA, Sim};
use rows::codec::{EncodingStats, Header};
use rows::{Cell, ColumnData, DeletionTime, PartitionStream, ReadContext, ReadError, ReadMode, Row, Unfiltered};
use schema::table::ColumnSpec;
use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
use sstable::{CompressionParams, Descriptor, NoCache, SSTable, SSTableId, SSTableWriter, Version, WriterOptions};
use types::{CqlType, DecoratedKey, Token};

use super::outgoing::{self, Run, normalized};
use super::partitions::{ReceivedPartitions, Source};
use super::*;
use crate::message::content::{Chunk, Manifest, Section};
use crate::message::prepare::TokenRange;

const KEYS: i32 = 500;

fn table() -> Arc<TableMetadata> {
    let spec = |name: &str, kind, ty| ColumnSpec { name: name.to_owned(), kind, position: 0, ty, reversed: false };
    Arc::new(TableMetadata::new(
        TableId([1; 16]),
        "ks",
        "t",
        TableKind::Regular,
        TableFlags::COMPOUND,
        TableParams::default(),
        vec![
            spec("k", ColumnKind::PartitionKey, CqlType::Int),
            spec("c", ColumnKind::Clustering, CqlType::Int),
            spec("v", ColumnKind::Regular, CqlType::Blob),
        ],
        Default::default(),
        None,
    ))
}

fn keys() -> Vec<DecoratedKey> {
    let mut keys: Vec<_> = (0..KEYS).map(|key| DecoratedKey::new(Bytes::copy_from_slice(&key.to_be_bytes()))).collect();
    keys.sort();
    keys
}

/// An SSTable with partitions of some rows each, more than one chunk long.
fn sstable(sim: &Sim, version: Version, compression: Option<CompressionParams>) -> SSTable {
    let table = table();
    let options = WriterOptions { compression, ..WriterOptions::for_table(&table, KEYS as u64).unwrap() };
    let header = Header::for_table(&table, EncodingStats::default());
    let descriptor = Descriptor::new(Path::new(DATA), version, SSTableId::Sequence(1));
    let mut writer = SSTableWriter::new(&sim.env(), descriptor, Arc::clone(&table), options, header).unwrap();
    let column = table.column_by_name("v").unwrap().id;
    for (number, key) in keys().iter().enumerate() {
        let deletion = if number % 7 == 0 { DeletionTime::new(5, 6) } else { DeletionTime::LIVE };
        writer.start_partition(key, deletion);
        for clustering in 0..(number % 5) as i32 {
            let mut row = Row::new(std::iter::once(Some(Bytes::copy_from_slice(&clustering.to_be_bytes()))).collect());
            let value: Vec<u8> = (0..300).map(|at| (at * number) as u8).collect();
            row.columns.push(ColumnData::Simple(Cell::live(column, 1000 + number as i64, value.into())));
            writer.append(&Unfiltered::Row(row)).unwrap();
        }
        writer.end_partition().unwrap();
    }
    let descriptor = writer.finish().unwrap().descriptor;
    SSTable::open(&sim.env(), descriptor, &table, Arc::new(NoCache)).unwrap()
}

fn context() -> ReadContext {
    ReadContext::new(ReadMode::Background)
}

/// The data that a sender sends for a content.
fn sent(sstable: &SSTable, content: &Content) -> Vec<u8> {
    let mut out = Vec::new();
    match &content.compression {
        Some(compression) => {
            for Run { offset, length } in outgoing::stored_runs(&compression.chunks, 64 << 10) {
                let start = out.len();
                out.resize(start + length as usize, 0);
                sstable.data().file().read_at(&mut out[start..], offset).unwrap();
            }
        }
        None => {
            for place in outgoing::blocks(&content.sections, sstable.data().chunk_length()) {
                let chunk = sstable.data().read_chunk(place.chunk, ReadMode::Background).unwrap();
                plain::put_block(&mut out, &chunk[place.bytes]).unwrap();
            }
        }
    }
    out
}

/// The pieces that a reader gives of data that comes `step` bytes at a time. Together they count
/// for what the sender has announced.
fn received(content: &Content, data: &[u8], step: usize) -> Result<Vec<Bytes>, StreamingError> {
    let mut reader = DataReader::new(content)?;
    let (mut input, mut pieces, mut sum) = (BytesMut::new(), Vec::new(), 0);
    for piece in data.chunks(step) {
        input.extend_from_slice(piece);
        while let Some(Part::Rows { bytes, counted }) = reader.next(&mut input)? {
            pieces.push(bytes);
            sum += counted;
        }
    }
    assert_eq!(sum, content.transfer_bytes());
    assert!(reader.is_done() && input.is_empty(), "{} bytes are left", input.len());
    Ok(pieces)
}

struct Pieces(std::vec::IntoIter<Bytes>);

impl Source for Pieces {
    fn next(&mut self) -> Result<Option<Bytes>, ReadError> {
        Ok(self.0.next())
    }
}

fn stream(content: &Content, pieces: Vec<Bytes>) -> ReceivedPartitions<Pieces> {
    let header = content.rows.resolve(&table()).unwrap();
    ReceivedPartitions::new(Pieces(pieces.into_iter()), table(), header)
}

fn content_of(mut stream: impl PartitionStream) -> Result<Vec<(DecoratedKey, Vec<Unfiltered>)>, ReadError> {
    let mut found = Vec::new();
    while let Some(head) = stream.next_partition()? {
        let mut rows = Vec::new();
        while let Some(unfiltered) = stream.next_unfiltered()? {
            rows.push(unfiltered);
        }
        found.push((head.key, rows));
    }
    Ok(found)
}

fn ranges(pairs: &[(i64, i64)]) -> Vec<TokenRange> {
    pairs.iter().map(|(left, right)| TokenRange { left: Token(*left), right: Token(*right) }).collect()
}

#[test]
fn every_form_gives_the_partitions_of_its_ranges() {
    let keys = keys();
    let (third, half, last) = (keys[170].token.0, keys[250].token.0, keys[499].token.0);
    let cuts = [
        ranges(&[(third, half)]),
        ranges(&[(half, third)]),
        ranges(&[(third - 1, third), (half, last), (half - 1, half)]),
        ranges(&[(last, keys[0].token.0)]),
        ranges(&[(0, 0)]),
        ranges(&[(half, i64::MIN)]),
    ];
    let none = || None;
    let small = || Some(CompressionParams { chunk_length: 4096, ..CompressionParams::lz4() });
    for version in [Version::NB, Version::OA, Version::DA] {
        for compression in [none(), small()] {
            let sim = Sim::new(1);
            let sstable = sstable(&sim, version, compression);
            for wanted in &cuts {
                let ranges = normalized(wanted);
                let sections = outgoing::sections(&sstable, &ranges, &context()).unwrap();
                let content = outgoing::content(&sstable, sections, None, false).unwrap();
                let is_wanted =
                    |key: &DecoratedKey| ranges.iter().any(|range| key.token > range.left && key.token <= range.right);
                let mut expected = content_of(sstable.scan_all(&context()).unwrap()).unwrap();
                expected.retain(|(key, _)| is_wanted(key));
                assert!(!expected.is_empty());
                let data = sent(&sstable, &content);
                for step in [usize::MAX, 1000] {
                    let pieces = received(&content, &data, step).unwrap();
                    assert_eq!(content_of(stream(&content, pieces)).unwrap(), expected, "{version:?} {wanted:?}");
                }
            }
        }
    }
}

/// As a repair finds them: single partitions, each in a chunk that is mostly others'.
#[test]
fn sections_smaller_than_their_chunks_go_without_compression() {
    let sim = Sim::new(1);
    let sstable = sstable(&sim, Version::DA, Some(CompressionParams::lz4()));
    let keys = keys();
    let content = |pairs: &[(i64, i64)], entire: Option<Manifest>| {
        let sections = outgoing::sections(&sstable, &normalized(&ranges(pairs)), &context()).unwrap();
        outgoing::content(&sstable, sections, entire, false).unwrap()
    };
    let single: Vec<(i64, i64)> = keys.iter().skip(4).step_by(20).map(|key| (key.token.0 - 1, key.token.0)).collect();
    let few = content(&single, None);
    assert!(few.compression.is_none(), "{:?}", few.compression);
    assert_eq!((few.sections.len(), few.transfer_bytes()), (single.len(), few.section_bytes()));
    let mut expected = content_of(sstable.scan_all(&context()).unwrap()).unwrap();
    expected.retain(|(key, _)| single.iter().any(|(_, token)| key.token.0 == *token));
    let pieces = received(&few, &sent(&sstable, &few), 1000).unwrap();
    assert_eq!(content_of(stream(&few, pieces)).unwrap(), expected);
    // all of it is smaller as it is stored
    let all = content(&[(0, 0)], None);
    assert!(all.compression.as_ref().is_some_and(|stored| stored.transfer_bytes() < all.section_bytes()));
    let manifest = Manifest { components: Vec::new(), first_key: keys[0].key.clone() };
    assert!(content(&[(0, 0)], Some(manifest)).compression.is_none(), "the chunks of whole SSTables are not listed");
}

/// The places of partitions, asked for in order, backwards and at random, with tokens between two
/// partitions too: each is where the number of keys up to the token says.
#[test]
fn places_are_found_in_any_order() {
    let keys = keys();
    let small = || Some(CompressionParams { chunk_length: 4096, ..CompressionParams::lz4() });
    for (version, compression) in [(Version::NB, None), (Version::OA, small()), (Version::DA, small())] {
        let sim = Sim::new(1);
        let sstable = sstable(&sim, version, compression);
        let mut ascending: Vec<Token> = keys.iter().flat_map(|key| [Token(key.token.0 - 1), key.token]).collect();
        ascending.sort();
        ascending.dedup();
        let mut places = sstable.partition_offsets(&context());
        let found: Vec<u64> = ascending.iter().map(|token| places.offset_after(*token).unwrap()).collect();
        // each partition begins where the one before it ends, and the first at the beginning
        let mut starts = found.clone();
        starts.dedup();
        assert_eq!((starts.len(), starts[0], *starts.last().unwrap()), (keys.len() + 1, 0, sstable.data_length()));
        assert!(starts.is_sorted(), "{version:?}");
        for (token, place) in ascending.iter().zip(&found) {
            let partition = keys.iter().position(|key| key.token > *token).unwrap_or(keys.len());
            assert_eq!(starts[partition], *place, "{version:?} {token:?}");
        }
        let backwards: Vec<u64> = ascending.iter().rev().map(|token| places.offset_after(*token).unwrap()).collect();
        assert!(backwards.iter().eq(found.iter().rev()), "{version:?}");
        for step in 0..500 {
            let at = (step * 7919) % ascending.len();
            assert_eq!(places.offset_after(ascending[at]).unwrap(), found[at], "{version:?} {at}");
        }
    }
}

#[test]
fn an_sstable_beyond_the_ranges_has_no_section() {
    let sim = Sim::new(1);
    let sstable = sstable(&sim, Version::DA, None);
    let keys = keys();
    let outside = ranges(&[(keys[499].token.0, i64::MAX), (i64::MIN, keys[0].token.0 - 1)]);
    assert_eq!(outgoing::sections(&sstable, &outside, &context()).unwrap(), []);
    let between = ranges(&[(keys[7].token.0, keys[8].token.0 - 1)]);
    assert_eq!(outgoing::sections(&sstable, &between, &context()).unwrap(), []);
    let all = outgoing::sections(&sstable, &normalized(&ranges(&[(5, 5)])), &context()).unwrap();
    assert!(outgoing::are_entire(&sstable, &all));
}

#[test]
fn ranges_are_put_in_order() {
    let min = i64::MIN;
    for (given, expected) in [
        (ranges(&[(5, 9), (1, 3), (2, 4), (4, 5)]), ranges(&[(1, 9)])),
        (ranges(&[(7, 2)]), ranges(&[(min, 2), (7, i64::MAX)])),
        (ranges(&[(7, min)]), ranges(&[(7, i64::MAX)])),
        (ranges(&[(min, 3), (4, 4)]), ranges(&[(min, i64::MAX)])),
        (ranges(&[(min, min)]), ranges(&[(min, i64::MAX)])),
    ] {
        assert_eq!(normalized(&given), expected, "{given:?}");
    }
}

#[test]
fn neighbouring_chunks_are_read_at_once() {
    let chunks = [(0, 6), (10, 6), (30, 6), (40, 96)].map(|(offset, length)| Chunk { offset, length });
    let runs =
        |most| outgoing::stored_runs(&chunks, most).iter().map(|run| (run.offset, run.length)).collect::<Vec<_>>();
    assert_eq!(runs(1000), [(0, 20), (30, 110)]);
    assert_eq!(runs(15), [(0, 10), (10, 10), (30, 10), (40, 100)]);
}

#[test]
fn damaged_data_is_found() {
    let sim = Sim::new(1);
    let sstable = sstable(&sim, Version::OA, Some(CompressionParams::lz4()));
    let sections = vec![Section { start: 0, end: sstable.data_length() }];
    let content = outgoing::content(&sstable, sections, None, false).unwrap();
    let mut data = sent(&sstable, &content);
    data[100] ^= 1;
    assert!(matches!(received(&content, &data, 1 << 20), Err(StreamingError::Checksum { chunk: 0 })));
    let plain = Content { compression: None, ..content };
    let block = |compressed: i32, length: i32| {
        let mut input = BytesMut::new();
        input.extend_from_slice(&compressed.to_be_bytes());
        input.extend_from_slice(&length.to_be_bytes());
        input.extend_from_slice(&[0; 64]);
        DataReader::new(&plain).unwrap().next(&mut input)
    };
    for (compressed, length) in [(10, 0), (10, -1), (0, 10), (1 << 20, 10), (10, 1 << 21), (3, 100)] {
        assert!(block(compressed, length).is_err(), "{compressed} {length}");
    }
}

/// The partitions themselves may be wrong though each chunk is right.
#[test]
fn sections_that_are_cut_or_out_of_order_are_refused() {
    let sim = Sim::new(1);
    let sstable = sstable(&sim, Version::DA, None);
    let all = vec![Section { start: 0, end: sstable.data_length() }];
    let content = outgoing::content(&sstable, all, None, false).unwrap();
    let whole: Vec<u8> = received(&content, &sent(&sstable, &content), 1 << 20).unwrap().concat();
    let cut = content_of(stream(&content, vec![Bytes::copy_from_slice(&whole[..whole.len() - 1])]));
    assert!(matches!(cut, Err(ReadError::Malformed { .. })), "{cut:?}");
    let twice = content_of(stream(&content, vec![whole.clone().into(), whole.clone().into()]));
    assert!(twice.unwrap_err().to_string().contains("out of order"));
    // byte by byte it is the same
    let bytes = whole[..3000].iter().map(|byte| Bytes::copy_from_slice(&[*byte])).collect();
    let mut stream = stream(&content, bytes);
    assert_eq!(stream.next_partition().unwrap().unwrap().key, keys()[0]);
    assert_eq!(stream.next_partition().unwrap().unwrap().key, keys()[1]);
    assert!(stream.position() < 3000);
}
