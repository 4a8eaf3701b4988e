//! The build of one view: the ranges of which this node holds copies, job by job.
//!
//! A range that the node gets while it builds, because another node leaves or the replication of
//! the keyspace changes, is built too: its rows come as files, without entries in views. Agrees
//! with `ViewBuilder.build`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ring::relocation::subtract;
use rows::views::View;
use storage::Engine;
use storage::materialized::built::{self, BuiltRange};
use storage::requests::progress::Running;
use storage::strategy::kind::Kind;
use types::Token;

use super::job::{JobEnd, RangeProgress, build_next_rows};
use super::{Attempts, BuildStop, retry_while_log_is_full};
use crate::node::Node;

/// Partitions between two notes of how far a range is (`ViewBuilderTask.ROWS_BETWEEN_CHECKPOINTS`).
const KEYS_BETWEEN_NOTES: i64 = 1000;
/// Pause where a job was refused, before it is tried again.
const OVERLOADED: Duration = Duration::from_secs(1);
/// The value of progress that stands for a whole build.
const WHOLE: u64 = 1000;

/// Builds a view.
pub(super) async fn build(node: &Arc<Node>, view: &Arc<View>, attempts: &mut Attempts) -> Result<(), BuildStop> {
    let (keyspace, name) = (view.table.keyspace.as_str(), view.table.name.as_str());
    let base = node.engine.table(view.base.id).ok_or(BuildStop::Stopped)?;
    tracing::info!(view = name, keyspace, "a materialized view is being built");
    if !attempts.is_flushed {
        node.engine.flush(&base).await?;
        attempts.is_flushed = true;
    }
    let mut ranges = built::ranges(&node.engine, keyspace, name)?;
    // one that goes around the end of the ring is of a Cassandra, and is built anew
    ranges.retain(|range| range.start < range.end);
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
    let result = pass(node, view, ranges, &progress, attempts).await;
    match &result {
        Ok(()) => node.engine.compactions.ended(&progress, None),
        Err(_) => node.engine.compactions.aborted(&progress),
    }
    result
}

/// Passes ranges of a build that has begun, and all other ranges of which this node holds copies.
async fn pass(
    node: &Arc<Node>,
    view: &Arc<View>,
    mut ranges: Vec<BuiltRange>,
    progress: &Arc<Running>,
    attempts: &mut Attempts,
) -> Result<(), BuildStop> {
    let mut covered: Vec<(Token, Token)> = ranges.iter().map(|range| (range.start, range.end)).collect();
    loop {
        let added = subtract(&ranges_here(node, &view.table.keyspace), &covered);
        ranges.extend(added.iter().map(|(start, end)| BuiltRange { start: *start, end: *end, last: None, keys: 0 }));
        covered.extend(added);
        if ranges.is_empty() {
            return Ok(());
        }
        let count = ranges.len() as u64;
        for (position, range) in std::mem::take(&mut ranges).into_iter().enumerate() {
            let tell = |range: &BuiltRange| {
                progress.done.store((position as u64 * WHOLE + share(range)) / count, Ordering::Relaxed);
            };
            pass_range(node, view, range, progress, attempts, tell).await?;
        }
    }
}

/// Builds the entries of a range. `tell` is called with each state of the range.
async fn pass_range(
    node: &Arc<Node>,
    view: &Arc<View>,
    range: BuiltRange,
    progress: &Running,
    attempts: &mut Attempts,
    tell: impl Fn(&BuiltRange),
) -> Result<(), BuildStop> {
    let (keyspace, name) = (view.table.keyspace.as_str(), view.table.name.as_str());
    let mut noted = range.keys;
    let (mut place, mut pause) = (RangeProgress { range, next: None }, JobEnd::Share);
    while !place.range.is_done() {
        // a build waits where writes wait, and leaves half of the log's buffer to writes
        node.engine.admit().await;
        node.engine.log.wait_for_room().await;
        let locked = match (pause, &place.next) {
            // in the queue of those that wait: where it only looked whether the lock is free, a
            // partition that is written all the time would never be built
            (JobEnd::Locked, Some(next)) => Some(node.replica.lock_base(view.base.id, &next.key.key).await),
            _ => None,
        };
        if node.engine.is_draining() || !is_there(&node.engine, view) {
            return Err(BuildStop::Stopped);
        }
        if progress.stop.load(Ordering::Relaxed) {
            return Err(BuildStop::ByOperator);
        }
        let (of_job, view_of_job, from) = (Arc::clone(node), Arc::clone(view), place.clone());
        let job = move || build_next_rows(&of_job, &view_of_job, from, locked);
        let Ok(passed) = node.env.blocking("view-build", job).await else {
            // too much background work waits
            node.env.sleep(OVERLOADED).await;
            continue;
        };
        (place, pause) = passed?;
        if place.range.is_done() || place.range.keys - noted >= KEYS_BETWEEN_NOTES {
            noted = place.range.keys;
            retry_while_log_is_full(&node.engine, || built::note(&node.engine, keyspace, name, &place.range)).await?;
            attempts.is_further = true;
        }
        tell(&place.range);
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
