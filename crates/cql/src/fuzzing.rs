//! Decoders of this crate that are not public, as functions over any bytes: for fuzz targets and
//! the everyday tests over seeds and mutations of them.

use schema::ClusteringComparator;
use types::CqlType;

use crate::paging::PagingState;

/// A paging state as a client sends it back: `u8` number of clustering columns, the state. What is
/// read prints to what reads as the same.
pub fn paging_state(data: &[u8]) {
    let Some((&columns, state)) = data.split_first() else { return };
    let types = [CqlType::Blob, CqlType::Int, CqlType::Text];
    let columns: Vec<_> = types.iter().cycle().take(usize::from(columns) % 80).map(|ty| (ty.clone(), false)).collect();
    let comparator = ClusteringComparator::new(columns);
    if let Ok(state) = PagingState::decode(state, &comparator, false) {
        assert_eq!(PagingState::decode(&state.encode(), &comparator, false), Ok(state));
    }
}

/// Paging states, for seeds.
pub fn paging_states() -> Vec<Vec<u8>> {
    let value = |bytes: &'static [u8]| Some(bytes::Bytes::from_static(bytes));
    let state = |key, row| PagingState { key, row, remaining: 9, remaining_in_partition: 70_000 }.encode();
    let row = [value(b"abc"), value(b"\0\0\0\x01"), None].into_iter().collect();
    let states = [(0, state(value(b"key"), None)), (3, state(value(b"key"), Some(row)))];
    states.into_iter().map(|(columns, state)| [&[columns], &state[..]].concat()).collect()
}
