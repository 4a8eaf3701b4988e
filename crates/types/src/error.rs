//! Errors of values. The texts are Cassandra's (`MarshalException`), because clients see them and
//! some look for them.

use std::borrow::Cow;
use std::fmt;

/// Why bytes, a text or a number are not a value of a type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TypeError {
    /// Bytes that are not a value of the type.
    Bytes(Cow<'static, str>),
    /// A text that is not a value of the type.
    Text(String),
    /// JSON that is not a value of the type.
    Json(String),
    /// A calculation without a result: division by zero, or a number that the result type cannot
    /// hold.
    Arithmetic(Cow<'static, str>),
}

impl TypeError {
    /// The text as Cassandra words it.
    pub fn message(&self) -> &str {
        match self {
            Self::Bytes(message) | Self::Arithmetic(message) => message,
            Self::Text(message) | Self::Json(message) => message,
        }
    }
}

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for TypeError {}
