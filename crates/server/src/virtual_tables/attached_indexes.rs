//! `sai_column_indexes`, `sai_sstable_indexes`: the storage-attached indexes of this node, and the
//! components that each has beside each SSTable. Agrees with `ColumnIndexesSystemView` and
//! `SSTableIndexesSystemView` of `org.apache.cassandra.index.sai.virtual`; the version is that of
//! Helenus' own format, and an index without pairs in an SSTable is left out as there.

use cluster::operations::tables;
use schema::index::attached::TextForm;
use schema::index::definition::IndexPart;
use schema::system;
use types::CqlType;

use super::VirtualTable;
use super::row::VirtualRow;
use crate::services::Services;

/// The version of the components: docs/formats/attached-index.md.
const FORMAT_VERSION: &str = "helenus-1";

pub(super) const TABLES: &[VirtualTable] =
    &[VirtualTable::of_views("sai_column_indexes", indexes), VirtualTable::of_views("sai_sstable_indexes", components)];

fn indexes(services: &Services) -> Vec<VirtualRow> {
    let mut rows = Vec::new();
    for store in tables::all(&services.node) {
        let view = store.view();
        if system::is_system_keyspace(&view.table.keyspace) {
            continue;
        }
        for index in view.indexes.iter() {
            let (definition, is_built) = (&index.definition, index.state.is_built());
            let Some(form) = definition.attached.filter(|_| definition.sasi.is_none()) else { continue };
            let TextForm { case_sensitive, normalized, ascii, .. } = form;
            // as in Cassandra an option of text makes an analyzer, whatever it says
            let options = view.table.indexes.get(index.name()).map(|index| &index.options);
            let is_analyzed =
                options.is_some_and(|options| TextForm::OPTIONS.iter().any(|one| options.contains_key(*one)));
            let analyzer = match is_analyzed {
                false => "NoOpAnalyzer".to_owned(),
                true => format!(
                    "NonTokenizingAnalyzer{{caseSensitive={case_sensitive}, normalized={normalized}, ascii={ascii}}}"
                ),
            };
            rows.push(
                VirtualRow::default()
                    .text("keyspace_name", &view.table.keyspace)
                    .text("index_name", index.name())
                    .text("table_name", &view.table.name)
                    .text("column_name", &definition.column.name)
                    .boolean("is_queryable", is_built)
                    .boolean("is_building", !is_built)
                    .boolean("is_string", is_literal(definition.part, &definition.column.ty))
                    .text("analyzer", &analyzer),
            );
        }
    }
    rows
}

/// Whether Cassandra keeps the terms as literals: text, booleans, frozen values, entries.
fn is_literal(part: IndexPart, ty: &CqlType) -> bool {
    match (part, ty) {
        (IndexPart::Entries, _) => true,
        (IndexPart::Keys, CqlType::Map { key, .. }) => is_literal(IndexPart::Value, key),
        (IndexPart::Keys, CqlType::Set { element, .. }) => is_literal(IndexPart::Value, element),
        (IndexPart::Values, CqlType::Map { value, .. }) => is_literal(IndexPart::Value, value),
        (IndexPart::Values, CqlType::List { element, .. }) => is_literal(IndexPart::Value, element),
        (_, CqlType::Text | CqlType::Ascii | CqlType::Boolean) => true,
        (_, CqlType::List { .. } | CqlType::Set { .. } | CqlType::Map { .. }) => true,
        (_, CqlType::Tuple(_) | CqlType::Udt(..)) => true,
        _ => false,
    }
}

fn components(services: &Services) -> Vec<VirtualRow> {
    let mut rows = Vec::new();
    for store in tables::all(&services.node) {
        let view = store.view();
        if system::is_system_keyspace(&view.table.keyspace) {
            continue;
        }
        for index in view.indexes.iter().filter(|index| index.definition.sasi.is_none()) {
            for sstable in &view.sstables {
                let attached = sstable.attached();
                let of_terms = attached.of_index(index.name()).map(|(keys, terms)| (keys, terms.pairs(), terms.size()));
                let of_graph = || attached.graph_of(index.name()).map(|(keys, of)| (keys, of.vectors(), of.size()));
                let Some((keys, pairs, size)) = of_terms.or_else(of_graph) else { continue };
                if pairs == 0 {
                    continue;
                }
                let descriptor = sstable.descriptor();
                let data = descriptor.directory.join(format!("{}-Data.db", descriptor.prefix()));
                rows.push(
                    VirtualRow::default()
                        .text("keyspace_name", &view.table.keyspace)
                        .text("index_name", index.name())
                        .text("sstable_name", &data.to_string_lossy())
                        .text("table_name", &view.table.name)
                        .text("column_name", &index.definition.column.name)
                        .text("format_version", FORMAT_VERSION)
                        .count("cell_count", pairs)
                        .bigint("min_row_id", 0)
                        .bigint("max_row_id", i64::from(keys.rows()) - 1)
                        .text("start_token", &sstable.first_key().token.0.to_string())
                        .text("end_token", &sstable.last_key().token.0.to_string())
                        .count("per_table_disk_size", keys.size())
                        .count("per_column_disk_size", size),
                );
            }
        }
    }
    rows
}
