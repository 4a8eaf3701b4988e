//! The answer of one replica so far: portions in the order in which they were asked for.
//!
//! The first portion answers the read itself. If it ends at a limit, the rest of its last partition
//! and the partitions behind it are portions of their own, asked for one after the other. A
//! partition that ends at the limit of rows of each partition has further portions as well.
//!
//! Each portion is read through once when it arrives. So broken bytes fail the replica's answer
//! before anything is built of it, and it is known where the portion ends.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use schema::TableMetadata;
use types::DecoratedKey;

use crate::error::Corruption;
use crate::live::counted;
use crate::range_tombstones::marker_at;
use crate::{
    ClusteringValues, DataLimits, PartitionHead, PartitionRange, PartitionStream, RangeTombstoneMarker, ReadError,
    Unfiltered,
};

/// Gives the stream of a portion, each time from its beginning.
pub type Replay = Arc<dyn Fn() -> Box<dyn PartitionStream> + Send + Sync>;

/// The portions that one replica has answered so far. Clones share them, and all that is known of
/// them, until one of the clones gets a further portion: each attempt to build an answer makes
/// several, and of a read of many partitions there may be as many cuts.
#[derive(Clone)]
pub struct Answers {
    held: Arc<Held>,
}

/// The content of [`Answers`].
#[derive(Clone)]
struct Held {
    table: Arc<TableMetadata>,
    /// The time of the read in seconds.
    now: u32,
    /// Portions of whole partitions, in the order of these.
    partitions: Vec<Replay>,
    /// The last partition of these, if further ones have to be asked for; None: there are no
    /// others.
    end: Option<DecoratedKey>,
    /// Portions of further rows of a partition, in their order.
    rows: BTreeMap<DecoratedKey, Vec<Replay>>,
    /// Partitions of which further rows have to be asked for, with the last row that is known.
    cuts: BTreeMap<DecoratedKey, ClusteringValues>,
}

/// The findings of reading a portion through.
#[derive(Default)]
struct Found {
    /// The last partition.
    last: Option<DecoratedKey>,
    /// The last row of each partition that ended at a limit.
    cuts: Vec<(DecoratedKey, ClusteringValues)>,
    /// Whether the portion ended at its limit of rows.
    is_full: bool,
}

impl Answers {
    /// The answers of a replica that has given none yet.
    pub fn new(table: &Arc<TableMetadata>, now: u32) -> Self {
        let held = Held {
            table: Arc::clone(table),
            now,
            partitions: Vec::new(),
            end: None,
            rows: BTreeMap::new(),
            cuts: BTreeMap::new(),
        };
        Self { held: Arc::new(held) }
    }

    /// The content, to be changed: a copy of it where others share it.
    fn held_mut(&mut self) -> &mut Held {
        Arc::make_mut(&mut self.held)
    }

    /// Adds a portion of partitions in `range`, asked for with `limits`: the answer to the read
    /// itself, or the partitions behind [`Self::end`].
    pub fn add_partitions(
        &mut self,
        portion: Replay,
        range: &PartitionRange,
        limits: DataLimits,
    ) -> Result<(), ReadError> {
        let found = self.held.look_through(&portion, range, limits)?;
        let is_whole = matches!(range, PartitionRange::Key(_));
        let held = self.held_mut();
        held.end = found.last.filter(|_| found.is_full && !is_whole);
        held.cuts.extend(found.cuts);
        held.partitions.push(portion);
        Ok(())
    }

    /// Adds a portion of rows of a partition behind [`Self::cut`], asked for with `limits`.
    pub fn add_rows(&mut self, portion: Replay, key: &DecoratedKey, limits: DataLimits) -> Result<(), ReadError> {
        let found = self.held.look_through(&portion, &PartitionRange::Key(key.clone()), limits)?;
        let held = self.held_mut();
        held.cuts.remove(key);
        held.cuts.extend(found.cuts);
        held.rows.entry(key.clone()).or_default().push(portion);
        Ok(())
    }

    /// The last partition that is known, if there may be others behind it.
    pub fn end(&self) -> Option<&DecoratedKey> {
        self.held.end.as_ref()
    }

    /// The last row of a partition that is known, if there may be others behind it.
    pub fn cut(&self, key: &DecoratedKey) -> Option<&ClusteringValues> {
        self.held.cuts.get(key)
    }

    /// Says that there are no further rows of a partition behind [`Self::cut`].
    pub fn has_all_rows(&mut self, key: &DecoratedKey) {
        self.held_mut().cuts.remove(key);
    }

    /// Says that there are no partitions behind [`Self::end`].
    pub fn has_all_partitions(&mut self) {
        self.held_mut().end = None;
    }

    /// Everything that the replica has answered, from the beginning.
    pub fn stream(&self) -> Box<dyn PartitionStream> {
        let held = Arc::clone(&self.held);
        Box::new(AnswerStream { held, next: 0, current: None, key: None, more: 0, rows: None, ahead: None })
    }
}

impl Held {
    /// Reads a portion through: its partitions must lie in the range and ascend.
    fn look_through(&self, portion: &Replay, range: &PartitionRange, limits: DataLimits) -> Result<Found, ReadError> {
        let mut stream = portion();
        let (mut found, mut live) = (Found::default(), 0);
        while let Some(head) = stream.next_partition()? {
            if !range.contains(&head.key) || found.last.as_ref().is_some_and(|last| *last >= head.key) {
                return Err(self.broken("a replica's answer has a partition that was not asked for there"));
            }
            let (rows, last) = self.rows_of(&mut *stream)?;
            let of_static = head.static_row.as_ref().is_some_and(|row| counted(row, &self.table, self.now).0);
            live += rows.max(u64::from(of_static));
            found.is_full = live >= u64::from(limits.rows);
            let is_cut = found.is_full || rows >= u64::from(limits.per_partition);
            // a partition without live rows was read to its end
            if let Some(last) = last.filter(|_| is_cut && rows > 0 && !self.table.clustering.is_empty()) {
                found.cuts.push((head.key.clone(), last));
            }
            found.last = Some(head.key);
        }
        Ok(found)
    }

    /// The number of live rows of a partition, and its last row.
    fn rows_of(&self, stream: &mut dyn PartitionStream) -> Result<(u64, Option<ClusteringValues>), ReadError> {
        let (mut live, mut last) = (0, None);
        while let Some(unfiltered) = stream.next_unfiltered()? {
            if let Unfiltered::Row(row) = unfiltered {
                live += u64::from(counted(&row, &self.table, self.now).0);
                last = Some(row.clustering);
            }
        }
        Ok((live, last))
    }

    /// The table stands in place of a file.
    fn broken(&self, what: &str) -> ReadError {
        let path = format!("{}.{}", self.table.keyspace, self.table.name).into();
        Corruption { path, offset: 0, what: what.to_owned() }.into()
    }
}

/// The portions of one replica, one after the other.
struct AnswerStream {
    held: Arc<Held>,
    /// The next portion of partitions.
    next: usize,
    current: Option<Box<dyn PartitionStream>>,
    /// The current partition.
    key: Option<DecoratedKey>,
    /// The next portion of further rows of it.
    more: usize,
    /// The portion of further rows that is read now.
    rows: Option<Box<dyn PartitionStream>>,
    /// The next item, if it was looked at already.
    ahead: Option<Unfiltered>,
}

impl AnswerStream {
    /// Goes to the next portion of rows of the current partition; false: there is none.
    fn open_rows(&mut self) -> Result<bool, ReadError> {
        self.rows = None;
        let portions = self.key.as_ref().and_then(|key| self.held.rows.get(key));
        let Some(portion) = portions.and_then(|portions| portions.get(self.more)) else { return Ok(false) };
        self.more += 1;
        let mut rows = portion();
        // the head is that of the first portion, unless the partition has changed meanwhile: then
        // the replica has more to say about it, and says so at the next read
        rows.next_partition()?;
        self.rows = Some(rows);
        Ok(true)
    }

    /// The next item of the current partition, whatever portion it is in.
    fn next_item(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        loop {
            let current = self.rows.as_mut().or(self.current.as_mut());
            let Some(current) = current.filter(|_| self.key.is_some()) else { return Ok(None) };
            if let Some(unfiltered) = current.next_unfiltered()? {
                return Ok(Some(unfiltered));
            }
            if !self.open_rows()? {
                self.key = None;
                return Ok(None);
            }
        }
    }

    /// A range that is open where a portion ends is closed there and opens again in the next one.
    /// Gives both as one marker, as if the portions were one; None: nothing changes there.
    fn joined(&mut self, marker: RangeTombstoneMarker) -> Result<Option<RangeTombstoneMarker>, ReadError> {
        let next = self.next_item()?;
        let (ends, begins) = match &next {
            Some(Unfiltered::Marker(next)) if is_at(next, &marker, &self.held.table) => {
                (marker.close.or(next.close), marker.open.or(next.open))
            }
            _ => {
                self.ahead = next;
                return Ok(Some(marker));
            }
        };
        let before = marker.position.kind.side() < 0;
        let (ends, begins) = if ends == begins { (None, None) } else { (ends, begins) };
        Ok(marker_at(marker.position.values, before, ends, begins))
    }
}

/// Whether one of two markers closes and the other opens a range at one place.
fn is_at(a: &RangeTombstoneMarker, b: &RangeTombstoneMarker, table: &TableMetadata) -> bool {
    let is_both = |marker: &RangeTombstoneMarker| marker.close.is_some() && marker.open.is_some();
    let is_same_place = a.position.compare(&b.position, &table.comparator) == Ordering::Equal;
    is_same_place && !is_both(a) && !is_both(b) && a.close.is_some() != b.close.is_some()
}

impl PartitionStream for AnswerStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        (self.rows, self.ahead) = (None, None);
        loop {
            if let Some(current) = &mut self.current
                && let Some(head) = current.next_partition()?
            {
                (self.key, self.more) = (Some(head.key.clone()), 0);
                return Ok(Some(head));
            }
            self.key = None;
            self.current = self.held.partitions.get(self.next).map(|portion| portion());
            self.next += 1;
            if self.current.is_none() {
                return Ok(None);
            }
        }
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        loop {
            let next = match self.ahead.take() {
                None => self.next_item()?,
                ahead => ahead,
            };
            let has_portions = self.key.as_ref().is_some_and(|key| self.held.rows.contains_key(key));
            match next {
                Some(Unfiltered::Marker(marker)) if has_portions => {
                    if let Some(marker) = self.joined(marker)? {
                        return Ok(Some(Unfiltered::Marker(marker)));
                    }
                }
                next => return Ok(next),
            }
        }
    }
}
