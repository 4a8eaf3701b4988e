//! What small reads take while others scan: point reads with a number of them in flight, alone and beside a load, against a running
//! server.
//!
//! `cargo run --release -p server --example fair_reads -- ADDRESS prepare [ROWS]` makes the tables: one partition of 10,000,000 rows, one with
//! 100,000 row tombstones, 100,000 small partitions. Then
//! `… -- ADDRESS run PID SECONDS RATE LOAD…` gives a line a load: reads a second, latencies, the server's CPU time, what the load got done.
//! RATE: reads a second, in even steps; 0 is as many as there are, with [`IN_FLIGHT`] of them in flight.
//! LOAD: `none`, `scan` (one client pages through the partition, 5,000 rows a page), `scan8` (eight do), `big` (pages as large as the
//! server makes them), `count` (`COUNT(*)` of the partition), `filter` (a full scan that finds nothing), `dead` (reads through the
//! tombstones), `hot` (the point reads are all of one partition), `slow` (point reads alone, each behind 1,900 rows of a partition). With a
//! number behind it, `hot512`, as many point reads are in flight. `… -- ADDRESS refill` writes the small partitions again, into memtables.

// A client stands outside the house.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

mod client;
mod load;
mod points;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use client::Client;

/// Connections of the point reads.
const CONNECTIONS: usize = 4;
/// Point reads in flight, over all connections.
const IN_FLIGHT: usize = 64;

/// User and system time of a process, seconds.
fn cpu(pid: &str) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: f64 = [11, 12].iter().map(|field| fields[*field].parse::<f64>().unwrap()).sum();
    ticks / 100.0
}

/// One load beside the point reads.
fn run(address: &str, pid: &str, seconds: f64, rate: u64, load: &str) {
    let (stop, rows) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (load, in_flight) = match load.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "scan" => (load, IN_FLIGHT),
        name => (name, load[name.len()..].parse().unwrap_or(IN_FLIGHT)),
    };
    let loads = load::start(address, load, &stop, &rows);
    thread::sleep(Duration::from_millis(300));
    let (used, begun, rows_before) = (cpu(pid), Instant::now(), rows.load(Ordering::Relaxed));
    let until = begun + Duration::from_secs_f64(seconds);
    let of = points::Points::of(load);
    let readers: Vec<_> = (0..CONNECTIONS)
        .map(|number| {
            let client = Client::connect(address);
            thread::spawn(move || {
                points::run(client, of, number, in_flight / CONNECTIONS, rate / CONNECTIONS as u64, until)
            })
        })
        .collect();
    let mut times: Vec<u32> = readers.into_iter().flat_map(|reader| reader.join().unwrap()).collect();
    let (took, used) = (begun.elapsed().as_secs_f64(), cpu(pid) - used);
    let rows = rows.load(Ordering::Relaxed) - rows_before;
    stop.store(true, Ordering::Relaxed);
    times.sort_unstable();
    let at = |quantile: f64| times.get(((times.len() as f64 - 1.0) * quantile) as usize).copied().unwrap_or(0);
    println!(
        "{load:>7}: {:>7.0} reads/s  p50 {:>6} p99 {:>7} p99.9 {:>7} max {:>7} us  server {:>5.2} cores {:>6.1} us/read  load {:>9.0} rows/s",
        times.len() as f64 / took,
        at(0.5),
        at(0.99),
        at(0.999),
        at(1.0),
        used / took,
        used * 1e6 / times.len().max(1) as f64,
        rows as f64 / took,
    );
    for load in loads {
        load.join().unwrap();
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        [address, "prepare"] => load::prepare(address, 10_000_000),
        [address, "prepare", rows] => load::prepare(address, rows.parse().unwrap()),
        [address, "refill"] => load::refill(address),
        [address, "run", pid, seconds, rate, loads @ ..] => {
            let (seconds, rate) = (seconds.parse().unwrap(), rate.parse().unwrap());
            loads.iter().for_each(|load| run(address, pid, seconds, rate, load));
        }
        _ => eprintln!("ADDRESS prepare [ROWS] | ADDRESS run PID SECONDS RATE LOAD…"),
    }
}
