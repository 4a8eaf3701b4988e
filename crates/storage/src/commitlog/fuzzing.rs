//! Reading of segments as a function over any bytes, for fuzz targets and the everyday tests over
//! seeds and mutations of them.

use std::path::Path;

use bytes::Bytes;
use env::sim::{DATA, Sim};

use super::format::{self, MARKER_LEN};
use super::reader::{Item, SegmentReader};
use super::replay::Replay;
use super::{LogError, ReplayPolicy};

/// A segment: as it is, and with the checksums of header, markers and entries made right where
/// their places can be seen. Records must come in order, and a second reading after the tail was
/// settled must give the same records.
pub fn segment(data: &[u8]) {
    let mut sealed = data.to_vec();
    seal(&mut sealed);
    for bytes in [data, &sealed] {
        read(bytes);
        replay(bytes);
    }
    if let Ok(name) = std::str::from_utf8(data) {
        let _ = format::parse_file_name(name);
    }
}

fn read(bytes: &[u8]) {
    let Some(header) = format::read_header(bytes) else { return };
    let mut last = 0;
    for item in SegmentReader::new(Bytes::copy_from_slice(bytes), header.id, header.len) {
        match item {
            Item::Entry(position, record) => {
                assert!(position.offset > last && position.offset as usize <= bytes.len());
                assert!(record.len() < position.offset as usize);
                last = position.offset;
            }
            Item::Unwanted(_) => unreachable!("every record is wanted"),
            Item::Bad(bad) => assert!(bad.offset as usize <= bytes.len()),
        }
    }
}

fn replay(bytes: &[u8]) {
    let id = format::read_header(bytes).map_or(7, |header| header.id);
    for policy in [ReplayPolicy::Stop, ReplayPolicy::Ignore] {
        let sim = Sim::new(1);
        let env = sim.env();
        let path = Path::new(DATA).join(format::file_name(id));
        let written = env.disk.create(&path).and_then(|mut file| file.write_all(bytes));
        written.expect("the simulated disk takes a file");
        let Ok(mut replay) = Replay::open(&env, Path::new(DATA), policy) else { continue };
        let first: Vec<_> = replay.by_ref().collect();
        replay.rewind();
        let second: Vec<_> = replay.collect();
        let count = |items: &[Result<_, LogError>]| items.iter().filter(|item| item.is_ok()).count();
        assert_eq!(count(&first), count(&second));
    }
}

/// Makes the checksums right of all parts whose places can be found from the front.
pub fn seal(bytes: &mut [u8]) {
    let _ = seal_sections(bytes);
}

fn put(bytes: &mut [u8], at: usize, checksum: u32) -> Option<()> {
    bytes.get_mut(at..at.checked_add(4)?)?.copy_from_slice(&checksum.to_be_bytes());
    Some(())
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

fn seal_sections(bytes: &mut [u8]) -> Option<()> {
    let version = u32_at(bytes, 0)? as i32;
    let id = u64::from(u32_at(bytes, 4)?) << 32 | u64::from(u32_at(bytes, 8)?);
    let length = usize::from(u16::from_be_bytes(*bytes.get(12..)?.first_chunk()?));
    let parameters = bytes.get(14..14 + length)?.to_vec();
    put(bytes, 14 + length, format::header_crc(version, id, &parameters))?;
    let mut at = 14 + length + 4;
    loop {
        let next = u32_at(bytes, at)? as usize;
        if next < at + MARKER_LEN as usize || next > bytes.len() {
            return None;
        }
        put(bytes, at + 4, format::marker_crc(id, u32::try_from(at).ok()?))?;
        seal_entries(bytes, at + MARKER_LEN as usize, next);
        at = next;
    }
}

fn seal_entries(bytes: &mut [u8], mut at: usize, end: usize) -> Option<()> {
    loop {
        let size = u32_at(bytes.get(..end)?, at)?;
        let record = bytes.get(at + 8..end)?.get(..size as usize)?;
        let (of_size, of_record) = format::entry_crcs(size, record);
        let after = at + 8 + record.len();
        put(bytes, at + 4, of_size)?;
        put(bytes.get_mut(..end)?, after, of_record)?;
        at = after + 4;
    }
}

/// The records of a segment, for seeds.
pub fn records(bytes: &[u8]) -> Vec<Bytes> {
    let Some(header) = format::read_header(bytes) else { return Vec::new() };
    let items = SegmentReader::new(Bytes::copy_from_slice(bytes), header.id, header.len);
    items.filter_map(|item| if let Item::Entry(_, record) = item { Some(record) } else { None }).collect()
}
