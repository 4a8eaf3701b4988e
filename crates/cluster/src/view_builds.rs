//! Building materialized views of what their base tables hold already, in the background, one view
//! after the other.
//!
//! 1. The base table is flushed: whatever was written before its writers knew of the view is on
//!    disk then, since memtables that are frozen take no such write any more
//!    (`storage::base_views`).
//! 2. The ranges of tokens of which this node holds copies are passed. Each partition is read again
//!    under its lock, a slice of rows at a time, and the rows' entries are applied as those of a
//!    write are.
//! 3. `system.view_builds_in_progress` says how far each range is; a build that a crash or a stop
//!    ends goes on there. Once all are passed, `system.built_views` says that the view is complete.
//!
//! `system_distributed.view_build_status` tells the ring of each node's beginning and end. A view
//! that is dropped ends its build. Agrees with `org.apache.cassandra.db.view.{ViewBuilder,
//! ViewBuilderTask,ViewManager}` and `schema.SystemDistributedKeyspace`.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use env::LocalFuture;
use rows::command::RingBound;
use rows::views::{Changes, View};
use rows::{
    Bound, ClusteringValues, ColumnFilter, DataLimits, DeletionTime, Mutation, PartitionRange, PartitionStream,
    PartitionUpdate, ReadCommand, ReadContext, ReadMode, Slice, Slices, Unfiltered,
};
use schema::TableId;
use storage::materialized::ViewChange;
use storage::materialized::built::{self, BuiltRange};
use storage::requests::progress::Running;
use storage::strategy::kind::Kind;
use storage::{Engine, StorageError};
use types::{Consistency, DecoratedKey, Token};

use crate::node::Node;
use crate::replica::apply::WriteError;
use crate::system_rows::{SystemRow, partition_key};

/// Time between two looks at views that are not complete, where nothing wakes the task.
const LOOK_EVERY: Duration = Duration::from_secs(30);
/// Pause before a build that failed is tried again.
const RETRY: Duration = Duration::from_secs(5);
/// Pause where somebody else holds the lock of a partition.
const LOCKED: Duration = Duration::from_millis(1);
/// Partitions between two notes of how far a range is (`ViewBuilderTask.ROWS_BETWEEN_CHECKPOINTS`).
const KEYS_BETWEEN_NOTES: i64 = 1000;
/// Rows that are applied as one step.
const SLICE_ROWS: usize = 256;
/// Partitions of one job of the background.
const JOB_KEYS: usize = 64;
/// The whole of a build, as progress counts it.
const WHOLE: u64 = 1000;

const STATUS_TABLE: &str = "view_build_status";

/// Why a build ends before its end.
enum Ended {
    /// The view or its base was dropped, or an operator stopped the build.
    Stopped,
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

async fn run(node: Weak<Node>) {
    // the views that were there at the last look, and whether they are complete and told of
    let mut known: BTreeMap<TableId, (String, String, bool)> = BTreeMap::new();
    loop {
        let (env, changed) = {
            let Some(node) = node.upgrade().filter(|node| !node.engine.is_draining() && !node.engine.is_stopped())
            else {
                return;
            };
            // which ranges are of this node is known once it is in touch with its ring
            if !node.identity.joins || node.members().is_some() {
                look(&node, &mut known).await;
            }
            (node.env.clone(), Arc::clone(&node.view_tasks.changed))
        };
        let is_done = known.values().all(|(_, _, is_told)| *is_told);
        // woken or not, the next look is the same
        let _ = env.timeout(if is_done { LOOK_EVERY } else { RETRY }, changed.notified()).await;
    }
}

async fn look(node: &Arc<Node>, known: &mut BTreeMap<TableId, (String, String, bool)>) {
    let views: Vec<Arc<View>> = node.engine.views().all().cloned().collect();
    let gone: Vec<TableId> =
        known.keys().filter(|id| !views.iter().any(|view| view.table.id == **id)).copied().collect();
    for id in gone {
        let Some((keyspace, name, _)) = known.remove(&id) else { continue };
        if let Err(error) = node.tell_build(&keyspace, &name, None).await {
            tracing::warn!(view = name, error, "the status of the build of a dropped view stays");
        }
    }
    for view in views {
        let (keyspace, name) = (view.table.keyspace.clone(), view.table.name.clone());
        if known.get(&view.table.id).is_some_and(|(_, _, is_told)| *is_told) {
            continue;
        }
        let is_told = match complete(node, &view).await {
            Ok(is_told) => is_told,
            Err(Ended::Stopped) => false,
            Err(Ended::Failed(error)) => {
                tracing::warn!(view = name, error, "a view cannot be built now; it is tried again");
                false
            }
        };
        known.insert(view.table.id, (keyspace, name, is_told));
    }
}

/// Builds a view unless it is complete. Gives whether the others were told of that.
async fn complete(node: &Arc<Node>, view: &Arc<View>) -> Result<bool, Ended> {
    let (keyspace, name) = (view.table.keyspace.as_str(), view.table.name.as_str());
    let (is_built, is_told) = built::state(&node.engine, keyspace, name)?;
    if is_built && is_told {
        return Ok(true);
    }
    if !is_built {
        if let Err(error) = node.tell_build(keyspace, name, Some("STARTED")).await {
            tracing::warn!(view = name, error, "the ring is not told that a view is being built");
        }
        build(node, view).await?;
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

async fn build(node: &Arc<Node>, view: &Arc<View>) -> Result<(), Ended> {
    let (keyspace, name) = (view.table.keyspace.as_str(), view.table.name.as_str());
    let base = node.engine.table(view.base.id).ok_or(Ended::Stopped)?;
    tracing::info!(view = name, keyspace, "a materialized view is being built");
    node.engine.flush(&base).await?;
    let mut ranges = built::ranges(&node.engine, keyspace, name)?;
    let wanted = ranges_here(node, keyspace);
    for (start, end) in wanted {
        if !ranges.iter().any(|range| range.start <= start && end <= range.end) {
            ranges.push(BuiltRange { start, end, last: None, keys: 0 });
        }
    }
    let progress = node.engine.compactions.begin(Running {
        id: node.uuids.next(),
        table_id: view.base.id,
        keyspace: keyspace.to_owned(),
        table: view.base.name.clone(),
        kind: Kind::ViewBuild,
        automatic: false,
        sstables: 0,
        total: WHOLE,
        done: Default::default(),
        stop: Default::default(),
    });
    let result = pass(node, view, &mut ranges, &progress).await;
    match &result {
        Ok(()) => node.engine.compactions.ended(&progress, None),
        Err(_) => node.engine.compactions.aborted(&progress),
    }
    result
}

async fn pass(
    node: &Arc<Node>,
    view: &Arc<View>,
    ranges: &mut [BuiltRange],
    progress: &Arc<Running>,
) -> Result<(), Ended> {
    let (keyspace, name) = (view.table.keyspace.as_str(), view.table.name.as_str());
    let count = ranges.len().max(1) as u64;
    for (position, range) in ranges.iter_mut().enumerate() {
        let mut noted = range.keys;
        while !range.is_done() {
            if progress.stop.load(Ordering::Relaxed) || node.engine.is_draining() || !is_there(&node.engine, view) {
                return Err(Ended::Stopped);
            }
            node.engine.admit().await;
            let (of_job, view_of_job, from) = (Arc::clone(node), Arc::clone(view), range.clone());
            let job = move || build_some(&of_job, &view_of_job, from);
            let passed = node.env.blocking("view-build", job).await;
            let (passed, is_held_up) = passed.map_err(|_| Ended::Failed("too much background work waits".into()))??;
            *range = passed;
            if is_held_up {
                node.env.sleep(LOCKED).await;
            }
            if range.is_done() || range.keys - noted >= KEYS_BETWEEN_NOTES {
                noted = range.keys;
                built::note(&node.engine, keyspace, name, range)?;
            }
            progress.done.store((position as u64 * WHOLE + share(range)) / count, Ordering::Relaxed);
        }
    }
    Ok(())
}

/// How much of a range was passed, of [`WHOLE`].
fn share(range: &BuiltRange) -> u64 {
    let Some(last) = range.last else { return 0 };
    let length = (i128::from(range.end.0) - i128::from(range.start.0)).max(1);
    let passed = (i128::from(last.0) - i128::from(range.start.0)).clamp(0, length);
    u64::try_from(passed * i128::from(WHOLE) / length).unwrap_or(WHOLE)
}

fn is_there(engine: &Engine, view: &View) -> bool {
    engine.table(view.table.id).is_some() && engine.table(view.base.id).is_some()
}

/// The ranges of which this node holds copies, none of which wraps around the end of the ring.
fn ranges_here(node: &Node, keyspace: &str) -> Vec<(Token, Token)> {
    let ring = node.ring();
    let local = ring.local_id();
    let whole = vec![(Token::MIN, Token(i64::MAX))];
    let Some(placement) = ring.placement(keyspace).filter(|_| ring.endpoints().len() > 1) else { return whole };
    let mut ranges = Vec::new();
    for (start, end, natural) in placement.ranges() {
        if !natural.contains(&local) {
            continue;
        }
        match start < end {
            true => ranges.push((start, end)),
            false => ranges.extend([(start, Token(i64::MAX)), (Token::MIN, end)]),
        }
    }
    ranges.retain(|(start, end)| start < end);
    ranges.sort_unstable();
    // neighbours are one range
    ranges.dedup_by(|next, former| {
        let joins = former.1 == next.0;
        if joins {
            former.1 = next.1;
        }
        joins
    });
    ranges
}

/// Passes the next partitions of a range. The second: somebody else holds the lock of the next one.
fn build_some(node: &Node, view: &Arc<View>, mut range: BuiltRange) -> Result<(BuiltRange, bool), Ended> {
    let start = RingBound::Token { token: range.last.unwrap_or(range.start), inclusive: false };
    let end = RingBound::Token { token: range.end, inclusive: true };
    // rows are passed over: only the keys are wanted
    let command = command(view, PartitionRange::Range { start, end }, Slices::all(), node.env.clock.now_seconds());
    let mut stream = node.engine.read(&command, &ReadContext::new(ReadMode::Background))?;
    let mut passed: Option<Token> = None;
    let mut keys = 0;
    while let Some(head) = stream.next_partition()? {
        // all partitions of a token are passed before the token is
        if keys >= JOB_KEYS && passed != Some(head.key.token) {
            range.last = passed;
            return Ok((range, false));
        }
        if !build_partition(node, view, &head.key)? {
            return Ok((range, true));
        }
        keys += 1;
        range.keys += 1;
        if let Some(before) = passed.replace(head.key.token).filter(|before| *before != head.key.token) {
            range.last = Some(before);
        }
    }
    range.last = Some(range.end);
    Ok((range, false))
}

fn command(view: &View, range: PartitionRange, slices: Slices, now: u32) -> ReadCommand {
    ReadCommand {
        table: Arc::clone(&view.base),
        range,
        slices,
        reversed: false,
        columns: ColumnFilter::All,
        now,
        limits: DataLimits::NONE,
        indexes: Vec::new(),
    }
}

/// Builds the entries of a partition of the base. False: somebody else holds its lock.
fn build_partition(node: &Node, view: &Arc<View>, key: &DecoratedKey) -> Result<bool, Ended> {
    let mut after: Option<ClusteringValues> = None;
    loop {
        let Some(_locked) = node.replica.try_lock_base(view.base.id, &key.key) else { return Ok(false) };
        let views = node.engine.views();
        let Some(view) = views.by_id(view.table.id) else { return Err(Ended::Stopped) };
        let now = node.env.clock.now_seconds();
        let slices = match after.take() {
            None => Slices::all(),
            Some(last) => vec![Slice { start: Bound::start(last, false), end: Bound::top() }].into(),
        };
        let command = command(view, PartitionRange::Key(key.clone()), slices, now);
        let mut stream = node.engine.read(&command, &ReadContext::new(ReadMode::Background))?;
        let mut changes = Changes::new(view, key, now);
        let mut rows = 0;
        if stream.next_partition()?.is_some() {
            while let Some(unfiltered) = stream.next_unfiltered()? {
                let Unfiltered::Row(row) = unfiltered else { continue };
                changes.existing(&row);
                rows += 1;
                if rows >= SLICE_ROWS {
                    after = Some(row.clustering);
                    break;
                }
            }
        }
        let change = ViewChange { base: key.clone(), view: Arc::clone(view), entries: changes.finish() };
        match node.replica.apply_built(change, &views, now) {
            Ok(_) => {}
            Err(WriteError::Storage(StorageError::ViewsChanged | StorageError::Busy)) => return Ok(false),
            Err(error) => return Err(Ended::Failed(error.to_string())),
        }
        if after.is_none() {
            return Ok(true);
        }
    }
}
