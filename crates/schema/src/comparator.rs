//! The order of rows in a partition. Reversed clustering order is handled here and nowhere else.
//!
//! Agrees with `org.apache.cassandra.db.ClusteringComparator`; the rules are in
//! docs/formats/sstable-data.md, "clustering prefixes".

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use types::CqlType;

/// The types and orders of the clustering columns.
#[derive(Clone, PartialEq, Debug)]
pub struct ClusteringComparator {
    /// For each clustering column its type, and whether its order is descending.
    pub columns: Arc<[(CqlType, bool)]>,
}

impl ClusteringComparator {
    /// A comparator for these types and orders.
    pub fn new(columns: impl Into<Arc<[(CqlType, bool)]>>) -> Self {
        Self { columns: columns.into() }
    }

    /// Number of clustering columns.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether the table has no clustering columns.
    pub fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    /// Compares one component. Null sorts before every value, also in descending columns.
    #[inline]
    pub fn compare_component(&self, index: usize, a: Option<&[u8]>, b: Option<&[u8]>) -> Ordering {
        match (a, b) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => {
                let Some((ty, reversed)) = self.columns.get(index) else { return a.cmp(b) };
                let order = types::compare(ty, a, b);
                if *reversed { order.reverse() } else { order }
            }
        }
    }

    /// Compares the leading components that both prefixes have.
    #[inline]
    pub fn compare_values(&self, a: &[Option<Bytes>], b: &[Option<Bytes>]) -> Ordering {
        for (index, (a, b)) in a.iter().zip(b).enumerate() {
            let order = self.compare_component(index, a.as_deref(), b.as_deref());
            if order != Ordering::Equal {
                return order;
            }
        }
        Ordering::Equal
    }
}
