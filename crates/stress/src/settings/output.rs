//! The output during a run and at its end.

use std::path::PathBuf;
use std::time::Duration;

use super::words::Words;
use crate::Result;

/// The options `-log`, `-reporting` and `-graph`.
pub struct Output {
    /// The time between two lines.
    pub interval: Duration,
    /// The time after which the header is printed again; None: never.
    pub header: Option<Duration>,
    /// Whether the table of results at the end is left out.
    pub summary: bool,
    /// Whether the table of settings at the beginning is left out.
    pub settings: bool,
    pub level: Level,
    /// A file that gets the lines too.
    pub file: Option<PathBuf>,
    /// A file for results and every interval as JSON.
    pub json: Option<PathBuf>,
    /// A file for an interval log of HdrHistogram.
    pub hdr: Option<PathBuf>,
    pub graph: Option<Graph>,
}

/// The failures that are printed one by one; all of them are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Minimal,
    /// Operations that failed in all their attempts.
    Normal,
    /// Each attempt that failed.
    Verbose,
}

/// A report with plots.
pub struct Graph {
    pub file: PathBuf,
    pub title: String,
    /// The name of this run in the report, for instance the change that it measures.
    pub revision: String,
    /// The name of the operation; None: that of the command.
    pub operation: Option<String>,
}

impl Output {
    /// Reads the words of `-log`, `-reporting` and `-graph`.
    pub fn parse(mut log: Words, mut reporting: Words, mut graph: Words) -> Result<Self> {
        let (every, frequency) = (log.value("interval="), reporting.value("output-frequency="));
        if every.is_some() && frequency.is_some() {
            return Err(
                "-log interval= and -reporting output-frequency= both say how often a line comes: give one of them"
                    .into(),
            );
        }
        let every = every.or(frequency);
        let header = reporting.value("header-frequency=").map(|text| time(&text)).transpose()?;
        let level = match log.value("level=").as_deref() {
            Some("minimal") => Level::Minimal,
            None | Some("normal") => Level::Normal,
            Some("verbose") => Level::Verbose,
            Some(other) => return Err(format!("-log level={other} is not minimal, normal or verbose").into()),
        };
        let output = Self {
            interval: every.map_or(Ok(Duration::from_secs(1)), |text| time(&text))?,
            header,
            summary: !log.flag("no-summary"),
            settings: !log.flag("no-settings"),
            level,
            file: log.value("file=").map(PathBuf::from),
            json: log.value("json=").map(PathBuf::from),
            hdr: log.value("hdrfile=").map(PathBuf::from),
            graph: graph_of(&mut graph)?,
        };
        log.end()?;
        reporting.end()?;
        graph.end()?;
        Ok(output)
    }
}

fn graph_of(words: &mut Words) -> Result<Option<Graph>> {
    let (title, revision, operation) = (words.value("title="), words.value("revision="), words.value("op="));
    match words.value("file=") {
        Some(file) => Ok(Some(Graph {
            file: file.into(),
            title: title.unwrap_or_else(|| "helenus stress".to_owned()),
            revision: revision.unwrap_or_else(|| "unknown".to_owned()),
            operation,
        })),
        None if title.is_some() || revision.is_some() || operation.is_some() => {
            Err("-graph needs file=FILE.html".into())
        }
        None => Ok(None),
    }
}

/// Reads a time: milliseconds with `ms`, minutes with `m`, otherwise seconds; at least ten
/// milliseconds.
fn time(text: &str) -> Result<Duration> {
    let (digits, millis) = match (text.strip_suffix("ms"), text.strip_suffix('m'), text.strip_suffix('s')) {
        (Some(digits), ..) => (digits, 1),
        (_, Some(digits), _) => (digits, 60_000),
        (.., Some(digits)) => (digits, 1000),
        _ => (text, 1000),
    };
    let number: u64 = digits.parse().map_err(|_| format!("'{text}' is no time such as 1s or 500ms"))?;
    Ok(Duration::from_millis(number.saturating_mul(millis).max(10)))
}
