//! The number of leaves of each tree: as many as partitions are expected, within a budget of
//! memory.
//!
//! The node that coordinates a repair holds the trees of all replicas at once, so the trees of
//! each replica may use the budget divided by the number of replicas; each range gets a share of
//! it by its partitions. However large the budget, the trees of all ranges have at most 2^20
//! leaves in all: these fit into a message (47 MiB of the 128 MiB that it may have), and a
//! coordinator keeps them as they are. Agrees in role with `ValidationManager.createMerkleTrees`.

use internode::payload::token_ranges::Tokens;

use crate::tree::{HASH_SIZE, LEAVES_MAX, MerkleTree};
use crate::trees::MerkleTrees;

/// Bytes of a leaf and of the inner node that it needs, in memory.
const LEAF_COST: u64 = 2 * (HASH_SIZE as u64 + 4);
/// Leaves that a tree may always have, whatever the budget, if there are partitions for them.
const LEAVES_MIN: u64 = 2;

/// Empty trees for ranges with their estimated numbers of partitions. `budget`: bytes of all
/// trees. `depth_max`: no tree has more leaves than 2 to this power. All trees together have at
/// most [`LEAVES_MAX`] leaves, unless there are more ranges than half of that.
pub fn empty_trees(ranges: &[(Tokens, u64)], budget: u64, depth_max: u32) -> MerkleTrees {
    let leaves_max = LEAVES_MAX.min(1u64.checked_shl(depth_max).unwrap_or(u64::MAX));
    let mut sizes = leaves_of(ranges, budget.min(LEAVES_MAX * LEAF_COST), leaves_max);
    if sizes.iter().sum::<u64>() > LEAVES_MAX {
        // trees that can afford less than the fewest leaves have these all the same
        let others = LEAVES_MAX.saturating_sub(LEAVES_MIN * ranges.len() as u64);
        sizes = leaves_of(ranges, others * LEAF_COST, leaves_max);
    }
    let leaves: u64 = sizes.iter().sum();
    let leaves_min = LEAVES_MIN * ranges.len() as u64;
    assert!(leaves <= LEAVES_MAX.max(leaves_min), "the trees of all ranges have a bounded number of leaves");
    let trees = ranges.iter().zip(sizes).map(|((range, _), size)| MerkleTree::new(*range, size));
    MerkleTrees::new(trees.collect())
}

/// The number of leaves of the tree of each range.
fn leaves_of(ranges: &[(Tokens, u64)], budget: u64, leaves_max: u64) -> Vec<u64> {
    let total: u64 = ranges.iter().map(|(_, partitions)| *partitions).sum();
    let size = |(_, partitions): &(Tokens, u64)| {
        let share = match total {
            0 => 0,
            total => u128::from(budget) * u128::from(*partitions) / u128::from(total),
        };
        leaves(*partitions, u64::try_from(share).unwrap_or(u64::MAX)).min(leaves_max)
    };
    ranges.iter().map(size).collect()
}

/// The number of leaves of one tree: a power of two.
fn leaves(partitions: u64, budget: u64) -> u64 {
    if partitions == 0 {
        return 1;
    }
    let affordable = 1 << (budget / LEAF_COST).max(LEAVES_MIN).ilog2();
    partitions.checked_next_power_of_two().unwrap_or(LEAVES_MAX).min(affordable).min(LEAVES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_for_a_partition_within_the_budget() {
        let plenty = 1 << 40;
        let cases = [(0, plenty, 1), (1, plenty, 1), (2, plenty, 2), (3, plenty, 4), (1 << 30, plenty, LEAVES_MAX)];
        for (partitions, budget, expected) in cases {
            assert_eq!(leaves(partitions, budget), expected, "{partitions} partitions");
        }
        assert_eq!(leaves(1 << 30, 100 * LEAF_COST), 64);
        assert_eq!(leaves(1 << 30, 0), 2, "a little is always affordable");
    }

    fn range(start: i64) -> Tokens {
        Tokens { start: types::Token(start), end: types::Token(start + 1_000_000) }
    }

    #[test]
    fn ranges_share_the_budget_by_their_partitions() {
        let trees = empty_trees(&[(range(0), 3 << 20), (range(10_000_000), 1 << 20)], 4096 * LEAF_COST, 20);
        let leaves: Vec<_> = trees.trees().iter().map(MerkleTree::leaves).collect();
        assert_eq!(leaves, [2048, 1024]);
        let trees = empty_trees(&[(range(0), 3 << 20)], 4096 * LEAF_COST, 10);
        assert_eq!(trees.trees().iter().map(MerkleTree::leaves).collect::<Vec<_>>(), [1024]);
    }

    /// The default budget of 256 MiB for two replicas and 32 ranges, of a few million partitions
    /// each, or with all of them in one.
    #[test]
    fn all_trees_of_an_answer_can_be_read_where_they_go() {
        let even = [4 << 20; 32];
        let mut uneven = [0; 32];
        uneven[0] = 1 << 40;
        for partitions in [even, uneven] {
            let ranges: Vec<_> = (0..32).map(|at| range(at * 2_000_000)).zip(partitions).collect();
            let trees = empty_trees(&ranges, 128 << 20, 20);
            let leaves: u64 = trees.trees().iter().map(|tree| tree.leaves() as u64).sum();
            assert!((LEAVES_MAX / 2..=LEAVES_MAX).contains(&leaves), "{leaves} leaves");
            assert_eq!(MerkleTrees::decode(&trees.encode()), Ok(trees), "no level is lost");
        }
    }
}
