//! A finding: what was looked at, how it is, and what to do; as text and as JSON.

use std::fmt::Write;

use serde_json::{Value, json};

/// How bad a finding is. The order is from good to bad.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Nothing to do.
    Ok,
    /// The node runs, and suffers from this at some time.
    Warn,
    /// The node does not start, or loses data.
    Fail,
}

impl Level {
    /// The word in the report.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Warn => "WARN",
            Self::Fail => "FAIL",
        }
    }
}

/// A finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The name of the check, such as `open files`.
    pub check: &'static str,
    /// How bad it is.
    pub level: Level,
    /// The finding in words, with its figure.
    pub found: String,
    /// The step to take; empty where nothing is to be done.
    pub advice: String,
}

impl Finding {
    /// A finding that is as it should be.
    pub fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, found: found.into(), advice: String::new() }
    }

    /// A finding from which the node will suffer.
    pub fn warn(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, level: Level::Warn, found: found.into(), advice: advice.into() }
    }

    /// A finding with which the node does not start, or loses data.
    pub fn fail(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { check, level: Level::Fail, found: found.into(), advice: advice.into() }
    }
}

/// The worst level among the findings.
pub fn worst(findings: &[Finding]) -> Level {
    findings.iter().map(|finding| finding.level).max().unwrap_or(Level::Ok)
}

/// The report: a line a finding, what to do below it, and the sum.
pub fn as_text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|finding| finding.check.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding { check, level, found, advice } in findings {
        // writing to a string does not fail
        let _ = writeln!(text, "{:<4}  {check:<width$}  {found}", level.word());
        if !advice.is_empty() {
            let _ = writeln!(text, "      {:width$}  -> {advice}", "");
        }
    }
    let count = |level: Level| findings.iter().filter(|finding| finding.level == level).count();
    let _ =
        writeln!(text, "{} checks: {} to mend, {} to look at", findings.len(), count(Level::Fail), count(Level::Warn));
    text
}

/// The report as one JSON object.
pub fn as_json(findings: &[Finding]) -> Value {
    let each = |Finding { check, level, found, advice }: &Finding| json!({"check": check, "level": level.word(), "found": found, "advice": advice});
    json!({"level": worst(findings).word(), "findings": findings.iter().map(each).collect::<Vec<_>>()})
}

/// Bytes for people.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut shown = bytes as f64;
    while shown >= 1024.0 && unit + 1 < UNITS.len() {
        shown /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} bytes") } else { format!("{shown:.1} {}", UNITS[unit]) }
}
