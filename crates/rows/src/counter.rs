//! Counter contexts: the parts of a counter cell's value, how two contexts are merged, and how an
//! increment becomes a shard.
//!
//! 1. A context is a set of shards `(id, clock, count)` ordered by id. The value of the counter is
//!    the sum of their counts.
//! 2. Each node that takes increments has one *global* shard under its host id; of two, the one
//!    with the greater clock is right. Files from before Cassandra 2.1 also hold *local* shards,
//!    whose clocks and counts add up, and *remote* ones.
//! 3. A statement writes an *update*: a local shard under the id zero, so that several updates of
//!    one cell add up. It never reaches a memtable: [`settle`] turns it into a global shard, given
//!    the present value.
//!
//! Bytes: a header (`i16` length, then for each global or local shard an `i16` with its index, less
//! 32768 if it is global) and 32 bytes for each shard. Agrees with
//! `org.apache.cassandra.db.context.CounterContext`, `db.rows.Cells.resolveCounter` and
//! `db.CounterMutation`.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;

use bytes::Bytes;
use schema::ColumnId;
use smallvec::SmallVec;
use stdx::{Cursor, CursorError};

use crate::{Cell, ClusteringValues, ColumnData, PartitionUpdate, Row};

/// Bytes of a shard: id, clock, count.
const SHARD_LEN: usize = 32;
/// The id under which updates are written: a leader of Cassandra knows an update by it
/// (`CounterContext.UPDATE_CLOCK_ID`).
const UPDATE_ID: CounterId = [0, 0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0];

/// The id of a shard: the host id of the node that counted.
pub type CounterId = [u8; 16];

/// The kind of a shard, weakest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Kind {
    /// The count of another node, from before 2.1.
    Remote,
    /// A part of a node's count, from before 2.1; also an update.
    Local,
    /// The whole count of a node.
    Global,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Shard {
    id: CounterId,
    kind: Kind,
    clock: i64,
    count: i64,
}

/// Shards of a context. Four are stored without a heap allocation, because few nodes count one
/// counter.
type Shards = SmallVec<[Shard; 4]>;

/// The clock and the count of one node's shard.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClockAndCount {
    /// The clock, which grows with each write of the node.
    pub clock: i64,
    /// The count of the node.
    pub count: i64,
}

fn decode(context: &[u8]) -> Result<Shards, CursorError> {
    let mut cursor = Cursor::new(context);
    let elements = usize::from(cursor.i16()?.unsigned_abs());
    let mut header = Cursor::new(cursor.take(elements * 2)?);
    let mut marked = header.i16().ok();
    let mut shards = Shards::new();
    while cursor.remaining() >= SHARD_LEN {
        let mut id: CounterId = [0; 16];
        id.copy_from_slice(cursor.take(16)?);
        let (clock, count) = (cursor.i64()?, cursor.i64()?);
        let kind = match (marked, i16::try_from(shards.len())) {
            (Some(element), Ok(index)) if element == index => Kind::Local,
            (Some(element), Ok(index)) if element == index.wrapping_add(i16::MIN) => Kind::Global,
            _ => Kind::Remote,
        };
        if kind != Kind::Remote {
            marked = header.i16().ok();
        }
        shards.push(Shard { id, kind, clock, count });
    }
    Ok(shards)
}

fn encode(shards: &[Shard]) -> Bytes {
    let elements: SmallVec<[i16; 8]> = (0..=i16::MAX)
        .zip(shards)
        .filter_map(|(index, shard)| match shard.kind {
            Kind::Remote => None,
            Kind::Local => Some(index),
            Kind::Global => Some(index.wrapping_add(i16::MIN)),
        })
        .collect();
    let mut out = Vec::with_capacity(2 + elements.len() * 2 + shards.len() * SHARD_LEN);
    out.extend_from_slice(&u16::try_from(elements.len()).unwrap_or(0).to_be_bytes());
    elements.iter().for_each(|element| out.extend_from_slice(&element.to_be_bytes()));
    for shard in shards {
        out.extend_from_slice(&shard.id);
        out.extend_from_slice(&shard.clock.to_be_bytes());
        out.extend_from_slice(&shard.count.to_be_bytes());
    }
    debug_assert!(
        shards.len() > i16::MAX as usize || decode(&out).is_ok_and(|read| read[..] == *shards),
        "a context is read as it was written"
    );
    out.into()
}

/// The value of the counter: the sum of its shards. 0 for bytes that are no context.
pub fn total(context: &[u8]) -> i64 {
    let shards = decode(context).unwrap_or_default();
    shards.iter().fold(0, |sum, shard| sum.wrapping_add(shard.count))
}

/// The shards of a context without the header that says which of them are global or local. Empty
/// for bytes that are no context.
pub fn shards(context: &[u8]) -> &[u8] {
    let elements = context.first_chunk().map_or(0, |length| i16::from_be_bytes(*length).max(0));
    context.get(2 + 2 * usize::from(elements.unsigned_abs())..).unwrap_or_default()
}

/// The context of an update: an increment as a statement writes it.
pub fn update(increment: i64) -> Bytes {
    encode(&[Shard { id: UPDATE_ID, kind: Kind::Local, clock: 1, count: increment }])
}

/// The context of one global shard.
pub fn global(id: CounterId, counted: ClockAndCount) -> Bytes {
    encode(&[Shard { id, kind: Kind::Global, clock: counted.clock, count: counted.count }])
}

/// The shard of a node; zeros if it has none.
pub fn shard_of(context: &[u8], id: &CounterId) -> ClockAndCount {
    let shards = decode(context).unwrap_or_default();
    let found = shards.iter().find(|shard| shard.id == *id);
    found.map_or_else(ClockAndCount::default, |shard| ClockAndCount { clock: shard.clock, count: shard.count })
}

/// Whether some shards are not global.
pub fn has_legacy_shards(context: &[u8]) -> bool {
    decode(context).is_ok_and(|shards| shards.iter().any(|shard| shard.kind != Kind::Global))
}

/// Turns local shards into remote ones if the header says so by a negative length: the context came
/// from another node.
pub fn clear_local(context: Bytes) -> Bytes {
    let is_marked = context.first().is_some_and(|first| first & 0x80 != 0);
    if is_marked { forget_local(context) } else { context }
}

/// Turns local shards into remote ones: the context comes from another node, whose local shards
/// they are. Contexts that have none stay as they are.
pub fn forget_local(context: Bytes) -> Bytes {
    let Ok(mut shards) = decode(&context) else { return context };
    if shards.iter().all(|shard| shard.kind != Kind::Local) && context.first().is_some_and(|first| first & 0x80 == 0) {
        return context;
    }
    for shard in shards.iter_mut().filter(|shard| shard.kind == Kind::Local) {
        shard.kind = Kind::Remote;
    }
    encode(&shards)
}

/// Merges two contexts. Bytes that are no context lose.
pub fn merge(left: &Bytes, right: &Bytes) -> Bytes {
    let (left_shards, right_shards) = match (decode(left), decode(right)) {
        (Ok(left), Ok(right)) => (left, right),
        (Ok(_), Err(_)) => return left.clone(),
        (Err(_), Ok(_)) => return right.clone(),
        (Err(_), Err(_)) => return left.max(right).clone(),
    };
    let merged = merge_shards(&left_shards, &right_shards);
    if merged == left_shards {
        return left.clone();
    }
    if merged == right_shards { right.clone() } else { encode(&merged) }
}

fn merge_shards(left: &[Shard], right: &[Shard]) -> Shards {
    let mut merged = Shards::with_capacity(left.len().max(right.len()));
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return merged,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.id.cmp(&b.id),
        };
        let shard = match order {
            Ordering::Less => left.next().copied(),
            Ordering::Greater => right.next().copied(),
            Ordering::Equal => left.next().zip(right.next()).map(|(a, b)| stronger(a, b)),
        };
        merged.extend(shard);
    }
}

/// Which of two shards of one node is right.
fn stronger(a: &Shard, b: &Shard) -> Shard {
    if a.kind != b.kind {
        return if a.kind > b.kind { *a } else { *b };
    }
    match a.kind {
        Kind::Local => Shard { clock: a.clock.wrapping_add(b.clock), count: a.count.wrapping_add(b.count), ..*a },
        Kind::Global => *std::cmp::max_by_key(a, b, |shard| (shard.clock, shard.count)),
        // clocks of removed nodes were negated: among those the smaller is the later one, and any
        // other clock is later still
        Kind::Remote => *std::cmp::max_by_key(a, b, |shard| (remote_age(shard.clock), shard.count)),
    }
}

fn remote_age(clock: i64) -> (bool, i64) {
    if clock < 0 { (true, clock.wrapping_neg()) } else { (false, clock) }
}

/// Which of two cells of a counter stays, or the merge of both. A deletion is never undone.
pub fn reconcile(left: &Cell, right: &Cell) -> Cell {
    match (left.is_tombstone(), right.is_tombstone()) {
        (true, true) => return if right.reconcile(left) == Ordering::Greater { right } else { left }.clone(),
        (true, false) => return left.clone(),
        (false, true) => return right.clone(),
        (false, false) => {}
    }
    let timestamp = left.timestamp.max(right.timestamp);
    match (left.value.is_empty(), right.value.is_empty()) {
        // a value that was not fetched stands for any value
        (true, false) => left.clone(),
        (false, true) => right.clone(),
        (true, true) => Cell { timestamp, ..left.clone() },
        (false, false) => Cell { timestamp, value: merge(&left.value, &right.value), ..left.clone() },
    }
}

impl Row {
    /// Adds an increment to a counter of this row.
    pub fn add_increment(&mut self, column: ColumnId, timestamp: i64, increment: i64) {
        let cell = Cell::live(column, timestamp, update(increment));
        match self.position(column) {
            Ok(index) => {
                if let ColumnData::Simple(old) = &mut self.columns[index] {
                    *old = reconcile(old, &cell);
                }
            }
            Err(index) => self.columns.insert(index, ColumnData::Simple(cell)),
        }
    }
}

/// The clusterings of the rows in which an update increments a counter; None for the static row.
pub fn incremented_rows(update: &PartitionUpdate) -> impl Iterator<Item = Option<&ClusteringValues>> {
    let counts = |row: &&Row| row.columns.iter().any(is_update);
    let of_static = update.static_row.iter().filter(counts).map(|_| None);
    of_static.chain(update.rows.iter().filter(counts).map(|row| Some(&row.clustering)))
}

fn is_update(data: &ColumnData) -> bool {
    match data {
        ColumnData::Simple(cell) => !cell.is_tombstone() && !cell.value.is_empty(),
        ColumnData::Complex(_) => false,
    }
}

/// Turns the increments in `update` into global shards of the node `id`: its count in `current`
/// (live rows; None: static) plus the increment, with a clock of `now` (microseconds) or, if that
/// is greater, one more than before.
pub fn settle<'r>(
    update: &mut PartitionUpdate,
    id: CounterId,
    now: i64,
    current: impl Fn(Option<&ClusteringValues>) -> Option<&'r Row>,
) {
    if let Some(row) = &mut update.static_row {
        settle_row(row, id, now, current(None));
    }
    for row in &mut update.rows {
        let before = current(Some(&row.clustering));
        settle_row(row, id, now, before);
    }
}

fn settle_row(row: &mut Row, id: CounterId, now: i64, before: Option<&Row>) {
    for data in row.columns.iter_mut().filter(|data| is_update(data)) {
        let ColumnData::Simple(cell) = data else { continue };
        let counted = match before.and_then(|row| row.column(cell.column)) {
            Some(ColumnData::Simple(old)) => shard_of(&old.value, &id),
            _ => ClockAndCount::default(),
        };
        let clock = now.max(counted.clock.saturating_add(1));
        let count = counted.count.wrapping_add(total(&cell.value));
        cell.value = global(id, ClockAndCount { clock, count });
    }
}
