//! Data that incremental repair sessions have: put apart when a session begins, released when it
//! has ended.
//!
//! A session takes the unrepaired data of its ranges. An SSTable of which all is in the ranges only
//! gets other statistics (`pendingRepair`); another one is written as two, in one transaction
//! (`crate::compaction`, `Work::Anticompact`). SSTables of a session are compacted among
//! themselves alone (`crate::inherited::RepairState`). How sessions have ended is not known here:
//! the caller says it. Agrees with `org.apache.cassandra.db.repair.PendingAntiCompaction` and
//! `PendingRepairManager`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sstable::SSTable;
use types::timeuuid::uuid_text;

use crate::compaction::choice::{take_free, unmark};
use crate::compaction::rewrite_statistics::{StatisticsChange, rewrite_statistics};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::inherited::RepairState;
use crate::requests::operations::{AnticompactedRanges, Operation, Status, Work};
use crate::strategy::kind::Kind;
use crate::table::TableStore;

/// The id of a session.
pub type Session = [u8; 16];

/// The SSTables of one table that a session has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PendingData {
    /// Number of SSTables.
    pub sstables: usize,
    /// Bytes of their data files.
    pub bytes: u64,
}

/// The outcome of a release.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Released {
    /// Sessions of which SSTables were released.
    pub released: BTreeSet<Session>,
    /// Sessions of which a compaction or a truncation has SSTables at the moment: they are to be
    /// released later.
    pub busy: BTreeSet<Session>,
}

fn session_of(sstable: &SSTable) -> Option<Session> {
    sstable.statistics().stats.pending_repair
}

fn is_within(sstable: &SSTable, anticompacted: &AnticompactedRanges) -> bool {
    !sstable.has_tokens() || anticompacted.ranges.contains_any(sstable.first_key().token, sstable.last_key().token)
}

/// Puts the unrepaired data of a session's ranges apart. Err: some of the data may be apart
/// already, and has to be released.
pub async fn anticompact(
    engine: &Engine,
    store: &Arc<TableStore>,
    anticompacted: &Arc<AnticompactedRanges>,
    is_finalized: impl Fn(&Session) -> bool,
) -> Result<(), StorageError> {
    engine.flush(store).await?;
    check_free(store, anticompacted, &is_finalized)?;
    let of_operation = Arc::clone(anticompacted);
    let select = move |sstable: &SSTable| {
        let is_unrepaired = RepairState::of(&sstable.statistics().stats) == RepairState::Unrepaired;
        is_unrepaired && is_within(sstable, &of_operation)
    };
    let operation = Operation {
        select: Box::new(select),
        anticompacted: Some(Arc::clone(anticompacted)),
        ..Operation::new(Kind::Anticompaction, Work::Anticompact, 0)
    };
    match engine.operate(store, operation).await?.status {
        // another session may have come between
        Status::Successful => check_free(store, anticompacted, &is_finalized),
        Status::Aborted | Status::UnableToCancel => Err(StorageError::Refused {
            why: format!(
                "Prepare phase for incremental repair session {} was unable to acquire exclusive access to the \
                 neccesary sstables. This is usually caused by running multiple incremental repairs on nodes that share \
                 token ranges",
                uuid_text(&anticompacted.session)
            ),
        }),
    }
}

/// Checks that all data of a session's ranges may be put apart.
fn check_free(
    store: &TableStore,
    anticompacted: &AnticompactedRanges,
    is_finalized: &impl Fn(&Session) -> bool,
) -> Result<(), StorageError> {
    let id = uuid_text(&anticompacted.session);
    if let [left_out, ..] = store.left_out().as_slice() {
        let why = format!("an SSTable of {} cannot be read: {}", store.name(), left_out.why);
        return Err(StorageError::Refused { why });
    }
    for sstable in store.view().sstables.iter().filter(|sstable| is_within(sstable, anticompacted)) {
        let is_repaired = sstable.statistics().stats.repaired_at > 0;
        if !is_repaired && !sstable.descriptor().version.has_repair_sessions_and_checksums() {
            let why = format!(
                "Prepare phase failed because it encountered legacy sstables that don't support pending repair, run \
                 upgradesstables before starting incremental repairs, repair session ({id})"
            );
            return Err(StorageError::Refused { why });
        }
        let other = session_of(sstable).filter(|other| *other != anticompacted.session && !is_finalized(other));
        if let Some(other) = other {
            let why = format!(
                "Prepare phase for incremental repair session {id} has failed because it encountered intersecting \
                 sstables belonging to another incremental repair session ({}). This is caused by starting an \
                 incremental repair session before a previous one has completed. Check nodetool repair_admin for hung \
                 sessions and fix them.",
                uuid_text(&other)
            );
            return Err(StorageError::Refused { why });
        }
    }
    Ok(())
}

/// Releases the SSTables of sessions that have ended: `ended` gives the time in milliseconds with
/// which the data of a session counts as repaired, 0 if it does not, and None while the session is
/// under way. Waits for the disk.
pub fn release(
    engine: &Engine,
    store: &Arc<TableStore>,
    ended: impl Fn(&Session) -> Option<i64>,
) -> Result<Released, StorageError> {
    let repaired_at = |sstable: &SSTable| session_of(sstable).and_then(|session| ended(&session));
    if engine.options.read_only || !store.view().sstables.iter().any(|sstable| repaired_at(sstable).is_some()) {
        return Ok(Released::default());
    }
    let (free, busy) = take_free(store, |sstable| repaired_at(sstable).is_some());
    let sessions = |sstables: &[Arc<SSTable>]| sstables.iter().filter_map(|sstable| session_of(sstable)).collect();
    let mut failure = None;
    for sstable in &free {
        // a session never goes back: what has ended when the SSTable was taken has ended now
        let Some(at) = repaired_at(sstable) else { continue };
        if let Err(error) = rewrite_statistics(engine, store, sstable, StatisticsChange::Repaired(at)) {
            failure.get_or_insert(error);
        }
    }
    unmark(store, &free);
    match failure {
        Some(error) => Err(error),
        None => Ok(Released { released: sessions(&free), busy: sessions(&busy) }),
    }
}

/// The sessions that have data of a table.
pub fn pending(store: &TableStore) -> BTreeMap<Session, PendingData> {
    let mut sessions: BTreeMap<Session, PendingData> = BTreeMap::new();
    for sstable in &store.view().sstables {
        let Some(session) = session_of(sstable) else { continue };
        let data = sessions.entry(session).or_default();
        (data.sstables, data.bytes) = (data.sstables + 1, data.bytes + sstable.stored_length());
    }
    sessions
}
