//! The rules by which the rows of a read form groups.
//!
//! `GROUP BY k, floor(c, 1h)` makes groups by the values of a function of a clustering column. A
//! coordinator names the function; this crate knows no functions, so that the replica gives the
//! means of calling it ([`GroupFunction::values`]) before it counts.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::ReadError;

/// The rules by which rows form groups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Grouping {
    /// All rows are one group.
    Everything,
    /// Rows of one partition with equal leading clustering values, so many.
    ByPrefix(u32),
    /// Rows of one partition with equal leading clustering values, so many but one, and with equal
    /// values of a function of the last of them.
    ByFunction {
        /// Clustering columns, that of the function included: at least one.
        columns: u32,
        /// The function.
        function: GroupFunction,
    },
}

/// A function of a clustering column.
#[derive(Clone)]
pub struct GroupFunction {
    /// The name of the function and its arguments.
    pub selector: Arc<GroupSelector>,
    /// The values of the function; None: the function was not looked up yet, and nothing can be
    /// counted.
    pub values: Option<Arc<dyn GroupValues>>,
}

/// A function of a clustering column, as a coordinator names it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum GroupSelector {
    /// The clustering column itself.
    Column,
    /// A call of a function.
    Call {
        /// The keyspace of the function; `system` of those that are built in.
        keyspace: String,
        /// The name of the function.
        name: String,
        /// The types of all arguments, as CQL writes them.
        types: Vec<String>,
        /// For each argument its value where that is constant; None: the next of `others`.
        constants: Vec<Option<Bytes>>,
        /// The arguments that are not constant, in their order.
        others: Vec<GroupSelector>,
    },
}

/// The values of a function, and when two of them are the same.
pub trait GroupValues: Send + Sync {
    /// The value for a value of the clustering column; None: null.
    ///
    /// # Errors
    /// [`ReadError::Function`]: the function fails for the value.
    fn value(&self, of: Option<&Bytes>) -> Result<Option<Bytes>, ReadError>;

    /// Whether two values belong to one group.
    fn is_same(&self, one: Option<&Bytes>, other: Option<&Bytes>) -> bool;
}

impl GroupFunction {
    /// A function that has still to be looked up.
    pub fn new(selector: GroupSelector) -> Self {
        Self { selector: Arc::new(selector), values: None }
    }
}

/// Functions are the same where coordinators name them alike.
impl PartialEq for GroupFunction {
    fn eq(&self, other: &Self) -> bool {
        self.selector == other.selector
    }
}

impl Eq for GroupFunction {}

impl fmt::Debug for GroupFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.selector.fmt(f)
    }
}
