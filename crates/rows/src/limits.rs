//! How many rows or groups of rows a replica sends.
//!
//! Only live rows count; deletions and dead rows between them are sent too, because other replicas
//! may not have them. A live static row without a live row counts as one row if the read wants
//! whole partitions. If a range tombstone is open behind the last row, it is closed there,
//! including that row: more of it would delete rows that the next page asks for.
//!
//! Agrees with `org.apache.cassandra.db.filter.DataLimits`, `db.aggregation.GroupMaker` and
//! `db.transform.RTBoundCloser`.

mod group;

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use schema::TableMetadata;

pub use self::group::{GroupFunction, GroupSelector, GroupValues, Grouping};
use crate::range_tombstones::marker_at;
use crate::{
    ClusteringValues, DeletionTime, PartitionHead, PartitionStream, RangeTombstoneMarker, ReadError, Row, Unfiltered,
};

/// The number that means "no limit".
pub const NO_LIMIT: u32 = i32::MAX as u32;

/// How many rows or groups are wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadLimits {
    /// Rows in total.
    pub rows: u32,
    /// The things that count against the limits.
    pub counting: Counting,
    /// The partition in which the page before ended; None: this is the first page, or the page
    /// before ended with its partition.
    pub last: Option<LastPartition>,
}

/// The counts that are kept beside rows in total.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Counting {
    /// Rows.
    Rows {
        /// Rows of each partition.
        per_partition: u32,
        /// Whether the query is SELECT DISTINCT.
        distinct: bool,
    },
    /// Groups of rows.
    Groups {
        /// Groups in total.
        groups: u32,
        /// Groups of each partition.
        per_partition: u32,
        /// The rule by which rows form a group.
        grouping: Grouping,
        /// Where the page before ended; None: this is the first page, or the last group of the page
        /// before is complete.
        state: Option<GroupState>,
    },
}

/// Where the page before ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupState {
    /// The key of the partition.
    pub key: Bytes,
    /// The clustering of the last row; None: the static row was the last.
    pub clustering: Option<ClusteringValues>,
}

/// The partition in which the page before ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LastPartition {
    /// Its key.
    pub key: Bytes,
    /// Rows or groups that may still be given of it.
    pub remaining: u32,
}

impl ReadLimits {
    /// No limit.
    pub const NONE: Self = Self::of_rows(NO_LIMIT, NO_LIMIT);

    /// A limit of rows.
    pub const fn of_rows(rows: u32, per_partition: u32) -> Self {
        Self { rows, counting: Counting::Rows { per_partition, distinct: false }, last: None }
    }
}

/// A stream that ends where limits are reached.
pub struct LimitedStream<S> {
    stream: S,
    table: Arc<TableMetadata>,
    reversed: bool,
    now: u32,
    /// Whether a static row without rows counts.
    counts_statics: bool,
    counter: Counter,
    /// The range tombstone that is open, and the clustering of the row that was given last inside
    /// of it.
    open: DeletionTime,
    last_row: Option<ClusteringValues>,
    /// Whether a partition was begun that is not yet counted as ended.
    in_partition: bool,
    /// Whether the partition has ended for the reader.
    partition_ended: bool,
}

impl<S: PartitionStream> LimitedStream<S> {
    /// As much of `stream` as `limits` want at the time `now`, seconds. `counts_statics`: the read
    /// wants whole partitions.
    pub fn new(
        stream: S,
        table: &Arc<TableMetadata>,
        limits: &ReadLimits,
        now: u32,
        reversed: bool,
        counts_statics: bool,
    ) -> Self {
        Self {
            stream,
            table: Arc::clone(table),
            reversed,
            now,
            counts_statics,
            counter: Counter::new(limits, table),
            open: DeletionTime::LIVE,
            last_row: None,
            in_partition: false,
            partition_ended: true,
        }
    }

    /// Live rows given so far.
    pub fn rows(&self) -> u32 {
        self.counter.rows
    }

    fn is_live(&self, row: &Row) -> bool {
        if self.table.is_liveness_strict() {
            return row.liveness.is_live(self.now);
        }
        row.is_live(self.now)
    }

    fn end_partition(&mut self) {
        if self.in_partition {
            self.counter.partition_ends(self.counts_statics);
        }
        self.in_partition = false;
        self.partition_ended = true;
    }

    /// The end of the range tombstone that is open where the partition was cut before a row: at the
    /// row that was given last; if none was since it opened, before that row. (There Cassandra
    /// fails: "has an open RT bound as its last item".)
    fn closing_before(&mut self, row: &ClusteringValues) -> Option<Unfiltered> {
        if self.last_row.is_some() || self.open.is_live() {
            return self.closing();
        }
        let open = std::mem::replace(&mut self.open, DeletionTime::LIVE);
        let marker = match self.reversed {
            false => marker_at(row.clone(), true, Some(open), None),
            true => marker_at(row.clone(), false, None, Some(open)),
        };
        marker.map(Unfiltered::Marker)
    }

    /// The end of the range tombstone that is open where the partition was cut.
    fn closing(&mut self) -> Option<Unfiltered> {
        let open = std::mem::replace(&mut self.open, DeletionTime::LIVE);
        let last = self.last_row.take();
        if open.is_live() {
            return None;
        }
        let values = last?;
        let marker: Option<RangeTombstoneMarker> = match self.reversed {
            false => marker_at(values, false, Some(open), None),
            true => marker_at(values, true, None, Some(open)),
        };
        marker.map(Unfiltered::Marker)
    }

    fn note_marker(&mut self, marker: &RangeTombstoneMarker) {
        let entered = if self.reversed { marker.close } else { marker.open };
        self.open = entered.unwrap_or(DeletionTime::LIVE);
        self.last_row = None;
    }
}

impl<S: PartitionStream> PartitionStream for LimitedStream<S> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        self.end_partition();
        if self.counter.stopped {
            return Ok(None);
        }
        let Some(mut head) = self.stream.next_partition()? else { return Ok(None) };
        (self.open, self.last_row) = (DeletionTime::LIVE, None);
        let static_is_live = head.static_row.as_ref().is_some_and(|row| self.is_live(row));
        if !self.counter.partition_begins(&head.key.key, static_is_live)? {
            // the partition begins a group that is too many: the next page gives it
            head.static_row = None;
        }
        (self.in_partition, self.partition_ended) = (true, false);
        Ok(Some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        if self.partition_ended {
            return Ok(None);
        }
        if self.counter.partition_stopped || self.counter.stopped {
            self.partition_ended = true;
            return Ok(self.closing());
        }
        let next = self.stream.next_unfiltered()?;
        match &next {
            None => self.partition_ended = true,
            Some(Unfiltered::Marker(marker)) => self.note_marker(marker),
            Some(Unfiltered::Row(row)) => {
                let is_live = self.is_live(row);
                if !self.counter.row(&self.table, &row.clustering, is_live)? {
                    self.partition_ended = true;
                    let closing = self.closing_before(&row.clustering);
                    return Ok(closing);
                }
                if !self.open.is_live() {
                    self.last_row = Some(row.clustering.clone());
                }
            }
        }
        Ok(next)
    }
}

/// Counts rows and groups.
struct Counter {
    limits: ReadLimits,
    rows: u32,
    in_partition: u32,
    groups: u32,
    /// Whether no further row is wanted.
    stopped: bool,
    /// Whether no further row of the partition is wanted.
    partition_stopped: bool,
    static_is_live: bool,
    /// Whether a row of the partition was given, on this page or on the one before.
    has_rows: bool,
    /// Whether rows were given of a group whose end is not yet known.
    has_open_group: bool,
    key: Bytes,
    /// The partition and the clustering that were looked at last, for telling groups apart.
    last: Option<GroupState>,
    /// The value of the function for `last`, where groups are made by a function; None: it is null,
    /// or not known yet.
    last_value: Option<Bytes>,
}

impl Counter {
    fn new(limits: &ReadLimits, table: &TableMetadata) -> Self {
        let last = match &limits.counting {
            Counting::Groups { state, .. } => state.clone(),
            Counting::Rows { .. } => None,
        };
        let has_open_group = last.as_ref().is_some_and(|state| state.clustering.is_some());
        debug_assert!(
            !matches!(limits.counting, Counting::Groups { grouping: Grouping::ByPrefix(size), .. }
                | Counting::Groups { grouping: Grouping::ByFunction { columns: size, .. }, .. }
                if size as usize > table.clustering.len()),
            "a group is made of clustering columns"
        );
        let none_wanted = match &limits.counting {
            Counting::Rows { .. } => limits.rows == 0,
            Counting::Groups { groups, .. } => *groups == 0,
        };
        Self {
            limits: limits.clone(),
            rows: 0,
            in_partition: 0,
            groups: 0,
            stopped: none_wanted,
            partition_stopped: false,
            static_is_live: false,
            has_rows: false,
            has_open_group,
            key: Bytes::new(),
            last,
            last_value: None,
        }
    }

    /// False: the static row is not wanted any more.
    fn partition_begins(&mut self, key: &Bytes, static_is_live: bool) -> Result<bool, ReadError> {
        self.static_is_live = static_is_live;
        self.has_rows = false;
        self.in_partition = 0;
        match &self.limits.counting {
            Counting::Rows { per_partition, .. } => {
                if let Some(last) = self.limits.last.as_ref().filter(|last| last.key == *key) {
                    self.in_partition = per_partition.saturating_sub(last.remaining);
                    self.static_is_live = false;
                }
            }
            Counting::Groups { .. } => self.partition_begins_groups(key)?,
        }
        self.key = key.clone();
        let per_partition = match &self.limits.counting {
            Counting::Rows { per_partition, .. } | Counting::Groups { per_partition, .. } => *per_partition,
        };
        self.partition_stopped = self.in_partition >= per_partition;
        Ok(!self.stopped)
    }

    fn partition_begins_groups(&mut self, key: &Bytes) -> Result<(), ReadError> {
        let Counting::Groups { per_partition, state, .. } = &self.limits.counting else { return Ok(()) };
        if let Some(last) = self.limits.last.as_ref().filter(|last| last.key == *key) {
            self.in_partition = per_partition.saturating_sub(last.remaining);
            self.static_is_live = false;
            self.has_rows = true;
            self.has_open_group = state.as_ref().is_some_and(|state| state.clustering.is_some());
        } else if state.as_ref().is_some_and(|state| state.key == *key) {
            // the page before gave rows of this partition
            self.static_is_live = false;
            self.has_rows = true;
            self.has_open_group = true;
        } else if self.has_open_group && self.is_new_group(None, key, None)? {
            self.count_group();
            self.has_open_group = false;
            self.static_is_live &= !self.stopped;
        }
        Ok(())
    }

    /// Counts a row. False: it is one too many and must not be given.
    fn row(&mut self, table: &TableMetadata, clustering: &ClusteringValues, is_live: bool) -> Result<bool, ReadError> {
        if matches!(self.limits.counting, Counting::Groups { .. }) {
            let key = self.key.clone();
            if self.is_new_group(Some(table), &key, Some(clustering))? && std::mem::take(&mut self.has_open_group) {
                self.count_group();
                self.count_group_in_partition();
            }
            if self.is_done() || self.partition_stopped {
                self.has_open_group = false;
                return Ok(false);
            }
            self.has_open_group |= is_live;
        }
        if is_live {
            self.has_rows = true;
            self.count_row();
        }
        Ok(true)
    }

    fn is_done(&self) -> bool {
        match &self.limits.counting {
            Counting::Rows { .. } => self.rows >= self.limits.rows,
            Counting::Groups { groups, .. } => self.groups >= *groups,
        }
    }

    fn partition_ends(&mut self, counts_statics: bool) {
        if !counts_statics || !self.static_is_live || self.has_rows {
            return;
        }
        self.count_row();
        if matches!(self.limits.counting, Counting::Groups { .. }) {
            self.count_group();
            self.count_group_in_partition();
            self.has_open_group = false;
        }
    }

    fn count_row(&mut self) {
        self.rows += 1;
        self.stopped |= self.rows >= self.limits.rows;
        if let Counting::Rows { per_partition, .. } = self.limits.counting {
            debug_assert!(self.rows <= self.limits.rows, "no more rows are given than wanted");
            self.in_partition += 1;
            self.partition_stopped |= self.in_partition >= per_partition;
        }
    }

    fn count_group(&mut self) {
        self.groups += 1;
        self.stopped |= self.is_done();
    }

    fn count_group_in_partition(&mut self) {
        self.in_partition += 1;
        if let Counting::Groups { per_partition, .. } = self.limits.counting {
            self.partition_stopped |= self.in_partition >= per_partition;
        }
    }

    /// Whether a row is in another group than the one before. `clustering`: None for the start of a
    /// partition.
    fn is_new_group(
        &mut self,
        table: Option<&TableMetadata>,
        key: &Bytes,
        clustering: Option<&ClusteringValues>,
    ) -> Result<bool, ReadError> {
        let Counting::Groups { grouping, .. } = &self.limits.counting else { return Ok(false) };
        let (size, function) = match grouping {
            Grouping::Everything => return Ok(false),
            Grouping::ByPrefix(size) => (*size as usize, None),
            Grouping::ByFunction { columns, function } => ((*columns as usize).saturating_sub(1), Some(function)),
        };
        let values = match function {
            Some(function) => Some(function.values.as_ref().ok_or_else(not_looked_up)?),
            None => None,
        };
        let value_of = |clustering: &ClusteringValues| match values {
            Some(values) => values.value(clustering.get(size).and_then(Option::as_ref)),
            None => Ok(None),
        };
        if self.last_value.is_none()
            && let Some(last) = self.last.as_ref().and_then(|last| last.clustering.as_ref())
        {
            self.last_value = value_of(last)?;
        }
        let value = clustering.map(value_of).transpose()?.flatten();
        let is_same = self.last.as_ref().is_some_and(|last| {
            last.key == *key
                && match (&last.clustering, clustering, table) {
                    (Some(last), Some(row), Some(table)) => {
                        let prefix = |values: &ClusteringValues| values.len().min(size);
                        let (a, b) = (&last[..prefix(last)], &row[..prefix(row)]);
                        table.comparator.compare_values(a, b) == Ordering::Equal
                            && values.is_none_or(|values| values.is_same(self.last_value.as_ref(), value.as_ref()))
                    }
                    _ => false,
                }
        });
        self.last = Some(GroupState { key: key.clone(), clustering: clustering.cloned() });
        self.last_value = value;
        Ok(!is_same)
    }
}

/// The error of a count by a function that nobody has looked up.
fn not_looked_up() -> ReadError {
    ReadError::Function { why: "the function of GROUP BY is not known here".to_owned() }
}

#[cfg(test)]
mod tests;
