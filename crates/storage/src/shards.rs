//! Shards: a table's partitions split by token into equal ranges, a power of two of them. Not
//! recorded on disk, so a node may start with another number.

use rows::PartitionRange;
use rows::command::RingBound;
use types::Token;

/// Most shards of a table.
pub const SHARDS_MAX: usize = 1024;

// the commit log numbers the shards of a table with 16 bits
const _: () = assert!(SHARDS_MAX.is_power_of_two() && SHARDS_MAX <= u16::MAX as usize + 1);

/// How many shards there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shards {
    bits: u32,
}

impl Shards {
    /// As many shards as the next power of two from `count` on.
    pub fn at_least(count: usize) -> Self {
        Self { bits: count.clamp(1, SHARDS_MAX).next_power_of_two().trailing_zeros() }
    }

    /// The number of shards.
    pub fn count(self) -> usize {
        1 << self.bits
    }

    /// The shard of a token. Ascending tokens have ascending shards.
    #[inline]
    pub fn of(self, token: Token) -> usize {
        let unsigned = (token.0 as u64) ^ (1 << 63);
        // a shift by 64 is no shift at all: one shard is a case of its own
        let shard = if self.bits == 0 { 0 } else { (unsigned >> (64 - self.bits)) as usize };
        debug_assert!(shard < self.count(), "a token is of one of the shards");
        shard
    }

    /// The shards that a range touches.
    pub fn of_range(self, range: &PartitionRange) -> std::ops::RangeInclusive<usize> {
        let shard_of = |bound: &RingBound, open: usize| match bound {
            RingBound::Open => open,
            RingBound::Token { token, .. } => self.of(*token),
            RingBound::Key { key, .. } => self.of(key.token),
        };
        match range {
            PartitionRange::Key(key) => self.of(key.token)..=self.of(key.token),
            PartitionRange::Range { start, end } => shard_of(start, 0)..=shard_of(end, self.count() - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_follow_the_order_of_tokens() {
        for wanted in [1, 2, 3, 8, 1000] {
            let shards = Shards::at_least(wanted);
            assert!(shards.count() >= wanted);
            assert_eq!(shards.of(Token::MIN), 0);
            assert_eq!(shards.of(Token::MAX), shards.count() - 1);
            let tokens = (-1000..1000).map(|index: i64| Token(index.wrapping_mul(9_223_372_036_854_775)));
            let placed: Vec<_> = tokens.map(|token| shards.of(token)).collect();
            assert!(placed.is_sorted());
        }
    }
}
