//! The trees of one table at one replica: one for each range.
//!
//! ```text
//! i32 n, n × tree
//! ```
//!
//! Trees stand in Cassandra's order of ranges: the one over the end of the ring first, then by
//! their ends. If an answer has more nodes than a coordinator keeps for one replica, its deepest
//! levels are dropped: the trees of another replica are compared with it down to the levels that
//! are kept, and somewhat more is streamed. Agrees with `org.apache.cassandra.utils.MerkleTrees`.

use internode::InternodeError;
use internode::integers::read_count;
use internode::payload::token_ranges::Tokens;
use stdx::Cursor;
use types::Token;

use crate::tree::{DEPTH_MAX, Hash, LEAVES_MAX, Levels, MerkleTree, TreeFiller, contains};

/// The fewest bytes of a tree: its sizes, an empty name, its range and one leaf.
const TREE_SIZE_MIN: usize = 1 + 8 + 8 + 2 + 2 * 12 + 2;
/// The fewest bytes of a node: a leaf with the hash of nothing.
const NODE_SIZE_MIN: u64 = 2;
/// Most nodes that are kept of one answer: those of trees with 2^20 leaves in all, the most that
/// [`crate::size::empty_trees`] makes. They cost 72 MiB; a coordinator holds them for each replica
/// of a table at once, beside one answer as bytes (at most 128 MiB, the largest message).
/// Cassandra nodes with a heap of 8 GiB or more may send more nodes.
pub const NODES_MAX: u64 = 2 * LEAVES_MAX;

/// The trees of disjoint ranges.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MerkleTrees {
    trees: Vec<MerkleTree>,
}

/// Trees that are being filled.
#[derive(Debug)]
pub struct TreesFiller {
    trees: Vec<TreeFiller>,
    /// Index of the tree that took the last partition: the next one is mostly in the same tree.
    at: usize,
}

impl TreesFiller {
    /// Fills empty trees.
    pub fn new(trees: MerkleTrees) -> Self {
        Self { trees: trees.trees.into_iter().map(TreeFiller::new).collect(), at: 0 }
    }

    /// Takes in the hash of a partition. False: no tree has its token.
    pub fn add(&mut self, token: Token, hash: &Hash) -> bool {
        let holds = |tree: &TreeFiller| contains(tree.range(), token);
        if !self.trees.get(self.at).is_some_and(holds) {
            match self.trees.iter().position(holds) {
                Some(at) => self.at = at,
                None => return false,
            }
        }
        self.trees[self.at].add(token, hash);
        true
    }

    /// Completes the trees.
    pub fn finish(self) -> MerkleTrees {
        MerkleTrees { trees: self.trees.into_iter().map(TreeFiller::finish).collect() }
    }
}

impl MerkleTrees {
    /// The trees of disjoint ranges, given in any order.
    pub fn new(mut trees: Vec<MerkleTree>) -> Self {
        let wraps = |range: Tokens| range.start >= range.end;
        trees.sort_by_key(|tree| (!wraps(tree.range()), tree.range().end));
        Self { trees }
    }

    /// The trees.
    pub fn trees(&self) -> &[MerkleTree] {
        &self.trees
    }

    /// The bytes of VALIDATION_RSP behind its success.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        stdx::put_i32(&mut out, i32::try_from(self.trees.len()).expect("a ring has fewer ranges"));
        self.trees.iter().for_each(|tree| tree.put(&mut out));
        out
    }

    /// Reads trees to the last byte. Keeps [`NODES_MAX`] nodes at most, those that are nearest to
    /// the roots.
    pub fn decode(bytes: &[u8]) -> Result<Self, InternodeError> {
        Self::decode_within(bytes, NODES_MAX)
    }

    fn decode_within(bytes: &[u8], nodes_max: u64) -> Result<Self, InternodeError> {
        let mut cursor = Cursor::new(bytes);
        let count = read_count(&mut cursor, TREE_SIZE_MIN, "the number of Merkle trees")?;
        let deepest = match bytes.len() as u64 / NODE_SIZE_MIN <= nodes_max {
            true => DEPTH_MAX,
            false => {
                // the numbers of nodes are known at the end alone
                let (mut counting, mut levels) = (cursor.clone(), Levels::default());
                for _ in 0..count {
                    MerkleTree::read(&mut counting, 0, &mut levels)?;
                }
                let too_many = InternodeError::Unsupported("more Merkle trees than nodes that are kept of an answer");
                levels.deepest_within(nodes_max).ok_or(too_many)?
            }
        };
        let (mut trees, mut levels) = (Vec::with_capacity(count), Levels::default());
        for _ in 0..count {
            trees.push(MerkleTree::read(&mut cursor, deepest, &mut levels)?);
        }
        let kept: u64 = trees.iter().map(|tree| 2 * tree.leaves() as u64 - 1).sum();
        assert!(kept <= nodes_max, "no more nodes of an answer are kept than there is room for");
        match cursor.remaining() {
            0 => Ok(Self { trees }),
            left => Err(InternodeError::Trailing { left }),
        }
    }

    /// The parts in which the trees of two replicas differ. Err: the trees of the two replicas are
    /// of different ranges.
    pub fn difference(&self, other: &Self) -> Result<Vec<Tokens>, String> {
        let mut differences = Vec::new();
        if self.trees.len() != other.trees.len() {
            return Err(format!("{} trees are compared with {}", self.trees.len(), other.trees.len()));
        }
        for tree in &self.trees {
            let twin = other.trees.iter().find(|twin| twin.range() == tree.range());
            let twin = twin.ok_or_else(|| format!("a replica has no tree of {}", tree.range()))?;
            tree.difference(twin, &mut differences);
        }
        Ok(differences)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: i64, end: i64) -> Tokens {
        Tokens { start: Token(start), end: Token(end) }
    }

    #[test]
    fn partitions_go_to_the_tree_of_their_range() {
        let ranges = [range(10, 20), range(90, -90), range(0, 5)];
        let trees = || MerkleTrees::new(ranges.iter().map(|range| MerkleTree::new(*range, 4)).collect());
        let order: Vec<_> = trees().trees().iter().map(|tree| tree.range().to_string()).collect();
        assert_eq!(order, ["(90,-90]", "(0,5]", "(10,20]"], "that over the end of the ring is first");
        let mut filled = TreesFiller::new(trees());
        assert!(filled.add(Token(15), &[1; 32]) && filled.add(Token(-100), &[2; 32]));
        assert!(!filled.add(Token(7), &[3; 32]), "in no range");
        let filled = filled.finish();
        assert_eq!(filled.difference(&filled), Ok(vec![]));
        let found = trees().difference(&filled).expect("trees of the same ranges");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(crate::tree::contains(found[0], Token(-100)) && crate::tree::contains(found[1], Token(15)));
        let other = MerkleTrees::new(ranges[..2].iter().map(|range| MerkleTree::new(*range, 4)).collect());
        assert!(trees().difference(&other).is_err());
    }

    /// As of a Cassandra node with a large heap: more nodes than are kept.
    #[test]
    fn an_answer_with_too_many_nodes_loses_its_deepest_levels() {
        let tree = |start: i64, leaves: u64| {
            let mut filler = TreeFiller::new(MerkleTree::new(range(start, start + 64), leaves));
            (1..=64i64).for_each(|token| filler.add(Token(start + token), &[token as u8; 32]));
            filler.finish()
        };
        // 31, 7 and 1 nodes
        let whole = MerkleTrees::new(vec![tree(0, 16), tree(100, 4), tree(200, 1)]);
        let bytes = whole.encode();
        assert_eq!(MerkleTrees::decode(&bytes).as_ref(), Ok(&whole));
        let cases =
            [(39, [16, 4, 1]), (38, [8, 4, 1]), (23, [8, 4, 1]), (15, [4, 4, 1]), (14, [2, 2, 1]), (3, [1, 1, 1])];
        for (nodes_max, expected) in cases {
            let folded = MerkleTrees::decode_within(&bytes, nodes_max).expect("room for the roots");
            let leaves: Vec<_> = folded.trees().iter().map(MerkleTree::leaves).collect();
            assert_eq!(leaves, expected, "of {nodes_max} nodes");
            assert_eq!(folded.difference(&whole), Ok(vec![]), "of {nodes_max} nodes");
        }
        assert!(MerkleTrees::decode_within(&bytes, 2).is_err(), "three roots");
    }

    #[test]
    fn bytes_behind_the_trees_are_refused() {
        let mut bytes = MerkleTrees::new(vec![MerkleTree::new(range(0, 5), 4)]).encode();
        assert!(MerkleTrees::decode(&bytes).is_ok());
        bytes.push(0);
        assert_eq!(MerkleTrees::decode(&bytes), Err(InternodeError::Trailing { left: 1 }));
        assert!(MerkleTrees::decode(&[0x7f, 0, 0, 0]).is_err());
    }
}
