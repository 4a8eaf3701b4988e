//! What can be wrong with a value. The texts are Cassandra's (`MarshalException`): clients see them, some look for them.

use std::borrow::Cow;
use std::fmt;

/// Why bytes, a text or a number are no value of a type.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TypeError {
    /// Bytes that are no value of the type.
    Bytes(Cow<'static, str>),
    /// A text that is no value of the type.
    Text(String),
    /// JSON that is no value of the type.
    Json(String),
    /// A calculation without result: division by zero, a number that the result type does not hold.
    Arithmetic(Cow<'static, str>),
}

impl TypeError {
    /// What Cassandra says.
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
