//! The bytes of a tree.
//!
//! ```text
//! tree:  u8 126 (depth), i64 most leaves, i64 leaves, utf partitioner, token, token, node
//! node:  02, token (the midpoint), node, node  |  01, u8 32, 32 bytes hash  |  01, u8 0
//! ```
//!
//! A leaf whose hash is all zero is written without it. Midpoints other than those of the range,
//! another partitioner, and more nodes than the caller allows are refused. Agrees with
//! `MerkleTree.serialize`.

use internode::InternodeError;
use internode::payload::token_ranges::{Tokens, put_token, read_token};
use internode::text::{put_utf, read_utf};
use stdx::Cursor;

use super::{DEPTH_MAX, EMPTY, HASH_SIZE, MerkleTree, Node, halves, position, xor};

const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";
const LEAF: u8 = 1;
const INNER: u8 = 2;

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

    /// Reads a tree with at most `nodes_max` nodes.
    pub fn read(cursor: &mut Cursor<'_>, nodes_max: usize) -> Result<Self, InternodeError> {
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
        let mut nodes = Vec::new();
        read_node(cursor, &mut nodes, range, DEPTH_MAX, nodes_max)?;
        Ok(Self { range, size_max, nodes })
    }
}

/// Reads a subtree, and gives the position of its root.
fn read_node(
    cursor: &mut Cursor<'_>,
    nodes: &mut Vec<Node>,
    range: Tokens,
    depth: u32,
    nodes_max: usize,
) -> Result<(), InternodeError> {
    if nodes.len() >= nodes_max {
        return Err(InternodeError::Unsupported("a Merkle tree with too many nodes"));
    }
    let at = nodes.len();
    nodes.push(EMPTY);
    match cursor.u8()? {
        LEAF => match cursor.u8()? {
            0 => {}
            length if usize::from(length) == HASH_SIZE => nodes[at].hash.copy_from_slice(cursor.take(HASH_SIZE)?),
            other => {
                return Err(InternodeError::Value { part: "the length of a tree's hash", found: i64::from(other) });
            }
        },
        INNER => {
            let middle = read_token(cursor)?;
            let halves = halves(range).filter(|[left, _]| left.end == middle && depth > 0);
            let unfit = InternodeError::Unsupported("a Merkle tree that is not split at its midpoints");
            let [left, right] = halves.ok_or(unfit)?;
            read_node(cursor, nodes, left, depth - 1, nodes_max)?;
            nodes[at].right = position(nodes.len());
            read_node(cursor, nodes, right, depth - 1, nodes_max)?;
            let behind = nodes[nodes[at].right as usize].hash;
            nodes[at].hash = nodes[at + 1].hash;
            xor(&mut nodes[at].hash, &behind);
        }
        other => return Err(InternodeError::Value { part: "the kind of a tree's node", found: i64::from(other) }),
    }
    Ok(())
}
