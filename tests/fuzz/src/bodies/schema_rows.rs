//! Rows of `system_schema` with any content, as they come from SSTables that nobody validated.
//!
//! Input, row by row: `u8` table, clustering as `u8` count of (`u8` length, bytes), cells as `u8`
//! count of (`u8` length, name, `u16` length, value). All rows are of one keyspace.

use bytes::Bytes;
use schema::Schema;
use schema::system_schema::{SchemaRow, SchemaTable, rows_of};
use stdx::Cursor;

const KEYSPACE: &str = "ks";

/// The schema that the rows make, if any, can be described and gives rows that make the same.
pub fn schema_rows(data: &[u8]) {
    let loaded = Schema::from_rows(read(data), None);
    let Some(keyspace) = loaded.schema.keyspace(KEYSPACE) else { return };
    let _ = schema::describe::keyspace(keyspace);
    for table in keyspace.tables.values() {
        let _ = schema::describe::table(table, true);
    }
    let again = Schema::from_rows(rows_of(keyspace), None);
    assert!(again.schema.keyspace(KEYSPACE).is_some_and(|again| again.tables.len() == keyspace.tables.len()));
}

fn read(data: &[u8]) -> Vec<SchemaRow> {
    let mut cursor = Cursor::new(data);
    let mut rows = Vec::new();
    while let Ok(row) = read_row(&mut cursor) {
        rows.push(row);
    }
    rows
}

fn read_row(cursor: &mut Cursor<'_>) -> Result<SchemaRow, stdx::CursorError> {
    let table = SchemaTable::ALL[usize::from(cursor.u8()?) % SchemaTable::ALL.len()];
    let short = |cursor: &mut Cursor<'_>| {
        let length = usize::from(cursor.u8()?);
        cursor.take(length).map(Bytes::copy_from_slice)
    };
    let mut clustering = Vec::new();
    for _ in 0..cursor.u8()? {
        clustering.push(short(cursor)?);
    }
    let mut cells = Vec::new();
    for _ in 0..cursor.u8()? {
        let name = String::from_utf8_lossy(&short(cursor)?).into_owned();
        cells.push((name, Bytes::copy_from_slice(cursor.short_bytes()?)));
    }
    Ok(SchemaRow { table, keyspace: KEYSPACE.to_owned(), clustering, cells })
}

/// The rows in the form of an input.
pub fn print(rows: &[SchemaRow]) -> Vec<u8> {
    let mut out = Vec::new();
    for row in rows {
        let table = SchemaTable::ALL.iter().position(|table| *table == row.table).unwrap_or(0);
        out.extend([table as u8, row.clustering.len() as u8]);
        for value in &row.clustering {
            out.push(value.len() as u8);
            out.extend_from_slice(value);
        }
        out.push(row.cells.len() as u8);
        for (name, value) in &row.cells {
            out.push(name.len() as u8);
            out.extend_from_slice(name.as_bytes());
            stdx::put_short_bytes(&mut out, value);
        }
    }
    out
}
