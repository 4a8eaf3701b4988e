//! `Partitions.db`: from a partition key to its place.
//!
//! A trie over the shortest prefixes that tell the byte-comparable decorated keys apart. Payload: a
//! byte of the key's hash, then a signed integer: at or above 0 a position in `Rows.db`, below 0
//! the complement of a position in `Data.db`. Behind the trie: first key, last key (short-bytes),
//! and a footer: position of the first key, number of partitions, root. What a lookup finds is a
//! candidate: the key stored at its place must be compared. Agrees with
//! `org.apache.cassandra.io.sstable.format.bti.{PartitionIndex,PartitionIndexBuilder}`.

use bytes::Bytes;
use smallvec::SmallVec;
use stdx::{Cursor, put_short_bytes, put_u64};

use super::PartitionPosition;
use crate::error::{IndexError, Malformed};
use crate::index_file::{Access, IndexFile, Pages};
use crate::trie::{Node, PagedBuffer, Payload, Trie, TrieCursor, TrieWriter, common_prefix};

const FOOTER_LEN: u64 = 24;
/// The first and the last key, with their lengths.
const ENDS_LEN_MAX: u64 = 2 * (2 + u16::MAX as u64);
/// Set in the payload flags when a hash byte precedes the position. Always, in what is written.
const HAS_HASH_BYTE: u8 = 8;

/// A read `Partitions.db`.
#[derive(Clone, Debug)]
pub struct PartitionIndex {
    file: IndexFile,
    trie: Trie,
    first: Bytes,
    last: Bytes,
    count: u64,
}

impl PartitionIndex {
    /// Reads the footer and the keys at the ends.
    pub fn open(file: &IndexFile) -> Result<Self, IndexError> {
        let footer_at = file.len().checked_sub(FOOTER_LEN);
        let footer_at = footer_at.ok_or_else(|| Malformed::at(0, "a partition index without footer"))?;
        let mut pages = Pages::new(file.clone(), Access::IN_PASSING);
        let footer = pages.bytes(footer_at, FOOTER_LEN as usize)?;
        let mut footer = Cursor::new(&footer);
        let (keys_at, count, root) = (footer.u64()?, footer.u64()?, footer.u64()?);
        let length = footer_at.checked_sub(keys_at);
        let length = length.ok_or_else(|| Malformed::at(footer_at, format!("first key at {keys_at}")))?;
        let keys = pages.bytes(keys_at, length.min(ENDS_LEN_MAX) as usize)?;
        let mut cursor = Cursor::new(&keys);
        let first = Bytes::copy_from_slice(cursor.short_bytes()?);
        let last = Bytes::copy_from_slice(cursor.short_bytes()?);
        if root >= keys_at {
            return Err(Malformed::at(footer_at, format!("root of the partition index at {root}")).into());
        }
        let trie = Trie::new(file.clone(), root).with_root_page(Access::IN_PASSING)?;
        Ok(Self { file: file.clone(), trie, first, last, count })
    }

    /// The file.
    pub fn file(&self) -> &IndexFile {
        &self.file
    }

    /// The first key.
    pub fn first_key(&self) -> &Bytes {
        &self.first
    }

    /// The last key.
    pub fn last_key(&self) -> &Bytes {
        &self.last
    }

    /// Number of partitions.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The only partition that can have this key, given by its byte-comparable form; None: there is
    /// none.
    pub fn candidate(
        &self,
        comparable: &[u8],
        hash_byte: u8,
        access: Access,
    ) -> Result<Option<PartitionPosition>, IndexError> {
        let found = self.trie.longest_prefix(comparable, access, read_payload)?;
        let Some((position, stored)) = found else { return Ok(None) };
        Ok(if stored.is_some_and(|stored| stored != hash_byte) { None } else { Some(position) })
    }

    /// A cursor at the last partition whose prefix is not above `comparable`, else at the first: a
    /// scan from there passes every partition at or after that key, and at most one before it.
    pub fn cursor_from(&self, comparable: &[u8], access: Access) -> Result<PartitionCursor, IndexError> {
        let mut cursor = self.trie.cursor(access);
        let there = cursor.floor(comparable)? || cursor.first()?;
        Ok(PartitionCursor { cursor, there })
    }

    /// A cursor at the first partition.
    pub fn cursor(&self, access: Access) -> Result<PartitionCursor, IndexError> {
        let mut cursor = self.trie.cursor(access);
        let there = cursor.first()?;
        Ok(PartitionCursor { cursor, there })
    }
}

/// Walks the partitions in order.
#[derive(Clone, Debug)]
pub struct PartitionCursor {
    cursor: TrieCursor,
    there: bool,
}

impl PartitionCursor {
    /// Where the entry of the current partition is in the file.
    pub fn position(&self) -> u64 {
        self.cursor.position()
    }

    /// The place of the current partition; moves on to the next.
    pub fn next(&mut self) -> Result<Option<PartitionPosition>, IndexError> {
        if !self.there {
            return Ok(None);
        }
        let Some(node) = self.cursor.node()? else { return Ok(None) };
        let position = read_payload(&node)?.0;
        self.there = self.cursor.next()?;
        Ok(Some(position))
    }
}

fn read_payload(node: &Node<'_>) -> Result<(PartitionPosition, Option<u8>), Malformed> {
    let flags = node.payload_flags();
    let mut cursor = Cursor::new(node.payload()?);
    let (hash, width) =
        if flags >= HAS_HASH_BYTE { (Some(cursor.u8()?), flags - (HAS_HASH_BYTE - 1)) } else { (None, flags) };
    let value = read_sized(cursor.take(usize::from(width))?);
    let position =
        if value >= 0 { PartitionPosition::Rows(value as u64) } else { PartitionPosition::Data(!value as u64) };
    Ok((position, hash))
}

/// A signed big-endian integer of 1 to 8 bytes.
pub(crate) fn read_sized(bytes: &[u8]) -> i64 {
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    bytes.iter().fold(if negative { -1 } else { 0 }, |value, byte| (value << 8) | i64::from(*byte))
}

/// Appends a signed big-endian integer in the fewest bytes, at least one.
pub(crate) fn put_sized(out: &mut SmallVec<[u8; 20]>, value: i64) -> u8 {
    let magnitude = if value < 0 { !value } else { value };
    let width = (64 - magnitude.leading_zeros()) as usize / 8 + 1;
    out.extend_from_slice(&value.to_be_bytes()[8 - width..]);
    debug_assert_eq!(read_sized(&out[out.len() - width..]), value, "an integer is read as it was written");
    width as u8
}

/// Writes a partition index.
#[derive(Debug, Default)]
pub struct PartitionIndexWriter {
    trie: TrieWriter,
    /// Bytes that are to be written to the file.
    pub out: PagedBuffer,
    /// Waits for the key behind it, to know how much of it must be written.
    pending: Option<(Vec<u8>, Payload)>,
    /// How much of the pending key tells it from the one before.
    distinct: usize,
    first: Bytes,
    last: Bytes,
}

impl PartitionIndexWriter {
    /// Adds a partition; `comparable` is the byte-comparable form of its decorated key.
    pub fn add(&mut self, key: &Bytes, comparable: Vec<u8>, hash_byte: u8, position: PartitionPosition) {
        match self.pending.take() {
            None => self.first = Bytes::copy_from_slice(key),
            Some((previous, payload)) => {
                let distinct = common_prefix(&previous, &comparable) + 1;
                let length = distinct.max(self.distinct).min(previous.len());
                self.trie.add(&previous[..length], payload, &mut self.out);
                self.distinct = distinct;
            }
        }
        self.last = key.clone();
        let mut bytes = SmallVec::new();
        bytes.push(hash_byte);
        let value = match position {
            PartitionPosition::Data(position) => !(position as i64),
            PartitionPosition::Rows(position) => position as i64,
        };
        let width = put_sized(&mut bytes, value);
        self.pending = Some((comparable, Payload { flags: HAS_HASH_BYTE + width - 1, bytes }));
    }

    /// Writes what is left, keys and footer.
    pub fn finish(&mut self) {
        if let Some((previous, payload)) = self.pending.take() {
            let length = self.distinct.min(previous.len());
            self.trie.add(&previous[..length], payload, &mut self.out);
        }
        let count = self.trie.count();
        let root = self.trie.finish(&mut self.out);
        let keys_at = self.out.position();
        assert!(root < keys_at, "the keys stand behind the trie");
        put_short_bytes(&mut self.out.bytes, &self.first);
        put_short_bytes(&mut self.out.bytes, &self.last);
        for value in [keys_at, count, root] {
            put_u64(&mut self.out.bytes, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use types::DecoratedKey;
    use types::byte_comparable::encode_decorated_key;

    use super::*;

    fn comparable(key: &DecoratedKey) -> Vec<u8> {
        let mut out = Vec::new();
        encode_decorated_key(key.token, &key.key, &mut out);
        out
    }

    #[test]
    fn sized_integers_read_back() {
        for value in [0, 1, -1, 127, 128, -128, -129, 32767, 32768, i64::MAX, i64::MIN, 1 << 40] {
            let mut bytes = SmallVec::new();
            assert_eq!(usize::from(put_sized(&mut bytes, value)), bytes.len());
            assert_eq!(read_sized(&bytes), value);
        }
    }

    #[test]
    fn what_is_written_is_found() {
        for count in [1u32, 2, 3, 50, 5000] {
            let mut keys: Vec<_> =
                (0..count).map(|id| DecoratedKey::new(Bytes::copy_from_slice(&id.to_be_bytes()))).collect();
            keys.sort();
            let mut writer = PartitionIndexWriter::default();
            let place = |index: usize| match index % 3 {
                0 => PartitionPosition::Rows(index as u64 * 77),
                _ => PartitionPosition::Data(index as u64 * 7777),
            };
            for (index, key) in keys.iter().enumerate() {
                writer.add(&key.key, comparable(key), key.key[3], place(index));
            }
            writer.finish();
            let index = PartitionIndex::open(&writer.out.take().into()).unwrap();
            assert_eq!((index.count(), index.first_key()), (u64::from(count), &keys[0].key));
            assert_eq!(index.last_key(), &keys[keys.len() - 1].key);
            let mut cursor = index.cursor(Access::WAITING).unwrap();
            for (number, key) in keys.iter().enumerate() {
                assert_eq!(
                    index.candidate(&comparable(key), key.key[3], Access::WAITING).unwrap(),
                    Some(place(number))
                );
                assert_eq!(cursor.next().unwrap(), Some(place(number)));
                let found = index.cursor_from(&comparable(key), Access::WAITING).unwrap().next().unwrap();
                assert_eq!(found, Some(place(number)));
            }
            assert_eq!(cursor.next().unwrap(), None);
        }
    }
}
