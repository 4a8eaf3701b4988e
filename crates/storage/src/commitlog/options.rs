//! The options of a log: sizes, when it syncs, what happens on failure, and the functions that it
//! calls.

use std::sync::Arc;
use std::time::Duration;

use super::archive::ArchiveOptions;
use super::cdc::CaptureOptions;
use super::error::LogError;
use super::form::Compression;
use super::position::{DirtyKey, LogPosition};
use super::progress::ReplayProgress;

/// When a record counts as durable (`commitlog_sync`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncMode {
    /// After a sync that starts as soon as the previous one ended; records that come meanwhile
    /// share the next.
    Batch,
    /// As `Batch`, but a sync waits first so that more records share it
    /// (`commitlog_sync_group_window`; zero is the same as `Batch`).
    Group(Duration),
    /// At once; a sync follows within the period (`commitlog_sync_period`). Data reaches the kernel
    /// within 100 ms, so that the death of the process alone loses no more than that. When syncs
    /// lag more than half a period, writers wait for them.
    Periodic(Duration),
}

/// The policy for a log that cannot be written (`commit_failure_policy`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailurePolicy {
    /// Refuse further writes; [`Options::on_failure`] is told, to end client and node traffic too.
    Stop,
    /// Refuse further writes.
    StopCommit,
    /// The writes that were not synced fail, later ones go to a new segment.
    Ignore,
    /// Refuse further writes; [`Options::on_failure`] is told, to end the process.
    Die,
}

/// The policy of a replay that meets corruption (`cassandra.commitlog.ignorereplayerrors`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplayPolicy {
    /// Give the error, then end.
    Stop,
    /// Log the error and go on behind the unreadable bytes.
    Ignore,
}

/// The most that a replay may cost: beyond it the log asks for flushes, as it does beyond
/// `total_space`. Bytes alone say little: many small records take far longer than a few large
/// ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReplayBudget {
    /// Nanoseconds that a replay may take.
    pub nanos: u64,
    /// Nanoseconds that a record takes, whatever its size.
    pub of_record: u64,
    /// Nanoseconds that 1024 bytes take.
    pub of_kibibyte: u64,
}

impl ReplayBudget {
    pub(super) fn cost(&self, records: u64, bytes: u64) -> u64 {
        records.saturating_mul(self.of_record).saturating_add((bytes / 1024).saturating_mul(self.of_kibibyte))
    }
}

/// Called with the tables whose flush would free the oldest segments, again whenever a segment is
/// begun while the log is too large; and with those whose records a failure may have lost. Called
/// on the threads of the log's tasks.
pub type OnPressure = Arc<dyn Fn(&[DirtyKey]) + Send + Sync>;

/// Called now and then during a long replay with its progress, on the thread that replays.
pub type OnReplay = Arc<dyn Fn(&ReplayProgress) + Send + Sync>;

/// Called once when the log stops; with policy `Ignore` at each failure.
pub type OnFailure = Arc<dyn Fn(FailurePolicy, &LogError) + Send + Sync>;

/// The records that a replay leaves out (`restore_point_in_time`, `snapshot_commitlog_position`).
/// The log itself does not look at them; the recovery does.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RestorePoint {
    /// Microseconds since 1970: mutations with a later timestamp are left out.
    pub micros: Option<i64>,
    /// Microseconds in a unit of the timestamps (`precision`); zero is the same as one.
    pub precision_micros: i64,
    /// Records up to here are left out, and later ones are replayed whatever SSTables say.
    pub snapshot: Option<LogPosition>,
    /// Writes that earlier restores of the node undid, and that archived segments still have.
    pub undone: Vec<Undone>,
}

impl RestorePoint {
    /// Something is left out, or replayed, that would not be otherwise.
    pub(crate) fn is_set(&self) -> bool {
        self.micros.is_some() || self.snapshot.is_some() || !self.undone.is_empty()
    }
}

/// Writes that a restore to a point in time undid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Undone {
    /// The point in time, microseconds since 1970: writes with a later timestamp were undone.
    pub micros: i64,
    /// The first segment that was written after the restore: this one and later ones have no write
    /// that it undid.
    pub before_segment: u64,
}

/// Settings of a log.
#[derive(Clone)]
pub struct Options {
    /// `commitlog_segment_size`, bytes.
    pub segment_size: u32,
    /// `max_mutation_size`, bytes; never more than half a segment.
    pub mutation_size_max: u32,
    /// `commitlog_total_space`, bytes.
    pub total_space: u64,
    /// The most that the log may leave to a replay; None: only `total_space` counts.
    pub replay_budget: Option<ReplayBudget>,
    /// `commitlog_sync` and its period or window.
    pub sync: SyncMode,
    /// `periodic_commitlog_sync_lag_block`: with [`SyncMode::Periodic`], writers wait for the next
    /// sync while a record is older than this and not synced. None: one and a half periods.
    pub sync_lag_block: Option<Duration>,
    /// `commitlog_compression`; None: sections are stored as they are.
    pub compression: Option<Compression>,
    /// Change data capture (`cdc_enabled`); None: there is none.
    pub capture: Option<CaptureOptions>,
    /// Archiving and restoring of segments; None: there is neither.
    pub archive: Option<ArchiveOptions>,
    /// The records that are replayed.
    pub restore_point: RestorePoint,
    /// `commit_failure_policy`.
    pub failure_policy: FailurePolicy,
    /// The treatment of corruption that a replay meets.
    pub replay_policy: ReplayPolicy,
    /// Asked for flushes when the log exceeds `total_space`, or `replay_budget`.
    pub on_pressure: OnPressure,
    /// Called at failures.
    pub on_failure: OnFailure,
    /// Called during a long replay.
    pub on_replay: OnReplay,
}

impl Options {
    /// The size of the largest mutation that a log with these settings takes, bytes.
    pub fn largest_mutation(&self) -> usize {
        self.mutation_size_max.min(self.segment_size / 2) as usize
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            segment_size: 32 << 20,
            mutation_size_max: 16 << 20,
            total_space: 8 << 30,
            replay_budget: None,
            sync: SyncMode::Batch,
            sync_lag_block: None,
            compression: None,
            capture: None,
            archive: None,
            restore_point: RestorePoint::default(),
            failure_policy: FailurePolicy::Stop,
            replay_policy: ReplayPolicy::Stop,
            on_pressure: Arc::new(|_| {}),
            on_failure: Arc::new(|_, _| {}),
            on_replay: Arc::new(|_| {}),
        }
    }
}
