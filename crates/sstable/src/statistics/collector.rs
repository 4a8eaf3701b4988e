//! Gathers [`Stats`] from what is written. Agrees with
//! `org.apache.cassandra.io.sstable.metadata.MetadataCollector` and
//! `org.apache.cassandra.db.rows.Rows.collectStats`.

use std::cmp::Ordering;

use bytes::Bytes;
use rows::codec::RowFacts;
use rows::{
    Cell, ClusteringPrefix, ClusteringValues, ColumnData, DeletionTime, Liveness, NO_DELETION_TIME, NO_TTL, PrefixKind,
    RangeTombstoneMarker, Row, Slice,
};
use schema::{ClusteringComparator, TableMetadata};

use super::header::clustering_types;
use super::{Cardinality, Histogram, Stats, TombstoneHistogram};

/// Collects while partitions are written in order.
#[derive(Debug)]
pub struct StatsCollector {
    comparator: ClusteringComparator,
    is_counter: bool,
    stats: Stats,
    seen_any: bool,
    first: Option<ClusteringPrefix>,
    last: Option<ClusteringPrefix>,
    cells: u64,
    /// Seconds: what has expired by then counts as a tombstone.
    now: u32,
    /// Tombstones of the open partition.
    tombstones: u64,
    /// Sketch of the partition keys.
    pub cardinality: Cardinality,
}

impl StatsCollector {
    /// For a table; `now` in seconds.
    pub fn new(table: &TableMetadata, now: u32) -> Self {
        let nothing = Slice {
            start: ClusteringPrefix::start(ClusteringValues::new(), false),
            end: ClusteringPrefix::end(ClusteringValues::new(), false),
        };
        let stats = Stats {
            partition_sizes: Histogram::of_partition_sizes(),
            cells_per_partition: Histogram::of_cell_counts(),
            commit_log_intervals: Vec::new(),
            min_timestamp: i64::MIN,
            max_timestamp: i64::MAX,
            min_local_deletion_time: NO_DELETION_TIME,
            max_local_deletion_time: NO_DELETION_TIME,
            min_ttl: 0,
            max_ttl: 0,
            compression_ratio: -1.0,
            tombstones: TombstoneHistogram::default(),
            level: 0,
            repaired_at: 0,
            clustering_types: clustering_types(&table.clustering),
            covered: nothing,
            has_legacy_counter_shards: false,
            total_columns_set: 0,
            total_rows: 0,
            pending_repair: None,
            is_transient: false,
            originating_host: None,
            has_partition_deletions: false,
            first_key: Bytes::new(),
            last_key: Bytes::new(),
            token_space_coverage: f64::NAN,
        };
        Self {
            comparator: table.comparator.clone(),
            is_counter: table.is_counter(),
            stats,
            seen_any: false,
            first: None,
            last: None,
            cells: 0,
            now,
            tombstones: 0,
            cardinality: Cardinality::default(),
        }
    }

    fn timestamp(&mut self, timestamp: i64) {
        let stats = &mut self.stats;
        if !self.seen_any {
            self.seen_any = true;
            (stats.min_timestamp, stats.max_timestamp) = (timestamp, timestamp);
            (stats.min_local_deletion_time, stats.max_local_deletion_time) = (NO_DELETION_TIME, 0);
            (stats.min_ttl, stats.max_ttl) = (u32::MAX, 0);
        }
        stats.min_timestamp = stats.min_timestamp.min(timestamp);
        stats.max_timestamp = stats.max_timestamp.max(timestamp);
    }

    fn end(&mut self, local_deletion_time: u32) {
        let stats = &mut self.stats;
        stats.min_local_deletion_time = stats.min_local_deletion_time.min(local_deletion_time);
        stats.max_local_deletion_time = stats.max_local_deletion_time.max(local_deletion_time);
        if local_deletion_time != NO_DELETION_TIME {
            stats.tombstones.add(local_deletion_time);
        }
    }

    fn timed(&mut self, timestamp: i64, ttl: u32, local_deletion_time: u32) {
        self.timestamp(timestamp);
        self.stats.min_ttl = self.stats.min_ttl.min(ttl);
        self.stats.max_ttl = self.stats.max_ttl.max(ttl);
        self.end(local_deletion_time);
        let is_live = local_deletion_time == NO_DELETION_TIME || ttl != NO_TTL && self.now < local_deletion_time;
        self.tombstones += u64::from(!is_live);
    }

    fn deletion(&mut self, deletion: &DeletionTime) {
        if !deletion.is_live() {
            self.timestamp(deletion.marked_for_delete_at);
            self.end(deletion.local_deletion_time);
            self.tombstones += 1;
        }
    }

    fn liveness(&mut self, liveness: &Liveness) {
        if !liveness.is_empty() {
            self.timed(liveness.timestamp, liveness.ttl, liveness.local_expiration_time);
        }
    }

    fn cell(&mut self, cell: &Cell) {
        self.cells += 1;
        self.timed(cell.timestamp, cell.ttl, cell.local_deletion_time);
        if self.is_counter && !cell.is_tombstone() && rows::counter::has_legacy_shards(&cell.value) {
            self.stats.has_legacy_counter_shards = true;
        }
    }

    /// A partition begins.
    pub fn start_partition(&mut self, deletion: &DeletionTime) {
        self.stats.has_partition_deletions |= !deletion.is_live();
        self.deletion(deletion);
    }

    /// A row; the static row too, if it holds anything.
    pub fn row(&mut self, row: &Row) {
        self.liveness(&row.liveness);
        self.deletion(&row.deletion);
        for data in &row.columns {
            match data {
                ColumnData::Simple(cell) => {
                    self.cell(cell);
                    self.stats.total_columns_set += 1;
                }
                ColumnData::Complex(complex) => {
                    self.deletion(&complex.deletion);
                    complex.cells.iter().for_each(|cell| self.cell(cell));
                    self.stats.total_columns_set += u64::from(!complex.cells.is_empty());
                }
            }
        }
        self.stats.total_rows += 1;
    }

    /// A row that is copied.
    pub fn encoded_row(&mut self, facts: &RowFacts) {
        self.timed(facts.min_timestamp, NO_TTL, NO_DELETION_TIME);
        self.timestamp(facts.max_timestamp);
        self.cells += facts.cells;
        self.stats.total_columns_set += facts.columns;
        self.stats.total_rows += 1;
    }

    /// A marker.
    pub fn marker(&mut self, marker: &RangeTombstoneMarker) {
        marker.close.iter().chain(&marker.open).for_each(|deletion| self.deletion(deletion));
    }

    /// A partition ends; `first` and `last` are the ends of its rows and markers. Gives the number
    /// of its tombstones: deletions of the partition, of rows, of ranges (a boundary is two), of
    /// collections and of cells, and what has expired.
    pub fn end_partition(
        &mut self,
        key: &[u8],
        size: u64,
        ends: Option<(&ClusteringPrefix, &ClusteringPrefix)>,
    ) -> u64 {
        let tombstones = std::mem::take(&mut self.tombstones);
        self.stats.partition_sizes.add(size);
        self.stats.cells_per_partition.add(std::mem::take(&mut self.cells));
        self.cardinality.add(key);
        let Some((first, last)) = ends else { return tombstones };
        if self.first.as_ref().is_none_or(|known| first.compare(known, &self.comparator) == Ordering::Less) {
            self.first = Some(first.clone());
        }
        if self.last.as_ref().is_none_or(|known| last.compare(known, &self.comparator) == Ordering::Greater) {
            self.last = Some(last.clone());
        }
        tombstones
    }

    /// Ends the collection and gives the statistics.
    pub fn finish(mut self) -> (Stats, Cardinality) {
        if self.stats.min_ttl == u32::MAX {
            self.stats.min_ttl = 0;
        }
        if let Some(first) = self.first {
            self.stats.covered.start = as_bound(first, PrefixKind::InclStartBound);
        }
        if let Some(last) = self.last {
            self.stats.covered.end = as_bound(last, PrefixKind::InclEndBound);
        }
        let Stats { min_timestamp, max_timestamp, min_ttl, max_ttl, .. } = self.stats;
        assert!(min_timestamp <= max_timestamp, "the least timestamp is not above the greatest");
        assert!(min_ttl <= max_ttl, "the least TTL is not above the greatest");
        let Stats { min_local_deletion_time, max_local_deletion_time, .. } = self.stats;
        assert!(min_local_deletion_time <= max_local_deletion_time, "the first deletion is not behind the last");
        self.stats.tombstones = std::mem::take(&mut self.stats.tombstones).finish();
        (self.stats, self.cardinality)
    }
}

/// Detached from the buffer that it came from.
fn as_bound(prefix: ClusteringPrefix, kind_of_row: PrefixKind) -> ClusteringPrefix {
    let kind = if prefix.kind == PrefixKind::Clustering { kind_of_row } else { prefix.kind };
    let values = prefix.values.iter().map(|value| value.as_ref().map(|value| Bytes::copy_from_slice(value))).collect();
    ClusteringPrefix { kind, values }
}
