//! The baseline: instructions of each case, a file for each processor architecture, and the
//! judgement of a count against it.
//!
//! ```text
//! # comment
//! compiler 1.95.0
//! read 12345
//! ```
//!
//! A count may differ by [`TOLERANCE`]; where another compiler built the program, by
//! [`TOLERANCE_OTHER_COMPILER`]. Both directions fail: a gain that is not written down would
//! hide a later loss of the same size.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::counting::Counts;

/// Per mille. Repeated runs differ by less than 5.
const TOLERANCE: u64 = 30;
/// Per mille, where the baseline was written with another version of the compiler.
const TOLERANCE_OTHER_COMPILER: u64 = 150;

const HEAD: &str = "# Instructions of each request of bench/instructions, written by\n\
                    # `cargo run --profile quick -p bench-instructions -- --rewrite`.\n\
                    # A commit that changes a line says why.\n";

/// Where the baseline of this architecture stands.
pub fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("baseline").join(format!("{}.txt", std::env::consts::ARCH))
}

/// The content of the file.
#[derive(Debug, PartialEq, Eq)]
pub struct Baseline {
    /// The version of the compiler that built the program.
    pub compiler: String,
    /// Instructions of each case.
    pub counts: Counts,
}

impl Baseline {
    /// Reads the file's text.
    pub fn parse(text: &str) -> Result<Self> {
        let mut compiler = None;
        let mut counts = Counts::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (name, value) = line.rsplit_once(' ').ok_or_else(|| format!("the baseline has a line `{line}`"))?;
            match name {
                "compiler" => compiler = Some(value.to_owned()),
                _ => counts.push((name.to_owned(), value.parse()?)),
            }
        }
        Ok(Self { compiler: compiler.ok_or("the baseline names no compiler")?, counts })
    }

    /// Compares what was counted now.
    pub fn judge(&self, counted: &Counts, compiler: &str) -> Verdict {
        let same_compiler = self.compiler == compiler;
        let tolerance = if same_compiler { TOLERANCE } else { TOLERANCE_OTHER_COMPILER };
        let other_compiler = (!same_compiler).then(|| (self.compiler.clone(), compiler.to_owned()));
        let known = |name: &str| self.counts.iter().find(|(known, _)| known == name).map(|(_, count)| *count);
        let counted_lines = counted.iter().map(|(name, count)| Line::new(name, known(name), Some(*count), tolerance));
        let gone = self.counts.iter().filter(|(name, _)| counted.iter().all(|(counted, _)| counted != name));
        let gone_lines = gone.map(|(name, count)| Line::new(name, Some(*count), None, tolerance));
        Verdict { lines: counted_lines.chain(gone_lines).collect(), tolerance, other_compiler }
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEAD}compiler {}", self.compiler)?;
        self.counts.iter().try_for_each(|(name, count)| writeln!(f, "{name} {count}"))
    }
}

/// A case in the judgement.
struct Line {
    name: String,
    /// None: the baseline does not have the case.
    before: Option<u64>,
    /// None: the case is not counted any more.
    now: Option<u64>,
    /// Within the tolerance.
    holds: bool,
}

impl Line {
    fn new(name: &str, before: Option<u64>, now: Option<u64>, tolerance: u64) -> Self {
        let holds = before.zip(now).is_some_and(|(before, now)| before.abs_diff(now) * 1000 <= before * tolerance);
        Self { name: name.to_owned(), before, now, holds }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |count| count.to_string());
        write!(f, "{:<14} {:>12} {:>12}", self.name, text(self.before), text(self.now))?;
        if let (Some(before), Some(now)) = (self.before, self.now) {
            write!(f, " {:>+7.2} %", (now as f64 / before as f64 - 1.0) * 100.0)?;
        }
        let verdict = match (self.before, self.now) {
            _ if self.holds => "",
            (None, _) => "  not in the baseline",
            (_, None) => "  in the baseline only",
            (Some(before), Some(now)) if now > before => "  MORE",
            _ => "  LESS",
        };
        writeln!(f, "{verdict}")
    }
}

/// The judgement of a count.
pub struct Verdict {
    lines: Vec<Line>,
    /// Per mille.
    tolerance: u64,
    /// The compilers then and now, if they differ.
    other_compiler: Option<(String, String)>,
}

impl Verdict {
    /// Whether every case is within the tolerance.
    pub fn holds(&self) -> bool {
        self.lines.iter().all(|line| line.holds)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<14} {:>12} {:>12}   instructions a request", "request", "baseline", "now")?;
        self.lines.iter().try_for_each(|line| line.fmt(f))?;
        if let Some((then, now)) = &self.other_compiler {
            writeln!(f, "the baseline is of rustc {then}, this is {now}: the tolerance is wider")?;
        }
        if self.holds() {
            return Ok(());
        }
        writeln!(
            f,
            "more than {} % from the baseline. A loss is mended; a gain, or a loss that buys something, is written\n\
             down with the commit that makes it: cargo run --profile quick -p bench-instructions -- --rewrite",
            self.tolerance as f64 / 10.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pairs: &[(&str, u64)]) -> Counts {
        pairs.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    fn baseline() -> Baseline {
        Baseline { compiler: "1.95.0".to_owned(), counts: counts(&[("read", 10_000), ("merged slice", 200_000)]) }
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(Baseline::parse(&baseline().to_string()).expect("a baseline"), baseline());
        assert!(Baseline::parse("read 1").is_err());
        assert!(Baseline::parse("compiler 1.95.0\nread many").is_err());
    }

    #[test]
    fn both_directions_fail_beyond_the_tolerance() {
        let holds =
            |read, compiler| baseline().judge(&counts(&[("read", read), ("merged slice", 200_000)]), compiler).holds();
        assert!(holds(10_300, "1.95.0") && holds(9_700, "1.95.0"));
        assert!(!holds(10_301, "1.95.0") && !holds(9_699, "1.95.0"));
        assert!(holds(11_500, "1.96.0") && !holds(11_501, "1.96.0"));
    }

    #[test]
    fn the_cases_must_be_the_same() {
        let more = baseline().judge(&counts(&[("read", 10_000), ("merged slice", 200_000), ("write", 1)]), "1.95.0");
        let fewer = baseline().judge(&counts(&[("read", 10_000)]), "1.95.0");
        assert!(!more.holds() && more.to_string().contains("not in the baseline"));
        assert!(!fewer.holds() && fewer.to_string().contains("in the baseline only"));
    }

    #[test]
    fn the_direction_is_told() {
        let verdict = baseline().judge(&counts(&[("read", 11_000), ("merged slice", 100_000)]), "1.95.0").to_string();
        assert!(verdict.contains("+10.00 %  MORE") && verdict.contains("-50.00 %  LESS"), "{verdict}");
    }
}
