//! What preparing carries along (schema, keyspace, bind markers) and what evaluating needs (bound values, clocks).

mod calls;

use std::sync::Arc;

use schema::{ColumnKind, ColumnMetadata, Schema, TableMetadata};
use types::CqlType;

use crate::ast;
use crate::error::CqlError;
use crate::functions::Scope;
use crate::result::ColumnSpec;
use crate::sources::Sources;
use crate::values::BoundValue;
pub(crate) use calls::{Calls, Found};

/// What a value is meant for: the name in error messages and bind variables, and the type.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// Column, `value(l)`, `[limit]`, …
    pub name: String,
    /// Its type.
    pub ty: CqlType,
    /// It is this column of the partition key.
    pub key: Option<usize>,
}

impl Receiver {
    /// Of a name and a type.
    pub fn new(name: impl Into<String>, ty: CqlType) -> Self {
        Self { name: name.into(), ty, key: None }
    }

    /// A column.
    pub fn column(column: &ColumnMetadata) -> Self {
        let key = (column.kind == ColumnKind::PartitionKey).then_some(column.position);
        Self { key, ..Self::new(column.name.clone(), column.ty.clone()) }
    }
}

/// Preparing one statement.
pub(crate) struct Preparing<'a> {
    /// The schema.
    pub schema: &'a Arc<Schema>,
    /// Keyspace of the table; user types and functions are looked up there.
    pub keyspace: Arc<str>,
    /// Table that bind variables are said to belong to.
    pub table: Arc<str>,
    /// Names of the markers as parsed.
    names: Vec<Option<String>>,
    /// What is known of each marker.
    specs: Vec<Option<ColumnSpec>>,
    /// The column of the partition key that each marker stands for.
    keys: Vec<Option<usize>>,
    /// Functions that calls within the term at hand were found to mean.
    pub calls: Calls,
}

impl<'a> Preparing<'a> {
    /// With the markers of a parsed statement.
    pub fn new(schema: &'a Arc<Schema>, markers: &[Option<ast::Ident<'_>>]) -> Self {
        let names = markers.iter().map(|marker| marker.as_ref().map(|name| name.as_str().to_owned())).collect();
        let (keyspace, table) = (Arc::from(""), Arc::from(""));
        let specs = vec![None; markers.len()];
        Self { schema, keyspace, table, names, specs, keys: vec![None; markers.len()], calls: Calls::default() }
    }

    /// Where functions are looked for.
    pub fn scope(&self) -> Scope<'_> {
        Scope { schema: self.schema, keyspace: &self.keyspace, table: &self.table }
    }

    /// The statement is about this table from here on.
    pub fn enter(&mut self, table: &TableMetadata) {
        if *self.keyspace != *table.keyspace {
            self.keyspace = Arc::from(table.keyspace.as_str());
        }
        if *self.table != *table.name {
            self.table = Arc::from(table.name.as_str());
        }
    }

    /// A marker stands for a value of the receiver.
    pub fn bind(&mut self, marker: &ast::BindMarker<'_>, receiver: &Receiver) -> u16 {
        let index = usize::from(marker.index);
        let name = self.names.get(index).and_then(|name| name.as_deref()).unwrap_or(&receiver.name);
        let spec = ColumnSpec {
            keyspace: Arc::clone(&self.keyspace),
            table: Arc::clone(&self.table),
            name: Arc::from(name),
            ty: receiver.ty.clone(),
        };
        if let (Some(place), Some(key)) = (self.specs.get_mut(index), self.keys.get_mut(index)) {
            *place = Some(spec);
            *key = receiver.key;
        }
        marker.index
    }

    /// For each column of a partition key the last marker that stands for it alone; empty if one has none, or if markers
    /// belong to several tables (or to a batch as a whole).
    pub fn key_markers(&self, columns: usize) -> Arc<[u16]> {
        let one_table = self.specs.windows(2).all(|pair| match (&pair[0], &pair[1]) {
            (Some(a), Some(b)) => a.table == b.table && a.keyspace == b.keyspace,
            _ => true,
        });
        if !one_table {
            return Arc::default();
        }
        let last =
            |column| self.keys.iter().rposition(|key| *key == Some(column)).and_then(|at| u16::try_from(at).ok());
        (0..columns).map(last).collect::<Option<Vec<_>>>().unwrap_or_default().into()
    }

    /// The bind variables in order.
    pub fn into_bind_variables(self) -> Result<Arc<[ColumnSpec]>, CqlError> {
        let missing = || CqlError::Server("a bind marker was not prepared".into());
        self.specs.into_iter().map(|spec| spec.ok_or_else(missing)).collect()
    }

    /// The table of a name. `keyspace` is the current one.
    pub fn table(&self, name: &ast::QualifiedName<'_>, keyspace: Option<&str>) -> Result<Arc<TableMetadata>, CqlError> {
        find_table(self.schema, name, keyspace)
    }
}

/// What is said when no keyspace is given nor set.
pub(crate) const NO_KEYSPACE: &str =
    "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename";

/// The table of a name.
pub(crate) fn find_table(
    schema: &Schema,
    name: &ast::QualifiedName<'_>,
    keyspace: Option<&str>,
) -> Result<Arc<TableMetadata>, CqlError> {
    let keyspace = name.keyspace().or(keyspace).ok_or_else(|| CqlError::invalid(NO_KEYSPACE))?;
    let found =
        schema.keyspace(keyspace).ok_or_else(|| CqlError::invalid(format!("keyspace {keyspace} does not exist")))?;
    let table = name.name.as_str();
    found.tables.get(table).cloned().ok_or_else(|| CqlError::invalid(format!("table {table} does not exist")))
}

/// A column of a table by name.
pub(crate) fn find_column<'t>(table: &'t TableMetadata, name: &str) -> Result<&'t ColumnMetadata, CqlError> {
    table.column_by_name(name).filter(|column| !table.is_hidden(column)).ok_or_else(|| {
        let name = types::ident::maybe_quote(name);
        CqlError::invalid(format!("Undefined column name {name} in table {}.{}", table.keyspace, table.name))
    })
}

/// What terms are evaluated with.
#[derive(Clone, Copy)]
pub(crate) struct Bindings<'a> {
    /// Bound values.
    pub values: &'a [BoundValue],
    /// Clocks and ids.
    pub sources: &'a dyn Sources,
}

impl Bindings<'_> {
    /// A bound value.
    pub fn value(&self, index: u16) -> Result<&BoundValue, CqlError> {
        self.values.get(usize::from(index)).ok_or_else(|| {
            CqlError::invalid("There were fewer values bound than the statement has bind variables".to_owned())
        })
    }
}
