//! Writes whose changes of views are more than one group of the commit log may be, in parts.
//!
//! Only changes that cannot be refused any more are written in parts, because other nodes have them
//! or will have them: a change that Paxos has decided, the changes of a hint, a read repair or a
//! repair, and mutations in a record of the batch log, whose client was told that they will be
//! applied. A write of a client is refused instead (`Replica::apply`).
//!
//! 1. The rows of the write go first, some at a time. Each has the deletion of the write that
//!    covers it as its own, so that a reader finds a row that is replaced as it was or as it is; if
//!    the deletions came first, a reader would find no row for a while.
//! 2. Rows that are stored here and that a deletion of the write covers follow, some at a time.
//!    Each is deleted as a row, as of the time of the covering deletion.
//! 3. The deletions of the write come last. They cover nothing now that a view shows.
//!
//! Each part is a write of its own: its lock is taken, and it is one group of the commit log with
//! the changes of views that follow from it. So base and views agree behind each part, also if a
//! crash ends the write there or another write comes in between; and a write that is begun anew
//! finds less to do. Parts that are too large all the same become smaller, down to a single row.
//!
//! A TRUNCATE between two parts removes the whole write: the parts that are left are dropped,
//! because their rows would come back otherwise.
//!
//! The changes of a single row may be too large still, where the row is moved in a view, or comes
//! to be in it, with columns that are stored already: this write may be small. Such an entry is
//! left out, and logged, as by the build of a view: the view lacks the row then, or columns of it
//! once the row is written again, and shows no row that the base does not have.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use env::Env;
use rows::views::CoveringDeletions;
use rows::{
    Bound, Cell, ClusteringValues, ColumnData, Mutation, PartitionRange, PartitionStream, PartitionUpdate, ReadCommand,
    ReadContext, ReadError, ReadMode, Row, Slice, Slices, Unfiltered,
};
use storage::base_views::BaseViews;
use storage::commitlog::LogPosition;
use storage::materialized::{self, ViewChange};
use storage::received::{TruncationEffect, TruncationEpoch};
use storage::{Engine, StorageError};
use tokio::sync::RwLock;

use super::{DividedViewChanges, ViewRouter, divide, lock, settle, write_error};
use crate::replica::Replica;
use crate::replica::apply::WriteError;
use crate::stripes::{StripeGuards, Stripes};

/// Most rows of a part.
const ROWS_AT_ONCE: usize = 256;
/// Most stored rows that are looked at for a part: the lock of the partition is held meanwhile.
const LOOKED_AT_ONCE: usize = 4096;

/// Time between two looks whether a truncation has ended.
const TRUNCATION_PAUSE: Duration = Duration::from_millis(100);

/// A write that is applied in parts.
pub(crate) struct Parts {
    env: Env,
    engine: Arc<Engine>,
    routes: Option<Arc<dyn ViewRouter>>,
    gate: Arc<RwLock<()>>,
    locks: Arc<Stripes>,
    /// The updates that are not applied yet, or not as a whole.
    left: VecDeque<RemainingUpdate>,
    /// The log position up to which parts were applied; None: nothing was logged.
    position: Option<LogPosition>,
}

impl Replica {
    /// Does the work of [`Replica::apply_encoded`] for a write that other nodes have or will have:
    /// in parts if the changes of views that follow from it are too large. The parts come to their
    /// end even if the caller goes away.
    pub(crate) async fn apply_or_in_parts(
        &self,
        mutations: &[Mutation],
        encoded: &[Bytes],
        held: StripeGuards,
    ) -> Result<Option<LogPosition>, WriteError> {
        match self.apply_encoded(mutations, encoded, held).await {
            Err(error) if self.takes_in_parts(mutations, &error) => Box::pin(self.apply_in_parts(mutations)).await,
            applied => applied,
        }
    }

    /// Whether mutations that were refused may be taken in parts.
    pub(crate) fn takes_in_parts(&self, mutations: &[Mutation], refused: &WriteError) -> bool {
        matches!(refused, WriteError::Storage(StorageError::MutationTooLarge { .. }))
            && self.engine.views_over(mutations).is_some()
    }

    async fn apply_in_parts(&self, mutations: &[Mutation]) -> Result<Option<LogPosition>, WriteError> {
        let turn = Arc::clone(&self.views.in_parts).acquire_owned().await.map_err(|_| WriteError::Overloaded)?;
        let mut parts = self.parts_of(mutations);
        let all = async move {
            loop {
                // outside of the gate: a TRUNCATE, which makes room, closes it
                parts.engine.admit().await;
                match parts.apply_next().await {
                    Err(WriteError::Storage(StorageError::Busy)) => parts.engine.log.wait_for_room().await,
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(error) => return Err(error),
                }
            }
            drop(turn);
            Ok(parts.position)
        };
        self.env.run_to_completion("view-parts", all).await
    }

    /// A write that is applied in parts.
    pub(crate) fn parts_of(&self, mutations: &[Mutation]) -> Parts {
        let views = self.engine.views();
        let updates = mutations.iter().flat_map(|mutation| &mutation.updates);
        Parts {
            env: self.env.clone(),
            engine: Arc::clone(&self.engine),
            routes: self.views.routes.get().cloned(),
            gate: Arc::clone(&self.views.gate),
            locks: Arc::clone(&self.views.locks),
            left: updates
                .map(|update| RemainingUpdate::of(update.clone(), &views, self.engine.truncation_epoch()))
                .collect(),
            position: None,
        }
    }

    /// Does the work of [`Replica::apply_now`] for a write that other nodes have or will have: in
    /// parts if the changes of views that follow from it are too large. Err: some of the parts may
    /// have been applied, to the base and its views alike; the same call goes on with the rest.
    pub(crate) fn apply_now_or_in_parts(&self, mutations: &[Mutation]) -> Result<(), WriteError> {
        match self.apply_now(mutations) {
            Err(error) if self.takes_in_parts(mutations, &error) => self.apply_now_in_parts(mutations),
            applied => applied.map(drop),
        }
    }

    fn apply_now_in_parts(&self, mutations: &[Mutation]) -> Result<(), WriteError> {
        let (views, begun) = (self.engine.views(), self.engine.truncation_epoch());
        for update in mutations.iter().flat_map(|mutation| &mutation.updates) {
            let mut left = RemainingUpdate::of(update.clone(), &views, begun);
            while !left.is_over() {
                let views = self.engine.views();
                let _locked = self.try_lock_base(update.table.id, &update.key.key).ok_or(StorageError::Busy)?;
                match left.since(&self.engine) {
                    TruncationEffect::Nothing => {}
                    TruncationEffect::Begun => return Err(StorageError::Busy.into()),
                    TruncationEffect::Removed => break,
                }
                let target = ApplyTarget { engine: &self.engine, routes: self.views.routes.get(), views: &views };
                match left.apply_next(target) {
                    Err(WriteError::Storage(StorageError::ViewsChanged)) => {}
                    applied => applied?,
                }
                // nothing waits here: flushes have the time until the next call
                if !left.is_over() && !self.engine.has_room() {
                    return Err(StorageError::Busy.into());
                }
            }
        }
        Ok(())
    }
}

impl Parts {
    /// Applies the next part. True: more are left. The caller waits for room in memtables
    /// (`Engine::admit`). `StorageError::Busy`: the buffer of the log is full; the part comes
    /// again with the next call. After another error nothing more is applied. Waits for the end of
    /// a TRUNCATE that is under way.
    pub async fn apply_next(&mut self) -> Result<bool, WriteError> {
        let Some(mut left) = self.left.pop_front() else { return Ok(false) };
        let views = self.engine.views();
        let locked = lock(&self.gate, &self.locks, vec![left.place()]).await;
        match left.since(&self.engine) {
            TruncationEffect::Nothing => {}
            TruncationEffect::Begun => {
                drop(locked);
                self.left.push_front(left);
                self.env.sleep(TRUNCATION_PAUSE).await;
                return Ok(true);
            }
            TruncationEffect::Removed => return Ok(!self.left.is_empty()),
        }
        let (engine, routes) = (Arc::clone(&self.engine), self.routes.clone());
        let job = move || {
            let applied = left.apply_next(ApplyTarget { engine: &engine, routes: routes.as_ref(), views: &views });
            drop(locked);
            (left, applied)
        };
        let (left, applied) = self.env.blocking("view", job).await.map_err(|_| WriteError::Overloaded)?;
        match left.is_over() {
            true => self.position = left.position.or(self.position),
            false => self.left.push_front(left),
        }
        match applied {
            // the part is computed again, for the views that there are now
            Err(WriteError::Storage(StorageError::ViewsChanged)) => {}
            applied => applied?,
        }
        Ok(!self.left.is_empty())
    }
}

/// The part of an update that comes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// The rows of the update.
    Rows,
    /// Stored rows that the deletions of the update cover.
    Covered,
    /// The update without its rows; all of it, where its table has no views.
    Deletions,
    /// No part is left.
    Over,
}

/// The rest of an update that is applied in parts.
struct RemainingUpdate {
    /// The moment at which the first part was due. A TRUNCATE that comes later removes all of the
    /// update.
    begun: TruncationEpoch,
    /// The update, without the rows in `rows`.
    update: PartitionUpdate,
    /// The rows of the update; deletions that cover them are added to each as its own.
    rows: Vec<Row>,
    /// Number of `rows` that were applied.
    passed: usize,
    phase: Phase,
    /// The last stored row that was looked at; None: none was yet.
    after: Option<ClusteringValues>,
    /// Most rows of the next part: fewer than [`ROWS_AT_ONCE`] behind a part that was too large.
    at_once: usize,
    /// The log position behind the last part; None: nothing was logged.
    position: Option<LogPosition>,
}

impl RemainingUpdate {
    /// The rest of an update of which nothing is applied yet.
    fn of(mut update: PartitionUpdate, views: &BaseViews, begun: TruncationEpoch) -> Self {
        let has_views = views.of_base(update.table.id).is_some();
        let rows = if has_views { std::mem::take(&mut update.rows) } else { Vec::new() };
        let rows = under_deletions(&update, rows);
        let phase = match rows.is_empty() {
            false => Phase::Rows,
            true if has_views => behind_rows(&update),
            true => Phase::Deletions,
        };
        Self { begun, update, rows, passed: 0, phase, after: None, at_once: ROWS_AT_ONCE, position: None }
    }

    fn is_over(&self) -> bool {
        self.phase == Phase::Over
    }

    /// The effect of truncations on the update since it was begun. The caller has passed the gate.
    fn since(&self, engine: &Engine) -> TruncationEffect {
        engine
            .table(self.update.table.id)
            .map_or(TruncationEffect::Nothing, |store| store.truncation_effect(self.begun))
    }

    /// The place of the lock of the partition.
    fn place(&self) -> usize {
        Stripes::of((self.update.table.id, &self.update.key.key[..]))
    }

    /// Applies the next part. The caller holds the lock of the partition, and may wait for the
    /// disk. Where the part is refused nothing of it was applied.
    fn apply_next(&mut self, target: ApplyTarget<'_>) -> Result<(), WriteError> {
        match self.phase {
            Phase::Rows => {
                let end = self.rows.len().min(self.passed + self.at_once);
                let some = self.rows[self.passed..end].to_vec();
                if self.apply_rows(target, some)? {
                    self.passed = end;
                }
                if self.passed == self.rows.len() {
                    self.phase = behind_rows(&self.update);
                }
            }
            Phase::Covered => {
                let (rows, last) = self.covered(target.engine).map_err(WriteError::Read)?;
                if self.apply_rows(target, rows)? {
                    if last.is_none() {
                        self.phase = Phase::Deletions;
                    }
                    self.after = last;
                }
            }
            Phase::Deletions => {
                if !self.update.is_empty() {
                    let position = target.apply(&self.update, 0)?;
                    self.position = position.or(self.position);
                }
                self.phase = Phase::Over;
            }
            Phase::Over => {}
        }
        Ok(())
    }

    /// Applies rows of the partition as one group. False: they are too many for one, and nothing
    /// was applied; fewer are taken from now on.
    fn apply_rows(&mut self, target: ApplyTarget<'_>, rows: Vec<Row>) -> Result<bool, WriteError> {
        let count = rows.len();
        if count == 0 {
            return Ok(true);
        }
        let mut part = PartitionUpdate::new(Arc::clone(&self.update.table), self.update.key.clone());
        part.rows = rows;
        match target.apply(&part, 0) {
            Err(WriteError::Storage(StorageError::MutationTooLarge { .. })) if count > 1 => {
                self.at_once = count / 2;
                Ok(false)
            }
            applied => {
                self.position = applied?.or(self.position);
                self.at_once = (self.at_once * 2).min(ROWS_AT_ONCE);
                Ok(true)
            }
        }
    }

    /// The next stored rows that the deletions of the update cover, as deletions of rows, and the
    /// last row that was looked at; None: there are no more.
    fn covered(&self, engine: &Engine) -> Result<(Vec<Row>, Option<ClusteringValues>), ReadError> {
        let slices = match self.after.clone() {
            None => Slices::all(),
            Some(last) => vec![Slice { start: Bound::start(last, false), end: Bound::top() }].into(),
        };
        let now = engine.env.clock.now_seconds();
        let whole = ReadCommand::whole(&self.update.table, PartitionRange::Key(self.update.key.clone()));
        let command = ReadCommand { slices, now, ..whole };
        let mut stream = engine.read(&command, &ReadContext::new(ReadMode::Background))?;
        let covering = CoveringDeletions::of(&self.update);
        let (mut rows, mut looked) = (Vec::new(), 0);
        if stream.next_partition()?.is_some() {
            while let Some(unfiltered) = stream.next_unfiltered()? {
                let Unfiltered::Row(row) = unfiltered else { continue };
                let deletion = covering.deletion_of(&row);
                if deletion.supersedes(&row.deletion) {
                    rows.push(Row { deletion, ..Row::new(row.clustering.clone()) });
                }
                looked += 1;
                if rows.len() >= self.at_once || looked >= LOOKED_AT_ONCE {
                    return Ok((rows, Some(row.clustering)));
                }
            }
        }
        Ok((rows, None))
    }
}

/// The part of an update of a table with views that follows the rows of the update, which it is
/// without.
fn behind_rows(update: &PartitionUpdate) -> Phase {
    let deletes = !update.deletion.is_live() || !update.range_deletions.is_empty();
    match update.is_empty() {
        true => Phase::Over,
        false if deletes => Phase::Covered,
        false => Phase::Deletions,
    }
}

/// Rows of an update with the deletions of the update that cover them as their own.
fn under_deletions(update: &PartitionUpdate, rows: Vec<Row>) -> Vec<Row> {
    let covering = CoveringDeletions::of(update);
    rows.into_iter().map(|row| covering.apply_to(row)).collect()
}

/// The place where parts are applied.
#[derive(Clone, Copy)]
struct ApplyTarget<'h> {
    engine: &'h Engine,
    routes: Option<&'h Arc<dyn ViewRouter>>,
    views: &'h BaseViews,
}

impl ApplyTarget<'_> {
    /// Applies an update with the changes of views that follow from it, as one group. A single row
    /// that is too large is tried again: first without the values of entries that end, which nobody
    /// reads any more, then without one entry, two, and so on ([`take_out`]).
    fn apply(self, update: &PartitionUpdate, attempt: usize) -> Result<Option<LogPosition>, WriteError> {
        let Self { engine, routes, views } = self;
        let (now, context) = (engine.env.clock.now_seconds(), ReadContext::new(ReadMode::Background));
        let part = [Mutation::of(update.clone())];
        let mut changes = materialized::changes(engine, views, &part, now, &context).map_err(write_error)?;
        if attempt > 0 {
            let entries = changes.iter_mut().flat_map(|change| &mut change.entries);
            entries.filter(|entry| entry.wanted.is_none()).for_each(|entry| drop_values(&mut entry.row));
        }
        let lacking = attempt.saturating_sub(1);
        let taken_out = take_out(&mut changes, update, lacking);
        let (mut group, mut remotes) = (Vec::new(), Vec::new());
        for change in changes {
            // each view by itself: the record of what goes to others is one mutation
            let DividedViewChanges { mut here, remote } = divide(routes, vec![change]);
            let settled = here.iter_mut().try_for_each(|change| settle(engine, change, now, &context));
            settled.map_err(WriteError::Read)?;
            group.extend(here.into_iter().flat_map(ViewChange::into_mutations));
            group.extend(remote.as_ref().map(|remote| remote.record()));
            remotes.extend(remote);
        }
        // the base last, as in `Replica::with_changes`
        group.extend(part);
        let applied = match engine.apply_with_views(&group, views.number) {
            Err(StorageError::MutationTooLarge { .. }) if update.rows.len() == 1 && taken_out == lacking => {
                return self.apply(update, attempt + 1);
            }
            applied => applied?,
        };
        if taken_out > 0 {
            let (table, key) = (update.table.name.as_str(), &update.key.key[..]);
            tracing::warn!(table, taken_out, "views lack a row of partition {key:02x?}: it is too large for the log");
        }
        remotes.into_iter().for_each(|remote| remote.send());
        Ok(applied.position)
    }
}

/// Takes the values out of an entry that ends. Readers do not see them, because the entry is not
/// live any more; and an entry that comes back is made with all of its columns.
fn drop_values(row: &mut Row) {
    row.columns.retain_mut(|data| match data {
        ColumnData::Simple(cell) => cell.is_tombstone(),
        ColumnData::Complex(complex) => {
            complex.cells.retain(Cell::is_tombstone);
            !complex.cells.is_empty() || !complex.deletion.is_live()
        }
    });
}

/// Removes the `count` largest entries that a row makes from its changes of views, and gives how
/// many there were. An entry with no more than the row's update has may be one that is there and
/// changes: it stays.
fn take_out(changes: &mut [ViewChange], update: &PartitionUpdate, count: usize) -> usize {
    let written: usize = update.rows.iter().map(size_of_columns).sum();
    for taken in 0..count {
        let (mut largest, mut found) = (written, None);
        for (of, change) in changes.iter().enumerate() {
            for (at, entry) in change.entries.iter().enumerate() {
                let size = size_of_columns(&entry.row);
                if entry.wanted.is_some() && size > largest {
                    (largest, found) = (size, Some((of, at)));
                }
            }
        }
        let Some((of, at)) = found else { return taken };
        changes[of].entries.remove(at);
    }
    count
}

/// Bytes of the values of a row.
fn size_of_columns(row: &Row) -> usize {
    let clustering: usize = row.clustering.iter().flatten().map(Bytes::len).sum();
    row.data_size() - clustering
}
