//! The CREATE statements of existing elements, word for word as Cassandra's DESCRIBE prints them.
//!
//! Agrees with `toCqlString` of `KeyspaceMetadata`, `TableMetadata`, `TableParams`, `UserType` and
//! `IndexMetadata`. `cql` decides which elements a DESCRIBE statement lists; the order of user
//! types is here ([`types_by_dependency`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;

use types::{CqlType, UserType};

use crate::ident::{java_double, map_literal, maybe_quote, qualified, quote_text};
use crate::index::IndexKind;
use crate::{
    ColumnKind, ColumnMetadata, DroppedColumn, IndexMetadata, KeyspaceMetadata, TableMetadata, TableParams,
    ViewDefinition, type_text,
};

/// The CREATE KEYSPACE statement; of a virtual keyspace, the comment that Cassandra prints instead.
pub fn keyspace(keyspace: &KeyspaceMetadata) -> String {
    let name = maybe_quote(&keyspace.name);
    if keyspace.is_virtual {
        return format!(
            "/*\nWarning: Keyspace {name} is a virtual keyspace and cannot be recreated with CQL.\n\
             Structure, for reference:\nVIRTUAL KEYSPACE {name};\n*/"
        );
    }
    let replication = &keyspace.replication;
    let mut map = format!("{{'class': {}", quote_text(replication.short_class()));
    for (key, value) in &replication.options {
        map += &format!(", {}: {}", quote_text(key), quote_text(value));
    }
    format!("CREATE KEYSPACE {name} WITH replication = {map}}}  AND durable_writes = {};", keyspace.durable_writes)
}

/// The CREATE TYPE statement.
pub fn user_type(udt: &UserType) -> String {
    let fields: Vec<String> = udt.fields.iter().map(|(name, ty)| format!("    {}", name_and_type(name, ty))).collect();
    format!("CREATE TYPE {} (\n{}\n);", qualified(&udt.keyspace, &udt.name), fields.join(",\n"))
}

/// The CREATE INDEX statement.
pub fn index(table: &TableMetadata, index: &IndexMetadata) -> String {
    let name = maybe_quote(&index.name);
    let on = qualified(&table.keyspace, &table.name);
    let target = index.options.get("target").map_or("", String::as_str);
    if index.kind != IndexKind::Custom {
        return format!("CREATE INDEX {name} ON {on} ({target});");
    }
    let class = index.options.get("class_name").map_or("", String::as_str);
    let rest: BTreeMap<_, _> =
        index.options.iter().filter(|(key, _)| !matches!(key.as_str(), "target" | "class_name")).collect();
    let options = if rest.is_empty() { String::new() } else { format!(" WITH OPTIONS = {}", map_literal(rest)) };
    format!("CREATE CUSTOM INDEX {name} ON {on} ({target}) USING {}{options};", quote_text(class))
}

/// The CREATE TABLE statement; of a virtual table, the comment that Cassandra prints instead.
/// `internals` adds the table's id and its dropped columns.
pub fn table(table: &TableMetadata, internals: bool) -> String {
    let name = qualified(&table.keyspace, &table.name);
    let mut out = String::new();
    if table.is_compact() {
        out += &format!(
            "/*\nWarning: Table {name} omitted because it has constructs not compatible with CQL (was created via legacy \
             API).\nApproximate structure, for reference:\n(this should not be used to reproduce this schema)\n\n"
        );
    }
    if table.is_virtual() {
        out += &format!(
            "/*\nWarning: Table {name} is a virtual table and cannot be recreated with CQL.\n\
             Structure, for reference:\nVIRTUAL TABLE {name} (\n"
        );
    } else {
        out += &format!("CREATE TABLE {name} (\n");
    }
    out += &column_lines(table, internals).join(",\n");
    out += "\n) WITH ";
    out += &option_lines(table, internals).join("\n    AND ");
    out.push(';');
    if table.is_virtual() {
        out += "\n*/";
    }
    if internals {
        drop_statements(table, &name, &mut out);
    }
    if table.is_compact() {
        out += "\n*/";
    }
    out
}

/// The CREATE MATERIALIZED VIEW statement. `internals` adds the id.
pub fn view(table: &TableMetadata, view: &ViewDefinition, internals: bool) -> String {
    let selected = match view.include_all_columns {
        true => "*".to_owned(),
        false => {
            let columns = table.columns_in_select_order().into_iter();
            columns.map(|column| maybe_quote(&column.name)).collect::<Vec<_>>().join(", ")
        }
    };
    let mut options = option_lines(table, internals);
    options.retain(|line| !line.starts_with("default_time_to_live = "));
    format!(
        "CREATE MATERIALIZED VIEW {} AS\n    SELECT {selected}\n    FROM {}\n    WHERE {}\n    {}\n WITH {};",
        qualified(&table.keyspace, &table.name),
        qualified(&table.keyspace, &view.base_name),
        view.where_clause,
        primary_key(table),
        options.join("\n    AND "),
    )
}

/// The user types by name, each behind the types that it uses, which come in the order of its
/// fields. Agrees with `Types.sortedStream`.
pub fn types_by_dependency(keyspace: &KeyspaceMetadata) -> Vec<Arc<UserType>> {
    let mut sorted = SortedTypes { keyspace: Some(keyspace), names: BTreeSet::new(), types: Vec::new() };
    keyspace.user_types.values().for_each(|udt| sorted.add(udt));
    sorted.types
}

/// The user types that the columns of a table have, each behind the types that it uses. They need
/// no keyspace: that of a table which is dropped may be gone, and so may its types.
pub fn types_of_table(table: &TableMetadata) -> Vec<Arc<UserType>> {
    let mut sorted = SortedTypes { keyspace: None, names: BTreeSet::new(), types: Vec::new() };
    table.types().for_each(|ty| sorted.add_used_by(ty));
    sorted.types
}

/// User types, each behind those that it uses.
struct SortedTypes<'k> {
    /// The keyspace whose types are meant; None: those that columns have.
    keyspace: Option<&'k KeyspaceMetadata>,
    names: BTreeSet<&'k str>,
    types: Vec<Arc<UserType>>,
}

impl<'k> SortedTypes<'k> {
    fn add(&mut self, udt: &'k Arc<UserType>) {
        if self.names.insert(udt.name.as_str()) {
            udt.fields.iter().for_each(|(_, ty)| self.add_used_by(ty));
            self.types.push(Arc::clone(udt));
        }
    }

    fn add_used_by(&mut self, ty: &'k CqlType) {
        match ty {
            CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
                self.add_used_by(element);
            }
            CqlType::Map { key, value, .. } => {
                self.add_used_by(key);
                self.add_used_by(value);
            }
            CqlType::Tuple(types) => types.iter().for_each(|ty| self.add_used_by(ty)),
            CqlType::Udt(udt, _) => {
                let known = self.keyspace.map_or(Some(udt), |keyspace| keyspace.user_types.get(&udt.name));
                if let Some(known) = known {
                    self.add(known);
                }
            }
            _ => {}
        }
    }
}

fn name_and_type(name: &str, ty: &CqlType) -> String {
    format!("{} {}", maybe_quote(name), type_text::print(ty))
}

fn column_line(table: &TableMetadata, column: &ColumnMetadata, shows_static: bool) -> String {
    let modifier = if column.is_static() && shows_static { " static" } else { "" };
    let mask = table.masks.get(&column.name).map(|mask| format!(" MASKED WITH {}", mask.text())).unwrap_or_default();
    format!("    {}{modifier}{mask}", name_and_type(&column.name, &column.ty))
}

/// A dropped column that was added again is listed as it was; the ALTER statements behind drop it
/// and add it again.
fn column_lines(table: &TableMetadata, internals: bool) -> Vec<String> {
    let single_key = table.partition_key.len() == 1 && table.clustering.is_empty();
    let columns = [&table.partition_key, &table.clustering, &table.statics, &table.regulars].into_iter().flatten();
    let mut lines: Vec<String> = columns
        .filter(|column| !table.is_hidden(column) && (!internals || !table.dropped.contains_key(&column.name)))
        .map(|column| {
            let key = if single_key && column.position == 0 && column.is_primary_key() { " PRIMARY KEY" } else { "" };
            column_line(table, column, !table.is_static_compact()) + key
        })
        .collect();
    if internals {
        lines.extend(table.dropped.values().map(dropped_line));
    }
    if !single_key {
        lines.push(format!("    {}", primary_key(table)));
    }
    lines
}

fn dropped_line(column: &DroppedColumn) -> String {
    let modifier = if column.kind == ColumnKind::Static { " static" } else { "" };
    format!("    {}{modifier}", name_and_type(&column.name, &column.ty))
}

fn primary_key(table: &TableMetadata) -> String {
    let names = |columns: &[ColumnMetadata]| {
        let shown = columns.iter().filter(|column| !table.is_hidden(column));
        shown.map(|column| maybe_quote(&column.name)).collect::<Vec<_>>().join(", ")
    };
    let partition_key = match table.partition_key.len() {
        1 => names(&table.partition_key),
        _ => format!("({})", names(&table.partition_key)),
    };
    if table.clustering.iter().all(|column| table.is_hidden(column)) {
        return format!("PRIMARY KEY ({partition_key})");
    }
    format!("PRIMARY KEY ({partition_key}, {})", names(&table.clustering))
}

fn option_lines(table: &TableMetadata, internals: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if table.is_compact() {
        lines.push("COMPACT STORAGE".to_owned());
    }
    if internals {
        lines.push(format!("ID = {}", table.id));
    }
    if !table.clustering.is_empty() {
        let order = |column: &ColumnMetadata| {
            format!("{} {}", maybe_quote(&column.name), if column.reversed { "DESC" } else { "ASC" })
        };
        let orders: Vec<String> = table.clustering.iter().map(order).collect();
        lines.push(format!("CLUSTERING ORDER BY ({})", orders.join(", ")));
    }
    if table.is_virtual() {
        lines.push(format!("comment = {}", quote_text(&table.params.comment)));
    } else {
        lines.extend(params_lines(&table.params));
    }
    lines
}

/// The options in the order in which Cassandra prints them.
fn params_lines(params: &TableParams) -> Vec<String> {
    vec![
        format!("additional_write_policy = {}", quote_text(&params.additional_write_policy)),
        format!("allow_auto_snapshot = {}", params.allow_auto_snapshot.unwrap_or(true)),
        format!("bloom_filter_fp_chance = {}", java_double(params.bloom_filter_fp_chance)),
        format!("caching = {}", map_literal(&params.caching)),
        format!("cdc = {}", params.cdc.unwrap_or(false)),
        format!("comment = {}", quote_text(&params.comment)),
        format!("compaction = {}", map_literal(&params.compaction)),
        format!("compression = {}", map_literal(&params.compression)),
        format!("memtable = {}", quote_text(params.memtable.as_deref().unwrap_or("default"))),
        format!("crc_check_chance = {}", java_double(params.crc_check_chance)),
        format!("default_time_to_live = {}", params.default_time_to_live),
        format!("extensions = {}", extensions(&params.extensions)),
        format!("gc_grace_seconds = {}", params.gc_grace_seconds),
        format!("incremental_backups = {}", params.incremental_backups.unwrap_or(true)),
        format!("max_index_interval = {}", params.max_index_interval),
        format!("memtable_flush_period_in_ms = {}", params.memtable_flush_period_in_ms),
        format!("min_index_interval = {}", params.min_index_interval),
        format!("read_repair = {}", quote_text(&params.read_repair)),
        format!("speculative_retry = {}", quote_text(&params.speculative_retry)),
    ]
}

fn extensions(map: &BTreeMap<String, Vec<u8>>) -> String {
    let pairs: Vec<String> = map
        .iter()
        .map(|(key, value)| {
            let mut hex = String::from("0x");
            for byte in value {
                write!(hex, "{byte:02x}").expect("a String takes all");
            }
            format!("{}: {hex}", quote_text(key))
        })
        .collect();
    format!("{{{}}}", pairs.join(", "))
}

fn drop_statements(table: &TableMetadata, name: &str, out: &mut String) {
    for dropped in table.dropped.values() {
        let column = maybe_quote(&dropped.name);
        *out += &format!("\nALTER TABLE {name} DROP {column} USING TIMESTAMP {};", dropped.dropped_time);
        if let Some(again) = table.column_by_name(&dropped.name) {
            *out += &format!("\nALTER TABLE {name} ADD {};", column_line(table, again, true).trim_start());
        }
    }
}

#[cfg(test)]
mod tests;
