//! A segment written by Cassandra 5.0.8: read, and written again byte for byte.

use bytes::Bytes;

use super::super::Entries;
use super::super::format::{self, ENTRY_OVERHEAD};
use super::super::reader::{Item, SegmentReader};

const ID: u64 = 1_795_247_686_228;
const SEGMENT: &[u8] = include_bytes!("../../../testdata/commitlog/CommitLog-8-1795247686228.log");

fn entries(segment: &'static [u8]) -> Vec<Item> {
    let header = format::read_header(segment).expect("a header");
    assert!(header.is_plain() && header.id == ID && header.version == 8);
    SegmentReader::new(Bytes::from_static(segment), ID, header.len).collect()
}

#[test]
fn every_entry_is_read() {
    let entries = entries(SEGMENT);
    let of_table = |last: u8| {
        let mut id = [0x6b, 0x0f, 0x6a, 0x3e, 0, 0, 0x40, 0, 0x80, 0, 0, 0, 0, 0, 0, 0];
        id[15] = last;
        let is_of_table = |item: &&Item| matches!(item, Item::Entry(_, record) if record.get(1..17) == Some(&id[..]));
        entries.iter().filter(is_of_table).count()
    };
    assert_eq!(of_table(0xc1) + of_table(0xc2), 28);
    assert!(entries.iter().all(|item| matches!(item, Item::Entry(..))));
    let Some(Item::Entry(last, _)) = entries.last() else { panic!("entries") };
    assert_eq!(last.offset as usize, SEGMENT.len() - 8);
}

#[test]
fn version_7_is_read_too() {
    let segment = include_bytes!("../../../testdata/commitlog/CommitLog-7-1795247552287.log");
    let header = format::read_header(segment).expect("a header");
    assert_eq!((header.version, header.id, header.is_plain()), (7, 1_795_247_552_287, true));
    let items: Vec<Item> = SegmentReader::new(Bytes::from_static(segment), header.id, header.len).collect();
    assert_eq!(items.len(), 5);
    assert!(items.iter().all(|item| matches!(item, Item::Entry(..))));
}

#[test]
fn the_same_bytes_are_written() {
    let mut written = format::header(ID, b"{}");
    let mut items = entries(SEGMENT).into_iter().peekable();
    while written.len() + 8 < SEGMENT.len() {
        let start = u32::try_from(written.len()).expect("small");
        let next = format::read_marker(SEGMENT, ID, start).expect("a marker");
        written.extend_from_slice(&format::marker(ID, start, next));
        while let Some(Item::Entry(_, record)) =
            items.next_if(|item| matches!(item, Item::Entry(at, _) if at.offset <= next))
        {
            let mut entry = Entries::default();
            entry.push(|out| out.extend_from_slice(&record));
            written.extend_from_slice(&entry.bytes);
        }
        assert_eq!(written.len(), next as usize);
    }
    written.extend_from_slice(&[0; 8]);
    assert!(written == SEGMENT, "byte for byte");
    assert_eq!(ENTRY_OVERHEAD, 12);
}

#[test]
fn no_flipped_bit_passes_unnoticed() {
    // A whole segment takes a while; its first sections show all kinds of bytes.
    let clean = entries(SEGMENT);
    for bit in (20 * 8..1200 * 8).step_by(3) {
        let mut broken = SEGMENT.to_vec();
        broken[bit / 8] ^= 1 << (bit % 8);
        let read: Vec<Item> = SegmentReader::new(Bytes::from(broken), ID, 20).collect();
        let is_invented = |item: &Item| matches!(item, Item::Entry(..)) && !clean.contains(item);
        assert!(!read.iter().any(is_invented), "bit {bit}");
        assert!(read.iter().any(|item| matches!(item, Item::Bad(bad) if bad.followed)), "bit {bit}");
    }
}
