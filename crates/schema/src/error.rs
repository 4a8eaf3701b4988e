//! Errors of schemas: a request that is wrong, or stored rows that cannot be read.
//!
//! [`SchemaError::Syntax`] and [`SchemaError::Config`] carry the texts that Cassandra gives to
//! clients in its `SyntaxException` and `ConfigurationException`; `server` maps them to protocol
//! error codes.

use std::fmt;

/// An error of a schema.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SchemaError {
    /// The form of the statement is wrong: an unknown property, a wrong kind of value (protocol
    /// code Syntax_error).
    Syntax(String),
    /// The request makes no sense for this schema (protocol code Invalid).
    Invalid(String),
    /// A value out of its limits, or an unknown class (protocol code Config_error).
    Config(String),
    /// Rows of the schema tables that cannot be read.
    Corrupt(String),
}

impl SchemaError {
    /// The text for the client.
    pub fn message(&self) -> &str {
        match self {
            Self::Syntax(message) | Self::Invalid(message) | Self::Config(message) | Self::Corrupt(message) => message,
        }
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for SchemaError {}

/// The result type of this crate.
pub(crate) type Result<T> = std::result::Result<T, SchemaError>;

/// Refuses with Cassandra's `ConfigurationException`.
pub(crate) fn config<T>(message: impl Into<String>) -> Result<T> {
    Err(SchemaError::Config(message.into()))
}

/// Refuses with Cassandra's `SyntaxException`.
pub(crate) fn syntax<T>(message: impl Into<String>) -> Result<T> {
    Err(SchemaError::Syntax(message.into()))
}
