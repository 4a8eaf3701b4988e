//! Keys of entries that are about a partition of something: of a file, of a table. Looked up
//! without a copy of the partition's key.

use std::hash::{Hash, Hasher};

use quick_cache::Equivalent;

/// The table and the key of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct PartitionKey<O> {
    pub of: O,
    pub key: Box<[u8]>,
}

/// A borrowed [`PartitionKey`], for a look-up without a copy of the key.
#[derive(Clone, Copy)]
pub(super) struct PartitionKeyRef<'a, O> {
    pub of: O,
    pub key: &'a [u8],
}

impl<O: Hash + Copy> Hash for PartitionKey<O> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        PartitionKeyRef { of: self.of, key: &self.key }.hash(state);
    }
}

impl<O: Hash> Hash for PartitionKeyRef<'_, O> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.of.hash(state);
        state.write(self.key);
    }
}

impl<O: PartialEq> Equivalent<PartitionKey<O>> for PartitionKeyRef<'_, O> {
    fn equivalent(&self, key: &PartitionKey<O>) -> bool {
        self.of == key.of && *self.key == *key.key
    }
}
