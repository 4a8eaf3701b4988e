//! The range tombstones of one partition, stored as the cuts at which the deletion changes. Where
//! ranges overlap they are cut, and the stronger deletion wins.
//!
//! Example: [0,10]@3, [5,8]@1, [8,15]@4 becomes [0,8)@3, [8,15]@4: three cuts, each with the
//! deletion that holds behind it. Cuts are keyed by their byte-comparable form, so an insert costs
//! O(log n) and the cuts inside of it, and a slice begins with a search.
//!
//! Invariants: neighbouring cuts differ (there is no cut where nothing changes); before the first
//! cut and behind the last nothing is deleted. So the list does not depend on the order in which
//! deletions arrive, and the deletion at a position only ever gets stronger.
//!
//! Agrees in effect with `org.apache.cassandra.db.RangeTombstoneList`. That class keeps two
//! touching ranges with the same deletion apart, and keeps the first of two deletions with one
//! timestamp. Here touching ranges are joined, and the later local deletion time stays, as
//! everywhere else.

use std::ops::Bound::{Excluded, Included, Unbounded};

use schema::ClusteringComparator;
use stdx::BlockMap;
use stdx::block_map::Value;
use types::byte_comparable::{TERMINATOR_AFTER, TERMINATOR_BEFORE, TERMINATOR_CLUSTERING};

use crate::{ClusteringPrefix, ClusteringValues, DeletionTime, PrefixKind, RangeTombstoneMarker, Slice};

/// The byte-comparable form of a bound, which is a cut between rows. A start and an end at the same
/// cut have the same key.
pub type CutKey = stdx::block_map::Key;

/// The byte-comparable form of a position.
pub fn position_key(comparator: &ClusteringComparator, position: &ClusteringPrefix) -> CutKey {
    prefix_key(comparator, &position.values, position.kind)
}

/// The byte-comparable form of values with a kind.
pub fn prefix_key(comparator: &ClusteringComparator, values: &[Option<bytes::Bytes>], kind: PrefixKind) -> CutKey {
    let mut key = Vec::with_capacity(32);
    put_prefix_key(&mut key, comparator, values, kind);
    CutKey::from_slice(&key)
}

/// Appends the byte-comparable form of values with a kind.
pub fn put_prefix_key(
    key: &mut Vec<u8>,
    comparator: &ClusteringComparator,
    values: &[Option<bytes::Bytes>],
    kind: PrefixKind,
) {
    let terminator = match kind.side() {
        0 => TERMINATOR_CLUSTERING,
        side if side < 0 => TERMINATOR_BEFORE,
        _ => TERMINATOR_AFTER,
    };
    types::byte_comparable::encode_clustering(&comparator.columns, values, terminator, key);
}

/// Whether the cut lies before the rows that its values name; false: behind them.
pub fn is_before(cut: &[u8]) -> bool {
    cut.last() == Some(&TERMINATOR_BEFORE)
}

/// A deletion and the range in which it holds.
#[derive(Clone, PartialEq, Debug)]
pub struct RangeTombstone {
    /// The range.
    pub slice: Slice,
    /// The deletion.
    pub deletion: DeletionTime,
}

/// The value of a cut in the list.
#[derive(Clone, PartialEq, Debug)]
struct Cut {
    /// The values of the bound. In a box beside the list, because a walk does not look at them.
    values: Box<ClusteringValues>,
    /// The deletion that holds from here to the next cut. [`DeletionTime::LIVE`]: none.
    deletion: DeletionTime,
}

impl Value for Cut {
    type Sum = ();

    fn add_to(&self, (): &mut ()) {}

    fn take_from(&self, (): &mut ()) {}
}

/// A cut in the list, as a walk meets it. The fields are those of an [`OwnedCut`], borrowed.
#[derive(Clone, Copy, Debug)]
pub struct CutRef<'a> {
    /// The position of the cut.
    pub key: &'a CutKey,
    /// The values of the bound.
    pub values: &'a ClusteringValues,
    /// The deletion that holds behind it in the direction of the walk.
    pub next: DeletionTime,
}

/// A cut that a walk has met.
#[derive(Clone, PartialEq, Debug)]
pub struct OwnedCut {
    /// The position of the cut.
    pub key: CutKey,
    /// The values of the bound. The key says whether the cut lies before or behind them
    /// ([`is_before`]).
    pub values: ClusteringValues,
    /// The deletion that holds behind it in the direction of the walk.
    pub next: DeletionTime,
}

/// Disjoint intervals in clustering order, each with its deletion.
#[derive(Clone, Debug, Default)]
pub struct RangeTombstoneList {
    cuts: BlockMap<Cut>,
}

impl PartialEq for RangeTombstoneList {
    fn eq(&self, other: &Self) -> bool {
        self.cuts.iter().eq(other.cuts.iter())
    }
}

impl RangeTombstoneList {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether nothing is deleted.
    pub fn is_empty(&self) -> bool {
        self.cuts.is_empty()
    }

    /// Number of cuts: two for an interval alone, one where two intervals touch.
    pub fn cuts(&self) -> usize {
        self.cuts.len()
    }

    /// Number of disjoint intervals.
    pub fn len(&self) -> usize {
        self.cuts.iter().filter(|(_, cut)| !cut.deletion.is_live()).count()
    }

    /// Adds a deletion and cuts the ranges that it overlaps.
    pub fn insert(&mut self, comparator: &ClusteringComparator, slice: Slice, deletion: DeletionTime) {
        self.insert_cuts(comparator, slice, deletion);
        let last = self.cuts.last().map(|(_, cut)| cut.deletion);
        assert!(last.is_none_or(|last| last.is_live()), "nothing is deleted behind the last cut");
    }

    fn insert_cuts(&mut self, comparator: &ClusteringComparator, slice: Slice, deletion: DeletionTime) {
        let start_key = position_key(comparator, &slice.start);
        let end_key = position_key(comparator, &slice.end);
        if start_key >= end_key || deletion.is_live() {
            return;
        }
        if self.cuts.last().is_none_or(|(last, _)| *last < start_key) {
            // deletions arrive in clustering order: the usual case
            self.set(start_key, slice.start.values, DeletionTime::LIVE, deletion);
            self.set(end_key, slice.end.values, deletion, DeletionTime::LIVE);
            return;
        }
        let [before, here, next] = self.cuts.around(&start_key);
        let of = |cut: Option<&(CutKey, Cut)>| cut.map_or(DeletionTime::LIVE, |(_, cut)| cut.deletion);
        let (before, here) = (of(before), of(here.or(before)));
        let mut holds = here.merge(deletion);
        if next.is_none_or(|(next, _)| *next > end_key) {
            // the new range lies between two cuts
            self.set(start_key, slice.start.values, before, holds);
            self.set(end_key, slice.end.values, holds, here);
            return;
        }
        let behind = self.deletion_from(&end_key);
        self.set(start_key.clone(), slice.start.values, before, holds);
        let mut idle = Vec::new();
        self.cuts.change_between(&start_key, &end_key, |key, cut| {
            cut.deletion = cut.deletion.merge(deletion);
            if cut.deletion == holds {
                idle.push(key.clone());
            }
            holds = cut.deletion;
        });
        for key in idle {
            self.cuts.remove(&key);
        }
        self.set(end_key, slice.end.values, holds, behind);
    }

    /// Makes a cut if the deletion changes there, and removes it if not.
    fn set(&mut self, key: CutKey, values: ClusteringValues, before: DeletionTime, deletion: DeletionTime) {
        if before == deletion {
            self.cuts.remove(&key);
            return;
        }
        self.cuts.upsert(key, |cut| match cut {
            Some(cut) => {
                cut.deletion = deletion;
                None
            }
            None => Some(Cut { values: Box::new(values), deletion }),
        });
    }

    /// The deletion right before a cut.
    fn deletion_before(&self, key: &[u8]) -> DeletionTime {
        let cut = self.cuts.range(Unbounded, Excluded(key)).next_back();
        cut.map_or(DeletionTime::LIVE, |(_, cut)| cut.deletion)
    }

    /// The deletion right behind a cut.
    fn deletion_from(&self, key: &[u8]) -> DeletionTime {
        let cut = self.cuts.range(Unbounded, Included(key)).next_back();
        cut.map_or(DeletionTime::LIVE, |(_, cut)| cut.deletion)
    }

    /// The deletion that holds at a row, given the byte-comparable form of its clustering.
    pub fn deletion_at(&self, row_key: &[u8]) -> DeletionTime {
        self.deletion_before(row_key)
    }

    /// The deletion that holds where a walk enters the range: behind `start`, or before `end` if it
    /// is `reversed`.
    pub fn deletion_on_entry(&self, start: &[u8], end: &[u8], reversed: bool) -> DeletionTime {
        if reversed { self.deletion_before(end) } else { self.deletion_from(start) }
    }

    /// The cuts strictly between `start` and `end`, in the direction of the walk.
    pub fn walk<'a>(&'a self, start: &'a [u8], end: &'a [u8], reversed: bool) -> impl Iterator<Item = CutRef<'a>> + 'a {
        let inside = self.cuts.range(Excluded(start), Excluded(end));
        let (forward, backward) = if reversed {
            // keys are not inspected, because each may be on the heap
            let mut inside = inside.rev().peekable();
            let backward = std::iter::from_fn(move || {
                let (key, cut) = inside.next()?;
                let next = inside.peek().map_or_else(|| self.deletion_from(start), |(_, lower)| lower.deletion);
                Some(CutRef { key, values: &cut.values, next })
            });
            (None, Some(backward))
        } else {
            let met = |(key, cut): &'a (CutKey, Cut)| CutRef { key, values: &cut.values, next: cut.deletion };
            (Some(inside.map(met)), None)
        };
        forward.into_iter().flatten().chain(backward.into_iter().flatten())
    }

    /// Passes the first cuts of a walk, at most `limit`, without inspecting each. Returns their
    /// number, the last of them, and the deletion behind it.
    pub fn pass(
        &self,
        start: &[u8],
        end: &[u8],
        reversed: bool,
        limit: usize,
    ) -> (usize, Option<(&CutKey, DeletionTime)>) {
        let (mut passed, mut last) = (0, None);
        let mut parts = self.cuts.parts(Excluded(start), Excluded(end));
        while let Some(part) = if reversed { parts.next_back() } else { parts.next() } {
            let cuts = part.entries;
            let count = cuts.len().min(limit - passed);
            let found = count.checked_sub(1).and_then(|at| cuts.get(if reversed { cuts.len() - count } else { at }));
            passed += count;
            last = found.or(last);
            if passed == limit {
                break;
            }
        }
        debug_assert_eq!(last.is_some(), passed > 0, "the last of the cuts that are passed is known");
        let beyond = |(key, cut): &(CutKey, Cut)| if reversed { self.deletion_before(key) } else { cut.deletion };
        (passed, last.map(|found| (&found.0, beyond(found))))
    }

    /// The first `limit` cuts of a walk, as owned values.
    pub fn changes<'a>(
        &'a self,
        start: &'a [u8],
        end: &'a [u8],
        reversed: bool,
        limit: usize,
    ) -> impl Iterator<Item = OwnedCut> + 'a {
        let keep = |met: CutRef<'_>| OwnedCut { key: met.key.clone(), values: met.values.clone(), next: met.next };
        self.walk(start, end, reversed).take(limit).map(keep)
    }

    /// The intervals within a slice, clipped to it, in clustering order.
    pub fn within(&self, comparator: &ClusteringComparator, slice: &Slice) -> Vec<RangeTombstone> {
        let start_key = position_key(comparator, &slice.start);
        let end_key = position_key(comparator, &slice.end);
        if start_key >= end_key {
            return Vec::new();
        }
        let mut open = (slice.start.clone(), self.deletion_from(&start_key));
        let mut found = Vec::new();
        let mut meet = |end: ClusteringPrefix, next: DeletionTime| {
            let (start, deletion) = std::mem::replace(&mut open, (as_start(&end), next));
            if !deletion.is_live() {
                found.push(RangeTombstone { slice: Slice { start, end }, deletion });
            }
        };
        for change in self.changes(&start_key, &end_key, false, usize::MAX) {
            meet(ClusteringPrefix::end(change.values, !is_before(&change.key)), change.next);
        }
        meet(slice.end.clone(), DeletionTime::LIVE);
        found
    }

    /// All intervals in clustering order.
    pub fn intervals(&self) -> impl Iterator<Item = RangeTombstone> + '_ {
        let ends = self.cuts.iter().skip(1);
        self.cuts.iter().zip(ends).filter(|((_, cut), _)| !cut.deletion.is_live()).map(|((from, cut), (to, end))| {
            let start = ClusteringPrefix::start((*cut.values).clone(), is_before(from));
            let end = ClusteringPrefix::end((*end.values).clone(), !is_before(to));
            RangeTombstone { slice: Slice { start, end }, deletion: cut.deletion }
        })
    }

    /// Bytes on the heap, estimated.
    pub fn memory_size(&self) -> usize {
        self.cuts.len() * (size_of::<Cut>() + size_of::<ClusteringValues>() + 64)
    }
}

/// The start bound at the cut of a bound.
pub fn as_start(bound: &ClusteringPrefix) -> ClusteringPrefix {
    ClusteringPrefix::start(bound.values.clone(), bound.kind.side() < 0)
}

/// The end bound at the cut of a bound.
pub fn as_end(bound: &ClusteringPrefix) -> ClusteringPrefix {
    ClusteringPrefix::end(bound.values.clone(), bound.kind.side() > 0)
}

/// The marker at a cut where, in clustering order, `close` ends and `open` starts. None: neither
/// does.
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

/// The markers of disjoint intervals in clustering order; a boundary where one interval ends and
/// the next starts at one cut.
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
    debug_assert!(markers.windows(2).all(|pair| pair[0].open == pair[1].close), "a range that opens closes next");
    debug_assert!(markers.last().is_none_or(|last| last.open.is_none()), "no range is open behind the last marker");
    markers
}

#[cfg(test)]
mod tests;
