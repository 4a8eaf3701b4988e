//! Building materialized views of what their base tables hold already, in the background, one view
//! after the other.
//!
//! 1. The base table is flushed, once for each view: whatever was written before its writers knew
//!    of the view is on disk then, since memtables that are frozen take no such write any more
//!    (`storage::base_views`).
//! 2. The ranges of tokens of which this node holds copies are passed ([`build`]). Each partition
//!    is read again under its lock, a slice of rows at a time, and the entries of the rows are
//!    applied as those of a write are ([`job`]). A build that is held up by a lock, the commit log
//!    or memory waits, and goes on at the row where it stands.
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
use rows::{DeletionTime, Mutation, PartitionUpdate};
use schema::{KeyspaceMetadata, Schema, TableId};
use storage::StorageError;
use storage::materialized::built;
use types::Consistency;

use crate::node::Node;
use crate::system_rows::{SystemRow, partition_key};

/// Time between two looks at views that are not complete, where nothing wakes the task.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Pause before a build that failed is tried again. It is twice as long after each further failure.
const RETRY_MIN: Duration = Duration::from_secs(5);
/// The longest such pause: the one of `ViewBuilder`.
const RETRY_MAX: Duration = Duration::from_secs(5 * 60);

const STATUS_TABLE: &str = "view_build_status";

/// Why a build ends before its end.
#[derive(Debug)]
enum Ended {
    /// The view or its base was dropped, or the node ends.
    Stopped,
    /// An operator has stopped the build (`nodetool stop VIEW_BUILD`).
    ByOperator,
    Failed(String),
}

impl From<StorageError> for Ended {
    fn from(error: StorageError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<rows::ReadError> for Ended {
    fn from(error: rows::ReadError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Node {
    /// Builds the views that are not complete, from now on, where there are views.
    pub fn keep_building_views(self: &Arc<Self>) {
        let tasks = &self.view_tasks;
        tasks.changed.notify_one();
        let has_views = !self.engine.views().is_empty() && !self.engine.options.read_only;
        if !has_views || tasks.is_running.swap(true, Ordering::AcqRel) {
            return;
        }
        let node = Arc::downgrade(self);
        let run = move || -> LocalFuture { Box::pin(run(node)) };
        if let Err(error) = self.env.tasks.try_spawn_local_worker("views", Box::new(run)) {
            tracing::error!(%error, "views are not built before the next change of the schema or the next start");
            tasks.is_running.store(false, Ordering::Release);
        }
    }

    /// Writes or removes what the ring is told of this node's build of a view. Err: nobody has it.
    async fn tell_build(&self, keyspace: &str, view: &str, status: Option<&str>) -> Result<(), String> {
        let schema = self.schema();
        let Some(table) = schema.table("system_distributed", STATUS_TABLE) else { return Ok(()) };
        let key: [&[u8]; 2] = [keyspace.as_bytes(), view.as_bytes()];
        let micros = self.clock.next_micros();
        let mutation = match status {
            Some(status) => SystemRow::new(table, &key, &[&self.identity.host_id], micros, None)
                .set("status", Bytes::copy_from_slice(status.as_bytes()))
                .finish(),
            None => {
                let mut update = PartitionUpdate::new(Arc::clone(table), partition_key(table, &key));
                update.deletion = DeletionTime::new(micros, self.env.clock.now_seconds());
                Mutation::of(update)
            }
        };
        let written = self.write(vec![mutation], Consistency::One).await.map_err(|error| format!("{error:?}"))?;
        match written {
            Some(wait) => wait.await.map_err(|error| format!("{error:?}")),
            None => Ok(()),
        }
    }
}

/// A view at the last look.
struct Known {
    keyspace: String,
    name: String,
    /// Whether the view is complete and the ring was told so.
    is_told: bool,
    /// Whether this process has flushed the base since it knows the view.
    is_flushed: bool,
    /// The view is tried again then, or when the schema changes.
    due: Instant,
    /// The pause behind the next failure.
    pause: Duration,
    /// The keyspace as it was when an operator stopped the build, which rests until the keyspace
    /// changes or the node starts again. None: nobody has.
    stopped: Option<Arc<KeyspaceMetadata>>,
}

impl Known {
    fn of(view: &View, now: Instant) -> Self {
        let (keyspace, name) = (view.table.keyspace.clone(), view.table.name.clone());
        Self { keyspace, name, is_told: false, is_flushed: false, due: now, pause: RETRY_MIN, stopped: None }
    }

    /// Whether the build rests because an operator has stopped it.
    fn rests(&self, schema: &Schema) -> bool {
        self.stopped.is_some() && self.stopped.as_ref() == schema.keyspace(&self.keyspace)
    }
}

async fn run(node: Weak<Node>) {
    let mut known: BTreeMap<TableId, Known> = BTreeMap::new();
    let mut is_woken = true;
    loop {
        let (env, changed) = {
            let Some(node) = node.upgrade().filter(|node| !node.engine.is_draining() && !node.engine.is_stopped())
            else {
                return;
            };
            // which ranges are of this node is known once it is in touch with its ring
            if !node.identity.joins || node.members().is_some() {
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

/// `is_woken`: the schema may have changed, which may end a failure.
async fn look(node: &Arc<Node>, known: &mut BTreeMap<TableId, Known>, is_woken: bool) {
    let views: Vec<Arc<View>> = node.engine.views().all().cloned().collect();
    let gone: Vec<TableId> =
        known.keys().filter(|id| !views.iter().any(|view| view.table.id == **id)).copied().collect();
    for id in gone {
        let Some(Known { keyspace, name, .. }) = known.remove(&id) else { continue };
        if let Err(error) = node.tell_build(&keyspace, &name, None).await {
            tracing::warn!(view = name, error, "the status of the build of a dropped view stays");
        }
    }
    for view in views {
        let known = known.entry(view.table.id).or_insert_with(|| Known::of(&view, node.env.now()));
        if known.is_told || (!is_woken && node.env.now() < known.due) || known.rests(&node.schema()) {
            continue;
        }
        known.stopped = None;
        match complete(node, &view, &mut known.is_flushed).await {
            Ok(is_told) => known.is_told = is_told,
            Err(Ended::Stopped) => {}
            Err(Ended::ByOperator) => {
                tracing::info!(
                    view = known.name,
                    "the build of a view rests until its keyspace changes or the next start"
                );
                known.stopped = node.schema().keyspace(&known.keyspace).cloned();
            }
            Err(Ended::Failed(error)) => {
                tracing::warn!(view = known.name, error, "a view cannot be built now; it is tried again");
            }
        }
        known.due = node.env.now().plus(known.pause);
        known.pause = (known.pause * 2).min(RETRY_MAX);
    }
}

/// Builds a view unless it is complete. Gives whether the others were told of that.
async fn complete(node: &Arc<Node>, view: &Arc<View>, is_flushed: &mut bool) -> Result<bool, Ended> {
    let (keyspace, name) = (view.table.keyspace.as_str(), view.table.name.as_str());
    let (is_built, is_told) = built::state(&node.engine, keyspace, name)?;
    if is_built && is_told {
        return Ok(true);
    }
    if !is_built {
        if let Err(error) = node.tell_build(keyspace, name, Some("STARTED")).await {
            tracing::warn!(view = name, error, "the ring is not told that a view is being built");
        }
        build::build(node, view, is_flushed).await?;
        built::finish(&node.engine, keyspace, name, false)?;
        tracing::info!(view = name, keyspace, "a materialized view is complete");
    }
    match node.tell_build(keyspace, name, Some("SUCCESS")).await {
        Ok(()) => {
            built::finish(&node.engine, keyspace, name, true)?;
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
