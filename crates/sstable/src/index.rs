//! Indexes: from a key to its partition, and inside large partitions from a clustering to the block
//! that can hold it.
//!
//! One interface over both formats. BTI: [`partition_index`] (Partitions.db) and [`row_index`]
//! (Rows.db). Big: [`big_index`] (Index.db) with its [`summary`] (Summary.db) and, within the
//! entries of large partitions, [`promoted`]. Summary.db is in memory; the others are read page by
//! page ([`crate::index_file`]). A place is what the index says of a partition: its position in
//! Data.db, or where its row index is, which knows that.

pub mod big_index;
pub mod partition_index;
pub mod promoted;
pub mod row_index;
pub mod summary;
pub mod writer;

use std::sync::Arc;

use bytes::Bytes;
use rows::command::RingBound;
use rows::{Bound, DeletionTime};
use schema::ClusteringComparator;
use types::byte_comparable::{encode_decorated_key, local_key_of_cassandra};
use types::{CqlType, DecoratedKey, Token};

use crate::descriptor::Component;
use crate::error::IndexError;
use crate::filter::KeyHash;
use crate::index_file::{Access, IndexFile};
pub use crate::position::PartitionPosition;
use crate::read_schema::{ReadSchema, values_comparable, values_of_cassandra};
use big_index::{BigCursor, BigIndex};
use partition_index::{PartitionCursor, PartitionIndex};
use promoted::PromotedCursor;
use row_index::{BlockCursor, RowIndexEntry};

/// Bytes of the byte-comparable form of a decorated key before those of the key.
const TOKEN_COMPARABLE_LEN: usize = 9;

/// A run of unfiltereds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Block {
    /// The position of the block's first unfiltered, from the partition's start.
    pub offset: u64,
    /// The range deletion open there; live: none.
    pub open: DeletionTime,
}

/// The indexes of one SSTable.
#[derive(Debug)]
pub enum Index {
    /// Tries.
    Bti {
        /// Partitions.db.
        partitions: PartitionIndex,
        /// Rows.db.
        rows: IndexFile,
    },
    /// Index.db.
    Big(Box<BigIndex>),
}

impl Index {
    /// The component that leads to partitions.
    pub fn partitions_component(&self) -> Component {
        match self {
            Self::Bti { .. } => Component::Partitions,
            Self::Big(_) => Component::Index,
        }
    }

    /// The component that leads to blocks.
    pub fn rows_component(&self) -> Component {
        match self {
            Self::Bti { .. } => Component::Rows,
            Self::Big(_) => Component::Index,
        }
    }

    /// The files that are read page by page.
    pub fn files(&self) -> impl Iterator<Item = &IndexFile> {
        let (first, second) = match self {
            Self::Bti { partitions, rows } => (partitions.file(), Some(rows)),
            Self::Big(index) => (index.file(), None),
        };
        std::iter::once(first).chain(second)
    }

    /// The first and the last key.
    pub fn ends(&self) -> (&Bytes, &Bytes) {
        match self {
            Self::Bti { partitions, .. } => (partitions.first_key(), partitions.last_key()),
            Self::Big(index) => (&index.first, &index.last),
        }
    }

    /// Number of partitions.
    pub fn count(&self) -> u64 {
        match self {
            Self::Bti { partitions, .. } => partitions.count(),
            Self::Big(index) => index.count,
        }
    }

    /// The only place where a partition of this key can be, but for that of
    /// [`Self::find_as_cassandra`]. The key that stands there must be compared.
    #[inline]
    pub fn find(
        &self,
        key: &DecoratedKey,
        hash: KeyHash,
        access: Access,
    ) -> Result<Option<PartitionPosition>, IndexError> {
        match self {
            Self::Bti { partitions, .. } => {
                let mut comparable = Vec::with_capacity(key.key.len() + 16);
                key.encode_comparable(&mut comparable);
                partitions.candidate(&comparable, hash.index_byte(), access)
            }
            Self::Big(index) => index.find(key, access),
        }
    }

    /// Another place where a partition of this key can be, if the partitions are ordered by `ty`
    /// and Cassandra wrote the trie: Cassandra gives some keys another form. The key that stands
    /// there must be compared.
    pub fn find_as_cassandra(
        &self,
        key: &DecoratedKey,
        ty: &CqlType,
        hash: KeyHash,
        access: Access,
    ) -> Result<Option<PartitionPosition>, IndexError> {
        let (Self::Bti { partitions, .. }, Some(local)) = (self, &key.local) else { return Ok(None) };
        match local_key_of_cassandra(ty, local, &key.key) {
            Some(comparable) => partitions.candidate(&comparable, hash.index_byte(), access),
            None => Ok(None),
        }
    }

    /// A cursor at the first partition.
    pub fn scan(&self, access: Access) -> Result<IndexCursor, IndexError> {
        match self {
            Self::Bti { partitions, .. } => partitions.cursor(access).map(IndexCursor::Bti),
            Self::Big(index) => Ok(IndexCursor::Big(index.cursor(access))),
        }
    }

    /// A cursor that passes every partition at or behind a bound, and at most one before it.
    pub fn scan_from(&self, start: &RingBound, access: Access) -> Result<IndexCursor, IndexError> {
        let (token, key): (Token, Option<&DecoratedKey>) = match start {
            RingBound::Open => return self.scan(access),
            RingBound::Token { token, .. } => (*token, None),
            RingBound::Key { key, .. } => (key.token, Some(key)),
        };
        match self {
            Self::Bti { partitions, .. } => {
                let mut comparable = Vec::new();
                match key {
                    Some(key) => key.encode_comparable(&mut comparable),
                    None => {
                        encode_decorated_key(token, &[], &mut comparable);
                        // below every key of the token
                        comparable.truncate(TOKEN_COMPARABLE_LEN);
                    }
                }
                partitions.cursor_from(&comparable, access).map(IndexCursor::Bti)
            }
            Self::Big(index) => index.cursor_from(token, key, access).map(IndexCursor::Big),
        }
    }

    /// The key and the row index at a position that a [`PartitionPosition::Rows`] gave.
    pub fn row_index(
        &self,
        position: u64,
        schema: &Arc<ReadSchema>,
        access: Access,
    ) -> Result<(Bytes, RowIndex), IndexError> {
        match self {
            Self::Bti { rows, .. } => {
                let (key, entry) = RowIndexEntry::read(rows, position, access)?;
                let RowIndexEntry { data_position, deletion, count, .. } = entry;
                Ok((
                    key,
                    RowIndex {
                        data_position,
                        deletion,
                        count,
                        heap_size: 0,
                        blocks: Blocks::Trie(entry.cursor(access)),
                    },
                ))
            }
            Self::Big(index) => index.row_index(position, schema, access),
        }
    }
}

/// Walks the partitions in order.
pub enum IndexCursor {
    /// Through Partitions.db.
    Bti(PartitionCursor),
    /// Through Index.db.
    Big(BigCursor),
}

impl IndexCursor {
    /// Where the entry of the current partition is in its file.
    pub fn position(&self) -> u64 {
        match self {
            Self::Bti(cursor) => cursor.position(),
            Self::Big(cursor) => cursor.position(),
        }
    }

    /// The place of the current partition; moves on to the next.
    pub fn next(&mut self) -> Result<Option<PartitionPosition>, IndexError> {
        match self {
            Self::Bti(cursor) => cursor.next(),
            Self::Big(cursor) => cursor.next(),
        }
    }
}

/// The row index of a partition.
pub struct RowIndex {
    /// The position of the partition in Data.db.
    pub data_position: u64,
    /// The deletion of the whole partition.
    pub deletion: DeletionTime,
    /// How many blocks there are, as it says.
    pub count: u64,
    /// Bytes of an entry of Index.db as a threshold counts them; 0: the row index is a trie.
    pub heap_size: u64,
    /// A cursor over the blocks, at none yet.
    pub blocks: Blocks,
}

/// A place in the order of the blocks of a partition. The end of the last block counts as one more
/// block, without content.
#[derive(Clone)]
pub enum Blocks {
    /// The blocks of a row trie.
    Trie(BlockCursor),
    /// The blocks of an entry of Index.db.
    Promoted(PromotedCursor),
}

impl Blocks {
    /// From here on the disk may be waited for.
    pub fn waiting(mut self) -> Self {
        match &mut self {
            Self::Trie(cursor) => cursor.wait(),
            Self::Promoted(cursor) => cursor.wait(),
        }
        self
    }

    /// The block to begin in for what lies behind a bound: nothing of that is before it.
    pub fn first_behind(&mut self, bound: &Bound, schema: &ReadSchema) -> Result<Option<Block>, IndexError> {
        match self {
            Self::Trie(cursor) => cursor.floor(&comparable(bound, &schema.table.comparator, Ord::min)),
            Self::Promoted(cursor) => cursor.first_behind(bound).map(Some),
        }
    }

    /// The last block that can hold something before a bound.
    pub fn last_before(&mut self, bound: &Bound, schema: &ReadSchema) -> Result<Option<Block>, IndexError> {
        match self {
            Self::Trie(cursor) => cursor.floor(&comparable(bound, &schema.table.comparator, Ord::max)),
            Self::Promoted(cursor) => cursor.last_before(bound).map(Some),
        }
    }

    /// The first block.
    pub fn first(&mut self) -> Result<Option<Block>, IndexError> {
        match self {
            Self::Trie(cursor) => cursor.first(),
            Self::Promoted(cursor) => cursor.first().map(Some),
        }
    }

    /// The next block.
    pub fn next(&mut self) -> Result<Option<Block>, IndexError> {
        match self {
            Self::Trie(cursor) => cursor.next(),
            Self::Promoted(cursor) => cursor.next(),
        }
    }

    /// The block before.
    pub fn previous(&mut self) -> Result<Option<Block>, IndexError> {
        match self {
            Self::Trie(cursor) => cursor.previous(),
            Self::Promoted(cursor) => cursor.previous(),
        }
    }

    /// The end of the partition.
    pub fn end(&mut self) -> Result<Option<Block>, IndexError> {
        match self {
            Self::Trie(cursor) => cursor.end(),
            Self::Promoted(cursor) => cursor.end().map(Some),
        }
    }
}

/// The byte-comparable form of a bound. The separators of a row index are of the form that its
/// writer gave the rows, and Cassandra gives some values another: `choose` takes the form that
/// leads to a block at or before the right one, or at or behind it, whoever wrote.
fn comparable(bound: &Bound, comparator: &ClusteringComparator, choose: fn(Vec<u8>, Vec<u8>) -> Vec<u8>) -> Vec<u8> {
    let form = values_comparable(comparator, &bound.values, bound.kind);
    match values_of_cassandra(comparator, &bound.values, bound.kind) {
        Some(other) => choose(form, other),
        None => form,
    }
}

#[cfg(test)]
mod tests {
    use rows::PrefixKind;

    use super::row_index::RowIndexWriter;
    use super::*;

    /// Rows `(NaN, 0)`, `(NaN, 1)` and so on, a block each, in a row index as it is written here
    /// and as Cassandra writes it, which keeps the bits of the NaN.
    #[test]
    fn blocks_of_nans_are_found_whoever_wrote() {
        const BLOCKS: u8 = 5;
        let comparator = ClusteringComparator::new([(CqlType::Double, false), (CqlType::Blob, false)]);
        for bits in [0x7ff8_0000_0000_0000u64, 0x7ff8_0000_0000_0001, 0xfff8_0000_0000_0000] {
            let values = |c: u8| [Some(Bytes::copy_from_slice(&bits.to_be_bytes())), Some(Bytes::from(vec![c]))];
            let ours = |c: u8| values_comparable(&comparator, &values(c), PrefixKind::Clustering);
            let theirs = |c: u8| {
                let form = values_of_cassandra(&comparator, &values(c), PrefixKind::Clustering);
                form.expect("doubles have two forms")
            };
            for form in [&ours as &dyn Fn(u8) -> Vec<u8>, &theirs] {
                let mut writer = RowIndexWriter::default();
                for c in 0..BLOCKS {
                    let block = Block { offset: 20 + u64::from(c) * 1000, open: DeletionTime::LIVE };
                    writer.add_block(&form(c), form(c), block);
                }
                let end = 20 + u64::from(BLOCKS) * 1000;
                let place = writer.finish_partition(b"key", 0, &DeletionTime::LIVE, end).expect("several blocks");
                let (_, entry) =
                    RowIndexEntry::read(&writer.out.take().into(), place, Access::WAITING).expect("it was written");
                let floor = |bound: &Bound, choose: fn(Vec<u8>, Vec<u8>) -> Vec<u8>| {
                    let found = entry.cursor(Access::WAITING).floor(&comparable(bound, &comparator, choose));
                    found.expect("sound").expect("the first block has the empty key").offset
                };
                for c in 0..BLOCKS {
                    let of_row = 20 + u64::from(c) * 1000;
                    assert!(floor(&Bound::start(values(c).into_iter().collect(), true), Ord::min) <= of_row);
                    assert!(floor(&Bound::end(values(c).into_iter().collect(), true), Ord::max) >= of_row);
                }
            }
        }
    }
}
