//! Tuples, lists, vectors, sets, maps and values of user types of what is selected.
//!
//! Agrees with `BetweenParenthesesOrWithTuple`, `WithList`, `WithVector`, `WithSet` and
//! `WithMapOrUdt` of Cassandra's `Selectable`.

use std::sync::Arc;

use types::{CqlType, UserType};

use super::super::Selector;
use super::super::node::{Key, Node};
use super::{Builder, Typed, cannot_infer, invalid};
use crate::context::find_column;
use crate::error::CqlError;
use crate::scalar::type_name;
use crate::terms::Term;

impl<'t> Builder<'_, '_, 't> {
    /// The type of a composite: its own, or the one that is expected.
    fn type_of(&self, node: &Node<'t, '_>, expected: Option<&CqlType>) -> Result<CqlType, CqlError> {
        node.exact_type(self.lookup()).or_else(|| expected.cloned()).ok_or_else(|| cannot_infer(node))
    }

    pub(super) fn tuple(
        &mut self,
        node: &Node<'t, '_>,
        parts: &[Node<'t, '_>],
        expected: Option<&CqlType>,
    ) -> Result<Typed, CqlError> {
        let ty = self.type_of(node, expected)?;
        match (&ty, parts) {
            (CqlType::Tuple(types), _) => {
                let (selectors, names) = self.each_of(parts, |at| types.get(at))?;
                Ok(Typed { selector: Selector::Tuple(selectors), name: format!("({names})"), ty })
            }
            (_, [only]) => {
                let inner = self.build(only, expected)?;
                Ok(Typed { name: format!("({})", inner.name), ..inner })
            }
            _ => Err(cannot_infer(node)),
        }
    }

    /// The parts, all of one type, and their names with commas between.
    fn all_of(&mut self, parts: &[Node<'t, '_>], element: &CqlType) -> Result<(Vec<Selector>, String), CqlError> {
        self.each_of(parts, |_| Some(element))
    }

    /// The parts, each of the type that is expected at its place.
    fn each_of<'e>(
        &mut self,
        parts: &[Node<'t, '_>],
        expected: impl Fn(usize) -> Option<&'e CqlType>,
    ) -> Result<(Vec<Selector>, String), CqlError> {
        let mut selectors = Vec::with_capacity(parts.len());
        let mut names = Vec::with_capacity(parts.len());
        for (at, part) in parts.iter().enumerate() {
            let typed = self.build(part, expected(at))?;
            selectors.push(typed.selector);
            names.push(typed.name);
        }
        Ok((selectors, names.join(", ")))
    }

    pub(super) fn array(
        &mut self,
        node: &Node<'t, '_>,
        parts: &[Node<'t, '_>],
        expected: Option<&CqlType>,
    ) -> Result<Typed, CqlError> {
        if let Some(CqlType::Vector { element, dimension }) = expected {
            let (selectors, names) = self.all_of(parts, element)?;
            let ty = expected.cloned().unwrap_or(CqlType::Blob);
            if selectors.len() != *dimension as usize {
                return invalid(format!(
                    "Unable to create a vector selector of type {} from {} elements",
                    type_name(&ty),
                    selectors.len()
                ));
            }
            return Ok(Typed {
                selector: Selector::Vector((**element).clone(), selectors),
                ty,
                name: format!("[{names}]"),
            });
        }
        let ty = self.type_of(node, expected)?;
        let CqlType::List { element, .. } = &ty else { return Err(cannot_infer(node)) };
        let (selectors, names) = self.all_of(parts, element)?;
        Ok(Typed { selector: Selector::List(selectors), name: format!("[{names}]"), ty })
    }

    pub(super) fn set(
        &mut self,
        node: &Node<'t, '_>,
        parts: &[Node<'t, '_>],
        expected: Option<&CqlType>,
    ) -> Result<Typed, CqlError> {
        let ty = self.type_of(node, expected)?;
        match &ty {
            // an empty map is written like an empty set
            CqlType::Map { key, .. } if parts.is_empty() => {
                Ok(Typed { selector: Selector::Map((**key).clone(), Vec::new()), name: "{}".into(), ty })
            }
            CqlType::Set { element, .. } if **element == CqlType::Duration => {
                invalid(format!("Durations are not allowed inside sets: {}", type_name(&ty)))
            }
            CqlType::Set { element, .. } => {
                let (selectors, names) = self.all_of(parts, element)?;
                let selector = Selector::Set((**element).clone(), selectors);
                Ok(Typed { selector, name: format!("{{{names}}}"), ty })
            }
            _ => Err(cannot_infer(node)),
        }
    }

    pub(super) fn map_or_user_type(
        &mut self,
        node: &Node<'t, '_>,
        entries: &[(Key<'t, '_>, Node<'t, '_>)],
        expected: Option<&CqlType>,
    ) -> Result<Typed, CqlError> {
        match expected {
            Some(ty @ CqlType::Udt(udt, _)) => self.user_type(entries, ty, udt),
            Some(ty @ CqlType::Map { key, value, .. }) => {
                if **key == CqlType::Duration {
                    return invalid(format!("Durations are not allowed as map keys: {}", type_name(ty)));
                }
                let mut selectors = Vec::with_capacity(entries.len());
                let mut names = Vec::with_capacity(entries.len());
                for (k, v) in entries {
                    let k = match k {
                        Key::Name(name) => {
                            let column = find_column(self.table, name.as_str())?;
                            self.build(&Node::Column(column), Some(key))?
                        }
                        Key::Node(node) => self.build(node, Some(key))?,
                    };
                    let v = self.build(v, Some(value))?;
                    names.push(format!("{}: {}", k.name, v.name));
                    selectors.push((k.selector, v.selector));
                }
                let selector = Selector::Map((**key).clone(), selectors);
                Ok(Typed { selector, ty: ty.clone(), name: format!("{{{}}}", names.join(", ")) })
            }
            _ => Err(cannot_infer(node)),
        }
    }

    fn user_type(
        &mut self,
        entries: &[(Key<'t, '_>, Node<'t, '_>)],
        ty: &CqlType,
        udt: &Arc<UserType>,
    ) -> Result<Typed, CqlError> {
        self.context.leave_out(udt.fields.len().saturating_sub(entries.len()), size_of::<Selector>())?;
        let mut fields = vec![Selector::Term(Term::NULL); udt.fields.len()];
        let mut names = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let Key::Name(name) = key else {
                return invalid(format!("{} is not a valid field identifier of type {} ", key.text(), udt.name));
            };
            let Some(at) = self.context.fields.find(udt, name.as_str()) else {
                return invalid(format!("Unknown field '{name}' in value of user defined type {}", udt.name));
            };
            let typed = self.build(value, Some(&udt.fields[at].1))?;
            names.push(format!("{name}: {}", typed.name));
            fields[at] = typed.selector;
        }
        Ok(Typed { selector: Selector::Tuple(fields), ty: ty.clone(), name: format!("{{{}}}", names.join(", ")) })
    }
}
