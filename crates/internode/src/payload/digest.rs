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
use rows::codec::{CodecColumn, Header, present_columns};
use rows::{
    Cell, ClusteringValues, ColumnData, DeletionTime, Liveness, PartitionHead, PartitionStream, ReadError, Row,
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
        self.truth(self.reversed);
        match &head.static_row {
            Some(row) => self.row(row, true),
            None => self.row(&Row::new(ClusteringValues::new()), true),
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

    fn values(&mut self, values: &[Option<Bytes>]) {
        values.iter().flatten().for_each(|value| self.sink.take_in(value));
    }

    fn deletion(&mut self, deletion: &DeletionTime) {
        self.sink.take_in(&deletion.marked_for_delete_at.to_be_bytes());
    }

    fn truth(&mut self, truth: bool) {
        self.sink.take_in(&[u8::from(!truth)]);
    }

    fn row(&mut self, row: &Row, is_static: bool) {
        self.sink.take_in(&[0]);
        self.values(&row.clustering);
        let kind = if is_static { PrefixKind::StaticClustering } else { PrefixKind::Clustering };
        self.sink.take_in(&[kind as u8]);
        self.deletion(&row.deletion);
        // no deletion of a row is shadowable
        self.truth(false);
        self.liveness(&row.liveness);
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

    fn liveness(&mut self, liveness: &Liveness) {
        self.sink.take_in(&liveness.timestamp.to_be_bytes());
        if liveness.is_expiring() {
            self.sink.take_in(&liveness.local_expiration_time.to_be_bytes());
            self.sink.take_in(&liveness.ttl.to_be_bytes());
        }
    }

    fn cell(&mut self, cell: &Cell, is_counter: bool) {
        let is_live_counter = is_counter && !cell.is_tombstone();
        let value = if is_live_counter { rows::counter::shards(&cell.value) } else { &cell.value };
        self.sink.take_in(value);
        self.sink.take_in(&cell.timestamp.to_be_bytes());
        self.sink.take_in(&cell.ttl.to_be_bytes());
        self.truth(is_live_counter);
        if let Some(path) = &cell.path {
            self.sink.take_in(path);
        }
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
