//! More than the server can take: connections, requests, bytes, answers that nobody reads, lists
//! without end. It stays below its memory, answers or refuses, and is well a second later. A probe
//! asks for one row all the while.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::time::{sleep, timeout};

use crate::Outcome;
use crate::node::Node;
use crate::report::Report;
use crate::wire::{ANSWER_MAX_TIME, AnswerSummary, Wire};

/// The memory that the server may use, MiB.
const MEMORY_MIB: u64 = 256;
/// A connection is tried so often: a listener's queue has an end.
const CONNECT_TRIES: u32 = 5;
/// Rows of the partition that is asked for whole, and the bytes of each.
const WIDE_ROWS: usize = 20_000;
const WIDE_ROW_BYTES: usize = 1000;
/// A value, and a batch, that is near the largest a server takes.
const LARGE_VALUE: usize = 7 << 20;
/// After the load the probe is answered within this, and it has so long to become so.
const PROBE_TIME_MAX: Duration = Duration::from_millis(100);
const RECOVERY_TIME_MAX: Duration = Duration::from_secs(1);
const PROBE_EVERY: Duration = Duration::from_millis(50);

/// The behaviour of each connection of a load.
#[derive(Clone, Copy, Debug)]
enum Load {
    /// Writes a row, waits, writes the next.
    SmallWrites,
    /// Sends hundreds of small reads, then waits for their answers.
    Pipelined,
    /// Asks for large pages and reads nothing.
    SlowReaders,
    /// Asks for large compressed pages and reads nothing.
    SlowCompressed,
    /// Sends hundreds of reads of ten kilobytes and reads nothing.
    SlowPipelined,
    /// Writes values of megabytes.
    LargeValues,
    /// Asks for thousands of keys.
    LongLists,
    /// Scans a table with a filter.
    Scans,
}

const LOADS: [(Load, usize); 8] = [
    (Load::SmallWrites, usize::MAX),
    (Load::Pipelined, 1000),
    (Load::SlowReaders, 500),
    (Load::SlowCompressed, 500),
    (Load::SlowPipelined, 2000),
    (Load::LargeValues, 64),
    (Load::LongLists, 200),
    (Load::Scans, 200),
];

/// Each kind of load for its share of the time.
pub async fn run(
    program: &Path,
    place: &Path,
    connections: usize,
    seconds: u64,
    only: &str,
    report: &mut Report,
) -> Outcome {
    let mut node = Node::new(program, &place.join("data"), &place.join("log"))?;
    let arguments = ["--memory".to_owned(), format!("{MEMORY_MIB}MiB")];
    node.start(&arguments).await?;
    fill(&node).await?;
    for (load, most) in LOADS.into_iter().filter(|(load, _)| format!("{load:?}").contains(only)) {
        let time = Duration::from_secs(seconds) / LOADS.len() as u32;
        let outcome = one(&node, load, connections.min(most), time).await;
        report.check(outcome, || format!("{load:?}"));
        report.check(node.stop().await, || format!("the stop after {load:?}"));
        report.check(node.no_panic(), || format!("the log of {load:?}"));
        node.start(&arguments).await?;
    }
    report.check(node.stop().await, || "the last stop".to_owned());
    Ok(())
}

async fn fill(node: &Node) -> Outcome {
    let mut wire = Wire::connect(&node.address()).await?;
    let statements = [
        "CREATE KEYSPACE load WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE load.rows (part int, number int, value text, PRIMARY KEY (part, number))",
        "CREATE TABLE load.blobs (id int PRIMARY KEY, value text)",
        "INSERT INTO load.rows (part, number, value) VALUES (-1, 0, 'probe')",
    ];
    for statement in statements {
        expect_result(wire.query(statement).await?)?;
    }
    for number in 0..WIDE_ROWS {
        let value: String = (0..WIDE_ROW_BYTES / 16).map(|part| format!("{:016x}", scattered(number, part))).collect();
        let statement = format!("INSERT INTO load.rows (part, number, value) VALUES (-2, {number}, '{value}')");
        expect_result(wire.query(&statement).await?)?;
    }
    Ok(())
}

/// A number that does not compress with its neighbours.
fn scattered(number: usize, part: usize) -> u64 {
    ((number * WIDE_ROW_BYTES + part) as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn expect_result(said: AnswerSummary) -> Outcome {
    if matches!(said, AnswerSummary::Result(_)) { Ok(()) } else { Err(format!("{said:?}").into()) }
}

/// Answers by kind, of all connections of a load.
type Answers = Arc<Mutex<BTreeMap<String, u64>>>;

async fn one(node: &Node, load: Load, connections: usize, time: Duration) -> Outcome {
    let id = node.id().ok_or("no process")?;
    let before = resident_mib(id)?;
    let ended = Arc::new(AtomicBool::new(false));
    let answers = Answers::default();
    let address = node.address();
    let mut tasks = Vec::new();
    for number in 0..connections {
        let (address, ended, answers) = (address.clone(), ended.clone(), answers.clone());
        tasks.push(tokio::spawn(async move {
            if let Err(error) = client(&address, load, number, &ended, &answers).await {
                count(&answers, &error.to_string());
            }
        }));
    }
    let probe = tokio::spawn(probe(address.clone(), ended.clone()));
    let (begun, mut most) = (Instant::now(), 0);
    while begun.elapsed() < time {
        sleep(PROBE_EVERY).await;
        most = most.max(resident_mib(id)?);
    }
    ended.store(true, Ordering::Relaxed);
    let mut probed = probe.await??;
    // whoever still waits goes away as clients do: without a word
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    sleep(RECOVERY_TIME_MAX).await;
    let well = timeout(ANSWER_MAX_TIME, after(&address)).await.map_err(|_| "no answer after the load")??;
    probed.sort_unstable();
    let said = answers.lock().map_err(|_| "a client panicked")?.clone();
    println!(
        "{load:?}, {connections} connections: {before} MiB, at most {most}; {said:?}; the probe was answered {} times, median {:?}, longest {:?}; after it {well:?}",
        probed.len(),
        probed.get(probed.len() / 2).unwrap_or(&Duration::ZERO),
        probed.last().unwrap_or(&Duration::ZERO),
    );
    if most > MEMORY_MIB {
        return Err(format!("{most} MiB resident, {MEMORY_MIB} allowed").into());
    }
    if well > PROBE_TIME_MAX {
        return Err(format!("a read takes {well:?} a second after the load").into());
    }
    Ok(())
}

/// How long a read takes that anyone may send, each answered whether or not it is refused.
async fn probe(address: String, ended: Arc<AtomicBool>) -> Outcome<Vec<Duration>> {
    let mut wire = Wire::connect(&address).await?;
    let mut times = Vec::new();
    while !ended.load(Ordering::Relaxed) {
        let begun = Instant::now();
        wire.query("SELECT value FROM load.rows WHERE part = -1")
            .await
            .map_err(|error| format!("the probe: {error}"))?;
        times.push(begun.elapsed());
        sleep(PROBE_EVERY).await;
    }
    Ok(times)
}

async fn after(address: &str) -> Outcome<Duration> {
    let mut wire = Wire::connect(address).await?;
    let begun = Instant::now();
    expect_result(wire.query("SELECT value FROM load.rows WHERE part = -1").await?)?;
    Ok(begun.elapsed())
}

async fn client(address: &str, load: Load, number: usize, ended: &AtomicBool, answers: &Answers) -> Outcome {
    let mut wire = connect(address, matches!(load, Load::SlowCompressed)).await?;
    let mut asked = 0;
    while !ended.load(Ordering::Relaxed) {
        asked += 1;
        match load {
            Load::SmallWrites => {
                let statement =
                    format!("INSERT INTO load.rows (part, number, value) VALUES ({number}, {asked}, 'small')");
                note(answers, wire.query(&statement).await?);
            }
            Load::Pipelined => {
                const AT_ONCE: usize = 200;
                for part in 0..AT_ONCE {
                    wire.ask(&format!("SELECT * FROM load.rows WHERE part = {part} LIMIT 10")).await?;
                }
                for _ in 0..AT_ONCE {
                    note(answers, wire.said().await?);
                }
            }
            Load::SlowPipelined => {
                wire.ask("SELECT * FROM load.rows WHERE part = -2 LIMIT 10").await?;
                sleep(Duration::from_millis(5)).await;
            }
            Load::SlowReaders | Load::SlowCompressed => {
                wire.ask("SELECT * FROM load.rows WHERE part = -2").await?;
                sleep(Duration::from_millis(20)).await;
            }
            Load::LargeValues => {
                let statement =
                    format!("INSERT INTO load.blobs (id, value) VALUES ({number}, '{}')", "v".repeat(LARGE_VALUE));
                note(answers, wire.query(&statement).await?);
            }
            Load::LongLists => {
                let keys: Vec<String> = (0..5000).map(|key| (key + asked).to_string()).collect();
                let statement = format!("SELECT * FROM load.rows WHERE part IN ({})", keys.join(","));
                note(answers, wire.query(&statement).await?);
            }
            Load::Scans => {
                note(answers, wire.query("SELECT * FROM load.rows WHERE value = 'nothing' ALLOW FILTERING").await?);
            }
        }
    }
    Ok(())
}

async fn connect(address: &str, compressed: bool) -> Outcome<Wire> {
    let mut tried = 1;
    loop {
        let connected = match compressed {
            true => Wire::connect_compressed(address).await,
            false => Wire::connect(address).await,
        };
        match connected {
            Err(_) if tried < CONNECT_TRIES => {
                sleep(Duration::from_millis(100) * tried).await;
                tried += 1;
            }
            outcome => return outcome,
        }
    }
}

fn note(answers: &Answers, said: AnswerSummary) {
    match said {
        AnswerSummary::Result(_) => count(answers, "results"),
        AnswerSummary::Error(code) => count(answers, &format!("errors {code:#06x}")),
    }
}

fn count(answers: &Answers, what: &str) {
    if let Ok(mut answers) = answers.lock() {
        *answers.entry(what.to_owned()).or_default() += 1;
    }
}

fn resident_mib(id: u32) -> Outcome<u64> {
    let status = std::fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse::<u64>()? >> 10)
}
