//! The bytes of a tree.
//!
//! ```text
//! tree:  u8 126 (depth), i64 most leaves, i64 leaves, utf partitioner, token, token, node
//! node:  02, token (the midpoint), node, node  |  01, u8 32, 32 bytes hash  |  01, u8 0
//! ```
//!
//! A leaf whose hash is all zero is written without it. Midpoints other than those of the range and
//! another partitioner are refused. The caller of the reader says how many levels are kept: a
//! subtree below them becomes one leaf with the XOR of its leaves, which compares like a shallower
//! tree. Agrees with `MerkleTree.serialize`.

use internode::InternodeError;
use internode::payload::token_ranges::{Tokens, put_token, read_token};
use internode::text::{put_utf, read_utf};
use stdx::Cursor;

use super::{DEPTH_MAX, EMPTY, HASH_SIZE, Hash, MerkleTree, Node, halves, position, xor};

const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";
const _: () = assert!(DEPTH_MAX <= i8::MAX as u32, "the depth of a tree is a byte of Java");
const LEAF: u8 = 1;
const INNER: u8 = 2;

/// The number of nodes at each level of trees, from their roots (level 0) on.
#[derive(Clone, Debug)]
pub(crate) struct Levels([u64; DEPTH_MAX as usize + 1]);

impl Default for Levels {
    fn default() -> Self {
        Self([0; DEPTH_MAX as usize + 1])
    }
}

impl Levels {
    /// The deepest level down to which the trees have at most `nodes_max` nodes in all. None:
    /// there are more trees than `nodes_max`.
    pub fn deepest_within(&self, nodes_max: u64) -> Option<u32> {
        let sums = self.0.iter().scan(0u64, |sum, nodes| {
            *sum = sum.saturating_add(*nodes);
            Some(*sum)
        });
        let fitting = sums.take_while(|sum| *sum <= nodes_max).count();
        u32::try_from(fitting).ok()?.checked_sub(1)
    }
}

impl MerkleTree {
    /// Appends the bytes of the tree.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.push(DEPTH_MAX as u8);
        stdx::put_i64(out, self.size_max.cast_signed());
        stdx::put_i64(out, 1 << self.size_max.ilog2());
        put_utf(out, PARTITIONER).expect("a short name");
        put_token(out, self.range.start);
        put_token(out, self.range.end);
        self.visit(0, self.range, &mut |range, node| match node.right {
            0 if *node == EMPTY => out.extend_from_slice(&[LEAF, 0]),
            0 => {
                out.extend_from_slice(&[LEAF, HASH_SIZE as u8]);
                out.extend_from_slice(&node.hash);
            }
            _ => {
                out.push(INNER);
                put_token(out, super::midpoint(range));
            }
        });
    }

    /// Reads a tree, and keeps its nodes down to the level `deepest` (0: the root alone). Counts
    /// all nodes in `levels`, also those that are not kept.
    pub(crate) fn read(cursor: &mut Cursor<'_>, deepest: u32, levels: &mut Levels) -> Result<Self, InternodeError> {
        // the depth says nothing: no tree is as deep
        cursor.u8()?;
        let size_max = cursor.i64()?;
        let bad = InternodeError::Value { part: "the size of a Merkle tree", found: size_max };
        let size_max = u64::try_from(size_max).ok().filter(|size| *size > 0).ok_or(bad)?;
        cursor.i64()?;
        if read_utf(cursor)? != PARTITIONER {
            return Err(InternodeError::Unsupported("a Merkle tree of another partitioner"));
        }
        let range = Tokens { start: read_token(cursor)?, end: read_token(cursor)? };
        let mut reader = NodeReader { nodes: Vec::new(), deepest, levels };
        reader.read(cursor, range, 0)?;
        let mut nodes = reader.nodes;
        assert!(nodes.len() % 2 == 1, "each node of a tree has two children or none");
        nodes.shrink_to_fit();
        Ok(Self { range, size_max, nodes })
    }
}

/// Reads the nodes of one tree.
struct NodeReader<'l> {
    nodes: Vec<Node>,
    /// The last level whose nodes are kept.
    deepest: u32,
    levels: &'l mut Levels,
}

impl NodeReader<'_> {
    /// Reads the subtree of a range whose root is at `level`, and gives the XOR of its leaves.
    fn read(&mut self, cursor: &mut Cursor<'_>, range: Tokens, level: u32) -> Result<Hash, InternodeError> {
        self.levels.0[level as usize] += 1;
        let at = (level <= self.deepest).then_some(self.nodes.len());
        self.nodes.extend(at.map(|_| EMPTY));
        let hash = match cursor.u8()? {
            LEAF => read_hash(cursor)?,
            INNER => {
                let middle = read_token(cursor)?;
                let halves = halves(range).filter(|[left, _]| left.end == middle && level < DEPTH_MAX);
                let unfit = InternodeError::Unsupported("a Merkle tree that is not split at its midpoints");
                let [left, right] = halves.ok_or(unfit)?;
                let mut hash = self.read(cursor, left, level + 1)?;
                if let Some(at) = at.filter(|_| level < self.deepest) {
                    self.nodes[at].right = position(self.nodes.len());
                }
                xor(&mut hash, &self.read(cursor, right, level + 1)?);
                hash
            }
            other => return Err(InternodeError::Value { part: "the kind of a tree's node", found: i64::from(other) }),
        };
        if let Some(at) = at {
            self.nodes[at].hash = hash;
        }
        Ok(hash)
    }
}

/// The hash of a leaf.
fn read_hash(cursor: &mut Cursor<'_>) -> Result<Hash, InternodeError> {
    let mut hash = EMPTY.hash;
    match cursor.u8()? {
        0 => Ok(hash),
        length if usize::from(length) == HASH_SIZE => {
            hash.copy_from_slice(cursor.take(HASH_SIZE)?);
            Ok(hash)
        }
        other => Err(InternodeError::Value { part: "the length of a tree's hash", found: i64::from(other) }),
    }
}
