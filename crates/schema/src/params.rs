//! Table options (`WITH …`), their defaults and their validation.
//!
//! Agrees with `org.apache.cassandra.schema.TableParams`, `CompressionParams`, `CompactionParams`, `CachingParams`.

use std::collections::BTreeMap;

/// The options of a table. Maps hold what `system_schema.tables` holds, full class names included.
#[derive(Clone, PartialEq, Debug)]
pub struct TableParams {
    /// comment
    pub comment: String,
    /// additional_write_policy
    pub additional_write_policy: String,
    /// allow_auto_snapshot; None: never set
    pub allow_auto_snapshot: Option<bool>,
    /// bloom_filter_fp_chance
    pub bloom_filter_fp_chance: f64,
    /// caching
    pub caching: BTreeMap<String, String>,
    /// cdc; None: never set
    pub cdc: Option<bool>,
    /// compaction, `class` included
    pub compaction: BTreeMap<String, String>,
    /// compression; `enabled: false` or class and chunk length
    pub compression: BTreeMap<String, String>,
    /// crc_check_chance
    pub crc_check_chance: f64,
    /// default_time_to_live, seconds
    pub default_time_to_live: i32,
    /// extensions
    pub extensions: BTreeMap<String, Vec<u8>>,
    /// gc_grace_seconds
    pub gc_grace_seconds: i32,
    /// incremental_backups; None: never set
    pub incremental_backups: Option<bool>,
    /// max_index_interval
    pub max_index_interval: i32,
    /// memtable; None: default
    pub memtable: Option<String>,
    /// memtable_flush_period_in_ms
    pub memtable_flush_period_in_ms: i32,
    /// min_index_interval
    pub min_index_interval: i32,
    /// read_repair
    pub read_repair: String,
    /// speculative_retry
    pub speculative_retry: String,
}

fn text_map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

impl Default for TableParams {
    /// What a CREATE TABLE without options gets from Cassandra 5.0.8.
    fn default() -> Self {
        Self {
            comment: String::new(),
            additional_write_policy: "99p".to_owned(),
            allow_auto_snapshot: None,
            bloom_filter_fp_chance: 0.01,
            caching: text_map(&[("keys", "ALL"), ("rows_per_partition", "NONE")]),
            cdc: None,
            compaction: text_map(&[
                ("class", "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy"),
                ("max_threshold", "32"),
                ("min_threshold", "4"),
            ]),
            compression: text_map(&[
                ("chunk_length_in_kb", "16"),
                ("class", "org.apache.cassandra.io.compress.LZ4Compressor"),
            ]),
            crc_check_chance: 1.0,
            default_time_to_live: 0,
            extensions: BTreeMap::new(),
            gc_grace_seconds: 864_000,
            incremental_backups: None,
            max_index_interval: 2048,
            memtable: None,
            memtable_flush_period_in_ms: 0,
            min_index_interval: 128,
            read_repair: "BLOCKING".to_owned(),
            speculative_retry: "99p".to_owned(),
        }
    }
}
