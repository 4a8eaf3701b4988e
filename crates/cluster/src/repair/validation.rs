//! Validation: the trees of a table's ranges as this node has them.
//!
//! A slice of rows at a time is hashed on the threads for long jobs, which give way to workers.
//! Between slices the validation rests as long as the throughput of compactions says, and looks
//! whether it is to end (`nodetool stop VALIDATION`). Agrees with
//! `org.apache.cassandra.repair.ValidationManager`.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use env::rare::{Rare, happens};
use internode::payload::repair::{Job, Preview, SessionId};
use repair::{MerkleTrees, Validator, size};
use rows::purge::PurgeStream;
use rows::{ReadContext, ReadError, ReadMode};
use schema::TableMetadata;
use sstable::SSTable;
use storage::flushed_table::{self, FlushedTable, FlushedTableStream};
use storage::requests::progress::Running;
use storage::strategy::kind::Kind;
use storage::strategy::only_purges_repaired;

use crate::node::Node;
use crate::repair_state::records::{End, Facts, Record, RepairCounts, Step, Subject};
use crate::repair_state::{Participation, Repairs};

/// Heads, rows and markers of a slice: a few milliseconds.
const SLICE: usize = 4096;
/// Time before a slice is tried again where the queue of the threads is full.
const PAUSE: Duration = Duration::from_millis(100);

/// A validation under way. When it is dropped it is removed from the operations that run.
struct RunningValidation<'n> {
    node: &'n Node,
    running: Arc<Running>,
}

impl Drop for RunningValidation<'_> {
    fn drop(&mut self) {
        self.node.engine.compactions.ended(&self.running, None);
    }
}

/// A validation that has a record. If the coordinator drops it before its end, because another
/// replica has failed, the record ends.
struct Recorded<'n> {
    node: &'n Node,
    record: &'n Record,
}

impl Drop for Recorded<'_> {
    fn drop(&mut self) {
        let now = self.node.env.clock.now_micros() / 1000;
        self.record.end(End::Failure("the validation was given up".to_owned()), now);
    }
}

/// The rows that are hashed, and the trees.
struct ValidationInput {
    stream: PurgeStream<FlushedTableStream>,
    validator: Validator,
}

/// Takes the SSTables of a table as they are now, for validations that come later.
pub(super) async fn take_flushed_table(
    node: &Node,
    participation: &Participation,
    job: &Job,
) -> Result<FlushedTable, String> {
    let table = format!("{}.{}", job.keyspace, job.table);
    let store = node.engine.table_by_name(&job.keyspace, &job.table);
    let store = store.ok_or_else(|| format!("Table {table} was dropped during repair"))?;
    let prepare = &participation.prepare;
    let session = prepare.is_incremental.then_some(prepare.parent);
    let conflict = Mutex::new(None);
    let select = |sstable: &SSTable| {
        let is_validated = is_validated(&node.repairs, prepare.preview, session, sstable);
        is_validated.unwrap_or_else(|why| {
            *conflict.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
            false
        })
    };
    let flushed = flushed_table::take(&node.engine, &store, select).await.map_err(|error| error.to_string())?;
    match conflict.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(why) => Err(why),
        None => Ok(flushed),
    }
}

/// Whether an SSTable takes part. `session`: of an incremental repair, which only looks at what was
/// put apart for it. Err: why the preview cannot be made now.
fn is_validated(
    repairs: &Repairs,
    preview: Preview,
    session: Option<SessionId>,
    sstable: &SSTable,
) -> Result<bool, String> {
    let stats = &sstable.statistics().stats;
    match preview {
        Preview::None => Ok(session.is_none() || stats.pending_repair == session),
        Preview::All => Ok(true),
        Preview::Unrepaired => Ok(stats.repaired_at == 0),
        Preview::Repaired => repairs.counts_as_repaired(stats.repaired_at, stats.pending_repair),
    }
}

/// The trees of the ranges of a job, judged at the second `now`, with a record of it for operators.
pub(super) async fn validate_recorded(
    node: &Node,
    participation: &Participation,
    job: &Job,
    now: u32,
) -> Result<MerkleTrees, String> {
    let millis = || node.env.clock.now_micros() / 1000;
    let (records, counts) = (&node.repairs.records, &node.repairs.counts);
    let facts = Facts {
        nodes: vec![participation.coordinator],
        is_incremental: participation.prepare.is_incremental,
        is_global: participation.prepare.is_global,
        repaired_at: participation.prepare.repaired_at,
        preview: participation.prepare.preview,
        ..Facts::of_job(Subject::Validation, job)
    };
    let record = records.begin(facts, millis());
    let _recorded = Recorded { node, record: &record };
    record.step(Step::Accept, millis());
    if let Some(of_repair) = records.find(Subject::Participation, &job.parent) {
        of_repair.adopt(record.facts.id);
    }
    let validated = validate(node, participation, job, now, &record).await;
    record.step(Step::SendingTrees, millis());
    record.end_with(&validated, millis());
    RepairCounts::count(&validated, &counts.validations, &counts.validations_failed);
    counts.bytes_validated.fetch_add(record.bytes.load(Ordering::Relaxed), Ordering::Relaxed);
    counts.partitions_validated.fetch_add(record.partitions.load(Ordering::Relaxed), Ordering::Relaxed);
    validated
}

async fn validate(
    node: &Node,
    participation: &Participation,
    job: &Job,
    now: u32,
    record: &Record,
) -> Result<MerkleTrees, String> {
    let turns = Arc::clone(&node.repairs.permits.load().validations);
    let _turn = turns.acquire().await.map_err(|_| "the node is shutting down".to_owned())?;
    let kept = participation.flushed_tables().values().find(|flushed| is_of(&flushed.table, job)).cloned();
    let flushed = match kept {
        Some(flushed) => flushed,
        None => take_flushed_table(node, participation, job).await?,
    };
    let context = ReadContext::new(ReadMode::Background);
    let (stats, running) = (Arc::clone(&context.stats), begin(node, job, &flushed));
    let validation = RunningValidation { node, running };
    record.step(Step::Start, node.env.clock.now_micros() / 1000);
    let ranges = job.ranges.iter().map(|range| (range.start, range.end));
    record.expect(ranges.map(|range| flushed.partitions_in(range)).sum(), flushed.bytes());
    let work = Arc::new(Mutex::new(open(node, job, &flushed, now, context)));
    let mut bytes = 0;
    loop {
        let begun = node.env.now();
        let shared = Arc::clone(&work);
        let slice = node.env.blocking_spare("validation", move || {
            let work = &mut *shared.lock().unwrap_or_else(PoisonError::into_inner);
            work.validator.advance(&mut work.stream, SLICE)
        });
        let is_done = match slice.await {
            Ok(Ok(is_done)) => is_done,
            Ok(Err(error)) => return Err(failed(node, job, &error)),
            // the queue is full
            Err(_) => {
                node.env.sleep(PAUSE).await;
                false
            }
        };
        // also behind the last slice: rows of a table that was truncated meanwhile are in the trees
        check(node, participation, job, &validation)?;
        if is_done {
            break;
        }
        let read = stats.bytes_read.load(Ordering::Relaxed);
        validation.running.done.store(read, Ordering::Relaxed);
        record.bytes.store(read, Ordering::Relaxed);
        rest(node, read - bytes, node.env.elapsed(begun)).await;
        bytes = read;
    }
    let work = Arc::into_inner(work).ok_or("a slice of the validation has not ended")?;
    let work = work.into_inner().unwrap_or_else(PoisonError::into_inner);
    record.bytes.store(stats.bytes_read.load(Ordering::Relaxed), Ordering::Relaxed);
    record.partitions.store(work.validator.partitions(), Ordering::Relaxed);
    tracing::debug!(partitions = work.validator.partitions(), keyspace = job.keyspace, table = job.table, "validated");
    Ok(work.validator.finish())
}

/// Err: why the validation has to end early.
fn check(
    node: &Node,
    participation: &Participation,
    job: &Job,
    validation: &RunningValidation<'_>,
) -> Result<(), String> {
    let interrupted = || format!("Compaction interrupted: Validation@{}.{}", job.keyspace, job.table);
    match participation.over.get() {
        Some(why) => Err(format!("{}: {why}", interrupted())),
        None if validation.running.stop.load(Ordering::Relaxed) || node.engine.is_draining() => Err(interrupted()),
        None => Ok(()),
    }
}

/// Whether a job is about a table.
pub(super) fn is_of(table: &TableMetadata, job: &Job) -> bool {
    table.keyspace == job.keyspace && table.name == job.table
}

fn failed(node: &Node, job: &Job, error: &ReadError) -> String {
    node.engine.inspect_read(error);
    tracing::error!(%error, keyspace = job.keyspace, table = job.table, "a validation has failed");
    error.to_string()
}

fn begin(node: &Node, job: &Job, flushed: &FlushedTable) -> Arc<Running> {
    node.engine.compactions.begin(Running {
        id: node.uuids.next(),
        table_id: flushed.table.id,
        keyspace: job.keyspace.clone(),
        table: job.table.clone(),
        kind: Kind::Validation,
        automatic: false,
        sstables: flushed.sstables.len(),
        total: flushed.bytes(),
        done: Default::default(),
        stop: Default::default(),
    })
}

fn open(node: &Node, job: &Job, flushed: &FlushedTable, now: u32, context: ReadContext) -> ValidationInput {
    let ranges: Vec<_> = job.ranges.iter().map(|range| (range.start, range.end)).collect();
    let counted: Vec<_> =
        job.ranges.iter().zip(&ranges).map(|(range, of)| (*range, flushed.partitions_in(*of))).collect();
    let replicas = node.ring().placement(&job.keyspace).map_or(1, |placement| placement.replication.factor());
    let settings = node.repairs.permits.load().settings;
    let budget = settings.space / u64::from(replicas.max(1));
    let depth_max = if happens(Rare::ShallowTree) { 0 } else { settings.tree_depth_max };
    let validator = Validator::new(&flushed.table, size::empty_trees(&counted, budget, depth_max));
    let stream = flushed.read(&ranges, context);
    let stream = PurgeStream::new(stream, now, gc_before(&flushed.table, now), Box::new(|_| i64::MAX));
    let stream = stream.of_table(&flushed.table);
    ValidationInput { stream, validator }
}

/// The second before which deletions are passed over; 0: none is. A table that only purges repaired
/// tombstones may keep any: a validation does not ask which of them are repaired, and neither does
/// Cassandra's, so that replicas of both kinds have the same trees.
fn gc_before(table: &TableMetadata, now: u32) -> u32 {
    match only_purges_repaired(&table.params.compaction) {
        true => 0,
        false => now.saturating_sub(u32::try_from(table.params.gc_grace_seconds).unwrap_or(0)),
    }
}

/// Rests after `bytes` were read in the time `took`, for so long that the throughput of
/// compactions is not exceeded.
async fn rest(node: &Node, bytes: u64, took: Duration) {
    let rate = node.engine.compaction_rate();
    let nanos = (u128::from(bytes) * 1_000_000_000).checked_div(u128::from(rate));
    let due = nanos.and_then(|nanos| u64::try_from(nanos).ok()).map_or(Duration::ZERO, Duration::from_nanos);
    if let Some(rest) = due.checked_sub(took) {
        node.env.sleep(rest).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Cassandra's validations, whose purger keeps all tombstones of such a table.
    #[test]
    fn tables_that_only_purge_repaired_tombstones_are_validated_with_all_of_them() {
        let schema = schema::system::schema();
        let mut table = TableMetadata::clone(schema.table("system", "repairs").expect("a system table"));
        table.params.gc_grace_seconds = 100;
        for (value, expected) in [(None, 900), (Some("false"), 900), (Some("true"), 0), (Some("TRUE"), 0)] {
            let pair = value.map(|value| ("only_purge_repaired_tombstones".to_owned(), value.to_owned()));
            table.params.compaction = pair.into_iter().collect();
            assert_eq!(gc_before(&table, 1000), expected, "{value:?}");
        }
    }
}
