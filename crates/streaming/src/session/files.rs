//! The files of a session, by table: the files that are sent, until the peer has them, and the
//! files that are to come.

use std::collections::BTreeSet;

use schema::TableId;

use crate::message::Received;
use crate::message::header::FileHeader;
use crate::message::prepare::Summary;

/// The files that a side has of one table. The number of a file is its index in `files`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OfferedFiles {
    /// The table.
    pub table: TableId,
    /// For each file the number of files that a summary counts for it, and its bytes.
    pub files: Vec<(usize, u64)>,
}

impl OfferedFiles {
    pub(super) fn summary(&self) -> Summary {
        let files: usize = self.files.iter().map(|(count, _)| count).sum();
        let bytes = self.files.iter().fold(0u64, |sum, (_, bytes)| sum.saturating_add(*bytes));
        Summary {
            table: self.table,
            files: i32::try_from(files).unwrap_or(i32::MAX),
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
        }
    }
}

/// A file that comes from the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedFile {
    /// The file's table and number.
    pub id: Received,
    /// Number of files that a summary counts for it.
    pub files: usize,
}

impl ReceivedFile {
    /// The file that a header describes.
    pub fn of(header: &FileHeader) -> Self {
        let id = Received { table: header.table, sequence: header.sequence };
        Self { id, files: header.content.transfer_files() }
    }
}

/// Files of a table that are sent.
#[derive(Debug)]
pub(super) struct TransferTask {
    count: usize,
    /// Numbers of the files that the peer has not acknowledged.
    missing: BTreeSet<i32>,
}

impl TransferTask {
    pub fn new(count: usize) -> Self {
        let end = i32::try_from(count).expect("a table has fewer SSTables");
        Self { count, missing: (0..end).collect() }
    }

    pub fn missing(&self, table: TableId) -> impl Iterator<Item = Received> {
        self.missing.iter().map(move |sequence| Received { table, sequence: *sequence })
    }

    pub fn is_done(&self) -> bool {
        self.missing.is_empty()
    }

    pub fn acknowledge(&mut self, sequence: i32) -> Result<(), String> {
        if usize::try_from(sequence).is_ok_and(|sequence| sequence < self.count) {
            self.missing.remove(&sequence);
            assert!(self.missing.len() < self.count, "a file that the peer has is not missing");
            return Ok(());
        }
        Err(format!("RECEIVED of file {sequence} of {}", self.count))
    }
}

/// Files of a table that are to come.
#[derive(Debug)]
pub(super) struct ReceiveTask {
    /// Number of files that the summary announced, components counted one by one.
    files: usize,
    /// Number of files that have come, components counted one by one.
    taken: usize,
    /// Numbers of the files that have come: never more than `files`.
    seen: BTreeSet<i32>,
}

impl ReceiveTask {
    pub fn new(summary: &Summary) -> Self {
        Self { files: usize::try_from(summary.files).unwrap_or(0), taken: 0, seen: BTreeSet::new() }
    }

    pub fn admit(&self, file: &ReceivedFile) -> Result<(), String> {
        let Received { table, sequence } = file.id;
        if self.seen.contains(&sequence) {
            return Err(format!("file {sequence} of table {table} came twice"));
        }
        if file.files == 0 || self.taken + file.files > self.files {
            return Err(format!("more files of table {table} come than the {} announced", self.files));
        }
        Ok(())
    }

    pub fn take(&mut self, file: &ReceivedFile) {
        self.seen.insert(file.id.sequence);
        self.taken += file.files;
        assert!(self.taken <= self.files, "a file is admitted before it is taken");
        assert!(self.seen.len() <= self.taken, "each file counts at least once");
    }

    pub fn is_whole(&self) -> bool {
        self.taken == self.files
    }
}
