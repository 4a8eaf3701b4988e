//! The options `speculative_retry` and `additional_write_policy`: when a coordinator asks one more
//! replica.
//!
//! Agrees with `org.apache.cassandra.service.reads.SpeculativeRetryPolicy` and its five forms.

use crate::error::{Result, config};

/// Checks a policy and gives the form in which Cassandra stores and prints it.
pub fn normalize(text: &str) -> Result<String> {
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "always" => return Ok("ALWAYS".to_owned()),
        "never" | "none" => return Ok("NEVER".to_owned()),
        _ => {}
    }
    if let Some(simple) = simple(text)? {
        return Ok(simple.0);
    }
    match hybrid(&lower, text)? {
        Some(form) => Ok(form),
        None => invalid(text),
    }
}

fn invalid<T>(text: &str) -> Result<T> {
    config(format!("Invalid value {text} for option 'speculative_retry'"))
}

/// Reads `99p`, `99percentile` or `50ms`: the stored form, and whether it is a percentile.
fn simple(text: &str) -> Result<Option<(String, bool)>> {
    let lower = text.to_ascii_lowercase();
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if let Some(digits) = lower.strip_suffix("percentile").or_else(|| lower.strip_suffix('p')).filter(|d| is_number(d))
    {
        let Ok(percentile) = digits.parse::<f64>() else {
            return invalid(text);
        };
        if percentile <= 0.0 || percentile >= 100.0 {
            return config(format!(
                "Invalid value {text} for PERCENTILE option 'speculative_retry': must be between (0.0 and 100.0)"
            ));
        }
        let rounded = format!("{percentile:.4}");
        let short = rounded.trim_end_matches('0').trim_end_matches('.');
        let short = short.strip_prefix("0.").map_or(short.to_owned(), |fraction| format!(".{fraction}"));
        return Ok(Some((format!("{short}p"), true)));
    }
    if let Some(digits) = lower.strip_suffix("ms").filter(|d| is_number(d)) {
        let Ok(millis) = digits.parse::<f64>() else {
            return invalid(text);
        };
        return Ok(Some((format!("{}ms", millis as i32), false)));
    }
    Ok(None)
}

/// Reads `MIN(99p,50ms)` or `MAX(…)`, the two parts in any order.
fn hybrid(lower: &str, text: &str) -> Result<Option<String>> {
    let function = lower.get(..3).filter(|function| matches!(*function, "min" | "max"));
    let inner = lower.get(3..).and_then(|rest| rest.strip_prefix('(')).and_then(|rest| rest.strip_suffix(')'));
    let (Some(function), Some((first, second))) = (function, inner.and_then(|inner| inner.split_once(','))) else {
        return Ok(None);
    };
    let parts = (simple(first.trim_end()), simple(second.trim_start()));
    let (Ok(Some(first)), Ok(Some(second))) = parts else {
        return invalid(text);
    };
    let (percentile, fixed) = match (first.1, second.1) {
        (true, false) => (first.0, second.0),
        (false, true) => (second.0, first.0),
        (is_percentile, _) => {
            let kind = if is_percentile { "PERCENTILE" } else { "FIXED" };
            return config(format!(
                "Invalid value {text} for option 'speculative_retry': MIN()/MAX() arguments should be of different types, \
                 but both are of type {kind}"
            ));
        }
    };
    Ok(Some(format!("{}({percentile},{fixed})", function.to_uppercase())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_stored_as_cassandra_stores_it() {
        let cases = [
            ("99p", "99p"),
            ("99PERCENTILE", "99p"),
            ("99.9p", "99.9p"),
            ("0.5p", ".5p"),
            ("50ms", "50ms"),
            ("50.7MS", "50ms"),
            ("NONE", "NEVER"),
            ("always", "ALWAYS"),
            ("min(99p, 50ms)", "MIN(99p,50ms)"),
            ("MAX(50ms,99p)", "MAX(99p,50ms)"),
        ];
        for (given, stored) in cases {
            assert_eq!(normalize(given).as_deref(), Ok(stored), "{given}");
        }
        for bad in ["", "100p", "0p", "p", "xyz", "MIN(1ms,2ms)", "1.2.3p", "min(99p"] {
            assert!(normalize(bad).is_err(), "{bad}");
        }
    }
}
