//! SCHEMA_PUSH_REQ and SCHEMA_PULL_RSP: a number of mutations of the schema's own tables, one a
//! keyspace.
//!
//! ```text
//! i32 n, n mutations
//! ```
//!
//! A mutation's own layout is that of the commit log and of MUTATION_REQ and belongs to the data
//! model; here it stays bytes.

use stdx::Cursor;

use crate::error::InternodeError;

/// How many mutations follow, and the bytes that they are in. The caller decodes them one behind
/// the other.
pub fn split(payload: &[u8]) -> Result<(usize, &[u8]), InternodeError> {
    let mut cursor = Cursor::new(payload);
    let found = cursor.i32()?;
    // a mutation has at least a count of updates
    let count = usize::try_from(found).ok().filter(|count| *count <= cursor.remaining());
    let count = count.ok_or(InternodeError::Value { part: "the number of mutations", found: i64::from(found) })?;
    Ok((count, cursor.rest()))
}

/// The payload of mutations that are serialized already.
pub fn join(mutations: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(4 + mutations.iter().map(Vec::len).sum::<usize>());
    stdx::put_i32(&mut out, i32::try_from(mutations.len()).expect("a schema has fewer keyspaces"));
    mutations.iter().for_each(|mutation| out.extend_from_slice(mutation));
    out
}
