//! A sorted map from byte strings to values. Its entries lie side by side in blocks, and each block
//! has a sum over its values, so a walk that only needs sums goes from block to block without
//! touching an entry.
//!
//! The first [`BLOCK_MAX`] entries are one sorted list. Further entries lie in further blocks,
//! which a search by their lower bounds finds: a block holds the keys from its own bound
//! (inclusive) to the next block's bound (exclusive). A full block is halved when a key falls
//! inside; a key behind the last entry begins a new block instead, so keys that arrive in ascending
//! order fill their blocks.
//!
//! Invariants: keys ascend within a block and from block to block; no block in `more` is empty;
//! `len` is the number of entries of all blocks.

use std::collections::BTreeMap;
use std::ops::Bound::{self, Excluded, Included, Unbounded};

use smallvec::SmallVec;

/// Keys of up to this many bytes are stored in the entry itself, so a search compares them without
/// following a pointer. The clustering of a uuid or of two numbers fits.
pub const INLINE_MAX: usize = 24;

/// A key, compared byte by byte.
pub type Key = SmallVec<[u8; INLINE_MAX]>;

/// Most entries of a block.
pub const BLOCK_MAX: usize = 32;

// a full block is halved: both halves hold as many entries, and none of them is empty
const _: () = assert!(BLOCK_MAX >= 2 && BLOCK_MAX.is_multiple_of(2));

/// The values of a map: they say how the sum of a block is kept up to date.
pub trait Value {
    /// The sum over a block's values. After a value has left, the sum may still include it (for
    /// instance a maximum), so a reader treats it as an upper estimate.
    type Sum: Clone + Default + std::fmt::Debug;

    /// Called when this value enters a block.
    fn add_to(&self, sum: &mut Self::Sum);

    /// Called when this value leaves a block, or before it changes.
    fn take_from(&self, sum: &mut Self::Sum);
}

#[derive(Clone, Debug)]
struct Block<V: Value> {
    entries: Vec<(Key, V)>,
    sum: V::Sum,
}

impl<V: Value> Default for Block<V> {
    fn default() -> Self {
        Self { entries: Vec::new(), sum: V::Sum::default() }
    }
}

impl<V: Value> Block<V> {
    fn of(entries: Vec<(Key, V)>) -> Self {
        let mut sum = V::Sum::default();
        entries.iter().for_each(|(_, value)| value.add_to(&mut sum));
        Self { entries, sum }
    }

    fn find(&self, key: &[u8]) -> Result<usize, usize> {
        self.entries.binary_search_by(|(other, _)| (**other).cmp(key))
    }

    fn insert(&mut self, at: usize, key: Key, value: V) {
        if self.entries.capacity() == 0 {
            // exactly one, because many maps only ever have one entry
            self.entries.reserve_exact(1);
        }
        value.add_to(&mut self.sum);
        self.entries.insert(at, (key, value));
    }

    fn change(&mut self, at: usize, change: impl FnOnce(&Key, &mut V)) {
        let Some((key, value)) = self.entries.get_mut(at) else { return };
        value.take_from(&mut self.sum);
        change(key, value);
        value.add_to(&mut self.sum);
    }

    /// The entries of this block between two bounds.
    fn part(&self, start: Bound<&[u8]>, end: Bound<&[u8]>) -> Part<'_, V> {
        let below = |bound: &[u8], included: bool| {
            self.entries.partition_point(|(key, _)| if included { **key <= *bound } else { **key < *bound })
        };
        let from = match start {
            Unbounded => 0,
            Included(bound) => below(bound, false),
            Excluded(bound) => below(bound, true),
        };
        let to = match end {
            Unbounded => self.entries.len(),
            Included(bound) => below(bound, true),
            Excluded(bound) => below(bound, false),
        };
        let entries = self.entries.get(from..to).unwrap_or_default();
        Part { entries, sum: (entries.len() == self.entries.len()).then_some(&self.sum) }
    }
}

/// Neighbouring entries of one block.
#[derive(Debug)]
pub struct Part<'a, V: Value> {
    /// Keys and values, keys ascending.
    pub entries: &'a [(Key, V)],
    /// The block's sum; None if `entries` are not the whole block.
    pub sum: Option<&'a V::Sum>,
}

/// The map. See the module.
#[derive(Clone, Debug)]
pub struct BlockMap<V: Value> {
    first: Block<V>,
    /// The blocks behind the first, by their lower bounds. None of them is empty.
    more: BTreeMap<Key, Block<V>>,
    len: usize,
}

impl<V: Value> Default for BlockMap<V> {
    fn default() -> Self {
        Self { first: Block::default(), more: BTreeMap::new(), len: 0 }
    }
}

impl<V: Value> BlockMap<V> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the map has no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The entry with the greatest key.
    pub fn last(&self) -> Option<&(Key, V)> {
        self.more.last_key_value().map_or(&self.first, |(_, block)| block).entries.last()
    }

    /// The last entry before a key, the entry at the key, and the first entry behind it.
    pub fn around(&self, key: &[u8]) -> [Option<&(Key, V)>; 3] {
        let found = self.block_of(key);
        let (bound, block) = found.map_or((None, &self.first), |(bound, block)| (Some(bound), block));
        let (at, is_there) = block.find(key).map_or_else(|at| (at, false), |at| (at, true));
        let before = match at.checked_sub(1) {
            Some(before) => block.entries.get(before),
            None => bound.and_then(|bound| self.range(Unbounded, Excluded(bound)).next_back()),
        };
        let here = block.entries.get(at).filter(|_| is_there);
        let behind = block.entries.get(at + usize::from(is_there)).or_else(|| {
            let next = self.more.range::<[u8], _>((Excluded(key), Unbounded)).next();
            next.and_then(|(_, block)| block.entries.first())
        });
        [before, here, behind]
    }

    /// All entries, ascending.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &(Key, V)> {
        self.range(Unbounded, Unbounded)
    }

    /// The entries between two bounds, keys ascending; none if the start lies behind the end.
    pub fn range<'a>(
        &'a self,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
    ) -> impl DoubleEndedIterator<Item = &'a (Key, V)> + use<'a, V> {
        self.parts(start, end).flat_map(|part| part.entries)
    }

    /// The entries between two bounds, grouped by block. Every part but the first and the last is a
    /// whole block.
    pub fn parts<'a>(
        &'a self,
        start: Bound<&[u8]>,
        end: Bound<&[u8]>,
    ) -> impl DoubleEndedIterator<Item = Part<'a, V>> + use<'a, V> {
        let head = match start {
            Unbounded => None,
            Included(key) | Excluded(key) => self.block_of(key),
        };
        let tail = match end {
            Unbounded => self.more.last_key_value(),
            Included(key) | Excluded(key) => self.block_of(key),
        };
        let (head_key, tail_key) = (head.map(|(key, _)| key), tail.map(|(key, _)| key));
        let [head, tail] = [head, tail].map(|found| found.map_or(&self.first, |(_, block)| block));
        let (first, last) = match head_key.cmp(&tail_key) {
            std::cmp::Ordering::Less => (Some(head.part(start, Unbounded)), Some(tail.part(Unbounded, end))),
            std::cmp::Ordering::Equal => (Some(head.part(start, end)), None),
            std::cmp::Ordering::Greater => (None, None),
        };
        let between = tail_key.filter(|_| last.is_some()).map(|tail| {
            let from = head_key.map_or(Unbounded, |head| Excluded(&**head));
            self.more.range::<[u8], _>((from, Excluded(&**tail)))
        });
        let whole = |(_, block): (&'a Key, &'a Block<V>)| Part { entries: &block.entries, sum: Some(&block.sum) };
        first.into_iter().chain(between.into_iter().flatten().map(whole)).chain(last)
    }

    /// The block to which a key belongs, with its lower bound. None: the first block, which has no
    /// lower bound.
    fn block_of(&self, key: &[u8]) -> Option<(&Key, &Block<V>)> {
        self.more.range::<[u8], _>((Unbounded, Included(key))).next_back()
    }

    fn block_of_mut(&mut self, key: &[u8]) -> &mut Block<V> {
        let found = self.more.range_mut::<[u8], _>((Unbounded, Included(key))).next_back();
        found.map_or(&mut self.first, |(_, block)| block)
    }

    /// Calls `give` with the value at a key, None if the key is absent, and stores the value that
    /// `give` returns. Returns true if the key was absent and is now present.
    pub fn upsert(&mut self, key: Key, give: impl FnOnce(Option<&mut V>) -> Option<V>) -> bool {
        if self.last().is_none_or(|(last, _)| *last < key) {
            let Some(value) = give(None) else { return false };
            self.append(key, value);
            return true;
        }
        let block = self.block_of_mut(&key);
        let at = match block.find(&key) {
            Err(at) => at,
            Ok(at) => {
                block.change(at, |_, value| {
                    if let Some(new) = give(Some(&mut *value)) {
                        *value = new;
                    }
                });
                return false;
            }
        };
        let Some(value) = give(None) else { return false };
        if block.entries.len() < BLOCK_MAX {
            block.insert(at, key, value);
        } else {
            self.insert_in_full(at, key, value);
        }
        self.len += 1;
        true
    }

    /// Adds an entry whose key is greater than all others.
    fn append(&mut self, key: Key, value: V) {
        self.len += 1;
        let block = match self.more.last_entry() {
            Some(last) => last.into_mut(),
            None => &mut self.first,
        };
        if block.entries.len() < BLOCK_MAX {
            block.insert(block.entries.len(), key, value);
            return;
        }
        let bound = key.clone();
        let mut next = Block { entries: Vec::with_capacity(BLOCK_MAX), sum: V::Sum::default() };
        next.insert(0, key, value);
        self.more.insert(bound, next);
    }

    fn insert_in_full(&mut self, at: usize, key: Key, value: V) {
        let block = self.block_of_mut(&key);
        let mut upper = Block::of(block.entries.split_off(BLOCK_MAX / 2));
        *block = Block::of(std::mem::take(&mut block.entries));
        match at.checked_sub(BLOCK_MAX / 2) {
            Some(at) if at > 0 => upper.insert(at, key, value),
            _ => block.insert(at, key, value),
        }
        debug_assert!(
            block.entries.last().map(|(key, _)| key) < upper.entries.first().map(|(key, _)| key),
            "keys ascend from block to block"
        );
        debug_assert_eq!(block.entries.len() + upper.entries.len(), BLOCK_MAX + 1, "halving a block loses no entry");
        if let Some((bound, _)) = upper.entries.first() {
            self.more.insert(bound.clone(), upper);
        }
    }

    /// Removes an entry.
    pub fn remove(&mut self, key: &[u8]) -> Option<V> {
        let block = self.block_of_mut(key);
        let at = block.find(key).ok()?;
        debug_assert!(block.entries.len() <= BLOCK_MAX, "a block holds no more entries than it may");
        let (_, value) = block.entries.remove(at);
        value.take_from(&mut block.sum);
        if block.entries.is_empty()
            && let Some(bound) = self.block_of(key).map(|(bound, _)| bound.clone())
        {
            self.more.remove(&bound);
        }
        self.len -= 1;
        Some(value)
    }

    /// Changes the values whose keys lie strictly between `start` and `end`.
    pub fn change_between(&mut self, start: &[u8], end: &[u8], mut change: impl FnMut(&Key, &mut V)) {
        let mut of_block = |block: &mut Block<V>| {
            let first = block.entries.partition_point(|(key, _)| **key <= *start);
            let behind = block.entries.partition_point(|(key, _)| **key < *end);
            (first..behind).for_each(|at| block.change(at, &mut change));
        };
        if start >= end {
            return;
        }
        let from = match self.block_of(start) {
            Some((bound, _)) => Included(bound.clone()),
            None => {
                of_block(&mut self.first);
                Unbounded
            }
        };
        let from = from.as_ref().map(|bound| &**bound);
        self.more.range_mut::<[u8], _>((from, Excluded(end))).for_each(|(_, block)| of_block(block));
    }
}

#[cfg(test)]
mod tests;
