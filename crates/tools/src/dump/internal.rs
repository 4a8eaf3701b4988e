//! The internal form (`-d`): one line for each row or marker, as the `toString` methods of
//! Cassandra's classes write it.

use std::fmt::Write;

use bytes::Bytes;
use rows::{Cell, ColumnData, DeletionTime, Liveness, PartitionHead, RangeTombstoneMarker, Row, Unfiltered};
use schema::TableMetadata;
use sstable::SSTable;
use types::literal::to_plain_text;
use types::{CqlType, to_text};

use super::partition::{path_text, value_type};

/// Prints rows of one SSTable.
pub struct Printer<'a> {
    table: &'a TableMetadata,
}

impl<'a> Printer<'a> {
    /// A printer for an SSTable.
    pub fn new(sstable: &'a SSTable) -> Self {
        Self { table: sstable.table() }
    }

    /// Prints the deletion and the static row of a partition, if it has them.
    pub fn head(&self, out: &mut String, key: &str, position: u64, head: &PartitionHead) {
        if !head.deletion.is_live() {
            start(out, key, position);
            put_deletion(out, &head.deletion);
            out.push('\n');
        }
        if let Some(row) = &head.static_row {
            start(out, key, position);
            self.row(out, row, true);
            out.push('\n');
        }
    }

    /// Prints a row or marker.
    pub fn line(&self, out: &mut String, key: &str, position: u64, unfiltered: &Unfiltered) {
        start(out, key, position);
        match unfiltered {
            Unfiltered::Row(row) => self.row(out, row, false),
            Unfiltered::Marker(marker) => self.marker(out, marker),
        }
        out.push('\n');
    }

    fn row(&self, out: &mut String, row: &Row, is_static: bool) {
        out.push_str("Row[info=");
        put_liveness(out, &row.liveness);
        if !row.deletion.is_live() {
            out.push_str(" del=");
            put_deletion(out, &row.deletion);
        }
        out.push_str(" ]: ");
        if is_static {
            out.push_str("STATIC");
        } else {
            self.values(out, &row.clustering, to_text);
        }
        out.push_str(" | ");
        for (index, data) in row.columns.iter().enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            self.column(out, data);
        }
    }

    fn values(&self, out: &mut String, values: &[Option<Bytes>], text: impl Fn(&CqlType, &[u8]) -> String) {
        for (index, (value, column)) in values.iter().zip(&self.table.clustering).enumerate() {
            if index > 0 {
                out.push_str(", ");
            }
            match value {
                Some(value) => out.push_str(&text(&column.ty, value)),
                None => out.push_str("null"),
            }
        }
    }

    fn column(&self, out: &mut String, data: &ColumnData) {
        let Some(column) = self.table.column(data.column()) else { return };
        match data {
            ColumnData::Simple(cell) => put_cell(out, &column.name, &column.ty, cell),
            ColumnData::Complex(complex) => {
                if !complex.deletion.is_live() {
                    write!(out, "del({})=", column.name).expect("a String takes all");
                    put_deletion(out, &complex.deletion);
                }
                for cell in &complex.cells {
                    out.push_str(", ");
                    put_cell(out, &column.name, &column.ty, cell);
                }
            }
        }
    }

    fn marker(&self, out: &mut String, marker: &RangeTombstoneMarker) {
        write!(out, "Marker {}(", marker.position.kind.name()).expect("a String takes all");
        self.values(out, &marker.position.values, to_plain_text);
        out.push_str(")@");
        let mut put = |deletion: &DeletionTime| {
            write!(out, "{}/{}", deletion.marked_for_delete_at, deletion.local_deletion_time)
                .expect("a String takes all");
        };
        match (&marker.close, &marker.open) {
            (Some(close), Some(open)) => {
                put(close);
                out.push('-');
                put_pair(out, open);
            }
            (Some(one), None) | (None, Some(one)) => put(one),
            (None, None) => {}
        }
    }
}

fn put_pair(out: &mut String, deletion: &DeletionTime) {
    write!(out, "{}/{}", deletion.marked_for_delete_at, deletion.local_deletion_time).expect("a String takes all");
}

fn start(out: &mut String, key: &str, position: u64) {
    write!(out, "[{key}]@{position} ").expect("a String takes all");
}

fn put_deletion(out: &mut String, deletion: &DeletionTime) {
    let DeletionTime { marked_for_delete_at, local_deletion_time } = deletion;
    write!(out, "deletedAt={marked_for_delete_at}, localDeletion={local_deletion_time}").expect("a String takes all");
}

fn put_liveness(out: &mut String, liveness: &Liveness) {
    let Liveness { timestamp, ttl, local_expiration_time } = liveness;
    let written = if liveness.is_expiring() {
        write!(out, "[ts={timestamp} ttl={ttl}, let={local_expiration_time}]")
    } else {
        write!(out, "[ts={timestamp}]")
    };
    written.expect("a String takes all");
}

fn put_cell(out: &mut String, name: &str, ty: &CqlType, cell: &Cell) {
    let timestamp = cell.timestamp;
    if *ty == CqlType::Counter && !cell.is_tombstone() {
        let total = rows::counter::total(&cell.value);
        write!(out, "[{name}={total} ts={timestamp}]").expect("a String takes all");
        return;
    }
    out.push('[');
    out.push_str(name);
    match &cell.path {
        Some(path) if ty.is_collection() => write!(out, "[{}]", path_text(ty, path)).expect("a String takes all"),
        _ => {}
    }
    out.push('=');
    if cell.is_tombstone() {
        out.push_str("<tombstone>");
    } else if ty.is_collection() {
        out.push_str(&to_plain_text(value_type(ty, cell.path.as_deref()), &cell.value));
    } else {
        out.push_str(&to_plain_text(ty, &cell.value));
    }
    write!(out, " ts={timestamp}").expect("a String takes all");
    if cell.is_expiring() {
        write!(out, " ttl={}", cell.ttl).expect("a String takes all");
    }
    if cell.is_expiring() || cell.is_tombstone() {
        write!(out, " ldt={}", cell.local_deletion_time).expect("a String takes all");
    }
    out.push(']');
}
