//! READ_REQ and RANGE_REQ: what a coordinator asks a replica to read.
//!
//! ```text
//! u8      kind: 0 one partition, 1 a range of partitions
//! u8      flags: 01 digest, 04 index, 08 accepts transient replicas, 10 the row filter needs
//!         reconciliation
//! [01]    uvint32 version of the digest, without effect
//!         table id
//! u32     the time of the read, seconds
//!         columns
//!         row filter
//!         limits
//! [04]    the index: the version-3 UUID of its name
//! kind 0: partition key, clustering filter
//! kind 1: range of keys, clustering filter, bool is a later page [last clustering, bool inclusive]
//! ```
//!
//! The columns, row filter, limits and the clustering filter each have their file. Agrees with
//! `org.apache.cassandra.db.ReadCommand.Serializer`.

mod clustering;
mod columns;
mod filter;
mod keys;
mod limits;

use std::sync::Arc;

use bytes::Bytes;
use rows::command::RingBound;
use rows::{ColumnSelection, DataLimits, IndexSearch, PartitionRange, ReadCommand, ReadLimits, RowFilter, Slices};
use schema::{TableId, TableMetadata};
use stdx::{put_u32, put_vbytes};

pub use clustering::{ClusteringFilter, Rows};
pub use filter::index_answering;
pub use keys::{KeyRange, LaterPage, Position};

pub use crate::payload::reader::Tables;

use crate::error::InternodeError;
use crate::integers::{put_uvint32, read_uvint32};
use crate::payload::reader::Reader;
use crate::verb::Verb;

const IS_DIGEST: u8 = 0x01;
const HAS_INDEX: u8 = 0x04;
const ACCEPTS_TRANSIENT: u8 = 0x08;
const NEEDS_RECONCILIATION: u8 = 0x10;
const KNOWN_FLAGS: u8 = IS_DIGEST | HAS_INDEX | ACCEPTS_TRANSIENT | NEEDS_RECONCILIATION;

/// A read that a coordinator asks of a replica.
#[derive(Clone, PartialEq, Debug)]
pub struct ReadRequest {
    /// The table.
    pub table: Arc<TableMetadata>,
    /// If a digest is wanted instead of data, the messaging version of the digest, which changes
    /// nothing; None: data is wanted.
    pub digest: Option<i32>,
    /// Whether a replica that has the range for a time only may answer.
    pub accepts_transient: bool,
    /// The time of the read, seconds since 1970: fixed by the coordinator, so that all replicas
    /// agree on what has expired.
    pub now: u32,
    /// The columns.
    pub columns: ColumnSelection,
    /// The conditions on rows.
    pub row_filter: RowFilter,
    /// How many rows are wanted.
    pub limits: ReadLimits,
    /// The index that the coordinator would use: the version-3 UUID of its name.
    pub index: Option<[u8; 16]>,
    /// The partitions.
    pub partitions: Partitions,
    /// The rows of each partition.
    pub clustering: ClusteringFilter,
}

/// The partitions of a read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Partitions {
    /// One partition, by its key.
    Key(Bytes),
    /// A range.
    Range {
        /// Its ends.
        keys: KeyRange,
        /// Where the page before ended in the first partition; None: the first partition is read
        /// from its start.
        later_page: Option<LaterPage>,
    },
}

impl ReadRequest {
    /// The request that asks a peer for what `command` reads, with data as the answer. The
    /// command's limits are asked for; its indexes are not: the caller sets `index` and
    /// `row_filter`, without which every row is given.
    pub fn of(command: &ReadCommand) -> Self {
        let limit = |limit: u32| limit.min(rows::limits::NO_LIMIT);
        Self {
            table: Arc::clone(&command.table),
            digest: None,
            accepts_transient: false,
            now: command.now,
            columns: ColumnSelection::of_query(&command.table, &command.columns),
            row_filter: RowFilter::default(),
            limits: ReadLimits::of_rows(limit(command.limits.rows), limit(command.limits.per_partition)),
            index: None,
            partitions: match &command.range {
                PartitionRange::Key(key) => Partitions::Key(key.key.clone()),
                PartitionRange::Range { start, end } => {
                    Partitions::Range { keys: KeyRange::of(start, end), later_page: None }
                }
            },
            clustering: ClusteringFilter::of(command),
        }
    }

    /// The same read with a digest as the answer. `version`: the smallest messaging version of the
    /// nodes that are asked.
    #[must_use]
    pub fn for_digest(&self, version: i32) -> Self {
        Self { digest: Some(version), ..self.clone() }
    }

    /// Leaves conditions to the coordinator that no replica can check alone. Called by a replica
    /// before it reads; the answer may have more rows then.
    pub fn relax(&mut self) {
        let relaxed = self.index.and_then(|index| filter::relaxed(&self.table, &index, &self.row_filter));
        if let Some((row_filter, index)) = relaxed {
            (self.row_filter, self.index) = (row_filter, Some(index));
        }
    }

    /// The verb: READ_REQ or RANGE_REQ.
    pub fn verb(&self) -> Verb {
        match self.partitions {
            Partitions::Key(_) => Verb::ReadReq,
            Partitions::Range { .. } => Verb::RangeReq,
        }
    }

    /// Whether rows are wanted in reversed clustering order.
    pub fn is_reversed(&self) -> bool {
        self.clustering.reversed
    }

    /// Whether whole partitions are wanted. If so, a live static row counts as a row where there is
    /// no other.
    pub fn selects_whole_partitions(&self) -> bool {
        self.table.is_static_compact() || (self.clustering.selects_all() && !self.row_filter.is_about_rows(&self.table))
    }

    /// The reads that the engine of a node is asked for: usually one command; two where a later
    /// page of a range begins inside of a partition.
    pub fn commands(&self) -> Vec<ReadCommand> {
        let slices = self.clustering.slices(&self.table.comparator);
        match &self.partitions {
            Partitions::Key(key) => vec![self.command(PartitionRange::Key(self.table.decorate(key.clone())), slices)],
            Partitions::Range { keys, later_page } => {
                let PartitionRange::Range { start, end } = keys.partitions(&self.table) else { return Vec::new() };
                let (Some(page), RingBound::Key { key, inclusive: true }) = (later_page, &start) else {
                    return vec![self.command(PartitionRange::Range { start, end }, slices)];
                };
                let first = page.slices(&slices, &self.table.comparator, self.is_reversed());
                let first = self.command(PartitionRange::Key(key.clone()), first);
                let start = RingBound::Key { key: key.clone(), inclusive: false };
                vec![first, self.command(PartitionRange::Range { start, end }, slices)]
            }
        }
    }

    fn command(&self, range: PartitionRange, slices: Slices) -> ReadCommand {
        ReadCommand {
            table: Arc::clone(&self.table),
            range,
            slices,
            reversed: self.is_reversed(),
            columns: self.columns.filter(&self.table),
            now: self.now,
            limits: DataLimits { rows: self.limits.rows, ..DataLimits::NONE },
            indexes: self.searches(),
        }
    }

    /// The searches for the index that the coordinator named. Empty: there is no such index here,
    /// or no condition that it answers; the table itself is read and filtered.
    fn searches(&self) -> Vec<IndexSearch> {
        self.index.map_or_else(Vec::new, |index| filter::searches(&self.table, &index, &self.row_filter))
    }

    /// The payload.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        out.push(u8::from(matches!(self.partitions, Partitions::Range { .. })));
        out.push(self.flags());
        if let Some(version) = self.digest {
            put_uvint32(&mut out, version);
        }
        out.extend_from_slice(&self.table.id.0);
        put_u32(&mut out, self.now);
        columns::put(&mut out, &self.columns, &self.table);
        filter::put(&mut out, &self.row_filter, &self.table);
        limits::put(&mut out, &self.limits, &self.table);
        if let Some(index) = &self.index {
            out.extend_from_slice(index);
        }
        match &self.partitions {
            Partitions::Key(key) => {
                match self.table.partition_key_type.fixed_length() {
                    Some(_) => out.extend_from_slice(key),
                    None => put_vbytes(&mut out, key),
                }
                self.clustering.put(&mut out, &self.table);
            }
            Partitions::Range { keys, later_page } => {
                keys.put(&mut out);
                self.clustering.put(&mut out, &self.table);
                LaterPage::put(later_page.as_ref(), &mut out, &self.table);
            }
        }
        out
    }

    fn flags(&self) -> u8 {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        flag(self.digest.is_some(), IS_DIGEST)
            | flag(self.index.is_some(), HAS_INDEX)
            | flag(self.accepts_transient, ACCEPTS_TRANSIENT)
            | flag(self.row_filter.needs_reconciliation, NEEDS_RECONCILIATION)
    }

    /// From a payload. `tables` finds the table.
    pub fn decode(payload: &Bytes, tables: &Tables<'_>) -> Result<Self, InternodeError> {
        Reader::whole(payload, |reader| Self::read(reader, tables))
    }

    /// Reads a request that stands within a payload.
    pub(crate) fn read(reader: &mut Reader<'_>, tables: &Tables<'_>) -> Result<Self, InternodeError> {
        let (kind, flags) = (reader.cursor.u8()?, reader.cursor.u8()?);
        if kind > 1 {
            return bad("the kind of a read", kind);
        }
        if flags & !KNOWN_FLAGS != 0 {
            return bad("the flags of a read", flags);
        }
        let digest = match flags & IS_DIGEST {
            0 => None,
            _ => Some(read_uvint32(&mut reader.cursor, "the version of a digest")?),
        };
        let id = TableId(reader.array()?);
        let table = tables(id).ok_or(InternodeError::UnknownTable(id))?;
        let now = reader.cursor.u32()?;
        let columns = columns::read(&mut reader.cursor, &table)?;
        let expressions = filter::read(reader, &table)?;
        let limits = limits::read(reader, &table)?;
        let index = if flags & HAS_INDEX == 0 { None } else { Some(reader.array()?) };
        let (partitions, clustering) = if kind == 0 {
            let key = match table.partition_key_type.fixed_length() {
                Some(length) => reader.take(length)?,
                None => reader.vbytes()?,
            };
            (Partitions::Key(key), ClusteringFilter::read(reader, &table)?)
        } else {
            let keys = KeyRange::read(reader, &table)?;
            let clustering = ClusteringFilter::read(reader, &table)?;
            (Partitions::Range { keys, later_page: LaterPage::read(reader, &table)? }, clustering)
        };
        let needs_reconciliation = flags & NEEDS_RECONCILIATION != 0;
        Ok(Self {
            table,
            digest,
            accepts_transient: flags & ACCEPTS_TRANSIENT != 0,
            now,
            columns,
            row_filter: RowFilter { expressions, needs_reconciliation },
            limits,
            index,
            partitions,
            clustering,
        })
    }
}

fn bad<T>(part: &'static str, found: impl Into<i64>) -> Result<T, InternodeError> {
    Err(InternodeError::Value { part, found: found.into() })
}

fn put_clustering(out: &mut Vec<u8>, values: &[Option<Bytes>], table: &TableMetadata) {
    let types: Vec<types::CqlType> = table.clustering.iter().map(|column| column.ty.clone()).collect();
    rows::codec::put_clustering_values(out, values, &types);
}
