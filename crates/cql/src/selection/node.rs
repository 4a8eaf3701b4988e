//! The tree of a selected expression with its columns and functions resolved; the step between the
//! syntax tree and selectors.
//!
//! Functions are resolved from the inside to the outside, each by the types of its arguments. Then
//! selectors are made from the outside to the inside, each for the type that is expected of it.
//! Agrees with `org.apache.cassandra.cql3.selection.Selectable`: its `prepare`,
//! `getExactTypeIfKnown`, `testAssignment`.

use std::sync::Arc;

use schema::{ColumnMetadata, TableMetadata};
use types::CqlType;

use crate::ast::{self, CellAttribute, NativeType, Selectable, Term};
use crate::context::{PrepareContext, find_column};
use crate::error::CqlError;
use crate::fit::{self, Fit, fit_all, fit_type};
use crate::functions::{self, Argument, Function};
use crate::terms::{self, TermArgument};

/// A selected expression.
pub(super) enum Node<'t, 'a> {
    /// A column.
    Column(&'t ColumnMetadata),
    /// A constant, null or a bind marker.
    Term(Term<'a>),
    /// `writetime`, `maxwritetime` or `ttl`: the column, and the part of it.
    Attribute(CellAttribute, &'t ColumnMetadata, Box<Node<'t, 'a>>),
    /// A call, including the sign and operators.
    Call(Arc<Function>, Vec<Node<'t, 'a>>),
    /// `CAST(x AS t)`
    Cast(Box<Node<'t, 'a>>, NativeType),
    /// `x.field`
    Field(Box<Node<'t, 'a>>, &'t ast::Ident<'a>),
    /// `x[key]`
    Element(Box<Node<'t, 'a>>, &'t Term<'a>),
    /// `x[from..to]`
    Slice(Box<Node<'t, 'a>>, Option<&'t Term<'a>>, Option<&'t Term<'a>>),
    /// `(t)x`, with the type as written
    Hint(String, CqlType, Box<Node<'t, 'a>>),
    /// `(a, b)`: a tuple, or an expression in parentheses.
    Tuple(Vec<Node<'t, 'a>>),
    /// `[a, b]`
    Array(Vec<Node<'t, 'a>>),
    /// `{a, b}`
    Set(Vec<Node<'t, 'a>>),
    /// `{a: b}`: a map, or a user type, whose fields are no columns.
    MapOrUserType(Vec<(Key<'t, 'a>, Node<'t, 'a>)>),
}

/// The key of a pair in `{a: b}`.
pub(super) enum Key<'t, 'a> {
    /// A name, which may be that of a column or of a field.
    Name(&'t ast::Ident<'a>),
    /// Any other expression.
    Node(Node<'t, 'a>),
}

/// The table and the statement in which names are looked up.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'p, 's, 't> {
    /// The statement.
    pub context: &'p PrepareContext<'s>,
    /// The table.
    pub table: &'t TableMetadata,
}

/// A node as the argument of a function that is being resolved.
struct NodeArgument<'p, 's, 't, 'n, 'a> {
    lookup: Lookup<'p, 's, 't>,
    node: &'n Node<'t, 'a>,
}

impl Argument for NodeArgument<'_, '_, '_, '_, '_> {
    fn fit(&self, ty: &CqlType) -> Fit {
        self.node.fit(self.lookup, ty)
    }

    fn compatible_type(&self) -> Option<CqlType> {
        self.node.compatible_type(self.lookup)
    }

    fn text(&self) -> String {
        self.node.text()
    }

    fn is_marker(&self) -> bool {
        matches!(self.node, Node::Term(Term::Bind(_)))
    }

    fn array_size(&self) -> Option<u32> {
        match self.node {
            Node::Array(parts) => u32::try_from(parts.len()).ok(),
            _ => None,
        }
    }
}

impl<'t, 'a> Lookup<'_, '_, 't> {
    /// Resolves the columns and functions of an expression.
    pub fn node(self, selectable: &'t Selectable<'a>) -> Result<Node<'t, 'a>, CqlError> {
        let boxed = |of: &'t Selectable<'a>| self.node(of).map(Box::new);
        let all = |parts: &'t [Selectable<'a>]| parts.iter().map(|part| self.node(part)).collect::<Result<Vec<_>, _>>();
        Ok(match selectable {
            Selectable::Column(name) => Node::Column(find_column(self.table, name.as_str())?),
            Selectable::Literal(literal) => Node::Term(Term::Literal(literal.clone())),
            Selectable::Null => Node::Term(Term::Null),
            Selectable::Bind(marker) => Node::Term(Term::Bind(marker.clone())),
            Selectable::CountRows => self.call(None, "count_rows", Vec::new())?,
            Selectable::CellAttribute(attribute, of) => Node::Attribute(*attribute, self.column_of(of)?, boxed(of)?),
            Selectable::Cast(of, native) => Node::Cast(boxed(of)?, *native),
            Selectable::Function(name, arguments) => {
                let mut arguments = all(arguments)?;
                let mut function = name.name.as_str();
                // count(1) means count(*)
                if function == "count"
                    && name.keyspace().is_none_or(|keyspace| keyspace == "system")
                    && matches!(arguments.as_slice(), [Node::Term(Term::Literal(_))])
                {
                    (function, arguments) = ("count_rows", Vec::new());
                }
                self.call(name.keyspace(), function, arguments)?
            }
            Selectable::Negation(of) => self.call(Some("system"), functions::NEGATION, vec![self.node(of)?])?,
            Selectable::Operation(left, operator, right) => {
                let arguments = vec![self.node(left)?, self.node(right)?];
                self.call(Some("system"), functions::operation_name(*operator), arguments)?
            }
            Selectable::Field(of, field) => Node::Field(boxed(of)?, field),
            Selectable::Element(of, key) => Node::Element(boxed(of)?, key),
            Selectable::Slice(of, from, to) => Node::Slice(boxed(of)?, from.as_ref(), to.as_ref()),
            Selectable::TypeHint(name, of) => {
                let of = boxed(of)?;
                let ty = terms::resolve_type(self.context, name)?.freeze();
                Node::Hint(self.hint_text(name), ty, of)
            }
            Selectable::Tuple(parts) => Node::Tuple(all(parts)?),
            Selectable::List(parts) => Node::Array(all(parts)?),
            Selectable::Set(parts) => Node::Set(all(parts)?),
            Selectable::MapOrUserType(entries) => {
                let entries = entries.iter().map(|(key, value)| {
                    let key = match key {
                        Selectable::Column(name) => Key::Name(name),
                        key => Key::Node(self.node(key)?),
                    };
                    Ok((key, self.node(value)?))
                });
                Node::MapOrUserType(entries.collect::<Result<Vec<_>, CqlError>>()?)
            }
        })
    }

    fn call(self, keyspace: Option<&str>, name: &str, arguments: Vec<Node<'t, 'a>>) -> Result<Node<'t, 'a>, CqlError> {
        let given: Vec<_> = arguments.iter().map(|node| NodeArgument { lookup: self, node }).collect();
        let given: Vec<_> = given.iter().map(|argument| argument as &dyn Argument).collect();
        match functions::resolve(self.context.scope(), keyspace, name, &given, None)? {
            Some(function) => Ok(Node::Call(function, arguments)),
            None => {
                let name = keyspace.map_or_else(|| name.to_owned(), |keyspace| format!("{keyspace}.{name}"));
                Err(CqlError::invalid(format!("Unknown function '{name}'")))
            }
        }
    }

    /// The column of a `writetime`.
    fn column_of(self, selectable: &Selectable<'_>) -> Result<&'t ColumnMetadata, CqlError> {
        match selectable {
            Selectable::Column(name) => find_column(self.table, name.as_str()),
            Selectable::Field(of, _) | Selectable::Element(of, _) | Selectable::Slice(of, ..) => self.column_of(of),
            _ => Err(CqlError::Server("writetime and ttl are of a column".into())),
        }
    }

    /// A type as the names of result columns show it: user types with their keyspace, tuples and
    /// vectors without the word that says that they are frozen.
    fn hint_text(self, name: &ast::TypeName<'_>) -> String {
        use ast::TypeName;
        let shown = |name: &TypeName<'_>| self.hint_text(name);
        match name {
            TypeName::User(user) if user.keyspace().is_none() => format!("{}.{user}", self.context.keyspace),
            TypeName::List(element) => format!("list<{}>", shown(element)),
            TypeName::Set(element) => format!("set<{}>", shown(element)),
            TypeName::Map(key, value) => format!("map<{}, {}>", shown(key), shown(value)),
            TypeName::Tuple(elements) => {
                format!("tuple<{}>", elements.iter().map(shown).collect::<Vec<_>>().join(", "))
            }
            TypeName::Vector(element, dimension) => format!("vector<{}, {dimension}>", shown(element)),
            TypeName::Frozen(inner) => match inner.as_ref() {
                TypeName::Tuple(_) | TypeName::Vector(..) => shown(inner),
                _ => format!("frozen<{}>", shown(inner)),
            },
            TypeName::User(_) | TypeName::Native(_) | TypeName::Custom(_) => name.to_string(),
        }
    }
}

impl<'t, 'a> Node<'t, 'a> {
    /// The type that the expression has whatever is expected of it.
    pub fn exact_type(&self, lookup: Lookup<'_, '_, 't>) -> Option<CqlType> {
        self.own_type(lookup, &|node| node.exact_type(lookup), |types| types.next())
    }

    /// The type that the expression is given where nothing says which.
    pub fn compatible_type(&self, lookup: Lookup<'_, '_, 't>) -> Option<CqlType> {
        match self {
            Self::Term(term) => terms::compatible_type(lookup.context, term),
            _ => self.own_type(lookup, &|node| node.compatible_type(lookup), |types| terms::common_type(types)),
        }
    }

    fn own_type(
        &self,
        lookup: Lookup<'_, '_, 't>,
        of: &dyn Fn(&Self) -> Option<CqlType>,
        choose: fn(&mut dyn Iterator<Item = CqlType>) -> Option<CqlType>,
    ) -> Option<CqlType> {
        let exact = |node: &Self| node.exact_type(lookup);
        match self {
            Self::Column(column) => Some(column.ty.clone()),
            Self::Term(term) => terms::exact_type(lookup.context, term),
            Self::Attribute(attribute, column, _) => Some(attribute_type(*attribute, column.ty.is_multi_cell())),
            Self::Call(function, _) => Some(function.returns.clone()),
            Self::Cast(_, native) => Some(fit::native_type(*native)),
            Self::Field(inner, field) => match exact(inner)? {
                CqlType::Udt(udt, _) => {
                    let at = lookup.context.fields.find(&udt, field.as_str())?;
                    Some(udt.fields[at].1.clone())
                }
                _ => None,
            },
            Self::Element(inner, _) => element_type(&exact(inner)?),
            Self::Slice(inner, ..) => exact(inner).filter(CqlType::is_collection),
            Self::Hint(_, ty, _) => Some(ty.clone()),
            // a tuple of one cannot be told from an expression in parentheses
            Self::Tuple(parts) if parts.len() == 1 => None,
            Self::Tuple(parts) => Some(CqlType::Tuple(parts.iter().map(of).collect::<Option<Vec<_>>>()?.into())),
            Self::Array(parts) => {
                let element = choose(&mut parts.iter().filter_map(of))?;
                Some(CqlType::List { element: Arc::new(element), frozen: true })
            }
            Self::Set(parts) => {
                let element = choose(&mut parts.iter().filter_map(of))?;
                Some(CqlType::Set { element: Arc::new(element), frozen: true })
            }
            Self::MapOrUserType(_) => None,
        }
    }

    /// How well the value can be given to something of the type.
    pub fn fit(&self, lookup: Lookup<'_, '_, 't>, ty: &CqlType) -> Fit {
        let all = |parts: &[Self], ty: &CqlType| fit_all(parts.iter().map(|part| part.fit(lookup, ty)));
        let weak = |fits: bool| if fits { Fit::Weak } else { Fit::No };
        match (self, ty) {
            (Self::Term(term), _) => TermArgument { context: lookup.context, term }.fit(ty),
            (Self::Hint(_, hint, _), _) => fit_type(ty, hint),
            (Self::Tuple(parts), CqlType::Tuple(types)) => weak(
                parts.len() <= types.len()
                    && parts.iter().zip(types.iter()).all(|(part, ty)| part.fit(lookup, ty) != Fit::No),
            ),
            (Self::Tuple(parts), _) => match parts.as_slice() {
                [only] => only.fit(lookup, ty),
                _ => Fit::No,
            },
            (Self::Array(parts), CqlType::List { .. }) if parts.is_empty() => Fit::Weak,
            (Self::Array(parts), CqlType::List { element, .. }) => all(parts, element),
            (Self::Array(parts), CqlType::Vector { element, .. }) => all(parts, element),
            (Self::Set(parts), CqlType::Set { .. } | CqlType::Map { .. }) if parts.is_empty() => Fit::Weak,
            (Self::Set(parts), CqlType::Set { element, .. }) => all(parts, element),
            (Self::MapOrUserType(entries), CqlType::Map { key, value, .. }) => {
                fit_all(entries.iter().flat_map(|(k, v)| [k.fit(lookup, key), v.fit(lookup, value)]))
            }
            (Self::MapOrUserType(entries), CqlType::Udt(udt, _)) => weak(entries.iter().all(|(key, value)| {
                let field = match key {
                    Key::Name(name) => lookup.context.fields.find(udt, name.as_str()),
                    Key::Node(_) => None,
                };
                field.is_none_or(|at| value.fit(lookup, &udt.fields[at].1) != Fit::No)
            })),
            (Self::Array(_) | Self::Set(_) | Self::MapOrUserType(_), _) => Fit::No,
            _ => self.exact_type(lookup).map_or(Fit::No, |own| fit_type(ty, &own)),
        }
    }

    /// The expression as error messages show it.
    pub fn text(&self) -> String {
        let list = |parts: &[Self]| parts.iter().map(Self::text).collect::<Vec<_>>().join(", ");
        match self {
            Self::Column(column) => column.name.clone(),
            Self::Term(term) => term.to_string(),
            Self::Attribute(attribute, _, of) => format!("{}({})", attribute.name(), of.text()),
            Self::Call(function, arguments) => {
                function.column_name(&arguments.iter().map(Self::text).collect::<Vec<_>>())
            }
            Self::Cast(of, native) => format!("cast({} as {})", of.text(), native.name()),
            Self::Field(of, field) => format!("{}.{field}", of.text()),
            Self::Element(of, key) => element_text(&of.text(), key),
            Self::Slice(of, from, to) => slice_text(&of.text(), *from, *to),
            Self::Hint(name, _, of) => format!("({name}){}", of.text()),
            Self::Tuple(parts) => format!("({})", list(parts)),
            Self::Array(parts) => format!("[{}]", list(parts)),
            Self::Set(parts) => format!("{{{}}}", list(parts)),
            Self::MapOrUserType(entries) => {
                let entries: Vec<_> =
                    entries.iter().map(|(key, value)| format!("{}: {}", key.text(), value.text())).collect();
                format!("{{{}}}", entries.join(", "))
            }
        }
    }
}

impl<'t, 'a> Key<'t, 'a> {
    fn fit(&self, lookup: Lookup<'_, '_, 't>, ty: &CqlType) -> Fit {
        match self {
            Self::Name(name) => match find_column(lookup.table, name.as_str()) {
                Ok(column) => fit_type(ty, &column.ty),
                Err(_) => Fit::No,
            },
            Self::Node(node) => node.fit(lookup, ty),
        }
    }

    /// As messages show it.
    pub fn text(&self) -> String {
        match self {
            Self::Name(name) => name.to_string(),
            Self::Node(node) => node.text(),
        }
    }
}

/// `x[key]`
pub(super) fn element_text(of: &str, key: &Term<'_>) -> String {
    format!("{of}[{key}]")
}

/// `x[from..to]`
pub(super) fn slice_text(of: &str, from: Option<&Term<'_>>, to: Option<&Term<'_>>) -> String {
    let end = |end: Option<&Term<'_>>| end.map(ToString::to_string).unwrap_or_default();
    format!("{of}[{}..{}]", end(from), end(to))
}

/// The type of an element of a collection.
pub(super) fn element_type(ty: &CqlType) -> Option<CqlType> {
    match ty {
        CqlType::Map { value: of, .. } | CqlType::Set { element: of, .. } => Some((**of).clone()),
        _ => None,
    }
}

/// The type of a `writetime` or `ttl`: a list if its argument has many cells (`of_many`).
pub(super) fn attribute_type(attribute: CellAttribute, of_many: bool) -> CqlType {
    let single = match attribute {
        CellAttribute::Ttl => CqlType::Int,
        CellAttribute::WriteTime | CellAttribute::MaxWriteTime => CqlType::BigInt,
    };
    if of_many && attribute != CellAttribute::MaxWriteTime {
        CqlType::List { element: Arc::new(single), frozen: false }
    } else {
        single
    }
}
