//! Result metadata: the columns of a result, encoded once per version and then copied.
//!
//! Agrees with `ResultSet.ResultMetadata`; the id of version 5 is computed from the same bytes as Cassandra's, so that nodes of
//! a mixed cluster agree on it.

use std::sync::{Arc, OnceLock};

use bytes::{BufMut, Bytes, BytesMut};
use md5::{Digest, Md5};
use types::CqlType;

use super::type_option::{put_type, type_name};
use crate::version::ProtocolVersion;
use crate::wire::{put_bytes, put_short_bytes, put_string};

pub(super) const GLOBAL_TABLES_SPEC: i32 = 0x0001;
const HAS_MORE_PAGES: i32 = 0x0002;
pub(super) const NO_METADATA: i32 = 0x0004;
const METADATA_CHANGED: i32 = 0x0008;

/// A column of a result, or a bind marker.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnSpec {
    /// The keyspace of the table.
    pub keyspace: Arc<str>,
    /// The table.
    pub table: Arc<str>,
    /// The column's name or alias, as it is shown.
    pub name: Arc<str>,
    /// Its type.
    pub cql_type: CqlType,
}

/// The columns of a result.
#[derive(Debug)]
pub struct ResultMetadata {
    columns: Vec<ColumnSpec>,
    /// Made when it is asked for.
    id: OnceLock<[u8; 16]>,
    /// Per version: the global spec, if any, and the columns.
    encoded: [OnceLock<Bytes>; VERSION_FORMS],
}

/// Versions 5 and 6 encode alike.
const VERSION_FORMS: usize = 3;

fn version_form(version: ProtocolVersion) -> usize {
    match version {
        ProtocolVersion::V3 => 0,
        ProtocolVersion::V4 => 1,
        ProtocolVersion::V5 | ProtocolVersion::V6 => 2,
    }
}

/// What one answer says of its metadata.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MetadataFlags<'a> {
    pub skip: bool,
    pub paging_state: Option<&'a [u8]>,
    pub changed: bool,
}

impl ResultMetadata {
    /// The metadata of these columns.
    pub fn new(columns: Vec<ColumnSpec>) -> Self {
        Self { columns, id: OnceLock::new(), encoded: Default::default() }
    }

    /// What statements have that give no rows.
    pub fn empty() -> Self {
        Self::new(Vec::new())
    }

    /// The columns in their order.
    pub fn columns(&self) -> &[ColumnSpec] {
        &self.columns
    }

    /// The id by which a client of version 5 says what it knows.
    pub fn id(&self) -> &[u8; 16] {
        self.id.get_or_init(|| metadata_id(&self.columns))
    }

    /// Appends flags, column count, and what the flags call for.
    pub(super) fn encode(&self, out: &mut BytesMut, version: ProtocolVersion, flags: MetadataFlags<'_>) {
        let changed = flags.changed && version >= ProtocolVersion::V5;
        let skip = (flags.skip && !changed) || self.columns.is_empty();
        let global = !self.columns.is_empty() && same_table(&self.columns);
        let mut bits = 0;
        bits |= if global { GLOBAL_TABLES_SPEC } else { 0 };
        bits |= if flags.paging_state.is_some() { HAS_MORE_PAGES } else { 0 };
        bits |= if skip { NO_METADATA } else { 0 };
        bits |= if changed { METADATA_CHANGED } else { 0 };
        out.put_i32(bits);
        out.put_i32(self.columns.len() as i32);
        if let Some(state) = flags.paging_state {
            put_bytes(out, Some(state));
        }
        if changed {
            put_short_bytes(out, self.id());
        }
        if !skip {
            out.put_slice(self.encoded_columns(version));
        }
    }

    fn encoded_columns(&self, version: ProtocolVersion) -> &[u8] {
        self.encoded[version_form(version)].get_or_init(|| {
            let mut out = BytesMut::new();
            put_columns(&mut out, &self.columns, version);
            out.freeze()
        })
    }
}

/// Whether the columns can share one keyspace and table.
pub(super) fn same_table(columns: &[ColumnSpec]) -> bool {
    columns.windows(2).all(|pair| pair[0].keyspace == pair[1].keyspace && pair[0].table == pair[1].table)
}

/// Appends the global spec if all columns are of one table, and the columns.
pub(super) fn put_columns(out: &mut BytesMut, columns: &[ColumnSpec], version: ProtocolVersion) {
    let global = same_table(columns);
    if let Some(first) = columns.first().filter(|_| global) {
        put_string(out, &first.keyspace);
        put_string(out, &first.table);
    }
    for column in columns {
        if !global {
            put_string(out, &column.keyspace);
            put_string(out, &column.table);
        }
        put_string(out, &column.name);
        put_type(out, &column.cql_type, version);
    }
}

/// MD5 over name, 0, class name, 0, 0 of each column.
fn metadata_id(columns: &[ColumnSpec]) -> [u8; 16] {
    let mut digest = Md5::new();
    for column in columns {
        digest.update(column.name.as_bytes());
        digest.update([0]);
        digest.update(type_name(&column.cql_type));
        digest.update([0, 0]);
    }
    digest.finalize().into()
}
