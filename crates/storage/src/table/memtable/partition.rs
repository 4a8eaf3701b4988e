//! A partition in a memtable.

use std::sync::LazyLock;

use bytes::Bytes;
use rows::codec::{Decoded, Framing, Header, decode_static_row, decode_unfiltered, encode_row};
use rows::range_tombstones::put_prefix_key;
use rows::{Bound, DeletionTime, PartitionUpdate, PrefixKind, RangeTombstoneList, Row, Slice};
use schema::TableMetadata;
use stdx::BlockMap;
use stdx::block_map::{INLINE_MAX, Key, Value};

use super::Observer;
use super::arena::Arena;

/// Bytes of bookkeeping counted for each row besides its bytes, and its key where that is long: an
/// entry, in blocks that are filled to three quarters.
const ROW_OVERHEAD: usize = 112;
/// Bytes of bookkeeping counted for each cut, an end of range tombstones: a range has two cuts, of
/// which it shares one with an adjacent range.
const CUT_OVERHEAD: usize = 200;

/// Rows by the byte-comparable form of their clustering, each in serial form.
#[derive(Default)]
pub struct MemtablePartition {
    pub(super) rows: BlockMap<KeptRow>,
    /// The properties that few partitions have: many have one row and nothing else.
    rare: Option<Box<Rare>>,
}

/// A deletion of the partition, its static row, ranges that are deleted.
#[derive(Default)]
struct Rare {
    deletion: DeletionTimeOrLive,
    static_row: Option<Bytes>,
    tombstones: RangeTombstoneList,
}

/// An empty list, for partitions without range tombstones.
static NO_TOMBSTONES: LazyLock<RangeTombstoneList> = LazyLock::new(RangeTombstoneList::new);

/// A row in serial form.
pub(super) struct KeptRow {
    pub bytes: Bytes,
    /// The deletion of a row that consists of nothing else; otherwise [`DeletionTime::LIVE`].
    pub tombstone: DeletionTime,
}

/// Rows of an update that were encoded before the door was entered, each with its index in the
/// update.
#[derive(Default)]
pub struct EncodedRows(Vec<(usize, Bytes)>);

/// Bytes from which on a row is encoded before the door is entered.
const ENCODED_BEFORE: usize = 64 << 10;
/// Upper bound of the bytes that a row takes besides its values; with it the buffer does not grow.
const ROW_ROOM: usize = 4 << 10;

impl EncodedRows {
    pub(super) fn of(update: &PartitionUpdate, header: &Header) -> Self {
        let large = update.rows.iter().enumerate().filter_map(|(index, row)| {
            let size = row.data_size();
            (size >= ENCODED_BEFORE).then(|| {
                let mut bytes = Vec::with_capacity(size + ROW_ROOM);
                encode_row(&mut bytes, row, false, header, Framing::Message);
                (index, Bytes::from(bytes))
            })
        });
        Self(large.collect())
    }

    fn take(&mut self, index: usize) -> Option<Bytes> {
        let found = self.0.iter().position(|(of, _)| *of == index)?;
        Some(self.0.swap_remove(found).1)
    }
}

impl KeptRow {
    fn new(row: &Row, header: &Header, arena: &mut Arena) -> Self {
        let is_tombstone = row.liveness.is_empty() && row.columns.is_empty();
        let tombstone = if is_tombstone { row.deletion } else { DeletionTime::LIVE };
        Self { bytes: encode(row, false, header, arena), tombstone }
    }
}

/// The summary of a block of rows.
#[derive(Clone, Default, Debug)]
pub(super) struct RowsSum {
    /// Number of rows that consist of a deletion only.
    tombstones: usize,
    /// The weakest of these deletions; None: there is none.
    weakest: Option<DeletionTime>,
}

impl RowsSum {
    /// Whether all of `rows` rows are tombstones that `deletion` does not shadow.
    pub fn are_tombstones_above(&self, rows: usize, deletion: &DeletionTime) -> bool {
        self.tombstones == rows && self.weakest.is_some_and(|weakest| weakest.supersedes(deletion))
    }
}

impl Value for KeptRow {
    type Sum = RowsSum;

    fn add_to(&self, sum: &mut RowsSum) {
        if !self.tombstone.is_live() {
            sum.tombstones += 1;
            let is_weaker = sum.weakest.is_none_or(|weakest| weakest.supersedes(&self.tombstone));
            if is_weaker {
                sum.weakest = Some(self.tombstone);
            }
        }
    }

    fn take_from(&self, sum: &mut RowsSum) {
        sum.tombstones -= usize::from(!self.tombstone.is_live());
    }
}

/// A deletion time that is live by default.
#[derive(Clone, Copy)]
pub struct DeletionTimeOrLive(pub DeletionTime);

impl Default for DeletionTimeOrLive {
    fn default() -> Self {
        Self(DeletionTime::LIVE)
    }
}

impl MemtablePartition {
    /// The deletion of the whole partition.
    pub(super) fn deletion(&self) -> DeletionTime {
        self.rare.as_ref().map_or(DeletionTime::LIVE, |rare| rare.deletion.0)
    }

    /// The static row, in serial form.
    pub(super) fn static_row(&self) -> Option<&Bytes> {
        self.rare.as_ref()?.static_row.as_ref()
    }

    /// The deleted ranges.
    pub(super) fn tombstones(&self) -> &RangeTombstoneList {
        self.rare.as_ref().map_or(&NO_TOMBSTONES, |rare| &rare.tombstones)
    }

    fn rare(&mut self, arena: &mut Arena) -> &mut Rare {
        self.rare.get_or_insert_with(|| {
            arena.account(size_of::<Rare>());
            Box::default()
        })
    }

    /// Applies an update; gives the number of rows that were not there before.
    pub(super) fn apply(
        &mut self,
        update: &PartitionUpdate,
        table: &TableMetadata,
        header: &Header,
        arena: &mut Arena,
        mut observer: Option<Observer<'_>>,
        mut encoded: EncodedRows,
    ) -> usize {
        if !update.deletion.is_live() {
            let deletion = &mut self.rare(arena).deletion;
            deletion.0 = deletion.0.merge(update.deletion);
        }
        for (slice, deletion) in &update.range_deletions {
            let tombstones = &mut self.rare(arena).tombstones;
            let before = tombstones.cuts();
            // the bounds of the update are slices of a request's buffer
            let slice = Slice { start: copy(&slice.start, arena), end: copy(&slice.end, arena) };
            tombstones.insert(&table.comparator, slice, *deletion);
            arena.account(tombstones.cuts().saturating_sub(before) * CUT_OVERHEAD);
        }
        if let Some(row) = &update.static_row {
            let merged = match self.static_row().map(|old| decode_static(old, header)) {
                Some(mut old) => {
                    let before = observer.is_some().then(|| old.clone());
                    old.merge(row.clone(), table);
                    notify_observer(&mut observer, before.as_ref(), &old, true);
                    encode(&old, true, header, arena)
                }
                None => {
                    notify_observer(&mut observer, None, row, true);
                    encode(row, true, header, arena)
                }
            };
            self.rare(arena).static_row = Some(merged);
        }
        let mut added = 0;
        let mut key = Vec::new();
        for (index, row) in update.rows.iter().enumerate() {
            key.clear();
            put_prefix_key(&mut key, &table.comparator, &row.clustering, PrefixKind::Clustering);
            let is_new = self.rows.upsert(Key::from_slice(&key), |kept| {
                let Some(kept) = kept else {
                    notify_observer(&mut observer, None, row, false);
                    if let Some(bytes) = encoded.take(index) {
                        arena.account(bytes.len() + ROW_ROOM);
                        return Some(KeptRow { bytes, tombstone: DeletionTime::LIVE });
                    }
                    return Some(KeptRow::new(row, header, arena));
                };
                let mut old = decode(&kept.bytes, header);
                let before = observer.is_some().then(|| old.clone());
                old.merge(row.clone(), table);
                notify_observer(&mut observer, before.as_ref(), &old, false);
                Some(KeptRow::new(&old, header, arena))
            });
            if is_new {
                arena.account(ROW_OVERHEAD + if key.len() > INLINE_MAX { key.len() } else { 0 });
                added += 1;
            }
        }
        added
    }
}

fn copy(bound: &Bound, arena: &mut Arena) -> Bound {
    let values = bound.values.iter().map(|value| value.as_ref().map(|bytes| arena.copy(bytes))).collect();
    Bound { kind: bound.kind, values }
}

fn notify_observer(observer: &mut Option<Observer<'_>>, before: Option<&Row>, after: &Row, is_static: bool) {
    if let Some(observer) = observer {
        observer(before, after, is_static);
    }
}

fn encode(row: &Row, is_static: bool, header: &Header, arena: &mut Arena) -> Bytes {
    arena.copy_with(row.encoded_room(), |out| encode_row(out, row, is_static, header, Framing::Message))
}

/// Decodes a row that this memtable encoded.
pub(super) fn decode(bytes: &Bytes, header: &Header) -> Row {
    match decode_unfiltered(bytes, 0, header, false) {
        Ok((Decoded::Row(row), _)) => row,
        other => unreachable!("a memtable decodes the rows that it encoded, not {other:?}"),
    }
}

/// Decodes a static row that this memtable encoded.
pub(super) fn decode_static(bytes: &Bytes, header: &Header) -> Row {
    let (row, _) = decode_static_row(bytes, 0, header, false).expect("a memtable decodes the rows that it encoded");
    row
}
