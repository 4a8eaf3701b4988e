//! Range tombstones of one partition as disjoint intervals in order: what overlaps is cut, the stronger deletion wins.
//!
//! [0,10]@3, [5,8]@1, [8,15]@4 becomes [0,8)@3, [8,15]@4. Intervals are keyed by the byte-comparable form of their
//! start, so that an insert is O(log n) plus the intervals it cuts, and a slice begins with a search.
//! Agrees in effect with `org.apache.cassandra.db.RangeTombstoneList`.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use schema::ClusteringComparator;

use crate::{ClusteringPrefix, ClusteringValues, DeletionTime, PrefixKind, RangeTombstoneMarker, Slice};

/// The byte-comparable form of a bound: a cut between rows. A start and an end at the same cut have the same key.
pub type CutKey = Box<[u8]>;

/// The byte-comparable form of a position.
pub fn position_key(comparator: &ClusteringComparator, position: &ClusteringPrefix) -> CutKey {
    prefix_key(comparator, &position.values, position.kind)
}

/// The byte-comparable form of values with a kind.
pub fn prefix_key(comparator: &ClusteringComparator, values: &[Option<bytes::Bytes>], kind: PrefixKind) -> CutKey {
    let mut key = Vec::with_capacity(32);
    let terminator = match kind.side() {
        0 => types::byte_comparable::TERMINATOR_CLUSTERING,
        side if side < 0 => types::byte_comparable::TERMINATOR_BEFORE,
        _ => types::byte_comparable::TERMINATOR_AFTER,
    };
    types::byte_comparable::encode_clustering(&comparator.columns, values, terminator, &mut key);
    key.into_boxed_slice()
}

#[derive(Clone, PartialEq, Debug)]
struct Interval {
    end_key: CutKey,
    start: ClusteringPrefix,
    end: ClusteringPrefix,
    deletion: DeletionTime,
}

/// A deletion with where it holds.
#[derive(Clone, PartialEq, Debug)]
pub struct RangeTombstone {
    /// Where.
    pub slice: Slice,
    /// What.
    pub deletion: DeletionTime,
}

/// Disjoint intervals in clustering order.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct RangeTombstoneList {
    intervals: BTreeMap<CutKey, Interval>,
}

impl RangeTombstoneList {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has none.
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// Number of disjoint intervals.
    pub fn len(&self) -> usize {
        self.intervals.len()
    }

    /// Adds a deletion, cutting what it overlaps.
    pub fn insert(&mut self, comparator: &ClusteringComparator, slice: Slice, deletion: DeletionTime) {
        let start_key = position_key(comparator, &slice.start);
        let end_key = position_key(comparator, &slice.end);
        if start_key >= end_key || deletion.is_live() {
            return;
        }
        // where the part of the new deletion that is not yet placed begins
        let mut from = (start_key.clone(), slice.start.clone());
        for key in self.overlapping(&start_key, &end_key) {
            let Some(old) = self.intervals.remove(&key) else { continue };
            if deletion.supersedes(&old.deletion) {
                if key < start_key {
                    self.put(key, old.start.clone(), start_key.clone(), as_end(&slice.start), old.deletion);
                }
                if old.end_key > end_key {
                    self.put(end_key.clone(), as_start(&slice.end), old.end_key, old.end, old.deletion);
                }
            } else {
                if from.0 < key {
                    self.put(from.0, from.1, key.clone(), as_end(&old.start), deletion);
                }
                from = (old.end_key.clone(), as_start(&old.end));
                self.intervals.insert(key, old);
            }
        }
        if from.0 < end_key {
            self.put(from.0, from.1, end_key, slice.end, deletion);
        }
    }

    fn put(
        &mut self,
        key: CutKey,
        start: ClusteringPrefix,
        end_key: CutKey,
        end: ClusteringPrefix,
        deletion: DeletionTime,
    ) {
        self.intervals.insert(key, Interval { end_key, start, end, deletion });
    }

    /// Keys of the intervals that share more than a cut with [start, end).
    fn overlapping(&self, start_key: &CutKey, end_key: &CutKey) -> Vec<CutKey> {
        let before = self.intervals.range::<CutKey, _>((Unbounded, Excluded(start_key))).next_back();
        let reaching = before.filter(|(_, interval)| interval.end_key > *start_key).map(|(key, _)| key.clone());
        let inside = self.intervals.range::<CutKey, _>((Included(start_key), Excluded(end_key)));
        reaching.into_iter().chain(inside.map(|(key, _)| key.clone())).collect()
    }

    /// The deletion that holds at a row, by the byte-comparable form of its clustering.
    pub fn deletion_at(&self, row_key: &[u8]) -> DeletionTime {
        let before = self.intervals.range::<[u8], _>((Unbounded, Excluded(row_key))).next_back();
        match before {
            Some((_, interval)) if *interval.end_key > *row_key => interval.deletion,
            _ => DeletionTime::LIVE,
        }
    }

    /// The first interval that ends after the cut `from` (an exclusive lower limit), clipped to begin there.
    pub fn first_ending_after(&self, from: &[u8]) -> Option<(CutKey, CutKey, &DeletionTime)> {
        let before = self.intervals.range::<[u8], _>((Unbounded, Included(from))).next_back();
        if let Some((_, interval)) = before.filter(|(_, interval)| *interval.end_key > *from) {
            return Some((from.into(), interval.end_key.clone(), &interval.deletion));
        }
        let (key, interval) = self.intervals.range::<[u8], _>((Excluded(from), Unbounded)).next()?;
        Some((key.clone(), interval.end_key.clone(), &interval.deletion))
    }

    /// The intervals within a slice, clipped to it, in clustering order. At most `limit` of them.
    pub fn within(&self, comparator: &ClusteringComparator, slice: &Slice, limit: usize) -> Vec<RangeTombstone> {
        let start_key = position_key(comparator, &slice.start);
        let end_key = position_key(comparator, &slice.end);
        self.candidates(&start_key, &end_key)
            .take(limit)
            .map(|(key, interval)| clip(key, interval, slice, &start_key, &end_key))
            .collect()
    }

    /// The same, last first.
    pub fn within_reversed(
        &self,
        comparator: &ClusteringComparator,
        slice: &Slice,
        limit: usize,
    ) -> Vec<RangeTombstone> {
        let start_key = position_key(comparator, &slice.start);
        let end_key = position_key(comparator, &slice.end);
        if start_key >= end_key {
            return Vec::new();
        }
        self.intervals
            .range::<CutKey, _>((Unbounded, Excluded(&end_key)))
            .rev()
            .take_while(|(_, interval)| interval.end_key > start_key)
            .take(limit)
            .map(|(key, interval)| clip(key, interval, slice, &start_key, &end_key))
            .collect()
    }

    fn candidates<'a>(
        &'a self,
        start_key: &'a CutKey,
        end_key: &'a CutKey,
    ) -> impl Iterator<Item = (&'a CutKey, &'a Interval)> {
        let before = self.intervals.range::<CutKey, _>((Unbounded, Excluded(start_key))).next_back();
        let reaching = before.filter(|(_, interval)| interval.end_key > *start_key);
        let upper = if start_key < end_key { end_key } else { start_key };
        let inside = self.intervals.range::<CutKey, _>((Included(start_key), Excluded(upper)));
        reaching.filter(|_| start_key < end_key).into_iter().chain(inside)
    }

    /// All intervals in clustering order.
    pub fn iter(&self) -> impl Iterator<Item = RangeTombstone> + '_ {
        self.intervals.values().map(|interval| RangeTombstone {
            slice: Slice { start: interval.start.clone(), end: interval.end.clone() },
            deletion: interval.deletion,
        })
    }

    /// Heap bytes, roughly.
    pub fn memory_size(&self) -> usize {
        self.intervals.len() * (size_of::<Interval>() + 96)
    }
}

fn clip(key: &CutKey, interval: &Interval, slice: &Slice, start_key: &CutKey, end_key: &CutKey) -> RangeTombstone {
    let start = if key < start_key { slice.start.clone() } else { interval.start.clone() };
    let end = if interval.end_key > *end_key { slice.end.clone() } else { interval.end.clone() };
    RangeTombstone { slice: Slice { start, end }, deletion: interval.deletion }
}

/// The start bound at the cut of a bound.
pub fn as_start(bound: &ClusteringPrefix) -> ClusteringPrefix {
    ClusteringPrefix::start(bound.values.clone(), bound.kind.side() < 0)
}

/// The end bound at the cut of a bound.
pub fn as_end(bound: &ClusteringPrefix) -> ClusteringPrefix {
    ClusteringPrefix::end(bound.values.clone(), bound.kind.side() > 0)
}

/// The marker at a cut where (in clustering order) `close` ends and `open` starts; None when neither does.
pub fn marker_at(
    values: ClusteringValues,
    before: bool,
    close: Option<DeletionTime>,
    open: Option<DeletionTime>,
) -> Option<RangeTombstoneMarker> {
    let kind = match (close.is_some(), open.is_some(), before) {
        (false, false, _) => return None,
        (false, true, true) => PrefixKind::InclStartBound,
        (false, true, false) => PrefixKind::ExclStartBound,
        (true, false, true) => PrefixKind::ExclEndBound,
        (true, false, false) => PrefixKind::InclEndBound,
        (true, true, true) => PrefixKind::ExclEndInclStartBoundary,
        (true, true, false) => PrefixKind::InclEndExclStartBoundary,
    };
    Some(RangeTombstoneMarker { position: ClusteringPrefix { kind, values }, close, open })
}

/// Markers of disjoint intervals in clustering order; where one ends and the next starts at one cut, a boundary.
pub fn markers(tombstones: &[RangeTombstone]) -> Vec<RangeTombstoneMarker> {
    let mut markers: Vec<RangeTombstoneMarker> = Vec::with_capacity(tombstones.len() * 2);
    for tombstone in tombstones {
        let start = &tombstone.slice.start;
        let joined = markers.last().is_some_and(|last| {
            last.position.values == start.values
                && last.position.kind.side() == start.kind.side()
                && last.open.is_none()
        });
        let close = if joined { markers.pop().and_then(|marker| marker.close) } else { None };
        markers.extend(marker_at(start.values.clone(), start.kind.side() < 0, close, Some(tombstone.deletion)));
        let end = &tombstone.slice.end;
        markers.extend(marker_at(end.values.clone(), end.kind.side() < 0, Some(tombstone.deletion), None));
    }
    markers
}
