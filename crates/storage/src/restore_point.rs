//! Restoring to a point in time: which records of the log a start leaves out.
//!
//! A record with a timestamp after the point is left out as a whole: that is a mutation, or what a
//! mutation of several tables has for one of them. So is a record that an earlier restore of the
//! node left out, where archived segments still have it. Truncations after the point are
//! forgotten, and so are those of which only the replayed log tells: they, and records of purges,
//! say that rows need no replay because the SSTables of that time had them or had lost them, but
//! the restored SSTables are older. With `snapshot_commitlog_position` exactly the records up to
//! that position are left out: neither SSTables nor truncations are asked.
//! Agrees with `CommitLogReplayer`, with one exception: once a start has restored, what is written
//! afterwards is replayed by later starts even if the point is still configured. A file beside the
//! segments says which segments are later.

use std::path::PathBuf;

use env::Env;
use env::sync::atomic::{AtomicI64, Ordering};
use rows::Mutation;

use crate::commitlog::{LogPosition, RestorePoint};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::options::EngineOptions;
use crate::truncation_records::{Truncation, is_replayed_first};

/// The file beside the segments that notes the restored point, and the first segment that was
/// written after the restore.
const NOTE_FILE: &str = "restored_to_point_in_time";

/// Most bytes of the note, which is two numbers.
const NOTE_LEN_MAX: u64 = 100;

/// The records and truncations that a start leaves out.
pub(crate) struct RestoreFilter {
    point: RestorePoint,
    /// Id of the first segment that was written after this point was restored.
    later: u64,
    /// The greatest timestamp of the mutations that were looked at for the point, microseconds
    /// since 1970; i64::MIN: there was none.
    latest: AtomicI64,
}

impl RestoreFilter {
    /// The filter of the options, and of the note of an earlier start.
    pub(crate) fn of(env: &Env, options: &EngineOptions) -> Self {
        let point = options.commitlog.restore_point.clone();
        let noted = note(env, options).filter(|(micros, _)| Some(*micros) == point.micros);
        let later = noted.map_or(u64::MAX, |(_, later)| later);
        if let Some(micros) = point.micros {
            tracing::warn!(
                micros,
                is_restored = noted.is_some(),
                "restore_point_in_time is set (commitlog_archiving.properties): take it away once the node is restored"
            );
        }
        RestoreFilter { point, later, latest: AtomicI64::new(i64::MIN) }
    }

    /// Whether the filter changes which records are replayed.
    pub(crate) fn is_set(&self) -> bool {
        self.point.is_set()
    }

    /// Whether a mutation is left out: it is from after the point, or an earlier restore undid it.
    pub(crate) fn excludes(&self, position: LogPosition, mutation: &Mutation) -> bool {
        if self.point.micros.is_none() && self.point.undone.is_empty() {
            return false;
        }
        let unit = self.point.precision_micros.max(1);
        let times = mutation.updates.iter().map(|update| update.max_timestamp().saturating_mul(unit));
        let latest = times.max().unwrap_or(i64::MIN);
        let point = self.point.micros.filter(|_| position.segment < self.later);
        if point.is_some() {
            self.latest.fetch_max(latest, Ordering::Relaxed);
        }
        let mut undone = self.point.undone.iter();
        point.is_some_and(|point| latest > point)
            || undone.any(|undone| position.segment < undone.before_segment && latest > undone.micros)
    }

    /// Whether this start restores a point, and no replayed write is from after it: the log may end
    /// before the point, as that of a node whose last segments were lost.
    fn may_end_early(&self) -> bool {
        let is_first = self.later == u64::MAX;
        self.point.micros.is_some_and(|point| is_first && self.latest.load(Ordering::Relaxed) <= point)
    }

    /// Called when everything is replayed: says where the log may end before the point. The start
    /// goes on, because a node that had no writes for a while looks the same.
    pub(crate) fn tell_end(&self) {
        if self.may_end_early() {
            let latest = self.latest.load(Ordering::Relaxed);
            tracing::warn!(
                last_micros = ?(latest > i64::MIN).then_some(latest),
                "the commit log has no write from after restore_point_in_time: where it ends before that time, later \
                 writes are not restored"
            );
        }
    }

    /// Whether a record is in the snapshot by `snapshot_commitlog_position`; None: that is not
    /// set, and SSTables and truncations decide.
    pub(crate) fn is_in_snapshot(&self, position: LogPosition) -> Option<bool> {
        Some(position <= self.point.snapshot.filter(|_| position.segment < self.later)?)
    }

    /// Whether a point in time is restored, or was by an earlier start.
    pub(crate) fn restores(&self) -> bool {
        self.point.micros.is_some()
    }

    /// Whether a truncation counts in the replay. For restored SSTables only `known` counts, which
    /// they name themselves; for SSTables that were written after the restore the records of that
    /// time count.
    pub(crate) fn counts_truncation(&self, truncation: &Truncation, known: Option<&Truncation>) -> bool {
        !self.restores() || truncation.position.segment >= self.later || known == Some(truncation)
    }

    /// Whether a truncation was before the point, and counts.
    pub(crate) fn keeps_truncation(&self, truncation: &Truncation) -> bool {
        self.point.micros.is_none_or(|micros| truncation.at_millis <= micros / 1000)
    }
}

fn path(options: &EngineOptions) -> PathBuf {
    options.commitlog_directory.join(NOTE_FILE)
}

fn note(env: &Env, options: &EngineOptions) -> Option<(i64, u64)> {
    let text = String::from_utf8(env.disk.read_all(&path(options), NOTE_LEN_MAX).ok()?).ok()?;
    let (micros, later) = text.trim().split_once(' ')?;
    Some((micros.parse().ok()?, later.parse().ok()?))
}

/// Called when everything is replayed: it is flushed, so that no later start has to leave out the
/// same again, and noted.
pub(crate) fn settle(engine: &Engine) -> Result<(), StorageError> {
    let options = &engine.options;
    if options.read_only {
        return Ok(());
    }
    // a truncation that was replayed becomes known to the next start once it is in an SSTable: that
    // is after the rows are
    let (first, others): (Vec<_>, Vec<_>) =
        engine.tables().into_iter().partition(|store| is_replayed_first(&store.table()));
    for store in others.iter().chain(&first) {
        crate::flush::flush_at_start(engine, store)?;
    }
    let Some(micros) = options.commitlog.restore_point.micros else { return Ok(()) };
    let path = path(options);
    if note(&engine.env, options).is_some_and(|(noted, _)| noted == micros) {
        return Ok(());
    }
    let text = format!("{micros} {}\n", engine.log.first_new_segment());
    engine.env.disk.replace_file(&path, text.as_bytes()).map_err(|error| StorageError::io(&path, &error))
}

#[cfg(test)]
mod tests {
    use rows::{ClusteringValues, Liveness, PartitionUpdate, Row};
    use types::DecoratedKey;

    use super::*;

    fn mutation(micros: i64) -> Mutation {
        let table = schema::system::schema().table("system", "local").cloned().expect("it is built in");
        let mut row = Row::new(ClusteringValues::new());
        row.liveness = Liveness::new(micros);
        let mut update = PartitionUpdate::new(table, DecoratedKey::new(bytes::Bytes::from_static(b"local")));
        update.add_row(row);
        Mutation::of(update)
    }

    /// A log whose last write is from before the point may lack the writes in between.
    #[test]
    fn the_end_of_a_log_before_the_point_is_noticed() {
        let filter = |later: u64| {
            let point = RestorePoint { micros: Some(100), ..RestorePoint::default() };
            RestoreFilter { point, later, latest: AtomicI64::new(i64::MIN) }
        };
        let position = LogPosition { segment: 7, offset: 1 };
        let (restored, restoring) = (filter(5), filter(u64::MAX));
        assert!(restoring.may_end_early() && !restored.may_end_early());
        assert!(!restoring.excludes(position, &mutation(100)) && restoring.may_end_early());
        assert!(restoring.excludes(position, &mutation(101)) && !restoring.may_end_early());
        assert!(!restored.excludes(position, &mutation(101)), "it was written after the restore");
    }
}
