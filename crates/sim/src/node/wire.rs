//! The native protocol, version 4, as far as the clients need it: QUERY without parameters, and
//! rows of numbers and booleans.
//!
//! Written by hand on purpose: the clients share no code with the server that they judge.

use bytes::{Buf, BufMut, Bytes, BytesMut};

const VERSION: u8 = 4;
/// Bytes of a header, which stand before a body.
pub(super) const HEADER: usize = 9;

/// Opcodes of answers.
const ERROR: u8 = 0;
const STARTUP: u8 = 1;
const READY: u8 = 2;
const QUERY: u8 = 7;
const RESULT: u8 = 8;

/// Consistency levels.
pub(super) const ONE: u16 = 1;
pub(super) const QUORUM: u16 = 4;
pub(super) const EACH_QUORUM: u16 = 7;
pub(super) const SERIAL: u16 = 8;
pub(super) const NODE_LOCAL: u16 = 11;

/// Kinds of results.
const ROWS: i32 = 2;
/// Flags of the metadata of rows.
const GLOBAL_TABLE: i32 = 1;
const HAS_MORE_PAGES: i32 = 2;

/// The node's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The request was carried out; rows of values, of which none has more than eight bytes.
    Rows(Vec<Vec<Option<i64>>>),
    /// An error's code and text.
    Error(i32, String),
}

fn envelope(opcode: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    bytes.put_slice(&[VERSION, 0, 0, 1, opcode]);
    bytes.put_u32(u32::try_from(body.len()).expect("clients send little"));
    bytes.put_slice(body);
    bytes.to_vec()
}

pub(super) fn startup() -> Vec<u8> {
    let mut body = BytesMut::new();
    body.put_u16(1);
    for text in ["CQL_VERSION", "3.0.0"] {
        body.put_u16(text.len() as u16);
        body.put_slice(text.as_bytes());
    }
    envelope(STARTUP, &body)
}

pub(super) fn query(text: &str, level: u16) -> Vec<u8> {
    let mut body = BytesMut::new();
    body.put_u32(u32::try_from(text.len()).expect("clients send little"));
    body.put_slice(text.as_bytes());
    body.put_u16(level);
    body.put_u8(0);
    envelope(QUERY, &body)
}

/// Bytes of the body that follows a header.
pub(super) fn body_size(header: &[u8; HEADER]) -> usize {
    u32::from_be_bytes([header[5], header[6], header[7], header[8]]) as usize
}

/// The answer in a body. None: this protocol does not know it, which is a finding by itself.
pub(super) fn decode(header: &[u8; HEADER], body: Vec<u8>) -> Option<Answer> {
    let mut body = Bytes::from(body);
    match header[4] {
        READY => Some(Answer::Rows(Vec::new())),
        ERROR => {
            let code = body.try_get_i32().ok()?;
            Some(Answer::Error(code, text(&mut body)?))
        }
        RESULT if body.try_get_i32().ok()? == ROWS => rows(body).map(Answer::Rows),
        RESULT => Some(Answer::Rows(Vec::new())),
        _ => None,
    }
}

fn text(body: &mut Bytes) -> Option<String> {
    let length = usize::from(body.try_get_u16().ok()?);
    if body.len() < length {
        return None;
    }
    String::from_utf8(body.split_to(length).to_vec()).ok()
}

fn rows(mut body: Bytes) -> Option<Vec<Vec<Option<i64>>>> {
    let flags = body.try_get_i32().ok()?;
    let columns = body.try_get_i32().ok()?;
    if flags & HAS_MORE_PAGES != 0 {
        return None;
    }
    if flags & GLOBAL_TABLE != 0 {
        let (_keyspace, _table) = (text(&mut body)?, text(&mut body)?);
    }
    for _ in 0..columns {
        if flags & GLOBAL_TABLE == 0 {
            let (_keyspace, _table) = (text(&mut body)?, text(&mut body)?);
        }
        text(&mut body)?;
        body.try_get_u16().ok()?;
    }
    let count = body.try_get_i32().ok()?;
    (0..count).map(|_| (0..columns).map(|_| value(&mut body)).collect()).collect()
}

/// A number of any size; a boolean is 0 or 1.
fn value(body: &mut Bytes) -> Option<Option<i64>> {
    let length = body.try_get_i32().ok()?;
    let Ok(length) = usize::try_from(length) else { return Some(None) };
    if length > 8 || body.len() < length {
        return None;
    }
    Some(Some(body.split_to(length).iter().fold(0, |sum, byte| sum << 8 | i64::from(*byte))))
}
