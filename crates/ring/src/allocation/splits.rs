//! Tokens of the first nodes of a ring: the largest range is split, again and again, at ratios that
//! differ a little, so that later nodes find ranges of many sizes.
//!
//! Agrees with `TokenAllocatorBase.generateSplits`, except that ratios are random here. In
//! Cassandra they follow from the number of tokens, so that nodes which start together choose the
//! same ones.

use types::Token;

use super::{Owned, Unit, at};
use crate::ownership::part;

/// The least ratio, 1 - 1/sqrt(5), and the greatest amount by which a ratio is larger.
const RATIO_MIN: f64 = 1.0 - 0.447_213_595_499_957_9;
const RATIO_SPREAD: f64 = 0.075;

/// Adds tokens of `new`, and gives them.
pub(super) fn split(owned: &mut Owned, new: Unit, count: usize, random: &mut dyn FnMut() -> u64) -> Vec<Token> {
    let mut chosen = Vec::with_capacity(count);
    if owned.is_empty() && count > 0 {
        let first = Token(random() as i64);
        chosen.push(first);
        owned.push((first, new));
    }
    while chosen.len() < count {
        let (start, end) = largest(owned);
        let token = at(start, end, RATIO_MIN + RATIO_SPREAD * share(random()));
        let place = owned.partition_point(|(known, _)| *known < token);
        assert!(owned.get(place).is_none_or(|(known, _)| *known != token), "a range is split between its ends");
        owned.insert(place, (token, new));
        chosen.push(token);
    }
    chosen
}

/// A random number as a share in [0, 1).
fn share(random: u64) -> f64 {
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

/// The largest range between two neighbours, the first of equal ones.
fn largest(owned: &Owned) -> (Token, Token) {
    let last = owned.last().expect("a ring with tokens").0;
    let starts = std::iter::once(last).chain(owned.iter().map(|(token, _)| *token));
    let ranges = starts.zip(owned.iter().map(|(token, _)| *token));
    let mut largest = (last, last, 0.0);
    for (start, end) in ranges {
        let size = part(start, end);
        if size > largest.2 {
            largest = (start, end, size);
        }
    }
    (largest.0, largest.1)
}
