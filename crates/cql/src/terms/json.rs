//! INSERT JSON: the values of columns, taken from a JSON object.
//!
//! Agrees with `org.apache.cassandra.cql3.Json`, its messages included.

use std::sync::Arc;

use bytes::Bytes;
use schema::ColumnMetadata;
use types::CqlType;
use types::json::{self, Json};

use super::Term;
use crate::context::Bindings;
use crate::error::CqlError;
use crate::values::BoundValue;

/// A column of a bound JSON object.
#[derive(Clone, Debug)]
pub(crate) struct JsonColumn {
    /// Index of the bind marker.
    index: u16,
    name: String,
    ty: CqlType,
    /// The columns that the object may name.
    columns: Arc<[String]>,
    default_unset: bool,
}

/// The source of the values of an INSERT JSON: the text of the object, or the bind marker for it.
pub(crate) struct JsonSource<'a> {
    /// The object in the text of the statement.
    pub literal: Option<&'a str>,
    /// A bind marker for the object.
    pub index: u16,
    /// Names of the table's columns.
    pub columns: Arc<[String]>,
    /// DEFAULT UNSET: columns that the object does not name stay as they are.
    pub default_unset: bool,
}

impl JsonSource<'_> {
    /// The term for the value of a column; None: the column stays as it is.
    pub fn term(&self, column: &ColumnMetadata) -> Result<Option<Term>, CqlError> {
        let Some(text) = self.literal else {
            return Ok(Some(Term::Json(Box::new(JsonColumn {
                index: self.index,
                name: column.name.clone(),
                ty: column.ty.clone(),
                columns: Arc::clone(&self.columns),
                default_unset: self.default_unset,
            }))));
        };
        match value(text, &self.columns, &column.name, &column.ty)? {
            Some(value) => Ok(Some(Term::Constant(value))),
            None if self.default_unset => Ok(None),
            None => Ok(Some(Term::NULL)),
        }
    }
}

impl JsonColumn {
    /// Evaluates the value of the column in the bound object.
    pub fn eval(&self, bindings: &Bindings<'_>) -> Result<BoundValue, CqlError> {
        let BoundValue::Bytes(bytes) = bindings.value(self.index)? else {
            return Err(CqlError::invalid("Got null for INSERT JSON values"));
        };
        let text = std::str::from_utf8(bytes).map_err(|_| CqlError::invalid("String didn't validate."))?;
        Ok(match value(text, &self.columns, &self.name, &self.ty)? {
            Some(Some(value)) => BoundValue::Bytes(value),
            None if self.default_unset => BoundValue::Unset,
            Some(None) | None => BoundValue::Null,
        })
    }
}

/// The value of a column in an object. The outer None: the object does not name the column; the
/// inner None: null.
fn value(text: &str, columns: &[String], name: &str, ty: &CqlType) -> Result<Option<Option<Bytes>>, CqlError> {
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
    let mut found = None;
    for (member, value) in &members {
        let member = json::fold_case(member);
        if member == name {
            found = Some(value);
        } else if !columns.contains(&member) {
            return Err(CqlError::invalid(format!("JSON values map contains unrecognized column: {member}")));
        }
    }
    match found {
        None => Ok(None),
        Some(Json::Null) => Ok(Some(None)),
        Some(value) => match json::from_json(ty, value) {
            Ok(bytes) => Ok(Some(Some(bytes.into()))),
            Err(error) => Err(CqlError::invalid(format!("Error decoding JSON value for {name}: {}", error.message()))),
        },
    }
}
