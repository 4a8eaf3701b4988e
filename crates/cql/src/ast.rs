//! The syntax tree of CQL 3.4.7: what a statement says, before any schema is looked at.
//!
//! Texts are borrowed from the statement where they stand in it unchanged (`Cow`): parsing a usual
//! statement copies nothing. Names are already folded to lower case unless they were quoted.
//! Nothing here is resolved: a table may not exist, a literal may not fit its column, `{}` may be a
//! set or a map. Terms and selectables print themselves (`Display`) in the words Cassandra uses for
//! them in error messages and in the names of result columns.
//!
//! Must agree with: Cassandra 5.0.8's grammar (`Parser.g`) and the `Raw` classes it builds.

mod auth;
mod describe;
mod modification;
mod schema;
mod select;
mod term;
mod types;

use std::borrow::Cow;
use std::fmt;

pub use auth::*;
pub use describe::*;
pub use modification::*;
pub use schema::*;
pub use select::*;
pub use term::*;
pub use types::*;

/// A byte offset in the text of the statement; [`Pos::line_column`] makes Cassandra's `line L:C` of
/// it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Hash)]
pub struct Pos(pub u32);

impl Pos {
    /// The line (from 1) and the column in characters (from 0) of this position in `text`.
    pub fn line_column(self, text: &str) -> (usize, usize) {
        let bytes = text.as_bytes();
        let before = &bytes[..bytes.len().min(self.0 as usize)];
        let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1);
        let line = 1 + before.iter().filter(|&&b| b == b'\n').count();
        // Every character has exactly one byte which is not a continuation byte.
        let column = before[line_start..].iter().filter(|&&b| b & 0xC0 != 0x80).count();
        (line, column)
    }
}

/// A name: of a column, field, keyspace, table, type, function, role.
#[derive(Clone)]
pub struct Ident<'a> {
    /// The name itself: lower case unless it was quoted, quotes removed.
    pub text: Cow<'a, str>,
    /// Whether it was written in double quotes (role names: or in single quotes).
    pub quoted: bool,
    /// Where it stands.
    pub pos: Pos,
}

impl Ident<'_> {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// A name that stands in no text.
    pub fn owned(name: &str) -> Ident<'static> {
        Ident { text: Cow::Owned(name.to_owned()), quoted: true, pos: Pos::default() }
    }

    /// The same name, owning its text.
    pub fn into_owned(self) -> Ident<'static> {
        Ident { text: Cow::Owned(self.text.into_owned()), quoted: self.quoted, pos: self.pos }
    }
}

/// Names are equal when their texts are: `a` and `"a"` are the same column.
impl PartialEq for Ident<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for Ident<'_> {}

/// The name, in quotes if it was: trees stay readable.
impl fmt::Debug for Ident<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.quoted { write!(f, "\"{}\"", self.text) } else { f.write_str(&self.text) }
    }
}

impl fmt::Display for Ident<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// `name` or `keyspace.name`: a table, view, index, type, function or aggregate.
#[derive(Clone, PartialEq, Eq)]
pub struct QualifiedName<'a> {
    /// The keyspace, when given.
    pub keyspace: Option<Ident<'a>>,
    /// The name in the keyspace.
    pub name: Ident<'a>,
}

impl QualifiedName<'_> {
    /// The keyspace as text, when given.
    pub fn keyspace(&self) -> Option<&str> {
        self.keyspace.as_ref().map(Ident::as_str)
    }
}

impl fmt::Debug for QualifiedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(keyspace) = &self.keyspace {
            write!(f, "{keyspace:?}.")?;
        }
        write!(f, "{:?}", self.name)
    }
}

impl fmt::Display for QualifiedName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(keyspace) = &self.keyspace {
            write!(f, "{keyspace}.")?;
        }
        write!(f, "{}", self.name)
    }
}

/// A parsed statement with its bind markers.
#[derive(Debug, Clone)]
pub struct Parsed<'a> {
    /// The statement.
    pub statement: Statement<'a>,
    /// The bind markers in their order in the text: `None` for `?`, the name for `:name`.
    /// [`BindMarker::index`] points in here.
    pub bind_markers: Vec<Option<Ident<'a>>>,
}

/// Any statement of CQL.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant)] // a statement is built once and not moved about
pub enum Statement<'a> {
    /// `SELECT`.
    Select(Select<'a>),
    /// `INSERT`.
    Insert(Insert<'a>),
    /// `UPDATE`.
    Update(Update<'a>),
    /// `DELETE`.
    Delete(Delete<'a>),
    /// `BEGIN BATCH … APPLY BATCH`.
    Batch(Batch<'a>),
    /// `USE keyspace`.
    Use(Ident<'a>),
    /// `TRUNCATE table`.
    Truncate(QualifiedName<'a>),
    /// `CREATE KEYSPACE`.
    CreateKeyspace(CreateKeyspace<'a>),
    /// `ALTER KEYSPACE`.
    AlterKeyspace(AlterKeyspace<'a>),
    /// `DROP KEYSPACE`.
    DropKeyspace(DropKeyspace<'a>),
    /// `CREATE TABLE`.
    CreateTable(CreateTable<'a>),
    /// `ALTER TABLE`.
    AlterTable(AlterTable<'a>),
    /// `DROP TABLE`.
    DropTable(DropNamed<'a>),
    /// `CREATE TYPE`.
    CreateType(CreateType<'a>),
    /// `ALTER TYPE`.
    AlterType(AlterType<'a>),
    /// `DROP TYPE`.
    DropType(DropNamed<'a>),
    /// `CREATE INDEX`.
    CreateIndex(CreateIndex<'a>),
    /// `DROP INDEX`.
    DropIndex(DropNamed<'a>),
    /// `CREATE MATERIALIZED VIEW`.
    CreateView(CreateView<'a>),
    /// `ALTER MATERIALIZED VIEW`.
    AlterView(AlterView<'a>),
    /// `DROP MATERIALIZED VIEW`.
    DropView(DropNamed<'a>),
    /// `CREATE FUNCTION`.
    CreateFunction(CreateFunction<'a>),
    /// `DROP FUNCTION`.
    DropFunction(DropFunction<'a>),
    /// `CREATE AGGREGATE`.
    CreateAggregate(CreateAggregate<'a>),
    /// `DROP AGGREGATE`.
    DropAggregate(DropFunction<'a>),
    /// `CREATE TRIGGER`.
    CreateTrigger(CreateTrigger<'a>),
    /// `DROP TRIGGER`.
    DropTrigger(DropTrigger<'a>),
    /// `CREATE ROLE` and `CREATE USER`.
    CreateRole(CreateRole<'a>),
    /// `ALTER ROLE` and `ALTER USER`.
    AlterRole(AlterRole<'a>),
    /// `DROP ROLE` and `DROP USER`.
    DropRole(DropRole<'a>),
    /// `LIST ROLES` and `LIST USERS`.
    ListRoles(ListRoles<'a>),
    /// `ADD IDENTITY`.
    AddIdentity(AddIdentity<'a>),
    /// `DROP IDENTITY`.
    DropIdentity(DropIdentity<'a>),
    /// `GRANT permissions` and `REVOKE permissions`.
    ChangePermissions(ChangePermissions<'a>),
    /// `GRANT role` and `REVOKE role`.
    ChangeRole(ChangeRole<'a>),
    /// `LIST permissions`.
    ListPermissions(ListPermissions<'a>),
    /// `DESCRIBE`.
    Describe(Describe<'a>),
    /// `EXPLAIN`.
    Explain(Explain<'a>),
}

/// `EXPLAIN [ANALYZE] statement`: how it is, or was, carried out.
#[derive(Debug, Clone)]
pub struct Explain<'a> {
    /// ANALYZE: the statement is carried out, and the answer tells what happened.
    pub analyze: bool,
    /// SELECT, INSERT, UPDATE, DELETE or BATCH.
    pub statement: Box<Statement<'a>>,
}
