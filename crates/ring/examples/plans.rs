//! The costs of a large ring: time and memory of a snapshot, the time of a plan, and the ranges
//! that flow when a node comes or goes. `docs/scale.md` has the figures.
//!
//!     cargo run --release -p ring --example plans -- 1000 16
//!
//! The first argument is the number of nodes, the second their tokens. Nodes stand in two data
//! centers with three racks each, and a keyspace has three copies in both.

// the example measures its own time
#![allow(clippy::disallowed_methods)]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ring::allocation::{AllocationRequest, allocate};
use ring::relocation::{Flows, SourceChoice};
use ring::{Endpoint, EndpointId, FormerTokens, Replication, Ring, State};
use types::{Consistency, Token};

/// Data centers, the racks of each, and the copies in each.
const CENTERS: usize = 2;
const RACKS: usize = 3;
const COPIES: u32 = 3;

/// Number of plans that are made to measure the time of one.
const PLANS: u64 = 200_000;

/// Number of runs that are made to measure the time of one; the shortest counts.
const RUNS: usize = 5;

/// A generator of tokens: splitmix64.
struct Draw(u64);

impl Draw {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

fn endpoint(number: usize, mut tokens: Vec<Token>) -> Endpoint {
    tokens.sort_unstable();
    let [_, second, third, fourth] = (number as u32 + 1).to_be_bytes();
    let mut host_id = [0; 16];
    host_id[..8].copy_from_slice(&(number as u64).to_be_bytes());
    Endpoint {
        address: SocketAddr::from(([10, second, third, fourth], 7000)),
        native: SocketAddr::from(([10, second, third, fourth], 9042)),
        host_id,
        data_center: format!("dc{}", number % CENTERS + 1),
        rack: format!("rack{}", number / CENTERS % RACKS + 1),
        tokens,
        is_up: true,
        state: State::Normal,
    }
}

fn replication() -> Replication {
    let factors = (1..=CENTERS).map(|number| (format!("dc{number}"), COPIES)).collect();
    Replication::NetworkTopology { factors }
}

/// The result of `act`, and the shortest time that it took in several runs.
fn timed<T>(mut act: impl FnMut() -> T) -> (T, Duration) {
    let mut best: Option<(T, Duration)> = None;
    for _ in 0..RUNS {
        let begun = Instant::now();
        let given = act();
        let took = begun.elapsed();
        if best.as_ref().is_none_or(|(_, time)| took < *time) {
            best = Some((given, took));
        }
    }
    best.expect("one run at least")
}

fn print(what: &str, time: Duration, more: &str) {
    println!("{what:<58} {:>12.1} µs  {more}", time.as_secs_f64() * 1e6);
}

fn described(flows: &Flows) -> String {
    let ranges: usize = flows.values().map(Vec::len).sum();
    let most = flows.values().map(Vec::len).max().unwrap_or(0);
    format!("{ranges} ranges with {} nodes, {most} with one of them", flows.len())
}

fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let (nodes, tokens) = (numbers.first().copied().unwrap_or(1000), numbers.get(1).copied().unwrap_or(16));
    let mut draw = Draw(1);
    let endpoints: Vec<Endpoint> =
        (0..nodes).map(|number| endpoint(number, (0..tokens).map(|_| Token(draw.next() as i64)).collect())).collect();
    println!("{nodes} nodes with {tokens} tokens, {CENTERS} data centers with {RACKS} racks, {COPIES} copies in each");

    let (bare, took) = timed(|| Ring::new(endpoints.clone(), EndpointId(0)));
    print("a ring without keyspaces", took, "");
    let (ring, took) = timed(|| bare.with_keyspaces([("ks".to_owned(), Ok(replication()))]));
    let ranges = ring.placement("ks").expect("placed").ranges().count();
    // a token of 8 bytes, and six replicas of 4 bytes with the length of their list
    let bytes = ranges * (8 + size_of::<ring::Replicas>());
    print("a replication more", took, &format!("{ranges} ranges, {} KiB", bytes / 1024));
    let more = (0..100).map(|number| (format!("ks{number}"), Ok(replication())));
    let (_, took) = timed(|| ring.with_keyspaces(more.clone()));
    print("a hundred keyspaces of a replication that is there", took, "");

    let mut down = endpoints.clone();
    down[nodes / 2].is_up = false;
    let (_, took) = timed(|| ring.with_endpoints(down.clone(), EndpointId(0), FormerTokens::new()));
    print("a node goes down or comes up", took, "");
    let mut draw = Draw(2);
    let newcomer = endpoint(nodes, (0..tokens).map(|_| Token(draw.next() as i64)).collect());
    let mut grown = endpoints.clone();
    grown.push(Endpoint { state: State::Joining, ..newcomer.clone() });
    let (joining, took) = timed(|| ring.with_endpoints(grown.clone(), EndpointId(0), FormerTokens::new()));
    print("a node begins to join (pending ranges)", took, "");
    let mut ten = grown.clone();
    for number in 1..10 {
        let tokens = (0..tokens).map(|_| Token(draw.next() as i64)).collect();
        ten.push(Endpoint { state: State::Joining, ..endpoint(nodes + number, tokens) });
    }
    let (_, took) = timed(|| ring.with_endpoints(ten.clone(), EndpointId(0), FormerTokens::new()));
    print("ten nodes join at once", took, "");

    let placement = ring.placement("ks").expect("placed");
    for level in [Consistency::LocalQuorum, Consistency::EachQuorum] {
        let mut draw = Draw(3);
        let begun = Instant::now();
        let live: usize = (0..PLANS)
            .map(|_| ring.plan_write(placement, Token(draw.next() as i64), level).expect("all are up").live.len())
            .sum();
        let time = begun.elapsed() / PLANS as u32;
        println!("{:<58} {:>12} ns  {live} replicas", format!("a plan at {level:?}"), time.as_nanos());
    }

    let who = EndpointId(nodes as u32);
    let placed = joining.placement("ks").expect("placed");
    let (fetches, took) = timed(|| joining.joining_fetches(placed, who, &newcomer.tokens, SourceChoice::STRICT));
    print("what a newcomer fetches", took, &described(&fetches.expect("all are up").from));
    let (fetches, took) = timed(|| joining.joining_fetches(placed, who, &newcomer.tokens, SourceChoice::NEAREST));
    print("the same from the nearest", took, &described(&fetches.expect("all are up").from));
    let (flows, took) = timed(|| ring.leaving_transfers(placement, EndpointId(1)));
    print("what a node hands on before it leaves", took, &described(&flows));
    let (fetches, took) = timed(|| ring.removal_fetches(placement, EndpointId(1), EndpointId(0)));
    print("what a node fetches when another is removed", took, &described(&fetches.expect("all are up").from));
    let request = AllocationRequest { data_center: "dc1", rack: "rack1", copies: COPIES as usize, tokens };
    let mut draw = Draw(4);
    let (_, took) = timed(|| allocate(&endpoints, request, &mut || draw.next()));
    print("the tokens of a newcomer are chosen", took, "");

    let (held, took) = timed(|| placement.ranges().filter(|(.., holders)| holders.contains(&EndpointId(0))).count());
    let mut sets: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
    for (.., holders) in placement.ranges().filter(|(.., holders)| holders.contains(&EndpointId(0))) {
        let mut holders: Vec<u32> = holders.iter().map(|id| id.0).collect();
        holders.sort_unstable();
        *sets.entry(holders).or_default() += 1;
    }
    print("the ranges that a node repairs", took, &format!("{held} ranges, {} sets of replicas", sets.len()));
    let (shares, took) = timed(|| ring.effective_ownership(placement));
    let (least, most) =
        shares.iter().fold((f64::MAX, 0.0_f64), |(least, most), share| (least.min(*share), most.max(*share)));
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    print("ownership of all", took, &format!("least {:.2}, most {:.2} of the mean", least / mean, most / mean));
}
