//! Prints what gossip costs in a ring of so many nodes: `cargo run --release -p gossip --example
//! scale -- 100 300 1000`. The figures of a run are in docs/notes.
//!
//! A thousand nodes take about 3 GB of memory.

// the example measures its own time
#![allow(clippy::disallowed_methods)]

use std::time::Instant;

use ring::Ring;

mod ring;

/// Number of rounds of a quiet ring that are measured.
const QUIET: u64 = 10;

fn main() {
    let counts: Vec<usize> = std::env::args().skip(1).map(|count| count.parse().expect("a number of nodes")).collect();
    println!(
        "nodes | start: rounds, MB a node | join: rounds | schema: rounds | quiet, a node and round: messages, KB, CPU µs"
    );
    for count in counts {
        let mut ring = Ring::new(count, 1);
        let start = ring.rounds_until(1000, Ring::is_whole).expect("the ring is whole");
        let of_start = ring.bytes as f64 / count as f64 / 1e6;
        ring.add();
        let join = ring.rounds_until(1000, |ring| ring.all_see(count)).expect("the newcomer is seen");
        (0..20).for_each(|_| ring.round());
        ring.change_schema(count / 2, "00000000-0000-3000-8000-000000000001");
        let known = |ring: &Ring| ring.all_know_schema(count / 2, "00000000-0000-3000-8000-000000000001");
        let schema = ring.rounds_until(1000, known).expect("the schema is known");
        let (bytes, messages, begun) = (ring.bytes, ring.messages, Instant::now());
        (0..QUIET).for_each(|_| ring.round());
        let rounds = (QUIET * ring.len() as u64) as f64;
        println!(
            "{count} | {start}, {of_start:.2} | {join} | {schema} | {:.1}, {:.1}, {:.0}",
            (ring.messages - messages) as f64 / rounds,
            (ring.bytes - bytes) as f64 / rounds / 1000.0,
            begun.elapsed().as_secs_f64() * 1e6 / rounds,
        );
    }
}
