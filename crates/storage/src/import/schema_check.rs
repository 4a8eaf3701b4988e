//! Whether an SSTable from elsewhere can be one of a table: the key, clusterings and columns in
//! its header are compared with the schema.
//!
//! A column that the schema does not know, and did not drop, would be passed over in silence.
//! Agrees with `SerializationHeader.Component.toHeader`, which refuses unknown columns; key and
//! types are looked at here as well.

use schema::TableMetadata;
use sstable::{HeaderColumn, HeaderComponent, MURMUR3_PARTITIONER, Statistics};
use types::{CqlType, marshal};

/// The reasons why an SSTable does not fit, a sentence each.
pub fn mismatches(statistics: &Statistics, table: &TableMetadata) -> Vec<String> {
    let header = &statistics.header;
    let mut found = Vec::new();
    if statistics.partitioner != MURMUR3_PARTITIONER {
        found.push(format!("its partitioner is {}", statistics.partitioner));
    }
    found.extend(key_mismatch(header, table));
    found.extend(clustering_mismatches(header, table));
    for (columns, is_static) in [(&header.statics, true), (&header.regulars, false)] {
        found.extend(columns.iter().filter_map(|column| column_mismatch(column, is_static, table)));
    }
    found
}

fn key_mismatch(header: &HeaderComponent, table: &TableMetadata) -> Option<String> {
    let of_table = &table.partition_key_type;
    let fits = parse(&header.key_type).is_some_and(|(ty, _)| is_readable_as(of_table, &ty));
    (!fits).then(|| format!("its partition key is {}, not {}", header.key_type, marshal::print(of_table, false)))
}

fn clustering_mismatches(header: &HeaderComponent, table: &TableMetadata) -> Vec<String> {
    if header.clustering.len() != table.clustering.len() {
        return vec![format!("it has {} clustering columns, not {}", header.clustering.len(), table.clustering.len())];
    }
    let pairs = header.clustering.iter().zip(&table.clustering);
    let mismatches = pairs.filter(|(ty, column)| {
        !parse(ty).is_some_and(|(ty, reversed)| reversed == column.reversed && is_readable_as(&column.ty, &ty))
    });
    mismatches
        .map(|(ty, column)| {
            let wanted = marshal::print(&column.ty, column.reversed);
            format!("its clustering column {} is {ty}, not {wanted}", column.name)
        })
        .collect()
}

fn column_mismatch(column: &HeaderColumn, is_static: bool, table: &TableMetadata) -> Option<String> {
    let name = &column.name;
    let known = table.column_by_name(name).filter(|known| !known.is_primary_key() && known.is_static() == is_static);
    let Some(known) = known else {
        let what = if is_static { "Unknown static column" } else { "Unknown column" };
        return (!table.dropped.contains_key(name)).then(|| format!("{what} {name} ({})", column.ty));
    };
    let fits = parse(&column.ty).is_some_and(|(ty, _)| {
        // a column that was dropped and added again may have become cells of another shape
        table.dropped.contains_key(name) || is_readable_as(&known.ty, &ty)
    });
    (!fits).then(|| format!("its column {name} is {}, not {}", column.ty, marshal::print(&known.ty, false)))
}

fn parse(expression: &str) -> Option<(CqlType, bool)> {
    marshal::parse(expression).ok()
}

/// Whether values of the type `file` are values of the type `schema` as they are.
fn is_readable_as(schema: &CqlType, file: &CqlType) -> bool {
    use CqlType as T;
    if schema.is_multi_cell() != file.is_multi_cell() {
        return false;
    }
    match (schema, file) {
        (a, b) if a == b => true,
        (T::Blob, b) => !b.is_multi_cell() && b.fixed_length().is_none(),
        (T::Text, T::Ascii) | (T::Uuid, T::TimeUuid) => true,
        (T::BigInt | T::Timestamp, T::BigInt | T::Timestamp) => true,
        (T::List { element: a, .. }, T::List { element: b, .. })
        | (T::Set { element: a, .. }, T::Set { element: b, .. }) => is_readable_as(a, b),
        (T::Map { key: a, value: c, .. }, T::Map { key: b, value: d, .. }) => {
            is_readable_as(a, b) && is_readable_as(c, d)
        }
        (T::Tuple(a), T::Tuple(b)) => b.len() <= a.len() && a.iter().zip(b.iter()).all(|(a, b)| is_readable_as(a, b)),
        // fields may have been added or renamed since; the keyspace is that of the cluster it came
        // from
        (T::Udt(a, _), T::Udt(b, _)) => {
            let common = a.fields.iter().zip(&b.fields);
            common.into_iter().all(|((_, a), (_, b))| is_readable_as(a, b))
        }
        (T::Vector { element: a, dimension: m }, T::Vector { element: b, dimension: n }) => {
            m == n && is_readable_as(a, b)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_what_the_schema_says() {
        let list = |element, frozen| CqlType::List { element: std::sync::Arc::new(element), frozen };
        assert!(is_readable_as(&CqlType::Text, &CqlType::Ascii));
        assert!(!is_readable_as(&CqlType::Ascii, &CqlType::Text));
        assert!(!is_readable_as(&CqlType::Int, &CqlType::BigInt));
        assert!(!is_readable_as(&CqlType::Blob, &CqlType::Int), "fixed lengths are not written");
        assert!(is_readable_as(&list(CqlType::Text, true), &list(CqlType::Ascii, true)));
        assert!(!is_readable_as(&list(CqlType::Text, true), &list(CqlType::Text, false)));
    }
}
