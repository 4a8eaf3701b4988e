//! `CompressionInfo.db`: how Data.db is compressed and where its chunks are.
//!
//! ```text
//! utf  class; i32 count, count × (utf key, utf value); i32 chunk length; i32 compressed length max
//! i64  data length; i32 chunk count; i64 × chunk count: offsets in Data.db
//! ```
//! Before `na` there is no compressed length max: no chunk is stored as it is. Each chunk is
//! followed by the CRC-32 of its stored bytes. Compactions of Cassandra may leave one chunk too
//! many, of zero bytes: what counts is the data length. Agrees with
//! `org.apache.cassandra.io.compress.CompressionMetadata`.

use std::collections::BTreeMap;

use bytes::Bytes;
use stdx::{Cursor, put_u32, put_u64, put_utf};

use crate::compressor::{CHUNK_LENGTH_MAX, CompressionParams, Compressor};
use crate::error::Malformed;
use crate::version::Version;

/// Bytes of the checksum behind each chunk.
pub const CHUNK_CHECKSUM_LEN: u64 = 4;

/// The most bytes that a chunk takes in Data.db, without its checksum: no compressor makes it twice
/// as long.
pub(crate) fn stored_length_max(chunk_length: usize) -> usize {
    chunk_length * 2 + 1024
}

/// A read `CompressionInfo.db`. The offsets stay where they are.
#[derive(Clone, Debug)]
pub struct CompressionInfo {
    /// How.
    pub params: CompressionParams,
    /// Bytes of the data before compression.
    pub data_length: u64,
    /// Chunks that hold data.
    pub chunk_count: u64,
    offsets: Bytes,
}

/// Where a chunk is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoredChunk {
    /// In Data.db.
    pub offset: u64,
    /// Without the checksum.
    pub length: usize,
}

impl CompressionInfo {
    /// Over the bytes of the file.
    pub fn open(file: &Bytes, version: Version) -> Result<Self, Malformed> {
        let mut cursor = Cursor::new(file);
        let class = cursor.utf()?;
        let compressor =
            Compressor::from_class(class).ok_or_else(|| Malformed::at(0, format!("unknown compressor {class}")))?;
        let count = cursor.u32()?;
        let mut options = BTreeMap::new();
        for _ in 0..count {
            let key = cursor.utf()?.to_owned();
            options.insert(key, cursor.utf()?.to_owned());
        }
        let at = cursor.position() as u64;
        let chunk_length = cursor.u32()? as usize;
        let compressed_length_max =
            if version.has_compressed_length_max() { cursor.u32()? as usize } else { i32::MAX as usize };
        let data_length = cursor.u64()?;
        let listed = u64::from(cursor.u32()?);
        if !chunk_length.is_power_of_two() || chunk_length > CHUNK_LENGTH_MAX {
            return Err(Malformed::at(at, format!("a chunk length of {chunk_length}")));
        }
        let chunk_count = data_length.div_ceil(chunk_length as u64);
        if chunk_count > listed {
            return Err(Malformed::at(at, format!("{listed} chunks for {data_length} bytes")));
        }
        let offsets = file.slice_ref(cursor.take(listed as usize * 8)?);
        let params = CompressionParams { compressor, options, chunk_length, compressed_length_max };
        Ok(Self { params, data_length, chunk_count, offsets })
    }

    /// Bytes of memory that the offsets of the chunks take.
    pub fn offsets_size(&self) -> usize {
        self.offsets.len()
    }

    fn offset(&self, index: u64) -> Option<u64> {
        let start = usize::try_from(index).ok()?.checked_mul(8)?;
        self.offsets.get(start..)?.first_chunk().map(|bytes| u64::from_be_bytes(*bytes))
    }

    /// Where chunk `index` is, in a Data.db of `file_length` bytes.
    pub fn chunk(&self, index: u64, file_length: u64) -> Result<StoredChunk, Malformed> {
        let malformed =
            || Malformed::at(0, format!("no place for chunk {index} in a data file of {file_length} bytes"));
        let offset = self.offset(index).ok_or_else(malformed)?;
        let next = index.checked_add(1).and_then(|next| self.offset(next)).unwrap_or(file_length);
        let length = next.min(file_length).checked_sub(offset).and_then(|with| with.checked_sub(CHUNK_CHECKSUM_LEN));
        match length.and_then(|length| usize::try_from(length).ok()) {
            Some(length) if length <= stored_length_max(self.params.chunk_length) => Ok(StoredChunk { offset, length }),
            _ => Err(malformed()),
        }
    }

    /// Bytes of chunk `index` before compression.
    pub fn uncompressed_length(&self, index: u64) -> usize {
        let chunk_length = self.params.chunk_length as u64;
        self.data_length.saturating_sub(index.saturating_mul(chunk_length)).min(chunk_length) as usize
    }

    /// A stored chunk's content.
    pub fn decompress(&self, stored: &[u8], index: u64) -> Result<Bytes, String> {
        let length = self.uncompressed_length(index);
        if stored.len() >= self.params.compressed_length_max {
            // a last chunk stored as it is may be padded with zeros
            return stored
                .get(..length)
                .map(Bytes::copy_from_slice)
                .ok_or_else(|| format!("{} bytes stored as they are instead of {length}", stored.len()));
        }
        self.params.compressor.decompress(stored, length).map(Bytes::from)
    }
}

/// The file up to the offsets.
pub fn put_head(out: &mut Vec<u8>, params: &CompressionParams, data_length: u64, chunk_count: u64) {
    let chunk_length = params.chunk_length;
    assert!(chunk_length.is_power_of_two() && chunk_length <= CHUNK_LENGTH_MAX, "a reader takes the chunk length");
    put_utf(out, params.compressor.class());
    put_u32(out, params.options.len() as u32);
    for (key, value) in &params.options {
        put_utf(out, key);
        put_utf(out, value);
    }
    put_u32(out, chunk_length as u32);
    put_u32(out, params.compressed_length_max as u32);
    put_u64(out, data_length);
    put_u32(out, chunk_count as u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut params = CompressionParams::lz4();
        params.options.insert("lz4_compressor_type".to_owned(), "high".to_owned());
        let mut file = Vec::new();
        put_head(&mut file, &params, 40_000, 3);
        for offset in [0u64, 100, 300] {
            put_u64(&mut file, offset);
        }
        let info = CompressionInfo::open(&Bytes::from(file.clone()), Version::DA).unwrap();
        assert_eq!((&info.params, info.data_length, info.chunk_count), (&params, 40_000, 3));
        assert_eq!(info.chunk(0, 500), Ok(StoredChunk { offset: 0, length: 96 }));
        assert_eq!(info.chunk(2, 500), Ok(StoredChunk { offset: 300, length: 196 }));
        assert_eq!((info.uncompressed_length(0), info.uncompressed_length(2)), (16_384, 7_232));
        assert!(info.chunk(3, 500).is_err());
        assert!(info.chunk(2, 301).is_err());
        for length in 0..file.len() {
            assert!(CompressionInfo::open(&Bytes::copy_from_slice(&file[..length]), Version::DA).is_err());
        }
    }
}
