//! Guardrails of reads.
//!
//! Must agree with: what `SelectStatement`, `ClusteringColumnRestrictions` and
//! `PartitionKeySingleRestrictionSet` ask of `Guardrails`.

use types::Consistency;

use super::threshold::{Guard, Threshold};
use super::{Values, ensure};
use crate::error::CqlError;

const FILTERING: Guard = Guard {
    name: "allow_filtering",
    reason: "ALLOW FILTERING can potentially visit all the data in the table and have unpredictable performance.",
};

/// The guardrails of reads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueryGuards {
    /// page_size: rows
    pub page_size: Threshold,
    /// partition_keys_in_select
    pub partition_keys_in_select: Threshold,
    /// in_select_cartesian_product
    pub in_select_cartesian_product: Threshold,
    /// group_by_enabled
    pub group_by: bool,
    /// allow_filtering_enabled
    pub allow_filtering: bool,
    /// read_consistency_levels
    pub consistency: Values,
}

impl Default for QueryGuards {
    fn default() -> Self {
        let off = Threshold::default();
        Self {
            page_size: off,
            partition_keys_in_select: off,
            in_select_cartesian_product: off,
            group_by: true,
            allow_filtering: true,
            consistency: Values::default(),
        }
    }
}

/// The parts of a SELECT that are checked before its keys are known.
pub(crate) struct Query<'q> {
    pub keyspace: &'q str,
    pub consistency: Consistency,
    pub groups: bool,
    pub allows_filtering: bool,
}

impl QueryGuards {
    /// Checks everything that is known before the keys are.
    pub(crate) fn check(&self, query: &Query<'_>, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        if query.groups {
            ensure(self.group_by, Guard::new("group_by"), "GROUP BY functionality")?;
        }
        if query.allows_filtering && !::schema::system::is_system_keyspace(query.keyspace) {
            ensure(self.allow_filtering, FILTERING, "Querying with ALLOW FILTERING")?;
        }
        let level = [query.consistency.name()];
        self.consistency.check("read_consistency_levels", "read consistency levels", &level, warnings)
    }

    /// Checks the page size of a paged statement.
    pub(crate) fn check_page_size(&self, table: &str, size: u32, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        let message = |is_warning: bool, threshold: i64| match is_warning {
            true => format!("Query for table {table} with page size {size} exceeds warning threshold of {threshold}."),
            false => {
                format!("Aborting query for table {table}, page size {size} exceeds fail threshold of {threshold}.")
            }
        };
        self.page_size.at_most(Guard::new("page_size"), i64::from(size), &message, warnings)
    }

    /// Checks the number of partitions of a statement with IN on the partition key.
    pub(crate) fn check_keys(&self, table: &str, count: usize, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        self.check_product("partition key", count, warnings)?;
        let message = |is_warning: bool, threshold: i64| match is_warning {
            true => format!(
                "Query with partition keys in IN clause on table {table}, with number of partition keys {count} exceeds \
                 warning threshold of {threshold}."
            ),
            false => format!(
                "Aborting query with partition keys in IN clause on table {table}, number of partition keys {count} exceeds \
                 fail threshold of {threshold}."
            ),
        };
        let guard = Guard::new("partition_keys_in_select");
        self.partition_keys_in_select.at_most(guard, as_number(count), &message, warnings)
    }

    /// Checks the product of IN relations.
    pub(crate) fn check_product(&self, what: &str, size: usize, warnings: &mut Vec<String>) -> Result<(), CqlError> {
        let message = |is_warning: bool, threshold: i64| match is_warning {
            true => format!(
                "The cartesian product of the IN restrictions on {what} produces {size} values, this exceeds warning \
                 threshold of {threshold}."
            ),
            false => format!(
                "Aborting query because the cartesian product of the IN restrictions on {what} produces {size} values, this \
                 exceeds fail threshold of {threshold}."
            ),
        };
        let guard = Guard::new("in_select_cartesian_product");
        self.in_select_cartesian_product.at_most(guard, as_number(size), &message, warnings)
    }
}

fn as_number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
