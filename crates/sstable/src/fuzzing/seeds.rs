//! Finds in whole files what seeds are made of.

use bytes::Bytes;
use rows::ReadMode;
use rows::codec::{CodecError, DeletionTimeForm, Header, decode_static_row, get_deletion_time, peek_unfiltered};
use stdx::Cursor;

use crate::index::PartitionPosition;
use crate::index::partition_index::PartitionIndex;
use crate::index_file::Access;
use crate::reader::SSTable;

/// Type number of the serialization header in Statistics.db.
const HEADER: u32 = 3;

/// The positions in Rows.db that Partitions.db names.
pub fn row_index_positions(partitions: &[u8]) -> Vec<u64> {
    let mut positions = Vec::new();
    let index = PartitionIndex::open(&partitions.to_vec().into());
    let Ok(mut cursor) = index.and_then(|index| index.cursor(Access::WAITING)) else { return positions };
    while let Ok(Some(position)) = cursor.next() {
        if let PartitionPosition::Rows(position) = position {
            positions.push(position);
        }
    }
    positions
}

/// The bytes of the serialization header in Statistics.db.
pub fn header_of(statistics: &[u8]) -> Option<Vec<u8>> {
    let mut cursor = Cursor::new(statistics);
    let count = cursor.u32().ok()?;
    cursor.u32().ok()?;
    let mut entries = (0..count).map_while(|_| Some((cursor.u32().ok()?, cursor.u32().ok()? as usize)));
    let start = entries.find(|entry| entry.0 == HEADER)?.1;
    let end = entries.next().map_or(statistics.len(), |next| next.1);
    statistics.get(start..end.checked_sub(4)?).map(<[u8]>::to_vec)
}

/// Where rows and markers of the first partition start in the first chunk.
pub fn places_of_rows(sstable: &SSTable) -> Vec<usize> {
    let Ok(chunk) = sstable.data().read_chunk(0, ReadMode::Background) else { return Vec::new() };
    let form = sstable.descriptor().version.deletion_times();
    let mut places = Vec::new();
    let _ = find_rows(&chunk, sstable.header(), form, &mut places);
    places
}

fn find_rows(
    chunk: &Bytes,
    header: &Header,
    form: DeletionTimeForm,
    places: &mut Vec<usize>,
) -> Result<(), CodecError> {
    let mut cursor = Cursor::new(chunk);
    cursor.short_bytes()?;
    get_deletion_time(&mut cursor, form)?;
    let mut at = cursor.position();
    if !header.statics.is_empty() {
        at = decode_static_row(chunk, at, header, true)?.1;
    }
    while let Some(peeked) = peek_unfiltered(chunk, at, header)? {
        places.push(at);
        at = peeked.end;
    }
    Ok(())
}
