//! Writes the right checksums into damaged bytes, as far as their structure can still be seen: what
//! a clever enemy would do.

use stdx::Cursor;

use crate::compressor::CHUNK_LENGTH_MAX;

/// More components than a Statistics.db can have.
const COMPONENTS_MAX: u32 = 32;

fn put(bytes: &mut [u8], at: usize, checksum: u32) -> Option<()> {
    bytes.get_mut(at..at.checked_add(4)?)?.copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

/// `Statistics.db`: the checksums of the table of components and of each component.
pub fn seal_statistics(bytes: &mut [u8]) {
    let _ = seal_components(bytes);
}

fn seal_components(bytes: &mut [u8]) -> Option<()> {
    let count = Cursor::new(bytes).u32().ok()?;
    if count > COMPONENTS_MAX {
        return None;
    }
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&count.to_be_bytes());
    put(bytes, 4, hasher.clone().finalize())?;
    let table = bytes.get(8..8 + count as usize * 8)?.to_vec();
    hasher.update(&table);
    put(bytes, 8 + table.len(), hasher.finalize())?;
    let (entries, _) = table.as_chunks::<8>();
    let starts: Vec<usize> =
        entries.iter().map(|&[_, _, _, _, a, b, c, d]| u32::from_be_bytes([a, b, c, d]) as usize).collect();
    for (index, start) in starts.iter().enumerate() {
        let end = starts.get(index + 1).copied().unwrap_or(bytes.len());
        let Some(body) = end.checked_sub(4).and_then(|end| bytes.get(*start..end)) else { continue };
        let checksum = crc32fast::hash(body);
        put(bytes, end - 4, checksum)?;
    }
    Some(())
}

/// `CRC.db` of data: the checksum of each chunk, as many as there is room for.
pub fn seal_crc(crc: &mut [u8], data: &[u8]) {
    let Some((length, checksums)) = crc.split_first_chunk_mut::<4>() else { return };
    let length = u32::from_be_bytes(*length) as usize;
    if length == 0 || length > CHUNK_LENGTH_MAX {
        return;
    }
    for (place, chunk) in checksums.chunks_mut(4).zip(data.chunks(length)) {
        put(place, 0, crc32fast::hash(chunk));
    }
}
