//! The guardrails of the configuration in the forms that statements and the storage take them.
//!
//! Agrees with `org.apache.cassandra.config.GuardrailsOptions`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use cluster::Node;
use cluster::operations::state;
use config::Config;
use cql::guardrails::{Guardrails, QueryGuards, SchemaGuards, Threshold, Values, WriteGuards};
use env::Instant;
use rows::command::IndexLimits;
use storage::guardrails::{CollectionGuards, PartitionGuards};

/// Time after which the log has the same violation again. As in `Guardrail`.
const LOG_REPEAT_INTERVAL: Duration = Duration::from_secs(600);

/// Most violations that are remembered. Beyond this number all are forgotten, and the log may be
/// told of them again.
const LOGGED_MAX: usize = 256;

/// The guardrails of a configuration.
pub fn of(config: &Config) -> Guardrails {
    Guardrails { schema: schema(config), query: query(config), write: write(config) }
}

/// The guardrails that the storage checks.
pub fn of_storage(config: &Config) -> storage::guardrails::GuardrailValues {
    storage::guardrails::GuardrailValues {
        searches: of_searches(config),
        partitions: of_partitions(config),
        collections: of_collections(config),
    }
}

/// The guardrails in force: those of the configuration, as operators have changed them since.
#[derive(Debug)]
pub struct ActiveGuardrails {
    /// The configuration with what was changed. The lock orders changes.
    config: Mutex<Config>,
    /// The guardrails of users who are not superusers.
    of_users: ArcSwap<Guardrails>,
    /// When the log was told of each violation last, by its text.
    logged: Mutex<BTreeMap<String, Instant>>,
}

impl ActiveGuardrails {
    /// The guardrails of a configuration.
    pub fn new(config: &Config) -> Self {
        let config = config.with_guardrails(&[]).expect("a configuration that was loaded");
        Self { of_users: ArcSwap::from_pointee(of(&config)), config: Mutex::new(config), logged: Mutex::default() }
    }

    /// The guardrails of users who are not superusers.
    pub fn of_users(&self) -> Arc<Guardrails> {
        self.of_users.load_full()
    }

    /// Whether the log has to be told of a violation now. A client may violate a guardrail with
    /// each of its requests: a line for each would rotate everything else out of the log.
    pub fn is_to_be_logged(&self, violation: &str, now: Instant) -> bool {
        let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
        if logged.get(violation).is_some_and(|at| now.since(*at) < LOG_REPEAT_INTERVAL) {
            return false;
        }
        if logged.len() >= LOGGED_MAX {
            logged.clear();
        }
        logged.insert(violation.to_owned(), now);
        true
    }

    /// The keys of cassandra.yaml with their values.
    pub fn settings(&self) -> Vec<(String, Option<String>)> {
        self.config.lock().unwrap_or_else(PoisonError::into_inner).settings()
    }

    /// Changes the values of some keys. Err: why a value was refused.
    pub fn change(&self, sets: &[(String, Option<Vec<String>>)], node: &Node) -> Result<(), String> {
        let mut config = self.config.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = config.with_guardrails(sets)?;
        self.of_users.store(Arc::new(of(&changed)));
        state::options(node).guards.set(of_storage(&changed));
        *config = changed;
        Ok(())
    }
}

/// The thresholds for partitions in SSTables, which the storage checks when it writes them.
pub fn of_partitions(config: &Config) -> PartitionGuards {
    PartitionGuards {
        size: of_sstables(config, "partition_size"),
        tombstones: of_sstables(config, "partition_tombstones"),
    }
}

/// The thresholds for collections in SSTables, which the storage checks when it encodes rows.
pub fn of_collections(config: &Config) -> CollectionGuards {
    CollectionGuards {
        size: of_sstables(config, "collection_size"),
        items: of_sstables(config, "items_per_collection"),
    }
}

fn of_sstables(config: &Config, guard: &str) -> storage::guardrails::Threshold {
    let (warn, fail) = config.threshold(guard);
    let number = |threshold: Option<i64>| threshold.and_then(|threshold| u64::try_from(threshold).ok());
    storage::guardrails::Threshold { warn: number(warn), fail: number(fail) }
}

/// The thresholds for the SSTables that one condition of a search looks into, which replicas check.
pub fn of_searches(config: &Config) -> IndexLimits {
    let (warn, fail) = config.threshold("sai_sstable_indexes_per_query");
    let number = |threshold: Option<i64>| threshold.and_then(|threshold| u64::try_from(threshold).ok());
    IndexLimits { warn: number(warn).unwrap_or(u64::MAX), fail: number(fail).unwrap_or(u64::MAX) }
}

fn threshold(config: &Config, guard: &str) -> Threshold {
    let (warn, fail) = config.threshold(guard);
    Threshold { warn, fail }
}

fn words(config: &Config, guard: &str) -> Values {
    let list = |suffix: &str| config.words(&format!("{guard}_{suffix}"));
    let mut values = Values { warned: list("warned"), ignored: list("ignored"), disallowed: list("disallowed") };
    for list in [&mut values.warned, &mut values.ignored, &mut values.disallowed] {
        list.sort_unstable();
    }
    values
}

fn schema(config: &Config) -> SchemaGuards {
    SchemaGuards {
        keyspaces: threshold(config, "keyspaces"),
        tables: threshold(config, "tables"),
        columns_per_table: threshold(config, "columns_per_table"),
        fields_per_udt: threshold(config, "fields_per_udt"),
        secondary_indexes_per_table: threshold(config, "secondary_indexes_per_table"),
        materialized_views_per_table: threshold(config, "materialized_views_per_table"),
        vector_dimensions: threshold(config, "vector_dimensions"),
        minimum_replication_factor: threshold(config, "minimum_replication_factor"),
        maximum_replication_factor: threshold(config, "maximum_replication_factor"),
        table_properties: words(config, "table_properties"),
        alter_table: config.switch("alter_table_enabled"),
        drop_truncate_table: config.switch("drop_truncate_table_enabled"),
        drop_keyspace: config.switch("drop_keyspace_enabled"),
        secondary_indexes: config.switch("secondary_indexes_enabled"),
        uncompressed_tables: config.switch("uncompressed_tables_enabled"),
        compact_tables: config.switch("compact_tables_enabled"),
        simplestrategy: config.switch("simplestrategy_enabled"),
        vector_type: config.switch("vector_type_enabled"),
        zero_ttl_on_twcs: config.switch("zero_ttl_on_twcs_enabled"),
        zero_ttl_on_twcs_warned: config.switch("zero_ttl_on_twcs_warned"),
    }
}

fn query(config: &Config) -> QueryGuards {
    QueryGuards {
        page_size: threshold(config, "page_size"),
        partition_keys_in_select: threshold(config, "partition_keys_in_select"),
        in_select_cartesian_product: threshold(config, "in_select_cartesian_product"),
        group_by: config.switch("group_by_enabled"),
        allow_filtering: config.switch("allow_filtering_enabled"),
        non_partition_restricted_index_query: config.switch("non_partition_restricted_index_query_enabled"),
        intersect_filtering_query: config.switch("intersect_filtering_query_enabled"),
        intersect_filtering_query_warned: config.switch("intersect_filtering_query_warned"),
        consistency: words(config, "read_consistency_levels"),
    }
}

fn write(config: &Config) -> WriteGuards {
    WriteGuards {
        user_timestamps: config.switch("user_timestamps_enabled"),
        read_before_write: config.switch("read_before_write_list_operations_enabled"),
        maximum_timestamp: threshold(config, "maximum_timestamp"),
        minimum_timestamp: threshold(config, "minimum_timestamp"),
        column_value_size: threshold(config, "column_value_size"),
        collection_size: threshold(config, "collection_size"),
        items_per_collection: threshold(config, "items_per_collection"),
        string_term_size: threshold(config, "sai_string_term_size"),
        frozen_term_size: threshold(config, "sai_frozen_term_size"),
        vector_term_size: threshold(config, "sai_vector_term_size"),
        consistency: words(config, "write_consistency_levels"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The configuration knows no schema and no protocol, so it lists their words again.
    #[test]
    fn words_of_lists_are_those_of_the_schema_and_the_protocol() {
        assert_eq!(config::TABLE_PROPERTIES, schema::params::OPTION_NAMES);
        let levels: Vec<_> = types::Consistency::all().map(types::Consistency::name).collect();
        assert_eq!(config::CONSISTENCY_LEVELS, levels);
    }

    #[test]
    fn the_log_is_told_of_a_violation_once_in_ten_minutes() {
        let guardrails = ActiveGuardrails::new(&Config::default());
        let is_told = |violation: &str, second: u64| {
            guardrails.is_to_be_logged(violation, Instant::from_nanos(second * 1_000_000_000))
        };
        let logged: Vec<u64> = (0..1_300).filter(|second| is_told("one", *second)).collect();
        assert_eq!(logged, [0, 600, 1_200]);
        assert!((0..1_000).all(|number| is_told(&number.to_string(), 1_300)));
        assert!(guardrails.logged.lock().expect("no panic inside").len() <= LOGGED_MAX);
    }

    #[test]
    fn keys_have_their_place() {
        let sets = [
            "tables_fail_threshold=3",
            "column_value_size_warn_threshold=1KiB",
            "maximum_timestamp_fail_threshold=2s",
            "group_by_enabled=false",
            "partition_size_warn_threshold=1MiB",
            "partition_tombstones_fail_threshold=7",
            "items_per_collection_warn_threshold=8",
            "collection_size_fail_threshold=1KiB",
            "table_properties_disallowed=comment,cdc",
        ]
        .map(str::to_owned);
        let config = Config::load(None, &sets, false).expect("valid");
        let guardrails = of(&config);
        assert_eq!(guardrails.schema.tables, Threshold { warn: None, fail: Some(3) });
        assert_eq!(guardrails.write.column_value_size, Threshold { warn: Some(1024), fail: None });
        assert_eq!(guardrails.write.maximum_timestamp.fail, Some(2_000_000));
        assert_eq!(guardrails.schema.table_properties.disallowed, ["cdc", "comment"]);
        assert!(!guardrails.query.group_by && guardrails.query.allow_filtering);
        // only terms of attached indexes have limits where nothing is set
        let sizes = |warn: i64, fail: i64| Threshold { warn: Some(warn << 10), fail: Some(fail << 10) };
        let mut defaults = Guardrails::default();
        defaults.write.string_term_size = sizes(1, 8);
        defaults.write.frozen_term_size = sizes(1, 8);
        defaults.write.vector_term_size = sizes(16, 32);
        assert_eq!(of(&Config::default()), defaults);
        let partitions = of_partitions(&config);
        assert_eq!((partitions.size.warn, partitions.size.fail), (Some(1 << 20), None));
        assert_eq!((partitions.tombstones.warn, partitions.tombstones.fail), (None, Some(7)));
        assert_eq!(of_partitions(&Config::default()), PartitionGuards::default());
        let collections = of_collections(&config);
        assert_eq!((collections.items.warn, collections.items.fail), (Some(8), None));
        assert_eq!((collections.size.warn, collections.size.fail), (None, Some(1024)));
        assert_eq!(of_collections(&Config::default()), CollectionGuards::default());
        let contradiction = ["tables_warn_threshold=5", "tables_fail_threshold=3"].map(str::to_owned);
        let error = Config::load(None, &contradiction, false).expect_err("refused").to_string();
        assert!(
            error.contains("The warn threshold 5 for tables_warn_threshold should be lower than the fail threshold 3"),
            "{error}"
        );
    }
}
