//! The value of a key, checked for its form.

use std::fmt;

use serde_json::Value as Json;

use crate::catalogue::{Key, Kind, OldUnit, Treatment, old_built_in, old_factor};
use crate::secrets::redacted;
use crate::units::{self, DATA, TIME};

/// A value, interpreted and as it was written.
#[derive(Clone, PartialEq, Debug)]
pub struct Value {
    /// The interpreted value.
    pub what: ParsedValue,
    /// The text as it was written, without the secrets of lists and maps; `settings` shows it.
    pub text: String,
}

/// An interpreted value.
#[derive(Clone, PartialEq)]
pub enum ParsedValue {
    /// null, which means the default
    Null,
    /// switched off while the node runs, whatever the default is
    Off,
    /// bool
    Bool(bool),
    /// int
    Int(i64),
    /// double
    Double(f64),
    /// text, or the name of a class
    Text(String),
    /// nanoseconds, bytes, bytes a second
    Quantity(u64),
    /// list or map
    Json(Json),
}

/// Secrets in lists and maps are not printed.
impl fmt::Debug for ParsedValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("Null"),
            Self::Off => f.write_str("Off"),
            Self::Bool(flag) => write!(f, "Bool({flag})"),
            Self::Int(number) => write!(f, "Int({number})"),
            Self::Double(number) => write!(f, "Double({number:?})"),
            Self::Text(text) => write!(f, "Text({text:?})"),
            Self::Quantity(quantity) => write!(f, "Quantity({quantity})"),
            Self::Json(json) => write!(f, "Json({})", redacted(json)),
        }
    }
}

impl Value {
    /// The default of a key.
    pub fn of_default(key: &Key) -> Result<Self, String> {
        match key.default {
            "" => Ok(Self { what: ParsedValue::Null, text: String::new() }),
            text => Self::of_text(key, text),
        }
    }

    /// Reads a value of the file. `old`: the key was given under an old name, whose plain numbers
    /// have this unit.
    pub fn read(key: &Key, json: &Json, old: Option<OldUnit>) -> Result<Self, String> {
        if json.is_null() {
            return Ok(Self { what: ParsedValue::Null, text: String::new() });
        }
        if let (Some(unit), Some(number)) = (old.filter(|unit| !unit.is_empty()), plain_number(json)) {
            return Self::of_old_number(key, number, unit);
        }
        match (key.kind, json) {
            (Kind::List, Json::Array(items)) => {
                let items: Vec<String> = items.iter().map(|item| scalar(&redacted(item))).collect();
                Ok(Self { what: ParsedValue::Json(json.clone()), text: format!("[{}]", items.join(", ")) })
            }
            (Kind::List, Json::String(text)) => {
                let items = text.split(',').map(|item| Json::String(item.trim().to_owned())).collect();
                Ok(Self { what: ParsedValue::Json(Json::Array(items)), text: format!("[{text}]") })
            }
            (Kind::Map, Json::Object(_)) => {
                Ok(Self { what: ParsedValue::Json(json.clone()), text: redacted(json).to_string() })
            }
            (Kind::Class, Json::Object(map)) => class_name(key, map),
            (Kind::Class, Json::Array(items)) => match items.first() {
                Some(Json::Object(map)) if items.len() == 1 => class_name(key, map),
                _ => Err("must be one class".to_owned()),
            },
            (Kind::Map | Kind::List, _) => Err("must be a list or a map of its sub-keys".to_owned()),
            (_, Json::Object(_) | Json::Array(_)) => Err("must be a single value".to_owned()),
            _ => Self::of_text(key, &scalar(json)),
        }
    }

    fn of_text(key: &Key, text: &str) -> Result<Self, String> {
        let what = match key.kind {
            Kind::Bool => match text.to_ascii_lowercase().as_str() {
                "true" | "yes" | "on" => ParsedValue::Bool(true),
                "false" | "no" | "off" => ParsedValue::Bool(false),
                _ => return Err(format!("'{text}' is neither true nor false")),
            },
            Kind::Int => ParsedValue::Int(text.parse().map_err(|_| format!("'{text}' is not a whole number"))?),
            Kind::Double => ParsedValue::Double(text.parse().map_err(|_| format!("'{text}' is not a number"))?),
            Kind::Duration(least) => ParsedValue::Quantity(units::parse(text, TIME, least)?),
            Kind::Size(least) => ParsedValue::Quantity(units::parse(text, DATA, least)?),
            Kind::Rate => ParsedValue::Quantity(units::parse_rate(text)?),
            Kind::Text | Kind::Class => ParsedValue::Text(text.to_owned()),
            Kind::List | Kind::Map => return Err("must be a list or a map of its sub-keys".to_owned()),
        };
        Ok(Self { what, text: text.to_owned() })
    }

    /// Reads the number of an old name. Agrees with `org.apache.cassandra.config.Converters` in
    /// what a negative one means.
    fn of_old_number(key: &Key, number: f64, unit: OldUnit) -> Result<Self, String> {
        if number < 0.0 {
            return match key.name {
                name if UNSET_BELOW_ZERO.contains(&name) => Ok(Self { what: ParsedValue::Null, text: String::new() }),
                name if ZERO_BELOW_ZERO.contains(&name) => Self::of_old_number(key, 0.0, unit),
                _ => Err(format!("'{number}' is negative")),
            };
        }
        if key.kind == Kind::Int {
            return Self::of_old_count(number, old_built_in(unit));
        }
        let quantity = (number * old_factor(unit) as f64) as u64;
        let text = match (key.kind, unit) {
            (Kind::Rate, "Mbit/s") => format!("{quantity}B/s"),
            _ => format!("{number}{unit}"),
        };
        Ok(Self { what: ParsedValue::Quantity(quantity), text })
    }

    /// Reads a threshold that counts built-in things too; -1 behind their number: there is none.
    fn of_old_count(number: f64, built_in: i64) -> Result<Self, String> {
        let count = number as i64 - built_in;
        match number.fract() == 0.0 && (count > 0 || count == -1) {
            true => Ok(Self { what: ParsedValue::Int(count), text: count.to_string() }),
            false => Err(format!("'{number}' is not a whole number above {built_in}, the built-in ones among them")),
        }
    }

    /// Whether both mean the same; class names are compared without their package.
    pub fn is_same(&self, other: &Self) -> bool {
        match (&self.what, &other.what) {
            (ParsedValue::Text(a), ParsedValue::Text(b)) => short_class(a) == short_class(b),
            (ParsedValue::Json(Json::Array(items)), ParsedValue::Null) => items.is_empty(),
            (a, b) => a == b,
        }
    }
}

/// Classes whose parameters are honoured.
const WITH_PARAMETERS: &[&str] = &["commitlog_compression", "default_compaction", "seed_provider"];

/// Keys that a negative number under the old name leaves unset.
const UNSET_BELOW_ZERO: &[&str] = &[
    "credentials_update_interval",
    "index_summary_resize_interval",
    "native_transport_max_request_data_in_flight",
    "native_transport_max_request_data_in_flight_per_ip",
    "permissions_update_interval",
    "roles_update_interval",
    "sstable_preemptive_open_interval",
];
/// Keys for which a negative number under the old name is zero.
const ZERO_BELOW_ZERO: &[&str] = &["cache_load_timeout", "validation_preview_purge_head_start"];

/// A class name without its package.
pub fn short_class(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn class_name(key: &Key, map: &serde_json::Map<String, Json>) -> Result<Value, String> {
    let has_none = |parameters: &Json| match parameters {
        Json::Object(map) => map.is_empty(),
        Json::Array(items) => items.is_empty(),
        other => other.is_null(),
    };
    let class = map.get("class_name").and_then(Json::as_str).ok_or("must have a class_name")?;
    if WITH_PARAMETERS.contains(&key.name) {
        return Ok(Value { what: ParsedValue::Json(Json::Object(map.clone())), text: class.to_owned() });
    }
    if key.treatment == Treatment::Use && !map.get("parameters").is_none_or(has_none) {
        return Err("parameters of the class are not honoured".to_owned());
    }
    Ok(Value { what: ParsedValue::Text(class.to_owned()), text: class.to_owned() })
}

impl Value {
    /// The parameters of a class.
    pub fn parameters(&self) -> Vec<(String, String)> {
        let ParsedValue::Json(Json::Object(class)) = &self.what else { return Vec::new() };
        let given = match class.get("parameters") {
            // parameters may also be written as a list of one map
            Some(Json::Array(items)) => items.first(),
            other => other,
        };
        let Some(Json::Object(parameters)) = given else { return Vec::new() };
        parameters.iter().map(|(name, value)| (name.clone(), scalar(value))).collect()
    }
}

fn plain_number(json: &Json) -> Option<f64> {
    match json {
        Json::Number(number) => number.as_f64(),
        Json::String(text) => text.trim().parse().ok(),
        _ => None,
    }
}

fn scalar(json: &Json) -> String {
    match json {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}
