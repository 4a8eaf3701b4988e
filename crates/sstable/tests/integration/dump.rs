//! The content of a stream in the form of the golden files.

use rows::{
    Cell, ColumnData, DeletionTime, Liveness, NO_DELETION_TIME, NO_TTL, PartitionHead, PartitionStream, Row, Unfiltered,
};
use schema::TableMetadata;
use serde_json::{Map, Value, json};

pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn deletion(deletion: &DeletionTime) -> Value {
    json!([deletion.marked_for_delete_at, deletion.local_deletion_time])
}

fn values(values: &[Option<bytes::Bytes>]) -> Value {
    values.iter().map(|value| value.as_ref().map_or(Value::Null, |value| json!(hex(value)))).collect()
}

pub fn head(head: &PartitionHead) -> Value {
    let deletion = if head.deletion.is_live() { Value::Null } else { deletion(&head.deletion) };
    json!({"pk": hex(&head.key.key), "tok": head.key.token.0, "del": deletion})
}

fn times(out: &mut Map<String, Value>, timestamp: i64, ttl: u32, local_deletion_time: u32) {
    out.insert("ts".to_owned(), json!(timestamp));
    if ttl != NO_TTL {
        out.insert("ttl".to_owned(), json!(ttl));
    }
    if local_deletion_time != NO_DELETION_TIME {
        out.insert("ldt".to_owned(), json!(local_deletion_time));
    }
}

fn cell(name: &str, cell: &Cell) -> Value {
    let mut out = Map::new();
    out.insert("n".to_owned(), json!(name));
    if let Some(path) = &cell.path {
        out.insert("p".to_owned(), json!(hex(path)));
    }
    times(&mut out, cell.timestamp, cell.ttl, cell.local_deletion_time);
    if cell.is_tombstone() {
        out.insert("dead".to_owned(), json!(1));
    } else {
        out.insert("v".to_owned(), json!(hex(&cell.value)));
    }
    Value::Object(out)
}

pub fn row(table: &TableMetadata, row: &Row, is_static: bool) -> Value {
    let mut out = Map::new();
    out.insert(if is_static { "static" } else { "row" }.to_owned(), values(&row.clustering));
    let Liveness { timestamp, ttl, local_expiration_time } = row.liveness;
    if !row.liveness.is_empty() {
        times(&mut out, timestamp, ttl, local_expiration_time);
    }
    if !row.deletion.is_live() {
        out.insert("del".to_owned(), deletion(&row.deletion));
    }
    let mut cells = Vec::new();
    for data in &row.columns {
        let name = &table.column(data.column()).unwrap().name;
        match data {
            ColumnData::Simple(simple) => cells.push(cell(name, simple)),
            ColumnData::Complex(complex) => {
                if !complex.deletion.is_live() {
                    cells.push(json!({"n": name, "cdel": deletion(&complex.deletion)}));
                }
                cells.extend(complex.cells.iter().map(|one| cell(name, one)));
            }
        }
    }
    out.insert("c".to_owned(), json!(cells));
    Value::Object(out)
}

pub fn unfiltered(table: &TableMetadata, unfiltered: &Unfiltered) -> Value {
    match unfiltered {
        Unfiltered::Row(one) => row(table, one, false),
        Unfiltered::Marker(marker) => {
            let mut out = json!({"marker": marker.position.kind.name(), "ck": values(&marker.position.values)});
            match (&marker.close, &marker.open) {
                (Some(close), Some(open)) => {
                    out["end"] = deletion(close);
                    out["start"] = deletion(open);
                }
                (Some(one), None) | (None, Some(one)) => out["del"] = deletion(one),
                (None, None) => {}
            }
            out
        }
    }
}

/// All of a stream, a line each.
pub fn lines(table: &TableMetadata, stream: &mut dyn PartitionStream) -> Vec<Value> {
    let mut lines = Vec::new();
    while let Some(partition) = stream.next_partition().unwrap() {
        lines.push(head(&partition));
        lines.extend(partition.static_row.iter().map(|one| row(table, one, true)));
        while let Some(one) = stream.next_unfiltered().unwrap() {
            lines.push(unfiltered(table, &one));
        }
    }
    lines
}
