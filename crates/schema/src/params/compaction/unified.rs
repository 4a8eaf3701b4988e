//! The options of the unified compaction strategy.
//!
//! Agrees with `org.apache.cassandra.db.compaction.unified.Controller.validateOptions`.

use super::{Map, not_boolean, number};
use crate::error::{Result, config};

/// The smallest `target_sstable_size` and `flush_size_override`, bytes.
const TARGET_SIZE_MIN: f64 = (1_u64 << 20) as f64;
/// The default of `target_sstable_size`, bytes.
const TARGET_SIZE_DEFAULT: f64 = (1_u64 << 30) as f64;

/// Refuses the options that Cassandra refuses.
pub(super) fn check(options: &Map) -> Result<()> {
    if let Some(value) = options.get("scaling_parameters") {
        value.split(',').try_for_each(|part| check_scaling(part.trim()))?;
    }
    if let Some(shards) = number::<i32>(options, "base_shard_count", "int (base10)")?
        && shards <= 0
    {
        return config(format!("Invalid configuration, base_shard_count should be positive: {shards}"));
    }
    let target = size(options, "target_sstable_size")?.unwrap_or(TARGET_SIZE_DEFAULT);
    size(options, "flush_size_override")?;
    number::<i32>(options, "max_sstables_to_compact", "int (base10)")?;
    check_expiration(options)?;
    check_overlaps(options)?;
    check_min_size(options, target)?;
    check_growth(options)
}

/// Checks one scaling parameter: `N`, `L10`, `T4`, `-2`.
fn check_scaling(part: &str) -> Result<()> {
    let fan = |digits: &str| digits.parse::<u32>().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
    let fan_factor = match part.as_bytes().first() {
        Some(b'N') if part.len() == 1 => return Ok(()),
        Some(b'L' | b'T') => fan(&part[1..]),
        Some(b'+' | b'-') if fan(&part[1..]).is_some() => return Ok(()),
        _ if fan(part).is_some() => return Ok(()),
        _ => None,
    };
    match fan_factor {
        Some(2..) => Ok(()),
        Some(_) => config(format!("Fan factor cannot be lower than 2 in {part}")),
        None => config(format!("Scaling parameter {part} must match N|L[0-9]+|T[0-9]+|[+-]?[0-9]+")),
    }
}

fn size(options: &Map, name: &str) -> Result<Option<f64>> {
    let Some(value) = options.get(name) else { return Ok(None) };
    match bytes(value) {
        Ok(size) if size >= i64::MAX as f64 => config(format!("{name} {value} is out of range of Long.")),
        Ok(size) if size < TARGET_SIZE_MIN => {
            let least = pretty(TARGET_SIZE_MIN);
            config(format!("{name} {value} is not acceptable, size must be at least {least}"))
        }
        Ok(size) => Ok(Some(size)),
        Err(why) => config(format!("{name} {value} is not a valid size in bytes: {why}")),
    }
}

fn check_expiration(options: &Map) -> Result<()> {
    let frequency = "expired_sstable_check_frequency_seconds";
    if let Some(seconds) = number::<i64>(options, frequency, "long (base10)")?
        && seconds <= 0
    {
        return config(format!("Invalid configuration, {frequency} should be positive: {seconds}"));
    }
    let unsafe_name = "unsafe_aggressive_sstable_expiration";
    if let Some(value) = not_boolean(options, unsafe_name) {
        return config(format!("{unsafe_name} should either be 'true' or 'false', not {value}"));
    }
    Ok(())
}

fn check_overlaps(options: &Map) -> Result<()> {
    match options.get("overlap_inclusion_method") {
        Some(method) if !matches!(method.to_uppercase().as_str(), "NONE" | "SINGLE" | "TRANSITIVE") => config(format!(
            "Invalid overlap inclusion method {method}. The valid options are [NONE, SINGLE, TRANSITIVE]."
        )),
        _ => Ok(()),
    }
}

fn check_min_size(options: &Map, target: f64) -> Result<()> {
    let name = "min_sstable_size";
    let Some(value) = options.get(name) else { return Ok(()) };
    match bytes(value) {
        Err(_) => config(format!("{value} is not a valid size in bytes for {name}")),
        Ok(size) if size < 0.0 => {
            config(format!("Invalid configuration, {name} should be greater than or equal to 0 (zero)"))
        }
        Ok(size) if size >= (target * std::f64::consts::FRAC_1_SQRT_2).ceil() => config(format!(
            "Invalid configuration, {name} ({}) should be less than 70% of the targetSSTableSize ({})",
            pretty(size),
            pretty(target)
        )),
        Ok(_) => Ok(()),
    }
}

fn check_growth(options: &Map) -> Result<()> {
    let Some(value) = options.get("sstable_growth") else { return Ok(()) };
    let trimmed = value.trim();
    let (number, unit) = match trimmed.strip_suffix('%') {
        Some(percent) => (percent.trim(), 100.0),
        None => (trimmed, 1.0),
    };
    match number.parse::<f64>() {
        Ok(growth) if !(0.0..=1.0).contains(&(growth / unit)) => {
            config(format!("sstable_growth {value} must be between 0 and 1"))
        }
        Ok(_) => Ok(()),
        Err(_) => {
            config(format!("sstable_growth is not a valid number between 0 and 1: For input string: \"{number}\""))
        }
    }
}

/// Reads a size with a unit: `1GiB`, `100 MiB`, `5e6B` (`FBUtilities.parseHumanReadable`).
fn bytes(text: &str) -> std::result::Result<f64, String> {
    let Some(body) = text.strip_suffix('B') else {
        return Err(format!("{text} does not end in unit B"));
    };
    let is_number = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'+' | b'-' | b'e');
    let end = body.bytes().position(|byte| !is_number(byte)).unwrap_or(body.len());
    let number: f64 = body[..end].parse().map_err(|_| "null".to_owned())?;
    let unit = body[end..].trim_start();
    let (power, rest) = match unit.bytes().next().and_then(|byte| b"KMGTPE".iter().position(|known| *known == byte)) {
        Some(index) => (i32::try_from(index).unwrap_or(0) + 1, &unit[1..]),
        None => (0, unit),
    };
    match rest {
        "i" if power > 0 => Ok(number * 1024f64.powi(power)),
        "" => Ok(number * 1000f64.powi(power)),
        _ => Err(format!("Unexpected characters between pos {} and {} in {text}", body.len() - rest.len(), body.len())),
    }
}

/// Prints a size in the unit that suits it: `1.000MiB`.
fn pretty(bytes: f64) -> String {
    let mut value = bytes;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            return if unit == "B" { format!("{value:.0}B") } else { format!("{value:.3}{unit}") };
        }
        value /= 1024.0;
    }
    format!("{value:.3}PiB")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        assert_eq!(bytes("1GiB"), Ok(1_073_741_824.0));
        assert_eq!(bytes("100 MiB"), Ok(104_857_600.0));
        assert_eq!(bytes("2KB"), Ok(2000.0));
        assert_eq!(bytes("0B"), Ok(0.0));
        assert_eq!(bytes("x").unwrap_err(), "x does not end in unit B");
        assert!(bytes("1XiB").is_err());
        assert_eq!(pretty(1_048_576.0), "1.000MiB");
    }

    #[test]
    fn scaling_parameters_are_checked() {
        for part in ["N", "L10", "T4", "0", "-2", "+4"] {
            assert_eq!(check_scaling(part), Ok(()), "{part}");
        }
        for part in ["", "X4", "T", "T1", "L1", "NN", "x"] {
            assert!(check_scaling(part).is_err(), "{part}");
        }
    }
}
