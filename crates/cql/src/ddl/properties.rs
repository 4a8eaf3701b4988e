//! Properties as parsed, in the form in which crate `schema` checks them.
//!
//! Must agree with: Cassandra's `PropertyDefinitions` and the parser's `convertPropertyMap`: every
//! value is text.

use schema::{OptionValue, Options};

use super::{DdlContext, refused};
use crate::ast::{Property, PropertyValue};
use crate::error::CqlError;

/// The properties of a table, without those that a guardrail passes over.
pub(super) fn of_table(properties: &[Property<'_>], context: &DdlContext) -> Result<Options, CqlError> {
    let kept: Vec<Property<'_>> =
        properties.iter().filter(|property| !context.ignores(property.name.as_str())).cloned().collect();
    options(&kept)
}

pub(super) fn options(properties: &[Property<'_>]) -> Result<Options, CqlError> {
    let mut options = Options::default();
    for property in properties {
        let value = match &property.value {
            PropertyValue::Simple(text) => OptionValue::Text(text.to_string()),
            PropertyValue::Map(pairs) => OptionValue::Map(
                pairs.iter().map(|(key, value)| (key.text.to_string(), value.text.to_string())).collect(),
            ),
        };
        options.add(property.name.as_str(), value).map_err(refused)?;
    }
    Ok(options)
}
