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
use schema::index::definition::{IndexDefinition, IndexOperator, IndexPart};
use schema::index::sasi::LikeKind;
use schema::{TableId, TableMetadata};
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
/// replicas do.
pub(super) fn searches(table: &TableMetadata, id: &[u8; 16], filter: &RowFilter) -> Vec<IndexSearch> {
    let Some(first) = search(table, id, filter) else { return Vec::new() };
    let definitions = table.indexes.values().filter_map(|index| IndexDefinition::of(table, index, false));
    let (attached, _): (Vec<_>, Vec<_>) = definitions.partition(IndexDefinition::is_attached);
    if !attached.iter().any(|definition| definition.name == first.name) {
        return vec![first];
    }
    attached.iter().flat_map(|definition| searches_in(definition, filter).collect::<Vec<_>>()).collect()
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
