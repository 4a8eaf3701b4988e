//! The rows of `system_views.settings`: every key with its value, old names in their units, sub-keys with a dot.

use serde_json::Value as Json;

use crate::Config;
use crate::catalogue::{self, Key, Kind, OldUnit, old_factor};
use crate::value::{Value, What};

/// Name and value of every setting, by name. None: null.
pub fn settings(config: &Config) -> Vec<(String, Option<String>)> {
    let mut rows = Vec::new();
    for key in catalogue::keys() {
        let value = config.value(key);
        let shown = (value.what != What::Null).then(|| value.text.clone());
        match key.kind {
            Kind::Class => {
                rows.push((key.name.to_owned(), shown.clone()));
                let parameters = shown.as_ref().map(|_| "{}".to_owned());
                rows.push((format!("{}.class_name", key.name), shown));
                rows.push((format!("{}.parameters", key.name), parameters));
            }
            Kind::Map => sub_keys(key, &value, &mut rows),
            Kind::List => rows.push((key.name.to_owned(), Some(shown.unwrap_or_else(|| "[]".to_owned())))),
            _ => rows.push((key.name.to_owned(), shown)),
        }
        for (old, unit) in key.old.iter().filter(|(old, _)| *old != key.name) {
            rows.push(((*old).to_owned(), old_form(&value, unit)));
        }
    }
    rows.sort();
    rows
}

fn sub_keys(key: &Key, value: &Value, rows: &mut Vec<(String, Option<String>)>) {
    let What::Json(Json::Object(map)) = &value.what else { return };
    for (name, value) in map {
        let text = match value {
            Json::Null => None,
            Json::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        rows.push((format!("{}.{name}", key.name), text));
    }
}

fn old_form(value: &Value, unit: OldUnit) -> Option<String> {
    match &value.what {
        What::Null => None,
        What::Quantity(quantity) if !unit.is_empty() => Some((quantity / old_factor(unit)).to_string()),
        _ => Some(value.text.clone()),
    }
}
