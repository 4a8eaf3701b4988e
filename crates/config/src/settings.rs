//! The rows of `system_views.settings`: each key with its value, old names in their units, sub-keys
//! behind a dot.
//!
//! Sub-keys that nobody sets are listed in `settings.txt`. Agrees with
//! `org.apache.cassandra.db.virtual.SettingsTable`.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use crate::Config;
use crate::catalogue::{self, Key, Kind, OldUnit, old_built_in, old_factor};
use crate::secrets::{REDACTED, is_secret, java_text};
use crate::value::{ParsedValue, Value};

const SUB_KEYS: &str = include_str!("settings.txt");
/// Classes that are also shown under the key alone, as 4.0 did.
const PLAIN_CLASSES: &[&str] =
    &["authenticator", "authorizer", "internode_authenticator", "network_authorizer", "role_manager"];
/// Durations for which the old name shows -1 instead of null.
const MINUS_ONE: &[&str] = &["credentials_update_interval", "permissions_update_interval", "roles_update_interval"];

/// Keys of ours alone, and keys that are JVM system properties in Cassandra: its table of settings
/// has none of them.
const PROPERTIES: &[&str] = &[
    "admin_address",
    "admin_encryption_options",
    "consistent_rangemovement",
    "console_queries_enabled",
    "join_ring",
    "management_api_without_token_enabled",
    "otlp_certificate",
    "otlp_endpoint",
    "otlp_sample_ratio",
    "replace_address_first_boot",
    "ring_delay",
];

type Rows = BTreeMap<String, Option<String>>;

/// Names and values of all settings, ordered by name. None: null.
pub fn settings(config: &Config) -> Vec<(String, Option<String>)> {
    let mut rows = sub_keys();
    for key in catalogue::keys().iter().filter(|key| !PROPERTIES.contains(&key.name)) {
        let value = config.value(key);
        let shown = (!matches!(value.what, ParsedValue::Null | ParsedValue::Off)).then(|| text_of(key, &value));
        match key.kind {
            Kind::Class => {
                let parameters = shown.as_ref().map(|_| parameters(value.parameters()));
                rows.insert(format!("{}.parameters", key.name), parameters);
                rows.insert(format!("{}.class_name", key.name), shown.clone());
                if PLAIN_CLASSES.contains(&key.name) {
                    rows.insert(key.name.to_owned(), shown);
                }
            }
            Kind::Map => {
                if let ParsedValue::Json(Json::Object(map)) = &value.what {
                    given_sub_keys(key.name, map, &mut rows);
                }
            }
            Kind::List => drop(rows.insert(key.name.to_owned(), Some(shown.unwrap_or_else(|| "[]".to_owned())))),
            _ => drop(rows.insert(key.name.to_owned(), shown)),
        }
        for (old, unit) in &key.old {
            if *old != key.name || !unit.is_empty() {
                rows.insert((*old).to_owned(), old_form(key, &value, unit));
            }
        }
    }
    rows.into_iter().collect()
}

/// The present name of a setting that had another one in the table of Cassandra 4.0; None: `old` is
/// no such name. Keys of cassandra.yaml that were renamed are not meant.
pub fn present_name(old: &str) -> Option<String> {
    if PLAIN_CLASSES.contains(&old) {
        return Some(format!("{old}.class_name"));
    }
    SUB_KEYS.lines().filter(|line| !line.starts_with("--")).find_map(|line| {
        let mut fields = line.split('|').map(str::trim);
        let name = fields.next()?;
        fields.nth(1)?.split_whitespace().any(|known| known == old).then(|| name.to_owned())
    })
}

/// Parameters in the text form of a Java map.
fn parameters(given: Vec<(String, String)>) -> String {
    let shown = |(name, value): (String, String)| match is_secret(&name) {
        true => format!("{name}={REDACTED}"),
        false => format!("{name}={value}"),
    };
    format!("{{{}}}", given.into_iter().map(shown).collect::<Vec<_>>().join(", "))
}

fn text_of(key: &Key, value: &Value) -> String {
    match (key.kind, &value.what) {
        (Kind::Double, ParsedValue::Double(number)) => format!("{number:?}"),
        (Kind::Bool, ParsedValue::Bool(flag)) => flag.to_string(),
        _ => value.text.clone(),
    }
}

/// The sub-keys with the values that they have if nobody sets them.
fn sub_keys() -> Rows {
    let mut rows = Rows::new();
    for line in SUB_KEYS.lines().filter(|line| !line.starts_with("--")) {
        let mut fields = line.split('|').map(str::trim);
        let name = fields.next().unwrap_or_default();
        let value = match fields.next().unwrap_or_default() {
            "" => None,
            "''" => Some(String::new()),
            text => Some(text.to_owned()),
        };
        for old in fields.next().unwrap_or_default().split_whitespace() {
            rows.insert(old.to_owned(), value.clone());
        }
        rows.insert(name.to_owned(), value);
    }
    rows
}

/// Overlays the sub-keys that the configuration gives. A map whose own sub-keys are listed is taken
/// apart, any other is one value.
fn given_sub_keys(prefix: &str, map: &Map<String, Json>, rows: &mut Rows) {
    for (name, value) in map {
        let full = format!("{prefix}.{name}");
        let text = match value {
            Json::Null => None,
            _ if is_secret(name) => Some(REDACTED.to_owned()),
            Json::Object(inner) if has_sub_keys(&full, rows) => {
                given_sub_keys(&full, inner, rows);
                continue;
            }
            other => Some(java_text(other)),
        };
        rows.insert(full, text);
    }
}

fn has_sub_keys(name: &str, rows: &Rows) -> bool {
    let prefix = format!("{name}.");
    rows.range(prefix.clone()..).next().is_some_and(|(known, _)| known.starts_with(&prefix))
}

fn old_form(key: &Key, value: &Value, unit: OldUnit) -> Option<String> {
    match &value.what {
        ParsedValue::Null => MINUS_ONE.contains(&key.name).then(|| "-1".to_owned()),
        // the only one whose old form had a fraction
        ParsedValue::Quantity(quantity) if key.name == "commitlog_sync_group_window" => {
            Some(format!("{:?}", *quantity as f64 / old_factor(unit) as f64))
        }
        ParsedValue::Int(number) => Some(number.saturating_add(old_built_in(unit)).to_string()),
        ParsedValue::Quantity(quantity) if !unit.is_empty() => Some((quantity / old_factor(unit)).to_string()),
        _ => Some(value.text.clone()),
    }
}
