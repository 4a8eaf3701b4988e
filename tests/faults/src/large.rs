//! Values up to the limit of frames, in versions 4 and 5 of the protocol: written, read, flushed,
//! read again; what is over a limit is refused with a sentence that says both, and the connection
//! lives on. Meanwhile small reads on other connections are timed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::time::sleep;

use crate::Outcome;
use crate::node::Node;
use crate::report::Report;
use crate::wire::{Answer, Wire};

/// Bytes of a request besides its value, at most.
const AROUND: usize = 1 << 10;
/// Connections that read a small row, so that there is one on each worker.
const PROBES: usize = 4;
const PROBE_EVERY: Duration = Duration::from_millis(2);
/// Errors that tell the client that it is wrong.
const INVALID: i32 = 0x2200;

/// Values up to `limit_mib` MiB; those of `beside` MiB are written and read for so many seconds
/// each beside small reads.
pub async fn run(
    program: &Path,
    place: &Path,
    limit_mib: usize,
    beside: &[usize],
    seconds: u64,
    report: &mut Report,
) -> Outcome {
    let limit = limit_mib << 20;
    let mut node = Node::new(program, &place.join("data"), &place.join("log"))?;
    node.start(&settings(limit_mib)).await?;
    let mut wire = Wire::connect(&node.address()).await?;
    for statement in [
        "CREATE KEYSPACE large WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE large.v (id int PRIMARY KEY, b blob) WITH compression = {'enabled': false}",
        "CREATE TABLE large.small (id int PRIMARY KEY, n int)",
        "INSERT INTO large.small (id, n) VALUES (1, 1)",
    ] {
        wire.expect_rows(statement).await?;
    }
    for version in [4, 5] {
        let mut wire = Wire::connect_as(&node.address(), version).await?;
        for size in [100 << 10, 5 << 20, limit / 2, limit - AROUND] {
            let outcome = write_and_read_back(&node, &mut wire, i32::from(version), size).await;
            report.check(outcome, || format!("version {version}, {size} bytes"));
        }
        report.check(refused(&mut wire, limit).await, || format!("version {version}, over the limit"));
    }
    for size in beside.iter().map(|mib| mib << 20).filter(|size| size + AROUND < limit) {
        report.check(small_beside(&node, size, seconds).await, || format!("small reads beside {size} bytes"));
    }
    println!("at most {} MiB resident", node.resident_most_mib()?);
    report.check(node.no_panic(), || "the log".to_owned());
    report.check(node.stop().await, || "the stop".to_owned());
    node.start(&settings(limit_mib)).await?;
    let mut wire = Wire::connect(&node.address()).await?;
    report.check(is_there(&mut wire, 4, limit - AROUND).await, || "after a restart".to_owned());
    report.check(node.stop().await, || "the last stop".to_owned());
    Ok(())
}

/// Frames and mutations may have so much; a segment of the log takes two.
fn settings(limit_mib: usize) -> Vec<String> {
    let sets = [
        format!("native_transport_max_frame_size={limit_mib}MiB"),
        format!("native_transport_max_message_size={limit_mib}MiB"),
        format!("max_mutation_size={}MiB", limit_mib + 1),
        format!("commitlog_segment_size={}MiB", 2 * (limit_mib + 2)),
    ];
    let memory = ["--memory".to_owned(), format!("{}MiB", (limit_mib * 8).max(256))];
    memory.into_iter().chain(sets.into_iter().flat_map(|set| ["--set".to_owned(), set])).collect()
}

fn value(seed: i32, size: usize) -> Vec<u8> {
    let mut state = seed as u64 | 1 << 40;
    let mut value = Vec::with_capacity(size + 8);
    while value.len() < size {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        value.extend_from_slice(&state.to_be_bytes());
    }
    value.truncate(size);
    value
}

async fn write_and_read_back(node: &Node, wire: &mut Wire, id: i32, size: usize) -> Outcome {
    let value = value(id, size);
    let begun = Instant::now();
    wire.write_blob("INSERT INTO large.v (id, b) VALUES (?, ?)", id, &value).await?.into_result()?;
    let written = begun.elapsed();
    is_there(wire, id, size).await?;
    let read = begun.elapsed() - written;
    node.nodetool(&["flush", "large"]).await?;
    let begun = Instant::now();
    is_there(wire, id, size).await?;
    println!("{size} bytes: written in {written:?}, read in {read:?}, flushed and read in {:?}", begun.elapsed());
    Ok(())
}

async fn is_there(wire: &mut Wire, id: i32, size: usize) -> Outcome {
    let body = wire.query_body(&format!("SELECT b FROM large.v WHERE id = {id}")).await?.into_result()?;
    let value = value(id, size);
    // one row of one column: its value ends the body, and its length stands before it
    let rest = body.strip_suffix(&value[..]).ok_or_else(|| format!("not the value, in {} bytes", body.len()))?;
    if rest.ends_with(&(size as i32).to_be_bytes()) { Ok(()) } else { Err("a value of another length".into()) }
}

async fn refused(wire: &mut Wire, limit: usize) -> Outcome {
    for size in [limit + 1, limit + (1 << 20)] {
        match wire.write_blob("INSERT INTO large.v (id, b) VALUES (?, ?)", -1, &value(-1, size)).await? {
            Answer::Error(INVALID, text) if text.contains(&limit.to_string()) => {}
            Answer::Error(code, text) => return Err(format!("error {code:#06x}: {text}").into()),
            Answer::Result(_) => return Err(format!("{size} bytes were taken").into()),
        }
        // the connection lives on
        wire.query_body("SELECT n FROM large.small WHERE id = 1").await?.into_result()?;
    }
    Ok(())
}

async fn small_beside(node: &Node, size: usize, seconds: u64) -> Outcome {
    for (what, is_write) in [("nothing", None), ("writes", Some(true)), ("reads", Some(false))] {
        let ended = Arc::new(AtomicBool::new(false));
        let probes: Vec<_> = (0..PROBES).map(|_| tokio::spawn(probe(node.address(), ended.clone()))).collect();
        let mut wire = Wire::connect_as(&node.address(), 5).await?;
        let value = value(7, size);
        wire.write_blob("INSERT INTO large.v (id, b) VALUES (?, ?)", 7, &value).await?.into_result()?;
        let (begun, mut done) = (Instant::now(), 0);
        while begun.elapsed() < Duration::from_secs(seconds) {
            match is_write {
                None => sleep(Duration::from_millis(50)).await,
                Some(true) => {
                    let id = 100 + done % 2;
                    wire.write_blob("INSERT INTO large.v (id, b) VALUES (?, ?)", id, &value).await?.into_result()?;
                }
                Some(false) => is_there(&mut wire, 7, size).await?,
            }
            done += 1;
        }
        ended.store(true, Ordering::Relaxed);
        let mut times = Vec::new();
        for probe in probes {
            times.extend(probe.await??);
        }
        times.sort_unstable();
        let at = |share: usize| times.get((times.len() * share / 1000).min(times.len().saturating_sub(1)));
        println!(
            "{size} bytes, {what} {done}: {} small reads, median {:?}, p99 {:?}, longest {:?}",
            times.len(),
            at(500).unwrap_or(&Duration::ZERO),
            at(990).unwrap_or(&Duration::ZERO),
            times.last().unwrap_or(&Duration::ZERO),
        );
    }
    Ok(())
}

async fn probe(address: String, ended: Arc<AtomicBool>) -> Outcome<Vec<Duration>> {
    let mut wire = Wire::connect(&address).await?;
    let mut times = Vec::new();
    while !ended.load(Ordering::Relaxed) {
        let begun = Instant::now();
        wire.query_body("SELECT n FROM large.small WHERE id = 1").await?.into_result()?;
        times.push(begun.elapsed());
        sleep(PROBE_EVERY).await;
    }
    Ok(times)
}
