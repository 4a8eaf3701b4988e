//! Clients below protocol version 5 that may know old columns of a prepared statement.
//!
//! When a table is altered, its prepared statements end, and the first client that executes one is
//! answered UNPREPARED and prepares it again. The server then knows the statement, so that no other
//! client would be told: with old columns in hand, and told to leave the columns out, another
//! client would decode new rows by old columns, as with Cassandra (CASSANDRA-10786). Version 5 has
//! an id of the columns against that. Below it each connection that did not prepare such a
//! statement itself is answered UNPREPARED once. Some drivers renew their columns then (gocql);
//! others (Java) only read what an answer carries, so that answers of such a statement always carry
//! the columns.

use std::cell::RefCell;
use std::collections::HashMap;

use protocol::request::Execute;

use crate::prepared::{PlannedStatement, StatementId};

/// Statements remembered for a connection. At the limit all are forgotten, and the connection is
/// told again.
const STATEMENTS_MAX: usize = 1024;

/// The statements with changed columns that a connection has prepared, or was told to prepare, each
/// with the id of its columns at that time. Empty as long as no table is altered under its prepared
/// statements.
#[derive(Default)]
pub(super) struct KnownColumns(RefCell<HashMap<StatementId, [u8; 16]>>);

impl KnownColumns {
    /// The connection learns the columns, because its client prepares the statement or is asked to.
    pub(super) fn note(&self, statement: &PlannedStatement) {
        if !statement.columns_changed {
            return;
        }
        let mut known = self.0.borrow_mut();
        if known.len() >= STATEMENTS_MAX {
            known.clear();
        }
        known.insert(statement.prepared.id(), *statement.result.id());
    }

    /// The client of the connection may decode the answer by columns that the statement does not
    /// have any more.
    pub(super) fn may_be_outdated(&self, execute: &Execute, statement: &PlannedStatement) -> bool {
        let leaves_out_columns = execute.result_metadata_id.is_none() && execute.parameters.skip_metadata;
        statement.columns_changed
            && leaves_out_columns
            && self.0.borrow().get(&statement.prepared.id()) != Some(statement.result.id())
    }
}
