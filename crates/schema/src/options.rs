//! The property list of a CREATE or ALTER statement (`WITH a = 1 AND b = {…}`), before its
//! properties are interpreted.
//!
//! Agrees with `org.apache.cassandra.cql3.statements.PropertyDefinitions`; as there, every simple
//! value is a text.

use std::collections::BTreeMap;

use crate::error::{Result, syntax};

/// The value of a property.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OptionValue {
    /// A literal, without quotes.
    Text(String),
    /// A map literal.
    Map(BTreeMap<String, String>),
}

/// The properties of one statement, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options(BTreeMap<String, OptionValue>);

impl Options {
    /// Adds a property. A name that is given twice is an error.
    pub fn add(&mut self, name: &str, value: OptionValue) -> Result<()> {
        match self.0.insert(name.to_owned(), value) {
            None => Ok(()),
            Some(_) => syntax(format!("Multiple definitions for property '{name}'")),
        }
    }

    /// Whether there are no properties.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names, ascending.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Refuses names that are not in `known`.
    pub fn check_names(&self, known: &[&str]) -> Result<()> {
        match self.names().find(|name| !known.contains(name)) {
            None => Ok(()),
            Some(name) => syntax(format!("Unknown property '{name}'")),
        }
    }

    /// The text of a property; None: it is not given.
    pub fn text(&self, name: &str) -> Result<Option<&str>> {
        match self.0.get(name) {
            None => Ok(None),
            Some(OptionValue::Text(text)) => Ok(Some(text)),
            Some(OptionValue::Map(_)) => syntax(format!("Invalid value for property '{name}'. It should be a string")),
        }
    }

    /// The map of a property; None: it is not given.
    pub fn map(&self, name: &str) -> Result<Option<&BTreeMap<String, String>>> {
        match self.0.get(name) {
            None => Ok(None),
            Some(OptionValue::Map(map)) => Ok(Some(map)),
            Some(OptionValue::Text(_)) => syntax(format!("Invalid value for property '{name}'. It should be a map.")),
        }
    }

    /// The truth value of a property, `1|true|yes` or `0|false|no`; None: it is not given.
    pub fn boolean(&self, name: &str) -> Result<Option<bool>> {
        let Some(value) = self.text(name)? else {
            return Ok(None);
        };
        match value.to_lowercase().as_str() {
            "1" | "true" | "yes" => Ok(Some(true)),
            "0" | "false" | "no" => Ok(Some(false)),
            _ => syntax(format!(
                "Invalid boolean value {value} for '{name}'. Positive values can be '1', 'true' or 'yes'. \
                 Negative values can be '0', 'false' or 'no'."
            )),
        }
    }

    /// The int of a property; None: it is not given.
    pub fn int(&self, name: &str) -> Result<Option<i32>> {
        let Some(value) = self.text(name)? else {
            return Ok(None);
        };
        match value.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => syntax(format!("Invalid integer value {value} for '{name}'")),
        }
    }

    /// The double of a property; None: it is not given.
    pub fn double(&self, name: &str) -> Result<Option<f64>> {
        let Some(value) = self.text(name)? else {
            return Ok(None);
        };
        match value.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => syntax(format!("Invalid double value {value} for '{name}'")),
        }
    }
}

impl FromIterator<(String, OptionValue)> for Options {
    fn from_iter<I: IntoIterator<Item = (String, OptionValue)>>(pairs: I) -> Self {
        Self(pairs.into_iter().collect())
    }
}
