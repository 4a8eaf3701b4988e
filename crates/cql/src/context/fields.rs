//! The places of the fields of user types, remembered while a statement is prepared.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use types::UserType;

/// Look-ups of a statement that compare the names of a type's fields one after the other. Most
/// statements have fewer. A statement may have millions of them, and a type 32,767 fields.
const COMPARED_MAX: usize = 64;

/// The places of fields by their names.
#[derive(Default)]
pub(crate) struct FieldCache {
    inner: RefCell<Known>,
}

#[derive(Default)]
struct Known {
    looked_up: usize,
    /// By the place of a type in memory; each type is kept, so that none of these places is given
    /// to another one.
    places: BTreeMap<usize, (Arc<UserType>, BTreeMap<String, usize>)>,
}

impl FieldCache {
    /// The place of a field in a user type.
    pub fn find(&self, udt: &Arc<UserType>, name: &str) -> Option<usize> {
        let mut known = self.inner.borrow_mut();
        known.looked_up += 1;
        if known.looked_up <= COMPARED_MAX {
            return udt.fields.iter().position(|(field, _)| field == name);
        }
        let places = || udt.fields.iter().enumerate().map(|(at, (field, _))| (field.clone(), at)).collect();
        let place = Arc::as_ptr(udt).addr();
        let (_, places) = known.places.entry(place).or_insert_with(|| (Arc::clone(udt), places()));
        places.get(name).copied()
    }
}
