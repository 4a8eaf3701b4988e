//! COPY FROM: chunks of records are parsed side by side and sent in unlogged batches.
//!
//! One reader, then [`CHUNKS_MAX`] chunks that wait at most, then workers. A worker parses a chunk,
//! sorts its rows by token, so that rows of one replica stand together, and sends batches, of which
//! MAXREQUESTS for each worker are in flight. A batch that the node refuses is sent again row by
//! row, so that only the rows at fault are left out; batches that failed for a passing reason are
//! sent again up to MAXATTEMPTS times. Rows that are given up go to ERRFILE as they were.
//!
//! A batch stays below the sizes at which Cassandra warns of batches ([`BATCH_BYTES_MAX`],
//! [`BATCH_PARTITIONS_MAX`]), whatever MAXBATCHSIZE says.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, mpsc};
use tokio::task::JoinSet;
use types::ident::maybe_quote;
use types::{CqlType, Token};

use super::csv::{Reader, Record, put_record};
use super::options::CopyOptions;
use super::progress::Progress;
use super::{Kind, Task, backoff, connect, is_passing, names, parse};
use crate::connection::{BatchKind, Connection, Failure, Parameters, Prepared, Value};
use crate::editor;
use crate::options::expand;
use crate::session::Session;

/// Most chunks that wait for a worker.
const CHUNKS_MAX: usize = 4;
/// Most reports of workers that wait to be counted.
const REPORTS_MAX: usize = 64;
/// Bytes of values in a batch: below batch_size_warn_threshold (5 KiB).
const BATCH_BYTES_MAX: usize = 4 << 10;
/// Partitions of a batch: unlogged_batch_across_partitions_warn_threshold.
const BATCH_PARTITIONS_MAX: usize = 10;
/// Least seconds to wait for the answer to a batch.
const TIMEOUT_SECONDS: u64 = 60;
/// Most errors that are shown one by one.
const SHOWN_MAX: u64 = 20;

/// A worker's report.
enum Report {
    Imported(u64),
    Failed { records: Vec<Record>, why: String, is_parsing: bool },
}

/// Carries a COPY FROM out.
pub fn run(session: &mut Session, task: Task, input: &mut dyn BufRead) -> Result<(), String> {
    let skipped = &task.options.skip_columns;
    let columns: Vec<String> = task.columns.iter().filter(|name| !skipped.contains(name)).cloned().collect();
    if columns.is_empty() {
        return Err("No valid column specified".into());
    }
    if let Some(missing) =
        task.key(|kind| *kind != Kind::Other).find(|name| !columns.iter().any(|column| column == name))
    {
        return Err(format!("Primary key column '{missing}' missing or skipped"));
    }
    session.say(&format!("\nStarting copy of {}.{} with columns [{}].", task.keyspace, task.table, columns.join(", ")));
    let mut progress = Progress::new(&task.options, true)?;
    let mut source = Source::open(&task)?;
    let shared = session.wait(connect_and_prepare(session, &task, &columns)).ok_or("Cancelled.")?;
    let shared = Arc::new(shared.map_err(|failure| failure.to_string())?);
    let mut errors = Errors { task: &task, file: None, parsing: 0, inserting: 0, failed: 0, shown: Vec::new() };
    let done = session.wait(feed(session, &task, &mut source, input, shared.clone(), &mut progress, &mut errors));
    shared.stop.store(true, Ordering::Relaxed);
    let took = progress.finish();
    let shown = std::mem::take(&mut errors.shown);
    let (failed, exceeded) = (errors.failed, errors.exceeded());
    shown.iter().for_each(|text| session.error(text));
    if let Some(text) = exceeded {
        session.error(&text);
    }
    if failed > 0 {
        let file = task.options.error_file.display();
        session.error(&format!("Failed to process {failed} rows; failed rows written to {file}"));
    }
    match done {
        None => session.error("Cancelled; a part of the rows is imported."),
        Some(Err(why)) => session.error(&why),
        Some(Ok(())) => {}
    }
    let (rows, files, skipped) = (progress.rows(), source.files, source.skipped);
    session.say(&format!("\n{rows} rows imported from {files} files in {took} ({skipped} skipped)."));
    Ok(())
}

/// Everything that workers share.
struct Shared {
    connections: Vec<Arc<Connection>>,
    prepared: Prepared,
    parameters: Parameters,
    options: CopyOptions,
    /// For each bound value the field of the record.
    fields: Vec<usize>,
    /// For each column of the partition key the bound value.
    key: Vec<usize>,
    /// The bound values of the primary key, which are never null.
    primary: Vec<usize>,
    /// Fields of a record.
    field_count: usize,
    kind: BatchKind,
    /// Whether nothing more is to be sent.
    stop: AtomicBool,
}

async fn connect_and_prepare(session: &Session, task: &Task, columns: &[String]) -> Result<Shared, Failure> {
    let options = task.options.clone();
    let timeout = Duration::from_secs(TIMEOUT_SECONDS.max(options.batch_max as u64 / 10));
    let connections = connect(session, options.processes, timeout).await?;
    let first = connections.first().ok_or_else(|| Failure::Connection("no connection".into()))?;
    let bound = bound_order(task, columns);
    let prepared = first.prepare(&statement(task, &bound)).await?;
    let position = |name: &str| bound.iter().position(|column| column == name);
    let fields = bound.iter().filter_map(|name| task.columns.iter().position(|column| column == name)).collect();
    let key = task.key(|kind| matches!(kind, Kind::Partition(_))).filter_map(position).collect();
    let primary = task.key(|kind| *kind != Kind::Other).filter_map(position).collect();
    Ok(Shared {
        connections,
        prepared,
        parameters: session.parameters(),
        fields,
        key,
        primary,
        field_count: task.columns.len(),
        kind: if task.is_counter { BatchKind::Counter } else { BatchKind::Unlogged },
        options,
        stop: AtomicBool::new(false),
    })
}

/// The columns in the order of the statement's markers. An UPDATE of counters has the key last.
fn bound_order(task: &Task, columns: &[String]) -> Vec<String> {
    let is_key =
        |name: &&String| task.of_table.iter().any(|column| column.name == **name && column.kind != Kind::Other);
    match task.is_counter {
        false => columns.to_vec(),
        true => {
            let others = columns.iter().filter(|name| !is_key(name));
            others.chain(columns.iter().filter(is_key)).cloned().collect()
        }
    }
}

fn statement(task: &Task, bound: &[String]) -> String {
    let table = task.full_name();
    if task.is_counter {
        let is_key =
            |name: &&String| task.of_table.iter().any(|column| column.name == **name && column.kind != Kind::Other);
        let set = bound.iter().filter(|name| !is_key(name)).map(|name| maybe_quote(name));
        let set: Vec<String> = set.map(|name| format!("{name} = {name} + ?")).collect();
        let key: Vec<String> = bound.iter().filter(is_key).map(|name| format!("{} = ?", maybe_quote(name))).collect();
        return format!("UPDATE {table} SET {} WHERE {}", set.join(", "), key.join(" AND "));
    }
    let marks = vec!["?"; bound.len()].join(", ");
    let ttl = task.options.ttl.map_or(String::new(), |seconds| format!(" USING TTL {seconds}"));
    format!("INSERT INTO {table} ({}) VALUES ({marks}){ttl}", names(bound))
}

/// Reads chunks and hands them to workers, and counts what the workers report.
async fn feed(
    session: &Session,
    task: &Task,
    source: &mut Source,
    input: &mut dyn BufRead,
    shared: Arc<Shared>,
    progress: &mut Progress,
    errors: &mut Errors<'_>,
) -> Result<(), String> {
    let options = &task.options;
    let (chunks, waiting) = mpsc::channel::<Vec<Record>>(CHUNKS_MAX);
    let (reports, mut reported) = mpsc::channel::<Report>(REPORTS_MAX);
    let waiting = Arc::new(Mutex::new(waiting));
    let mut workers = JoinSet::new();
    for number in 0..options.processes {
        let connection = shared.connections[number % shared.connections.len()].clone();
        workers.spawn(work(shared.clone(), connection, waiting.clone(), reports.clone()));
    }
    drop(reports);
    let mut chunks = Some(chunks);
    let mut next: Option<Vec<Record>> = None;
    let mut ticks = tokio::time::interval(progress.every());
    let begun = Instant::now();
    let mut sent = 0u64;
    let mut result = Ok(());
    loop {
        if next.is_none() && chunks.is_some() {
            match source.chunk(options, session.interactive, input) {
                Ok(chunk) if chunk.is_empty() => chunks = None,
                Ok(chunk) => next = Some(chunk),
                Err(error) => {
                    result = Err(error.to_string());
                    chunks = None;
                }
            }
        }
        let pause = options.ingest_rate.map_or(Duration::ZERO, |rate| {
            Duration::from_secs_f64(sent as f64 / rate as f64).saturating_sub(begun.elapsed())
        });
        let to = chunks.clone();
        tokio::select! {
            permit = async { to?.reserve_owned().await.ok() }, if next.is_some() && pause.is_zero() => {
                match permit {
                    Some(permit) => {
                        let chunk = next.take().unwrap_or_default();
                        sent += chunk.len() as u64;
                        permit.send(chunk);
                    }
                    None => chunks = None,
                }
            }
            () = tokio::time::sleep(pause), if !pause.is_zero() => {}
            report = reported.recv() => match report {
                None => break,
                Some(Report::Imported(rows)) => progress.add(rows),
                Some(Report::Failed { records, why, is_parsing }) => {
                    errors.add(&records, &why, is_parsing)?;
                    if errors.exceeded().is_some() {
                        shared.stop.store(true, Ordering::Relaxed);
                        (chunks, next) = (None, None);
                    }
                }
            },
            _ = ticks.tick() => progress.add(0),
        }
    }
    while let Some(ended) = workers.join_next().await {
        if let Err(error) = ended {
            result = Err(format!("a worker ended early, rows are missing: {error}"));
        }
    }
    result
}

/// A row that is ready to be sent.
struct Row {
    token: Token,
    values: Vec<Value>,
    bytes: usize,
    record: Record,
}

async fn work(
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    waiting: Arc<Mutex<mpsc::Receiver<Vec<Record>>>>,
    reports: mpsc::Sender<Report>,
) {
    let mut in_flight = JoinSet::new();
    while !shared.stop.load(Ordering::Relaxed) {
        let chunk = waiting.lock().await.recv().await;
        let Some(chunk) = chunk else { break };
        let mut rows = Vec::with_capacity(chunk.len());
        for record in chunk {
            match row(&shared, record) {
                Ok(row) => rows.push(row),
                Err((record, why)) => {
                    let report = Report::Failed { records: vec![record], why, is_parsing: true };
                    if reports.send(report).await.is_err() {
                        return;
                    }
                }
            }
        }
        // stable: of two rows with one key the later one stays behind the earlier one
        rows.sort_by_key(|row| row.token);
        for batch in batches(rows, &shared.options) {
            while in_flight.len() >= shared.options.requests_max {
                in_flight.join_next().await;
            }
            if shared.stop.load(Ordering::Relaxed) {
                break;
            }
            in_flight.spawn(send(shared.clone(), connection.clone(), batch, reports.clone()));
        }
    }
    in_flight.join_all().await;
}

fn row(shared: &Shared, record: Record) -> Result<Row, (Record, String)> {
    let fields: Vec<&str> = record.fields().collect();
    if fields.len() != shared.field_count {
        let why = format!("Invalid row length {} should be {}", fields.len(), shared.field_count);
        return Err((record, why));
    }
    let mut values: Vec<Value> = Vec::with_capacity(shared.fields.len());
    for (at, (field, column)) in shared.fields.iter().zip(shared.prepared.bound.iter()).enumerate() {
        let text = fields.get(*field).copied().unwrap_or_default();
        let value = match parse::field(&column.ty, text, &shared.options.style) {
            Ok(value) => value,
            Err(why) => {
                let why = format!("Failed to parse {text} of column {}: {why}", column.name);
                return Err((record, why));
            }
        };
        if value.is_none() && shared.primary.contains(&at) {
            let why = format!("Cannot insert null value for primary key column '{}'", column.name);
            return Err((record, why));
        }
        // a counter that is missing stays as it is
        let is_counter = matches!(column.ty, CqlType::Counter);
        values.push(value.or_else(|| is_counter.then(|| 0i64.to_be_bytes().to_vec())));
    }
    let token = Token::of_key(&partition_key(shared, &values));
    let bytes = values.iter().flatten().map(|value| value.len() + 4).sum();
    Ok(Row { token, values, bytes, record })
}

/// The serialized partition key.
fn partition_key(shared: &Shared, values: &[Value]) -> Vec<u8> {
    let part = |at: &usize| values.get(*at).and_then(Option::as_deref).unwrap_or_default();
    match shared.key.as_slice() {
        [only] => part(only).to_vec(),
        several => {
            let mut key = Vec::new();
            for at in several {
                stdx::put_short_bytes(&mut key, part(at).get(..usize::from(u16::MAX)).unwrap_or(part(at)));
                key.push(0);
            }
            key
        }
    }
}

/// Rows that are sent together. Many rows of one partition have batches of their own.
fn batches(rows: Vec<Row>, options: &CopyOptions) -> Vec<Vec<Row>> {
    let mut batches: Vec<Vec<Row>> = Vec::new();
    let mut runs: Vec<Vec<Row>> = Vec::new();
    for row in rows {
        match runs.last_mut().filter(|run| run.last().is_some_and(|last| last.token == row.token)) {
            Some(run) => run.push(row),
            None => runs.push(vec![row]),
        }
    }
    let (mut open, mut partitions, mut bytes) = (Vec::new(), 0, 0);
    for run in runs {
        let apart = run.len() >= options.batch_min.max(2);
        if apart || partitions >= BATCH_PARTITIONS_MAX {
            batches.push(std::mem::take(&mut open));
            (partitions, bytes) = (0, 0);
        }
        partitions += 1;
        for row in run {
            if open.len() >= options.batch_max || bytes + row.bytes > BATCH_BYTES_MAX {
                batches.push(std::mem::take(&mut open));
                (partitions, bytes) = (1, 0);
            }
            bytes += row.bytes;
            open.push(row);
        }
        if apart {
            batches.push(std::mem::take(&mut open));
            (partitions, bytes) = (0, 0);
        }
    }
    batches.push(open);
    batches.retain(|batch| !batch.is_empty());
    batches
}

/// Sends a batch, and reports what became of its rows.
async fn send(shared: Arc<Shared>, connection: Arc<Connection>, batch: Vec<Row>, reports: mpsc::Sender<Report>) {
    let failure = match attempt(&shared, &connection, &batch).await {
        Ok(()) => {
            // nobody listens any more where the COPY has ended
            let _ = reports.send(Report::Imported(batch.len() as u64)).await;
            return;
        }
        Err(failure) => failure,
    };
    // a refused batch has rows at fault among others that are not
    if batch.len() > 1 && !is_passing(&failure) && matches!(failure, Failure::Server(_)) {
        for row in batch {
            let row = [row];
            let report = match attempt(&shared, &connection, &row).await {
                Ok(()) => Report::Imported(1),
                Err(failure) => failed(row.into(), &failure),
            };
            if shared.stop.load(Ordering::Relaxed) || reports.send(report).await.is_err() {
                return;
            }
        }
        return;
    }
    let _ = reports.send(failed(batch, &failure)).await;
}

fn failed(rows: Vec<Row>, failure: &Failure) -> Report {
    let records = rows.into_iter().map(|row| row.record).collect();
    Report::Failed { records, why: failure.to_string(), is_parsing: false }
}

async fn attempt(shared: &Shared, connection: &Connection, rows: &[Row]) -> Result<(), Failure> {
    let mut number = 1;
    loop {
        let sent = match rows {
            [row] => connection.execute(&shared.prepared, &row.values, &shared.parameters).await,
            rows => {
                let values: Vec<&[Value]> = rows.iter().map(|row| row.values.as_slice()).collect();
                connection.batch(shared.kind, &shared.prepared, &values, &shared.parameters).await
            }
        };
        match sent {
            Ok(_) => return Ok(()),
            // a counter that was late may have been counted: it is not counted twice
            Err(failure)
                if number < shared.options.attempts_max
                    && is_passing(&failure)
                    && shared.kind != BatchKind::Counter
                    && !shared.stop.load(Ordering::Relaxed) =>
            {
                tokio::time::sleep(backoff(number)).await;
                number += 1;
            }
            Err(failure) => return Err(failure),
        }
    }
}

/// Rows that were not imported.
struct Errors<'t> {
    task: &'t Task,
    file: Option<File>,
    parsing: u64,
    inserting: u64,
    failed: u64,
    /// Texts for the user, [`SHOWN_MAX`] at most.
    shown: Vec<String>,
}

impl Errors<'_> {
    fn add(&mut self, records: &[Record], why: &str, is_parsing: bool) -> Result<(), String> {
        let count = records.len() as u64;
        *(if is_parsing { &mut self.parsing } else { &mut self.inserting }) += count;
        self.failed += count;
        if (self.shown.len() as u64) < SHOWN_MAX {
            let how = if is_parsing { "given up without retries" } else { "given up" };
            self.shown.push(format!("Failed to import {count} rows: {why},  {how}"));
        }
        let mut text = String::new();
        for record in records {
            let fields: Vec<&str> = record.fields().collect();
            put_record(&mut text, fields.into_iter(), self.task.options.dialect);
        }
        let path = &self.task.options.error_file;
        let written = self.file().and_then(|file| file.write_all(text.as_bytes()));
        written.map_err(|error| format!("ERRFILE {}: {error}", path.display()))
    }

    /// The file, made at the first error; a file of an earlier COPY is kept under another name.
    fn file(&mut self) -> io::Result<&mut File> {
        let path = &self.task.options.error_file;
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                if path.exists() {
                    let now = jiff::Timestamp::now().strftime(".%Y%m%d_%H%M%S").to_string();
                    let mut old = path.clone().into_os_string();
                    old.push(now);
                    std::fs::rename(path, old)?;
                }
                File::create(path)?
            }
        };
        Ok(self.file.insert(file))
    }

    fn exceeded(&self) -> Option<String> {
        let options = &self.task.options;
        let over = |errors: u64, limit: Option<u64>, what: &str| {
            let limit = limit.filter(|limit| errors > *limit)?;
            Some(format!("Exceeded maximum number of {what} errors {limit}"))
        };
        over(self.inserting, options.insert_errors_max, "insert")
            .or_else(|| over(self.parsing, options.parse_errors_max, "parse"))
    }
}

/// The files that are read one after another.
struct Source {
    /// Files that are still to be opened; None: standard input.
    left: Option<std::vec::IntoIter<PathBuf>>,
    reader: Option<Reader<Box<dyn BufRead>>>,
    /// Files so far.
    files: usize,
    /// Rows that were skipped.
    skipped: u64,
    /// Records that were read, skipped ones included.
    read: u64,
    dialect: super::csv::Dialect,
    header: bool,
}

impl Source {
    fn open(task: &Task) -> Result<Self, String> {
        let (dialect, header) = (task.options.dialect, task.options.header);
        let left = match &task.words.file {
            None => None,
            Some(text) => Some(files(text)?.into_iter()),
        };
        Ok(Self { left, reader: None, files: 0, skipped: 0, read: 0, dialect, header })
    }

    /// The next records; an empty list: there are no more.
    fn chunk(&mut self, options: &CopyOptions, interactive: bool, input: &mut dyn BufRead) -> io::Result<Vec<Record>> {
        let mut chunk = Vec::new();
        while chunk.len() < options.chunk_size && options.rows_max.is_none_or(|limit| self.read < limit) {
            let Some(record) = self.record(interactive, input)? else { break };
            self.read += 1;
            match self.skipped < options.skip_rows {
                true => self.skipped += 1,
                false => chunk.push(record),
            }
        }
        Ok(chunk)
    }

    fn record(&mut self, interactive: bool, input: &mut dyn BufRead) -> io::Result<Option<Record>> {
        loop {
            if let Some(reader) = &mut self.reader {
                match reader.next()? {
                    Some(record) => return Ok(Some(record)),
                    None => self.reader = None,
                }
            }
            let next: Box<dyn BufRead> = match &mut self.left {
                Some(left) => match left.next() {
                    None => return Ok(None),
                    Some(path) => {
                        let opened = File::open(&path);
                        let opened = opened
                            .map_err(|error| io::Error::other(format!("Can't open '{}': {error}", path.display())))?;
                        Box::new(BufReader::with_capacity(1 << 20, opened))
                    }
                },
                None if self.files > 0 => return Ok(None),
                None => Box::new(io::Cursor::new(standard_input(interactive, input)?)),
            };
            let mut reader = Reader::new(next, self.dialect);
            self.files += 1;
            if self.header {
                reader.next()?;
            }
            self.reader = Some(reader);
        }
    }
}

/// Most bytes that are typed or piped behind COPY FROM STDIN.
const STDIN_MAX: usize = 256 << 20;

/// The lines up to `\.`.
fn standard_input(interactive: bool, input: &mut dyn BufRead) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    if interactive {
        println!("[Use \\. on a line by itself to end input]");
        while let Some(line) = editor::line("[copy] ").filter(|line| line != "\\." && line != ".") {
            text.extend_from_slice(line.as_bytes());
            text.push(b'\n');
        }
        return Ok(text);
    }
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = input.read_until(b'\n', &mut line)?;
        if length == 0 || matches!(line.trim_ascii(), b"\\." | b".") {
            return Ok(text);
        }
        if text.len() + length > STDIN_MAX {
            return Err(io::Error::other(format!("more than {STDIN_MAX} bytes behind STDIN: COPY a file instead")));
        }
        text.extend_from_slice(&line);
    }
}

/// The files of names and patterns with commas between them.
fn files(text: &str) -> Result<Vec<PathBuf>, String> {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let mut found = Vec::new();
    for name in text.split(',').map(str::trim) {
        let path = expand(Path::new(name), home.as_deref());
        if path.is_file() {
            found.push(path);
            continue;
        }
        let matching = matching(&path);
        if matching.is_empty() {
            return Err(format!("Can't open '{name}' for reading: no matching file found"));
        }
        found.extend(matching);
    }
    Ok(found)
}

/// The files of a directory whose names fit a pattern with `*` and `?` in its last part, by name.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let Some(name) = pattern.file_name().and_then(|name| name.to_str()) else { return Vec::new() };
    let directory = pattern.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let fitting = entries.filter(|entry| entry.file_name().to_str().is_some_and(|text| fits(name, text)));
    let mut files: Vec<PathBuf> = fitting.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

fn fits(pattern: &str, text: &str) -> bool {
    let mut rest = pattern.chars();
    match rest.next() {
        None => text.is_empty(),
        Some('*') => {
            (0..=text.len()).filter(|at| text.is_char_boundary(*at)).any(|at| fits(rest.as_str(), &text[at..]))
        }
        Some(c) => {
            let mut others = text.chars();
            others.next().is_some_and(|other| c == '?' || c == other) && fits(rest.as_str(), others.as_str())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(tokens: &[i64], bytes: usize) -> Vec<Row> {
        let row = |token: &i64| Row { token: Token(*token), values: Vec::new(), bytes, record: Record::default() };
        tokens.iter().map(row).collect()
    }

    fn sizes(tokens: &[i64], bytes: usize, with: &str) -> Vec<usize> {
        let words = super::super::Words::parse(&format!("COPY t FROM 'x' {with}")).unwrap();
        let rc = crate::rc::Rc::default();
        let options = super::super::options::read(&words, "ks", &rc, &Default::default(), 1).unwrap();
        batches(rows(tokens, bytes), &options).iter().map(Vec::len).collect()
    }

    #[test]
    fn batches_have_bounds() {
        assert_eq!(sizes(&[], 10, ""), Vec::<usize>::new());
        // ten partitions at most
        assert_eq!(sizes(&(0..25).collect::<Vec<_>>(), 10, ""), [10, 10, 5]);
        // many rows of one partition stand apart
        assert_eq!(sizes(&[1, 2, 2, 2, 3], 10, "WITH MINBATCHSIZE=3"), [1, 3, 1]);
        assert_eq!(sizes(&[7; 45], 10, ""), [20, 20, 5]);
        assert_eq!(sizes(&[7; 5], 10, "WITH MAXBATCHSIZE=2 AND MINBATCHSIZE=9"), [2, 2, 1]);
        // large rows go one by one
        assert_eq!(sizes(&[1, 2, 3], 5000, ""), [1, 1, 1]);
    }

    #[test]
    fn patterns_of_files() {
        assert!(fits("*.csv", "a.csv") && fits("a?c*", "abcd") && fits("*", ""));
        assert!(!fits("*.csv", "a.txt") && !fits("a?", "a"));
    }
}
