//! The number of leaves of each tree: as many as partitions are expected, within a budget of
//! memory.
//!
//! The node that coordinates a repair holds the trees of all replicas at once, so each of them may
//! use the budget divided by their number; of that each range has a share by its partitions. Agrees
//! in role with `ValidationManager.createMerkleTrees`.

use internode::payload::token_ranges::Tokens;

use crate::tree::{HASH_SIZE, LEAVES_MAX, MerkleTree};
use crate::trees::MerkleTrees;

/// Bytes of a leaf and of the inner node above it, in memory.
const LEAF_COST: u64 = 2 * (HASH_SIZE as u64 + 4);

/// Empty trees for ranges with their estimated numbers of partitions. `budget`: bytes of all trees.
/// `depth_max`: no tree has more than 2 to this power leaves.
pub fn empty_trees(ranges: &[(Tokens, u64)], budget: u64, depth_max: u32) -> MerkleTrees {
    let leaves_max = LEAVES_MAX.min(1u64.checked_shl(depth_max).unwrap_or(u64::MAX));
    let total: u64 = ranges.iter().map(|(_, partitions)| *partitions).sum();
    let tree = |(range, partitions): &(Tokens, u64)| {
        let share = match total {
            0 => 0,
            total => u128::from(budget) * u128::from(*partitions) / u128::from(total),
        };
        let affordable = leaves(*partitions, u64::try_from(share).unwrap_or(u64::MAX));
        MerkleTree::new(*range, affordable.min(leaves_max))
    };
    MerkleTrees::new(ranges.iter().map(tree).collect())
}

/// The leaves of one tree: a power of two.
fn leaves(partitions: u64, budget: u64) -> u64 {
    if partitions == 0 {
        return 1;
    }
    let affordable = 1 << (budget / LEAF_COST).max(2).ilog2();
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

    #[test]
    fn ranges_share_the_budget_by_their_partitions() {
        let range = |start: i64| Tokens { start: types::Token(start), end: types::Token(start + 1_000_000) };
        let trees = empty_trees(&[(range(0), 3 << 20), (range(10_000_000), 1 << 20)], 4096 * LEAF_COST, 20);
        let leaves: Vec<_> = trees.trees().iter().map(MerkleTree::leaves).collect();
        assert_eq!(leaves, [2048, 1024]);
        let trees = empty_trees(&[(range(0), 3 << 20)], 4096 * LEAF_COST, 10);
        assert_eq!(trees.trees().iter().map(MerkleTree::leaves).collect::<Vec<_>>(), [1024]);
    }
}
