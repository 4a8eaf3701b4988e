//! Paging states: the position where the next page of a SELECT starts. The bytes have Cassandra's
//! layout, so that a client may continue on another node.
//!
//! Native protocol specification §8; `org.apache.cassandra.service.pager.PagingState`.

use bytes::Bytes;
use rows::ClusteringValues;
use schema::ClusteringComparator;
use stdx::Cursor;

use crate::error::CqlError;

/// Cassandra's number for "no limit".
pub(crate) const UNLIMITED: u32 = i32::MAX as u32;

/// The position where the next page starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PagingState {
    /// Key of the last partition of the page; None if the statement names only one.
    pub key: Option<Bytes>,
    /// Clustering of the last row of the page; None if the page ended with a partition.
    pub row: Option<ClusteringValues>,
    /// Rows left of the statement's LIMIT.
    pub remaining: u32,
    /// Rows left in the partition.
    pub remaining_in_partition: u32,
}

/// Number of clustering columns whose bits share one header.
const HEADER_COLUMNS: usize = 32;

impl PagingState {
    /// The bytes for the client.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        stdx::put_vbytes(&mut out, self.key.as_deref().unwrap_or_default());
        let mut mark = Vec::new();
        if let Some(row) = &self.row {
            encode_clustering(row, &mut mark);
        }
        stdx::put_vbytes(&mut out, &mark);
        stdx::put_uvint(&mut out, u64::from(self.remaining));
        stdx::put_uvint(&mut out, u64::from(self.remaining_in_partition));
        out
    }

    /// Decodes the bytes that a client sent back. `comparator` is that of the table.
    pub fn decode(bytes: &[u8], comparator: &ClusteringComparator) -> Result<Self, CqlError> {
        let is_sound = |state: &Self| {
            let values = state.row.iter().flatten().zip(comparator.columns.iter());
            values.into_iter().all(|(value, (ty, _))| {
                value.as_ref().is_none_or(|value| value.is_empty() || types::validate(ty, value).is_ok())
            })
        };
        Self::read(bytes, comparator.len())
            .filter(is_sound)
            .ok_or_else(|| CqlError::Protocol("Invalid value for the paging state".into()))
    }

    fn read(bytes: &[u8], columns: usize) -> Option<Self> {
        let mut cursor = Cursor::new(bytes);
        let key = cursor.vbytes().ok()?;
        let mark = cursor.vbytes().ok()?;
        let remaining = u32::try_from(cursor.uvint().ok()?).ok()?;
        // Cassandra writes -1 where a page of groups ends with its partition
        let remaining_in_partition = match cursor.uvint().ok()?.cast_signed() {
            ..0 => 0,
            count => u32::try_from(count).ok()?,
        };
        if !cursor.is_empty() {
            return None;
        }
        let row = if mark.is_empty() { None } else { Some(decode_clustering(mark, columns)?) };
        let key = (!key.is_empty()).then(|| Bytes::copy_from_slice(key));
        Some(Self { key, row, remaining, remaining_in_partition })
    }
}

/// Layout: before every 32 columns a header of two bits a column (1: empty, 2: null), then the
/// values of the other columns.
fn encode_clustering(values: &[Option<Bytes>], out: &mut Vec<u8>) {
    for group in values.chunks(HEADER_COLUMNS) {
        let mut header = 0u64;
        for (at, value) in group.iter().enumerate() {
            header |= match value {
                None => 2 << (2 * at),
                Some(value) if value.is_empty() => 1 << (2 * at),
                Some(_) => 0,
            };
        }
        stdx::put_uvint(out, header);
        for value in group.iter().flatten().filter(|value| !value.is_empty()) {
            stdx::put_vbytes(out, value);
        }
    }
}

fn decode_clustering(mark: &[u8], columns: usize) -> Option<ClusteringValues> {
    let mut cursor = Cursor::new(mark);
    let mut values = ClusteringValues::new();
    let mut header = 0;
    for at in 0..columns {
        if at % HEADER_COLUMNS == 0 {
            header = cursor.uvint().ok()?;
        }
        let bits = header >> (2 * (at % HEADER_COLUMNS)) & 3;
        values.push(match bits {
            0 => Some(Bytes::copy_from_slice(cursor.vbytes().ok()?)),
            1 => Some(Bytes::new()),
            _ => None,
        });
    }
    cursor.is_empty().then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparator(columns: usize) -> ClusteringComparator {
        ClusteringComparator::new(vec![(types::CqlType::Blob, false); columns])
    }

    #[test]
    fn a_state_comes_back_as_it_was() {
        let row: ClusteringValues = [Some(Bytes::from_static(b"abc")), Some(Bytes::new()), None].into_iter().collect();
        let cases = [
            PagingState { key: None, row: None, remaining: UNLIMITED, remaining_in_partition: 0 },
            PagingState {
                key: Some(Bytes::from_static(b"k")),
                row: Some(row),
                remaining: 7,
                remaining_in_partition: 9,
            },
        ];
        for state in cases {
            assert_eq!(PagingState::decode(&state.encode(), &comparator(3)), Ok(state));
        }
    }

    /// The state behind a page of `SELECT k2 FROM t GROUP BY k0, k1, k2` of Cassandra 5.0.8. The
    /// last group of the page is a partition.
    #[test]
    fn a_state_of_cassandra_with_less_than_nothing_left() {
        let state = [&[0, 0, 0xf0, 0x7f, 0xff, 0xff, 0xfe][..], &[0xff; 9]].concat();
        let expected = PagingState { key: None, row: None, remaining: UNLIMITED - 1, remaining_in_partition: 0 };
        assert_eq!(PagingState::decode(&state, &comparator(1)), Ok(expected));
    }

    #[test]
    fn states_have_the_layout_of_cassandra() {
        let row = [Some(Bytes::from_static(&[0, 0, 0, 5]))].into_iter().collect();
        let state = PagingState { key: None, row: Some(row), remaining: UNLIMITED, remaining_in_partition: UNLIMITED };
        let expected = [0, 6, 0, 4, 0, 0, 0, 5, 0xf0, 0x7f, 0xff, 0xff, 0xff, 0xf0, 0x7f, 0xff, 0xff, 0xff];
        assert_eq!(state.encode(), expected);
    }

    #[test]
    fn what_is_no_state_is_refused() {
        for bytes in [&[][..], &[1], &[0, 0, 0], &[0, 1, 0, 0, 0], &[0, 0, 0, 0, 0], &[255; 9]] {
            assert!(PagingState::decode(bytes, &comparator(1)).is_err(), "{bytes:?}");
        }
    }
}
