//! The rows whose vectors are nearest to a given one: `ORDER BY v ANN OF …` on this node.
//!
//! A search gives at most as many rows as the command's limit says, in the order of the table; the
//! coordinator puts them in the order of their scores. They are found in one of two ways:
//!
//! - exactly, where few rows come into question: all rows of the partition, or all that another
//!   index finds, are read, and the nearest are kept;
//! - by the graphs: each source (memtables, every SSTable's graph) gives the rows that are nearest
//!   in it; these are read from the base. A row counts with the vector that it has now, and only if
//!   it is live and meets the conditions of the other indexes. As long as too few rows count that
//!   are nearer than anything a source has kept back, each source is asked for four times as many.
//!
//! So a stale entry costs a read and gives no wrong row, as with the other indexes. All of the
//! memtables' vectors are compared: they are exact, and their number has the memtables' bound.
//!
//! Memory: the candidates of one round, and twice the rows that are wanted. Its answers agree with
//! `org.apache.cassandra.index.sai.plan.{StorageAttachedIndexSearcher,VectorTopKProcessor}`.

use std::sync::Arc;

use rows::live::{LiveRows, TombstoneLimits};
use rows::{
    DataLimits, DeletionTime, PartitionHead, PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadError,
    ReadMode, Row, SearchOperator, Slice, Slices, Unfiltered,
};
use sstable::attached::{KeysCursor, Place, Position, TermRange};
use types::similarity::floats;
use types::{DecoratedKey, Similarity};

use super::search::MEMORY_PLACES;
use super::sources::{Sources, Wanted, entries_in_memory};
use crate::read::explain::{Observation, open_observed};
use crate::table::TableStore;
use crate::table::entries;
use crate::table::indexes::IndexStore;
use crate::table::view::View;

/// Most rows of a search. Statements that ask for more are refused
/// (cassandra.sai.vector_search.max_top_k).
const ROWS_MAX: usize = 1000;
/// Most rows found by another index with which all of them are read.
const EXACT_ROWS: u64 = 1000;
/// Factor by which a search that has to miss few rows compares more vectors in a graph.
const RECALL_EFFORT: usize = 2;
/// Factor by which each source is asked for more candidates in the next round.
const GROWTH: usize = 4;
/// Most rows of a partition that are read together.
const BATCH_ROWS: usize = 256;

/// A search for the nearest.
pub struct Nearest {
    pub index: Arc<IndexStore>,
    similarity: Similarity,
    /// The given vector in the form of the index; None: it has no such form, so no row is near it.
    vector: Option<Vec<f32>>,
}

/// The search for the nearest that a command names. None: it names none.
pub fn wanted(base: &TableStore, command: &ReadCommand) -> Result<Option<Nearest>, ReadError> {
    let Some(search) = command.indexes.iter().find(|search| search.operator == SearchOperator::Ann) else {
        return Ok(None);
    };
    let unavailable = || ReadError::IndexNotAvailable { name: search.name.to_string() };
    let view = base.view();
    let index = view.index(&search.name).filter(|index| index.state.is_built()).ok_or_else(unavailable)?;
    let similarity = index.definition.vectors.ok_or_else(unavailable)?;
    let vector = similarity.form(floats(&search.value));
    Ok(Some(Nearest { index: Arc::clone(index), similarity, vector }))
}

/// The stream of the rows that a command asks for.
pub fn search(
    base: &Arc<TableStore>,
    nearest: &Nearest,
    command: &ReadCommand,
    context: &ReadContext,
    observation: Option<Observation>,
) -> Result<Box<dyn PartitionStream>, ReadError> {
    if context.mode == ReadMode::Inline {
        return Err(ReadError::WouldBlock);
    }
    let conditions = super::search::wanted(base, command)?;
    let wanted = (command.limits.rows as usize).min(ROWS_MAX);
    let command = ReadCommand {
        limits: DataLimits::NONE,
        indexes: command.indexes.iter().filter(|search| search.operator != SearchOperator::Ann).cloned().collect(),
        ..command.clone()
    };
    let mut work = Search { base, nearest, conditions, command, context, observation, found: Vec::new(), wanted };
    if work.nearest.vector.is_some() && wanted > 0 {
        work.run()?;
    }
    let table = Arc::clone(&work.command.table);
    work.found.sort_by(|a, b| a.place.compare(&b.place, &table));
    Ok(Box::new(FoundStream { rows: work.found.into_iter().peekable(), current: None }))
}

/// A row that was found.
struct Found {
    rank: f32,
    place: Place,
    static_row: Option<Row>,
    row: Row,
}

/// A row that may be near, with the rank of the vector under which a source has it.
struct Candidate {
    rank: f32,
    place: Place,
}

/// The candidates of one round.
struct Round {
    candidates: Vec<Candidate>,
    /// The rank that rows kept back by sources have at most. None: the sources have given all of
    /// their rows.
    below: Option<f32>,
}

struct Search<'s> {
    base: &'s Arc<TableStore>,
    nearest: &'s Nearest,
    /// The conditions of other indexes.
    conditions: Vec<Wanted>,
    /// The command without limits and without the search for the nearest.
    command: ReadCommand,
    context: &'s ReadContext,
    observation: Option<Observation>,
    /// The nearest rows so far.
    found: Vec<Found>,
    wanted: usize,
}

impl Search<'_> {
    fn run(&mut self) -> Result<(), ReadError> {
        let name = self.nearest.index.name();
        if matches!(self.command.range, PartitionRange::Key(_)) {
            self.context.trace(|| format!("Comparing the vectors of a partition, without index {name}"));
            return self.exactly();
        }
        let share = self.estimate()?;
        if let Some((estimate, vectors)) = share {
            // by the graph, one candidate in vectors / estimate counts, and each is read
            if estimate <= EXACT_ROWS || estimate.saturating_mul(estimate) <= vectors.saturating_mul(self.wanted as u64)
            {
                self.context.trace(|| format!("Comparing about {estimate} vectors of other indexes, without {name}"));
                return self.exactly();
            }
        }
        self.context.trace(|| format!("Using index {name} for the nearest {} rows", self.wanted));
        let factor = share.map_or(1, |(estimate, vectors)| vectors / estimate.max(1) + 1);
        self.by_graph(self.wanted.saturating_mul(usize::try_from(factor).unwrap_or(usize::MAX)))
    }

    /// Estimates of how many places meet the conditions, and of how many vectors there are. None:
    /// there are no conditions.
    fn estimate(&self) -> Result<Option<(u64, u64)>, ReadError> {
        let mut least = None;
        let table = &self.command.table;
        for wanted in super::search::wanted(self.base, &self.command)? {
            let mut sources = Sources::in_memory(wanted, table, &self.command, self.context, MEMORY_PLACES)?;
            for sstable in &self.base.view().sstables {
                // one that lacks its component is told of when it is searched
                sources.add(sstable, u64::MAX, self.context.mode)?;
            }
            least = Some(least.map_or(sources.estimate, |least: u64| least.min(sources.estimate)));
        }
        let graphs = |view: &View| {
            let of = |sstable: &Arc<sstable::SSTable>| sstable.attached().graph_of(self.nearest.index.name());
            view.sstables.iter().filter_map(of).map(|(_, graph)| graph.vectors()).sum()
        };
        Ok(least.map(|least| (least, graphs(&self.base.view()))))
    }

    /// Reads all rows that come into question.
    fn exactly(&mut self) -> Result<(), ReadError> {
        let command = self.command.clone();
        let mut stream = match super::search::wanted(self.base, &command)? {
            conditions if conditions.is_empty() => self.read(&command)?,
            conditions => {
                let observation = self.observation.clone();
                super::search::search(self.base, conditions, &command, self.context, observation)?
            }
        };
        self.take_all(&mut *stream)
    }

    fn read(&self, command: &ReadCommand) -> Result<Box<dyn PartitionStream>, ReadError> {
        let command = ReadCommand { indexes: Vec::new(), ..command.clone() };
        open_observed(self.observation.as_ref(), self.base, &command, self.context)
    }

    /// Takes those rows of a stream that count.
    fn take_all(&mut self, stream: &mut dyn PartitionStream) -> Result<(), ReadError> {
        let table = Arc::clone(&self.command.table);
        let mut live = LiveRows::new(stream, table, self.command.now, TombstoneLimits::NONE);
        while let Some(partition) = live.next_partition()? {
            let static_row = partition.static_row;
            while let Some(row) = live.next_row()? {
                if let Some(rank) = self.rank_of(&partition.key, static_row.as_ref(), &row) {
                    let place = Place::row(partition.key.clone(), row.clustering.clone());
                    self.found.push(Found { rank, place, static_row: static_row.clone(), row });
                }
                if self.found.len() > self.wanted * 2 + BATCH_ROWS {
                    self.keep_nearest();
                }
            }
        }
        self.keep_nearest();
        Ok(())
    }

    fn keep_nearest(&mut self) {
        self.found.sort_by(|a, b| b.rank.total_cmp(&a.rank));
        self.found.truncate(self.wanted);
    }

    /// The rank of a live row. None: the row does not count.
    fn rank_of(&self, key: &DecoratedKey, static_row: Option<&Row>, row: &Row) -> Option<f32> {
        let definition = &self.nearest.index.definition;
        let vector = if definition.is_of_key() {
            entries::term(definition, &key.key, Some(&row.clustering), None)?.key
        } else {
            let of = if definition.column.is_static() { static_row? } else { row };
            entries::cells(definition, of).first().filter(|cell| !cell.is_tombstone())?.value.clone()
        };
        let vector = self.nearest.similarity.form(floats(&vector))?;
        if !self.conditions.iter().all(|wanted| wanted.is_met(key, static_row, row)) {
            return None;
        }
        Some(self.nearest.similarity.rank(self.nearest.vector.as_deref()?, &vector))
    }

    fn by_graph(&mut self, first: usize) -> Result<(), ReadError> {
        let mut fetch = first.max(1);
        loop {
            let round = self.candidates(fetch)?;
            self.found.clear();
            self.take_candidates(&round.candidates)?;
            let Some(below) = round.below else { return Ok(()) };
            let sure = self.found.iter().filter(|found| found.rank >= below).count();
            if sure >= self.wanted {
                return Ok(());
            }
            if self.context.is_over() {
                return Err(ReadError::TimedOut);
            }
            fetch = fetch.saturating_mul(GROWTH);
        }
    }

    /// The rows that are nearest according to each source, best first, each row once.
    fn candidates(&self, fetch: usize) -> Result<Round, ReadError> {
        let (table, index) = (&*self.command.table, &self.nearest.index);
        let vector = self.nearest.vector.as_deref().unwrap_or_default();
        let all = || Wanted { index: Arc::clone(index), range: TermRange::default() };
        let mut round = Round { candidates: Vec::new(), below: None };
        let is_wanted = |place: &Place| {
            let is_in_slices = match &place.position {
                Position::Partition => true,
                Position::Row(row) => self.command.slices.contains(row, &table.comparator),
            };
            is_in_slices && self.command.range.contains(&place.key)
        };
        // memory before the base's view: what is flushed meanwhile is in one of the two
        let mut keep = Vec::new();
        entries_in_memory(&all(), table, &self.command, self.context, |value, place| {
            let Some(own) = self.nearest.similarity.form(floats(&value.key)) else { return true };
            if is_wanted(&place) {
                keep.push(Candidate { rank: self.nearest.similarity.rank(vector, &own), place });
            }
            if keep.len() > fetch.saturating_mul(2) + BATCH_ROWS {
                cut(&mut keep, fetch, &mut round.below);
            }
            true
        })?;
        cut(&mut keep, fetch, &mut round.below);
        round.candidates = keep;
        let effort = if index.definition.optimizes_recall { RECALL_EFFORT } else { 1 };
        for sstable in &self.base.view().sstables {
            let Some((keys, graph)) = sstable.attached().graph_of(index.name()) else {
                let name = index.name().to_owned();
                tracing::error!(index = name, sstable = sstable.descriptor().prefix(), "an SSTable lacks its index");
                return Err(ReadError::IndexNotAvailable { name });
            };
            let near = graph.search(vector, fetch, effort, self.context.mode)?;
            raise(&mut round.below, near.below);
            let mut keys = KeysCursor::new(keys, self.context.mode);
            let mut rows = near.rows;
            rows.sort_unstable_by_key(|one| one.row);
            for one in rows {
                let place = keys.place(one.row)?;
                if is_wanted(&place) {
                    round.candidates.push(Candidate { rank: one.rank, place });
                }
            }
        }
        let by_place = |a: &Candidate, b: &Candidate| a.place.compare(&b.place, table);
        round.candidates.sort_by(|a, b| by_place(a, b).then(b.rank.total_cmp(&a.rank)));
        round.candidates.dedup_by(|a, b| by_place(a, b).is_eq());
        cut(&mut round.candidates, fetch, &mut round.below);
        Ok(round)
    }

    /// Reads the rows of candidates.
    fn take_candidates(&mut self, candidates: &[Candidate]) -> Result<(), ReadError> {
        let table = Arc::clone(&self.command.table);
        let mut places: Vec<&Place> = candidates.iter().map(|candidate| &candidate.place).collect();
        places.sort_by(|a, b| a.compare(b, &table));
        for partition in places.chunk_by(|a, b| a.key == b.key) {
            for batch in partition.chunks(BATCH_ROWS) {
                let Some(first) = batch.first() else { continue };
                let names = batch.iter().filter_map(|place| match &place.position {
                    Position::Row(row) => Some(Slice::of_prefix(row.clone())),
                    Position::Partition => None,
                });
                let names: Slices = names.collect();
                let is_whole = matches!(first.position, Position::Partition) || table.clustering.is_empty();
                let slices = if is_whole { self.command.slices.clone() } else { names };
                let range = PartitionRange::Key(first.key.clone());
                let command = ReadCommand { range, slices, ..self.command.clone() };
                let mut stream = self.read(&command)?;
                self.take_all(&mut *stream)?;
            }
        }
        Ok(())
    }
}

fn raise(below: &mut Option<f32>, other: Option<f32>) {
    *below = match (*below, other) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    };
}

/// Keeps the best candidates, best first. `below`: gets the highest rank of those that were cut
/// off.
fn cut(candidates: &mut Vec<Candidate>, most: usize, below: &mut Option<f32>) {
    candidates.sort_by(|a, b| b.rank.total_cmp(&a.rank));
    if candidates.len() > most {
        raise(below, candidates.get(most).map(|first| first.rank));
        candidates.truncate(most);
    }
}

/// The rows that were found, in the order of the table.
struct FoundStream {
    rows: std::iter::Peekable<std::vec::IntoIter<Found>>,
    current: Option<DecoratedKey>,
}

impl PartitionStream for FoundStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        if let Some(current) = self.current.take() {
            while self.rows.next_if(|found| found.place.key == current).is_some() {}
        }
        let Some(first) = self.rows.peek() else { return Ok(None) };
        let key = first.place.key.clone();
        self.current = Some(key.clone());
        Ok(Some(PartitionHead::new(key, DeletionTime::LIVE, first.static_row.clone())))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        let Some(current) = &self.current else { return Ok(None) };
        let next = self.rows.next_if(|found| found.place.key == *current);
        Ok(next.map(|found| Unfiltered::Row(found.row)))
    }
}
