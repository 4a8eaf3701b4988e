//! The report of a salvage: rows that it gave and rows that are lost.

use bytes::Bytes;
use types::DecoratedKey;

/// Places that are listed; beyond, they are only counted.
pub const LOST_MAX: usize = 10_000;

/// A range of the uncompressed data that is lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lost {
    /// First byte.
    pub from: u64,
    /// Behind the last byte.
    pub to: u64,
    /// Partition keys that are known to be in it, wholly or in part.
    pub keys: Vec<Bytes>,
    /// The defect.
    pub why: String,
}

/// Counts of rows that a salvage gave, and of lost ones.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SalvageReport {
    /// Partitions given, those that are given in part included.
    pub partitions: u64,
    /// Rows given, static ones included.
    pub rows: u64,
    /// Range tombstone markers given.
    pub markers: u64,
    /// Partitions that were set aside because they are out of order; they are given by a later
    /// pass.
    pub out_of_order: u64,
    /// Partitions that were given and of which a part is lost.
    pub partitions_cut: u64,
    /// Partitions that the index names and nothing could be read of.
    pub partitions_lost: u64,
    /// Rows that were left out because they are out of order.
    pub rows_out_of_order: u64,
    /// Bytes of the uncompressed data that are lost.
    pub bytes_lost: u64,
    /// Where; at most [`LOST_MAX`] places.
    pub lost: Vec<Lost>,
    /// Places beyond those listed.
    pub lost_unlisted: u64,
    /// Defects of components other than Data.db, and their consequences.
    pub notes: Vec<String>,
    /// Rows that Statistics.db says there are. None: it cannot be read, or columns were dropped
    /// since, so that rows may come out empty.
    pub rows_expected: Option<u64>,
    /// Partitions that the index says there are.
    pub partitions_expected: Option<u64>,
}

impl SalvageReport {
    /// Nothing is lost.
    pub fn is_whole(&self) -> bool {
        self.bytes_lost == 0
            && self.partitions_cut == 0
            && self.partitions_lost == 0
            && self.rows_out_of_order == 0
            && self.notes.is_empty()
    }

    pub(super) fn lose(&mut self, from: u64, to: u64, partitions: u64, key: Option<&DecoratedKey>, why: &str) {
        self.partitions_lost += partitions;
        self.lose_bytes(from, to, key, why);
    }

    /// Notes lost bytes; where they touch those lost before, the two are one place.
    pub(super) fn lose_bytes(&mut self, from: u64, to: u64, key: Option<&DecoratedKey>, why: &str) {
        self.bytes_lost += to.saturating_sub(from);
        let key = key.map(|key| Bytes::copy_from_slice(&key.key));
        let listed = self.lost.len();
        match self.lost.last_mut().filter(|last| last.to == from && last.why == why) {
            Some(last) => {
                last.to = to;
                last.keys.extend(key.filter(|_| last.keys.len() < LOST_MAX));
            }
            None if listed < LOST_MAX => {
                self.lost.push(Lost { from, to, keys: key.into_iter().collect(), why: why.to_owned() });
            }
            None => self.lost_unlisted += 1,
        }
    }
}
