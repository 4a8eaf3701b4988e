//! Writing until the server is killed, and reading back every row that it had acknowledged.
//!
//! A row is acknowledged when its answer has arrived. Rows whose answer did not arrive may be there
//! or not. The file holds a line per acknowledged run of numbers, `first last` (both included),
//! after a line with the run of the hammer.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::stream::{StreamExt, iter};
use scylla::client::session::Session;
use scylla::response::query_result::QueryRowsResult;

use crate::Outcome;
use crate::data::{Table, value};
use crate::report::Report;

/// Requests under way.
const UNDER_WAY: u64 = 64;
/// Rows of a partition; a number's partition is its quotient.
const PARTITION_ROWS: u64 = 1_000;
/// The hammer ends by itself after this many rows.
const ROWS_MAX: u64 = 5_000_000;
/// Partitions read at once when verifying.
const READS: usize = 16;

/// Writes from UNDER_WAY tasks until one is refused; `file` gets what was acknowledged.
pub async fn write(session: Session, file: &str) -> Outcome {
    let run = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_millis() as i64;
    let create =
        "CREATE KEYSPACE IF NOT EXISTS hammer WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}";
    session.query_unpaged(create, &[]).await?;
    let create = "CREATE TABLE IF NOT EXISTS hammer.rows (run bigint, part bigint, number bigint, value text, PRIMARY KEY ((run, part), number))";
    session.query_unpaged(create, &[]).await?;
    let insert = session.prepare("INSERT INTO hammer.rows (run, part, number, value) VALUES (?, ?, ?, ?)").await?;
    println!("hammering");
    let (session, insert) = (Arc::new(session), Arc::new(insert));
    let (next, ended, acked) =
        (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(Vec::new())));
    let writers = (0..UNDER_WAY).map(|_| {
        let (session, insert, next, ended, acked) =
            (session.clone(), insert.clone(), next.clone(), ended.clone(), acked.clone());
        tokio::spawn(async move {
            while !ended.load(Ordering::Relaxed) {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let part = (number / PARTITION_ROWS) as i64;
                let row = (run, part, number as i64, value(Table::Ascending, run as u64, number));
                match session.execute_unpaged(&insert, row).await {
                    Ok(_) => acked.lock().expect("no writer panics").push(number),
                    Err(_) => ended.store(true, Ordering::Relaxed),
                }
                if number >= ROWS_MAX {
                    ended.store(true, Ordering::Relaxed);
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await?;
    }
    let mut acked = acked.lock().expect("no writer panics").clone();
    acked.sort_unstable();
    println!("{} rows were acknowledged", acked.len());
    std::fs::write(file, runs_text(run, &acked))?;
    Ok(())
}

fn runs_text(run: i64, acked: &[u64]) -> String {
    let mut text = format!("{run}\n");
    for chunk in acked.chunk_by(|a, b| a + 1 == *b) {
        writeln!(text, "{} {}", chunk[0], chunk[chunk.len() - 1]).expect("a string takes any text");
    }
    text
}

/// Reads the rows that `file` lists.
pub async fn verify(session: Session, file: &str) -> Outcome {
    let text = std::fs::read_to_string(file)?;
    let mut lines = text.lines();
    let run: i64 = lines.next().ok_or("an empty file")?.parse()?;
    let mut acked = Vec::new();
    for line in lines {
        let (first, last) = line.split_once(' ').ok_or("a line without two numbers")?;
        acked.extend(first.parse::<u64>()?..=last.parse()?);
    }
    let select = session.prepare("SELECT number, value FROM hammer.rows WHERE run = ? AND part = ?").await?;
    let parts = acked.last().map_or(0, |last| last / PARTITION_ROWS + 1) as i64;
    let answers = iter(0..parts).map(|part| session.execute_unpaged(&select, (run, part))).buffered(READS);
    let mut found = std::collections::HashMap::new();
    let mut answers = std::pin::pin!(answers);
    while let Some(answer) = answers.next().await {
        let rows: QueryRowsResult = answer?.into_rows_result()?;
        for row in rows.rows::<(i64, String)>()? {
            let (number, value) = row?;
            found.insert(number as u64, value);
        }
    }
    let mut report = Report::default();
    let missing = acked.iter().filter(|number| {
        let want = value(Table::Ascending, run as u64, **number);
        found.get(number) != Some(&want)
    });
    let missing: Vec<u64> = missing.copied().collect();
    report.check(missing.is_empty(), || format!("{} acknowledged rows are not there: {missing:?}", missing.len()));
    println!("{} acknowledged rows, {} rows found", acked.len(), found.len());
    report.end()
}
