//! Which changes of the schema end a prepared statement, so that clients have to prepare it again.
//!
//! Agrees with `QueryProcessor.StatementInvalidatingListener` and
//! `TableMetadata.changeAffectsPreparedStatements`: a statement ends when a table that it reads or
//! changes is dropped, or altered in its columns, masks, indexes, `default_time_to_live` or
//! `gc_grace_seconds`. Other options do not end it. Statements without a table and TRUNCATE never
//! end.

use schema::{Schema, TableMetadata};

use super::{Plan, PreparedStatement};

impl PreparedStatement {
    /// A table of the statement was dropped or altered since the statement was prepared: clients
    /// that hold its id may know other columns than it has now.
    pub fn is_outdated(&self, now: &Schema) -> bool {
        self.plan.is_outdated(now) || self.functions.iter().any(|function| !function.is_current(now))
    }
}

impl Plan {
    fn is_outdated(&self, now: &Schema) -> bool {
        let is_altered = |table: &TableMetadata| match now.table(&table.keyspace, &table.name) {
            Some(current) => affects_statements(table, current),
            None => true,
        };
        match self {
            Self::Select(plan) => is_altered(&plan.table),
            Self::Modification(plan) => is_altered(&plan.table),
            Self::Batch(plan) => plan.statements.iter().any(|plan| is_altered(&plan.table)),
            Self::Explain(plan) => plan.plan.is_outdated(now),
            Self::Truncate(_) | Self::Use(_) | Self::Other => false,
        }
    }
}

/// A statement prepared for one form of a table may not be executed on the other. Dropped columns
/// are compared too: a column that was added and dropped again between two executions has ended the
/// statement, as each ALTER for itself would have.
fn affects_statements(before: &TableMetadata, after: &TableMetadata) -> bool {
    if std::ptr::eq(before, after) {
        return false;
    }
    before.id != after.id
        || before.partition_key != after.partition_key
        || before.clustering != after.clustering
        || before.statics != after.statics
        || before.regulars != after.regulars
        || before.dropped != after.dropped
        || before.masks != after.masks
        || before.indexes != after.indexes
        || before.flags != after.flags
        || before.params.default_time_to_live != after.params.default_time_to_live
        || before.params.gc_grace_seconds != after.params.gc_grace_seconds
}
