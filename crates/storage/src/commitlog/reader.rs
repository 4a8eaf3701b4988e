//! Reading a segment: its entries, and its unreadable parts.
//!
//! After a crash the last segment may end in a section that was not synced: any subset of its
//! sectors is on disk. Everything before was synced, because a section is written only after the
//! one before it was. So what cannot be read is
//! - a *torn tail* when no section begins behind it: it was never acknowledged as durable, and is
//!   cut;
//! - *corruption* when a section does begin behind it: acknowledged data is damaged.
//!
//! "A section begins behind it" is decided by looking for a marker with a valid checksum that is
//! followed by an entry with a valid size checksum: together 64 bits that garbage does not have.
//!
//! Zeros end a segment. Zeros in front of a section, as a lost sector leaves them, are corruption
//! too; Cassandra's reader takes them for the end.

use std::cell::Cell;

use bytes::Bytes;
use stdx::Cursor;

use super::LogPosition;
use super::format::{self, ENTRY_OVERHEAD, MARKER_LEN, RECORD_SIZE_MIN};

/// The next item of a segment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A mutation and where its entry ends.
    Entry(LogPosition, Bytes),
    /// The end of the entry of a mutation that is not wanted; its checksum was not looked at.
    Unwanted(LogPosition),
    /// Unreadable bytes.
    Bad(Bad),
}

/// Unreadable bytes of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bad {
    pub offset: u32,
    pub reason: &'static str,
    /// Whether a section follows. If so this is corruption; otherwise it may be a torn tail.
    pub followed: bool,
}

/// Reads a segment from front to back. Reading may go on after [`Item::Bad`]: with the next entry
/// where its place is known, else with the next section.
pub(super) struct SegmentReader {
    bytes: Bytes,
    id: u64,
    /// The offset of the marker behind the present section; `None` at the end.
    marker_at: Option<u32>,
    /// The offsets between which the rest of the present section lies; None: no section is being
    /// read.
    section: Option<(u32, u32)>,
    last: (u32, u32),
    /// The offset from which a section was last looked for, and the offset of the one that was
    /// found; so a segment with many bad entries is not searched once for each of them.
    searched: Cell<Option<(u32, Option<u32>)>>,
}

impl SegmentReader {
    /// A reader of a segment's content, whose header was read.
    pub(super) fn new(bytes: Bytes, id: u64, header_len: u32) -> Self {
        SegmentReader {
            bytes,
            id,
            marker_at: Some(header_len),
            section: None,
            last: (header_len, header_len),
            searched: Cell::new(None),
        }
    }

    /// Whether nothing was ever written behind the header.
    pub(super) fn is_blank(&self) -> bool {
        let rest = self.bytes.get(self.last.0 as usize..).unwrap_or_default();
        format::zeros(rest) == rest.len()
    }

    /// The offsets of the section that was read last: its begin, with its marker, and its end.
    pub(super) fn last_section(&self) -> (u32, u32) {
        self.last
    }

    /// The segment's content.
    pub(super) fn content(&self) -> &Bytes {
        &self.bytes
    }

    /// The segment's content, taken out of a reader that is not used any more.
    pub(super) fn into_content(self) -> Bytes {
        self.bytes
    }

    /// The next item, of mutations only the wanted ones; the others are passed by their sizes.
    pub(super) fn next_wanted(&mut self, wanted: &dyn Fn(&[u8]) -> bool) -> Option<Item> {
        loop {
            let item = match self.section {
                Some((at, end)) if at < end => {
                    let item = self.next_entry(at, end, wanted);
                    if item.is_none() {
                        self.section = None;
                    }
                    item
                }
                _ => {
                    self.section = None;
                    self.marker_at?;
                    let item = self.next_section();
                    if item.is_none() && self.section.is_none() {
                        return None;
                    }
                    item
                }
            };
            if item.is_some() {
                return item;
            }
        }
    }

    fn next_section(&mut self) -> Option<Item> {
        let at = self.marker_at?;
        if let Some(next) = format::read_marker(&self.bytes, self.id, at) {
            self.section = Some((at + MARKER_LEN, next));
            self.last = (at, next);
            self.marker_at = Some(next);
            return None;
        }
        self.marker_at = self.find_section(at);
        let ends_here = self.marker_at.is_none() && self.has_no_marker(at);
        (!ends_here).then(|| Item::Bad(self.bad(at, "invalid section marker")))
    }

    fn next_entry(&mut self, at: u32, end: u32, wanted: &dyn Fn(&[u8]) -> bool) -> Option<Item> {
        let section = self.bytes.get(at as usize..end as usize)?;
        let mut cursor = Cursor::new(section);
        // Fewer than 4 bytes cannot begin an entry: the section is over.
        let size = cursor.u32().ok()?;
        if size == 0 {
            return self.zeros_in_section(at, end);
        }
        let (Ok(size_crc), Ok(record)) = (cursor.u32(), cursor.take(size as usize)) else {
            return Some(self.skip_to_section(at, "an entry reaches beyond its section"));
        };
        let Ok(record_crc) = cursor.u32() else {
            return Some(self.skip_to_section(at, "an entry reaches beyond its section"));
        };
        let entry = format::EntryCrc::of_size(size);
        if record.len() < RECORD_SIZE_MIN || size_crc != entry.size_crc() {
            return Some(self.skip_to_section(at, "an entry's size does not match its checksum"));
        }
        let entry_end = at + size + ENTRY_OVERHEAD;
        if let Some(length) = format::group_length(record) {
            let is_whole = record_crc == entry.record_crc(record) && self.is_group_whole(entry_end, length, end);
            return match is_whole {
                true => self.next_entry(entry_end, end, wanted),
                false => Some(self.skip_to_section(at, "a group of records is not whole")),
            };
        }
        self.section = Some((entry_end, end));
        let position = LogPosition { segment: self.id, offset: entry_end };
        if !wanted(record) {
            return Some(Item::Unwanted(position));
        }
        if record_crc != entry.record_crc(record) {
            return Some(Item::Bad(self.bad(at, "a mutation does not match its checksum")));
        }
        Some(Item::Entry(position, self.bytes.slice_ref(record)))
    }

    /// Whether the entries of a group are all there, and match their checksums.
    fn is_group_whole(&self, start: u32, length: u32, end: u32) -> bool {
        let Some(group_end) = start.checked_add(length).filter(|group_end| *group_end <= end && length > 0) else {
            return false;
        };
        let Some(entries) = self.bytes.get(start as usize..group_end as usize) else { return false };
        let mut cursor = Cursor::new(entries);
        while !cursor.is_empty() {
            let (Ok(size), Ok(size_crc)) = (cursor.u32(), cursor.u32()) else { return false };
            let entry = format::EntryCrc::of_size(size);
            let (Ok(record), Ok(record_crc)) = (cursor.take(size as usize), cursor.u32()) else { return false };
            let is_sound = record.len() >= RECORD_SIZE_MIN && format::group_length(record).is_none();
            if !is_sound || size_crc != entry.size_crc() || record_crc != entry.record_crc(record) {
                return false;
            }
        }
        true
    }

    /// Zeros end the last section of a segment, if nothing follows them.
    fn zeros_in_section(&mut self, at: u32, end: u32) -> Option<Item> {
        let section = self.bytes.get(at as usize..end as usize)?;
        let only_zeros = format::zeros(section) == section.len();
        if only_zeros && self.find_section(at).is_none() {
            self.marker_at = None;
            return None;
        }
        Some(self.skip_to_section(at, "zeros within a section"))
    }

    fn skip_to_section(&mut self, at: u32, reason: &'static str) -> Item {
        self.marker_at = self.find_section(at);
        self.section = None;
        Item::Bad(self.bad(at, reason))
    }

    fn bad(&self, offset: u32, reason: &'static str) -> Bad {
        Bad { offset, reason, followed: self.find_section(offset).is_some() }
    }

    /// Whether the place of a marker holds zeros, or is too close to the end for one.
    fn has_no_marker(&self, at: u32) -> bool {
        let rest = self.bytes.get(at as usize..).unwrap_or_default();
        rest.iter().take(MARKER_LEN as usize).all(|byte| *byte == 0) || rest.len() < MARKER_LEN as usize
    }

    /// The first section that begins at or behind `from`.
    fn find_section(&self, from: u32) -> Option<u32> {
        if let Some((searched_from, found)) = self.searched.get()
            && searched_from <= from
            && found.is_none_or(|found| from <= found)
        {
            return found;
        }
        let found = self.search_section(from);
        self.searched.set(Some((from, found)));
        found
    }

    fn search_section(&self, from: u32) -> Option<u32> {
        let begins = |at: u32| {
            let next = format::read_marker(&self.bytes, self.id, at)?;
            let first = self.bytes.get((at + MARKER_LEN) as usize..next as usize)?;
            let mut cursor = Cursor::new(first);
            let size = cursor.u32().ok()?;
            (cursor.u32().ok()? == format::entry_crcs(size, &[]).0).then_some(at)
        };
        let length = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        let mut at = from;
        while at < length {
            let rest = self.bytes.get(at as usize..)?;
            let zeros = Some(format::zeros(rest)).filter(|zeros| *zeros < rest.len())?;
            // A marker's first byte may itself be zero: step back over as many as it may have.
            let candidate = at.max((at + u32::try_from(zeros).ok()?).saturating_sub(3));
            for at in candidate..(candidate + 4).min(length) {
                if let Some(found) = begins(at) {
                    return Some(found);
                }
            }
            at = candidate + 4;
        }
        None
    }
}

impl Iterator for SegmentReader {
    type Item = Item;

    fn next(&mut self) -> Option<Item> {
        self.next_wanted(&|_| true)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Entries;
    use super::*;

    /// A segment of a record, a group of three and a record.
    fn segment() -> (Vec<u8>, [usize; 2]) {
        let (mut alone, mut group) = (Entries::default(), Entries::default());
        alone.push(|out| out.extend_from_slice(&[1; 30]));
        group.begin_group();
        for number in 2..5 {
            group.push(|out| out.extend_from_slice(&[number; 40]));
        }
        group.end_group();
        let mut bytes = format::header(7, format::PARAMETERS);
        let at = bytes.len() as u32;
        let group_at = at as usize + MARKER_LEN as usize + alone.bytes.len();
        let end = group_at + group.bytes.len() + alone.bytes.len();
        bytes.extend_from_slice(&format::marker(7, at, end as u32));
        for entries in [&alone, &group, &alone] {
            bytes.extend_from_slice(&entries.bytes);
        }
        (bytes, [group_at, group_at + group.bytes.len()])
    }

    fn records(bytes: Vec<u8>) -> (Vec<u8>, Option<u32>) {
        let header = format::header_len(format::PARAMETERS);
        let (mut found, mut bad) = (Vec::new(), None);
        for item in SegmentReader::new(Bytes::from(bytes), 7, header) {
            match item {
                Item::Entry(_, record) => found.push(record[0]),
                Item::Unwanted(_) => {}
                Item::Bad(Bad { offset, followed, .. }) => {
                    assert!(!followed);
                    bad = Some(offset);
                    // the tail is cut there
                    break;
                }
            }
        }
        (found, bad)
    }

    #[test]
    fn a_group_is_read_whole_or_not_at_all() {
        let (bytes, [group, behind]) = segment();
        assert_eq!(records(bytes.clone()), (vec![1, 2, 3, 4, 1], None));
        for cut in group + 1..behind {
            let mut torn = bytes.clone();
            torn[cut..].fill(0);
            // a size begins with zeros: as if nothing had been written
            let bad = (cut > group + 3).then_some(group as u32);
            assert_eq!(records(torn), (vec![1], bad), "torn at {cut}");
            let mut damaged = bytes.clone();
            damaged[cut] ^= 0x10;
            let (found, bad) = records(damaged);
            assert_eq!((&found[..1], bad.is_some()), (&[1][..], true), "damaged at {cut}");
            assert!(!found[1..].iter().any(|record| (2..5).contains(record)), "damaged at {cut}: {found:?}");
        }
    }
}
