//! The digest of an answer: MD5 over its partitions, equal on two replicas whose answers are equal.
//!
//! ```text
//! for each partition:
//!   key, i64 timestamp of the deletion
//!   names of the fetched regular columns
//!   [, of the fetched static columns if there is a static row]
//!   u8 00 if reversed, else 01
//!   static row, also if there is none; rows and markers
//! row: u8 00, clustering values, u8 04 (03: static), i64 timestamp of the deletion, u8 01,
//!   i64 timestamp of the liveness [, u32 expiry, i32 TTL], columns in header order
//! column: [i64 timestamp of the deletion, if there is one] cells
//! cell: value (a counter's: its shards), i64 timestamp, i32 TTL, u8 00 if a live counter, else 01,
//!   [path]
//! marker: bound values, u8 kind, i64 timestamp of each deletion, that which ends first
//! ```
//!
//! Truth values are inverted, no length is digested, and local deletion times never count. Without
//! partitions it is the MD5 of nothing. Agrees with
//! `org.apache.cassandra.db.rows.UnfilteredRowIterators.digest` and `db.Digest.forReadResponse`.

use bytes::Bytes;
use md5::{Digest as _, Md5};
use rows::PrefixKind;
use rows::codec::{CodecColumn, EncodedCell, EncodedRow, Header, RowVisitor, present_columns};
use rows::{
    Cell, ClusteringValues, ColumnData, DeletionTime, Liveness, NO_TTL, PartitionHead, PartitionStream, ReadError, Row,
    Unfiltered,
};

use super::partitions::{DataStream, header_of};
use super::read_request::ReadRequest;

/// Bytes of an MD5.
pub const SIZE: usize = 16;

/// A hash that is fed piece by piece.
pub trait Sink {
    /// Takes in a piece.
    fn take_in(&mut self, piece: &[u8]);
}

impl Sink for Md5 {
    #[inline]
    fn take_in(&mut self, piece: &[u8]) {
        self.update(piece);
    }
}

/// The digest of partitions that are given one after the other. Takes no memory for them.
pub struct Digester<S = Md5> {
    sink: S,
    header: Header,
    regular_names: Vec<u8>,
    static_names: Vec<u8>,
    reversed: bool,
}

impl Digester {
    /// A digester of the answer to a request.
    pub fn new(request: &ReadRequest) -> Self {
        Self::of_columns(Md5::new(), header_of(&request.table, &request.columns), request.is_reversed())
    }

    /// The digest.
    pub fn finish(self) -> [u8; SIZE] {
        self.sink.finalize().into()
    }
}

impl<S: Sink> Digester<S> {
    /// A digester of partitions with the columns of a header. Feeds `sink`.
    pub fn of_columns(sink: S, header: Header, reversed: bool) -> Self {
        let names = |columns: &[CodecColumn]| columns.iter().flat_map(|column| column.name.bytes()).collect();
        let (regular_names, static_names) = (names(&header.regulars), names(&header.statics));
        Self { sink, regular_names, static_names, header, reversed }
    }

    /// The hash of all that was taken in.
    pub fn sink(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Takes in the head of a partition. `has_static_row`: the data has a static row, which may be
    /// empty.
    pub fn partition(&mut self, head: &PartitionHead, has_static_row: bool) {
        self.sink.take_in(&head.key.key);
        self.deletion(&head.deletion);
        self.sink.take_in(&self.regular_names);
        if has_static_row {
            self.sink.take_in(&self.static_names);
        }
        self.boolean(self.reversed);
        match &head.static_row {
            Some(row) => self.row(row, true),
            None => self.begin_row(PrefixKind::StaticClustering, &[], &DeletionTime::LIVE, &Liveness::EMPTY),
        }
    }

    /// Takes in a row or marker of the partition.
    pub fn unfiltered(&mut self, unfiltered: &Unfiltered) {
        match unfiltered {
            Unfiltered::Row(row) => self.row(row, false),
            Unfiltered::Marker(marker) => {
                self.values(&marker.position.values);
                self.sink.take_in(&[marker.position.kind as u8]);
                [marker.close, marker.open].iter().flatten().for_each(|deletion| self.deletion(deletion));
            }
        }
    }

    /// Takes in a row of the partition that is not decoded, and has the header's columns.
    pub fn encoded(&mut self, row: &EncodedRow) -> Result<(), ReadError> {
        row.visit(self)
    }

    fn values(&mut self, values: &[Option<Bytes>]) {
        values.iter().flatten().for_each(|value| self.sink.take_in(value));
    }

    fn deletion(&mut self, deletion: &DeletionTime) {
        self.sink.take_in(&deletion.marked_for_delete_at.to_be_bytes());
    }

    fn boolean(&mut self, value: bool) {
        self.sink.take_in(&[u8::from(!value)]);
    }

    #[inline]
    fn begin_row(
        &mut self,
        kind: PrefixKind,
        clustering: &[Option<Bytes>],
        deletion: &DeletionTime,
        liveness: &Liveness,
    ) {
        self.sink.take_in(&[0]);
        self.values(clustering);
        // fixed pieces in one go; no deletion of a row is shadowable
        let mut behind = [kind as u8; 1 + 8 + 1 + 8];
        behind[1..9].copy_from_slice(&deletion.marked_for_delete_at.to_be_bytes());
        behind[9] = u8::from(true);
        behind[10..].copy_from_slice(&liveness.timestamp.to_be_bytes());
        self.sink.take_in(&behind);
        if liveness.is_expiring() {
            self.sink.take_in(&liveness.local_expiration_time.to_be_bytes());
            self.sink.take_in(&liveness.ttl.to_be_bytes());
        }
    }

    fn row(&mut self, row: &Row, is_static: bool) {
        let kind = if is_static { PrefixKind::StaticClustering } else { PrefixKind::Clustering };
        self.begin_row(kind, &row.clustering, &row.deletion, &row.liveness);
        for (index, data) in &present_columns(row, &self.header) {
            let is_counter = self.header.columns(is_static).get(*index).is_some_and(|column| column.ty.is_counter());
            match data {
                ColumnData::Simple(cell) => self.cell(cell, is_counter),
                ColumnData::Complex(complex) => {
                    if !complex.deletion.is_live() {
                        self.deletion(&complex.deletion);
                    }
                    complex.cells.iter().for_each(|cell| self.cell(cell, is_counter));
                }
            }
        }
    }

    fn cell(&mut self, cell: &Cell, is_counter: bool) {
        let is_live_counter = is_counter && !cell.is_tombstone();
        let value = if is_live_counter { rows::counter::shards(&cell.value) } else { &cell.value };
        self.cell_of(value, cell.timestamp, cell.ttl, is_live_counter, cell.path.as_deref());
    }

    #[inline]
    fn cell_of(&mut self, value: &[u8], timestamp: i64, ttl: u32, is_live_counter: bool, path: Option<&[u8]>) {
        let mut behind = [u8::from(!is_live_counter); 8 + 4 + 1];
        behind[..8].copy_from_slice(&timestamp.to_be_bytes());
        behind[8..12].copy_from_slice(&ttl.to_be_bytes());
        self.sink.take_in(value);
        self.sink.take_in(&behind);
        if let Some(path) = path {
            self.sink.take_in(path);
        }
    }
}

impl<S: Sink> RowVisitor for Digester<S> {
    fn begin(&mut self, clustering: &ClusteringValues, liveness: &Liveness) {
        self.begin_row(PrefixKind::Clustering, clustering, &DeletionTime::LIVE, liveness);
    }

    fn cell(&mut self, cell: EncodedCell<'_>) {
        // counters are never given encoded
        self.cell_of(cell.value, cell.timestamp, NO_TTL, false, cell.path);
    }
}

/// The digest of the data of an answer.
pub fn of_data(data: &Bytes, request: &ReadRequest) -> Result<[u8; SIZE], ReadError> {
    let mut digester = Digester::new(request);
    let mut stream = DataStream::new(data.clone(), request);
    while let Some(head) = stream.next_partition()? {
        digester.partition(&head, stream.form().has_static_row);
        while let Some(unfiltered) = stream.next_unfiltered()? {
            digester.unfiltered(&unfiltered);
        }
    }
    Ok(digester.finish())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use rows::codec::{EncodingStats, Framing, encode_row, get_encoded_row};
    use schema::table::ColumnSpec;
    use schema::{ColumnKind, TableFlags, TableId, TableKind, TableMetadata, TableParams};
    use types::CqlType;

    use super::*;

    fn table() -> TableMetadata {
        let spec = |name: &str, kind, ty| ColumnSpec { name: name.into(), kind, position: 0, ty, reversed: false };
        let map = CqlType::Map { key: Arc::new(CqlType::Text), value: Arc::new(CqlType::Int), frozen: false };
        let specs = vec![
            spec("k", ColumnKind::PartitionKey, CqlType::Int),
            spec("c", ColumnKind::Clustering, CqlType::Text),
            spec("a", ColumnKind::Regular, CqlType::Int),
            spec("b", ColumnKind::Regular, CqlType::Text),
            spec("m", ColumnKind::Regular, map),
        ];
        let (flags, params) = (TableFlags::COMPOUND, TableParams::default());
        let id = TableId([7; 16]);
        TableMetadata::new(id, "ks", "t", TableKind::Regular, flags, params, specs, BTreeMap::new(), None)
    }

    #[test]
    fn a_row_has_one_digest_encoded_and_decoded() {
        let table = table();
        let column = |name: &str| table.column_by_name(name).expect("the test's column").id;
        let cell = |name: &str, timestamp, value: &'static [u8]| {
            Cell::live(column(name), timestamp, Bytes::from_static(value))
        };
        let new = |c: &'static [u8]| Row::new([Some(Bytes::from_static(c))].into_iter().collect());
        let mut all = new(b"all");
        all.liveness = Liveness::new(1_000);
        all.add_cell(cell("a", 1_000, &[0, 0, 0, 9]));
        all.add_cell(cell("b", 1_001, b""));
        for key in ["x", "y"] {
            all.add_complex_cell(&table, cell("m", 1_002, &[0, 0, 0, 1]).at(Bytes::from_static(key.as_bytes())));
        }
        let mut one = new(b"");
        one.add_cell(cell("b", 999, b"a value"));
        let mut nothing = new(b"nothing but its key");
        nothing.liveness = Liveness::new(5);
        let stats = EncodingStats { min_timestamp: 3, ..EncodingStats::default() };
        let header = Arc::new(Header::for_table(&table, stats));
        let mut digests = Vec::new();
        for row in [all, one, nothing] {
            let digester = || Digester::of_columns(Md5::new(), (*header).clone(), false);
            let mut bytes = Vec::new();
            encode_row(&mut bytes, &row, false, &header, Framing::Disk { previous_size: 0 });
            let (encoded, _) = get_encoded_row(&bytes.into(), 0, &header).expect("a sound row");
            let (mut of_encoded, mut of_decoded) = (digester(), digester());
            of_encoded.encoded(&encoded.expect("nothing deletes or expires")).expect("a sound row");
            of_decoded.unfiltered(&Unfiltered::Row(row));
            digests.push(of_decoded.finish());
            assert_eq!(Some(&of_encoded.finish()), digests.last());
        }
        assert!(digests[0] != digests[1] && digests[1] != digests[2]);
    }
}
