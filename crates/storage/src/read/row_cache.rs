//! Reads of a partition by way of the row cache: the data of SSTables comes from there, memtables
//! are read beside it.
//!
//! 1. The SSTables that may hold the partition (keys' range, filter) are named. An entry of
//!    exactly these files, under this schema, is valid.
//! 2. It answers a read whose slices begin in what it covers; it then gives the rows it has, and
//!    SSTables are opened only if the reader goes on behind them. An entry of a whole partition
//!    answers everything, reversed reads too.
//! 3. Where there is none, a read that begins at the partition's start makes one (any read, when
//!    the table wants whole partitions).
//!
//! Agrees in role with `org.apache.cassandra.db.SinglePartitionReadCommand.getThroughCache`.

use std::sync::Arc;

use bytes::Bytes;
use rows::codec::{Decoded, Framing, decode_static_row, decode_unfiltered, encode_marker, encode_row};
use rows::range_tombstones::{as_end, as_start, marker_at};
use rows::{
    Bound, MergeStream, PartitionHead, PartitionRange, PartitionStream, RangeTombstoneMarker, ReadCommand, ReadContext,
    ReadError, ReadMode, Row, Slice, Slices, Unfiltered,
};
use sstable::clip::{Clip, Step};
use sstable::{KeyHash, SSTable};
use types::DecoratedKey;

use super::observer::{NoObserver, ReadObserver};
use super::{budget, exclusion, in_memtables};
use crate::caches::rows::{CachedPartition, Form, rows_wanted};
use crate::table::TableStore;
use crate::table::view::View;

/// Why an SSTable is left out.
pub(super) const IN_CACHE: &str = "the row cache has what it holds of the partition";

/// The SSTables that may hold a partition.
struct Sources<'a> {
    key: &'a DecoratedKey,
    sstables: Vec<&'a Arc<SSTable>>,
}

impl<'a> Sources<'a> {
    /// The sources for a read that the row cache is for. None: the read, or the table, does not
    /// use the row cache, or no SSTable has the partition.
    fn of(store: &TableStore, view: &'a View, command: &'a ReadCommand) -> Option<(Self, u32)> {
        let PartitionRange::Key(key) = &command.range else { return None };
        if store.caches.rows.is_off() || view.sstables.is_empty() || view.table.local_order.is_some() {
            return None;
        }
        let wanted = rows_wanted(&view.table)?;
        let hash = KeyHash::of(&key.key);
        let sstables: Vec<_> = view.sstables.iter().filter(|sstable| sstable.may_contain(key, hash)).collect();
        (!sstables.is_empty()).then_some((Self { key, sstables }, wanted))
    }

    fn are_of(&self, view: &View, entry: &CachedPartition) -> bool {
        Arc::ptr_eq(&entry.form.table, &view.table)
            && entry.sources.len() == self.sstables.len()
            && entry.sources.iter().zip(&self.sstables).all(|(file, sstable)| *file == sstable.file_id())
    }

    fn open<W: ReadObserver>(
        &self,
        view: &View,
        command: &ReadCommand,
        context: &ReadContext,
        observer: &mut W,
    ) -> Result<Box<dyn PartitionStream>, ReadError> {
        let streams: Result<Vec<_>, _> =
            self.sstables.iter().map(|sstable| observer.sstable(sstable, command, context)).collect();
        Ok(MergeStream::boxed(&view.table, streams?, command.reversed))
    }
}

/// The stream of a read that the row cache can answer, or can be filled to answer; None: it is
/// read as any other.
pub(super) fn read<W: ReadObserver>(
    store: &TableStore,
    view: &View,
    command: &ReadCommand,
    context: &ReadContext,
    observer: &mut W,
) -> Result<Option<Box<dyn PartitionStream>>, ReadError> {
    let Some((sources, wanted)) = Sources::of(store, view, command) else { return Ok(None) };
    let cache = &store.caches.rows;
    let known = cache.get(store.id, &sources.key.key).filter(|entry| sources.are_of(view, entry));
    let hit = known.as_ref().is_some_and(|entry| answers(entry, command));
    cache.count(hit);
    let entry = match known {
        Some(entry) => entry,
        None if wanted == u32::MAX || begins_at_start(command) => {
            let entry = Arc::new(make(store, view, &sources, wanted, command, context, observer)?);
            cache.insert(store.id, &sources.key.key, &entry);
            entry
        }
        None => return Ok(None),
    };
    if !answers(&entry, command) {
        return Ok(None);
    }
    context.trace(|| if hit { "Row cache hit".to_owned() } else { "Row cache miss".to_owned() });
    let mut streams = in_memtables(store, view, command, context, observer);
    let source = observer.row_cache(entry.size(), hit);
    let (inside, behind) = split(&command.slices, entry.covered_to.as_ref(), view);
    if W::LOOKS && hit {
        tell_skipped(view, command, behind.is_none(), observer);
    }
    let rest = match behind {
        None => RestOfRead::None,
        Some(slices) => {
            let command = ReadCommand { slices, ..command.clone() };
            if W::LOOKS {
                RestOfRead::Open(sources.open(view, &command, context, observer)?)
            } else {
                let sstables = sources.sstables.iter().map(|sstable| Arc::clone(sstable)).collect();
                RestOfRead::Closed(Box::new(Closed { sstables, command, context: context.clone() }))
            }
        }
    };
    streams.push(observer.wrap_stream(source, Box::new(CachedStream::new(entry, inside, command.reversed, rest))));
    Ok(Some(MergeStream::boxed(&view.table, streams, command.reversed)))
}

/// Puts a partition into the row cache, if its table wants that. The keys that were saved are read
/// again in this way.
pub(crate) fn warm(store: &TableStore, key: &DecoratedKey) -> Result<(), ReadError> {
    let view = store.view();
    let command = ReadCommand::whole(&view.table, PartitionRange::Key(key.clone()));
    let Some((sources, wanted)) = Sources::of(store, &view, &command) else { return Ok(()) };
    let known = store.caches.rows.peek(store.id, &key.key);
    if known.is_some_and(|entry| sources.are_of(&view, &entry)) {
        return Ok(());
    }
    let context = ReadContext::new(ReadMode::Background);
    let entry = make(store, &view, &sources, wanted, &command, &context, &mut NoObserver)?;
    store.caches.rows.insert(store.id, &key.key, &Arc::new(entry));
    Ok(())
}

/// Bytes of the entry that would answer a read now, and whether SSTables are read behind it if the
/// reader goes on; None: there is none.
pub(super) fn would_answer(store: &TableStore, view: &View, command: &ReadCommand) -> Option<(u64, bool)> {
    let (sources, _) = Sources::of(store, view, command)?;
    let entry = store.caches.rows.peek(store.id, &sources.key.key)?;
    let answers = sources.are_of(view, &entry) && answers(&entry, command);
    answers.then(|| (entry.size(), split(&command.slices, entry.covered_to.as_ref(), view).1.is_some()))
}

/// Reports the SSTables that are left out: those that cannot have the partition and, if the entry
/// has everything, the others.
fn tell_skipped<W: ReadObserver>(view: &View, command: &ReadCommand, all: bool, observer: &mut W) {
    for (sstable, may_have) in with_key(view, command) {
        match may_have {
            Ok(()) if all => observer.skipped(sstable, IN_CACHE),
            Ok(()) => {}
            Err(reason) => observer.skipped(sstable, reason),
        }
    }
}

/// Every SSTable of the view: whether it may have the partition that is asked for, or why not.
pub(super) fn with_key<'a>(
    view: &'a View,
    command: &ReadCommand,
) -> impl Iterator<Item = (&'a Arc<SSTable>, Result<(), &'static str>)> {
    let whole = ReadCommand::whole(&view.table, command.range.clone());
    let hash = super::hash_of(command);
    view.sstables.iter().map(move |sstable| (sstable, exclusion(sstable, &whole, hash).map_or(Ok(()), Err)))
}

fn begins_at_start(command: &ReadCommand) -> bool {
    !command.reversed && command.slices.0.first().is_none_or(|slice| slice.start.values.is_empty())
}

/// Whether the entry has the first rows that are asked for.
fn answers(entry: &CachedPartition, command: &ReadCommand) -> bool {
    let Some(covered_to) = &entry.covered_to else { return true };
    let Some(first) = command.slices.0.first() else { return true };
    !command.reversed && first.start.compare(covered_to, &entry.form.table.comparator).is_lt()
}

/// Splits slices into the part that an entry covers and the part behind it.
fn split(slices: &Slices, covered_to: Option<&Bound>, view: &View) -> (Slices, Option<Slices>) {
    let Some(covered_to) = covered_to else { return (slices.clone(), None) };
    let comparator = &view.table.comparator;
    let (mut inside, mut behind) = (Vec::new(), Vec::new());
    for slice in slices.0.iter() {
        if slice.end.compare(covered_to, comparator).is_le() {
            inside.push(slice.clone());
        } else if slice.start.compare(covered_to, comparator).is_ge() {
            behind.push(slice.clone());
        } else {
            inside.push(Slice { start: slice.start.clone(), end: as_end(covered_to) });
            behind.push(Slice { start: as_start(covered_to), end: slice.end.clone() });
        }
    }
    (inside.into(), (!behind.is_empty()).then(|| behind.into()))
}

/// Reads the data of a partition in SSTables: all of it, or up to a number of rows or of bytes.
fn make<W: ReadObserver>(
    store: &TableStore,
    view: &View,
    sources: &Sources<'_>,
    wanted: u32,
    command: &ReadCommand,
    context: &ReadContext,
    observer: &mut W,
) -> Result<CachedPartition, ReadError> {
    let whole = ReadCommand { now: command.now, ..ReadCommand::whole(&view.table, command.range.clone()) };
    let stream = sources.open(view, &whole, context, observer)?;
    let mut stream = match context.mode {
        ReadMode::Inline => Box::new(budget::InlineBudget::new(stream)),
        ReadMode::Background => stream,
    };
    let form = store.caches.rows.form(&view.table);
    let files = sources.sstables.iter().map(|sstable| sstable.file_id()).collect();
    let mut builder = EntryBuilder::new(Arc::clone(&form), wanted, store.caches.rows.entry_bytes_max());
    let head = stream.next_partition()?;
    if head.is_some() {
        while let Some(unfiltered) = stream.next_unfiltered()? {
            if !builder.add(&unfiltered) {
                break;
            }
        }
    }
    Ok(builder.finish(files, head))
}

/// An entry that is being made.
struct EntryBuilder {
    form: Arc<Form>,
    rows_left: u32,
    bytes_max: usize,
    content: Vec<u8>,
    starts: Vec<u32>,
    has_markers: bool,
    covered_to: Option<Bound>,
}

impl EntryBuilder {
    fn new(form: Arc<Form>, rows_left: u32, bytes_max: usize) -> Self {
        Self {
            form,
            rows_left,
            bytes_max,
            content: Vec::new(),
            starts: Vec::new(),
            has_markers: false,
            covered_to: None,
        }
    }

    /// Adds an item. False: it was the last that the entry takes.
    fn add(&mut self, unfiltered: &Unfiltered) -> bool {
        self.starts.push(self.content.len() as u32);
        let (form, out) = (&self.form.header, &mut self.content);
        match unfiltered {
            Unfiltered::Row(row) => {
                encode_row(out, row, false, form, Framing::Message);
                // what was deleted is no row that somebody wants
                let holds_something = !row.liveness.is_empty() || !row.columns.is_empty();
                self.rows_left -= u32::from(holds_something && self.rows_left < u32::MAX);
                let size = self.content.len() + self.starts.len() * 4;
                if self.rows_left == 0 || size >= self.bytes_max {
                    self.covered_to = Some(Bound::end(row.clustering.clone(), true));
                }
            }
            Unfiltered::Marker(marker) => {
                encode_marker(out, marker, form, Framing::Message);
                self.has_markers = true;
                if self.content.len() + self.starts.len() * 4 >= self.bytes_max {
                    self.covered_to = Some(marker.position.clone());
                }
            }
        }
        self.covered_to.is_none()
    }

    fn finish(mut self, sources: Box<[u64]>, head: Option<PartitionHead>) -> CachedPartition {
        // the bound and the key are slices of chunks, which must not stay for them
        let own = |bytes: &Bytes| Bytes::copy_from_slice(bytes);
        if let Some(bound) = &mut self.covered_to {
            bound.values.iter_mut().flatten().for_each(|value| *value = own(value));
        }
        let static_row = head.as_ref().and_then(|head| head.static_row.as_ref()).map(|row| {
            let mut out = Vec::new();
            encode_row(&mut out, row, true, &self.form.header, Framing::Message);
            Bytes::from(out.into_boxed_slice())
        });
        CachedPartition {
            sources,
            deletion: head.as_ref().map_or(rows::DeletionTime::LIVE, |head| head.deletion),
            key: head.map(|head| DecoratedKey { key: own(&head.key.key), ..head.key }),
            static_row,
            content: self.content.into_boxed_slice().into(),
            starts: self.starts.into_boxed_slice(),
            has_markers: self.has_markers,
            covered_to: self.covered_to,
            form: self.form,
        }
    }
}

impl CachedPartition {
    /// Decodes a row or marker that was encoded for this entry.
    fn unfiltered(&self, index: usize) -> Option<Unfiltered> {
        let start = *self.starts.get(index)? as usize;
        match decode_unfiltered(&self.content, start, &self.form.header, false) {
            Ok((Decoded::Row(row), _)) => Some(Unfiltered::Row(row)),
            Ok((Decoded::Marker(marker), _)) => Some(Unfiltered::Marker(marker)),
            other => unreachable!("an entry decodes what it encoded, not {other:?}"),
        }
    }

    fn decoded_static_row(&self) -> Option<Row> {
        let decode = |bytes: &Bytes| decode_static_row(bytes, 0, &self.form.header, false);
        self.static_row.as_ref().map(|bytes| decode(bytes).expect("an entry decodes what it encoded").0)
    }

    /// Number of rows of the entry before a bound. Only for entries without markers.
    fn rows_before(&self, bound: &Bound) -> usize {
        let comparator = &self.form.table.comparator;
        let (mut low, mut high) = (0, self.starts.len());
        while low < high {
            let middle = low + (high - low) / 2;
            let is_before = self.unfiltered(middle).is_some_and(|unfiltered| {
                rows::clustering::compare_prefixes(
                    comparator,
                    unfiltered.kind(),
                    unfiltered.values(),
                    bound.kind,
                    &bound.values,
                )
                .is_lt()
            });
            if is_before {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// The part of a read that lies behind an entry.
enum RestOfRead {
    None,
    Closed(Box<Closed>),
    Open(Box<dyn PartitionStream>),
    /// The SSTables are opened, and the stream is at the partition.
    Entered(Box<dyn PartitionStream>),
}

struct Closed {
    sstables: Vec<Arc<SSTable>>,
    command: ReadCommand,
    context: ReadContext,
}

impl Closed {
    fn open(&self) -> Result<Box<dyn PartitionStream>, ReadError> {
        let open = |sstable: &Arc<SSTable>| -> Result<Box<dyn PartitionStream>, ReadError> {
            Ok(Box::new(sstable.read(&self.command, &self.context)?))
        };
        let streams: Result<Vec<_>, _> = self.sstables.iter().map(open).collect();
        let table = self.sstables.first().map_or(&self.command.table, |sstable| sstable.table());
        Ok(MergeStream::boxed(table, streams?, self.command.reversed))
    }
}

impl RestOfRead {
    fn next(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        loop {
            match std::mem::replace(self, Self::None) {
                Self::None => return Ok(None),
                Self::Closed(closed) => *self = Self::Open(closed.open()?),
                Self::Open(mut stream) => {
                    if stream.next_partition()?.is_some() {
                        *self = Self::Entered(stream);
                    }
                }
                Self::Entered(mut stream) => {
                    let next = stream.next_unfiltered()?;
                    if next.is_some() {
                        *self = Self::Entered(stream);
                    }
                    return Ok(next);
                }
            }
        }
    }
}

/// An entry as a stream, and the rest of the read behind it.
struct CachedStream {
    entry: Arc<CachedPartition>,
    clip: Clip,
    reversed: bool,
    entered: bool,
    /// Index of the next item; in a reversed read, one more than it.
    at: usize,
    held: Option<Unfiltered>,
    /// Number of the slice whose beginning was looked for last; None: none was yet.
    sought: Option<usize>,
    ended: bool,
    /// The item that was taken from the rest and is given before the others of it.
    behind: Option<Unfiltered>,
    rest: RestOfRead,
}

impl CachedStream {
    fn new(entry: Arc<CachedPartition>, slices: Slices, reversed: bool, rest: RestOfRead) -> Self {
        let clip = Clip::new(entry.form.table.comparator.clone(), slices, reversed);
        let at = if reversed { entry.starts.len() } else { 0 };
        Self { entry, clip, reversed, entered: false, at, held: None, sought: None, ended: false, behind: None, rest }
    }

    /// Gives the marker that closes a range at the end of the last slice in the entry. If that is
    /// where the entry ends, the SSTables may open a range in the rest of the slice at once: the
    /// two markers are one there, or none if the range goes on. Otherwise digests, which cover
    /// markers, would differ from those of a replica that has no such entry.
    fn close(&mut self, marker: RangeTombstoneMarker) -> Result<Option<Unfiltered>, ReadError> {
        self.behind = self.rest.next()?;
        let place = |marker: &RangeTombstoneMarker| (marker.position.values.clone(), marker.position.kind.side());
        let opened = match &self.behind {
            Some(Unfiltered::Marker(next)) if next.close.is_none() && place(next) == place(&marker) => next.open,
            _ => return Ok(Some(Unfiltered::Marker(marker))),
        };
        self.behind = None;
        if opened == marker.close {
            return self.rest.next();
        }
        let before = marker.position.kind.side() < 0;
        Ok(marker_at(marker.position.values, before, marker.close, opened).map(Unfiltered::Marker))
    }

    /// Goes to the beginning of the next slice.
    fn seek(&mut self) {
        let number = self.clip.slices_done();
        if self.entry.has_markers || self.held.is_some() || self.sought == Some(number) {
            return;
        }
        let Some(bound) = self.clip.awaited() else { return };
        let place = self.entry.rows_before(bound);
        self.at = if self.reversed { self.at.min(place) } else { self.at.max(place) };
        self.sought = Some(number);
    }

    fn step(&mut self) -> Option<Unfiltered> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        if self.reversed {
            self.at = self.at.checked_sub(1)?;
            return self.entry.unfiltered(self.at);
        }
        let next = self.entry.unfiltered(self.at);
        self.at += 1;
        next
    }
}

impl PartitionStream for CachedStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        if std::mem::replace(&mut self.entered, true) {
            (self.ended, self.behind, self.rest) = (true, None, RestOfRead::None);
            return Ok(None);
        }
        let Some(key) = &self.entry.key else { return Ok(None) };
        let (deletion, static_row) = (self.entry.deletion, self.entry.decoded_static_row());
        Ok(Some(PartitionHead::new(key.clone(), deletion, static_row)))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        loop {
            if self.ended {
                return match (self.clip.finish(), self.behind.take()) {
                    (Some(marker), _) => self.close(marker),
                    (None, Some(behind)) => Ok(Some(behind)),
                    (None, None) => self.rest.next(),
                };
            }
            if !self.clip.is_all() {
                if self.clip.is_done() {
                    self.ended = true;
                    continue;
                }
                self.seek();
            }
            let Some(unfiltered) = self.step() else {
                self.ended = true;
                continue;
            };
            match self.clip.step(&unfiltered) {
                Step::Pass => {}
                Step::Give => return Ok(Some(unfiltered)),
                Step::GiveMarker(marker) => return Ok(Some(Unfiltered::Marker(marker))),
                Step::GiveFirst(marker) => {
                    self.held = Some(unfiltered);
                    if self.clip.is_done() {
                        self.ended = true;
                        return self.close(marker);
                    }
                    return Ok(Some(Unfiltered::Marker(marker)));
                }
                Step::NextSlice => self.held = Some(unfiltered),
            }
        }
    }
}
