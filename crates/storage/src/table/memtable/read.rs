//! Reading a memtable as a [`PartitionStream`]: bounded entries through the door, decoding outside
//! of it.
//!
//! 1. A partition's head and the first rows of its slices are taken in one entry.
//! 2. Rows of a slice come in batches of at most [`BATCH_ROWS`] rows or [`BATCH_BYTES`] bytes; the
//!    next batch goes on behind the last key. The cuts of range tombstones come in batches of their
//!    own, each behind the last cut of the one before.
//! 3. Both are put together outside the door; rows that a range or the partition deletion shadows
//!    are dropped.
//!
//! An update of several rows is applied in one entry, and a read shows the whole update or nothing
//! of it: rows that are replaced while the read is outside of the door are shown as they were at
//! its first entry ([`overlay`]). A read whose first entry has as many rows as it wants is not
//! expected to enter again. If it does, since these rows turn out to be expired, deleted or not
//! looked for, it shows the others as they are at its second entry.

mod overlay;
mod passing;

use std::collections::VecDeque;
use std::ops::Bound::{Excluded, Included};
use std::sync::Arc;

use bytes::Bytes;
use env::rare::{Rare, happens};
use rows::command::RingBound;
use rows::range_tombstones::{CutKey, OwnedCut, is_before, marker_at, position_key};
use rows::{
    DeletionTime, PartitionHead, PartitionRange, PartitionStream, RangeTombstoneList, RangeTombstoneMarker,
    ReadCommand, ReadError, Row, Slice, Slices, Unfiltered,
};
use types::{DecoratedKey, Token};

use super::partition::{KeptRow, MemtablePartition, decode, decode_static};
use super::{Contents, Memtable};
use overlay::Overlay;

/// Most rows taken in one entry of the door.
pub const BATCH_ROWS: usize = 256;
/// Most bytes of rows taken in one entry of the door; a single row may be larger.
pub const BATCH_BYTES: usize = 64 << 10;
/// Rows taken in the first batch of a slice where no more are wanted: a read of one row takes
/// little more.
const FIRST_BATCH_ROWS: usize = 16;

const _: () = assert!(FIRST_BATCH_ROWS <= BATCH_ROWS);

/// Memtables of one table in token order (one a shard), read as one stream.
pub struct MemtableStream {
    memtables: VecDeque<Arc<Memtable>>,
    range: PartitionRange,
    slices: Slices,
    reversed: bool,
    /// Live rows of a partition that are wanted, at most.
    wanted: usize,
    /// Rows that are taken together with the head of a partition, at most.
    first_rows: usize,
    last_key: Option<DecoratedKey>,
    current: Option<PartitionCursor>,
}

impl MemtableStream {
    /// Reads the rows that `command` asks for. `memtables` are those of the shards that may have
    /// them, in token order.
    pub fn new(memtables: Vec<Arc<Memtable>>, command: &ReadCommand) -> Self {
        let wanted = command.limits.rows.min(command.limits.per_partition);
        let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
        Self {
            memtables: memtables.into(),
            range: command.range.clone(),
            slices: command.slices.clone(),
            reversed: command.reversed,
            wanted,
            first_rows: wanted.clamp(FIRST_BATCH_ROWS, BATCH_ROWS),
            last_key: None,
            current: None,
        }
    }

    /// Everything in the memtables, for a flush.
    pub fn all(memtables: Vec<Arc<Memtable>>) -> Self {
        Self {
            memtables: memtables.into(),
            range: PartitionRange::all(),
            slices: Slices::all(),
            reversed: false,
            wanted: usize::MAX,
            first_rows: BATCH_ROWS,
            last_key: None,
            current: None,
        }
    }

    fn start_of_range(&self) -> std::ops::Bound<DecoratedKey> {
        if let Some(last) = &self.last_key {
            return Excluded(last.clone());
        }
        match &self.range {
            PartitionRange::Key(key) => Included(key.clone()),
            PartitionRange::Range { start, .. } => match start {
                RingBound::Open => Included(DecoratedKey::at(Token::MIN, Bytes::new())),
                RingBound::Token { token, inclusive: true } => Included(DecoratedKey::at(*token, Bytes::new())),
                RingBound::Token { token, inclusive: false } => match token.0.checked_add(1) {
                    Some(next) => Included(DecoratedKey::at(Token(next), Bytes::new())),
                    // nothing lies behind the last token
                    None => Excluded(DecoratedKey::at(*token, Bytes::from_static(&[0xff; 64]))),
                },
                RingBound::Key { key, inclusive: true } => Included(key.clone()),
                RingBound::Key { key, inclusive: false } => Excluded(key.clone()),
            },
        }
    }

    /// A cursor at the begin of a partition.
    fn cursor(&self, memtable: &Arc<Memtable>, head: &RawHead) -> PartitionCursor {
        PartitionCursor {
            source: Source {
                memtable: Arc::clone(memtable),
                key: head.key.clone(),
                deletion: head.deletion,
                overlay: Overlay::default(),
            },
            slices: self.slices.clone(),
            next_slice: 0,
            reversed: self.reversed,
            wanted: self.wanted,
            first_rows: self.first_rows,
            slice: None,
            entered: VecDeque::new(),
        }
    }
}

struct RawHead {
    key: DecoratedKey,
    deletion: DeletionTime,
    static_row: Option<Bytes>,
}

impl RawHead {
    fn of(key: &DecoratedKey, partition: &MemtablePartition) -> Self {
        Self { key: key.clone(), deletion: partition.deletion(), static_row: partition.static_row().cloned() }
    }
}

impl PartitionStream for MemtableStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        // nothing is noted any more for the partition before
        self.current = None;
        loop {
            let Some(memtable) = self.memtables.front().cloned() else { return Ok(None) };
            let found = {
                let mut contents = memtable.enter();
                let Contents { frozen, partitions, watched, .. } = &mut *contents;
                let found = match &self.range {
                    PartitionRange::Key(_) if self.last_key.is_some() => None,
                    PartitionRange::Key(key) => partitions.get_key_value(key),
                    PartitionRange::Range { .. } => {
                        partitions.range((self.start_of_range(), std::ops::Bound::Unbounded)).next()
                    }
                };
                found.map(|(key, partition)| {
                    let head = RawHead::of(key, partition);
                    let mut cursor = self.cursor(&memtable, &head);
                    if !self.range.is_past(key) && cursor.take_first(partition) {
                        cursor.source.overlay.begin(*frozen, watched, key);
                    }
                    (head, cursor)
                })
            };
            let Some((head, cursor)) = found else {
                self.memtables.pop_front();
                continue;
            };
            if self.range.is_past(&head.key) {
                self.memtables.clear();
                return Ok(None);
            }
            assert!(self.last_key.as_ref().is_none_or(|last| *last < head.key), "partitions of memtables ascend");
            self.last_key = Some(head.key.clone());
            let mut static_row = head.static_row.map(|bytes| decode_static(&bytes, &memtable.header));
            if let Some(row) = &mut static_row {
                row.apply_deletion(&head.deletion);
            }
            self.current = Some(cursor);
            let static_row = static_row.filter(|row| !row.is_empty());
            return Ok(Some(PartitionHead::new(head.key, head.deletion, static_row)));
        }
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        Ok(self.current.as_mut().and_then(PartitionCursor::next))
    }

    fn pass_tombstones(&mut self, most: u64) -> Result<u64, ReadError> {
        let Some(PartitionCursor { source, slice: Some(slice), .. }) = &mut self.current else {
            return Ok(0);
        };
        Ok(slice.pass_tombstones(source, most))
    }
}

/// A partition that is read.
struct Source {
    memtable: Arc<Memtable>,
    key: DecoratedKey,
    /// The deletion of the partition at the first entry.
    deletion: DeletionTime,
    overlay: Overlay,
}

/// Reads the slices of one partition in turn.
struct PartitionCursor {
    source: Source,
    slices: Slices,
    next_slice: usize,
    reversed: bool,
    /// Live rows that are wanted, at most.
    wanted: usize,
    /// Rows that are taken in the first entry, at most.
    first_rows: usize,
    /// The slice that is read; None: the next one is to be begun.
    slice: Option<SliceCursor>,
    /// The slices behind `slice` that were entered together with the head of the partition.
    entered: VecDeque<SliceCursor>,
}

impl PartitionCursor {
    /// Takes the first rows of the partition, slice by slice. Called in the entry that gives the
    /// head: a write is in both or in neither. Gives whether the read is expected to enter again.
    fn take_first(&mut self, partition: &MemtablePartition) -> bool {
        let (mut taken, mut bytes, mut alive) = (0, 0, 0);
        let mut is_whole = true;
        while is_whole
            && taken < self.first_rows
            && bytes < BATCH_BYTES
            && let Some(mut slice) = self.next_cursor()
        {
            slice.fill_changes(partition.tombstones());
            alive += slice.fill_rows(partition, &self.source.overlay);
            taken += 1 + slice.rows.len() + slice.changes.len();
            bytes += slice.rows.iter().map(|(_, row)| row.len()).sum::<usize>();
            is_whole = slice.rows_done && slice.changes_done;
            match &self.slice {
                None => self.slice = Some(slice),
                Some(_) => self.entered.push_back(slice),
            }
        }
        let is_all = is_whole && self.next_slice == self.slices.0.len();
        !is_all && alive < self.wanted
    }

    /// A cursor at the next slice of which nothing was taken.
    fn next_cursor(&mut self) -> Option<SliceCursor> {
        let count = self.slices.0.len();
        let index = if self.reversed { count.checked_sub(self.next_slice + 1)? } else { self.next_slice };
        let slice = self.slices.0.get(index)?.clone();
        self.next_slice += 1;
        Some(SliceCursor::new(slice, &self.source.memtable, self.reversed, self.first_rows))
    }

    fn next(&mut self) -> Option<Unfiltered> {
        loop {
            if let Some(slice) = &mut self.slice {
                if let Some(unfiltered) = slice.next(&mut self.source) {
                    return Some(unfiltered);
                }
                self.slice = None;
            }
            let entered = self.entered.pop_front();
            self.slice = entered.or_else(|| self.next_cursor());
            if self.slice.is_none() {
                // the merge of the read may go on for long: nothing more is noted for this part
                self.source.overlay = Overlay::default();
                return None;
            }
        }
    }
}

/// Changes the open range deletion to `next`, under the deletion of the partition. Gives the
/// deletions in force before and behind this place; None: they are equal.
fn turn(
    open: &mut DeletionTime,
    next: DeletionTime,
    partition: &DeletionTime,
) -> Option<(Option<DeletionTime>, Option<DeletionTime>)> {
    let effective = |deletion: DeletionTime| deletion.supersedes(partition).then_some(deletion);
    let left = std::mem::replace(open, next);
    let (left, entered) = (effective(left), effective(next));
    (left != entered).then_some((left, entered))
}

/// Rows and range tombstones of one slice, put together.
struct SliceCursor {
    slice: Slice,
    reversed: bool,
    start_key: CutKey,
    end_key: CutKey,
    /// Rows that were taken and not given; without their keys if no cut can lie among them.
    rows: VecDeque<(Option<CutKey>, Bytes)>,
    /// The key behind which (when reversed, before which) the next batch of rows begins; None: at
    /// the begin of the slice.
    rows_from: Option<CutKey>,
    rows_done: bool,
    batch_rows: usize,
    /// Cuts that were taken and not given. Each ends the deletion that is open; later writes can
    /// only add to it.
    changes: VecDeque<OwnedCut>,
    /// The cut behind which the next batch of cuts begins.
    changes_from: Option<CutKey>,
    changes_done: bool,
    batch_changes: usize,
    /// The range deletion that is open at the present place.
    open: DeletionTime,
}

impl SliceCursor {
    fn new(slice: Slice, memtable: &Memtable, reversed: bool, first_rows: usize) -> Self {
        let comparator = &memtable.table.comparator;
        Self {
            reversed,
            start_key: position_key(comparator, &slice.start),
            end_key: position_key(comparator, &slice.end),
            slice,
            rows: VecDeque::new(),
            rows_from: None,
            rows_done: false,
            batch_rows: first_rows,
            changes: VecDeque::new(),
            changes_from: None,
            changes_done: false,
            batch_changes: first_rows,
            open: DeletionTime::LIVE,
        }
    }

    fn next(&mut self, source: &mut Source) -> Option<Unfiltered> {
        loop {
            self.fill(source);
            if !self.is_row_first() {
                let change = self.changes.pop_front()?;
                if let Some(marker) = self.pass(change, &source.deletion) {
                    return Some(Unfiltered::Marker(marker));
                }
                continue;
            }
            let (_, bytes) = self.rows.pop_front()?;
            let mut row: Row = decode(&bytes, &source.memtable.header);
            row.apply_deletion(&self.open.merge(source.deletion));
            if !row.is_empty() {
                return Some(Unfiltered::Row(row));
            }
        }
    }

    /// Whether a row comes before all cuts among those taken; false if nothing was taken.
    fn is_row_first(&self) -> bool {
        match (self.rows.front(), self.changes.front()) {
            (None, _) => false,
            (Some((Some(row), _)), Some(change)) => (*row < change.key) != self.reversed,
            (Some(_), None) | (Some((None, _)), Some(_)) => true,
        }
    }

    /// Passes a cut. None: the partition deletion makes the marker pointless.
    fn pass(&mut self, change: OwnedCut, partition: &DeletionTime) -> Option<RangeTombstoneMarker> {
        let (left, entered) = turn(&mut self.open, change.next, partition)?;
        let (close, open) = if self.reversed { (entered, left) } else { (left, entered) };
        marker_at(change.values, is_before(&change.key), close, open)
    }

    fn fill(&mut self, source: &mut Source) {
        loop {
            let want_rows = self.rows.is_empty() && !self.rows_done;
            let want_changes = self.changes.is_empty() && !self.changes_done;
            if !want_rows && !want_changes {
                return;
            }
            let mut contents = source.memtable.enter();
            source.overlay.catch_up(&mut contents, &source.key, |key| self.is_ahead(key));
            let Some(partition) = contents.partitions.get(&source.key) else {
                self.rows_done = true;
                self.changes_done = true;
                return;
            };
            if want_changes {
                self.fill_changes(source.overlay.tombstones(partition));
            }
            if want_rows {
                // may take none, if all that it looks at were not there at the first entry
                self.fill_rows(partition, &source.overlay);
            }
        }
    }

    /// Whether a row has not been taken or passed.
    fn is_ahead(&self, key: &CutKey) -> bool {
        self.rows_from.as_ref().is_none_or(|from| if self.reversed { key < from } else { key > from })
    }

    /// The keys between which rows are left to be taken, the second excluded; None: there is no
    /// room between them.
    fn rows_left(&self) -> Option<(std::ops::Bound<&[u8]>, &[u8])> {
        let (start, end) = match &self.rows_from {
            None => (Included(&*self.start_key), &*self.end_key),
            Some(from) if self.reversed => (Included(&*self.start_key), &**from),
            Some(from) => (Excluded(&**from), &*self.end_key),
        };
        let (Included(first) | Excluded(first)) = start else { return None };
        (first < end).then_some((start, end))
    }

    /// Takes rows; gives how many of those that it looked at are more than a deletion.
    fn fill_rows(&mut self, partition: &MemtablePartition, overlay: &Overlay) -> usize {
        let Some((start, end)) = self.rows_left() else {
            self.rows_done = true;
            return 0;
        };
        let batch_rows = if happens(Rare::BatchOfOne) { 1 } else { self.batch_rows };
        // the last cut is the end of the slice: no row lies behind it
        let with_keys = !self.changes_done || self.changes.len() > 1;
        let range = partition.rows.range(start, Excluded(end));
        let (mut bytes, mut looks, mut alive, mut last) = (0, 0, 0, None);
        let mut take = |(key, row): &(CutKey, KeptRow)| {
            if let Some(row) = overlay.row(key, row) {
                self.rows.push_back((with_keys.then(|| key.clone()), row.clone()));
                bytes += row.len();
            }
            looks += 1;
            alive += usize::from(row.tombstone.is_live());
            let goes_on = bytes < BATCH_BYTES && looks < batch_rows;
            if !goes_on {
                last = Some(key.clone());
            }
            goes_on
        };
        if self.reversed {
            let _ = range.rev().all(&mut take);
        } else {
            let mut range = range;
            let _ = range.all(&mut take);
        }
        self.batch_rows = BATCH_ROWS;
        match last {
            Some(key) => self.rows_from = Some(key),
            None => self.rows_done = true,
        }
        alive
    }

    fn fill_changes(&mut self, tombstones: &RangeTombstoneList) {
        let (mut start, mut end) = (&self.start_key, &self.end_key);
        if start >= end || tombstones.is_empty() {
            self.changes_done = true;
            return;
        }
        match &self.changes_from {
            Some(from) if self.reversed => end = from,
            Some(from) => start = from,
            None => {
                let next = tombstones.deletion_on_entry(start, end, self.reversed);
                if !next.is_live() {
                    let bound = if self.reversed { &self.slice.end } else { &self.slice.start };
                    let key = if self.reversed { end.clone() } else { start.clone() };
                    self.changes.push_back(OwnedCut { key, values: bound.values.clone(), next });
                }
            }
        }
        let before = self.changes.len();
        self.changes.extend(tombstones.changes(start, end, self.reversed, self.batch_changes));
        if self.changes.len() - before < self.batch_changes {
            self.changes_done = true;
            let (bound, key) = match self.reversed {
                true => (&self.slice.start, &self.start_key),
                false => (&self.slice.end, &self.end_key),
            };
            let (key, values) = (key.clone(), bound.values.clone());
            self.changes.push_back(OwnedCut { key, values, next: DeletionTime::LIVE });
        } else {
            self.changes_from = self.changes.back().map(|change| change.key.clone());
        }
        self.batch_changes = BATCH_ROWS;
    }
}
