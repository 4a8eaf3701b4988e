//! Thresholds that replicas found exceeded, as they tell beside their answers
//! (`read_thresholds_enabled`), and the sentences that clients are told of them.
//!
//! A replica warns, or ends its read, which counts as a failure. That a search looked into many
//! indexes is told in any case, that it ended for it only where thresholds are tracked. Of each
//! kind the replicas and the largest number are kept. Agrees with
//! `org.apache.cassandra.service.reads.thresholds.{WarningContext,WarningsSnapshot}`.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use internode::Parameter;
use internode::envelope::{
    LOCAL_READ_SIZE_FAIL, LOCAL_READ_SIZE_WARN, ROW_INDEX_READ_SIZE_FAIL, ROW_INDEX_READ_SIZE_WARN, TOMBSTONE_FAIL,
    TOMBSTONE_WARNING, TOO_MANY_REFERENCED_INDEXES_FAIL, TOO_MANY_REFERENCED_INDEXES_WARN,
};
use rows::ReadError;
use types::FailureReason;

/// The number that a threshold is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Measure {
    /// Tombstones that a read passed.
    Tombstones,
    /// Bytes that a replica loaded.
    LocalReadSize,
    /// Bytes of row index entries that a replica loaded.
    RowIndexReadSize,
    /// Indexes of SSTables that a replica searched.
    Indexes,
}

/// Two thresholds in bytes; None: there is none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SizeThresholds {
    /// Bytes from which on the client is warned.
    pub warn: Option<u64>,
    /// Bytes from which on the read ends.
    pub fail: Option<u64>,
}

/// The thresholds on sizes of reads on this node as a replica. Sizes are those of
/// [`rows::heap_size`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadSizes {
    /// `local_read_size_*_threshold`: thresholds for the bytes that a command loads; reached at
    /// exactly that size.
    pub local: SizeThresholds,
    /// `row_index_read_size_*_threshold`: thresholds for the row index of a partition; exceeded
    /// only by a larger size.
    pub row_index: SizeThresholds,
}

impl ReadSizes {
    /// Whether there is no threshold.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Err: the read has to end, because a size is over its threshold.
    pub(crate) fn check(&self, local: u64, row_index: u64) -> Result<(), ReadError> {
        if self.row_index.fail.is_some_and(|fail| row_index > fail) {
            return Err(ReadError::TooLarge { is_row_index: true, bytes: row_index });
        }
        if self.local.fail.is_some_and(|fail| local >= fail) {
            return Err(ReadError::TooLarge { is_row_index: false, bytes: local });
        }
        Ok(())
    }

    /// The thresholds that sizes exceed, with the sizes. A threshold that ended the read replaces
    /// the warning of the same kind.
    pub(crate) fn exceeded(&self, local: u64, row_index: u64) -> Vec<Exceeding> {
        let reached = |threshold: Option<u64>| threshold.is_some_and(|threshold| local >= threshold);
        let passed = |threshold: Option<u64>| threshold.is_some_and(|threshold| row_index > threshold);
        let kinds = [
            (Measure::LocalReadSize, local, reached(self.local.fail), reached(self.local.warn)),
            (Measure::RowIndexReadSize, row_index, passed(self.row_index.fail), passed(self.row_index.warn)),
        ];
        let found = kinds.into_iter().filter(|(_, _, fails, warns)| *fails || *warns);
        found.map(|(measure, number, is_failure, _)| Exceeding { measure, is_failure, number }).collect()
    }
}

/// A threshold that this node's own read exceeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Exceeding {
    pub measure: Measure,
    pub is_failure: bool,
    pub number: u64,
}

impl Exceeding {
    /// The warning of a search that looked into many indexes; None: there were few (0).
    pub fn of_indexes(number: u64) -> Option<Self> {
        (number > 0).then_some(Self { measure: Measure::Indexes, is_failure: false, number })
    }

    /// The parameter of the answer that tells a coordinator of this.
    pub fn parameter(self) -> Parameter {
        let id = match (self.measure, self.is_failure) {
            (Measure::Tombstones, true) => TOMBSTONE_FAIL,
            (Measure::Tombstones, false) => TOMBSTONE_WARNING,
            (Measure::LocalReadSize, true) => LOCAL_READ_SIZE_FAIL,
            (Measure::LocalReadSize, false) => LOCAL_READ_SIZE_WARN,
            (Measure::RowIndexReadSize, true) => ROW_INDEX_READ_SIZE_FAIL,
            (Measure::RowIndexReadSize, false) => ROW_INDEX_READ_SIZE_WARN,
            (Measure::Indexes, true) => TOO_MANY_REFERENCED_INDEXES_FAIL,
            (Measure::Indexes, false) => TOO_MANY_REFERENCED_INDEXES_WARN,
        };
        match self.measure {
            Measure::Tombstones | Measure::Indexes => Parameter::of_count(id, self.number),
            Measure::LocalReadSize | Measure::RowIndexReadSize => Parameter::of_size(id, self.number),
        }
    }
}

/// A threshold that replicas of a read found exceeded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finding {
    /// The number that the threshold is about.
    pub measure: Measure,
    /// Whether the replicas ended their reads.
    pub is_failure: bool,
    /// Number of replicas.
    pub nodes: usize,
    /// The largest number that one of them told.
    pub most: u64,
}

impl Finding {
    /// The sentence that clients are told. `query`: the read as CQL.
    pub fn sentence(&self, query: &str) -> String {
        let Self { nodes, most, .. } = self;
        match (self.measure, self.is_failure) {
            (Measure::Tombstones, true) => format!(
                "{nodes} nodes scanned over {most} tombstones and aborted the query {query} \
                 (see tombstone_failure_threshold)"
            ),
            (Measure::Tombstones, false) => format!(
                "{nodes} nodes scanned up to {most} tombstones and issued tombstone warnings for query {query} \
                 (see tombstone_warn_threshold)"
            ),
            (Measure::LocalReadSize, true) => format!(
                "{nodes} nodes loaded over {most} bytes and aborted the query {query} \
                 (see local_read_size_fail_threshold)"
            ),
            (Measure::LocalReadSize, false) => format!(
                "{nodes} nodes loaded over {most} bytes and issued local read size warnings for query {query} \
                 (see local_read_size_warn_threshold)"
            ),
            (Measure::RowIndexReadSize, true) => format!(
                "{nodes} nodes loaded over {most} bytes in RowIndexEntry and aborted the query {query} \
                 (see row_index_size_fail_threshold)"
            ),
            (Measure::RowIndexReadSize, false) => format!(
                "{nodes} nodes loaded over {most} bytes in RowIndexEntry and issued warnings for query {query} \
                 (see row_index_size_warn_threshold)"
            ),
            (Measure::Indexes, true) => format!(
                "{nodes} nodes referenced {most} SSTable indexes for a query without restrictions on partition key and \
                 aborted the query {query} (see sai_sstable_indexes_per_query_fail_threshold)"
            ),
            (Measure::Indexes, false) => format!(
                "{nodes} nodes referenced more than allowed number of indexes without restrictions on partition key, \
                 maximum on a node being {most} indexes, and issued warnings for query {query} \
                 (see sai_sstable_indexes_per_query_warn_threshold)"
            ),
        }
    }
}

/// The replicas that found a threshold exceeded, and the largest number.
type Exceeded = (BTreeSet<SocketAddr>, u64);

/// The thresholds that replicas of a request's reads have told.
#[derive(Default, Debug)]
pub struct Findings(Mutex<BTreeMap<(Measure, bool), Exceeded>>);

impl Findings {
    fn found(&self) -> MutexGuard<'_, BTreeMap<(Measure, bool), Exceeded>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a replica has found a threshold exceeded. Bounded: a replica counts once for
    /// each kind.
    pub(crate) fn add(&self, replica: SocketAddr, measure: Measure, is_failure: bool, number: u64) {
        let mut found = self.found();
        let (replicas, most) = found.entry((measure, is_failure)).or_default();
        replicas.insert(replica);
        *most = number.max(*most);
    }

    /// Takes in the parameters of an answer. Gives why the read was ended, if it was.
    pub(crate) fn add_told(&self, replica: SocketAddr, parameters: &[Parameter]) -> Option<FailureReason> {
        let mut reason = None;
        for parameter in parameters {
            let Parameter::Other(id, value) = parameter else { continue };
            let (measure, ended) = match *id {
                TOMBSTONE_FAIL => (Measure::Tombstones, Some(FailureReason::ReadTooManyTombstones)),
                TOMBSTONE_WARNING => (Measure::Tombstones, None),
                LOCAL_READ_SIZE_FAIL => (Measure::LocalReadSize, Some(FailureReason::ReadSize)),
                LOCAL_READ_SIZE_WARN => (Measure::LocalReadSize, None),
                ROW_INDEX_READ_SIZE_FAIL => (Measure::RowIndexReadSize, Some(FailureReason::ReadSize)),
                ROW_INDEX_READ_SIZE_WARN => (Measure::RowIndexReadSize, None),
                TOO_MANY_REFERENCED_INDEXES_FAIL => (Measure::Indexes, Some(FailureReason::ReadTooManyIndexes)),
                TOO_MANY_REFERENCED_INDEXES_WARN => (Measure::Indexes, None),
                _ => continue,
            };
            if let Some(number) = number_of(value) {
                self.add(replica, measure, ended.is_some(), number);
                reason = reason.or(ended);
            }
        }
        reason
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.found().is_empty()
    }

    /// Takes the findings, failures first.
    pub fn take(&self) -> Vec<Finding> {
        let found = std::mem::take(&mut *self.found());
        let mut findings: Vec<Finding> = found
            .into_iter()
            .map(|((measure, is_failure), (replicas, most))| Finding {
                measure,
                is_failure,
                nodes: replicas.len(),
                most,
            })
            .collect();
        findings.sort_by_key(|finding| !finding.is_failure);
        findings
    }
}

/// A number of four or eight bytes; None: it is no such number.
fn number_of(value: &Bytes) -> Option<u64> {
    let number = match value.len() {
        4 => i64::from(i32::from_be_bytes(value[..].try_into().ok()?)),
        8 => i64::from_be_bytes(value[..].try_into().ok()?),
        _ => return None,
    };
    u64::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_and_the_largest_number_are_kept_by_kind() {
        let findings = Findings::default();
        let [a, b]: [SocketAddr; 2] = [1, 2].map(|host| SocketAddr::from(([127, 0, 0, host], 7000)));
        let int = |id, number: i32| Parameter::Other(id, Bytes::copy_from_slice(&number.to_be_bytes()));
        let long = |id, number: i64| Parameter::Other(id, Bytes::copy_from_slice(&number.to_be_bytes()));
        assert_eq!(findings.add_told(a, &[int(TOMBSTONE_WARNING, 1200)]), None);
        assert_eq!(findings.add_told(b, &[int(TOMBSTONE_WARNING, 1100), long(LOCAL_READ_SIZE_WARN, 5 << 32)]), None);
        // neither counts: not a number, and of another kind of parameter
        assert_eq!(findings.add_told(a, &[Parameter::Other(TOMBSTONE_FAIL, Bytes::from_static(b"x"))]), None);
        assert_eq!(findings.add_told(a, &[Parameter::TraceSession([3; 16]), int(14, 1)]), None);
        assert_eq!(findings.add_told(b, &[long(ROW_INDEX_READ_SIZE_FAIL, 70)]), Some(FailureReason::ReadSize));
        let sentences: Vec<String> = findings.take().iter().map(|finding| finding.sentence("SELECT")).collect();
        assert_eq!(
            sentences,
            [
                "1 nodes loaded over 70 bytes in RowIndexEntry and aborted the query SELECT (see row_index_size_fail_threshold)",
                "2 nodes scanned up to 1200 tombstones and issued tombstone warnings for query SELECT (see tombstone_warn_threshold)",
                "1 nodes loaded over 21474836480 bytes and issued local read size warnings for query SELECT (see local_read_size_warn_threshold)",
            ]
        );
        assert_eq!(findings.take(), []);
    }

    #[test]
    fn searches_of_many_indexes_are_told_and_understood() {
        let replica = SocketAddr::from(([127, 0, 0, 1], 7000));
        let findings = Findings::default();
        assert_eq!((Exceeding::of_indexes(0), findings.is_empty()), (None, true));
        let warning = Exceeding::of_indexes(33).expect("there are many");
        assert_eq!(findings.add_told(replica, &[warning.parameter()]), None);
        let ended = Exceeding { is_failure: true, number: 50, ..warning };
        assert_eq!(findings.add_told(replica, &[ended.parameter()]), Some(FailureReason::ReadTooManyIndexes));
        assert!(!findings.is_empty());
        let found: Vec<_> = findings.take().iter().map(|one| (one.measure, one.is_failure, one.most)).collect();
        assert_eq!(found, [(Measure::Indexes, true, 50), (Measure::Indexes, false, 33)]);
    }
}
