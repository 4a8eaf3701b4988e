//! A repair that an operator has asked of this node: its ranges, its sessions, and the lines that
//! the operator reads. Agrees with `org.apache.cassandra.repair.RepairCoordinator` and the lines of
//! nodetool.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures_util::future::join_all;
use internode::Verb;
use internode::payload::repair::Prepare;
use internode::payload::token_ranges::Tokens;
use membership::RequestFailure;
use schema::{TableKind, TableMetadata};
use tokio::sync::Semaphore;

use super::consistent;
use super::consistent::coordinator_session::CoordinatorSession;
use super::history::History;
use super::job::{RepairJob, SyncStat};
use super::messages::is_up;
use super::participant;
use super::preview_report;
use super::ranges::{self, CommonRange, Groups};
use super::trace::RepairTrace;
use crate::clock::uuid_text;
use crate::node::Node;
use crate::operations::{self, OperationError};
use crate::repair_state::options::RepairOptions;
use crate::repair_state::records::{End, Facts, Record, RepairCounts, Step, Subject};
use crate::repair_state::{ENDED_MAX, RUNNING_MAX};

pub use crate::repair_state::command::{Command, Event, EventKind};

/// Longest time that an operator's call waits for an event.
const EVENTS_WAIT: Duration = Duration::from_secs(5);
/// Time between two looks for an event.
const EVENTS_LOOK_EVERY: Duration = Duration::from_millis(100);

/// The share of a command that is done when its sessions are, in hundredths: four of Cassandra's
/// seven steps.
const REPAIRING_PERCENT: u32 = 57;

impl Node {
    /// Begins a repair of a keyspace, and gives its command. None: nothing is to be repaired,
    /// because there is one replica of everything.
    pub fn start_repair(
        self: &Arc<Self>,
        keyspace: &str,
        options: RepairOptions,
    ) -> operations::Result<Option<Arc<Command>>> {
        let invalid = OperationError::Invalid;
        let ring = self.ring();
        options.check(ring.local_data_center()).map_err(invalid)?;
        options.check_data_centers(ring.local_data_center(), &ring.data_centers()).map_err(invalid)?;
        let tables = tables(self, keyspace, &options.tables).map_err(invalid)?;
        let unknown = || OperationError::Failed(format!("the replication of keyspace {keyspace} is not understood"));
        let placement = ring.placement(keyspace).ok_or_else(unknown)?;
        let ranges = ranges::of_node(&ring, placement, &options);
        if ranges.is_empty() || placement.replication.factor() < 2 {
            return Ok(None);
        }
        let command = register(self, keyspace, options)?;
        let facts = command.facts(&tables, &ranges);
        self.repairs.records.begin(facts, command.begun_at);
        let (node, running) = (Arc::clone(self), Arc::clone(&command));
        let run = move || async move { running.run(&node, tables, ranges).await };
        if !self.repair_task(run) {
            let why = match self.repairs.worker.get() {
                Some(_) => "too many tasks of repair wait",
                None => "this node has not joined a ring of several nodes",
            };
            command.mark_end(self, End::Failure(why.to_owned()));
            command.fail(self, why);
            let text = format!("Repair command #{} finished with error", command.number);
            command.complete(self, Duration::ZERO, Some(text));
            return Err(OperationError::Failed(why.to_owned()));
        }
        Ok(Some(command))
    }

    /// The events of a command from one on, and whether that is all. Waits a little until there is
    /// one. None: there is no such command.
    pub async fn repair_events(&self, number: i32, from: usize) -> Option<(Vec<Event>, bool)> {
        let command = self.repairs.commands().get(&number).cloned()?;
        let begun = self.env.now();
        loop {
            let (events, has_ended) = command.events(from);
            if !events.is_empty() || has_ended || self.env.elapsed(begun) >= EVENTS_WAIT {
                return Some((events, has_ended));
            }
            self.env.sleep(EVENTS_LOOK_EVERY).await;
        }
    }

    /// Records of the course of repairs, oldest first.
    pub fn repair_records(&self, subject: Subject) -> Vec<Arc<Record>> {
        self.repairs.records.of(subject)
    }

    /// How many repairs there were since the start.
    pub fn repair_counts(&self) -> &RepairCounts {
        &self.repairs.counts
    }

    /// The repairs that this node coordinates, and those that have ended not long ago.
    pub fn repair_commands(&self) -> Vec<Arc<Command>> {
        self.repairs.commands().values().cloned().collect()
    }
}

/// Registers a command. Err: too many run.
fn register(node: &Node, keyspace: &str, options: RepairOptions) -> operations::Result<Arc<Command>> {
    let mut commands = node.repairs.commands();
    let running = commands.values().filter(|command| !command.has_ended()).count();
    let settings = node.repairs.permits.load().settings;
    if running >= RUNNING_MAX || !settings.waits_for_pool && running >= settings.pool_size {
        return Err(OperationError::Failed(format!("{running} repairs run already")));
    }
    let ended: Vec<_> = commands.iter().filter(|(_, of)| of.has_ended()).map(|(number, _)| *number).collect();
    if ended.len() >= ENDED_MAX {
        ended.first().map(|oldest| commands.remove(oldest));
    }
    let number = node.repairs.last_command.fetch_add(1, Ordering::Relaxed) + 1;
    let begun_at = node.env.clock.now_micros() / 1000;
    let command = Arc::new(Command::new(number, node.uuids.next(), keyspace, options, begun_at));
    commands.insert(number, Arc::clone(&command));
    Ok(command)
}

/// The tables of a keyspace that are repaired. Err: a name is unknown.
fn tables(node: &Node, keyspace: &str, names: &[String]) -> Result<Vec<Arc<TableMetadata>>, String> {
    let schema = node.schema();
    if schema.keyspace(keyspace).is_none() {
        return Err(format!("Keyspace [{keyspace}] does not exist."));
    }
    let is_stored = |table: &TableMetadata| matches!(table.kind, TableKind::Regular | TableKind::View);
    if names.is_empty() {
        let all = schema.tables_by_id.values().filter(|table| table.keyspace == keyspace && is_stored(table));
        return Ok(all.cloned().collect());
    }
    let named = |name: &String| {
        let table = schema.table(keyspace, name).filter(|table| is_stored(table)).cloned();
        table.ok_or_else(|| format!("Unknown keyspace/cf pair ({keyspace}.{name})"))
    };
    names.iter().map(named).collect()
}

impl Command {
    fn facts(&self, tables: &[Arc<TableMetadata>], ranges: &[Tokens]) -> Facts {
        Facts {
            subject: Subject::Command,
            id: self.id,
            repair: self.id,
            session: self.id,
            keyspace: self.keyspace.clone(),
            tables: tables.iter().map(|table| table.name.clone()).collect(),
            ranges: ranges.to_vec(),
            nodes: Vec::new(),
            is_incremental: self.options.is_incremental,
            is_global: self.options.is_global(),
            repaired_at: 0,
            preview: self.options.preview,
        }
    }

    /// Notes in the record that the command has come to a step.
    fn mark(&self, node: &Node, step: Step) {
        if let Some(record) = node.repairs.records.find(Subject::Command, &self.id) {
            record.step(step, node.env.clock.now_micros() / 1000);
        }
    }

    fn mark_end(&self, node: &Node, end: End) {
        if let Some(record) = node.repairs.records.find(Subject::Command, &self.id) {
            record.end(end, node.env.clock.now_micros() / 1000);
        }
    }

    fn tell(&self, node: &Node, kind: EventKind, text: String) {
        match kind {
            EventKind::Error => tracing::error!(command = self.number, "{text}"),
            _ => tracing::info!(command = self.number, "{text}"),
        }
        self.note(Event { at_millis: node.env.clock.now_micros() / 1000, kind, text });
    }

    async fn run(&self, node: &Arc<Node>, tables: Vec<Arc<TableMetadata>>, ranges: Vec<Tokens>) {
        // the semaphore is never closed; without a turn the repair would only begin earlier
        let turns = Arc::clone(&node.repairs.permits.load().commands);
        let _turn = turns.acquire().await;
        let begun = node.env.now();
        let (id, number) = (uuid_text(&self.id), self.number);
        if tables.is_empty() {
            let why = format!("{id} Empty keyspace, skipping repair: {}", self.keyspace);
            self.mark_end(node, End::Skipped(why.clone()));
            self.skip(node, &why);
            return self.complete(node, node.env.elapsed(begun), None);
        }
        let text = self.options.text(ranges.len());
        let start =
            format!("Starting repair command #{number} ({id}), repairing keyspace {} with {text}", self.keyspace);
        let trace = RepairTrace::begin(node, self, &tables);
        self.trace(node, || start.clone());
        self.tell(node, EventKind::Start, start);
        self.mark(node, Step::Setup);
        self.mark(node, Step::Start);
        let history = (!self.options.preview.is_preview()).then(|| History::new(node, self.id, &self.keyspace));
        let mut participants = BTreeSet::new();
        let work = self.perform(node, &tables, &ranges, history.as_ref(), &mut participants);
        let result = match &trace {
            Some(trace) => trace.beside(self, work).await,
            None => work.await,
        };
        RepairCounts::count(&result, &node.repairs.counts.succeeded, &node.repairs.counts.failed);
        let failure = match result {
            Ok(message) => {
                self.mark_end(node, End::Success(Some(message.clone())));
                self.tell(node, EventKind::Success, message);
                None
            }
            Err(CommandStop::Skipped(why)) => {
                self.mark_end(node, End::Skipped(why.clone()));
                self.skip(node, &why);
                None
            }
            Err(CommandStop::Failed(step)) => {
                // the reason why a command is to end says more than the step that noticed it
                let why = self.cancelled().unwrap_or_else(|| step.clone());
                if why != step {
                    self.fail(node, &step);
                }
                self.mark_end(node, End::Failure(why.clone()));
                self.fail(node, &why);
                if let Some(history) = &history {
                    history.fail(&why).await;
                }
                Some(format!("Repair command #{number} finished with error"))
            }
        };
        let is_done = failure.is_none();
        let verb = if is_done { Verb::CleanupMsg } else { Verb::FailedSessionMsg };
        let tell = |participant: SocketAddr| async move {
            if let Err(error) = node.tell_repair(participant, verb, self.id.to_vec()).await {
                tracing::info!(%error, peer = %participant, "a replica is not told of the end of a repair");
            }
        };
        self.complete(node, node.env.elapsed(begun), failure);
        if let Some(trace) = trace {
            trace.end().await;
        }
        if !is_done {
            consistent::fail(node, &self.id);
        }
        let end = match is_done {
            true => End::Success(Some("Cleanup message recieved".to_owned())),
            false => End::Failure("the repair has failed".to_owned()),
        };
        participant::clean_up(node, &self.id, end);
        let living = participants.into_iter().filter(|participant| is_up(node, *participant));
        join_all(living.map(tell)).await;
    }

    fn fail(&self, node: &Node, why: &str) {
        self.tell(node, EventKind::Error, format!("Repair command #{} failed with error {why}", self.number));
    }

    fn skip(&self, node: &Node, why: &str) {
        let skipped = format!("Repair {} skipped: {why}", uuid_text(&self.id));
        self.tell(node, EventKind::Notification, skipped);
        self.tell(node, EventKind::Success, why.to_owned());
    }

    fn complete(&self, node: &Node, took: Duration, failure: Option<String>) {
        let text = failure.unwrap_or_else(|| format!("Repair command #{} finished in {}", self.number, words(took)));
        if let Some(sink) = self.traced() {
            sink.event(text.clone());
        }
        self.tell(node, EventKind::Complete, text);
        self.ended_at.store((node.env.clock.now_micros() / 1000).max(1), Ordering::Release);
    }

    /// Prepares the replicas and runs all sessions. Gives the sentence of success.
    async fn perform(
        &self,
        node: &Arc<Node>,
        tables: &[Arc<TableMetadata>],
        ranges: &[Tokens],
        history: Option<&History<'_>>,
        participants: &mut BTreeSet<SocketAddr>,
    ) -> Result<String, CommandStop> {
        let Groups { common, leaves_out } = self.groups(node, ranges)?;
        let names: Vec<String> = tables.iter().map(|table| table.name.clone()).collect();
        if let Some(history) = history {
            history.start(&names, ranges, &self.options).await;
        }
        participants.extend(common.iter().flat_map(|one| &one.neighbours));
        if let Some(record) = node.repairs.records.find(Subject::Command, &self.id) {
            let ranges = common.iter().map(|one| one.ranges.clone()).collect();
            record.place(participants.iter().copied().collect(), ranges);
        }
        self.mark(node, Step::PrepareStart);
        let repaired_at = self.repaired_at(node, leaves_out);
        self.prepare(node, tables, ranges, participants, repaired_at).await?;
        let consistent = CoordinatorSession::new(node, self, participants);
        let is_consistent = self.options.is_incremental && !self.options.preview.is_preview();
        if is_consistent {
            consistent.prepare().await.map_err(CommandStop::Failed)?;
        }
        self.mark(node, Step::PrepareComplete);
        self.mark(node, Step::RepairStart);
        // a job is a table of a session
        let turns = Semaphore::new(self.options.job_threads.max(1));
        let sessions = common.iter().map(|one| self.session(node, history, &names, one, &turns));
        let (mut stats, mut successful, mut failure) = (Vec::new(), Vec::new(), None);
        for (ended, one) in join_all(sessions).await.into_iter().zip(&common) {
            match ended {
                Ok(of_session) => {
                    stats.extend(of_session);
                    successful.extend_from_slice(&one.ranges);
                }
                Err(why) => {
                    // the last one is told at the end of the command
                    if let Some(other) = failure.replace(why) {
                        self.fail(node, &other);
                    }
                }
            }
        }
        self.mark(node, Step::RepairComplete);
        if self.options.preview.is_preview() {
            // an incremental repair may also have ended after the last step that looks for it
            if let Some(why) = self.cancelled()
                && let Some(other) = failure.replace(why.clone()).filter(|other| *other != why)
            {
                self.fail(node, &other);
            }
        }
        if is_consistent && failure.is_none() {
            failure = consistent.finalize().await.err();
        }
        if let Some(history) = history {
            history.succeed(&successful).await;
        }
        match failure {
            Some(why) => Err(CommandStop::Failed(why)),
            None if self.options.preview.is_preview() => {
                let found = preview_report::text(self.options.preview, &self.keyspace, &stats);
                self.tell(node, EventKind::Notification, found.clone());
                Ok(format!("Repair preview completed successfully; {found}"))
            }
            None => Ok("Repair completed successfully".to_owned()),
        }
    }

    /// The ranges by the nodes that hold them.
    fn groups(&self, node: &Node, ranges: &[Tokens]) -> Result<Groups, CommandStop> {
        let ring = node.ring();
        let placement = ring.placement(&self.keyspace);
        let placement = placement.ok_or_else(|| CommandStop::Failed(format!("keyspace {} is gone", self.keyspace)))?;
        let mut common = Vec::new();
        for range in ranges {
            let neighbours = ranges::neighbours(&ring, placement, &self.keyspace, *range, &self.options);
            let neighbours = neighbours.map_err(CommandStop::Failed)?;
            match neighbours.is_empty() {
                false => ranges::add(&mut common, *range, neighbours),
                true if self.options.ignores_unreplicated => {}
                true => {
                    let why = format!("Nothing to repair for {range} in {} - aborting", self.keyspace);
                    return Err(CommandStop::Failed(why));
                }
            }
        }
        if common.is_empty() {
            return Err(CommandStop::Skipped(format!(
                "Nothing to repair for {} in {} - unreplicated keyspace is ignored since repair was called with \
                 --ignore-unreplicated-keyspaces",
                list(ranges),
                self.keyspace
            )));
        }
        if !self.options.is_forced {
            return Ok(Groups { common, leaves_out: false });
        }
        let living = ranges::without_dead(common, |address| is_up(node, address));
        match living.common.is_empty() {
            true => Err(CommandStop::Failed("Not enough live endpoints for a repair".to_owned())),
            false => Ok(living),
        }
    }

    /// The time in milliseconds with which the data counts as repaired; 0: it does not, because
    /// not all replicas take part. A session has one such time for all of its ranges, also for
    /// those that are left out with the last of their other replicas: otherwise data that was
    /// never compared would count as repaired.
    fn repaired_at(&self, node: &Node, leaves_out: bool) -> i64 {
        let is_of_all = self.options.is_global() && !leaves_out;
        match self.options.is_incremental && is_of_all {
            true => node.env.clock.now_micros() / 1000,
            false => 0,
        }
    }

    /// Tells the replicas of the repair.
    async fn prepare(
        &self,
        node: &Arc<Node>,
        tables: &[Arc<TableMetadata>],
        ranges: &[Tokens],
        participants: &BTreeSet<SocketAddr>,
        repaired_at: i64,
    ) -> Result<(), CommandStop> {
        let prepare = Prepare {
            tables: tables.iter().map(|table| table.id).collect(),
            parent: self.id,
            ranges: ranges.to_vec(),
            is_incremental: self.options.is_incremental,
            repaired_at,
            is_global: self.options.is_global(),
            preview: self.options.preview,
        };
        if let Some(dead) = participants.iter().find(|address| !is_up(node, **address)) {
            return Err(CommandStop::Failed(format!("Endpoint not alive: /{dead}")));
        }
        let payload = prepare.encode();
        participant::prepare(node, node.identity.broadcast, prepare).map_err(CommandStop::Failed)?;
        let tell = |to: &SocketAddr| {
            let (to, payload) = (*to, payload.clone());
            async move { (to, node.tell_repair(to, Verb::PrepareMsg, payload).await) }
        };
        let mut refused = Vec::new();
        for (to, told) in join_all(participants.iter().map(tell)).await {
            match told {
                Ok(()) => {}
                Err(RequestFailure::TimedOut) => {
                    return Err(CommandStop::Failed("Did not get replies from all endpoints.".to_owned()));
                }
                Err(_) => refused.push(format!("/{to}")),
            }
        }
        match refused.is_empty() {
            true => Ok(()),
            false => Err(CommandStop::Failed(format!("Got negative replies from endpoints [{}]", refused.join(", ")))),
        }
    }

    /// Repairs the tables in ranges of the same nodes.
    async fn session(
        &self,
        node: &Arc<Node>,
        history: Option<&History<'_>>,
        tables: &[String],
        common: &CommonRange,
        turns: &Semaphore,
    ) -> Result<Vec<(String, SyncStat)>, String> {
        let session = node.uuids.next();
        let facts = Facts {
            subject: Subject::Session,
            id: session,
            repair: self.id,
            session,
            keyspace: self.keyspace.clone(),
            tables: tables.to_vec(),
            ranges: common.ranges.clone(),
            nodes: common.neighbours.iter().copied().collect(),
            is_incremental: self.options.is_incremental,
            is_global: self.options.is_global(),
            repaired_at: 0,
            preview: self.options.preview,
        };
        let now = || node.env.clock.now_micros() / 1000;
        let record = node.repairs.records.begin(facts, now());
        record.step(Step::Start, now());
        if let Some(of_command) = node.repairs.records.find(Subject::Command, &self.id) {
            of_command.adopt(session);
        }
        record.step(Step::JobsStart, now());
        self.trace(node, || format!("Syncing range {common}"));
        let history = history.filter(|_| !self.options.is_paxos_only);
        if let Some(history) = history {
            history.start_session(&session, tables, common).await;
        }
        let run = |table: &String| {
            let job = RepairJob { node, command: self, session, common, table: table.clone() };
            async move {
                let turn = turns.acquire().await.map_err(|_| "the repair has ended".to_owned())?;
                let result = match self.cancelled() {
                    Some(why) => Err(why),
                    None => job.run().await,
                };
                drop(turn);
                if let Some(history) = history {
                    history.end_job(&session, &job.table, result.as_ref().map(drop).map_err(String::as_str)).await;
                }
                let of_table = |stat| (job.table.clone(), stat);
                result.map(|stats| stats.into_iter().map(of_table).collect::<Vec<_>>())
            }
        };
        let jobs: Result<Vec<_>, String> = join_all(tables.iter().map(run)).await.into_iter().collect();
        record.end_with(&jobs, now());
        let (id, ranges) = (uuid_text(&session), list(&common.ranges));
        match jobs {
            Ok(stats) => {
                self.trace(node, || format!("Completed sync of range {common}"));
                let text = format!("Repair session {id} for range {ranges} finished");
                self.tell(node, EventKind::Progress(REPAIRING_PERCENT), text);
                Ok(stats.concat())
            }
            Err(why) => {
                self.trace(node, || format!("Session completed with the following error: {why}"));
                let why = format!("Repair session {id} for range {ranges} failed with error {why}");
                Err(why)
            }
        }
    }
}

/// Why a command has not repaired anything.
enum CommandStop {
    /// Nothing was to be repaired.
    Skipped(String),
    Failed(String),
}

fn list(ranges: &[Tokens]) -> String {
    let ranges: Vec<_> = ranges.iter().map(ToString::to_string).collect();
    format!("[{}]", ranges.join(", "))
}

/// A duration in words: `1 minute 5 seconds`.
fn words(took: Duration) -> String {
    let seconds = took.as_secs();
    let parts = [(seconds / 86_400, "day"), (seconds / 3600 % 24, "hour"), (seconds / 60 % 60, "minute")];
    let part = |(count, name): (u64, &str)| format!("{count} {name}{}", if count == 1 { "" } else { "s" });
    let mut words: Vec<String> = parts.into_iter().filter(|(count, _)| *count > 0).map(part).collect();
    if !seconds.is_multiple_of(60) || words.is_empty() {
        words.push(part((seconds % 60, "second")));
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_words() {
        let cases = [(0, "0 seconds"), (1, "1 second"), (60, "1 minute"), (3725, "1 hour 2 minutes 5 seconds")];
        for (seconds, expected) in cases {
            assert_eq!(words(Duration::from_secs(seconds)), expected);
        }
        assert_eq!(words(Duration::from_secs(2 * 86_400)), "2 days");
    }
}
