//! The commit log's settings from the configuration.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, Weak};

use config::{CommitFailurePolicy, CommitLogSync, Config};
use env::Env;
use storage::Engine;
use storage::commitlog::{
    self, ArchiveOptions, CaptureOptions, DirtyKey, FailurePolicy, LogPosition, ReplayBudget, ReplayPolicy,
    RestorePoint, SyncMode, Undone,
};

use crate::directory::Directories;

/// Bytes of log for each core where `commitlog_total_space` is not set: a disk of 300 MB a second
/// reads them in less than two seconds. Flushes are asked for earlier if these bytes would take
/// long to replay, see [`REPLAY_NANOS`].
const LOG_BYTES_A_CORE: u64 = 256 << 20;
/// The log has no more than this fraction of the disk, as in Cassandra.
const LOG_SHARE: u64 = 4;
/// The log has at least this many segments.
const LOG_SEGMENTS_MIN: u64 = 4;
/// How long a replay may take where `commitlog_total_space` is not set. Flushes take time and the
/// log grows meanwhile, so this is less than the time that is wanted.
const REPLAY_NANOS: u64 = 1_400_000_000;
/// Time of one core to replay a record in a partition of its own, and to replay 1024 bytes
/// (docs/notes/0012).
const RECORD_NANOS: u64 = 3_700;
const KIBIBYTE_NANOS: u64 = 1_000;
/// Replay gains nothing from more cores than this.
const REPLAY_CORES_MAX: u64 = 8;
/// `cdc_total_space` where it is not set, if [`CAPTURED_SHARE`] of the disk is not less.
const CAPTURED_BYTES: u64 = 4 << 30;
/// `cdc_total_space` where it is not set has no more than this fraction of the disk.
const CAPTURED_SHARE: u64 = 8;

/// The options of the commit log. Err: names the key that cannot be honoured, and why.
pub(crate) fn of(
    env: &Env,
    config: &Config,
    found: &Directories,
    cores: usize,
    engine: &Arc<OnceLock<Weak<Engine>>>,
) -> Result<commitlog::Options, String> {
    let log = &config.commitlog;
    let limit = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
    let (for_pressure, wanted) = (Arc::clone(engine), LOG_SEGMENTS_MIN * log.segment_size);
    let compression = log.compression.as_ref();
    let compression = compression.map(|named| commitlog::Compression::new(&named.class, &named.parameters)).transpose();
    Ok(commitlog::Options {
        segment_size: limit(log.segment_size),
        mutation_size_max: limit(log.max_mutation_size),
        replay_budget: log.total_space.is_none().then(|| replay_budget(cores as u64)),
        total_space: log.total_space.unwrap_or_else(|| total_space(env, &found.commitlog, cores as u64).max(wanted)),
        sync: match log.sync {
            CommitLogSync::Batch => SyncMode::Batch,
            CommitLogSync::Group(window) => SyncMode::Group(window),
            CommitLogSync::Periodic { period, .. } => SyncMode::Periodic(period),
        },
        sync_lag_block: match log.sync {
            CommitLogSync::Periodic { lag_block, .. } => Some(lag_block),
            CommitLogSync::Batch | CommitLogSync::Group(_) => None,
        },
        failure_policy: match log.failure_policy {
            CommitFailurePolicy::Stop => FailurePolicy::Stop,
            CommitFailurePolicy::StopCommit => FailurePolicy::StopCommit,
            CommitFailurePolicy::Ignore => FailurePolicy::Ignore,
            CommitFailurePolicy::Die => FailurePolicy::Die,
        },
        replay_policy: ReplayPolicy::Stop,
        // the caller sets it, because it knows the admin port
        on_replay: Arc::new(|_| {}),
        on_pressure: Arc::new(move |keys| flush_for_room(&for_pressure, keys)),
        // the caller sets it, because it knows the ports that are to be closed
        on_failure: Arc::new(|_, _| {}),
        compression: compression.map_err(|why| format!("commitlog_compression: {why}"))?,
        archive: log.archiving.as_ref().map(archive),
        restore_point: log.archiving.as_ref().map_or_else(RestorePoint::default, restore_point),
        capture: log.cdc.as_ref().map(|cdc| capture(env, cdc, &found.auxiliary.cdc_raw)),
    })
}

fn total_space(env: &Env, directory: &Path, cores: u64) -> u64 {
    // the directory may not be there yet
    let there = directory.ancestors().find(|path| env.disk.exists(path)).unwrap_or(Path::new("."));
    let of_disk = env.disk.total_space(there).map_or(u64::MAX, |total| total / LOG_SHARE);
    (LOG_BYTES_A_CORE * cores).min(of_disk)
}

fn replay_budget(cores: u64) -> ReplayBudget {
    let cores = cores.clamp(1, REPLAY_CORES_MAX);
    // one thread reads, so the time for bytes does not shrink with cores
    ReplayBudget { nanos: REPLAY_NANOS, of_record: RECORD_NANOS / cores, of_kibibyte: KIBIBYTE_NANOS }
}

fn archive(archiving: &config::Archiving) -> ArchiveOptions {
    ArchiveOptions {
        command: archiving.archive_command.clone(),
        restore_command: archiving.restore_command.clone(),
        restore_directories: archiving.restore_directories.iter().map(PathBuf::from).collect(),
    }
}

fn restore_point(archiving: &config::Archiving) -> RestorePoint {
    RestorePoint {
        micros: archiving.point_in_time,
        precision_micros: archiving.precision_micros,
        snapshot: archiving.snapshot_position.map(|(segment, offset)| LogPosition { segment, offset }),
        undone: archiving.undone.iter().map(|&(micros, before_segment)| Undone { micros, before_segment }).collect(),
    }
}

fn capture(env: &Env, cdc: &config::Cdc, directory: &Path) -> CaptureOptions {
    // the directory may not be there yet
    let there = directory.ancestors().find(|path| env.disk.exists(path)).unwrap_or(Path::new("."));
    let of_disk = env.disk.total_space(there).map_or(CAPTURED_BYTES, |total| total / CAPTURED_SHARE);
    CaptureOptions {
        total_space: cdc.total_space.unwrap_or(of_disk.min(CAPTURED_BYTES)),
        check_interval: cdc.check_interval,
        block_writes: cdc.block_writes,
        directory: directory.to_owned(),
    }
}

/// Asks for flushes of the tables that hold the oldest segments; called when the log is too large.
fn flush_for_room(engine: &OnceLock<Weak<Engine>>, keys: &[DirtyKey]) {
    let Some(engine) = engine.get().and_then(Weak::upgrade) else { return };
    let mut tables: Vec<_> = keys.iter().map(|(table, _)| *table).collect();
    tables.sort();
    tables.dedup();
    for store in tables.into_iter().filter_map(|table| engine.table(table)) {
        engine.flusher.request(&store, None);
    }
}
