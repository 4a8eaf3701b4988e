//! DESCRIBE: the schema as rows of CREATE statements, and lists of what exists.
//!
//! The elements of an answer are counted from the start of the statement: a page's state is the
//! number of the next one and the version of the schema, since after a change the numbers mean
//! something else. The texts themselves are made in `schema::describe`.
//!
//! Must agree with: `org.apache.cassandra.cql3.statements.DescribeStatement`; the columns are those
//! of protocol v5 drivers and cqlsh.

mod elements;

use std::sync::Arc;

use schema::Schema;
use types::{CqlType, collection};

use crate::ast::{Describe, DescribeTarget};
use crate::coordinator::ClusterInfo;
use crate::error::CqlError;
use crate::options::QueryOptions;
use crate::result::{ColumnSpec, ResultMetadata, ResultSet};

/// The refusal of a page of DESCRIBE whose paging state was made by another version of the schema.
const SCHEMA_CHANGED: &str = "The schema has changed since the previous page of the DESCRIBE statement result. \
     Please retry the DESCRIBE statement.";

/// Length of a schema version and a number in a paging state.
const PAGING_STATE_SIZE: usize = 24;

/// Answers a DESCRIBE. `keyspace` is the connection's. `ownership` gives the last token of each
/// range of the ring, with the nodes that hold a keyspace's data of that range.
pub fn describe(
    statement: &Describe<'_>,
    keyspace: Option<&str>,
    schema: &Schema,
    cluster: &ClusterInfo,
    ownership: impl Fn(&str) -> Vec<(i64, Vec<String>)>,
    options: &QueryOptions,
) -> Result<ResultSet, CqlError> {
    let (metadata, rows) = match &statement.target {
        DescribeTarget::Cluster => {
            let of_users = keyspace.filter(|keyspace| !schema::system::is_system_keyspace(keyspace));
            describe_cluster(of_users.map(ownership), cluster)
        }
        target => {
            let (elements, with_statement) = elements::of(target, keyspace, schema)?;
            let names: &[&str] = match with_statement {
                true => &["keyspace_name", "type", "name", "create_statement"],
                false => &["keyspace_name", "type", "name"],
            };
            let row = |element: &elements::Element<'_>| element.row(with_statement, statement.with_internals);
            (texts(names), elements.iter().map(row).collect())
        }
    };
    page(metadata, rows, schema, options)
}

fn texts(names: &[&str]) -> ResultMetadata {
    ResultMetadata { columns: names.iter().map(|name| column(name, CqlType::Text)).collect() }
}

fn column(name: &str, ty: CqlType) -> ColumnSpec {
    ColumnSpec { keyspace: "system".into(), table: "describe".into(), name: name.into(), ty }
}

/// DESCRIBE CLUSTER: one row. `ownership`: the nodes of each range, for the keyspace of the
/// connection; None: the connection has no keyspace of users.
fn describe_cluster(
    ownership: Option<Vec<(i64, Vec<String>)>>,
    cluster: &ClusterInfo,
) -> (ResultMetadata, Vec<Vec<Vec<u8>>>) {
    let mut metadata = texts(&["cluster", "partitioner", "snitch"]);
    let mut row: Vec<Vec<u8>> =
        [&cluster.name, &cluster.partitioner, &cluster.snitch].map(|text| text.as_bytes().to_vec()).into();
    if let Some(ranges) = ownership {
        let list = CqlType::List { element: Arc::new(CqlType::Text), frozen: true };
        let ownership = CqlType::Map { key: Arc::new(CqlType::Text), value: Arc::new(list), frozen: true };
        let entries = ranges
            .iter()
            .map(|(token, nodes)| (token.to_string().into_bytes(), collection::build_list(nodes)))
            .collect();
        metadata.columns.push(column("range_ownership", ownership));
        row.push(collection::build_map(&CqlType::Text, entries));
    }
    (metadata, vec![row])
}

/// The rows that belong to the asked page, as on the wire.
fn page(
    metadata: ResultMetadata,
    rows: Vec<Vec<Vec<u8>>>,
    schema: &Schema,
    options: &QueryOptions,
) -> Result<ResultSet, CqlError> {
    let start = match &options.paging_state {
        Some(state) => position(state, schema)?,
        None => 0,
    };
    let size = options.page_size.filter(|size| *size > 0).map_or(usize::MAX, |size| size as usize);
    let mut wire = Vec::new();
    let mut row_count = 0;
    for value in rows.iter().skip(start).take(size).inspect(|_| row_count += 1).flatten() {
        let length =
            i32::try_from(value.len()).map_err(|_| CqlError::Server("a row of DESCRIBE is too long".into()))?;
        wire.extend_from_slice(&length.to_be_bytes());
        wire.extend_from_slice(value);
    }
    let more = rows.len().saturating_sub(start) > size;
    let paging_state = more.then(|| {
        let next = (start + size) as u64;
        [&schema.version[..], &next.to_be_bytes()].concat()
    });
    Ok(ResultSet { metadata: Arc::new(metadata), rows: wire.into(), row_count, paging_state })
}

/// Where a paging state says to go on.
fn position(state: &[u8], schema: &Schema) -> Result<usize, CqlError> {
    let state: &[u8; PAGING_STATE_SIZE] =
        state.try_into().map_err(|_| CqlError::invalid("Incompatible paging state"))?;
    let (version, next) = state.split_at(schema.version.len());
    if version != schema.version {
        return Err(CqlError::invalid(SCHEMA_CHANGED));
    }
    let next = u64::from_be_bytes(next.try_into().expect("the rest of a paging state is 8 bytes"));
    Ok(usize::try_from(next).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests;
