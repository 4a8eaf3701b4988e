//! Ranges of tokens in which data is kept.

use std::fmt;

use rows::{ReadContext, ReadError, ReadMode};
use sstable::SSTable;
use types::{DecoratedKey, Token};

/// Ranges of tokens, each from a token (excluded) to a token (included), which do not go around the
/// end of the ring; ascending, none overlapping another.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TokenRanges(Vec<(Token, Token)>);

impl TokenRanges {
    /// Makes ranges that ascend from ranges in any order, some of which may overlap or go around
    /// the end of the ring. A range whose start and end are the same is the whole ring.
    pub fn new(ranges: &[(Token, Token)]) -> Self {
        let mut parts = Vec::with_capacity(ranges.len() + 1);
        for (start, end) in ranges.iter().copied() {
            match start < end {
                true => parts.push((start, end)),
                // no partition has the least token, so that nothing is lost before it
                false => parts.extend([(start, Token(i64::MAX)), (Token::MIN, end)]),
            }
        }
        parts.retain(|(start, end)| start < end);
        parts.sort_unstable();
        let mut merged: Vec<(Token, Token)> = Vec::with_capacity(parts.len());
        for (start, end) in parts {
            match merged.last_mut() {
                Some((_, last)) if start <= *last => *last = end.max(*last),
                _ => merged.push((start, end)),
            }
        }
        assert!(merged.windows(2).all(|pair| pair[0].1 < pair[1].0), "ranges of tokens ascend and are apart");
        Self(merged)
    }

    /// Whether a token is in one of the ranges.
    pub fn contains(&self, token: Token) -> bool {
        let after = self.0.partition_point(|(start, _)| *start < token);
        after > 0 && token <= self.0[after - 1].1
    }

    /// Whether some token from one to another, both included, is in one of the ranges.
    pub fn contains_any(&self, first: Token, last: Token) -> bool {
        let after = self.0.partition_point(|(start, _)| *start < last);
        after > 0 && first <= self.0[after - 1].1
    }

    /// The first partition of an SSTable that is in none of the ranges; None: each is in one of
    /// them. Reads a key for each gap between the ranges, not for each partition.
    pub fn first_outside(&self, sstable: &SSTable) -> Result<Option<DecoratedKey>, ReadError> {
        let (first, last) = (sstable.first_key().token, sstable.last_key().token);
        if !sstable.has_tokens() || self.contains_all(first, last) {
            return Ok(None);
        }
        let mut places = sstable.partition_offsets(&ReadContext::new(ReadMode::Background));
        // the partitions before this token were looked at
        let mut reached = first;
        for (after, end) in self.gaps().filter(|(after, _)| *after < last) {
            if end < reached {
                continue;
            }
            match places.key_after(after)? {
                Some(key) if key.token <= end => return Ok(Some(key)),
                Some(key) => reached = key.token,
                None => break,
            }
        }
        Ok(None)
    }

    /// The ranges between the ranges, each from a token (excluded) to a token (included).
    fn gaps(&self) -> impl Iterator<Item = (Token, Token)> {
        let ends = std::iter::once(Token::MIN).chain(self.0.iter().map(|(_, end)| *end));
        let starts = self.0.iter().map(|(start, _)| *start).chain([Token::MAX]);
        ends.zip(starts).filter(|(after, end)| after < end)
    }

    /// Whether all tokens from one to another, both included, are in one of the ranges.
    pub fn contains_all(&self, first: Token, last: Token) -> bool {
        let after = self.0.partition_point(|(start, _)| *start < first);
        after > 0 && last <= self.0[after - 1].1
    }
}

/// The share of the tokens from `first` to `last`, both included, that is in the range from `start`
/// (excluded) to `end` (included), 0 to 1. The least token as an end is behind all tokens.
pub fn share_within((first, last): (Token, Token), (start, end): (Token, Token)) -> f64 {
    let start = i128::from(start.0);
    let end = if end == Token::MIN { i128::from(i64::MAX) } else { i128::from(end.0) };
    let (first, last) = (i128::from(first.0), i128::from(last.0));
    let common = last.min(end) - first.max(start + 1) + 1;
    if common <= 0 { 0.0 } else { common as f64 / (last - first + 1) as f64 }
}

/// A partition that is in none of the ranges of its node, as a sentence for the operator.
pub struct OutsideRanges<'a>(pub &'a DecoratedKey);

impl fmt::Display for OutsideRanges<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(DecoratedKey { token, key, .. }) = self;
        write!(f, "the partition of key {:02x?} has token {}, which other nodes hold", &key[..], token.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_in_ranges() {
        let ranges = |pairs: &[(i64, i64)]| {
            let pairs: Vec<_> = pairs.iter().map(|(start, end)| (Token(*start), Token(*end))).collect();
            TokenRanges::new(&pairs)
        };
        let some = ranges(&[(10, 20), (15, 30), (30, 40), (90, 5)]);
        for (token, is_in) in [
            (i64::MIN + 1, true),
            (5, true),
            (6, false),
            (10, false),
            (11, true),
            (30, true),
            (40, true),
            (41, false),
            (90, false),
            (91, true),
            (i64::MAX, true),
        ] {
            assert_eq!(some.contains(Token(token)), is_in, "{token}");
        }
        assert!(some.contains_all(Token(11), Token(40)) && !some.contains_all(Token(4), Token(6)));
        assert!(!some.contains_all(Token(10), Token(12)) && !some.contains_all(Token(39), Token(91)));
        assert!(some.contains_any(Token(6), Token(11)) && some.contains_any(Token(40), Token(80)));
        assert!(!some.contains_any(Token(6), Token(10)) && !some.contains_any(Token(41), Token(90)));
        let gaps: Vec<_> = some.gaps().map(|(after, end)| (after.0, end.0)).collect();
        assert_eq!(gaps, [(5, 10), (40, 90)]);
        let gaps: Vec<_> = ranges(&[(10, 20)]).gaps().map(|(after, end)| (after.0, end.0)).collect();
        assert_eq!(gaps, [(i64::MIN, 10), (20, i64::MAX)]);
        let whole = ranges(&[(7, 7)]);
        assert_eq!((whole.gaps().count(), ranges(&[]).gaps().count()), (0, 1));
        assert!([i64::MIN + 1, 7, 8, i64::MAX].iter().all(|token| whole.contains(Token(*token))));
        assert!(!ranges(&[]).contains(Token(1)));
    }
}
