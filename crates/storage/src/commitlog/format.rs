//! The bytes of a commit log segment, version 8 (Cassandra's `CommitLogDescriptor`,
//! `CommitLogSegment`, `CommitLogFormat`).
//!
//! ```text
//! segment := header section* zeros
//! header  := i32 version, i64 segment id, u16 length, JSON parameters ("{}" = plain),
//!            u32 CRC of these
//!            (CRC over version, low and high half of the id, the length as 4 bytes, JSON)
//! section := marker entry*
//! marker  := i32 offset of the next marker, u32 CRC over low and high half of the id and this
//!            marker's own offset
//! entry   := i32 size, u32 CRC of the size, mutation, u32 CRC of the size and the mutation
//! ```
//!
//! Entries that must all be replayed or none stand behind the head of their group, an entry whose
//! record is `0x01`, a table id that no table has, and the length of the group's entries as u32. A
//! group whose end is torn is cut where its head begins.
//!
//! All integers are big-endian, all offsets count from the start of the file. The marker's CRC does
//! not cover the offset it holds.

use crc32fast::Hasher;
use stdx::Cursor;

/// The version written.
pub(super) const VERSION: i32 = 8;

/// Versions that are read: 7 differs from 8 only in the messaging version of its mutations, whose
/// layout is the same.
pub(super) const VERSIONS_READ: [i32; 2] = [7, 8];

/// Parameters of a plain segment.
pub(super) const PARAMETERS: &[u8] = b"{}";

/// Length of a header with these parameters.
pub(super) const fn header_len(parameters: &[u8]) -> u32 {
    4 + 8 + 2 + parameters.len() as u32 + 4
}

/// Length of a section's marker.
pub(super) const MARKER_LEN: u32 = 8;

/// Bytes that an entry adds to its mutation.
pub(super) const ENTRY_OVERHEAD: u32 = 12;

/// No mutation is smaller; Cassandra refuses smaller entries as garbage.
pub(super) const RECORD_SIZE_MIN: usize = 10;

/// The first bytes of a record that is the head of a group and no mutation. They look like one
/// update of a table that no node has. Readers that do not know groups, Cassandra's among them,
/// pass over it.
const GROUP_HEAD: [u8; 17] = *b"\x01\xffhelenus-group-1";

/// Length of the head of a group: [`GROUP_HEAD`] and the length of the group.
pub(super) const GROUP_HEAD_LEN: usize = GROUP_HEAD.len() + 4;

// readers take the head of a group for a mutation
const _: () = assert!(GROUP_HEAD_LEN >= RECORD_SIZE_MIN);

/// The head of a group whose entries take so many bytes.
pub(super) fn group_head(length: u32) -> [u8; GROUP_HEAD_LEN] {
    let mut head = [0; GROUP_HEAD_LEN];
    let (name, of_length) = head.split_at_mut(GROUP_HEAD.len());
    name.copy_from_slice(&GROUP_HEAD);
    of_length.copy_from_slice(&length.to_be_bytes());
    head
}

/// The length of the group whose head a record is; None: it is a mutation.
pub(super) fn group_length(record: &[u8]) -> Option<u32> {
    let length = record.strip_prefix(&GROUP_HEAD)?;
    Some(u32::from_be_bytes(length.try_into().ok()?))
}

const NAME_PREFIX: &str = "CommitLog-";
const NAME_SUFFIX: &str = ".log";

/// A segment's file name.
pub(super) fn file_name(id: u64) -> String {
    versioned_file_name(VERSION, id)
}

/// The file name of a segment of any version.
pub(super) fn versioned_file_name(version: i32, id: u64) -> String {
    format!("{NAME_PREFIX}{version}-{id}{NAME_SUFFIX}")
}

/// The file name of the index of a segment's captured changes.
pub(super) fn captured_index_name(id: u64) -> String {
    format!("{NAME_PREFIX}{VERSION}-{id}_cdc.idx")
}

/// Version and id in a segment's file name.
pub(super) fn parse_file_name(name: &str) -> Option<(i32, u64)> {
    let (version, id) = name.strip_prefix(NAME_PREFIX)?.strip_suffix(NAME_SUFFIX)?.split_once('-')?;
    Some((version.parse().ok()?, id.parse().ok()?))
}

/// The header of a segment.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub version: i32,
    pub id: u64,
    pub parameters: Vec<u8>,
    /// Offset of the first marker.
    pub len: u32,
}

impl Header {
    /// Whether the segment is neither compressed nor encrypted.
    pub(super) fn is_plain(&self) -> bool {
        self.parameters == PARAMETERS
    }
}

/// The header of a segment with these parameters, which are short.
pub(super) fn header(id: u64, parameters: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(header_len(parameters) as usize);
    bytes.extend_from_slice(&VERSION.to_be_bytes());
    bytes.extend_from_slice(&id.to_be_bytes());
    bytes.extend_from_slice(&(parameters.len() as u16).to_be_bytes());
    bytes.extend_from_slice(parameters);
    bytes.extend_from_slice(&header_crc(VERSION, id, parameters).to_be_bytes());
    bytes
}

/// Reads a header; `None` when it is cut short or its checksum differs.
pub(super) fn read_header(bytes: &[u8]) -> Option<Header> {
    let mut cursor = Cursor::new(bytes);
    let version = cursor.i32().ok()?;
    let id = cursor.u64().ok()?;
    let length = usize::from(cursor.u16().ok()?);
    let parameters = cursor.take(length).ok()?;
    let crc = cursor.u32().ok()?;
    let len = u32::try_from(cursor.position()).ok()?;
    (crc == header_crc(version, id, parameters)).then(|| Header { version, id, parameters: parameters.to_vec(), len })
}

pub(super) fn header_crc(version: i32, id: u64, parameters: &[u8]) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&version.to_be_bytes());
    hasher.update(&id_low_high(id));
    hasher.update(&(parameters.len() as u32).to_be_bytes());
    hasher.update(parameters);
    hasher.finalize()
}

/// The low half of the id before the high one, as the checksums take it.
fn id_low_high(id: u64) -> [u8; 8] {
    id.rotate_left(32).to_be_bytes()
}

/// The marker at `offset`, of a section that ends at `next`.
pub(super) fn marker(id: u64, offset: u32, next: u32) -> [u8; MARKER_LEN as usize] {
    let mut bytes = [0; MARKER_LEN as usize];
    let (to_next, to_crc) = bytes.split_at_mut(4);
    to_next.copy_from_slice(&next.to_be_bytes());
    to_crc.copy_from_slice(&marker_crc(id, offset).to_be_bytes());
    bytes
}

/// The offset of the next marker, which the marker at `offset` names; `None` when its checksum
/// differs or the place is impossible.
pub(super) fn read_marker(segment: &[u8], id: u64, offset: u32) -> Option<u32> {
    let mut cursor = Cursor::new(segment.get(offset as usize..)?);
    let next = cursor.u32().ok()?;
    let crc = cursor.u32().ok()?;
    let possible = next >= offset.checked_add(MARKER_LEN)? && next as usize <= segment.len();
    (possible && crc == marker_crc(id, offset)).then_some(next)
}

pub(super) fn marker_crc(id: u64, offset: u32) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(&id_low_high(id));
    hasher.update(&offset.to_be_bytes());
    hasher.finalize()
}

/// The checksums of an entry, the second only where it is asked for.
pub(super) struct EntryCrc(Hasher);

impl EntryCrc {
    /// The checksum of an entry of this size, begun.
    pub(super) fn of_size(size: u32) -> Self {
        let mut hasher = Hasher::new();
        hasher.update(&size.to_be_bytes());
        EntryCrc(hasher)
    }

    /// The checksum of the size.
    pub(super) fn size_crc(&self) -> u32 {
        self.0.clone().finalize()
    }

    /// The checksum of the size and the mutation.
    pub(super) fn record_crc(mut self, record: &[u8]) -> u32 {
        self.0.update(record);
        self.0.finalize()
    }
}

/// The CRC of an entry's size, and of its size and mutation.
pub(super) fn entry_crcs(size: u32, record: &[u8]) -> (u32, u32) {
    let entry = EntryCrc::of_size(size);
    (entry.size_crc(), entry.record_crc(record))
}

/// The number of zeros at the front. Segments are mostly zeros, so they are compared a page at a
/// time.
pub(super) fn zeros(bytes: &[u8]) -> usize {
    const PAGE: [u8; 4096] = [0; 4096];
    let pages = bytes.chunks(PAGE.len()).take_while(|page| Some(*page) == PAGE.get(..page.len())).count();
    let start = (pages * PAGE.len()).min(bytes.len());
    let rest = bytes.get(start..).unwrap_or_default();
    start + rest.iter().position(|byte| *byte != 0).unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_headers_come_back() {
        assert_eq!(file_name(1_795_247_686_228), "CommitLog-8-1795247686228.log");
        assert_eq!(parse_file_name("CommitLog-7-12.log"), Some((7, 12)));
        for name in ["CommitLog-8-12.log.tmp", "CommitLog-8-12_cdc.idx", "CommitLog-12.log", "x", "CommitLog-8-y.log"] {
            assert_eq!(parse_file_name(name), None, "{name}");
        }
        let bytes = header(7, PARAMETERS);
        assert_eq!(bytes.len(), header_len(PARAMETERS) as usize);
        let read = read_header(&bytes).expect("valid");
        assert_eq!((read.version, read.id, read.len), (VERSION, 7, 20));
        for bit in 0..bytes.len() * 8 {
            let mut broken = bytes.clone();
            broken[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read_header(&broken), None, "bit {bit}");
        }
    }
}
