//! The option `compression`: the compressor of a table's SSTables and its chunk length.
//!
//! Agrees with `org.apache.cassandra.schema.CompressionParams` and the option checks of the
//! compressors.

use std::collections::BTreeMap;

use crate::error::{Result, config};
use crate::ident::java_double;

const PACKAGE: &str = "org.apache.cassandra.io.compress.";
const CHUNK_LENGTH: &str = "chunk_length_in_kb";
const MIN_RATIO: &str = "min_compress_ratio";
const CHUNK_LENGTH_DEFAULT_KB: i32 = 16;

/// The compressors, and the options that each accepts.
const COMPRESSORS: &[(&str, &[&str])] = &[
    ("LZ4Compressor", &["lz4_compressor_type", "lz4_high_compressor_level"]),
    ("SnappyCompressor", &[]),
    ("DeflateCompressor", &[]),
    ("ZstdCompressor", &["compression_level"]),
    ("NoopCompressor", &[]),
];

/// Checks the map and gives its stored form: full class name and chunk length, or `enabled: false`.
pub fn normalize(map: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>> {
    let mut options = map.clone();
    let enabled = options.remove("enabled").is_none_or(|value| value.eq_ignore_ascii_case("true"));
    if !enabled {
        return if options.is_empty() {
            Ok(disabled())
        } else {
            config("If the 'enabled' option is set to false no other options must be specified")
        };
    }
    if map.is_empty() {
        return Ok(disabled());
    }
    let Some(class) = options.remove("class") else {
        return config("Missing sub-option 'class' for the 'compression' option.");
    };
    if class.is_empty() {
        return config("The 'class' option must not be empty. To disable compression use 'enabled' : false");
    }
    let chunk_kb = chunk_length_kb(options.remove(CHUNK_LENGTH))?;
    let ratio = min_compress_ratio(options.remove(MIN_RATIO))?;
    let (name, known) = compressor(&class)?;
    check_own_options(name, known, &options)?;
    check_lengths(chunk_kb, ratio)?;
    options.insert("class".to_owned(), format!("{PACKAGE}{name}"));
    options.insert(CHUNK_LENGTH.to_owned(), chunk_kb.to_string());
    if ratio != 0.0 {
        options.insert(MIN_RATIO.to_owned(), java_double(ratio));
    }
    Ok(options)
}

fn disabled() -> BTreeMap<String, String> {
    BTreeMap::from([("enabled".to_owned(), "false".to_owned())])
}

fn compressor(class: &str) -> Result<(&'static str, &'static [&'static str])> {
    let short = class.strip_prefix(PACKAGE).unwrap_or(class);
    match COMPRESSORS.iter().find(|(name, _)| *name == short) {
        Some(found) => Ok(*found),
        None if class.contains('.') => config(format!("Could not create Compression for type {class}")),
        None => config(format!("Could not create Compression for type {PACKAGE}{class}")),
    }
}

fn chunk_length_kb(value: Option<String>) -> Result<i32> {
    let Some(value) = value else {
        return Ok(CHUNK_LENGTH_DEFAULT_KB);
    };
    match value.parse::<i32>() {
        Ok(parsed) if parsed > i32::MAX / 1024 => config(format!("Value of {CHUNK_LENGTH} is too large ({parsed})")),
        Ok(parsed) => Ok(parsed),
        Err(_) => config(format!("Invalid value for {CHUNK_LENGTH}")),
    }
}

fn min_compress_ratio(value: Option<String>) -> Result<f64> {
    let Some(value) = value else { return Ok(0.0) };
    value.trim().parse().or_else(|_| config(format!("Invalid value for {MIN_RATIO}: {value}")))
}

fn check_lengths(chunk_kb: i32, ratio: f64) -> Result<()> {
    if chunk_kb <= 0 {
        return config(format!("Invalid negative or null {CHUNK_LENGTH}"));
    }
    if chunk_kb & (chunk_kb - 1) != 0 {
        return config(format!("{CHUNK_LENGTH} must be a power of 2"));
    }
    if ratio < 0.0 {
        return config(format!("Invalid negative {MIN_RATIO}"));
    }
    if ratio > 0.0 && ratio < 1.0 {
        return config(format!("{MIN_RATIO} can either be 0 or greater than or equal to 1"));
    }
    Ok(())
}

fn check_own_options(name: &str, known: &[&str], options: &BTreeMap<String, String>) -> Result<()> {
    match name {
        "LZ4Compressor" => {
            check_lz4_type(options.get("lz4_compressor_type"))?;
            check_level(options.get("lz4_high_compressor_level"), "lz4_high_compressor_level", 1, 17)?;
        }
        "ZstdCompressor" => check_zstd_level(options.get("compression_level"))?,
        _ => {}
    }
    match options.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => config(format!("Unknown compression options {key}")),
    }
}

fn check_lz4_type(value: Option<&String>) -> Result<()> {
    match value.map(String::as_str) {
        None | Some("fast" | "high") => Ok(()),
        Some(other) => config(format!(
            "Invalid compressor type '{other}' specified for LZ4 parameter 'lz4_compressor_type'. Valid options are [high, fast]."
        )),
    }
}

fn check_zstd_level(value: Option<&String>) -> Result<()> {
    let failed = |why: String| config(format!("ZstdCompressor.create() threw an error: {why}"));
    match value.map(|value| (value, value.parse::<i32>())) {
        None => Ok(()),
        Some((_, Ok(level))) if (-131_072..=22).contains(&level) => Ok(()),
        Some((value, Ok(_))) => {
            failed(format!("java.lang.IllegalArgumentException compression_level={value} is invalid"))
        }
        Some((value, Err(_))) => failed(format!("java.lang.NumberFormatException For input string: \"{value}\"")),
    }
}

fn check_level(value: Option<&String>, name: &str, min: i32, max: i32) -> Result<()> {
    let Some(value) = value else { return Ok(()) };
    match value.parse::<i32>() {
        Ok(level) if (min..=max).contains(&level) => Ok(()),
        _ => config(format!("Invalid value [{value}] for parameter '{name}'. Value must be between {min} and {max}.")),
    }
}
