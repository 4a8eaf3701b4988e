//! Slow statements in the log: `slow_query_log_timeout`.
//!
//! Statements that took longer are gathered by their text for [`INTERVAL`]; then each distinct
//! statement becomes one line with figures, so that many slow executions make few lines.
//! Cassandra's `db.monitoring.MonitoringTask` does the same with reads, at DEBUG; this log has
//! writes too. A request that is not slow pays one comparison. Texts come here without passwords
//! ([`cql::obfuscate`]).

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use admin::verbs::SlowStatement;
use cluster::ReadFigures;
use env::{Env, Next, Wake};
use rows::command::ReadStats;

/// Time between the first slow statement and the report. Cassandra's
/// `cassandra.monitoring_report_interval_ms`.
const INTERVAL: Duration = Duration::from_secs(5);

/// Distinct statements of one report. Slow executions of further statements are only counted.
/// Cassandra's `cassandra.monitoring_max_operations`.
const STATEMENTS_MAX: usize = 50;

/// Characters of a statement's text; longer texts are cut.
const TEXT_MAX: usize = 1_000;

/// Reported statements that stay in memory for the console. At this number the oldest goes.
const REPORTED_MAX: usize = 200;

/// The slow executions of a statement since the last report. Times are microseconds; rows,
/// tombstones, bytes and SSTables are the sum of all executions.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct SlowExecutions {
    count: u64,
    micros: u64,
    min: u64,
    max: u64,
    rows: u64,
    tombstones: u64,
    bytes: u64,
    sstables: u64,
}

#[derive(Default)]
struct GatheredStatements {
    statements: BTreeMap<String, SlowExecutions>,
    left_out: u64,
}

/// Slow statements on their way to the log.
pub struct SlowLog {
    threshold_micros: u64,
    gathered: Arc<Mutex<GatheredStatements>>,
    /// The statements that were reported last, the newest at the end.
    reported: Arc<Mutex<VecDeque<SlowStatement>>>,
    /// Wakes the task that reports. The task is made when the first statement is slow.
    wake: OnceLock<Wake>,
}

impl SlowLog {
    /// Makes the log. `threshold` None: no statement is slow.
    pub fn new(threshold: Option<Duration>) -> Self {
        let micros = |threshold: Duration| u64::try_from(threshold.as_micros()).unwrap_or(u64::MAX);
        Self {
            threshold_micros: threshold.map_or(u64::MAX, micros),
            gathered: Arc::default(),
            reported: Arc::default(),
            wake: OnceLock::new(),
        }
    }

    /// The statements that were reported last, the newest first.
    pub fn reported(&self) -> Vec<SlowStatement> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner).iter().rev().cloned().collect()
    }

    /// Whether this duration is slow.
    #[inline]
    pub fn is_slow(&self, micros: u64) -> bool {
        micros > self.threshold_micros
    }

    /// The texts of the statements that the next report tells of.
    #[cfg(test)]
    pub fn statements(&self) -> Vec<String> {
        self.gathered.lock().expect("nobody panicked").statements.keys().cloned().collect()
    }

    /// Gathers the slow execution of a statement, whose text has no password any more.
    pub fn add(&self, env: &Env, statement: &str, micros: u64, figures: &ReadFigures) {
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = gathered.statements.is_empty();
        gathered.add(statement, micros, figures);
        // a second wake would end the task's wait for further statements
        if !is_first && self.wake.get().is_some() {
            return;
        }
        // the lock is held until the task is kept, so that there is one task
        let wake = match self.wake.get() {
            Some(wake) => wake,
            None => match self.start(env) {
                Ok(wake) => self.wake.get_or_init(|| wake),
                Err(error) => {
                    if is_first {
                        tracing::warn!(%error, "slow statements are logged once there is a thread for it");
                    }
                    return;
                }
            },
        };
        drop(gathered);
        wake.wake();
    }

    /// Starts the task that reports. Where the system has no thread left the statements stay
    /// gathered, and the next slow statement tries again.
    fn start(&self, env: &Env) -> io::Result<Wake> {
        let (gathered, threshold) = (Arc::clone(&self.gathered), self.threshold_micros);
        let (reported, of_step) = (Arc::clone(&self.reported), env.clone());
        let mut is_due = false;
        let step = move || {
            let (next, statements) = report(&gathered, threshold, &mut is_due);
            keep(&reported, of_step.clock.now_micros() / 1_000, &statements);
            next
        };
        env.tasks.try_background("slow-log", Box::new(step))
    }
}

/// The task's step: woken by a slow statement it waits for [`INTERVAL`], then it writes the lines
/// and sleeps.
fn report(
    gathered: &Mutex<GatheredStatements>,
    threshold_micros: u64,
    is_due: &mut bool,
) -> (Next, BTreeMap<String, SlowExecutions>) {
    if !std::mem::replace(is_due, true) {
        return (Next::After(INTERVAL), BTreeMap::new());
    }
    let GatheredStatements { statements, left_out } =
        std::mem::take(&mut *gathered.lock().unwrap_or_else(PoisonError::into_inner));
    for (statement, slow) in &statements {
        slow.tell(statement, threshold_micros);
    }
    if left_out > 0 {
        tracing::info!(target: "slow_query", executions = left_out, "slow executions of further statements");
    }
    *is_due = false;
    (Next::Idle, statements)
}

/// Keeps statements of a report for the console.
fn keep(reported: &Mutex<VecDeque<SlowStatement>>, at_millis: i64, statements: &BTreeMap<String, SlowExecutions>) {
    let mut reported = reported.lock().unwrap_or_else(PoisonError::into_inner);
    for (statement, slow) in statements {
        if reported.len() >= REPORTED_MAX {
            reported.pop_front();
        }
        reported.push_back(SlowStatement {
            at_millis,
            statement: statement.clone(),
            count: slow.count,
            min_micros: slow.min,
            mean_micros: slow.micros / slow.count.max(1),
            max_micros: slow.max,
            rows: slow.rows,
            tombstones: slow.tombstones,
            sstables: slow.sstables,
            bytes: slow.bytes,
        });
    }
}

impl GatheredStatements {
    fn add(&mut self, statement: &str, micros: u64, figures: &ReadFigures) {
        let end = statement.char_indices().nth(TEXT_MAX).map_or(statement.len(), |(end, _)| end);
        let text = &statement[..end];
        if !self.statements.contains_key(text) && self.statements.len() >= STATEMENTS_MAX {
            self.left_out += 1;
            return;
        }
        let slow = self.statements.entry(text.to_owned()).or_default();
        slow.min = if slow.count == 0 { micros } else { slow.min.min(micros) };
        slow.max = slow.max.max(micros);
        slow.count += 1;
        slow.micros += micros;
        slow.rows += ReadStats::get(&figures.rows);
        slow.tombstones += ReadStats::get(&figures.tombstones);
        slow.bytes += ReadStats::get(&figures.bytes);
        slow.sstables += ReadStats::get(&figures.sstables);
    }
}

impl SlowExecutions {
    fn tell(&self, statement: &str, threshold_micros: u64) {
        tracing::info!(
            target: "slow_query",
            count = self.count,
            min_ms = self.min / 1_000,
            avg_ms = self.micros / self.count.max(1) / 1_000,
            max_ms = self.max / 1_000,
            threshold_ms = threshold_micros / 1_000,
            rows = self.rows,
            tombstones = self.tombstones,
            sstables = self.sstables,
            bytes_read = self.bytes,
            statement,
            "slow statement"
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use env::sim::Sim;

    use super::*;

    #[test]
    fn executions_are_gathered_by_statement_and_bounded() {
        let mut gathered = GatheredStatements::default();
        let figures = ReadFigures::default();
        figures.rows.store(3, Ordering::Relaxed);
        for micros in [700_000, 600_000, 900_000] {
            gathered.add("SELECT 1", micros, &figures);
        }
        let one = &gathered.statements["SELECT 1"];
        assert_eq!((one.count, one.min, one.max, one.micros, one.rows), (3, 600_000, 900_000, 2_200_000, 9));
        let long = "ä".repeat(2 * TEXT_MAX);
        gathered.add(&long, 1, &figures);
        (0..STATEMENTS_MAX).for_each(|number| gathered.add(&format!("SELECT {number}"), 1, &figures));
        assert_eq!((gathered.statements.len(), gathered.left_out), (STATEMENTS_MAX, 1));
        assert!(gathered.statements.keys().all(|text| text.chars().count() <= TEXT_MAX));
    }

    #[test]
    fn nothing_is_slow_without_a_threshold() {
        let (off, on) = (SlowLog::new(None), SlowLog::new(Some(Duration::from_millis(500))));
        assert!(!off.is_slow(u64::MAX - 1) && on.is_slow(500_001) && !on.is_slow(500_000));
    }

    /// The machine has no thread left when the first statement is slow, and has one later.
    #[test]
    fn the_task_is_tried_again_where_the_system_had_no_thread() {
        let sim = Sim::new(1);
        let log = SlowLog::new(Some(Duration::ZERO));
        sim.set_lack_of_threads(true);
        log.add(&sim.env(), "SELECT 1", 1, &ReadFigures::default());
        log.add(&sim.env(), "SELECT 2", 1, &ReadFigures::default());
        assert_eq!(log.statements().len(), 2);
        sim.set_lack_of_threads(false);
        log.add(&sim.env(), "SELECT 1", 1, &ReadFigures::default());
        sim.block_on(sim.env().sleep(2 * INTERVAL));
        assert_eq!(log.statements(), Vec::<String>::new());
    }

    /// A report waits for the interval, tells of all, and then sleeps.
    #[test]
    fn a_report_is_due_after_the_interval() {
        let gathered = Mutex::new(GatheredStatements::default());
        gathered.lock().expect("nobody panicked").add("SELECT 1", 1, &ReadFigures::default());
        let mut is_due = false;
        assert_eq!(report(&gathered, 0, &mut is_due).0, Next::After(INTERVAL));
        assert_eq!(gathered.lock().expect("nobody panicked").statements.len(), 1);
        let (next, statements) = report(&gathered, 0, &mut is_due);
        assert_eq!((next, statements.len()), (Next::Idle, 1));
        let reported = Mutex::default();
        (0..=REPORTED_MAX as i64).for_each(|at| keep(&reported, at, &statements));
        let reported = reported.lock().expect("nobody panicked");
        assert_eq!((reported.len(), reported[0].at_millis, reported[0].max_micros), (REPORTED_MAX, 1, 1));
        assert!(gathered.lock().expect("nobody panicked").statements.is_empty() && !is_due);
    }
}
