//! The output of a run: a line for each interval, results at the end, and the files that were asked
//! for.

mod html;
mod percentiles;
mod saved_run;

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::Path;
use std::time::{Instant, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::Result;
use crate::measure::{Figures, Series, Tally, Uncertainty};
use crate::session::Server;
use crate::settings::Settings;
use crate::settings::output::{Graph, Output};
use saved_run::SavedRun;

/// A run that has ended.
pub struct Finished {
    pub threads: usize,
    pub seconds: f64,
    /// Each kind of operation with its tally and figures.
    pub kinds: Vec<(String, Tally, Figures)>,
    pub total: Figures,
    /// The tally of all kinds together.
    pub tally: Tally,
    pub series: Series,
}

impl Finished {
    /// Computes the results.
    pub fn new(threads: usize, seconds: f64, kinds: Vec<(String, Tally)>, series: Series) -> Self {
        let mut tally = Tally::new();
        for (_, kind) in &kinds {
            tally.add(kind);
        }
        let figures = |tally: &Tally| Figures::of(tally, seconds, seconds);
        let total = figures(&tally);
        let kinds = kinds.into_iter().map(|(name, kind)| (name, kind.clone(), figures(&kind))).collect();
        Self { threads, seconds, kinds, total, tally, series }
    }
}

/// The destinations of the output.
pub struct Reports {
    file: Option<BufWriter<File>>,
    hdr: Option<(BufWriter<File>, Instant)>,
    json: Option<std::path::PathBuf>,
    graph: Option<Graph>,
    summary: bool,
    fixed: bool,
    header: Option<std::time::Duration>,
    /// The time at which the header was printed last.
    shown: Instant,
    server: Server,
    /// The command line without the password.
    line: String,
    operation: String,
}

/// Refuses a file that cannot be written. A file that is there keeps its content.
fn check_writable(path: &Path) -> Result<()> {
    let is_new = !path.exists();
    let opened = OpenOptions::new().append(true).create(true).open(path).map(drop);
    let tried = if is_new { opened.and_then(|()| std::fs::remove_file(path)) } else { opened };
    tried.map_err(|error| format!("{}: {error}", path.display()).into())
}

/// The runs of a report; none where there is no report yet.
fn runs_of(path: &Path) -> Result<Vec<SavedRun>> {
    match std::fs::read_to_string(path) {
        Ok(page) => saved_run::read(&page),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error.into()),
    }
}

/// The line above the lines of intervals.
fn header() -> String {
    format!(
        "{:<10}{:>10},{:>8},{:>8},{:>8},{:>8},{:>8},{:>8},{:>8},{:>8},{:>8},{:>7},{:>9},{:>7}",
        "type",
        "total ops",
        "op/s",
        "pk/s",
        "row/s",
        "mean",
        "med",
        ".95",
        ".99",
        ".999",
        "max",
        "time",
        "stderr",
        "errors"
    )
}

impl Reports {
    /// Opens the files of the command line, and prints what will be done with which server.
    pub fn new(settings: &Settings, server: Server) -> Result<Self> {
        let output = &settings.output;
        let mut reports = Self::open(settings, output, server)?;
        if output.settings {
            let told = format!("helenus stress {}", reports.line);
            reports.say(&told)?;
            let server = &reports.server;
            let told = format!(
                "Connected to {} ({}) at {}",
                server.cluster,
                server.version,
                settings.connection.hosts.join(",")
            );
            reports.say(&told)?;
        }
        Ok(reports)
    }

    fn open(settings: &Settings, output: &Output, server: Server) -> Result<Self> {
        let create = |path: &std::path::PathBuf| -> Result<BufWriter<File>> {
            Ok(BufWriter::new(File::create(path).map_err(|error| format!("{}: {error}", path.display()))?))
        };
        // told before the load, and not after hours of it
        output.json.iter().try_for_each(|path| check_writable(path))?;
        if let Some(Graph { file, .. }) = &output.graph {
            check_writable(file)?;
            runs_of(file).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        let mut hdr = output.hdr.as_ref().map(create).transpose()?.map(|file| (file, Instant::now()));
        if let Some((file, _)) = &mut hdr {
            IntervalLogWriterBuilder::new()
                .with_start_time(SystemTime::now())
                .with_max_value_divisor(1000.0)
                .begin_log_with(file, &mut V2DeflateSerializer::new())?;
        }
        let graph = output.graph.as_ref().map(|graph| Graph {
            file: graph.file.clone(),
            title: graph.title.clone(),
            revision: graph.revision.clone(),
            operation: graph.operation.clone(),
        });
        Ok(Self {
            file: output.file.as_ref().map(create).transpose()?,
            hdr,
            json: output.json.clone(),
            graph,
            summary: output.summary,
            fixed: settings.rate.fixed,
            header: output.header,
            shown: Instant::now(),
            server,
            operation: settings.line.split(' ').next().unwrap_or_default().to_owned(),
            line: settings.line.clone(),
        })
    }

    /// Prints a line of text. A load of which nobody reads the lines any more ends.
    pub fn say(&mut self, text: &str) -> Result<()> {
        writeln!(std::io::stdout().lock(), "{text}").map_err(|error| format!("standard output: {error}"))?;
        if let Some(file) = &mut self.file {
            writeln!(file, "{text}")?;
        }
        Ok(())
    }

    /// Prints the beginning of a run.
    pub fn begin(&mut self, settings: &Settings, threads: usize) -> Result<()> {
        let how_long = match (settings.load.count, settings.load.duration) {
            (Some(count), _) => format!("for {count} operations"),
            (None, Some(duration)) => format!("for {} seconds", duration.as_secs()),
            (None, None) => format!("until the standard error of the rate is below {}", settings.load.uncertainty),
        };
        self.say(&format!("Running with {threads} threads {how_long}"))?;
        self.shown = Instant::now();
        self.say(&header())
    }

    /// Prints the line of an interval.
    pub fn line(&mut self, kind: &str, operations: u64, figures: &Figures, uncertainty: &Uncertainty) -> Result<()> {
        if self.header.is_some_and(|every| self.shown.elapsed() >= every) {
            self.shown = Instant::now();
            self.say(&header())?;
        }
        self.say(&format!(
            "{:<10}{operations:>10},{:>8.0},{:>8.0},{:>8.0},{:>8.1},{:>8.1},{:>8.1},{:>8.1},{:>8.1},{:>8.1},{:>7.1},{:>9.5},{:>7}",
            format!("{kind},"), figures.per_second, figures.partitions_per_second, figures.rows_per_second, figures.mean_ms, figures.p50_ms,
            figures.p95_ms, figures.p99_ms, figures.p999_ms, figures.max_ms, figures.at, uncertainty.value(), figures.errors
        ))
    }

    /// Writes the interval to the log of histograms, in microseconds.
    pub fn interval(&mut self, from: Instant, to: Instant, times: &Histogram<u64>) -> Result<()> {
        let Some((file, begun)) = &mut self.hdr else { return Ok(()) };
        let mut serializer = V2DeflateSerializer::new();
        // the header is written already, so the builder's second one is dropped
        let mut line = Vec::new();
        let mut log = IntervalLogWriterBuilder::new()
            .with_max_value_divisor(1000.0)
            .begin_log_with(&mut line, &mut serializer)?;
        log.write_histogram(times, from - *begun, to - from, Tag::new("all"))?;
        let text = String::from_utf8_lossy(&line);
        for row in text.lines().filter(|row| row.starts_with("Tag=")) {
            writeln!(file, "{row}")?;
        }
        Ok(())
    }

    /// Prints the results of a run.
    pub fn finished(&mut self, run: &Finished) -> Result<()> {
        if !self.summary {
            return Ok(());
        }
        let each = |of: &dyn Fn(&Tally, &Figures) -> String| {
            let parts: Vec<String> =
                run.kinds.iter().map(|(name, tally, figures)| format!("{name}: {}", of(tally, figures))).collect();
            format!("{} [{}]", of(&run.tally, &run.total), parts.join(", "))
        };
        let mut lines = vec![String::new(), "Results:".to_owned()];
        let mut row =
            |label: &str, of: &dyn Fn(&Tally, &Figures) -> String| lines.push(format!("{label:<26}: {}", each(of)));
        row("Op rate", &|_, figures| format!("{:.0} op/s", figures.per_second));
        row("Partition rate", &|_, figures| format!("{:.0} pk/s", figures.partitions_per_second));
        row("Row rate", &|_, figures| format!("{:.0} row/s", figures.rows_per_second));
        row("Latency mean", &|_, figures| format!("{:.2} ms", figures.mean_ms));
        row("Latency median", &|_, figures| format!("{:.2} ms", figures.p50_ms));
        row("Latency 95th percentile", &|_, figures| format!("{:.2} ms", figures.p95_ms));
        row("Latency 99th percentile", &|_, figures| format!("{:.2} ms", figures.p99_ms));
        row("Latency 99.9th percentile", &|_, figures| format!("{:.2} ms", figures.p999_ms));
        row("Latency max", &|_, figures| format!("{:.2} ms", figures.max_ms));
        if self.fixed {
            row("Service 99th percentile", &|tally, _| {
                format!("{:.2} ms", tally.service.value_at_quantile(0.99) as f64 / 1000.0)
            });
        }
        row("Total partitions", &|tally, _| tally.partitions.to_string());
        row("Total rows", &|tally, _| tally.rows.to_string());
        row("Total errors", &|tally, _| tally.errors.to_string());
        row("Total retries", &|tally, _| tally.retries.to_string());
        let seconds = run.seconds as u64;
        lines.push(format!(
            "{:<26}: {:02}:{:02}:{:02}",
            "Total operation time",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        ));
        if self.fixed {
            lines.push(
                "Latencies count from when an operation should have begun; service from when it was sent.".to_owned(),
            );
        }
        lines.push(String::new());
        lines.into_iter().try_for_each(|line| self.say(&line))
    }

    /// Prints the end of all runs; `word` says how they ended.
    pub fn end(&mut self, runs: &[Finished], word: &str) -> Result<()> {
        if runs.len() > 1 {
            self.say("   threads      op/s      mean       med       .95       .99      .999       max  errors")?;
            for run in runs {
                let total = &run.total;
                self.say(&format!(
                    "{:>10}{:>10.0}{:>10.2}{:>10.2}{:>10.2}{:>10.2}{:>10.2}{:>10.2}{:>8}",
                    run.threads,
                    total.per_second,
                    total.mean_ms,
                    total.p50_ms,
                    total.p95_ms,
                    total.p99_ms,
                    total.p999_ms,
                    total.max_ms,
                    total.errors
                ))?;
            }
        }
        if let Some(path) = self.json.take() {
            std::fs::write(&path, self.json(runs)?).map_err(|error| format!("{}: {error}", path.display()))?;
        }
        if let Some(graph) = self.graph.take() {
            self.draw(&graph, runs).map_err(|error| format!("{}: {error}", graph.file.display()))?;
        }
        for file in self.file.iter_mut().chain(self.hdr.as_mut().map(|(file, _)| file)) {
            file.flush()?;
        }
        self.say(word)
    }

    /// Adds the runs to the report, beside those that it has.
    fn draw(&self, graph: &Graph, runs: &[Finished]) -> Result<()> {
        let mut all = runs_of(&graph.file)?;
        let operation = graph.operation.as_ref().unwrap_or(&self.operation);
        all.extend(runs.iter().map(|run| SavedRun::new(run, &graph.revision, operation, &self.server.version)));
        let text = saved_run::write(&mut all)?;
        std::fs::write(&graph.file, html::page(&graph.title, &all, &text)?)?;
        Ok(())
    }

    fn json(&self, runs: &[Finished]) -> Result<String> {
        let run = |run: &Finished| {
            let kinds: serde_json::Map<String, serde_json::Value> = run
                .kinds
                .iter()
                .map(|(name, tally, figures)| {
                    (name.clone(), serde_json::json!({ "results": figures, "percentiles": percentiles::of(tally) }))
                })
                .collect();
            serde_json::json!({
                "threads": run.threads, "seconds": run.seconds, "total": run.total, "percentiles": percentiles::of(&run.tally),
                "kinds": kinds, "intervals": run.series.points,
            })
        };
        let all = serde_json::json!({
            "command": self.line, "server": self.server, "times": "milliseconds", "runs": runs.iter().map(run).collect::<Vec<_>>(),
        });
        Ok(serde_json::to_string_pretty(&all)? + "\n")
    }
}
