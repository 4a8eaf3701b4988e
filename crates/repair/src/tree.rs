//! A Merkle tree over one range of tokens.
//!
//! Each leaf stands for a part of the range and holds the XOR of the hashes of its partitions; an
//! inner node holds the XOR of its children. A range is split at its midpoint, so the shape follows
//! from the range and the depth, and two replicas have trees of one shape unless they chose
//! different depths. Trees of different depths are compared down to the shallower one.
//!
//! Nodes stand in one list, each before its left child and that before the right one:
//! 36 bytes a node. Agrees with `org.apache.cassandra.utils.MerkleTree` and the midpoints of
//! `Murmur3Partitioner`.

mod filler;
mod form;

use internode::payload::token_ranges::Tokens;
use types::Token;

pub use filler::TreeFiller;
pub(crate) use form::Levels;

/// Bytes of a hash.
pub const HASH_SIZE: usize = 32;

/// The hash of a partition, or the XOR of several.
pub type Hash = [u8; HASH_SIZE];

/// Most levels of a tree, whatever its size allows.
pub const DEPTH_MAX: u32 = 126;

/// Most leaves of a tree that is built here: 2^20, as Cassandra's default
/// `repair_session_max_tree_depth`.
pub const LEAVES_MAX: u64 = 1 << 20;

const _: () = assert!(LEAVES_MAX.is_power_of_two() && LEAVES_MAX.ilog2() <= DEPTH_MAX, "a tree is split in halves");
const _: () = assert!(2 * LEAVES_MAX <= u32::MAX as u64, "the position of a node fits in u32");

/// A node of a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Node {
    hash: Hash,
    /// The position of the right child; the left child follows the node. 0: a leaf.
    right: u32,
}

const EMPTY: Node = Node { hash: [0; HASH_SIZE], right: 0 };

/// A tree over one range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MerkleTree {
    range: Tokens,
    /// The most leaves that its builder allowed: a power of two.
    size_max: u64,
    nodes: Vec<Node>,
}

/// How much of two subtrees differs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DifferenceExtent {
    Nowhere,
    /// In parts, which are in the list of differences already.
    InParts,
    Everywhere,
}

/// The middle of a range. Equal to one of its ends if the range cannot be split.
pub fn midpoint(range: Tokens) -> Token {
    let (start, end) = (i128::from(range.start.0), i128::from(range.end.0));
    let (least, greatest) = (i128::from(i64::MIN), i128::from(i64::MAX));
    let middle = match start < end {
        true => (start + end) >> 1,
        false => match (greatest - least + start + end) >> 1 {
            past if past > greatest => least + past - greatest,
            middle => middle,
        },
    };
    Token(i64::try_from(middle).expect("a midpoint lies in the ring"))
}

/// Both halves of a range; None: it cannot be split.
fn halves(range: Tokens) -> Option<[Tokens; 2]> {
    let middle = midpoint(range);
    let splits = middle != range.start && middle != range.end;
    splits.then_some([Tokens { end: middle, ..range }, Tokens { start: middle, ..range }])
}

/// Whether a token lies in a range.
pub fn contains(range: Tokens, token: Token) -> bool {
    match range.start < range.end {
        true => range.start < token && token <= range.end,
        false => range.start < token || token <= range.end,
    }
}

impl MerkleTree {
    /// An empty tree with at most `size_max` leaves.
    ///
    /// # Panics
    /// When it is to have more leaves than [`LEAVES_MAX`].
    pub fn new(range: Tokens, size_max: u64) -> Self {
        assert!((1..=LEAVES_MAX).contains(&size_max), "a tree has a bounded number of leaves");
        let mut nodes = Vec::with_capacity(2 * size_max as usize);
        grow(&mut nodes, range, size_max.ilog2());
        let tree = Self { range, size_max, nodes };
        assert!(tree.leaves() as u64 <= size_max, "a tree has no more leaves than it is allowed");
        tree
    }

    /// The range.
    pub fn range(&self) -> Tokens {
        self.range
    }

    /// The number of leaves.
    pub fn leaves(&self) -> usize {
        self.nodes.len().div_ceil(2)
    }

    /// Computes the inner nodes from the leaves.
    fn sum(&mut self) {
        // children stand behind their parent
        for at in (0..self.nodes.len()).rev() {
            let right = self.nodes[at].right as usize;
            if right != 0 {
                let mut hash = self.nodes[at + 1].hash;
                xor(&mut hash, &self.nodes[right].hash);
                self.nodes[at].hash = hash;
            }
        }
    }

    /// The leaves: each with its range and its hash.
    pub fn parts(&self) -> Vec<(Tokens, Hash)> {
        let mut parts = Vec::with_capacity(self.leaves());
        self.visit(0, self.range, &mut |range, node| {
            if node.right == 0 {
                parts.push((range, node.hash));
            }
        });
        parts
    }

    fn visit(&self, at: usize, range: Tokens, see: &mut impl FnMut(Tokens, &Node)) {
        let node = &self.nodes[at];
        see(range, node);
        if let Some([left, right]) = halves(range).filter(|_| node.right != 0) {
            self.visit(at + 1, left, see);
            self.visit(node.right as usize, right, see);
        }
    }

    /// The parts of the range in which two trees differ, appended to `differences`. Parts that
    /// differ as a whole are given as a whole.
    ///
    /// # Panics
    /// When the trees are of different ranges.
    pub fn difference(&self, other: &Self, differences: &mut Vec<Tokens>) {
        assert_eq!(self.range, other.range, "trees of one range are compared");
        if self.differs(0, other, 0, self.range, differences) == DifferenceExtent::Everywhere {
            differences.push(self.range);
        }
    }

    /// Compares two subtrees of one range.
    fn differs(
        &self,
        at: usize,
        other: &Self,
        there: usize,
        range: Tokens,
        into: &mut Vec<Tokens>,
    ) -> DifferenceExtent {
        let (own, theirs) = (&self.nodes[at], &other.nodes[there]);
        if own.hash == theirs.hash {
            return DifferenceExtent::Nowhere;
        }
        let is_leaf = own.right == 0 || theirs.right == 0;
        let Some([left, right]) = halves(range).filter(|_| !is_leaf) else { return DifferenceExtent::Everywhere };
        let in_left = self.differs(at + 1, other, there + 1, left, into);
        let in_right = self.differs(own.right as usize, other, theirs.right as usize, right, into);
        match (in_left, in_right) {
            (DifferenceExtent::Everywhere, DifferenceExtent::Everywhere) => return DifferenceExtent::Everywhere,
            (DifferenceExtent::Everywhere, _) => into.push(left),
            (_, DifferenceExtent::Everywhere) => into.push(right),
            _ => {}
        }
        DifferenceExtent::InParts
    }
}

fn xor(hash: &mut Hash, other: &Hash) {
    hash.iter_mut().zip(other).for_each(|(byte, other)| *byte ^= other);
}

/// Appends an empty subtree.
fn grow(nodes: &mut Vec<Node>, range: Tokens, depth: u32) {
    let at = nodes.len();
    nodes.push(EMPTY);
    if let Some([left, right]) = halves(range).filter(|_| depth > 0) {
        grow(nodes, left, depth - 1);
        nodes[at].right = position(nodes.len());
        grow(nodes, right, depth - 1);
    }
}

fn position(at: usize) -> u32 {
    u32::try_from(at).expect("a tree has fewer nodes")
}

#[cfg(test)]
mod tests;
