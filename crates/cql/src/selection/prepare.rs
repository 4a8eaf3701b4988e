//! Preparing a select clause: looking up columns and functions, finding types and names.
//!
//! Agrees with `org.apache.cassandra.cql3.selection.{Selectable,Selection,RawSelector}`, messages included.

use std::sync::Arc;

use schema::TableMetadata;
use types::CqlType;

use super::aggregate::AggregateKind;
use super::{Aggregate, Column, Part, Selection, Selector, wildcard};
use crate::ast::{self, CellAttribute, LiteralKind, Selectable};
use crate::context::{Preparing, Receiver, find_column};
use crate::error::CqlError;
use crate::functions::{self, Function};
use crate::scalar::type_name;
use crate::terms::{self, Term};

struct Builder<'p, 's, 't> {
    preparing: &'p mut Preparing<'s>,
    table: &'t TableMetadata,
    aggregates: Vec<Aggregate>,
    requested: Vec<Column>,
    has_terms: bool,
}

/// A selector with its type.
struct Typed {
    selector: Selector,
    ty: CqlType,
}

fn invalid<T>(message: String) -> Result<T, CqlError> {
    Err(CqlError::invalid(message))
}

/// Prepares a select clause; without selectors it is `*`.
pub(crate) fn prepare(
    preparing: &mut Preparing<'_>,
    table: &TableMetadata,
    selectors: &[ast::Selector<'_>],
) -> Result<Selection, CqlError> {
    if selectors.is_empty() {
        return Ok(wildcard(table));
    }
    let mut builder = Builder { preparing, table, aggregates: Vec::new(), requested: Vec::new(), has_terms: false };
    let mut prepared = Vec::with_capacity(selectors.len());
    let mut names = Vec::with_capacity(selectors.len());
    for selector in selectors {
        let typed = builder.prepare(&selector.selectable, None)?;
        let name = match &selector.alias {
            Some(alias) => alias.as_str().to_owned(),
            None => builder.name(&selector.selectable),
        };
        names.push((name, typed.ty));
        prepared.push(typed.selector);
    }
    let Builder { aggregates, requested, has_terms, .. } = builder;
    let mut selection =
        Selection { selectors: prepared, names, aggregates, fetched: Arc::from([]), requested, has_terms };
    let ids: Vec<_> = selection.requested.iter().filter_map(Column::id).collect();
    selection.fetch(ids.into_iter());
    Ok(selection)
}

fn preferred_type(kind: LiteralKind, text: &str) -> CqlType {
    match kind {
        LiteralKind::String if text.is_ascii() => CqlType::Ascii,
        LiteralKind::String => CqlType::Text,
        LiteralKind::Integer if text.parse::<i32>().is_ok() => CqlType::Int,
        LiteralKind::Integer if text.parse::<i64>().is_ok() => CqlType::BigInt,
        LiteralKind::Integer => CqlType::Varint,
        LiteralKind::Float => CqlType::Double,
        LiteralKind::Uuid => CqlType::Uuid,
        LiteralKind::Boolean => CqlType::Boolean,
        LiteralKind::Hex => CqlType::Blob,
        LiteralKind::Duration => CqlType::Duration,
    }
}

fn aggregate_kind(name: &str) -> Option<AggregateKind> {
    Some(match name {
        "count" => AggregateKind::Count,
        "min" => AggregateKind::Min,
        "max" => AggregateKind::Max,
        "sum" => AggregateKind::Sum,
        "avg" => AggregateKind::Avg,
        _ => return None,
    })
}

fn is_number(ty: &CqlType) -> bool {
    matches!(
        ty,
        CqlType::TinyInt
            | CqlType::SmallInt
            | CqlType::Int
            | CqlType::BigInt
            | CqlType::Counter
            | CqlType::Float
            | CqlType::Double
            | CqlType::Varint
            | CqlType::Decimal
    )
}

fn is_native(name: &ast::QualifiedName<'_>) -> bool {
    name.keyspace().is_none_or(|keyspace| keyspace == "system")
}

impl Builder<'_, '_, '_> {
    fn prepare(&mut self, selectable: &Selectable<'_>, expected: Option<&Receiver>) -> Result<Typed, CqlError> {
        match selectable {
            Selectable::Column(name) => self.column(name.as_str()),
            Selectable::Literal(literal) => {
                let preferred = Receiver::new("[selection]", preferred_type(literal.kind, &literal.text));
                self.term(&ast::Term::Literal(literal.clone()), expected.unwrap_or(&preferred))
            }
            Selectable::Null => self.untyped(&ast::Term::Null, expected),
            Selectable::Bind(marker) => self.untyped(&ast::Term::Bind(marker.clone()), expected),
            Selectable::CountRows => {
                let count = Aggregate { kind: AggregateKind::CountRows, argument: None, ty: CqlType::BigInt };
                Ok(self.aggregate(count, CqlType::BigInt))
            }
            Selectable::CellAttribute(attribute, inner) => self.attribute(*attribute, inner),
            Selectable::Cast(inner, native) => {
                let to = terms::native_type(*native);
                let inner = self.prepare(inner, None)?;
                if !crate::scalar::can_cast(&inner.ty, &to) {
                    return invalid(format!("{} cannot be cast to {}", type_name(&inner.ty), type_name(&to)));
                }
                let function = Function::Cast(inner.ty, to.clone());
                Ok(Typed { selector: Selector::Call(function, vec![inner.selector]), ty: to })
            }
            Selectable::Function(name, arguments) => self.function(name, arguments),
            Selectable::Field(inner, field) => self.field(inner, field, selectable),
            Selectable::Element(inner, key) => self.element(inner, key),
            Selectable::Slice(inner, from, to) => self.slice(inner, from.as_ref(), to.as_ref()),
            Selectable::TypeHint(name, inner) => {
                let ty = terms::resolve_type(self.preparing, name)?;
                let hint = Receiver::new(type_name(&ty), ty.clone());
                let inner = self.prepare(inner, Some(&hint))?;
                if !terms::is_value_compatible(&ty, &inner.ty) {
                    return invalid(format!(
                        "Cannot assign value {} to {} of type {}",
                        self.name(selectable),
                        hint.name,
                        type_name(&ty)
                    ));
                }
                Ok(Typed { selector: inner.selector, ty })
            }
            Selectable::Tuple(parts) => self.tuple(parts, expected),
            Selectable::List(parts) => self.list(parts, expected),
            Selectable::Set(parts) => self.set(parts, expected),
            Selectable::MapOrUserType(entries) => self.map(entries, expected),
            Selectable::Negation(_) | Selectable::Operation(..) => {
                Err(CqlError::unsupported("Arithmetic operators in the select clause are"))
            }
        }
    }

    fn column(&mut self, name: &str) -> Result<Typed, CqlError> {
        let column = find_column(self.table, name)?;
        let place = Column::of(column);
        self.requested.push(place.clone());
        Ok(Typed { selector: Selector::Column(place), ty: column.ty.clone() })
    }

    fn term(&mut self, term: &ast::Term<'_>, receiver: &Receiver) -> Result<Typed, CqlError> {
        let prepared = terms::prepare(self.preparing, term, receiver)?;
        self.has_terms |= !prepared.is_constant();
        Ok(Typed { selector: Selector::Term(prepared), ty: receiver.ty.clone() })
    }

    fn untyped(&mut self, term: &ast::Term<'_>, expected: Option<&Receiver>) -> Result<Typed, CqlError> {
        match expected {
            Some(receiver) => self.term(term, receiver),
            None => invalid(format!(
                "Cannot infer type for term {term} in selection clause (try using a cast to force a type)"
            )),
        }
    }

    fn aggregate(&mut self, aggregate: Aggregate, ty: CqlType) -> Typed {
        self.aggregates.push(aggregate);
        Typed { selector: Selector::Aggregate(self.aggregates.len() - 1), ty }
    }

    fn attribute(&mut self, attribute: CellAttribute, inner: &Selectable<'_>) -> Result<Typed, CqlError> {
        let (base, part) = match inner {
            Selectable::Field(base, field) => {
                let typed = self.prepare(base, None)?;
                let field = self.field_index(&typed.ty, base, field.as_str())?;
                (typed, Some(Part::Field(field)))
            }
            Selectable::Element(base, key) => {
                let typed = self.prepare(base, None)?;
                let key = self.key_of(&typed.ty, base, key)?;
                (typed, Some(Part::Element(key)))
            }
            base => (self.prepare(base, None)?, None),
        };
        let Selector::Column(column) = base.selector else {
            return Err(CqlError::unsupported("writetime and ttl of this are"));
        };
        if column.id().is_none() {
            return invalid(format!(
                "Cannot use selection function {} on PRIMARY KEY part {}",
                attribute.name(),
                self.name(inner)
            ));
        }
        let single = match attribute {
            CellAttribute::Ttl => CqlType::Int,
            CellAttribute::WriteTime | CellAttribute::MaxWriteTime => CqlType::BigInt,
        };
        let many = base.ty.is_multi_cell() && part.is_none() && attribute != CellAttribute::MaxWriteTime;
        let ty = if many { CqlType::List { element: Arc::new(single), frozen: false } } else { single };
        Ok(Typed { selector: Selector::Attribute(attribute, column, part.map(Box::new)), ty })
    }

    fn function(&mut self, name: &ast::QualifiedName<'_>, arguments: &[Selectable<'_>]) -> Result<Typed, CqlError> {
        if is_native(name)
            && let Some(kind) = aggregate_kind(name.name.as_str())
        {
            return self.aggregate_call(kind, name, arguments);
        }
        if is_native(name) && matches!(name.name.as_str(), "to_json" | "tojson") {
            let [argument] = arguments else { return invalid("to_json() only accepts one argument".into()) };
            let inner = self.prepare(argument, None)?;
            let selector = Selector::Call(Function::ToJson(inner.ty), vec![inner.selector]);
            return Ok(Typed { selector, ty: CqlType::Text });
        }
        let found = functions::candidates(self.preparing, name);
        if found.is_empty() {
            return Err(functions::unknown(name, format!("Unknown function '{name}'")));
        }
        let mut known = Vec::with_capacity(arguments.len());
        for argument in arguments {
            known.push(self.type_of(argument)?);
        }
        let fits = |at: usize, ty: &CqlType| match (&known[at], &arguments[at]) {
            (Some(found), _) => terms::is_value_compatible(ty, found),
            (None, Selectable::Literal(literal)) => {
                terms::is_assignable(self.preparing, &ast::Term::Literal(literal.clone()), ty)
            }
            (None, _) => true,
        };
        let show = |at: usize| self.name(&arguments[at]);
        let chosen = functions::pick(&name.to_string(), found, arguments.len(), fits, show)?;
        let mut prepared = Vec::with_capacity(arguments.len());
        for (at, (argument, ty)) in arguments.iter().zip(&chosen.arguments).enumerate() {
            let receiver = Receiver::new(format!("arg{at}({})", chosen.function.name()), ty.clone());
            prepared.push(self.prepare(argument, Some(&receiver))?.selector);
        }
        self.has_terms |= !chosen.function.is_pure();
        Ok(Typed { selector: Selector::Call(chosen.function, prepared), ty: chosen.returns })
    }

    /// The type of what has one by itself. Prepared and thrown away: names of functions, not values, decide.
    fn type_of(&mut self, selectable: &Selectable<'_>) -> Result<Option<CqlType>, CqlError> {
        match selectable {
            Selectable::Literal(_) | Selectable::Null | Selectable::Bind(_) => Ok(None),
            other => {
                let (aggregates, requested) = (self.aggregates.len(), self.requested.len());
                let ty = self.prepare(other, None)?.ty;
                self.aggregates.truncate(aggregates);
                self.requested.truncate(requested);
                Ok(Some(ty))
            }
        }
    }

    fn aggregate_call(
        &mut self,
        kind: AggregateKind,
        name: &ast::QualifiedName<'_>,
        arguments: &[Selectable<'_>],
    ) -> Result<Typed, CqlError> {
        let [argument] = arguments else {
            return invalid(format!(
                "Invalid number of arguments in call to function system.{}: 1 required but {} provided",
                name.name,
                arguments.len()
            ));
        };
        // count(1) and count(?) are other spellings of count(*)
        if kind == AggregateKind::Count && is_row_count(argument) {
            return self.prepare(&Selectable::CountRows, None);
        }
        let before = self.aggregates.len();
        let inner = self.prepare(argument, None)?;
        if self.aggregates.len() != before {
            return invalid("aggregate functions cannot be used as arguments of aggregate functions".into());
        }
        let numbers_only = matches!(kind, AggregateKind::Sum | AggregateKind::Avg);
        if numbers_only && !is_number(&inner.ty) {
            return invalid(format!(
                "Invalid call to function {name}, none of its type signatures match (known type signatures: \
                 system.{name} : (tinyint) -> tinyint, system.{name} : (smallint) -> smallint, \
                 system.{name} : (int) -> int, system.{name} : (bigint) -> bigint, \
                 system.{name} : (float) -> float, system.{name} : (double) -> double, \
                 system.{name} : (decimal) -> decimal, system.{name} : (varint) -> varint, \
                 system.{name} : (counter) -> counter)"
            ));
        }
        let returns = match (kind, &inner.ty) {
            (AggregateKind::Count | AggregateKind::CountRows, _) => CqlType::BigInt,
            (_, ty) => ty.clone(),
        };
        let ty = if inner.ty == CqlType::Counter { CqlType::BigInt } else { inner.ty };
        Ok(self.aggregate(Aggregate { kind, argument: Some(inner.selector), ty }, returns))
    }

    fn field_index(&self, ty: &CqlType, base: &Selectable<'_>, field: &str) -> Result<usize, CqlError> {
        let CqlType::Udt(udt, _) = ty else {
            return invalid(format!(
                "Invalid field selection: {} of type {} is not a user type",
                self.name(base),
                type_name(ty)
            ));
        };
        udt.fields.iter().position(|(name, _)| name == field).ok_or_else(|| {
            CqlError::invalid(format!("{} of type {} has no field {field}", self.name(base), type_name(ty)))
        })
    }

    fn field(
        &mut self,
        inner: &Selectable<'_>,
        field: &ast::Ident<'_>,
        _whole: &Selectable<'_>,
    ) -> Result<Typed, CqlError> {
        let base = self.prepare(inner, None)?;
        let index = self.field_index(&base.ty, inner, field.as_str())?;
        let CqlType::Udt(udt, _) = &base.ty else { return self.column(field.as_str()) };
        let ty = udt.fields[index].1.clone();
        Ok(Typed { selector: Selector::Field(Box::new(base.selector), index), ty })
    }

    fn key_of(&mut self, ty: &CqlType, base: &Selectable<'_>, key: &ast::Term<'_>) -> Result<Selector, CqlError> {
        let key_type = match ty {
            CqlType::Map { key, .. } => key,
            CqlType::Set { element, .. } => element,
            CqlType::List { .. } => {
                return invalid(format!(
                    "Element selection is only allowed on sets and maps, but {} is a list",
                    self.name(base)
                ));
            }
            _ => {
                return invalid(format!(
                    "Invalid element selection: {} is of type {} is not a collection",
                    self.name(base),
                    type_name(ty)
                ));
            }
        };
        let receiver = Receiver::new(format!("key({})", self.name(base)), (**key_type).clone());
        Ok(self.term(key, &receiver)?.selector)
    }

    fn element(&mut self, inner: &Selectable<'_>, key: &ast::Term<'_>) -> Result<Typed, CqlError> {
        let base = self.prepare(inner, None)?;
        let key = self.key_of(&base.ty, inner, key)?;
        let ty = match &base.ty {
            CqlType::Map { value, .. } => (**value).clone(),
            CqlType::Set { element, .. } => (**element).clone(),
            other => other.clone(),
        };
        Ok(Typed { selector: Selector::Element(base.ty, Box::new(base.selector), Box::new(key)), ty })
    }

    fn slice(
        &mut self,
        inner: &Selectable<'_>,
        from: Option<&ast::Term<'_>>,
        to: Option<&ast::Term<'_>>,
    ) -> Result<Typed, CqlError> {
        let base = self.prepare(inner, None)?;
        if !base.ty.is_collection() {
            return invalid(format!(
                "Invalid slice selection: {} of type {} is not a collection",
                self.name(inner),
                type_name(&base.ty)
            ));
        }
        let mut end = |term: Option<&ast::Term<'_>>| match term {
            None => Ok(None),
            Some(term) => self.key_of(&base.ty, inner, term).map(|key| Some(Box::new(key))),
        };
        let (from, to) = (end(from)?, end(to)?);
        let ty = base.ty.clone();
        Ok(Typed { selector: Selector::Slice(base.ty, Box::new(base.selector), from, to), ty })
    }

    fn tuple(&mut self, parts: &[Selectable<'_>], expected: Option<&Receiver>) -> Result<Typed, CqlError> {
        if let [only] = parts
            && !matches!(expected.map(|receiver| &receiver.ty), Some(CqlType::Tuple(_)))
        {
            return self.prepare(only, expected);
        }
        let types = match expected.map(|receiver| &receiver.ty) {
            Some(CqlType::Tuple(types)) => Some(Arc::clone(types)),
            _ => None,
        };
        let mut selectors = Vec::with_capacity(parts.len());
        let mut found = Vec::with_capacity(parts.len());
        for (at, part) in parts.iter().enumerate() {
            let ty = types.as_ref().and_then(|types| types.get(at)).cloned();
            let receiver = ty.map(|ty| Receiver::new(format!("[{at}]"), ty));
            let typed = self.prepare(part, receiver.as_ref())?;
            selectors.push(typed.selector);
            found.push(typed.ty);
        }
        let ty = types.map_or_else(|| CqlType::Tuple(found.into()), CqlType::Tuple);
        Ok(Typed { selector: Selector::Tuple(selectors), ty })
    }

    fn parts(
        &mut self,
        parts: &[Selectable<'_>],
        element: Option<&CqlType>,
    ) -> Result<(Vec<Selector>, Option<CqlType>), CqlError> {
        let mut element = element.cloned();
        let mut selectors = Vec::with_capacity(parts.len());
        for part in parts {
            let receiver = element.clone().map(|ty| Receiver::new("[selection]", ty));
            let typed = self.prepare(part, receiver.as_ref())?;
            element.get_or_insert(typed.ty);
            selectors.push(typed.selector);
        }
        Ok((selectors, element))
    }

    fn list(&mut self, parts: &[Selectable<'_>], expected: Option<&Receiver>) -> Result<Typed, CqlError> {
        let wanted = expected.map(|receiver| receiver.ty.clone());
        if let Some(CqlType::Vector { element, dimension }) = &wanted {
            let (selectors, _) = self.parts(parts, Some(element))?;
            if selectors.len() != *dimension as usize {
                return invalid(format!(
                    "Invalid vector literal of type {}; expected {dimension} elements, but given {}",
                    type_name(&CqlType::Vector { element: Arc::clone(element), dimension: *dimension }),
                    selectors.len()
                ));
            }
            let ty = CqlType::Vector { element: Arc::clone(element), dimension: *dimension };
            return Ok(Typed { selector: Selector::Vector((**element).clone(), selectors), ty });
        }
        let element = match &wanted {
            Some(CqlType::List { element, .. }) => Some((**element).clone()),
            _ => None,
        };
        let (selectors, element) = self.parts(parts, element.as_ref())?;
        let Some(element) = element else { return cannot_infer("[]") };
        let ty = CqlType::List { element: Arc::new(element), frozen: false };
        Ok(Typed { selector: Selector::List(selectors), ty })
    }

    fn set(&mut self, parts: &[Selectable<'_>], expected: Option<&Receiver>) -> Result<Typed, CqlError> {
        let wanted = expected.map(|receiver| receiver.ty.clone());
        if let (Some(CqlType::Map { key, .. }), true) = (&wanted, parts.is_empty()) {
            let selector = Selector::Map((**key).clone(), Vec::new());
            return Ok(Typed { selector, ty: wanted.expect("it was matched") });
        }
        let element = match &wanted {
            Some(CqlType::Set { element, .. }) => Some((**element).clone()),
            _ => None,
        };
        let (selectors, element) = self.parts(parts, element.as_ref())?;
        let Some(element) = element else { return cannot_infer("{}") };
        let ty = CqlType::Set { element: Arc::new(element.clone()), frozen: false };
        Ok(Typed { selector: Selector::Set(element, selectors), ty })
    }

    fn map(
        &mut self,
        entries: &[(Selectable<'_>, Selectable<'_>)],
        expected: Option<&Receiver>,
    ) -> Result<Typed, CqlError> {
        match expected.map(|receiver| receiver.ty.clone()) {
            Some(CqlType::Udt(udt, frozen)) => {
                let mut selectors = Vec::with_capacity(udt.fields.len());
                for (name, ty) in &udt.fields {
                    let given =
                        entries.iter().find(|(key, _)| matches!(key, Selectable::Column(id) if id.as_str() == name));
                    selectors.push(match given {
                        Some((_, value)) => {
                            self.prepare(value, Some(&Receiver::new(name.clone(), ty.clone())))?.selector
                        }
                        None => Selector::Term(Term::NULL),
                    });
                }
                Ok(Typed { selector: Selector::Tuple(selectors), ty: CqlType::Udt(udt, frozen) })
            }
            Some(CqlType::Map { key, value, frozen }) => {
                let mut selectors = Vec::with_capacity(entries.len());
                for (k, v) in entries {
                    let k = self.prepare(k, Some(&Receiver::new("key", (*key).clone())))?;
                    let v = self.prepare(v, Some(&Receiver::new("value", (*value).clone())))?;
                    selectors.push((k.selector, v.selector));
                }
                let selector = Selector::Map((*key).clone(), selectors);
                Ok(Typed { selector, ty: CqlType::Map { key, value, frozen } })
            }
            _ => cannot_infer("{…}"),
        }
    }

    fn is_column_of(&self, selectable: &Selectable<'_>, ty: &CqlType) -> bool {
        let Selectable::Column(name) = selectable else { return false };
        self.table.column_by_name(name.as_str()).is_some_and(|column| column.ty == *ty)
    }

    /// The name of a result column.
    fn name(&self, selectable: &Selectable<'_>) -> String {
        let list = |parts: &[Selectable<'_>]| parts.iter().map(|part| self.name(part)).collect::<Vec<_>>().join(", ");
        match selectable {
            Selectable::Column(name) => name.as_str().to_owned(),
            Selectable::Literal(literal) => literal.to_string(),
            Selectable::Null => "NULL".into(),
            Selectable::Bind(marker) => marker.to_string(),
            Selectable::CountRows => "count".into(),
            Selectable::CellAttribute(attribute, inner) => format!("{}({})", attribute.name(), self.name(inner)),
            // a cast to the type that it is of is none
            Selectable::Cast(inner, native) if self.is_column_of(inner, &terms::native_type(*native)) => {
                self.name(inner)
            }
            Selectable::Cast(inner, native) => {
                format!("cast({} as {})", self.name(inner), type_name(&terms::native_type(*native)))
            }
            Selectable::Function(name, arguments)
                if is_native(name) && name.name.as_str() == "count" && arguments.iter().all(is_row_count) =>
            {
                "count".into()
            }
            Selectable::Function(name, arguments) => {
                let shown = functions::shown_name(self.preparing, name);
                format!("{shown}({})", list(arguments))
            }
            Selectable::Field(inner, field) => format!("{}.{field}", self.name(inner)),
            Selectable::Element(inner, key) => format!("{}[{key}]", self.name(inner)),
            Selectable::Slice(inner, from, to) => {
                let end = |end: &Option<ast::Term<'_>>| end.as_ref().map(ToString::to_string).unwrap_or_default();
                format!("{}[{}..{}]", self.name(inner), end(from), end(to))
            }
            Selectable::TypeHint(name, inner) => format!("({name}){}", self.name(inner)),
            Selectable::Tuple(parts) => format!("({})", list(parts)),
            Selectable::List(parts) => format!("[{}]", list(parts)),
            Selectable::Set(parts) => format!("{{{}}}", list(parts)),
            Selectable::MapOrUserType(entries) => {
                let entries: Vec<_> =
                    entries.iter().map(|(key, value)| format!("{}: {}", self.name(key), self.name(value))).collect();
                format!("{{{}}}", entries.join(", "))
            }
            Selectable::Negation(inner) => format!("-{}", self.name(inner)),
            Selectable::Operation(left, operator, right) => {
                format!("{} {} {}", self.name(left), operator.symbol(), self.name(right))
            }
        }
    }
}

fn is_row_count(argument: &Selectable<'_>) -> bool {
    matches!(argument, Selectable::Literal(literal) if literal.kind == LiteralKind::Integer)
}

fn cannot_infer<T>(what: &str) -> Result<T, CqlError> {
    invalid(format!("Cannot infer type for term {what} in selection clause (try using a cast to force a type)"))
}
