//! Progress of a COPY: rows and rates on the terminal, in RATEFILE, and the last line.

use std::fs::File;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use super::options::CopyOptions;

/// Counts rows and tells of them at intervals.
pub struct Progress {
    begun: Instant,
    last: Instant,
    last_rows: u64,
    rows: u64,
    every: Duration,
    rate_file: Option<File>,
    shown: bool,
}

impl Progress {
    /// Begins. Without `shown` nothing is printed but RATEFILE.
    pub fn new(options: &CopyOptions, shown: bool) -> Result<Self, String> {
        let rate_file = match &options.rate_file {
            None => None,
            Some(path) => {
                let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
                Some(opened.map_err(|error| format!("RATEFILE {}: {error}", path.display()))?)
            }
        };
        let now = Instant::now();
        let every = Duration::from_secs_f64(options.report_seconds.clamp(0.01, 3600.0));
        // a file of output wants no line that is overwritten again and again
        let shown = shown && std::io::stdout().is_terminal();
        Ok(Self { begun: now, last: now, last_rows: 0, rows: 0, every, rate_file, shown })
    }

    /// Time between two reports.
    pub fn every(&self) -> Duration {
        self.every
    }

    /// Counts rows.
    pub fn add(&mut self, rows: u64) {
        self.rows += rows;
        if self.last.elapsed() >= self.every {
            self.report();
        }
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Tells of the rows so far.
    pub fn report(&mut self) {
        let rate = |rows: u64, took: Duration| rows as f64 / took.as_secs_f64().max(1e-6);
        let current = rate(self.rows - self.last_rows, self.last.elapsed());
        let average = rate(self.rows, self.begun.elapsed());
        let text =
            format!("Processed: {} rows; Rate: {current:7.0} rows/s; Avg. rate: {average:7.0} rows/s", self.rows);
        if self.shown {
            print!("{text}\r");
            let _ = std::io::stdout().flush();
        }
        if let Some(file) = &mut self.rate_file
            && writeln!(file, "{text}").is_err()
        {
            eprintln!("RATEFILE cannot be written; the rates are shown here alone");
            self.rate_file = None;
        }
        (self.last, self.last_rows) = (Instant::now(), self.rows);
    }

    /// The last report, and the time that everything took.
    pub fn finish(&mut self) -> String {
        self.report();
        format!("{:.3} seconds", self.begun.elapsed().as_secs_f64())
    }
}
