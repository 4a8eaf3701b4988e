//! Reading a table by its attached indexes.
//!
//! 1. The searches of a command become a range of terms for each index. Entries in memory are
//!    collected before the base's view is loaded: a flush publishes the SSTable, with its
//!    components, before it gives the memtables up.
//! 2. The condition with the fewest places leads; among those by rows, if there is one. Others take
//!    part where they have at most [`WORTH`] times as many places: beyond that reading the row, and
//!    the statement's conditions, cost less than looking the place up.
//! 3. Where the leading condition has many places, the read begins as a scan (`super::scanned`).
//! 4. Places that all of them have, in the order of the table, are read from the base by name, in
//!    batches of one partition each; a place that is a partition is read with the command's slices.
//!
//! The search gives a [`PartitionStream`] of the base like any other. Its reader leaves out rows
//! that do not meet the conditions (any more): a statement checks its conditions on every row.
//!
//! Agrees with
//! `org.apache.cassandra.index.sai.plan.{QueryController,StorageAttachedIndexSearcher}`.

use std::sync::Arc;

use bytes::Bytes;
use rows::command::RingBound;
use rows::{
    ClusteringValues, DataLimits, PartitionHead, PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadError,
    ReadMode, SearchOperator, Slice, Slices, Unfiltered,
};
use schema::TableMetadata;
use schema::index::definition::IndexDefinition;
use sstable::attached::{Place, Position, TermPart, TermRange};
use types::DecoratedKey;

use super::components_builder::local;
use super::scanned::{Allowance, ScannedStream};
use super::sources::{OfOne, Sources, Union, Wanted, next_of_one};
use crate::read::explain::{Observation, open_observed};
use crate::table::TableStore;
use crate::table::indexes::IndexStore;

/// Factor: another condition takes part if it has at most this many times as many places as the
/// leading one.
const WORTH: u64 = 16;
/// Number of places of the leading condition above which a read of one partition asks how many
/// rows the partition has. If there are fewer rows than places, reading all of them costs less
/// than finding the places.
const PARTITION_ROWS: u64 = 16;
/// Number of rows from which on a partition is read by the index in any case: deleted rows count,
/// too, and a read that passes many deleted rows is refused (`tombstone_failure_threshold`).
const PARTITION_ROWS_MAX: u32 = 4_096;
/// Number of places of the leading condition from which on a read begins as a scan
/// (`super::scanned`). Finding fewer costs little.
const SCANNED_PLACES: u64 = 4_096;
/// Entries in memory that are collected for a condition before it is known that all of them are
/// needed.
pub(super) const MEMORY_PLACES: usize = 16 << 10;
const _: () = assert!(SCANNED_PLACES <= MEMORY_PLACES as u64, "a condition that is cut is scanned for");
/// Most rows of a partition that are read together.
const BATCH_ROWS: usize = 256;
/// Rows of the first batch of a partition: a page may want no more.
const FIRST_BATCH_ROWS: usize = 16;
/// Most reads of the base in an inline read. Behind them it goes on in the background.
const INLINE_READS_MAX: u32 = 32;

/// The attached indexes that a command names, each with its wanted terms. Empty: the command names
/// none.
pub fn wanted(base: &TableStore, command: &ReadCommand) -> Result<Vec<Wanted>, ReadError> {
    let view = base.view();
    let mut wanted: Vec<Wanted> = Vec::new();
    for search in &command.indexes {
        let Some(index) = view.index(&search.name).filter(|index| index.definition.is_attached()) else { continue };
        if !index.state.is_built() {
            return Err(ReadError::IndexNotAvailable { name: index.name().to_owned() });
        }
        let term = local(&index.definition.term(search.value.clone())).to_vec();
        let mut range = TermRange::default();
        match search.operator {
            SearchOperator::Eq => range = TermRange::one(&term),
            SearchOperator::Gt => range.lower = Some((term, false)),
            SearchOperator::Gte => range.lower = Some((term, true)),
            SearchOperator::Lt => range.upper = Some((term, false)),
            SearchOperator::Lte => range.upper = Some((term, true)),
            SearchOperator::Prefix => range = of_prefix(&index.definition, &search.value),
            SearchOperator::Suffix => range.part = TermPart::of(&index.definition.apply_text_form(&search.value), true),
            SearchOperator::Contains => {
                range.part = TermPart::of(&index.definition.apply_text_form(&search.value), false)
            }
            SearchOperator::Ann => continue,
        }
        add(&mut wanted, index, range);
    }
    Ok(wanted)
}

/// The range of terms of texts that begin with `prefix`. Behind a zero byte the stored forms of
/// texts differ from the texts, so the range also has terms that agree only before that byte.
fn of_prefix(definition: &IndexDefinition, prefix: &Bytes) -> TermRange {
    let prefix = definition.apply_text_form(prefix);
    let length = prefix.iter().position(|byte| *byte == 0).unwrap_or(prefix.len());
    // the text itself comes first. Its form without the byte that ends it would not do: memtables
    // order forms with a separator behind the shorter one, so that the text, and texts that go on
    // with a lesser byte, such as a digit, would count as less
    let lower = local(&definition.table.decorate(prefix.slice(..length))).to_vec();
    let mut upper = lower.clone();
    // the byte that ends a form becomes one that is greater than every byte of a text
    if let Some(end) = upper.last_mut() {
        *end = 0xff;
    }
    TermRange { lower: Some((lower, true)), upper: Some((upper, false)), part: None }
}

/// Adds a condition. Two bounds of the same index become one range; other conditions stand beside
/// each other.
fn add(wanted: &mut Vec<Wanted>, index: &Arc<IndexStore>, range: TermRange) {
    let fits = |own: &TermRange| {
        (own.lower.is_none() && own.upper.is_some() && range.lower.is_some() && range.upper.is_none())
            || (own.upper.is_none() && own.lower.is_some() && range.upper.is_some() && range.lower.is_none())
    };
    match wanted.iter_mut().find(|own| own.index.name() == index.name() && fits(&own.range)) {
        Some(own) => {
            own.range.lower = own.range.lower.take().or(range.lower);
            own.range.upper = own.range.upper.take().or(range.upper);
        }
        None => wanted.push(Wanted { index: Arc::clone(index), range }),
    }
}

/// The stream of the rows that a command asks for: by the places of its conditions, or, if these
/// are many, by a scan that may go on by places.
pub fn search(
    base: &Arc<TableStore>,
    wanted: Vec<Wanted>,
    command: &ReadCommand,
    context: &ReadContext,
    observation: Option<Observation>,
) -> Result<Box<dyn PartitionStream>, ReadError> {
    let mut all = sources(base, &wanted, command, context, MEMORY_PLACES)?;
    if let Some(stream) = of_small_partition(base, &mut all, command, context, &observation)? {
        return Ok(stream);
    }
    match all.first() {
        Some(lead) if lead.estimate >= SCANNED_PLACES && !command.reversed => {
            let (name, places) = (lead.wanted.index.name(), lead.estimate);
            context.trace(|| format!("Scanning before index {name} is used: about {places} places"));
            let allowance = Allowance::of_places(places);
            let stream = ScannedStream::open(base, wanted, command, context, observation, allowance)?;
            Ok(Box::new(stream))
        }
        Some(lead) if lead.is_cut => by_places(base, wanted, command, context, observation),
        _ => found(base, all, command, context, observation),
    }
}

/// The stream of the rows that a command asks for, by the places of its conditions.
pub fn by_places(
    base: &Arc<TableStore>,
    wanted: Vec<Wanted>,
    command: &ReadCommand,
    context: &ReadContext,
    observation: Option<Observation>,
) -> Result<Box<dyn PartitionStream>, ReadError> {
    let mut all = sources(base, &wanted, command, context, MEMORY_PLACES)?;
    if all.first().is_some_and(|lead| lead.is_cut) {
        all = sources(base, &wanted, command, context, usize::MAX)?;
    }
    if let Some(stream) = of_small_partition(base, &mut all, command, context, &observation)? {
        return Ok(stream);
    }
    found(base, all, command, context, observation)
}

/// The sources of each condition; if one has few places it comes first. About `most` entries in
/// memory are collected for each. For a read of one partition that has few rows it suffices to
/// know that the places are more: [`of_small_partition`] goes on from there.
fn sources(
    base: &Arc<TableStore>,
    wanted: &[Wanted],
    command: &ReadCommand,
    context: &ReadContext,
    most: usize,
) -> Result<Vec<Sources>, ReadError> {
    let mut all = Vec::new();
    for wanted in wanted {
        all.push(Sources::in_memory(wanted.clone(), &command.table, command, context, most)?);
    }
    let enough = if matches!(command.range, PartitionRange::Key(_)) { PARTITION_ROWS_MAX.into() } else { u64::MAX };
    let view = base.view();
    for sources in &mut all {
        for sstable in &view.sstables {
            if !sources.add(sstable, enough, context.mode)? {
                let name = sources.wanted.index.name().to_owned();
                tracing::error!(index = name, sstable = sstable.descriptor().prefix(), "an SSTable lacks its index");
                return Err(ReadError::IndexNotAvailable { name });
            }
        }
    }
    lead_first(&mut all);
    Ok(all)
}

fn lead_first(all: &mut [Sources]) {
    all.sort_by_key(|sources| (sources.by_partition, sources.is_cut, sources.estimate));
}

/// The stream of a partition that has fewer rows than there are places, as a whole. None: the read
/// is not of one partition, or the partition has more rows; then the places of each condition are
/// estimated completely.
fn of_small_partition(
    base: &Arc<TableStore>,
    all: &mut [Sources],
    command: &ReadCommand,
    context: &ReadContext,
    observation: &Option<Observation>,
) -> Result<Option<Box<dyn PartitionStream>>, ReadError> {
    let (PartitionRange::Key(key), Some(lead)) = (&command.range, all.first()) else { return Ok(None) };
    let places = lead.estimate;
    let most = u32::try_from(places).unwrap_or(u32::MAX).min(PARTITION_ROWS_MAX);
    let has_fewer_rows = || {
        let view = base.view();
        let in_memory: usize = view.memtables_of(base.shards, key).iter().map(|memtable| memtable.rows_of(key)).sum();
        let most = most.saturating_sub(u32::try_from(in_memory).unwrap_or(u32::MAX));
        Ok::<_, ReadError>(most > 0 && lead.has_fewer_rows(key, most, context.mode)?)
    };
    if places <= PARTITION_ROWS || !has_fewer_rows()? {
        all.iter_mut().try_for_each(|sources| sources.estimate_all(context.mode))?;
        lead_first(all);
        return Ok(None);
    }
    context.trace(|| format!("Using no index: the partition has fewer rows than {places} places"));
    let whole = ReadCommand { indexes: Vec::new(), limits: DataLimits::NONE, ..command.clone() };
    open_observed(observation.as_ref(), base, &whole, context).map(Some)
}

/// The stream of the rows at the places that all conditions have.
fn found(
    base: &Arc<TableStore>,
    all: Vec<Sources>,
    command: &ReadCommand,
    context: &ReadContext,
    observation: Option<Observation>,
) -> Result<Box<dyn PartitionStream>, ReadError> {
    let least = all.first().map_or(0, |sources| sources.estimate);
    let mut unions = Vec::new();
    for (at, sources) in all.into_iter().enumerate() {
        let takes_part = at == 0 || (!sources.is_cut && sources.estimate <= least.saturating_mul(WORTH));
        context.trace(|| {
            let what = if takes_part { "Using" } else { "Not using" };
            format!("{what} index {}: about {} places", sources.wanted.index.name(), sources.estimate)
        });
        if takes_part {
            unions.push(sources.open(context.mode)?);
        }
    }
    let mut stream = SearchStream {
        base: Arc::clone(base),
        command: ReadCommand { indexes: Vec::new(), ..command.clone() },
        context: context.clone(),
        table: Arc::clone(&command.table),
        unions,
        waiting: None,
        current: None,
        reads_left: INLINE_READS_MAX,
        observation,
    };
    stream.begin()?;
    Ok(Box::new(stream))
}

/// A stream of the base's rows that attached indexes find.
struct SearchStream {
    base: Arc<TableStore>,
    command: ReadCommand,
    context: ReadContext,
    table: Arc<TableMetadata>,
    /// The conditions; the first one leads. If its places are whole partitions, those of all
    /// conditions are.
    unions: Vec<Union>,
    /// The next place that all conditions have, until it is taken.
    waiting: Option<Place>,
    current: Option<Current>,
    reads_left: u32,
    /// The observer of the read, for EXPLAIN; None: there is none.
    observation: Option<Observation>,
}

/// The partition that is being read, and the rest of its rows.
struct Current {
    key: DecoratedKey,
    stream: Box<dyn PartitionStream>,
    /// The stream has the whole partition.
    is_whole: bool,
}

impl SearchStream {
    /// Passes the places before the range and, in a single partition, those before the slices.
    fn begin(&mut self) -> Result<(), ReadError> {
        let start = match &self.command.range {
            PartitionRange::Key(key) => {
                let whole = self.command.slices.0.first();
                let row = whole.map(|slice| &slice.start.values).filter(|values| is_whole(values, &self.table));
                match row {
                    Some(row) => Place::row(key.clone(), row.clone()),
                    None => Place::partition(key.clone()),
                }
            }
            PartitionRange::Range { start: RingBound::Key { key, .. }, .. } => Place::partition(key.clone()),
            PartitionRange::Range { start: RingBound::Token { token, .. }, .. } => {
                Place::partition(DecoratedKey::at(*token, bytes::Bytes::new()))
            }
            PartitionRange::Range { start: RingBound::Open, .. } => return Ok(()),
        };
        let table = Arc::clone(&self.table);
        let start = match self.unions.first() {
            Some(first) if first.by_partition => Place::partition(start.key),
            _ => start,
        };
        self.unions.first_mut().map_or(Ok(()), |first| first.seek(&start, &table))
    }

    /// The next place that all conditions have, in the range and the slices.
    fn peek(&mut self) -> Result<Option<&Place>, ReadError> {
        while self.waiting.is_none() {
            let Some(place) = self.next_place()? else { break };
            if self.command.range.is_past(&place.key) {
                self.unions.clear();
                break;
            }
            let is_wanted = match &place.position {
                Position::Partition => true,
                Position::Row(row) => self.command.slices.contains(row, &self.table.comparator),
            };
            if is_wanted && self.command.range.contains(&place.key) {
                self.waiting = Some(place);
            }
        }
        Ok(self.waiting.as_ref())
    }

    /// Takes the next place that all conditions have.
    fn next_place(&mut self) -> Result<Option<Place>, ReadError> {
        let table = &*self.table;
        if self.unions.iter().any(Union::is_done) {
            return Ok(None);
        }
        if let OfOne::Place(place) = next_of_one(&mut self.unions)? {
            return Ok(place);
        }
        let Some((lead, others)) = self.unions.split_first_mut() else { return Ok(None) };
        'places: loop {
            let Some(place) = lead.peek(table).cloned() else { return Ok(None) };
            for other in others.iter_mut() {
                let sought = match other.by_partition && !lead.by_partition {
                    true => Place::partition(place.key.clone()),
                    false => place.clone(),
                };
                other.seek(&sought, table)?;
                let Some(found) = other.peek(table) else { return Ok(None) };
                if found.compare(&sought, table).is_eq() {
                    continue;
                }
                let next = found.clone();
                assert!(next.compare(&sought, table).is_gt(), "a search passes what comes before");
                lead.seek(&next, table)?;
                continue 'places;
            }
            lead.pass(&place, table)?;
            return Ok(Some(place));
        }
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

    /// Opens the next rows of a partition, at most so many at a time, or all of it; gives its head.
    /// None: the partition has nothing more that is wanted.
    fn open_next(&mut self, key: &DecoratedKey, most: usize) -> Result<Option<PartitionHead>, ReadError> {
        loop {
            self.current = None;
            let (names, is_whole) = self.batch(key, most)?;
            if names.is_empty() && !is_whole {
                return Ok(None);
            }
            let slices = if is_whole { self.command.slices.clone() } else { names.into_iter().collect() };
            let mut stream = self.read_base(key, slices)?;
            if let Some(head) = stream.next_partition()? {
                self.current = Some(Current { key: key.clone(), stream, is_whole });
                return Ok(Some(head));
            }
        }
    }

    /// The next rows of a partition; true: the whole partition is wanted.
    fn batch(&mut self, key: &DecoratedKey, most: usize) -> Result<(Vec<Slice>, bool), ReadError> {
        let mut names: Vec<Slice> = Vec::new();
        while names.len() < most && self.peek()?.is_some_and(|place| place.key == *key) {
            match self.waiting.take().map(|place| place.position) {
                Some(Position::Row(row)) => names.push(Slice::of_prefix(row)),
                Some(Position::Partition) => return Ok((names, true)),
                None => break,
            }
        }
        Ok((names, false))
    }
}

/// Whether a clustering has a value for each column.
fn is_whole(values: &ClusteringValues, table: &TableMetadata) -> bool {
    !values.is_empty() && values.len() == table.clustering.len()
}

impl PartitionStream for SearchStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        if let Some(current) = self.current.take() {
            while self.peek()?.is_some_and(|place| place.key == current.key) {
                self.waiting = None;
            }
        }
        loop {
            let Some(place) = self.peek()? else { return Ok(None) };
            let key = place.key.clone();
            let head = self.open_next(&key, FIRST_BATCH_ROWS)?;
            if head.is_some() {
                return Ok(head);
            }
        }
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        loop {
            let Some(current) = &mut self.current else { return Ok(None) };
            if let Some(unfiltered) = current.stream.next_unfiltered()? {
                return Ok(Some(unfiltered));
            }
            if current.is_whole {
                return Ok(None);
            }
            let key = current.key.clone();
            if self.open_next(&key, BATCH_ROWS)?.is_none() {
                return Ok(None);
            }
        }
    }
}
