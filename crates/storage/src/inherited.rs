//! The properties that an SSTable takes over from its inputs, besides their rows: level, repair
//! state, parts of the commit log.
//!
//! SSTables of different [`RepairState`] are never merged: repaired data would count as unrepaired,
//! or the other way round. Agrees with
//! `CompactionTask.{getMinRepairedAt,getPendingRepair,getIsTransient}`, `MetadataCollector` and the
//! holders of `CompactionStrategyManager`.

use std::collections::BTreeMap;
use std::sync::Arc;

use sstable::{SSTable, Stats};

use crate::log_intervals::{Interval, union};

/// Whether the data of an SSTable is known to be the same on all replicas.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum RepairState {
    /// The data is not known to be the same.
    Unrepaired,
    /// The data was the same when a repair ended.
    Repaired,
    /// A repair session that has not ended has the data.
    Pending {
        /// The session.
        session: [u8; 16],
        /// Whether the data is of transient replication.
        transient: bool,
    },
}

impl RepairState {
    /// The repair state in the statistics of an SSTable.
    pub fn of(stats: &Stats) -> Self {
        match stats.pending_repair {
            Some(session) => Self::Pending { session, transient: stats.is_transient },
            None if stats.repaired_at > 0 => Self::Repaired,
            None => Self::Unrepaired,
        }
    }
}

/// SSTables by their repair state, in the order in which they came.
pub fn by_repair_state(sstables: &[Arc<SSTable>]) -> BTreeMap<RepairState, Vec<Arc<SSTable>>> {
    let mut groups: BTreeMap<RepairState, Vec<Arc<SSTable>>> = BTreeMap::new();
    for sstable in sstables {
        groups.entry(RepairState::of(&sstable.statistics().stats)).or_default().push(Arc::clone(sstable));
    }
    groups
}

/// The properties that a new SSTable inherits.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Inherited {
    /// Level of the leveled strategy.
    pub level: u32,
    /// Time of the repair, milliseconds since 1970; 0: not repaired.
    pub repaired_at: i64,
    /// The repair session that has the data; None: none has.
    pub pending_repair: Option<[u8; 16]>,
    /// Whether the data is of transient replication.
    pub is_transient: bool,
    /// Intervals of this node's commit log whose records are in the SSTable.
    pub log_intervals: Vec<Interval>,
}

impl Inherited {
    /// The properties for the output of SSTables of one repair state, on the node `host`. The
    /// level of a single input is kept; with several it becomes 0.
    pub fn of(inputs: &[Arc<SSTable>], host: Option<[u8; 16]>) -> Self {
        let stats: Vec<&Stats> = inputs.iter().map(|sstable| &sstable.statistics().stats).collect();
        let is_same = |pair: &[&Stats]| RepairState::of(pair[0]) == RepairState::of(pair[1]);
        assert!(stats.windows(2).all(is_same), "SSTables of one repair state are compacted together");
        let ours = stats.iter().filter(|stats| host.is_some() && stats.originating_host == host);
        Self {
            level: if let [single] = stats.as_slice() { single.level } else { 0 },
            repaired_at: stats.iter().map(|stats| stats.repaired_at).min().unwrap_or(0),
            pending_repair: stats.first().and_then(|stats| stats.pending_repair),
            is_transient: stats.first().is_some_and(|stats| stats.is_transient),
            log_intervals: union(ours.flat_map(|stats| stats.commit_log_intervals.iter().copied()).collect()),
        }
    }

    /// The properties for the output of one SSTable of which only the statistics could be opened.
    pub fn of_stats(stats: &Stats) -> Self {
        Self {
            level: stats.level,
            repaired_at: stats.repaired_at,
            pending_repair: stats.pending_repair,
            is_transient: stats.is_transient,
            log_intervals: Vec::new(),
        }
    }
}
