//! The values of an INSERT JSON: columns taken from a JSON object.
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
    /// Which bound value.
    index: u16,
    name: String,
    ty: CqlType,
    /// The columns that the object may have.
    columns: Arc<[String]>,
    default_unset: bool,
}

/// The text of a JSON object, or the bound value that holds it, for a table of these columns.
pub(crate) struct JsonSource<'a> {
    /// The text, where the statement gives it.
    pub literal: Option<&'a str>,
    /// The bound value otherwise.
    pub index: u16,
    /// Names of the table's columns.
    pub columns: Arc<[String]>,
    /// Columns that are not named stay as they are.
    pub default_unset: bool,
}

impl JsonSource<'_> {
    /// The term for a column; None: it is left as it is.
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
    /// The column's value in the bound object.
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

/// A column's value in an object: the outer None says that it is not named, the inner that it is null.
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
