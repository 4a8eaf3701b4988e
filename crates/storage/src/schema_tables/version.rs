//! The schema version: the digest by which nodes of a ring compare their schemas.
//!
//! A name-based UUID of the MD5 of all live rows of the schema tables, timestamps included. Nodes
//! agree only if they store each other's rows as they are. Agrees to the byte with
//! `SchemaKeyspace.calculateSchemaDigest` and `RowIterators.digest`; `Digest.forSchema` is MD5 too,
//! so the UUID is an MD5 of an MD5.

use md5::{Digest, Md5};
use rows::{Cell, ColumnData, PartitionUpdate, Row};

/// The digested form of the timestamp of a row without liveness, and of no deletion:
/// `NO_TIMESTAMP`.
const NO_TIME: [u8; 8] = i64::MIN.to_be_bytes();
/// The digested form of false: booleans are digested inverted.
const FALSE: u8 = 1;
const KIND_ROW: u8 = 0;
const KIND_STATIC_ROW: u8 = 3;
const KIND_CLUSTERING: u8 = 4;

/// Collects partitions in the order of the tables and then of their keys.
#[derive(Default)]
pub struct SchemaDigest {
    hash: Md5,
}

impl SchemaDigest {
    /// Adds a partition with its live rows, of which there is at least one.
    pub fn partition(&mut self, partition: &PartitionUpdate, rows: &[Row]) {
        assert!(!rows.is_empty(), "a partition without live rows is not digested");
        self.hash.update(&partition.key.key);
        partition.table.regulars.iter().for_each(|column| self.hash.update(column.name.as_bytes()));
        // not read in reverse
        self.hash.update([FALSE]);
        self.static_row();
        rows.iter().for_each(|row| self.row(row, partition));
    }

    /// Adds a static row. The schema tables have no static columns, so the row is empty, but it is
    /// digested.
    fn static_row(&mut self) {
        self.hash.update([KIND_ROW, KIND_STATIC_ROW]);
        self.no_deletion();
        self.hash.update(NO_TIME);
    }

    fn no_deletion(&mut self) {
        self.hash.update(NO_TIME);
        // no deletion that a view's row could shadow
        self.hash.update([FALSE]);
    }

    fn row(&mut self, row: &Row, partition: &PartitionUpdate) {
        self.hash.update([KIND_ROW]);
        row.clustering.iter().flatten().for_each(|value| self.hash.update(value));
        self.hash.update([KIND_CLUSTERING]);
        self.no_deletion();
        self.hash.update(row.liveness.timestamp.to_be_bytes());
        for column in &partition.table.regulars {
            if let Some(ColumnData::Simple(cell)) = row.column(column.id) {
                self.cell(cell);
            }
        }
    }

    fn cell(&mut self, cell: &Cell) {
        self.hash.update(&cell.value);
        self.hash.update(cell.timestamp.to_be_bytes());
        self.hash.update(cell.ttl.to_be_bytes());
        // not a counter
        self.hash.update([FALSE]);
    }

    /// The version of the schema that was added.
    pub fn version(self) -> [u8; 16] {
        let mut version: [u8; 16] = Md5::digest(self.hash.finalize()).into();
        version[6] = (version[6] & 0x0f) | 0x30;
        version[8] = (version[8] & 0x3f) | 0x80;
        version
    }
}
