//! Records on their way into the log, already in the form of its entries: sizes and checksums are
//! computed before any lock is taken, and what is large is handed on, not copied.

use super::format::{self, ENTRY_OVERHEAD, RECORD_SIZE_MIN};

/// Bytes before a record: its size and the checksum of that.
const HEAD: usize = 8;

/// Records that stand side by side in the log.
#[derive(Debug, Default)]
pub struct Entries {
    pub(super) bytes: Vec<u8>,
    pub(super) count: u64,
    /// Bytes of the largest record.
    pub(super) largest: usize,
}

impl Entries {
    /// Room for so many records of so many bytes together.
    pub fn with_capacity(records: usize, bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes + records * ENTRY_OVERHEAD as usize), count: 0, largest: 0 }
    }

    /// Another record: what `write` appends.
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

    /// No record was put here, or all are in the log.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}
