//! `auto_repair`: the schedule of repairs.
//!
//! Agrees in its names with `org.apache.cassandra.repair.autorepair.AutoRepairConfig`. Sub-keys of
//! `global_settings` hold for full repairs, which are the only ones on a schedule, and those of
//! `repair_type_overrides.full` take their place. Other sub-keys are refused by name. `work_share`,
//! `latency_factor` and `bytes_per_assignment` are ours.

use std::time::Duration;

use serde_json::{Map, Value as Json};

use crate::reader::Reader;
use crate::units::{self, DATA, TIME};
use crate::value::ParsedValue;

const KEY: &str = "auto_repair";

/// The schedule of repairs.
#[derive(Clone, PartialEq, Debug)]
pub struct AutoRepair {
    /// enabled, here or for full repairs; None: the node decides
    pub is_on: Option<bool>,
    /// repair_check_interval
    pub check_every: Duration,
    /// initial_scheduler_delay
    pub first_after: Duration,
    /// min_repair_interval
    pub interval_min: Duration,
    /// parallel_repair_count: nodes that repair at a time
    pub parallel_count: usize,
    /// parallel_repair_percentage of all nodes
    pub parallel_percent: usize,
    /// allow_parallel_replica_repair
    pub shares_replicas: bool,
    /// ignore_dcs
    pub ignored_data_centers: Vec<String>,
    /// materialized_view_repair_enabled
    pub repairs_views: bool,
    /// repair_session_timeout
    pub repair_max: Duration,
    /// repair_retry_backoff
    pub retry_after: Duration,
    /// repair_max_retries
    pub retries_max: u32,
    /// bytes_per_assignment
    pub bytes_max: u64,
    /// work_share: the share of the time in which a node repairs during its turn, of 1
    pub work_share: f64,
    /// latency_factor: repairs are held back while clients wait so many times longer
    pub latency_factor: f64,
}

impl Default for AutoRepair {
    fn default() -> Self {
        const MINUTE: u64 = 60;
        Self {
            is_on: None,
            check_every: Duration::from_secs(5 * MINUTE),
            first_after: Duration::from_secs(5 * MINUTE),
            interval_min: Duration::from_secs(24 * 60 * MINUTE),
            parallel_count: 3,
            parallel_percent: 3,
            shares_replicas: false,
            ignored_data_centers: Vec::new(),
            repairs_views: true,
            repair_max: Duration::from_secs(3 * 60 * MINUTE),
            retry_after: Duration::from_secs(30),
            retries_max: 3,
            bytes_max: 4 << 30,
            work_share: 0.5,
            latency_factor: 2.0,
        }
    }
}

/// Reads the key; where a sub-key has a problem the default stands in.
pub(crate) fn auto_repair(reader: &mut Reader<'_>) -> AutoRepair {
    let mut settings = AutoRepair::default();
    let ParsedValue::Json(Json::Object(given)) = reader.value(KEY).what else { return settings };
    if let Err(why) = settings.take_all(&given) {
        reader.problem(KEY, &why);
    }
    settings
}

impl AutoRepair {
    fn take_all(&mut self, given: &Map<String, Json>) -> Result<(), String> {
        let nothing = Map::new();
        let map = |of: &Map<String, Json>, name: &str| match of.get(name) {
            None | Some(Json::Null) => Ok(nothing.clone()),
            Some(Json::Object(map)) => Ok(map.clone()),
            Some(_) => Err(format!("{name} must be a map")),
        };
        let (global, overrides) = (map(given, "global_settings")?, map(given, "repair_type_overrides")?);
        for (name, value) in given {
            match name.as_str() {
                "global_settings" | "repair_type_overrides" => {}
                "enabled" => self.is_on = Some(flag(name, value)?),
                "repair_check_interval" => self.check_every = duration(name, value)?,
                // the ring has no tables to clear, and knows its members by gossip
                "history_clear_delete_hosts_buffer_interval" => drop(duration(name, value)?),
                _ => return Err(refused(name)),
            }
        }
        for (name, value) in &global {
            // in Cassandra each kind of repair has to be enabled by itself
            match name.as_str() {
                "enabled" => self.is_on = self.is_on.map(|is_on| is_on && value != &Json::Bool(false)),
                _ => self.take(name, value)?,
            }
        }
        for (kind, settings) in &overrides {
            let settings = match (kind.as_str(), settings) {
                ("full", Json::Object(settings)) => settings,
                ("incremental" | "preview_repaired", Json::Object(settings))
                    if settings.get("enabled").is_none_or(|value| value == &Json::Bool(false)) =>
                {
                    continue;
                }
                ("incremental" | "preview_repaired", _) => {
                    return Err(format!(
                        "repair_type_overrides.{kind} is not supported: only full repairs are scheduled"
                    ));
                }
                _ => return Err(refused(&format!("repair_type_overrides.{kind}"))),
            };
            for (name, value) in settings {
                match name.as_str() {
                    "enabled" => {
                        let is_on = flag(name, value)?;
                        self.is_on = self.is_on.map(|of_all| of_all && is_on);
                    }
                    _ => self.take(name, value)?,
                }
            }
        }
        Ok(())
    }

    /// Changes a setting of full repairs, as an operator writes it. Err: it cannot be honoured.
    pub fn change(&mut self, name: &str, text: &str) -> Result<(), String> {
        let value = match name {
            "enabled" => {
                self.is_on = Some(flag(name, &Json::from(text))?);
                return Ok(());
            }
            // the start is over
            "initial_scheduler_delay" => return Err(refused(name)),
            "ignore_dcs" => Json::from_iter(text.split(',').map(str::trim).filter(|name| !name.is_empty())),
            _ => serde_json::from_str::<Json>(text).unwrap_or_else(|_| Json::from(text)),
        };
        self.take(name, &value)
    }

    /// Settings of full repairs that [`AutoRepair::change`] changes, as an operator writes them.
    pub fn shown(&self) -> Vec<(&'static str, String)> {
        let duration = |duration: Duration| {
            let seconds = duration.as_secs();
            let unit = [(86_400, "d"), (3_600, "h"), (60, "m")]
                .into_iter()
                .find(|(unit, _)| seconds > 0 && seconds.is_multiple_of(*unit));
            unit.map_or_else(|| format!("{seconds}s"), |(unit, name)| format!("{}{name}", seconds / unit))
        };
        vec![
            ("min_repair_interval", duration(self.interval_min)),
            ("ignore_dcs", self.ignored_data_centers.join(",")),
            ("parallel_repair_count", self.parallel_count.to_string()),
            ("parallel_repair_percentage", self.parallel_percent.to_string()),
            ("allow_parallel_replica_repair", self.shares_replicas.to_string()),
            ("materialized_view_repair_enabled", self.repairs_views.to_string()),
            ("repair_session_timeout", duration(self.repair_max)),
            ("repair_max_retries", self.retries_max.to_string()),
            ("repair_retry_backoff", duration(self.retry_after)),
            ("bytes_per_assignment", format!("{}KiB", self.bytes_max >> 10)),
            ("work_share", self.work_share.to_string()),
            ("latency_factor", self.latency_factor.to_string()),
        ]
    }

    /// Takes a setting of full repairs.
    fn take(&mut self, name: &str, value: &Json) -> Result<(), String> {
        match name {
            "initial_scheduler_delay" => self.first_after = duration(name, value)?,
            "min_repair_interval" => self.interval_min = duration(name, value)?,
            "parallel_repair_count" => self.parallel_count = usize_of(name, value, 1)?,
            "parallel_repair_percentage" => self.parallel_percent = usize_of(name, value, 0)?.min(100),
            "allow_parallel_replica_repair" => self.shares_replicas = flag(name, value)?,
            "materialized_view_repair_enabled" => self.repairs_views = flag(name, value)?,
            "ignore_dcs" => {
                let names = value.as_array().ok_or_else(|| format!("{name} must be a list"))?;
                self.ignored_data_centers = names.iter().filter_map(Json::as_str).map(str::to_owned).collect();
            }
            "repair_session_timeout" => self.repair_max = duration(name, value)?,
            "repair_retry_backoff" => self.retry_after = duration(name, value)?,
            "repair_max_retries" => {
                self.retries_max = u32::try_from(usize_of(name, value, 0)?).unwrap_or(u32::MAX);
            }
            "bytes_per_assignment" => {
                let text = value.as_str().ok_or_else(|| format!("{name} must be a size"))?;
                self.bytes_max = units::parse(text, DATA, "KiB").map_err(|why| format!("{name}: {why}"))?.max(1);
            }
            "work_share" => {
                let share = value.as_f64().filter(|share| *share > 0.0 && *share <= 1.0);
                self.work_share = share.ok_or_else(|| format!("{name} must be above 0 and at most 1"))?;
            }
            "latency_factor" => {
                let factor = value.as_f64().filter(|factor| *factor >= 1.0 && factor.is_finite());
                self.latency_factor = factor.ok_or_else(|| format!("{name} must be at least 1"))?;
            }
            // the schedule does this and nothing else
            "repair_primary_token_range_only" if value == &Json::Bool(true) => {}
            "number_of_repair_threads" if value == &Json::from(1) => {}
            "force_repair_new_node" if value == &Json::Bool(false) => {}
            _ => return Err(refused(name)),
        }
        Ok(())
    }
}

fn refused(name: &str) -> String {
    format!("{name} is not supported")
}

fn flag(name: &str, value: &Json) -> Result<bool, String> {
    match value {
        Json::Bool(flag) => Ok(*flag),
        Json::String(text) if text == "true" || text == "false" => Ok(text == "true"),
        _ => Err(format!("{name} must be true or false")),
    }
}

fn duration(name: &str, value: &Json) -> Result<Duration, String> {
    let text = value.as_str().ok_or_else(|| format!("{name} must be a duration"))?;
    units::parse(text, TIME, "s").map(Duration::from_nanos).map_err(|why| format!("{name}: {why}"))
}

fn usize_of(name: &str, value: &Json, least: usize) -> Result<usize, String> {
    let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
    number.filter(|number| *number >= least).ok_or_else(|| format!("{name} must be at least {least}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(json: Json) -> Result<AutoRepair, String> {
        let Json::Object(given) = json else { panic!("a map") };
        let mut settings = AutoRepair::default();
        settings.take_all(&given).map(|()| settings)
    }

    /// Settings that are shown can be given back, and say the same.
    #[test]
    fn settings_are_changed_as_they_are_shown() {
        let mut settings = AutoRepair::default();
        for (name, text) in [
            ("min_repair_interval", "2h"),
            ("parallel_repair_count", "7"),
            ("ignore_dcs", "a, b"),
            ("materialized_view_repair_enabled", "false"),
        ] {
            settings.change(name, text).expect("honoured");
        }
        assert_eq!((settings.interval_min.as_secs(), settings.parallel_count), (7200, 7));
        assert!(!settings.repairs_views);
        assert_eq!(settings.ignored_data_centers, ["a", "b"]);
        let mut again = AutoRepair::default();
        settings.shown().iter().for_each(|(name, text)| again.change(name, text).expect("honoured"));
        assert_eq!(again, settings);
        again.change("enabled", "false").expect("honoured");
        assert_eq!(again.is_on, Some(false));
        for (name, text) in [("enabled", "perhaps"), ("parallel_repair_count", "0"), ("repair_by_keyspace", "true")] {
            assert!(again.change(name, text).is_err_and(|why| why.starts_with(name)), "{name}");
        }
    }

    #[test]
    fn sub_keys_are_honoured_or_refused_by_name() {
        assert_eq!(read(json!({})), Ok(AutoRepair::default()));
        let full = read(json!({
            "enabled": true,
            "repair_check_interval": "10s",
            "global_settings": {"parallel_repair_count": 2, "ignore_dcs": ["a"], "min_repair_interval": "1h"},
            "repair_type_overrides": {"full": {"enabled": true, "min_repair_interval": "2h", "work_share": 0.25},
                                      "incremental": {"enabled": false}},
        }));
        let expected = AutoRepair {
            is_on: Some(true),
            check_every: Duration::from_secs(10),
            parallel_count: 2,
            ignored_data_centers: vec!["a".to_owned()],
            interval_min: Duration::from_secs(7200),
            work_share: 0.25,
            ..AutoRepair::default()
        };
        assert_eq!(full, Ok(expected));
        let off = read(json!({"enabled": true, "repair_type_overrides": {"full": {"enabled": false}}}));
        assert_eq!(off.map(|settings| settings.is_on), Ok(Some(false)));
        for (given, problem) in [
            (json!({"colour": "red"}), "colour is not supported"),
            (json!({"enabled": "maybe"}), "enabled must be true or false"),
            (json!({"repair_check_interval": "10ms"}), "repair_check_interval: "),
            (json!({"global_settings": 7}), "global_settings must be a map"),
            (json!({"global_settings": {"repair_by_keyspace": true}}), "repair_by_keyspace is not supported"),
            (json!({"global_settings": {"parallel_repair_count": 0}}), "parallel_repair_count must be at least 1"),
            (json!({"global_settings": {"work_share": 0}}), "work_share must be above 0"),
            (json!({"global_settings": {"latency_factor": 0.5}}), "latency_factor must be at least 1"),
            (json!({"global_settings": {"bytes_per_assignment": "0.5GiB"}}), "bytes_per_assignment: "),
            (json!({"repair_type_overrides": {"full": 7}}), "repair_type_overrides.full is not supported"),
            (
                json!({"repair_type_overrides": {"incremental": {"enabled": true}}}),
                "repair_type_overrides.incremental is not supported: only full repairs are scheduled",
            ),
        ] {
            let refused = read(given.clone()).expect_err("refused");
            assert!(refused.starts_with(problem), "{given}: {refused}");
        }
    }
}
