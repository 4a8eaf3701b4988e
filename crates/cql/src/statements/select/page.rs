//! Building one page of a SELECT from the stream of a read. Rows are encoded straight into wire
//! form; groups, limits and the paging state of the next page are kept on the way.
//!
//! The builder has no side effects: the same stream gives the same page, so that a coordinator may
//! abandon a read and start again.
//! Agrees with `SelectStatement.processPartition`, `selection.ResultSetBuilder` and
//! `service.pager.AbstractQueryPager`.

use std::cmp::Ordering;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use rows::live::{ScannedCounts, TombstoneLimits};
use rows::{ClusteringValues, Expression, IndexSearch, LivePartition, LiveRows, PartitionStream, Row, WantedRows};
use schema::TableMetadata;
use stdx::{ByteBudget, ByteReservation};

use crate::error::CqlError;
use crate::keys;
use crate::paging::{PagingState, UNLIMITED};
use crate::restrictions::BoundFilter;
use crate::selection::{AggregateState, Column, OwnedRow, RESULT_BYTES_MAX, RowView, Selection};
use crate::statements::select::ann::BoundAnnOrdering;
use crate::statements::select::group_by::{GroupBy, GroupKey};

/// The input of building a page, except for the stream.
pub(super) struct PageInput {
    pub table: Arc<TableMetadata>,
    pub indexes: Vec<IndexSearch>,
    pub selection: Arc<Selection>,
    pub json: bool,
    pub partition_filters: Vec<BoundFilter>,
    pub row_filters: Vec<BoundFilter>,
    /// Conditions that the slices apply: rows are not checked again, but for empty values
    /// ([`Self::recheck_empty_values`]). Replicas are told them where an index is searched, which
    /// may be that of one of them.
    pub slice_filters: Vec<BoundFilter>,
    pub group_by: Option<GroupBy>,
    pub aggregates: bool,
    /// SELECT DISTINCT: aggregates are given only the first row of each partition.
    pub distinct: bool,
    pub post_order: Vec<(Column, bool)>,
    /// Rows in the reversed order of the table.
    pub reversed: bool,
    /// ORDER BY … ANN OF: rows without a vector are left out.
    pub ann_ordering: Option<Box<BoundAnnOrdering>>,
    pub shows_static_only: bool,
    pub per_partition: u32,
    /// Rows left until the LIMIT of the statement.
    pub remaining: u32,
    /// Most rows of the page; None: the answer is not paged.
    pub page: Option<u32>,
    /// The state that the previous page ended with; None for the first page.
    pub resume: Option<PagingState>,
    /// The last of the keys that the statement names; None if it names none. A page that ends with
    /// this partition is the last.
    pub last_key: Option<Bytes>,
    /// The statement names one key, so that paging states need not carry it.
    pub single_key: bool,
    pub now: u32,
    pub tombstones: TombstoneLimits,
    /// coordinator_read_size_fail_threshold: bytes of values beyond which the page ends in a
    /// refusal. None: there is no such limit.
    pub size_max: Option<u64>,
    /// The memory for results, which large pages are counted in; None: not counted.
    pub results: Option<Arc<ByteBudget>>,
    /// The calls of functions that took long while the page was built last.
    pub slow_calls: Mutex<Vec<String>>,
}

impl PageInput {
    /// Puts the calls that took long while the page was built; gives those of the time before, for
    /// a page that is built again tells of each once.
    pub fn put_slow_calls(&self, calls: Vec<String>) -> Vec<String> {
        std::mem::replace(&mut *self.slow_calls.lock().unwrap_or_else(PoisonError::into_inner), calls)
    }

    /// Where an index is searched, rows are checked again for conditions that slices apply and that
    /// an index answers which has no entries of empty values: slices give rows with such values.
    pub fn recheck_empty_values(&mut self) {
        if !self.indexes.is_empty() && self.ann_ordering.is_none() {
            let again = self.slice_filters.iter().filter(|filter| filter.excludes_empty()).cloned();
            self.row_filters.extend(again);
        }
    }

    /// The most rows that the page can have.
    pub fn row_limit(&self) -> u32 {
        self.page.map_or(self.remaining, |page| page.min(self.remaining))
    }

    /// Rows are sorted after they were read.
    fn is_sorted_later(&self) -> bool {
        !self.post_order.is_empty() || self.ann_ordering.is_some()
    }

    /// The rows that are looked for, for nodes that may be asked for no others. None: every row
    /// that is read is wanted.
    pub fn wanted_rows(&self) -> Option<Arc<WantedRows>> {
        let filters = || self.partition_filters.iter().chain(&self.row_filters);
        // an order by nearness has the index for it searched
        let is_search = !self.indexes.is_empty() && self.ann_ordering.is_none();
        let of_slices = if is_search { self.slice_filters.as_slice() } else { &[] };
        let is_sought = filters().next().is_some() || !of_slices.is_empty() || self.ann_ordering.is_some();
        // the rows of a static compact table are none to CQL
        if !is_sought || self.table.is_static_compact() {
            return None;
        }
        let mut expressions: Vec<Expression> = filters().filter_map(|filter| filter.expression(&self.table)).collect();
        let are_counted = !self.aggregates && self.post_order.is_empty() && expressions.len() == filters().count();
        let rows = if are_counted { self.row_limit() } else { u32::MAX };
        for expression in of_slices.iter().filter_map(|filter| filter.expression(&self.table)) {
            // a condition behind one that a slice has may be among the filters, too
            if !expressions.contains(&expression) {
                expressions.push(expression);
            }
        }
        expressions.extend(self.ann_ordering.as_deref().and_then(BoundAnnOrdering::expression));
        Some(Arc::new(WantedRows { expressions, rows }))
    }
}

/// A finished page.
pub(super) struct Page {
    pub rows: Bytes,
    pub row_count: u32,
    pub paging_state: Option<PagingState>,
    /// Partitions or ranges whose tombstones passed the warning threshold.
    pub scanned: Vec<ScannedCounts>,
    /// Bytes of the values of all rows, also of those that a LIMIT behind an ORDER BY cuts off.
    pub size: u64,
    /// The values passed the limit before the last row: the page is to be refused.
    pub is_too_large: bool,
}

/// The position of the last row of the page.
struct RowPosition {
    key: Bytes,
    row: Option<ClusteringValues>,
    left_in_partition: u32,
}

/// A group of GROUP BY whose rows are being aggregated.
struct Group {
    first: OwnedRow,
    key: Bytes,
    group: Option<GroupKey>,
    states: Vec<AggregateState>,
    last: RowPosition,
}

struct Builder<'j> {
    input: &'j PageInput,
    out: Vec<u8>,
    count: u32,
    limit: u32,
    /// Rows are sorted after they were read.
    is_sorted_later: bool,
    position: Option<RowPosition>,
    group: Option<Group>,
    sorted: Vec<(Vec<Option<Bytes>>, Vec<u8>)>,
    sorted_bytes: usize,
    /// Size of the page, in bytes, up to which the memory for results has been asked already.
    room: usize,
    /// The page's part of the memory for results; None while the page is small.
    taken: Option<ByteReservation>,
    /// See [`Page::size`].
    size: u64,
    is_too_large: bool,
}

/// Bytes of the length before each value of a result.
const LENGTH_BYTES: usize = 4;

/// Bytes that are allocated for a new page: a row of the usual size.
const FIRST_BYTES: usize = 256;

/// A paged answer ends its page at this many bytes, however few rows it has.
const PAGE_BYTES: usize = 8 << 20;

/// Pages are counted in the memory for results from this size on, in steps of this size.
const COUNTED_BYTES: usize = 64 << 10;

/// A page is refused when all results together take more than the memory for results times this
/// factor. Requests are held back earlier; the factor ends those that have begun.
const RESULTS_OVER: usize = 2;

/// Encoded rows that are counted in the memory for results until the response is sent.
struct Counted {
    rows: Vec<u8>,
    _taken: ByteReservation,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.rows
    }
}

/// How the builder goes on after a row.
#[derive(PartialEq)]
enum Next {
    Row,
    Partition,
    Stop,
}

/// Builds a page.
pub(super) fn build(input: &PageInput, stream: &mut dyn PartitionStream) -> Result<Page, CqlError> {
    let mut live = LiveRows::new(stream, Arc::clone(&input.table), input.now, input.tombstones);
    let limit = if input.is_sorted_later() { u32::MAX } else { input.row_limit() };
    let mut builder = Builder {
        input,
        out: Vec::with_capacity(FIRST_BYTES),
        count: 0,
        limit,
        is_sorted_later: input.is_sorted_later(),
        position: None,
        group: None,
        sorted: Vec::new(),
        sorted_bytes: 0,
        room: COUNTED_BYTES,
        taken: None,
        size: 0,
        is_too_large: false,
    };
    while let Some(partition) = live.next_partition()? {
        if builder.partition(&partition, &mut live)? == Next::Stop {
            break;
        }
    }
    builder.finish(live.finish())
}

impl Builder<'_> {
    fn partition(&mut self, partition: &LivePartition, live: &mut LiveRows<'_>) -> Result<Next, CqlError> {
        let input = self.input;
        let resumed = input.resume.as_ref().filter(|state| {
            state.row.is_some() && state.key.as_ref().map_or(input.single_key, |key| *key == partition.key.key)
        });
        let mut left = resumed.map_or(input.per_partition, |state| state.remaining_in_partition);
        let components = keys::decompose(&partition.key.key, input.table.partition_key.len());
        let whole = RowView {
            key: &components,
            clustering: &[],
            static_row: partition.static_row.as_ref(),
            row: None,
            now: input.now,
            aggregates: &[],
        };
        if !input.partition_filters.iter().all(|filter| filter.holds(&whole)) {
            return Ok(Next::Partition);
        }
        if input.table.is_static_compact() {
            // in a static compact table each partition is one row; the other cells are not visible
            // to CQL
            let is_shown = whole.static_row.is_some() && input.row_filters.iter().all(|filter| filter.holds(&whole));
            return if is_shown { self.static_only(&whole, &partition.key.key) } else { Ok(Next::Partition) };
        }
        let mut has_rows = false;
        while let Some(row) = live.next_row()? {
            has_rows = true;
            let view = RowView { clustering: &row.clustering, row: Some(&row), ..whole };
            let has_rank = || input.ann_ordering.as_ref().is_none_or(|ann_ordering| ann_ordering.rank(&view).is_some());
            if !input.row_filters.iter().all(|filter| filter.holds(&view)) || !has_rank() {
                continue;
            }
            match self.row(&view, &partition.key.key, &row, &mut left)? {
                Next::Row if input.aggregates && input.distinct => break,
                Next::Row => {}
                next => return Ok(next),
            }
        }
        let shows_static_only = input.shows_static_only && input.ann_ordering.is_none();
        if !has_rows && partition.static_row.is_some() && shows_static_only && resumed.is_none() {
            return self.static_only(&whole, &partition.key.key);
        }
        // groups end with their partition
        if input.group_by.is_some() && self.end_group()? == Next::Stop {
            return Ok(Next::Stop);
        }
        Ok(Next::Partition)
    }

    fn row(&mut self, view: &RowView<'_>, key: &Bytes, row: &Row, left: &mut u32) -> Result<Next, CqlError> {
        let no_clustering = row.clustering.is_empty();
        if self.input.aggregates {
            return self.grouped(view, key, &row.clustering, left);
        }
        self.show(view)?;
        assert!(*left > 0, "a partition gives no row beyond its limit");
        *left -= 1;
        if self.is_full() {
            let left_in_partition = if no_clustering { 0 } else { *left };
            let clustering = (!no_clustering).then(|| row.clustering.clone());
            self.position = Some(RowPosition { key: key.clone(), row: clustering, left_in_partition });
            return Ok(Next::Stop);
        }
        Ok(if *left == 0 { Next::Partition } else { Next::Row })
    }

    fn static_only(&mut self, view: &RowView<'_>, key: &Bytes) -> Result<Next, CqlError> {
        if self.input.aggregates {
            let mut left = UNLIMITED;
            self.grouped(view, key, &ClusteringValues::new(), &mut left)?;
            return if self.input.group_by.is_some() { self.end_group() } else { Ok(Next::Partition) };
        }
        self.show(view)?;
        if self.is_full() {
            self.position = Some(RowPosition { key: key.clone(), row: None, left_in_partition: 0 });
            return Ok(Next::Stop);
        }
        Ok(Next::Partition)
    }

    fn grouped(
        &mut self,
        view: &RowView<'_>,
        key: &Bytes,
        clustering: &ClusteringValues,
        left: &mut u32,
    ) -> Result<Next, CqlError> {
        let input = self.input;
        let wanted = input.group_by.as_ref().map(|group_by| group_by.key(clustering, view)).transpose()?;
        let same = self.group.as_ref().is_some_and(|group| match (&group.group, &wanted) {
            (Some(group_of), Some(wanted)) => group.key == *key && group_of.is_same(wanted, &input.table.comparator),
            _ => wanted.is_none(),
        });
        if !same {
            if self.end_group()? == Next::Stop {
                return Ok(Next::Stop);
            }
            if *left == 0 {
                return Ok(Next::Partition);
            }
            *left -= 1;
            self.group = Some(Group {
                first: view.to_owned_row(),
                key: key.clone(),
                group: wanted,
                states: vec![AggregateState::default(); input.selection.aggregates.len()],
                last: RowPosition { key: key.clone(), row: None, left_in_partition: *left },
            });
        }
        let group = self.group.as_mut().expect("it was made above");
        for (aggregate, state) in input.selection.aggregates.iter().zip(&mut group.states) {
            aggregate.add(state, view)?;
        }
        if input.group_by.is_some() {
            let left_in_partition = if clustering.is_empty() { 0 } else { *left };
            group.last.row = (!clustering.is_empty()).then(|| clustering.clone());
            group.last.left_in_partition = left_in_partition;
        }
        Ok(Next::Row)
    }

    /// Ends the group whose rows are being aggregated, if there is one, and adds its row to the
    /// page.
    fn end_group(&mut self) -> Result<Next, CqlError> {
        let Some(group) = self.group.take() else { return Ok(Next::Row) };
        let values: Result<Vec<_>, _> = self
            .input
            .selection
            .aggregates
            .iter()
            .zip(&group.states)
            .map(|(aggregate, state)| aggregate.finish(state))
            .collect();
        let values = values?;
        self.show(&group.first.view(&values))?;
        if self.is_full() {
            self.position = Some(group.last);
            return Ok(Next::Stop);
        }
        Ok(Next::Row)
    }

    fn show(&mut self, view: &RowView<'_>) -> Result<(), CqlError> {
        // as in Cassandra, which finds a page too large when a further row comes
        self.is_too_large |= self.input.size_max.is_some_and(|max| self.size > max);
        self.count += 1;
        if !self.is_sorted_later {
            return self.put(view);
        }
        let order = match &self.input.ann_ordering {
            None => self.input.post_order.iter().map(|(column, _)| view.value(column)).collect(),
            Some(ann_ordering) => {
                let rank = ann_ordering.rank(view).map(|rank| Bytes::copy_from_slice(&rank.to_be_bytes()));
                vec![rank]
            }
        };
        let before = std::mem::take(&mut self.out);
        self.put(view)?;
        self.sorted.push((order, std::mem::replace(&mut self.out, before)));
        Ok(())
    }

    fn put(&mut self, view: &RowView<'_>) -> Result<(), CqlError> {
        let before = self.out.len();
        let values = if self.input.json {
            self.input.selection.put_json(&mut self.out, view)?;
            1
        } else {
            self.input.selection.put(&mut self.out, view)?;
            self.input.selection.selectors.len()
        };
        self.size += (self.out.len() - before).saturating_sub(values * LENGTH_BYTES) as u64;
        self.sorted_bytes += if self.is_sorted_later { self.out.len() } else { 0 };
        let size = self.out.len().max(self.sorted_bytes);
        if size > self.room { self.more_room(size) } else { Ok(()) }
    }

    /// Counts a page that has grown beyond `room`.
    fn more_room(&mut self, size: usize) -> Result<(), CqlError> {
        if size > RESULT_BYTES_MAX {
            return Err(CqlError::invalid(format!(
                "The result is larger than {} MiB: read it in pages, or ask for less",
                RESULT_BYTES_MAX >> 20
            )));
        }
        self.room = size.max(self.out.capacity()).next_multiple_of(COUNTED_BYTES);
        let Some(budget) = &self.input.results else { return Ok(()) };
        self.taken.get_or_insert_with(|| budget.take(0)).set(self.room);
        if budget.used() > budget.limit().saturating_mul(RESULTS_OVER) {
            return Err(CqlError::Overloaded(format!(
                "Results that are being built or sent take {} MiB, of {} MiB that they may (--memory): read in smaller pages, or later",
                budget.used() >> 20,
                budget.limit() >> 20
            )));
        }
        Ok(())
    }

    /// The page has its rows, or as many bytes as a page may have.
    fn is_full(&self) -> bool {
        self.is_too_large || self.count >= self.limit || (self.input.page.is_some() && self.out.len() >= PAGE_BYTES)
    }

    fn finish(mut self, scanned: Vec<ScannedCounts>) -> Result<Page, CqlError> {
        let input = self.input;
        if self.position.is_none() {
            self.end_group()?;
            if input.aggregates && input.group_by.is_none() && self.count == 0 {
                self.show_nothing()?;
            }
        }
        if input.is_sorted_later() {
            self.sort();
        }
        let limit = if input.is_sorted_later() { input.remaining } else { self.limit };
        assert!(self.count <= limit, "a page of {} rows has no more than {limit}", self.count);
        assert_eq!(self.out.is_empty(), self.count == 0, "a row has bytes");
        let paging_state = self.position.take().filter(|_| input.page.is_some()).and_then(|position| {
            let remaining = input.remaining - self.count;
            let ended = position.left_in_partition == 0 && input.last_key.as_ref() == Some(&position.key);
            (remaining > 0 && !ended).then(|| PagingState {
                key: (!input.single_key).then_some(position.key),
                row: position.row,
                remaining,
                remaining_in_partition: position.left_in_partition,
            })
        });
        let rows = match self.taken {
            None => Bytes::from(self.out),
            Some(mut taken) => {
                taken.set(self.out.capacity());
                Bytes::from_owner(Counted { rows: self.out, _taken: taken })
            }
        };
        let (size, is_too_large) = (self.size, self.is_too_large);
        Ok(Page { rows, row_count: self.count, paging_state, scanned, size, is_too_large })
    }

    /// Aggregates without GROUP BY give one row even where there are no rows to aggregate.
    fn show_nothing(&mut self) -> Result<(), CqlError> {
        let state = AggregateState::default();
        let values: Result<Vec<_>, _> =
            self.input.selection.aggregates.iter().map(|aggregate| aggregate.finish(&state)).collect();
        let values = values?;
        let nothing = RowView {
            key: &[],
            clustering: &[],
            static_row: None,
            row: None,
            now: self.input.now,
            aggregates: &values,
        };
        self.show(&nothing)
    }

    fn sort(&mut self) {
        let orders = &self.input.post_order;
        if self.input.ann_ordering.is_some() {
            self.sorted.sort_by(|(a, _), (b, _)| rank(b).total_cmp(&rank(a)));
        }
        self.sorted.sort_by(|(a, _), (b, _)| {
            for ((a, b), (column, descending)) in a.iter().zip(b).zip(orders) {
                // as in Cassandra a null, of a partition without rows, is first in the order of the
                // table, also where that is descending
                let (order, is_turned) = match (a, b) {
                    (Some(a), Some(b)) => (types::compare(column.ty(), a, b), *descending),
                    (a, b) => (a.is_some().cmp(&b.is_some()), self.input.reversed),
                };
                if order != Ordering::Equal {
                    return if is_turned { order.reverse() } else { order };
                }
            }
            Ordering::Equal
        });
        let wanted = usize::try_from(self.input.remaining).unwrap_or(usize::MAX);
        self.sorted.truncate(wanted);
        self.count = u32::try_from(self.sorted.len()).expect("it was truncated to a u32");
        for (_, row) in &self.sorted {
            self.out.extend_from_slice(row);
        }
    }
}

/// The rank by which a row is sorted.
fn rank(order: &[Option<Bytes>]) -> f32 {
    let bytes = order.first().and_then(|rank| <[u8; 4]>::try_from(rank.as_deref()?).ok());
    bytes.map_or(f32::NEG_INFINITY, f32::from_be_bytes)
}
