//! `INSERT`, `UPDATE`, `DELETE`, `BATCH`.
//!
//! Must agree with: Cassandra's rules `insertStatement`, `updateStatement`, `deleteStatement`,
//! `batchStatement`, and `Operation.RawUpdate`, `Operation.RawDeletion`, `ColumnCondition.Raw`.

use std::borrow::Cow;

use types::BatchKind;

use super::{BindMarker, Ident, InValues, Operator, QualifiedName, Term, WhereClause};

/// `INSERT INTO table …`.
#[derive(Debug, Clone)]
pub struct Insert<'a> {
    /// The table.
    pub table: QualifiedName<'a>,
    /// The values: a list of them, or JSON.
    pub source: InsertSource<'a>,
    /// `IF NOT EXISTS`.
    pub if_not_exists: bool,
    /// `USING`.
    pub using: Using<'a>,
}

/// The values of an `INSERT`.
#[derive(Debug, Clone)]
pub enum InsertSource<'a> {
    /// `(a, b) VALUES (x, y)`. The two may differ in length.
    Values {
        /// The columns.
        columns: Vec<Ident<'a>>,
        /// The values.
        values: Vec<Term<'a>>,
    },
    /// `JSON '…' [DEFAULT NULL | DEFAULT UNSET]`.
    Json {
        /// The JSON text.
        value: JsonValue<'a>,
        /// Whether columns not named are left as they are (`DEFAULT UNSET`) or set to null.
        default_unset: bool,
    },
}

/// The JSON of an `INSERT … JSON`.
#[derive(Debug, Clone)]
pub enum JsonValue<'a> {
    /// Given in the statement.
    Literal(Cow<'a, str>),
    /// Bound.
    Bind(BindMarker<'a>),
}

/// `USING TIMESTAMP t AND TTL n`. If an item is given twice, the last one counts.
#[derive(Debug, Clone, Default)]
pub struct Using<'a> {
    /// `TIMESTAMP`: an integer or a bind marker.
    pub timestamp: Option<Term<'a>>,
    /// `TTL`: an integer or a bind marker.
    pub ttl: Option<Term<'a>>,
}

/// `UPDATE table SET … WHERE …`.
#[derive(Debug, Clone)]
pub struct Update<'a> {
    /// The table.
    pub table: QualifiedName<'a>,
    /// `USING`.
    pub using: Using<'a>,
    /// `SET`. Incompatible settings of one column are refused by the parser.
    pub assignments: Vec<Assignment<'a>>,
    /// `WHERE`.
    pub where_clause: WhereClause<'a>,
    /// `IF`.
    pub condition: Condition<'a>,
}

/// One setting of an `UPDATE`.
#[derive(Debug, Clone)]
pub struct Assignment<'a> {
    /// The column.
    pub column: Ident<'a>,
    /// The operation on the column.
    pub operation: AssignmentOperation<'a>,
}

/// An operation of `UPDATE` on one column.
#[derive(Debug, Clone)]
pub enum AssignmentOperation<'a> {
    /// `c = t`.
    Set(Term<'a>),
    /// `c = c + t`, `c += t`: counter, append to a list, add to a set or map, numbers.
    Add(Term<'a>),
    /// `c = c - t`, `c -= t`.
    Subtract(Term<'a>),
    /// `c = t + c`: prepend to a list.
    Prepend(Term<'a>),
    /// `c[key] = t`.
    SetElement(Term<'a>, Term<'a>),
    /// `c.field = t`.
    SetField(Ident<'a>, Term<'a>),
}

/// The condition of a modification.
#[derive(Debug, Clone, Default)]
pub enum Condition<'a> {
    /// None: an ordinary write.
    #[default]
    None,
    /// `IF EXISTS`.
    Exists,
    /// `IF a = 1 AND …`.
    Columns(Vec<ColumnCondition<'a>>),
}

/// `column op value` in an `IF`.
#[derive(Debug, Clone)]
pub struct ColumnCondition<'a> {
    /// The column.
    pub column: Ident<'a>,
    /// The part of the column that is compared.
    pub part: ConditionPart<'a>,
    /// With what.
    pub test: ConditionTest<'a>,
}

/// The part of a column that a condition compares.
#[derive(Debug, Clone)]
pub enum ConditionPart<'a> {
    /// All of it.
    Whole,
    /// `column[key]`.
    Element(Term<'a>),
    /// `column.field`.
    Field(Ident<'a>),
}

/// The comparison of a condition.
#[derive(Debug, Clone)]
pub enum ConditionTest<'a> {
    /// `op term`. `CONTAINS` and `CONTAINS KEY` only with [`ConditionPart::Whole`].
    Compare(Operator, Term<'a>),
    /// `IN (…)` or `IN ?`.
    In(InValues<'a>),
    /// `NOT IN (…)` or `NOT IN ?`, which Cassandra 5.0 does not have.
    NotIn(InValues<'a>),
    /// `BETWEEN low AND high`, which Cassandra 5.0 does not have.
    Between(Term<'a>, Term<'a>),
}

/// `DELETE … FROM table WHERE …`.
#[derive(Debug, Clone)]
pub struct Delete<'a> {
    /// The columns or parts of columns to delete; empty for whole rows.
    pub deletions: Vec<Deletion<'a>>,
    /// The table.
    pub table: QualifiedName<'a>,
    /// `USING TIMESTAMP`: an integer or a bind marker.
    pub timestamp: Option<Term<'a>>,
    /// `WHERE`.
    pub where_clause: WhereClause<'a>,
    /// `IF`.
    pub condition: Condition<'a>,
}

/// One thing deleted.
#[derive(Debug, Clone)]
pub enum Deletion<'a> {
    /// A column.
    Column(Ident<'a>),
    /// `column[key]`.
    Element(Ident<'a>, Term<'a>),
    /// `column.field`.
    Field(Ident<'a>, Ident<'a>),
}

impl<'a> Deletion<'a> {
    /// The column it touches.
    pub fn column(&self) -> &Ident<'a> {
        match self {
            Deletion::Column(column) | Deletion::Element(column, _) | Deletion::Field(column, _) => column,
        }
    }
}

/// `BEGIN BATCH … APPLY BATCH`.
#[derive(Debug, Clone)]
pub struct Batch<'a> {
    /// Logged, unlogged or counter.
    pub kind: BatchKind,
    /// `USING` of the whole batch.
    pub using: Using<'a>,
    /// The statements.
    pub statements: Vec<Modification<'a>>,
}

/// A statement in a batch.
#[derive(Debug, Clone)]
pub enum Modification<'a> {
    /// `INSERT`.
    Insert(Insert<'a>),
    /// `UPDATE`.
    Update(Update<'a>),
    /// `DELETE`.
    Delete(Delete<'a>),
}
