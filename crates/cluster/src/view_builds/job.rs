//! A job of a build: it passes some rows of the base and gives the place behind them, at which the
//! next job goes on.
//!
//! Rows are passed in slices: each is read, and its entries are applied, under the lock of its
//! partition. A job never waits for a lock, for the commit log or for memory. If it would have to,
//! it ends, and the task that runs the jobs waits. A partition that is wide or busy takes many
//! jobs, and none of them begins it anew.

use std::sync::Arc;

use rows::command::RingBound;
use rows::views::{Changes, View};
use rows::{
    Bound, ClusteringValues, PartitionRange, PartitionStream, ReadCommand, ReadContext, ReadMode, Slice, Slices,
    Unfiltered,
};
use storage::StorageError;
use storage::materialized::ViewChange;
use storage::materialized::built::BuiltRange;
use types::{DecoratedKey, Token};

use super::BuildStop;
use crate::node::Node;
use crate::replica::apply::WriteError;
use crate::replica::views::WriteLocks;

/// Most rows of a slice, which are applied as one step.
const SLICE_ROWS: usize = 256;
/// A slice has at most the bytes of the largest mutation divided by this number. So the entries of
/// its rows, which may all be in one partition of the view, are not more than the commit log
/// takes.
const SLICES_PER_MUTATION: usize = 4;
/// Most partitions of one job.
const JOB_KEYS: usize = 64;
/// Most rows of one job, which also has no more bytes than the largest mutation: between two jobs
/// a build waits where writes wait.
const JOB_ROWS: usize = 16 * SLICE_ROWS;

/// How far the build of a range is.
#[derive(Clone, Debug)]
pub(super) struct RangeProgress {
    /// The range, with the last token up to which every partition was passed.
    pub range: BuiltRange,
    /// The partition that comes next; None: the first one behind `range.last`.
    pub next: Option<Position>,
}

/// A place in a partition of the base.
#[derive(Clone, Debug)]
pub(super) struct Position {
    /// The partition.
    pub key: DecoratedKey,
    /// The last row of the partition that was passed; None: none was yet.
    pub after: Option<ClusteringValues>,
}

/// Why a job ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum JobEnd {
    /// The job has done its share, or the range is done.
    Share,
    /// Another task holds the lock of the partition that comes next.
    Locked,
    /// The commit log takes nothing at the moment.
    LogIsFull,
}

/// Passes the next rows of a range. `locked`: the lock of the partition that comes next, where the
/// caller has waited for it.
pub(super) fn build_next_rows(
    node: &Node,
    view: &Arc<View>,
    mut place: RangeProgress,
    locked: Option<WriteLocks>,
) -> Result<(RangeProgress, JobEnd), BuildStop> {
    let start = RingBound::Token { token: place.range.last.unwrap_or(place.range.start), inclusive: false };
    let end = RingBound::Token { token: place.range.end, inclusive: true };
    // rows are passed over: only the keys are wanted
    let command = command(view, PartitionRange::Range { start, end }, Slices::all(), node.env.clock.now_seconds());
    let mut stream = node.engine.read(&command, &ReadContext::new(ReadMode::Background))?;
    let bytes_max = node.engine.options.commitlog.largest_mutation();
    let mut job = Job { node, view, locked, bytes_max, slice_rows: SLICE_ROWS, keys: 0, rows: 0, bytes: 0 };
    let mut passed: Option<Token> = None;
    while let Some(head) = stream.next_partition()? {
        // all partitions of a token are passed before the token is
        if let Some(before) = passed.replace(head.key.token).filter(|before| *before != head.key.token) {
            place.range.last = Some(before);
        }
        let position = match place.next.take() {
            Some(next) if head.key < next.key => {
                // another partition of the same token, which was passed
                place.next = Some(next);
                continue;
            }
            Some(next) if head.key == next.key => next,
            _ => {
                job.locked = None;
                Position { key: head.key, after: None }
            }
        };
        if let Some((position, pause)) = job.pass(position)? {
            place.next = Some(position);
            return Ok((place, pause));
        }
        place.range.keys += 1;
    }
    place.range.last = Some(place.range.end);
    place.next = None;
    Ok((place, JobEnd::Share))
}

fn command(view: &View, range: PartitionRange, slices: Slices, now: u32) -> ReadCommand {
    ReadCommand { slices, now, ..ReadCommand::whole(&view.base, range) }
}

/// A job that runs, and what it has passed.
struct Job<'a> {
    node: &'a Node,
    view: &'a Arc<View>,
    /// The lock of the partition with which the job begins, until its first slice takes it.
    locked: Option<WriteLocks>,
    /// Bytes of rows after which the job ends.
    bytes_max: usize,
    /// Most rows of the next slice: fewer than [`SLICE_ROWS`] behind a slice that was too large.
    slice_rows: usize,
    /// Partitions that were passed.
    keys: usize,
    /// Rows that were passed.
    rows: usize,
    /// Bytes of the rows that were passed.
    bytes: usize,
}

/// Some rows of a partition.
struct Part {
    /// The entries that follow from the rows.
    change: ViewChange,
    /// The number of the rows.
    rows: usize,
    /// Bytes of the rows.
    bytes: usize,
    /// The last of the rows; None: the partition ends behind them.
    last: Option<ClusteringValues>,
}

impl Job<'_> {
    fn is_over(&self) -> bool {
        self.keys >= JOB_KEYS || self.rows >= JOB_ROWS || self.bytes >= self.bytes_max
    }

    /// Passes the rows of a partition behind a position. Some: the job ends at this position.
    /// None: the partition ends.
    fn pass(&mut self, mut position: Position) -> Result<Option<(Position, JobEnd)>, BuildStop> {
        let replica = &self.node.replica;
        loop {
            if self.is_over() {
                return Ok(Some((position, JobEnd::Share)));
            }
            let given = self.locked.take();
            let locked = given.or_else(|| replica.try_lock_base(self.view.base.id, &position.key.key));
            let Some(_locked) = locked else { return Ok(Some((position, JobEnd::Locked))) };
            let views = self.node.engine.views();
            let Some(view) = views.by_id(self.view.table.id) else { return Err(BuildStop::Stopped) };
            let now = self.node.env.clock.now_seconds();
            let part = self.part(view, &position, now)?;
            match replica.apply_built(part.change, &views, now) {
                Ok(_) => self.slice_rows = (self.slice_rows * 2).min(SLICE_ROWS),
                // the slice is computed again, for the views that there are now
                Err(WriteError::Storage(StorageError::ViewsChanged)) => continue,
                Err(WriteError::Storage(StorageError::Busy)) => return Ok(Some((position, JobEnd::LogIsFull))),
                // entries take more than their rows, here and in the batch log
                Err(WriteError::Storage(StorageError::MutationTooLarge { .. })) if part.rows > 1 => {
                    self.slice_rows = part.rows / 2;
                    continue;
                }
                Err(WriteError::Storage(error @ StorageError::MutationTooLarge { .. })) => {
                    // no write could make this entry either
                    let (view, key) = (view.table.name.as_str(), &position.key.key[..]);
                    tracing::warn!(view, %error, "the build of a view leaves a row of partition {key:02x?} out");
                }
                Err(error) => return Err(BuildStop::Failed(error.to_string())),
            }
            self.rows += part.rows;
            self.bytes += part.bytes;
            if part.last.is_none() {
                self.keys += 1;
                return Ok(None);
            }
            position.after = part.last;
        }
    }

    /// The next rows of a partition.
    fn part(&self, view: &Arc<View>, position: &Position, now: u32) -> Result<Part, BuildStop> {
        let key = &position.key;
        let slices = match position.after.clone() {
            None => Slices::all(),
            Some(last) => vec![Slice { start: Bound::start(last, false), end: Bound::top() }].into(),
        };
        let command = command(view, PartitionRange::Key(key.clone()), slices, now);
        let mut stream = self.node.engine.read(&command, &ReadContext::new(ReadMode::Background))?;
        let mut changes = Changes::new(view, key, now);
        let (mut rows, mut bytes, mut last) = (0, 0, None);
        if stream.next_partition()?.is_some() {
            while let Some(unfiltered) = stream.next_unfiltered()? {
                let Unfiltered::Row(row) = unfiltered else { continue };
                changes.existing(&row);
                rows += 1;
                bytes += row.data_size();
                if rows >= self.slice_rows || bytes >= self.bytes_max / SLICES_PER_MUTATION {
                    last = Some(row.clustering);
                    break;
                }
            }
        }
        let change = ViewChange { base: key.clone(), view: Arc::clone(view), entries: changes.finish() };
        Ok(Part { change, rows, bytes, last })
    }
}
