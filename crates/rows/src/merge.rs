//! Merges several streams into one: equal partitions, rows and cells are reconciled, and deletions
//! apply across sources.
//!
//! 1. Sources are kept in order of the keys of their next partitions. All sources at the first key
//!    are read together.
//! 2. Heads: the strongest partition deletion counts, and static rows are merged under it.
//! 3. Unfiltereds: sources are kept in order of their next items. All sources at the first position
//!    are taken together. Each source has at most one open deletion. The strongest of these is the
//!    open deletion of the output, unless the partition deletion is stronger; a marker is written
//!    wherever it changes.
//! 4. A partition that only one source has, and of which nothing is deleted, is handed on row by
//!    row without being kept here. With one source everything passes unchanged, because a stream
//!    never holds data that its own deletions shadow. A row that only one source has also passes
//!    unchanged where nothing is deleted; for callers that can copy rows
//!    ([`MergeStream::passing`]), in its encoded form.
//!
//! Invariants of the output, checked in [`check`]: partitions ascend by key; the positions of a
//! partition ascend (descend if reversed); each range that opens is closed before the partition
//! ends. A source that breaks them fails the read as corrupt.
//!
//! Agrees with `org.apache.cassandra.db.rows.{UnfilteredRowIterators,RangeTombstoneMarker.Merger}`.

mod check;

use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering as Atomic};

use schema::TableMetadata;
use smallvec::SmallVec;
use types::{DecoratedKey, Token};

use check::OutputCheck;

use crate::codec::RowVisitor;
use crate::range_tombstones::marker_at;
use crate::{
    DeletionTime, MaybeEncoded, PartitionHead, PartitionStream, RangeTombstoneMarker, ReadError, Row, Shown, Unfiltered,
};

struct Source {
    stream: Box<dyn PartitionStream>,
    head: Option<PartitionHead>,
    front: Option<MaybeEncoded>,
    /// The deletion that is open in this source at the position that the merge has reached.
    open: DeletionTime,
}

/// The sources that stand at one position.
type Group = SmallVec<[usize; 8]>;

/// The merge of several streams of one table, all in the same direction.
pub struct MergeStream {
    table: Arc<TableMetadata>,
    reversed: bool,
    /// Whether sources are asked for rows in their encoded form.
    passing: bool,
    started: bool,
    sources: Vec<Source>,
    /// The sources that have a partition, in order of its key. The tokens are here too: they alone
    /// mostly tell the order, and the keys of many sources lie far apart in memory.
    by_key: Vec<(Token, usize)>,
    /// The sources that have an item in the current partition, in order of these items.
    by_front: Vec<usize>,
    /// Whether the first of them is known to stand before all others.
    first_alone: bool,
    /// The sources that are in the current partition.
    current: Vec<usize>,
    /// The only source of the partition, as long as it gives rows that nothing changes. It has no
    /// front then.
    lone: Option<usize>,
    partition_deletion: DeletionTime,
    /// The deletion that is open in the output.
    open: DeletionTime,
    counts: Option<Arc<MergeCounts>>,
    observer: Option<Box<dyn RowObserver>>,
    key: Option<DecoratedKey>,
    check: OutputCheck,
}

/// Is told of each row that several sources, or a deletion, had a part in.
pub trait RowObserver: Send {
    /// `merged` is the result of `versions` in the partition of `key`; None: nothing is left.
    fn merged(&mut self, key: &DecoratedKey, versions: &[Row], merged: Option<&Row>);
}

/// Counts partitions by the number of sources that they came from.
#[derive(Debug)]
pub struct MergeCounts(Vec<AtomicU64>);

impl MergeCounts {
    /// Counters for a merge of this many sources.
    pub fn new(sources: usize) -> Arc<Self> {
        Arc::new(Self((0..sources).map(|_| AtomicU64::new(0)).collect()))
    }

    fn count(&self, sources: usize) {
        if let Some(count) = sources.checked_sub(1).and_then(|index| self.0.get(index)) {
            count.fetch_add(1, Atomic::Relaxed);
        }
    }

    /// Pairs of a number of sources and the number of partitions that came from as many; pairs with
    /// no partition are left out.
    pub fn counts(&self) -> Vec<(u32, u64)> {
        let counts = (1..).zip(&self.0).map(|(sources, count)| (sources, count.load(Atomic::Relaxed)));
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

impl MergeStream {
    /// The merge of `streams`. `reversed`: each gives the rows of a partition in descending order.
    pub fn new(table: Arc<TableMetadata>, streams: Vec<Box<dyn PartitionStream>>, reversed: bool) -> Self {
        let sources = streams
            .into_iter()
            .map(|stream| Source { stream, head: None, front: None, open: DeletionTime::LIVE })
            .collect();
        Self {
            table,
            reversed,
            passing: false,
            started: false,
            sources,
            by_key: Vec::new(),
            by_front: Vec::new(),
            first_alone: false,
            current: Vec::new(),
            lone: None,
            partition_deletion: DeletionTime::LIVE,
            open: DeletionTime::LIVE,
            counts: None,
            observer: None,
            key: None,
            check: OutputCheck::default(),
        }
    }

    /// The merge of streams that were moved to their first partitions, whose heads are given too.
    pub fn opened(
        table: Arc<TableMetadata>,
        streams: Vec<(Box<dyn PartitionStream>, PartitionHead)>,
        reversed: bool,
    ) -> Self {
        let (streams, heads): (Vec<_>, Vec<_>) = streams.into_iter().unzip();
        let mut merge = Self::new(table, streams, reversed);
        for (source, head) in merge.sources.iter_mut().zip(heads) {
            source.head = Some(head);
        }
        merge
    }

    /// Gives rows that pass unchanged in their encoded form, if their sources give them so.
    pub fn passing(self) -> Self {
        Self { passing: true, ..self }
    }

    /// Sets the observer of rows.
    pub fn observed(self, observer: Option<Box<dyn RowObserver>>) -> Self {
        Self { observer, ..self }
    }

    /// Sets the counters of partitions.
    pub fn counting(self, counts: Arc<MergeCounts>) -> Self {
        Self { counts: Some(counts), ..self }
    }

    /// The merge of `streams`; a single stream is returned as it is.
    pub fn boxed(
        table: &Arc<TableMetadata>,
        mut streams: Vec<Box<dyn PartitionStream>>,
        reversed: bool,
    ) -> Box<dyn PartitionStream> {
        match streams.len() {
            0 => Box::new(crate::stream::EmptyStream),
            1 => streams.remove(0),
            _ => Box::new(Self::new(Arc::clone(table), streams, reversed)),
        }
    }

    fn key(&self, index: usize) -> Option<&DecoratedKey> {
        self.sources[index].head.as_ref().map(|head| &head.key)
    }

    fn advance_partition(&mut self, index: usize) -> Result<(), ReadError> {
        let source = &mut self.sources[index];
        // the head of a stream that was opened before is there already
        if self.started || source.head.is_none() {
            source.head = source.stream.next_partition()?;
        }
        if let Some(head) = &source.head {
            let token = head.key.token;
            let is_before = |(other, source): &(Token, usize)| {
                other.cmp(&token).then_with(|| self.key(*source).cmp(&self.key(index))) != Ordering::Greater
            };
            let at = self.by_key.partition_point(is_before);
            self.by_key.insert(at, (token, index));
        }
        Ok(())
    }

    fn compare_fronts(&self, a: usize, b: usize) -> Ordering {
        let (Some(a), Some(b)) = (&self.sources[a].front, &self.sources[b].front) else { return Ordering::Equal };
        let order = a.compare(b, &self.table.comparator);
        if self.reversed { order.reverse() } else { order }
    }

    #[inline]
    fn next_of(&mut self, index: usize) -> Result<Option<MaybeEncoded>, ReadError> {
        let stream = &mut self.sources[index].stream;
        if self.passing {
            stream.next_maybe_encoded()
        } else {
            Ok(stream.next_unfiltered()?.map(MaybeEncoded::Decoded))
        }
    }

    fn pull(&mut self, index: usize) -> Result<(), ReadError> {
        self.sources[index].front = self.next_of(index)?;
        Ok(())
    }

    fn advance_front(&mut self, index: usize) -> Result<(), ReadError> {
        self.pull(index)?;
        self.put_in_order(index);
        Ok(())
    }

    fn put_in_order(&mut self, index: usize) {
        self.first_alone = false;
        if self.sources[index].front.is_none() {
            return;
        }
        // the source that was just read is usually first again
        let mut at = 0;
        while at < self.by_front.len() && self.compare_fronts(self.by_front[at], index) != Ordering::Greater {
            at += 1;
        }
        self.by_front.insert(at, index);
    }

    /// Whether the first item is a row that nothing deletes and that no other source has.
    fn passes_unchanged(&self, first: usize) -> bool {
        if !self.partition_deletion.is_live() || !self.open.is_live() {
            return false;
        }
        let is_row = match &self.sources[first].front {
            Some(MaybeEncoded::Encoded(_)) => true,
            Some(MaybeEncoded::Decoded(Unfiltered::Row(row))) => !row.is_empty() && !self.table.is_counter(),
            _ => false,
        };
        let others = self.by_front.get(1);
        is_row && (self.first_alone || others.is_none_or(|next| self.compare_fronts(first, *next) == Ordering::Less))
    }

    /// The next row of the only source; anything else becomes its front, and None is returned.
    fn next_of_lone(&mut self, index: usize) -> Result<Option<MaybeEncoded>, ReadError> {
        let next = self.next_of(index);
        let is_row = match &next {
            Ok(Some(MaybeEncoded::Encoded(_))) => true,
            Ok(Some(MaybeEncoded::Decoded(Unfiltered::Row(row)))) => !row.is_empty(),
            _ => false,
        };
        if is_row {
            return next;
        }
        self.lone = None;
        self.sources[index].front = next?;
        self.put_in_order(index);
        Ok(None)
    }

    /// Takes the next item of the first source, which usually stays first.
    fn advance_first(&mut self, first: usize) -> Result<(), ReadError> {
        self.pull(first)?;
        let others = self.by_front.get(1);
        self.first_alone = self.sources[first].front.is_some()
            && others.is_none_or(|next| self.compare_fronts(first, *next) == Ordering::Less);
        if !self.first_alone {
            self.by_front.remove(0);
            self.put_in_order(first);
        }
        Ok(())
    }

    /// Takes the sources at the first position out of the order, and decodes their items.
    fn take_group(&mut self) -> Result<Group, ReadError> {
        let mut length = 1;
        while length < self.by_front.len()
            && self.compare_fronts(self.by_front[0], self.by_front[length]) == Ordering::Equal
        {
            length += 1;
        }
        let group: Group = self.by_front.drain(..length).collect();
        for index in &group {
            let front = &mut self.sources[*index].front;
            if let Some(MaybeEncoded::Encoded(row)) = front {
                *front = Some(MaybeEncoded::Decoded(Unfiltered::Row(row.decode()?)));
            }
        }
        Ok(group)
    }

    /// The row in front of a source; None: a marker.
    fn row(&self, index: usize) -> Option<&Row> {
        match &self.sources[index].front {
            Some(MaybeEncoded::Decoded(Unfiltered::Row(row))) => Some(row),
            _ => None,
        }
    }

    fn merge_rows(&mut self, group: &[usize]) -> Option<Row> {
        let mut merged: Option<Row> = None;
        let versions = self.versions(group);
        let shadow = self.shadow_of_counters(group);
        for index in group {
            let Some(MaybeEncoded::Decoded(Unfiltered::Row(mut row))) = self.sources[*index].front.take() else {
                continue;
            };
            if !shadow.is_live() {
                row.drop_shadowed(&shadow);
            }
            match &mut merged {
                None => merged = Some(row),
                Some(target) => target.merge(row, &self.table),
            }
        }
        let mut row = merged?;
        row.apply_deletion(&self.partition_deletion.merge(self.open));
        let merged = (!row.is_empty()).then_some(row);
        self.notify_observer(&versions, merged.as_ref());
        merged
    }

    fn check_unfiltered(&mut self, given: Option<&MaybeEncoded>) -> Result<(), ReadError> {
        given.map_or(Ok(()), |item| self.check.unfiltered(&self.table, item, self.reversed))
    }

    /// The rows of a group, for the observer.
    fn versions(&self, group: &[usize]) -> Vec<Row> {
        if self.observer.is_none() {
            return Vec::new();
        }
        group.iter().filter_map(|index| self.row(*index).cloned()).collect()
    }

    fn notify_observer(&mut self, versions: &[Row], merged: Option<&Row>) {
        let is_news = match versions {
            [only] => merged != Some(only),
            versions => !versions.is_empty(),
        };
        if let (true, Some(observer), Some(key)) = (is_news, &mut self.observer, &self.key) {
            observer.merged(key, versions, merged);
        }
    }

    /// The strongest deletion over the rows of a group that holds counters. Counter cells that it
    /// shadows must go before cells are merged, otherwise they would live on in a context that
    /// another source wrote later.
    fn shadow_of_counters(&self, group: &[usize]) -> DeletionTime {
        if !self.table.is_counter() {
            return DeletionTime::LIVE;
        }
        let of_rows = group.iter().map(|index| self.row(*index).map_or(DeletionTime::LIVE, |row| row.deletion));
        of_rows.fold(self.partition_deletion.merge(self.open), DeletionTime::merge)
    }

    fn merge_markers(&mut self, group: &[usize]) -> Option<RangeTombstoneMarker> {
        let mut position = None;
        for index in group {
            let Some(MaybeEncoded::Decoded(Unfiltered::Marker(marker))) = self.sources[*index].front.take() else {
                continue;
            };
            let entered = if self.reversed { marker.close } else { marker.open };
            self.sources[*index].open = entered.unwrap_or(DeletionTime::LIVE);
            position = Some(marker.position);
        }
        let position = position?;
        let strongest =
            self.current.iter().fold(DeletionTime::LIVE, |strongest, index| strongest.merge(self.sources[*index].open));
        let next = if strongest.supersedes(&self.partition_deletion) { strongest } else { DeletionTime::LIVE };
        let previous = std::mem::replace(&mut self.open, next);
        if previous == next {
            return None;
        }
        let some = |deletion: DeletionTime| (!deletion.is_live()).then_some(deletion);
        let (close, open) = if self.reversed { (some(next), some(previous)) } else { (some(previous), some(next)) };
        let before = position.kind.side() < 0;
        marker_at(position.values, before, close, open)
    }
}

impl PartitionStream for MergeStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        if !self.started {
            for index in 0..self.sources.len() {
                self.advance_partition(index)?;
            }
            self.started = true;
        } else {
            for position in 0..self.current.len() {
                self.advance_partition(self.current[position])?;
            }
        }
        self.current.clear();
        self.lone = None;
        let Some((token, first)) = self.by_key.first().copied() else { return Ok(None) };
        let others = self.by_key.get(1..).unwrap_or_default().iter();
        let length = 1 + others.take_while(|(t, index)| *t == token && self.key(*index) == self.key(first)).count();
        self.current.extend(self.by_key.drain(..length).map(|(_, index)| index));
        if let Some(counts) = &self.counts {
            counts.count(length);
        }
        self.by_front.clear();
        self.first_alone = false;
        self.open = DeletionTime::LIVE;
        let heads = self.current.iter().filter_map(|index| self.sources[*index].head.as_ref());
        let deletion = heads.fold(DeletionTime::LIVE, |strongest, head| strongest.merge(head.deletion));
        let mut static_row: Option<Box<Row>> = None;
        let mut key = None;
        let of_statics =
            self.current.iter().filter_map(|index| self.sources[*index].head.as_ref()?.static_row.as_deref().cloned());
        let versions: Vec<Row> = if self.observer.is_some() { of_statics.collect() } else { Vec::new() };
        for position in 0..self.current.len() {
            let index = self.current[position];
            let source = &mut self.sources[index];
            source.open = DeletionTime::LIVE;
            let Some(mut head) = source.head.take() else { continue };
            if let Some(row) = &mut head.static_row
                && self.table.is_counter()
                && !deletion.is_live()
            {
                row.drop_shadowed(&deletion);
            }
            match (&mut static_row, head.static_row) {
                (Some(target), Some(row)) => target.merge(*row, &self.table),
                (target @ None, row) => *target = row,
                (Some(_), None) => {}
            }
            key = Some(head.key);
        }
        self.partition_deletion = deletion;
        if length == 1 && deletion.is_live() && !self.table.is_counter() {
            self.lone = Some(first);
        } else {
            for position in 0..self.current.len() {
                self.advance_front(self.current[position])?;
            }
        }
        if let Some(row) = &mut static_row {
            row.apply_deletion(&deletion);
        }
        let static_row = static_row.filter(|row| !row.is_empty());
        if self.observer.is_some() {
            self.key.clone_from(&key);
            self.notify_observer(&versions, static_row.as_deref());
        }
        if let Some(key) = &key {
            self.check.partition(&self.table, key)?;
        }
        Ok(key.map(|key| PartitionHead { key, deletion, static_row, names_statics: false }))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        self.next_maybe_encoded()?.map(MaybeEncoded::decode).transpose()
    }

    fn next_maybe_encoded(&mut self) -> Result<Option<MaybeEncoded>, ReadError> {
        if let Some(lone) = self.lone {
            let row = self.next_of_lone(lone)?;
            if row.is_some() {
                self.check_unfiltered(row.as_ref())?;
                return Ok(row);
            }
        }
        while let Some(first) = self.by_front.first().copied() {
            if self.passes_unchanged(first) {
                let row = self.sources[first].front.take();
                self.check_unfiltered(row.as_ref())?;
                self.advance_first(first)?;
                return Ok(row);
            }
            let group = self.take_group()?;
            let merged = if self.row(group[0]).is_some() {
                self.merge_rows(&group).map(Unfiltered::Row)
            } else {
                self.merge_markers(&group).map(Unfiltered::Marker)
            };
            for index in group {
                self.advance_front(index)?;
            }
            if merged.is_some() {
                let merged = merged.map(MaybeEncoded::Decoded);
                self.check_unfiltered(merged.as_ref())?;
                return Ok(merged);
            }
        }
        check::end_of_partition(&self.table, !self.open.is_live())?;
        Ok(None)
    }

    /// Shows the rows of a source that has the partition alone.
    fn show_encoded(&mut self, visitor: &mut dyn RowVisitor, most: usize) -> Result<Shown, ReadError> {
        match self.lone.filter(|_| self.passing) {
            Some(lone) => self.sources[lone].stream.show_encoded(visitor, most),
            None => Ok(Shown::default()),
        }
    }
}

#[cfg(test)]
mod tests;
