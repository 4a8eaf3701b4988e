//! Parts of what is selected: fields, elements, slices; and when they were written.
//!
//! Agrees with `WithFieldSelection`, `WithElementSelection`, `WithSliceSelection` and
//! `WritetimeOrTTL` of Cassandra's `Selectable`.

use std::sync::Arc;

use schema::ColumnMetadata;
use types::CqlType;

use super::super::cell_attributes::AttributeTarget;
use super::super::node::{self, Node};
use super::super::{Column, Selector};
use super::{Builder, Typed, invalid};
use crate::ast::{self, CellAttribute, Term};
use crate::context::Receiver;
use crate::error::CqlError;
use crate::scalar::type_name;

/// A slice of a collection: the collection and its two bounds; None: the slice is open there.
struct Slice {
    of: Typed,
    from: Option<Selector>,
    to: Option<Selector>,
}

impl<'t> Builder<'_, '_, 't> {
    pub(super) fn field(&mut self, of: &Node<'t, '_>, field: &ast::Ident<'_>) -> Result<Typed, CqlError> {
        let base = self.field_base(of)?;
        let (index, ty) = self.field_of(&base, of, field)?;
        let name = format!("{}.{field}", base.name);
        Ok(Typed { selector: Selector::Field(Box::new(base.selector), index), ty, name })
    }

    fn field_base(&mut self, of: &Node<'t, '_>) -> Result<Typed, CqlError> {
        // between parentheses stands what has fields: no tuple of one
        let expected = match of {
            Node::Tuple(parts) => parts.first().and_then(|part| part.exact_type(self.lookup())),
            _ => None,
        };
        self.build(of, expected.as_ref())
    }

    /// The key of an element, or an end of a slice.
    fn key(&mut self, base: &Typed, of: &Node<'t, '_>, what: &str, key: &Term<'_>) -> Result<Selector, CqlError> {
        let receiver = match &base.ty {
            CqlType::Map { key, .. } => Receiver::new(format!("key({})", base.name), (**key).clone()),
            CqlType::Set { element, .. } => Receiver::new(format!("value({})", base.name), (**element).clone()),
            CqlType::List { .. } => {
                return invalid(format!(
                    "{what} selection is only allowed on sets and maps, but {} is a list",
                    of.text()
                ));
            }
            other => {
                let is = if what == "Element" { "is of" } else { "of" };
                return invalid(format!(
                    "Invalid {} selection: {} {is} type {} is not a collection",
                    what.to_lowercase(),
                    of.text(),
                    type_name(other)
                ));
            }
        };
        self.term(key, &receiver)
    }

    pub(super) fn element(&mut self, of: &Node<'t, '_>, key: &Term<'_>) -> Result<Typed, CqlError> {
        let base = self.build(of, None)?;
        let selected = self.key(&base, of, "Element", key)?;
        let ty = node::element_type(&base.ty).unwrap_or_else(|| base.ty.clone());
        let name = node::element_text(&of.text(), key);
        let of_name = Arc::from(of.text());
        let selector = Selector::Element(base.ty, Box::new(base.selector), Box::new(selected), of_name);
        Ok(Typed { selector, ty, name })
    }

    pub(super) fn slice(
        &mut self,
        of: &Node<'t, '_>,
        from: Option<&Term<'_>>,
        to: Option<&Term<'_>>,
        expected: Option<&CqlType>,
    ) -> Result<Typed, CqlError> {
        let Slice { of: base, from: first, to: last } = self.ends(of, from, to, expected)?;
        let (first, last) = (first.map(Box::new), last.map(Box::new));
        let selector = Selector::Slice(base.ty.clone(), Box::new(base.selector), first, last);
        Ok(Typed { selector, ty: base.ty, name: node::slice_text(&of.text(), from, to) })
    }

    fn ends(
        &mut self,
        of: &Node<'t, '_>,
        from: Option<&Term<'_>>,
        to: Option<&Term<'_>>,
        expected: Option<&CqlType>,
    ) -> Result<Slice, CqlError> {
        let base = self.build(of, expected)?;
        let mut end = |term: Option<&Term<'_>>| term.map(|term| self.key(&base, of, "Slice", term)).transpose();
        let (from, to) = (end(from)?, end(to)?);
        Ok(Slice { of: base, from, to })
    }

    pub(super) fn attribute(
        &mut self,
        attribute: CellAttribute,
        column: &ColumnMetadata,
        of: &Node<'t, '_>,
    ) -> Result<Typed, CqlError> {
        if column.is_primary_key() {
            // the column counts as selected where the WHERE is looked at, whose mistakes come first
            self.requested.push(Column::of(column));
            return invalid(format!(
                "Cannot use selection function {} on PRIMARY KEY part {}",
                attribute.name(),
                column.name
            ));
        }
        let (target, inner) = self.attribute_target(of)?;
        let ty = node::attribute_type(attribute, inner.ty.is_multi_cell());
        let name = format!("{}({})", attribute.name(), inner.name);
        Ok(Typed { selector: Selector::Attribute(attribute, Box::new(target)), ty, name })
    }

    /// Where the times are that something was written at, and the thing itself.
    fn attribute_target(&mut self, of: &Node<'t, '_>) -> Result<(AttributeTarget, Typed), CqlError> {
        match of {
            Node::Field(base, field) => {
                let (target, base_typed) = self.attribute_target(base)?;
                let (index, ty) = self.field_of(&base_typed, base, field)?;
                let selector = Selector::Field(Box::new(base_typed.selector), index);
                let typed = Typed { name: format!("{}.{field}", base_typed.name), selector: selector.clone(), ty };
                Ok((AttributeTarget::Field(Box::new(target), selector, index), typed))
            }
            Node::Element(base, key) => {
                let (target, base_typed) = self.attribute_target(base)?;
                let selected = self.key(&base_typed, base, "Element", key)?;
                let ty = node::element_type(&base_typed.ty).unwrap_or_else(|| base_typed.ty.clone());
                let of_name: Arc<str> = Arc::from(base.text());
                let place = AttributeTarget::Element(
                    Box::new(target),
                    base_typed.ty.clone(),
                    base_typed.selector.clone(),
                    selected.clone(),
                    Arc::clone(&of_name),
                );
                let selector =
                    Selector::Element(base_typed.ty, Box::new(base_typed.selector), Box::new(selected), of_name);
                Ok((place, Typed { selector, ty, name: node::element_text(&base.text(), key) }))
            }
            Node::Slice(base, from, to) => {
                let (target, _) = self.attribute_target(base)?;
                let Slice { of: typed, from: first, to: last } = self.ends(base, *from, *to, None)?;
                let place =
                    AttributeTarget::Slice(Box::new(target), typed.ty.clone(), typed.selector.clone(), first, last);
                let name = node::slice_text(&base.text(), *from, *to);
                Ok((place, Typed { name, ..typed }))
            }
            Node::Column(column) => {
                let typed = self.build(of, None)?;
                Ok((AttributeTarget::Column(Column::of(column)), typed))
            }
            _ => Err(CqlError::Server("writetime and ttl are of a column".into())),
        }
    }
}

impl Builder<'_, '_, '_> {
    fn field_of(&self, base: &Typed, of: &Node<'_, '_>, field: &ast::Ident<'_>) -> Result<(usize, CqlType), CqlError> {
        let CqlType::Udt(udt, _) = &base.ty else {
            return invalid(format!(
                "Invalid field selection: {} of type {} is not a user type",
                of.text(),
                type_name(&base.ty)
            ));
        };
        match self.context.fields.find(udt, field.as_str()) {
            Some(index) => Ok((index, udt.fields[index].1.clone())),
            None => invalid(format!("{} of type {} has no field {field}", of.text(), type_name(&base.ty))),
        }
    }
}
