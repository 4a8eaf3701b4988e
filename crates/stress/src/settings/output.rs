//! What is shown while it runs and what is written when it ends.

use std::path::PathBuf;
use std::time::Duration;

use super::words::Words;
use crate::Result;

/// `-log`, `-reporting` and `-graph`.
pub struct Output {
    /// A line so often.
    pub interval: Duration,
    /// The line above them again so often.
    pub header: Option<Duration>,
    /// No table of results at the end.
    pub summary: bool,
    /// No table of settings at the beginning.
    pub settings: bool,
    pub level: Level,
    /// The lines go here too.
    pub file: Option<PathBuf>,
    /// Results and every interval as JSON.
    pub json: Option<PathBuf>,
    /// An interval log of HdrHistogram.
    pub hdr: Option<PathBuf>,
    pub graph: Option<Graph>,
}

/// Which failures are told one by one; all are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    Minimal,
    /// Operations that failed in all their tries.
    Normal,
    /// Each try that failed.
    Verbose,
}

/// A report with plots.
pub struct Graph {
    pub file: PathBuf,
    pub title: String,
    /// Names this run in the report, for instance by what was changed.
    pub revision: String,
    /// What was done, when it is not to be called by the command's name.
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

/// A time: milliseconds with `ms`, minutes with `m`, else seconds. Ten milliseconds at least.
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
