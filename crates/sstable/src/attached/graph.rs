//! The vectors of an index in one SSTable, and a graph in which those near a given one are found:
//! `Attached+<index>+Graph.db`.
//!
//! A sequence of segments, each of as many vectors as fit into [`SEGMENT_SIZE`] bytes of memory, so
//! that memory does not grow with the SSTable. A segment is a hierarchical navigable small world
//! ([`build`]): vectors are nodes, each connected to some near it; a few are nodes of upper
//! layers too, through which a search comes into the right part quickly. Equal vectors are one
//! node.
//!
//! ```text
//! segment      := node-block* upper-block* row-block*
//! node-block   := node{1..}                as many as fit into 4 KiB, at least one
//! node         := first_row:u32 rows:u32 upper:u32 neighbours:u32
//!                 neighbour:u32{32} value:f32{dimension}
//! upper-block  := upper{1..60}
//! upper        := neighbours:u32 neighbour:u32{16}
//! row-block    := row:u32{1..1024}
//! footer       := fingerprint:vbytes rows:u32 data_length:u64 function:u8 dimension:uvint
//!                 vectors:u64 count:uvint segment-head{count}
//! segment-head := first_block:uvint nodes:uvint entry:uvint top:uvint uppers:uvint rows:uvint
//! ```
//!
//! `upper` is the number of the node's record in layer 1; that of layer 2 follows it. `first_row`
//! and `rows`: which of the segment's rows have the vector. Values are little-endian, and of length
//! 1 for cosine. `entry`: the node at which searches begin, `top`: its layer.

mod build;

use std::collections::{BTreeSet, BinaryHeap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use env::Disk;
use rows::{ReadError, ReadMode};
use stdx::Cursor;
use stdx::put::{put_u32, put_u64, put_uvint};
use types::Similarity;
use types::similarity::floats;

use super::blocks::{BlockFile, BlockWriter, Kind, Records};
use super::damaged;
use crate::error::{Error, IndexError};
use crate::file_cache::FileCache;
use build::Building;

/// Bytes of vectors that are collected before they become a segment.
pub const SEGMENT_SIZE: usize = 64 << 20;
/// Most neighbours of a node in the lowest layer.
const NEIGHBOURS_BASE: usize = 32;
/// Most neighbours of a node in each upper layer.
const NEIGHBOURS_UPPER: usize = 16;
/// The highest layer: one in 16 nodes of a layer is in the next, so this one is for 2^28 nodes.
const LAYER_MAX: usize = 7;
/// Bytes that the nodes of a block take, unless one takes more.
const NODE_BLOCK: usize = 4 << 10;
/// Records of an upper-block.
const UPPERS_OF_BLOCK: u64 = 60;
/// Rows of a row-block.
const ROWS_OF_BLOCK: u64 = 1024;
/// Bytes of a node without its neighbours and values.
const NODE_HEAD: usize = 16;
/// The number that stands for no record of an upper layer.
const NO_UPPER: u32 = u32::MAX;
/// The longest vector: Cassandra's types have no more dimensions.
const DIMENSION_MAX: u64 = 1 << 13;
/// More segments than a file has.
const SEGMENTS_MAX: u64 = 1 << 20;
/// Fewest nodes that a search keeps. Of 100,000 drawn vectors around 200 centers 24 find 98.5 % of
/// the nearest ten, 32 find 99.6 %, 40 all; other data is less even.
const BREADTH_MIN: usize = 48;

/// A node with its rank, the nearer the greater; of equal rank the one with the smaller number.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Ranked {
    rank: f32,
    node: u32,
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank.total_cmp(&other.rank).then_with(|| other.node.cmp(&self.node))
    }
}

/// The layers of a graph, as a search walks them.
trait Layers {
    type Error;
    /// The rank of a node.
    fn rank(&mut self, node: u32) -> Result<f32, Self::Error>;
    /// Appends the neighbours of a node in a layer to `out`.
    fn neighbours(&mut self, node: u32, layer: usize, out: &mut Vec<u32>) -> Result<(), Self::Error>;
    /// Whether a node is met for the first time since the last search began.
    fn is_new(&mut self, node: u32) -> bool;
}

/// The best nodes of a layer that are found from `from`, at most `breadth`, best first.
fn search_layer<L: Layers>(
    layers: &mut L,
    from: &[Ranked],
    breadth: usize,
    layer: usize,
) -> Result<Vec<Ranked>, L::Error> {
    let mut open: BinaryHeap<Ranked> = BinaryHeap::new();
    let mut best: BinaryHeap<std::cmp::Reverse<Ranked>> = BinaryHeap::new();
    for one in from {
        layers.is_new(one.node);
        open.push(*one);
        best.push(std::cmp::Reverse(*one));
    }
    let mut neighbours = Vec::new();
    while let Some(nearest) = open.pop() {
        let worst = best.peek().map(|worst| worst.0);
        if best.len() >= breadth && worst.is_some_and(|worst| nearest < worst) {
            break;
        }
        neighbours.clear();
        layers.neighbours(nearest.node, layer, &mut neighbours)?;
        for node in &neighbours {
            if !layers.is_new(*node) {
                continue;
            }
            let found = Ranked { rank: layers.rank(*node)?, node: *node };
            if best.len() >= breadth && best.peek().is_some_and(|worst| found < worst.0) {
                continue;
            }
            open.push(found);
            best.push(std::cmp::Reverse(found));
            if best.len() > breadth {
                best.pop();
            }
        }
    }
    let mut best: Vec<Ranked> = best.into_iter().map(|one| one.0).collect();
    best.sort_unstable_by(|a, b| b.cmp(a));
    Ok(best)
}

/// The layout of the nodes of a file.
#[derive(Clone, Copy, Debug)]
struct Layout {
    dimension: usize,
}

impl Layout {
    fn node_size(self) -> usize {
        NODE_HEAD + NEIGHBOURS_BASE * 4 + self.dimension * 4
    }

    fn nodes_of_block(self) -> u64 {
        (NODE_BLOCK / self.node_size()).max(1) as u64
    }
}

/// A segment that is being read.
#[derive(Debug)]
struct OpenSegment {
    head: Segment,
    nodes: Records,
    uppers: Records,
    rows: Records,
}

impl OpenSegment {
    fn open(blocks: &BlockFile, layout: Layout, head: Segment) -> Result<Self, IndexError> {
        let upper_block = head.first_upper_block(layout);
        let row_block = head.first_row_block(layout);
        Ok(Self {
            nodes: Records::over(blocks, head.first_block, layout.node_size(), layout.nodes_of_block(), head.nodes)?,
            uppers: Records::over(blocks, upper_block, 4 + NEIGHBOURS_UPPER * 4, UPPERS_OF_BLOCK, head.uppers)?,
            rows: Records::over(blocks, row_block, 4, ROWS_OF_BLOCK, head.rows)?,
            head,
        })
    }
}

/// The head of a segment, as the footer has it.
#[derive(Debug)]
struct Segment {
    first_block: u64,
    nodes: u64,
    entry: u32,
    top: usize,
    uppers: u64,
    rows: u64,
}

impl Segment {
    fn first_upper_block(&self, layout: Layout) -> u64 {
        self.first_block + self.nodes.div_ceil(layout.nodes_of_block())
    }

    fn first_row_block(&self, layout: Layout) -> u64 {
        self.first_upper_block(layout) + self.uppers.div_ceil(UPPERS_OF_BLOCK)
    }

    fn end(&self, layout: Layout) -> u64 {
        self.first_row_block(layout) + self.rows.div_ceil(ROWS_OF_BLOCK)
    }
}

/// Vectors that are being written.
pub struct GraphWriter {
    blocks: BlockWriter,
    layout: Layout,
    building: Building,
    segments: Vec<Segment>,
    total: u64,
    segment_size: usize,
}

impl GraphWriter {
    /// Creates the file for vectors of a dimension.
    pub fn create(disk: &dyn Disk, path: PathBuf, similarity: Similarity, dimension: u32) -> Result<Self, Error> {
        Self::with_segments_of(disk, path, similarity, dimension, SEGMENT_SIZE)
    }

    /// As [`Self::create`], with segments of another size, for tests.
    pub fn with_segments_of(
        disk: &dyn Disk,
        path: PathBuf,
        similarity: Similarity,
        dimension: u32,
        segment_size: usize,
    ) -> Result<Self, Error> {
        let blocks = BlockWriter::create(disk, path, Kind::Graph)?;
        let layout = Layout { dimension: dimension as usize };
        assert!(u64::from(dimension) <= DIMENSION_MAX, "a type has no more dimensions");
        let building = Building::new(similarity, layout.dimension);
        Ok(Self { blocks, layout, building, segments: Vec::new(), total: 0, segment_size })
    }

    /// Adds the vector of a row as it is serialized; rows do not descend. A vector that has no rank
    /// is left out: one of zeros by cosine, one with a float that is no number.
    pub fn add(&mut self, vector: &[u8], row: u32) -> Result<(), Error> {
        let vector = floats(vector);
        if vector.len() != self.layout.dimension {
            return Ok(());
        }
        let Some(vector) = self.building.similarity.form(vector) else { return Ok(()) };
        self.building.add(&vector, row);
        self.total += 1;
        if self.building.size() >= self.segment_size {
            self.end_segment()?;
        }
        Ok(())
    }

    fn end_segment(&mut self) -> Result<(), Error> {
        let building = self.building.take();
        if building.is_empty() {
            return Ok(());
        }
        let mut blocks = InBlocks { blocks: &mut self.blocks, block: Vec::new(), first: None, count: 0 };
        let mut first_row = 0u32;
        let mut uppers = Vec::new();
        for node in 0..building.len() {
            let rows = building.rows_of(node).len() as u32;
            let upper = building.uppers_of(node);
            let number = if upper.is_empty() { NO_UPPER } else { uppers.len() as u32 };
            blocks.put(self.layout.nodes_of_block(), |out| {
                for value in [first_row, rows, number] {
                    put_u32(out, value);
                }
                put_neighbours(out, building.neighbours_of(node), NEIGHBOURS_BASE);
                out.extend(building.vector(node).iter().flat_map(|value| value.to_le_bytes()));
            })?;
            uppers.extend(upper);
            first_row += rows;
        }
        blocks.end()?;
        for neighbours in &uppers {
            blocks.put(UPPERS_OF_BLOCK, |out| put_neighbours(out, neighbours, NEIGHBOURS_UPPER))?;
        }
        blocks.end()?;
        for row in (0..building.len()).flat_map(|node| building.rows_of(node)) {
            blocks.put(ROWS_OF_BLOCK, |out| put_u32(out, *row))?;
        }
        blocks.end()?;
        let segment = Segment {
            first_block: blocks.first.unwrap_or(0),
            nodes: building.len() as u64,
            entry: building.entry(),
            top: building.top(),
            uppers: uppers.len() as u64,
            rows: u64::from(first_row),
        };
        self.segments.push(segment);
        Ok(())
    }

    /// Completes and syncs the file. `rows` and `data_length` are those of the keys.
    pub fn finish(mut self, fingerprint: &[u8], rows: u32, data_length: u64) -> Result<(), Error> {
        self.end_segment()?;
        let mut footer = Vec::new();
        put_uvint(&mut footer, fingerprint.len() as u64);
        footer.extend_from_slice(fingerprint);
        put_u32(&mut footer, rows);
        put_u64(&mut footer, data_length);
        footer.push(self.building.similarity as u8);
        put_uvint(&mut footer, self.layout.dimension as u64);
        put_u64(&mut footer, self.total);
        put_uvint(&mut footer, self.segments.len() as u64);
        for segment in &self.segments {
            let numbers = [segment.first_block, segment.nodes, u64::from(segment.entry)];
            let more = [segment.top as u64, segment.uppers, segment.rows];
            numbers.into_iter().chain(more).for_each(|number| put_uvint(&mut footer, number));
        }
        self.blocks.finish(&footer)
    }
}

/// Records of one size that are put into blocks.
struct InBlocks<'w> {
    blocks: &'w mut BlockWriter,
    block: Vec<u8>,
    first: Option<u64>,
    count: u64,
}

impl InBlocks<'_> {
    fn put(&mut self, most: u64, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Error> {
        write(&mut self.block);
        self.count += 1;
        if self.count == most { self.end() } else { Ok(()) }
    }

    fn end(&mut self) -> Result<(), Error> {
        if self.count > 0 {
            let number = self.blocks.put(&self.block)?;
            self.first.get_or_insert(number);
        }
        self.block.clear();
        self.count = 0;
        Ok(())
    }
}

fn put_neighbours(out: &mut Vec<u8>, neighbours: &[u32], most: usize) {
    assert!(neighbours.len() <= most, "a node has no more neighbours than its record has room for");
    put_u32(out, neighbours.len() as u32);
    for at in 0..most {
        put_u32(out, neighbours.get(at).copied().unwrap_or(0));
    }
}

/// The vectors of an index in an SSTable.
#[derive(Debug)]
pub struct VectorGraph {
    blocks: BlockFile,
    similarity: Similarity,
    fingerprint: Bytes,
    rows: u32,
    data_length: u64,
    vectors: u64,
    segments: Vec<OpenSegment>,
}

/// A row that was found, with the rank of its vector.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct NearRow {
    /// The rank: greater is nearer.
    pub rank: f32,
    /// The number of the row.
    pub row: u32,
}

/// The rows that a search has found.
#[derive(Default, Debug)]
pub struct Near {
    /// The rows; in no order.
    pub rows: Vec<NearRow>,
    /// A row that was not found has no greater rank, as far as the graph can tell. None: all rows
    /// were found.
    pub below: Option<f32>,
}

impl VectorGraph {
    /// Opens the file.
    pub fn open(disk: &dyn Disk, path: &Path, cache: Arc<dyn FileCache>) -> Result<Self, Error> {
        let (blocks, footer) = BlockFile::open(disk, path, cache, Kind::Graph)?;
        Self::of(blocks, &footer).map_err(|error| Error::corrupt(path, 0, error.into_malformed().what))
    }

    /// The same over bytes, for tests and fuzzing.
    pub(crate) fn over(bytes: Bytes) -> Result<Self, IndexError> {
        let (blocks, footer) = BlockFile::over(bytes.into(), Path::new("graph"), Kind::Graph)?;
        Self::of(blocks, &footer)
    }

    fn of(blocks: BlockFile, footer: &Bytes) -> Result<Self, IndexError> {
        let mut cursor = Cursor::new(footer);
        let length = usize::try_from(cursor.uvint()?).map_err(|_| damaged("a length beyond the footer"))?;
        let fingerprint = footer.slice_ref(cursor.take(length)?);
        let (rows, data_length, function) = (cursor.u32()?, cursor.u64()?, cursor.u8()?);
        let similarity = Similarity::ALL.into_iter().find(|one| *one as u8 == function);
        let similarity = similarity.ok_or_else(|| damaged(format!("function {function}")))?;
        let dimension = cursor.uvint()?;
        if dimension == 0 || dimension > DIMENSION_MAX {
            return Err(damaged(format!("{dimension} dimensions")).into());
        }
        let layout = Layout { dimension: dimension as usize };
        let (vectors, count) = (cursor.u64()?, cursor.uvint()?);
        if count > SEGMENTS_MAX {
            return Err(damaged(format!("{count} segments")).into());
        }
        let mut segments = Vec::new();
        for _ in 0..count {
            let (first_block, nodes, entry) = (cursor.uvint()?, cursor.uvint()?, cursor.uvint()?);
            let (top, uppers, rows) = (cursor.uvint()?, cursor.uvint()?, cursor.uvint()?);
            let most = u64::from(u32::MAX);
            if nodes > most || entry >= nodes || uppers > most || rows > most || top > LAYER_MAX as u64 {
                return Err(damaged("a segment that no writer makes").into());
            }
            if first_block > blocks.blocks() {
                return Err(damaged("a segment of blocks that are not there").into());
            }
            let segment = Segment { first_block, nodes, entry: entry as u32, top: top as usize, uppers, rows };
            if segment.end(layout) > blocks.blocks() {
                return Err(damaged("a segment of blocks that are not there").into());
            }
            segments.push(OpenSegment::open(&blocks, layout, segment)?);
        }
        Ok(Self { blocks, similarity, fingerprint, rows, data_length, vectors, segments })
    }

    /// The name of the definition that the index was made for.
    pub fn fingerprint(&self) -> &[u8] {
        &self.fingerprint
    }

    /// Rows and bytes of the data that the vectors are of.
    pub fn of_data(&self) -> (u32, u64) {
        (self.rows, self.data_length)
    }

    /// Pairs of vector and row.
    pub fn vectors(&self) -> u64 {
        self.vectors
    }

    /// Bytes of the file.
    pub fn size(&self) -> u64 {
        self.blocks.len()
    }

    /// The rows whose vectors are nearest to one in its form ([`Similarity::form`]): about `wanted`
    /// of each segment, or all. Where many rows have one vector no more of them are given: the
    /// rest counts as not found. `effort`: how many times as many vectors as usual are compared.
    pub fn search(&self, vector: &[f32], wanted: usize, effort: usize, mode: ReadMode) -> Result<Near, ReadError> {
        let mut near = Near::default();
        for segment in &self.segments {
            let mut walk = Walk::new(self, segment, vector, mode);
            let nodes = walk.nearest(wanted, effort)?;
            if (nodes.len() as u64) < segment.head.nodes {
                near.keep_back(nodes.last().map_or(f32::INFINITY, |last| last.rank));
            }
            let most = near.rows.len().saturating_add(wanted.max(nodes.len()));
            for node in nodes {
                if !walk.add_rows(node, most, &mut near.rows)? {
                    near.keep_back(node.rank);
                    break;
                }
            }
        }
        Ok(near)
    }
}

impl Near {
    /// Notes that a row of this rank is not among those that were found.
    fn keep_back(&mut self, rank: f32) {
        self.below = Some(self.below.map_or(rank, |below| below.max(rank)));
    }
}

/// A search in one segment.
struct Walk<'g> {
    graph: &'g VectorGraph,
    segment: &'g OpenSegment,
    vector: &'g [f32],
    mode: ReadMode,
    /// A bit for each node that was met.
    met: Vec<u64>,
}

impl<'g> Walk<'g> {
    fn new(graph: &'g VectorGraph, segment: &'g OpenSegment, vector: &'g [f32], mode: ReadMode) -> Self {
        let met = vec![0; (segment.head.nodes as usize).div_ceil(64)];
        Self { graph, segment, vector, mode, met }
    }

    /// The nearest nodes, best first.
    fn nearest(&mut self, wanted: usize, effort: usize) -> Result<Vec<Ranked>, ReadError> {
        // where a good part of the nodes is wanted, passing them all is exact and costs no more
        if wanted as u64 >= self.segment.head.nodes / 4 {
            let mut all = Vec::new();
            for node in 0..self.segment.head.nodes as u32 {
                all.push(Ranked { rank: self.rank(node)?, node });
            }
            all.sort_unstable_by(|a, b| b.cmp(a));
            return Ok(all);
        }
        let entry = self.segment.head.entry;
        let mut from = vec![Ranked { rank: self.rank(entry)?, node: entry }];
        for layer in (1..=self.segment.head.top).rev() {
            from = search_layer(self, &from, 1, layer)?;
            self.met.fill(0);
        }
        let mut found = search_layer(self, &from, BREADTH_MIN.max(wanted + wanted / 2).saturating_mul(effort), 0)?;
        found.truncate(wanted.max(1));
        Ok(found)
    }

    /// A record of a node.
    fn node(&self, node: u32) -> Result<Bytes, ReadError> {
        self.segment.nodes.get(&self.graph.blocks, u64::from(node), self.mode)
    }

    fn read_neighbours(&self, record: &[u8], most: usize, out: &mut Vec<u32>) -> Result<(), ReadError> {
        let mut read = || -> Result<(), IndexError> {
            let mut cursor = Cursor::new(record);
            let count = cursor.u32()? as usize;
            if count > most {
                return Err(damaged(format!("{count} neighbours of a node")).into());
            }
            for _ in 0..count {
                let node = cursor.u32()?;
                if u64::from(node) >= self.segment.head.nodes {
                    return Err(damaged(format!("node {node} of {} as a neighbour", self.segment.head.nodes)).into());
                }
                out.push(node);
            }
            Ok(())
        };
        read().map_err(|error| self.graph.blocks.error(error))
    }

    /// Adds the rows that have the vector of a node, until `out` has `most` rows. False: some of
    /// them were left out.
    fn add_rows(&self, found: Ranked, most: usize, out: &mut Vec<NearRow>) -> Result<bool, ReadError> {
        let error = |error: IndexError| self.graph.blocks.error(error);
        let record = self.node(found.node)?;
        let mut cursor = Cursor::new(&record);
        let first = cursor.u32().map_err(|cause| error(cause.into()))?;
        let count = cursor.u32().map_err(|cause| error(cause.into()))?;
        let end = u64::from(first) + u64::from(count);
        if end > self.segment.head.rows {
            return Err(error(damaged("rows of a node that are not there").into()));
        }
        for at in u64::from(first)..end {
            if out.len() >= most {
                return Ok(false);
            }
            let row = self.segment.rows.get(&self.graph.blocks, at, self.mode)?;
            let row = Cursor::new(&row).u32().map_err(|cause| error(cause.into()))?;
            if row >= self.graph.rows {
                return Err(error(damaged(format!("row {row} of {}", self.graph.rows)).into()));
            }
            out.push(NearRow { rank: found.rank, row });
        }
        Ok(true)
    }
}

impl Layers for Walk<'_> {
    type Error = ReadError;

    fn rank(&mut self, node: u32) -> Result<f32, ReadError> {
        let record = self.node(node)?;
        let values = record.get(NODE_HEAD + NEIGHBOURS_BASE * 4..).unwrap_or_default();
        Ok(self.graph.similarity.rank_of_bytes(self.vector, values))
    }

    fn neighbours(&mut self, node: u32, layer: usize, out: &mut Vec<u32>) -> Result<(), ReadError> {
        let record = self.node(node)?;
        if layer == 0 {
            return self.read_neighbours(record.get(NODE_HEAD - 4..).unwrap_or_default(), NEIGHBOURS_BASE, out);
        }
        let upper = Cursor::new(record.get(8..).unwrap_or_default()).u32();
        let upper = upper.map_err(|error| self.graph.blocks.error(error))?;
        let number = u64::from(upper) + layer as u64 - 1;
        if upper == NO_UPPER || number >= self.segment.head.uppers {
            return Err(self.graph.blocks.error(damaged("a node that is not in an upper layer")));
        }
        let record = self.segment.uppers.get(&self.graph.blocks, number, self.mode)?;
        self.read_neighbours(&record, NEIGHBOURS_UPPER, out)
    }

    fn is_new(&mut self, node: u32) -> bool {
        let Some(word) = self.met.get_mut(node as usize / 64) else { return false };
        let bit = 1 << (node % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

/// The nodes among which the neighbours of one are chosen: each that is nearer to it than to
/// one chosen before, then, while there is room, the best of the others. `best`: best first.
fn chosen<F: Fn(u32, u32) -> f32>(best: &[Ranked], most: usize, rank: F) -> Vec<u32> {
    let mut chosen: Vec<u32> = Vec::with_capacity(most);
    for one in best {
        if chosen.len() < most && chosen.iter().all(|other| rank(one.node, *other) < one.rank) {
            chosen.push(one.node);
        }
    }
    let mut seen: BTreeSet<u32> = chosen.iter().copied().collect();
    for one in best {
        if chosen.len() < most && seen.insert(one.node) {
            chosen.push(one.node);
        }
    }
    chosen
}

#[cfg(test)]
mod tests;
