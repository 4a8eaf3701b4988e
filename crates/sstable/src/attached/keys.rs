//! The keys of an SSTable's rows by number: `Attached+Keys.db`.
//!
//! Blocks of [`BLOCK_ROWS`] rows each, so that the block of a row follows from its number:
//!
//! ```text
//! block  := row{1..64}
//! row    := flags:u8 [key:vbytes] [clustering]
//! clustering := count:uvint shared:uvint value{count - shared}
//! value  := length + 1:uvint bytes | 0      0: null
//! footer := rows:u32 data_length:u64
//! ```
//!
//! Flags: 1, the partition's key stands here (always at the start of a block); 2, the number stands
//! for the whole partition, and has no clustering. `shared`: leading values that are those of the
//! row before, 0 at the start of a block or partition.

use std::cmp::Ordering;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use env::Disk;
use rows::{ClusteringValues, ReadError, ReadMode};
use schema::TableMetadata;
use stdx::Cursor;
use stdx::put::{put_u32, put_u64, put_uvint};
use types::DecoratedKey;

use super::blocks::{BlockFile, BlockWriter, Kind};
use super::damaged;
use crate::error::{Error, IndexError};
use crate::file_cache::FileCache;

/// Rows of a block.
const BLOCK_ROWS: u32 = 64;
const HAS_KEY: u8 = 1;
const IS_PARTITION: u8 = 2;
/// More values than a clustering can have.
const CLUSTERING_MAX: u64 = 1 << 15;

/// Where in its partition something stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Position {
    /// The whole partition; before all of its rows.
    Partition,
    /// A row.
    Row(ClusteringValues),
}

/// A place in a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The partition.
    pub key: DecoratedKey,
    /// Where in it.
    pub position: Position,
}

impl Place {
    /// The whole partition.
    pub fn partition(key: DecoratedKey) -> Self {
        Self { key, position: Position::Partition }
    }

    /// A row.
    pub fn row(key: DecoratedKey, clustering: ClusteringValues) -> Self {
        Self { key, position: Position::Row(clustering) }
    }

    /// The order of the table's rows.
    pub fn compare(&self, other: &Self, table: &TableMetadata) -> Ordering {
        self.key.cmp(&other.key).then_with(|| match (&self.position, &other.position) {
            (Position::Partition, Position::Partition) => Ordering::Equal,
            (Position::Partition, Position::Row(_)) => Ordering::Less,
            (Position::Row(_), Position::Partition) => Ordering::Greater,
            (Position::Row(own), Position::Row(other)) => table.comparator.compare_values(own, other),
        })
    }
}

/// Keys that are being written.
pub struct RowKeysWriter {
    blocks: BlockWriter,
    block: Vec<u8>,
    rows: u32,
    last: Option<Place>,
}

impl RowKeysWriter {
    /// Creates the file.
    pub fn create(disk: &dyn Disk, path: PathBuf) -> Result<Self, Error> {
        let blocks = BlockWriter::create(disk, path, Kind::Keys)?;
        Ok(Self { blocks, block: Vec::new(), rows: 0, last: None })
    }

    /// Adds the next row, which comes behind all before it.
    pub fn add(&mut self, key: &DecoratedKey, clustering: Option<&ClusteringValues>) -> Result<(), Error> {
        let starts = self.rows.is_multiple_of(BLOCK_ROWS);
        if starts && self.rows > 0 {
            self.blocks.put(&self.block)?;
            self.block.clear();
        }
        let before = self.last.take().filter(|last| !starts && last.key.key == key.key);
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        self.block.push(flag(before.is_none(), HAS_KEY) | flag(clustering.is_none(), IS_PARTITION));
        if before.is_none() {
            put_uvint(&mut self.block, key.key.len() as u64);
            self.block.extend_from_slice(&key.key);
        }
        if let Some(clustering) = clustering {
            let shared = match before.as_ref().map(|before| &before.position) {
                Some(Position::Row(last)) => last.iter().zip(clustering).take_while(|(a, b)| a == b).count(),
                _ => 0,
            };
            put_uvint(&mut self.block, clustering.len() as u64);
            put_uvint(&mut self.block, shared as u64);
            for value in clustering.iter().skip(shared) {
                put_uvint(&mut self.block, value.as_ref().map_or(0, |value| value.len() as u64 + 1));
                self.block.extend_from_slice(value.as_deref().unwrap_or_default());
            }
        }
        let position = clustering.map_or(Position::Partition, |clustering| Position::Row(clustering.clone()));
        self.last = Some(Place { key: key.clone(), position });
        self.rows += 1;
        Ok(())
    }

    /// Rows so far.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Completes and syncs the file. `data_length`: bytes of the SSTable's data.
    pub fn finish(mut self, data_length: u64) -> Result<(), Error> {
        if !self.block.is_empty() {
            self.blocks.put(&self.block)?;
        }
        let mut footer = Vec::new();
        put_u32(&mut footer, self.rows);
        put_u64(&mut footer, data_length);
        self.blocks.finish(&footer)
    }
}

/// The keys of an SSTable's rows.
#[derive(Debug)]
pub struct RowKeys {
    blocks: BlockFile,
    rows: u32,
    data_length: u64,
}

impl RowKeys {
    /// Opens the file.
    pub fn open(disk: &dyn Disk, path: &Path, cache: Arc<dyn FileCache>) -> Result<Self, Error> {
        let (blocks, footer) = BlockFile::open(disk, path, cache, Kind::Keys)?;
        Self::of(blocks, &footer).map_err(|error| Error::corrupt(path, 0, error.into_malformed().what))
    }

    /// The same over bytes, for tests and fuzzing.
    pub(crate) fn over(bytes: Bytes) -> Result<Self, IndexError> {
        let (blocks, footer) = BlockFile::over(bytes.into(), Path::new("keys"), Kind::Keys)?;
        Self::of(blocks, &footer)
    }

    fn of(blocks: BlockFile, footer: &[u8]) -> Result<Self, IndexError> {
        let mut footer = Cursor::new(footer);
        let (rows, data_length) = (footer.u32()?, footer.u64()?);
        if u64::from(rows.div_ceil(BLOCK_ROWS)) != blocks.blocks() {
            return Err(damaged(format!("{rows} rows in {} blocks", blocks.blocks())).into());
        }
        Ok(Self { blocks, rows, data_length })
    }

    /// Number of rows.
    pub fn rows(&self) -> u32 {
        self.rows
    }

    /// Bytes of the data that the keys are of.
    pub fn data_length(&self) -> u64 {
        self.data_length
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.blocks.len()
    }

    fn decode(&self, number: u32, most: usize, mode: ReadMode) -> Result<Vec<Place>, ReadError> {
        let block = self.blocks.block(u64::from(number), mode)?;
        decode(&block, most).map_err(|error| self.blocks.error(error))
    }

    /// The blocks that may have rows of a partition: all that have, unless these are of more than
    /// `most` rows for certain; then the first of them.
    ///
    /// One search finds where the partition begins; its end is looked for from there on, in blocks
    /// at twice the distance each time, since most partitions end in the same block or the next.
    pub fn blocks_of(&self, key: &DecoratedKey, most: u32, mode: ReadMode) -> Result<BlocksOf, ReadError> {
        let blocks = self.rows.div_ceil(BLOCK_ROWS);
        // the first block that does not begin before the partition
        let next = self.first_block_not(0, blocks, |first| first < key, mode)?;
        let start = next.saturating_sub(1);
        // blocks from `next` on that are known to begin with the partition, and where to look next
        let (mut known, mut reach) = (0, 1u32);
        while reach <= blocks - next && self.first_key(next + reach - 1, mode)? == *key {
            known = reach;
            if (known - 1).saturating_mul(BLOCK_ROWS) >= most {
                return Ok(BlocksOf { start, end: next + known });
            }
            reach = reach.saturating_mul(2);
        }
        let high = next.saturating_add(reach - 1).min(blocks);
        let end = self.first_block_not(next + known, high, |first| first <= key, mode)?;
        Ok(BlocksOf { start, end })
    }

    /// The rows of a partition in its blocks, counted.
    pub fn rows_in(&self, key: &DecoratedKey, blocks: &BlocksOf, mode: ReadMode) -> Result<u32, ReadError> {
        let count = blocks.end - blocks.start;
        if count == 0 {
            return Ok(0);
        }
        // blocks between two that have rows of a partition have no others
        let mut rows = count.saturating_sub(2) * BLOCK_ROWS + self.count_in(blocks.start, key, mode)?;
        if count > 1 {
            rows += self.count_in(blocks.end - 1, key, mode)?;
        }
        Ok(rows)
    }

    /// The key of a block's first row.
    fn first_key(&self, number: u32, mode: ReadMode) -> Result<DecoratedKey, ReadError> {
        let mut walker = Walker::new(self.blocks.block(u64::from(number), mode)?);
        walker.step().map_err(|error| self.blocks.error(error))?;
        Ok(walker.key())
    }

    /// The first of the blocks from `low` to `high` whose first key is not passed.
    fn first_block_not(
        &self,
        mut low: u32,
        mut high: u32,
        is_passed: impl Fn(&DecoratedKey) -> bool,
        mode: ReadMode,
    ) -> Result<u32, ReadError> {
        while low < high {
            let middle = low + (high - low) / 2;
            if is_passed(&self.first_key(middle, mode)?) { low = middle + 1 } else { high = middle }
        }
        Ok(low)
    }

    /// Rows of a partition in a block.
    fn count_in(&self, number: u32, key: &DecoratedKey, mode: ReadMode) -> Result<u32, ReadError> {
        let mut walker = Walker::new(self.blocks.block(u64::from(number), mode)?);
        let (mut rows, mut order, mut compared) = (0, Ordering::Less, 0..0);
        while !walker.is_done() {
            walker.step().map_err(|error| self.blocks.error(error))?;
            // rows of one partition share the bytes of their key
            if walker.key != compared {
                compared = walker.key.clone();
                order = walker.key().cmp(key);
            }
            match order {
                Ordering::Less => {}
                Ordering::Equal => rows += 1,
                Ordering::Greater => break,
            }
        }
        Ok(rows)
    }

    /// The first row that is not before a place; the number of rows if all are.
    fn lower_bound(&self, place: &Place, table: &TableMetadata, mode: ReadMode) -> Result<u32, ReadError> {
        self.first_not(|own| own.compare(place, table).is_lt(), mode)
    }

    /// The first row that is not passed, where `is_passed` holds for rows up to some place.
    fn first_not(&self, is_passed: impl Fn(&Place) -> bool, mode: ReadMode) -> Result<u32, ReadError> {
        let (mut low, mut high) = (0, self.rows.div_ceil(BLOCK_ROWS));
        // blocks below `low` begin with a row that is passed, those from `high` on do not
        while low < high {
            let middle = low + (high - low) / 2;
            let first = self.decode(middle, 1, mode)?;
            let is_before = first.first().is_some_and(&is_passed);
            if is_before { low = middle + 1 } else { high = middle }
        }
        let Some(block) = low.checked_sub(1) else { return Ok(0) };
        let places = self.decode(block, usize::MAX, mode)?;
        let within = places.partition_point(&is_passed);
        Ok((block * BLOCK_ROWS).saturating_add(within as u32).min(self.rows))
    }
}

/// The numbers of blocks of keys.
#[derive(Clone, Debug)]
pub struct BlocksOf {
    start: u32,
    end: u32,
}

impl BlocksOf {
    /// The most rows that the blocks can have.
    pub fn rows_max(&self) -> u32 {
        (self.end - self.start).saturating_mul(BLOCK_ROWS)
    }
}

/// A block of any bytes, for fuzzing.
pub(crate) fn any_block(data: &[u8]) {
    let block = Bytes::copy_from_slice(data);
    let mut walker = Walker::new(block.clone());
    // refused or read, by both ways of reading in the same manner
    match decode(&block, usize::MAX) {
        Ok(places) => {
            for place in places {
                walker.step().expect("what is read at once can be stepped through");
                assert_eq!(walker.place(), place);
            }
        }
        Err(_) => {
            let is_refused = (0..=BLOCK_ROWS).any(|_| walker.step().is_err());
            assert!(is_refused, "a damaged block is stepped through");
        }
    }
}

/// The first `most` rows of a block.
fn decode(block: &Bytes, most: usize) -> Result<Vec<Place>, IndexError> {
    let mut cursor = Cursor::new(block);
    let mut places: Vec<Place> = Vec::new();
    while !cursor.is_empty() && places.len() < most.min(BLOCK_ROWS as usize) {
        let flags = cursor.u8()?;
        let key = match places.last() {
            _ if flags & HAS_KEY != 0 => {
                let length = cursor.uvint()?;
                let length = usize::try_from(length).map_err(|_| damaged("a key of a length that none has"))?;
                DecoratedKey::new(block.slice_ref(cursor.take(length)?))
            }
            Some(last) => last.key.clone(),
            None => return Err(damaged("a block that begins without a key").into()),
        };
        let position = match flags & IS_PARTITION {
            0 => Position::Row(decode_clustering(block, &mut cursor, places.last())?),
            _ => Position::Partition,
        };
        places.push(Place { key, position });
    }
    Ok(places)
}

fn decode_clustering(
    block: &Bytes,
    cursor: &mut Cursor<'_>,
    last: Option<&Place>,
) -> Result<ClusteringValues, IndexError> {
    let (count, shared) = (cursor.uvint()?, cursor.uvint()?);
    if shared > count || count > CLUSTERING_MAX {
        return Err(damaged("a clustering of a length that none has").into());
    }
    let mut values = ClusteringValues::new();
    if let Some(Position::Row(last)) = last.map(|last| &last.position) {
        values.extend(last.iter().take(shared as usize).cloned());
    }
    if values.len() as u64 != shared {
        return Err(damaged("a clustering that shares what is not there").into());
    }
    for _ in shared..count {
        values.push(match cursor.uvint()?.checked_sub(1) {
            None => None,
            Some(length) => {
                let length = usize::try_from(length).map_err(|_| damaged("a value of a length that none has"))?;
                Some(block.slice_ref(cursor.take(length)?))
            }
        });
    }
    Ok(values)
}

/// Steps through a block and makes nothing of the rows that it passes: of a row it keeps where the
/// bytes of its key and of its clustering stand. A search wants one row of a block in most cases.
#[derive(Debug)]
struct Walker {
    block: Bytes,
    /// Where the next row begins in the block.
    at: usize,
    /// Rows that are passed, the row that is stood at included.
    passed: usize,
    key: std::ops::Range<usize>,
    /// The values of the clustering; None for null.
    values: Vec<Option<std::ops::Range<usize>>>,
    is_partition: bool,
}

impl Walker {
    fn new(block: Bytes) -> Self {
        Self { block, at: 0, passed: 0, key: 0..0, values: Vec::new(), is_partition: false }
    }

    /// Steps to the next row of the block.
    fn step(&mut self) -> Result<(), IndexError> {
        let rest = self.block.get(self.at..).unwrap_or_default();
        let mut cursor = Cursor::new(rest);
        let range = |cursor: &mut Cursor<'_>, length: u64| -> Result<std::ops::Range<usize>, IndexError> {
            let length = usize::try_from(length).map_err(|_| damaged("a value of a length that none has"))?;
            let start = self.at + (rest.len() - cursor.remaining());
            cursor.take(length)?;
            Ok(start..start + length)
        };
        let flags = cursor.u8()?;
        let has_key = flags & HAS_KEY != 0;
        if has_key {
            let length = cursor.uvint()?;
            self.key = range(&mut cursor, length)?;
        } else if self.passed == 0 {
            return Err(damaged("a block that begins without a key").into());
        }
        let follows_row = !self.is_partition && self.passed > 0;
        self.is_partition = flags & IS_PARTITION != 0;
        if !self.is_partition {
            let (count, shared) = (cursor.uvint()?, cursor.uvint()?);
            if shared > count || count > CLUSTERING_MAX {
                return Err(damaged("a clustering of a length that none has").into());
            }
            if shared > 0 && (!follows_row || shared > self.values.len() as u64) {
                return Err(damaged("a clustering that shares what is not there").into());
            }
            self.values.truncate(shared as usize);
            for _ in shared..count {
                let value = match cursor.uvint()?.checked_sub(1) {
                    None => None,
                    Some(length) => Some(range(&mut cursor, length)?),
                };
                self.values.push(value);
            }
        }
        self.at += rest.len() - cursor.remaining();
        self.passed += 1;
        Ok(())
    }

    /// No row is left in the block.
    fn is_done(&self) -> bool {
        self.at >= self.block.len() || self.passed >= BLOCK_ROWS as usize
    }

    /// The partition of the row that was stepped to.
    fn key(&self) -> DecoratedKey {
        DecoratedKey::new(self.block.slice(self.key.clone()))
    }

    /// The row that was stepped to.
    fn place(&self) -> Place {
        let key = self.key();
        if self.is_partition {
            return Place::partition(key);
        }
        let values = self.values.iter().map(|value| value.clone().map(|range| self.block.slice(range)));
        Place::row(key, values.collect())
    }
}

/// Reads keys of ascending rows; the block that was read last stays at hand.
#[derive(Debug)]
pub struct KeysCursor {
    keys: Arc<RowKeys>,
    mode: ReadMode,
    held: Option<(u32, Walker)>,
}

impl KeysCursor {
    /// A cursor; `mode` says whether the disk may be waited for.
    pub fn new(keys: Arc<RowKeys>, mode: ReadMode) -> Self {
        Self { keys, mode, held: None }
    }

    /// The place of a row.
    pub fn place(&mut self, row: u32) -> Result<Place, ReadError> {
        let (number, within) = (row / BLOCK_ROWS, (row % BLOCK_ROWS) as usize);
        let mut walker = match self.held.take() {
            Some((held, walker)) if held == number && walker.passed <= within + 1 => walker,
            _ => Walker::new(self.keys.blocks.block(u64::from(number), self.mode)?),
        };
        while walker.passed <= within {
            walker.step().map_err(|error| self.keys.blocks.error(error))?;
        }
        let place = walker.place();
        self.held = Some((number, walker));
        Ok(place)
    }

    /// The keys that this cursor reads.
    pub fn keys(&self) -> &Arc<RowKeys> {
        &self.keys
    }

    /// The first row that is not before a place.
    pub fn lower_bound(&mut self, place: &Place, table: &TableMetadata) -> Result<u32, ReadError> {
        self.keys.lower_bound(place, table, self.mode)
    }
}
