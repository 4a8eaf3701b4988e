//! The part of a node in a repair, for its coordinator, which may be the node itself.
//!
//! Every message is acknowledged at once; validations and streams go on, and their results are
//! messages of their own. A message that comes again is acknowledged again, and what it asks for is
//! not done twice; it is refused once the task has failed or its result cannot be told, so that the
//! coordinator does not wait for a result that does not come. Agrees with
//! `org.apache.cassandra.repair.RepairMessageVerbHandler`.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use internode::Verb;
use internode::payload::repair::{
    Job, Prepare, SessionId, SyncRequest, SyncResponse, ValidationRequest, ValidationResponse,
};
use repair::MerkleTrees;
use schema::Schema;

use super::messages::generation;
use super::{consistent, streams, trace, validation};
use crate::clock::uuid_text;
use crate::node::Node;
use crate::repair_state::records::{End, Facts, RepairCounts, Subject};
use crate::repair_state::{PARTICIPATIONS_MAX, Participation, Progress, TASKS_MAX, TaskId};

/// The reason why a request is not carried out; it is told in the log.
pub(crate) type Refusal = String;

/// Takes part in a repair of `coordinator`.
pub(crate) fn prepare(node: &Node, coordinator: SocketAddr, prepare: Prepare) -> Result<(), Refusal> {
    let schema = node.schema();
    if let Some(gone) = prepare.tables.iter().find(|table| schema.table_by_id(**table).is_none()) {
        return Err(format!("Table with id {gone} was dropped during prepare phase of repair"));
    }
    let since = node.engine.truncation_epoch();
    let mut participations = node.repairs.participations();
    if participations.contains_key(&prepare.parent) {
        return Ok(());
    }
    if participations.len() >= PARTICIPATIONS_MAX {
        return Err(format!("this node takes part in {PARTICIPATIONS_MAX} repairs already"));
    }
    let begun_at = node.env.clock.now_micros() / 1000;
    let id = prepare.parent;
    node.repairs.records.begin(facts(&schema, coordinator, &prepare), begun_at);
    let participation = Participation {
        coordinator,
        generation: generation(node, coordinator),
        prepare,
        since,
        last_used: AtomicI64::new(begun_at),
        last_streamed: AtomicI64::new(0),
        flushed_tables: Default::default(),
        tasks: Default::default(),
        over: OnceLock::new(),
    };
    participations.insert(id, Arc::new(participation));
    Ok(())
}

fn facts(schema: &Schema, coordinator: SocketAddr, prepare: &Prepare) -> Facts {
    let tables = prepare.tables.iter().filter_map(|table| schema.table_by_id(*table));
    let keyspace = tables.clone().next().map(|table| table.keyspace.clone());
    Facts {
        subject: Subject::Participation,
        id: prepare.parent,
        repair: prepare.parent,
        session: prepare.parent,
        keyspace: keyspace.unwrap_or_default(),
        tables: tables.map(|table| format!("{}.{}", table.keyspace, table.name)).collect(),
        ranges: prepare.ranges.clone(),
        nodes: vec![coordinator],
        is_incremental: prepare.is_incremental,
        is_global: prepare.is_global,
        repaired_at: prepare.repaired_at,
        preview: prepare.preview,
    }
}

fn of(node: &Node, parent: &SessionId) -> Result<Arc<Participation>, Refusal> {
    node.repairs.participation(parent).ok_or_else(|| format!("Unknown repair {}", uuid_text(parent)))
}

/// Keeps the SSTables of a table as they are now, until the repair ends.
pub(crate) async fn snapshot(node: &Node, job: &Job) -> Result<(), Refusal> {
    let participation = of(node, &job.parent)?;
    let is_there = participation.flushed_tables().values().any(|flushed| validation::is_of(&flushed.table, job));
    if !is_there {
        let flushed = validation::take_flushed_table(node, &participation, job).await?;
        participation.flushed_tables().insert(flushed.table.id, flushed);
    }
    touch(node, &participation);
    Ok(())
}

/// Begins a task. `Ok(None)`: it was asked for before, and is under way or done.
fn begin(node: &Node, parent: &SessionId, task: &TaskId) -> Result<Option<Arc<Participation>>, Refusal> {
    let participation = of(node, parent)?;
    let mut tasks = participation.tasks();
    match tasks.get(task) {
        Some(Progress::Failed) => return Err("it has failed before".to_owned()),
        Some(_) => return Ok(None),
        None if tasks.len() >= TASKS_MAX => {
            return Err(format!(
                "the repair has {TASKS_MAX} tasks on this node already: repair fewer tables at a time"
            ));
        }
        None => tasks.insert(task.clone(), Progress::Running),
    };
    drop(tasks);
    touch(node, &participation);
    Ok(Some(participation))
}

/// Notes that a task of a repair begins or ends.
fn touch(node: &Node, participation: &Participation) {
    participation.last_used.store(node.env.clock.now_micros() / 1000, Ordering::Relaxed);
}

fn end<T>(node: &Node, participation: &Participation, task: TaskId, result: &Result<T, String>) {
    touch(node, participation);
    let progress = if result.is_ok() { Progress::Succeeded } else { Progress::Failed };
    let before = participation.tasks().insert(task, progress);
    assert_eq!(before, Some(Progress::Running), "a task ends once");
}

/// Notes that the coordinator has not acknowledged the result of a task: when it asks for the
/// result again, it is told that the task has failed.
fn mark_unacknowledged(participation: &Participation, task: TaskId) {
    participation.tasks().insert(task, Progress::Failed);
}

/// Notes that a registered task cannot begin, and counts it as failed. The refusal may be lost on
/// its way; otherwise a repeated request would be acknowledged although nothing works at the task.
fn refuse((participation, task): (&Participation, &TaskId), why: Refusal) -> Refusal {
    mark_unacknowledged(participation, task.clone());
    why
}

/// Validates for another node, and tells it the trees. `traced`: the tracing session of the repair.
/// Err: nothing is begun.
pub(crate) fn begin_validation(
    node: &Arc<Node>,
    from: SocketAddr,
    request: ValidationRequest,
    traced: Option<[u8; 16]>,
) -> Result<(), Refusal> {
    let task: TaskId = (request.job.session, request.job.table.clone(), None);
    let Some(participation) = begin(node, &request.job.parent, &task)? else { return Ok(()) };
    let (of_task, named) = (Arc::clone(&participation), task.clone());
    let refused = |why| refuse((&of_task, &named), why);
    consistent::mark_repairing(node, &request.job.parent).map_err(refused)?;
    let ranges: Vec<_> = request.job.ranges.iter().map(|range| (range.start, range.end)).collect();
    let id = format!("RepairSession #{}", uuid_text(&request.job.parent));
    let is_out_of_range = node.refuses_ranges(&request.job.keyspace, &ranges, (&id, "validation request", from));
    let here = Arc::clone(node);
    let run = move || async move {
        let validated = match is_out_of_range {
            true => Err("Received repair outside of owned ranges".to_owned()),
            false => validation::validate_recorded(&here, &participation, &request.job, request.now).await,
        };
        end(&here, &participation, task.clone(), &validated);
        let (keyspace, table) = (&request.job.keyspace, &request.job.table);
        let line = format!("Sending completed merkle tree to /{from} for {keyspace}.{table}");
        trace::tell(&here, traced.filter(|_| validated.is_ok()), line).await;
        if let Err(why) = tell_trees(&here, from, request.job, validated).await {
            tracing::warn!(why, peer = %from, "trees cannot be told");
            mark_unacknowledged(&participation, task);
        }
    };
    node.repair_task(run).then_some(()).ok_or_else(|| refused("too many tasks of repair wait".to_owned()))
}

/// Tells the coordinator the trees, or that there are none. Err: the coordinator does not know.
async fn tell_trees(
    node: &Node,
    to: SocketAddr,
    job: Job,
    validated: Result<MerkleTrees, String>,
) -> Result<(), String> {
    if let Err(why) = &validated {
        tracing::warn!(why, keyspace = job.keyspace, table = job.table, "a validation for another node has failed");
    }
    let trees = match validated {
        Ok(trees) => node.env.blocking_long("encode trees", move || trees.encode()).await.ok(),
        Err(_) => None,
    };
    let response = ValidationResponse { job, trees: trees.map(Into::into) };
    let payload = response.encode().map_err(|error| error.to_string())?;
    node.tell_repair(to, Verb::ValidationRsp, payload).await.map_err(|error| error.to_string())
}

/// Validates for this node.
pub(super) async fn validate_here(node: &Arc<Node>, job: &Job, now: u32) -> Result<MerkleTrees, String> {
    let task: TaskId = (job.session, job.table.clone(), None);
    let participation = begin(node, &job.parent, &task)?.ok_or("a job is validated once")?;
    consistent::mark_repairing(node, &job.parent).map_err(|why| refuse((&participation, &task), why))?;
    let validated = validation::validate_recorded(node, &participation, job, now).await;
    end(node, &participation, task, &validated);
    validated
}

/// Streams with another node for a third one, and tells the end. Err: nothing is begun.
pub(crate) fn begin_sync(node: &Arc<Node>, from: SocketAddr, request: SyncRequest) -> Result<(), Refusal> {
    let task: TaskId = (request.job.session, request.job.table.clone(), Some(request.destination));
    let Some(participation) = begin(node, &request.job.parent, &task)? else { return Ok(()) };
    let (of_task, named) = (Arc::clone(&participation), task.clone());
    let here = Arc::clone(node);
    let run = move || async move {
        let SyncRequest { job, source, destination, ranges, preview, is_asymmetric, .. } = request;
        let pending = participation.prepare.is_incremental.then_some(job.parent);
        let (peer, sends) = (destination, !is_asymmetric);
        let exchange = streams::Exchange { job: &job, peer, ranges: &ranges, sends, preview, pending };
        let exchanged = match participation.over.get() {
            Some(why) => Err(why.clone()),
            None => streams::exchange(&here, exchange).await,
        };
        RepairCounts::count(&exchanged, &here.repairs.counts.exchanges, &here.repairs.counts.exchanges_failed);
        end(&here, &participation, task.clone(), &exchanged);
        if let Err(why) = &exchanged {
            tracing::warn!(why, peer = %destination, table = job.table, "streams of a repair have failed");
        }
        let (is_success, summaries) = (exchanged.is_ok(), exchanged.unwrap_or_default());
        let response = SyncResponse { job, source, destination, is_success, summaries };
        let told = match response.encode() {
            Ok(payload) => here.tell_repair(from, Verb::SyncRsp, payload).await.map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        if let Err(why) = told {
            tracing::warn!(why, peer = %from, "the end of streams cannot be told");
            mark_unacknowledged(&participation, task);
        }
    };
    let refused = |why| refuse((&of_task, &named), why);
    node.repair_task(run).then_some(()).ok_or_else(|| refused("too many tasks of repair wait".to_owned()))
}

/// Forgets a repair that has ended. Validations of it that run end with the reason.
pub(crate) fn clean_up(node: &Node, parent: &SessionId, end: End) {
    let why = match &end {
        End::Failure(why) => why.clone(),
        End::Success(_) | End::Skipped(_) => "the repair has ended".to_owned(),
    };
    if let Some(record) = node.repairs.records.find(Subject::Participation, parent) {
        record.end(end, node.env.clock.now_micros() / 1000);
    }
    if let Some(participation) = node.repairs.participations().remove(parent) {
        let _ = participation.over.set(why);
    }
}
