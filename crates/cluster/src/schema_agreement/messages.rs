//! The payload of SCHEMA_PUSH_REQ and SCHEMA_PULL_RSP: mutations of the schema tables. Agrees with
//! `org.apache.cassandra.schema.SchemaMutationsSerializer`.

use std::sync::Arc;

use bytes::Bytes;
use internode::payload::schema::{join, split};
use rows::Mutation;
use rows::codec::{MutationDecoder, encode_mutation};
use schema::system_schema::SchemaTable;
use schema::{ColumnKind, DroppedColumn, Schema, TableId, TableMetadata};
use types::CqlType;

/// The keyspace of the schema tables.
const KEYSPACE: &str = "system_schema";

/// The mutations as a payload.
pub fn encode(mutations: &[Mutation]) -> Vec<u8> {
    let one = |mutation| {
        let mut out = Vec::new();
        encode_mutation(&mut out, mutation);
        out
    };
    join(&mutations.iter().map(one).collect::<Vec<_>>())
}

/// The mutations of a payload; the error says what cannot be read. `schema` is the schema in force,
/// which has the schema tables themselves.
pub fn decode(payload: &Bytes, schema: &Schema) -> Result<Vec<Mutation>, String> {
    let (count, rest) = split(payload).map_err(|error| error.to_string())?;
    let mut rest = payload.slice_ref(rest);
    let tables = schema_tables(schema);
    let table_of = |id: TableId| tables.iter().find(|table| table.id == id).cloned();
    let mut decoder = MutationDecoder::new(&table_of);
    let mut mutations = Vec::new();
    for _ in 0..count {
        let (mutation, taken) = decoder.decode_next(&rest).map_err(|error| error.to_string())?;
        mutations.push(mutation.ok_or("rows of a table that is no schema table")?);
        rest = rest.slice(taken..);
    }
    match rest.len() {
        0 => Ok(mutations),
        left => Err(format!("{left} bytes behind the last of {count} mutations")),
    }
}

/// The schema tables as other nodes may have them. Where automatic repair is switched on, Cassandra
/// has one column more in two of them. Its cells are not kept, and such a node never agrees with
/// one that does not have the column, of whichever program.
fn schema_tables(schema: &Schema) -> Vec<Arc<TableMetadata>> {
    let known = SchemaTable::ALL.into_iter().filter_map(|table| schema.table(KEYSPACE, table.name()));
    let with_repair = |table: &Arc<TableMetadata>| match SchemaTable::from_name(&table.name) {
        Some(SchemaTable::Tables | SchemaTable::Views) => {
            let mut table = TableMetadata::clone(table);
            let text = || Arc::new(CqlType::Text);
            let column = DroppedColumn {
                name: "auto_repair".to_owned(),
                ty: CqlType::Map { key: text(), value: text(), frozen: true },
                kind: ColumnKind::Regular,
                dropped_time: i64::MAX,
            };
            table.dropped.insert(column.name.clone(), column);
            Arc::new(table)
        }
        _ => Arc::clone(table),
    };
    known.map(with_repair).collect()
}
