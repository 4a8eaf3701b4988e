//! Unfiltereds: the items of a partition in clustering order, deleted ones included. Agrees with
//! `org.apache.cassandra.db.rows.{Unfiltered,RangeTombstoneMarker}`.

use std::cmp::Ordering;

use schema::ClusteringComparator;

use crate::clustering::compare_prefixes;
use crate::codec::EncodedRow;
use crate::{ClusteringPrefix, ClusteringValues, DeletionTime, PrefixKind, ReadError, Row};

/// The start or the end of a range tombstone, or a boundary between two. Range tombstones of one
/// stream never overlap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RangeTombstoneMarker {
    /// The position.
    pub position: ClusteringPrefix,
    /// The deletion that ends here, in clustering order; None: no range ends.
    pub close: Option<DeletionTime>,
    /// The deletion that starts here, in clustering order; None: no range starts.
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
    /// The kind of its position.
    #[inline]
    pub fn kind(&self) -> PrefixKind {
        match self {
            Self::Row(_) => PrefixKind::Clustering,
            Self::Marker(marker) => marker.position.kind,
        }
    }

    /// The clustering values of its position.
    #[inline]
    pub fn values(&self) -> &ClusteringValues {
        match self {
            Self::Row(row) => &row.clustering,
            Self::Marker(marker) => &marker.position.values,
        }
    }

    /// Compares positions in clustering order, not reversed.
    #[inline]
    pub fn compare(&self, other: &Self, comparator: &ClusteringComparator) -> Ordering {
        compare_prefixes(comparator, self.kind(), self.values(), other.kind(), other.values())
    }
}

/// An unfiltered for callers that can copy rows in their encoded form.
#[derive(Clone, Debug)]
pub enum MaybeEncoded {
    /// Decoded.
    Decoded(Unfiltered),
    /// A row in its encoded form. Nothing in it expires or deletes.
    Encoded(EncodedRow),
}

impl MaybeEncoded {
    /// The kind of its position.
    #[inline]
    pub fn kind(&self) -> PrefixKind {
        match self {
            Self::Decoded(unfiltered) => unfiltered.kind(),
            Self::Encoded(_) => PrefixKind::Clustering,
        }
    }

    /// The clustering values of its position.
    #[inline]
    pub fn values(&self) -> &ClusteringValues {
        match self {
            Self::Decoded(unfiltered) => unfiltered.values(),
            Self::Encoded(row) => &row.clustering,
        }
    }

    /// Compares positions in clustering order, not reversed.
    #[inline]
    pub fn compare(&self, other: &Self, comparator: &ClusteringComparator) -> Ordering {
        compare_prefixes(comparator, self.kind(), self.values(), other.kind(), other.values())
    }

    /// The unfiltered, decoded.
    pub fn decode(self) -> Result<Unfiltered, ReadError> {
        match self {
            Self::Decoded(unfiltered) => Ok(unfiltered),
            Self::Encoded(row) => row.decode().map(Unfiltered::Row),
        }
    }
}
