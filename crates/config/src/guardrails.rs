//! The values of guardrail keys, by name: thresholds, switches, lists of words.
//!
//! Agrees with `org.apache.cassandra.config.GuardrailsOptions`: a threshold of -1 or null is off,
//! and the threshold that refuses lies beyond the one that warns.

use serde_json::Value as Json;

use crate::Config;
use crate::catalogue::{self, Kind};
use crate::load::Values;
use crate::value::{Value, What};

/// Guardrails that are violated by smaller values.
const MINIMA: &[&str] = &["minimum_replication_factor"];
/// Keys that end like guardrails of this kind but are none.
const OTHERS: &[&str] = &["batch_size", "tombstone", "gc", "unlogged_batch_across_partitions"];
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
        catalogue::find(name).is_some_and(|(key, _)| self.value(key).what == What::Bool(true))
    }

    /// The words of a list.
    pub fn words(&self, name: &str) -> Vec<String> {
        let value = catalogue::find(name).map(|(key, _)| self.value(key).what);
        let Some(What::Json(Json::Array(items))) = value else { return Vec::new() };
        items.iter().filter_map(Json::as_str).map(str::to_owned).collect()
    }
}

fn number(kind: Kind, value: &Value) -> Option<i64> {
    let number = match value.what {
        What::Int(number) => number,
        What::Quantity(quantity) => {
            let unit = if matches!(kind, Kind::Duration(_)) { NANOS_PER_MICRO } else { 1 };
            i64::try_from(quantity / unit).unwrap_or(i64::MAX)
        }
        _ => return None,
    };
    (number > 0).then_some(number)
}

/// Problems of thresholds that contradict each other.
pub(crate) fn problems(values: &Values) -> Vec<String> {
    let given = |name: &str| {
        let (key, _) = catalogue::find(name)?;
        number(key.kind, values.by_name.get(key.name)?)
    };
    let mut problems = Vec::new();
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
