//! The rows of each partition that a read wants.
//!
//! ```text
//! u8 0 slices, bool reversed, uvint32 n, n × (start bound, end bound)
//! u8 1 rows by name, bool reversed, uvint32 n, n × clustering
//! bound: u8 kind, u16 number of values, the values as in a clustering
//! ```
//!
//! Bounds and rows are in clustering order, also if the read is reversed. No slices: only the
//! static row is wanted. A table without clustering columns has rows by name, with one empty
//! clustering. Agrees with `org.apache.cassandra.db.filter.ClusteringIndexFilter`.

use rows::{Bound, ClusteringPrefix, ClusteringValues, PrefixKind, ReadCommand, Slice, Slices};
use schema::{ClusteringComparator, TableMetadata};
use stdx::{put_u16, put_uvint};

use super::{Reader, put_clustering};
use crate::error::InternodeError;
use crate::integers::read_length;

const SLICES: u8 = 0;
const NAMES: u8 = 1;

/// The rows of each partition that a read wants, and their order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClusteringFilter {
    /// Whether rows are wanted in reversed clustering order.
    pub reversed: bool,
    /// The rows.
    pub rows: Rows,
}

/// Rows of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rows {
    /// Rows in slices, which are disjoint and in clustering order.
    Slices(Slices),
    /// Rows with these clusterings, in clustering order.
    Names(Vec<ClusteringValues>),
}

impl ClusteringFilter {
    /// Slices that are rows are asked for by name, as Cassandra's coordinators do: replicas read
    /// them in another way, and so may have another digest.
    pub(super) fn of(command: &ReadCommand) -> Self {
        let names = match command.table.clustering.is_empty() && command.slices.is_all() {
            true => Some(vec![ClusteringValues::new()]),
            false => command.slices.0.iter().map(|slice| name_of(slice, &command.table)).collect(),
        };
        let rows = match names.filter(|names| !names.is_empty()) {
            Some(names) => Rows::Names(names),
            None => Rows::Slices(command.slices.clone()),
        };
        Self { reversed: command.reversed, rows }
    }

    /// Whether the rows of a partition are all wanted, or none but the static one.
    pub(super) fn selects_all(&self) -> bool {
        match &self.rows {
            Rows::Slices(slices) => slices.is_all(),
            Rows::Names(names) => names.is_empty(),
        }
    }

    /// The rows as slices.
    pub fn slices(&self, comparator: &ClusteringComparator) -> Slices {
        match &self.rows {
            Rows::Slices(slices) => slices.clone(),
            Rows::Names(names) => Slices::normalized(names.iter().cloned().map(Slice::of_prefix).collect(), comparator),
        }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>, table: &TableMetadata) {
        match &self.rows {
            Rows::Slices(slices) => {
                out.extend_from_slice(&[SLICES, u8::from(self.reversed)]);
                put_uvint(out, slices.0.len() as u64);
                for slice in slices.0.iter() {
                    put_bound(out, &slice.start, table);
                    put_bound(out, &slice.end, table);
                }
            }
            Rows::Names(names) => {
                out.extend_from_slice(&[NAMES, u8::from(self.reversed)]);
                put_uvint(out, names.len() as u64);
                names.iter().for_each(|name| put_clustering(out, name, table));
            }
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>, table: &TableMetadata) -> Result<Self, InternodeError> {
        let kind = reader.cursor.u8()?;
        let reversed = reader.cursor.bool()?;
        let count = read_length(&mut reader.cursor, "the number of rows or slices")?;
        let rows = match kind {
            SLICES => Rows::Slices(read_slices(reader, table, count)?),
            NAMES => Rows::Names(read_names(reader, table, count)?),
            _ => return super::bad("the kind of a clustering filter", kind),
        };
        Ok(Self { reversed, rows })
    }
}

/// The row that a slice is. None: it is none, or may have several.
fn name_of(slice: &Slice, table: &TableMetadata) -> Option<ClusteringValues> {
    let is_row = slice.start.values.len() == table.clustering.len()
        && slice.start.values == slice.end.values
        && slice.start.kind == PrefixKind::InclStartBound
        && slice.end.kind == PrefixKind::InclEndBound;
    is_row.then(|| slice.start.values.clone())
}

fn put_bound(out: &mut Vec<u8>, bound: &Bound, table: &TableMetadata) {
    out.push(bound.kind as u8);
    put_u16(out, u16::try_from(bound.values.len()).expect("a table has fewer clustering columns"));
    put_clustering(out, &bound.values, table);
}

fn read_bound(reader: &mut Reader<'_>, table: &TableMetadata) -> Result<Bound, InternodeError> {
    let ordinal = reader.cursor.u8()?;
    let count = usize::from(reader.cursor.u16()?);
    let kind = PrefixKind::from_ordinal(ordinal).filter(|kind| kind.is_start() || kind.is_end());
    let kind = kind.ok_or(InternodeError::Value { part: "the kind of a bound", found: ordinal.into() })?;
    if count > table.clustering.len() {
        return super::bad("the number of values of a bound", count as i64);
    }
    Ok(ClusteringPrefix { kind, values: reader.clustering(table, count)? })
}

fn read_slices(reader: &mut Reader<'_>, table: &TableMetadata, count: usize) -> Result<Slices, InternodeError> {
    let mut slices: Vec<Slice> = Vec::new();
    for _ in 0..count {
        let slice = Slice { start: read_bound(reader, table)?, end: read_bound(reader, table)? };
        let ascends = slices.last().is_none_or(|last| last.end.compare(&slice.start, &table.comparator).is_le());
        if !slice.start.kind.is_start() || !slice.end.kind.is_end() || !ascends {
            return Err(InternodeError::Unsupported("a list of slices out of order"));
        }
        slices.push(slice);
    }
    Ok(slices.into())
}

fn read_names(
    reader: &mut Reader<'_>,
    table: &TableMetadata,
    count: usize,
) -> Result<Vec<ClusteringValues>, InternodeError> {
    if table.clustering.is_empty() && count > 1 {
        return super::bad("the number of rows", i64::try_from(count).unwrap_or(i64::MAX));
    }
    let mut names = Vec::new();
    for _ in 0..count {
        names.push(reader.clustering(table, table.clustering.len())?);
    }
    Ok(names)
}
