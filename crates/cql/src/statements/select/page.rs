//! Building a page from the stream of a read: rows straight into wire form, groups, limits, the state for the next page.
//!
//! Pure: the same stream gives the same page, so that a coordinator may run it again from scratch.
//! Agrees with `SelectStatement.processPartition`, `selection.ResultSetBuilder` and `service.pager.AbstractQueryPager`.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use rows::live::{Scanned, TombstoneLimits};
use rows::{ClusteringValues, IndexSearch, LivePartition, LiveRows, PartitionStream, Row};
use schema::TableMetadata;
use stdx::{Share, Taken};

use crate::error::CqlError;
use crate::keys;
use crate::paging::{PagingState, UNLIMITED};
use crate::restrictions::BoundFilter;
use crate::selection::{AggregateState, Column, OwnedRow, RowView, Selection};
use crate::statements::select::group::{GroupBy, GroupKey};

/// Everything that building a page needs.
pub(super) struct Job {
    pub table: Arc<TableMetadata>,
    pub indexes: Vec<IndexSearch>,
    pub selection: Arc<Selection>,
    pub json: bool,
    pub partition_filters: Vec<BoundFilter>,
    pub row_filters: Vec<BoundFilter>,
    pub group_by: Option<GroupBy>,
    pub aggregates: bool,
    /// SELECT DISTINCT: the first row stands for its partition, and is all that aggregates get of it.
    pub distinct: bool,
    pub post_order: Vec<(Column, bool)>,
    pub shows_static_only: bool,
    pub per_partition: u32,
    /// Rows left of the LIMIT.
    pub remaining: u32,
    /// Rows of a page; None: all at once.
    pub page: Option<u32>,
    /// Where the page starts.
    pub resume: Option<PagingState>,
    /// Key of the last partition, where keys are given: after it there is nothing.
    pub last_key: Option<Bytes>,
    /// The statement names one key.
    pub single_key: bool,
    pub now: u32,
    pub tombstones: TombstoneLimits,
    /// What large pages are counted in.
    pub results: Option<Arc<Share>>,
}

impl Job {
    /// Rows that the page can have.
    pub fn row_limit(&self) -> u32 {
        self.page.map_or(self.remaining, |page| page.min(self.remaining))
    }
}

/// A page.
pub(super) struct Page {
    pub rows: Bytes,
    pub row_count: u32,
    pub paging_state: Option<PagingState>,
    /// What has passed more tombstones than it is warned of.
    pub scanned: Vec<Scanned>,
}

/// The last row that was shown.
struct Mark {
    key: Bytes,
    row: Option<ClusteringValues>,
    left_in_partition: u32,
}

/// A group of rows that is being gathered.
struct Group {
    first: OwnedRow,
    key: Bytes,
    group: Option<GroupKey>,
    states: Vec<AggregateState>,
    last: Mark,
}

struct Builder<'j> {
    job: &'j Job,
    out: Vec<u8>,
    count: u32,
    limit: u32,
    mark: Option<Mark>,
    group: Option<Group>,
    sorted: Vec<(Vec<Option<Bytes>>, Vec<u8>)>,
    sorted_bytes: usize,
    /// Bytes up to which it need not look whether it has room.
    room: usize,
    /// Of the memory for results.
    taken: Option<Taken>,
}

/// Room that a page begins with: a row of the usual size.
const FIRST_BYTES: usize = 256;

/// A page that has reached this many bytes ends, however few rows it has.
const PAGE_BYTES: usize = 8 << 20;

/// The most bytes of a result: what a frame can carry, less room for its head. A statement that would give more is refused.
const RESULT_BYTES_MAX: usize = 255 << 20;

/// A page is counted in the memory for results from this size on, and in steps of it.
const COUNTED_BYTES: usize = 64 << 10;

/// A page being built is refused when results together take this many times what they may: others wait before it comes to that.
const RESULTS_OVER: usize = 2;

/// Rows that are counted in the memory for results until nobody needs them.
struct Counted {
    rows: Vec<u8>,
    _taken: Taken,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.rows
    }
}

/// What to do after a row.
#[derive(PartialEq)]
enum Next {
    Row,
    Partition,
    Stop,
}

/// Builds a page.
pub(super) fn build(job: &Job, stream: &mut dyn PartitionStream) -> Result<Page, CqlError> {
    let mut live = LiveRows::new(stream, Arc::clone(&job.table), job.now, job.tombstones);
    let limit = if job.post_order.is_empty() { job.row_limit() } else { u32::MAX };
    let mut builder = Builder {
        job,
        out: Vec::with_capacity(FIRST_BYTES),
        count: 0,
        limit,
        mark: None,
        group: None,
        sorted: Vec::new(),
        sorted_bytes: 0,
        room: COUNTED_BYTES,
        taken: None,
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
        let job = self.job;
        let resumed = job
            .resume
            .as_ref()
            .filter(|state| state.row.is_some() && state.key.as_ref().is_none_or(|key| *key == partition.key.key));
        let mut left = resumed.map_or(job.per_partition, |state| state.remaining_in_partition);
        let components = keys::decompose(&partition.key.key, job.table.partition_key.len());
        let whole = RowView {
            key: &components,
            clustering: &[],
            static_row: partition.static_row.as_ref(),
            row: None,
            now: job.now,
            aggregates: &[],
        };
        if !job.partition_filters.iter().all(|filter| filter.holds(&whole)) {
            return Ok(Next::Partition);
        }
        if job.table.is_static_compact() {
            // the partition is the row; what else it holds, CQL does not show
            let is_shown = whole.static_row.is_some() && job.row_filters.iter().all(|filter| filter.holds(&whole));
            return if is_shown { self.static_only(&whole, &partition.key.key) } else { Ok(Next::Partition) };
        }
        let mut has_rows = false;
        while let Some(row) = live.next_row()? {
            has_rows = true;
            let view = RowView { clustering: &row.clustering, row: Some(&row), ..whole };
            if !job.row_filters.iter().all(|filter| filter.holds(&view)) {
                continue;
            }
            match self.row(&view, &partition.key.key, &row, &mut left)? {
                Next::Row if job.aggregates && job.distinct => break,
                Next::Row => {}
                next => return Ok(next),
            }
        }
        if !has_rows && partition.static_row.is_some() && job.shows_static_only && resumed.is_none() {
            return self.static_only(&whole, &partition.key.key);
        }
        // a group does not reach over the end of a partition
        if job.group_by.is_some() && self.end_group()? == Next::Stop {
            return Ok(Next::Stop);
        }
        Ok(Next::Partition)
    }

    fn row(&mut self, view: &RowView<'_>, key: &Bytes, row: &Row, left: &mut u32) -> Result<Next, CqlError> {
        let no_clustering = row.clustering.is_empty();
        if self.job.aggregates {
            return self.grouped(view, key, &row.clustering, left);
        }
        self.show(view)?;
        *left -= 1;
        if self.is_full() {
            let left_in_partition = if no_clustering { 0 } else { *left };
            let clustering = (!no_clustering).then(|| row.clustering.clone());
            self.mark = Some(Mark { key: key.clone(), row: clustering, left_in_partition });
            return Ok(Next::Stop);
        }
        Ok(if *left == 0 { Next::Partition } else { Next::Row })
    }

    fn static_only(&mut self, view: &RowView<'_>, key: &Bytes) -> Result<Next, CqlError> {
        if self.job.aggregates {
            let mut left = UNLIMITED;
            self.grouped(view, key, &ClusteringValues::new(), &mut left)?;
            return if self.job.group_by.is_some() { self.end_group() } else { Ok(Next::Partition) };
        }
        self.show(view)?;
        if self.is_full() {
            self.mark = Some(Mark { key: key.clone(), row: None, left_in_partition: 0 });
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
        let job = self.job;
        let wanted = job.group_by.as_ref().map(|group_by| group_by.key(clustering, view)).transpose()?;
        let same = self.group.as_ref().is_some_and(|group| match (&group.group, &wanted) {
            (Some(group_of), Some(wanted)) => group.key == *key && group_of.is_same(wanted, &job.table.comparator),
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
                states: vec![AggregateState::default(); job.selection.aggregates.len()],
                last: Mark { key: key.clone(), row: None, left_in_partition: *left },
            });
        }
        let group = self.group.as_mut().expect("it was made above");
        for (aggregate, state) in job.selection.aggregates.iter().zip(&mut group.states) {
            aggregate.add(state, view)?;
        }
        if job.group_by.is_some() {
            let left_in_partition = if clustering.is_empty() { 0 } else { *left };
            group.last.row = (!clustering.is_empty()).then(|| clustering.clone());
            group.last.left_in_partition = left_in_partition;
        }
        Ok(Next::Row)
    }

    /// Shows the group that is being gathered, if there is one.
    fn end_group(&mut self) -> Result<Next, CqlError> {
        let Some(group) = self.group.take() else { return Ok(Next::Row) };
        let values: Result<Vec<_>, _> = self
            .job
            .selection
            .aggregates
            .iter()
            .zip(&group.states)
            .map(|(aggregate, state)| aggregate.finish(state))
            .collect();
        let values = values?;
        self.show(&group.first.view(&values))?;
        if self.is_full() {
            self.mark = Some(group.last);
            return Ok(Next::Stop);
        }
        Ok(Next::Row)
    }

    fn show(&mut self, view: &RowView<'_>) -> Result<(), CqlError> {
        self.count += 1;
        if self.job.post_order.is_empty() {
            return self.put(view);
        }
        let order = self.job.post_order.iter().map(|(column, _)| view.value(column)).collect();
        let before = std::mem::take(&mut self.out);
        self.put(view)?;
        self.sorted.push((order, std::mem::replace(&mut self.out, before)));
        Ok(())
    }

    fn put(&mut self, view: &RowView<'_>) -> Result<(), CqlError> {
        if self.job.json {
            self.job.selection.put_json(&mut self.out, view)?;
        } else {
            self.job.selection.put(&mut self.out, view)?;
        }
        self.sorted_bytes += if self.job.post_order.is_empty() { 0 } else { self.out.len() };
        let size = self.out.len().max(self.sorted_bytes);
        if size > self.room { self.more_room(size) } else { Ok(()) }
    }

    /// The page is larger than it was known to be.
    fn more_room(&mut self, size: usize) -> Result<(), CqlError> {
        if size > RESULT_BYTES_MAX {
            return Err(CqlError::invalid(format!(
                "The result is larger than {} MiB: read it in pages, or ask for less",
                RESULT_BYTES_MAX >> 20
            )));
        }
        self.room = size.max(self.out.capacity()).next_multiple_of(COUNTED_BYTES);
        let Some(share) = &self.job.results else { return Ok(()) };
        self.taken.get_or_insert_with(|| share.take(0)).set(self.room);
        if share.used() > share.limit().saturating_mul(RESULTS_OVER) {
            return Err(CqlError::Overloaded(format!(
                "Results that are being built or sent take {} MiB, of {} MiB that they may (--memory): read in smaller pages, or later",
                share.used() >> 20,
                share.limit() >> 20
            )));
        }
        Ok(())
    }

    /// The page ends here: it has its rows, or enough bytes.
    fn is_full(&self) -> bool {
        self.count >= self.limit || (self.job.page.is_some() && self.out.len() >= PAGE_BYTES)
    }

    fn finish(mut self, scanned: Vec<Scanned>) -> Result<Page, CqlError> {
        let job = self.job;
        if self.mark.is_none() {
            self.end_group()?;
            if job.aggregates && job.group_by.is_none() && self.count == 0 {
                self.show_nothing()?;
            }
        }
        if !job.post_order.is_empty() {
            self.sort();
        }
        let paging_state = self.mark.take().filter(|_| job.page.is_some()).and_then(|mark| {
            let remaining = job.remaining - self.count;
            let ended = mark.left_in_partition == 0 && job.last_key.as_ref() == Some(&mark.key);
            (remaining > 0 && !ended).then(|| PagingState {
                key: (!job.single_key).then_some(mark.key),
                row: mark.row,
                remaining,
                remaining_in_partition: mark.left_in_partition,
            })
        });
        let rows = match self.taken {
            None => Bytes::from(self.out),
            Some(mut taken) => {
                taken.set(self.out.capacity());
                Bytes::from_owner(Counted { rows: self.out, _taken: taken })
            }
        };
        Ok(Page { rows, row_count: self.count, paging_state, scanned })
    }

    /// Aggregates of no rows are a row all the same.
    fn show_nothing(&mut self) -> Result<(), CqlError> {
        let state = AggregateState::default();
        let values: Result<Vec<_>, _> =
            self.job.selection.aggregates.iter().map(|aggregate| aggregate.finish(&state)).collect();
        let values = values?;
        let nothing =
            RowView { key: &[], clustering: &[], static_row: None, row: None, now: self.job.now, aggregates: &values };
        self.show(&nothing)
    }

    fn sort(&mut self) {
        let orders = &self.job.post_order;
        self.sorted.sort_by(|(a, _), (b, _)| {
            for ((a, b), (column, descending)) in a.iter().zip(b).zip(orders) {
                let order = match (a, b) {
                    (Some(a), Some(b)) => types::compare(column.ty(), a, b),
                    (a, b) => a.is_some().cmp(&b.is_some()),
                };
                if order != Ordering::Equal {
                    return if *descending { order.reverse() } else { order };
                }
            }
            Ordering::Equal
        });
        let wanted = usize::try_from(self.job.remaining).unwrap_or(usize::MAX);
        self.sorted.truncate(wanted);
        self.count = u32::try_from(self.sorted.len()).expect("it was truncated to a u32");
        for (_, row) in &self.sorted {
            self.out.extend_from_slice(row);
        }
    }
}
