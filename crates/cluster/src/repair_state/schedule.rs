//! The built-in schedule of repairs, as state: its settings, how far it is ([`progress`]), and what
//! operators see of it. Choices are plain functions ([`plan`], [`turns`], [`pace`]); the task that
//! carries them out is `crate::repair::schedule_task`.
//!
//! Each node repairs the ranges of which it is the first replica, of each table and materialized
//! view with a gc_grace, in full, and again before gc_grace has passed. Nodes take turns.
//! Cassandra's `auto_repair` has the same purpose and other means: tables of the ring say whose
//! turn it is, and a node repairs all it has in one go.

pub mod pace;
pub mod plan;
pub mod progress;
pub mod turns;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use metrics::{Counter, Snapshot};

use turns::{Phase, ScheduleStatus};

/// How the schedule works (`auto_repair`).
#[derive(Clone, PartialEq, Debug)]
pub struct ScheduleSettings {
    /// Whether there is a schedule; None: there is one if each node of the ring is a Helenus
    /// (`enabled`).
    pub is_on: Option<bool>,
    /// Time between two looks for what is due (`repair_check_interval`).
    pub check_every: Duration,
    /// Time from the start to the first look (`initial_scheduler_delay`).
    pub first_after: Duration,
    /// Shortest time between two repairs of a range, unless gc_grace demands an earlier one
    /// (`min_repair_interval`).
    pub interval_min: Duration,
    /// Nodes that repair at a time (`parallel_repair_count`), at least 1.
    pub parallel_count: usize,
    /// Nodes that repair at a time as a percentage of all nodes; the greater of both counts
    /// (`parallel_repair_percentage`).
    pub parallel_percent: usize,
    /// Two nodes that hold a range together may repair at a time (`allow_parallel_replica_repair`).
    pub shares_replicas: bool,
    /// Nodes of these data centers do not begin repairs (`ignore_dcs`).
    pub ignored_data_centers: Vec<String>,
    /// Materialized views are repaired like tables (`materialized_view_repair_enabled`).
    pub repairs_views: bool,
    /// Longest time of a repair, after which it is ended (`repair_session_timeout`).
    pub repair_max: Duration,
    /// A repair that has failed is tried again after this time (`repair_retry_backoff`), which
    /// doubles with each failure.
    pub retry_after: Duration,
    /// How often the time doubles at most (`repair_max_retries`).
    pub retries_max: u32,
    /// Bytes that one repair compares at each replica, about (`bytes_per_assignment`).
    pub bytes_max: u64,
    /// The share of the time in which a node repairs during its turn, above 0 and up to 1
    /// (`work_share`).
    pub work_share: f64,
    /// Factor by which clients may wait longer than without repairs; while they wait even longer
    /// no repair begins (`latency_factor`).
    pub latency_factor: f64,
}

impl Default for ScheduleSettings {
    fn default() -> Self {
        Self {
            is_on: None,
            check_every: Duration::from_secs(5 * 60),
            first_after: Duration::from_secs(5 * 60),
            interval_min: Duration::from_secs(24 * 60 * 60),
            parallel_count: 3,
            parallel_percent: 3,
            shares_replicas: false,
            ignored_data_centers: Vec::new(),
            repairs_views: true,
            repair_max: Duration::from_secs(3 * 60 * 60),
            retry_after: Duration::from_secs(30),
            retries_max: 3,
            bytes_max: 4 << 30,
            work_share: 0.5,
            latency_factor: 2.0,
        }
    }
}

impl ScheduleSettings {
    /// Nodes of a ring that may repair at a time.
    pub fn bound(&self, nodes: usize) -> usize {
        self.parallel_count.max(nodes.saturating_mul(self.parallel_percent) / 100).max(1)
    }
}

/// Gives the latencies of all requests of clients so far, microseconds.
pub type ClientLatencies = Box<dyn Fn() -> Snapshot + Send + Sync>;

/// A table in the schedule.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableProgress {
    /// Its keyspace.
    pub keyspace: String,
    /// Its name.
    pub table: String,
    /// gc_grace_seconds of the table.
    pub grace: i64,
    /// Since when all ranges of which this node is the first replica are repaired, seconds since
    /// 1970; 0: some were never repaired.
    pub repaired_at: i64,
    /// Repairs that are due.
    pub due: usize,
    /// Repairs that are due and cannot begin, because a replica is down.
    pub blocked: usize,
}

impl TableProgress {
    /// Whether gc_grace has passed since the last repair of some range.
    pub fn is_late(&self, now: i64) -> bool {
        now.saturating_sub(self.repaired_at) > self.grace
    }
}

/// The schedule as it was at its last look.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleSnapshot {
    /// The phase that this node tells the others.
    pub status: ScheduleStatus,
    /// Why there is no schedule at the moment; None: there is one.
    pub off: Option<&'static str>,
    /// The tables, by name.
    pub tables: Vec<TableProgress>,
    /// The 99th percentile of clients' latencies in windows without repairs, and in the last
    /// window, microseconds; 0: not known.
    pub latencies: (u64, u64),
}

/// How many scheduled repairs there were since the start.
#[derive(Default, Debug)]
pub struct ScheduleCounts {
    /// Repairs that have ended well.
    pub succeeded: Counter,
    /// Repairs that have failed.
    pub failed: Counter,
    /// Milliseconds for which clients' latencies have held repairs back.
    pub held_millis: Counter,
}

/// The state of the schedule.
pub(crate) struct Schedule {
    pub settings: ArcSwap<ScheduleSettings>,
    pub snapshot: Mutex<ScheduleSnapshot>,
    pub counts: ScheduleCounts,
    /// Reads the latencies of clients. Not set: they are not known, and no repair is held back.
    pub latencies: std::sync::OnceLock<ClientLatencies>,
}

impl Default for Schedule {
    fn default() -> Self {
        let status = ScheduleStatus { phase: Phase::Off, since: 0 };
        let snapshot =
            ScheduleSnapshot { status, off: Some("it has not begun"), tables: Vec::new(), latencies: (0, 0) };
        Self {
            settings: ArcSwap::new(Arc::default()),
            snapshot: Mutex::new(snapshot),
            counts: ScheduleCounts::default(),
            latencies: std::sync::OnceLock::new(),
        }
    }
}

impl Schedule {
    /// The schedule as it was at its last look.
    pub fn snapshot(&self) -> MutexGuard<'_, ScheduleSnapshot> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
