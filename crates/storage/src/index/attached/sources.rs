//! The places that have the terms of one condition, in the order of the table, from the entries in
//! memtables and the components of SSTables.
//!
//! Entries in memory are collected when a search begins; the rows of an SSTable are numbers until
//! one is wanted. A static column, and a column of the partition key, has one value in a partition:
//! its places are whole partitions.

use std::cmp::Ordering;
use std::sync::Arc;

use rows::command::RingBound;
use rows::{
    Cell, ColumnFilter, DataLimits, PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadError, ReadMode,
    Row, Slices, Unfiltered,
};
use schema::TableMetadata;
use sstable::SSTable;
use sstable::attached::{KeysCursor, Place, RowKeys, RowSet, TermIndex, TermRange};
use types::{DecoratedKey, Token};

use super::components_builder::local;
use crate::index::search::hit;
use crate::table::entries;
use crate::table::indexes::IndexStore;

/// Most terms and entries in memory that an inline read passes. Beyond them it goes on in the
/// background: other requests wait for its worker. A read there asks as often whether its time is
/// over.
const INLINE_ENTRIES_MAX: u64 = 1_000;

/// A condition that an index answers: the terms of one index that are wanted.
#[derive(Clone)]
pub struct Wanted {
    pub index: Arc<IndexStore>,
    pub range: TermRange,
}

impl Wanted {
    /// Whether a live row, or the static row of its partition, has a term that is wanted.
    pub fn is_met(&self, key: &DecoratedKey, static_row: Option<&Row>, row: &Row) -> bool {
        let (definition, range) = (&self.index.definition, &self.range);
        let has_term = |cell: Option<&Cell>| {
            let term = entries::term(definition, &key.key, Some(&row.clustering), cell);
            let term = term.map(|term| local(&term));
            term.is_some_and(|term| !range.is_before(&term) && !range.is_behind(&term) && range.has_part(&term))
        };
        if definition.is_of_key() {
            return has_term(None);
        }
        let of = if definition.column.is_static() { static_row } else { Some(row) };
        let cells = of.map(|row| entries::cells(definition, row)).unwrap_or_default();
        cells.iter().any(|cell| !cell.is_tombstone() && has_term(Some(cell)))
    }
}

/// The sources of a condition before any row is looked for.
pub struct Sources {
    pub wanted: Wanted,
    /// Places in memory, sorted, each place once.
    memory: Vec<Place>,
    /// True: there are more places in memory than were to be collected, and the rest is missing.
    pub is_cut: bool,
    sstables: Vec<(Arc<RowKeys>, Arc<TermIndex>)>,
    /// The keys of all SSTables, those without a place for the condition included.
    keys: Vec<Arc<RowKeys>>,
    /// Estimated number of places.
    pub estimate: u64,
    /// True: `estimate` is only a lower bound, because it was enough to know that there are so
    /// many.
    is_least: bool,
    /// Number of places in memory.
    in_memory: u64,
    /// Whether the places are whole partitions.
    pub by_partition: bool,
}

impl Sources {
    /// Collects the entries in memory, about `most` of them. To be called before the base's view is
    /// loaded.
    pub fn in_memory(
        wanted: Wanted,
        table: &TableMetadata,
        command: &ReadCommand,
        context: &ReadContext,
        most: usize,
    ) -> Result<Self, ReadError> {
        let (memory, is_cut) = memory(&wanted, table, command, context, most)?;
        let by_partition = wanted.index.definition.is_of_partition() && !table.clustering.is_empty();
        let estimate = match is_cut {
            false => memory.len() as u64,
            // entries of any term: at least those that are missing
            true => wanted.index.store.view().every_memtable().map(|memtable| memtable.counts().1 as u64).sum(),
        };
        Ok(Self {
            estimate,
            is_least: false,
            in_memory: estimate,
            wanted,
            memory,
            is_cut,
            sstables: Vec::new(),
            keys: Vec::new(),
            by_partition,
        })
    }

    /// Adds an SSTable. False: it lacks the components. If there are more places than `enough` the
    /// estimate need not be exact.
    pub fn add(&mut self, sstable: &SSTable, enough: u64, mode: ReadMode) -> Result<bool, ReadError> {
        let Some((keys, terms)) = sstable.attached().of_index(self.wanted.index.name()) else { return Ok(false) };
        self.keys.push(Arc::clone(&keys));
        let estimate = terms.estimate(&self.wanted.range, enough, mode)?;
        self.is_least |= estimate >= enough;
        if estimate > 0 {
            self.estimate += estimate;
            self.sstables.push((keys, terms));
        }
        Ok(true)
    }

    /// Completes the estimate, if it is only a lower bound.
    pub fn estimate_all(&mut self, mode: ReadMode) -> Result<(), ReadError> {
        if !std::mem::take(&mut self.is_least) {
            return Ok(());
        }
        self.estimate = self.in_memory;
        for (_, terms) in &self.sstables {
            self.estimate += terms.estimate(&self.wanted.range, u64::MAX, mode)?;
        }
        Ok(())
    }

    /// Whether a partition has fewer rows than `most` in all SSTables together. Deleted rows
    /// count, and a row in several SSTables counts several times.
    pub fn has_fewer_rows(&self, key: &DecoratedKey, most: u32, mode: ReadMode) -> Result<bool, ReadError> {
        let mut found = Vec::with_capacity(self.keys.len());
        for keys in &self.keys {
            found.push((keys, keys.blocks_of(key, most, mode)?));
        }
        if found.iter().fold(0, |sum: u32, (_, blocks)| sum.saturating_add(blocks.rows_max())) < most {
            return Ok(true);
        }
        let mut rows: u32 = 0;
        for (keys, blocks) in found {
            rows = rows.saturating_add(keys.rows_in(key, &blocks, mode)?);
        }
        Ok(rows < most)
    }

    /// Begins to look for the places.
    pub fn open(self, mode: ReadMode) -> Result<Union, ReadError> {
        let mut sources = vec![Source::Memory { places: self.memory, at: 0 }];
        for (keys, terms) in self.sstables {
            let set = terms.rows(&self.wanted.range, mode)?;
            let keys = KeysCursor::new(keys, mode);
            let mut source = SSTableSource { set, hint: 0, next: 0, keys, place: None };
            source.load()?;
            sources.push(Source::SSTable(Box::new(source)));
        }
        Ok(Union { by_partition: self.by_partition, sources })
    }
}

/// The entries of the memtables. True: there are more than `most`, and some are missing.
fn memory(
    wanted: &Wanted,
    table: &TableMetadata,
    command: &ReadCommand,
    context: &ReadContext,
    most: usize,
) -> Result<(Vec<Place>, bool), ReadError> {
    let mut places = Vec::new();
    let mut is_cut = false;
    entries_in_memory(wanted, table, command, context, |_, place| {
        is_cut = places.len() >= most;
        if !is_cut {
            places.push(place);
        }
        !is_cut
    })?;
    places.sort_by(|a, b| a.compare(b, table));
    places.dedup_by(|a, b| a.compare(b, table).is_eq());
    Ok((places, is_cut))
}

/// Gives the value and the place of each entry in memory that has a wanted term, until `give` wants
/// no more. Entries of other terms, and those out of the range of the command, are passed.
pub fn entries_in_memory(
    wanted: &Wanted,
    table: &TableMetadata,
    command: &ReadCommand,
    context: &ReadContext,
    mut give: impl FnMut(&DecoratedKey, Place) -> bool,
) -> Result<(), ReadError> {
    let definition = &wanted.index.definition;
    let start = match &wanted.range.lower {
        None => RingBound::Open,
        Some((term, _)) => {
            let key = DecoratedKey { token: Token::LOCAL, key: bytes::Bytes::new(), local: Some(term[..].into()) };
            RingBound::Key { key, inclusive: true }
        }
    };
    let hidden = ReadCommand {
        table: Arc::clone(&definition.table),
        range: PartitionRange::Range { start, end: RingBound::Open },
        slices: Slices::all(),
        reversed: false,
        columns: ColumnFilter::All,
        now: command.now,
        limits: DataLimits::NONE,
        indexes: Vec::new(),
    };
    let mut stream = crate::read::read(&wanted.index.store, &hidden, context)?;
    let width = table.clustering.len();
    let mut passed: u64 = 0;
    let mut pass = || {
        passed += 1;
        match (passed.is_multiple_of(INLINE_ENTRIES_MAX), context.mode) {
            (true, ReadMode::Inline) => Err(ReadError::WouldBlock),
            (true, ReadMode::Background) if context.is_over() => Err(ReadError::TimedOut),
            _ => Ok(()),
        }
    };
    while let Some(head) = stream.next_partition()? {
        pass()?;
        let term = local(&head.key);
        if wanted.range.is_behind(&term) {
            break;
        }
        if wanted.range.is_before(&term) || !wanted.range.has_part(&term) {
            continue;
        }
        while let Some(unfiltered) = stream.next_unfiltered()? {
            pass()?;
            let Unfiltered::Row(row) = unfiltered else { continue };
            if !row.liveness.is_live(command.now) {
                continue;
            }
            let Some(hit) = hit(definition, width, &head.key, &row) else { continue };
            let key = DecoratedKey::new(hit.key);
            if !command.range.contains(&key) {
                continue;
            }
            let by_partition = definition.is_of_partition() && width > 0;
            let place = match hit.clustering {
                Some(clustering) if !by_partition => Place::row(key, clustering),
                _ => Place::partition(key),
            };
            if !give(&head.key, place) {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The rows of one SSTable.
struct SSTableSource {
    set: RowSet,
    hint: usize,
    /// Number of the next row; rows before it are passed.
    next: u32,
    keys: KeysCursor,
    /// The place of row `next`; None: there are no more.
    place: Option<Place>,
}

impl SSTableSource {
    fn load(&mut self) -> Result<(), ReadError> {
        self.place = match self.set.at_or_after(self.next, &mut self.hint) {
            None => None,
            Some(row) => {
                self.next = row;
                Some(self.keys.place(row)?)
            }
        };
        Ok(())
    }

    fn advance(&mut self) -> Result<(), ReadError> {
        self.next = self.next.saturating_add(1);
        self.load()
    }

    /// Goes to the first row from `row` on, and gives its number. Its key is not read, so `place`
    /// is out of date afterwards.
    fn skip_to(&mut self, row: u32) -> Option<u32> {
        let found = self.set.at_or_after(row.max(self.next), &mut self.hint);
        match found {
            Some(found) => self.next = found,
            None => self.place = None,
        }
        found
    }

    fn seek(&mut self, place: &Place, table: &TableMetadata) -> Result<(), ReadError> {
        if self.place.as_ref().is_none_or(|own| own.compare(place, table).is_ge()) {
            return Ok(());
        }
        self.next = self.keys.lower_bound(place, table)?.max(self.next.saturating_add(1));
        self.load()
    }
}

enum Source {
    Memory { places: Vec<Place>, at: usize },
    SSTable(Box<SSTableSource>),
}

impl Source {
    fn place(&self) -> Option<&Place> {
        match self {
            Self::Memory { places, at } => places.get(*at),
            Self::SSTable(source) => source.place.as_ref(),
        }
    }

    fn advance(&mut self) -> Result<(), ReadError> {
        match self {
            Self::Memory { at, .. } => *at += 1,
            Self::SSTable(source) => source.advance()?,
        }
        Ok(())
    }

    fn seek(&mut self, place: &Place, table: &TableMetadata) -> Result<(), ReadError> {
        match self {
            Self::Memory { places, at } => {
                let rest = places.get(*at..).unwrap_or_default();
                *at += rest.partition_point(|own| own.compare(place, table).is_lt());
            }
            Self::SSTable(source) => source.seek(place, table)?,
        }
        Ok(())
    }
}

/// The outcome of [`next_of_one`].
pub enum OfOne {
    /// The next place, which is passed by this; None: there are no more.
    Place(Option<Place>),
    /// The conditions have places in several sources, so that their keys have to be compared.
    Several,
}

/// The next place that all conditions have, if each has only rows of one SSTable left: row numbers
/// are compared, and only the key of a row that all conditions have is read. From then on no other
/// rows come, so the places of the sources need not be kept up to date.
pub fn next_of_one(unions: &mut [Union]) -> Result<OfOne, ReadError> {
    let mut sources = Vec::with_capacity(unions.len());
    for union in unions {
        let Some(source) = union.alone() else { return Ok(OfOne::Several) };
        sources.push(source);
    }
    let Some((lead, others)) = sources.split_first_mut() else { return Ok(OfOne::Several) };
    if others.iter().any(|other| !Arc::ptr_eq(other.keys.keys(), lead.keys.keys())) {
        return Ok(OfOne::Several);
    }
    let mut sought = 0;
    'rows: loop {
        let Some(row) = lead.skip_to(sought) else { return Ok(OfOne::Place(None)) };
        for other in others.iter_mut() {
            match other.skip_to(row) {
                None => return Ok(OfOne::Place(None)),
                Some(found) if found > row => {
                    sought = found;
                    continue 'rows;
                }
                Some(_) => {}
            }
        }
        let place = lead.keys.place(row)?;
        lead.next = row.saturating_add(1);
        return Ok(OfOne::Place(Some(place)));
    }
}

/// The places of one condition, from all sources, ascending.
pub struct Union {
    /// Whether a place stands for its whole partition.
    pub by_partition: bool,
    sources: Vec<Source>,
}

impl Union {
    /// Whether no source has a place left.
    pub fn is_done(&self) -> bool {
        self.sources.iter().all(|source| source.place().is_none())
    }

    /// The only source that has places left, if it is an SSTable and its places are rows; None:
    /// otherwise.
    fn alone(&mut self) -> Option<&mut SSTableSource> {
        if self.by_partition {
            return None;
        }
        let mut left = self.sources.iter_mut().filter(|source| source.place().is_some());
        match (left.next(), left.next()) {
            (Some(Source::SSTable(source)), None) => Some(source.as_mut()),
            _ => None,
        }
    }

    /// The next place, which stays until it is passed.
    pub fn peek(&self, table: &TableMetadata) -> Option<&Place> {
        let places = self.sources.iter().filter_map(Source::place);
        places.min_by(|a, b| a.compare(b, table))
    }

    /// Passes a place.
    pub fn pass(&mut self, place: &Place, table: &TableMetadata) -> Result<(), ReadError> {
        for source in &mut self.sources {
            while source.place().is_some_and(|own| own.compare(place, table) == Ordering::Equal) {
                source.advance()?;
            }
        }
        Ok(())
    }

    /// Passes all places before a place.
    pub fn seek(&mut self, place: &Place, table: &TableMetadata) -> Result<(), ReadError> {
        self.sources.iter_mut().try_for_each(|source| source.seek(place, table))
    }
}
