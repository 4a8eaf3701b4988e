//! The row filter of a read.
//!
//! ```text
//! u8 0, uvint32 n, n × expression
//! expression: u8 kind
//!   0 simple         short-bytes column, i32 operator, short-bytes value
//!   1 map equality   short-bytes column, i32 operator (=), short-bytes key, short-bytes value
//!   3 custom         16-byte id of an index, short-bytes value
//! ```
//!
//! Agrees with `org.apache.cassandra.db.filter.RowFilter.Serializer`.

use std::sync::Arc;

use bytes::Bytes;
use rows::filter::Operator;
use rows::{Expression, IndexSearch, RowFilter, SearchOperator};
use schema::index::definition::{IndexClass, IndexDefinition, IndexOperator, IndexPart};
use schema::index::sasi::LikeKind;
use schema::{ColumnKind, ColumnMetadata, TableId, TableMetadata};
use stdx::{put_i32, put_short_bytes, put_uvint};

use super::Reader;
use super::columns::{column_of, name_of};
use crate::error::InternodeError;
use crate::integers::read_length;

const SIMPLE: u8 = 0;
const MAP_EQUALITY: u8 = 1;
const CUSTOM: u8 = 3;

pub(super) fn put(out: &mut Vec<u8>, filter: &RowFilter, table: &TableMetadata) {
    out.push(0);
    put_uvint(out, filter.expressions.len() as u64);
    for expression in &filter.expressions {
        put_expression(out, expression, table);
    }
}

fn put_expression(out: &mut Vec<u8>, expression: &Expression, table: &TableMetadata) {
    match expression {
        Expression::Simple { column, operator, value } => {
            out.push(SIMPLE);
            put_short_bytes(out, name_of(table, *column).as_bytes());
            put_i32(out, *operator as i32);
            put_short_bytes(out, value);
        }
        Expression::MapEquality { column, key, value } => {
            out.push(MAP_EQUALITY);
            put_short_bytes(out, name_of(table, *column).as_bytes());
            put_i32(out, Operator::Eq as i32);
            put_short_bytes(out, key);
            put_short_bytes(out, value);
        }
        Expression::Custom { index, value } => {
            out.push(CUSTOM);
            out.extend_from_slice(index);
            put_short_bytes(out, value);
        }
    }
}

pub(super) fn read(reader: &mut Reader<'_>, table: &TableMetadata) -> Result<Vec<Expression>, InternodeError> {
    if reader.cursor.bool()? {
        return Err(InternodeError::Unsupported("a row filter of Thrift"));
    }
    let count = read_length(&mut reader.cursor, "the number of conditions")?;
    let mut expressions = Vec::new();
    for _ in 0..count {
        expressions.push(read_expression(reader, table)?);
    }
    Ok(expressions)
}

fn read_expression(reader: &mut Reader<'_>, table: &TableMetadata) -> Result<Expression, InternodeError> {
    let kind = reader.cursor.u8()?;
    if kind == CUSTOM {
        return Ok(Expression::Custom { index: reader.array()?, value: reader.short_bytes()? });
    }
    if kind != SIMPLE && kind != MAP_EQUALITY {
        return super::bad("the kind of a condition", kind);
    }
    let column = column_of(table, reader.cursor.short_bytes()?, None)?;
    let number = reader.cursor.i32()?;
    let operator = Operator::from_number(number);
    let operator =
        operator.ok_or(InternodeError::Value { part: "the operator of a condition", found: number.into() })?;
    if kind == SIMPLE {
        return Ok(Expression::Simple { column, operator, value: reader.short_bytes()? });
    }
    if operator != Operator::Eq {
        return super::bad("the operator of a condition on an entry", number);
    }
    Ok(Expression::MapEquality { column, key: reader.short_bytes()?, value: reader.short_bytes()? })
}

/// The search in the index with an id that answers one of the conditions. None: the table has no
/// such index, or it answers none of them.
pub(super) fn search(table: &TableMetadata, id: &[u8; 16], filter: &RowFilter) -> Option<IndexSearch> {
    let index = table.indexes.values().find(|index| id_of(&index.name) == *id)?;
    let definition = IndexDefinition::of(table, index, false)?;
    searches_in(&definition, filter).next()
}

/// All searches that a replica makes for the conditions of a request in which an index is named: of
/// a storage-attached index also those in the other attached indexes of the table, as Cassandra's
/// replicas do. Where indexes of two classes answer the conditions on a column, those of the named
/// one do: the others may compare text in a form that fewer rows meet.
pub(super) fn searches(table: &TableMetadata, id: &[u8; 16], filter: &RowFilter) -> Vec<IndexSearch> {
    let Some(first) = search(table, id, filter) else { return Vec::new() };
    let definitions = table.indexes.values().filter_map(|index| IndexDefinition::of(table, index, false));
    let (attached, _): (Vec<_>, Vec<_>) = definitions.partition(IndexDefinition::is_attached);
    let Some(named) = attached.iter().find(|definition| definition.name == first.name) else { return vec![first] };
    let is_rival = |own: &IndexDefinition, other: &IndexDefinition| {
        let of_named = other.class() == named.class() && own.class() != named.class();
        of_named && other.column.id == own.column.id && searches_in(other, filter).next().is_some()
    };
    let chosen = attached.iter().filter(|own| !attached.iter().any(|other| is_rival(own, other)));
    chosen.flat_map(|definition| searches_in(definition, filter).collect::<Vec<_>>()).collect()
}

/// The searches in one index.
fn searches_in<'a>(
    definition: &'a IndexDefinition,
    filter: &'a RowFilter,
) -> impl Iterator<Item = IndexSearch> + use<'a> {
    filter.expressions.iter().filter_map(|expression| {
        let (operator, value) = value_of(definition, expression)?;
        Some(IndexSearch { name: Arc::clone(&definition.name), operator, value })
    })
}

/// The conditions that a replica checks in place of all, and the index that it searches for them,
/// where its rows will be merged with those of others and the storage-attached index `id` is named.
/// None: all of them.
///
/// Of conditions on several columns that may change a row may meet all once merged, and not all on
/// any replica. The coordinator checks them once more, and relies on a replica to give a row that
/// meets one of them as its newest values: Cassandra's replicas give rows that meet any. Here the
/// conditions on key columns and those on one column are left, by which no such row is missed: of
/// that column the newest value counts, and whoever has it gives the row. Agrees in effect with
/// `RowFilter.isStrict` and `FilterTree.localSatisfiedBy` (CASSANDRA-19018).
pub(super) fn relaxed(table: &TableMetadata, id: &[u8; 16], filter: &RowFilter) -> Option<(RowFilter, [u8; 16])> {
    if !filter.needs_reconciliation || !is_mutable_intersection(table, filter) {
        return None;
    }
    let definitions = table.indexes.values().filter_map(|index| IndexDefinition::of(table, index, false));
    let attached: Vec<_> = definitions.filter(|index| index.class() == IndexClass::Attached).collect();
    if !attached.iter().any(|index| id_of(&index.name) == *id) {
        return None;
    }
    let answered = |index: &IndexDefinition| filter.expressions.iter().position(|one| value_of(index, one).is_some());
    let able = attached.iter().filter_map(|index| Some((index.is_of_key(), answered(index)?, index)));
    let (_, chosen, index) = able.min_by_key(|(is_of_key, place, _)| (*is_of_key, *place))?;
    let stays = |(place, expression): &(usize, &Expression)| {
        let column = expression.column().and_then(|id| table.column(id));
        column.is_some_and(|column| match column.kind {
            ColumnKind::PartitionKey | ColumnKind::Clustering => true,
            // the elements of a collection are merged one by one: two conditions are as two columns
            ColumnKind::Static | ColumnKind::Regular => {
                column.id == index.column.id && (!column.is_complex() || *place == chosen)
            }
        })
    };
    let left = filter.expressions.iter().enumerate().filter(stays);
    let expressions = left.map(|(_, expression)| expression.clone()).collect();
    Some((RowFilter { expressions, needs_reconciliation: true }, id_of(&index.name)))
}

/// Whether the conditions are about two columns that may change, or about a static one and any
/// other. Agrees with `RowFilter.isMutableIntersection`.
fn is_mutable_intersection(table: &TableMetadata, filter: &RowFilter) -> bool {
    let columns = filter.expressions.iter().filter_map(|expression| table.column(expression.column()?));
    let is_changing = |column: &&ColumnMetadata| matches!(column.kind, ColumnKind::Static | ColumnKind::Regular);
    let mut changing: Vec<&ColumnMetadata> = columns.filter(is_changing).collect();
    let has_static = changing.iter().any(|column| column.kind == ColumnKind::Static);
    changing.sort_unstable_by_key(|column| column.id);
    changing.dedup_by_key(|column| column.id);
    changing.len() > 1 || (has_static && filter.expressions.len() > 1)
}

/// The id of an index in messages, if the index answers one of the conditions.
pub fn index_answering(table: &TableMetadata, name: &str, filter: &RowFilter) -> Option<[u8; 16]> {
    let id = id_of(name);
    search(table, &id, filter).is_some().then_some(id)
}

/// The id of an index in messages: the version-3 UUID of its name.
pub fn id_of(name: &str) -> [u8; 16] {
    TableId::of_system_table("", name).0
}

/// The value to search an index for, if it answers a condition.
fn value_of(definition: &IndexDefinition, expression: &Expression) -> Option<(SearchOperator, Bytes)> {
    if expression.column() != Some(definition.column.id) {
        return None;
    }
    match expression {
        Expression::Simple { operator, value, .. } => {
            let (operator, search) = match operator {
                Operator::Eq if definition.part != IndexPart::Entries => (IndexOperator::Eq, SearchOperator::Eq),
                Operator::Contains => (IndexOperator::Contains, SearchOperator::Eq),
                Operator::ContainsKey => (IndexOperator::ContainsKey, SearchOperator::Eq),
                Operator::Gt => (IndexOperator::Range, SearchOperator::Gt),
                Operator::Gte => (IndexOperator::Range, SearchOperator::Gte),
                Operator::Lt => (IndexOperator::Range, SearchOperator::Lt),
                Operator::Lte => (IndexOperator::Range, SearchOperator::Lte),
                Operator::Ann => (IndexOperator::Ann, SearchOperator::Ann),
                Operator::LikePrefix => (IndexOperator::LikeOf(LikeKind::Prefix), SearchOperator::Prefix),
                Operator::LikeSuffix => (IndexOperator::LikeOf(LikeKind::Suffix), SearchOperator::Suffix),
                Operator::LikeContains => (IndexOperator::LikeOf(LikeKind::Contains), SearchOperator::Contains),
                Operator::LikeMatches => (IndexOperator::LikeOf(LikeKind::Matches), SearchOperator::Eq),
                _ => return None,
            };
            definition.supports(operator).then(|| (search, value.clone()))
        }
        Expression::MapEquality { key, value, .. } if definition.part == IndexPart::Entries => {
            types::composite::compose(&[key, value]).ok().map(|value| (SearchOperator::Eq, Bytes::from(value)))
        }
        Expression::MapEquality { .. } | Expression::Custom { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use schema::index::attached::CLASS;
    use schema::table::ColumnSpec;
    use schema::{IndexKind, IndexMetadata, TableFlags, TableKind, TableParams};
    use types::CqlType;

    use super::*;

    /// A table with storage-attached indexes on the columns c, a, b and tags, named by_c and so on.
    fn table() -> TableMetadata {
        let column = |(name, kind): (&str, ColumnKind)| ColumnSpec {
            name: name.to_owned(),
            kind,
            position: 0,
            ty: match name {
                "tags" => CqlType::Set { element: Arc::new(CqlType::Int), frozen: false },
                _ => CqlType::Int,
            },
            reversed: false,
        };
        let columns = [
            ("k", ColumnKind::PartitionKey),
            ("c", ColumnKind::Clustering),
            ("s", ColumnKind::Static),
            ("a", ColumnKind::Regular),
            ("b", ColumnKind::Regular),
            ("d", ColumnKind::Regular),
            ("tags", ColumnKind::Regular),
        ];
        let mut table = TableMetadata::new(
            TableId([1; 16]),
            "ks",
            "t",
            TableKind::Regular,
            TableFlags::COMPOUND,
            TableParams::default(),
            columns.map(column).into(),
            BTreeMap::new(),
            None,
        );
        for target in ["c", "a", "b", "tags"] {
            let options = [("class_name", CLASS), ("target", target)];
            let options = options.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
            let name = format!("by_{target}");
            table.indexes.insert(name.clone(), IndexMetadata { name, kind: IndexKind::Custom, options });
        }
        table
    }

    /// The columns of the conditions that are left, and the index that is searched.
    fn left(names: &str, index: &str, needs_reconciliation: bool) -> Option<String> {
        let table = table();
        let expression = |name: &str| {
            let operator = if name == "tags" { Operator::Contains } else { Operator::Eq };
            let column = table.column_by_name(name).expect("a column").id;
            Expression::Simple { column, operator, value: Bytes::from_static(&[0; 4]) }
        };
        let filter = RowFilter { expressions: names.split(' ').map(expression).collect(), needs_reconciliation };
        let (relaxed, id) = relaxed(&table, &id_of(index), &filter)?;
        assert!(relaxed.needs_reconciliation);
        assert!(search(&table, &id, &relaxed).is_some(), "the index answers what is left");
        let column = |one: &Expression| one.column().and_then(|id| table.column(id)).map(|column| column.name.as_str());
        let columns: Vec<&str> = relaxed.expressions.iter().filter_map(column).collect();
        let searched = table.indexes.keys().find(|name| id_of(name) == id)?;
        Some(format!("{} {searched}", columns.join(" ")))
    }

    /// Of the two classes the named one answers for a column that has indexes of both. The index
    /// without case gives rows that the other one does not have.
    #[test]
    fn indexes_of_one_class_answer_the_conditions_on_a_column() {
        let mut table = table();
        let of_sasi = [("class_name", schema::index::sasi::CLASS), ("target", "b")];
        let options = of_sasi.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let name = "sasi_b".to_owned();
        table.indexes.insert(name.clone(), IndexMetadata { name, kind: IndexKind::Custom, options });
        let expression = |name: &str| {
            let column = table.column_by_name(name).expect("a column").id;
            Expression::Simple { column, operator: Operator::Eq, value: Bytes::from_static(&[0; 4]) }
        };
        let filter = RowFilter { expressions: ["a", "b"].map(expression).into(), needs_reconciliation: false };
        let searched = |index: &str| {
            let searches = searches(&table, &id_of(index), &filter);
            searches.iter().map(|search| search.name.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(searched("sasi_b"), ["by_a", "sasi_b"]);
        assert_eq!(searched("by_b"), ["by_a", "by_b"]);
        assert_eq!(searched("by_a"), ["by_a", "by_b"]);
    }

    #[test]
    fn conditions_on_several_columns_are_left_to_a_coordinator_that_merges() {
        for (names, index, expected) in [
            ("a b", "by_a", Some("a by_a")),
            ("b a", "by_a", Some("b by_b")),
            ("d a", "by_a", Some("a by_a")),
            ("a s", "by_a", Some("a by_a")),
            ("k c a d a", "by_c", Some("k c a a by_a")),
            ("c d s", "by_c", Some("c by_c")),
            ("tags tags a", "by_tags", Some("tags by_tags")),
            // one column that may change
            ("a a", "by_a", None),
            ("k c a", "by_a", None),
            ("a b", "of_nobody", None),
        ] {
            assert_eq!(left(names, index, true).as_deref(), expected, "{names}");
            assert_eq!(left(names, index, false), None, "{names}: nobody merges");
        }
    }
}
