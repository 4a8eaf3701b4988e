//! Writes to tables with materialized views: a replica computes what changes in the views of its
//! own rows, and applies base and views as one.
//!
//! 1. The locks of the base's partitions are taken, and the gate ([`Views::gate`]) is passed.
//! 2. The rows are read as they are, and the changes of the views are computed of them and the
//!    write (`storage::materialized`).
//! 3. Each changed row of a view belongs to one replica: the paired one (`crate::view_replicas`).
//!    The rows that belong to this node are corrected by what is stored here and applied with the
//!    base, as one group of the commit log and one step of memtables. So base and views of a node
//!    agree after a crash too.
//! 4. Rows of other nodes stand in this node's batch log, in the same group, until these nodes
//!    have them; they are sent once the group is applied. The write does not wait for that.
//!
//! A write that may concern many rows does steps 2 to 4 in one job of the background, which owns
//! the locks: such a write ends though nobody waits for it any more. Base and changes of views that
//! are more than one group of the commit log may be are refused; a change that others have, or that
//! Paxos has decided, is applied in several groups then ([`parts`]).
//!
//! A node alone has all of its views. Agrees with `org.apache.cassandra.db.Keyspace.applyInternal`
//! and `service.StorageProxy.mutateMV`.

pub(crate) mod parts;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use env::Env;
use rows::{Mutation, ReadContext, ReadError, ReadMode};
use schema::system::is_local_keyspace;
use storage::base_views::BaseViews;
use storage::commitlog::LogPosition;
use storage::materialized::{self, ViewChange, ViewError};
use storage::write::Applied;
use storage::{Engine, StorageError};
use tokio::sync::{OwnedRwLockReadGuard, OwnedRwLockWriteGuard, RwLock, Semaphore};

use super::Replica;
use super::apply::{WhenBusy, WriteError, large_values};
use crate::stripes::{StripeGuards, Stripes};

/// Longest time that writes to tables with views wait for a TRUNCATE, which waits for other writes
/// to them: less than the timeout of writes, and longer than nearly all of them take.
const CLOSING_MAX: Duration = Duration::from_millis(500);

/// Time between two such waits.
const CLOSING_PAUSE: Duration = Duration::from_secs(1);

/// Writes that are applied in parts at one time: each has its rows in memory.
const IN_PARTS_MAX: usize = 4;

/// The state that writes to tables with views share.
pub(crate) struct Views {
    /// Locks of partitions of base tables whose views are being changed.
    locks: Arc<Stripes>,
    /// Passed by every write to a table with views, from its read to its end. TRUNCATE closes it
    /// for the moment that divides the rows of a table and of its views that go from those that
    /// stay.
    gate: Arc<RwLock<()>>,
    /// The way to the other replicas of views. Empty: the node is alone.
    routes: OnceLock<Arc<dyn ViewRouter>>,
    /// One permit for each write that may be applied in parts.
    in_parts: Arc<Semaphore>,
}

impl Default for Views {
    fn default() -> Self {
        let in_parts = Arc::new(Semaphore::new(IN_PARTS_MAX));
        Self { locks: Arc::default(), gate: Arc::default(), routes: OnceLock::new(), in_parts }
    }
}

impl Views {
    /// Sets how changes of views are divided among nodes. The first call counts.
    pub fn route(&self, routes: Arc<dyn ViewRouter>) {
        let _ = self.routes.set(routes);
    }
}

/// The way of changes of views to their replicas.
pub(crate) trait ViewRouter: Send + Sync {
    /// Divides changes into those that are applied here and those of others.
    fn divide(&self, changes: Vec<ViewChange>) -> DividedViewChanges;
}

/// Changes of views, divided by the nodes that they belong to.
pub(crate) struct DividedViewChanges {
    /// Changes that belong to this node.
    pub here: Vec<ViewChange>,
    /// Changes that belong to others; None: there are none.
    pub remote: Option<Box<dyn RemoteViewChanges>>,
}

/// Changes of views that others must get.
pub(crate) trait RemoteViewChanges: Send {
    /// The record of these changes in this node's batch log, which is applied with the base.
    fn record(&self) -> Mutation;

    /// Sends the changes to their nodes. Called once the record is applied.
    fn send(self: Box<Self>);
}

/// The locks of a write.
pub(crate) struct WriteLocks {
    _held: StripeGuards,
    _open: OwnedRwLockReadGuard<()>,
}

/// An attempt to apply a write, and its locks.
struct Attempt {
    applied: Result<Applied, WriteError>,
    /// Changes of others that are to be sent once the locks are released.
    remote: Option<Box<dyn RemoteViewChanges>>,
    guards: (StripeGuards, WriteLocks),
}

impl Replica {
    /// Keeps writes to tables with views off while the guard is there. The future may outlive the
    /// request that asks for it.
    pub(crate) fn close_views(&self) -> impl Future<Output = OwnedRwLockWriteGuard<()>> + Send + use<> {
        close(self.env.clone(), Arc::clone(&self.views.gate))
    }

    /// Waits for the locks of the partitions of base tables that these mutations write.
    async fn lock_views(&self, views: &BaseViews, mutations: &[Mutation]) -> WriteLocks {
        lock(&self.views.gate, &self.views.locks, places(views, mutations)).await
    }

    /// Does the work of [`Replica::apply`] for mutations some of which are of tables with views.
    pub(super) async fn apply_with_views(
        &self,
        mutations: &[Mutation],
        held: StripeGuards,
        mut views: Arc<BaseViews>,
        when_busy: WhenBusy,
    ) -> Result<Option<LogPosition>, WriteError> {
        let is_wide = is_wide(mutations);
        let mut guards = (held, self.lock_views(&views, mutations).await);
        loop {
            let attempt = match is_wide {
                true => self.try_wide(&views, mutations, guards).await?,
                false => self.try_narrow(&views, mutations, guards).await?,
            };
            let (held, locked) = attempt.guards;
            match attempt.applied {
                Err(WriteError::Storage(StorageError::Busy)) if when_busy == WhenBusy::Waits => {
                    // outside of the gate: a TRUNCATE may close it meanwhile
                    drop(locked);
                    self.engine.log.wait_for_room().await;
                    guards = (held, self.lock_views(&views, mutations).await);
                }
                Err(WriteError::Storage(StorageError::ViewsChanged)) => {
                    // a base that has its first view since is not locked
                    views = self.engine.views();
                    drop(locked);
                    guards = (held, self.lock_views(&views, mutations).await);
                }
                Ok(applied) => {
                    drop((held, locked));
                    if let Some(remote) = attempt.remote {
                        remote.send();
                    }
                    return Ok(applied.position);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// An attempt to apply a write for the views of a snapshot, with its locks taken.
    async fn try_narrow(
        &self,
        views: &Arc<BaseViews>,
        mutations: &[Mutation],
        guards: (StripeGuards, WriteLocks),
    ) -> Result<Attempt, WriteError> {
        let (group, remote) = self.with_changes(views, mutations).await?;
        let (applied, guards) = self.apply_group(group, views.number, guards).await?;
        Ok(Attempt { applied: applied.map_err(WriteError::from), remote, guards })
    }

    /// Does the work of [`Self::try_narrow`] for a write that may concern many rows. One job reads
    /// them and applies the write: a write that was given up at its timeout in between would begin
    /// with the first row again each time that it is tried, and would never happen.
    async fn try_wide(
        &self,
        views: &Arc<BaseViews>,
        mutations: &[Mutation],
        guards: (StripeGuards, WriteLocks),
    ) -> Result<Attempt, WriteError> {
        let (engine, routes) = (Arc::clone(&self.engine), self.views.routes.get().cloned());
        let (views, mutations) = (Arc::clone(views), mutations.to_vec());
        let job = move || (apply_locked(&engine, routes.as_ref(), &views, &mutations), guards);
        let (applied, guards) = self.env.blocking("view", job).await.map_err(|_| WriteError::Overloaded)?;
        Ok(Attempt { applied, remote: None, guards })
    }

    /// The mutations with the changes of views that are applied here, and the changes for other
    /// nodes.
    async fn with_changes(
        &self,
        views: &Arc<BaseViews>,
        mutations: &[Mutation],
    ) -> Result<(Vec<Mutation>, Option<Box<dyn RemoteViewChanges>>), WriteError> {
        let now = self.env.clock.now_seconds();
        let changes = self.changes(views, mutations, now).await?;
        let DividedViewChanges { here, remote } = self.divide(changes);
        let mut group = self.settled(here, now).await?;
        if let Some(remote) = &remote {
            group.push(remote.record());
        }
        // the base last: whatever reads the log in order finds a row of it behind its entries
        group.extend(mutations.iter().cloned());
        Ok((group, remote))
    }

    async fn changes(
        &self,
        views: &Arc<BaseViews>,
        mutations: &[Mutation],
        now: u32,
    ) -> Result<Vec<ViewChange>, WriteError> {
        let context = ReadContext::new(ReadMode::Inline);
        match materialized::changes(&self.engine, views, mutations, now, &context) {
            Err(ViewError::Read(ReadError::WouldBlock)) => {}
            other => return other.map_err(write_error),
        }
        let (engine, views, mutations) = (Arc::clone(&self.engine), Arc::clone(views), mutations.to_vec());
        let job = move || {
            let context = ReadContext::new(ReadMode::Background);
            materialized::changes(&engine, &views, &mutations, now, &context)
        };
        self.env.blocking("view", job).await.map_err(|_| WriteError::Overloaded)?.map_err(write_error)
    }

    /// The changes of views that belong to this node as mutations, corrected by the rows that are
    /// stored here.
    async fn settled(&self, mut changes: Vec<ViewChange>, now: u32) -> Result<Vec<Mutation>, WriteError> {
        let context = ReadContext::new(ReadMode::Inline);
        let settled = changes.iter_mut().try_for_each(|change| settle(&self.engine, change, now, &context));
        let changes = match settled {
            Ok(()) => changes,
            Err(ReadError::WouldBlock) => {
                let engine = Arc::clone(&self.engine);
                let job = move || {
                    let context = ReadContext::new(ReadMode::Background);
                    changes.iter_mut().try_for_each(|change| settle(&engine, change, now, &context))?;
                    Ok(changes)
                };
                let settled = self.env.blocking("view", job).await.map_err(|_| WriteError::Overloaded)?;
                settled.map_err(WriteError::Read)?
            }
            Err(error) => return Err(WriteError::Read(error)),
        };
        Ok(changes.into_iter().flat_map(ViewChange::into_mutations).collect())
    }

    /// Applies a group of mutations. Large values are copied and checksummed on another thread, as
    /// in [`Replica::apply`].
    async fn apply_group(
        &self,
        group: Vec<Mutation>,
        number: u64,
        guards: (StripeGuards, WriteLocks),
    ) -> Result<(Result<Applied, StorageError>, (StripeGuards, WriteLocks)), WriteError> {
        if group.iter().all(|mutation| large_values(std::slice::from_ref(mutation)) == 0) {
            return Ok((self.engine.apply_with_views(&group, number), guards));
        }
        let engine = Arc::clone(&self.engine);
        let applied = self.env.blocking("write", move || (engine.apply_with_views(&group, number), guards));
        applied.await.map_err(|_| WriteError::Overloaded)
    }

    /// Does the work of [`Replica::apply`] at once, for a background task, which may wait for the
    /// disk. `StorageError::Busy`: another write holds one of the partitions; try again.
    pub(crate) fn apply_now(&self, mutations: &[Mutation]) -> Result<Applied, WriteError> {
        loop {
            let number = self.engine.views_number();
            let Some(views) = self.engine.views_over(mutations) else {
                match self.engine.apply_without_views(mutations, &[], number) {
                    Err(StorageError::ViewsChanged) => continue,
                    applied => return Ok(applied?),
                }
            };
            let open = Arc::clone(&self.views.gate).try_read_owned().map_err(|_| StorageError::Busy)?;
            let held = self.views.locks.try_lock(places(&views, mutations)).ok_or(StorageError::Busy)?;
            let _locked = WriteLocks { _held: held, _open: open };
            match apply_locked(&self.engine, self.views.routes.get(), &views, mutations) {
                Err(WriteError::Storage(StorageError::ViewsChanged)) => {}
                applied => return applied,
            }
        }
    }

    /// Applies changes of one view that follow from rows of the base as they are: of a build. The
    /// caller holds the lock of the partition.
    pub(crate) fn apply_built(&self, change: ViewChange, views: &BaseViews, now: u32) -> Result<Applied, WriteError> {
        let context = ReadContext::new(ReadMode::Background);
        let DividedViewChanges { mut here, remote } = self.divide(vec![change]);
        let settled = here.iter_mut().try_for_each(|change| settle(&self.engine, change, now, &context));
        settled.map_err(WriteError::Read)?;
        let mut group: Vec<Mutation> = here.into_iter().flat_map(ViewChange::into_mutations).collect();
        group.extend(remote.as_ref().map(|remote| remote.record()));
        if group.is_empty() {
            return Ok(Applied { position: None, added: 0 });
        }
        let applied = self.engine.apply_with_views(&group, views.number)?;
        if let Some(remote) = remote {
            remote.send();
        }
        Ok(applied)
    }

    /// The lock of a partition of a base table, of a build. None: another task has it.
    pub(crate) fn try_lock_base(&self, base: schema::TableId, key: &[u8]) -> Option<WriteLocks> {
        let open = Arc::clone(&self.views.gate).try_read_owned().ok()?;
        let held = self.views.locks.try_lock(vec![Stripes::of((base, key))])?;
        Some(WriteLocks { _held: held, _open: open })
    }

    /// Waits for the lock of a partition of a base table, of a build, behind those that wait
    /// already.
    pub(crate) async fn lock_base(&self, base: schema::TableId, key: &[u8]) -> WriteLocks {
        lock(&self.views.gate, &self.views.locks, vec![Stripes::of((base, key))]).await
    }

    /// Divides changes of views into those that are applied here and those of other nodes.
    fn divide(&self, changes: Vec<ViewChange>) -> DividedViewChanges {
        divide(self.views.routes.get(), changes)
    }
}

/// Passes the gate, and waits for the locks of places behind those that wait already.
async fn lock(gate: &Arc<RwLock<()>>, locks: &Stripes, places: Vec<usize>) -> WriteLocks {
    let open = Arc::clone(gate).read_owned().await;
    let held = locks.lock(places).await;
    WriteLocks { _held: held, _open: open }
}

/// Closes the gate. While this waits for the writes that have passed the gate, no other write
/// passes it, and a wide write may take minutes. So this waits only for a moment, and tries again
/// after a pause in which other writes pass.
async fn close(env: Env, gate: Arc<RwLock<()>>) -> OwnedRwLockWriteGuard<()> {
    loop {
        if let Ok(closed) = env.timeout(CLOSING_MAX, Arc::clone(&gate).write_owned()).await {
            return closed;
        }
        env.sleep(CLOSING_PAUSE).await;
    }
}

fn divide(routes: Option<&Arc<dyn ViewRouter>>, changes: Vec<ViewChange>) -> DividedViewChanges {
    match routes {
        Some(routes) => routes.divide(changes),
        None => DividedViewChanges { here: changes, remote: None },
    }
}

/// Applies mutations with the changes of views that follow from them, and sends those of others.
/// The caller holds the locks of the write and may wait for the disk.
fn apply_locked(
    engine: &Engine,
    routes: Option<&Arc<dyn ViewRouter>>,
    views: &BaseViews,
    mutations: &[Mutation],
) -> Result<Applied, WriteError> {
    let (now, context) = (engine.env.clock.now_seconds(), ReadContext::new(ReadMode::Background));
    let changes = materialized::changes(engine, views, mutations, now, &context).map_err(write_error)?;
    let DividedViewChanges { mut here, remote } = divide(routes, changes);
    let settled = here.iter_mut().try_for_each(|change| settle(engine, change, now, &context));
    settled.map_err(WriteError::Read)?;
    let mut group: Vec<Mutation> = here.into_iter().flat_map(ViewChange::into_mutations).collect();
    group.extend(remote.as_ref().map(|remote| remote.record()));
    // the base last, as in `Replica::with_changes`
    group.extend(mutations.iter().cloned());
    let applied = engine.apply_with_views(&group, views.number)?;
    if let Some(remote) = remote {
        remote.send();
    }
    Ok(applied)
}

fn settle(engine: &Engine, change: &mut ViewChange, now: u32, context: &ReadContext) -> Result<(), ReadError> {
    materialized::settle(engine, change, now, context)
}

/// The places of the locks of the partitions of base tables that are written.
fn places(views: &BaseViews, mutations: &[Mutation]) -> Vec<usize> {
    let updates = mutations.iter().flat_map(|mutation| &mutation.updates);
    let of_bases = updates.filter(|update| views.of_base(update.table.id).is_some());
    of_bases.map(|update| Stripes::of((update.table.id, &update.key.key[..]))).collect()
}

/// Whether a write may concern many rows, so that reading them takes its time.
fn is_wide(mutations: &[Mutation]) -> bool {
    const ROWS_MAX: usize = 64;
    let mut updates = mutations.iter().flat_map(|mutation| &mutation.updates);
    updates.any(|update| {
        let deletes = !update.deletion.is_live() || !update.range_deletions.is_empty();
        !is_local_keyspace(&update.table.keyspace)
            && ((deletes && !update.table.clustering.is_empty()) || update.rows.len() > ROWS_MAX)
    })
}

fn write_error(error: ViewError) -> WriteError {
    match error {
        ViewError::Read(error) => WriteError::Read(error),
        ViewError::Refused(why) => StorageError::Refused { why }.into(),
        ViewError::TooLarge { size, size_max } => StorageError::MutationTooLarge { size, size_max }.into(),
    }
}

#[cfg(test)]
mod tests;
