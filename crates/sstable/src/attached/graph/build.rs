//! The graph of a segment while it is built in memory: vectors are added one after the other.
//!
//! 1. A new node gets its layers from its number, so that the same rows give the same file.
//! 2. From the entry, the nearest node of each upper layer is looked for, down to the node's own
//!    layers; in each of those it is connected to some of the [`BREADTH`] nearest
//!    ([`super::chosen`]).
//! 3. Those are connected to it in turn; where one has too many neighbours then, they are chosen
//!    again.
//!
//! The method is that of Malkov and Yashunin, "Efficient and robust approximate nearest neighbor
//! search using Hierarchical Navigable Small World graphs" (2016), with their second way to choose.

use std::collections::HashMap;
use std::convert::Infallible;

use types::Similarity;

use super::{LAYER_MAX, Layers, NEIGHBOURS_BASE, NEIGHBOURS_UPPER, Ranked, chosen, search_layer};

/// Nodes among which neighbours are chosen (Cassandra: construction_beam_width).
const BREADTH: usize = 100;
/// Bytes that a node takes beside its vector, about.
const NODE_SIZE: usize = 320;

/// A graph that grows.
pub(super) struct Building {
    pub similarity: Similarity,
    dimension: usize,
    vectors: Vec<f32>,
    /// Of each node the neighbours in its layers, from the lowest up.
    neighbours: Vec<Vec<Vec<u32>>>,
    rows: Vec<Vec<u32>>,
    /// Number of rows of all nodes.
    row_count: usize,
    /// Nodes by a hash of their vector; of two with one hash, the first.
    known: HashMap<i64, u32>,
    entry: u32,
    /// The number of the search in which each node was met last.
    met: Vec<u32>,
    searches: u32,
}

impl Building {
    pub fn new(similarity: Similarity, dimension: usize) -> Self {
        Self {
            similarity,
            dimension,
            vectors: Vec::new(),
            neighbours: Vec::new(),
            rows: Vec::new(),
            row_count: 0,
            known: HashMap::new(),
            entry: 0,
            met: Vec::new(),
            searches: 0,
        }
    }

    /// The graph; what is left is empty.
    pub fn take(&mut self) -> Self {
        let empty = Self::new(self.similarity, self.dimension);
        std::mem::replace(self, empty)
    }

    pub fn is_empty(&self) -> bool {
        self.neighbours.is_empty()
    }

    pub fn len(&self) -> u32 {
        self.neighbours.len() as u32
    }

    /// Bytes of memory, about.
    pub fn size(&self) -> usize {
        (self.vectors.len() + self.row_count) * 4 + self.neighbours.len() * NODE_SIZE
    }

    pub fn entry(&self) -> u32 {
        self.entry
    }

    pub fn top(&self) -> usize {
        self.layers_of(self.entry).len().saturating_sub(1)
    }

    pub fn vector(&self, node: u32) -> &[f32] {
        let start = node as usize * self.dimension;
        self.vectors.get(start..start + self.dimension).unwrap_or_default()
    }

    pub fn rows_of(&self, node: u32) -> &[u32] {
        self.rows.get(node as usize).map_or(&[], Vec::as_slice)
    }

    fn layers_of(&self, node: u32) -> &[Vec<u32>] {
        self.neighbours.get(node as usize).map_or(&[], Vec::as_slice)
    }

    pub fn neighbours_of(&self, node: u32) -> &[u32] {
        self.layers_of(node).first().map_or(&[], Vec::as_slice)
    }

    /// The neighbours of a node in the upper layers.
    pub fn uppers_of(&self, node: u32) -> Vec<Vec<u32>> {
        self.layers_of(node).iter().skip(1).cloned().collect()
    }

    /// Adds the vector of a row.
    pub fn add(&mut self, vector: &[f32], row: u32) {
        let bytes: Vec<u8> = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
        let hash = stdx::murmur3(&bytes).0;
        self.row_count += 1;
        if let Some(known) = self.known.get(&hash).copied()
            && self.vector(known) == vector
            && let Some(rows) = self.rows.get_mut(known as usize)
        {
            rows.push(row);
            return;
        }
        let node = self.len();
        self.known.entry(hash).or_insert(node);
        self.vectors.extend_from_slice(vector);
        let layer = layer_of(node);
        self.neighbours.push(vec![Vec::new(); layer + 1]);
        self.rows.push(vec![row]);
        self.met.push(0);
        if node > 0 {
            self.connect(node, layer);
        }
        if layer > self.top() {
            self.entry = node;
        }
    }

    /// Connects a new node to its neighbours.
    fn connect(&mut self, node: u32, layer: usize) {
        let vector = self.vector(node).to_vec();
        let mut from = vec![Ranked { rank: self.similarity.rank(&vector, self.vector(self.entry)), node: self.entry }];
        for at in (0..=self.top()).rev() {
            let breadth = if at > layer { 1 } else { BREADTH };
            self.searches += 1;
            let Ok(found) = search_layer(&mut Search { of: self, vector: &vector }, &from, breadth, at);
            from = found;
            if at > layer {
                continue;
            }
            let neighbours =
                chosen(&from, NEIGHBOURS_UPPER, |a, b| self.similarity.rank(self.vector(a), self.vector(b)));
            for other in &neighbours {
                self.connect_back(*other, node, at);
            }
            if let Some(own) = self.neighbours.get_mut(node as usize).and_then(|layers| layers.get_mut(at)) {
                *own = neighbours;
            }
        }
    }

    /// Connects a node to a new one.
    fn connect_back(&mut self, node: u32, new: u32, layer: usize) {
        let most = if layer == 0 { NEIGHBOURS_BASE } else { NEIGHBOURS_UPPER };
        let Some(neighbours) = self.neighbours.get_mut(node as usize).and_then(|layers| layers.get_mut(layer)) else {
            return;
        };
        neighbours.push(new);
        if neighbours.len() <= most {
            return;
        }
        let neighbours = std::mem::take(neighbours);
        let rank = |a: u32, b: u32| self.similarity.rank(self.vector(a), self.vector(b));
        let mut ranked: Vec<Ranked> =
            neighbours.iter().map(|neighbour| Ranked { rank: rank(node, *neighbour), node: *neighbour }).collect();
        ranked.sort_unstable_by(|a, b| b.cmp(a));
        let again = chosen(&ranked, most, rank);
        if let Some(neighbours) = self.neighbours.get_mut(node as usize).and_then(|layers| layers.get_mut(layer)) {
            *neighbours = again;
        }
    }
}

/// The highest layer of a node: one in 16 of each is in the next.
fn layer_of(node: u32) -> usize {
    let (hash, _) = stdx::murmur3(&node.to_le_bytes());
    (hash.trailing_zeros() as usize / 4).min(LAYER_MAX)
}

/// A search while the graph is built.
struct Search<'b> {
    of: &'b mut Building,
    vector: &'b [f32],
}

impl Layers for Search<'_> {
    type Error = Infallible;

    fn rank(&mut self, node: u32) -> Result<f32, Infallible> {
        Ok(self.of.similarity.rank(self.vector, self.of.vector(node)))
    }

    fn neighbours(&mut self, node: u32, layer: usize, out: &mut Vec<u32>) -> Result<(), Infallible> {
        out.extend(self.of.layers_of(node).get(layer).into_iter().flatten());
        Ok(())
    }

    fn is_new(&mut self, node: u32) -> bool {
        let search = self.of.searches;
        let Some(met) = self.of.met.get_mut(node as usize) else { return false };
        std::mem::replace(met, search) != search
    }
}
