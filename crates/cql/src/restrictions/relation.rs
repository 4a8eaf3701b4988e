//! Preparing one relation of a WHERE: looking up its columns and preparing its terms.
//!
//! Agrees with
//! `org.apache.cassandra.cql3.{SingleColumnRelation,MultiColumnRelation,TokenRelation}`.

use std::collections::BTreeSet;
use std::sync::Arc;

use schema::index::definition::{IndexDefinition, IndexOperator};
use schema::{ColumnKind, ColumnMetadata, TableMetadata};
use types::CqlType;

use super::{InTerms, RowTerm, RowTerms, StatementKind};
use crate::ast::{self, InValues, Operator, Relation};
use crate::context::{PrepareContext, Receiver, find_column};
use crate::error::CqlError;
use crate::scalar::type_name;
use crate::terms::{self, Term};

/// A prepared relation.
pub(super) enum PreparedRelation<'t> {
    /// `column op term`
    Column(&'t ColumnMetadata, Operator, Term),
    /// `column IN …`
    ColumnIn(&'t ColumnMetadata, InTerms),
    /// `column NOT IN …`
    ColumnNotIn(&'t ColumnMetadata, InTerms),
    /// `column[key] = term`
    Entry(&'t ColumnMetadata, Term, Term),
    /// `token(…) op term`
    Token(Operator, Term),
    /// `(columns) op tuple`: first position, width
    Tuple(usize, usize, Operator, RowTerm),
    /// `(columns) IN …`
    TupleIn(usize, usize, RowTerms),
    /// `(columns) NOT IN …`
    TupleNotIn(usize, usize, RowTerms),
}

fn invalid<T>(message: String) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

/// Prepares a relation. A BETWEEN has been taken apart before.
pub(super) fn prepare<'t>(
    context: &mut PrepareContext<'_>,
    kind: StatementKind,
    table: &'t TableMetadata,
    relation: &Relation<'_>,
) -> Result<PreparedRelation<'t>, CqlError> {
    refuse_unequal(relation)?;
    match relation {
        Relation::Column { column: name, operator, value } => {
            let column = find_column(table, name.as_str())?;
            if matches!(operator, Operator::Contains | Operator::ContainsKey)
                && matches!(kind, StatementKind::Update | StatementKind::Delete)
            {
                return invalid(format!("Cannot use {} with {}", kind.name(), operator.symbol()));
            }
            let receiver = column_receiver(column, *operator)?;
            match operator {
                Operator::Like => {
                    let term = terms::prepare(context, value, &receiver)?;
                    if kind == StatementKind::Select && has_like(table, column) {
                        return Ok(PreparedRelation::Column(column, Operator::Like, term));
                    }
                    return invalid(format!(
                        "LIKE restriction is only supported on properly indexed columns. {:?} LIKE {value} is not valid.",
                        name
                    ));
                }
                Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte => refuse_durations(&column.ty)?,
                Operator::Eq | Operator::Neq | Operator::Contains | Operator::ContainsKey => {}
            }
            let term = terms::prepare(context, value, &receiver)?;
            Ok(PreparedRelation::Column(column, *operator, term))
        }
        Relation::ColumnIn { column, values, negated: false } => {
            let column = find_column(table, column.as_str())?;
            check_collection(column, "IN", false)?;
            match in_terms(context, column, values)? {
                InTerms::List(mut terms) if terms.len() == 1 => {
                    let only = terms.pop().expect("there is one");
                    Ok(PreparedRelation::Column(column, Operator::Eq, only))
                }
                terms => Ok(PreparedRelation::ColumnIn(column, terms)),
            }
        }
        Relation::ColumnIn { column, values, negated: true } => {
            let column = find_column(table, column.as_str())?;
            check_collection(column, "NOT IN", false)?;
            refuse_durations(&column.ty)?;
            Ok(PreparedRelation::ColumnNotIn(column, in_terms(context, column, values)?))
        }
        Relation::IsNotNull { column } => {
            find_column(table, column.as_str())?;
            invalid(format!("Unsupported restriction: {column} IS NOT NULL"))
        }
        Relation::Element { column, key, operator, value } => {
            let column = find_column(table, column.as_str())?;
            prepare_entry(context, column, key, *operator, value)
        }
        Relation::Token { columns, operator, value } => prepare_token(context, table, columns, *operator, value),
        Relation::Tuple { columns, operator, value } => {
            let (first, width) = tuple_columns(table, columns, &|| format!("{} {value}", operator.symbol()))?;
            if *operator == Operator::Neq {
                let names: Vec<_> = columns.iter().map(|column| format!("{column:?}")).collect();
                return invalid(format!("Unsupported \"!=\" relation: ({}) != {value}", names.join(", ")));
            }
            if !matches!(operator, Operator::Eq | Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte) {
                return invalid(format!("{} cannot be used for multi-column relations", operator.symbol()));
            }
            let row = row_term(context, table, first, width, value)?;
            Ok(PreparedRelation::Tuple(first, width, *operator, row))
        }
        Relation::TupleIn { columns, values, negated } => {
            let operator = if *negated { "NOT IN" } else { "IN" };
            let (first, width) = tuple_columns(table, columns, &|| format!("{operator} {}", in_text(values)))?;
            let rows = match values {
                InValues::List(list) => {
                    let rows: Result<Vec<_>, _> =
                        list.iter().map(|value| row_term(context, table, first, width, value)).collect();
                    RowTerms::List(rows?)
                }
                InValues::Bind(marker) => {
                    let (names, tuple) = tuple_type(table, first, width);
                    let ty = CqlType::List { element: Arc::new(tuple), frozen: true };
                    let receiver = Receiver::new(format!("in({names})"), ty.clone());
                    RowTerms::Bind(Term::Bind { index: context.bind(marker, &receiver), ty })
                }
            };
            Ok(match negated {
                true => PreparedRelation::TupleNotIn(first, width, rows),
                false => PreparedRelation::TupleIn(first, width, rows),
            })
        }
        Relation::Between { .. } | Relation::TokenBetween { .. } | Relation::TupleBetween { .. } => {
            unreachable!("a BETWEEN is prepared as its two bounds")
        }
    }
}

/// `!=` on a column or an element of one is refused before anything is looked up. On token() and on
/// columns in parentheses it is refused later, after what is wrong with those columns.
fn refuse_unequal(relation: &Relation<'_>) -> Result<(), CqlError> {
    let quoted = |name: &ast::Ident<'_>| types::ident::maybe_quote(name.as_str());
    match relation {
        Relation::Column { column, operator: Operator::Neq, value } => {
            invalid(format!("Unsupported \"!=\" relation: {} != {value}", quoted(column)))
        }
        Relation::Element { column, key, operator: Operator::Neq, value } => {
            invalid(format!("Unsupported \"!=\" relation: {}[{key}] != {value}", quoted(column)))
        }
        _ => Ok(()),
    }
}

/// Whether an index on a column answers LIKE.
fn has_like(table: &TableMetadata, column: &ColumnMetadata) -> bool {
    let mut definitions = table.indexes.values().filter_map(|index| IndexDefinition::of(table, index, false));
    definitions.any(|index| index.column.name == column.name && index.supports(IndexOperator::Like))
}

fn refuse_durations(ty: &CqlType) -> Result<(), CqlError> {
    fn has_duration(ty: &CqlType) -> bool {
        match ty {
            CqlType::Duration => true,
            CqlType::List { element, .. } | CqlType::Set { element, .. } => has_duration(element),
            CqlType::Map { key, value, .. } => has_duration(key) || has_duration(value),
            CqlType::Tuple(fields) => fields.iter().any(has_duration),
            CqlType::Udt(udt, _) => udt.fields.iter().any(|(_, ty)| has_duration(ty)),
            _ => false,
        }
    }
    if !has_duration(ty) {
        return Ok(());
    }
    let what = match ty {
        CqlType::Duration => return invalid("Slice restrictions are not supported on duration columns".into()),
        CqlType::Tuple(_) => "tuples",
        CqlType::Udt(..) => "UDTs",
        _ => "collections",
    };
    invalid(format!("Slice restrictions are not supported on {what} containing durations"))
}

fn check_collection(column: &ColumnMetadata, operator: &str, legal: bool) -> Result<(), CqlError> {
    let (name, ty) = (&column.name, &column.ty);
    if matches!(ty, CqlType::Udt(..)) && ty.is_multi_cell() {
        return invalid(format!(
            "Non-frozen UDT column '{name}' ({}) cannot be restricted by any relation",
            type_name(ty)
        ));
    }
    if ty.is_collection() && ty.is_multi_cell() && !legal {
        return invalid(format!(
            "Collection column '{name}' ({}) cannot be restricted by a '{operator}' relation",
            type_name(ty)
        ));
    }
    Ok(())
}

/// The receiver for the right side of an operator on a column.
fn column_receiver(column: &ColumnMetadata, operator: Operator) -> Result<Receiver, CqlError> {
    let (name, ty) = (&column.name, &column.ty);
    let element = |part: &str, ty: &Arc<CqlType>| Ok(Receiver::new(format!("{part}({name})"), (**ty).clone()));
    match operator {
        // as in Cassandra, a descending column does not count as a collection
        Operator::ContainsKey => match ty {
            CqlType::Map { key, .. } if !column.reversed => element("key", key),
            _ => invalid(format!("Cannot use CONTAINS KEY on non-map column {name}")),
        },
        Operator::Contains => match ty {
            _ if column.reversed => invalid(format!("Cannot use CONTAINS on non-collection column {name}")),
            CqlType::List { element: ty, .. } | CqlType::Set { element: ty, .. } => element("value", ty),
            CqlType::Map { value, .. } => element("value", value),
            _ => invalid(format!("Cannot use CONTAINS on non-collection column {name}")),
        },
        _ => {
            check_collection(column, operator.symbol(), false)?;
            Ok(Receiver::column(column))
        }
    }
}

/// The right side of IN and NOT IN.
fn in_terms(
    context: &mut PrepareContext<'_>,
    column: &ColumnMetadata,
    values: &InValues<'_>,
) -> Result<InTerms, CqlError> {
    match values {
        InValues::List(list) => {
            let receiver = Receiver::column(column);
            let terms: Result<Vec<_>, _> = list.iter().map(|value| terms::prepare(context, value, &receiver)).collect();
            Ok(InTerms::List(terms?))
        }
        InValues::Bind(marker) => {
            let ty = CqlType::List { element: Arc::new(column.ty.clone()), frozen: true };
            let receiver = Receiver::new(format!("in({})", column.name), ty.clone());
            Ok(InTerms::Bind(Term::Bind { index: context.bind(marker, &receiver), ty }))
        }
    }
}

fn prepare_entry<'t>(
    context: &mut PrepareContext<'_>,
    column: &'t ColumnMetadata,
    key: &ast::Term<'_>,
    operator: Operator,
    value: &ast::Term<'_>,
) -> Result<PreparedRelation<'t>, CqlError> {
    let name = &column.name;
    match &column.ty {
        CqlType::List { .. } => {
            invalid(format!("Indexes on list entries ({name}[index] = value) are not currently supported."))
        }
        CqlType::Map { frozen: true, .. } => {
            invalid(format!("Map-entry equality predicates on frozen map column {name} are not supported"))
        }
        CqlType::Map { .. } if operator != Operator::Eq => {
            invalid("Only EQ relations are supported on map entries".into())
        }
        CqlType::Map { key: key_type, value: value_type, .. } => {
            let key_receiver = Receiver::new(format!("key({name})"), (**key_type).clone());
            let value_receiver = Receiver::new(format!("value({name})"), (**value_type).clone());
            let key = terms::prepare(context, key, &key_receiver)?;
            Ok(PreparedRelation::Entry(column, key, terms::prepare(context, value, &value_receiver)?))
        }
        _ => invalid(format!("Column {name} cannot be used as a map")),
    }
}

fn prepare_token<'t>(
    context: &mut PrepareContext<'_>,
    table: &TableMetadata,
    columns: &[ast::Ident<'_>],
    operator: Operator,
    value: &ast::Term<'_>,
) -> Result<PreparedRelation<'t>, CqlError> {
    let found: Result<Vec<_>, _> = columns.iter().map(|column| find_column(table, column.as_str())).collect();
    let found = found?;
    let is_whole_key = found.len() == table.partition_key.len()
        && found
            .iter()
            .enumerate()
            .all(|(at, column)| column.kind == ColumnKind::PartitionKey && column.position == at);
    if !is_whole_key {
        return Err(wrong_token_columns(table, &found));
    }
    if operator == Operator::Neq {
        let names: Vec<_> = columns.iter().map(|column| format!("{column:?}")).collect();
        return invalid(format!("Unsupported \"!=\" relation: token({}) != {value}", names.join(", ")));
    }
    if !matches!(operator, Operator::Eq | Operator::Lt | Operator::Lte | Operator::Gt | Operator::Gte) {
        return invalid(format!("{} cannot be used with the token function", operator.symbol()));
    }
    // in a virtual table the token is the key itself
    let ty = if table.is_virtual() { table.partition_key_type.clone() } else { CqlType::BigInt };
    let receiver = Receiver::new("partition key token", ty);
    Ok(PreparedRelation::Token(operator, terms::prepare(context, value, &receiver)?))
}

/// The error for a `token()` of other columns than those of the partition key in their order.
fn wrong_token_columns(table: &TableMetadata, found: &[&ColumnMetadata]) -> CqlError {
    let names: BTreeSet<&str> = found.iter().map(|column| column.name.as_str()).collect();
    if !table.partition_key.iter().all(|key| names.contains(key.name.as_str())) {
        let message = "The token() function must be applied to all partition key components or none of them";
        return CqlError::invalid(message);
    }
    if names.len() < found.len() {
        return CqlError::invalid("The token() function contains duplicate partition key components");
    }
    if found.iter().any(|column| column.kind != ColumnKind::PartitionKey) {
        return CqlError::invalid("The token() function must contains only partition key components");
    }
    let names: Vec<_> = table.partition_key.iter().map(|column| column.name.as_str()).collect();
    CqlError::invalid(format!("The token function arguments must be in the partition key order: {}", names.join(", ")))
}

/// Position and number of clustering columns in parentheses, which must follow each other.
fn tuple_columns(
    table: &TableMetadata,
    names: &[ast::Ident<'_>],
    rest: &dyn Fn() -> String,
) -> Result<(usize, usize), CqlError> {
    let mut first = None;
    for (at, name) in names.iter().enumerate() {
        let column = find_column(table, name.as_str())?;
        if column.kind != ColumnKind::Clustering {
            return invalid(format!(
                "Multi-column relations can only be applied to clustering columns but was applied to: {}",
                column.name
            ));
        }
        let start = *first.get_or_insert(column.position);
        if column.position != start + at {
            let list: Vec<_> = names.iter().map(|name| name.as_str()).collect();
            // columns that follow each other are not among those before them
            if names[..at].iter().any(|other| other == name) {
                return invalid(format!(
                    "Column \"{name}\" appeared twice in a relation: ({}) {}",
                    list.join(", "),
                    rest()
                ));
            }
            return invalid(format!(
                "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: ({}) {}",
                list.join(", "),
                rest()
            ));
        }
    }
    Ok((first.unwrap_or(0), names.len()))
}

fn in_text(values: &InValues<'_>) -> String {
    match values {
        InValues::List(list) => format!("({})", list.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
        InValues::Bind(marker) => marker.to_string(),
    }
}

fn tuple_type(table: &TableMetadata, first: usize, width: usize) -> (String, CqlType) {
    let columns = &table.clustering[first..first + width];
    let names: Vec<_> = columns.iter().map(|column| column.name.as_str()).collect();
    (names.join(","), CqlType::Tuple(columns.iter().map(|column| column.ty.clone()).collect::<Vec<_>>().into()))
}

fn row_term(
    context: &mut PrepareContext<'_>,
    table: &TableMetadata,
    first: usize,
    width: usize,
    value: &ast::Term<'_>,
) -> Result<RowTerm, CqlError> {
    match value {
        ast::Term::Tuple(parts) => {
            if parts.len() != width {
                return invalid(format!("Expected {width} elements in value tuple, but got {}: {value}", parts.len()));
            }
            let columns = &table.clustering[first..first + width];
            let terms: Result<Vec<_>, _> = parts
                .iter()
                .zip(columns)
                .map(|(part, column)| terms::prepare(context, part, &Receiver::column(column)))
                .collect();
            Ok(RowTerm::Columns(terms?))
        }
        other => {
            let (names, ty) = tuple_type(table, first, width);
            let receiver = Receiver::new(format!("({names})"), ty);
            Ok(RowTerm::Tuple(terms::prepare(context, other, &receiver)?))
        }
    }
}
