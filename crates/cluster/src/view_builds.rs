//! Building materialized views of what their base tables hold already, in the background, one view
//! after the other.
//!
//! 1. The base table is flushed, once for each view: rows that were written before their writers
//!    knew of the view are on disk then, since frozen memtables take no such write any more
//!    (`storage::base_views`).
//! 2. The ranges of tokens of which this node holds copies are passed ([`build`]). Each partition
//!    is read again under its lock, a slice of rows at a time, and the entries of the rows are
//!    applied as those of a write are ([`job`]). A build that is held up by a lock, by the commit
//!    log or memory waits, and goes on at the row where it stands.
//! 3. `system.view_builds_in_progress` says how far each range is, in whole tokens; a build that a
//!    crash or a stop ends goes on there. Once all are passed, `system.built_views` says that the
//!    view is complete.
//!
//! `system_distributed.view_build_status` tells the ring of each node's beginning and end. A view
//! that is dropped ends its build. One that an operator stops rests until the keyspace changes or
//! the node starts again. Agrees with `org.apache.cassandra.db.view.{ViewBuilder,
//! ViewBuilderTask,ViewManager}` and `schema.SystemDistributedKeyspace`.

mod build;
mod job;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use env::{Instant, LocalFuture};
use rows::views::View;
use rows::{DeletionTime, Mutation, PartitionUpdate, Row};
use schema::{KeyspaceMetadata, Schema, TableId};
use storage::materialized::built;
use storage::{Engine, StorageError};
use types::Consistency;

use crate::node::Node;
use crate::system_rows::{SystemRow, partition_key};
use crate::view_tasks::DroppedView;

/// Time between two looks at views that are not complete, where nothing wakes the task.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Pause before a build that failed is tried again. It is twice as long after each further failure
/// at the same place.
const RETRY_MIN: Duration = Duration::from_secs(5);
/// The longest such pause: the one of `ViewBuilder`.
const RETRY_MAX: Duration = Duration::from_secs(5 * 60);

const STATUS_TABLE: &str = "view_build_status";

/// Why a build ends early.
#[derive(Debug)]
enum BuildStop {
    /// The view or its base was dropped, or the node ends.
    Stopped,
    /// An operator has stopped the build (`nodetool stop VIEW_BUILD`).
    ByOperator,
    Failed(String),
}

impl From<StorageError> for BuildStop {
    fn from(error: StorageError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<rows::ReadError> for BuildStop {
    fn from(error: rows::ReadError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Node {
    /// Builds the views that are not complete, from now on, where there are views.
    pub fn start_view_builds(self: &Arc<Self>) {
        if self.engine.options.read_only {
            return;
        }
        let (tasks, views) = (&self.view_tasks, self.engine.views());
        tasks.follow(&views, || self.clock.next_micros());
        tasks.changed.notify_one();
        if views.is_empty() || tasks.is_running.swap(true, Ordering::AcqRel) {
            return;
        }
        let node = Arc::downgrade(self);
        let run = move || -> LocalFuture { Box::pin(run(node)) };
        if let Err(error) = self.env.tasks.try_spawn_local_worker("views", Box::new(run)) {
            tracing::error!(%error, "views are not built before the next change of the schema or the next start");
            tasks.is_running.store(false, Ordering::Release);
        }
    }

    /// Writes the state of this node's build of a view for the ring. Err: no node has taken it.
    async fn tell_build(&self, keyspace: &str, view: &str, status: &str) -> Result<(), String> {
        let schema = self.schema();
        let Some(table) = schema.table("system_distributed", STATUS_TABLE) else { return Ok(()) };
        let key: [&[u8]; 2] = [keyspace.as_bytes(), view.as_bytes()];
        let row = SystemRow::new(table, &key, &[&self.identity.host_id], self.clock.next_micros(), None);
        self.write_status(row.set("status", Bytes::copy_from_slice(status.as_bytes())).finish()).await
    }

    /// Removes what the ring was told of builds of a dropped view, as of the time of the drop: of
    /// this node's build, and of those of nodes that are down, which cannot do it. Rows of other
    /// nodes that are up are left to them: if there is a new view of the same name, they may have
    /// told of its build already. Cassandra removes everything, as of now.
    async fn tell_dropped(&self, view: &DroppedView) -> Result<(), String> {
        let schema = self.schema();
        let Some(table) = schema.table("system_distributed", STATUS_TABLE) else { return Ok(()) };
        let key = partition_key(table, &[view.keyspace.as_bytes(), view.name.as_bytes()]);
        let mut update = PartitionUpdate::new(Arc::clone(table), key);
        let ring = self.ring();
        let down = ring.peers().filter(|peer| !peer.is_up && !view.has_successor);
        for host_id in std::iter::once(&self.identity.host_id).chain(down.map(|peer| &peer.host_id)) {
            let mut row = Row::new(std::iter::once(Some(Bytes::copy_from_slice(host_id))).collect());
            row.deletion = DeletionTime::new(view.micros, self.env.clock.now_seconds());
            update.add_row(row);
        }
        self.write_status(Mutation::of(update)).await
    }

    async fn write_status(&self, mutation: Mutation) -> Result<(), String> {
        let written = self.write(vec![mutation], Consistency::One).await.map_err(|error| format!("{error:?}"))?;
        match written {
            Some(wait) => wait.await.map_err(|error| format!("{error:?}")),
            None => Ok(()),
        }
    }

    /// Whether views are built now: the ranges of this node are known only once it is in touch
    /// with its ring.
    fn may_build_views(&self) -> bool {
        !self.identity.joins || self.messenger().is_some()
    }
}

/// The attempts of this process to complete a view.
#[derive(Default)]
struct Attempts {
    /// Whether the base was flushed since this process has known the view.
    is_flushed: bool,
    /// Whether the last attempt has noted a later place than the one at which it began.
    is_further: bool,
}

/// A view at the last look.
struct TrackedView {
    keyspace: String,
    name: String,
    /// Whether the view is complete and the ring was told so.
    is_told: bool,
    attempts: Attempts,
    /// When the view is tried again; it is earlier if the schema changes.
    due: Instant,
    /// The pause after the next failure.
    pause: Duration,
    /// The keyspace as it was when an operator stopped the build, which rests until the keyspace
    /// changes or the node starts again. None: no operator has.
    stopped: Option<Arc<KeyspaceMetadata>>,
}

impl TrackedView {
    fn of(view: &View, now: Instant) -> Self {
        let (keyspace, name) = (view.table.keyspace.clone(), view.table.name.clone());
        let attempts = Attempts::default();
        Self { keyspace, name, is_told: false, attempts, due: now, pause: RETRY_MIN, stopped: None }
    }

    /// Sets when the view is tried again after an attempt that has ended. Only failures in a row
    /// at the same place make the pause longer. `was_due`: the attempt came when it was due, not
    /// before, as it does where the schema has changed.
    fn rest(&mut self, has_failed: bool, was_due: bool, now: Instant) {
        if !has_failed || self.attempts.is_further {
            self.pause = RETRY_MIN;
        }
        self.due = now.plus(self.pause);
        if was_due {
            self.pause = (self.pause * 2).min(RETRY_MAX);
        }
    }

    /// Whether the build rests because an operator has stopped it.
    fn rests(&self, schema: &Schema) -> bool {
        self.stopped.is_some() && self.stopped.as_ref() == schema.keyspace(&self.keyspace)
    }
}

async fn run(node: Weak<Node>) {
    // side by side: a build may take hours
    tokio::join!(build_views(node.clone()), tell_dropped(node));
}

/// The node; None: it ends.
fn upgrade(node: &Weak<Node>) -> Option<Arc<Node>> {
    node.upgrade().filter(|node| !node.engine.is_draining() && !node.engine.is_stopped())
}

/// Tells the ring of views that are dropped.
async fn tell_dropped(node: Weak<Node>) {
    loop {
        let (env, dropped) = {
            let Some(node) = upgrade(&node) else { return };
            while node.may_build_views()
                && let Some(view) = node.view_tasks.next_dropped()
            {
                if let Err(error) = node.tell_dropped(&view).await {
                    tracing::warn!(view = view.name, error, "the status of the build of a dropped view stays");
                }
            }
            (node.env.clone(), Arc::clone(&node.view_tasks.dropped))
        };
        // woken or not, the next look is the same
        let _ = env.timeout(LOOK_EVERY, dropped.notified()).await;
    }
}

async fn build_views(node: Weak<Node>) {
    let mut known: BTreeMap<TableId, TrackedView> = BTreeMap::new();
    let mut is_woken = true;
    loop {
        let (env, changed) = {
            let Some(node) = upgrade(&node) else { return };
            if node.may_build_views() {
                look(&node, &mut known, is_woken).await;
            }
            (node.env.clone(), Arc::clone(&node.view_tasks.changed))
        };
        let now = env.now();
        let waiting = known.values().filter(|known| !known.is_told && known.stopped.is_none());
        let dues = waiting.map(|known| known.due.since(now));
        let pause = dues.min().unwrap_or(LOOK_EVERY).min(LOOK_EVERY);
        is_woken = env.timeout(pause, changed.notified()).await.is_ok();
    }
}

/// Looks at all views, and builds those that are due. `is_woken`: the schema may have changed,
/// which may end a failure.
async fn look(node: &Arc<Node>, known: &mut BTreeMap<TableId, TrackedView>, is_woken: bool) {
    let views = node.engine.views();
    // a view that was dropped went before another one of its name is told of
    node.view_tasks.follow(&views, || node.clock.next_micros());
    let views: Vec<Arc<View>> = views.all().cloned().collect();
    known.retain(|id, _| views.iter().any(|view| view.table.id == *id));
    for view in views {
        let known = known.entry(view.table.id).or_insert_with(|| TrackedView::of(&view, node.env.now()));
        let was_due = node.env.now() >= known.due;
        if known.is_told || !(is_woken || was_due) || known.rests(&node.schema()) {
            continue;
        }
        known.stopped = None;
        known.attempts.is_further = false;
        let ended = complete(node, &view, &mut known.attempts).await;
        let has_failed = matches!(ended, Err(BuildStop::Failed(_)));
        match ended {
            Ok(is_told) => known.is_told = is_told,
            Err(BuildStop::Stopped) => {}
            Err(BuildStop::ByOperator) => {
                tracing::info!(
                    view = known.name,
                    "the build of a view rests until its keyspace changes or the next start"
                );
                known.stopped = node.schema().keyspace(&known.keyspace).cloned();
            }
            Err(BuildStop::Failed(error)) => {
                tracing::warn!(view = known.name, error, "a view cannot be built now; it is tried again");
            }
        }
        known.rest(has_failed, was_due, node.env.now());
    }
}

/// Calls `take`, which writes down how far a build is; while the commit log has no room it is
/// called again once there is some. After a job the log is as full as it ever becomes, and a build
/// that failed then would go back to its last note.
async fn retry_while_log_is_full(
    engine: &Engine,
    take: impl Fn() -> Result<(), StorageError>,
) -> Result<(), StorageError> {
    loop {
        match take() {
            Err(StorageError::Busy) => engine.log.wait_for_room().await,
            taken => return taken,
        }
    }
}

/// Builds a view unless it is complete. Gives whether the others were told of that.
async fn complete(node: &Arc<Node>, view: &Arc<View>, attempts: &mut Attempts) -> Result<bool, BuildStop> {
    let (keyspace, name) = (view.table.keyspace.as_str(), view.table.name.as_str());
    let (is_built, is_told) = built::state(&node.engine, keyspace, name)?;
    if is_built && is_told {
        return Ok(true);
    }
    if !is_built {
        if let Err(error) = node.tell_build(keyspace, name, "STARTED").await {
            tracing::warn!(view = name, error, "the ring is not told that a view is being built");
        }
        build::build(node, view, attempts).await?;
        retry_while_log_is_full(&node.engine, || built::finish(&node.engine, keyspace, name, false)).await?;
        tracing::info!(view = name, keyspace, "a materialized view is complete");
    }
    match node.tell_build(keyspace, name, "SUCCESS").await {
        Ok(()) => {
            retry_while_log_is_full(&node.engine, || built::finish(&node.engine, keyspace, name, true)).await?;
            Ok(true)
        }
        Err(error) => {
            tracing::warn!(view = name, error, "the ring is not told that a view is complete; it is tried again");
            Ok(false)
        }
    }
}

#[cfg(test)]
mod tests;
