//! The client of the side-by-side benchmark: one kind of request for some seconds against one
//! server, and what that cost. `bench/compare` runs it against both servers in turn. A line of JSON
//! comes out: requests per second, latencies, and the server's CPU time per request and resident
//! memory, read from `/proc/PID` before and after.

#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // a client program beside the server

mod work;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bench_lean::process::Usage;
use hdrhistogram::Histogram;
use scylla::client::PoolSize;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::Consistency;

use crate::work::Work;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const USAGE: &str = "usage: bench-client HOST:PORT PID KIND SECONDS UNDER_WAY
KIND: prepare (tables and data), write, read, slice, newest, insert and select (not prepared)";
/// Connections of the client to the server.
const CONNECTIONS: NonZeroUsize = NonZeroUsize::new(4).expect("four is not zero");

async fn connect(address: &str) -> Result<Session> {
    let profile = scylla::client::execution_profile::ExecutionProfile::builder()
        .consistency(Consistency::LocalOne)
        .request_timeout(Some(Duration::from_secs(60)))
        .build();
    let session = SessionBuilder::new()
        .known_node(address)
        .pool_size(PoolSize::PerHost(CONNECTIONS))
        .default_execution_profile_handle(profile.into_handle())
        .build()
        .await?;
    Ok(session)
}

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, pid, kind, seconds, under_way] = arguments.as_slice() else {
        return Err(USAGE.into());
    };
    let (pid, seconds, under_way): (u32, f64, usize) = (pid.parse()?, seconds.parse()?, under_way.parse()?);
    let session = connect(address).await?;
    if kind == "prepare" {
        return work::prepare(&session).await;
    }
    let work = Arc::new(Work::new(session, kind).await?);
    let before = Usage::of(pid)?;
    let begun = Instant::now();
    let until = begun + Duration::from_secs_f64(seconds);
    let tasks: Vec<_> = (0..under_way as u64).map(|task| tokio::spawn(run(work.clone(), task, until))).collect();
    let mut times = histogram();
    for task in tasks {
        times.add(task.await??)?;
    }
    let (took, used) = (begun.elapsed().as_secs_f64(), Usage::of(pid)?.since(&before));
    let requests = times.len() as f64;
    let line = serde_json::json!({
        "kind": kind, "under_way": under_way, "requests": times.len(), "per_second": requests / took,
        "p50_us": times.value_at_quantile(0.5), "p99_us": times.value_at_quantile(0.99), "max_us": times.max(),
        "server_cpu_us_per_request": used.cpu_us / requests, "server_rss_mib": used.rss_mib,
    });
    println!("{line}");
    Ok(())
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 3).expect("bounds and digits that the histogram takes")
}

/// One request after another until the time is over.
async fn run(work: Arc<Work>, task: u64, until: Instant) -> Result<Histogram<u64>> {
    let mut times = histogram();
    let mut number = 0;
    while Instant::now() < until {
        let begun = Instant::now();
        work.request(task, number).await?;
        times.saturating_record(begun.elapsed().as_micros() as u64);
        number += 1;
    }
    Ok(times)
}
