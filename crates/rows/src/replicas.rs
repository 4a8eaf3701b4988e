//! The answers of several replicas to one read: their merge, what each of them lacks, and where an
//! answer ends before the read does.
//!
//! A replica answers in portions: a first one, which may end at a limit, and further ones that were
//! asked for when the reader wanted more ([`Answers`]). [`ReplicaMerge`] is the stream of all
//! answers together. Everything in it is known to be complete: where one replica's answer has
//! ended at a limit, rows behind that place are not given, because that replica may have deleted
//! them. There the stream ends with [`ReadError::WouldBlock`] and notes what has to be asked for
//! ([`FurtherRead`]); whoever reads asks, and reads again from the beginning. This is what
//! protects a read from being short: rows that other replicas deleted do not count, and more are
//! asked for.
//!
//! While the merge is read each replica's answer is compared with it: [`difference`].
//!
//! Pure: nothing here knows how a portion is asked for. Agrees in effect with
//! `org.apache.cassandra.service.reads.{DataResolver,ShortReadPartitionsProtection,
//! ShortReadRowsProtection}`.

mod answers;
mod difference;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::sync::Arc;

use schema::TableMetadata;
use types::DecoratedKey;

pub use answers::{Answers, Replay};
use difference::Differences;

use crate::clustering::compare_prefixes;
use crate::stream::EmptyStream;
use crate::{
    ClusteringValues, ColumnFilter, MergeStream, PartitionHead, PartitionStream, PartitionUpdate, PrefixKind,
    ReadError, Unfiltered,
};

/// A question that a replica has to be asked before the read can go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FurtherRead {
    /// Rows of a partition behind the last row that the replica has given.
    Rows {
        /// The position of the replica among the answers.
        replica: usize,
        /// The partition.
        key: DecoratedKey,
        /// The last row that the replica has given of it.
        after: ClusteringValues,
    },
    /// Partitions behind the last one that the replica has given.
    Partitions {
        /// The position of the replica among the answers.
        replica: usize,
        /// The last partition that the replica has given.
        after: DecoratedKey,
    },
}

impl FurtherRead {
    /// The position of the replica among the answers.
    pub fn replica(&self) -> usize {
        let (Self::Rows { replica, .. } | Self::Partitions { replica, .. }) = self;
        *replica
    }
}

/// The merge of several replicas' answers.
pub struct ReplicaMerge {
    table: Arc<TableMetadata>,
    reversed: bool,
    answers: Vec<Answers>,
    merge: Box<dyn PartitionStream>,
    /// None: there is one replica, so nothing differs.
    differences: Option<Differences>,
    /// The current partition.
    key: Option<DecoratedKey>,
    /// Replicas whose rows of the current partition are known only up to a row.
    cuts: Vec<(usize, ClusteringValues)>,
    further_reads: Vec<FurtherRead>,
}

impl ReplicaMerge {
    /// The merge of `answers`, each of another replica to the same read. `queried`: the columns
    /// whose values the replicas have given; values of other columns may be missing.
    pub fn new(table: &Arc<TableMetadata>, answers: &[Answers], reversed: bool, queried: &ColumnFilter) -> Self {
        let differences = (answers.len() > 1).then(|| Differences::new(table, answers, reversed, queried.clone()));
        let streams: Vec<Box<dyn PartitionStream>> = answers.iter().map(Answers::stream).collect();
        Self {
            table: Arc::clone(table),
            reversed,
            answers: answers.to_vec(),
            merge: MergeStream::boxed(table, streams, reversed),
            differences,
            key: None,
            cuts: Vec::new(),
            further_reads: Vec::new(),
        }
    }

    /// The questions that are open when the stream has ended with [`ReadError::WouldBlock`]; empty
    /// if it did not.
    pub fn further_reads(&self) -> &[FurtherRead] {
        &self.further_reads
    }

    /// The updates that each replica lacks of what was read so far, by its position. Of a partition
    /// that was not read to its end: of the rows that were read. Empty: there is one replica.
    pub fn differences(self) -> Vec<Vec<PartitionUpdate>> {
        self.differences.map_or_else(Vec::new, Differences::finish)
    }

    /// Notes what is missing, if anything, and ends the stream.
    fn check(&mut self, further_reads: Vec<FurtherRead>) -> Result<(), ReadError> {
        if further_reads.is_empty() {
            return Ok(());
        }
        self.further_reads = further_reads;
        self.merge = Box::new(EmptyStream);
        Err(ReadError::WouldBlock)
    }

    /// The replicas whose partitions are not known as far as `key`; None: to the end.
    fn partitions_lacking(&self, key: Option<&DecoratedKey>) -> Vec<FurtherRead> {
        let ends = self.answers.iter().enumerate().filter_map(|(replica, answers)| Some((replica, answers.end()?)));
        let behind = ends.filter(|(_, end)| key.is_none_or(|key| *end < key));
        behind.map(|(replica, end)| FurtherRead::Partitions { replica, after: end.clone() }).collect()
    }

    /// The replicas whose rows of the partition are not known as far as `item`; None: to its end.
    fn rows_lacking(&self, item: Option<&Unfiltered>) -> Vec<FurtherRead> {
        let Some(key) = &self.key else { return Vec::new() };
        let beyond = self.cuts.iter().filter(|(_, cut)| item.is_none_or(|item| self.is_behind(item, cut)));
        beyond
            .map(|(replica, cut)| FurtherRead::Rows { replica: *replica, key: key.clone(), after: cut.clone() })
            .collect()
    }

    /// Whether an item stands behind a row in the direction of the read. The end of a range right
    /// behind the row does not.
    fn is_behind(&self, item: &Unfiltered, row: &ClusteringValues) -> bool {
        let compare = |kind| compare_prefixes(&self.table.comparator, item.kind(), item.values(), kind, row);
        match self.reversed {
            false => compare(PrefixKind::InclEndBound) == Ordering::Greater,
            true => compare(PrefixKind::InclStartBound) == Ordering::Less,
        }
    }
}

impl PartitionStream for ReplicaMerge {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let head = self.merge.next_partition()?;
        self.key = head.as_ref().map(|head| head.key.clone());
        self.check(self.partitions_lacking(self.key.as_ref()))?;
        let Some(head) = head else { return Ok(None) };
        let cuts = self.answers.iter().enumerate();
        self.cuts = cuts.filter_map(|(replica, answers)| Some((replica, answers.cut(&head.key)?.clone()))).collect();
        if let Some(differences) = &mut self.differences {
            differences.partition(&head)?;
        }
        Ok(Some(head))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        let item = self.merge.next_unfiltered()?;
        if !self.cuts.is_empty() {
            self.check(self.rows_lacking(item.as_ref()))?;
        }
        if let (Some(differences), Some(item)) = (&mut self.differences, &item) {
            differences.unfiltered(item)?;
        }
        Ok(item)
    }
}
