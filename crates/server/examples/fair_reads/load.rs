//! What goes on beside the point reads, and the tables of both.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use crate::client::Client;
use crate::points::PARTITIONS;

/// Rows of a batch.
const BATCH_ROWS: u32 = 250;
/// Tombstones in one partition.
const TOMBSTONES: u32 = 100_000;
/// More rows than a page can have.
const HUGE_PAGE: i32 = 10_000_000;

pub fn prepare(address: &str, rows: u32) {
    let mut client = Client::connect(address);
    for text in [
        "CREATE KEYSPACE IF NOT EXISTS fair WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE fair.wide (p int, c int, v blob, PRIMARY KEY (p, c))",
        "CREATE TABLE fair.small (p int PRIMARY KEY, v blob)",
        "CREATE TABLE fair.dead (p int, c int, v blob, PRIMARY KEY (p, c))",
    ] {
        client.query(text);
    }
    refill(address);
    let mut fill = |text: &str, rows, values: Values<'_>| fill(&mut client, text, rows, values);
    fill("DELETE FROM fair.dead WHERE p = ? AND c = ?", TOMBSTONES, &|n| vec![int(0), int(n)]);
    fill("INSERT INTO fair.wide (p, c, v) VALUES (?, ?, ?)", rows, &|n| {
        vec![int(0), int(n), n.wrapping_mul(0x9e37_79b9).to_be_bytes().repeat(5)]
    });
}

/// The values of a row by its number.
type Values<'a> = &'a dyn Fn(u32) -> Vec<Vec<u8>>;

fn int(value: u32) -> Vec<u8> {
    value.to_be_bytes().to_vec()
}

fn fill(client: &mut Client, text: &str, rows: u32, values: Values<'_>) {
    let id = client.prepare(text);
    for first in (0..rows).step_by(BATCH_ROWS as usize) {
        let batch: Vec<_> = (first..rows.min(first + BATCH_ROWS)).map(values).collect();
        client.batch(&id, &batch);
    }
}

/// Writes the small partitions.
pub fn refill(address: &str) {
    let text = "INSERT INTO fair.small (p, v) VALUES (?, ?)";
    fill(&mut Client::connect(address), text, PARTITIONS, &|n| vec![int(n), vec![n as u8; 100]]);
}

/// Clients that go on until they are told to stop; they count rows.
pub fn start(address: &str, load: &str, stop: &Arc<AtomicBool>, rows: &Arc<AtomicU64>) -> Vec<JoinHandle<()>> {
    let wide = "SELECT * FROM fair.wide WHERE p = 0";
    let (clients, text, page) = match load {
        "scan" => (1, wide, 5000),
        "scan8" => (8, wide, 5000),
        "big" => (1, wide, HUGE_PAGE),
        "count" => (1, "SELECT COUNT(*) FROM fair.wide WHERE p = 0", 5000),
        "filter" => (1, "SELECT * FROM fair.wide WHERE v = 0x00 ALLOW FILTERING", 5000),
        "dead" => (1, "SELECT * FROM fair.dead WHERE p = 0", 5000),
        "none" | "hot" | "slow" => return Vec::new(),
        other => panic!("{other} is no load"),
    };
    (0..clients)
        .map(|number| {
            let (address, stop, rows) = (address.to_owned(), Arc::clone(stop), Arc::clone(rows));
            thread::spawn(move || scan(Client::connect(&address), number == 0, text, page, &stop, &rows))
        })
        .collect()
}

/// Pages through the answer, again and again.
fn scan(mut client: Client, tells: bool, text: &str, page: i32, stop: &AtomicBool, rows: &AtomicU64) {
    let id = client.prepare(text);
    let (mut state, mut told) = (None::<Vec<u8>>, false);
    while !stop.load(Ordering::Relaxed) {
        match client.page(&id, &[], page, state.as_deref()) {
            Ok(answer) => {
                rows.fetch_add(u64::from(answer.count), Ordering::Relaxed);
                state = answer.paging_state;
            }
            Err(error) => {
                if tells && !std::mem::replace(&mut told, true) {
                    eprintln!("the load is told: {error}");
                }
                state = None;
            }
        }
    }
}
