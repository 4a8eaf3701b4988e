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

const WITHOUT_KEY: Guard = Guard {
    name: "non_partition_restricted_index_query_enabled",
    reason: "Executing a query on secondary indexes without partition key restriction might degrade performance",
};
const INTERSECTION: Guard = Guard {
    name: "intersect_filtering_query",
    reason: "Filtering queries involving an intersection on multiple mutable (i.e. non-key) columns over unrepaired data at \
             read consistency levels that would require coordinator reconciliation may violate the guarantees of those \
             consistency levels.",
};
const INTERSECTION_FEATURE: &str =
    "Filtering query with intersection on mutable columns at consistency level requiring coordinator reconciliation";

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
    /// non_partition_restricted_index_query_enabled
    pub non_partition_restricted_index_query: bool,
    /// intersect_filtering_query_enabled
    pub intersect_filtering_query: bool,
    /// intersect_filtering_query_warned
    pub intersect_filtering_query_warned: bool,
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
            non_partition_restricted_index_query: true,
            intersect_filtering_query: true,
            intersect_filtering_query_warned: true,
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
    /// The query filters by several columns that are not in the key, and replicas may hold
    /// different rows.
    pub intersects: bool,
    /// An index is searched, and the partition is not named.
    pub searches_all: bool,
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
        self.consistency.check("read_consistency_levels", "read consistency levels", &level, warnings)?;
        if query.intersects {
            ensure(self.intersect_filtering_query, INTERSECTION, INTERSECTION_FEATURE)?;
            if self.intersect_filtering_query_warned {
                let message = format!("{INTERSECTION_FEATURE} is not recommended");
                warnings.push(super::violation_text(INTERSECTION.name, &message, INTERSECTION.reason));
            }
        }
        if query.searches_all && !::schema::system::is_local_keyspace(query.keyspace) {
            ensure(self.non_partition_restricted_index_query, WITHOUT_KEY, "Non-partition key restricted query")?;
        }
        Ok(())
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
