//! Ranges of tokens in which data is kept.

use types::Token;

/// Ranges of tokens, each from a token (excluded) to a token (included), which do not go around the
/// end of the ring; ascending, none overlapping another.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TokenRanges(Vec<(Token, Token)>);

impl TokenRanges {
    /// Of ranges in any order, some of which may overlap or go around the end of the ring. Start
    /// and end being the same means the whole ring.
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
        Self(merged)
    }

    /// Whether a token is in one of the ranges.
    pub fn contain(&self, token: Token) -> bool {
        let after = self.0.partition_point(|(start, _)| *start < token);
        after > 0 && token <= self.0[after - 1].1
    }

    /// Whether some token from one to another, both included, is in one of the ranges.
    pub fn contain_some(&self, first: Token, last: Token) -> bool {
        let after = self.0.partition_point(|(start, _)| *start < last);
        after > 0 && first <= self.0[after - 1].1
    }

    /// Whether all tokens from one to another, both included, are in one of the ranges.
    pub fn contain_all(&self, first: Token, last: Token) -> bool {
        let after = self.0.partition_point(|(start, _)| *start < first);
        after > 0 && last <= self.0[after - 1].1
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
            assert_eq!(some.contain(Token(token)), is_in, "{token}");
        }
        assert!(some.contain_all(Token(11), Token(40)) && !some.contain_all(Token(4), Token(6)));
        assert!(!some.contain_all(Token(10), Token(12)) && !some.contain_all(Token(39), Token(91)));
        assert!(some.contain_some(Token(6), Token(11)) && some.contain_some(Token(40), Token(80)));
        assert!(!some.contain_some(Token(6), Token(10)) && !some.contain_some(Token(41), Token(90)));
        let whole = ranges(&[(7, 7)]);
        assert!([i64::MIN + 1, 7, 8, i64::MAX].iter().all(|token| whole.contain(Token(*token))));
        assert!(!ranges(&[]).contain(Token(1)));
    }
}
