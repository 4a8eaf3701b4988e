//! One partition, past damage inside of it.
//!
//! A row or marker that does not end where its own size says is damage. Without Statistics.db the
//! columns are those of the schema: where one was dropped since, a row would give the value of one
//! column as that of another.

use std::cmp::Ordering;

use bytes::Bytes;
use rows::codec::{
    CodecError, Decoded, Header, decode_static_row, decode_unfiltered, get_deletion_time, peek_unfiltered,
};
use rows::range_tombstones::marker_at;
use rows::{ClusteringPrefix, DeletionTime, PartitionHead, RangeTombstoneMarker, Row, Unfiltered};
use stdx::Cursor;
use types::DecoratedKey;

use super::open::SalvageFiles;
use super::positions::Positions;
use super::report::SalvageReport;
use super::window::{Damage, Window};
use crate::version::Version;

/// A partition being read.
///
/// An opening marker is given once what follows it was read: behind it damage cannot be told from
/// the deletion's end.
#[derive(Debug)]
pub struct OpenPartition {
    key: DecoratedKey,
    start: u64,
    /// Where it ends, if that is known.
    pub end: Option<u64>,
    /// The position of the next unfiltered; once the partition has ended, the position behind it.
    pub position: u64,
    /// Goes behind the marker that was given last.
    held: Option<Unfiltered>,
    /// An opening marker that waits.
    delayed: Option<RangeTombstoneMarker>,
    /// Where the walk is.
    last: Option<ClusteringPrefix>,
    /// The range deletion open behind what was given.
    open: Option<DeletionTime>,
    /// The range deletion open at the block that reading goes on with: to be opened before what
    /// comes next.
    reopen: Option<DeletionTime>,
    /// A part of it is lost.
    cut: bool,
    ended: bool,
}

/// A partition's deletion, in the form of the version.
pub fn partition_deletion(cursor: &mut Cursor<'_>, version: Version) -> Result<DeletionTime, CodecError> {
    get_deletion_time(cursor, version.deletion_times())
}

/// Bytes before the size of a static row: two bytes of flags.
const STATIC_FLAGS_LEN: usize = 2;

/// The unfiltered at `offset`, which ends where its size says, and the offset behind it.
fn exact_unfiltered(bytes: &Bytes, offset: usize, header: &Header) -> Result<(Decoded, usize), CodecError> {
    let (decoded, end) = decode_unfiltered(bytes, offset, header, true)?;
    let said = peek_unfiltered(bytes, offset, header)?.map_or(end, |peeked| peeked.end);
    if said == end { Ok((decoded, end)) } else { Err(ends_elsewhere(end, said)) }
}

/// The static row at `offset`, which ends where its size says, and the offset behind it.
fn exact_static_row(bytes: &Bytes, offset: usize, header: &Header) -> Result<(Row, usize), CodecError> {
    let (row, end) = decode_static_row(bytes, offset, header, true)?;
    let start = offset + STATIC_FLAGS_LEN;
    let mut cursor = Cursor::new(bytes.get(start..).ok_or(CodecError::Truncated)?);
    let size = usize::try_from(cursor.uvint()?).unwrap_or(usize::MAX);
    let said = (start + cursor.position()).saturating_add(size);
    if said == end { Ok((row, end)) } else { Err(ends_elsewhere(end, said)) }
}

fn ends_elsewhere(end: usize, said: usize) -> CodecError {
    CodecError::Invalid(format!("a row that ends {} bytes from where its size says", end.abs_diff(said)))
}

impl OpenPartition {
    /// Reads the head at `start`. The key is given where it could be read and the rest not.
    pub fn open(
        files: &SalvageFiles,
        window: &mut Window,
        start: u64,
    ) -> Result<(PartitionHead, Self), (Damage, Option<DecoratedKey>)> {
        let version = files.version;
        let decoded = window.decode(&files.data, start, |bytes, offset| {
            let mut cursor = Cursor::new(bytes.get(offset..).ok_or(CodecError::Truncated)?);
            let key = bytes.slice_ref(cursor.short_bytes()?);
            let deletion = partition_deletion(&mut cursor, version)?;
            Ok(((key, deletion), offset + cursor.position()))
        });
        let ((key, deletion), mut position) = decoded.map_err(|damage| (damage, None))?;
        let key = files.table.decorate(key);
        if let Err(error) = types::validate(&files.table.partition_key_type, &key.key) {
            return Err((Damage { to: start + 1, what: format!("no partition key: {error}") }, None));
        }
        let mut static_row = None;
        if !files.header.statics.is_empty() {
            let header = &files.header;
            let decoded = window
                .decode(&files.data, position, |bytes, offset| exact_static_row(bytes, offset, header))
                .map_err(|damage| (damage, Some(key.clone())))?;
            position = decoded.1;
            static_row = Some(decoded.0).filter(|row| !row.is_empty());
        }
        let head = PartitionHead::new(key.clone(), deletion, static_row);
        let partition = Self {
            key,
            start,
            end: None,
            position,
            held: None,
            delayed: None,
            last: None,
            open: None,
            reopen: None,
            cut: false,
            ended: false,
        };
        Ok((head, partition))
    }

    /// The next unfiltered; None: the partition has ended.
    pub fn next(
        &mut self,
        files: &SalvageFiles,
        window: &mut Window,
        positions: &mut Positions,
        report: &mut SalvageReport,
    ) -> Option<Unfiltered> {
        loop {
            if let Some(held) = self.held.take() {
                return Some(self.give(held));
            }
            if self.ended {
                return self.close();
            }
            let header = &files.header;
            let decoded =
                window.decode(&files.data, self.position, |bytes, offset| exact_unfiltered(bytes, offset, header));
            let given = match decoded {
                Ok((Decoded::EndOfPartition, next)) => {
                    (self.position, self.ended) = (next, true);
                    self.drop_delayed_open()
                }
                Ok((Decoded::Row(row), next)) => {
                    let here = std::mem::replace(&mut self.position, next);
                    if row.is_empty() { None } else { self.admit(files, report, here, Unfiltered::Row(row)) }
                }
                Ok((Decoded::Marker(marker), next)) => {
                    let here = std::mem::replace(&mut self.position, next);
                    self.admit(files, report, here, Unfiltered::Marker(marker))
                }
                // what waits goes first: the damage is met again
                Err(_) if self.delayed.is_some() => self.drop_delayed_open(),
                Err(damage) => self.pass_over(&damage, files, window, positions, report),
            };
            if given.is_some() {
                return given;
            }
        }
    }

    fn give(&mut self, unfiltered: Unfiltered) -> Unfiltered {
        if let Unfiltered::Marker(marker) = &unfiltered {
            self.open = marker.open;
        }
        unfiltered
    }

    /// Fits the unfiltered that was decoded at `here` to those given before: in order, and range
    /// deletions well formed.
    fn admit(
        &mut self,
        files: &SalvageFiles,
        report: &mut SalvageReport,
        here: u64,
        unfiltered: Unfiltered,
    ) -> Option<Unfiltered> {
        let position = ClusteringPrefix { kind: unfiltered.kind(), values: unfiltered.values().clone() };
        let comparator = &files.table.comparator;
        if self.last.as_ref().is_some_and(|last| last.compare(&position, comparator) != Ordering::Less) {
            report.rows_out_of_order += 1;
            report.lose_bytes(here, self.position, Some(&self.key), "out of order in its partition");
            return None;
        }
        self.last = Some(position);
        let reopen = self.reopen.take();
        match unfiltered {
            Unfiltered::Row(row) => {
                let opening = reopen.and_then(|open| marker_at(row.clustering.clone(), true, None, Some(open)));
                let before = self.delayed.take().or(opening);
                match before {
                    Some(marker) => {
                        self.held = Some(Unfiltered::Row(row));
                        Some(self.give(Unfiltered::Marker(marker)))
                    }
                    None => Some(Unfiltered::Row(row)),
                }
            }
            Unfiltered::Marker(marker) => self.admit_marker(marker),
        }
    }

    /// A range that closes here may never have been opened, or was closed where damage began.
    fn admit_marker(&mut self, marker: RangeTombstoneMarker) -> Option<Unfiltered> {
        let open = self.delayed.as_ref().map_or(self.open, |delayed| delayed.open);
        let before = marker.position.kind.side() < 0;
        let close = marker.close.and(open);
        let fitted = marker_at(marker.position.values, before, close, marker.open);
        let earlier = self.delayed.take().map(Unfiltered::Marker);
        match fitted {
            Some(fitted) if fitted.open.is_some() => self.delayed = Some(fitted),
            Some(fitted) if earlier.is_some() => self.held = Some(Unfiltered::Marker(fitted)),
            Some(fitted) => return Some(self.give(Unfiltered::Marker(fitted))),
            None => {}
        }
        earlier.map(|earlier| self.give(earlier))
    }

    /// Gives up what a marker that waits opens, but not what it closes.
    fn drop_delayed_open(&mut self) -> Option<Unfiltered> {
        let marker = self.delayed.take()?;
        let before = marker.position.kind.side() < 0;
        let closing = marker_at(marker.position.values, before, marker.close, None)?;
        Some(self.give(Unfiltered::Marker(closing)))
    }

    /// A marker that closes what is open at the last row, which lies inside.
    fn close(&mut self) -> Option<Unfiltered> {
        let open = self.open.take()?;
        let last = self.last.as_ref()?;
        let marker = marker_at(last.values.clone(), false, Some(open), None)?;
        self.last = Some(marker.position.clone());
        Some(Unfiltered::Marker(marker))
    }

    /// Behind damage: to the next block of the partition, else to what follows the partition.
    fn pass_over(
        &mut self,
        damage: &Damage,
        files: &SalvageFiles,
        window: &mut Window,
        positions: &mut Positions,
        report: &mut SalvageReport,
    ) -> Option<Unfiltered> {
        if !std::mem::replace(&mut self.cut, true) {
            report.partitions_cut += 1;
        }
        let from = self.position;
        let marker = self.close();
        let block = match self.end {
            Some(_) => None,
            None => positions.block_after(self.start, damage.to.saturating_sub(self.start)),
        };
        if let Some(block) = block {
            self.position = self.start + block.offset;
            self.reopen = Some(block.open).filter(|open| !open.is_live());
            report.lose_bytes(from, self.position, Some(&self.key), &damage.what);
            return marker;
        }
        self.ended = true;
        let next = self.end.or_else(|| positions.after(self.start, damage.to, report));
        let next = next.or_else(|| super::resync::find(files, window, damage.to, Some(&self.key)));
        self.position = next.unwrap_or_else(|| files.data.length());
        let partitions = positions.take_passed();
        report.lose(from, self.position, partitions, Some(&self.key), &damage.what);
        marker
    }
}
