//! Records on their way into the log, already in the form of its entries: sizes and checksums are
//! computed before any lock is taken, and large records are handed on, not copied.

use bytes::Bytes;

use super::format::{self, ENTRY_OVERHEAD, RECORD_SIZE_MIN};
use super::pending::{MOVED_BYTES_MIN, Piece};

/// Bytes before a record: its size and the checksum of that.
const HEAD: usize = 8;

/// Records that stand side by side in the log.
#[derive(Debug, Default)]
pub struct Entries {
    /// Pieces that stand before `bytes`: large records that have other holders too, and the bytes
    /// between them.
    pub(super) pieces: Vec<Piece>,
    pub(super) bytes: Vec<u8>,
    /// Bytes of all pieces.
    pieces_len: usize,
    pub(super) count: u64,
    /// Bytes of the largest record.
    pub(super) largest: usize,
}

impl Entries {
    /// An empty list with room for so many records of so many bytes together.
    pub fn with_capacity(records: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes + records * ENTRY_OVERHEAD as usize), ..Self::default() }
    }

    /// Bytes of all entries.
    pub(super) fn len(&self) -> usize {
        self.pieces_len + self.bytes.len()
    }

    /// Adds a record: the bytes that `write` appends.
    ///
    /// # Panics
    /// When that is shorter than any mutation.
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; HEAD]);
        write(&mut self.bytes);
        let (head, record) = self.bytes.split_at_mut(start + HEAD);
        assert!(record.len() >= RECORD_SIZE_MIN, "a mutation is never smaller");
        // what is longer than 4 GiB is refused by its length, whatever its entry says
        let size = u32::try_from(record.len()).unwrap_or(u32::MAX);
        let (of_size, of_both) = format::entry_crcs(size, record);
        self.largest = self.largest.max(record.len());
        let (size_place, crc_place) = head[start..].split_at_mut(4);
        size_place.copy_from_slice(&size.to_be_bytes());
        crc_place.copy_from_slice(&of_size.to_be_bytes());
        self.bytes.extend_from_slice(&of_both.to_be_bytes());
        self.count += 1;
    }

    /// Adds records that are one mutation together: where a mutation may be too large they count
    /// as one.
    ///
    /// # Panics
    /// When a record is shorter than any mutation.
    pub fn push_parts<W: FnOnce(&mut Vec<u8>)>(&mut self, parts: impl IntoIterator<Item = W>) {
        let (start, before) = (self.bytes.len(), self.count);
        parts.into_iter().for_each(|write| self.push(write));
        let overhead = (self.count - before) as usize * ENTRY_OVERHEAD as usize;
        self.largest = self.largest.max(self.bytes.len() - start - overhead);
    }

    /// Makes room for the head of a group, which [`Entries::end_group`] completes. Called before
    /// the first record.
    pub fn begin_group(&mut self) {
        assert!(self.is_empty(), "the head of a group is its first record");
        self.push(|out| out.extend_from_slice(&format::group_head(0)));
    }

    /// Makes one group of the records behind the head: a crash leaves all of them or none.
    pub fn end_group(&mut self) {
        const HEAD_ENTRY: usize = format::GROUP_HEAD_LEN + ENTRY_OVERHEAD as usize;
        assert!(self.pieces.is_empty(), "records of a group are encoded here, so none is shared");
        assert!(self.count > 1, "a group has records behind its head");
        let behind = self.bytes.split_off(HEAD_ENTRY);
        let (count, largest) = (self.count, self.largest);
        self.bytes.clear();
        // what is longer than 4 GiB fits into no segment and is refused by its length
        let length = u32::try_from(behind.len()).unwrap_or(u32::MAX);
        self.push(|out| out.extend_from_slice(&format::group_head(length)));
        assert_eq!(self.bytes.len(), HEAD_ENTRY, "the head of a group has one length");
        self.bytes.extend_from_slice(&behind);
        (self.count, self.largest) = (count, largest.max(self.largest));
    }

    /// The entries of records that are encoded already. Large ones are shared with their other
    /// holders until they are written.
    ///
    /// # Panics
    /// When a record is shorter than any mutation.
    pub fn of_encoded(records: &[Bytes]) -> Self {
        let copied = records.iter().map(Bytes::len).filter(|size| *size < MOVED_BYTES_MIN).sum();
        let mut entries = Self::with_capacity(records.len(), copied);
        records.iter().for_each(|record| entries.push_encoded(record));
        entries
    }

    fn push_encoded(&mut self, record: &Bytes) {
        if record.len() < MOVED_BYTES_MIN {
            return self.push(|out| out.extend_from_slice(record));
        }
        let size = u32::try_from(record.len()).unwrap_or(u32::MAX);
        let (of_size, of_both) = format::entry_crcs(size, record);
        self.bytes.extend_from_slice(&size.to_be_bytes());
        self.bytes.extend_from_slice(&of_size.to_be_bytes());
        for piece in [Piece::Own(std::mem::take(&mut self.bytes)), Piece::Shared(record.clone())] {
            self.pieces_len += piece.len();
            self.pieces.push(piece);
        }
        self.bytes.extend_from_slice(&of_both.to_be_bytes());
        self.largest = self.largest.max(record.len());
        self.count += 1;
    }

    /// Whether no record was added, or all are in the log.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A mutation of several tables is as large as before it had a record for each.
    #[test]
    fn records_of_one_mutation_count_as_one() {
        let mut entries = Entries::default();
        entries.begin_group();
        entries.push_parts([40, 50].map(|size| move |out: &mut Vec<u8>| out.extend_from_slice(&vec![1; size])));
        entries.end_group();
        assert_eq!((entries.largest, entries.count), (90, 3), "the head of the group is a record");
    }

    #[test]
    fn records_that_are_encoded_already_make_the_same_entries() {
        let sizes = [RECORD_SIZE_MIN, MOVED_BYTES_MIN - 1, MOVED_BYTES_MIN, 40, 3 * MOVED_BYTES_MIN, MOVED_BYTES_MIN];
        let records: Vec<Bytes> = sizes.iter().zip(1..).map(|(size, byte)| Bytes::from(vec![byte; *size])).collect();
        for count in 0..=records.len() {
            let shared = Entries::of_encoded(&records[..count]);
            let mut plain = Entries::default();
            records[..count].iter().for_each(|record| plain.push(|out| out.extend_from_slice(record)));
            let mut bytes: Vec<u8> = shared.pieces.iter().flat_map(|piece| piece.to_vec()).collect();
            bytes.extend_from_slice(&shared.bytes);
            assert_eq!(bytes, plain.bytes, "{count} records");
            assert_eq!([shared.len(), shared.largest], [plain.len(), plain.largest]);
            assert_eq!(shared.count, plain.count);
        }
    }
}
