//! JSON objects that are bound to a request, once they were parsed.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::Bytes;

use crate::error::CqlError;

/// The value of a column in an object. The outer None: the object does not name the column; the
/// inner None: null.
pub(crate) type JsonColumnValue = Option<Option<Bytes>>;

/// The values of all columns of the table in an object, in the order of the columns.
pub(crate) type JsonColumnValues = Vec<JsonColumnValue>;

/// The bound JSON object that was parsed last, kept while terms are evaluated with the same values.
#[derive(Default)]
pub(crate) struct JsonObjects(RefCell<Option<(u16, Rc<JsonColumnValues>)>>);

impl JsonObjects {
    /// The values of the object that is bound to a marker, which `parse` reads the first time.
    ///
    /// # Errors
    /// That of `parse`.
    pub fn values(
        &self,
        index: u16,
        parse: impl FnOnce() -> Result<JsonColumnValues, CqlError>,
    ) -> Result<Rc<JsonColumnValues>, CqlError> {
        let mut last = self.0.borrow_mut();
        if let Some((_, values)) = last.as_ref().filter(|(of, _)| *of == index) {
            return Ok(Rc::clone(values));
        }
        let values = Rc::new(parse()?);
        *last = Some((index, Rc::clone(&values)));
        Ok(values)
    }
}
