//! The functions by which coordinators group rows (`GROUP BY k, floor(c, 1h)`), as a replica calls
//! them.
//!
//! A coordinator of Cassandra names such a function in the limits of its reads, and relies on
//! replicas that count groups by it. This crate knows no functions of CQL: the program gives the
//! means of looking them up. A coordinator of Helenus counts groups itself, and names none.

use internode::payload::read_request::ReadRequest;
use rows::ReadError;
use rows::limits::{Counting, Grouping};

use crate::node::{LookUpGroups, Node};

impl Node {
    /// Says how functions of GROUP BY are looked up. Called once.
    pub fn set_group_functions(&self, look_up: Box<LookUpGroups>) {
        assert!(self.group_functions.set(look_up).is_ok(), "a node has one way of looking functions up");
    }

    /// Looks up the function by which groups of a read are counted, if there is one.
    ///
    /// # Errors
    /// [`ReadError::Function`]: the function is not known here.
    pub(crate) fn look_up_groups(&self, request: &mut ReadRequest) -> Result<(), ReadError> {
        let Counting::Groups { grouping: Grouping::ByFunction { columns, function }, .. } =
            &mut request.limits.counting
        else {
            return Ok(());
        };
        let found = match self.group_functions.get() {
            Some(look_up) => look_up(&self.schema(), &request.table, *columns, &function.selector),
            None => Err("this node looks up no functions".to_owned()),
        };
        let values = found.map_err(|why| ReadError::Function { why: format!("GROUP BY of a function: {why}") })?;
        function.values = Some(values);
        Ok(())
    }
}
