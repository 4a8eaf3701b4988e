//! `SELECT`: selectors, relations, ordering.
//!
//! Must agree with: Cassandra's `selectStatement` rule, `Selectable.Raw`, `Relation`,
//! `Ordering.Raw`.

use std::fmt;

use super::term::{write_between, write_pairs};
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
    /// The column, literal or expression that is selected.
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
    /// `{a: b}`: a map or a user-defined type (then the keys are columns by form, fields by
    /// meaning).
    MapOrUserType(Vec<(Selectable<'a>, Selectable<'a>)>),
    /// `-x`.
    Negation(Box<Selectable<'a>>),
    /// `a + b`.
    Operation(Box<Selectable<'a>>, Arithmetic, Box<Selectable<'a>>),
}

/// The attribute of a cell that is selected in the place of its value.
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
    /// The query, in the index's own language.
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
        /// The relation is `NOT IN`, which Cassandra 5.0 does not have.
        negated: bool,
    },
    /// `column BETWEEN low AND high`. Cassandra 5.0 has no BETWEEN.
    Between {
        /// The column.
        column: Ident<'a>,
        /// The least value, which is included.
        low: Term<'a>,
        /// The greatest value, which is included.
        high: Term<'a>,
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
    /// `token(a, b) BETWEEN low AND high`.
    TokenBetween {
        /// The columns.
        columns: Vec<Ident<'a>>,
        /// The least token, which is included.
        low: Term<'a>,
        /// The greatest token, which is included.
        high: Term<'a>,
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
        /// The relation is `NOT IN`.
        negated: bool,
    },
    /// `(a, b) BETWEEN (x, y) AND (z, w)`.
    TupleBetween {
        /// The columns.
        columns: Vec<Ident<'a>>,
        /// The least tuple, which is included: a [`Term::Tuple`] or a [`Term::Bind`].
        low: Term<'a>,
        /// The greatest tuple, which is included: a [`Term::Tuple`] or a [`Term::Bind`].
        high: Term<'a>,
    },
}

impl<'a> Relation<'a> {
    /// The columns that it is of, to be renamed.
    pub fn columns_mut(&mut self) -> &mut [Ident<'a>] {
        match self {
            Self::Column { column, .. }
            | Self::ColumnIn { column, .. }
            | Self::Between { column, .. }
            | Self::IsNotNull { column }
            | Self::Element { column, .. } => std::slice::from_mut(column),
            Self::Token { columns, .. }
            | Self::TokenBetween { columns, .. }
            | Self::Tuple { columns, .. }
            | Self::TupleIn { columns, .. }
            | Self::TupleBetween { columns, .. } => columns,
        }
    }

    /// The two comparisons that a BETWEEN stands for, `>=` and `<=`. None: the relation is no
    /// BETWEEN.
    pub fn bounds(&self) -> Option<[Relation<'a>; 2]> {
        let bound = |operator: Operator, value: &Term<'a>| {
            let value = value.clone();
            match self {
                Self::Between { column, .. } => Self::Column { column: column.clone(), operator, value },
                Self::TokenBetween { columns, .. } => Self::Token { columns: columns.clone(), operator, value },
                other => Self::Tuple { columns: other.columns().to_vec(), operator, value },
            }
        };
        match self {
            Self::Between { low, high, .. }
            | Self::TokenBetween { low, high, .. }
            | Self::TupleBetween { low, high, .. } => Some([bound(Operator::Gte, low), bound(Operator::Lte, high)]),
            _ => None,
        }
    }

    /// The columns that it is of.
    pub fn columns(&self) -> &[Ident<'a>] {
        match self {
            Self::Column { column, .. }
            | Self::ColumnIn { column, .. }
            | Self::Between { column, .. }
            | Self::IsNotNull { column }
            | Self::Element { column, .. } => std::slice::from_ref(column),
            Self::Token { columns, .. }
            | Self::TokenBetween { columns, .. }
            | Self::Tuple { columns, .. }
            | Self::TupleIn { columns, .. }
            | Self::TupleBetween { columns, .. } => columns,
        }
    }
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

/// The name Cassandra gives to a result column without alias. Three things need the schema and are
/// for the planner to put right: functions without keyspace are taken for native ones (`system.f`);
/// a cast to the type its argument has already is named like the argument; the name of a user's
/// function in the current keyspace.
impl fmt::Display for InValues<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(values) => write_between(f, "(", values, ")"),
            Self::Bind(marker) => marker.fmt(f),
        }
    }
}

impl fmt::Display for Selectable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selectable::Column(name) => write!(f, "{name}"),
            Selectable::Literal(literal) => write!(f, "{literal}"),
            Selectable::Null => f.write_str("NULL"),
            Selectable::Bind(marker) => write!(f, "{marker}"),
            Selectable::CountRows => f.write_str("count"),
            Selectable::CellAttribute(attribute, of) => write!(f, "{}({of})", attribute.name()),
            Selectable::Cast(of, NativeType::Varchar) => write!(f, "cast({of} as text)"),
            Selectable::Cast(of, native) => write!(f, "cast({of} as {})", native.name()),
            Selectable::Function(..) if self.counts_a_constant() => f.write_str("count"),
            Selectable::Function(name, arguments) => {
                if name.keyspace.is_none() {
                    f.write_str("system.")?;
                }
                write!(f, "{name}")?;
                write_between(f, "(", arguments, ")")
            }
            Selectable::Field(of, field) => write!(f, "{of}.{field}"),
            Selectable::Element(of, key) => write!(f, "{of}[{key}]"),
            Selectable::Slice(of, from, to) => {
                write!(f, "{of}[{}..{}]", OrNothing(from.as_ref()), OrNothing(to.as_ref()))
            }
            Selectable::TypeHint(hint, of) => write!(f, "({hint}){of}"),
            Selectable::Tuple(elements) if elements.len() == 1 => write!(f, "{}", elements[0]),
            Selectable::Tuple(elements) => write_between(f, "(", elements, ")"),
            Selectable::List(elements) => write_between(f, "[", elements, "]"),
            Selectable::Set(elements) => write_between(f, "{", elements, "}"),
            Selectable::MapOrUserType(pairs) => write_pairs(f, pairs),
            Selectable::Negation(of) => write!(f, "-{of}"),
            Selectable::Operation(left, operator, right) => {
                write!(f, "{left} {} {right}", operator.symbol())
            }
        }
    }
}

impl Selectable<'_> {
    /// Whether this is `count(1)` or the like, which means `count(*)`.
    pub fn counts_a_constant(&self) -> bool {
        let Selectable::Function(name, arguments) = self else {
            return false;
        };
        name.name.as_str() == "count"
            && name.keyspace().is_none_or(|keyspace| keyspace == "system")
            && matches!(arguments.as_slice(), [Selectable::Literal(_)])
    }
}

/// Prints the thing, if there is one.
struct OrNothing<T>(Option<T>);

impl<T: fmt::Display> fmt::Display for OrNothing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |thing| write!(f, "{thing}"))
    }
}
