//! Which elements of the schema a DESCRIBE lists, and in which order.
//!
//! Must agree with: `DescribeStatement`'s factories and `SchemaElement.NAME_COMPARATOR`: by name
//! without regard to case.

use std::sync::Arc;

use schema::{
    AggregateMetadata, FunctionMetadata, IndexMetadata, KeyspaceMetadata, Schema, TableKind, TableMetadata,
    ViewDefinition, describe, system,
};
use types::UserType;
use types::ident::maybe_quote;

use crate::ast::{DescribeTarget, Ident, QualifiedName};
use crate::error::CqlError;

/// Something that has a CREATE statement.
pub(super) enum Element<'a> {
    Keyspace(&'a KeyspaceMetadata),
    Table(&'a TableMetadata),
    Type(Arc<UserType>),
    Function(&'a FunctionMetadata),
    Aggregate(&'a AggregateMetadata),
    Index(&'a TableMetadata, &'a IndexMetadata),
    View(&'a TableMetadata, &'a ViewDefinition),
}

impl Element<'_> {
    fn keyspace(&self) -> &str {
        match self {
            Element::Keyspace(keyspace) => &keyspace.name,
            Element::Table(table) | Element::Index(table, _) | Element::View(table, _) => &table.keyspace,
            Element::Type(udt) => &udt.keyspace,
            Element::Function(function) => &function.keyspace,
            Element::Aggregate(aggregate) => &aggregate.keyspace,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Element::Keyspace(_) => "keyspace",
            Element::Table(_) => "table",
            Element::Type(_) => "type",
            Element::Function(_) => "function",
            Element::Aggregate(_) => "aggregate",
            Element::Index(..) => "index",
            Element::View(..) => "materialized_view",
        }
    }

    fn name(&self) -> &str {
        match self {
            Element::Keyspace(keyspace) => &keyspace.name,
            Element::Table(table) | Element::View(table, _) => &table.name,
            Element::Type(udt) => &udt.name,
            Element::Function(function) => &function.name,
            Element::Aggregate(aggregate) => &aggregate.name,
            Element::Index(_, index) => &index.name,
        }
    }

    fn create_statement(&self, internals: bool) -> String {
        match self {
            Element::Keyspace(keyspace) => describe::keyspace(keyspace),
            Element::Table(table) => describe::table(table, internals),
            Element::Type(udt) => describe::user_type(udt),
            Element::Function(function) => function.describe(),
            Element::Aggregate(aggregate) => aggregate.describe(),
            Element::Index(table, index) => describe::index(table, index),
            Element::View(table, view) => describe::view(table, view, internals),
        }
    }

    /// The name; of functions with the types of their arguments.
    fn shown_name(&self) -> String {
        use schema::function::shown_name;
        match self {
            Element::Function(function) => shown_name(&function.name, function.arguments.iter().map(|(_, ty)| ty)),
            Element::Aggregate(aggregate) => shown_name(&aggregate.name, &aggregate.arguments),
            _ => maybe_quote(self.name()),
        }
    }

    /// The values of its row.
    pub fn row(&self, with_statement: bool, internals: bool) -> Vec<Vec<u8>> {
        let mut row = vec![maybe_quote(self.keyspace()), self.kind().to_owned(), self.shown_name()];
        if with_statement {
            row.push(self.create_statement(internals));
        }
        row.into_iter().map(String::into_bytes).collect()
    }
}

type FoundElements<'a> = Result<(Vec<Element<'a>>, bool), CqlError>;

/// The elements that a target names, and whether their CREATE statements are asked for.
pub(super) fn of<'a>(target: &DescribeTarget<'_>, current: Option<&str>, schema: &'a Schema) -> FoundElements<'a> {
    match target {
        DescribeTarget::Cluster => Ok((Vec::new(), false)),
        DescribeTarget::Keyspaces => Ok((keyspaces(schema).into_iter().map(Element::Keyspace).collect(), false)),
        DescribeTarget::Tables => list(current, schema, tables),
        DescribeTarget::Types => list(current, schema, |keyspace| {
            sorted(keyspace.user_types.values().map(|udt| Element::Type(Arc::clone(udt))).collect())
        }),
        DescribeTarget::Functions => list(current, schema, functions),
        DescribeTarget::Aggregates => list(current, schema, aggregates),
        DescribeTarget::Schema { full } => {
            let keyspaces = keyspaces(schema).into_iter();
            let shown = keyspaces.filter(|keyspace| *full || !system::is_system_keyspace(&keyspace.name));
            Ok((shown.flat_map(keyspace_elements).collect(), true))
        }
        DescribeTarget::Keyspace { name, only } => {
            let keyspace = keyspace(name.as_ref().map(Ident::as_str), current, schema)?;
            Ok((if *only { vec![Element::Keyspace(keyspace)] } else { keyspace_elements(keyspace) }, true))
        }
        DescribeTarget::Any(name) => any(name, current, schema),
        DescribeTarget::Table(name)
        | DescribeTarget::Index(name)
        | DescribeTarget::View(name)
        | DescribeTarget::Type(name)
        | DescribeTarget::Function(name)
        | DescribeTarget::Aggregate(name) => {
            let keyspace = keyspace(name.keyspace(), current, schema)?;
            Ok((named(target, keyspace, name.name.as_str())?, true))
        }
    }
}

/// One thing of a keyspace with what belongs to it.
fn named<'a>(
    target: &DescribeTarget<'_>,
    keyspace: &'a KeyspaceMetadata,
    name: &str,
) -> Result<Vec<Element<'a>>, CqlError> {
    let missing = |what: &str| Err(CqlError::invalid(format!("{what} '{name}' not found in '{}'", keyspace.name)));
    match target {
        DescribeTarget::Table(_) => match keyspace.tables.get(name) {
            Some(table) if table.kind != TableKind::View => Ok(table_elements(keyspace, table)),
            _ => Err(CqlError::invalid(format!("Table '{name}' not found in keyspace '{}'", keyspace.name))),
        },
        DescribeTarget::Index(_) => match indexed(keyspace, name) {
            Some(index) => Ok(vec![index]),
            None => missing("Table for existing index"),
        },
        DescribeTarget::Type(_) => match keyspace.user_types.get(name) {
            Some(udt) => Ok(vec![Element::Type(Arc::clone(udt))]),
            None => missing("User defined type"),
        },
        DescribeTarget::View(_) => match keyspace.tables.get(name).and_then(|table| view_element(table)) {
            Some(view) => Ok(vec![view]),
            None => missing("Materialized view"),
        },
        DescribeTarget::Function(_) => {
            let all: Vec<_> = functions(keyspace).into_iter().filter(|element| element.name() == name).collect();
            if all.is_empty() { missing("User defined function") } else { Ok(all) }
        }
        _ => {
            let all: Vec<_> = aggregates(keyspace).into_iter().filter(|element| element.name() == name).collect();
            if all.is_empty() { missing("User defined aggregate") } else { Ok(all) }
        }
    }
}

/// A bare name: a keyspace, a table, a view or an index, whichever is found first.
fn any<'a>(name: &QualifiedName<'_>, current: Option<&str>, schema: &'a Schema) -> FoundElements<'a> {
    let text = name.name.as_str();
    if name.keyspace.is_none()
        && let Some(keyspace) = schema.keyspace(text)
    {
        return Ok((keyspace_elements(keyspace), true));
    }
    let keyspace_name = name.keyspace().or(current).unwrap_or(text);
    let keyspace = keyspace(Some(keyspace_name), None, schema)?;
    if let Some(table) = keyspace.tables.get(text).filter(|table| table.kind != TableKind::View) {
        return Ok((table_elements(keyspace, table), true));
    }
    if let Some(view) = keyspace.tables.get(text).and_then(|table| view_element(table)) {
        return Ok((vec![view], true));
    }
    match indexed(keyspace, text) {
        Some(index) => Ok((vec![index], true)),
        None => Err(CqlError::invalid(format!("'{text}' not found in keyspace '{keyspace_name}'"))),
    }
}

fn indexed<'a>(keyspace: &'a KeyspaceMetadata, name: &str) -> Option<Element<'a>> {
    keyspace.tables.values().find_map(|table| Some(Element::Index(table, table.indexes.get(name)?)))
}

/// A keyspace that must exist: the named one, or the connection's.
fn keyspace<'a>(
    name: Option<&str>,
    current: Option<&str>,
    schema: &'a Schema,
) -> Result<&'a KeyspaceMetadata, CqlError> {
    let Some(name) = name.or(current) else {
        return Err(CqlError::invalid("No keyspace specified and no current keyspace"));
    };
    match schema.keyspace(name) {
        Some(keyspace) => Ok(keyspace),
        None => Err(CqlError::invalid(format!("'{name}' not found in keyspaces"))),
    }
}

/// Some elements of the current keyspace, or of all.
fn list<'a>(
    current: Option<&str>,
    schema: &'a Schema,
    elements: impl Fn(&'a KeyspaceMetadata) -> Vec<Element<'a>>,
) -> FoundElements<'a> {
    let of = match current {
        Some(name) => vec![keyspace(Some(name), None, schema)?],
        None => keyspaces(schema),
    };
    Ok((of.into_iter().flat_map(elements).collect(), false))
}

fn keyspaces(schema: &Schema) -> Vec<&KeyspaceMetadata> {
    let mut keyspaces: Vec<&KeyspaceMetadata> = schema.keyspaces.values().map(Arc::as_ref).collect();
    keyspaces.sort_by_key(|keyspace| keyspace.name.to_lowercase());
    keyspaces
}

fn sorted(mut elements: Vec<Element<'_>>) -> Vec<Element<'_>> {
    elements.sort_by_key(|element| element.name().to_lowercase());
    elements
}

fn tables(keyspace: &KeyspaceMetadata) -> Vec<Element<'_>> {
    let tables = keyspace.tables.values().filter(|table| table.kind != TableKind::View);
    sorted(tables.map(|table| Element::Table(table)).collect())
}

fn functions(keyspace: &KeyspaceMetadata) -> Vec<Element<'_>> {
    sorted(keyspace.functions.values().map(|function| Element::Function(function)).collect())
}

fn aggregates(keyspace: &KeyspaceMetadata) -> Vec<Element<'_>> {
    sorted(keyspace.aggregates.values().map(|aggregate| Element::Aggregate(aggregate)).collect())
}

fn view_element(table: &TableMetadata) -> Option<Element<'_>> {
    table.view.as_ref().map(|view| Element::View(table, view))
}

fn table_elements<'a>(keyspace: &'a KeyspaceMetadata, table: &'a TableMetadata) -> Vec<Element<'a>> {
    let indexes = table.indexes.values().map(|index| Element::Index(table, index)).collect();
    let mut elements = vec![Element::Table(table)];
    elements.extend(sorted(indexes));
    elements.extend(sorted(keyspace.views_of(table.id).filter_map(|view| view_element(view)).collect()));
    elements
}

/// A keyspace with its types, tables, indexes and views, each after what it needs.
fn keyspace_elements(keyspace: &KeyspaceMetadata) -> Vec<Element<'_>> {
    let mut elements = vec![Element::Keyspace(keyspace)];
    elements.extend(describe::types_by_dependency(keyspace).into_iter().map(Element::Type));
    elements.extend(functions(keyspace));
    elements.extend(aggregates(keyspace));
    for table in tables(keyspace) {
        if let Element::Table(table) = table {
            elements.extend(table_elements(keyspace, table));
        }
    }
    elements
}
