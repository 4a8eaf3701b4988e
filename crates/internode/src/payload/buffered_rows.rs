//! A small answer of a node to itself: its rows as they were read, not encoded.
//!
//! A node that coordinates a read of which it has a copy would otherwise encode its own rows and
//! decode them again. Rows are given as the encoded answer would give them: empty rows are left
//! out. Beyond a size the rows are encoded after all, because rows take more memory than bytes.

use std::sync::Arc;

use rows::{PartitionHead, PartitionStream, ReadError, Row, Unfiltered};

use super::partitions::{PartitionForm, PartitionsWriter};

/// The least size that a row or a partition counts with, bytes.
const OVERHEAD: usize = 64;

/// A partition and its rows.
#[derive(Clone, PartialEq, Eq, Debug)]
struct BufferedPartition {
    head: PartitionHead,
    form: PartitionForm,
    rows: Vec<Unfiltered>,
}

/// Rows that are kept as they were read. Clones share them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BufferedRows {
    partitions: Arc<Vec<BufferedPartition>>,
    size: usize,
}

impl BufferedRows {
    /// Bytes of the rows, more or less.
    pub fn size(&self) -> usize {
        self.size
    }

    /// The partitions, as a source of a read like any other.
    pub fn stream(&self) -> BufferedRowsStream {
        BufferedRowsStream { partitions: Arc::clone(&self.partitions), next: 0, row: 0 }
    }
}

/// Takes rows in.
#[derive(Default)]
pub(super) struct RowBuffer {
    partitions: Vec<BufferedPartition>,
    pub(super) size: usize,
}

impl RowBuffer {
    pub(super) fn partition(&mut self, head: &PartitionHead, form: PartitionForm) {
        self.size += OVERHEAD + head.key.key.len() + head.static_row.as_deref().map_or(0, Row::data_size);
        self.partitions.push(BufferedPartition { head: head.clone(), form, rows: Vec::new() });
    }

    /// Adds a row or marker to the partition that was begun last.
    pub(super) fn unfiltered(&mut self, unfiltered: Unfiltered) {
        let partition = self.partitions.last_mut().expect("rows belong to a partition");
        self.size += OVERHEAD
            + match &unfiltered {
                Unfiltered::Row(row) => row.data_size(),
                Unfiltered::Marker(_) => 0,
            };
        partition.rows.push(unfiltered);
    }

    /// Writes everything; an end is left to the caller, because rows may follow.
    pub(super) fn write_to(&self, out: &mut PartitionsWriter) {
        for BufferedPartition { head, form, rows } in &self.partitions {
            out.partition(head, form, rows.is_empty());
            rows.iter().for_each(|unfiltered| out.unfiltered(unfiltered));
        }
    }

    pub(super) fn finish(mut self) -> BufferedRows {
        for BufferedPartition { head, rows, .. } in &mut self.partitions {
            // as if it had been encoded and decoded again
            head.names_statics = false;
            head.static_row.take_if(|row| row.is_empty());
            rows.retain(|unfiltered| !matches!(unfiltered, Unfiltered::Row(row) if row.is_empty()));
        }
        BufferedRows { partitions: Arc::new(self.partitions), size: self.size }
    }
}

/// The stream of what was kept.
pub struct BufferedRowsStream {
    partitions: Arc<Vec<BufferedPartition>>,
    /// The position of the next partition.
    next: usize,
    /// The position of the next row of the one before it.
    row: usize,
}

impl PartitionStream for BufferedRowsStream {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let Some(partition) = self.partitions.get(self.next) else {
            self.row = usize::MAX;
            return Ok(None);
        };
        (self.next, self.row) = (self.next + 1, 0);
        Ok(Some(partition.head.clone()))
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        let current = self.next.checked_sub(1).and_then(|at| self.partitions.get(at));
        let unfiltered = current.and_then(|partition| partition.rows.get(self.row)).cloned();
        self.row = self.row.saturating_add(usize::from(unfiltered.is_some()));
        Ok(unfiltered)
    }
}
