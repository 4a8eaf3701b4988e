//! Counts dead data: tombstones by kind, and when compaction may drop them.
//!
//! A range tombstone counts once, where it opens in clustering order. The deletion of a row counts,
//! and so do its expired liveness and each of its expired or deleted cells. gc_grace alone decides
//! here when a deletion may go; whether older data elsewhere still needs it is decided by a caller
//! that knows the other sources. Agrees in what it counts with
//! `org.apache.cassandra.db.ReadCommand.withMetricsRecording`, in when with `PurgeFunction`.

use crate::{Cell, ColumnData, DeletionTime, Liveness, PartitionHead, Row, Unfiltered};

/// The kinds of dead data.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DeadKind {
    /// The deletion of a whole partition.
    Partition,
    /// The deletion of a range of rows.
    Range,
    /// The deletion of a row.
    Row,
    /// The deletion of a cell, or of a whole collection.
    Cell,
    /// A cell or a row's liveness whose TTL has ended.
    Expired,
}

impl DeadKind {
    /// All kinds, in the order in which they are shown.
    pub const ALL: [Self; 5] = [Self::Partition, Self::Range, Self::Row, Self::Cell, Self::Expired];

    /// The kind in words, singular and plural.
    pub fn name(self) -> &'static str {
        match self {
            Self::Partition => "partition",
            Self::Range => "range",
            Self::Row => "row",
            Self::Cell => "cell",
            Self::Expired => "expired",
        }
    }
}

// counts by kind are indexed by the kind
const _: () = {
    let mut at = 0;
    while at < DeadKind::ALL.len() {
        assert!(DeadKind::ALL[at] as usize == at);
        at += 1;
    }
};

/// The time and the grace period that decide what is dead and whether it may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GracePeriod {
    /// The present, seconds since 1970.
    pub now: u32,
    /// `gc_grace_seconds` of the table.
    pub seconds: u32,
}

/// Counts of what a reader has passed.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PassedCounts {
    /// Partitions.
    pub partitions: u64,
    /// Rows, dead ones included.
    pub rows: u64,
    /// Dead things by [`DeadKind`].
    dead: [u64; DeadKind::ALL.len()],
    /// Dead things whose gc_grace has ended.
    pub purgeable: u64,
    /// The first and the last end of gc_grace among the other dead things, seconds since 1970;
    /// None: there are none.
    pub purgeable_from: Option<(u32, u32)>,
    /// The oldest and the youngest deletion or end of a TTL, seconds since 1970; None: nothing is
    /// dead.
    pub dead_since: Option<(u32, u32)>,
}

fn widened(range: Option<(u32, u32)>, at: u32) -> Option<(u32, u32)> {
    let (first, last) = range.unwrap_or((at, at));
    Some((first.min(at), last.max(at)))
}

impl PassedCounts {
    /// Number of dead things of a kind.
    pub fn of(&self, kind: DeadKind) -> u64 {
        self.dead[kind as usize]
    }

    /// Number of dead things of all kinds.
    pub fn tombstones(&self) -> u64 {
        self.dead.iter().sum()
    }

    /// Adds the counts of another reader.
    pub fn add(&mut self, other: &Self) {
        self.partitions += other.partitions;
        self.rows += other.rows;
        for (mine, theirs) in self.dead.iter_mut().zip(other.dead) {
            *mine += theirs;
        }
        self.purgeable += other.purgeable;
        if let Some((first, last)) = other.purgeable_from {
            self.purgeable_from = widened(widened(self.purgeable_from, first), last);
        }
        if let Some((first, last)) = other.dead_since {
            self.dead_since = widened(widened(self.dead_since, first), last);
        }
    }

    /// Counts one thing that is dead since `at` (seconds).
    pub fn dead(&mut self, kind: DeadKind, at: u32, grace: &GracePeriod) {
        self.dead[kind as usize] += 1;
        self.dead_since = widened(self.dead_since, at);
        // as `local_deletion_time < now - gc_grace`
        let from = at.saturating_add(grace.seconds).saturating_add(1);
        if from <= grace.now {
            self.purgeable += 1;
        } else {
            self.purgeable_from = widened(self.purgeable_from, from);
        }
    }

    /// Counts the head of a partition.
    pub fn head(&mut self, head: &PartitionHead, grace: &GracePeriod) {
        self.partitions += 1;
        each_of_head(head, grace.now, &mut |dead| self.dead(dead.kind, dead.since, grace));
    }

    /// Counts a row or a marker.
    pub fn unfiltered(&mut self, unfiltered: &Unfiltered, grace: &GracePeriod) {
        self.rows += u64::from(matches!(unfiltered, Unfiltered::Row(_)));
        each(unfiltered, grace.now, &mut |dead| self.dead(dead.kind, dead.since, grace));
    }
}

/// One dead thing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DeadItem {
    /// Its kind.
    pub kind: DeadKind,
    /// Its write timestamp. It shadows data with timestamps up to this one.
    pub timestamp: i64,
    /// The time since which it is dead, seconds.
    pub since: u32,
}

/// Calls `found` for everything in a partition's head that is dead at `now`.
pub fn each_of_head(head: &PartitionHead, now: u32, found: &mut impl FnMut(DeadItem)) {
    each_deletion(DeadKind::Partition, &head.deletion, found);
    if let Some(row) = &head.static_row {
        each_of_row(row, now, found);
    }
}

/// Calls `found` for everything in a row or marker that is dead at `now`.
pub fn each(unfiltered: &Unfiltered, now: u32, found: &mut impl FnMut(DeadItem)) {
    match unfiltered {
        Unfiltered::Row(row) => each_of_row(row, now, found),
        Unfiltered::Marker(marker) => {
            if let Some(open) = &marker.open {
                each_deletion(DeadKind::Range, open, found);
            }
        }
    }
}

fn each_deletion(kind: DeadKind, deletion: &DeletionTime, found: &mut impl FnMut(DeadItem)) {
    if !deletion.is_live() {
        found(DeadItem { kind, timestamp: deletion.marked_for_delete_at, since: deletion.local_deletion_time });
    }
}

fn each_of_row(row: &Row, now: u32, found: &mut impl FnMut(DeadItem)) {
    each_deletion(DeadKind::Row, &row.deletion, found);
    let Liveness { timestamp, local_expiration_time, .. } = row.liveness;
    if !row.liveness.is_empty() && row.liveness.is_expiring() && !row.liveness.is_live(now) {
        found(DeadItem { kind: DeadKind::Expired, timestamp, since: local_expiration_time });
    }
    let cell = |cell: &Cell, found: &mut dyn FnMut(DeadItem)| {
        if !cell.is_live(now) {
            let kind = if cell.is_expiring() { DeadKind::Expired } else { DeadKind::Cell };
            found(DeadItem { kind, timestamp: cell.timestamp, since: cell.local_deletion_time });
        }
    };
    for data in &row.columns {
        match data {
            ColumnData::Simple(simple) => cell(simple, found),
            ColumnData::Complex(complex) => {
                each_deletion(DeadKind::Cell, &complex.deletion, found);
                complex.cells.iter().for_each(|one| cell(one, found));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use schema::ColumnId;

    use super::*;
    use crate::{ClusteringPrefix, ClusteringValues, RangeTombstoneMarker};

    #[test]
    fn each_kind_is_counted_and_dated() {
        let grace = GracePeriod { now: 1_000, seconds: 100 };
        let mut passed = PassedCounts::default();
        let head =
            PartitionHead::new(types::DecoratedKey::new(Bytes::from_static(b"k")), DeletionTime::new(1, 899), None);
        passed.head(&head, &grace);
        let mut row = Row::new(ClusteringValues::new());
        row.deletion = DeletionTime::new(1, 900);
        row.liveness = Liveness::expiring(2, 10, 950);
        row.add_cell(Cell::tombstone(ColumnId(0), 3, 990));
        row.add_cell(Cell::live(ColumnId(1), 3, Bytes::from_static(b"v")));
        passed.unfiltered(&Unfiltered::Row(row), &grace);
        let boundary = RangeTombstoneMarker {
            position: ClusteringPrefix::bottom(),
            close: Some(DeletionTime::new(1, 5)),
            open: Some(DeletionTime::new(2, 800)),
        };
        passed.unfiltered(&Unfiltered::Marker(boundary), &grace);
        assert_eq!(DeadKind::ALL.map(|kind| passed.of(kind)), [1; 5]);
        assert_eq!((passed.partitions, passed.rows, passed.tombstones()), (1, 1, 5));
        // 899 is below 900 = now - gc_grace, 900 is not
        assert_eq!((passed.purgeable, passed.purgeable_from), (2, Some((1_001, 1_091))));
        assert_eq!(passed.dead_since, Some((800, 990)));
        let mut both = passed.clone();
        both.add(&passed);
        assert_eq!((both.tombstones(), both.purgeable), (10, 4));
    }
}
