//! What can be wrong with a schema: asked wrongly, or stored wrongly.
//!
//! [`SchemaError::Syntax`] and [`SchemaError::Config`] carry the texts that Cassandra gives to clients in its
//! `SyntaxException` and `ConfigurationException`; `server` maps them to protocol error codes.

use std::fmt;

/// What is wrong.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SchemaError {
    /// The statement's form: unknown property, wrong kind of value (protocol code Syntax_error).
    Syntax(String),
    /// A request that makes no sense here (protocol code Invalid).
    Invalid(String),
    /// A value out of its limits or an unknown class (protocol code Config_error).
    Config(String),
    /// The schema tables hold something that cannot be understood.
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

/// Shorthand of the crate.
pub(crate) type Result<T> = std::result::Result<T, SchemaError>;

/// A refusal with Cassandra's `ConfigurationException`.
pub(crate) fn config<T>(message: impl Into<String>) -> Result<T> {
    Err(SchemaError::Config(message.into()))
}

/// A refusal with Cassandra's `SyntaxException`.
pub(crate) fn syntax<T>(message: impl Into<String>) -> Result<T> {
    Err(SchemaError::Syntax(message.into()))
}
