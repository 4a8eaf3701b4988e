//! Clusterings, bounds and slices. Agrees with
//! `org.apache.cassandra.db.{ClusteringPrefix,ClusteringBound,Slice,Slices}`.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use schema::ClusteringComparator;
use smallvec::SmallVec;

/// Values of the clustering columns; a value is null in COMPACT STORAGE tables only. Two values are
/// stored without a heap allocation.
pub type ClusteringValues = SmallVec<[Option<Bytes>; 2]>;

/// The kind of a prefix. The discriminants are the ordinals that Cassandra writes to disk.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum PrefixKind {
    /// The end of a range that does not include the prefix.
    ExclEndBound = 0,
    /// The start of a range that includes the prefix.
    InclStartBound = 1,
    /// The end of one range, excluding the prefix, and the start of another, including it.
    ExclEndInclStartBoundary = 2,
    /// The static row.
    StaticClustering = 3,
    /// A row.
    Clustering = 4,
    /// The end of one range, including the prefix, and the start of another, excluding it.
    InclEndExclStartBoundary = 5,
    /// The end of a range that includes the prefix.
    InclEndBound = 6,
    /// The start of a range that does not include the prefix.
    ExclStartBound = 7,
}

impl PrefixKind {
    /// Reads the ordinal on disk.
    pub const fn from_ordinal(ordinal: u8) -> Option<Self> {
        Some(match ordinal {
            0 => Self::ExclEndBound,
            1 => Self::InclStartBound,
            2 => Self::ExclEndInclStartBoundary,
            3 => Self::StaticClustering,
            4 => Self::Clustering,
            5 => Self::InclEndExclStartBoundary,
            6 => Self::InclEndBound,
            7 => Self::ExclStartBound,
            _ => return None,
        })
    }

    /// The name that Cassandra's tools print.
    pub fn name(self) -> &'static str {
        match self {
            Self::ExclEndBound => "EXCL_END_BOUND",
            Self::InclStartBound => "INCL_START_BOUND",
            Self::ExclEndInclStartBoundary => "EXCL_END_INCL_START_BOUNDARY",
            Self::StaticClustering => "STATIC_CLUSTERING",
            Self::Clustering => "CLUSTERING",
            Self::InclEndExclStartBoundary => "INCL_END_EXCL_START_BOUNDARY",
            Self::InclEndBound => "INCL_END_BOUND",
            Self::ExclStartBound => "EXCL_START_BOUND",
        }
    }

    /// Its order relative to positions that equal or extend its values: -1 before them, 0 is the
    /// row itself, 1 behind them.
    #[inline]
    pub fn side(self) -> i8 {
        match self {
            Self::ExclEndBound | Self::InclStartBound | Self::ExclEndInclStartBoundary => -1,
            Self::StaticClustering => -1,
            Self::Clustering => 0,
            Self::InclEndExclStartBoundary | Self::InclEndBound | Self::ExclStartBound => 1,
        }
    }

    /// Whether a range starts here. False for boundaries.
    pub fn is_start(self) -> bool {
        matches!(self, Self::InclStartBound | Self::ExclStartBound)
    }

    /// Whether a range ends here. False for boundaries.
    pub fn is_end(self) -> bool {
        matches!(self, Self::InclEndBound | Self::ExclEndBound)
    }

    /// Whether one range ends here and another starts.
    pub fn is_boundary(self) -> bool {
        matches!(self, Self::InclEndExclStartBoundary | Self::ExclEndInclStartBoundary)
    }
}

// each kind is read back from its ordinal
const _: () = {
    let mut ordinal = 0;
    while let Some(kind) = PrefixKind::from_ordinal(ordinal) {
        assert!(kind as u8 == ordinal);
        ordinal += 1;
    }
    assert!(ordinal == PrefixKind::ExclStartBound as u8 + 1);
};

/// A position in the order of a partition: a row's clustering, or a bound with fewer values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusteringPrefix {
    /// Whether it is a row, a bound or a boundary.
    pub kind: PrefixKind,
    /// The leading clustering values; for a row, all of them.
    pub values: ClusteringValues,
}

/// A prefix used as a bound: never `Clustering` or `StaticClustering`.
pub type Bound = ClusteringPrefix;

impl ClusteringPrefix {
    /// The bound before everything in the partition.
    pub fn bottom() -> Self {
        Self { kind: PrefixKind::InclStartBound, values: ClusteringValues::new() }
    }

    /// The bound behind everything in the partition.
    pub fn top() -> Self {
        Self { kind: PrefixKind::InclEndBound, values: ClusteringValues::new() }
    }

    /// The position of a row.
    pub fn row(values: ClusteringValues) -> Self {
        Self { kind: PrefixKind::Clustering, values }
    }

    /// The start bound of a range.
    pub fn start(values: ClusteringValues, inclusive: bool) -> Self {
        Self { kind: if inclusive { PrefixKind::InclStartBound } else { PrefixKind::ExclStartBound }, values }
    }

    /// The end bound of a range.
    pub fn end(values: ClusteringValues, inclusive: bool) -> Self {
        Self { kind: if inclusive { PrefixKind::InclEndBound } else { PrefixKind::ExclEndBound }, values }
    }

    /// Compares two positions, in clustering order.
    #[inline]
    pub fn compare(&self, other: &Self, comparator: &ClusteringComparator) -> Ordering {
        compare_prefixes(comparator, self.kind, &self.values, other.kind, &other.values)
    }
}

/// Compares two positions that are given by kind and values: first the values; if one equals or
/// extends the other, the kinds.
#[inline]
pub fn compare_prefixes(
    comparator: &ClusteringComparator,
    a_kind: PrefixKind,
    a: &[Option<Bytes>],
    b_kind: PrefixKind,
    b: &[Option<Bytes>],
) -> Ordering {
    let by_values = comparator.compare_values(a, b);
    if by_values != Ordering::Equal {
        return by_values;
    }
    match a.len().cmp(&b.len()) {
        Ordering::Equal => a_kind.side().cmp(&b_kind.side()),
        Ordering::Less => {
            if a_kind.side() < 0 {
                Ordering::Less
            } else {
                Ordering::Greater
            }
        }
        Ordering::Greater => {
            if b_kind.side() < 0 {
                Ordering::Greater
            } else {
                Ordering::Less
            }
        }
    }
}

/// A range of positions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slice {
    /// The start bound.
    pub start: Bound,
    /// The end bound.
    pub end: Bound,
}

impl Slice {
    /// The slice of the whole partition.
    pub fn all() -> Self {
        Self { start: Bound::bottom(), end: Bound::top() }
    }

    /// The slice of one row, or of all rows that extend the values.
    pub fn of_prefix(values: ClusteringValues) -> Self {
        Self { start: Bound::start(values.clone(), true), end: Bound::end(values, true) }
    }

    /// Whether nothing can lie inside.
    pub fn is_empty(&self, comparator: &ClusteringComparator) -> bool {
        self.start.compare(&self.end, comparator) != Ordering::Less
    }

    /// Whether the slice covers the whole partition.
    pub fn is_all(&self) -> bool {
        self.start.values.is_empty() && self.end.values.is_empty()
    }

    /// Whether a row's clustering lies inside.
    pub fn contains(&self, row: &[Option<Bytes>], comparator: &ClusteringComparator) -> bool {
        let kind = PrefixKind::Clustering;
        compare_prefixes(comparator, kind, row, self.start.kind, &self.start.values) == Ordering::Greater
            && compare_prefixes(comparator, kind, row, self.end.kind, &self.end.values) == Ordering::Less
    }
}

/// Disjoint slices in clustering order. An empty list selects no rows; the static row may still be
/// wanted. Clones share the list, because every source of a read has one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Slices(pub Arc<[Slice]>);

impl From<Vec<Slice>> for Slices {
    fn from(slices: Vec<Slice>) -> Self {
        Self(slices.into())
    }
}

impl FromIterator<Slice> for Slices {
    fn from_iter<I: IntoIterator<Item = Slice>>(slices: I) -> Self {
        Self(slices.into_iter().collect())
    }
}

impl Slices {
    /// The whole partition.
    pub fn all() -> Self {
        Self([Slice::all()].into())
    }

    /// No rows.
    pub fn none() -> Self {
        Self([].into())
    }

    /// Sorts slices, drops empty ones and joins overlapping ones.
    pub fn normalized(mut slices: Vec<Slice>, comparator: &ClusteringComparator) -> Self {
        slices.retain(|slice| !slice.is_empty(comparator));
        slices.sort_by(|a, b| a.start.compare(&b.start, comparator));
        let mut joined: Vec<Slice> = Vec::with_capacity(slices.len());
        for slice in slices {
            match joined.last_mut() {
                Some(last) if slice.start.compare(&last.end, comparator) != Ordering::Greater => {
                    if slice.end.compare(&last.end, comparator) == Ordering::Greater {
                        last.end = slice.end;
                    }
                }
                _ => joined.push(slice),
            }
        }
        let ascends = |pair: &[Slice]| pair[0].end.compare(&pair[1].start, comparator) == Ordering::Less;
        assert!(joined.windows(2).all(ascends), "slices of a read ascend and are apart");
        joined.into()
    }

    /// The part of the slices that lies behind a row in the direction of a read.
    pub fn behind(&self, row: &ClusteringValues, reversed: bool, comparator: &ClusteringComparator) -> Self {
        let cut = |slice: &Slice| {
            let mut slice = slice.clone();
            let (start, end) = (Bound::start(row.clone(), false), Bound::end(row.clone(), false));
            if !reversed && start.compare(&slice.start, comparator) == Ordering::Greater {
                slice.start = start;
            } else if reversed && end.compare(&slice.end, comparator) == Ordering::Less {
                slice.end = end;
            }
            slice
        };
        self.0.iter().map(cut).filter(|slice| !slice.is_empty(comparator)).collect()
    }

    /// Whether the slices select the whole partition.
    pub fn is_all(&self) -> bool {
        matches!(&*self.0, [slice] if slice.is_all())
    }

    /// Whether a row's clustering lies inside of one of the slices. The slice is searched for,
    /// because there may be many.
    pub fn contains(&self, row: &[Option<Bytes>], comparator: &ClusteringComparator) -> bool {
        let kind = PrefixKind::Clustering;
        let ends_before = |slice: &Slice| {
            compare_prefixes(comparator, kind, row, slice.end.kind, &slice.end.values) != Ordering::Less
        };
        let at = self.0.partition_point(ends_before);
        self.0.get(at).is_some_and(|slice| slice.contains(row, comparator))
    }
}
