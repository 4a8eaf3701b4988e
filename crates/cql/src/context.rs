//! The two phases of a statement: `PrepareContext` collects bind markers and looks up names
//! while a statement is prepared; `Bindings` holds the values and clocks with which its terms are
//! evaluated.

mod calls;
mod fields;
mod made_values;

use std::sync::Arc;

use schema::{ColumnKind, ColumnMetadata, Schema, TableMetadata};
use types::CqlType;

use crate::ast;
use crate::error::CqlError;
use crate::functions::{Function, Scope};
use crate::result::ColumnSpec;
use crate::sources::Sources;
use crate::values::BoundValue;
pub(crate) use calls::{CallCache, CallResolution};
use fields::FieldCache;
pub(crate) use made_values::{JsonColumnValue, JsonColumnValues, MADE_SIZE_MAX, MadeValues, take_made};

/// The most bytes that the fields take which the literals of user types in a statement leave out.
/// A type may have tens of thousands of fields, of which each literal has to name but one: a
/// statement of some megabytes would take hundreds of gigabytes otherwise.
const LEFT_OUT_MAX: usize = if cfg!(test) { 16 << 20 } else { 64 << 20 };

/// The place a value is given to: its type, and the name that error messages and bind variables
/// show.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// Column, `value(l)`, `[limit]`, …
    pub name: String,
    /// The type that the value must have.
    pub ty: CqlType,
    /// Position of the column in the partition key; None if the place is no column of it.
    pub key: Option<usize>,
}

impl Receiver {
    /// A receiver that is no column of the partition key.
    pub fn new(name: impl Into<String>, ty: CqlType) -> Self {
        Self { name: name.into(), ty, key: None }
    }

    /// The receiver for the value of a column.
    pub fn column(column: &ColumnMetadata) -> Self {
        let key = (column.kind == ColumnKind::PartitionKey).then_some(column.position);
        Self { key, ..Self::new(column.name.clone(), column.ty.clone()) }
    }
}

/// The state of preparing one statement.
pub(crate) struct PrepareContext<'a> {
    /// The schema.
    pub schema: &'a Arc<Schema>,
    /// Keyspace of the table; user types and functions are looked up there.
    pub keyspace: Arc<str>,
    /// The table that the metadata of bind variables names.
    pub table: Arc<str>,
    /// Name of each bind marker; None for `?`.
    names: Vec<Option<String>>,
    /// Metadata of each bind marker; None until the marker was prepared.
    specs: Vec<Option<ColumnSpec>>,
    /// For each bind marker the position of the partition key column that it is the value of.
    keys: Vec<Option<usize>>,
    /// The functions already resolved for calls within the term that is being prepared.
    pub calls: CallCache,
    /// The places of the fields that the statement names.
    pub fields: FieldCache,
    /// Bytes that fields of user types take which its literals leave out.
    left_out: usize,
    /// Bytes that the values may still have which its JSON objects and calls make
    /// ([`MADE_SIZE_MAX`]).
    pub made_room: usize,
    /// The user-defined functions that the statement calls.
    pub used: Vec<Arc<Function>>,
}

impl<'a> PrepareContext<'a> {
    /// The state at the beginning, with the bind markers of a parsed statement.
    pub fn new(schema: &'a Arc<Schema>, markers: &[Option<ast::Ident<'_>>]) -> Self {
        let names = markers.iter().map(|marker| marker.as_ref().map(|name| name.as_str().to_owned())).collect();
        let (keyspace, table) = (Arc::from(""), Arc::from(""));
        let specs = vec![None; markers.len()];
        Self {
            schema,
            keyspace,
            table,
            names,
            specs,
            keys: vec![None; markers.len()],
            calls: CallCache::default(),
            fields: FieldCache::default(),
            left_out: 0,
            made_room: MADE_SIZE_MAX,
            used: Vec::new(),
        }
    }

    /// Records that the statement calls a function, if that is a user-defined one.
    pub fn record_function(&mut self, function: &Arc<Function>) {
        if function.is_user_defined() && !self.used.iter().any(|known| Arc::ptr_eq(known, function)) {
            self.used.push(Arc::clone(function));
        }
    }

    /// Counts the fields of a user type that a literal leaves out: each takes so many bytes.
    pub fn leave_out(&mut self, fields: usize, each: usize) -> Result<(), CqlError> {
        self.left_out = self.left_out.saturating_add(fields.saturating_mul(each));
        if self.left_out <= LEFT_OUT_MAX {
            return Ok(());
        }
        Err(CqlError::invalid(format!(
            "The values of user types in the statement leave out fields that take more than {} MiB together",
            LEFT_OUT_MAX >> 20
        )))
    }

    /// Bytes of what the plan of the statement holds beyond its text: fields that its literals
    /// leave out, and values that its JSON objects and calls have made.
    pub fn made_size(&self) -> usize {
        self.left_out.saturating_add(MADE_SIZE_MAX - self.made_room)
    }

    /// The keyspace and table in which function names are resolved.
    pub fn scope(&self) -> Scope<'_> {
        Scope { schema: self.schema, keyspace: &self.keyspace, table: &self.table }
    }

    /// Names that follow belong to this table.
    pub fn set_table(&mut self, table: &TableMetadata) {
        if *self.keyspace != *table.keyspace {
            self.keyspace = Arc::from(table.keyspace.as_str());
        }
        if *self.table != *table.name {
            self.table = Arc::from(table.name.as_str());
        }
    }

    /// Records that a bind marker is a value for the receiver, and returns the marker's index.
    pub fn bind(&mut self, marker: &ast::BindMarker<'_>, receiver: &Receiver) -> u16 {
        let index = usize::from(marker.index);
        assert!(index < self.specs.len(), "the parser has counted every bind marker");
        assert!(self.specs[index].is_none(), "a bind marker is the value of one place");
        let name = self.names.get(index).and_then(|name| name.as_deref()).unwrap_or(&receiver.name);
        let spec = ColumnSpec {
            keyspace: Arc::clone(&self.keyspace),
            table: Arc::clone(&self.table),
            name: Arc::from(name),
            ty: receiver.ty.clone(),
        };
        (self.specs[index], self.keys[index]) = (Some(spec), receiver.key);
        marker.index
    }

    /// For each column of the partition key the index of the last bind marker that is its value, so
    /// that drivers can compute the routing key. Empty if a column has no marker, or if the markers
    /// belong to several tables.
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

    /// The metadata of all bind markers, in the order of their indexes.
    pub fn into_bind_variables(self) -> Result<Arc<[ColumnSpec]>, CqlError> {
        let missing = || CqlError::Server("a bind marker was not prepared".into());
        self.specs.into_iter().map(|spec| spec.ok_or_else(missing)).collect()
    }

    /// Looks up a table. `keyspace` is that of the connection or request, for unqualified names.
    pub fn table(&self, name: &ast::QualifiedName<'_>, keyspace: Option<&str>) -> Result<Arc<TableMetadata>, CqlError> {
        find_table(self.schema, name, keyspace)
    }
}

/// The error message for an unqualified name without a current keyspace.
pub(crate) const NO_KEYSPACE: &str =
    "No keyspace has been specified. USE a keyspace, or explicitly specify keyspace.tablename";

/// Looks up a table. `keyspace` is that of the connection or request, for unqualified names.
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

/// Looks up a column. Hidden columns of compact tables are not found.
pub(crate) fn find_column<'t>(table: &'t TableMetadata, name: &str) -> Result<&'t ColumnMetadata, CqlError> {
    table.column_by_name(name).filter(|column| !table.is_hidden(column)).ok_or_else(|| {
        let name = types::ident::maybe_quote(name);
        CqlError::invalid(format!("Undefined column name {name} in table {}.{}", table.keyspace, table.name))
    })
}

/// The values and clocks with which terms are evaluated.
#[derive(Clone, Copy)]
pub(crate) struct Bindings<'a> {
    /// The bound values, by the index of the bind marker.
    pub values: &'a [BoundValue],
    /// Clocks and ids.
    pub sources: &'a dyn Sources,
    /// Counts the values that terms have made of the bound values so far.
    pub made: &'a MadeValues,
}

impl Bindings<'_> {
    /// The bound value of a marker.
    pub fn value(&self, index: u16) -> Result<&BoundValue, CqlError> {
        self.values.get(usize::from(index)).ok_or_else(|| {
            CqlError::invalid("There were fewer values bound than the statement has bind variables".to_owned())
        })
    }
}
