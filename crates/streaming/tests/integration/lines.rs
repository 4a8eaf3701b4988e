//! Partitions as lines of text, in the form of `testdata/links.jsonl.gz`.
//!
//! ```text
//! P <key> <deletion>
//! S|R (<clusterings>) <liveness> <deletion> <cells>
//! M <kind> (<clusterings>) <deletions>
//! ```
//!
//! A deletion is `timestamp,seconds` or `-`, a cell `column[path]=timestamp,ttl,seconds,value`.

use bytes::Bytes;
use rows::{Cell, ColumnData, DeletionTime, NO_DELETION_TIME, NO_TIMESTAMP, PartitionStream, Row, Unfiltered};
use schema::TableMetadata;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn seconds(time: u32) -> String {
    if time == NO_DELETION_TIME { "-".to_owned() } else { time.to_string() }
}

fn deletion(deletion: &DeletionTime) -> String {
    if deletion.is_live() {
        return "-".to_owned();
    }
    format!("{},{}", deletion.marked_for_delete_at, deletion.local_deletion_time)
}

fn values(values: &[Option<Bytes>]) -> String {
    values.iter().map(|value| value.as_ref().map_or("~".to_owned(), |value| hex(value))).collect::<Vec<_>>().join(",")
}

fn cell(name: &str, cell: &Cell) -> String {
    let path = cell.path.as_ref().map_or(String::new(), |path| format!("[{}]", hex(path)));
    let value = if cell.is_tombstone() { "!".to_owned() } else { hex(&cell.value) };
    format!("{name}{path}={},{},{},{value}", cell.timestamp, cell.ttl, seconds(cell.local_deletion_time))
}

fn row(kind: &str, row: &Row, table: &TableMetadata) -> String {
    let liveness = &row.liveness;
    let live = match liveness.timestamp {
        NO_TIMESTAMP => "-".to_owned(),
        timestamp => format!("{timestamp},{},{}", liveness.ttl, seconds(liveness.local_expiration_time)),
    };
    let mut columns: Vec<(String, Vec<String>)> = row.columns.iter().map(|data| column(data, table)).collect();
    columns.sort();
    let mut parts = vec![kind.to_owned(), format!("({})", values(&row.clustering)), live, deletion(&row.deletion)];
    parts.extend(columns.into_iter().flat_map(|(_, cells)| cells));
    parts.join(" ")
}

fn column(data: &ColumnData, table: &TableMetadata) -> (String, Vec<String>) {
    let name = |id| table.column(id).unwrap().name.clone();
    match data {
        ColumnData::Simple(simple) => {
            let name = name(simple.column);
            (name.clone(), vec![cell(&name, simple)])
        }
        ColumnData::Complex(complex) => {
            let name = name(complex.column);
            let deleted = (!complex.deletion.is_live()).then(|| format!("{name}:{}", deletion(&complex.deletion)));
            let cells = complex.cells.iter().map(|item| cell(&name, item));
            (name.clone(), deleted.into_iter().chain(cells).collect())
        }
    }
}

/// All partitions of a stream.
pub fn of(mut stream: impl PartitionStream, table: &TableMetadata) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(head) = stream.next_partition().unwrap() {
        lines.push(format!("P {} {}", hex(&head.key.key), deletion(&head.deletion)));
        lines.extend(head.static_row.iter().map(|statics| row("S", statics, table)));
        while let Some(unfiltered) = stream.next_unfiltered().unwrap() {
            lines.push(match &unfiltered {
                Unfiltered::Row(found) => row("R", found, table),
                Unfiltered::Marker(marker) => {
                    let ends = [&marker.close, &marker.open].into_iter().flatten().map(deletion);
                    let kind = marker.position.kind as u8;
                    let ends: Vec<String> = ends.collect();
                    format!("M {kind} ({}) {}", values(&marker.position.values), ends.join(" "))
                }
            });
        }
    }
    lines
}
