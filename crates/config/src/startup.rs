//! `startup_checks`: what is looked at before a node starts.
//!
//! Agrees with `org.apache.cassandra.config.StartupChecksOptions`. `check_dc` and `check_rack` are
//! always made; `check_filesystem_ownership` is refused by name where it is enabled.

use serde_json::{Map, Value as Json};

use crate::reader::Reader;
use crate::value::ParsedValue;

/// check_data_resurrection: a node that was down for longer than gc_grace_seconds of a table does
/// not start, because deleted data could come back from it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct DataResurrection {
    /// heartbeat_file; None: `cassandra-heartbeat` beside the system keyspaces
    pub heartbeat_file: Option<String>,
    /// excluded_keyspaces
    pub excluded_keyspaces: Vec<String>,
    /// excluded_tables, as `keyspace.table`
    pub excluded_tables: Vec<String>,
}

/// The sub-keys of check_data_resurrection. All but `enabled` are texts.
const SUB_KEYS: [&str; 4] = ["enabled", "heartbeat_file", "excluded_keyspaces", "excluded_tables"];

/// None: the check is not enabled, as by default.
pub(crate) fn data_resurrection(reader: &mut Reader<'_>) -> Option<DataResurrection> {
    let ParsedValue::Json(Json::Object(checks)) = reader.value("startup_checks").what else { return None };
    let is_enabled = |name: &str| matches!(checks.get(name), Some(Json::Object(check)) if enabled(check));
    if is_enabled("check_filesystem_ownership") {
        reader.problem("startup_checks", "check_filesystem_ownership is not there: leave it out");
    }
    let known = ["check_data_resurrection", "check_dc", "check_rack", "check_filesystem_ownership"];
    if let Some(other) = checks.keys().find(|name| !known.contains(&name.as_str())) {
        reader.problem("startup_checks", &format!("{other} is none of {}", known.join(", ")));
    }
    let Some(Json::Object(check)) = checks.get("check_data_resurrection") else { return None };
    reader.refuse_other_sub_keys("startup_checks", check, &SUB_KEYS);
    for name in &SUB_KEYS[1..] {
        if check.get(*name).is_some_and(|value| !value.is_string() && !value.is_null()) {
            reader.problem("startup_checks", &format!("{name} must be text (names are separated by commas)"));
        }
    }
    let text = |name: &str| check.get(name).and_then(Json::as_str).map(str::to_owned);
    let words = |name: &str| {
        let text = text(name).unwrap_or_default();
        text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    enabled(check).then(|| DataResurrection {
        heartbeat_file: text("heartbeat_file"),
        excluded_keyspaces: words("excluded_keyspaces"),
        excluded_tables: words("excluded_tables"),
    })
}

fn enabled(check: &Map<String, Json>) -> bool {
    match check.get("enabled") {
        Some(Json::Bool(enabled)) => *enabled,
        Some(Json::String(text)) => text == "true",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn the_check_of_the_gc_grace_is_read() {
        let of = |text: &str| Config::load(Some(text), &[], false).map(|config| config.data_resurrection);
        assert_eq!(of("startup_checks: {check_data_resurrection: {enabled: false}}").expect("valid"), None);
        let text = "startup_checks:\n  check_data_resurrection:\n    enabled: true\n    heartbeat_file: /a/b\n    \
                    excluded_keyspaces: a, b\n    excluded_tables: c.d\n  check_dc: {enabled: true}\n";
        let expected = DataResurrection {
            heartbeat_file: Some("/a/b".to_owned()),
            excluded_keyspaces: vec!["a".to_owned(), "b".to_owned()],
            excluded_tables: vec!["c.d".to_owned()],
        };
        assert_eq!(of(text).expect("valid"), Some(expected));
        let refused = of("startup_checks: {check_filesystem_ownership: {enabled: true}}").expect_err("not there");
        assert_eq!(refused.problems, ["startup_checks: check_filesystem_ownership is not there: leave it out"]);
        let slip = "startup_checks: {check_data_resurrection: {enable: true, excluded_tables: [c.d]}}";
        assert_eq!(
            of(slip).expect_err("a slip, and a list").problems,
            [
                "startup_checks: enable is no sub-key here (these are: enabled, heartbeat_file, excluded_keyspaces, \
                 excluded_tables)",
                "startup_checks: excluded_tables must be text (names are separated by commas)"
            ]
        );
    }
}
