//! Terms: literals, bind markers, collections, function calls, arithmetic.
//!
//! `Display` gives Cassandra's `Term.Raw.getText()`: the words its error messages quote.
//!
//! Must agree with: Cassandra's `term` rule, `Constants`, `Lists`, `Sets`, `Maps`, `Tuples`,
//! `UserTypes`, `TypeCast`, `FunctionCall`, `OperationFcts`.

use std::borrow::Cow;
use std::fmt;

use super::{Ident, NativeType, Pos, QualifiedName, TypeName};

/// A term: something that has a value without looking at a row.
#[derive(Debug, Clone)]
pub enum Term<'a> {
    /// A constant.
    Literal(Literal<'a>),
    /// `NULL`.
    Null,
    /// `?` or `:name`.
    Bind(BindMarker<'a>),
    /// `[a, b]`: a list, or a vector.
    List(Vec<Term<'a>>),
    /// `{a, b}`. The empty `{}` is here too: it may be meant as a map.
    Set(Vec<Term<'a>>),
    /// `{k: v}`.
    Map(Vec<(Term<'a>, Term<'a>)>),
    /// `{field: v}`: a user-defined type.
    UserType(Vec<(Ident<'a>, Term<'a>)>),
    /// `(a, b)`.
    Tuple(Vec<Term<'a>>),
    /// `f(a, b)`.
    Function(Box<FunctionCall<'a>>),
    /// `(type)term`: a hint which type the term has, no conversion.
    TypeHint(TypeName<'a>, Box<Term<'a>>),
    /// `CAST(term AS type)`: a conversion.
    Cast(Box<Term<'a>>, NativeType),
    /// `-term`.
    Negation(Box<Term<'a>>),
    /// `a + b`.
    Operation(Box<Term<'a>>, Arithmetic, Box<Term<'a>>),
}

impl<'a> Term<'a> {
    /// The bind marker, if the term is one.
    pub fn as_bind(&self) -> Option<&BindMarker<'a>> {
        match self {
            Term::Bind(marker) => Some(marker),
            _ => None,
        }
    }

    /// Whether the term holds a bind marker anywhere.
    pub fn contains_bind_marker(&self) -> bool {
        match self {
            Term::Literal(_) | Term::Null => false,
            Term::Bind(_) => true,
            Term::List(terms) | Term::Set(terms) | Term::Tuple(terms) => terms.iter().any(Term::contains_bind_marker),
            Term::Map(entries) => entries.iter().any(|(k, v)| k.contains_bind_marker() || v.contains_bind_marker()),
            Term::UserType(fields) => fields.iter().any(|(_, v)| v.contains_bind_marker()),
            Term::Function(call) => call.arguments.iter().any(Term::contains_bind_marker),
            Term::TypeHint(_, term) | Term::Cast(term, _) | Term::Negation(term) => term.contains_bind_marker(),
            Term::Operation(left, _, right) => left.contains_bind_marker() || right.contains_bind_marker(),
        }
    }
}

/// A constant as written.
#[derive(Clone, PartialEq, Eq)]
pub struct Literal<'a> {
    /// Which kind of constant it is.
    pub kind: LiteralKind,
    /// Its text: of strings the content without quotes, of blobs with the leading `0x`.
    pub text: Cow<'a, str>,
    /// Where it stands.
    pub pos: Pos,
}

/// The kinds of constants, named as in Cassandra's `Constants.Type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LiteralKind {
    /// `'…'` or `$$…$$`.
    String,
    /// `-12`.
    Integer,
    /// `1.5e3`, `NaN`, `-Infinity`.
    Float,
    /// A UUID without quotes.
    Uuid,
    /// `true`, in whatever case it was written.
    Boolean,
    /// `0xCAFE`.
    Hex,
    /// `1h30m`, `P1Y2M`.
    Duration,
}

impl LiteralKind {
    /// The word in Cassandra's messages (`Invalid STRING constant …`).
    pub fn name(self) -> &'static str {
        match self {
            LiteralKind::String => "STRING",
            LiteralKind::Integer => "INTEGER",
            LiteralKind::Float => "FLOAT",
            LiteralKind::Uuid => "UUID",
            LiteralKind::Boolean => "BOOLEAN",
            LiteralKind::Hex => "HEX",
            LiteralKind::Duration => "DURATION",
        }
    }
}

/// A bind marker.
#[derive(Clone, PartialEq, Eq)]
pub struct BindMarker<'a> {
    /// Its place among the statement's bind markers, from 0.
    pub index: u16,
    /// The name of `:name`; `None` for `?`.
    pub name: Option<Ident<'a>>,
}

/// `f(a, b)`. `token(…)` and `count(…)` are functions like any other here.
#[derive(Debug, Clone)]
pub struct FunctionCall<'a> {
    /// The function; of the system if it has no keyspace and no such one is in the current
    /// keyspace.
    pub name: QualifiedName<'a>,
    /// Its arguments.
    pub arguments: Vec<Term<'a>>,
}

/// An arithmetic operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

impl Arithmetic {
    /// The operator's character.
    pub fn symbol(self) -> char {
        match self {
            Arithmetic::Add => '+',
            Arithmetic::Subtract => '-',
            Arithmetic::Multiply => '*',
            Arithmetic::Divide => '/',
            Arithmetic::Modulo => '%',
        }
    }
}

impl fmt::Debug for Literal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{:?}", self.kind.name(), self.text)
    }
}

impl fmt::Debug for BindMarker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, ":{name:?}#{}", self.index),
            None => write!(f, "?#{}", self.index),
        }
    }
}

/// Errors show a text as Cassandra does, with its quotes as they are. The alternate form (`{:#}`)
/// doubles them, so that it can be parsed again.
impl fmt::Display for Literal<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            LiteralKind::String if f.alternate() => write!(f, "'{}'", self.text.replace('\'', "''")),
            LiteralKind::String => write!(f, "'{}'", self.text),
            _ => f.write_str(&self.text),
        }
    }
}

impl fmt::Display for BindMarker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Cassandra prints named markers so, too.
        f.write_str("?")
    }
}

impl fmt::Display for Term<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Term::Literal(literal) => literal.fmt(f),
            Term::Null => f.write_str("NULL"),
            Term::Bind(marker) => marker.fmt(f),
            Term::List(terms) => write_between(f, "[", terms, "]"),
            Term::Set(terms) => write_between(f, "{", terms, "}"),
            Term::Tuple(terms) => write_between(f, "(", terms, ")"),
            Term::Map(entries) => write_pairs(f, entries),
            Term::UserType(fields) => write_pairs(f, fields),
            Term::Function(call) => {
                write!(f, "{}", call.name)?;
                write_between(f, "(", &call.arguments, ")")
            }
            Term::TypeHint(hint, term) => {
                write!(f, "({hint})")?;
                term.fmt(f)
            }
            Term::Cast(term, native) => {
                f.write_str("CAST(")?;
                term.fmt(f)?;
                write!(f, " AS {})", native.name())
            }
            Term::Negation(term) => {
                f.write_str("-")?;
                term.fmt(f)
            }
            Term::Operation(left, operator, right) => {
                left.fmt(f)?;
                write!(f, " {} ", operator.symbol())?;
                right.fmt(f)
            }
        }
    }
}

/// Writes the items with `, ` between them.
pub(super) fn write_separated<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            f.write_str(", ")?;
        }
        item.fmt(f)?;
    }
    Ok(())
}

/// Writes `open`, the items with `, ` between them, `close`.
pub(super) fn write_between<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    open: &str,
    items: &[T],
    close: &str,
) -> fmt::Result {
    f.write_str(open)?;
    write_separated(f, items)?;
    f.write_str(close)
}

/// Writes `{k: v, k: v}`.
pub(super) fn write_pairs<K: fmt::Display, V: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    pairs: &[(K, V)],
) -> fmt::Result {
    f.write_str("{")?;
    for (at, (key, value)) in pairs.iter().enumerate() {
        if at > 0 {
            f.write_str(", ")?;
        }
        key.fmt(f)?;
        f.write_str(": ")?;
        value.fmt(f)?;
    }
    f.write_str("}")
}
