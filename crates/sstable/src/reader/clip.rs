//! Cuts what a partition holds to the slices that are wanted.
//!
//! Unfiltereds come in walking order (reversed: last first). Range deletions are followed as they
//! open and close: where one is open at the edge of a slice, a marker is made there, so that what
//! comes out is well formed by itself. "Open" is meant in walking order: walking backwards, a
//! marker's `close` is what opens.

use std::cmp::Ordering;

use rows::codec::{Deleted, PeekedTombstone};
use rows::range_tombstones::marker_at;
use rows::{Bound, DeletionTime, PrefixKind, RangeTombstoneMarker, Slices, Unfiltered};
use schema::ClusteringComparator;

/// The next step after an unfiltered was shown.
#[derive(Debug, PartialEq)]
pub enum Step {
    /// The unfiltered lies outside; show the next.
    Pass,
    /// Give it.
    Give,
    /// Give this marker in its place.
    GiveMarker(RangeTombstoneMarker),
    /// Give a marker first, and show the unfiltered again.
    GiveFirst(RangeTombstoneMarker),
    /// The slice is done; show the unfiltered again, unless the next slice begins elsewhere.
    NextSlice,
}

/// Slices in walking order and how far the walk is.
#[derive(Debug)]
pub struct Clip {
    comparator: ClusteringComparator,
    slices: Slices,
    reversed: bool,
    /// Everything is wanted: nothing is compared.
    all: bool,
    /// Slices that are done.
    done: usize,
    inside: bool,
    /// The range deletion that holds at this point of the walk.
    open: Option<DeletionTime>,
}

impl Clip {
    /// At the beginning of a walk over a partition.
    pub fn new(comparator: ClusteringComparator, slices: Slices, reversed: bool) -> Self {
        let all = slices.is_all();
        Self { comparator, slices, reversed, all, done: 0, inside: all, open: None }
    }

    /// Starts again, for another partition.
    pub fn restart(&mut self) {
        self.done = 0;
        self.inside = self.all;
        self.open = None;
    }

    fn slice(&self) -> Option<(&Bound, &Bound)> {
        let slices = &self.slices.0;
        if self.reversed {
            let slice = slices.get(slices.len().checked_sub(self.done + 1)?)?;
            Some((&slice.end, &slice.start))
        } else {
            slices.get(self.done).map(|slice| (&slice.start, &slice.end))
        }
    }

    /// All slices are done.
    pub fn is_done(&self) -> bool {
        self.done >= self.slices.0.len()
    }

    /// Everything is wanted.
    pub fn is_all(&self) -> bool {
        self.all
    }

    /// Whether a range deletion holds at this point of the walk.
    pub fn has_open(&self) -> bool {
        self.open.is_some()
    }

    /// Number of slices that are done.
    pub fn slices_done(&self) -> usize {
        self.done
    }

    /// Where the slice begins that is looked for; None: the walk is inside of one, or done.
    pub fn awaited(&self) -> Option<&Bound> {
        if self.inside { None } else { self.slice().map(|slice| slice.0) }
    }

    /// The comparator.
    pub fn comparator(&self) -> &ClusteringComparator {
        &self.comparator
    }

    /// The walk goes on at a place where this range deletion is open.
    pub fn jump(&mut self, open: DeletionTime) {
        self.open = (!open.is_live()).then_some(open);
    }

    fn order(&self, unfiltered: &Unfiltered, bound: &Bound) -> Ordering {
        let order = rows::clustering::compare_prefixes(
            &self.comparator,
            unfiltered.kind(),
            unfiltered.values(),
            bound.kind,
            &bound.values,
        );
        if self.reversed { order.reverse() } else { order }
    }

    fn follow(&mut self, unfiltered: &Unfiltered) {
        if let Unfiltered::Marker(marker) = unfiltered {
            self.open = if self.reversed { marker.close } else { marker.open };
        }
    }

    /// The marker that opens (or closes) what is open, at an edge of the slice.
    fn edge(&self, bound: &Bound, opens: bool) -> Option<RangeTombstoneMarker> {
        let deletion = self.open?;
        let starts = opens != self.reversed;
        let (close, open) = if starts { (None, Some(deletion)) } else { (Some(deletion), None) };
        marker_at(bound.values.clone(), bound.kind.side() < 0, close, open)
    }

    /// Looks at the next unfiltered of the walk.
    #[inline]
    pub fn step(&mut self, unfiltered: &Unfiltered) -> Step {
        if self.all {
            self.follow(unfiltered);
            return Step::Give;
        }
        let Some((entry, _)) = self.slice() else { return Step::Pass };
        if !self.inside {
            match self.order(unfiltered, entry) {
                Ordering::Less => {
                    self.follow(unfiltered);
                    return Step::Pass;
                }
                Ordering::Equal => {
                    let entry = entry.clone();
                    self.follow(unfiltered);
                    self.inside = true;
                    return match self.edge(&entry, true) {
                        Some(marker) => Step::GiveMarker(marker),
                        None => Step::Pass,
                    };
                }
                Ordering::Greater => {
                    let marker = self.edge(entry, true);
                    self.inside = true;
                    if let Some(marker) = marker {
                        return Step::GiveFirst(marker);
                    }
                }
            }
        }
        let Some((_, exit)) = self.slice() else { return Step::Pass };
        if self.order(unfiltered, exit) != Ordering::Less {
            let marker = self.edge(exit, false);
            self.inside = false;
            self.done += 1;
            return match marker {
                Some(marker) => Step::GiveFirst(marker),
                None => Step::NextSlice,
            };
        }
        if self.open.is_none() && self.is_single_row(unfiltered) {
            // nothing else can lie in the slice
            self.inside = false;
            self.done += 1;
            return Step::Give;
        }
        self.follow(unfiltered);
        Step::Give
    }

    /// The walk is inside of a slice.
    pub fn is_inside(&self) -> bool {
        self.inside
    }

    /// A tombstone that the walk meets from here on lies in the slice that it is inside of.
    #[inline]
    pub fn holds(&self, tombstone: &PeekedTombstone<'_>) -> bool {
        if self.all {
            return true;
        }
        let Some((_, exit)) = self.slice().filter(|_| self.inside) else { return false };
        let order = tombstone.position.compare(exit, &self.comparator);
        order == if self.reversed { Ordering::Greater } else { Ordering::Less }
    }

    /// Follows such a tombstone. False: it is another, and to be shown.
    #[inline]
    pub fn passes(&mut self, tombstone: &PeekedTombstone<'_>) -> bool {
        let holds = self.holds(tombstone);
        if holds {
            self.follow_deleted(tombstone.deleted);
        }
        holds
    }

    /// Follows a tombstone by what it deletes.
    #[inline]
    pub fn follow_deleted(&mut self, deleted: Deleted) {
        if let Deleted::Range { close, open } = deleted {
            self.open = if self.reversed { close } else { open };
        }
    }

    /// The unfiltered is not before where the awaited slice begins.
    pub fn has_reached(&self, unfiltered: &Unfiltered) -> bool {
        self.awaited().is_none_or(|bound| self.order(unfiltered, bound) != Ordering::Less)
    }

    /// The unfiltered is a row, and the slice has room for no other.
    fn is_single_row(&self, unfiltered: &Unfiltered) -> bool {
        let Some((entry, exit)) = self.slice() else { return false };
        let columns = self.comparator.len();
        unfiltered.kind() == PrefixKind::Clustering
            && entry.values.len() == columns
            && exit.values.len() == columns
            && entry.values == exit.values
    }

    /// The partition has ended: what is still open is closed.
    pub fn finish(&mut self) -> Option<RangeTombstoneMarker> {
        if self.all || !self.inside {
            return None;
        }
        let marker = self.slice().and_then(|(_, exit)| self.edge(exit, false));
        self.inside = false;
        self.done = self.slices.0.len();
        self.open = None;
        marker
    }
}
