//! The kinds of request, over two tables: small rows by key, and wide partitions in time order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use scylla::client::session::Session;
use scylla::statement::batch::{Batch, BatchType};
use scylla::statement::prepared::PreparedStatement;

use crate::Result;

/// Rows of `small` that reads choose from.
const SMALL_ROWS: u64 = 200_000;
/// Partitions and rows of each of `wide`.
const WIDE_PARTITIONS: u64 = 10;
const WIDE_ROWS: u64 = 20_000;
/// Rows that a slice asks for.
const SLICE_ROWS: u64 = 100;
/// Bytes of a value.
const VALUE_BYTES: usize = 100;
/// Requests under way while the data is made.
const MAKERS: u64 = 64;
const BATCH_ROWS: u64 = 100;

const SCHEMA: [&str; 4] = [
    "DROP KEYSPACE IF EXISTS bench",
    "CREATE KEYSPACE bench WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE bench.small (key bigint PRIMARY KEY, value blob)",
    "CREATE TABLE bench.wide (key bigint, at bigint, value blob, PRIMARY KEY (key, at))",
];

/// Makes the tables and what the reads ask for.
pub async fn prepare(session: &Session) -> Result<()> {
    for statement in SCHEMA {
        session.query_unpaged(statement, &[]).await?;
    }
    session.await_schema_agreement().await?;
    let small = session.prepare("INSERT INTO bench.small (key, value) VALUES (?, ?)").await?;
    let next = Arc::new(AtomicU64::new(0));
    let makers = (0..MAKERS).map(|_| async {
        loop {
            let key = next.fetch_add(1, Ordering::Relaxed);
            if key >= SMALL_ROWS {
                return Ok::<_, Box<dyn std::error::Error + Send + Sync>>(());
            }
            session.execute_unpaged(&small, (key as i64, value(key))).await?;
        }
    });
    for made in join_all(makers).await {
        made?;
    }
    let wide = session.prepare("INSERT INTO bench.wide (key, at, value) VALUES (?, ?, ?)").await?;
    let mut batch = Batch::new(BatchType::Unlogged);
    (0..BATCH_ROWS).for_each(|_| batch.append_statement(wide.clone()));
    for key in 0..WIDE_PARTITIONS {
        for first in (0..WIDE_ROWS).step_by(BATCH_ROWS as usize) {
            let rows: Vec<_> = (first..first + BATCH_ROWS).map(|at| (key as i64, at as i64, value(at))).collect();
            session.batch(&batch, rows).await?;
        }
    }
    Ok(())
}

async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    let mut outputs = Vec::new();
    std::future::poll_fn(|context| {
        futures.retain_mut(|future| match future.as_mut().poll(context) {
            std::task::Poll::Ready(output) => {
                outputs.push(output);
                false
            }
            std::task::Poll::Pending => true,
        });
        if futures.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    outputs
}

fn value(number: u64) -> Vec<u8> {
    (0..VALUE_BYTES as u64 / 4).flat_map(|i| (mix(number ^ i) as u32).to_le_bytes()).collect()
}

fn hex(number: u64) -> String {
    value(number).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Numbers that look random and are the same in every run (splitmix64).
fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One kind of request, prepared.
pub struct Work {
    session: Session,
    statement: PreparedStatement,
    kind: Kind,
    run: u64,
}

enum Kind {
    Write,
    Read,
    Slice,
    Newest,
    Insert,
    Select,
}

impl Work {
    /// By the name of the kind.
    pub async fn new(session: Session, kind: &str) -> Result<Self> {
        let (kind, text) = match kind {
            "write" => (Kind::Write, "INSERT INTO bench.small (key, value) VALUES (?, ?)".to_string()),
            "read" => (Kind::Read, "SELECT value FROM bench.small WHERE key = ?".to_string()),
            "slice" => {
                (Kind::Slice, format!("SELECT at, value FROM bench.wide WHERE key = ? AND at >= ? LIMIT {SLICE_ROWS}"))
            }
            "newest" => (
                Kind::Newest,
                format!("SELECT at, value FROM bench.wide WHERE key = ? ORDER BY at DESC LIMIT {SLICE_ROWS}"),
            ),
            // never prepared: each request is a text of its own
            "insert" => (Kind::Insert, "INSERT INTO bench.small (key, value) VALUES (?, ?)".to_string()),
            "select" => (Kind::Select, "SELECT value FROM bench.small WHERE key = ?".to_string()),
            _ => return Err("no such kind".into()),
        };
        let statement = session.prepare(text).await?;
        let run = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH)?.as_nanos() as u64;
        Ok(Self { session, statement, kind, run })
    }

    /// One request; an answer with the wrong number of rows is an error.
    pub async fn request(&self, task: u64, number: u64) -> Result<()> {
        let random = mix(self.run ^ task << 40 ^ number);
        let (session, statement) = (&self.session, &self.statement);
        let (answer, rows) = match self.kind {
            // new keys for the most part, as they come: the table grows
            Kind::Write => (session.execute_unpaged(statement, (random as i64, value(random))).await?, 0),
            Kind::Read => (session.execute_unpaged(statement, ((random % SMALL_ROWS) as i64,)).await?, 1),
            Kind::Slice => {
                let at = mix(random) % (WIDE_ROWS - SLICE_ROWS);
                (session.execute_unpaged(statement, ((random % WIDE_PARTITIONS) as i64, at as i64)).await?, SLICE_ROWS)
            }
            Kind::Insert => {
                let text =
                    format!("INSERT INTO bench.small (key, value) VALUES ({}, 0x{})", random as i64, hex(random));
                (session.query_unpaged(text, &[]).await?, 0)
            }
            Kind::Select => {
                let text = format!("SELECT key, value FROM bench.small WHERE key = {}", random % SMALL_ROWS);
                (session.query_unpaged(text, &[]).await?, 1)
            }
            Kind::Newest => {
                (session.execute_unpaged(statement, ((random % WIDE_PARTITIONS) as i64,)).await?, SLICE_ROWS)
            }
        };
        if rows > 0 && answer.into_rows_result()?.rows_num() as u64 != rows {
            return Err("an answer with the wrong number of rows".into());
        }
        Ok(())
    }
}
