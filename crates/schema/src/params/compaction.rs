//! The option `compaction`: the strategy of a table and the strategy's options.
//!
//! Agrees with `org.apache.cassandra.schema.CompactionParams` and the `validateOptions` of the four
//! strategies of 5.0.

mod unified;

use std::collections::BTreeMap;
use std::str::FromStr;

use crate::error::{Result, config};
use crate::ident::java_double;

const PACKAGE: &str = "org.apache.cassandra.db.compaction.";
const STRATEGIES: &[&str] = &[
    "SizeTieredCompactionStrategy",
    "LeveledCompactionStrategy",
    "TimeWindowCompactionStrategy",
    "UnifiedCompactionStrategy",
];
/// Options that every strategy accepts.
const COMMON: &[&str] = &[
    "tombstone_threshold",
    "tombstone_compaction_interval",
    "unchecked_tombstone_compaction",
    "log_all",
    "enabled",
    "only_purge_repaired_tombstones",
    "provide_overlapping_tombstones",
];
const THRESHOLDS: &[&str] = &["min_threshold", "max_threshold"];
const SIZE_TIERED: &[&str] = &["min_sstable_size", "bucket_low", "bucket_high"];
const LEVELED: &[&str] = &["sstable_size_in_mb", "fanout_size", "single_sstable_uplevel"];
const TIME_WINDOW: &[&str] = &[
    "timestamp_resolution",
    "compaction_window_unit",
    "compaction_window_size",
    "expired_sstable_check_frequency_seconds",
    "unsafe_aggressive_sstable_expiration",
];
const UNIFIED: &[&str] = &[
    "scaling_parameters",
    "base_shard_count",
    "target_sstable_size",
    "flush_size_override",
    "max_sstables_to_compact",
    "expired_sstable_check_frequency_seconds",
    "unsafe_aggressive_sstable_expiration",
    "overlap_inclusion_method",
    "min_sstable_size",
    "sstable_growth",
];

/// The highest level of the leveled strategy.
const LEVEL_MAX: i32 = 8;

type Map = BTreeMap<String, String>;

/// Checks the map and gives its stored form: with the full class name and with thresholds.
pub fn normalize(map: &Map) -> Result<Map> {
    let mut options = map.clone();
    let Some(class) = options.remove("class") else {
        return config("Missing sub-option 'class' for the 'compaction' option");
    };
    let name = strategy(&class)?;
    check_overlapping_tombstones(options.get("provide_overlapping_tombstones"))?;
    if name != "UnifiedCompactionStrategy" {
        options.entry("min_threshold".to_owned()).or_insert_with(|| "4".to_owned());
        options.entry("max_threshold".to_owned()).or_insert_with(|| "32".to_owned());
    }
    check_common(&options)?;
    check_own(name, &options)?;
    check_known(name, &options)?;
    check_thresholds(&options)?;
    options.insert("class".to_owned(), format!("{PACKAGE}{name}"));
    Ok(options)
}

/// The class name of a stored map, without its package.
pub fn short_class(map: &Map) -> &str {
    map.get("class").map_or("", |class| class.rsplit('.').next().unwrap_or(class))
}

/// Whether there is the strategy of a stored map. Cassandra before 5.0 has another one
/// (`DateTieredCompactionStrategy`), and loads classes from elsewhere. A map without a class means
/// the default strategy.
pub fn is_known(map: &Map) -> bool {
    let class = short_class(map);
    class.is_empty() || STRATEGIES.contains(&class)
}

/// The default of bloom_filter_fp_chance. It depends on the strategy: the leveled strategy has
/// smaller filters.
pub fn default_bloom_filter_fp_chance(map: &Map) -> f64 {
    if short_class(map) == "LeveledCompactionStrategy" { 0.1 } else { 0.01 }
}

fn strategy(class: &str) -> Result<&'static str> {
    let short = class.strip_prefix(PACKAGE).unwrap_or(class);
    match STRATEGIES.iter().find(|name| **name == short) {
        Some(name) => Ok(name),
        None => {
            let full = if class.contains('.') { class.to_owned() } else { format!("{PACKAGE}{class}") };
            config(format!("Unable to find compaction strategy class '{full}'"))
        }
    }
}

fn check_overlapping_tombstones(value: Option<&String>) -> Result<()> {
    let upper = value.map_or("NONE".to_owned(), |value| value.to_uppercase());
    if matches!(upper.as_str(), "NONE" | "ROW" | "CELL") {
        return Ok(());
    }
    config(format!(
        "Invalid value {upper} for 'provide_overlapping_tombstones' compaction sub-option - must be one of the following [NONE, ROW, CELL]."
    ))
}

fn check_common(options: &Map) -> Result<()> {
    if let Some(threshold) = number::<f32>(options, "tombstone_threshold", "int (base10)")?
        && threshold < 0.0
    {
        return config(format!("tombstone_threshold must be greater than 0, but was {threshold:.6}"));
    }
    if let Some(interval) = number::<i64>(options, "tombstone_compaction_interval", "int (base10)")?
        && interval < 0
    {
        return config(format!("tombstone_compaction_interval must be greater than 0, but was {interval}"));
    }
    if let Some(value) = not_boolean(options, "unchecked_tombstone_compaction") {
        return config(format!("'unchecked_tombstone_compaction' should be either 'true' or 'false', not '{value}'"));
    }
    if let Some(value) = not_boolean(options, "log_all") {
        return config(format!("'log_all' should either be 'true' or 'false', not {value}"));
    }
    if let Some(value) = not_boolean(options, "enabled") {
        return config(format!("enabled should either be 'true' or 'false', not {value}"));
    }
    Ok(())
}

fn check_own(name: &str, options: &Map) -> Result<()> {
    match name {
        "SizeTieredCompactionStrategy" => check_size_tiered(options),
        "LeveledCompactionStrategy" => check_leveled(options).and_then(|()| check_size_tiered(options)),
        "TimeWindowCompactionStrategy" => check_time_window(options).and_then(|()| check_size_tiered(options)),
        _ => unified::check(options),
    }
}

fn check_size_tiered(options: &Map) -> Result<()> {
    if let Some(size) = number::<i64>(options, "min_sstable_size", "int (base10)")?
        && size < 0
    {
        return config(format!("min_sstable_size must be non negative: {size}"));
    }
    let low = number::<f64>(options, "bucket_low", "float")?.unwrap_or(0.5);
    let high = number::<f64>(options, "bucket_high", "float")?.unwrap_or(1.5);
    if high <= low {
        return config(format!(
            "bucket_high value ({}) is less than or equal to the bucket_low value ({})",
            java_double(high),
            java_double(low)
        ));
    }
    Ok(())
}

fn check_leveled(options: &Map) -> Result<()> {
    for name in ["sstable_size_in_mb", "fanout_size"] {
        if let Some(size) = number::<i32>(options, name, "int (base10)")?
            && size < 1
        {
            return config(format!("{name} must be larger than 0, but was {size}"));
        }
    }
    let size =
        |name: &str, default: f64| options.get(name).and_then(|value| value.trim().parse().ok()).unwrap_or(default);
    check_greatest_level(size("sstable_size_in_mb", 160.0), size("fanout_size", 10.0))
}

/// Refuses sizes with which the size of the highest level overflows.
fn check_greatest_level(sstable_size_mb: f64, fanout: f64) -> Result<()> {
    let bytes = fanout.powi(LEVEL_MAX) * sstable_size_mb * f64::from(1 << 20);
    if bytes <= i64::MAX as f64 {
        return Ok(());
    }
    config(format!(
        "At most {} bytes may be in a compaction level; your maxSSTableSize must be absurdly high to compute {bytes:.0}",
        i64::MAX
    ))
}

fn check_time_window(options: &Map) -> Result<()> {
    check_one_of(options, "timestamp_resolution", &["SECONDS", "MILLISECONDS", "MICROSECONDS", "NANOSECONDS"])?;
    check_one_of(options, "compaction_window_unit", &["MINUTES", "HOURS", "DAYS"])?;
    if let Some(size) = number::<i32>(options, "compaction_window_size", "int (base10)")?
        && size < 1
    {
        return config(format!("{size} must be greater than 1 for compaction_window_size"));
    }
    let frequency = "expired_sstable_check_frequency_seconds";
    if let Some(seconds) = number::<i64>(options, frequency, "int (base10)")?
        && seconds < 0
    {
        return config(format!("{frequency} must not be negative, but was {seconds}"));
    }
    let unsafe_name = "unsafe_aggressive_sstable_expiration";
    if let Some(value) = not_boolean(options, unsafe_name) {
        return config(format!("{unsafe_name} is not 'true' or 'false' ({value})"));
    }
    if options.get(unsafe_name).is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return config(format!(
            "{unsafe_name} is requested but not allowed, restart cassandra with \
             -Dcassandra.allow_unsafe_aggressive_sstable_expiration=true to allow it"
        ));
    }
    Ok(())
}

fn check_known(name: &str, options: &Map) -> Result<()> {
    let own: &[&[&str]] = match name {
        "SizeTieredCompactionStrategy" => &[COMMON, THRESHOLDS, SIZE_TIERED],
        "LeveledCompactionStrategy" => &[COMMON, THRESHOLDS, SIZE_TIERED, LEVELED],
        "TimeWindowCompactionStrategy" => &[COMMON, THRESHOLDS, SIZE_TIERED, TIME_WINDOW],
        _ => &[COMMON, UNIFIED],
    };
    let unknown: Vec<&str> =
        options.keys().map(String::as_str).filter(|key| !own.iter().any(|list| list.contains(key))).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    config(format!("Properties specified [{}] are not understood by {name}", unknown.join(", ")))
}

fn check_thresholds(options: &Map) -> Result<()> {
    let mut thresholds = [4, 32];
    for (threshold, name) in thresholds.iter_mut().zip(THRESHOLDS) {
        let Some(value) = options.get(*name) else {
            continue;
        };
        *threshold = match value.parse::<u32>() {
            Ok(number) => number,
            Err(_) => {
                return config(format!(
                    "Invalid value {value} for '{name}' compaction sub-option - must be an integer"
                ));
            }
        };
    }
    let [min, max] = thresholds;
    if min == 0 || max == 0 {
        return config(
            "Disabling compaction by setting compaction thresholds to 0 has been removed, \
             set the compaction option 'enabled' to false instead.",
        );
    }
    if min == 1 {
        return config(format!("Min compaction threshold cannot be less than 2 (got {min})"));
    }
    if min > max {
        return config(format!(
            "Min compaction threshold (got {min}) cannot be greater than max compaction threshold (got {max})"
        ));
    }
    Ok(())
}

fn number<T: FromStr>(options: &Map, name: &str, what: &str) -> Result<Option<T>> {
    let Some(value) = options.get(name) else {
        return Ok(None);
    };
    match value.trim().parse() {
        Ok(number) => Ok(Some(number)),
        Err(_) => config(format!("{value} is not a parsable {what} for {name}")),
    }
}

fn not_boolean<'a>(options: &'a Map, name: &str) -> Option<&'a String> {
    options.get(name).filter(|value| !value.eq_ignore_ascii_case("true") && !value.eq_ignore_ascii_case("false"))
}

fn check_one_of(options: &Map, name: &str, allowed: &[&str]) -> Result<()> {
    match options.get(name) {
        Some(value) if !allowed.contains(&value.as_str()) => config(format!("{value} is not valid for {name}")),
        _ => Ok(()),
    }
}
