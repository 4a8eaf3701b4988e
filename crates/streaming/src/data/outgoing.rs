//! The sender's side: which places of an SSTable's files make the data of a stream.
//!
//! 1. Ranges of the ring are put in order and merged ([`normalized`]).
//! 2. Each becomes a section of the uncompressed Data.db, found through the index ([`sections`]).
//! 3. The header lists the chunks that the sections touch ([`content`]).
//! 4. The data is read: runs of stored chunks ([`stored_runs`]), or parts of chunks that become LZ4
//!    blocks ([`blocks`]), or whole components.
//!
//! A chunk is sent as it is stored, with all that other partitions have in it. A repair finds
//! thousands of ranges of one partition each, of some hundred bytes in a chunk of 16 KiB. Sections
//! of a compressed Data.db that are smaller than the chunks that they touch go as those of one
//! without compression: the sender decompresses what the receiver would have to. Receivers,
//! Cassandra's too, go by the header of a file and not by their table; Cassandra's sender sends
//! the chunks in this case, too.
//!
//! Reading the files is the caller's. Agrees with `org.apache.cassandra.db.streaming.
//! {CassandraOutgoingFile,CassandraCompressedStreamWriter,CassandraStreamWriter}` and
//! `SSTableReader.getPositionsForRanges`.

use std::ops::Range;

use rows::{ReadContext, ReadError};
use sstable::{CHUNK_CHECKSUM_LEN, CompressionInfo, SSTable};
use types::Token;

use super::chunks::touched;
use crate::message::CHUNKS_MAX;
use crate::message::content::{Chunk, Compression, Content, Manifest, Section};
use crate::message::prepare::TokenRange;

/// The ranges in the order of the ring, none over its end, none touching another. A range up to
/// the smallest token leads to the end of the ring.
pub fn normalized(ranges: &[TokenRange]) -> Vec<TokenRange> {
    let mut parts: Vec<TokenRange> = ranges.iter().copied().flat_map(unwrapped).collect();
    parts.sort_unstable();
    let mut merged: Vec<TokenRange> = Vec::with_capacity(parts.len());
    for part in parts {
        match merged.last_mut() {
            Some(last) if part.left <= last.right => last.right = last.right.max(part.right),
            _ => merged.push(part),
        }
    }
    let is_apart = |pair: &[TokenRange]| pair[0].right < pair[1].left;
    assert!(merged.windows(2).all(is_apart), "ranges that are in order do not touch");
    merged
}

/// A range in at most two parts that do not lead over the end of the ring.
fn unwrapped(range: TokenRange) -> impl Iterator<Item = TokenRange> {
    let TokenRange { left, right } = range;
    let to_end = right == Token::MIN || left >= right;
    let first = TokenRange { left, right: if to_end { Token::MAX } else { right } };
    let second = (left >= right && right != Token::MIN).then_some(TokenRange { left: Token::MIN, right });
    [Some(first), second].into_iter().flatten().filter(|part| part.left < part.right)
}

/// The sections that hold the partitions of [`normalized`] ranges; none: the SSTable has nothing of
/// them.
pub fn sections(sstable: &SSTable, ranges: &[TokenRange], context: &ReadContext) -> Result<Vec<Section>, ReadError> {
    let mut sections = Vec::new();
    let mut places = sstable.partition_offsets(context);
    for range in ranges.iter().filter(|range| reaches(sstable, range)) {
        let (start, end) = (places.offset_after(range.left)?, places.offset_after(range.right)?);
        if start < end {
            sections.push(Section { start, end });
        }
    }
    Ok(sections)
}

/// Whether a range and an SSTable have tokens in common.
fn reaches(sstable: &SSTable, range: &TokenRange) -> bool {
    sstable.last_key().token > range.left && sstable.first_key().token <= range.right
}

/// Whether the sections are all of an SSTable, so that it can go whole.
pub fn are_entire(sstable: &SSTable, sections: &[Section]) -> bool {
    sections.iter().map(|section| section.length()).sum::<u64>() == sstable.data_length()
}

/// The description of these sections of an SSTable. With a manifest the SSTable goes whole; its
/// chunks are not listed then, because no receiver looks at the list (Cassandra lists them).
/// `keeps_level`: the receiver's SSTable has the level of this one.
///
/// # Errors
/// CompressionInfo.db names no place for a chunk.
pub fn content(
    sstable: &SSTable,
    sections: Vec<Section>,
    entire: Option<Manifest>,
    keeps_level: bool,
) -> Result<Content, ReadError> {
    let compression = match sstable.data().compression().filter(|_| entire.is_none()) {
        Some(info) if can_be_listed(&sections, info) => Some(compression(sstable, info, &sections)?),
        _ => None,
    };
    let bytes: u64 = sections.iter().map(|section| section.length()).sum();
    let compression = compression.filter(|compression| compression.transfer_bytes() <= bytes);
    Ok(Content {
        version: sstable.descriptor().version,
        estimated_keys: estimated_keys(sstable, &sections),
        compression,
        level: if keeps_level { sstable.statistics().stats.level } else { 0 },
        rows: sstable.statistics().header.clone(),
        sections,
        entire,
    })
}

/// The SSTable's number of partitions in proportion to the sections' bytes, at least 1.
fn estimated_keys(sstable: &SSTable, sections: &[Section]) -> u64 {
    let bytes: u64 = sections.iter().map(|section| section.length()).sum();
    let keys = u128::from(sstable.partition_count()) * u128::from(bytes) / u128::from(sstable.data_length().max(1));
    u64::try_from(keys).unwrap_or(u64::MAX).max(1)
}

/// Whether the chunks that sections touch fit into a header.
fn can_be_listed(sections: &[Section], info: &CompressionInfo) -> bool {
    touched(sections, info.params.chunk_length as u64) <= CHUNKS_MAX
}

fn compression(sstable: &SSTable, info: &CompressionInfo, sections: &[Section]) -> Result<Compression, ReadError> {
    let chunk_length = info.params.chunk_length as u64;
    let mut chunks = Vec::with_capacity(usize::try_from(touched(sections, chunk_length)).unwrap_or(0));
    let mut next = 0;
    for section in sections {
        let first = (section.start / chunk_length).max(next);
        next = (section.end - 1) / chunk_length + 1;
        for number in first..next {
            let place = info.chunk(number, sstable.stored_length());
            let place = place.map_err(|error| sstable.data().corruption(error.offset, error.what))?;
            let length = u32::try_from(place.length)
                .map_err(|_| sstable.data().corruption(place.offset, format!("a chunk of {} bytes", place.length)))?;
            chunks.push(Chunk { offset: place.offset, length });
        }
    }
    Ok(Compression { chunks, params: info.params.clone() })
}

/// A run of bytes of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Run {
    /// Offset in the file.
    pub offset: u64,
    /// Length of the run, bytes.
    pub length: u64,
}

/// The places of chunks with their checksums in the sender's Data.db, in the order in which they
/// are sent; neighbours are one run of at most `length_max` bytes, unless a single chunk is longer.
pub fn stored_runs(chunks: &[Chunk], length_max: u64) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for chunk in chunks {
        let length = u64::from(chunk.length) + CHUNK_CHECKSUM_LEN;
        match runs.last_mut() {
            Some(run) if run.offset + run.length == chunk.offset && run.length + length <= length_max => {
                run.length += length;
            }
            _ => runs.push(Run { offset: chunk.offset, length }),
        }
    }
    let stored: u64 = chunks.iter().map(|chunk| u64::from(chunk.length) + CHUNK_CHECKSUM_LEN).sum();
    assert_eq!(runs.iter().map(|run| run.length).sum::<u64>(), stored, "runs have the bytes of their chunks");
    runs
}

/// A part of a chunk that becomes a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BlockPlace {
    /// Number of the chunk in CRC.db, or in CompressionInfo.db.
    pub chunk: u64,
    /// Range of bytes in the chunk.
    pub bytes: Range<usize>,
}

/// The blocks of sections that go without the compression of the file. A block never leads over the
/// end of a chunk, so that a chunk is read and checked once for each section in it.
pub fn blocks(sections: &[Section], chunk_length: usize) -> impl Iterator<Item = BlockPlace> {
    let chunk_length = chunk_length as u64;
    sections.iter().flat_map(move |section| {
        let (start, end) = (section.start, section.end);
        (start / chunk_length..=(end - 1) / chunk_length).map(move |chunk| {
            let base = chunk * chunk_length;
            let first = start.max(base) - base;
            let last = end.min(base + chunk_length) - base;
            BlockPlace { chunk, bytes: first as usize..last as usize }
        })
    })
}
