//! COPY: a table to CSV and back, with cqlsh's options and files.
//!
//! [`export`] reads ranges of tokens side by side, page by page; [`import`] parses chunks of
//! records side by side and sends them in unlogged batches. Both have connections of their own, so
//! that a wait for a page is not the wait for a statement. Memory does not grow with the table:
//! every queue has a bound, and a side that is ahead waits.

mod csv;
mod export;
mod import;
mod options;
mod parse;
mod progress;

use std::io::BufRead;
use std::sync::Arc;
use std::time::Duration;

use types::ident::{maybe_quote, quote_text};

use crate::connection::{Connection, Failure};
use crate::session::Session;
use options::{CopyOptions, Words};

/// A column of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TableColumn {
    name: String,
    kind: Kind,
}

/// The part that a column has in the table, in the order in which columns are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Partition(i32),
    Clustering(i32),
    Other,
}

/// The task: which columns of which table, and how.
struct Task {
    keyspace: String,
    table: String,
    /// The columns of the file.
    columns: Vec<String>,
    /// All columns of the table.
    of_table: Vec<TableColumn>,
    is_counter: bool,
    options: CopyOptions,
    words: Words,
}

impl Task {
    fn full_name(&self) -> String {
        types::ident::qualified(&self.keyspace, &self.table)
    }

    fn key(&self, wanted: fn(&Kind) -> bool) -> impl Iterator<Item = &str> {
        self.of_table.iter().filter(move |column| wanted(&column.kind)).map(|column| column.name.as_str())
    }
}

/// Carries a COPY out. `input` is STDIN's place in a script.
pub fn run(session: &mut Session, statement: &str, input: &mut dyn BufRead) {
    let Some(words) = Words::parse(statement) else {
        return session.error("Improper COPY command. HELP COPY shows its forms.");
    };
    let done = prepare(session, words).and_then(|task| match task.words.from {
        true => import::run(session, task, input),
        false => export::run(session, &task),
    });
    if let Err(why) = done {
        session.error(&why);
    }
}

fn prepare(session: &Session, words: Words) -> Result<Task, String> {
    let keyspace = words.keyspace.clone().or_else(|| session.keyspace.clone());
    let keyspace = keyspace.ok_or("Not in any keyspace: USE one first, or write COPY keyspace.table")?;
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let options = options::read(&words, &keyspace, &session.rc, &session.style, cores)?;
    let (of_table, is_counter) = columns(session, &keyspace, &words.table).map_err(|failure| failure.to_string())?;
    if of_table.is_empty() {
        return Err(format!("Table {keyspace}.{} not found: DESCRIBE TABLES lists the names", words.table));
    }
    let columns = match words.columns.is_empty() {
        true => of_table.iter().map(|column| column.name.clone()).collect(),
        false => words.columns.clone(),
    };
    if let Some(unknown) = columns.iter().find(|name| !of_table.iter().any(|column| column.name == **name)) {
        return Err(format!("Invalid column name {unknown}"));
    }
    Ok(Task { keyspace, table: words.table.clone(), columns, of_table, is_counter, options, words })
}

/// The columns of a table in cqlsh's order: partition key, clustering key, the others by name; and
/// whether the table has counters.
fn columns(session: &Session, keyspace: &str, table: &str) -> Result<(Vec<TableColumn>, bool), Failure> {
    for schema in ["system_schema", "system_virtual_schema"] {
        let statement = format!(
            "SELECT column_name, kind, position, type FROM {schema}.columns WHERE keyspace_name = {} AND table_name = {}",
            quote_text(keyspace),
            quote_text(table)
        );
        let page = session.rows(&statement)?;
        let (mut columns, mut is_counter) = (Vec::new(), false);
        for row in page.rows()? {
            let position =
                page.field(&row, "position").and_then(|bytes| bytes.try_into().ok()).map_or(0, i32::from_be_bytes);
            let kind = match page.text(&row, "kind").as_str() {
                "partition_key" => Kind::Partition(position),
                "clustering" => Kind::Clustering(position),
                _ => Kind::Other,
            };
            is_counter |= page.text(&row, "type") == "counter";
            columns.push(TableColumn { name: page.text(&row, "column_name"), kind });
        }
        if !columns.is_empty() {
            columns.sort_by(|a, b| (a.kind, &a.name).cmp(&(b.kind, &b.name)));
            return Ok((columns, is_counter));
        }
    }
    Ok((Vec::new(), false))
}

/// Connections of a COPY's own, with its own limit of time.
async fn connect(session: &Session, count: usize, timeout: Duration) -> Result<Vec<Arc<Connection>>, Failure> {
    let mut target = session.target.clone();
    target.request_timeout = timeout;
    let mut connections = Vec::new();
    for _ in 0..count {
        connections.push(Arc::new(Connection::open(&target).await?));
    }
    Ok(connections)
}

/// Whether a request may succeed when it is sent again.
fn is_passing(failure: &Failure) -> bool {
    match failure {
        Failure::Server(error) => error.is_passing(),
        Failure::Timeout(_) => true,
        Failure::Connection(_) => false,
    }
}

/// The wait before an attempt: from a fifth of a second on, doubled each time, 10 seconds at most.
fn backoff(attempt: u32) -> Duration {
    Duration::from_millis(100 << attempt.min(7)).min(Duration::from_secs(10))
}

fn names(columns: &[String]) -> String {
    columns.iter().map(|name| maybe_quote(name)).collect::<Vec<_>>().join(", ")
}
