//! A partition as it was when a read entered it first: what writes have replaced since, over what
//! is there now.
//!
//! Head, static row and deletion of the partition are taken at the first entry and need nothing.
//! Rows and range tombstones that were replaced while the read was outside are taken at its next
//! entry ([`Overlay::catch_up`]). A read that has lost some of them goes on with the partition as
//! it is at that entry.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound::Included;
use std::sync::Arc;

use bytes::Bytes;
use rows::RangeTombstoneList;
use rows::range_tombstones::CutKey;
use types::DecoratedKey;

use crate::table::memtable::Contents;
use crate::table::memtable::partition::{KeptRow, MemtablePartition};
use crate::table::memtable::replaced::{Replaced, Watch, Watched};

/// Most bytes of replaced rows that a read keeps, without those in the arena: 32,000 rows whose
/// clusterings are short. At the limit the read goes on with the partition as it is.
const REPLACED_BYTES_MAX: usize = 2 << 20;

/// The parts of a partition that writes have replaced since the first entry, as they were then.
#[derive(Default)]
pub(super) struct Overlay {
    /// None: the partition is not watched, because the read was not expected to enter again.
    watch: Option<Watch>,
    /// Rows as they were; None: there was none.
    rows: BTreeMap<CutKey, Option<Bytes>>,
    /// The bytes of the notes in `rows`.
    bytes: usize,
    /// The deleted ranges as they were; None: as they are.
    tombstones: Option<Arc<RangeTombstoneList>>,
}

impl Overlay {
    /// Watches the partition from now on. Called inside of the door.
    pub fn begin(&mut self, is_frozen: bool, watched: &mut Watched, key: &DecoratedKey) {
        // a memtable that is flushed does not change any more
        let watch = (!is_frozen).then(|| watched.watch(key));
        *self = Self { watch, ..Self::default() };
    }

    /// Takes what was replaced since the entry before. `is_ahead` says which rows the read has not
    /// passed. Called inside of the door, before anything is read.
    pub fn catch_up(&mut self, contents: &mut Contents, key: &DecoratedKey, is_ahead: impl Fn(&CutKey) -> bool) {
        let Self { watch, rows, bytes, tombstones } = self;
        let is_complete = watch.as_mut().is_some_and(|watch| {
            contents.watched.since(watch, key, |replaced| match replaced {
                // the first write behind the first entry has replaced what the read is to see
                Replaced::Row(key, before) if is_ahead(key) => {
                    if let Entry::Vacant(place) = rows.entry(key.clone()) {
                        place.insert(before.clone());
                        *bytes += replaced.size();
                    }
                }
                Replaced::Row(..) => {}
                Replaced::Tombstones(before) => {
                    tombstones.get_or_insert_with(|| Arc::clone(before));
                }
            })
        });
        if !is_complete || self.bytes > REPLACED_BYTES_MAX {
            self.begin(contents.frozen, &mut contents.watched, key);
        }
    }

    /// The row to show where `present` is now; None: there was none.
    pub fn row<'a>(&'a self, key: &CutKey, present: &'a KeptRow) -> Option<&'a Bytes> {
        self.rows.get(key).map_or(Some(&present.bytes), Option::as_ref)
    }

    /// The deleted ranges to show.
    pub fn tombstones<'a>(&'a self, present: &'a MemtablePartition) -> &'a RangeTombstoneList {
        self.tombstones.as_deref().unwrap_or_else(|| present.tombstones())
    }

    /// Whether rows between two keys, these included, were replaced.
    pub fn has_replaced(&self, first: &CutKey, last: &CutKey) -> bool {
        !self.rows.is_empty() && self.rows.range::<[u8], _>((Included(&**first), Included(&**last))).next().is_some()
    }
}
