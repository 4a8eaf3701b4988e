//! The values that a request makes of others: with JSON, calls of functions and literals of bound
//! values. A request of a few kilobytes can make gigabytes of them, which are held until it is
//! executed.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::Bytes;

use crate::error::CqlError;
use crate::values::BoundValue;

/// The most bytes that the values have together which a request makes: those that are made when
/// its text is prepared have so many, and those that are made when it is executed as many again.
/// All statements of a batch count together. The value of a user type has four bytes for each
/// field that is left out, and a type may have tens of thousands of fields.
pub(crate) const MADE_SIZE_MAX: usize = if cfg!(test) { 4 << 20 } else { 64 << 20 };

/// Takes the bytes of a value that was made from those that others may still have,
/// [`MADE_SIZE_MAX`] at first.
pub(crate) fn take_made(room: &mut usize, size: usize) -> Result<(), CqlError> {
    match room.checked_sub(size) {
        Some(left) => {
            *room = left;
            Ok(())
        }
        None => {
            let most = MADE_SIZE_MAX >> 20;
            Err(CqlError::invalid(format!(
                "The values that the request makes with JSON, functions and literals would be larger than {most} MiB \
                 together: it must be divided into smaller requests"
            )))
        }
    }
}

/// The value of a column in an object. The outer None: the object does not name the column; the
/// inner None: null.
pub(crate) type JsonColumnValue = Option<Option<Bytes>>;

/// The values of all columns of the table in an object, in the order of the columns.
pub(crate) type JsonColumnValues = Vec<JsonColumnValue>;

/// The values that the terms of a request have made so far of those that are bound to it.
pub(crate) struct MadeValues {
    /// The bound JSON object that was parsed last, with the index of its marker, kept while terms
    /// are evaluated with the same values.
    object: RefCell<Option<(u16, Rc<JsonColumnValues>)>>,
    /// Bytes that further values may have.
    room: Cell<usize>,
}

impl Default for MadeValues {
    fn default() -> Self {
        Self { object: RefCell::new(None), room: Cell::new(MADE_SIZE_MAX) }
    }
}

impl MadeValues {
    /// The terms that follow are those of another statement of the batch, which has other values.
    pub fn begin_statement(&self) {
        self.object.replace(None);
    }

    /// Counts a value that was made, or refuses it.
    pub fn counted(&self, value: BoundValue) -> Result<BoundValue, CqlError> {
        if let BoundValue::Bytes(bytes) = &value {
            let mut room = self.room.get();
            take_made(&mut room, bytes.len())?;
            self.room.set(room);
        }
        Ok(value)
    }

    /// The values of the object that is bound to a marker, which `parse` reads the first time. Its
    /// argument is the bytes that the values may have, from which those that they have are taken.
    ///
    /// # Errors
    /// That of `parse`.
    pub fn object(
        &self,
        index: u16,
        parse: impl FnOnce(&mut usize) -> Result<JsonColumnValues, CqlError>,
    ) -> Result<Rc<JsonColumnValues>, CqlError> {
        let mut last = self.object.borrow_mut();
        if let Some((_, values)) = last.as_ref().filter(|(of, _)| *of == index) {
            return Ok(Rc::clone(values));
        }
        let mut room = self.room.get();
        let values = Rc::new(parse(&mut room)?);
        self.room.set(room);
        *last = Some((index, Rc::clone(&values)));
        Ok(values)
    }
}
