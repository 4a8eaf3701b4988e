//! A read that begins as a scan of the base and goes on by the indexes. The scan is for conditions
//! with so many places that finding all of them would cost more than the page needs. It ends if it
//! meets too few of the wanted rows.
//!
//! Rows of a range of terms are found term by term, so that the first of them in the order of the
//! table is known only when all are found. A scan finds it at once if many rows are wanted, and
//! passes the whole table if the wanted rows stand together at its end. So the scan may pass rows
//! for as long as its cost is that of finding the places ([`PLACES_OF_A_ROW`]), and from then on
//! while one row of [`WORTH_ROWS`] is wanted. A reader takes no more of the stream than a page
//! needs. Memory: one partition's head.
//!
//! Deleted rows that the scan passes count for `tombstone_warn_threshold`, those that an index
//! leaves out do not: [`DEAD_ROWS_MAX`] end the scan.

use std::sync::Arc;

use rows::command::RingBound;
use rows::{
    ClusteringValues, DataLimits, PartitionHead, PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadError,
    Row, Unfiltered,
};
use types::DecoratedKey;

use super::search::by_places;
use super::sources::Wanted;
use crate::read::explain::{Observation, open_observed};
use crate::table::TableStore;

/// Places that are found at the cost of passing one row (20 ns and 250 ns were measured).
const PLACES_OF_A_ROW: u64 = 12;
/// The scan goes on while one row in so many is wanted: reading a row by its place costs as much
/// as passing about this number of rows.
const WORTH_ROWS: u64 = 16;
/// Number of deleted rows and partitions that ends the scan.
const DEAD_ROWS_MAX: u64 = 500;

/// The rows that a scan may pass.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// Rows that may be passed beyond those that the wanted ones allow.
    pub rows: u64,
    /// Deleted rows and partitions that may be passed.
    pub dead: u64,
}

impl Allowance {
    /// The allowance for conditions with so many places.
    pub fn of_places(places: u64) -> Self {
        Self { rows: places / PLACES_OF_A_ROW, dead: DEAD_ROWS_MAX }
    }
}

/// A stream of the base, first by a scan and then by places.
pub struct ScannedStream {
    base: Arc<TableStore>,
    command: ReadCommand,
    context: ReadContext,
    conditions: Vec<Wanted>,
    observation: Option<Observation>,
    allowance: Allowance,
    /// Rows and partitions that the scan has given; those of them that meet the conditions; those
    /// that are deleted.
    passed: u64,
    met: u64,
    dead: u64,
    /// True: a range tombstone is open behind the rows that were given, and the scan goes on until
    /// it is closed.
    is_open: bool,
    /// The partition that is being read. None: the stream is at its beginning.
    partition: Option<Partition>,
    source: Source,
}

struct Partition {
    key: DecoratedKey,
    static_row: Option<Box<Row>>,
    /// The row that was given last; None: none of the partition was.
    last: Option<ClusteringValues>,
}

enum Source {
    Scan(Box<dyn PartitionStream>),
    /// By places, the rows left of a partition that the scan has begun. None: there are none.
    RestOfPartition(Option<Box<dyn PartitionStream>>),
    Places(Box<dyn PartitionStream>),
}

impl ScannedStream {
    /// Begins the scan.
    pub fn open(
        base: &Arc<TableStore>,
        conditions: Vec<Wanted>,
        command: &ReadCommand,
        context: &ReadContext,
        observation: Option<Observation>,
        allowance: Allowance,
    ) -> Result<Self, ReadError> {
        let scan = ReadCommand { indexes: Vec::new(), limits: DataLimits::NONE, ..command.clone() };
        let stream = open_observed(observation.as_ref(), base, &scan, context)?;
        Ok(Self {
            base: Arc::clone(base),
            command: command.clone(),
            context: context.clone(),
            conditions,
            observation,
            allowance,
            passed: 0,
            met: 0,
            dead: 0,
            is_open: false,
            partition: None,
            source: Source::Scan(stream),
        })
    }

    /// Whether the scan costs more than the places would.
    fn is_over(&self) -> bool {
        let allowed = self.allowance.rows.saturating_add(self.met.saturating_mul(WORTH_ROWS));
        !self.is_open && (self.passed > allowed || self.dead > self.allowance.dead)
    }

    /// The rows of a command's range and slices, by places.
    fn by_places(&self, command: &ReadCommand) -> Result<Box<dyn PartitionStream>, ReadError> {
        let (conditions, observation) = (self.conditions.clone(), self.observation.clone());
        by_places(&self.base, conditions, command, &self.context, observation)
    }

    /// The rows that are left of the partition that the scan has begun, by places.
    fn rest_of_partition(&self) -> Result<Option<Box<dyn PartitionStream>>, ReadError> {
        let Some(partition) = &self.partition else { return Ok(None) };
        let slices = match &partition.last {
            None => self.command.slices.clone(),
            Some(last) if last.is_empty() => return Ok(None),
            Some(last) => self.command.slices.behind(last, self.command.reversed, &self.command.table.comparator),
        };
        if slices.0.is_empty() {
            return Ok(None);
        }
        let range = PartitionRange::Key(partition.key.clone());
        let mut rest = self.by_places(&ReadCommand { range, slices, ..self.command.clone() })?;
        // the head was given by the scan
        Ok(rest.next_partition()?.map(|_| rest))
    }

    /// The partitions behind the one that the scan has begun, by places.
    fn behind_partition(&self) -> Result<Box<dyn PartitionStream>, ReadError> {
        let (end, key) = match (&self.command.range, &self.partition) {
            (_, None) => return self.by_places(&self.command),
            (PartitionRange::Key(_), _) => return Ok(Box::new(rows::stream::EmptyStream)),
            (PartitionRange::Range { end, .. }, Some(partition)) => (end.clone(), partition.key.clone()),
        };
        let range = PartitionRange::Range { start: RingBound::Key { key, inclusive: false }, end };
        self.by_places(&ReadCommand { range, ..self.command.clone() })
    }

    /// Counts an item that the scan gives.
    fn count(&mut self, unfiltered: &Unfiltered) {
        let row = match unfiltered {
            Unfiltered::Row(row) => row,
            Unfiltered::Marker(marker) => {
                let opens = if self.command.reversed { marker.close } else { marker.open };
                self.is_open = opens.is_some();
                self.dead += 1;
                return;
            }
        };
        self.passed += 1;
        let Some(partition) = &mut self.partition else { return };
        partition.last = Some(row.clustering.clone());
        if row.liveness.is_empty() && row.columns.is_empty() {
            self.dead += 1;
        }
        let (key, static_row) = (&partition.key, partition.static_row.as_deref());
        // a column that was not read meets nothing, which ends the scan early
        self.met += u64::from(self.conditions.iter().all(|wanted| wanted.is_met(key, static_row, row)));
    }
}

impl PartitionStream for ScannedStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        // a range tombstone ends with its partition
        self.is_open = false;
        if !matches!(self.source, Source::Places(_)) && (self.is_over() || !matches!(self.source, Source::Scan(_))) {
            self.context.trace(|| format!("{} rows of {} were wanted: going on by index", self.met, self.passed));
            self.source = Source::Places(self.behind_partition()?);
        }
        match &mut self.source {
            Source::RestOfPartition(_) => Ok(None),
            Source::Places(places) => places.next_partition(),
            Source::Scan(scan) => {
                let head = scan.next_partition()?;
                if let Some(head) = &head {
                    self.passed += 1;
                    self.dead += u64::from(!head.deletion.is_live());
                    let (key, static_row) = (head.key.clone(), head.static_row.clone());
                    self.partition = Some(Partition { key, static_row, last: None });
                }
                Ok(head)
            }
        }
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        if matches!(self.source, Source::Scan(_)) && self.partition.is_some() && self.is_over() {
            self.source = Source::RestOfPartition(self.rest_of_partition()?);
        }
        match &mut self.source {
            Source::RestOfPartition(rest) => rest.as_mut().map_or(Ok(None), |rest| rest.next_unfiltered()),
            Source::Places(places) => places.next_unfiltered(),
            Source::Scan(scan) => {
                let unfiltered = scan.next_unfiltered()?;
                if let Some(unfiltered) = &unfiltered {
                    self.count(unfiltered);
                }
                Ok(unfiltered)
            }
        }
    }
}
