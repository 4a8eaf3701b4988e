//! `uuid()` and `now()` in a select clause. Each row gets an id of its own, and the same id when
//! the page is built again.
//!
//! One id is asked for when the statement is bound; the ids of rows are computed from it and the
//! row's key. A page may be built twice, on different threads, and must be the same both times, so
//! building it asks for no random numbers. The ids of `now()` all have the time of the first.
//! Cassandra asks for a new id for each row (`ScalarFunctionSelector`).

use bytes::Bytes;
use md5::{Digest, Md5};

use super::RowView;

/// The id from which the ids of rows are computed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowIds {
    first: [u8; 16],
    is_time: bool,
}

/// Number of bytes at the beginning of a time UUID that hold the time; clock sequence and node
/// follow.
const TIME_BYTES: usize = 8;

impl RowIds {
    /// From the first id; None: the bytes are no UUID.
    pub fn new(first: &[u8]) -> Option<Self> {
        let first: [u8; 16] = first.try_into().ok()?;
        Some(Self { first, is_time: types::timeuuid::is_timeuuid(&first) })
    }

    /// The id for a row.
    pub fn of_row(&self, row: &RowView<'_>) -> Bytes {
        let mut digest = Md5::new();
        digest.update(self.first);
        for part in row.key.iter().map(Some).chain(row.clustering.iter().map(Option::as_ref)) {
            digest.update([u8::from(part.is_some())]);
            let part = part.map(AsRef::as_ref).unwrap_or_default();
            digest.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            digest.update(part);
        }
        let mut id: [u8; 16] = digest.finalize().into();
        if self.is_time {
            id[..TIME_BYTES].copy_from_slice(&self.first[..TIME_BYTES]);
            // the multicast bit marks a node id that is no address of a machine
            id[10] |= 1;
        } else {
            id[6] = (id[6] & 0x0f) | 0x40;
        }
        id[8] = (id[8] & 0x3f) | 0x80;
        Bytes::copy_from_slice(&id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_has_its_own() {
        let keys = [Bytes::from_static(b"a"), Bytes::from_static(b"b")];
        let clusterings = [Some(Bytes::from_static(b"c")), None];
        let row = |key: usize, clustering: usize| RowView {
            key: &keys[key..=key],
            clustering: &clusterings[clustering..=clustering],
            static_row: None,
            row: None,
            now: 0,
            aggregates: &[],
        };
        for first in [[0x42; 16], types::timeuuid::min_of_millis(5)] {
            let row_ids = RowIds::new(&first).expect("16 bytes");
            let mut ids: Vec<_> = [(0, 0), (0, 1), (1, 0), (1, 1), (0, 0)]
                .map(|(key, clustering)| row_ids.of_row(&row(key, clustering)))
                .to_vec();
            assert_eq!(ids.pop(), ids.first().cloned(), "the same row has the same id");
            assert!(ids.iter().all(|id| types::timeuuid::is_timeuuid(id) == types::timeuuid::is_timeuuid(&first)));
            ids.sort();
            ids.dedup();
            assert_eq!(ids.len(), 4);
        }
        assert!(RowIds::new(b"short").is_none());
    }
}
