//! The promoted index: in an entry of Index.db, the blocks of a partition that has at least two.
//!
//! ```text
//! uvint length of the partition's head; deletion-time of the partition; uvint blocks n
//! n × { first and last position of the block; uvint offset from the partition's start;
//!       svint width - 65536; bool, if true the deletion-time of the
//!       range open at the END of the block }
//! n × i32 offset of each block's description from the first
//! ```
//! A position is `u8 kind`, then for rows the clustering values, for bounds `u16 count` and so many
//! values. The offsets let a search read only the blocks it compares with. Agrees with
//! `org.apache.cassandra.io.sstable.{IndexInfo,format.big.RowIndexEntry}`.

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use rows::codec::{
    DeletionTimeForm, get_clustering_values, get_deletion_time, put_clustering_values, put_deletion_time,
};
use rows::heap_size::of_row_index;
use rows::{Bound, ClusteringPrefix, DeletionTime, PrefixKind};
use stdx::{Cursor, put_svint, put_u16, put_u32, put_uvint};
use types::CqlType;

use super::{Block, Blocks, RowIndex};
use crate::error::{IndexError, Malformed};
use crate::index_file::Pages;
use crate::read_schema::ReadSchema;

/// Widths are written as what they are more than this.
const WIDTH_BASE: i64 = 64 * 1024;

/// The description of a block.
struct Info {
    first: ClusteringPrefix,
    last: ClusteringPrefix,
    offset: u64,
    width: u64,
    open_behind: DeletionTime,
}

/// Where the descriptions are.
#[derive(Clone)]
struct Promoted {
    schema: Arc<ReadSchema>,
    form: DeletionTimeForm,
    pages: Pages,
    /// The descriptions, and behind them their offsets.
    infos: Range<u64>,
    count: u32,
}

/// The most bytes that the head of a row index takes: two integers and a deletion time.
const HEAD_LEN_MAX: usize = 9 + 12 + 9;

/// Reads the part of an entry of Index.db behind key and position, which begins at `body`.
pub(super) fn read(
    mut pages: Pages,
    body: Range<u64>,
    data_position: u64,
    form: DeletionTimeForm,
    schema: &Arc<ReadSchema>,
) -> Result<RowIndex, IndexError> {
    let length = usize::try_from(body.end - body.start).unwrap_or(usize::MAX);
    let head = pages.bytes(body.start, HEAD_LEN_MAX.min(length))?;
    let (deletion, count, head_length) = read_head(&head, form).map_err(|error| error.behind(body.start))?;
    let start = body.start + head_length;
    let end = count.checked_mul(4).and_then(|offsets| body.end.checked_sub(offsets)).filter(|end| *end >= start);
    let (Some(end), Ok(count @ 1..)) = (end, u32::try_from(count)) else {
        return Err(Malformed::at(start, format!("{count} blocks in {} bytes", body.end - start)).into());
    };
    let promoted = Promoted { schema: Arc::clone(schema), form, pages, infos: start..end, count };
    let blocks = Blocks::Promoted(PromotedCursor { promoted, at: None });
    let (count, heap_size) = (u64::from(count), of_row_index(u64::from(count), length as u64));
    Ok(RowIndex { data_position, deletion, count, heap_size, blocks })
}

/// Deletion of the partition, number of blocks, and the head's length.
fn read_head(head: &[u8], form: DeletionTimeForm) -> Result<(DeletionTime, u64, u64), Malformed> {
    let mut cursor = Cursor::new(head);
    cursor.uvint()?;
    let deletion = get_deletion_time(&mut cursor, form)?;
    let count = cursor.uvint()?;
    Ok((deletion, count, cursor.position() as u64))
}

impl Promoted {
    fn info(&mut self, index: u32) -> Result<Info, IndexError> {
        let length = self.infos.end - self.infos.start;
        // its offset, and that of the next one, where it ends
        let known = if index + 1 < self.count { 8 } else { 4 };
        let offsets = self.pages.bytes(self.infos.end + u64::from(index) * 4, known)?;
        let mut cursor = Cursor::new(&offsets);
        let start = u64::from(cursor.u32()?);
        let end = if known == 8 { u64::from(cursor.u32()?) } else { length };
        let end = if end > start { end.min(length) } else { length };
        let at = self.infos.start + start;
        let bytes = self.pages.bytes(at, end.saturating_sub(start) as usize)?;
        Ok(self.decode(&bytes).map_err(|error| error.behind(at))?)
    }

    fn decode(&self, bytes: &Bytes) -> Result<Info, Malformed> {
        let types = &self.schema.header.clustering;
        let (first, next) = get_position(bytes, 0, types)?;
        let (last, next) = get_position(bytes, next, types)?;
        let mut cursor = Cursor::new(bytes.get(next..).unwrap_or_default());
        let (offset, width) = (cursor.uvint()?, cursor.svint()?.wrapping_add(WIDTH_BASE));
        let open_behind = if cursor.bool()? { get_deletion_time(&mut cursor, self.form)? } else { DeletionTime::LIVE };
        match u64::try_from(width) {
            Ok(width) if offset.checked_add(width).is_some() => Ok(Info { first, last, offset, width, open_behind }),
            _ => Err(Malformed::at(next as u64, format!("a block of {width} bytes at {offset}"))),
        }
    }

    /// How many blocks, from the first on, fulfil a condition that those behind do not.
    fn partition_point(&mut self, mut is_before: impl FnMut(&Info) -> bool) -> Result<u32, IndexError> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(&self.info(middle)?) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }

    /// The block of that number; the one behind the last is the end.
    fn block(&mut self, index: u32) -> Result<Block, IndexError> {
        let open = match index.checked_sub(1) {
            None => DeletionTime::LIVE,
            Some(before) => {
                let info = self.info(before)?;
                if index == self.count {
                    return Ok(Block { offset: info.offset + info.width, open: info.open_behind });
                }
                info.open_behind
            }
        };
        Ok(Block { offset: self.info(index)?.offset, open })
    }
}

fn get_position(bytes: &Bytes, at: usize, types: &[CqlType]) -> Result<(ClusteringPrefix, usize), Malformed> {
    let mut cursor = Cursor::new(bytes.get(at..).unwrap_or_default());
    let ordinal = cursor.u8()?;
    let kind = PrefixKind::from_ordinal(ordinal).filter(|kind| *kind != PrefixKind::StaticClustering);
    let count = match kind {
        Some(PrefixKind::Clustering) => types.len(),
        _ => usize::from(cursor.u16()?),
    };
    let (Some(kind), Some(types)) = (kind, types.get(..count)) else {
        return Err(Malformed::at(at as u64, format!("a position of kind {ordinal} with {count} values")));
    };
    let (values, next) = get_clustering_values(bytes, at + cursor.position(), types)?;
    Ok((ClusteringPrefix { kind, values }, next))
}

fn put_position(out: &mut Vec<u8>, position: &ClusteringPrefix, types: &[CqlType]) {
    out.push(position.kind as u8);
    if position.kind != PrefixKind::Clustering {
        put_u16(out, position.values.len() as u16);
    }
    put_clustering_values(out, &position.values, types);
}

/// A place in the order of the blocks.
#[derive(Clone)]
pub struct PromotedCursor {
    promoted: Promoted,
    at: Option<u32>,
}

impl PromotedCursor {
    /// From here on pages are waited for.
    pub fn wait(&mut self) {
        self.promoted.pages.wait();
    }

    fn go(&mut self, index: u32) -> Result<Block, IndexError> {
        self.at = Some(index);
        self.promoted.block(index)
    }

    /// The first block that does not end before the bound, or the last of all.
    pub fn first_behind(&mut self, bound: &Bound) -> Result<Block, IndexError> {
        let comparator = self.promoted.schema.table.comparator.clone();
        let index = self.promoted.partition_point(|info| info.last.compare(bound, &comparator) == Ordering::Less)?;
        self.go(index.min(self.promoted.count - 1))
    }

    /// The last block that does not begin behind the bound, or the first of all.
    pub fn last_before(&mut self, bound: &Bound) -> Result<Block, IndexError> {
        let comparator = self.promoted.schema.table.comparator.clone();
        let index =
            self.promoted.partition_point(|info| info.first.compare(bound, &comparator) != Ordering::Greater)?;
        self.go(index.saturating_sub(1))
    }

    /// The first block.
    pub fn first(&mut self) -> Result<Block, IndexError> {
        self.go(0)
    }

    /// The end of the last block.
    pub fn end(&mut self) -> Result<Block, IndexError> {
        self.go(self.promoted.count)
    }

    /// The next block.
    pub fn next(&mut self) -> Result<Option<Block>, IndexError> {
        match self.at {
            Some(at) if at < self.promoted.count => self.go(at + 1).map(Some),
            Some(_) => Ok(None),
            None => self.first().map(Some),
        }
    }

    /// The block before.
    pub fn previous(&mut self) -> Result<Option<Block>, IndexError> {
        match self.at.and_then(|at| at.checked_sub(1)) {
            Some(before) => self.go(before).map(Some),
            None => Ok(None),
        }
    }
}

/// Collects the blocks of a partition that is being written: some tens of bytes a block, until the
/// partition ends.
#[derive(Debug, Default)]
pub struct PromotedWriter {
    infos: Vec<u8>,
    offsets: Vec<u32>,
    /// The end of the last block, counted from the partition's start.
    end: u64,
}

impl PromotedWriter {
    /// Blocks so far.
    pub fn blocks(&self) -> usize {
        self.offsets.len()
    }

    /// Adds a block that ends at `end`, counted from the partition's start, with `open_behind` open
    /// there.
    pub fn add(
        &mut self,
        (first, last): (&ClusteringPrefix, &ClusteringPrefix),
        (offset, end): (u64, u64),
        open_behind: &DeletionTime,
        types: &[CqlType],
        form: DeletionTimeForm,
    ) {
        assert!(offset < end, "a block of a partition is not empty: {offset} to {end}");
        assert!(offset >= self.end, "blocks of a partition ascend: {offset} behind {}", self.end);
        self.end = end;
        self.offsets.push(self.infos.len() as u32);
        let out = &mut self.infos;
        put_position(out, first, types);
        put_position(out, last, types);
        put_uvint(out, offset);
        put_svint(out, (end - offset) as i64 - WIDTH_BASE);
        out.push(u8::from(!open_behind.is_live()));
        if !open_behind.is_live() {
            put_deletion_time(out, open_behind, form);
        }
    }

    /// Ends the partition and begins anew. Writes what follows the position in its entry: 0, or
    /// size and body.
    pub fn finish(&mut self, out: &mut Vec<u8>, head_length: u64, deletion: &DeletionTime, form: DeletionTimeForm) {
        if self.offsets.len() < 2 {
            put_uvint(out, 0);
        } else {
            let mut head = Vec::with_capacity(32);
            put_uvint(&mut head, head_length);
            put_deletion_time(&mut head, deletion, form);
            put_uvint(&mut head, self.offsets.len() as u64);
            put_uvint(out, (head.len() + self.infos.len() + self.offsets.len() * 4) as u64);
            out.extend_from_slice(&head);
            out.extend_from_slice(&self.infos);
            self.offsets.iter().for_each(|offset| put_u32(out, *offset));
        }
        self.infos.clear();
        self.offsets.clear();
        self.end = 0;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use rows::codec::{EncodingStats, Header};
    use schema::table::ColumnSpec;
    use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};

    use super::*;
    use crate::index_file::Access;

    const BLOCKS: u32 = 1000;
    /// Beyond what 32 bits hold: 5 TB in all.
    const WIDTH: u64 = 5_000_000_000;

    fn schema() -> Arc<ReadSchema> {
        let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
        let specs =
            vec![spec("k", ColumnKind::PartitionKey, CqlType::Int), spec("c", ColumnKind::Clustering, CqlType::Int)];
        let (id, params) = (TableId([9; 16]), TableParams::default());
        let (kind, flags) = (TableKind::Regular, TableFlags::COMPOUND);
        let table = TableMetadata::new(id, "k", "t", kind, flags, params, specs, BTreeMap::new(), None);
        let header = Header::for_table(&table, EncodingStats::default());
        Arc::new(ReadSchema { table: Arc::new(table), header, rewriting: None, caches_keys: true })
    }

    fn values(c: u32) -> rows::ClusteringValues {
        [Some(Bytes::copy_from_slice(&c.to_be_bytes()))].into_iter().collect()
    }

    /// Block i has the rows 10 i to 10 i + 7. Gives the body of the entry.
    fn body(form: DeletionTimeForm) -> Bytes {
        let mut writer = PromotedWriter::default();
        for block in 0..BLOCKS {
            let ends = [block * 10, block * 10 + 7].map(|c| ClusteringPrefix::row(values(c)));
            let offset = 20 + u64::from(block) * WIDTH;
            writer.add((&ends[0], &ends[1]), (offset, offset + WIDTH), &DeletionTime::LIVE, &[CqlType::Int], form);
        }
        let mut out = Vec::new();
        writer.finish(&mut out, 20, &DeletionTime::LIVE, form);
        let mut cursor = Cursor::new(&out);
        cursor.uvint().unwrap();
        Bytes::copy_from_slice(cursor.rest())
    }

    fn of_body(body: Vec<u8>, form: DeletionTimeForm) -> RowIndex {
        let range = 0..body.len() as u64;
        read(Pages::new(body.into(), Access::WAITING), range, 0, form, &schema()).unwrap()
    }

    /// The blocks that a bisection for `wanted` compares with.
    fn bisected(wanted: u32) -> BTreeSet<u32> {
        let (mut low, mut high, mut seen) = (0, BLOCKS, BTreeSet::new());
        while low < high {
            let middle = low + (high - low) / 2;
            seen.insert(middle);
            if middle < wanted { low = middle + 1 } else { high = middle }
        }
        seen
    }

    #[test]
    fn a_search_reads_only_the_blocks_that_it_compares_with() {
        for form in [DeletionTimeForm::Unsigned, DeletionTimeForm::Signed] {
            let whole = body(form);
            let offsets_at = whole.len() - BLOCKS as usize * 4;
            for wanted in [0, 1, 17, 499, 500, 501, 998, 999] {
                let mut seen = bisected(wanted);
                assert!(seen.len() <= 11);
                // what is open at a block stands in the one before
                seen.extend([wanted, wanted.saturating_sub(1)]);
                let mut bytes = whole.to_vec();
                for block in (0..BLOCKS).filter(|block| !seen.contains(block)) {
                    let at = offsets_at + block as usize * 4;
                    bytes[at..at + 4].copy_from_slice(&i32::MAX.to_be_bytes());
                }
                let mut index = of_body(bytes, form);
                let Blocks::Promoted(cursor) = &mut index.blocks else { panic!("not a list") };
                let found = cursor.first_behind(&Bound::start(values(wanted * 10 + 3), true)).unwrap();
                assert_eq!(found.offset, 20 + u64::from(wanted) * WIDTH);
            }
        }
    }

    #[test]
    fn blocks_beyond_32_bits_are_found_both_ways() {
        let mut index = of_body(body(DeletionTimeForm::Unsigned).to_vec(), DeletionTimeForm::Unsigned);
        let Blocks::Promoted(cursor) = &mut index.blocks else { panic!("not a list") };
        for block in (0..BLOCKS).step_by(37) {
            let offset = 20 + u64::from(block) * WIDTH;
            assert_eq!(cursor.first_behind(&Bound::start(values(block * 10), true)).unwrap().offset, offset);
            assert_eq!(cursor.last_before(&Bound::end(values(block * 10 + 9), true)).unwrap().offset, offset);
        }
        assert_eq!(cursor.end().unwrap().offset, 20 + u64::from(BLOCKS) * WIDTH);
    }
}
