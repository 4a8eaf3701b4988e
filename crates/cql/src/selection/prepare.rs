//! Preparing a select clause: selectors with their types, the names of result columns, the columns
//! that are read.
//!
//! Agrees with `org.apache.cassandra.cql3.selection.{Selectable,Selection,RawSelector}`:
//! `newSelectorFactory`, messages included.

mod composite;
mod parts;

use std::sync::Arc;

use schema::TableMetadata;
use types::CqlType;

use super::node::{Lookup, Node};
use super::{Aggregate, Column, Selection, Selector, wildcard};
use crate::ast::{self, NativeType};
use crate::context::{PrepareContext, Receiver};
use crate::error::CqlError;
use crate::fit;
use crate::functions::{self, AggregateKind, Function};
use crate::scalar::type_name;
use crate::terms;

struct Builder<'p, 's, 't> {
    context: &'p mut PrepareContext<'s>,
    table: &'t TableMetadata,
    aggregates: Vec<Aggregate>,
    requested: Vec<Column>,
    has_terms: bool,
}

/// A selector with its type and name.
struct Typed {
    selector: Selector,
    ty: CqlType,
    name: String,
}

fn invalid<T>(message: String) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

/// A prepared select clause.
pub(crate) struct PreparedSelection {
    /// The columns that it looks at.
    pub requested: Vec<Column>,
    /// The selection, or what is wrong with it: Cassandra says that after what is wrong with the
    /// WHERE.
    pub selection: Result<Selection, CqlError>,
}

/// Prepares a select clause; without selectors it is `*`.
///
/// Of a table with static columns Cassandra looks up functions before the WHERE, to see whether
/// only such are selected: then a mistake in them is the error.
pub(crate) fn prepare(
    context: &mut PrepareContext<'_>,
    table: &TableMetadata,
    selectors: &[ast::Selector<'_>],
) -> Result<PreparedSelection, CqlError> {
    if selectors.is_empty() {
        let all = wildcard(table);
        return Ok(PreparedSelection { requested: all.requested.clone(), selection: Ok(all) });
    }
    let mut builder = Builder::new(context, table);
    let nodes: Result<Vec<_>, _> =
        selectors.iter().map(|selector| builder.lookup().node(&selector.selectable)).collect();
    let nodes = match nodes {
        Err(error) if table.statics.is_empty() || table.is_static_compact() => {
            return Ok(PreparedSelection { requested: Vec::new(), selection: Err(error) });
        }
        nodes => nodes?,
    };
    // all are built, so that all columns are known
    let built: Vec<_> = nodes.iter().map(|node| builder.build(node, None)).collect();
    let requested = std::mem::take(&mut builder.requested);
    let built: Result<Vec<_>, _> = built.into_iter().collect();
    let selection = built.map(|built| builder.selection(selectors, built, requested.clone()));
    Ok(PreparedSelection { requested, selection })
}

/// The function whose results rows are grouped by.
pub(crate) struct GroupFunction {
    /// Its selector.
    pub selector: Selector,
    /// The columns that it looks at.
    pub columns: Vec<Column>,
    /// Whether groups can be made of it.
    pub makes_groups: Result<(), CqlError>,
}

/// Prepares what rows are grouped by, where that is a function.
pub(crate) fn prepare_group(
    context: &mut PrepareContext<'_>,
    table: &TableMetadata,
    selectable: &ast::Selectable<'_>,
) -> Result<GroupFunction, CqlError> {
    let mut builder = Builder::new(context, table);
    let node = builder.lookup().node(selectable)?;
    let makes_groups = check_group(&node);
    let typed = builder.build(&node, None)?;
    let mut columns = builder.requested;
    columns.dedup();
    Ok(GroupFunction { selector: typed.selector, columns, makes_groups })
}

/// Only functions whose values stand in the order of the rows make groups.
fn check_group(node: &Node<'_, '_>) -> Result<(), CqlError> {
    match node {
        Node::Column(_) | Node::Term(_) => Ok(()),
        Node::Call(function, _) if function.aggregate().is_some() => invalid(
            "Aggregate functions are not supported within the GROUP BY clause, got: ".to_owned() + function.name(),
        ),
        Node::Call(function, arguments) => {
            let known: Vec<_> = arguments.iter().map(is_known).collect();
            if !function.makes_groups(&known) {
                return invalid(format!(
                    "Only monotonic functions are supported in the GROUP BY clause. Got: {} ",
                    function.signature()
                ));
            }
            arguments.iter().try_for_each(check_group)
        }
        other => invalid(format!(
            "Only column names and monotonic scalar functions are supported in the GROUP BY clause. Got: {}",
            other.text()
        )),
    }
}

/// Its value is the same for all rows.
fn is_known(node: &Node<'_, '_>) -> bool {
    match node {
        Node::Term(_) => true,
        Node::Hint(_, _, of) | Node::Cast(of, _) => is_known(of),
        Node::Call(function, arguments) => function.is_pure() && arguments.iter().all(is_known),
        _ => false,
    }
}

impl<'p, 's, 't> Builder<'p, 's, 't> {
    fn new(context: &'p mut PrepareContext<'s>, table: &'t TableMetadata) -> Self {
        Self { context, table, aggregates: Vec::new(), requested: Vec::new(), has_terms: false }
    }

    fn lookup(&self) -> Lookup<'_, 's, 't> {
        Lookup { context: self.context, table: self.table }
    }

    fn selection(self, selectors: &[ast::Selector<'_>], built: Vec<Typed>, requested: Vec<Column>) -> Selection {
        let mut prepared = Vec::with_capacity(selectors.len());
        let mut names = Vec::with_capacity(selectors.len());
        for (selector, typed) in selectors.iter().zip(built) {
            let name = match &selector.alias {
                Some(alias) => alias.as_str().to_owned(),
                None => typed.name,
            };
            names.push((name, typed.ty));
            prepared.push(typed.selector);
        }
        let Self { aggregates, has_terms, .. } = self;
        let mut selection =
            Selection { selectors: prepared, names, aggregates, fetched: Arc::from([]), requested, has_terms };
        let ids: Vec<_> = selection.requested.iter().filter_map(Column::id).collect();
        selection.fetch(ids.into_iter());
        selection
    }

    /// The selector of a node, where a value of a type is expected of it.
    fn build(&mut self, node: &Node<'t, '_>, expected: Option<&CqlType>) -> Result<Typed, CqlError> {
        match node {
            Node::Column(column) => {
                let place = Column::of(column);
                self.requested.push(place.clone());
                Ok(Typed { selector: Selector::Column(place), ty: column.ty.clone(), name: column.name.clone() })
            }
            Node::Term(term) => {
                let ty = terms::exact_type(self.context, term).or_else(|| expected.cloned());
                let ty = ty.ok_or_else(|| cannot_infer(node))?;
                let selector = self.term(term, &Receiver::new("[selection]", ty.clone()))?;
                Ok(Typed { selector, ty, name: term.to_string() })
            }
            Node::Attribute(attribute, column, of) => self.attribute(*attribute, column, of),
            Node::Call(function, arguments) => self.call(function, arguments),
            Node::Cast(of, native) => self.cast(of, *native),
            Node::Field(of, field) => self.field(of, field),
            Node::Element(of, key) => self.element(of, key),
            Node::Slice(of, from, to) => self.slice(of, *from, *to, expected),
            Node::Hint(text, ty, of) => self.hint(node, text, ty, of),
            Node::Tuple(parts) => self.tuple(node, parts, expected),
            Node::Array(parts) => self.array(node, parts, expected),
            Node::Set(parts) => self.set(node, parts, expected),
            Node::MapOrUserType(entries) => self.map_or_user_type(node, entries, expected),
        }
    }

    fn term(&mut self, term: &ast::Term<'_>, receiver: &Receiver) -> Result<Selector, CqlError> {
        let prepared = terms::prepare(self.context, term, receiver)?;
        self.has_terms |= !prepared.is_constant();
        Ok(Selector::Term(prepared))
    }

    fn call(&mut self, function: &Arc<Function>, arguments: &[Node<'t, '_>]) -> Result<Typed, CqlError> {
        self.context.record_function(function);
        let aggregates = self.aggregates.len();
        let mut built = Vec::with_capacity(arguments.len());
        for (argument, ty) in arguments.iter().zip(&function.arguments) {
            built.push(self.build(argument, Some(ty))?);
        }
        let names: Vec<_> = built.iter().map(|typed| typed.name.clone()).collect();
        let (name, ty) = (function.column_name(&names), function.returns.clone());
        let mut selectors = built.into_iter().map(|typed| typed.selector);
        let Some(kind) = function.aggregate() else {
            self.has_terms |= !function.is_pure();
            let selectors: Vec<Selector> = selectors.collect();
            // a call of constants that fails does so whether there are rows or not
            self.has_terms |= selectors.iter().all(|selector| selector.constant().is_some());
            return Ok(Typed { selector: Selector::Call(Arc::clone(function), selectors), ty, name });
        };
        if self.aggregates.len() != aggregates {
            return invalid("aggregate functions cannot be used as arguments of aggregate functions".into());
        }
        let of = match function.arguments.first() {
            Some(CqlType::Counter) | None => CqlType::BigInt,
            Some(ty) => ty.clone(),
        };
        let user = function.user_aggregate().map(|user| (Arc::clone(user), selectors.by_ref().collect()));
        let argument = if kind == AggregateKind::CountRows { None } else { selectors.next() };
        self.aggregates.push(Aggregate { kind, argument, ty: of, user });
        Ok(Typed { selector: Selector::Aggregate(self.aggregates.len() - 1), ty, name })
    }

    fn cast(&mut self, of: &Node<'t, '_>, native: NativeType) -> Result<Typed, CqlError> {
        let to = fit::native_type(native);
        let inner = self.build(of, None)?;
        // a cast to the type that it is of is none; a descending column is of another there
        if inner.ty == to && !self.is_descending(of) {
            return Ok(inner);
        }
        let argument = functions::TypeArgument(&inner.ty);
        let name = functions::cast_name(native);
        let scope = self.context.scope();
        let Some(function) = functions::resolve(scope, Some("system"), &name, &[&argument], None)? else {
            let what = if self.requested.is_empty() { of.text() } else { inner.name };
            return invalid(format!("{what} cannot be cast to {}", native.name()));
        };
        let name = function.column_name(&[inner.name]);
        Ok(Typed { selector: Selector::Call(function, vec![inner.selector]), ty: to, name })
    }

    fn is_descending(&self, node: &Node<'t, '_>) -> bool {
        matches!(node, Node::Column(column) if column.reversed)
    }

    fn hint(&mut self, node: &Node<'t, '_>, text: &str, ty: &CqlType, of: &Node<'t, '_>) -> Result<Typed, CqlError> {
        if of.fit(self.lookup(), ty) == fit::Fit::No {
            let (value, ty) = (node.text(), type_name(ty));
            return invalid(format!("Cannot assign value {value} to {value} of type {ty}"));
        }
        let inner = self.build(of, Some(ty))?;
        Ok(Typed { selector: inner.selector, ty: ty.clone(), name: format!("({text}){}", inner.name) })
    }
}

fn cannot_infer(node: &Node<'_, '_>) -> CqlError {
    CqlError::invalid(format!(
        "Cannot infer type for term {} in selection clause (try using a cast to force a type)",
        node.text()
    ))
}
