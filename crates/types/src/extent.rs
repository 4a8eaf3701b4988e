//! How large and how deep a type is where every user type in it stands in full.
//!
//! A schema names user types, so forty of them with two fields each, every one made of the one
//! before it, take a few hundred bytes there. Headers of SSTables and answers to clients write such
//! a type out: its length doubles with each of the forty. Code that walks a type, or compares two
//! of them, takes as many steps. A type is therefore measured before it comes into a schema: where
//! a client creates or alters it, and where it is read from another node or from disk. Cassandra
//! has no bounds here; it runs out of memory, or out of its stack.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::{CqlType, CustomType, UserType};

/// The deepest nesting of the types of a table. The texts of types that nest as deep are read by
/// `cql_name` and `marshal`: otherwise a node could not start with the schema that it has stored,
/// or not read its own files.
pub const DEPTH_MAX: usize = 32;

/// The most bytes that the types of a table's columns, dropped ones included, take together where
/// user types are written out. Each SSTable of the table has about as much in its header.
pub const SIZE_MAX: usize = 16 << 20;

/// As [`SIZE_MAX`], of types that are read from disk or from another node. Cassandra has taken them
/// from a client, and a table that is left out for them is gone with its data.
pub const STORED_SIZE_MAX: usize = 256 << 20;

/// Bytes of the name of a class of Cassandra and the signs around it, roughly.
const CLASS_SIZE: usize = 48;

/// The size and the depth of types.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extent {
    /// Bytes of the class names with user types written out, roughly.
    pub size: usize,
    /// Levels of types inside of types; 1: a type without others inside.
    pub depth: usize,
}

impl Extent {
    /// The extent of these types and others beside them.
    pub fn and(self, other: Self) -> Self {
        Self { size: self.size.saturating_add(other.size), depth: self.depth.max(other.depth) }
    }

    /// Refuses types of a client that are too large or too deep.
    pub fn check(self) -> Result<(), Oversize> {
        self.check_within(SIZE_MAX)
    }

    /// Refuses types that are read from disk or from another node where they are too large or too
    /// deep.
    pub fn check_stored(self) -> Result<(), Oversize> {
        self.check_within(STORED_SIZE_MAX)
    }

    fn check_within(self, size_max: usize) -> Result<(), Oversize> {
        match self {
            Self { depth, .. } if depth > DEPTH_MAX => Err(Oversize::Depth),
            Self { size, .. } if size > size_max => Err(Oversize::Size(size_max)),
            _ => Ok(()),
        }
    }
}

/// Why types are refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Oversize {
    /// The types nest deeper than [`DEPTH_MAX`].
    Depth,
    /// The types together are larger than this many bytes.
    Size(usize),
}

impl fmt::Display for Oversize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Depth => write!(f, "Types may nest {DEPTH_MAX} levels deep at most, user types included"),
            Self::Size(max) => write!(
                f,
                "Types may take {} MiB at most where the user types in them are written out, as files and answers have \
                 them",
                max >> 20
            ),
        }
    }
}

impl std::error::Error for Oversize {}

/// Measures types. A user type is measured once, however often it stands in others.
#[derive(Default)]
pub struct Extents {
    /// User types that were measured, by their places in memory. Each is kept, so that none of
    /// these places is given to another one.
    known: BTreeMap<usize, (Arc<UserType>, Extent)>,
}

impl Extents {
    /// The extent of a type.
    pub fn of(&mut self, ty: &CqlType) -> Extent {
        let inside = match ty {
            CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
                self.of(element)
            }
            CqlType::Map { key, value, .. } => self.of(key).and(self.of(value)),
            CqlType::Tuple(types) => self.of_all(types.iter()),
            CqlType::Udt(udt, _) => self.of_fields(udt),
            CqlType::Custom(custom) => match custom.as_ref() {
                CustomType::Composite(types) => self.of_all(types),
                CustomType::DynamicComposite(aliases) => self.of_all(aliases.iter().map(|(_, ty)| ty)),
                CustomType::Reversed(ty) | CustomType::PartitionerDefinedOrder(Some(ty)) => self.of(ty),
                CustomType::Unknown(class) => Extent { size: class.len(), depth: 0 },
                CustomType::LexicalUuid | CustomType::LegacyDate | CustomType::PartitionerDefinedOrder(None) => {
                    Extent::default()
                }
            },
            _ => Extent::default(),
        };
        around(inside)
    }

    /// The extent of several types.
    pub fn of_all<'t>(&mut self, types: impl IntoIterator<Item = &'t CqlType>) -> Extent {
        types.into_iter().fold(Extent::default(), |sum, ty| sum.and(self.of(ty)))
    }

    /// The extent of a user type.
    pub fn of_user_type(&mut self, udt: &Arc<UserType>) -> Extent {
        around(self.of_fields(udt))
    }

    fn of_fields(&mut self, udt: &Arc<UserType>) -> Extent {
        let place = Arc::as_ptr(udt).addr();
        if let Some((_, extent)) = self.known.get(&place) {
            return *extent;
        }
        // names are written as hex digits
        let of_name = |name: &str| Extent { size: 2 * name.len(), depth: 0 };
        let mut extent = of_name(&udt.name).and(of_name(&udt.keyspace));
        for (name, ty) in &udt.fields {
            extent = extent.and(of_name(name)).and(self.of(ty));
        }
        self.known.insert(place, (Arc::clone(udt), extent));
        extent
    }
}

/// The extent of a type with these inside.
fn around(inside: Extent) -> Extent {
    Extent { size: inside.size.saturating_add(CLASS_SIZE), depth: inside.depth + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cql_name, marshal};

    fn udt(name: &str, fields: Vec<CqlType>) -> Arc<UserType> {
        let fields = fields.into_iter().enumerate().map(|(at, ty)| (format!("f{at}"), ty)).collect();
        Arc::new(UserType { keyspace: "ks".to_owned(), name: name.to_owned(), fields })
    }

    /// Each type has two fields of the one before it. To walk the last of them would take for ever.
    #[test]
    fn types_that_double_are_measured_without_a_walk() {
        let mut last = udt("t0", vec![CqlType::Int, CqlType::Int]);
        let mut extents = Extents::default();
        let refused = (1..100).find_map(|number| {
            let before = CqlType::Udt(Arc::clone(&last), true);
            last = udt(&format!("t{number}"), vec![before.clone(), before]);
            extents.of_user_type(&last).check().err().map(|why| (number, why))
        });
        assert_eq!(refused, Some((17, Oversize::Size(SIZE_MAX))));
        let anew = Extents::default().of_user_type(&last);
        assert_eq!((anew.check().is_ok(), anew.check_stored().is_ok()), (false, true));
    }

    /// The deepest types that are not refused come back from the texts that schema and files have.
    #[test]
    fn types_of_the_greatest_depth_are_read_again() {
        let list = |element: CqlType| CqlType::List { element: Arc::new(element), frozen: true };
        let vector = |element: CqlType| CqlType::Vector { element: Arc::new(element), dimension: 2 };
        let tuple = |element: CqlType| CqlType::Tuple(vec![element].into());
        let user = |element: CqlType| CqlType::Udt(udt("u", vec![element]), true);
        let forms: [(&dyn Fn(CqlType) -> CqlType, bool); 4] =
            [(&list, true), (&vector, true), (&tuple, true), (&user, false)];
        for (form, is_text) in forms {
            let deepest = (1..DEPTH_MAX).fold(CqlType::Int, |inner, _| form(inner));
            assert_eq!(Extents::default().of(&deepest).check(), Ok(()));
            assert_eq!(Extents::default().of(&form(deepest.clone())).check(), Err(Oversize::Depth));
            let key = CqlType::Custom(Arc::new(CustomType::Composite(vec![CqlType::Int, deepest.clone()])));
            assert_eq!(marshal::parse(&marshal::print(&deepest, true)), Ok((deepest.clone(), true)));
            assert_eq!(marshal::parse(&marshal::print(&key, false)), Ok((key, false)));
            if is_text {
                assert_eq!(cql_name::parse(&cql_name::print(&deepest), &|_| None), Some(deepest.clone()));
            }
            let expanded = cql_name::expand_user_types(&deepest);
            assert_eq!(cql_name::parse(&cql_name::print(&expanded), &|_| None), Some(expanded));
        }
    }
}
