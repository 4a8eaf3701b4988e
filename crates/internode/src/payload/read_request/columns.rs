//! The columns of a read: which are fetched, and which of these are queried.
//!
//! ```text
//! u8    01 fetches all regulars, 02 has a list of queried columns, 04 has selected elements,
//!       08 fetches all statics
//! [01]  fetched columns: list of statics, list of regulars   list: uvint32 n, n × vbytes name
//! [02]  queried columns: the same
//! [04]  uvint32 n, n × (short-bytes column, u8 0 from, to | 1 element)   each a vbytes path
//! ```
//!
//! A list that is written has all columns of a kind in file order. Agrees with
//! `org.apache.cassandra.db.filter.ColumnFilter.Serializer`.

use bytes::Bytes;
use rows::selection::{Elements, Fetching};
use rows::{ColumnSelection, Columns};
use schema::{ColumnId, ColumnKind, TableMetadata};
use stdx::{Cursor, put_short_bytes, put_vbytes};

use crate::error::InternodeError;
use crate::integers::{put_uvint32, read_length};

const ALL_REGULARS: u8 = 0x01;
const HAS_QUERIED: u8 = 0x02;
const HAS_ELEMENTS: u8 = 0x04;
const ALL_STATICS: u8 = 0x08;

pub(super) fn put(out: &mut Vec<u8>, selection: &ColumnSelection, table: &TableMetadata) {
    let mut flags = match selection.fetching {
        Fetching::Everything => ALL_REGULARS | ALL_STATICS,
        Fetching::AllColumns => ALL_REGULARS | ALL_STATICS | HAS_QUERIED,
        Fetching::AllRegularsAndQueriedStatics => ALL_REGULARS | HAS_QUERIED,
        Fetching::OnlyQueried => HAS_QUERIED,
    };
    if !selection.elements.is_empty() {
        flags |= HAS_ELEMENTS;
    }
    out.push(flags);
    if flags & ALL_REGULARS != 0 {
        put_columns(out, &selection.fetched, table);
    }
    if flags & HAS_QUERIED != 0 {
        put_columns(out, &selection.queried, table);
    }
    if flags & HAS_ELEMENTS != 0 {
        put_elements(out, &selection.elements, table);
    }
}

fn put_columns(out: &mut Vec<u8>, columns: &Columns, table: &TableMetadata) {
    for list in [&columns.statics, &columns.regulars] {
        put_uvint32(out, list.len() as i32);
        for id in list {
            put_vbytes(out, name_of(table, *id).as_bytes());
        }
    }
}

fn put_elements(out: &mut Vec<u8>, elements: &[Elements], table: &TableMetadata) {
    put_uvint32(out, elements.len() as i32);
    for selected in elements {
        put_short_bytes(out, name_of(table, selected.column).as_bytes());
        out.push(u8::from(selected.to.is_none()));
        put_vbytes(out, &selected.from);
        if let Some(to) = &selected.to {
            put_vbytes(out, to);
        }
    }
}

/// The name of a column that a table has, or that it has dropped.
pub(super) fn name_of(table: &TableMetadata, id: ColumnId) -> &str {
    let dropped = || table.dropped_columns().find(|(known, _)| *known == id).map(|(_, column)| column.name.as_str());
    table.column(id).map(|column| column.name.as_str()).or_else(dropped).unwrap_or_default()
}

pub(super) fn read(cursor: &mut Cursor<'_>, table: &TableMetadata) -> Result<ColumnSelection, InternodeError> {
    let flags = cursor.u8()?;
    if flags & !(ALL_REGULARS | HAS_QUERIED | HAS_ELEMENTS | ALL_STATICS) != 0 {
        return super::bad("the flags of columns", flags);
    }
    let fetched = if flags & ALL_REGULARS != 0 { Some(read_columns(cursor, table)?) } else { None };
    let queried = if flags & HAS_QUERIED != 0 { Some(read_columns(cursor, table)?) } else { None };
    let elements = if flags & HAS_ELEMENTS != 0 { read_elements(cursor, table)? } else { Vec::new() };
    let (fetching, fetched, queried) = match (fetched, queried) {
        (Some(fetched), None) => (Fetching::Everything, fetched.clone(), fetched),
        (Some(fetched), Some(queried)) if flags & ALL_STATICS != 0 => (Fetching::AllColumns, fetched, queried),
        (Some(fetched), Some(queried)) => (Fetching::AllRegularsAndQueriedStatics, fetched, queried),
        (None, Some(queried)) => (Fetching::OnlyQueried, queried.clone(), queried),
        (None, None) => return super::bad("the flags of columns", flags),
    };
    Ok(ColumnSelection { fetching, fetched, queried, elements })
}

fn read_columns(cursor: &mut Cursor<'_>, table: &TableMetadata) -> Result<Columns, InternodeError> {
    let statics = read_list(cursor, table, ColumnKind::Static)?;
    Ok(Columns { statics, regulars: read_list(cursor, table, ColumnKind::Regular)? })
}

fn read_list(
    cursor: &mut Cursor<'_>,
    table: &TableMetadata,
    kind: ColumnKind,
) -> Result<Vec<ColumnId>, InternodeError> {
    let count = read_length(cursor, "the number of columns")?;
    // where more columns are named than there are, one of the names is unknown
    let known = table.statics.len() + table.regulars.len() + table.dropped.len();
    let mut ids = Vec::with_capacity(count.min(known));
    for _ in 0..count {
        ids.push(column_of(table, cursor.vbytes()?, Some(kind))?);
    }
    Ok(ids)
}

/// The column of a name. `kind`: a dropped column of this kind will do, too.
pub(super) fn column_of(
    table: &TableMetadata,
    name: &[u8],
    kind: Option<ColumnKind>,
) -> Result<ColumnId, InternodeError> {
    let unknown = || {
        let name = String::from_utf8_lossy(name);
        InternodeError::UnknownColumn(format!("{}.{}.{name}", table.keyspace, table.name))
    };
    let name = std::str::from_utf8(name).map_err(|_| unknown())?;
    let present = table.column_by_name(name).filter(|column| kind.is_none_or(|kind| column.kind == kind));
    if let Some(column) = present {
        return Ok(column.id);
    }
    let dropped = table.dropped.get(name).filter(|column| Some(column.kind) == kind);
    dropped.and_then(|_| table.dropped_column_id(name)).ok_or_else(unknown)
}

fn read_elements(cursor: &mut Cursor<'_>, table: &TableMetadata) -> Result<Vec<Elements>, InternodeError> {
    let count = read_length(cursor, "the number of selected elements")?;
    let mut elements = Vec::new();
    for _ in 0..count {
        let column = column_of(table, cursor.short_bytes()?, None)?;
        let kind = cursor.u8()?;
        let from = Bytes::copy_from_slice(cursor.vbytes()?);
        let to = match kind {
            0 => Some(Bytes::copy_from_slice(cursor.vbytes()?)),
            1 => None,
            _ => return super::bad("the kind of selected elements", kind),
        };
        elements.push(Elements { column, from, to });
    }
    Ok(elements)
}
