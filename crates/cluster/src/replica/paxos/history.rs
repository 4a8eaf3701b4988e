//! Up to which ballot everything is completed, by tokens: what a repair of Paxos leaves behind.
//!
//! Pure: a history is a function from tokens to ballots that changes at few tokens. It is stored as
//! the value of `system.paxos_repair_history.points`, a list of pairs:
//!
//! ```text
//! i32 n, n × (i32 size, i32 8, token, i32 16, ballot)
//! ```
//!
//! The last pair is that of the tokens behind all others; its token is the least one. Agrees with
//! `org.apache.cassandra.service.paxos.PaxosRepairHistory`.

use bytes::Bytes;
use internode::payload::paxos::Ballot;
use internode::payload::paxos::cleanup::{History, Tokens};
use stdx::{Cursor, CursorError};
use types::Token;

/// The last token.
const LAST: Token = Token(i64::MAX);
/// Bytes of a pair behind its size.
const PAIR_SIZE: i32 = 4 + 8 + 4 + 16;

/// The history of a table that was never repaired.
pub(super) const NOTHING: History = History { entries: Vec::new(), last: Ballot::NONE };

/// The ballot of a token.
pub(super) fn ballot_of(history: &History, token: Token) -> Ballot {
    let index = history.entries.partition_point(|(end, _)| *end < token);
    history.entries.get(index).map_or(history.last, |(_, ballot)| *ballot)
}

/// The later of both ballots at each token.
pub(crate) fn merged(a: &History, b: &History) -> History {
    let ends = a.entries.iter().chain(&b.entries).map(|(end, _)| *end).collect();
    with_ends(ends, |token| ballot_of(a, token).latest(ballot_of(b, token)))
}

/// The history with a ballot, if it is later, at each token of the ranges.
pub(super) fn with(history: &History, ranges: &[Tokens], ballot: Ballot) -> History {
    let ends = ends_of(history, ranges);
    with_ends(ends, |token| {
        let before = ballot_of(history, token);
        if is_within(ranges, token) { before.latest(ballot) } else { before }
    })
}

/// The history within the ranges, and nothing elsewhere.
pub(super) fn within(history: &History, ranges: &[Tokens]) -> History {
    let ends = ends_of(history, ranges);
    with_ends(ends, |token| if is_within(ranges, token) { ballot_of(history, token) } else { Ballot::NONE })
}

fn ends_of(history: &History, ranges: &[Tokens]) -> Vec<Token> {
    let of_ranges = ranges.iter().flat_map(|range| [range.start, range.end]);
    history.entries.iter().map(|(end, _)| *end).chain(of_ranges).collect()
}

/// Whether a token lies in one of the ranges. The least token as an end is behind all tokens.
fn is_within(ranges: &[Tokens], token: Token) -> bool {
    ranges.iter().any(|range| match (range.start, range.end) {
        (start, Token::MIN) => token > start || start == Token::MIN,
        (start, end) if start < end => start < token && token <= end,
        (start, end) => token > start || token <= end,
    })
}

/// The history that has the ballot `of` a token from each end up to the next.
fn with_ends(mut ends: Vec<Token>, of: impl Fn(Token) -> Ballot) -> History {
    ends.sort_unstable();
    ends.dedup();
    let mut entries: Vec<(Token, Ballot)> = Vec::with_capacity(ends.len());
    for end in ends.into_iter().filter(|end| *end != Token::MIN) {
        let ballot = of(end);
        match entries.last_mut() {
            Some((before, same)) if *same == ballot => *before = end,
            _ => entries.push((end, ballot)),
        }
    }
    let last = of(LAST);
    if entries.last().is_some_and(|(_, ballot)| *ballot == last) {
        entries.pop();
    }
    assert!(entries.windows(2).all(|pair| pair[0].0 < pair[1].0), "the tokens of a history ascend");
    History { entries, last }
}

/// The value of `points`.
pub(super) fn encode(history: &History) -> Bytes {
    let mut out = Vec::with_capacity(4 + (history.entries.len() + 1) * (4 + PAIR_SIZE as usize));
    stdx::put_i32(&mut out, i32::try_from(history.entries.len() + 1).expect("a ring has fewer ranges"));
    for (token, ballot) in history.entries.iter().copied().chain([(Token::MIN, history.last)]) {
        stdx::put_i32(&mut out, PAIR_SIZE);
        stdx::put_i32(&mut out, 8);
        stdx::put_i64(&mut out, token.0);
        stdx::put_i32(&mut out, 16);
        out.extend_from_slice(ballot.bytes());
    }
    out.into()
}

/// Reads the value of `points`.
pub(super) fn decode(value: &[u8]) -> Result<History, CursorError> {
    let mut cursor = Cursor::new(value);
    let mut entries = Vec::new();
    for _ in 0..cursor.i32()? {
        let mut pair = Cursor::new(cursor.int_bytes()?.unwrap_or_default());
        let mut token = Cursor::new(pair.int_bytes()?.unwrap_or_default());
        let mut ballot = Cursor::new(pair.int_bytes()?.unwrap_or_default());
        let token = Token(token.i64()?);
        let ballot = ballot.take(16)?.first_chunk().map_or(Ballot::NONE, |bytes| Ballot::from_bytes(*bytes));
        entries.push((token, ballot));
    }
    let last = entries.pop().map_or(Ballot::NONE, |(_, ballot)| ballot);
    Ok(History { entries, last })
}

#[cfg(test)]
mod tests {
    use super::*;
    use internode::payload::paxos::BallotFlag;

    fn ballot(time: i64) -> Ballot {
        if time == 0 { Ballot::NONE } else { Ballot::new(time, BallotFlag::Global, 1) }
    }

    fn range(start: i64, end: i64) -> Tokens {
        Tokens { start: Token(start), end: Token(end) }
    }

    /// Numbers of a linear congruence.
    fn drawn(state: &mut u64, end: u64) -> i64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((*state >> 33) % end).expect("small")
    }

    /// Histories against a table of twelve tokens, by ranges drawn with wrapping and open ones.
    #[test]
    fn histories_are_functions_of_tokens() {
        let token = |place: i64| if place == 0 { Token::MIN } else { Token((place - 6) * 1000) };
        let mut state = 1;
        let mut histories = [(NOTHING, [Ballot::NONE; 12]), (NOTHING, [Ballot::NONE; 12])];
        for step in 0..300 {
            let ranges: Vec<Tokens> = (0..=drawn(&mut state, 2))
                .map(|_| Tokens { start: token(drawn(&mut state, 12)), end: token(drawn(&mut state, 12)) })
                .collect();
            let new = ballot(drawn(&mut state, 40));
            // place 11 stands for all tokens behind the last end
            let places = (1..12).map(|place| if place == 11 { Token(i64::MAX - 1) } else { token(place) });
            let covers = |token: Token| {
                ranges.iter().any(|range| {
                    let end = if range.end == Token::MIN { Token(i64::MAX) } else { range.end };
                    if range.start < end {
                        range.start < token && token <= end
                    } else {
                        token > range.start || token <= end
                    }
                })
            };
            let index = usize::try_from(drawn(&mut state, 2)).expect("small");
            let (history, table) = &mut histories[index];
            *history = with(history, &ranges, new);
            let part = within(history, &ranges);
            for (place, token) in (1..).zip(places.clone()) {
                if covers(token) {
                    table[place] = table[place].latest(new);
                }
                assert_eq!(ballot_of(history, token), table[place], "step {step}, place {place}");
                let expected = if covers(token) { table[place] } else { Ballot::NONE };
                assert_eq!(ballot_of(&part, token), expected, "step {step}, place {place}");
            }
            assert_eq!(decode(&encode(history)), Ok(history.clone()));
            assert!(history.entries.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 != pair[1].1));
            let both = merged(&histories[0].0, &histories[1].0);
            for (place, token) in (1..).zip(places) {
                assert_eq!(ballot_of(&both, token), histories[0].1[place].latest(histories[1].1[place]));
            }
        }
    }

    #[test]
    fn a_whole_ring_has_no_ends() {
        let whole = with(&NOTHING, &[range(5, 5)], ballot(3));
        assert_eq!(whole, History { entries: vec![], last: ballot(3) });
        let open = with(&NOTHING, &[Tokens { start: Token::MIN, end: Token::MIN }], ballot(3));
        assert_eq!(open, whole);
        assert!(decode(&encode(&whole)[..20]).is_err());
    }
}
