//! Compressed segments (`commitlog_compression`): read as the plain segments that they stand for.
//!
//! The parameters in the header name the compressor. After each section's marker comes an i32, the
//! length of the section without compression, then its compressed bytes up to the next marker.
//! Positions in the log count as if nothing were compressed: each section begins 8 bytes (a marker)
//! behind the end of the one before. So a plain segment is put together here, markers at their
//! logical places, and read as any other. Agrees with `CommitLogSegmentReader.CompressedSegmenter`
//! and `CommitLogDescriptor`.
//!
//! Not here: writing them, which is `form`'s.

use sstable::Compressor;
use stdx::Cursor;

use super::COMMITLOG_SEGMENT_SIZE_MAX;
use super::format::{self, Header, MARKER_LEN};

/// Largest factor by which a section is compressed. A section that claims a larger one is damaged.
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

/// The pairs of offsets at which each section begins in the plain segment and in the file. The
/// last pair is the place behind the last section that could be read.
pub(super) struct Places(Vec<(u32, u32)>);

impl Places {
    /// The offset in the file of the section that holds this offset of the plain segment, and of
    /// the section behind it.
    pub(super) fn stored(&self, offset: u32) -> (u32, u32) {
        let after = self.0.partition_point(|(plain, _)| *plain <= offset);
        let place = |index: usize| self.0.get(index).or(self.0.last()).map_or(0, |(_, stored)| *stored);
        (place(after.saturating_sub(1)), place(after))
    }
}

/// Puts together the plain segment that a compressed one stands for. An unreadable section in
/// front of a readable one becomes garbage of the length that it names, so that later positions
/// are right. An unreadable section at the end becomes 8 bytes of garbage, a torn tail.
pub(super) fn unpack(content: &[u8], header: &Header, compressor: Compressor) -> (Vec<u8>, Places) {
    let mut out = content.get(..header.len as usize).unwrap_or_default().to_vec();
    let mut places = Vec::new();
    let mut at = header.len;
    loop {
        places.push((out.len() as u32, at));
        if let Some((section, next)) = section_at(content, header.id, at, compressor)
            && put_section(&mut out, header.id, &section)
        {
            at = next;
            continue;
        }
        let rest = content.get(at as usize..).unwrap_or_default();
        if format::zeros(rest) == rest.len() {
            break;
        }
        let Some(found) = find_section(content, header.id, at + 1, compressor) else {
            let is_a_marker_cut_short = format::zeros(rest) >= MARKER_LEN as usize;
            let garbage = if is_a_marker_cut_short { 0 } else { MARKER_LEN as usize };
            out.resize(out.len() + garbage, u8::MAX);
            break;
        };
        out.resize(out.len() + MARKER_LEN as usize + named_length(content, header.id, at, out.len()), u8::MAX);
        at = found;
    }
    (out, Places(places))
}

/// The section whose marker is at `at`, and the offset of the next marker.
fn section_at(content: &[u8], id: u64, at: u32, compressor: Compressor) -> Option<(Vec<u8>, u32)> {
    let next = format::read_marker(content, id, at)?;
    let stored = content.get((at + MARKER_LEN) as usize..next as usize)?;
    Some((section(stored, compressor)?, next))
}

fn put_section(out: &mut Vec<u8>, id: u64, section: &[u8]) -> bool {
    let start = out.len();
    let end = start + MARKER_LEN as usize + section.len();
    if end > COMMITLOG_SEGMENT_SIZE_MAX as usize {
        return false;
    }
    out.extend_from_slice(&format::marker(id, start as u32, end as u32));
    out.extend_from_slice(section);
    true
}

/// The first section at or behind `from` that can be read. Zeros are passed by, less three that may
/// belong to a marker.
fn find_section(content: &[u8], id: u64, from: u32, compressor: Compressor) -> Option<u32> {
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    let mut at = from;
    while at < length {
        let rest = content.get(at as usize..)?;
        let zeros = Some(format::zeros(rest)).filter(|zeros| *zeros < rest.len())?;
        at = at.max((at + u32::try_from(zeros).ok()?).saturating_sub(3));
        if section_at(content, id, at, compressor).is_some() {
            return Some(at);
        }
        at += 1;
    }
    None
}

/// The plain length that an unreadable section names, if that is possible in a segment that has
/// `before` bytes already.
fn named_length(content: &[u8], id: u64, at: u32, before: usize) -> usize {
    let named = format::read_marker(content, id, at)
        .and_then(|next| content.get((at + MARKER_LEN) as usize..next as usize))
        .and_then(|stored| Cursor::new(stored).u32().ok().filter(|length| is_possible(*length as usize, stored.len())));
    let named = named.map_or(0, |length| length as usize);
    if before + named + MARKER_LEN as usize > COMMITLOG_SEGMENT_SIZE_MAX as usize { 0 } else { named }
}

fn is_possible(length: usize, stored: usize) -> bool {
    length <= COMMITLOG_SEGMENT_SIZE_MAX as usize && length <= stored.saturating_mul(RATIO_MAX)
}

fn section(stored: &[u8], compressor: Compressor) -> Option<Vec<u8>> {
    let mut cursor = Cursor::new(stored);
    let length = cursor.u32().ok()? as usize;
    let compressed = stored.get(4..)?;
    if length == 0 {
        // the end of a full segment of Cassandra: Deflate stores nothing at all there
        return Some(Vec::new());
    }
    is_possible(length, compressed.len()).then(|| compressor.decompress(compressed, length).ok()).flatten()
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

    /// The real segment with its sections compressed, as its writer would have done. A header's
    /// length is that of its parameters.
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
            assert_eq!(items(unpack(&segment, &header, found).0, &header), expected, "{class}");
            // a torn end is something bad that nothing follows; a place where nothing was written
            // is the end
            let torn = &segment[..segment.len() - 3];
            let torn = items(unpack(torn, &header, found).0, &header);
            assert!(matches!(torn.last(), Some(Item::Bad(bad)) if !bad.followed), "{class}");
            let padded = [segment.as_slice(), &[0; 64]].concat();
            assert_eq!(items(unpack(&padded, &header, found).0, &header), expected, "{class}");
        }
    }

    #[test]
    fn damage_in_front_of_a_section_is_no_torn_tail() {
        let header = format::read_header(SEGMENT).unwrap();
        let params = CompressionParams::lz4();
        let segment = compressed(&params, &header);
        let expected = items(SEGMENT.to_vec(), &header);
        let first = format::read_marker(&segment, header.id, header.len).unwrap();
        let second = format::read_marker(&segment, header.id, first).unwrap();
        // in the marker, in its offset, in the plain length, in the compressed bytes
        for at in [first + 5, first + 3, first + 9, first + 40] {
            let mut broken = segment.clone();
            broken[at as usize] ^= 4;
            let read = items(unpack(&broken, &header, params.compressor).0, &header);
            assert!(read.iter().any(|item| matches!(item, Item::Bad(bad) if bad.followed)), "{at}");
            let is_invented = |item: &Item| matches!(item, Item::Entry(..)) && !expected.contains(item);
            if at == first + 40 {
                assert!(!read.iter().any(is_invented) && read.last() == expected.last(), "{at}");
            }
        }
        let (plain, places) = unpack(&segment[..second as usize + 20], &header, params.compressor);
        let end = plain.len() as u32 - MARKER_LEN;
        assert_eq!(places.stored(end).0, second, "what is to be cut");
        assert_eq!(places.stored(end - 1), (first, second));
    }

    #[test]
    fn sections_of_nothing_are_passed() {
        let header = format::read_header(SEGMENT).unwrap();
        let params = CompressionParams::from_schema(&[("class".to_owned(), "DeflateCompressor".to_owned())].into());
        let mut segment = compressed(&params.unwrap().unwrap(), &header);
        let end = segment.len() as u32;
        segment.extend_from_slice(&format::marker(header.id, end, end + 12));
        segment.extend_from_slice(&[0; 4]);
        let read = items(unpack(&segment, &header, Compressor::Deflate).0, &header);
        assert_eq!(read, items(SEGMENT.to_vec(), &header));
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
