//! Fills a tree with the hashes of partitions.
//!
//! Partitions come in the order of their tokens, so that the next one is mostly in the leaf of the
//! one before or in one beside it: the filler goes up from there as far as it must and down again,
//! and adds to leaves alone. Inner nodes are computed once, at the end.

use internode::payload::token_ranges::Tokens;
use types::Token;

use super::{Hash, MerkleTree, contains, halves, xor};

/// A tree that is being filled. Tokens may come in any order; those in ascending order cost least.
#[derive(Debug)]
pub struct TreeFiller {
    /// The tree. Its leaves are always up to date, its inner nodes only at the end.
    tree: MerkleTree,
    /// The nodes from the root to the leaf of the last partition, with their ranges.
    path: Vec<(usize, Tokens)>,
}

impl TreeFiller {
    /// Fills an empty tree.
    pub fn new(tree: MerkleTree) -> Self {
        Self { path: vec![(0, tree.range)], tree }
    }

    /// The range of the tree.
    pub fn range(&self) -> Tokens {
        self.tree.range
    }

    /// Takes in the hash of a partition, which is in the range.
    pub fn add(&mut self, token: Token, hash: &Hash) {
        debug_assert!(contains(self.tree.range, token), "a partition is in the range of its tree");
        while let [_, .., (_, range)] = &self.path[..]
            && !contains(*range, token)
        {
            self.path.pop();
        }
        while let Some((at, range)) = self.path.last().copied() {
            let right = self.tree.nodes[at].right as usize;
            let Some([left, behind]) = halves(range).filter(|_| right != 0) else {
                return xor(&mut self.tree.nodes[at].hash, hash);
            };
            self.path.push(if contains(left, token) { (at + 1, left) } else { (right, behind) });
        }
    }

    /// Completes the tree.
    pub fn finish(mut self) -> MerkleTree {
        self.tree.sum();
        self.tree
    }
}
