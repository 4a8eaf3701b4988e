//! Result metadata: the columns of a result, encoded once for each version and then copied.
//!
//! Agrees with `ResultSet.ResultMetadata`. The id of version 5 is computed from the same bytes as
//! in Cassandra, so that nodes of a mixed cluster agree on it.

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
    /// The name or alias of the column, as clients see it.
    pub name: Arc<str>,
    /// The type.
    pub cql_type: CqlType,
}

/// The columns of a result.
#[derive(Debug)]
pub struct ResultMetadata {
    columns: Vec<ColumnSpec>,
    /// The id; computed when it is first asked for.
    id: OnceLock<[u8; 16]>,
    /// For each form of the versions, the global spec (if there is one) and the columns.
    encoded: [OnceLock<Bytes>; VERSION_FORMS],
}

/// Number of encoded forms: versions 5 and 6 have the same one.
const VERSION_FORMS: usize = 3;

fn version_form(version: ProtocolVersion) -> usize {
    match version {
        ProtocolVersion::V3 => 0,
        ProtocolVersion::V4 => 1,
        ProtocolVersion::V5 | ProtocolVersion::V6 => 2,
    }
}

/// The parts of the metadata that an answer includes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MetadataFlags<'a> {
    pub skip: bool,
    pub paging_state: Option<&'a [u8]>,
    pub changed: bool,
}

impl ResultMetadata {
    /// The metadata for these columns.
    pub fn new(columns: Vec<ColumnSpec>) -> Self {
        Self { columns, id: OnceLock::new(), encoded: Default::default() }
    }

    /// The metadata of a statement without rows.
    pub fn empty() -> Self {
        Self::new(Vec::new())
    }

    /// The columns in their order.
    pub fn columns(&self) -> &[ColumnSpec] {
        &self.columns
    }

    /// The id with which a client of version 5 names the metadata that it knows.
    pub fn id(&self) -> &[u8; 16] {
        self.id.get_or_init(|| metadata_id(&self.columns))
    }

    /// Appends flags, number of columns, and the parts that the flags announce.
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

/// Whether all columns belong to one table.
pub(super) fn same_table(columns: &[ColumnSpec]) -> bool {
    columns.windows(2).all(|pair| pair[0].keyspace == pair[1].keyspace && pair[0].table == pair[1].table)
}

/// Appends the global spec, if all columns belong to one table, and the columns.
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

/// The MD5 of name, 0, class name, 0, 0 of each column.
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
