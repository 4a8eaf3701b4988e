//! Clients that open connections and never log in, on a server with few file descriptors: whoever
//! was there before writes on, through changes of the commit log's segment and through flushes, and
//! new clients come in when the idle ones are gone.

use std::path::Path;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::{Instant, sleep};

use crate::Outcome;
use crate::node::Node;
use crate::report::Report;
use crate::wire::{AnswerSummary, Wire};

/// File descriptors of the server.
const DESCRIPTORS: u32 = 256;
/// Connections that do nothing.
const IDLE: usize = 400;
/// Bytes of a row.
const ROW: usize = 1 << 20;
/// Rows written while the connections are there: ten segments of the commit log.
const ROWS: i32 = 40;
/// A new client comes in so soon after the idle ones are gone.
const RECOVERY_TIME_MAX: Duration = Duration::from_secs(15);

/// One server, its idle clients, and one that writes.
pub async fn run(program: &Path, place: &Path, report: &mut Report) -> Outcome {
    let mut node = Node::new(program, &place.join("data"), &place.join("log"))?;
    node.set_descriptors(DESCRIPTORS);
    node.start(&["--set".to_owned(), "commitlog_segment_size=4MiB".to_owned()]).await?;
    report.check(beside_idle_clients(&node).await, || "writes beside idle clients".to_owned());
    report.check(node.stop().await, || "the stop".to_owned());
    report.check(node.no_panic(), || "the log".to_owned());
    Ok(())
}

async fn beside_idle_clients(node: &Node) -> Outcome {
    let address = node.address();
    let mut writer = Wire::connect(&address).await?;
    for statement in [
        "CREATE KEYSPACE few WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE few.blobs (id int PRIMARY KEY, value blob)",
    ] {
        let said = writer.query(statement).await?;
        if !matches!(said, AnswerSummary::Result(_)) {
            return Err(format!("{statement}: {said:?}").into());
        }
    }
    let mut idle = Vec::new();
    for _ in 0..IDLE {
        // the listener's queue may be full: whoever does not come in now is no matter
        if let Ok(Ok(stream)) = tokio::time::timeout(Duration::from_secs(1), TcpStream::connect(&address)).await {
            idle.push(stream);
        }
    }
    let row = vec![7; ROW];
    for id in 0..ROWS {
        let statement = "INSERT INTO few.blobs (id, value) VALUES (?, ?)";
        let answer = writer.write_blob(statement, id, &row).await?;
        answer.into_result().map_err(|error| format!("row {id} beside {} idle clients: {error}", idle.len()))?;
    }
    drop(idle);
    let begun = Instant::now();
    let mut other = loop {
        match Wire::connect(&address).await {
            Ok(wire) => break wire,
            Err(error) if begun.elapsed() > RECOVERY_TIME_MAX => return Err(error),
            Err(_) => sleep(Duration::from_millis(100)).await,
        }
    };
    let counted = other.query_body("SELECT count(*) FROM few.blobs").await?.into_result()?;
    // the one value of the one row is the last in the body
    let all = counted.ends_with(&i64::from(ROWS).to_be_bytes());
    if all { Ok(()) } else { Err("rows that were acknowledged are not there".into()) }
}
