//! Reads cassandra.yaml and `--set key=value` into checked values by name.
//!
//! The order is defaults, file, `--set` in their order; of a key that is there twice the last one
//! counts, as in Cassandra; `--set key.sub=value` changes one sub-key and keeps the others. Four
//! things are refused by name: a key that Cassandra does not know, a key that is not honoured at
//! another value than ours, a key under an old name in a file that has its present name too, a
//! value of the wrong form. `lenient` turns the first three into notes.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};
use serde_saphyr::DuplicateKeyPolicy;

use crate::catalogue::{self, Key, Kind, Treatment};
use crate::error::ConfigError;
use crate::value::{ParsedValue, Value};

/// See [`Loader::fill_in_sync_period`].
const SYNC_PERIOD: &str = "10000ms";

/// Checked values by the name of the key; keys that are not set are missing.
#[derive(Clone, Default, Debug)]
pub struct Values {
    /// The values by the present name of the key.
    pub by_name: BTreeMap<&'static str, Value>,
    /// Keys that a lenient load ignored, and keys that were accepted without effect.
    pub notes: Vec<String>,
}

/// Reads the text of a file and the settings of the command line.
pub fn load(yaml: Option<&str>, sets: &[String], lenient: bool) -> Result<Values, ConfigError> {
    let mut loader = Loader { values: Values::default(), problems: Vec::new(), lenient };
    match yaml.map(parse_yaml) {
        None => {}
        Some(Ok(map)) => loader.take_file(&map),
        Some(Err(problem)) => loader.problems.push(problem),
    }
    for set in sets {
        loader.take_set(set);
    }
    loader.fill_in_sync_period();
    if loader.problems.is_empty() {
        return Ok(loader.values);
    }
    Err(ConfigError { problems: loader.problems })
}

/// Values of which some are set anew, as a file would set them; None: switched off.
pub fn changed(values: &Values, sets: &[(&'static str, Option<Json>)]) -> Result<Values, ConfigError> {
    let mut loader = Loader { values: values.clone(), problems: Vec::new(), lenient: false };
    for (name, json) in sets {
        match json {
            Some(json) => loader.take(name, json),
            None => drop(loader.values.by_name.insert(name, Value { what: ParsedValue::Off, text: String::new() })),
        }
    }
    if loader.problems.is_empty() { Ok(loader.values) } else { Err(ConfigError { problems: loader.problems }) }
}

fn parse_yaml(text: &str) -> Result<Map<String, Json>, String> {
    let options = serde_saphyr::options! { duplicate_keys: DuplicateKeyPolicy::LastWins };
    match serde_saphyr::from_str_with_options::<Json>(text, options) {
        Ok(Json::Object(map)) => Ok(map),
        Ok(Json::Null) => Ok(Map::new()),
        Ok(_) => Err("the configuration is not a list of keys and values".to_owned()),
        // the lines behind the first quote the file, which may have secrets
        Err(error) => {
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            Err(format!("the configuration is not YAML: {}", first.trim_start_matches("error: ")))
        }
    }
}

struct Loader {
    values: Values,
    problems: Vec<String>,
    lenient: bool,
}

impl Loader {
    /// Takes the keys of a file. Which of two names of one key counts would hang on the alphabet,
    /// so the old one is refused, as in Cassandra.
    fn take_file(&mut self, map: &Map<String, Json>) {
        for (name, json) in map {
            let present = catalogue::find(name).map(|(key, _)| key.name).filter(|present| *present != name);
            match present.filter(|present| map.contains_key(*present)) {
                Some(present) => self.refuse(format!("{name}: {present} is its present name, and is given too")),
                None => self.take(name, json),
            }
        }
    }

    /// Takes `key=value`; `key.sub=value` sets one sub-key. The other sub-keys keep the values that
    /// the file or an earlier `--set` gave them, otherwise a change of one sub-key of
    /// `client_encryption_options` would switch encryption off.
    fn take_set(&mut self, set: &str) {
        let Some((name, text)) = set.split_once('=') else {
            self.problems.push(format!("--set {set}: must be key=value"));
            return;
        };
        let json = serde_saphyr::from_str::<Json>(text).unwrap_or_else(|_| Json::String(text.to_owned()));
        match name.split_once('.') {
            None => self.take(name.trim(), &json),
            Some((outer, inner)) => {
                let mut sub_keys = self.sub_keys(outer.trim());
                set_at(&mut sub_keys, inner, json);
                self.take(outer.trim(), &Json::Object(sub_keys));
            }
        }
    }

    /// The sub-keys that a key has so far. Empty: the key is not set, or its value has no sub-keys.
    fn sub_keys(&self, name: &str) -> Map<String, Json> {
        let value = catalogue::find(name).and_then(|(key, _)| self.values.by_name.get(key.name));
        match value.map(|value| &value.what) {
            Some(ParsedValue::Json(Json::Object(sub_keys))) => sub_keys.clone(),
            _ => Map::new(),
        }
    }

    fn take(&mut self, name: &str, json: &Json) {
        let Some((key, old)) = catalogue::find(name) else {
            let hint = catalogue::nearest(name).map_or(String::new(), |known| format!(" (did you mean {known}?)"));
            self.refuse(format!("{name}: no such key{hint}"));
            return;
        };
        let value = match Value::read(key, json, old) {
            Ok(value) => value,
            Err(problem) => {
                self.problems.push(format!("{name}: {problem}"));
                return;
            }
        };
        match key.treatment {
            Treatment::Use => {
                self.values.by_name.insert(key.name, value);
            }
            Treatment::Any => {
                self.values.notes.push(format!("{name}: without effect here"));
                self.values.by_name.insert(key.name, value);
            }
            Treatment::Same if asks_for_what_is_done_anyway(key, &value, json) => {
                self.values.by_name.insert(key.name, value);
            }
            Treatment::Same => {
                let ours = match key.name {
                    _ if key.default.is_empty() => "leave it out",
                    _ => key.default,
                };
                self.refuse(format!(
                    "{name}: exists in Cassandra, but is not honoured yet at this value (ours: {ours})"
                ));
            }
        }
    }

    /// `commitlog_sync: periodic` without a period gets the period of Cassandra's own
    /// cassandra.yaml. Cassandra demands that the period be given; a period of zero is refused, as
    /// in Cassandra.
    fn fill_in_sync_period(&mut self) {
        let is_periodic = self.values.by_name.get("commitlog_sync").is_some_and(|sync| sync.text == "periodic");
        if is_periodic && !self.values.by_name.contains_key("commitlog_sync_period") {
            self.take("commitlog_sync_period", &Json::String(SYNC_PERIOD.to_owned()));
        }
    }

    fn refuse(&mut self, problem: String) {
        if self.lenient {
            self.values.notes.push(format!("{problem}; ignored"));
        } else {
            self.problems.push(problem);
        }
    }
}

/// Sets the value at a path of sub-keys (`a.b.c`). A value on the way that has no sub-keys gives
/// way to a map.
fn set_at(map: &mut Map<String, Json>, path: &str, json: Json) {
    let Some((first, rest)) = path.split_once('.') else {
        map.insert(path.trim().to_owned(), json);
        return;
    };
    let inner = map.entry(first.trim()).or_insert(Json::Null);
    if !inner.is_object() {
        *inner = Json::Object(Map::new());
    }
    if let Json::Object(inner) = inner {
        set_at(inner, rest, json);
    }
}

/// Whether the value asks for nothing else than what the program does: it is the default, null, or
/// a feature that is switched off.
fn asks_for_what_is_done_anyway(key: &Key, value: &Value, json: &Json) -> bool {
    let default = Value::of_default(key).expect("defaults are checked by a test");
    let nothing = Value { what: ParsedValue::Null, text: String::new() };
    value.is_same(&default) || value.is_same(&nothing) || (key.kind == Kind::Map && is_switched_off(json))
}

/// Whether a map has `enabled: false`, or is encryption that encrypts nothing. Other sub-keys
/// beside a switch that is off have no effect.
fn is_switched_off(json: &Json) -> bool {
    let is_off = |name: &str| match json.get(name) {
        None => true,
        Some(Json::Bool(on)) => !on,
        Some(Json::String(text)) => matches!(text.as_str(), "false" | "none"),
        Some(_) => false,
    };
    ["enabled", "optional", "internode_encryption", "auto_repair_scheduling_enabled"].into_iter().all(is_off)
}

#[cfg(test)]
mod tests {
    use crate::Config;

    #[test]
    fn the_last_of_two_values_counts() {
        let text = "num_tokens: 4\ncluster_name: a\nnum_tokens: 8\ncluster_name: b\n";
        let config = Config::load(Some(text), &[], false).expect("valid");
        assert_eq!((config.num_tokens, config.cluster_name.as_str()), (8, "b"));
    }

    #[test]
    fn the_default_factor_of_keyspaces() {
        let load = |text: &str| Config::load(Some(text), &[], false);
        assert_eq!(load("default_keyspace_rf: 3").expect("valid").schema.default_keyspace_rf, 3);
        let problems = |text: &str| load(text).expect_err(text).problems;
        assert_eq!(problems("default_keyspace_rf: 0"), ["default_keyspace_rf: cannot be less than 1"]);
        assert_eq!(
            problems("default_keyspace_rf: 2\nminimum_replication_factor_fail_threshold: 3"),
            ["default_keyspace_rf: (2) cannot be less than minimum_replication_factor_fail_threshold (3)"]
        );
    }
}
