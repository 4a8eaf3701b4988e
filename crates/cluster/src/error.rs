//! Why a node cannot start.

use std::fmt;

use storage::StorageError;

/// Why a node cannot start.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NodeError {
    /// The engine could not be opened.
    Storage(StorageError),
    /// The data directory belongs to a node of another cluster, or of other settings.
    Mismatch(String),
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Storage(error) => error.fmt(f),
            Self::Mismatch(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for NodeError {}

impl From<StorageError> for NodeError {
    fn from(error: StorageError) -> Self {
        Self::Storage(error)
    }
}

impl From<rows::ReadError> for NodeError {
    fn from(error: rows::ReadError) -> Self {
        Self::Storage(error.into())
    }
}
