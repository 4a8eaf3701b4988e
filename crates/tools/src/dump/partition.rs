//! A partition as JSON: key, deletion, rows with their cells, range tombstones. The order of
//! members is that of JsonTransformer.

use rows::{
    Cell, ColumnData, ComplexColumn, DeletionTime, Liveness, PartitionHead, PrefixKind, RangeTombstoneMarker, Row,
    Unfiltered,
};
use schema::{ColumnMetadata, TableMetadata};
use sstable::SSTable;
use types::CqlType;
use types::ident::maybe_quote;
use types::literal::to_plain_text;

use super::Arguments;
use super::json::Json;
use super::keys::KeyText;
use super::times::{put_micros, put_seconds};
use super::value;

/// Prints partitions of one SSTable.
pub struct Printer<'a> {
    table: &'a TableMetadata,
    /// Names of columns as JSON strings with quotes, by column id.
    names: Vec<String>,
    raw_times: bool,
    now: u32,
    first: bool,
    lines: bool,
}

impl<'a> Printer<'a> {
    /// A printer. `now`: seconds since 1970, which tells what has expired.
    pub fn new(sstable: &'a SSTable, arguments: &Arguments, now: u32) -> Self {
        let table: &TableMetadata = sstable.table();
        let name = |id: u16| {
            let column = table.column(schema::ColumnId(id));
            let mut text = String::new();
            types::json::put_json_string(&mut text, &column.map_or(String::new(), |column| maybe_quote(&column.name)));
            text
        };
        let names = (0..table.column_id_end()).map(name).collect();
        Self { table, names, raw_times: arguments.raw_times, now, first: true, lines: arguments.lines }
    }

    /// Prints the head of a partition and its static row.
    pub fn start(&mut self, json: &mut Json, key_text: &KeyText, head: &PartitionHead, position: u64) {
        if self.lines && !std::mem::take(&mut self.first) {
            json.text().push('\n');
        }
        json.start_object();
        json.name("table kind");
        json.plain_string(|out| out.push_str("REGULAR"));
        json.name("partition");
        json.start_object();
        json.name("key");
        key_text.put(json, &head.key.key);
        json.name("position");
        json.number(position);
        if !head.deletion.is_live() {
            self.deletion(json, &head.deletion);
        }
        json.end_object();
        json.name("rows");
        json.start_array();
        if let Some(row) = &head.static_row {
            self.row(json, row, true, position);
        }
    }

    /// Prints the end of a partition.
    pub fn end(&mut self, json: &mut Json) {
        json.end_array();
        json.end_object();
    }

    /// Prints a row or range tombstone.
    pub fn unfiltered(&self, json: &mut Json, unfiltered: &Unfiltered, position: u64) {
        match unfiltered {
            Unfiltered::Row(row) => self.row(json, row, false, position),
            Unfiltered::Marker(marker) => self.marker(json, marker),
        }
    }

    fn row(&self, json: &mut Json, row: &Row, is_static: bool, position: u64) {
        json.start_object();
        json.name("type");
        json.plain_string(|out| out.push_str(if is_static { "static_block" } else { "row" }));
        json.name("position");
        json.number(position);
        if !is_static {
            self.clustering(json, &row.clustering);
        }
        if !row.liveness.is_empty() {
            self.liveness(json, &row.liveness);
        }
        if !row.deletion.is_live() {
            self.deletion(json, &row.deletion);
        }
        json.name("cells");
        json.start_array();
        for data in &row.columns {
            self.column(json, data, &row.liveness);
        }
        json.end_array();
        json.end_object();
    }

    fn liveness(&self, json: &mut Json, liveness: &Liveness) {
        json.name("liveness_info");
        json.compact_objects = true;
        json.start_object();
        json.name("tstamp");
        self.micros(json, liveness.timestamp);
        if liveness.is_expiring() {
            json.name("ttl");
            json.number(liveness.ttl);
            json.name("expires_at");
            self.seconds(json, liveness.local_expiration_time);
            json.name("expired");
            json.boolean(liveness.local_expiration_time < self.now);
        }
        json.end_object();
        json.compact_objects = false;
    }

    fn marker(&self, json: &mut Json, marker: &RangeTombstoneMarker) {
        json.start_object();
        json.name("type");
        let (kind, values) = (marker.position.kind, &marker.position.values);
        let (close_inclusive, open_inclusive) = inclusive(kind);
        match (&marker.close, &marker.open) {
            (Some(close), Some(open)) => {
                json.plain_string(|out| out.push_str("range_tombstone_boundary"));
                self.bound(json, "start", open_inclusive, values, open);
                self.bound(json, "end", close_inclusive, values, close);
            }
            (close, open) => {
                json.plain_string(|out| out.push_str("range_tombstone_bound"));
                if let Some(open) = open {
                    self.bound(json, "start", open_inclusive, values, open);
                }
                if let Some(close) = close {
                    self.bound(json, "end", close_inclusive, values, close);
                }
            }
        }
        json.end_object();
        json.compact_objects = false;
    }

    fn bound(
        &self,
        json: &mut Json,
        name: &str,
        inclusive: bool,
        values: &[Option<bytes::Bytes>],
        deletion: &DeletionTime,
    ) {
        json.name(name);
        json.start_object();
        json.name("type");
        json.plain_string(|out| out.push_str(if inclusive { "inclusive" } else { "exclusive" }));
        self.clustering(json, values);
        self.deletion(json, deletion);
        json.end_object();
    }

    fn clustering(&self, json: &mut Json, values: &[Option<bytes::Bytes>]) {
        if values.is_empty() {
            return;
        }
        json.name("clustering");
        json.compact_objects = true;
        json.start_array();
        json.compact_arrays = true;
        for (index, column) in self.table.clustering.iter().enumerate() {
            match values.get(index) {
                None => json.plain_string(|out| out.push('*')),
                Some(None) => json.value(|out| out.push_str("null")),
                Some(Some(bytes)) => json.value(|out| value::put(out, &column.ty, bytes)),
            }
        }
        json.end_array();
        json.compact_objects = false;
        json.compact_arrays = false;
    }

    fn deletion(&self, json: &mut Json, deletion: &DeletionTime) {
        json.name("deletion_info");
        json.compact_objects = true;
        json.start_object();
        json.name("marked_deleted");
        self.micros(json, deletion.marked_for_delete_at);
        json.name("local_delete_time");
        self.seconds(json, deletion.local_deletion_time);
        json.end_object();
        json.compact_objects = false;
    }

    fn column(&self, json: &mut Json, data: &ColumnData, liveness: &Liveness) {
        let Some(column) = self.table.column(data.column()) else { return };
        match data {
            ColumnData::Simple(cell) => self.cell(json, column, cell, liveness),
            ColumnData::Complex(complex) => self.complex(json, column, complex, liveness),
        }
    }

    fn complex(&self, json: &mut Json, column: &ColumnMetadata, complex: &ComplexColumn, liveness: &Liveness) {
        if !complex.deletion.is_live() {
            json.compact_objects = true;
            json.start_object();
            json.name("name");
            self.column_name(json, column);
            self.deletion(json, &complex.deletion);
            json.compact_objects = true;
            json.end_object();
            json.compact_objects = false;
        }
        for cell in &complex.cells {
            self.cell(json, column, cell, liveness);
        }
    }

    fn column_name(&self, json: &mut Json, column: &ColumnMetadata) {
        let name = self.names.get(usize::from(column.id.0));
        json.value(|out| out.push_str(name.map_or("\"\"", |name| name)));
    }

    fn cell(&self, json: &mut Json, column: &ColumnMetadata, cell: &Cell, liveness: &Liveness) {
        json.start_object();
        json.compact_objects = true;
        json.name("name");
        self.column_name(json, column);
        if let Some(path) = &cell.path {
            json.name("path");
            json.compact_arrays = true;
            json.start_array();
            json.string(&path_text(&column.ty, path));
            json.end_array();
            json.compact_arrays = false;
        }
        if cell.is_tombstone() {
            json.name("deletion_info");
            json.compact_objects = true;
            json.start_object();
            json.name("local_delete_time");
            self.seconds(json, cell.local_deletion_time);
            json.end_object();
            json.compact_objects = false;
        } else {
            json.name("value");
            let ty = value_type(&column.ty, cell.path.as_deref());
            json.value(|out| value::put(out, ty, &cell.value));
        }
        if liveness.is_empty() || cell.timestamp != liveness.timestamp {
            json.name("tstamp");
            self.micros(json, cell.timestamp);
        }
        if cell.is_expiring() && (liveness.is_empty() || cell.ttl != liveness.ttl) {
            json.name("ttl");
            json.number(cell.ttl);
            json.name("expires_at");
            self.seconds(json, cell.local_deletion_time);
            json.name("expired");
            json.boolean(!cell.is_live(self.now));
        }
        json.end_object();
        json.compact_objects = false;
    }

    fn micros(&self, json: &mut Json, micros: i64) {
        json.plain_string(|out| put_micros(out, micros, self.raw_times));
    }

    fn seconds(&self, json: &mut Json, seconds: u32) {
        json.plain_string(|out| put_seconds(out, i64::from(seconds), self.raw_times));
    }
}

/// Whether the marker's bound is part of the range that it closes, and of the range that it opens.
fn inclusive(kind: PrefixKind) -> (bool, bool) {
    match kind {
        PrefixKind::InclEndBound | PrefixKind::InclEndExclStartBoundary => (true, false),
        PrefixKind::InclStartBound | PrefixKind::ExclEndInclStartBoundary => (false, true),
        _ => (false, false),
    }
}

/// The path of a cell of a collection or user type, as text.
pub fn path_text(ty: &CqlType, path: &[u8]) -> String {
    match ty {
        CqlType::List { .. } => to_plain_text(&CqlType::TimeUuid, path),
        CqlType::Set { element, .. } => to_plain_text(element, path),
        CqlType::Map { key, .. } => to_plain_text(key, path),
        CqlType::Udt(udt, _) => match field_index(path).and_then(|index| udt.fields.get(index)) {
            Some((name, _)) => name.clone(),
            None => types::literal::hex(path),
        },
        _ => types::literal::hex(path),
    }
}

/// The type of the value of a cell of a collection or user type.
pub fn value_type<'a>(ty: &'a CqlType, path: Option<&[u8]>) -> &'a CqlType {
    let Some(path) = path else { return ty };
    match ty {
        CqlType::List { element, .. } => element,
        CqlType::Set { .. } => &CqlType::Empty,
        CqlType::Map { value, .. } => value,
        CqlType::Udt(udt, _) => {
            field_index(path).and_then(|index| udt.fields.get(index)).map_or(&CqlType::Blob, |(_, ty)| ty)
        }
        _ => ty,
    }
}

fn field_index(path: &[u8]) -> Option<usize> {
    path.try_into().ok().map(|index| usize::from(u16::from_be_bytes(index)))
}
