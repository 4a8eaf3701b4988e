//! Shards of the unified strategy: equal parts of the ring at whose ends outputs are split, and
//! densities, bytes by share of the ring.
//!
//! The number of shards follows from the density of the output: `base_shard_count` times a power
//! of two, so that an SSTable has about `target_sstable_size` (growing with the density by
//! `sstable_growth`), and never less than `min_sstable_size`; below that fewer than
//! `base_shard_count`. This node has the whole ring. Agrees with
//! `org.apache.cassandra.db.compaction.{ShardManagerNoDisks,ShardManager}` and
//! `unified.Controller.getNumShards`.

use types::Token;

use super::Candidate;

/// Smallest share of the ring that counts as known. With a smaller one the table has too few
/// partitions.
const COVERAGE_MIN: f64 = 1.0 / (1u64 << 48) as f64;
/// The power of two by which `base_shard_count` is multiplied at most.
const SPLIT_POWER_MAX: u32 = 20;

/// The options from which the number of shards follows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sharding {
    /// `base_shard_count`
    pub base: u32,
    /// `target_sstable_size`, bytes
    pub target_size: f64,
    /// `min_sstable_size`, bytes; 0: no limit.
    pub size_min: f64,
    /// `sstable_growth`, 0 to 1.
    pub growth: f64,
}

/// Number of shards for an output of a density: the bytes that it would have if it were spread
/// over the whole ring.
pub fn count(density: f64, sharding: &Sharding) -> u32 {
    let Sharding { base, target_size, size_min, growth } = *sharding;
    let base = base.max(1);
    // a density that is not known is none
    let density = if density.is_nan() { 0.0 } else { density.max(0.0) };
    if size_min > 0.0 && density / size_min < f64::from(base) {
        // the largest power of two that divides the base: boundaries stay those of it
        let divisor = base & base.wrapping_neg();
        return highest_power_of_two(density / size_min).min(divisor);
    }
    let count = density / (target_size * f64::from(base));
    let splits = if growth == 1.0 {
        0
    } else if growth == 0.0 {
        highest_power_of_two(count * std::f64::consts::SQRT_2).trailing_zeros()
    } else {
        (count.log2() * (1.0 - growth) + 0.5).max(0.0) as u32
    };
    base.saturating_mul(1 << splits.min(SPLIT_POWER_MAX))
}

fn highest_power_of_two(count: f64) -> u32 {
    let whole = (count as u32).max(1);
    1 << (31 - whole.leading_zeros())
}

/// The last token of each shard except the last shard.
pub fn boundaries(count: u32) -> Vec<Token> {
    let count = i128::from(count.max(1));
    let boundary = |index: i128| Token(((index << 64) / count + i128::from(i64::MIN)) as i64);
    let boundaries: Vec<Token> = (1..count).map(boundary).collect();
    debug_assert!(boundaries.is_sorted_by(|a, b| a < b), "shards of the ring are none of them empty");
    boundaries
}

/// The share of the ring between two tokens, both included, 0 to 1.
pub fn coverage(first: Token, last: Token) -> f64 {
    (i128::from(last.0) - i128::from(first.0) + 1).max(0) as f64 / (1u128 << 64) as f64
}

/// Bytes of an SSTable divided by its share of the ring.
pub fn density(candidate: &Candidate) -> f64 {
    let noted = candidate.coverage.filter(|coverage| *coverage > 0.0);
    candidate.size as f64 / at_least(noted.unwrap_or_else(|| coverage(candidate.first, candidate.last)))
}

/// Bytes of SSTables divided by the share of the ring that they have together.
pub fn combined_density(candidates: &[Candidate]) -> f64 {
    let first = candidates.iter().map(|candidate| candidate.first).min();
    let last = candidates.iter().map(|candidate| candidate.last).max();
    let (Some(first), Some(last)) = (first, last) else { return 0.0 };
    let size: u64 = candidates.iter().map(|candidate| candidate.size).sum();
    size as f64 / at_least(coverage(first, last))
}

fn at_least(coverage: f64) -> f64 {
    if coverage >= COVERAGE_MIN { coverage } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = (1 << 20) as f64;

    /// The examples of Cassandra's design document (UnifiedCompactionStrategy.md) and its code's
    /// edges.
    #[test]
    fn counts_of_shards() {
        let default = Sharding { base: 4, target_size: 1024.0 * MIB, size_min: 100.0 * MIB, growth: 1.0 / 3.0 };
        let cases =
            [(f64::NAN, 1), (0.0, 1), (150.0, 1), (250.0, 2), (399.0, 2), (400.0, 4), (6000.0, 4), (100_000.0, 32)];
        for (density, expected) in cases {
            assert_eq!(count(density * MIB, &default), expected, "{density}");
        }
        let fixed = Sharding { growth: 1.0, ..default };
        let sized = Sharding { growth: 0.0, ..default };
        assert_eq!((count(1e15, &fixed), count(16.0 * 1024.0 * MIB, &sized)), (4, 16));
        assert_eq!(count(f64::INFINITY, &sized), 4 << 20);
        let odd = Sharding { base: 6, ..default };
        assert_eq!((count(550.0 * MIB, &odd), count(150.0 * MIB, &odd)), (2, 1));
    }

    #[test]
    fn boundaries_divide_the_ring() {
        assert_eq!(boundaries(1), []);
        assert_eq!(boundaries(4), [Token(-(1 << 62)), Token(0), Token(1 << 62)]);
        assert_eq!(boundaries(3).len(), 2);
        assert_eq!(coverage(Token(i64::MIN), Token(i64::MAX)), 1.0);
    }
}
