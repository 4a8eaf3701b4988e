//! `SELECT`: selectors, relations, ordering.
//!
//! Must agree with: Cassandra's `selectStatement` rule, `Selectable.Raw`, `Relation`, `Ordering.Raw`.

use super::{Arithmetic, BindMarker, Ident, Literal, NativeType, QualifiedName, Term, TypeName};

/// `SELECT [JSON] [DISTINCT] selectors FROM table …`.
#[derive(Debug, Clone)]
pub struct Select<'a> {
    /// Whether rows are asked for as JSON.
    pub json: bool,
    /// Whether `DISTINCT` was given.
    pub distinct: bool,
    /// The selectors; empty for `*`.
    pub selectors: Vec<Selector<'a>>,
    /// The table.
    pub table: QualifiedName<'a>,
    /// `WHERE`.
    pub where_clause: WhereClause<'a>,
    /// `GROUP BY`.
    pub group_by: Vec<Selectable<'a>>,
    /// `ORDER BY`.
    pub order_by: Vec<Ordering<'a>>,
    /// `PER PARTITION LIMIT`: an integer or a bind marker.
    pub per_partition_limit: Option<Term<'a>>,
    /// `LIMIT`: an integer or a bind marker.
    pub limit: Option<Term<'a>>,
    /// `ALLOW FILTERING`.
    pub allow_filtering: bool,
}

/// One selected thing with its alias.
#[derive(Debug, Clone)]
pub struct Selector<'a> {
    /// What is selected.
    pub selectable: Selectable<'a>,
    /// `AS alias`.
    pub alias: Option<Ident<'a>>,
}

/// Something that has a value for each row.
#[derive(Debug, Clone)]
pub enum Selectable<'a> {
    /// A column.
    Column(Ident<'a>),
    /// A constant.
    Literal(Literal<'a>),
    /// `NULL`.
    Null,
    /// A bind marker.
    Bind(BindMarker<'a>),
    /// `count(*)`.
    CountRows,
    /// `writetime(…)`, `maxwritetime(…)`, `ttl(…)` of a column, a field, an element or a slice.
    CellAttribute(CellAttribute, Box<Selectable<'a>>),
    /// `CAST(x AS type)`.
    Cast(Box<Selectable<'a>>, NativeType),
    /// `f(a, b)`.
    Function(QualifiedName<'a>, Vec<Selectable<'a>>),
    /// `x.field`.
    Field(Box<Selectable<'a>>, Ident<'a>),
    /// `x[key]`.
    Element(Box<Selectable<'a>>, Term<'a>),
    /// `x[from..to]`; one of the ends may be open.
    Slice(Box<Selectable<'a>>, Option<Term<'a>>, Option<Term<'a>>),
    /// `(type)x`.
    TypeHint(TypeName<'a>, Box<Selectable<'a>>),
    /// `(a, b)`: a tuple; of one element perhaps only parentheses.
    Tuple(Vec<Selectable<'a>>),
    /// `[a, b]`: a list or a vector.
    List(Vec<Selectable<'a>>),
    /// `{a, b}`; `{}` too.
    Set(Vec<Selectable<'a>>),
    /// `{a: b}`: a map or a user-defined type (then the keys are columns by form, fields by meaning).
    MapOrUserType(Vec<(Selectable<'a>, Selectable<'a>)>),
    /// `-x`.
    Negation(Box<Selectable<'a>>),
    /// `a + b`.
    Operation(Box<Selectable<'a>>, Arithmetic, Box<Selectable<'a>>),
}

/// What of a cell is asked for besides its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CellAttribute {
    /// `writetime(x)`.
    WriteTime,
    /// `maxwritetime(x)`.
    MaxWriteTime,
    /// `ttl(x)`.
    Ttl,
}

impl CellAttribute {
    /// The function's name, as in the names of result columns.
    pub fn name(self) -> &'static str {
        match self {
            CellAttribute::WriteTime => "writetime",
            CellAttribute::MaxWriteTime => "maxwritetime",
            CellAttribute::Ttl => "ttl",
        }
    }
}

/// The relations of a `WHERE`, all of which must hold.
#[derive(Debug, Clone, Default)]
pub struct WhereClause<'a> {
    /// The relations in their order.
    pub relations: Vec<Relation<'a>>,
    /// `expr(index, term)`: expressions for custom indexes.
    pub expressions: Vec<CustomIndexExpression<'a>>,
}

/// `expr(index, 'text')`.
#[derive(Debug, Clone)]
pub struct CustomIndexExpression<'a> {
    /// The index.
    pub index: QualifiedName<'a>,
    /// What the index is asked.
    pub value: Term<'a>,
}

/// One relation.
#[derive(Debug, Clone)]
pub enum Relation<'a> {
    /// `column op term`. Never `IN` or `IS NOT`.
    Column {
        /// The column.
        column: Ident<'a>,
        /// The operator.
        operator: Operator,
        /// The other side.
        value: Term<'a>,
    },
    /// `column IN (…)` or `column IN ?`.
    ColumnIn {
        /// The column.
        column: Ident<'a>,
        /// The values.
        values: InValues<'a>,
    },
    /// `column IS NOT NULL`.
    IsNotNull {
        /// The column.
        column: Ident<'a>,
    },
    /// `column[key] op term`.
    Element {
        /// The column.
        column: Ident<'a>,
        /// The key or index in it.
        key: Term<'a>,
        /// The operator.
        operator: Operator,
        /// The other side.
        value: Term<'a>,
    },
    /// `token(a, b) op term`.
    Token {
        /// The columns.
        columns: Vec<Ident<'a>>,
        /// The operator.
        operator: Operator,
        /// The other side.
        value: Term<'a>,
    },
    /// `(a, b) op (x, y)` or `(a, b) op ?`.
    Tuple {
        /// The columns.
        columns: Vec<Ident<'a>>,
        /// The operator.
        operator: Operator,
        /// A [`Term::Tuple`] or a [`Term::Bind`].
        value: Term<'a>,
    },
    /// `(a, b) IN ((x, y), …)`, `(a, b) IN (?, …)` or `(a, b) IN ?`.
    TupleIn {
        /// The columns.
        columns: Vec<Ident<'a>>,
        /// The values, each a [`Term::Tuple`] or a [`Term::Bind`].
        values: InValues<'a>,
    },
}

/// The right side of `IN`.
#[derive(Debug, Clone)]
pub enum InValues<'a> {
    /// `IN (a, b)`; may be empty.
    List(Vec<Term<'a>>),
    /// `IN ?`: a list is bound.
    Bind(BindMarker<'a>),
}

/// An operator of a relation or a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `=`
    Eq,
    /// `<`
    Lt,
    /// `<=`
    Lte,
    /// `>`
    Gt,
    /// `>=`
    Gte,
    /// `!=`
    Neq,
    /// `LIKE`
    Like,
    /// `CONTAINS`
    Contains,
    /// `CONTAINS KEY`
    ContainsKey,
}

impl Operator {
    /// The operator as Cassandra prints it.
    pub fn symbol(self) -> &'static str {
        match self {
            Operator::Eq => "=",
            Operator::Lt => "<",
            Operator::Lte => "<=",
            Operator::Gt => ">",
            Operator::Gte => ">=",
            Operator::Neq => "!=",
            Operator::Like => "LIKE",
            Operator::Contains => "CONTAINS",
            Operator::ContainsKey => "CONTAINS KEY",
        }
    }
}

/// One item of `ORDER BY`.
#[derive(Debug, Clone)]
pub struct Ordering<'a> {
    /// The column.
    pub column: Ident<'a>,
    /// The vector of `ANN OF`.
    pub ann_of: Option<Term<'a>>,
    /// Whether `DESC` was given.
    pub descending: bool,
}
