//! Guardrails: which keys of cassandra.yaml they are, what is in force, and its change until the
//! next start.
//!
//! Agrees with `org.apache.cassandra.db.guardrails.GuardrailsMBean`, as far as
//! `nodetool getguardrailsconfig` shows it.

use serde::{Deserialize, Serialize};

/// Keys that are true or false.
pub(crate) const FLAGS: &[&str] = &[
    "allow_filtering_enabled",
    "alter_table_enabled",
    "compact_tables_enabled",
    "drop_keyspace_enabled",
    "drop_truncate_table_enabled",
    "group_by_enabled",
    "intersect_filtering_query_enabled",
    "intersect_filtering_query_warned",
    "non_partition_restricted_index_query_enabled",
    "read_before_write_list_operations_enabled",
    "secondary_indexes_enabled",
    "simplestrategy_enabled",
    "uncompressed_tables_enabled",
    "user_timestamps_enabled",
    "vector_type_enabled",
    "zero_ttl_on_twcs_enabled",
    "zero_ttl_on_twcs_warned",
];
/// Thresholds: each has the keys `NAME_warn_threshold` and `NAME_fail_threshold`.
pub(crate) const THRESHOLDS: &[&str] = &[
    "collection_size",
    "column_value_size",
    "columns_per_table",
    "data_disk_usage_percentage",
    "fields_per_udt",
    "in_select_cartesian_product",
    "items_per_collection",
    "keyspaces",
    "materialized_views_per_table",
    "maximum_replication_factor",
    "maximum_timestamp",
    "minimum_replication_factor",
    "minimum_timestamp",
    "page_size",
    "partition_keys_in_select",
    "partition_size",
    "partition_tombstones",
    "sai_frozen_term_size",
    "sai_sstable_indexes_per_query",
    "sai_string_term_size",
    "sai_vector_term_size",
    "secondary_indexes_per_table",
    "tables",
    "vector_dimensions",
];
/// Keys that are lists of words.
pub(crate) const VALUES: &[&str] = &[
    "read_consistency_levels_disallowed",
    "read_consistency_levels_warned",
    "table_properties_disallowed",
    "table_properties_ignored",
    "table_properties_warned",
    "write_consistency_levels_disallowed",
    "write_consistency_levels_warned",
];
/// Keys of another kind.
pub(crate) const OTHERS: &[&str] = &["data_disk_usage_max_disk_size"];

/// Whether a key of cassandra.yaml is a guardrail that is shown and set.
pub fn is_guardrail(key: &str) -> bool {
    let guard = key.strip_suffix("_warn_threshold").or_else(|| key.strip_suffix("_fail_threshold"));
    match guard {
        Some(guard) => THRESHOLDS.contains(&guard),
        None => [FLAGS, VALUES, OTHERS].iter().any(|keys| keys.contains(&key)),
    }
}

/// Asks for the guardrails that are in force: names of keys of cassandra.yaml, with their values;
/// None: null.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct GetGuardrails {}

/// Sets guardrails, all or none.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct SetGuardrails {
    /// Names of keys of cassandra.yaml, each with its value, words of a list apart; None: off.
    pub settings: Vec<(String, Option<Vec<String>>)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_keys_are_no_guardrails() {
        for key in ["group_by_enabled", "tables_warn_threshold", "page_size_fail_threshold", "table_properties_ignored"]
        {
            assert!(is_guardrail(key), "{key}");
        }
        for key in ["authenticator", "batch_size_warn_threshold", "tables_threshold", "tables", "cdc_enabled"] {
            assert!(!is_guardrail(key), "{key}");
        }
    }
}
