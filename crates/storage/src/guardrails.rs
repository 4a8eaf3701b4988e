//! Guardrails of partitions as SSTables have them: size and tombstones. What is found is told in
//! the log, and nothing is refused: what is flushed or compacted was taken long ago. Beside them
//! the limits on searches, which reads check (`crate::index::attached::guard`).
//!
//! Must agree with: `Guardrails.partitionSize` and `partitionTombstones`, and
//! `SortedTableWriter.endPartition`, which asks them.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rows::command::IndexLimits;
use schema::TableMetadata;
use sstable::{Component, SSTableWriter, WrittenPartition};

/// A number to warn of and one that is an error. None: never.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Threshold {
    /// A greater value is a warning.
    pub warn: Option<u64>,
    /// A greater value is an error.
    pub fail: Option<u64>,
}

/// The limits of a partition of an SSTable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PartitionGuards {
    /// partition_size: bytes before compression
    pub size: Threshold,
    /// partition_tombstones
    pub tombstones: Threshold,
}

/// The guardrails that the storage checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InForce {
    /// `sai_sstable_indexes_per_query_` (`warn_threshold`, `fail_threshold`).
    pub searches: IndexLimits,
    /// `partition_size_` and `partition_tombstones_` (`warn_threshold`, `fail_threshold`).
    pub partitions: PartitionGuards,
}

/// The guardrails in force, which an operator changes while the node runs.
#[derive(Debug)]
pub struct Guards(ArcSwap<InForce>);

impl From<InForce> for Guards {
    fn from(guards: InForce) -> Self {
        Self(ArcSwap::from_pointee(guards))
    }
}

impl Default for Guards {
    fn default() -> Self {
        InForce { searches: IndexLimits::NONE, partitions: PartitionGuards::default() }.into()
    }
}

impl Guards {
    /// The guardrails as they are now.
    pub fn in_force(&self) -> InForce {
        **self.0.load()
    }

    /// Changes them.
    pub fn set(&self, guards: InForce) {
        self.0.store(Arc::new(guards));
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Violation {
    Warning { of: u64 },
    Failure { of: u64 },
}

impl Threshold {
    fn violation(&self, value: u64) -> Option<Violation> {
        let over = |threshold: &u64| value > *threshold;
        let failure = self.fail.filter(over).map(|of| Violation::Failure { of });
        failure.or_else(|| self.warn.filter(over).map(|of| Violation::Warning { of }))
    }
}

impl PartitionGuards {
    /// A partition has been written.
    pub(crate) fn check(&self, writer: &SSTableWriter, key: &[u8], written: WrittenPartition) {
        let file = || writer.descriptor().path(Component::Data).display().to_string();
        let what = || partition(writer.table(), key, &file());
        if let Some(violation) = self.size.violation(written.size) {
            tell(violation, &size_text(violation, &what(), written.size));
        }
        if let Some(violation) = self.tombstones.violation(written.tombstones) {
            tell(violation, &tombstones_text(violation, &what(), written.tombstones));
        }
    }
}

fn tell(violation: Violation, text: &str) {
    match violation {
        Violation::Warning { .. } => tracing::warn!("{text}"),
        Violation::Failure { .. } => tracing::error!("{text}"),
    }
}

fn partition(table: &TableMetadata, key: &[u8], file: &str) -> String {
    format!("{}.{}:{} on sstable {file}", table.keyspace, table.name, table.partition_key_text(key))
}

fn size_text(violation: Violation, partition: &str, size: u64) -> String {
    format!(
        "Guardrail partition_size violated: Partition {partition} has size {size}, this exceeds {}. Too large partitions can cause \
         performance problems.",
        threshold_text(violation)
    )
}

fn tombstones_text(violation: Violation, partition: &str, tombstones: u64) -> String {
    format!(
        "Guardrail partition_tombstones violated: Partition {partition} has {tombstones} tombstones, this exceeds {}. Partitions with too \
         many tombstones can cause performance problems.",
        threshold_text(violation)
    )
}

fn threshold_text(violation: Violation) -> String {
    match violation {
        Violation::Warning { of } => format!("the warning threshold of {of}"),
        Violation::Failure { of } => format!("the failure threshold of {of}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_greater_than_a_threshold_violates_it() {
        let both = Threshold { warn: Some(2), fail: Some(4) };
        let found: Vec<_> = (2..=5).map(|value| both.violation(value)).collect();
        let (warning, failure) = (Some(Violation::Warning { of: 2 }), Some(Violation::Failure { of: 4 }));
        assert_eq!(found, [None, warning, warning, failure]);
        assert_eq!(Threshold { warn: None, fail: Some(4) }.violation(4), None);
        assert_eq!(Threshold::default().violation(u64::MAX), None);
    }
}
