//! `Rows.db`: inside large partitions, from a clustering to the block that can hold it.
//!
//! A partition is in here when it has at least two blocks. First its trie: separators between
//! blocks, each with the offset of the block from the partition's start and the deletion open
//! there; the first block has the empty key, and behind the last block one more entry has the
//! offset of the end-of-partition byte. Then the entry that `Partitions.db` points to: key,
//! position in Data.db, root, number of blocks, partition deletion. Agrees with
//! `org.apache.cassandra.io.sstable.format.bti.{RowIndexReader,RowIndexWriter,TrieIndexEntry}`.

use bytes::Bytes;
use rows::DeletionTime;
use rows::codec::{DeletionTimeForm, get_deletion_time, put_deletion_time};
use smallvec::SmallVec;
use stdx::{Cursor, put_short_bytes, put_svint, put_uvint};

use super::Block;
use super::partition_index::{put_sized, read_sized};
use crate::error::{IndexError, Malformed};
use crate::index_file::{Access, IndexFile};
use crate::trie::{Node, PagedBuffer, Payload, Trie, TrieCursor, TrieWriter, common_prefix};

/// BTI is as old as this form.
const FORM: DeletionTimeForm = DeletionTimeForm::Unsigned;
/// Set in the payload flags when the deletion that is open at the start of the block follows.
const HAS_OPEN_MARKER: u8 = 8;

/// Bytes of an entry that are read at first; enough unless its key is long.
const ENTRY_LEN: usize = 256;
/// The most bytes that an entry takes: a key, and some integers.
const ENTRY_LEN_MAX: usize = 2 + u16::MAX as usize + 64;

const _: () = assert!(ENTRY_LEN < ENTRY_LEN_MAX);

/// The row index of a partition.
#[derive(Clone, Debug)]
pub struct RowIndexEntry {
    /// The position of the partition in Data.db.
    pub data_position: u64,
    /// The deletion of the whole partition.
    pub deletion: DeletionTime,
    /// How many blocks it has.
    pub count: u64,
    trie: Trie,
}

impl RowIndexEntry {
    /// The entry at a position of the file, and its key.
    pub fn read(file: &IndexFile, position: u64, access: Access) -> Result<(Bytes, Self), IndexError> {
        if position >= file.len() {
            return Err(Malformed::at(position, "a row index beyond the end of the file").into());
        }
        let bytes = file.bytes(position, ENTRY_LEN, access)?;
        match Self::decode(file, &bytes, position) {
            // a long key
            Err(_) if bytes.len() == ENTRY_LEN => {
                let bytes = file.bytes(position, ENTRY_LEN_MAX, access)?;
                Ok(Self::decode(file, &bytes, position).map_err(|error| error.behind(position))?)
            }
            read => Ok(read.map_err(|error| error.behind(position))?),
        }
    }

    fn decode(file: &IndexFile, bytes: &Bytes, position: u64) -> Result<(Bytes, Self), Malformed> {
        let mut cursor = Cursor::new(bytes);
        let key = bytes.slice_ref(cursor.short_bytes()?);
        let base = position + cursor.position() as u64;
        let data_position = cursor.uvint()?;
        let distance = cursor.svint()?;
        let root = base.checked_add_signed(distance).filter(|root| *root < base);
        let root = root.ok_or_else(|| Malformed::at(cursor.position() as u64, format!("a root {distance} away")))?;
        let count = cursor.uvint()?;
        let deletion = get_deletion_time(&mut cursor, FORM)?;
        Ok((key, Self { data_position, deletion, count, trie: Trie::new(file.clone(), root) }))
    }

    /// A cursor over the blocks, at none yet.
    pub fn cursor(&self, access: Access) -> BlockCursor {
        BlockCursor { cursor: self.trie.cursor(access) }
    }
}

/// A place in the order of blocks. The end of the last block counts as one more block, without
/// content.
#[derive(Clone, Debug)]
pub struct BlockCursor {
    cursor: TrieCursor,
}

impl BlockCursor {
    /// The block in which a position can lie, by its byte-comparable form.
    pub fn floor(&mut self, comparable: &[u8]) -> Result<Option<Block>, IndexError> {
        if self.cursor.floor(comparable)? { self.block() } else { Ok(None) }
    }

    /// The first block.
    pub fn first(&mut self) -> Result<Option<Block>, IndexError> {
        if self.cursor.first()? { self.block() } else { Ok(None) }
    }

    /// The next block.
    pub fn next(&mut self) -> Result<Option<Block>, IndexError> {
        if self.cursor.next()? { self.block() } else { Ok(None) }
    }

    /// The block before.
    pub fn previous(&mut self) -> Result<Option<Block>, IndexError> {
        if self.cursor.previous()? { self.block() } else { Ok(None) }
    }

    /// The end of the partition.
    pub fn end(&mut self) -> Result<Option<Block>, IndexError> {
        if self.cursor.last()? { self.block() } else { Ok(None) }
    }

    /// From here on pages are waited for.
    pub fn wait(&mut self) {
        self.cursor.wait();
    }

    fn block(&mut self) -> Result<Option<Block>, IndexError> {
        match self.cursor.node()? {
            Some(node) => Ok(Some(read_payload(&node)?)),
            None => Ok(None),
        }
    }
}

fn read_payload(node: &Node<'_>) -> Result<Block, Malformed> {
    let flags = node.payload_flags();
    let mut cursor = Cursor::new(node.payload()?);
    let offset = read_sized(cursor.take(usize::from(flags & !HAS_OPEN_MARKER))?);
    let offset = u64::try_from(offset)
        .map_err(|_| Malformed::at(node.position(), format!("a block {offset} bytes from its partition's start")))?;
    let open = if flags & HAS_OPEN_MARKER != 0 { get_deletion_time(&mut cursor, FORM)? } else { DeletionTime::LIVE };
    Ok(Block { offset, open })
}

/// Writes the row indexes of one SSTable.
#[derive(Debug, Default)]
pub struct RowIndexWriter {
    trie: TrieWriter,
    /// Bytes that are to be written to the file.
    pub out: PagedBuffer,
    separator: Vec<u8>,
    last: Vec<u8>,
    blocks: u64,
    /// The offset of the last block in its partition.
    offset: u64,
}

impl RowIndexWriter {
    /// Blocks of the current partition so far.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Adds a block; `first` and `last` are the byte-comparable forms of its ends.
    pub fn add_block(&mut self, first: &[u8], last: Vec<u8>, block: Block) {
        if self.blocks > 0 {
            let common = common_prefix(&self.last, first);
            self.separator.clear();
            self.separator.extend_from_slice(&self.last[..common]);
            let next = self.last.get(common).copied().unwrap_or(0);
            self.separator.push(next.saturating_add(1));
        } else {
            self.separator.clear();
        }
        assert!(self.blocks == 0 || self.offset < block.offset, "blocks of a partition ascend");
        self.offset = block.offset;
        self.trie.add(&self.separator, payload(&block), &mut self.out);
        self.last = last;
        self.blocks += 1;
    }

    /// Ends the partition. Gives the position of its entry; None when it has too few blocks to need
    /// one.
    pub fn finish_partition(
        &mut self,
        key: &[u8],
        data_position: u64,
        deletion: &DeletionTime,
        end_offset: u64,
    ) -> Option<u64> {
        let blocks = std::mem::take(&mut self.blocks);
        if blocks < 2 {
            self.trie.reset();
            return None;
        }
        assert!(self.offset < end_offset, "the end of a partition stands behind its last block");
        let end = nudge(&self.last, common_prefix(&self.last, &self.separator));
        self.trie.add(&end, payload(&Block { offset: end_offset, open: DeletionTime::LIVE }), &mut self.out);
        let root = self.trie.finish(&mut self.out);
        let position = self.out.position();
        put_short_bytes(&mut self.out.bytes, key);
        let base = self.out.position();
        assert!(root < base, "the entry of a partition stands behind its trie");
        put_uvint(&mut self.out.bytes, data_position);
        put_svint(&mut self.out.bytes, (root as i64).wrapping_sub(base as i64));
        put_uvint(&mut self.out.bytes, blocks);
        put_deletion_time(&mut self.out.bytes, deletion, FORM);
        Some(position)
    }
}

fn payload(block: &Block) -> Payload {
    let mut bytes = SmallVec::new();
    let mut flags = put_sized(&mut bytes, block.offset as i64);
    assert!(flags < HAS_OPEN_MARKER, "the width of an offset has three bits");
    if !block.open.is_live() {
        flags |= HAS_OPEN_MARKER;
        let mut deletion = Vec::with_capacity(12);
        put_deletion_time(&mut deletion, &block.open, FORM);
        bytes.extend_from_slice(&deletion);
    }
    Payload { flags, bytes }
}

/// The shortest key above everything that begins as `key` does up to `at`: the byte there
/// increased, or the next that can be.
fn nudge(key: &[u8], at: usize) -> Vec<u8> {
    let length = key[at..].iter().position(|byte| *byte < 0xff).map_or(key.len(), |index| at + index);
    let mut nudged = key[..length].to_vec();
    nudged.push(key.get(length).map_or(0, |byte| byte + 1));
    nudged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_and_walked() {
        let mut writer = RowIndexWriter::default();
        let mut places = Vec::new();
        for partition in 0..40u32 {
            for block in 0..partition * 3 {
                let first = (block * 10).to_be_bytes();
                let last = (block * 10 + 7).to_be_bytes();
                let open = if block % 4 == 1 { DeletionTime::new(i64::from(block), 5) } else { DeletionTime::LIVE };
                writer.add_block(&first, last.to_vec(), Block { offset: u64::from(block) * 999 + 20, open });
            }
            let deletion = DeletionTime::new(77, 88);
            let place =
                writer.finish_partition(&partition.to_be_bytes(), 1000, &deletion, u64::from(partition) * 2997 + 20);
            assert_eq!(place.is_some(), partition > 0);
            places.extend(place.map(|place| (partition, place)));
        }
        let file: IndexFile = writer.out.take().into();
        for (partition, place) in places {
            let (key, entry) = RowIndexEntry::read(&file, place, Access::WAITING).unwrap();
            assert_eq!(key[..], partition.to_be_bytes());
            assert_eq!(entry.data_position, 1000);
            assert_eq!(entry.deletion, DeletionTime::new(77, 88));
            let mut cursor = entry.cursor(Access::WAITING);
            for row in 0..partition * 30 {
                let block = cursor.floor(&row.to_be_bytes()).unwrap().unwrap();
                let number = if row % 10 > 7 { (row / 10)..=(row / 10 + 1) } else { (row / 10)..=(row / 10) };
                assert!(number.map(|number| u64::from(number) * 999 + 20).any(|offset| offset == block.offset));
            }
            let mut block = cursor.end().unwrap();
            for number in (0..=partition * 3).rev() {
                assert_eq!(block.unwrap().offset, u64::from(number) * 999 + 20);
                block = cursor.previous().unwrap();
            }
            assert_eq!(block, None);
        }
    }

    #[test]
    fn blocks_beyond_32_bits_are_found() {
        const WIDTH: u64 = 5_000_000_000;
        let mut writer = RowIndexWriter::default();
        for block in 0..1000u32 {
            let (first, last) = ((block * 10).to_be_bytes(), (block * 10 + 7).to_be_bytes());
            let offset = 20 + u64::from(block) * WIDTH;
            writer.add_block(&first, last.to_vec(), Block { offset, open: DeletionTime::LIVE });
        }
        let place = writer.finish_partition(b"key", 7 * WIDTH, &DeletionTime::LIVE, 20 + 1000 * WIDTH).unwrap();
        let (_, entry) = RowIndexEntry::read(&writer.out.take().into(), place, Access::WAITING).unwrap();
        assert_eq!(entry.data_position, 7 * WIDTH);
        let mut cursor = entry.cursor(Access::WAITING);
        for block in (0..1000u32).step_by(37) {
            let found = cursor.floor(&(block * 10 + 3).to_be_bytes()).unwrap().unwrap();
            assert_eq!(found.offset, 20 + u64::from(block) * WIDTH);
        }
        assert_eq!(cursor.end().unwrap().unwrap().offset, 20 + 1000 * WIDTH);
    }

    #[test]
    fn nudges_pass_over_full_bytes() {
        for (key, at, expected) in [
            (vec![1, 2, 3], 1, vec![1, 3]),
            (vec![1, 255, 3], 1, vec![1, 255, 4]),
            (vec![1, 255, 255], 1, vec![1, 255, 255, 0]),
        ] {
            assert_eq!(nudge(&key, at), expected);
        }
    }
}
