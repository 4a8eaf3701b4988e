//! What is shown while it runs and what is written when it ends.

use std::path::PathBuf;
use std::time::Duration;

use super::words::Words;
use crate::Result;

/// `-log` and `-graph`.
pub struct Output {
    /// A line so often.
    pub interval: Duration,
    /// No table of results at the end.
    pub summary: bool,
    /// The lines go here too.
    pub file: Option<PathBuf>,
    /// Results and every interval as JSON.
    pub json: Option<PathBuf>,
    /// An interval log of HdrHistogram.
    pub hdr: Option<PathBuf>,
    pub graph: Option<Graph>,
}

/// A report with plots.
pub struct Graph {
    pub file: PathBuf,
    pub title: String,
    /// Names this run in the report, for instance by what was changed.
    pub revision: String,
}

impl Output {
    /// Reads the words of `-log` and `-graph`.
    pub fn parse(mut log: Words, mut graph: Words) -> Result<Self> {
        let interval = log.value("interval=").map_or(Ok(Duration::from_secs(1)), |text| interval(&text))?;
        let output = Self {
            interval,
            summary: !log.flag("no-summary"),
            file: log.value("file=").map(PathBuf::from),
            json: log.value("json=").map(PathBuf::from),
            hdr: log.value("hdrfile=").map(PathBuf::from),
            graph: graph_of(&mut graph)?,
        };
        log.end()?;
        graph.end()?;
        Ok(output)
    }
}

fn graph_of(words: &mut Words) -> Result<Option<Graph>> {
    let (title, revision) = (words.value("title="), words.value("revision="));
    match words.value("file=") {
        Some(file) => Ok(Some(Graph {
            file: file.into(),
            title: title.unwrap_or_else(|| "helenus stress".to_owned()),
            revision: revision.unwrap_or_else(|| "this run".to_owned()),
        })),
        None if title.is_some() || revision.is_some() => Err("-graph needs file=FILE.html".into()),
        None => Ok(None),
    }
}

/// A time: milliseconds with `ms`, else seconds.
fn interval(text: &str) -> Result<Duration> {
    let wrong = || format!("-log interval={text} is no time such as 1s or 500ms");
    let millis = match (text.strip_suffix("ms"), text.strip_suffix('s').or(Some(text))) {
        (Some(millis), _) => millis.parse::<u64>().map_err(|_| wrong())?,
        (None, Some(seconds)) => seconds.parse::<u64>().map_err(|_| wrong())?.saturating_mul(1000),
        (None, None) => return Err(wrong().into()),
    };
    Ok(Duration::from_millis(millis.max(10)))
}
