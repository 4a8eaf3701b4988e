//! Compressed segments, which Cassandra writes with `commitlog_compression`: read as the plain segments that they stand for.
//!
//! The parameters in the header name the compressor. After each section's marker comes an i32, the length of the section without compression,
//! then its compressed bytes up to the next marker. Positions in the log count as if nothing were compressed: each section
//! begins 8 bytes (a marker) behind the end of the one before. So a plain segment is put together here, markers at their logical
//! places, and read as any other. Agrees with `CommitLogSegmentReader.CompressedSegmenter` and `CommitLogDescriptor`.
//!
//! Nothing is written in this form.

use sstable::Compressor;
use stdx::Cursor;

use super::COMMITLOG_SEGMENT_SIZE_MAX;
use super::format::{self, Header, MARKER_LEN};

/// No section compresses better than this: what claims to is not one.
const RATIO_MAX: usize = 1 << 12;

/// The compressor that a header names. Err: why the segment cannot be read.
pub(super) fn compressor(header: &Header) -> Result<Compressor, String> {
    let parameters = String::from_utf8_lossy(&header.parameters).into_owned();
    let json: serde_json::Value =
        serde_json::from_slice(&header.parameters).map_err(|_| format!("parameters {parameters}"))?;
    if json.get("encCipher").is_some() {
        return Err("encrypted mutations".to_owned());
    }
    let class = json.get("compressionClass").and_then(|class| class.as_str());
    let class = class.ok_or_else(|| format!("parameters {parameters}"))?;
    Compressor::from_class(class).ok_or_else(|| format!("the compressor {class}"))
}

/// The plain segment that a compressed one stands for. Where a section cannot be read, the rest is bytes that are no section.
pub(super) fn plain(content: &[u8], header: &Header, compressor: Compressor) -> Vec<u8> {
    let mut out = content.get(..header.len as usize).unwrap_or_default().to_vec();
    let mut at = header.len;
    while let Some(next) = format::read_marker(content, header.id, at) {
        let stored = content.get((at + MARKER_LEN) as usize..next as usize).unwrap_or_default();
        let Some(section) = section(stored, compressor) else { break };
        let start = out.len();
        let end = start + MARKER_LEN as usize + section.len();
        if end > COMMITLOG_SEGMENT_SIZE_MAX as usize {
            break;
        }
        out.extend_from_slice(&format::marker(header.id, start as u32, end as u32));
        out.extend_from_slice(&section);
        at = next;
    }
    let rest = content.get(at as usize..).unwrap_or_default();
    if format::zeros(rest) < rest.len() && format::zeros(rest) < MARKER_LEN as usize {
        out.extend_from_slice(&[u8::MAX; MARKER_LEN as usize]);
    }
    out
}

fn section(stored: &[u8], compressor: Compressor) -> Option<Vec<u8>> {
    let mut cursor = Cursor::new(stored);
    let length = cursor.u32().ok()? as usize;
    let compressed = stored.get(4..)?;
    let possible =
        length <= COMMITLOG_SEGMENT_SIZE_MAX as usize && length <= compressed.len().saturating_mul(RATIO_MAX);
    if !possible {
        return None;
    }
    compressor.decompress(compressed, length).ok()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use sstable::CompressionParams;

    use super::super::reader::{Item, SegmentReader};
    use super::*;

    const SEGMENT: &[u8] = include_bytes!("../../testdata/commitlog/CommitLog-8-1795247686228.log");

    fn items(segment: Vec<u8>, header: &Header) -> Vec<Item> {
        SegmentReader::new(Bytes::from(segment), header.id, header.len).collect()
    }

    /// The real segment with its sections compressed, as its writer would have done. A header's length is that of its parameters.
    fn compressed(params: &CompressionParams, header: &Header) -> Vec<u8> {
        let mut out = SEGMENT[..header.len as usize].to_vec();
        let mut at = header.len;
        while let Some(next) = format::read_marker(SEGMENT, header.id, at) {
            let section = &SEGMENT[(at + MARKER_LEN) as usize..next as usize];
            let mut stored = Vec::new();
            params.compress(section, &mut stored).unwrap();
            let start = out.len();
            let end = start + MARKER_LEN as usize + 4 + stored.len();
            out.extend_from_slice(&format::marker(header.id, start as u32, end as u32));
            out.extend_from_slice(&(section.len() as u32).to_be_bytes());
            out.extend_from_slice(&stored);
            at = next;
        }
        out
    }

    #[test]
    fn entries_and_positions_are_those_of_the_plain_segment() {
        let header = format::read_header(SEGMENT).unwrap();
        let expected = items(SEGMENT.to_vec(), &header);
        for class in ["LZ4Compressor", "SnappyCompressor", "DeflateCompressor", "ZstdCompressor"] {
            let map = [("class".to_owned(), class.to_owned())].into();
            let params = CompressionParams::from_schema(&map).unwrap().unwrap();
            let parameters =
                format!("{{\"compressionClass\":\"{class}\",\"compressionParameters\":{{}}}}").into_bytes();
            let named = Header { parameters, ..format::read_header(SEGMENT).unwrap() };
            let found = compressor(&named).unwrap();
            let segment = compressed(&params, &header);
            assert!(segment.len() < SEGMENT.len(), "{class}");
            assert_eq!(items(plain(&segment, &header, found), &header), expected, "{class}");
            // a torn end is something bad that nothing follows; a place where nothing was written is the end
            let torn = &segment[..segment.len() - 3];
            let torn = items(plain(torn, &header, found), &header);
            assert!(matches!(torn.last(), Some(Item::Bad(bad)) if !bad.followed), "{class}");
            let padded = [segment.as_slice(), &[0; 64]].concat();
            assert_eq!(items(plain(&padded, &header, found), &header), expected, "{class}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let with = |parameters: &str| {
            let header = format::read_header(SEGMENT).unwrap();
            compressor(&Header { parameters: parameters.as_bytes().to_vec(), ..header }).unwrap_err()
        };
        assert_eq!(with("{\"encCipher\":\"AES\"}"), "encrypted mutations");
        assert_eq!(with("{\"compressionClass\":\"X\"}"), "the compressor X");
        assert_eq!(with("{\"a\":1}"), "parameters {\"a\":1}");
    }
}
