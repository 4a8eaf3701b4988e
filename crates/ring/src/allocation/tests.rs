//! How evenly rings are filled that grow node by node.

use std::net::SocketAddr;

use super::*;
use crate::{EndpointId, Replication, Ring};

fn member(number: u16, data_center: &str, rack: &str, tokens: Vec<Token>) -> Endpoint {
    let [high, low] = number.to_be_bytes();
    let address = SocketAddr::from(([10, 0, high, low], 7000));
    let host_id = std::array::from_fn(|at| if at == 0 { high } else { low });
    Endpoint {
        address,
        native: address,
        host_id,
        data_center: data_center.to_owned(),
        rack: rack.to_owned(),
        tokens,
        is_up: true,
        state: State::Normal,
    }
}

/// Numbers that look random.
fn drawn(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ (state >> 29)
    }
}

/// A data center of so many nodes and racks that were added one after the other.
fn grown(nodes: u16, racks: u16, copies: usize, tokens: usize) -> Vec<Endpoint> {
    let mut members: Vec<Endpoint> = Vec::new();
    let mut random = drawn(7);
    for number in 0..nodes {
        let rack = format!("rack{}", number % racks);
        let request = AllocationRequest { data_center: "dc", rack: &rack, copies, tokens };
        let chosen = allocate(&members, request, &mut random).expect("allocated");
        members.push(member(number, "dc", &rack, chosen));
    }
    members
}

/// The greatest share of a node over the mean, and the least, in per cent.
fn balance(members: Vec<Endpoint>, copies: usize) -> (u32, u32) {
    let nodes = members.len() as f64;
    let factors = [("dc".to_owned(), copies as u32)].into();
    let keyspace = ("ks".to_owned(), Ok(Replication::NetworkTopology { factors }));
    let ring = Ring::new(members, EndpointId(0)).with_keyspaces([keyspace]);
    let shares = ring.effective_ownership(ring.placement("ks").expect("placed"));
    let percent = |share: f64| (share * nodes / copies as f64 * 100.0).round() as u32;
    let most = shares.iter().copied().fold(0.0, f64::max);
    (percent(most), percent(shares.iter().copied().fold(f64::MAX, f64::min)))
}

#[test]
fn nodes_own_about_as_much_as_others() {
    for (nodes, racks, copies, tokens, most, least) in [
        (12, 1, 1, 16, 110, 90),
        (12, 1, 3, 16, 115, 85),
        (30, 1, 3, 16, 115, 85),
        (24, 3, 3, 8, 115, 85),
        (30, 5, 3, 16, 120, 80),
    ] {
        let found = balance(grown(nodes, racks, copies, tokens), copies);
        let told = format!("{nodes} nodes, {racks} racks, {copies} copies: {found:?} per cent of the mean");
        assert!(found.0 <= most && found.1 >= least, "{told}");
    }
}

/// Tokens drawn at random spread nodes far more.
#[test]
fn random_tokens_are_worse() {
    let mut draw = drawn(7);
    let members = (0..30).map(|number| {
        let mut tokens: Vec<Token> = (0..16).map(|_| Token(draw() as i64)).collect();
        tokens.sort_unstable();
        member(number, "dc", "rack", tokens)
    });
    assert!(balance(members.collect(), 3).0 > 125);
}

#[test]
fn racks_that_are_too_few_are_refused() {
    let members =
        [("rack1", 0), ("rack2", 5)].map(|(rack, token)| member(token, "dc", rack, vec![Token(token.into())]));
    let request = AllocationRequest { data_center: "dc", rack: "rack1", copies: 3, tokens: 4 };
    let error =
        "Token allocation failed: the number of racks 2 in datacenter dc is lower than its replication factor 3.";
    assert_eq!(allocate(&members, request, &mut drawn(1)), Err(error.to_owned()));
}

/// Nodes that see the same ring choose different tokens, and a token that another data center has
/// is moved on.
#[test]
fn a_token_of_another_data_center_is_not_taken_twice() {
    let request = AllocationRequest { data_center: "b", rack: "rack", copies: 3, tokens: 4 };
    let alone = allocate(&[], request, &mut || 41).expect("allocated");
    let elsewhere = [member(1, "a", "rack", alone.clone())];
    let moved: Vec<Token> = alone.iter().map(|token| Token(token.0 + 1)).collect();
    assert_eq!(allocate(&elsewhere, request, &mut || 41), Ok(moved));
    let members = grown(6, 1, 3, 4);
    let request = AllocationRequest { data_center: "dc", rack: "rack0", copies: 3, tokens: 4 };
    let [one, other] = [1, 2].map(|seed| allocate(&members, request, &mut drawn(seed)).expect("allocated"));
    assert!(one.iter().all(|token| !other.contains(token)), "{one:?} {other:?}");
}
