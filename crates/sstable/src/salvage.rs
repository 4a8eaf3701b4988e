//! Reads what can be read of a damaged SSTable, and says what cannot.
//!
//! [`SalvageStream`] gives partitions as any stream does, and goes on behind damage:
//! 1. A chunk that fails its checksum, or bytes that do not decode, end the partition that they are
//!    in: what was read of it is kept (an open range deletion is closed at the last position).
//! 2. It goes on at the next block of the same partition that `Rows.db` names (BTI), else at the
//!    next partition that the index names, else where the bytes look like the head of a partition
//!    again: a valid key above the last one, followed by an unfiltered whose distance to the
//!    partition's start is right.
//! 3. Partitions that are out of order are set aside: [`SalvageStream::next_pass`] gives them,
//!    sorted, for another SSTable. Rows that are out of order are left out.
//!
//! A chunk whose checksum is wrong is never used: no row is given that a checksum could have told
//! to be wrong. Without Statistics.db the schema must be given; then the base that write times are
//! counted from is lost. Agrees in purpose with
//! `org.apache.cassandra.io.sstable.format.SortedTableScrubber`.

mod open;
mod partition;
mod positions;
mod report;
mod resync;
mod window;

use std::sync::Arc;

use env::Env;
use rows::codec::Header;
use rows::{PartitionHead, PartitionStream, ReadError, Unfiltered};
use schema::TableMetadata;
use types::DecoratedKey;

use crate::chunk_reader::DataFile;
use crate::descriptor::Descriptor;
use crate::error::Error;
use crate::statistics::Statistics;
use open::SalvageFiles;
use partition::OpenPartition;
use positions::Positions;
pub use report::{LOST_MAX, Lost, SalvageReport};
use window::{Damage, Window};

/// Partitions out of order beyond this are lost.
const ASIDE_MAX: usize = 1 << 16;

/// A partition that waits for a later pass.
struct OutOfOrderPartition {
    key: DecoratedKey,
    start: u64,
    end: u64,
}

/// The rows of an SSTable that can be read.
pub struct SalvageStream {
    files: SalvageFiles,
    positions: Positions,
    window: Window,
    /// Where the next partition is looked for.
    position: u64,
    last: Option<DecoratedKey>,
    partition: Option<OpenPartition>,
    /// The first unfiltered of the open partition, read with its head.
    first: Option<Unfiltered>,
    /// Out of order.
    aside: Vec<OutOfOrderPartition>,
    /// The rows set aside for the present pass, last first; None: the first pass, through the file.
    pass: Option<Vec<OutOfOrderPartition>>,
    report: SalvageReport,
}

impl SalvageStream {
    /// Opens what is there. `table`: the schema; without it Statistics.db must be readable. Data.db
    /// must be there.
    pub fn open(env: &Env, descriptor: &Descriptor, table: Option<&Arc<TableMetadata>>) -> Result<Self, Error> {
        let mut report = SalvageReport::default();
        let files = SalvageFiles::open(env, descriptor, table, &mut report)?;
        let positions = Positions::open(env, descriptor, &mut report);
        Ok(Self {
            files,
            positions,
            window: Window::default(),
            position: 0,
            last: None,
            partition: None,
            first: None,
            aside: Vec::new(),
            pass: None,
            report,
        })
    }

    /// The report on rows given and rows lost so far.
    pub fn report(&self) -> &SalvageReport {
        &self.report
    }

    /// The table that rows are read as.
    pub fn table(&self) -> &Arc<TableMetadata> {
        &self.files.table
    }

    /// The header that rows are decoded against.
    pub fn header(&self) -> &Header {
        &self.files.header
    }

    /// Statistics.db, if it can be read.
    pub fn statistics(&self) -> Option<&Statistics> {
        self.files.statistics.as_ref()
    }

    /// Where in the uncompressed data it is.
    pub fn position(&self) -> u64 {
        self.partition.as_ref().map_or(self.position, |partition| partition.position)
    }

    /// Data.db.
    pub fn data(&self) -> &DataFile {
        &self.files.data
    }

    /// When all has been given: begins again with what was out of order, in order; false: there is
    /// nothing (more). What this pass gives must go into another SSTable than what the pass before
    /// gave.
    pub fn next_pass(&mut self) -> bool {
        self.finish_partition();
        if self.aside.is_empty() {
            return false;
        }
        let mut aside = std::mem::take(&mut self.aside);
        aside.sort_by(|a, b| b.key.cmp(&a.key));
        self.last = None;
        self.pass = Some(aside);
        true
    }

    /// Reads on to the end of the open partition.
    fn finish_partition(&mut self) {
        self.first = None;
        while self.partition.is_some() {
            self.step();
        }
    }

    /// The next unfiltered of the open partition; None: it has ended, and the position is behind
    /// it.
    fn step(&mut self) -> Option<Unfiltered> {
        let partition = self.partition.as_mut()?;
        let next = partition.next(&self.files, &mut self.window, &mut self.positions, &mut self.report);
        if next.is_none() {
            if self.pass.is_none() {
                self.position = partition.position;
            }
            self.partition = None;
        }
        next
    }

    /// Goes behind damage at `from`: to the next place where a partition can begin.
    fn pass_over(&mut self, from: u64, damage: &Damage, key: Option<&DecoratedKey>) {
        let next = self.positions.after(from, damage.to, &mut self.report);
        let next = next.or_else(|| resync::find(&self.files, &mut self.window, damage.to, self.last.as_ref()));
        let next = next.unwrap_or_else(|| self.files.data.length());
        let partitions = self.positions.take_passed();
        self.report.lose(from, next, partitions, key, &damage.what);
        self.position = next;
    }

    /// The next head in the file that is in order.
    fn next_in_file(&mut self) -> Option<PartitionHead> {
        while self.position < self.files.data.length() {
            let start = self.position;
            match OpenPartition::open(&self.files, &mut self.window, start) {
                Ok((head, partition)) => {
                    let key = head.key.clone();
                    self.partition = Some(partition);
                    if self.last.as_ref().is_some_and(|last| *last >= key) {
                        self.set_aside(key, start);
                    } else if let Some(head) = self.admit(head) {
                        return Some(head);
                    }
                }
                Err((damage, key)) => self.pass_over(start, &damage, key.as_ref()),
            }
        }
        None
    }

    /// A head whose partition holds something that can be read.
    fn admit(&mut self, head: PartitionHead) -> Option<PartitionHead> {
        let says_something = !head.deletion.is_live() || head.static_row.is_some();
        let cut = self.report.partitions_cut;
        let first = self.step();
        if first.is_none() && !says_something {
            // nothing is given of it: if something is lost, all is
            self.report.partitions_lost += self.report.partitions_cut - cut;
            self.report.partitions_cut = cut;
            return None;
        }
        self.first = first;
        self.last = Some(head.key.clone());
        self.report.partitions += 1;
        self.report.rows += u64::from(head.static_row.is_some());
        Some(head)
    }

    fn set_aside(&mut self, key: DecoratedKey, start: u64) {
        // what is lost in it is told when it is given
        let before = self.report.clone();
        self.finish_partition();
        if self.aside.len() < ASIDE_MAX {
            self.report = before;
            self.report.out_of_order += 1;
            self.aside.push(OutOfOrderPartition { key, start, end: self.position });
        } else {
            let what = "out of order, and too many are";
            self.report.lose(start, self.position, 1, Some(&key), what);
        }
    }

    fn next_aside(&mut self) -> Option<PartitionHead> {
        while let Some(aside) = self.pass.as_mut()?.pop() {
            if self.last.as_ref().is_some_and(|last| *last >= aside.key) {
                self.aside.push(aside);
                continue;
            }
            match OpenPartition::open(&self.files, &mut self.window, aside.start) {
                Ok((head, mut partition)) => {
                    partition.end = Some(aside.end);
                    self.partition = Some(partition);
                    if let Some(head) = self.admit(head) {
                        return Some(head);
                    }
                }
                Err((damage, _)) => self.report.lose(aside.start, aside.end, 1, Some(&aside.key), &damage.what),
            }
        }
        None
    }
}

impl PartitionStream for SalvageStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        self.finish_partition();
        Ok(if self.pass.is_some() { self.next_aside() } else { self.next_in_file() })
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        let next = self.first.take().or_else(|| self.step());
        self.report.rows += u64::from(matches!(next, Some(Unfiltered::Row(_))));
        self.report.markers += u64::from(matches!(next, Some(Unfiltered::Marker(_))));
        Ok(next)
    }
}
