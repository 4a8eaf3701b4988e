//! A ring of a hundred gossip machines holds to its bounds: rounds that news needs, bytes of a
//! quiet round. The same for a thousand, with times: `cargo run --release -p gossip --example
//! scale`.

#![allow(clippy::unwrap_used)]

use ring::Ring;

#[path = "../examples/scale/ring.rs"]
mod ring;

#[test]
fn news_reaches_a_hundred_nodes_in_few_rounds() {
    let mut ring = Ring::new(100, 1);
    let start = ring.rounds_until(60, Ring::is_whole).unwrap();
    ring.add();
    let join = ring.rounds_until(60, |ring| ring.all_see(100)).unwrap();
    let version = "00000000-0000-3000-8000-000000000001";
    ring.change_schema(50, version);
    let schema = ring.rounds_until(60, |ring| ring.all_know_schema(50, version)).unwrap();
    // a rumour that each who knows it tells one other a round needs log2 of the nodes and a few
    // more
    assert!(start <= 15 && join <= 12 && schema <= 12, "start {start}, join {join}, schema {schema}");
    let (bytes, messages) = (ring.bytes, ring.messages);
    (0..5).for_each(|_| ring.round());
    let rounds = 5 * ring.len() as u64;
    let (bytes, messages) = ((ring.bytes - bytes) / rounds, (ring.messages - messages) / rounds);
    // one SYN of all digests, its ACK and ACK2, now and then one to a seed more
    assert!(bytes <= 12_000 && messages <= 6, "{bytes} bytes and {messages} messages a node and round");
}
