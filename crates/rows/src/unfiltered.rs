//! Unfiltereds: what a partition holds in clustering order, deleted things included.
//! Agrees with `org.apache.cassandra.db.rows.{Unfiltered,RangeTombstoneMarker}`.

use std::cmp::Ordering;

use schema::ClusteringComparator;

use crate::clustering::compare_prefixes;
use crate::codec::EncodedRow;
use crate::{ClusteringPrefix, ClusteringValues, DeletionTime, PrefixKind, ReadError, Row};

/// A start, an end, or a boundary between two range tombstones. They never overlap in one stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeTombstoneMarker {
    /// Where.
    pub position: ClusteringPrefix,
    /// The deletion that ends here (in clustering order).
    pub close: Option<DeletionTime>,
    /// The deletion that starts here (in clustering order).
    pub open: Option<DeletionTime>,
}

/// A row or a marker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Unfiltered {
    /// A row.
    Row(Row),
    /// A range tombstone marker.
    Marker(RangeTombstoneMarker),
}

impl Unfiltered {
    /// Its kind for comparison.
    #[inline]
    pub fn kind(&self) -> PrefixKind {
        match self {
            Self::Row(_) => PrefixKind::Clustering,
            Self::Marker(marker) => marker.position.kind,
        }
    }

    /// Its clustering values.
    #[inline]
    pub fn values(&self) -> &ClusteringValues {
        match self {
            Self::Row(row) => &row.clustering,
            Self::Marker(marker) => &marker.position.values,
        }
    }

    /// Order in the partition (not reversed).
    #[inline]
    pub fn compare(&self, other: &Self, comparator: &ClusteringComparator) -> Ordering {
        compare_prefixes(comparator, self.kind(), self.values(), other.kind(), other.values())
    }
}

/// What a stream gives to those who can copy rows as they are encoded.
#[derive(Clone, Debug)]
pub enum MaybeEncoded {
    /// Taken apart.
    Decoded(Unfiltered),
    /// A row that nothing in it will end.
    Encoded(EncodedRow),
}

impl MaybeEncoded {
    /// Its kind for comparison.
    #[inline]
    pub fn kind(&self) -> PrefixKind {
        match self {
            Self::Decoded(unfiltered) => unfiltered.kind(),
            Self::Encoded(_) => PrefixKind::Clustering,
        }
    }

    /// Its clustering values.
    #[inline]
    pub fn values(&self) -> &ClusteringValues {
        match self {
            Self::Decoded(unfiltered) => unfiltered.values(),
            Self::Encoded(row) => &row.clustering,
        }
    }

    /// Order in the partition (not reversed).
    #[inline]
    pub fn compare(&self, other: &Self, comparator: &ClusteringComparator) -> Ordering {
        compare_prefixes(comparator, self.kind(), self.values(), other.kind(), other.values())
    }

    /// Taken apart.
    pub fn decode(self) -> Result<Unfiltered, ReadError> {
        match self {
            Self::Decoded(unfiltered) => Ok(unfiltered),
            Self::Encoded(row) => row.decode().map(Unfiltered::Row),
        }
    }
}
