//! The option `caching`: whether keys, and how many rows of a partition, may be cached.
//!
//! Agrees with `org.apache.cassandra.schema.CachingParams`. `storage::caches` acts on it.

use std::collections::BTreeMap;

use crate::error::{Result, config};

/// Checks the map and gives its stored form.
pub fn normalize(map: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>> {
    let unknown: Vec<&str> =
        map.keys().map(String::as_str).filter(|key| !matches!(*key, "keys" | "rows_per_partition")).collect();
    let keys = map.get("keys").map_or(Ok("NONE"), |value| keys_form(value))?;
    let rows = map.get("rows_per_partition").map_or(Ok("NONE".to_owned()), |value| rows_form(value))?;
    if !unknown.is_empty() {
        return config(format!(
            "Invalid caching sub-options [{}]: only 'keys' and 'rows_per_partition' are allowed",
            unknown.join(", ")
        ));
    }
    Ok(BTreeMap::from([("keys".to_owned(), keys.to_owned()), ("rows_per_partition".to_owned(), rows)]))
}

fn keys_form(value: &str) -> Result<&'static str> {
    match value.to_uppercase().as_str() {
        "ALL" => Ok("ALL"),
        "NONE" => Ok("NONE"),
        _ => {
            config(format!("Invalid value '{value}' for caching sub-option 'keys': only 'ALL' and 'NONE' are allowed"))
        }
    }
}

fn rows_form(value: &str) -> Result<String> {
    let upper = value.to_uppercase();
    if upper == "ALL" || upper == "NONE" {
        return Ok(upper);
    }
    match value.parse::<u32>() {
        Ok(0) => Ok("NONE".to_owned()),
        Ok(rows) if rows < i32::MAX as u32 => Ok(rows.to_string()),
        Ok(_) => Ok("ALL".to_owned()),
        Err(_) => config(format!(
            "Invalid value '{value}' for caching sub-option 'rows_per_partition': only 'ALL', 'NONE', and integer values are allowed"
        )),
    }
}
