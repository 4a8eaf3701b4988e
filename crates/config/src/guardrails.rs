//! The values of guardrail keys, by name: thresholds, switches, lists of words.
//!
//! Agrees with `org.apache.cassandra.config.GuardrailsOptions`: a threshold of -1 or null is off,
//! and the threshold that refuses lies beyond the one that warns.

use serde_json::Value as Json;

use crate::Config;
use crate::catalogue::{self, Kind};
use crate::load::Values;
use crate::value::{ParsedValue, Value};

/// Guardrails that are violated by smaller values.
const MINIMA: &[&str] = &["minimum_replication_factor"];
/// Keys that end like guardrails of this kind but are none.
const OTHERS: &[&str] = &["batch_size", "tombstone", "gc", "unlogged_batch_across_partitions"];
/// The words of `table_properties_*`: the names of all options of tables.
pub const TABLE_PROPERTIES: &[&str] = &[
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
/// The words of `read_consistency_levels_*` and `write_consistency_levels_*`: the names of all
/// levels in the order of their codes.
pub const CONSISTENCY_LEVELS: &[&str] = &[
    "ANY",
    "ONE",
    "TWO",
    "THREE",
    "QUORUM",
    "ALL",
    "LOCAL_QUORUM",
    "EACH_QUORUM",
    "SERIAL",
    "LOCAL_SERIAL",
    "LOCAL_ONE",
    "NODE_LOCAL",
];
const NANOS_PER_MICRO: u64 = 1_000;

impl Config {
    /// `NAME_warn_threshold` and `NAME_fail_threshold`: counts, bytes or microseconds. None: off.
    pub fn threshold(&self, guard: &str) -> (Option<i64>, Option<i64>) {
        let one = |suffix: &str| {
            let (key, _) = catalogue::find(&format!("{guard}_{suffix}_threshold"))?;
            number(key.kind, &self.value(key))
        };
        (one("warn"), one("fail"))
    }

    /// The value of a switch.
    pub fn switch(&self, name: &str) -> bool {
        catalogue::find(name).is_some_and(|(key, _)| self.value(key).what == ParsedValue::Bool(true))
    }

    /// The words of a list.
    pub fn words(&self, name: &str) -> Vec<String> {
        let value = catalogue::find(name).map(|(key, _)| self.value(key).what);
        let Some(ParsedValue::Json(Json::Array(items))) = value else { return Vec::new() };
        let words: Vec<String> = items.iter().filter_map(Json::as_str).map(str::to_owned).collect();
        words_of(name, &words).unwrap_or(words)
    }
}

fn number(kind: Kind, value: &Value) -> Option<i64> {
    let number = match value.what {
        ParsedValue::Int(number) => number,
        ParsedValue::Quantity(quantity) => {
            let unit = if matches!(kind, Kind::Duration(_)) { NANOS_PER_MICRO } else { 1 };
            i64::try_from(quantity / unit).unwrap_or(i64::MAX)
        }
        _ => return None,
    };
    (number > 0).then_some(number)
}

/// The keys of guardrails that are set anew, each with its value as a file would have it; None:
/// off.
pub(crate) fn given(sets: &[(String, Option<Vec<String>>)]) -> Result<Vec<(&'static str, Option<Json>)>, String> {
    let mut given = Vec::new();
    for (name, value) in sets {
        let (key, _) = catalogue::find(name).ok_or_else(|| format!("Guardrail {name} not found."))?;
        given.push((key.name, json_of(key.kind, name, value.as_deref())?));
    }
    Ok(given)
}

/// A value of a guardrail's key as a file would have it. None: none switches it off.
fn json_of(kind: Kind, name: &str, value: Option<&[String]>) -> Result<Option<Json>, String> {
    let text = value.map(|words| words.join(","));
    let json = match (kind, text) {
        (Kind::Int, text) => {
            let text = text.unwrap_or_else(|| "-1".to_owned());
            match text.parse::<i32>() {
                Err(_) => return Err(format!("For input string: \"{text}\"")),
                Ok(0) => {
                    return Err(format!("Invalid value for {name}: 0 is not allowed; if attempting to disable use -1"));
                }
                Ok(number) if number < -1 => {
                    return Err(format!(
                        "Invalid value {number} for {name}: negative values are not allowed, outside of -1 which \
                         disables the guardrail"
                    ));
                }
                Ok(number) => number.into(),
            }
        }
        (Kind::Bool, text) => match text.as_deref() {
            Some("true") => true.into(),
            Some("false") | None => false.into(),
            Some(_) => return Err("Use 'true' or 'false' values for booleans".to_owned()),
        },
        (Kind::List, _) => words_of(name, value.unwrap_or_default())?.into_iter().map(Json::from).collect(),
        (_, Some(text)) => text.into(),
        (_, None) => return Ok(None),
    };
    Ok(Some(json))
}

/// The words of a list as they are kept: properties of tables in lower case, consistency levels as
/// they are. Others are refused.
fn words_of(name: &str, words: &[String]) -> Result<Vec<String>, String> {
    if name.starts_with("table_properties_") {
        let words: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        let unknown = |word: &&str| !TABLE_PROPERTIES.contains(word);
        let mut unknown: Vec<&str> = words.iter().map(String::as_str).filter(unknown).collect();
        unknown.dedup();
        return match unknown.is_empty() {
            true => Ok(words),
            false => Err(format!(
                "Invalid value for {name}: '[{}]' do not parse as valid table properties",
                unknown.join(", ")
            )),
        };
    }
    match words.iter().find(|word| !CONSISTENCY_LEVELS.contains(&word.as_str())) {
        Some(word) if name.contains("_consistency_levels_") => {
            Err(format!("No enum constant org.apache.cassandra.db.ConsistencyLevel.{word}"))
        }
        _ => Ok(words.to_vec()),
    }
}

/// Problems of thresholds that contradict each other, and of lists with words that are none.
pub(crate) fn problems(values: &Values) -> Vec<String> {
    let given = |name: &str| {
        let (key, _) = catalogue::find(name)?;
        match values.by_name.get(key.name) {
            Some(value) if value.what != ParsedValue::Null => number(key.kind, value),
            _ => number(key.kind, &Value::of_default(key).ok()?),
        }
    };
    let mut problems = Vec::new();
    for key in catalogue::keys().iter().filter(|key| key.kind == Kind::List) {
        let Some(ParsedValue::Json(Json::Array(items))) = values.by_name.get(key.name).map(|value| &value.what) else {
            continue;
        };
        let words: Vec<String> = items.iter().filter_map(Json::as_str).map(str::to_owned).collect();
        problems.extend(words_of(key.name, &words).err().map(|why| format!("{}: {why}", key.name)));
    }
    for key in catalogue::keys() {
        let Some(guard) = key.name.strip_suffix("_fail_threshold").filter(|guard| !OTHERS.contains(guard)) else {
            continue;
        };
        let (Some(warn), Some(fail)) = (given(&format!("{guard}_warn_threshold")), given(key.name)) else { continue };
        if !MINIMA.contains(&guard) && fail < warn {
            problems.push(format!(
                "{guard}_warn_threshold: The warn threshold {warn} for {guard}_warn_threshold should be lower than the fail \
                 threshold {fail}"
            ));
        }
        if MINIMA.contains(&guard) && fail > warn {
            problems.push(format!(
                "{guard}_warn_threshold: The warn threshold {warn} for {guard}_warn_threshold should be greater than the fail \
                 threshold {fail}"
            ));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(config: &Config, name: &str, value: Option<&str>) -> Result<Config, String> {
        config.with_guardrails(&[(name.to_owned(), value.map(|value| value.split(',').map(str::to_owned).collect()))])
    }

    #[test]
    fn guardrails_are_set_anew() {
        let config = Config::default();
        let value = |config: &Config, name: &str| config.settings().into_iter().find(|(key, _)| key == name).unwrap().1;
        let changed = set(&config, "sai_string_term_size_warn_threshold", Some("2048B")).unwrap();
        assert_eq!(changed.threshold("sai_string_term_size"), (Some(2048), Some(8192)));
        assert_eq!(value(&changed, "sai_string_term_size_warn_threshold").as_deref(), Some("2048B"));
        // off, though the default is a size
        let off = set(&changed, "sai_string_term_size_warn_threshold", None).unwrap();
        assert_eq!(off.threshold("sai_string_term_size"), (None, Some(8192)));
        assert_eq!(value(&off, "sai_string_term_size_warn_threshold"), None);
        let words = set(&config, "table_properties_warned", Some("comment,cdc")).unwrap();
        assert_eq!(words.words("table_properties_warned"), ["comment", "cdc"]);
        assert_eq!(set(&words, "table_properties_warned", None).unwrap().words("table_properties_warned").len(), 0);
        assert!(!set(&config, "group_by_enabled", None).unwrap().switch("group_by_enabled"));
    }

    #[test]
    fn what_cannot_be_set_is_said_as_there() {
        let config = Config::default();
        let name = "sai_sstable_indexes_per_query_warn_threshold";
        let refused = |name: &str, value: &str| set(&config, name, Some(value)).expect_err(value);
        assert_eq!(
            refused(name, "0"),
            format!("Invalid value for {name}: 0 is not allowed; if attempting to disable use -1")
        );
        assert!(refused(name, "-2").starts_with("Invalid value -2 for "));
        assert_eq!(refused(name, "x"), "For input string: \"x\"");
        assert_eq!(refused("group_by_enabled", "maybe"), "Use 'true' or 'false' values for booleans");
        assert_eq!(refused("nothing", "1"), "Guardrail nothing not found.");
        assert_eq!(
            refused("table_properties_warned", "bogus,comment"),
            "Invalid value for table_properties_warned: '[bogus]' do not parse as valid table properties"
        );
        let changed = set(&config, "table_properties_warned", Some("COMMENT,cdc")).unwrap();
        assert_eq!(changed.words("table_properties_warned"), ["comment", "cdc"]);
        for levels in ["QUORUM,quorum", "quorum"] {
            assert_eq!(
                refused("read_consistency_levels_warned", levels),
                "No enum constant org.apache.cassandra.db.ConsistencyLevel.quorum"
            );
        }
        assert!(set(&config, "write_consistency_levels_disallowed", Some("ANY,NODE_LOCAL")).is_ok());
        for (name, word) in [("table_properties_ignored", "bogus"), ("read_consistency_levels_warned", "bogus")] {
            let loaded = Config::load(Some(&format!("{name}: [{word}]")), &[], false);
            assert!(loaded.expect_err(name).problems[0].contains("bogus"), "{name}");
        }
        assert!(refused("data_disk_usage_percentage_warn_threshold", "50").contains("not honoured"));
        assert_eq!(
            refused("sai_sstable_indexes_per_query_fail_threshold", "5"),
            format!("The warn threshold 32 for {name} should be lower than the fail threshold 5")
        );
    }
}
