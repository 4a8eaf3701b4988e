//! Writes a trie from keys in ascending order, holding only what is not yet placed.
//!
//! A node is complete when a key comes that does not pass through it. While the node and its
//! unplaced branches fit a page they wait; when they no longer do, the branches of its children are
//! placed, each time the largest that fits the rest of the page, with padding to the next page
//! where none does. So a lookup touches few pages. Memory is bounded by the path of the last key
//! and a page per level.
//!
//! Must give the same bytes as `org.apache.cassandra.io.tries.IncrementalTrieWriterPageAware`.

use smallvec::SmallVec;

use super::PAGE_SIZE;
use super::node::{Shape, put_node};

/// Output that knows its place in the file. Its owner moves full bytes away with
/// [`PagedBuffer::take`].
#[derive(Debug, Default)]
pub struct PagedBuffer {
    base: u64,
    /// Bytes that are not taken yet.
    pub bytes: Vec<u8>,
}

impl PagedBuffer {
    /// Where the next byte goes.
    pub fn position(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// Gives away what is there, and goes on behind it.
    pub fn take(&mut self) -> Vec<u8> {
        self.base += self.bytes.len() as u64;
        std::mem::take(&mut self.bytes)
    }

    fn left_in_page(&self) -> usize {
        PAGE_SIZE - (self.position() % PAGE_SIZE as u64) as usize
    }

    fn pad_to_page(&mut self) {
        let left = self.left_in_page();
        if left != PAGE_SIZE {
            self.bytes.resize(self.bytes.len() + left, 0);
        }
    }
}

/// The payload of a node: four bits of flags, not 0, and bytes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Payload {
    /// Low nibble of the node's first byte.
    pub flags: u8,
    /// Behind the node.
    pub bytes: SmallVec<[u8; 20]>,
}

#[derive(Debug)]
struct Pending {
    transition: u8,
    payload: Option<Payload>,
    children: Vec<Pending>,
    /// Where it was written.
    position: Option<u64>,
    /// Bytes of its unplaced descendants.
    branch_size: usize,
    node_size: usize,
    /// A descendant that is not a child has children in other pages: sizes must be computed again
    /// when placed.
    far_in_branch: bool,
    /// A child lies in another page.
    far_children: bool,
}

impl Pending {
    fn new(transition: u8) -> Self {
        Self {
            transition,
            payload: None,
            children: Vec::new(),
            position: None,
            branch_size: 0,
            node_size: 0,
            far_in_branch: false,
            far_children: true,
        }
    }

    fn total_size(&self) -> usize {
        self.branch_size + self.node_size
    }

    /// The greatest distance to a child if the node is placed at `position`.
    fn distance_max(&self, position: u64) -> u64 {
        if !self.far_children {
            return (self.branch_size - self.children[0].branch_size) as u64;
        }
        let placed = self.children.iter().filter_map(|child| child.position).min().map_or(0, |min| position - min);
        let unplaced = self.children.iter().find(|child| child.position.is_none());
        placed.max(unplaced.map_or(0, |child| (self.branch_size - child.branch_size) as u64))
    }

    fn shape(&self, position: u64) -> Shape {
        let distance_max = if self.children.is_empty() { 0 } else { self.distance_max(position) };
        Shape {
            children: self.children.len(),
            first: self.children.first().map_or(0, |child| child.transition),
            last: self.children.last().map_or(0, |child| child.transition),
            distance_max,
            payload: self.payload.is_some(),
        }
    }

    fn size_at(&self, position: u64) -> usize {
        let shape = self.shape(position);
        shape.size(shape.form()) + self.payload.as_ref().map_or(0, |payload| payload.bytes.len())
    }

    /// Computes sizes again for a branch that is to be placed at `position`.
    fn resize(&mut self, position: u64) -> usize {
        if self.far_in_branch {
            let mut size = 0;
            for child in &mut self.children {
                size += child.resize(position + size as u64);
            }
            self.branch_size = size;
        }
        if self.far_children || self.far_in_branch {
            self.node_size = self.size_at(position + self.branch_size as u64);
        }
        self.total_size()
    }

    /// Writes the unplaced descendants, then the node.
    fn write(&mut self, out: &mut PagedBuffer) -> u64 {
        for child in &mut self.children {
            if child.position.is_none() {
                let position = child.write(out);
                child.position = Some(position);
            }
        }
        let position = out.position();
        let children: SmallVec<[(u8, u64); 16]> = self
            .children
            .iter()
            .map(|child| (child.transition, position - child.position.unwrap_or(position)))
            .collect();
        let shape = self.shape(position);
        put_node(&mut out.bytes, &shape, self.payload.as_ref().map_or(0, |payload| payload.flags), &children);
        if let Some(payload) = &self.payload {
            out.bytes.extend_from_slice(&payload.bytes);
        }
        let page = PAGE_SIZE as u64;
        debug_assert_eq!(position / page, (out.position() - 1) / page, "no node crosses a page");
        position
    }

    fn place(&mut self, out: &mut PagedBuffer) {
        self.position = Some(self.write(out));
        self.branch_size = 0;
        self.node_size = 0;
        self.far_in_branch = false;
        self.far_children = false;
        self.children = Vec::new();
        self.payload = None;
    }

    /// No key will pass here any more.
    fn complete(&mut self, out: &mut PagedBuffer) {
        self.branch_size = self.children.iter().map(Pending::total_size).sum();
        let node_size = self.size_at(out.position());
        if node_size + self.branch_size >= PAGE_SIZE {
            self.place_children(out);
            return;
        }
        self.node_size = node_size;
        self.far_children = self.children.iter().any(|child| child.position.is_some());
        self.far_in_branch =
            self.children.iter().any(|child| child.position.is_none() && (child.far_children || child.far_in_branch));
    }

    /// The unplaced child with the largest branch of at most `limit` bytes; of equals the one with
    /// the greatest transition.
    fn largest_child(&mut self, limit: usize) -> Option<&mut Pending> {
        self.children
            .iter_mut()
            .filter(|child| child.position.is_none() && child.total_size() <= limit)
            .max_by_key(|child| child.total_size())
    }

    fn place_children(&mut self, out: &mut PagedBuffer) {
        let mut left = out.left_in_page();
        while self.children.iter().any(|child| child.position.is_none()) {
            let child = match self.largest_child(left) {
                Some(_) => self.largest_child(left),
                None => {
                    out.pad_to_page();
                    left = PAGE_SIZE;
                    self.largest_child(usize::MAX)
                }
            };
            let Some(child) = child else { break };
            if (child.far_children || child.far_in_branch) && child.resize(out.position()) > left {
                if left == PAGE_SIZE {
                    // does not fit even an empty page
                    child.place_children(out);
                    left = out.left_in_page();
                }
                // it stays with its new size, for when there is room
                continue;
            }
            child.place(out);
            left = out.left_in_page();
        }
        self.branch_size = 0;
        self.far_children = true;
        self.far_in_branch = false;
        self.node_size = self.size_at(out.position());
    }

    /// Writes the root with all that is left.
    fn place_root(&mut self, out: &mut PagedBuffer) -> u64 {
        let mut size = self.resize(out.position());
        let mut left = out.left_in_page();
        if size > left {
            if size <= PAGE_SIZE {
                out.pad_to_page();
                left = PAGE_SIZE;
                size = self.resize(out.position());
            }
            if size > left {
                self.place_children(out);
                if self.node_size > out.left_in_page() {
                    out.pad_to_page();
                    self.resize(out.position());
                }
            }
        }
        self.write(out)
    }
}

/// Builds one trie.
#[derive(Debug)]
pub struct TrieWriter {
    /// The path of the last key, root first. A node is moved into its parent when it is complete.
    path: Vec<Pending>,
    last: Vec<u8>,
    count: u64,
}

impl Default for TrieWriter {
    fn default() -> Self {
        Self { path: vec![Pending::new(0)], last: Vec::new(), count: 0 }
    }
}

impl TrieWriter {
    /// Keys so far.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Adds a key, greater than the one before.
    pub fn add(&mut self, key: &[u8], payload: Payload, out: &mut PagedBuffer) {
        assert!((1..16).contains(&payload.flags), "the flags of a payload are four bits, and not 0");
        let common = if self.count == 0 { 0 } else { common_prefix(&self.last, key) };
        assert!(self.count == 0 || key.get(common) > self.last.get(common), "keys of a trie ascend");
        self.count += 1;
        self.complete_to(common + 1, out);
        for byte in &key[common..] {
            self.path.push(Pending::new(*byte));
        }
        if let Some(node) = self.path.last_mut() {
            node.payload = Some(payload);
        }
        self.last.truncate(common);
        self.last.extend_from_slice(&key[common..]);
    }

    fn complete_to(&mut self, depth: usize, out: &mut PagedBuffer) {
        while self.path.len() > depth {
            let Some(mut node) = self.path.pop() else { break };
            node.complete(out);
            if let Some(parent) = self.path.last_mut() {
                parent.children.push(node);
            }
        }
    }

    /// Writes what is left; gives the position of the root. The writer is as new.
    pub fn finish(&mut self, out: &mut PagedBuffer) -> u64 {
        self.complete_to(1, out);
        let mut root = self.path.pop().unwrap_or_else(|| Pending::new(0));
        root.complete(out);
        self.reset();
        root.place_root(out)
    }

    /// Forgets what was not placed.
    pub fn reset(&mut self) {
        *self = Self::default();
    }
}

/// Length of the common prefix.
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
