//! The answer of a conditional statement: whether it was applied and, if not, the rows whose
//! conditions failed.

use std::sync::Arc;

use rows::Row;
use schema::ColumnMetadata;
use types::CqlType;

use super::request::Request;
use crate::coordinator::CasPartition;
use crate::error::CqlError;
use crate::keys;
use crate::result::{ColumnSpec, CqlResult, ResultMetadata, ResultSet};
use crate::selection::{Column, RowView};

const APPLIED: &str = "[applied]";

/// The answer. `seen`: the rows that were read, if a condition failed; None: the statement was
/// applied.
pub(super) fn of(request: &Request<'_>, seen: Option<&CasPartition>, now: u32) -> Result<CqlResult, CqlError> {
    let table = request.table;
    let keyspace: Arc<str> = Arc::from(table.keyspace.as_str());
    let name: Arc<str> = Arc::from(table.name.as_str());
    let spec = |column: &str, ty: CqlType| ColumnSpec {
        keyspace: Arc::clone(&keyspace),
        table: Arc::clone(&name),
        name: Arc::from(column),
        ty,
    };
    let mut columns = vec![spec(APPLIED, CqlType::Boolean)];
    let mut out = Vec::new();
    let mut row_count = 0;
    let mut begin = |out: &mut Vec<u8>| {
        row_count += 1;
        stdx::put_int_bytes(out, Some(&[u8::from(seen.is_none())]));
    };
    let rows = seen.map(rows_of).unwrap_or_default();
    if rows.is_empty() {
        begin(&mut out);
    } else {
        let shown: Vec<&ColumnMetadata> = request.shown.clone().unwrap_or_else(|| table.columns_in_select_order());
        columns.extend(shown.iter().map(|column| spec(&column.name, column.ty.clone())));
        let places: Vec<_> = shown.iter().map(|column| Column::of(column)).collect();
        let key = keys::decompose(&request.key.key, table.partition_key.len());
        let static_row = seen.and_then(|partition| partition.static_row.as_ref());
        for row in rows {
            begin(&mut out);
            let clustering = row.map_or(&[][..], |row| row.clustering.as_slice());
            let view = RowView { key: &key, clustering, static_row, row, now, aggregates: &[] };
            places.iter().for_each(|place| view.put(&mut out, place));
        }
    }
    let metadata = Arc::new(ResultMetadata { columns });
    Ok(CqlResult::Rows(ResultSet { metadata, rows: out.into(), row_count, paging_state: None }))
}

/// The rows as a SELECT would give them: a partition that has only its static row is one row
/// without clustering.
fn rows_of(partition: &CasPartition) -> Vec<Option<&Row>> {
    if partition.rows.is_empty() && partition.static_row.is_some() {
        return vec![None];
    }
    partition.rows.iter().map(Some).collect()
}
