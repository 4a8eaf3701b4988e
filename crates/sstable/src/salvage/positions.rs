//! Where partitions begin, as the index says, and where the blocks of large partitions do: read
//! along with the data, never as a whole. An index that turns out damaged is used up to there.

use std::sync::Arc;

use bytes::Bytes;
use env::Env;

use super::report::SalvageReport;
use crate::descriptor::{Component, Descriptor};
use crate::error::IndexError;
use crate::file_cache::NoCache;
use crate::index::big_index::BigCursor;
use crate::index::partition_index::{PartitionCursor, PartitionIndex};
use crate::index::row_index::RowIndexEntry;
use crate::index::{Block, PartitionPosition};
use crate::index_file::{Access, IndexFile};
use crate::version::Format;

/// Positions of partitions, ascending.
pub struct Positions {
    source: Source,
    rows: IndexFile,
    /// The one at hand: where, and its entry in Rows.db.
    next: Option<(u64, Option<u64>)>,
    /// The one before it.
    before: Option<(u64, Option<u64>)>,
    /// Partitions that were passed over and not begun, since asked last.
    passed: u64,
}

enum Source {
    /// Partitions.db.
    Bti(PartitionCursor),
    /// Index.db.
    Big(BigCursor),
    None,
}

impl Positions {
    /// Opens the index, if it can be.
    pub fn open(env: &Env, descriptor: &Descriptor, report: &mut SalvageReport) -> Self {
        let paged = |component: Component| -> Result<IndexFile, String> {
            let path = descriptor.path(component);
            let file = env.disk.open_read(&path).map_err(|error| error.to_string())?;
            Ok(IndexFile::on_disk(path, file, Arc::new(NoCache)))
        };
        let mut rows = IndexFile::from(Bytes::new());
        let (component, source) = match descriptor.format {
            Format::Bti => {
                match paged(Component::Rows) {
                    Ok(bytes) => rows = bytes,
                    Err(what) => report.notes.push(format!("{}: {what}", Component::Rows.name())),
                }
                (Component::Partitions, paged(Component::Partitions).and_then(|file| bti(&file, report)))
            }
            Format::Big => (Component::Index, paged(Component::Index).map(|file| Source::Big(BigCursor::new(file)))),
        };
        let source = source.unwrap_or_else(|what| {
            report.notes.push(format!("{}: {what}; partitions are found in the data alone", component.name()));
            Source::None
        });
        let mut positions = Self { source, rows, next: None, before: None, passed: 0 };
        positions.advance(report);
        positions
    }

    fn advance(&mut self, report: &mut SalvageReport) {
        let read = match &mut self.source {
            Source::None => Ok(None),
            Source::Bti(cursor) => bti_next(cursor, &self.rows).map_err(IndexError::into_malformed),
            Source::Big(cursor) => {
                let position = cursor.next_position().map_err(IndexError::into_malformed);
                position.map(|position| position.map(|position| (position, None)))
            }
        };
        let next = read.unwrap_or_else(|error| {
            report.notes.push(format!("the partition index at offset {}: {}", error.offset, error.what));
            None
        });
        // positions that do not ascend are damage
        let ascends = |next: &(u64, Option<u64>)| self.next.is_none_or(|here| here.0 < next.0);
        let next = next.filter(ascends);
        if next.is_none() {
            self.source = Source::None;
        }
        self.before = self.next;
        self.next = next;
    }

    /// The first partition that begins behind `start` and not before `to`; None: the index does not
    /// say.
    pub fn after(&mut self, start: u64, to: u64, report: &mut SalvageReport) -> Option<u64> {
        while self.next.is_some_and(|next| next.0 <= start) {
            self.advance(report);
        }
        while self.next.is_some_and(|next| next.0 < to) {
            self.passed += 1;
            self.advance(report);
        }
        self.next.map(|next| next.0)
    }

    /// How many partitions were passed over since asked last.
    pub fn take_passed(&mut self) -> u64 {
        std::mem::take(&mut self.passed)
    }

    /// The first block of the partition at `start` that begins at `offset` from there or behind,
    /// but not its end.
    pub fn block_after(&mut self, start: u64, offset: u64) -> Option<Block> {
        let mut ignored = SalvageReport::default();
        while self.next.is_some_and(|next| next.0 < start) {
            self.advance(&mut ignored);
        }
        let here = [self.before, self.next].into_iter().flatten().find(|entry| entry.0 == start)?;
        let (_, entry) = RowIndexEntry::read(&self.rows, here.1?, Access::WAITING).ok()?;
        let end = entry.cursor(Access::WAITING).end().ok()??.offset;
        let mut cursor = entry.cursor(Access::WAITING);
        let mut block = cursor.first().ok()?;
        while let Some(found) = block {
            if found.offset >= end {
                return None;
            }
            if found.offset >= offset {
                return Some(found);
            }
            block = cursor.next().ok()?;
        }
        None
    }
}

fn bti(file: &IndexFile, report: &mut SalvageReport) -> Result<Source, String> {
    let told = |error: IndexError| {
        let error = error.into_malformed();
        format!("offset {}: {}", error.offset, error.what)
    };
    let index = PartitionIndex::open(file).map_err(told)?;
    report.partitions_expected = Some(index.count());
    let cursor = index.cursor(Access::WAITING).map_err(told)?;
    Ok(Source::Bti(cursor))
}

fn bti_next(cursor: &mut PartitionCursor, rows: &IndexFile) -> Result<Option<(u64, Option<u64>)>, IndexError> {
    Ok(match cursor.next()? {
        None => None,
        Some(PartitionPosition::Data(position)) => Some((position, None)),
        Some(PartitionPosition::Rows(entry)) => {
            let (_, index) = RowIndexEntry::read(rows, entry, Access::WAITING)?;
            Some((index.data_position, Some(entry)))
        }
    })
}
