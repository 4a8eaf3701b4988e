//! Paging states: the position where the next page of a SELECT starts. The bytes have Cassandra's
//! layout, so that a client may continue on another node. Cassandra gives clients of protocol
//! version 3 an older layout: it is read on every version, and never written, because Cassandra
//! reads both.
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

    /// Decodes the bytes that a client sent back. `comparator` is that of the table; `is_compact`:
    /// whether the table has COMPACT STORAGE.
    pub fn decode(bytes: &[u8], comparator: &ClusteringComparator, is_compact: bool) -> Result<Self, CqlError> {
        let is_sound = |state: &Self| {
            let values = state.row.iter().flatten().zip(comparator.columns.iter());
            values.into_iter().all(|(value, (ty, _))| {
                value.as_ref().is_none_or(|value| value.is_empty() || types::validate(ty, value).is_ok())
            })
        };
        // the newer layout first: read by it, an older state has bytes left at its end, because its
        // lengths and numbers take more bytes
        Self::read(bytes, comparator.len())
            .or_else(|| Self::read_legacy(bytes, comparator.len(), is_compact))
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

    /// The layout of protocol version 3. The mark is the name that a cell of the last row had
    /// before Cassandra 3.0.
    fn read_legacy(bytes: &[u8], columns: usize, is_compact: bool) -> Option<Self> {
        let mut cursor = Cursor::new(bytes);
        let key = cursor.short_bytes().ok()?;
        let mark = cursor.short_bytes().ok()?;
        let remaining = u32::try_from(cursor.i32().ok()?).ok()?;
        // Cassandra before 3.0 did not write it
        let remaining_in_partition =
            if cursor.is_empty() { UNLIMITED } else { u32::try_from(cursor.i32().ok()?).ok()? };
        if !cursor.is_empty() {
            return None;
        }
        let row = match columns {
            _ if mark.is_empty() => None,
            // the name has no clustering: the row is the partition
            0 => None,
            1 if is_compact => Some([Some(Bytes::copy_from_slice(mark))].into_iter().collect()),
            _ => Some(decode_cell_name(mark, columns)?),
        };
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

/// The clustering in the name of a cell: components, each with its length of two bytes before and
/// one byte behind it, of which the clustering columns come first. Missing ones are null. The name
/// of a cell of the static row begins with 0xffff, which is no length here.
fn decode_cell_name(mark: &[u8], columns: usize) -> Option<ClusteringValues> {
    let mut cursor = Cursor::new(mark);
    let mut values = ClusteringValues::new();
    while !cursor.is_empty() {
        let value = cursor.short_bytes().ok()?;
        cursor.u8().ok()?;
        if values.len() < columns {
            values.push(Some(Bytes::copy_from_slice(value)));
        }
    }
    values.resize(columns, None);
    Some(values)
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
            assert_eq!(PagingState::decode(&state.encode(), &comparator(3), false), Ok(state));
        }
    }

    /// The state behind a page of `SELECT k2 FROM t GROUP BY k0, k1, k2` of Cassandra 5.0.8. The
    /// last group of the page is a partition.
    #[test]
    fn a_state_of_cassandra_with_less_than_nothing_left() {
        let state = [&[0, 0, 0xf0, 0x7f, 0xff, 0xff, 0xfe][..], &[0xff; 9]].concat();
        let expected = PagingState { key: None, row: None, remaining: UNLIMITED - 1, remaining_in_partition: 0 };
        assert_eq!(PagingState::decode(&state, &comparator(1), false), Ok(expected));
    }

    #[test]
    fn states_have_the_layout_of_cassandra() {
        let row = [Some(Bytes::from_static(&[0, 0, 0, 5]))].into_iter().collect();
        let state = PagingState { key: None, row: Some(row), remaining: UNLIMITED, remaining_in_partition: UNLIMITED };
        let expected = [0, 6, 0, 4, 0, 0, 0, 5, 0xf0, 0x7f, 0xff, 0xff, 0xff, 0xf0, 0x7f, 0xff, 0xff, 0xff];
        assert_eq!(state.encode(), expected);
    }

    /// States as `PagingState.legacySerialize` of Cassandra writes them for clients of protocol
    /// version 3: the rows are marked by the names of their first cells.
    #[test]
    fn states_of_protocol_version_3() {
        const NO_LIMIT: [u8; 4] = [0x7f, 0xff, 0xff, 0xff];
        let state = |key: &[u8], mark: &[u8], limits: &[[u8; 4]]| {
            let length = |bytes: &[u8]| u16::try_from(bytes.len()).expect("short").to_be_bytes();
            [&length(key)[..], key, &length(mark)[..], mark, limits.as_flattened()].concat()
        };
        let five = Some(Bytes::from_static(&[0, 0, 0, 5]));
        let row = |values: &[Option<Bytes>]| Some(values.iter().cloned().collect::<ClusteringValues>());
        // the clustering 5 and the column "v"; the same of a set, with its element; two
        // clusterings, of which one is null in a dense table
        let plain = [0, 4, 0, 0, 0, 5, 0, 0, 1, b'v', 0];
        let of_set = [&plain[..], &[0, 1, b'e', 0]].concat();
        let dense = [0, 4, 0, 0, 0, 5, 0];
        let cases: [(&[u8], usize, bool, Option<ClusteringValues>); 6] = [
            (&plain, 1, false, row(std::slice::from_ref(&five))),
            (&of_set, 1, false, row(std::slice::from_ref(&five))),
            (&dense, 2, true, row(&[five.clone(), None])),
            (&[0, 0, 0, 5], 1, true, row(&[five])),
            (&[0, 1, b'v', 0], 0, false, None),
            (&[], 1, false, None),
        ];
        for key in [&[][..], b"k", &[1; 0x123]] {
            for (mark, columns, is_compact, row) in &cases {
                let key_of_state = (!key.is_empty()).then(|| Bytes::copy_from_slice(key));
                let expected = |remaining: u32, remaining_in_partition: u32| {
                    let (key, row) = (key_of_state.clone(), row.clone());
                    Ok::<_, CqlError>(PagingState { key, row, remaining, remaining_in_partition })
                };
                let decode = |limits: &[[u8; 4]]| {
                    PagingState::decode(&state(key, mark, limits), &comparator(*columns), *is_compact)
                };
                assert_eq!(decode(&[NO_LIMIT, NO_LIMIT]), expected(UNLIMITED, UNLIMITED), "{key:?} {mark:?}");
                assert_eq!(decode(&[NO_LIMIT]), expected(UNLIMITED, UNLIMITED), "{key:?} {mark:?}");
                assert_eq!(decode(&[[0, 0, 0, 7], [0, 0, 0, 9]]), expected(7, 9), "{key:?} {mark:?}");
            }
        }
        let of_static = state(b"k", &[0xff, 0xff, 0, 0, 0, 0, 1, b's', 0], &[NO_LIMIT, NO_LIMIT]);
        assert!(PagingState::decode(&of_static, &comparator(1), false).is_err());
    }

    #[test]
    fn what_is_no_state_is_refused() {
        for bytes in [&[][..], &[1], &[0, 0, 0], &[0, 1, 0, 0, 0], &[0, 0, 0, 0, 0], &[255; 9]] {
            assert!(PagingState::decode(bytes, &comparator(1), false).is_err(), "{bytes:?}");
        }
    }
}
