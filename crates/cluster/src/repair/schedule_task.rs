//! The task of the built-in schedule of repairs: finds the units that are due, waits for this
//! node's turn, and repairs one unit after the other. `crate::repair_state::schedule` says how
//! units are chosen, and why.
//!
//! The task runs on the thread of repair. Between its steps it holds nothing of the node, so that
//! the node can end. A turn that a kill ends is taken again after the next start: units that were
//! done are in the file, the one that was under way is repaired again.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use env::Instant;
use env::defects::{Defect, is_on};
use internode::payload::token_ranges::Tokens;
use ring::{EndpointId, Placement, Replication, Ring};
use schema::{TableId, TableKind, TableMetadata};

use crate::node::Node;
use crate::range_movement_state::Mode;
use crate::repair_state::command::Command;
use crate::repair_state::options::RepairOptions;
use crate::repair_state::records::{End, Subject};
use crate::repair_state::schedule::pace::Pace;
use crate::repair_state::schedule::plan::{self, RepairUnit};
use crate::repair_state::schedule::progress::Progress;
use crate::repair_state::schedule::turns::{self, Other, Phase, SETTLE, STATE, ScheduleStatus};
use crate::repair_state::schedule::{
    ClientLatencies, ScheduleCounts, ScheduleSettings, ScheduleSnapshot, TableProgress,
};

const FILE_NAME: &str = "helenus-repairs-1.db";

/// Time between two looks whether a turn comes.
const TURN_LOOK: Duration = Duration::from_secs(20);
/// Time between two looks whether a repair has ended.
const POLL: Duration = Duration::from_secs(1);
/// The length of a window of clients' latencies, and time between two looks while they hold a
/// repair back.
const WINDOW: Duration = Duration::from_secs(10);
/// A turn ends after this time, so that others come to theirs.
const TURN_MAX: Duration = Duration::from_secs(6 * 60 * 60);
/// The longest rest after a repair, however long the repair took.
const REST_MAX: Duration = Duration::from_secs(30 * 60);

impl Node {
    /// The latencies of clients' requests, which pace scheduled repairs. Given once, before the
    /// node joins a ring.
    pub fn set_client_latencies(&self, latencies: ClientLatencies) {
        let _ = self.repairs.schedule.latencies.set(latencies);
    }

    /// Changes how the schedule works, from its next look on.
    pub fn set_repair_schedule(&self, settings: ScheduleSettings) {
        self.repairs.schedule.settings.store(Arc::new(settings));
    }

    /// The schedule of repairs as it was at its last look.
    pub fn repair_schedule(&self) -> ScheduleSnapshot {
        self.repairs.schedule.snapshot().clone()
    }

    /// How many scheduled repairs there were since the start.
    pub fn repair_schedule_counts(&self) -> &ScheduleCounts {
        &self.repairs.schedule.counts
    }

    /// The nodes that tell that they have a turn in the schedule of repairs, by host id.
    pub fn scheduled_repairs_of_ring(&self) -> Vec<[u8; 16]> {
        let runs = |phase: Phase| phase == Phase::Run;
        let own = runs(self.repair_schedule().status.phase).then_some(self.identity.host_id);
        let status = schedules_of_peers(self);
        let others = status.into_iter().filter(|(_, status)| status.is_some_and(|status| runs(status.phase)));
        own.into_iter().chain(others.map(|(id, _)| id)).collect()
    }

    /// Tells the others that this node is a Helenus, and how it stands in the schedule.
    pub(crate) fn announce_schedule(&self, status: ScheduleStatus) {
        self.repairs.schedule.snapshot().status = status;
        if let Some(messenger) = self.messenger() {
            messenger.with_gossip(|gossip| {
                let text = status.text();
                if gossip.local.state().value(STATE) != Some(text.as_str()) {
                    gossip.local.set(STATE, text);
                }
            });
        }
    }
}

/// The host ids of the other members, each with the schedule that it tells; None: a Cassandra, or
/// a node of which nothing was heard.
fn schedules_of_peers(node: &Node) -> Vec<([u8; 16], Option<ScheduleStatus>)> {
    let (Some(messenger), ring) = (node.messenger(), node.ring()) else { return Vec::new() };
    messenger.with_gossip(|gossip| {
        let status = |address| ScheduleStatus::parse(gossip.state(address)?.value(STATE)?);
        ring.peers().map(|peer| (peer.host_id, status(peer.address))).collect()
    })
}

/// Seconds ahead of this node's clock from which a time counts as that of a clock that was wrong.
const AHEAD_MAX: i64 = 900;

/// Runs the schedule for as long as the node exists.
pub(super) async fn run(node: Weak<Node>) {
    let Some(there) = node.upgrade() else { return };
    let env = there.env.clone();
    let settings = there.repairs.schedule.settings.load_full();
    let saved = there.engine.options.saved_caches.as_ref().filter(|_| !there.engine.options.read_only);
    let path = saved.map(|saved| saved.directory.join(FILE_NAME));
    let (of_file, file) = (env.clone(), path.clone());
    drop(there);
    env.sleep(settings.first_after).await;
    let read = move || file.and_then(|file| Progress::read(&of_file, &file)).unwrap_or_default();
    let progress = env.blocking_long("schedule", read).await.unwrap_or_default();
    let mut task = Task::new(settings, progress, path, env.now());
    loop {
        let Some(there) = node.upgrade() else { return };
        if there.engine.is_draining() {
            return;
        }
        task.settings = there.repairs.schedule.settings.load_full();
        task.sample(&there);
        let pause = task.step(&there).await;
        drop(there);
        env.sleep(pause).await;
    }
}

/// The state of the task between two steps.
enum State {
    /// Other nodes have their turn, or nothing is due.
    Waits,
    /// The node has claimed a turn.
    Claimed,
    /// This node has its turn, until the units are done.
    Turn { units: VecDeque<RepairUnit>, begun: Instant },
    /// A unit is being repaired, since a time of the wall clock and one that only grows.
    Repairs {
        unit: RepairUnit,
        command: Arc<Command>,
        at: i64,
        since: Instant,
        units: VecDeque<RepairUnit>,
        begun: Instant,
    },
}

struct Task {
    settings: Arc<ScheduleSettings>,
    progress: Progress,
    path: Option<PathBuf>,
    state: State,
    status: ScheduleStatus,
    pace: Pace,
    /// The begin of the present window of latencies; true if nothing was repaired in it so far.
    window: (Instant, bool),
    /// From this time on, and for this long, no repair begins unless it is urgent.
    rest: (Instant, Duration),
    /// For each table and first range: failures in a row, and the time of the wall clock before
    /// which there is no new attempt, seconds since 1970.
    failures: BTreeMap<(TableId, Tokens), (u32, i64)>,
    /// The time of the last look, seconds since 1970; None: there was none since the start.
    looked_at: Option<i64>,
    /// The replication of each keyspace at the last look.
    replications: BTreeMap<String, Replication>,
}

fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX)
}

impl Task {
    fn new(settings: Arc<ScheduleSettings>, progress: Progress, path: Option<PathBuf>, now: Instant) -> Self {
        let status = ScheduleStatus { phase: Phase::Rest, since: 0 };
        let (window, failures) = ((now, true), BTreeMap::new());
        let (state, pace) = (State::Waits, Pace::default());
        Self {
            settings,
            progress,
            path,
            state,
            status,
            pace,
            window,
            rest: (now, Duration::ZERO),
            failures,
            looked_at: None,
            replications: BTreeMap::new(),
        }
    }

    /// Ends the window of latencies if it is long enough.
    fn sample(&mut self, node: &Node) {
        let (begun, is_quiet) = self.window;
        let is_quiet = is_quiet && !matches!(self.state, State::Repairs { .. });
        self.window.1 = is_quiet;
        if node.env.elapsed(begun) < WINDOW {
            return;
        }
        if let Some(latencies) = node.repairs.schedule.latencies.get() {
            self.pace.window(latencies(), is_quiet);
            node.repairs.schedule.snapshot().latencies = self.pace.micros();
        }
        self.window = (node.env.now(), true);
    }

    fn tell(&mut self, node: &Node, phase: Phase, since: i64) {
        if (self.status.phase, self.status.since) != (phase, since) {
            tracing::debug!(phase = phase.name(), since, "the schedule of repairs");
        }
        self.status = ScheduleStatus { phase, since };
        node.announce_schedule(self.status);
    }

    /// One step. Gives the time until the next.
    async fn step(&mut self, node: &Arc<Node>) -> Duration {
        let now = node.env.clock.now_micros() / 1_000_000;
        match std::mem::replace(&mut self.state, State::Waits) {
            State::Waits => self.look(node, now).await,
            State::Claimed => self.claimed(node, now),
            State::Turn { units, begun } => self.turn(node, now, units, begun),
            State::Repairs { unit, command, at, since, units, begun } => {
                if !command.has_ended() {
                    if node.env.elapsed(since) > self.settings.repair_max {
                        command.cancel("it takes longer than repair_session_timeout");
                    }
                    self.state = State::Repairs { unit, command, at, since, units, begun };
                    return POLL;
                }
                self.ended(node, unit, &command, at, since).await;
                self.state = State::Turn { units, begun };
                Duration::ZERO
            }
        }
    }

    /// Finds the units that are due, and claims a turn if no other node stands in the way.
    async fn look(&mut self, node: &Node, now: i64) -> Duration {
        if let Some(why) = why_off(node, &self.settings) {
            let was = node.repairs.schedule.snapshot().off.replace(why);
            if was != Some(why) {
                tracing::info!(why, "there is no schedule of repairs");
            }
            self.tell(node, Phase::Off, 0);
            return self.settings.check_every.min(TURN_LOOK);
        }
        if node.repairs.schedule.snapshot().off.take().is_some() {
            tracing::info!("the schedule of repairs begins");
        }
        let tables = tables(node);
        let ids: Vec<TableId> = tables.iter().map(|table| table.id).collect();
        let latest = now.saturating_add(AHEAD_MAX);
        if self.looked_at.is_some_and(|at| at > latest) {
            tracing::warn!("the clock was ahead: the schedule of repairs forgets what it noted meanwhile");
            self.looked_at = None;
            self.failures.clear();
        }
        let has_changed = self.progress.forget_after(latest) | self.progress.follow(&ids, self.looked_at);
        if has_changed | self.follow_replications(node, &tables, now) {
            self.save(node).await;
        }
        self.looked_at = Some(now);
        let due = self.due(node, &tables, now);
        let Some(first) = due.front() else {
            let since = if self.status.phase == Phase::Rest { self.status.since } else { now };
            self.tell(node, Phase::Rest, since);
            return self.settings.check_every;
        };
        let own = (node.identity.host_id, ScheduleStatus { phase: Phase::Due, since: first.deadline() });
        self.tell(node, own.1.phase, own.1.since);
        if turns::may_claim(own, &self.others(node), self.bound(node)) {
            self.tell(node, Phase::Claim, now);
            self.state = State::Claimed;
            return SETTLE;
        }
        TURN_LOOK
    }

    /// Makes tables due whose replication has changed since the last look: replicas that have come
    /// to their ranges by that lack the rows. Nothing of them becomes urgent. True: there are some.
    fn follow_replications(&mut self, node: &Node, tables: &[Arc<TableMetadata>], now: i64) -> bool {
        let (ring, schema) = (node.ring(), node.schema());
        let of = |name: &String| Some((name.clone(), ring.placement(name)?.replication.clone()));
        let before = std::mem::replace(&mut self.replications, schema.keyspaces.keys().filter_map(of).collect());
        let has_changed = |table: &&Arc<TableMetadata>| {
            let then = before.get(&table.keyspace);
            then.is_some() && then != self.replications.get(&table.keyspace)
        };
        let changed: Vec<_> = tables.iter().filter(has_changed).collect();
        for table in &changed {
            let grace = i64::from(table.params.gc_grace_seconds);
            let due_after = plan::due_after(grace, seconds(self.settings.interval_min));
            self.progress.make_due(table.id, now.saturating_sub(due_after));
        }
        !changed.is_empty()
    }

    fn claimed(&mut self, node: &Node, now: i64) -> Duration {
        if !self.keeps_turn(node) {
            return Duration::ZERO;
        }
        let units = self.due(node, &tables(node), now);
        tracing::info!(repairs = units.len(), "this node's turn in the schedule of repairs begins");
        self.tell(node, Phase::Run, self.status.since);
        self.state = State::Turn { units, begun: node.env.now() };
        Duration::ZERO
    }

    /// Begins the next repair of a turn, or ends the turn.
    fn turn(&mut self, node: &Arc<Node>, now: i64, mut units: VecDeque<RepairUnit>, begun: Instant) -> Duration {
        let is_over = node.env.elapsed(begun) >= TURN_MAX;
        if is_over || units.is_empty() || why_off(node, &self.settings).is_some() || !self.keeps_turn(node) {
            tracing::info!(left = units.len(), "this node's turn in the schedule of repairs ends");
            self.tell(node, Phase::Rest, now);
            return TURN_LOOK.min(self.settings.check_every);
        }
        let is_urgent = units.front().is_some_and(|unit| unit.is_urgent(now));
        let rests = self.rest.1.saturating_sub(node.env.elapsed(self.rest.0));
        if !is_urgent && rests > Duration::ZERO {
            self.state = State::Turn { units, begun };
            return rests.min(WINDOW);
        }
        if !is_urgent && self.pace.is_slow(self.settings.latency_factor) {
            self.state = State::Turn { units, begun };
            node.repairs.schedule.counts.held_millis.add(WINDOW.as_millis() as u64);
            return WINDOW;
        }
        let Some(unit) = units.pop_front() else { return Duration::ZERO };
        if !is_up(&node.ring(), &unit) {
            self.state = State::Turn { units, begun };
            return Duration::ZERO;
        }
        match node.start_repair(&unit.keyspace, options_of(&unit)) {
            Ok(Some(command)) => {
                let (at, since) = (now, node.env.now());
                self.state = State::Repairs { unit, command, at, since, units, begun };
            }
            // there is one replica by now
            Ok(None) => self.state = State::Turn { units, begun },
            Err(error) => {
                self.failed(node, &unit, &error.to_string());
                self.state = State::Turn { units, begun };
            }
        }
        POLL
    }

    async fn ended(&mut self, node: &Node, unit: RepairUnit, command: &Command, at: i64, since: Instant) {
        let record = node.repairs.records.find(Subject::Command, &command.id);
        let state = record.map(|record| record.state()).unwrap_or_default();
        let took = node.env.elapsed(since);
        self.rest = (node.env.now(), took.mul_f64(1.0 / self.settings.work_share - 1.0).min(REST_MAX));
        match state.end.map(|(end, _)| end) {
            Some(End::Success(_) | End::Skipped(_)) => {
                node.repairs.schedule.counts.succeeded.add(1);
                self.failures.retain(|(id, range), _| *id != unit.id || !unit.ranges.contains(range));
                // the node may have lost some ranges of the unit before the repair had its turn
                self.progress.mark(unit.id, &state.common.concat(), at);
                self.save(node).await;
            }
            Some(End::Failure(why)) => self.failed(node, &unit, &why),
            None => self.failed(node, &unit, "its end is not known"),
        }
    }

    fn failed(&mut self, node: &Node, unit: &RepairUnit, why: &str) {
        node.repairs.schedule.counts.failed.add(1);
        let Some(first) = unit.ranges.first() else { return };
        let now = node.env.clock.now_micros() / 1_000_000;
        let (count, until) = self.failures.entry((unit.id, *first)).or_default();
        let pause = self.settings.retry_after.saturating_mul(1 << (*count).min(self.settings.retries_max).min(16));
        (*count, *until) = (count.saturating_add(1), now.saturating_add(seconds(pause)));
        tracing::warn!(
            keyspace = unit.keyspace,
            table = unit.table,
            why,
            failures = *count,
            again_in = ?pause,
            "a scheduled repair has failed"
        );
    }

    /// Writes the file. If the disk refuses, some repairs are done twice after a restart.
    async fn save(&self, node: &Node) {
        let Some(path) = self.path.clone() else { return };
        let (env, progress) = (node.env.clone(), self.progress.clone());
        let written = node.env.blocking_long("schedule", move || progress.write(&env, &path)).await;
        if let Ok(Err(error)) = written {
            tracing::warn!(%error, "the progress of repairs cannot be written");
        }
    }

    fn bound(&self, node: &Node) -> usize {
        self.settings.bound(node.ring().endpoints().len())
    }

    fn keeps_turn(&self, node: &Node) -> bool {
        turns::may_keep((node.identity.host_id, self.status), &self.others(node), self.bound(node))
    }

    /// The others that are up and tell of their schedules.
    fn others(&self, node: &Node) -> Vec<Other> {
        let ring = node.ring();
        let status: BTreeMap<[u8; 16], ScheduleStatus> =
            schedules_of_peers(node).into_iter().filter_map(|(id, status)| Some((id, status?))).collect();
        let beside = if self.settings.shares_replicas { BTreeSet::new() } else { beside(node, &ring) };
        let other = |(number, endpoint): (usize, &ring::Endpoint)| {
            let status = *status.get(&endpoint.host_id).filter(|_| endpoint.is_up)?;
            Some(Other { id: endpoint.host_id, status, excludes: beside.contains(&number) })
        };
        ring.endpoints().iter().enumerate().filter_map(other).collect()
    }

    /// The units that are due and can begin, the most urgent first. Notes for operators how all
    /// tables stand.
    fn due(&self, node: &Node, tables: &[Arc<TableMetadata>], now: i64) -> VecDeque<RepairUnit> {
        let (ring, interval) = (node.ring(), seconds(self.settings.interval_min));
        let (mut can_begin, mut standing) = (Vec::new(), Vec::new());
        let is_repaired = |table: &&Arc<TableMetadata>| table.kind != TableKind::View || self.settings.repairs_views;
        for table in tables.iter().filter(is_repaired) {
            let Some(placement) = ring.placement(&table.keyspace) else { continue };
            let units = self.units(node, &ring, placement, table);
            let repaired_at = units.iter().map(|unit| unit.repaired_at).min();
            let due = plan::due(units, now, interval);
            let (all, mut ready) = (due.len(), due);
            ready.retain(|unit| {
                let failed = unit.ranges.first().and_then(|first| self.failures.get(&(unit.id, *first)));
                is_up(&ring, unit) && failed.is_none_or(|(_, until)| *until <= now)
            });
            standing.extend(repaired_at.map(|repaired_at| TableProgress {
                keyspace: table.keyspace.clone(),
                table: table.name.clone(),
                grace: i64::from(table.params.gc_grace_seconds),
                repaired_at,
                due: all,
                blocked: all - ready.len(),
            }));
            can_begin.extend(ready);
        }
        standing.sort_by(|a, b| (&a.keyspace, &a.table).cmp(&(&b.keyspace, &b.table)));
        node.repairs.schedule.snapshot().tables = standing;
        plan::due(can_begin, now, interval).into()
    }

    /// The units of a table: the ranges for which this node stands first, by the nodes that hold
    /// them, cut by their bytes.
    fn units(&self, node: &Node, ring: &Ring, placement: &Placement, table: &TableMetadata) -> Vec<RepairUnit> {
        let local = ring.local_id();
        let mut groups: BTreeMap<BTreeSet<EndpointId>, Vec<Tokens>> = BTreeMap::new();
        let mut held = 0.0;
        for (start, end, replicas) in placement.ranges() {
            let range = Tokens { start, end };
            if replicas.contains(&local) {
                held += plan::width(range) as f64;
            }
            if replicas.first() == Some(&local) && replicas.len() > 1 {
                groups.entry(replicas.iter().copied().collect()).or_default().push(range);
            }
        }
        if is_on(Defect::LeaveOut) {
            groups.values_mut().for_each(|ranges| ranges.truncate(ranges.len() - 1));
        }
        let stored = node.engine.table(table.id).map_or(0, |store| {
            let view = store.view();
            view.sstables.iter().map(|sstable| sstable.data_length()).sum::<u64>()
        });
        let bytes = |range: Tokens| (stored as f64 * (plan::width(range) as f64 / held)) as u64;
        let cut = groups.into_values().flat_map(|ranges| plan::cut(&ranges, self.settings.bytes_max, bytes));
        let unit = |ranges: Vec<Tokens>| RepairUnit {
            id: table.id,
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            repaired_at: self.progress.oldest(table.id, &ranges),
            ranges,
            grace: i64::from(table.params.gc_grace_seconds),
        };
        cut.map(unit).collect()
    }
}

/// The repair of a unit.
fn options_of(unit: &RepairUnit) -> RepairOptions {
    RepairOptions {
        tables: vec![unit.table.clone()],
        ranges: unit.ranges.clone(),
        ignores_unreplicated: true,
        repairs_paxos: true,
        ..RepairOptions::default()
    }
}

/// Why there is no schedule at the moment; None: there is one.
fn why_off(node: &Node, settings: &ScheduleSettings) -> Option<&'static str> {
    let ring = node.ring();
    if settings.is_on == Some(false) {
        return Some("auto_repair is not enabled");
    }
    if node.mode() != Mode::Normal {
        return Some("this node is no full member of its ring");
    }
    if ring.peers().next().is_none() {
        return Some("this node is alone");
    }
    if settings.ignored_data_centers.iter().any(|name| name == ring.local_data_center()) {
        return Some("ignore_dcs names the data center of this node");
    }
    let is_mixed = schedules_of_peers(node).iter().any(|(_, status)| status.is_none());
    (is_mixed && settings.is_on.is_none()).then_some("a node of the ring does not tell that it is a Helenus")
}

/// The tables in the schedule, and the materialized views: with replicas on several nodes, and a
/// gc_grace. Views are among them also while they are not repaired: otherwise they would count as
/// new ones, which are empty, when they are repaired again.
fn tables(node: &Node) -> Vec<Arc<TableMetadata>> {
    let (schema, ring) = (node.schema(), node.ring());
    let is_scheduled = |table: &&Arc<TableMetadata>| {
        matches!(table.kind, TableKind::Regular | TableKind::View)
            && !schema::system::is_local_keyspace(&table.keyspace)
            && table.params.gc_grace_seconds > 0
            && ring.placement(&table.keyspace).is_some_and(|placement| placement.replication.factor() > 1)
    };
    schema.tables_by_id.values().filter(is_scheduled).cloned().collect()
}

/// Whether all replicas of a unit are up.
fn is_up(ring: &Ring, unit: &RepairUnit) -> bool {
    let Some(placement) = ring.placement(&unit.keyspace) else { return false };
    let of_range = |range: &Tokens| placement.natural(range.end).iter().all(|id| ring.endpoint(*id).is_up);
    unit.ranges.iter().all(of_range)
}

/// The endpoints, by their numbers in the ring, that hold some range together with this node.
fn beside(node: &Node, ring: &Ring) -> BTreeSet<usize> {
    let keyspaces: BTreeSet<String> = tables(node).iter().map(|table| table.keyspace.clone()).collect();
    let placements = keyspaces.iter().filter_map(|keyspace| ring.placement(keyspace));
    let together = placements.flat_map(|placement| placement.ranges().map(|(.., replicas)| replicas));
    together.filter(|replicas| replicas.contains(&ring.local_id())).flatten().map(|id| id.index()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SimRing;
    use crate::testing::views::{change_on, create_on, keyspace_with_view};

    /// A view is a table of its own, whose replicas forget deletions as those of other tables do.
    #[test]
    fn views_are_repaired_unless_they_are_left_out() {
        let ring = SimRing::new(40, &["dc1"; 3]);
        create_on(&ring, &keyspace_with_view("2"));
        ring.agree();
        let node = ring.node(0);
        let tables: Vec<_> = tables(node).into_iter().filter(|table| table.keyspace == "ks").collect();
        let ids: Vec<TableId> = tables.iter().map(|table| table.id).collect();
        let mut task = Task::new(Arc::default(), Progress::default(), None, node.env.now());
        task.progress.follow(&ids, None);
        let now = node.env.clock.now_micros() / 1_000_000;
        let due = |task: &Task| -> BTreeSet<String> {
            task.due(node, &tables, now).into_iter().map(|unit| unit.table).collect()
        };
        let (table, view) = ("t".to_owned(), "by_v".to_owned());
        assert_eq!(due(&task), BTreeSet::from([table.clone(), view.clone()]));
        task.settings = Arc::new(ScheduleSettings { repairs_views: false, ..ScheduleSettings::default() });
        assert_eq!(due(&task), BTreeSet::from([table.clone()]));
        // an operator who names no tables repairs the views too
        let command = node.start_repair("ks", RepairOptions::default()).expect("begun").expect("other replicas");
        assert!(ring.world.run_until(Duration::from_secs(600), || command.has_ended()));
        let record = node.repairs.records.find(Subject::Command, &command.id).expect("noted");
        assert!(matches!(record.state().end, Some((End::Success(_), _))), "{:?}", command.events(0));
        let repaired: BTreeSet<String> = record.facts.tables.iter().cloned().collect();
        assert_eq!(repaired, BTreeSet::from([table, view]));
    }

    /// The replicas that have come by the change have nothing yet.
    #[test]
    fn a_table_is_due_when_its_replication_has_changed() {
        let ring = SimRing::new(39, &["dc1"; 3]);
        ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
        ring.agree();
        let node = ring.node(0);
        let tables: Vec<_> = tables(node).into_iter().filter(|table| table.keyspace == "ks").collect();
        let mut task = Task::new(Arc::default(), Progress::default(), None, node.env.now());
        let now = node.env.clock.now_micros() / 1_000_000;
        let ids: Vec<TableId> = tables.iter().map(|table| table.id).collect();
        task.progress.follow(&ids, Some(now));
        let is_due = |task: &Task| !task.due(node, &tables, now).is_empty();
        assert!(!task.follow_replications(node, &tables, now) && !is_due(&task), "it was not looked at before");
        let mut keyspace = node.schema().keyspaces["ks"].as_ref().clone();
        keyspace.replication.options.insert("replication_factor".to_owned(), "3".to_owned());
        change_on(&ring, &keyspace);
        assert!(task.follow_replications(node, &tables, now) && is_due(&task));
        assert!(task.due(node, &tables, now).iter().all(|unit| !unit.is_urgent(now)));
        assert!(!task.follow_replications(node, &tables, now), "it is as it was at the last look");
    }

    /// A repair leaves ranges out that its node has lost since they were chosen.
    #[test]
    fn only_ranges_that_were_compared_count_as_repaired() {
        let ring = SimRing::new(38, &["dc1"; 3]);
        ring.create_keyspace("ks", "SimpleStrategy", &[("replication_factor", "2")]);
        let node = ring.node(0);
        let table = node.engine.table_by_name("ks", "t").expect("created");
        let snapshot = node.ring();
        let placement = snapshot.placement("ks").expect("known");
        let range_that = |is_held: bool| {
            let mut ranges = placement.ranges();
            let found = ranges.find(|(.., replicas)| replicas.contains(&snapshot.local_id()) == is_held);
            found.map(|(start, end, _)| Tokens { start, end }).expect("two of three nodes hold a range")
        };
        let ranges = [range_that(true), range_that(false)];
        let (keyspace, table_name) = ("ks".to_owned(), "t".to_owned());
        let unit = RepairUnit {
            id: table.id,
            keyspace,
            table: table_name,
            ranges: ranges.to_vec(),
            grace: 100,
            repaired_at: 0,
        };
        let command = node.start_repair("ks", options_of(&unit)).expect("begun").expect("there are other replicas");
        assert!(ring.world.run_until(Duration::from_secs(600), || command.has_ended()));
        let mut task = Task::new(Arc::default(), Progress::default(), None, node.env.now());
        task.progress.follow(&[table.id], None);
        ring.world.block_on(task.ended(node, unit, &command, 5, node.env.now()));
        assert_eq!(ranges.map(|range| task.progress.oldest(table.id, &[range])), [5, 0]);
    }
}
