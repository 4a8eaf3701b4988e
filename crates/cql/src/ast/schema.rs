//! Statements that change the schema: keyspaces, tables, types, indexes, views, functions,
//! triggers.
//!
//! Must agree with: Cassandra's rules `create…Statement`, `alter…Statement`, `drop…Statement`,
//! `property`, and `PropertyDefinitions`.

use std::borrow::Cow;

use super::{Ident, Literal, QualifiedName, Selector, Term, TypeName, WhereClause};

/// One `name = value` after `WITH`. The parser refuses a name given twice.
#[derive(Debug, Clone)]
pub struct Property<'a> {
    /// The option.
    pub name: Ident<'a>,
    /// Its value.
    pub value: PropertyValue<'a>,
}

/// The value of a property.
#[derive(Debug, Clone)]
pub enum PropertyValue<'a> {
    /// A constant or a word; of strings the content.
    Simple(Cow<'a, str>),
    /// `{'k': 'v'}`; keys are unique.
    Map(Vec<(Literal<'a>, Literal<'a>)>),
}

/// `CREATE KEYSPACE`.
#[derive(Debug, Clone)]
pub struct CreateKeyspace<'a> {
    /// The keyspace.
    pub name: Ident<'a>,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// `WITH`.
    pub properties: Vec<Property<'a>>,
}

/// `ALTER KEYSPACE`.
#[derive(Debug, Clone)]
pub struct AlterKeyspace<'a> {
    /// The keyspace.
    pub name: Ident<'a>,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// `WITH`.
    pub properties: Vec<Property<'a>>,
}

/// `DROP KEYSPACE`.
#[derive(Debug, Clone)]
pub struct DropKeyspace<'a> {
    /// The keyspace.
    pub name: Ident<'a>,
    /// `IF EXISTS`.
    pub if_exists: bool,
}

/// `DROP TABLE`, `DROP TYPE`, `DROP INDEX`, `DROP MATERIALIZED VIEW`.
#[derive(Debug, Clone)]
pub struct DropNamed<'a> {
    /// The name of the object to drop.
    pub name: QualifiedName<'a>,
    /// `IF EXISTS`.
    pub if_exists: bool,
}

/// `CREATE TABLE`.
#[derive(Debug, Clone)]
pub struct CreateTable<'a> {
    /// The table.
    pub name: QualifiedName<'a>,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// The columns in their order. Names may repeat: that is the schema's to refuse.
    pub columns: Vec<ColumnDefinition<'a>>,
    /// Every `PRIMARY KEY` found, in its order: more or fewer than one is the schema's to refuse.
    pub primary_keys: Vec<PrimaryKey<'a>>,
    /// `CLUSTERING ORDER BY`.
    pub clustering_order: Vec<ClusteringOrder<'a>>,
    /// `COMPACT STORAGE`.
    pub compact_storage: bool,
    /// The other properties.
    pub properties: Vec<Property<'a>>,
}

/// One column of a `CREATE TABLE` or an `ALTER TABLE ADD`.
#[derive(Debug, Clone)]
pub struct ColumnDefinition<'a> {
    /// Its name.
    pub name: Ident<'a>,
    /// Its type.
    pub type_name: TypeName<'a>,
    /// `STATIC`.
    pub is_static: bool,
    /// `MASKED WITH`.
    pub mask: Option<ColumnMask<'a>>,
}

/// `MASKED WITH f(…)`; `MASKED WITH DEFAULT` is the function `mask_default` of the system.
#[derive(Debug, Clone)]
pub struct ColumnMask<'a> {
    /// The function; `None` for `DEFAULT`.
    pub function: Option<QualifiedName<'a>>,
    /// Its arguments after the column.
    pub arguments: Vec<Term<'a>>,
}

/// `PRIMARY KEY ((a, b), c)`, also from a column marked `PRIMARY KEY`.
#[derive(Debug, Clone)]
pub struct PrimaryKey<'a> {
    /// The partition key's columns.
    pub partition: Vec<Ident<'a>>,
    /// The clustering columns.
    pub clustering: Vec<Ident<'a>>,
}

/// One item of `CLUSTERING ORDER BY`.
#[derive(Debug, Clone)]
pub struct ClusteringOrder<'a> {
    /// The column.
    pub column: Ident<'a>,
    /// Whether `DESC`.
    pub descending: bool,
}

/// `ALTER TABLE`.
#[derive(Debug, Clone)]
pub struct AlterTable<'a> {
    /// The table.
    pub name: QualifiedName<'a>,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// The change of the table.
    pub alteration: TableAlteration<'a>,
}

/// The change that an `ALTER TABLE` makes.
#[derive(Debug, Clone)]
pub enum TableAlteration<'a> {
    /// `ALTER c TYPE t`: no longer allowed.
    AlterColumn {
        /// The column.
        column: Ident<'a>,
        /// The type.
        type_name: TypeName<'a>,
    },
    /// `ALTER [IF EXISTS] c MASKED WITH …` or `… DROP MASKED` (no mask).
    MaskColumn {
        /// `IF EXISTS` before the column.
        if_exists: bool,
        /// The column.
        column: Ident<'a>,
        /// The new mask.
        mask: Option<ColumnMask<'a>>,
    },
    /// `ADD [IF NOT EXISTS] c t, …`.
    Add {
        /// `IF NOT EXISTS` before the columns.
        if_not_exists: bool,
        /// The columns.
        columns: Vec<ColumnDefinition<'a>>,
    },
    /// `DROP [IF EXISTS] c, … [USING TIMESTAMP n]`.
    Drop {
        /// `IF EXISTS` before the columns.
        if_exists: bool,
        /// The columns.
        columns: Vec<Ident<'a>>,
        /// The microsecond timestamp of the drop, when given.
        timestamp: Option<i64>,
    },
    /// `RENAME [IF EXISTS] a TO b AND …`.
    Rename {
        /// `IF EXISTS` before the columns.
        if_exists: bool,
        /// Old and new names.
        columns: Vec<(Ident<'a>, Ident<'a>)>,
    },
    /// `DROP COMPACT STORAGE`.
    DropCompactStorage,
    /// `WITH …`.
    With(Vec<Property<'a>>),
}

/// `CREATE TYPE`.
#[derive(Debug, Clone)]
pub struct CreateType<'a> {
    /// The type.
    pub name: QualifiedName<'a>,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// The fields.
    pub fields: Vec<(Ident<'a>, TypeName<'a>)>,
}

/// `ALTER TYPE`.
#[derive(Debug, Clone)]
pub struct AlterType<'a> {
    /// The type.
    pub name: QualifiedName<'a>,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// The change of the type.
    pub alteration: TypeAlteration<'a>,
}

/// The change that an `ALTER TYPE` makes.
#[derive(Debug, Clone)]
pub enum TypeAlteration<'a> {
    /// `ALTER f TYPE t`: no longer allowed.
    AlterField(Ident<'a>, TypeName<'a>),
    /// `ADD [IF NOT EXISTS] f t`.
    Add {
        /// `IF NOT EXISTS` before the field.
        if_not_exists: bool,
        /// The field.
        field: Ident<'a>,
        /// Its type.
        type_name: TypeName<'a>,
    },
    /// `RENAME [IF EXISTS] a TO b AND …`.
    Rename {
        /// `IF EXISTS` before the fields.
        if_exists: bool,
        /// Old and new names.
        fields: Vec<(Ident<'a>, Ident<'a>)>,
    },
}

/// `CREATE [CUSTOM] INDEX`.
#[derive(Debug, Clone)]
pub struct CreateIndex<'a> {
    /// The index's name, if given.
    pub name: Option<Ident<'a>>,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// `CUSTOM`.
    pub custom: bool,
    /// The table.
    pub table: QualifiedName<'a>,
    /// The indexed columns or parts of columns; may be empty.
    pub targets: Vec<IndexTarget<'a>>,
    /// `USING 'class'`.
    pub using: Option<Cow<'a, str>>,
    /// `WITH`.
    pub properties: Vec<Property<'a>>,
}

/// One thing indexed.
#[derive(Debug, Clone)]
pub struct IndexTarget<'a> {
    /// Which part of the column.
    pub kind: IndexTargetKind,
    /// The column.
    pub column: Ident<'a>,
}

/// Which part of a column is indexed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum IndexTargetKind {
    /// Just the column.
    Simple,
    /// `VALUES(c)`.
    Values,
    /// `KEYS(c)`.
    Keys,
    /// `ENTRIES(c)`.
    Entries,
    /// `FULL(c)`.
    Full,
}

/// `CREATE MATERIALIZED VIEW`.
#[derive(Debug, Clone)]
pub struct CreateView<'a> {
    /// The view.
    pub name: QualifiedName<'a>,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// The selected columns; empty for `*`.
    pub selectors: Vec<Selector<'a>>,
    /// The base table.
    pub base: QualifiedName<'a>,
    /// `WHERE`.
    pub where_clause: WhereClause<'a>,
    /// `PRIMARY KEY`.
    pub primary_key: PrimaryKey<'a>,
    /// `CLUSTERING ORDER BY`.
    pub clustering_order: Vec<ClusteringOrder<'a>>,
    /// The other properties.
    pub properties: Vec<Property<'a>>,
}

/// `ALTER MATERIALIZED VIEW`.
#[derive(Debug, Clone)]
pub struct AlterView<'a> {
    /// The view.
    pub name: QualifiedName<'a>,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// `WITH`.
    pub properties: Vec<Property<'a>>,
}

/// `CREATE [OR REPLACE] FUNCTION`.
#[derive(Debug, Clone)]
pub struct CreateFunction<'a> {
    /// The function.
    pub name: QualifiedName<'a>,
    /// `OR REPLACE`.
    pub or_replace: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// The arguments.
    pub arguments: Vec<(Ident<'a>, TypeName<'a>)>,
    /// `CALLED ON NULL INPUT` rather than `RETURNS NULL ON NULL INPUT`.
    pub called_on_null_input: bool,
    /// `RETURNS`.
    pub returns: TypeName<'a>,
    /// `LANGUAGE`.
    pub language: Ident<'a>,
    /// `AS`.
    pub body: Cow<'a, str>,
}

/// `CREATE [OR REPLACE] AGGREGATE`.
#[derive(Debug, Clone)]
pub struct CreateAggregate<'a> {
    /// The aggregate.
    pub name: QualifiedName<'a>,
    /// `OR REPLACE`.
    pub or_replace: bool,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// The arguments.
    pub arguments: Vec<TypeName<'a>>,
    /// `SFUNC`.
    pub state_function: Ident<'a>,
    /// `STYPE`.
    pub state_type: TypeName<'a>,
    /// `FINALFUNC`.
    pub final_function: Option<Ident<'a>>,
    /// `INITCOND`.
    pub initial_condition: Option<Term<'a>>,
}

/// `DROP FUNCTION` and `DROP AGGREGATE`.
#[derive(Debug, Clone)]
pub struct DropFunction<'a> {
    /// The name of the function or aggregate to drop.
    pub name: QualifiedName<'a>,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// The types of its arguments, when given.
    pub arguments: Option<Vec<TypeName<'a>>>,
}

/// `CREATE TRIGGER`.
#[derive(Debug, Clone)]
pub struct CreateTrigger<'a> {
    /// The trigger.
    pub name: Ident<'a>,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// The table.
    pub table: QualifiedName<'a>,
    /// `USING`.
    pub class: Cow<'a, str>,
}

/// `DROP TRIGGER`.
#[derive(Debug, Clone)]
pub struct DropTrigger<'a> {
    /// The trigger.
    pub name: Ident<'a>,
    /// `IF EXISTS`.
    pub if_exists: bool,
    /// The table.
    pub table: QualifiedName<'a>,
}
