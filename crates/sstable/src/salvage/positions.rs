//! Where partitions begin, as the index says, and where the blocks of large partitions do: read along with the data, never as a
//! whole. An index that turns out damaged is used up to there.

use bytes::Bytes;
use env::Env;
use stdx::Cursor;

use super::report::SalvageReport;
use crate::descriptor::{Component, Descriptor};
use crate::error::Malformed;
use crate::index::partition_index::{PartitionCursor, PartitionIndex};
use crate::index::row_index::RowIndexEntry;
use crate::index::{Block, PartitionPosition};
use crate::version::Format;

/// Positions of partitions, ascending.
pub struct Positions {
    source: Source,
    rows: Bytes,
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
    /// Index.db from an offset on.
    Big {
        file: Bytes,
        at: usize,
    },
    None,
}

impl Positions {
    /// Opens the index, if it can be.
    pub fn open(env: &Env, descriptor: &Descriptor, report: &mut SalvageReport) -> Self {
        let map = |component: Component| -> Result<Bytes, String> {
            let path = descriptor.path(component);
            let map = env
                .disk
                .open_read(&path)
                .and_then(|file| if file.is_empty() { Ok(None) } else { file.map().map(Some) });
            Ok(map.map_err(|error| error.to_string())?.map_or_else(Bytes::new, |map| map.bytes().clone()))
        };
        let mut rows = Bytes::new();
        let (component, source) = match descriptor.format {
            Format::Bti => {
                match map(Component::Rows) {
                    Ok(bytes) => rows = bytes,
                    Err(what) => report.notes.push(format!("{}: {what}", Component::Rows.name())),
                }
                (Component::Partitions, map(Component::Partitions).and_then(|file| bti(&file, report)))
            }
            Format::Big => (Component::Index, map(Component::Index).map(|file| Source::Big { file, at: 0 })),
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
            Source::Bti(cursor) => bti_next(cursor, &self.rows),
            Source::Big { file, at } => big_next(file, at),
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

    /// The first partition that begins behind `start` and not before `to`; None: the index does not say.
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

    /// The first block of the partition at `start` that begins at `offset` from there or behind, but not its end.
    pub fn block_after(&mut self, start: u64, offset: u64) -> Option<Block> {
        let mut ignored = SalvageReport::default();
        while self.next.is_some_and(|next| next.0 < start) {
            self.advance(&mut ignored);
        }
        let here = [self.before, self.next].into_iter().flatten().find(|entry| entry.0 == start)?;
        let (_, entry) = RowIndexEntry::read(&self.rows, here.1?).ok()?;
        let end = entry.cursor().end().ok()??.offset;
        let mut cursor = entry.cursor();
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

fn bti(file: &Bytes, report: &mut SalvageReport) -> Result<Source, String> {
    let index = PartitionIndex::open(file).map_err(|error| format!("offset {}: {}", error.offset, error.what))?;
    report.partitions_expected = Some(index.count());
    let cursor = index.cursor().map_err(|error| format!("offset {}: {}", error.offset, error.what))?;
    Ok(Source::Bti(cursor))
}

fn bti_next(cursor: &mut PartitionCursor, rows: &Bytes) -> Result<Option<(u64, Option<u64>)>, Malformed> {
    Ok(match cursor.next()? {
        None => None,
        Some(PartitionPosition::Data(position)) => Some((position, None)),
        Some(PartitionPosition::Rows(entry)) => {
            let (_, index) = RowIndexEntry::read(rows, entry)?;
            Some((index.data_position, Some(entry)))
        }
    })
}

/// `u16 length, key, uvint position, uvint length, that many bytes`.
fn big_next(file: &Bytes, at: &mut usize) -> Result<Option<(u64, Option<u64>)>, Malformed> {
    let rest = file.get(*at..).unwrap_or_default();
    if rest.is_empty() {
        return Ok(None);
    }
    let mut cursor = Cursor::new(rest);
    let mut read = || -> Result<u64, Malformed> {
        cursor.short_bytes()?;
        let position = cursor.uvint()?;
        let length = cursor.uvint()?;
        let length = usize::try_from(length).map_err(|_| Malformed::at(0, format!("an entry of {length} bytes")))?;
        cursor.skip(length)?;
        Ok(position)
    };
    let position = read().map_err(|error| error.behind(*at as u64))?;
    *at += cursor.position();
    Ok(Some((position, None)))
}
