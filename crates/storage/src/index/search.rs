//! Reading a table by an index: entries of a value, and the rows that they stand for; stale
//! entries are left out.
//!
//! 1. The hidden table's partition of the value is read as a stream. Its rows are in the order of
//!    the base's partitions and clusterings, so the result is a [`PartitionStream`] of the base
//!    like any other, and a page goes on behind a key or a row.
//! 2. Entries of one partition are taken in batches of at most [`BATCH_ENTRIES`] (the first is
//!    smaller); the base's rows of a batch are read by name.
//! 3. An entry whose row is not there, or has another value by now, is stale: it is passed over,
//!    and removed at its own timestamp, so that an entry written since stays. None is removed
//!    while SSTables arrive whose entries are there before their rows, nor by a read of a time
//!    that this node's clock has not reached. For a static column the rows are those of the whole
//!    partition.
//!
//! The view of the hidden table is loaded before that of the base is, for each batch: a writer
//! applies the row before its entry.
//!
//! Agrees with `CassandraIndexSearcher`, `composites.CompositesSearcher` and `keys.KeysSearcher` of
//! `org.apache.cassandra.index.internal`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use rows::command::RingBound;
use rows::report::CommandReport;
use rows::{
    Bound, ClusteringPrefix, ClusteringValues, ColumnFilter, DataLimits, IndexSearch, PartitionHead, PartitionRange,
    PartitionStream, PrefixKind, ReadCommand, ReadContext, ReadError, ReadMode, Row, Slice, Slices, Unfiltered,
};
use schema::index::definition::{IndexDefinition, IndexPart};
use types::{CqlType, DecoratedKey};

use super::attached;
use crate::read::explain::{Observation, open_observed};
use crate::table::TableStore;
use crate::table::entries::{self, Entry};
use crate::table::indexes::IndexStore;

/// Most entries whose rows are read together.
pub const BATCH_ENTRIES: usize = 256;
/// Entries of the first batch of a partition: a read of one row takes no more.
const FIRST_BATCH_ENTRIES: usize = 16;
/// Most reads of the base in an inline read. Behind them it goes on in the background.
const INLINE_READS_MAX: u32 = 32;

/// An entry: a row of the hidden table.
pub(super) struct Hit {
    pub(super) key: Bytes,
    /// The clustering in the base; None: the entry is of a static column, or of a partition that
    /// has static columns only.
    pub(super) clustering: Option<ClusteringValues>,
    place: ClusteringValues,
    timestamp: i64,
}

/// A stream of the base's rows that an index finds.
pub struct SearchStream {
    base: Arc<TableStore>,
    index: Arc<IndexStore>,
    command: ReadCommand,
    context: ReadContext,
    value: DecoratedKey,
    hits: Box<dyn PartitionStream>,
    waiting: Option<Hit>,
    current: Option<Current>,
    stale: Vec<Entry>,
    reads_left: u32,
    removes: bool,
    /// Prefills of SSTables at the table before the first entry was read; None: one was under way.
    settled: Option<u64>,
    /// The observer of the read, for EXPLAIN; None: there is none.
    observation: Option<Observation>,
}

/// The partition that is being read.
struct Current {
    key: DecoratedKey,
    stream: Box<dyn PartitionStream>,
    /// Entries of the batch that have not met their rows yet; None: the whole partition is wanted.
    pending: Option<VecDeque<Hit>>,
}

/// The stream of the rows that a command asks for, by the most selective of the indexes that it
/// names. `removes`: stale entries are removed.
pub fn search(
    base: &Arc<TableStore>,
    command: &ReadCommand,
    context: &ReadContext,
    removes: bool,
    observation: Option<Observation>,
) -> Result<Box<dyn PartitionStream>, ReadError> {
    let nearest = attached::nearest::wanted(base, command)?;
    let wanted = attached::search::wanted(base, command)?;
    attached::guard::check(base, &wanted, nearest.is_some(), command, context)?;
    if let Some(nearest) = nearest {
        return attached::nearest::search(base, &nearest, command, context, observation);
    }
    if !wanted.is_empty() {
        return attached::search::search(base, wanted, command, context, observation);
    }
    let (index, search) = selected(base, command)?;
    // an entry whose row is not there may be of an SSTable that is left out
    let removes = removes && base.left_out().is_empty();
    // a read may be of a time to come (the client gave the time, or another node's clock is
    // ahead): a row whose TTL ends until then looks stale, and has to be found until then
    let removes = removes && command.now <= base.env.clock.now_seconds();
    context.trace(|| format!("Executing read on {} using index {}", base.name(), index.name()));
    let stream = SearchStream::open(base, &index, search, command, context, removes, observation)?;
    Ok(Box::new(stream))
}

/// The cost of reading the entries: the sources of the hidden table.
pub fn plan(base: &Arc<TableStore>, command: &ReadCommand) -> Result<CommandReport, ReadError> {
    let wanted = attached::search::wanted(base, command)?;
    let nearest = attached::nearest::wanted(base, command)?;
    if !wanted.is_empty() || nearest.is_some() {
        let nearest = nearest.iter().map(|nearest| nearest.index.name());
        let names: Vec<_> = nearest.chain(wanted.iter().map(|wanted| wanted.index.name())).collect();
        let base_read = ReadCommand { indexes: Vec::new(), ..command.clone() };
        let report = crate::read::explain::plan(base, &base_read)?;
        return Ok(CommandReport { index: Some(names.join(", ")), ..report });
    }
    let (index, search) = selected(base, command)?;
    let (_, hidden) = hidden_table_read(&index.definition, search, command);
    let report = crate::read::explain::plan(&index.store, &hidden)?;
    Ok(CommandReport { index: Some(index.name().to_owned()), ..report })
}

/// The most selective of the indexes that a command names.
fn selected<'a>(base: &TableStore, command: &'a ReadCommand) -> Result<(Arc<IndexStore>, &'a IndexSearch), ReadError> {
    let view = base.view();
    let known = command.indexes.iter().filter_map(|search| Some((view.index(&search.name)?, search)));
    let Some((index, search)) = known.min_by_key(|(index, _)| index.mean_row_count()) else {
        // dropped since the statement was planned
        let name = command.indexes.first().map_or_else(String::new, |search| search.name.to_string());
        return Err(ReadError::IndexNotAvailable { name });
    };
    if !index.state.is_built() {
        return Err(ReadError::IndexNotAvailable { name: index.name().to_owned() });
    }
    Ok((Arc::clone(index), search))
}

/// The partition of a value in the hidden table, and the read of it for a command.
fn hidden_table_read(
    definition: &IndexDefinition,
    search: &IndexSearch,
    command: &ReadCommand,
) -> (DecoratedKey, ReadCommand) {
    let value = definition.table.decorate(search.value.clone());
    let hidden = ReadCommand {
        table: Arc::clone(&definition.table),
        range: PartitionRange::Key(value.clone()),
        slices: slices(definition, command, &search.value),
        reversed: false,
        columns: ColumnFilter::All,
        now: command.now,
        limits: DataLimits::NONE,
        indexes: Vec::new(),
    };
    (value, hidden)
}

impl SearchStream {
    fn open(
        base: &Arc<TableStore>,
        index: &Arc<IndexStore>,
        search: &IndexSearch,
        command: &ReadCommand,
        context: &ReadContext,
        removes: bool,
        observation: Option<Observation>,
    ) -> Result<Self, ReadError> {
        let (value, hidden) = hidden_table_read(&index.definition, search, command);
        let settled = base.prefills.settled();
        let mut hits = match &observation {
            None => crate::read::read(&index.store, &hidden, context)?,
            Some(observation) => observation.open_index(index.name(), &index.store, &hidden, context)?,
        };
        hits.next_partition()?;
        Ok(Self {
            base: Arc::clone(base),
            index: Arc::clone(index),
            command: ReadCommand { indexes: Vec::new(), ..command.clone() },
            context: context.clone(),
            value,
            hits,
            waiting: None,
            current: None,
            stale: Vec::new(),
            reads_left: INLINE_READS_MAX,
            removes,
            settled,
            observation,
        })
    }

    /// The next live entry, which stays until it is taken.
    fn peek(&mut self) -> Result<Option<&Hit>, ReadError> {
        while self.waiting.is_none() {
            match self.hits.next_unfiltered()? {
                None => return Ok(None),
                Some(Unfiltered::Marker(_)) => {}
                Some(Unfiltered::Row(row)) if row.liveness.is_live(self.command.now) => {
                    self.waiting = hit(&self.index.definition, self.command.table.clustering.len(), &self.value, &row);
                }
                Some(Unfiltered::Row(_)) => {}
            }
        }
        Ok(self.waiting.as_ref())
    }

    /// At most `most` entries of a partition that the command wants. Empty: there are no more.
    fn batch(&mut self, key: &Bytes, most: usize) -> Result<VecDeque<Hit>, ReadError> {
        let table = Arc::clone(&self.command.table);
        let mut batch: VecDeque<Hit> = VecDeque::new();
        while self.peek()?.is_some_and(|hit| hit.key == *key) {
            let Some(hit) = self.waiting.take() else { break };
            // values of a collection: one row may stand under several paths
            if batch.back().is_some_and(|last| last.clustering == hit.clustering) {
                continue;
            }
            if batch.len() == most {
                self.waiting = Some(hit);
                break;
            }
            let slices = &self.command.slices.0;
            let is_in = |row| slices.iter().any(|slice: &Slice| slice.contains(row, &table.comparator));
            if hit.clustering.as_ref().is_none_or(|row| is_in(row)) {
                batch.push_back(hit);
            }
        }
        Ok(batch)
    }

    fn read_base(&mut self, key: &DecoratedKey, slices: Slices) -> Result<Box<dyn PartitionStream>, ReadError> {
        if self.context.mode == ReadMode::Inline {
            self.reads_left = self.reads_left.checked_sub(1).ok_or(ReadError::WouldBlock)?;
        }
        let command = ReadCommand {
            range: PartitionRange::Key(key.clone()),
            slices,
            limits: DataLimits::NONE,
            ..self.command.clone()
        };
        open_observed(self.observation.as_ref(), &self.base, &command, &self.context)
    }

    /// Opens the rows of a batch.
    fn open_batch(&mut self, key: DecoratedKey, batch: VecDeque<Hit>) -> Result<Option<PartitionHead>, ReadError> {
        let names = batch.iter().filter_map(|hit| hit.clustering.clone()).map(name);
        let mut stream = self.read_base(&key, names.collect())?;
        let head = stream.next_partition()?;
        let has_static = head.as_ref().is_some_and(|head| head.static_row.is_some());
        let pending: VecDeque<Hit> = match &head {
            None => {
                batch.into_iter().for_each(|hit| self.note_stale(hit));
                VecDeque::new()
            }
            Some(_) => batch.into_iter().filter(|hit| hit.clustering.is_some() || !has_static).collect(),
        };
        self.current = Some(Current { key, stream, pending: Some(pending) });
        Ok(head)
    }

    /// Opens a whole partition of the base, for an index on a static column.
    fn open_whole(&mut self, key: DecoratedKey) -> Result<Option<PartitionHead>, ReadError> {
        let Some(hit) = self.waiting.take() else { return Ok(None) };
        while self.peek()?.is_some_and(|other| other.key == hit.key) {
            self.waiting = None;
        }
        let mut stream = self.read_base(&key, self.command.slices.clone())?;
        let head = stream.next_partition()?;
        let row = head.as_ref().and_then(|head| head.static_row.as_ref());
        if row.is_none_or(|row| self.is_stale(row)) {
            self.note_stale(hit);
            self.remove_stale(&key);
            return Ok(None);
        }
        self.current = Some(Current { key, stream, pending: None });
        Ok(head)
    }

    fn is_stale(&self, row: &Row) -> bool {
        is_stale(&self.index.definition, row, &self.value.key, self.command.now)
    }

    fn note_stale(&mut self, hit: Hit) {
        let entry = entries::deletion_of(self.value.clone(), hit.place, hit.timestamp, self.command.now);
        self.stale.push(entry);
    }

    /// Removes the stale entries of a partition.
    fn remove_stale(&mut self, key: &DecoratedKey) {
        let stale = std::mem::take(&mut self.stale);
        // an entry that looks stale may be of a row that was about to come
        let is_settled = self.settled.is_some() && self.settled == self.base.prefills.settled();
        if self.removes && is_settled && !stale.is_empty() {
            self.index.state.stale_removed.fetch_add(stale.len() as u64, Ordering::Relaxed);
            self.index.apply(self.base.shards.of(key.token), &stale);
        }
    }

    /// Matches a row of the base with its entry. Entries before it have no row.
    fn meets_entry(&mut self, row: &Row) -> bool {
        loop {
            let pending = self.current.as_mut().and_then(|current| current.pending.as_mut());
            let Some(pending) = pending else { return true };
            let Some(hit) = pending.pop_front() else { return false };
            let comparator = &self.command.table.comparator;
            let order = hit.clustering.as_ref().map(|own| comparator.compare_values(own, &row.clustering));
            match order {
                Some(order) if order.is_eq() && !self.is_stale(row) => return true,
                Some(order) if order.is_eq() => {
                    self.note_stale(hit);
                    return false;
                }
                _ => self.note_stale(hit),
            }
        }
    }

    /// Called when the rows of the batch are passed: entries that are left have no row. Opens the
    /// next batch of the partition. False: there is none.
    fn next_batch(&mut self) -> Result<bool, ReadError> {
        let Some(Current { key, pending, .. }) = self.current.take() else { return Ok(false) };
        let is_by_name = pending.is_some();
        pending.into_iter().flatten().for_each(|hit| self.note_stale(hit));
        self.remove_stale(&key);
        if !is_by_name {
            return Ok(false);
        }
        let batch = self.batch(&key.key, BATCH_ENTRIES)?;
        if batch.is_empty() {
            return Ok(false);
        }
        self.open_batch(key, batch)?;
        Ok(true)
    }
}

impl PartitionStream for SearchStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        if let Some(current) = self.current.take() {
            self.stale.clear();
            while self.peek()?.is_some_and(|hit| hit.key == current.key.key) {
                self.waiting = None;
            }
        }
        let by_partition = self.index.definition.column.is_static();
        loop {
            let Some(hit) = self.peek()? else { return Ok(None) };
            let bytes = hit.key.clone();
            let key = DecoratedKey::new(bytes.clone());
            if self.command.range.is_past(&key) {
                return Ok(None);
            }
            if !self.command.range.contains(&key) {
                self.waiting = None;
                continue;
            }
            let head = if by_partition {
                self.open_whole(key)?
            } else {
                let batch = self.batch(&bytes, FIRST_BATCH_ENTRIES)?;
                if batch.is_empty() { None } else { self.open_batch(key, batch)? }
            };
            if head.is_some() {
                return Ok(head);
            }
            if let Some(current) = self.current.take() {
                self.remove_stale(&current.key);
            }
        }
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        loop {
            let Some(current) = &mut self.current else { return Ok(None) };
            match current.stream.next_unfiltered()? {
                Some(Unfiltered::Row(row)) if !self.meets_entry(&row) => {}
                Some(unfiltered) => return Ok(Some(unfiltered)),
                None if self.next_batch()? => {}
                None => return Ok(None),
            }
        }
    }
}

/// An entry from a row of the hidden table; None: the row does not have the values of an entry.
pub(super) fn hit(definition: &IndexDefinition, width: usize, value: &DecoratedKey, row: &Row) -> Option<Hit> {
    let key = row.clustering.first()?.clone()?;
    let mut clustering: ClusteringValues = row.clustering.iter().skip(1).take(width).cloned().collect();
    if let Some(position) = definition.omitted_clustering() {
        clustering.truncate(width.saturating_sub(1));
        clustering.insert(position.min(clustering.len()), Some(value.key.clone()));
    }
    let has_rows = !definition.column.is_static() && (width == 0 || clustering.iter().any(Option::is_some));
    let clustering = (has_rows && clustering.len() == width).then_some(clustering);
    Some(Hit { key, clustering, place: row.clustering.clone(), timestamp: row.liveness.timestamp })
}

fn name(values: ClusteringValues) -> Slice {
    Slice::of_prefix(values)
}

/// Whether the row does not have the value, or not any more.
fn is_stale(definition: &IndexDefinition, row: &Row, value: &Bytes, now: u32) -> bool {
    let cells = entries::cells(definition, row).iter().filter(|cell| cell.is_live(now));
    let (name_type, value_type) = match &definition.column.ty {
        CqlType::Map { key, value, .. } => (&**key, &**value),
        CqlType::Set { element, .. } | CqlType::List { element, .. } => (&**element, &**element),
        other => (other, other),
    };
    let is_equal = |ty: &CqlType, found: &[u8], wanted: &[u8]| types::compare(ty, found, wanted).is_eq();
    let path = |cell: &rows::Cell| cell.path.clone().unwrap_or_default();
    match definition.part {
        IndexPart::PartitionKey(_) | IndexPart::Clustering(_) => !row.is_live(now),
        IndexPart::Value | IndexPart::StaticCompact => {
            !cells.into_iter().any(|cell| is_equal(&definition.column.ty, &cell.value, value))
        }
        IndexPart::Keys => !cells.into_iter().any(|cell| is_equal(name_type, &path(cell), value)),
        IndexPart::Values => !cells.into_iter().any(|cell| is_equal(value_type, &cell.value, value)),
        IndexPart::Entries => {
            let parts = entries::component(value, 0).zip(entries::component(value, 1));
            let Some((name, wanted)) = parts else { return true };
            !cells
                .into_iter()
                .any(|cell| is_equal(name_type, &path(cell), &name) && is_equal(value_type, &cell.value, &wanted))
        }
    }
}

/// The slices of the hidden table's partition that may hold entries that a command wants.
fn slices(definition: &IndexDefinition, command: &ReadCommand, value: &Bytes) -> Slices {
    let comparator = &definition.table.comparator;
    match &command.range {
        PartitionRange::Key(key) if definition.column.is_static() => {
            Slices::from(vec![Slice { start: key_bound(&key.key, true, true), end: key_bound(&key.key, false, true) }])
        }
        PartitionRange::Key(key) => {
            let slice = |slice: &Slice| Slice {
                start: bound(definition, &key.key, &slice.start, value),
                end: bound(definition, &key.key, &slice.end, value),
            };
            Slices::normalized(command.slices.0.iter().map(slice).collect(), comparator)
        }
        PartitionRange::Range { start, end } => {
            let start = match start {
                RingBound::Key { key, inclusive } => key_bound(&key.key, true, *inclusive),
                // the hidden table has keys, whose tokens are not in it: entries before are passed
                // over
                RingBound::Open | RingBound::Token { .. } => Bound::bottom(),
            };
            let end = match end {
                RingBound::Key { key, inclusive } => key_bound(&key.key, false, *inclusive),
                RingBound::Open | RingBound::Token { .. } => Bound::top(),
            };
            Slices::from(vec![Slice { start, end }])
        }
    }
}

fn key_bound(key: &Bytes, is_start: bool, inclusive: bool) -> Bound {
    let values: ClusteringValues = std::iter::once(Some(key.clone())).collect();
    if is_start { Bound::start(values, inclusive) } else { Bound::end(values, inclusive) }
}

/// A bound of the base's rows as one of the hidden table's. If the indexed column is a clustering
/// column it is not part of the hidden table's clustering: columns behind it can be bounded only
/// for rows with exactly this value.
fn bound(definition: &IndexDefinition, key: &Bytes, bound: &Bound, value: &Bytes) -> Bound {
    let mut values: ClusteringValues = std::iter::once(Some(key.clone())).collect();
    let mut kind = bound.kind;
    for (position, own) in bound.values.iter().enumerate() {
        if definition.part == IndexPart::Clustering(position) {
            let is_the_value = own.as_ref() == Some(value);
            if is_the_value && bound.values.len() > position + 1 {
                continue;
            }
            // all of it: what is wanted is decided row by row
            kind = if bound.kind.is_start() { PrefixKind::InclStartBound } else { PrefixKind::InclEndBound };
            break;
        }
        values.push(own.clone());
    }
    ClusteringPrefix { kind, values }
}
