//! The keys of the commit log: `commitlog_*`, `cdc_*`, `commit_failure_policy`.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::archiving::Archiving;
use crate::reader::Reader;
use crate::value::ParsedValue;

/// The commit log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommitLog {
    /// commitlog_sync with its time
    pub sync: CommitLogSync,
    /// commitlog_segment_size in bytes
    pub segment_size: u64,
    /// commitlog_total_space in bytes; None: derived from the size of the disk
    pub total_space: Option<u64>,
    /// max_mutation_size in bytes
    pub max_mutation_size: u64,
    /// commitlog_compression; None: not compressed
    pub compression: Option<ClassOptions>,
    /// cdc_enabled with its keys; None: no change data capture
    pub cdc: Option<Cdc>,
    /// commit_failure_policy
    pub failure_policy: CommitFailurePolicy,
    /// commitlog_archiving.properties, which [`crate::Config::load`] does not read
    pub archiving: Option<Archiving>,
}

/// A class with its parameters; the name as it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClassOptions {
    /// class_name
    pub class: String,
    /// parameters
    pub parameters: BTreeMap<String, String>,
}

/// Change data capture.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cdc {
    /// cdc_raw_directory; None: `cdc_raw` beside the commit log
    pub raw_directory: Option<String>,
    /// cdc_total_space in bytes; None: 4 GiB, or an eighth of the disk if that is less
    pub total_space: Option<u64>,
    /// cdc_free_space_check_interval
    pub check_interval: Duration,
    /// cdc_block_writes: when the space is used up, writes to tables with cdc are refused; false:
    /// the oldest segments are removed
    pub block_writes: bool,
}

/// The moment at which a write is acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitLogSync {
    /// When its record is on disk. Writes that arrive together share a sync.
    Batch,
    /// As batch, but a sync waits this long for further writes.
    Group(Duration),
    /// At once. The log is synced periodically.
    Periodic {
        /// commitlog_sync_period
        period: Duration,
        /// periodic_commitlog_sync_lag_block: writes wait if the last sync is older
        lag_block: Duration,
    },
}

/// The reaction of the node to a failure of the commit log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CommitFailurePolicy {
    /// Stop gossip and clients, stay reachable for tools.
    Stop,
    /// Stop the log, go on serving reads.
    StopCommit,
    /// Let the writes fail.
    Ignore,
    /// End the process.
    Die,
}

pub(crate) fn commitlog(reader: &mut Reader<'_>) -> CommitLog {
    let segment_size = reader.quantity("commitlog_segment_size");
    if !(1 << 20..2048 << 20).contains(&segment_size) {
        reader.problem("commitlog_segment_size", "must be at least 1MiB and below 2048MiB");
    }
    let max_mutation_size = reader.maybe_quantity("max_mutation_size").unwrap_or(segment_size / 2);
    if max_mutation_size > segment_size / 2 {
        reader.problem("commitlog_segment_size", "must be at least twice the size of max_mutation_size");
    }
    let compression = compression(reader);
    check_access_mode(reader, compression.is_some());
    CommitLog {
        sync: commitlog_sync(reader),
        segment_size,
        archiving: None,
        compression,
        cdc: cdc(reader),
        total_space: reader.maybe_quantity("commitlog_total_space"),
        max_mutation_size,
        failure_policy: reader.one_of(
            "commit_failure_policy",
            &[
                ("stop", CommitFailurePolicy::Stop),
                ("stop_commit", CommitFailurePolicy::StopCommit),
                ("ignore", CommitFailurePolicy::Ignore),
                ("die", CommitFailurePolicy::Die),
            ],
        ),
    }
}

/// Checks commitlog_disk_access_mode. Segments are written through the kernel's page cache, as in
/// all modes but `direct`. Values that Cassandra refuses are refused.
fn check_access_mode(reader: &mut Reader<'_>, is_compressed: bool) {
    const KEY: &str = "commitlog_disk_access_mode";
    let mode = reader.text(KEY).unwrap_or_default();
    let problem = match (mode.as_str(), is_compressed) {
        ("legacy" | "auto", _) | ("mmap", false) | ("standard", true) => return,
        ("direct", false) => {
            "direct is not honoured: the log is written through the page cache (auto, legacy or mmap)".to_owned()
        }
        ("mmap" | "direct", true) => {
            format!("{mode} is not supported with commitlog_compression; auto is right with and without")
        }
        ("standard", false) => {
            "standard is only supported with commitlog_compression; auto is right with and without".to_owned()
        }
        _ => format!("'{mode}' is not one of auto, legacy, mmap, standard, direct"),
    };
    reader.problem(KEY, &problem);
}

fn commitlog_sync(reader: &mut Reader<'_>) -> CommitLogSync {
    let period = reader.duration("commitlog_sync_period");
    let window = reader.duration("commitlog_sync_group_window");
    match reader.one_of("commitlog_sync", &[("batch", 0), ("group", 1), ("periodic", 2)]) {
        0 => {
            if !period.is_zero() {
                reader.problem("commitlog_sync_period", "batch sync specified, but commitlog_sync_period found");
            }
            CommitLogSync::Batch
        }
        1 => {
            if window.is_zero() {
                reader.problem("commitlog_sync_group_window", "missing value, needed by commitlog_sync: group");
            }
            if !period.is_zero() {
                reader.problem("commitlog_sync_period", "group sync specified, but commitlog_sync_period found");
            }
            CommitLogSync::Group(window)
        }
        _ => {
            if period.is_zero() {
                reader.problem("commitlog_sync_period", "missing value, needed by commitlog_sync: periodic");
            }
            let lag_block = reader.maybe_quantity("periodic_commitlog_sync_lag_block").map(Duration::from_nanos);
            CommitLogSync::Periodic { period, lag_block: lag_block.unwrap_or(period + period / 2) }
        }
    }
}

fn compression(reader: &Reader<'_>) -> Option<ClassOptions> {
    let value = reader.value("commitlog_compression");
    let parameters = value.parameters().into_iter().collect();
    (value.what != ParsedValue::Null).then_some(ClassOptions { class: value.text, parameters })
}

fn cdc(reader: &Reader<'_>) -> Option<Cdc> {
    reader.boolean("cdc_enabled").then(|| Cdc {
        raw_directory: reader.text("cdc_raw_directory"),
        total_space: Some(reader.quantity("cdc_total_space")).filter(|space| *space > 0),
        check_interval: reader.duration("cdc_free_space_check_interval"),
        block_writes: reader.boolean("cdc_block_writes"),
    })
}
