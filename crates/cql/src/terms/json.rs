//! INSERT JSON: the values of columns, taken from a JSON object. The text is parsed once, however
//! many columns the table has: a literal when the statement is prepared, a bound one at the first
//! column of a request.
//!
//! Agrees with `org.apache.cassandra.cql3.Json`, its messages included.

use std::sync::Arc;

use bytes::Bytes;
use schema::ColumnMetadata;
use types::CqlType;
use types::json::{self, Json};

use super::Term;
use crate::ast::JsonValue;
use crate::context::{Bindings, JsonColumnValue, JsonColumnValues, PrepareContext, Receiver, take_made};
use crate::error::CqlError;
use crate::values::BoundValue;

/// The columns that an object may name.
#[derive(Debug)]
struct JsonColumns {
    columns: Vec<(String, CqlType)>,
    /// DEFAULT UNSET: columns that the object does not name stay as they are.
    default_unset: bool,
}

/// A column of a bound JSON object.
#[derive(Clone, Debug)]
pub(crate) struct JsonColumn {
    /// Index of the bind marker.
    index: u16,
    /// The position of the column.
    at: usize,
    columns: Arc<JsonColumns>,
}

/// The source of the values of an INSERT JSON.
pub(crate) struct JsonSource {
    columns: Arc<JsonColumns>,
    object: Object,
}

enum Object {
    /// The object stands in the text of the statement.
    Literal(JsonColumnValues),
    /// The index of the bind marker for the object.
    Bound(u16),
}

impl JsonSource {
    /// The source for the columns of a table.
    pub fn prepare(
        context: &mut PrepareContext<'_>,
        value: &JsonValue<'_>,
        columns: &[&ColumnMetadata],
        default_unset: bool,
    ) -> Result<Self, CqlError> {
        let columns = columns.iter().map(|column| (column.name.clone(), column.ty.clone())).collect();
        let columns = JsonColumns { columns, default_unset };
        let object = match value {
            JsonValue::Literal(text) => Object::Literal(columns.values(text, &mut context.made_room)?),
            JsonValue::Bind(marker) => Object::Bound(context.bind(marker, &Receiver::new("[json]", CqlType::Text))),
        };
        Ok(Self { columns: Arc::new(columns), object })
    }

    /// The term for the value of the column at a position; None: the column stays as it is.
    pub fn term(&self, at: usize) -> Option<Term> {
        let values = match &self.object {
            Object::Literal(values) => values,
            Object::Bound(index) => {
                let column = JsonColumn { index: *index, at, columns: Arc::clone(&self.columns) };
                return Some(Term::Json(Box::new(column)));
            }
        };
        match values[at].clone() {
            Some(value) => Some(Term::Constant(value)),
            None if self.columns.default_unset => None,
            None => Some(Term::NULL),
        }
    }
}

impl JsonColumn {
    /// Evaluates the value of the column in the bound object.
    pub fn eval(&self, bindings: &Bindings<'_>) -> Result<BoundValue, CqlError> {
        let bytes: &[u8] = match bindings.value(self.index)? {
            BoundValue::Bytes(bytes) => bytes.as_ref(),
            // as in Cassandra, whose value that is not set has no bytes
            BoundValue::Unset => &[],
            BoundValue::Null => return Err(CqlError::invalid("Got null for INSERT JSON values")),
        };
        let values = bindings.made.object(self.index, |room| {
            let text = std::str::from_utf8(bytes).map_err(|_| CqlError::invalid("String didn't validate."))?;
            self.columns.values(text, room)
        })?;
        Ok(match values[self.at].clone() {
            Some(Some(value)) => BoundValue::Bytes(value),
            None if self.columns.default_unset => BoundValue::Unset,
            Some(None) | None => BoundValue::Null,
        })
    }
}

impl JsonColumns {
    /// Parses an object. As in Cassandra, a value that is none of its column is told of before
    /// names that are no columns. `room`: bytes that the values may have, from which those that
    /// they have are taken.
    fn values(&self, text: &str, room: &mut usize) -> Result<JsonColumnValues, CqlError> {
        let members = match json::parse(text) {
            Ok(Json::Object(members)) => members,
            Ok(Json::Null) => return Err(CqlError::invalid("Got null for INSERT JSON values")),
            Ok(_) => {
                return Err(CqlError::invalid(format!(
                    "Could not decode JSON string as a map: it is no object. (String was: {text})"
                )));
            }
            Err(error) => {
                return Err(CqlError::invalid(format!(
                    "Could not decode JSON string as a map: {}. (String was: {text})",
                    error.message()
                )));
            }
        };
        let mut members = json::members_by_name(&members);
        let mut values = Vec::with_capacity(self.columns.len());
        for (name, ty) in &self.columns {
            let value = given(name, ty, members.remove(name).map(|(_, value)| value))?;
            let size = value.as_ref().and_then(Option::as_ref).map_or(0, Bytes::len);
            take_made(room, size)?;
            values.push(value);
        }
        match members.into_iter().min_by_key(|(_, (place, _))| *place) {
            Some((name, _)) => Err(CqlError::invalid(format!("JSON values map contains unrecognized column: {name}"))),
            None => Ok(values),
        }
    }
}

/// The value of a column.
fn given(name: &str, ty: &CqlType, value: Option<&Json>) -> Result<JsonColumnValue, CqlError> {
    match value {
        None => Ok(None),
        Some(Json::Null) => Ok(Some(None)),
        Some(value) => match json::from_json(ty, value) {
            Ok(bytes) => Ok(Some(Some(bytes.into()))),
            Err(error) => Err(CqlError::invalid(format!("Error decoding JSON value for {name}: {}", error.message()))),
        },
    }
}
