//! COPY TO: ranges of tokens are read side by side, formatted, and written as they come.
//!
//! The ring is cut into equal ranges, several for each request that may be in flight. A range is
//! read page by page; a page that fails is asked for again from where it began, so that no row is
//! written twice. [`QUEUE_MAX`] formatted pages wait for the file at most.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use types::ident::maybe_quote;

use super::csv::{put_field, put_record};
use super::options::CopyOptions;
use super::progress::Progress;
use super::{Kind, Task, backoff, connect, is_passing, names};
use crate::connection::{Answer, Connection, Content, Failure, Page, Parameters, Prepared, Value};
use crate::options::expand;
use crate::session::Session;
use crate::value;

/// Most formatted pages that wait to be written.
const QUEUE_MAX: usize = 16;
/// Ranges for each request in flight: a range with much data leaves the others to the rest.
const RANGES_PER_REQUEST: usize = 4;

/// Rows as CSV.
struct Formatted {
    text: String,
    /// Offsets at which the rows end.
    ends: Vec<usize>,
}

/// Carries a COPY TO out.
pub fn run(session: &mut Session, task: &Task) -> Result<(), String> {
    let options = &task.options;
    let mut sink = Sink::open(task)?;
    let shown = task.words.file.is_some();
    if shown {
        session.say(&format!(
            "\nStarting copy of {}.{} with columns [{}].",
            task.keyspace,
            task.table,
            task.columns.join(", ")
        ));
    }
    if options.header {
        let mut line = String::new();
        put_record(&mut line, task.columns.iter().map(String::as_str), options.dialect);
        sink.write(&line).map_err(|error| error.to_string())?;
    }
    let mut progress = Progress::new(options, shown)?;
    let done = session.wait(export(session, task, &mut sink, &mut progress));
    let took = progress.finish();
    sink.flush().map_err(|error| format!("the file cannot be written: {error}"))?;
    match done {
        Some(Ok(())) => {}
        Some(Err(why)) => session.error(&why),
        None => session.error("Cancelled; the file has a part of the rows."),
    }
    if shown {
        session.say(&format!("\n{} rows exported to {} files in {took}.", progress.rows(), sink.files));
    }
    Ok(())
}

async fn export(session: &Session, task: &Task, sink: &mut Sink, progress: &mut Progress) -> Result<(), String> {
    let options = &task.options;
    let timeout = Duration::from_secs(options.page_timeout);
    let say = |failure: Failure| failure.to_string();
    let connections = connect(session, options.processes, timeout).await.map_err(say)?;
    let first = connections.first().ok_or("no connection")?;
    let statement = statement(task);
    let prepared = Arc::new(first.prepare(&statement).await.map_err(say)?);
    let parameters = Parameters { page_size: Some(options.page_size), ..session.parameters() };
    let in_flight = options.processes * options.requests_max;
    let mut left: VecDeque<(i64, i64)> = ranges(options, in_flight * RANGES_PER_REQUEST).into();
    let (sender, mut formatted) = mpsc::channel::<Formatted>(QUEUE_MAX);
    let mut running = JoinSet::new();
    let (mut turn, mut failed) = (0, Vec::new());
    loop {
        while running.len() < in_flight
            && let Some((after, up_to)) = left.pop_front()
        {
            let range = Range {
                connection: connections[turn % connections.len()].clone(),
                prepared: prepared.clone(),
                values: [after, up_to].map(|token| Some(token.to_be_bytes().to_vec())),
                parameters: parameters.clone(),
                options: options.clone(),
                out: sender.clone(),
            };
            turn += 1;
            running.spawn(range.read());
        }
        if running.is_empty() {
            while let Ok(part) = formatted.try_recv() {
                sink.take(&part, progress)?;
            }
            break;
        }
        tokio::select! {
            biased;
            Some(part) = formatted.recv() => sink.take(&part, progress)?,
            Some(ended) = running.join_next() => match ended {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => failed.push(failure),
                Err(error) => return Err(format!("a range was not read: {error}")),
            },
        }
    }
    match failed.first() {
        None => Ok(()),
        Some(failure) => Err(format!("{} ranges were not read, some rows are missing: {failure}", failed.len())),
    }
}

fn statement(task: &Task) -> String {
    let key: Vec<String> = task.key(|kind| matches!(kind, Kind::Partition(_))).map(maybe_quote).collect();
    let key = key.join(", ");
    let (columns, table) = (names(&task.columns), task.full_name());
    format!("SELECT {columns} FROM {table} WHERE token({key}) >= ? AND token({key}) <= ?")
}

/// Equal ranges of tokens, from the first token to the last of each.
fn ranges(options: &CopyOptions, count: usize) -> Vec<(i64, i64)> {
    // BEGINTOKEN itself is left out, as in cqlsh
    let first = options.begin_token.map_or(i64::MIN, |token| token.saturating_add(1));
    let last = options.end_token.unwrap_or(i64::MAX);
    if first > last {
        return Vec::new();
    }
    let width = (i128::from(last) - i128::from(first) + 1).max(1);
    let count = (count.max(1) as i128).min(width);
    let at = |number: i128| i128::from(first) + width * number / count;
    let token = |value: i128| i64::try_from(value).unwrap_or(i64::MAX);
    (0..count).map(|number| (token(at(number)), token(at(number + 1) - 1))).collect()
}

/// A range that is read.
struct Range {
    connection: Arc<Connection>,
    prepared: Arc<Prepared>,
    /// The first and the last token.
    values: [Value; 2],
    parameters: Parameters,
    options: CopyOptions,
    out: mpsc::Sender<Formatted>,
}

impl Range {
    async fn read(self) -> Result<(), Failure> {
        let mut state: Option<Bytes> = None;
        loop {
            let page = self.page(state).await?;
            if page.count > 0 && self.out.send(self.format(&page)?).await.is_err() {
                return Ok(());
            }
            match page.paging_state {
                Some(next) => state = Some(next),
                None => return Ok(()),
            }
        }
    }

    async fn page(&self, state: Option<Bytes>) -> Result<Page, Failure> {
        let parameters = Parameters { paging_state: state, ..self.parameters.clone() };
        let mut attempt = 1;
        loop {
            match self.connection.execute(&self.prepared, &self.values, &parameters).await {
                Ok(Answer { content: Content::Rows(page), .. }) => return Ok(page),
                Ok(_) => return Err(Failure::Connection("a page was answered without rows".into())),
                Err(failure) if attempt < self.options.attempts_max && is_passing(&failure) => {
                    tokio::time::sleep(backoff(attempt)).await;
                    attempt += 1;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    fn format(&self, page: &Page) -> Result<Formatted, Failure> {
        let (mut text, mut ends) = (String::new(), Vec::new());
        let (style, dialect) = (&self.options.style, self.options.dialect);
        let alone = page.columns.len() == 1;
        page.each_row(|row| {
            for (at, (bytes, column)) in row.iter().zip(page.columns.iter()).enumerate() {
                if at > 0 {
                    text.push(char::from(dialect.delimiter));
                }
                let bytes = bytes.filter(|bytes| !bytes.is_empty() || is_text(&column.ty));
                put_field(&mut text, &value::show(&column.ty, bytes, style), dialect, alone);
            }
            text.push_str("\r\n");
            ends.push(text.len());
            Ok::<(), Failure>(())
        })?;
        Ok(Formatted { text, ends })
    }
}

/// Whether no bytes are a text, and not the empty value of a number.
fn is_text(ty: &types::CqlType) -> bool {
    matches!(ty, types::CqlType::Text | types::CqlType::Ascii | types::CqlType::Blob)
}

/// Where the rows go: a file, several files, standard output.
struct Sink {
    out: Box<dyn Write>,
    path: Option<PathBuf>,
    /// Files so far.
    files: usize,
    /// Most lines of a file.
    lines_max: Option<u64>,
    lines: u64,
}

impl Sink {
    fn open(task: &Task) -> Result<Self, String> {
        let lines_max = task.options.output_max;
        let Some(name) = &task.words.file else {
            let out = Box::new(BufWriter::new(std::io::stdout()));
            return Ok(Self { out, path: None, files: 0, lines_max: None, lines: 0 });
        };
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let path = expand(Path::new(name), home.as_deref());
        let out = create(&path).map_err(|error| format!("Can't open '{}' for writing: {error}", path.display()))?;
        Ok(Self { out, path: Some(path), files: 1, lines_max, lines: 0 })
    }

    fn take(&mut self, part: &Formatted, progress: &mut Progress) -> Result<(), String> {
        let written = match self.lines_max {
            None => self.write(&part.text),
            Some(limit) => self.write_rows(part, limit),
        };
        written.map_err(|error| format!("the file cannot be written: {error}"))?;
        progress.add(part.ends.len() as u64);
        Ok(())
    }

    fn write(&mut self, text: &str) -> std::io::Result<()> {
        self.out.write_all(text.as_bytes())
    }

    fn write_rows(&mut self, part: &Formatted, limit: u64) -> std::io::Result<()> {
        let starts = std::iter::once(0).chain(part.ends.iter().copied());
        for (end, start) in part.ends.iter().zip(starts) {
            if self.lines >= limit {
                self.next_file()?;
            }
            self.write(part.text.get(start..*end).unwrap_or_default())?;
            self.lines += 1;
        }
        Ok(())
    }

    fn next_file(&mut self) -> std::io::Result<()> {
        self.out.flush()?;
        if let Some(path) = &self.path {
            let mut next = path.clone().into_os_string();
            next.push(format!(".{}", self.files));
            self.out = create(Path::new(&next))?;
        }
        (self.files, self.lines) = (self.files + 1, 0);
        Ok(())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

fn create(path: &Path) -> std::io::Result<Box<dyn Write>> {
    Ok(Box::new(BufWriter::with_capacity(1 << 20, File::create(path)?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rc::Rc;
    use crate::value::Style;

    #[test]
    fn ranges_cover_the_ring_once() {
        let options = |with: &str| {
            let words = super::super::Words::parse(&format!("COPY t TO 'x' {with}")).unwrap();
            super::super::options::read(&words, "ks", &Rc::default(), &Style::default(), 1).unwrap()
        };
        let whole = ranges(&options(""), 7);
        assert_eq!((whole.len(), whole[0].0, whole[6].1), (7, i64::MIN, i64::MAX));
        assert!(whole.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0), "{whole:?}");
        assert_eq!(ranges(&options("WITH BEGINTOKEN='5' AND ENDTOKEN='7'"), 9), [(6, 6), (7, 7)]);
        assert_eq!(ranges(&options("WITH BEGINTOKEN='7' AND ENDTOKEN='7'"), 9), []);
    }
}
