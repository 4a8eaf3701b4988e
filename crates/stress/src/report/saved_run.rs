//! Runs as an HTML report stores them, so that later runs can be drawn beside them.

use serde::{Deserialize, Serialize};

use super::Finished;
use super::percentiles::{self, Point};
use crate::Result;
use crate::measure::Figures;

/// The text before and behind the runs in the page.
const BEGIN: &str = "<script type=\"application/json\" id=\"runs\">";
const END: &str = "</script>";
/// Most runs of a page.
const RUNS_MAX: usize = 200;

/// A run.
#[derive(Clone, Serialize, Deserialize)]
pub struct SavedRun {
    pub revision: String,
    pub operation: String,
    /// The version of the server.
    pub server: String,
    pub threads: usize,
    pub seconds: f64,
    pub total: Figures,
    pub kinds: Vec<(String, Figures)>,
    pub points: Vec<Figures>,
    pub curve: Vec<Point>,
}

impl SavedRun {
    /// The stored form of a run that has ended.
    pub fn new(run: &Finished, revision: &str, operation: &str, server: &str) -> Self {
        Self {
            revision: revision.to_owned(),
            operation: operation.to_owned(),
            server: server.to_owned(),
            threads: run.threads,
            seconds: run.seconds,
            total: run.total.clone(),
            kinds: run.kinds.iter().map(|(name, _, figures)| (name.clone(), figures.clone())).collect(),
            points: run.series.points.clone(),
            curve: percentiles::of(&run.tally),
        }
    }

    /// The name of the run in the page.
    pub fn name(&self) -> String {
        format!("{}: {}, {} threads", self.revision, self.operation, self.threads)
    }
}

/// Reads the runs of a page.
pub fn read(page: &str) -> Result<Vec<SavedRun>> {
    let (_, rest) =
        page.split_once(BEGIN).ok_or("there is another file of this name, which is no report of this tool")?;
    let (text, _) = rest.split_once(END).ok_or("the report that is there has no end")?;
    Ok(serde_json::from_str(text)?)
}

/// The runs as the page stores them; if there are too many, the first ones are dropped.
pub fn write(runs: &mut Vec<SavedRun>) -> Result<String> {
    runs.drain(..runs.len().saturating_sub(RUNS_MAX));
    // a user's text cannot end the element
    Ok(format!("{BEGIN}{}{END}\n", serde_json::to_string(runs)?.replace('<', "\\u003c")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Series, Tally};

    #[test]
    fn runs_are_read_as_they_were_written() {
        let run = Finished::new(4, 1.5, vec![("READ".to_owned(), Tally::new())], Series::default());
        let kept = SavedRun::new(&run, "</script>", "read", "5.0.8");
        let page = format!("<html>{}</html>", write(&mut vec![kept.clone(), kept]).expect("text"));
        let read = read(&page).expect("runs");
        assert_eq!((read.len(), read[1].name().as_str()), (2, "</script>: read, 4 threads"));
        assert!(super::read("<html></html>").is_err());
    }
}
