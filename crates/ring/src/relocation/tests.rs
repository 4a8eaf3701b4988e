//! Drawn rings: whoever gains a range gets it once, from an endpoint that had it; nothing else
//! flows.

use std::net::SocketAddr;

use types::Token;

use super::*;

/// A small generator (xorshift): the rings are the same in each run.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    fn token(&mut self) -> Token {
        Token(i64::try_from(self.below(100_000)).expect("small") - 50_000)
    }
}

/// Three to nine endpoints in one or two data centers of two racks, one to three tokens each.
fn drawn(draw: &mut Draw) -> (Ring, Vec<Replication>) {
    let (count, centers, each) = (3 + draw.below(7), 1 + draw.below(2), 1 + draw.below(3));
    let endpoint = |number: u64, draw: &mut Draw| {
        let address = SocketAddr::from(([127, 0, 0, u8::try_from(number).expect("few")], 7000));
        let mut tokens: Vec<Token> = (0..each).map(|_| draw.token()).collect();
        tokens.sort();
        Endpoint {
            address,
            native: address,
            host_id: [u8::try_from(number).expect("few"); 16],
            data_center: format!("dc{}", number % centers),
            rack: format!("r{}", (number / centers) % 2),
            tokens,
            is_up: true,
            state: State::Normal,
        }
    };
    let endpoints = (0..count).map(|number| endpoint(number, draw)).collect();
    let factors =
        (0..centers).map(|number| (format!("dc{number}"), 1 + u32::try_from(draw.below(3)).expect("few"))).collect();
    let replications = vec![
        Replication::Simple { factor: 1 + u32::try_from(draw.below(4)).expect("few") },
        Replication::NetworkTopology { factors },
    ];
    (Ring::new(endpoints, EndpointId(0)), replications)
}

fn placed(ring: &Ring, replication: &Replication) -> Placement {
    Placement::new(replication.clone(), ring.endpoints(), ring.local_id(), ring.former())
}

/// The ring with one endpoint changed.
fn with(ring: &Ring, id: EndpointId, change: impl FnOnce(&mut Endpoint)) -> Ring {
    let mut endpoints = ring.endpoints().to_vec();
    change(&mut endpoints[id.index()]);
    Ring::new(endpoints, ring.local_id())
}

/// Tokens in every part of either ring.
fn samples(before: &Ring, after: &Ring) -> Vec<Token> {
    let tokens = before.tokens().chain(after.tokens()).map(|(token, _)| token.0);
    tokens.flat_map(|token| [Token(token), Token(token + 1)]).collect()
}

/// The endpoints that give a token by these flows.
fn givers(flows: &Flows, token: Token) -> Vec<EndpointId> {
    let has = |ranges: &Ranges| ranges.iter().filter(|range| contains(**range, token)).count();
    flows.iter().flat_map(|(id, ranges)| std::iter::repeat_n(*id, has(ranges))).collect()
}

/// Asserts that `who` fetches what it has in `after` and not in `before`, once and from a replica.
fn check_gain(before: &Ring, after: &Ring, replication: &Replication, who: EndpointId, fetches: &Fetches) {
    assert!(fetches.missing.is_empty(), "everybody is up");
    let (old, new) = (placed(before, replication), placed(after, replication));
    for token in samples(before, after) {
        let gains = new.natural(token).contains(&who) && !old.natural(token).contains(&who);
        let givers = givers(&fetches.from, token);
        assert_eq!(givers.len(), usize::from(gains), "{token:?} of {replication:?}");
        assert!(givers.iter().all(|giver| *giver != who && old.natural(token).contains(giver)), "{token:?}");
    }
}

#[test]
fn a_node_that_joins_fetches_what_it_gains() {
    let mut draw = Draw(7);
    let mut strict = 0;
    for _ in 0..200 {
        let (all, replications) = drawn(&mut draw);
        let who = EndpointId(u32::try_from(all.endpoints().len()).expect("few") - 1);
        let joining = with(&all, who, |endpoint| endpoint.state = State::Joining);
        let tokens = all.endpoint(who).tokens.clone();
        for replication in &replications {
            let placement = placed(&joining, replication);
            let nearest = joining.joining_fetches(&placement, who, &tokens, SourceChoice::NEAREST).expect("not strict");
            check_gain(&joining, &all, replication, who, &nearest);
            match joining.joining_fetches(&placement, who, &tokens, SourceChoice::STRICT) {
                Ok(fetches) => {
                    check_gain(&joining, &all, replication, who, &fetches);
                    let (old, new) = (placed(&joining, replication), placed(&all, replication));
                    for token in samples(&joining, &all) {
                        let losing = old.natural(token).iter().find(|id| !new.natural(token).contains(id));
                        if let (Some(losing), [giver]) = (losing, givers(&fetches.from, token).as_slice()) {
                            assert_eq!(losing, giver, "the endpoint that loses {token:?} gives it");
                            strict += 1;
                        }
                    }
                }
                Err(error) => assert!(error.is_ambiguous, "everybody is up: {error}"),
            }
        }
    }
    assert!(strict > 1_000, "{strict} ranges have an endpoint that loses them");
}

#[test]
fn a_node_that_leaves_hands_on_what_others_gain() {
    let mut draw = Draw(11);
    for _ in 0..200 {
        let (ring, replications) = drawn(&mut draw);
        let who = EndpointId(u32::try_from(draw.below(ring.endpoints().len() as u64)).expect("few"));
        let gone = with(&ring, who, |endpoint| endpoint.state = State::Joining);
        for replication in &replications {
            let (old, new) = (placed(&ring, replication), placed(&gone, replication));
            let flows = ring.leaving_transfers(&old, who);
            for token in samples(&ring, &gone) {
                let gaining = new.natural(token).iter().filter(|id| !old.natural(token).contains(id));
                let expected: Vec<_> = gaining.filter(|_| old.natural(token).contains(&who)).copied().collect();
                let mut expected = expected;
                expected.sort_unstable();
                assert_eq!(givers(&flows, token), expected, "{token:?} of {replication:?}");
            }
            for other in (0u32..).map(EndpointId).take(ring.endpoints().len()).filter(|id| *id != who) {
                let down = with(&ring, who, |endpoint| endpoint.is_up = false);
                let fetches = down.removal_fetches(&old, who, other).expect("not strict");
                for token in samples(&ring, &gone) {
                    let gains = givers(&flows, token).contains(&other);
                    let givers = givers(&fetches.from, token);
                    let is_missing = fetches.missing.iter().any(|range| contains(*range, token));
                    assert_eq!(givers.len() + usize::from(is_missing), usize::from(gains), "{token:?}");
                    assert!(!is_missing || old.natural(token) == [who], "another replica is up: {token:?}");
                    assert!(givers.iter().all(|giver| *giver != who && old.natural(token).contains(giver)));
                }
            }
        }
    }
}

/// Two dead endpoints are removed, the second while the removal of the first goes on. What another
/// one gains by both departures alone it fetches once it hears of the second.
#[test]
fn what_two_removals_give_together_is_fetched() {
    let mut draw = Draw(19);
    let mut by_both = 0;
    for _ in 0..200 {
        let (ring, replications) = drawn(&mut draw);
        let [first, second] = [0, 1].map(EndpointId);
        let dead = |ring: &Ring, id| with(ring, id, |endpoint| endpoint.is_up = false);
        let put = |ring: &Ring, id, state| with(ring, id, |endpoint| endpoint.state = state);
        let ring = dead(&dead(&ring, first), second);
        let one_told = put(&ring, first, State::Leaving);
        let both_told = put(&one_told, second, State::Leaving);
        let gone = put(&put(&ring, first, State::Joining), second, State::Joining);
        for replication in &replications {
            let (old, new) = (placed(&ring, replication), placed(&gone, replication));
            for who in (2u32..).map(EndpointId).take(ring.endpoints().len() - 2) {
                let earlier = one_told.removal_fetches(&old, first, who).expect("not strict");
                let later = both_told.removal_fetches(&old, second, who).expect("not strict");
                let has = |fetches: &Fetches, token| {
                    let mut ranges = fetches.from.values().chain([&fetches.missing]).flatten();
                    ranges.any(|range| contains(*range, token))
                };
                for token in samples(&ring, &gone) {
                    if !new.natural(token).contains(&who) || old.natural(token).contains(&who) {
                        continue;
                    }
                    assert!(has(&earlier, token) || has(&later, token), "{token:?} of {replication:?}");
                    by_both += usize::from(!has(&earlier, token) && !old.natural(token).contains(&second));
                }
            }
        }
    }
    assert!(by_both > 0, "some tokens are gained by both departures alone");
}

#[test]
fn a_node_that_moves_fetches_what_it_gains_and_hands_on_what_it_loses() {
    let mut draw = Draw(13);
    for _ in 0..200 {
        let (ring, replications) = drawn(&mut draw);
        let who = EndpointId(0);
        let to = draw.token();
        if ring.tokens().any(|(token, _)| token == to) {
            continue;
        }
        let moved = with(&ring, who, |endpoint| endpoint.tokens = vec![to]);
        for replication in &replications {
            let (old, new) = (placed(&ring, replication), placed(&moved, replication));
            let Ok((fetches, transfers)) = ring.moving_flows(&old, who, to, SourceChoice::NEAREST) else {
                panic!("not strict: {replication:?}")
            };
            check_gain(&ring, &moved, replication, who, &fetches);
            for token in samples(&ring, &moved) {
                let loses = old.natural(token).contains(&who) && !new.natural(token).contains(&who);
                let mut gaining: Vec<_> =
                    new.natural(token).iter().filter(|id| loses && !old.natural(token).contains(id)).copied().collect();
                gaining.sort_unstable();
                assert_eq!(givers(&transfers, token), gaining, "{token:?} of {replication:?}");
            }
        }
    }
}

/// Three endpoints, two copies: the range that the fourth gains comes from the one that loses it,
/// and from nobody while that one is down.
#[test]
fn a_strict_source_that_is_down_is_refused() {
    let mut draw = Draw(17);
    let (ring, _) = drawn(&mut draw);
    let endpoint = |number: u32, state| Endpoint {
        tokens: vec![Token(i64::from(number) * 100)],
        data_center: "dc".to_owned(),
        rack: "r".to_owned(),
        state,
        ..ring.endpoint(EndpointId(number % 3)).clone()
    };
    let mut endpoints: Vec<Endpoint> = (1..=3).map(|number| endpoint(number, State::Normal)).collect();
    endpoints.push(Endpoint { tokens: vec![Token(150)], ..endpoint(4, State::Joining) });
    let ring = Ring::new(endpoints, EndpointId(3));
    let replication = Replication::Simple { factor: 2 };
    let fetches =
        |ring: &Ring, choice| ring.joining_fetches(&placed(ring, &replication), EndpointId(3), &[Token(150)], choice);
    // (300,100] goes from 1,2 to 1,4, and (100,150] from 2,3 to 4,2
    let strict = fetches(&ring, SourceChoice::STRICT).expect("everybody is up");
    let expected = [(EndpointId(1), vec![(Token(300), Token(100))]), (EndpointId(2), vec![(Token(100), Token(150))])];
    assert_eq!(strict.from, expected.into());
    let down = with(&ring, EndpointId(1), |endpoint| endpoint.is_up = false);
    let refused = fetches(&down, SourceChoice::STRICT).expect_err("the second is down");
    assert_eq!((refused.needed.as_slice(), refused.is_ambiguous), ([EndpointId(1)].as_slice(), false));
    let nearest = fetches(&down, SourceChoice::NEAREST).expect("not strict");
    let of = |id: u32| nearest.from.get(&EndpointId(id)).cloned().unwrap_or_default();
    assert_eq!((of(0), of(2)), (vec![(Token(300), Token(100))], vec![(Token(100), Token(150))]));
}

#[test]
fn a_rebuild_fetches_what_a_node_has_from_the_others() {
    let mut draw = Draw(19);
    for _ in 0..100 {
        let (ring, replications) = drawn(&mut draw);
        let who = EndpointId(0);
        for replication in &replications {
            let placement = placed(&ring, replication);
            let (from, to) = (draw.token(), draw.token());
            if from == to {
                continue;
            }
            for within in [Ranges::new(), vec![(from, to)]] {
                let fetches =
                    ring.rebuild_fetches(&placement, who, &within, SourceChoice::NEAREST).expect("not strict");
                for token in samples(&ring, &ring).into_iter().chain([from, to, Token(from.0 + 1), Token(to.0 + 1)]) {
                    let natural = placement.natural(token);
                    let is_wanted = within.is_empty() || contains((from, to), token);
                    let givers = givers(&fetches.from, token);
                    let is_missing = fetches.missing.iter().any(|range| contains(*range, token));
                    let expected = usize::from(is_wanted && natural.contains(&who));
                    assert_eq!(givers.len() + usize::from(is_missing), expected, "{token:?} of {replication:?}");
                    assert!(givers.iter().all(|giver| *giver != who && natural.contains(giver)));
                    assert!(!is_missing || natural == [who], "another replica is up: {token:?}");
                }
            }
        }
    }
}

#[test]
fn a_range_encloses_another_if_it_has_all_of_its_tokens() {
    // the tokens between are those of every other place on the ring
    let tokens: Vec<Token> = [i64::MIN, i64::MAX].into_iter().chain(-1..6).map(Token).collect();
    let bounds: Vec<Token> = [i64::MIN, i64::MAX].into_iter().chain(0..5).map(Token).collect();
    let pairs = || bounds.iter().flat_map(|start| bounds.iter().map(|end| (*start, *end)));
    for range in pairs() {
        for other in pairs() {
            let expected = tokens.iter().all(|token| contains(range, *token) || !contains(other, *token));
            assert_eq!(encloses(range, other), expected, "{range:?} and {other:?}");
        }
    }
}

/// A range without others has the tokens that only it has, whichever of them go around the end.
#[test]
fn ranges_without_others() {
    let mut draw = Draw(23);
    let edges = [Token::MIN, Token(i64::MIN + 1), Token(i64::MAX)];
    for _ in 0..500 {
        let mut token = || match draw.below(4) {
            0 => edges[usize::try_from(draw.below(3)).expect("few")],
            _ => Token(i64::try_from(draw.below(12)).expect("few")),
        };
        let (ranges, others) = (vec![(token(), token()), (token(), token())], vec![(token(), token())]);
        let rest = subtract(&ranges, &others);
        for token in edges.into_iter().chain((-1..13).map(Token)) {
            let is_in = |ranges: &Ranges| ranges.iter().any(|range| contains(*range, token));
            let expected = is_in(&ranges) && !is_in(&others);
            assert_eq!(is_in(&rest), expected, "{token:?} of {ranges:?} without {others:?}: {rest:?}");
        }
    }
}
