//! Requests and answers of the native protocol as a client sees them: requests are written,
//! answers are read.
//!
//! The bytes of an answer come from the network, so they are read through a checked cursor, and no
//! count that they hold allocates memory. Native protocol specification v4 and v5, §4.1 and §4.2.

use std::sync::Arc;

use bytes::Bytes;
use stdx::{Cursor, CursorError, put_int_bytes, put_short_bytes, put_u16, put_u32};
use types::{Consistency, CqlType, UserType};

use super::server_error::ServerError;

/// Types may be nested this deep in the description of a column.
const TYPE_DEPTH_MAX: usize = 64;
/// The version whose messages differ from the older ones.
const V5: u8 = 5;

/// Opcodes that this client sends or reads.
pub mod opcode {
    #![allow(missing_docs)] // the names are the specification's
    pub const ERROR: u8 = 0x00;
    pub const STARTUP: u8 = 0x01;
    pub const READY: u8 = 0x02;
    pub const AUTHENTICATE: u8 = 0x03;
    pub const QUERY: u8 = 0x07;
    pub const RESULT: u8 = 0x08;
    pub const PREPARE: u8 = 0x09;
    pub const EXECUTE: u8 = 0x0A;
    pub const BATCH: u8 = 0x0D;
    pub const AUTH_CHALLENGE: u8 = 0x0E;
    pub const AUTH_RESPONSE: u8 = 0x0F;
    pub const AUTH_SUCCESS: u8 = 0x10;
}

/// Bits in the header of an envelope.
pub mod flags {
    #![allow(missing_docs)] // the names are the specification's
    pub const TRACING: u8 = 0x02;
    pub const CUSTOM_PAYLOAD: u8 = 0x04;
    pub const WARNING: u8 = 0x08;
}

/// How a statement is to be executed.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// How many replicas must answer.
    pub consistency: Consistency,
    /// The level of the reading phase of conditional statements.
    pub serial_consistency: Consistency,
    /// Most rows of a page; None: the whole result is one page.
    pub page_size: Option<u32>,
    /// Where the page begins, as the page before it told; None: the first page.
    pub paging_state: Option<Bytes>,
}

/// A value to be bound: bytes, a null, or nothing, which leaves a column as it is.
pub type Value = Option<Vec<u8>>;

const SKIP_METADATA: u32 = 0x02;
const VALUES: u32 = 0x01;
const PAGE_SIZE: u32 = 0x04;
const PAGING_STATE: u32 = 0x08;
const SERIAL_CONSISTENCY: u32 = 0x10;

fn put_parameters(out: &mut Vec<u8>, version: u8, parameters: &Parameters, values: &[Value], more: u32) {
    put_u16(out, parameters.consistency.code());
    let mut bits = SERIAL_CONSISTENCY | more;
    bits |= if values.is_empty() { 0 } else { VALUES };
    bits |= parameters.page_size.map_or(0, |_| PAGE_SIZE);
    bits |= parameters.paging_state.as_ref().map_or(0, |_| PAGING_STATE);
    put_bits(out, version, bits);
    if !values.is_empty() {
        put_values(out, values);
    }
    if let Some(size) = parameters.page_size {
        put_u32(out, size);
    }
    if let Some(state) = &parameters.paging_state {
        put_int_bytes(out, Some(state));
    }
    put_u16(out, parameters.serial_consistency.code());
}

fn put_bits(out: &mut Vec<u8>, version: u8, bits: u32) {
    match version {
        V5.. => put_u32(out, bits),
        _ => out.push(bits as u8),
    }
}

fn put_values(out: &mut Vec<u8>, values: &[Value]) {
    put_u16(out, values.len() as u16);
    values.iter().for_each(|value| put_int_bytes(out, value.as_deref()));
}

/// The body of STARTUP.
pub fn startup(cql_version: &str) -> Vec<u8> {
    let options =
        [("CQL_VERSION", cql_version), ("DRIVER_NAME", "helenus shell"), ("DRIVER_VERSION", env!("CARGO_PKG_VERSION"))];
    let mut out = Vec::new();
    put_u16(&mut out, options.len() as u16);
    for (name, value) in options {
        put_short_bytes(&mut out, name.as_bytes());
        put_short_bytes(&mut out, value.as_bytes());
    }
    out
}

/// The body of AUTH_RESPONSE for a user and a password (SASL PLAIN).
pub fn auth_response(user: &str, password: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_int_bytes(&mut out, Some(format!("\0{user}\0{password}").as_bytes()));
    out
}

/// The body of QUERY.
pub fn query(version: u8, statement: &str, parameters: &Parameters) -> Vec<u8> {
    let mut out = Vec::with_capacity(statement.len() + 32);
    put_int_bytes(&mut out, Some(statement.as_bytes()));
    put_parameters(&mut out, version, parameters, &[], 0);
    out
}

/// The body of PREPARE.
pub fn prepare(version: u8, statement: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(statement.len() + 8);
    put_int_bytes(&mut out, Some(statement.as_bytes()));
    if version >= V5 {
        put_u32(&mut out, 0);
    }
    out
}

/// The body of EXECUTE. The columns of the answer are those of the prepared statement.
pub fn execute(version: u8, prepared: &Prepared, values: &[Value], parameters: &Parameters) -> Vec<u8> {
    let size: usize = values.iter().map(|value| 4 + value.as_ref().map_or(0, Vec::len)).sum();
    let mut out = Vec::with_capacity(size + 64);
    put_short_bytes(&mut out, &prepared.id);
    if version >= V5 {
        put_short_bytes(&mut out, &prepared.result_id);
    }
    put_parameters(&mut out, version, parameters, values, SKIP_METADATA);
    out
}

/// The kinds of BATCH that this client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchKind {
    /// Without the batch log.
    Unlogged = 1,
    /// Of counters.
    Counter = 2,
}

/// The body of BATCH: one prepared statement with the values of each row.
pub fn batch(
    version: u8,
    kind: BatchKind,
    prepared: &Prepared,
    rows: &[&[Value]],
    consistency: Consistency,
    serial: Consistency,
) -> Vec<u8> {
    let mut out = Vec::new();
    out.push(kind as u8);
    put_u16(&mut out, rows.len() as u16);
    for values in rows {
        out.push(1);
        put_short_bytes(&mut out, &prepared.id);
        put_values(&mut out, values);
    }
    put_u16(&mut out, consistency.code());
    put_bits(&mut out, version, SERIAL_CONSISTENCY);
    put_u16(&mut out, serial.code());
    out
}

/// A statement that the server has prepared.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The statement's id.
    pub id: Bytes,
    /// The id of the columns of its answer; empty before version 5.
    pub result_id: Bytes,
    /// The bind markers, in their order.
    pub bound: Arc<[Column]>,
    /// The columns of its answer.
    pub columns: Arc<[Column]>,
}

/// A column of a result, or a bind marker.
#[derive(Clone, Debug)]
pub struct Column {
    /// The name.
    pub name: String,
    /// The type.
    pub ty: CqlType,
}

/// A page of rows. The rows stay serialized until they are asked for.
#[derive(Clone, Debug)]
pub struct Page {
    /// The columns.
    pub columns: Arc<[Column]>,
    /// Where the next page begins; None: this page is the last.
    pub paging_state: Option<Bytes>,
    /// Number of rows.
    pub count: usize,
    /// The rows' bytes, one value behind the other.
    rows: Bytes,
}

impl Page {
    /// Calls `see` with the values of each row.
    pub fn each_row<E: From<CursorError>>(
        &self,
        mut see: impl FnMut(&[Option<&[u8]>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut cursor = Cursor::new(&self.rows);
        let mut row = Vec::with_capacity(self.columns.len());
        for _ in 0..self.count {
            row.clear();
            for _ in 0..self.columns.len() {
                row.push(cursor.int_bytes()?);
            }
            see(&row)?;
        }
        Ok(())
    }

    /// The value of a column in a row, by the column's name.
    pub fn field<'r>(&self, row: &[Option<&'r [u8]>], name: &str) -> Option<&'r [u8]> {
        let at = self.columns.iter().position(|column| column.name == name)?;
        row.get(at).copied().flatten()
    }

    /// The text of a column in a row; nothing for a null.
    pub fn text(&self, row: &[Option<&[u8]>], name: &str) -> String {
        self.field(row, name).map_or(String::new(), |bytes| String::from_utf8_lossy(bytes).into_owned())
    }

    /// All rows.
    pub fn rows(&self) -> Result<Vec<Vec<Option<&[u8]>>>, CursorError> {
        let mut cursor = Cursor::new(&self.rows);
        let mut rows = Vec::new();
        for _ in 0..self.count {
            let row: Result<Vec<_>, _> = (0..self.columns.len()).map(|_| cursor.int_bytes()).collect();
            rows.push(row?);
        }
        Ok(rows)
    }
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Warnings of the server.
    pub warnings: Vec<String>,
    /// The session of the trace, if one was asked for.
    pub trace: Option<[u8; 16]>,
    /// The content.
    pub content: Content,
}

/// The content of an answer.
#[derive(Clone, Debug)]
pub enum Content {
    /// The connection can be used.
    Ready,
    /// The server wants a login; the class that checks it.
    Authenticate(String),
    /// The server has another question about the login.
    AuthChallenge,
    /// The login was accepted.
    AuthSuccess,
    /// A statement without rows was executed.
    Void,
    /// Rows.
    Rows(Page),
    /// The keyspace of the connection is now this one.
    SetKeyspace(String),
    /// The statement was prepared.
    Prepared(Prepared),
    /// The schema was changed.
    SchemaChange,
    /// The server refused the request, or failed.
    Error(ServerError),
    /// An opcode that no request of this client is answered with.
    Other,
}

/// Why an answer cannot be read.
pub type WireError = CursorError;

/// Reads the body of an answer. `known` are the columns of a prepared statement, whose answer does
/// not repeat them.
pub fn answer(
    version: u8,
    bits: u8,
    code: u8,
    body: &Bytes,
    known: Option<&Arc<[Column]>>,
) -> Result<Answer, WireError> {
    let mut cursor = Cursor::new(body);
    let trace = match bits & flags::TRACING {
        0 => None,
        _ => <[u8; 16]>::try_from(cursor.take(16)?).ok(),
    };
    let mut warnings = Vec::new();
    if bits & flags::WARNING != 0 {
        for _ in 0..cursor.u16()? {
            warnings.push(text(&mut cursor)?);
        }
    }
    if bits & flags::CUSTOM_PAYLOAD != 0 {
        for _ in 0..cursor.u16()? {
            cursor.short_bytes()?;
            cursor.int_bytes()?;
        }
    }
    let content = match code {
        opcode::READY => Content::Ready,
        opcode::AUTHENTICATE => Content::Authenticate(text(&mut cursor)?),
        opcode::AUTH_CHALLENGE => Content::AuthChallenge,
        opcode::AUTH_SUCCESS => Content::AuthSuccess,
        opcode::ERROR => Content::Error(ServerError::read(&mut cursor)?),
        opcode::RESULT => result(version, &mut cursor, body, known)?,
        _ => Content::Other,
    };
    Ok(Answer { warnings, trace, content })
}

fn text(cursor: &mut Cursor<'_>) -> Result<String, WireError> {
    Ok(String::from_utf8_lossy(cursor.short_bytes()?).into_owned())
}

fn result(
    version: u8,
    cursor: &mut Cursor<'_>,
    body: &Bytes,
    known: Option<&Arc<[Column]>>,
) -> Result<Content, WireError> {
    Ok(match cursor.i32()? {
        2 => {
            let described = metadata(cursor, known)?;
            let count = usize::try_from(cursor.i32()?).unwrap_or(0);
            let rows = body.slice(cursor.position()..);
            // each value has a length of four bytes: a count without bytes behind it costs nothing
            let needed = count.saturating_mul(described.columns.len().saturating_mul(4).max(1));
            if needed > rows.len() {
                return Err(CursorError::Truncated { offset: cursor.position(), needed });
            }
            Content::Rows(Page { columns: described.columns, paging_state: described.paging_state, count, rows })
        }
        3 => Content::SetKeyspace(text(cursor)?),
        4 => {
            let id = Bytes::copy_from_slice(cursor.short_bytes()?);
            let result_id = match version {
                V5.. => Bytes::copy_from_slice(cursor.short_bytes()?),
                _ => Bytes::new(),
            };
            let bits = cursor.i32()?;
            let count = cursor.i32()?;
            for _ in 0..cursor.i32()? {
                cursor.u16()?;
            }
            let bound = columns(cursor, bits, count)?;
            let columns = metadata(cursor, None)?.columns;
            Content::Prepared(Prepared { id, result_id, bound, columns })
        }
        5 => Content::SchemaChange,
        _ => Content::Void,
    })
}

struct Described {
    columns: Arc<[Column]>,
    paging_state: Option<Bytes>,
}

const GLOBAL_TABLE: i32 = 0x01;
const HAS_MORE_PAGES: i32 = 0x02;
const NO_METADATA: i32 = 0x04;
const METADATA_CHANGED: i32 = 0x08;

fn metadata(cursor: &mut Cursor<'_>, known: Option<&Arc<[Column]>>) -> Result<Described, WireError> {
    let bits = cursor.i32()?;
    let count = cursor.i32()?;
    let paging_state = match bits & HAS_MORE_PAGES {
        0 => None,
        _ => cursor.int_bytes()?.map(Bytes::copy_from_slice),
    };
    if bits & METADATA_CHANGED != 0 {
        cursor.short_bytes()?;
    }
    let columns = match bits & NO_METADATA {
        0 => columns(cursor, bits, count)?,
        _ => known.cloned().unwrap_or_default(),
    };
    Ok(Described { columns, paging_state })
}

fn columns(cursor: &mut Cursor<'_>, bits: i32, count: i32) -> Result<Arc<[Column]>, WireError> {
    if bits & NO_METADATA != 0 {
        return Ok(Arc::default());
    }
    let is_global = bits & GLOBAL_TABLE != 0;
    if is_global {
        cursor.short_bytes()?;
        cursor.short_bytes()?;
    }
    let mut columns = Vec::new();
    for _ in 0..count {
        // keyspace and table
        if !is_global {
            cursor.short_bytes()?;
            cursor.short_bytes()?;
        }
        let name = text(cursor)?;
        columns.push(Column { name, ty: column_type(cursor, 0)? });
    }
    Ok(columns.into())
}

fn column_type(cursor: &mut Cursor<'_>, depth: usize) -> Result<CqlType, WireError> {
    if depth > TYPE_DEPTH_MAX {
        return Err(CursorError::Truncated { offset: cursor.position(), needed: 0 });
    }
    let frozen = false;
    let inner = |cursor: &mut Cursor<'_>| column_type(cursor, depth + 1);
    Ok(match cursor.u16()? {
        0x00 => {
            let class = text(cursor)?;
            let parsed = types::marshal::parse(&class).map(|(ty, _)| ty);
            parsed.unwrap_or_else(|_| CqlType::Custom(Arc::new(types::CustomType::Unknown(class))))
        }
        0x01 => CqlType::Ascii,
        0x02 => CqlType::BigInt,
        0x03 => CqlType::Blob,
        0x04 => CqlType::Boolean,
        0x05 => CqlType::Counter,
        0x06 => CqlType::Decimal,
        0x07 => CqlType::Double,
        0x08 => CqlType::Float,
        0x09 => CqlType::Int,
        0x0B => CqlType::Timestamp,
        0x0C => CqlType::Uuid,
        0x0D => CqlType::Text,
        0x0E => CqlType::Varint,
        0x0F => CqlType::TimeUuid,
        0x10 => CqlType::Inet,
        0x11 => CqlType::Date,
        0x12 => CqlType::Time,
        0x13 => CqlType::SmallInt,
        0x14 => CqlType::TinyInt,
        0x15 => CqlType::Duration,
        0x20 => CqlType::List { element: Arc::new(inner(cursor)?), frozen },
        0x21 => CqlType::Map { key: Arc::new(inner(cursor)?), value: Arc::new(inner(cursor)?), frozen },
        0x22 => CqlType::Set { element: Arc::new(inner(cursor)?), frozen },
        0x30 => {
            let (keyspace, name) = (text(cursor)?, text(cursor)?);
            let mut fields = Vec::new();
            for _ in 0..cursor.u16()? {
                fields.push((text(cursor)?, inner(cursor)?));
            }
            CqlType::Udt(Arc::new(UserType { keyspace, name, fields }), frozen)
        }
        0x31 => {
            let mut elements = Vec::new();
            for _ in 0..cursor.u16()? {
                elements.push(inner(cursor)?);
            }
            CqlType::Tuple(elements.into())
        }
        other => CqlType::Custom(Arc::new(types::CustomType::Unknown(format!("type 0x{other:04x}")))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameters() -> Parameters {
        Parameters {
            consistency: Consistency::One,
            serial_consistency: Consistency::Serial,
            page_size: Some(100),
            paging_state: None,
        }
    }

    #[test]
    fn a_query_in_both_versions() {
        let expected = [0, 0, 0, 1, b'Q', 0, 1, 0x14, 0, 0, 0, 100, 0, 8];
        assert_eq!(query(4, "Q", &parameters()), expected);
        let expected = [0, 0, 0, 1, b'Q', 0, 1, 0, 0, 0, 0x14, 0, 0, 0, 100, 0, 8];
        assert_eq!(query(5, "Q", &parameters()), expected);
    }

    /// One column `t.k int`, two rows: 7 and null.
    fn rows() -> Vec<u8> {
        let mut body = vec![0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, b's', 0, 1, b't', 0, 1, b'k', 0, 9];
        body.extend([0, 0, 0, 2, 0, 0, 0, 4, 0, 0, 0, 7, 0xff, 0xff, 0xff, 0xff]);
        body
    }

    #[test]
    fn rows_are_read() {
        let read = answer(5, 0, opcode::RESULT, &rows().into(), None).unwrap();
        let Content::Rows(page) = read.content else { panic!("{read:?}") };
        assert_eq!((page.columns[0].name.as_str(), page.count), ("k", 2));
        assert_eq!(page.rows().unwrap(), [[Some(&[0, 0, 0, 7][..])], [None]]);
    }

    #[test]
    fn damaged_answers_are_refused() {
        let body = rows();
        for cut in 0..body.len() {
            let read = answer(5, 0, opcode::RESULT, &body[..cut].to_vec().into(), None);
            let whole = read.is_ok_and(|read| match read.content {
                Content::Rows(page) => page.rows().is_ok(),
                _ => true,
            });
            assert!(!whole, "{cut}");
        }
        for at in 0..body.len() {
            let mut damaged = body.clone();
            damaged[at] ^= 0x55;
            // no panic, and no memory for lengths that are not there
            if let Ok(Answer { content: Content::Rows(page), .. }) = answer(5, 0xff, 8, &damaged.clone().into(), None) {
                let _ = page.rows();
            }
            if let Ok(Answer { content: Content::Rows(page), .. }) = answer(5, 0, 8, &damaged.into(), None) {
                let _ = page.rows();
            }
        }
    }
}
