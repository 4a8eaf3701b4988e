//! The terms of an index in one SSTable, and the rows that have them: `Attached+<index>+Terms.db`.
//!
//! A sequence of segments, each of the pairs of term and row that fit into [`SEGMENT_SIZE`] bytes
//! of memory while they are collected, so that memory does not grow with the SSTable. The rows of a
//! segment come behind those of the one before.
//!
//! ```text
//! segment          := postings-block* dictionary-block{1..}
//! postings-block   := row:uvint delta:uvint*     at most 16384 rows, ascending
//! dictionary-block := before:uvint entry*        about 4 KiB
//! entry            := shared:uvint suffix:vbytes count:uvint rows
//! rows             := row:uvint delta:uvint*     if count <= 16
//!                   | first:uvint                the number of the first postings-block
//! footer           := fingerprint:vbytes rows:u32 data_length:u64 pairs:u64
//!                     count:uvint segment-head{count}
//! segment-head     := first_block:uvint blocks:uvint pairs:uvint least:vbytes greatest:vbytes
//! ```
//!
//! `before`: pairs of the dictionary's blocks before this one.
//! Terms are byte-comparable forms, ordered as bytes. `shared`: leading bytes of the term before in
//! its block. The fingerprint names the index's definition: a file of another one is not taken.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use env::Disk;
use rows::{ReadError, ReadMode};
use stdx::Cursor;
use stdx::put::{put_u32, put_u64, put_uvint};

use super::blocks::{BlockFile, BlockWriter, Kind};
use super::damaged;
use super::row_set::{RowSet, RowSetBuilder};
use crate::error::{Error, IndexError};
use crate::file_cache::FileCache;

/// Bytes of terms and pairs that are collected before they become a segment.
pub const SEGMENT_SIZE: usize = 32 << 20;
/// Bytes at which a block of the dictionary ends.
const DICTIONARY_BLOCK: usize = 4 << 10;
/// Rows that stand in the dictionary itself.
const INLINE_ROWS: usize = 16;
/// Rows of a block of postings.
const POSTINGS_ROWS: usize = 16 << 10;
/// Pairs of a block of the dictionary from which on a part of it is counted, not guessed: counting
/// takes as long as finding a few hundred rows.
const BLOCK_PAIRS: u64 = 1 << 10;
/// More segments than a file has: 4 Gi rows in segments of a million.
const SEGMENTS_MAX: u64 = 1 << 20;

/// Longest term that stands in the head of a segment.
const END_SIZE_MAX: usize = 256;

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_uvint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// The head of a segment, as the footer has it.
#[derive(Debug)]
struct Segment {
    first_block: u64,
    blocks: u64,
    pairs: u64,
    least: Bytes,
    greatest: Bytes,
}

/// A pair that is collected: where its term stands, and its row.
#[derive(Clone, Copy)]
struct Pair {
    start: u32,
    length: u32,
    row: u32,
}

impl Pair {
    fn term<'a>(&self, terms: &'a [u8]) -> &'a [u8] {
        &terms[self.start as usize..(self.start + self.length) as usize]
    }
}

/// Terms that are being written.
pub struct TermsWriter {
    blocks: BlockWriter,
    terms: Vec<u8>,
    pairs: Vec<Pair>,
    segments: Vec<Segment>,
    total: u64,
    segment_size: usize,
}

impl TermsWriter {
    /// Creates the file.
    pub fn create(disk: &dyn Disk, path: PathBuf) -> Result<Self, Error> {
        Self::with_segments_of(disk, path, SEGMENT_SIZE)
    }

    /// As [`Self::create`], with segments of another size, for tests.
    pub fn with_segments_of(disk: &dyn Disk, path: PathBuf, segment_size: usize) -> Result<Self, Error> {
        let blocks = BlockWriter::create(disk, path, Kind::Terms)?;
        Ok(Self { blocks, terms: Vec::new(), pairs: Vec::new(), segments: Vec::new(), total: 0, segment_size })
    }

    /// Adds a term of a row; rows do not descend.
    pub fn add(&mut self, term: &[u8], row: u32) -> Result<(), Error> {
        debug_assert!(self.pairs.last().is_none_or(|last| last.row <= row), "rows do not descend");
        let pair = Pair { start: self.terms.len() as u32, length: term.len() as u32, row };
        self.terms.extend_from_slice(term);
        self.pairs.push(pair);
        if self.terms.len() + self.pairs.len() * size_of::<Pair>() >= self.segment_size {
            self.end_segment()?;
        }
        Ok(())
    }

    fn end_segment(&mut self) -> Result<(), Error> {
        let terms = std::mem::take(&mut self.terms);
        let mut pairs = std::mem::take(&mut self.pairs);
        if pairs.is_empty() {
            return Ok(());
        }
        pairs.sort_unstable_by(|a, b| a.term(&terms).cmp(b.term(&terms)).then(a.row.cmp(&b.row)));
        pairs.dedup_by(|a, b| a.row == b.row && a.term(&terms) == b.term(&terms));
        let mut dictionary = Dictionary::default();
        for group in pairs.chunk_by(|a, b| a.term(&terms) == b.term(&terms)) {
            let Some(first) = group.first() else { continue };
            let mut rows = Vec::new();
            if group.len() <= INLINE_ROWS {
                put_rows(&mut rows, group);
            } else {
                let mut first = None;
                for part in group.chunks(POSTINGS_ROWS) {
                    let mut block = Vec::new();
                    put_rows(&mut block, part);
                    let number = self.blocks.put(&block)?;
                    first.get_or_insert(number);
                }
                put_uvint(&mut rows, first.unwrap_or(0));
            }
            dictionary.add(first.term(&terms), group.len() as u64, &rows);
        }
        let (least, greatest) = (pairs.first(), pairs.last());
        let bytes = |pair: Option<&Pair>| pair.map_or_else(Bytes::new, |p| Bytes::copy_from_slice(p.term(&terms)));
        let (least, greatest) = (shorter(bytes(least), false), shorter(bytes(greatest), true));
        let pairs = pairs.len() as u64;
        let done = dictionary.finish();
        let blocks = done.len() as u64;
        let mut first_block = None;
        for block in done {
            let number = self.blocks.put(&block)?;
            first_block.get_or_insert(number);
        }
        self.total += pairs;
        self.segments.push(Segment { first_block: first_block.unwrap_or(0), blocks, pairs, least, greatest });
        Ok(())
    }

    /// Completes and syncs the file. `rows` and `data_length` are those of the keys.
    pub fn finish(mut self, fingerprint: &[u8], rows: u32, data_length: u64) -> Result<(), Error> {
        self.end_segment()?;
        let mut footer = Vec::new();
        put_bytes(&mut footer, fingerprint);
        put_u32(&mut footer, rows);
        put_u64(&mut footer, data_length);
        put_u64(&mut footer, self.total);
        put_uvint(&mut footer, self.segments.len() as u64);
        for segment in &self.segments {
            put_uvint(&mut footer, segment.first_block);
            put_uvint(&mut footer, segment.blocks);
            put_uvint(&mut footer, segment.pairs);
            put_bytes(&mut footer, &segment.least);
            put_bytes(&mut footer, &segment.greatest);
        }
        self.blocks.finish(&footer)
    }
}

/// An end of a segment as its head has it: of a long term one that is not greater, or not less.
fn shorter(term: Bytes, is_greatest: bool) -> Bytes {
    match term.len() {
        0..=END_SIZE_MAX => term,
        // greater than every byte-comparable form
        _ if is_greatest => Bytes::from_static(&[0xff]),
        _ => term.slice(..END_SIZE_MAX),
    }
}

fn put_rows(out: &mut Vec<u8>, pairs: &[Pair]) {
    let mut last = 0;
    for (at, pair) in pairs.iter().enumerate() {
        assert!(at == 0 || pair.row > last, "the rows of a term ascend");
        put_uvint(out, u64::from(pair.row - last));
        last = pair.row;
    }
}

/// The dictionary of a segment: at most as large as the terms that were collected.
#[derive(Default)]
struct Dictionary {
    done: Vec<Vec<u8>>,
    block: Vec<u8>,
    last: Vec<u8>,
    pairs: u64,
}

impl Dictionary {
    fn add(&mut self, term: &[u8], count: u64, rows: &[u8]) {
        if self.block.len() >= DICTIONARY_BLOCK {
            self.done.push(std::mem::take(&mut self.block));
        }
        let mut shared = self.last.iter().zip(term).take_while(|(a, b)| a == b).count();
        if self.block.is_empty() {
            put_uvint(&mut self.block, self.pairs);
            shared = 0;
        }
        put_uvint(&mut self.block, shared as u64);
        put_bytes(&mut self.block, &term[shared..]);
        put_uvint(&mut self.block, count);
        self.block.extend_from_slice(rows);
        self.last.clear();
        self.last.extend_from_slice(term);
        self.pairs += count;
    }

    fn finish(mut self) -> Vec<Vec<u8>> {
        if !self.block.is_empty() {
            self.done.push(self.block);
        }
        self.done
    }
}

/// The terms that a search wants. An end is a term and whether it is included; None: no end.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TermRange {
    /// The least.
    pub lower: Option<(Vec<u8>, bool)>,
    /// The greatest.
    pub upper: Option<(Vec<u8>, bool)>,
    /// A part that the terms of texts have; None: any. Every term between the ends is compared.
    pub part: Option<TermPart>,
}

/// A part of the terms of texts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TermPart {
    /// The bytes; with `at_end` those that end a term too.
    bytes: Vec<u8>,
    /// Terms end with it.
    at_end: bool,
}

impl TermPart {
    /// The part of terms whose texts have a text in them, or end with it. None: nothing can be told
    /// by the terms, because the form of a zero byte is not that byte.
    pub fn of(text: &[u8], at_end: bool) -> Option<Self> {
        let mut bytes = text.to_vec();
        if bytes.contains(&0) {
            return None;
        }
        // the byte that ends the form of a text
        bytes.extend(at_end.then_some(0));
        Some(Self { bytes, at_end })
    }

    fn is_in(&self, term: &[u8]) -> bool {
        match self.at_end {
            true => term.ends_with(&self.bytes),
            false => self.bytes.is_empty() || term.windows(self.bytes.len()).any(|part| part == self.bytes),
        }
    }
}

impl TermRange {
    /// One term.
    pub fn one(term: &[u8]) -> Self {
        Self { lower: Some((term.to_vec(), true)), upper: Some((term.to_vec(), true)), part: None }
    }

    /// Whether a term comes before the range.
    pub fn is_before(&self, term: &[u8]) -> bool {
        self.lower.as_ref().is_some_and(|(lower, inclusive)| term < &lower[..] || (!inclusive && term == &lower[..]))
    }

    /// Whether a term has the part that is wanted.
    pub fn has_part(&self, term: &[u8]) -> bool {
        self.part.as_ref().is_none_or(|part| part.is_in(term))
    }

    /// Whether a term comes behind the range.
    pub fn is_behind(&self, term: &[u8]) -> bool {
        self.upper.as_ref().is_some_and(|(upper, inclusive)| term > &upper[..] || (!inclusive && term == &upper[..]))
    }
}

/// The terms of an index in an SSTable.
#[derive(Debug)]
pub struct TermIndex {
    blocks: BlockFile,
    fingerprint: Bytes,
    rows: u32,
    data_length: u64,
    pairs: u64,
    segments: Vec<Segment>,
}

impl TermIndex {
    /// Opens the file.
    pub fn open(disk: &dyn Disk, path: &Path, cache: Arc<dyn FileCache>) -> Result<Self, Error> {
        let (blocks, footer) = BlockFile::open(disk, path, cache, Kind::Terms)?;
        Self::of(blocks, &footer).map_err(|error| Error::corrupt(path, 0, error.into_malformed().what))
    }

    /// The same over bytes, for tests and fuzzing.
    pub(crate) fn over(bytes: Bytes) -> Result<Self, IndexError> {
        let (blocks, footer) = BlockFile::over(bytes.into(), Path::new("terms"), Kind::Terms)?;
        Self::of(blocks, &footer)
    }

    fn of(blocks: BlockFile, footer: &Bytes) -> Result<Self, IndexError> {
        let mut cursor = Cursor::new(footer);
        let fingerprint = take_bytes(footer, &mut cursor)?;
        let (rows, data_length, pairs) = (cursor.u32()?, cursor.u64()?, cursor.u64()?);
        let count = cursor.uvint()?;
        if count > SEGMENTS_MAX {
            return Err(damaged(format!("{count} segments")).into());
        }
        let mut segments = Vec::new();
        for _ in 0..count {
            let segment = Segment {
                first_block: cursor.uvint()?,
                blocks: cursor.uvint()?,
                pairs: cursor.uvint()?,
                least: take_bytes(footer, &mut cursor)?,
                greatest: take_bytes(footer, &mut cursor)?,
            };
            let end = segment.first_block.checked_add(segment.blocks);
            if segment.blocks == 0 || end.is_none_or(|end| end > blocks.blocks()) {
                return Err(damaged("a segment of blocks that are not there").into());
            }
            segments.push(segment);
        }
        Ok(Self { blocks, fingerprint, rows, data_length, pairs, segments })
    }

    /// The name of the definition that the index was made for.
    pub fn fingerprint(&self) -> &[u8] {
        &self.fingerprint
    }

    /// Rows and bytes of the data that the terms are of.
    pub fn of_data(&self) -> (u32, u64) {
        (self.rows, self.data_length)
    }

    /// Pairs of term and row.
    pub fn pairs(&self) -> u64 {
        self.pairs
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.blocks.len()
    }

    /// The least and the greatest term; None: there is no term.
    pub fn ends(&self) -> Option<(&[u8], &[u8])> {
        let least = self.segments.iter().map(|segment| &segment.least[..]).min()?;
        let greatest = self.segments.iter().map(|segment| &segment.greatest[..]).max()?;
        Some((least, greatest))
    }

    fn touched<'a>(&'a self, range: &'a TermRange) -> impl Iterator<Item = &'a Segment> {
        self.segments.iter().filter(|segment| !range.is_before(&segment.greatest) && !range.is_behind(&segment.least))
    }

    /// About how many rows have a term of the range: exact but for a block of the dictionary at
    /// each end, of which half is counted. Where blocks stand for many rows each, those at the ends
    /// are counted term by term: they have few terms, or a few of their terms have many rows.
    ///
    /// Of rows beyond `enough` it may give fewer than there are, but no less than `enough`: both
    /// ends are looked for together, and what lies between two probes is known to be in the range.
    pub fn estimate(&self, range: &TermRange, enough: u64, mode: ReadMode) -> Result<u64, ReadError> {
        let mut sum = 0;
        for segment in self.touched(range) {
            sum += match (&range.lower, &range.upper) {
                (None, None) => segment.pairs,
                (Some((lower, _)), Some((upper, _))) if lower == upper => {
                    self.count_in(segment, self.block_of(segment, lower, mode)?, range, mode)?
                }
                _ => self.estimate_in(segment, range, enough.saturating_sub(sum), mode)?,
            };
            if sum >= enough {
                break;
            }
        }
        Ok(sum)
    }

    fn estimate_in(&self, segment: &Segment, range: &TermRange, enough: u64, mode: ReadMode) -> Result<u64, ReadError> {
        let [mut lower, mut upper] = [&range.lower, &range.upper].map(|end| Bracket::of(segment, end.as_ref()));
        let mut known = 0..segment.pairs;
        if range.lower.is_some() {
            known.start = segment.pairs;
        }
        if range.upper.is_some() {
            known.end = 0;
        }
        while known.end.saturating_sub(known.start) < enough && !(lower.is_closed() && upper.is_closed()) {
            if lower.width() >= upper.width() {
                // blocks behind the one that was probed have greater terms only
                if let Probed { before, is_greater: true } = self.probe(segment, &mut lower, mode)? {
                    known.start = before;
                }
            } else if let Probed { before, is_greater: false } = self.probe(segment, &mut upper, mode)? {
                known.end = before;
            }
        }
        let known = known.end.saturating_sub(known.start);
        if known >= enough {
            return Ok(known);
        }
        let first = lower.low.saturating_sub(1);
        let last = if range.upper.is_none() { segment.blocks - 1 } else { upper.low.saturating_sub(1) };
        let one = segment.pairs / segment.blocks;
        if one <= BLOCK_PAIRS {
            let to = self.before(segment, last + 1, mode)?;
            return Ok(to.saturating_sub(self.before(segment, first, mode)?).saturating_sub(one).max(1));
        }
        let mut sum = self.count_in(segment, first, range, mode)?;
        if last > first {
            let to = self.before(segment, last, mode)?;
            sum += to.saturating_sub(self.before(segment, first + 1, mode)?);
            sum += self.count_in(segment, last, range, mode)?;
        }
        Ok(sum)
    }

    /// Halves a bracket by the block in its middle.
    fn probe(&self, segment: &Segment, bracket: &mut Bracket<'_>, mode: ReadMode) -> Result<Probed, ReadError> {
        let middle = bracket.low + (bracket.high - bracket.low) / 2;
        let payload = self.blocks.block(segment.first_block + middle, mode)?;
        let mut entries = Entries::new(&payload).map_err(|error| self.blocks.error(error))?;
        entries.next().map_err(|error| self.blocks.error(error))?;
        let is_greater = entries.term.as_slice() > bracket.bound;
        if is_greater {
            bracket.high = middle
        } else {
            bracket.low = middle + 1
        }
        Ok(Probed { before: entries.before, is_greater })
    }

    /// Pairs in the blocks of a segment's dictionary before one of them.
    fn before(&self, segment: &Segment, block: u64, mode: ReadMode) -> Result<u64, ReadError> {
        if block == 0 || block >= segment.blocks {
            return Ok(if block == 0 { 0 } else { segment.pairs });
        }
        let payload = self.blocks.block(segment.first_block + block, mode)?;
        Ok(Entries::new(&payload).map_err(|error| self.blocks.error(error))?.before)
    }

    /// The rows of a range within one block of the dictionary, counted.
    fn count_in(&self, segment: &Segment, block: u64, range: &TermRange, mode: ReadMode) -> Result<u64, ReadError> {
        let payload = self.blocks.block(segment.first_block + block, mode)?;
        let mut entries = Entries::new(&payload).map_err(|error| self.blocks.error(error))?;
        let mut sum = 0;
        while let Some(entry) = entries.next().map_err(|error| self.blocks.error(error))? {
            if range.is_behind(&entries.term) {
                break;
            }
            if !range.is_before(&entries.term) {
                sum += entry.count;
            }
        }
        Ok(sum)
    }

    /// The last block of the dictionary that begins with a term not greater than the bound; the
    /// first one where there is none.
    fn block_of(&self, segment: &Segment, bound: &[u8], mode: ReadMode) -> Result<u64, ReadError> {
        let mut bracket = Bracket { bound, low: 0, high: segment.blocks };
        while !bracket.is_closed() {
            self.probe(segment, &mut bracket, mode)?;
        }
        Ok(bracket.low.saturating_sub(1))
    }

    /// The rows that have a term of the range.
    pub fn rows(&self, range: &TermRange, mode: ReadMode) -> Result<RowSet, ReadError> {
        let mut found = RowSetBuilder::new(self.rows);
        for segment in self.touched(range) {
            let first = range.lower.as_ref().map_or(Ok(0), |(lower, _)| self.block_of(segment, lower, mode))?;
            'blocks: for block in first..segment.blocks {
                let payload = self.blocks.block(segment.first_block + block, mode)?;
                let mut entries = Entries::new(&payload).map_err(|error| self.blocks.error(error))?;
                while let Some(entry) = entries.next().map_err(|error| self.blocks.error(error))? {
                    if range.is_behind(&entries.term) {
                        break 'blocks;
                    }
                    if !range.is_before(&entries.term) && range.has_part(&entries.term) {
                        self.add_rows(&entry, &mut found, mode)?;
                    }
                }
            }
        }
        Ok(found.finish())
    }

    fn add_rows(&self, entry: &Entry<'_>, found: &mut RowSetBuilder, mode: ReadMode) -> Result<(), ReadError> {
        let first = match entry.rows {
            Rows::Inline(bytes) => {
                return add_rows(Cursor::new(bytes), found).map_err(|error| self.blocks.error(error));
            }
            Rows::Blocks(first) => first,
        };
        for block in 0..entry.count.div_ceil(POSTINGS_ROWS as u64) {
            let payload = self.blocks.block(first.saturating_add(block), mode)?;
            add_rows(Cursor::new(&payload), found).map_err(|error| self.blocks.error(error))?;
        }
        Ok(())
    }
}

/// The blocks of a segment's dictionary that are left in a search for the first one that begins
/// with a greater term than `bound`.
struct Bracket<'a> {
    bound: &'a [u8],
    /// Blocks before this one begin with terms that are not greater.
    low: u64,
    /// This block and those behind it begin with greater ones.
    high: u64,
}

impl<'a> Bracket<'a> {
    /// A search for an end of a range. Without an end there is nothing to search for.
    fn of(segment: &Segment, end: Option<&'a (Vec<u8>, bool)>) -> Self {
        let (bound, high) = end.map_or((&[][..], 0), |(bound, _)| (&bound[..], segment.blocks));
        Self { bound, low: 0, high }
    }

    fn width(&self) -> u64 {
        self.high - self.low
    }

    fn is_closed(&self) -> bool {
        self.low >= self.high
    }
}

/// The block in the middle of a bracket.
struct Probed {
    /// Pairs in the blocks before it.
    before: u64,
    /// The block begins with a term greater than the bound.
    is_greater: bool,
}

/// A block of a dictionary of any bytes, for fuzzing.
pub(crate) fn any_block(data: &[u8]) {
    let Ok(mut entries) = Entries::new(data) else { return };
    let mut found = RowSetBuilder::new(1 << 16);
    while let Ok(Some(entry)) = entries.next() {
        if let Rows::Inline(bytes) = entry.rows
            && add_rows(Cursor::new(bytes), &mut found).is_err()
        {
            return;
        }
    }
}

fn add_rows(mut cursor: Cursor<'_>, found: &mut RowSetBuilder) -> Result<(), IndexError> {
    let mut row = 0u64;
    while !cursor.is_empty() {
        row = row.checked_add(cursor.uvint()?).ok_or_else(|| damaged("a row beyond all numbers"))?;
        found.add(u32::try_from(row).map_err(|_| damaged("a row beyond all numbers"))?);
    }
    Ok(())
}

fn take_bytes(whole: &Bytes, cursor: &mut Cursor<'_>) -> Result<Bytes, IndexError> {
    let length = usize::try_from(cursor.uvint()?).map_err(|_| damaged("a length beyond the block"))?;
    Ok(whole.slice_ref(cursor.take(length)?))
}

/// An entry of the dictionary, without its term.
struct Entry<'a> {
    count: u64,
    rows: Rows<'a>,
}

enum Rows<'a> {
    Inline(&'a [u8]),
    Blocks(u64),
}

/// The entries of a block of the dictionary.
struct Entries<'a> {
    cursor: Cursor<'a>,
    /// Pairs in the blocks before this one.
    before: u64,
    /// The term of the entry that was read last.
    term: Vec<u8>,
}

impl<'a> Entries<'a> {
    fn new(block: &'a [u8]) -> Result<Self, IndexError> {
        let mut cursor = Cursor::new(block);
        let before = cursor.uvint()?;
        Ok(Self { cursor, before, term: Vec::new() })
    }

    fn next(&mut self) -> Result<Option<Entry<'a>>, IndexError> {
        if self.cursor.is_empty() {
            return Ok(None);
        }
        let (shared, length) = (self.cursor.uvint()?, self.cursor.uvint()?);
        let length = usize::try_from(length).map_err(|_| damaged("a term beyond the block"))?;
        let suffix = self.cursor.take(length)?;
        let shared = usize::try_from(shared).ok().filter(|shared| *shared <= self.term.len());
        self.term.truncate(shared.ok_or_else(|| damaged("a term that shares what is not there"))?);
        self.term.extend_from_slice(suffix);
        let count = self.cursor.uvint()?;
        if count > INLINE_ROWS as u64 {
            return Ok(Some(Entry { count, rows: Rows::Blocks(self.cursor.uvint()?) }));
        }
        let start = self.cursor.rest();
        for _ in 0..count {
            self.cursor.uvint()?;
        }
        let used = start.len() - self.cursor.remaining();
        let rows = start.get(..used).ok_or_else(|| damaged("rows beyond the block"))?;
        Ok(Some(Entry { count, rows: Rows::Inline(rows) }))
    }
}

#[cfg(test)]
mod tests;
