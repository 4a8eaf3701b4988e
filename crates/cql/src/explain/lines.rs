//! The answer of EXPLAIN: lines of one figure each.
//!
//! Columns: `step text, object text, figure text, value bigint, detail text`. A program finds a
//! figure by step, object and name; a user reads the lines from the top. Names of figures do not
//! change their meaning; new ones may come. `detail` is words for a reader, kept short, so that the
//! table of cqlsh has room in 120 columns, and filled up with spaces to one width.

use std::sync::Arc;

use crate::result::{ResultMetadata, ResultSet};

/// The most characters of an object that are shown: beyond that the detail would have no room.
const OBJECT_MAX: usize = 40;

/// Lines that are being gathered.
#[derive(Default)]
pub(super) struct Lines(Vec<Line>);

struct Line {
    step: &'static str,
    object: String,
    figure: String,
    value: u64,
    detail: String,
}

impl Lines {
    /// Adds a line.
    pub fn add(&mut self, step: &'static str, object: &str, figure: &str, value: u64, detail: &str) {
        let (object, figure, detail) = (shortened(object, OBJECT_MAX), figure.to_owned(), detail.to_owned());
        self.0.push(Line { step, object, figure, value, detail });
    }

    /// Adds a line unless its figure is nothing.
    pub fn add_nonzero(&mut self, step: &'static str, object: &str, figure: &str, value: u64, detail: &str) {
        if value > 0 {
            self.add(step, object, figure, value, detail);
        }
    }

    /// The answer, in one page.
    pub fn into_result(self, metadata: &Arc<ResultMetadata>) -> ResultSet {
        let width = self.0.iter().map(|line| line.detail.chars().count()).max().unwrap_or(0);
        let mut rows = Vec::new();
        let mut put = |value: &[u8]| {
            stdx::put_u32(&mut rows, u32::try_from(value.len()).expect("lines are short"));
            rows.extend_from_slice(value);
        };
        for line in &self.0 {
            put(line.step.as_bytes());
            put(line.object.as_bytes());
            put(line.figure.as_bytes());
            put(&i64::try_from(line.value).unwrap_or(i64::MAX).to_be_bytes());
            // cqlsh aligns text to the right: words are read from the left
            put(format!("{:width$}", line.detail).as_bytes());
        }
        let row_count = u32::try_from(self.0.len()).expect("sources and commands that are told of are bounded");
        ResultSet { metadata: Arc::clone(metadata), rows: rows.into(), row_count, paging_state: None }
    }
}

/// The beginning of a text.
pub(super) fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}
