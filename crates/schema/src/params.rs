//! Table options (`WITH …`): their defaults and their checks.
//!
//! Agrees with `org.apache.cassandra.schema.TableParams`, `CompressionParams`, `CompactionParams`,
//! `CachingParams`.

use std::collections::BTreeMap;

use crate::TableId;
use crate::error::{SchemaError, config};
use crate::ident::java_double;
use crate::options::Options;

pub mod caching;
pub mod compaction;
pub mod compression;
pub mod speculative;

/// The options of a table. Maps have the content of `system_schema.tables`, with full class names.
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
    /// compression: `enabled: false`, or class and chunk length
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
    /// memtable; None: the default
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
    /// The options that Cassandra 5.0.8 gives to a CREATE TABLE without options.
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

/// The options that WITH accepts, besides COMPACT STORAGE and CLUSTERING ORDER. Cassandra 5.0.8
/// knows `auto_repair` too, but refuses it without its system property, and so do we.
pub const OPTION_NAMES: &[&str] = &[
    "additional_write_policy",
    "allow_auto_snapshot",
    "auto_repair",
    "bloom_filter_fp_chance",
    "caching",
    "cdc",
    "comment",
    "compaction",
    "compression",
    "crc_check_chance",
    "default_time_to_live",
    "extensions",
    "gc_grace_seconds",
    "id",
    "incremental_backups",
    "max_index_interval",
    "memtable",
    "memtable_flush_period_in_ms",
    "min_index_interval",
    "read_repair",
    "speculative_retry",
];
/// Greatest time to live: 20 years in seconds.
pub const DEFAULT_TIME_TO_LIVE_MAX: i32 = 20 * 365 * 24 * 60 * 60;
/// The lowest rate of false positives that a filter can promise (20 buckets an element, the most
/// hashes).
const BLOOM_FILTER_FP_CHANCE_MIN: f64 = 6.71e-5;

impl TableParams {
    /// The options of a CREATE TABLE statement, checked; Cassandra's defaults for those that it
    /// does not give.
    pub fn create(options: &Options) -> Result<Self, SchemaError> {
        Self::create_with(options, &Self::default().compaction)
    }

    /// Like [`Self::create`], with `compaction`, in its stored form, as the default for compaction.
    pub fn create_with(options: &Options, compaction: &BTreeMap<String, String>) -> Result<Self, SchemaError> {
        let mut params = Self { compaction: compaction.clone(), ..Self::default() };
        let given = options.map("compaction")?.map(compaction::normalize).transpose()?;
        params.bloom_filter_fp_chance =
            compaction::default_bloom_filter_fp_chance(given.as_ref().unwrap_or(compaction));
        let params = params.with(options)?;
        params.validate()?;
        Ok(params)
    }

    /// The options of a table after an ALTER TABLE statement, checked. As in Cassandra, the given
    /// options are checked together with the defaults of the others, not with the table's values of
    /// the others.
    pub fn altered(&self, options: &Options) -> Result<Self, SchemaError> {
        Self::default().with(options)?.validate()?;
        self.with(options)
    }

    fn with(&self, options: &Options) -> Result<Self, SchemaError> {
        options.check_names(OPTION_NAMES)?;
        if options.names().any(|name| name == "auto_repair") {
            return config(
                "auto_repair option is not supported unless auto-repair is enabled with -Dcassandra.autorepair.enable=true",
            );
        }
        let mut params = self.clone();
        params.take_switches(options)?;
        params.take_maps(options)?;
        params.take_numbers(options)?;
        params.take_policies(options)?;
        Ok(params)
    }

    /// The `WITH id = …` of a CREATE TABLE statement; None: it is not given.
    pub fn table_id(options: &Options) -> Result<Option<TableId>, SchemaError> {
        let Some(text) = options.text("id")? else {
            return Ok(None);
        };
        match TableId::from_hex(&text.replace('-', "")) {
            Some(id) => Ok(Some(id)),
            None => config("Invalid table id"),
        }
    }

    fn take_switches(&mut self, options: &Options) -> Result<(), SchemaError> {
        if let Some(value) = options.boolean("allow_auto_snapshot")? {
            self.allow_auto_snapshot = (!value).then_some(false);
        }
        if let Some(value) = options.boolean("incremental_backups")? {
            self.incremental_backups = (!value).then_some(false);
        }
        // without cdc_enabled the option is not stored; the statement takes care of that
        if let Some(value) = options.boolean("cdc")? {
            self.cdc = Some(value);
        }
        if let Some(value) = options.text("comment")? {
            self.comment = value.to_owned();
        }
        Ok(())
    }

    fn take_maps(&mut self, options: &Options) -> Result<(), SchemaError> {
        if let Some(map) = options.map("caching")? {
            self.caching = caching::normalize(map)?;
        }
        if let Some(map) = options.map("compaction")? {
            self.compaction = compaction::normalize(map)?;
        }
        if let Some(map) = options.map("compression")? {
            self.compression = compression::normalize(map)?;
        }
        Ok(())
    }

    fn take_numbers(&mut self, options: &Options) -> Result<(), SchemaError> {
        for (name, field) in [
            ("default_time_to_live", &mut self.default_time_to_live),
            ("gc_grace_seconds", &mut self.gc_grace_seconds),
            ("max_index_interval", &mut self.max_index_interval),
            ("memtable_flush_period_in_ms", &mut self.memtable_flush_period_in_ms),
            ("min_index_interval", &mut self.min_index_interval),
        ] {
            if let Some(value) = options.int(name)? {
                *field = value;
            }
        }
        for (name, field) in [
            ("bloom_filter_fp_chance", &mut self.bloom_filter_fp_chance),
            ("crc_check_chance", &mut self.crc_check_chance),
        ] {
            if let Some(value) = options.double(name)? {
                *field = value;
            }
        }
        if self.bloom_filter_fp_chance == -1.0 {
            self.bloom_filter_fp_chance = compaction::default_bloom_filter_fp_chance(&self.compaction);
        }
        Ok(())
    }

    fn take_policies(&mut self, options: &Options) -> Result<(), SchemaError> {
        if let Some(value) = options.text("speculative_retry")? {
            self.speculative_retry = speculative::normalize(value)?;
        }
        if let Some(value) = options.text("additional_write_policy")? {
            self.additional_write_policy = speculative::normalize(value)?;
        }
        if let Some(value) = options.text("memtable")? {
            self.memtable = memtable(value)?;
        }
        if let Some(value) = options.text("read_repair")? {
            self.read_repair = match value.to_uppercase().as_str() {
                upper @ ("NONE" | "BLOCKING") => upper.to_owned(),
                upper => {
                    return config(format!(
                        "No enum constant org.apache.cassandra.service.reads.repair.ReadRepairStrategy.{upper}"
                    ));
                }
            };
        }
        Ok(())
    }

    /// Checks the limits of each value, and the limits between values.
    pub fn validate(&self) -> Result<(), SchemaError> {
        let chance = self.bloom_filter_fp_chance;
        if !(chance > BLOOM_FILTER_FP_CHANCE_MIN && chance <= 1.0) {
            return config(format!(
                "bloom_filter_fp_chance must be larger than {} and less than or equal to 1.0 (got {})",
                java_double(BLOOM_FILTER_FP_CHANCE_MIN),
                java_double(chance)
            ));
        }
        if !(0.0..=1.0).contains(&self.crc_check_chance) {
            return config(format!(
                "crc_check_chance must be larger than or equal to 0 and smaller than or equal to 1.0 (got {})",
                java_double(self.crc_check_chance)
            ));
        }
        at_least("default_time_to_live", self.default_time_to_live, 0)?;
        if self.default_time_to_live > DEFAULT_TIME_TO_LIVE_MAX {
            return config(format!(
                "default_time_to_live must be less than or equal to {DEFAULT_TIME_TO_LIVE_MAX} (got {})",
                self.default_time_to_live
            ));
        }
        at_least("gc_grace_seconds", self.gc_grace_seconds, 0)?;
        at_least("min_index_interval", self.min_index_interval, 1)?;
        if self.max_index_interval < self.min_index_interval {
            return config(format!(
                "max_index_interval must be greater than or equal to min_index_interval ({}) (got {})",
                self.min_index_interval, self.max_index_interval
            ));
        }
        at_least("memtable_flush_period_in_ms", self.memtable_flush_period_in_ms, 0)
    }
}

/// Reads the name of a memtable configuration of a stock cassandra.yaml; all of them are our one
/// memtable. None: the default.
fn memtable(name: &str) -> Result<Option<String>, SchemaError> {
    match name {
        "default" => Ok(None),
        "skiplist" | "trie" => Ok(Some(name.to_owned())),
        _ => config(format!("Memtable configuration \"{name}\" not found.")),
    }
}

fn at_least(name: &str, value: i32, min: i32) -> Result<(), SchemaError> {
    if value >= min {
        return Ok(());
    }
    config(format!("{name} must be greater than or equal to {min} (got {value})"))
}

#[cfg(test)]
mod tests;
