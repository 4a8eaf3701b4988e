//! Rings as text: what Cassandra's strategies answer, and plans of drawn rings.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use types::{Consistency, Token};

use crate::InsufficientReplicas;
use crate::endpoint::{Endpoint, EndpointId, FormerTokens, State};
use crate::placement::Placement;
use crate::replication::Replication;
use crate::snapshot::Ring;

/// A node of a case: its number, data center, rack and tokens.
fn endpoint(number: u8, data_center: &str, rack: &str, tokens: Vec<i64>) -> Endpoint {
    let mut tokens: Vec<Token> = tokens.into_iter().map(Token).collect();
    tokens.sort();
    Endpoint {
        address: SocketAddr::from(([127, 0, 0, number], 7000)),
        native: SocketAddr::from(([127, 0, 0, number], 9042)),
        host_id: [number; 16],
        data_center: data_center.to_owned(),
        rack: rack.to_owned(),
        tokens,
        is_up: true,
        state: State::Normal,
    }
}

/// Of `node NUMBER DC RACK TOKEN...`, the word `node` taken off.
fn parse_node(words: &[&str]) -> Endpoint {
    let tokens = words[3..].iter().map(|token| token.parse().expect("a token")).collect();
    endpoint(words[0].parse().expect("a number"), words[1], words[2], tokens)
}

/// Of `STRATEGY NAME=FACTOR...`.
fn parse_replication(words: &[&str]) -> Replication {
    let option = |word: &&str| {
        let (name, factor) = word.split_once('=').expect("NAME=FACTOR");
        (name.to_owned(), factor.to_owned())
    };
    let options: BTreeMap<String, String> = words[1..].iter().map(option).collect();
    Replication::parse(words[0], &options).expect("a replication")
}

fn numbers(ring: &Ring, ids: &[EndpointId]) -> Vec<u8> {
    ids.iter().map(|id| ring.endpoint(*id).host_id[0]).collect()
}

fn placed(ring: &Ring, replication: Replication) -> Placement {
    Placement::new(replication, ring.endpoints(), ring.local_id(), ring.former())
}

/// Reads drawn rings: `ring` begins one, `node ...` is one of its nodes, `replicate ...` a
/// strategy, `TOKEN : ...` a case. Gives each case to `check`; how many there were.
fn for_each_case(
    text: &str,
    parse_node: impl Fn(&[&str]) -> Endpoint,
    check: impl Fn(&Ring, &Placement, Token, &[&str]),
) -> usize {
    let (mut nodes, mut ring, mut placement, mut checked) = (Vec::new(), None, None, 0);
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "ring" => (nodes, ring) = (Vec::new(), None),
            "node" => nodes.push(parse_node(&words[1..])),
            "replicate" => {
                let made = ring.get_or_insert_with(|| Ring::new(nodes.clone(), EndpointId(0)));
                placement = Some(placed(made, parse_replication(&words[1..])));
            }
            token => {
                let (ring, placement) = (ring.as_ref().expect("a ring"), placement.as_ref().expect("a strategy"));
                check(ring, placement, Token(token.parse().expect("a token")), &words[2..]);
                checked += 1;
            }
        }
    }
    checked
}

fn parse_numbers(words: &[&str]) -> Vec<u8> {
    words.iter().map(|number| number.parse().expect("a node")).collect()
}

/// `testdata/placement.txt`: drawn rings, and the replicas that the strategy classes of Cassandra
/// 5.0.8 compute for each of their tokens, for one before the first, one behind the last and one
/// between.
#[test]
fn replicas_are_where_cassandra_has_them() {
    let check = |ring: &Ring, placement: &Placement, token: Token, expected: &[&str]| {
        let found = numbers(ring, placement.natural(token));
        assert_eq!(found, parse_numbers(expected), "{:?} at {token:?}", placement.replication);
    };
    let checked = for_each_case(include_str!("../testdata/placement.txt"), parse_node, check);
    assert!(checked > 3_000, "{checked} cases");
}

/// `testdata/pending.txt`: drawn rings in which nodes join, replace, leave and move, with the
/// replicas of each token and those that are about to be, as `TokenMetadata` of Cassandra 5.0.8
/// computes them. `tests/oracle/cassandra rings 16 40` has drawn it.
#[test]
fn pending_replicas_are_those_of_cassandra() {
    let check = |ring: &Ring, placement: &Placement, token: Token, expected: &[&str]| {
        let (now, pending) = expected.split_at(expected.iter().position(|word| *word == ";").expect("NOW ; PENDING"));
        let mut found = numbers(ring, placement.pending(token));
        found.sort_unstable();
        let case = || format!("{:?} at {token:?} of {:#?}", placement.replication, ring.endpoints());
        assert_eq!(numbers(ring, placement.natural(token)), parse_numbers(now), "{}", case());
        assert_eq!(found, parse_numbers(&pending[1..]), "{}", case());
    };
    let checked = for_each_case(include_str!("../testdata/pending.txt"), parse_changing, check);
    assert!(checked > 1_000, "{checked} cases");
}

/// Of `node NUMBER DC RACK STATE TOKEN...`, the word `node` taken off.
fn parse_changing(words: &[&str]) -> Endpoint {
    let (state, of) = words[3].split_once(':').unwrap_or((words[3], ""));
    let state = match state {
        "BOOT" => State::Joining,
        "BOOT_REPLACE" => State::Replacing(SocketAddr::from(([127, 0, 0, of.parse().expect("a node")], 7000))),
        "LEAVING" => State::Leaving,
        "MOVING" => State::Moving(Token(of.parse().expect("a token"))),
        _ => State::Normal,
    };
    Endpoint { state, ..parse_node(&[&words[..3], &words[4..]].concat()) }
}

/// Two data centers of three nodes each, one token a node, in racks r1, r2, r2.
fn two_centers() -> Vec<Endpoint> {
    let rack = |number: u8| if number % 3 == 1 { "r1" } else { "r2" };
    let center = |number: u8| if number <= 3 { "dc1" } else { "dc2" };
    (1..=6).map(|number| endpoint(number, center(number), rack(number), vec![i64::from(number) * 100])).collect()
}

fn network(factors: &[(&str, u32)]) -> Replication {
    Replication::NetworkTopology {
        factors: factors.iter().map(|(name, factor)| ((*name).to_owned(), *factor)).collect(),
    }
}

/// The plan of a write at token 150: `block_for of live, pending, down`, or what is missing.
fn described(nodes: Vec<Endpoint>, replication: Replication, level: Consistency) -> String {
    let ring = Ring::new(nodes, EndpointId(0));
    match ring.plan_write(&placed(&ring, replication), Token(150), level) {
        Ok(plan) => {
            let [live, pending, down] = [&plan.live, &plan.pending, &plan.down].map(|ids| numbers(&ring, ids));
            format!("{} of {live:?} pending {pending:?} down {down:?}", plan.block_for)
        }
        Err(InsufficientReplicas { required, alive }) => format!("{required} needed, {alive} alive"),
    }
}

#[test]
fn levels_count_replicas_where_they_are() {
    use Consistency::{All, Any, EachQuorum, LocalOne, LocalQuorum, One, Quorum, Three, Two};
    let both = || network(&[("dc1", 3), ("dc2", 3)]);
    let down = |numbers: &[u8]| {
        let mut nodes = two_centers();
        nodes.iter_mut().filter(|node| numbers.contains(&node.host_id[0])).for_each(|node| node.is_up = false);
        nodes
    };
    let all = "[2, 3, 4, 5, 6, 1] pending [] down []";
    let cases = [
        (down(&[]), both(), Quorum, format!("4 of {all}")),
        (down(&[]), both(), LocalQuorum, format!("2 of {all}")),
        (down(&[]), both(), EachQuorum, format!("4 of {all}")),
        (down(&[]), both(), All, format!("6 of {all}")),
        (down(&[2, 3]), both(), LocalQuorum, "2 needed, 1 alive".to_owned()),
        (down(&[2, 3]), both(), LocalOne, "1 of [4, 5, 6, 1] pending [] down [2, 3]".to_owned()),
        (down(&[2, 3]), both(), EachQuorum, "2 needed, 1 alive".to_owned()),
        (down(&[2, 3]), both(), Quorum, "4 of [4, 5, 6, 1] pending [] down [2, 3]".to_owned()),
        (down(&[4, 5, 6]), both(), Quorum, "4 needed, 3 alive".to_owned()),
        (down(&[1, 2, 3, 4, 5, 6]), both(), Any, "1 of [] pending [] down [2, 3, 4, 5, 6, 1]".to_owned()),
        (down(&[]), network(&[("dc2", 2)]), LocalOne, "1 needed, 0 alive".to_owned()),
        (down(&[]), network(&[("dc2", 2)]), One, "1 of [4, 5] pending [] down []".to_owned()),
        (down(&[3]), Replication::Simple { factor: 2 }, Two, "2 needed, 1 alive".to_owned()),
        (down(&[]), Replication::Simple { factor: 2 }, Three, "3 needed, 2 alive".to_owned()),
        (down(&[]), Replication::Simple { factor: 3 }, EachQuorum, "2 of [2, 3, 4] pending [] down []".to_owned()),
        (down(&[]), Replication::Local, All, "1 of [1] pending [] down []".to_owned()),
    ];
    for (nodes, replication, level, expected) in cases {
        assert_eq!(described(nodes, replication.clone(), level), expected, "{replication:?} {level}");
    }
}

/// A joining endpoint gets writes, and a write waits for it besides the others; a leaving endpoint
/// is a replica until it has left, and the endpoint that follows it is pending.
#[test]
fn joining_and_leaving_endpoints_are_pending() {
    let simple = || Replication::Simple { factor: 2 };
    let mut joining = two_centers();
    joining[1].state = State::Joining;
    assert_eq!(described(joining.clone(), simple(), Consistency::Quorum), "3 of [3, 4, 2] pending [2] down []");
    assert_eq!(described(joining.clone(), simple(), Consistency::Any), "1 of [3, 4, 2] pending [2] down []");
    joining[1].is_up = false;
    assert_eq!(described(joining, simple(), Consistency::Two), "3 needed, 2 alive");
    let mut leaving = two_centers();
    leaving[1].state = State::Leaving;
    assert_eq!(described(leaving, simple(), Consistency::One), "2 of [2, 3, 4] pending [4] down []");
}

/// The plan of a conditional statement at token 150.
fn decided(nodes: Vec<Endpoint>, replication: Replication, level: Consistency) -> String {
    let ring = Ring::new(nodes, EndpointId(0));
    match ring.plan_cas(&placed(&ring, replication), Token(150), level) {
        Ok(plan) => format!("{} of {:?}", plan.required, numbers(&ring, &plan.live)),
        Err(InsufficientReplicas { required, alive }) => format!("{required} needed, {alive} alive"),
    }
}

/// A majority of all replicas decides, of the local data center where the level says so; one that
/// is about to be a replica counts, and two at a time are refused.
#[test]
fn a_majority_decides_conditional_statements() {
    use Consistency::{LocalSerial, Serial};
    let both = || network(&[("dc1", 3), ("dc2", 3)]);
    let simple = |factor| Replication::Simple { factor };
    let with = |down: &[u8], states: &[(u8, State)]| {
        let mut nodes = two_centers();
        for node in &mut nodes {
            node.is_up = !down.contains(&node.host_id[0]);
            if let Some((_, state)) = states.iter().find(|(number, _)| *number == node.host_id[0]) {
                node.state = *state;
            }
        }
        nodes
    };
    let cases = [
        (with(&[], &[]), both(), Serial, "4 of [2, 3, 4, 5, 6, 1]"),
        (with(&[], &[]), both(), LocalSerial, "2 of [2, 3, 1]"),
        (with(&[4, 5], &[]), both(), Serial, "4 of [2, 3, 6, 1]"),
        (with(&[4, 5, 6], &[]), both(), Serial, "4 needed, 3 alive"),
        (with(&[4, 5, 6], &[]), both(), LocalSerial, "2 of [2, 3, 1]"),
        (with(&[2, 3], &[]), both(), LocalSerial, "2 needed, 1 alive"),
        (with(&[], &[]), network(&[("dc2", 2)]), LocalSerial, "1 needed, 0 alive"),
        (with(&[], &[]), simple(1), Serial, "1 of [2]"),
        (with(&[], &[(2, State::Joining)]), simple(2), Serial, "2 of [3, 4, 2]"),
        (with(&[2], &[(2, State::Joining)]), simple(2), Serial, "2 of [3, 4]"),
        (with(&[], &[(2, State::Leaving), (3, State::Leaving)]), simple(2), Serial, "5 needed, 4 alive"),
    ];
    for (nodes, replication, level, expected) in cases {
        assert_eq!(decided(nodes, replication.clone(), level), expected, "{replication:?} {level}");
    }
}

#[test]
fn a_range_is_planned_in_parts() {
    let ring = Ring::new(two_centers(), EndpointId(0));
    let placement = placed(&ring, Replication::Simple { factor: 1 });
    let parts = |start: i64, end: i64| -> Vec<(i64, i64, Vec<u8>)> {
        let plans = ring.plan_range(&placement, Token(start), Token(end), Consistency::One);
        plans.map(|(from, to, plan)| (from.0, to.0, numbers(&ring, &plan.expect("all are up").live))).collect()
    };
    assert_eq!(parts(150, 250), [(150, 200, vec![2]), (200, 250, vec![3])]);
    assert_eq!(parts(550, 100), [(550, 600, vec![6]), (600, 100, vec![1])]);
    assert_eq!(parts(610, 50), [(610, 50, vec![1])]);
    assert_eq!(parts(0, 0).len(), 7);
    let everywhere = placed(&ring, Replication::Simple { factor: 6 });
    let live = |placement: &Placement| -> Vec<usize> {
        let plans = ring.plan_range(placement, Token(0), Token(0), Consistency::One);
        plans.map(|(_, _, plan)| plan.expect("all are up").live.len()).collect()
    };
    assert_eq!(live(&everywhere), [6; 7]);
    // where all ranges have the same endpoints there is one
    assert_eq!(live(&placed(&ring, Replication::Local)), [1]);
}

#[test]
fn the_ends_of_ranges_between_two_tokens() {
    let ring = Ring::new(two_centers(), EndpointId(0));
    let placement = placed(&ring, Replication::Simple { factor: 2 });
    let all: Vec<Token> = placement.ranges().map(|(_, end, _)| end).collect();
    for (start, end) in (40..620).step_by(10).flat_map(|start| (40..620).step_by(10).map(move |end| (start, end))) {
        let (start, end) = (Token(start), Token(end));
        let is_inside = |token: &Token| match start < end {
            true => start < *token && *token < end,
            false => start < *token || *token < end,
        };
        let mut expected: Vec<Token> = all.iter().copied().filter(is_inside).collect();
        expected.sort_by_key(|token| (*token <= start, *token));
        assert_eq!(placement.ends_between(start, end).collect::<Vec<_>>(), expected, "{start:?} to {end:?}");
    }
}

#[test]
fn ownership_follows_from_tokens_and_copies() {
    let quarter = i64::MIN / 2;
    let nodes = vec![endpoint(1, "dc1", "r1", vec![i64::MIN, 0]), endpoint(2, "dc1", "r1", vec![quarter])];
    let ring = Ring::new(nodes, EndpointId(0));
    assert_eq!(ring.ownership(), [0.75, 0.25]);
    let placement = placed(&ring, Replication::Simple { factor: 2 });
    assert_eq!(ring.effective_ownership(&placement), [1.0, 1.0]);
    let alone = Ring::new(vec![endpoint(1, "dc1", "r1", vec![7])], EndpointId(0));
    assert_eq!(
        (alone.ownership(), alone.effective_ownership(&placed(&alone, Replication::Local))),
        (vec![1.0], vec![1.0])
    );
}

#[test]
fn a_changed_ring_keeps_its_keyspaces() {
    let ring = Ring::new(two_centers()[..1].to_vec(), EndpointId(0));
    let simple = Replication::Simple { factor: 3 };
    let keyspaces = ["a", "b"].map(|name| (name.to_owned(), Ok(simple.clone())));
    let ring = ring.with_keyspaces(keyspaces);
    let natural = |ring: &Ring| ring.placement("b").map(|placement| placement.natural(Token(150)).len());
    assert_eq!(natural(&ring), Some(1));
    assert_eq!(natural(&ring.with_endpoints(two_centers(), EndpointId(0), FormerTokens::new())), Some(3));
    assert_eq!(natural(&ring.with_keyspaces([("a".to_owned(), Ok(simple))])), None);
    let placed = |ring: &Ring| Arc::clone(ring.placement("b").expect("placed"));
    let mut down = ring.endpoints().to_vec();
    down[0].is_up = false;
    let flapped = ring.with_endpoints(down.clone(), EndpointId(0), FormerTokens::new());
    assert!(Arc::ptr_eq(&placed(&ring), &placed(&flapped)) && !flapped.local().is_up, "it lies where it lay");
    down[0].tokens = vec![Token(99)];
    assert_eq!(
        placed(&ring.with_endpoints(down, EndpointId(0), FormerTokens::new())).ranges().next().map(|range| range.1),
        Some(Token(99))
    );
    let transient = Replication::parse("SimpleStrategy", &[("replication_factor".to_owned(), "3/1".to_owned())].into());
    let odd = ring.with_keyspaces([("a".to_owned(), transient)]);
    assert!(odd.placed("a").is_some_and(|placed| placed.is_err()) && odd.placement("a").is_none());
}

/// Drawn rings in which one node joins or moves, or two. Whoever knows the ring afterwards writes
/// at QUORUM, whoever knows the one before reads at QUORUM, and the other way round: whichever
/// replicas answer, one of them is asked by both. The same for conditional statements.
#[test]
fn majorities_before_and_after_a_change_meet() {
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let (mut lost, mut cases) = (0, 0);
    for _ in 0..300 {
        let (count, tokens_each, changing) = (3 + draw(4), 1 + draw(3), 1 + draw(2));
        let tokens = |draw: &mut dyn FnMut(u64) -> u64| (0..tokens_each).map(|_| draw(1_000_000) as i64).collect();
        let rack = |draw: &mut dyn FnMut(u64) -> u64| ["r1", "r2", "r3"][draw(3) as usize];
        let after: Vec<Endpoint> =
            (0..count + 1).map(|n| endpoint(n as u8 + 1, "dc1", rack(&mut draw), tokens(&mut draw))).collect();
        let mut before = after.clone();
        let mut former = FormerTokens::new();
        for place in 0..changing as usize {
            // the first of them is about to own its tokens, or owned others
            let had = if draw(2) == 0 { Vec::new() } else { tokens(&mut draw) };
            let mut had: Vec<Token> = had.into_iter().map(Token).collect();
            had.sort();
            if had.is_empty() {
                before[place].state = State::Joining;
            } else {
                before[place].tokens = had.clone();
                before[place].state = match tokens_each {
                    1 => State::Moving(after[place].tokens[0]),
                    _ => State::Normal,
                };
            }
            former.insert(EndpointId(place as u32), had);
        }
        let factor = 1 + draw(4) as u32;
        let replication = match draw(2) {
            0 => Replication::Simple { factor },
            _ => network(&[("dc1", factor)]),
        };
        let old = Ring::new(before, EndpointId(count as u32));
        let new =
            Ring::new(after.clone(), EndpointId(count as u32)).with_endpoints(after, EndpointId(count as u32), former);
        let (was, is) = (placed(&old, replication.clone()), placed(&new, replication.clone()));
        for token in (0..20).map(|_| Token(draw(1_000_000) as i64)) {
            let write = new.plan_write(&is, token, Consistency::Quorum);
            let read = old.plan_read(&was, token, Consistency::Quorum);
            let (Ok(write), Ok(read)) = (write, read) else { continue };
            cases += 1;
            lost += usize::from(!is.former(token).is_empty());
            let shared = |of: &[EndpointId]| of.iter().filter(|id| was.natural(token).contains(id)).count();
            let others = write.live.len() - shared(&write.live);
            // the fewest of the former replicas that can have answered a write
            let fewest = (write.block_for as usize).saturating_sub(others);
            assert!(
                fewest + read.block_for as usize > was.natural(token).len(),
                "{replication:?} at {token:?}: {:?} of {:?}, then {:?} of {:?}",
                write.block_for,
                numbers(&new, &write.live),
                read.block_for,
                numbers(&old, was.natural(token))
            );
            if let (Ok(one), Ok(other)) =
                (new.plan_cas(&is, token, Consistency::Serial), old.plan_cas(&was, token, Consistency::Serial))
            {
                let all: std::collections::BTreeSet<_> = one.live.iter().chain(&other.live).collect();
                assert!(
                    (one.required + other.required) as usize > all.len(),
                    "{replication:?} at {token:?}: {} of {:?} and {} of {:?}",
                    one.required,
                    numbers(&new, &one.live),
                    other.required,
                    numbers(&old, &other.live)
                );
            }
        }
    }
    assert!(cases > 2_000 && lost > 500, "{cases} cases, in {lost} of them somebody has lost the token");
}

#[test]
fn who_has_lost_a_range_is_written_to_for_a_while() {
    let ring = |former: FormerTokens| {
        let ring = Ring::new(two_centers(), EndpointId(0));
        ring.with_endpoints(two_centers(), EndpointId(0), former)
    };
    let two = Replication::Simple { factor: 2 };
    let plan = |ring: &Ring, level| {
        let plan = ring.plan_write(&placed(ring, two.clone()), Token(150), level).expect("enough are up");
        (plan.block_for, numbers(ring, &plan.live), numbers(ring, &plan.pending), numbers(ring, &plan.down))
    };
    // node 3 had no tokens until a moment ago: 4 held what 3 holds now
    let mut joined = ring(FormerTokens::from([(EndpointId(2), Vec::new())]));
    assert_eq!(plan(&joined, Consistency::Quorum), (3, vec![2, 3, 4], vec![4], vec![]));
    assert_eq!(plan(&joined, Consistency::LocalQuorum), (2, vec![2, 3, 4], vec![4], vec![]));
    assert_eq!(plan(&joined, Consistency::One), (2, vec![2, 3, 4], vec![4], vec![]));
    let reads = joined.plan_read(&placed(&joined, two.clone()), Token(150), Consistency::Quorum).expect("both are up");
    assert_eq!(numbers(&joined, &reads.live), [2, 3]);
    let other = placed(&joined, two.clone());
    assert_eq!((other.former(Token(350)), other.former(Token(250)).len()), (&[][..], 1));
    // one that is down answers no reads
    let mut down = two_centers();
    down[3].is_up = false;
    joined = joined.with_endpoints(down, EndpointId(0), joined.former().clone());
    assert_eq!(plan(&joined, Consistency::Quorum), (2, vec![2, 3], vec![], vec![]));
    assert_eq!(plan(&ring(FormerTokens::new()), Consistency::Quorum), (2, vec![2, 3], vec![], vec![]));
}
