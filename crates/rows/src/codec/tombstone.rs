//! Inspects tombstones without decoding them, so that a reader can pass over the tombstones of a
//! partition.
//!
//! A row is a tombstone if it has a deletion and nothing else; a marker always is. These functions
//! return None for everything that is not plainly a tombstone. The caller then decodes it and meets
//! any error in it.

use smallvec::SmallVec;
use stdx::Cursor;

use super::decode::get_deletion_delta;
use super::peek::clustering_value;
use super::{
    CodecError, END_OF_PARTITION, EXTENSION, HAS_ALL_COLUMNS, HAS_COMPLEX_DELETION, HAS_DELETION, HAS_TIMESTAMP,
    HAS_TTL, Header, IS_MARKER, LARGE_SUBSET, Peeked,
};
use crate::{DeletionTime, PrefixKind};

/// The extent of a tombstone's deletion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deleted {
    /// The row itself.
    Row(DeletionTime),
    /// The ranges before and behind a marker, in clustering order.
    Range {
        /// The deletion that ends at the marker; None: no range ends here.
        close: Option<DeletionTime>,
        /// The deletion that starts at the marker; None: no range starts here.
        open: Option<DeletionTime>,
    },
}

/// A tombstone of a partition on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeekedTombstone<'a> {
    /// Its position and the offset of its end.
    pub position: Peeked<'a>,
    /// The deletion.
    pub deleted: Deleted,
}

/// The tombstone at `offset` of a partition on disk. None: something else stands there. `Truncated`
/// means that the buffer ends too early and a longer one may do.
#[inline]
pub fn peek_tombstone<'a>(
    buffer: &'a [u8],
    offset: usize,
    header: &Header,
) -> Result<Option<PeekedTombstone<'a>>, CodecError> {
    let mut cursor = Cursor::new(buffer.get(offset..).ok_or(CodecError::Truncated)?);
    let flags = cursor.u8()?;
    let mut kind = PrefixKind::Clustering;
    let mut count = header.clustering_lengths.len();
    if flags & (END_OF_PARTITION | EXTENSION) != 0 {
        return Ok(None);
    } else if flags & IS_MARKER != 0 {
        kind = match PrefixKind::from_ordinal(cursor.u8()?) {
            Some(kind) if kind.is_boundary() || kind.is_start() || kind.is_end() => kind,
            _ => return Ok(None),
        };
        count = usize::from(cursor.u16()?);
    } else if !has_deletion_only(flags) {
        return Ok(None);
    }
    let Some(lengths) = header.clustering_lengths.get(..count) else { return Ok(None) };
    let mut values = SmallVec::new();
    for run in lengths.chunks(32) {
        let mut bits = cursor.uvint()?;
        for length in run {
            values.push(clustering_value(&mut cursor, bits, *length)?);
            bits >>= 2;
        }
    }
    // the size, which must lie in the buffer, and the size of the unfiltered before
    if cursor.uvint()? > cursor.remaining() as u64 {
        return Err(CodecError::Truncated);
    }
    cursor.uvint()?;
    let deleted = if kind == PrefixKind::Clustering {
        match row_deletion(&mut cursor, flags, header)? {
            Some(deletion) => Deleted::Row(deletion),
            None => return Ok(None),
        }
    } else {
        let close = if kind.is_start() { None } else { Some(get_deletion_delta(&mut cursor, header)?) };
        let open = if kind.is_end() { None } else { Some(get_deletion_delta(&mut cursor, header)?) };
        Deleted::Range { close, open }
    };
    let position = Peeked { kind, values, end: offset + cursor.position() };
    Ok(Some(PeekedTombstone { position, deleted }))
}

/// The deletion of a row that has nothing else. The row stands alone in the buffer, written for a
/// message. None: it has something else.
#[inline]
pub fn deletion_of_row(buffer: &[u8], header: &Header) -> Option<DeletionTime> {
    let mut cursor = Cursor::new(buffer);
    let flags = cursor.u8().ok()?;
    if flags & (END_OF_PARTITION | EXTENSION | IS_MARKER) != 0 || !has_deletion_only(flags) {
        return None;
    }
    for run in header.clustering_lengths.chunks(32) {
        let mut bits = cursor.uvint().ok()?;
        for length in run {
            clustering_value(&mut cursor, bits, *length).ok()?;
            bits >>= 2;
        }
    }
    row_deletion(&mut cursor, flags, header).ok()?
}

/// Whether the flags of a row allow only a deletion.
#[inline]
fn has_deletion_only(flags: u8) -> bool {
    flags & (HAS_TIMESTAMP | HAS_TTL | HAS_COMPLEX_DELETION | HAS_DELETION) == HAS_DELETION
}

/// Reads the part of a row behind its clustering. None: it is not a deletion alone.
#[inline]
fn row_deletion(cursor: &mut Cursor<'_>, flags: u8, header: &Header) -> Result<Option<DeletionTime>, CodecError> {
    let deletion = get_deletion_delta(cursor, header)?;
    let total = header.regulars.len();
    let is_empty = if flags & HAS_ALL_COLUMNS != 0 {
        total == 0
    } else if total < LARGE_SUBSET {
        // all columns are marked as missing
        cursor.uvint()? == (1 << total) - 1
    } else {
        cursor.uvint()? == total as u64
    };
    Ok((is_empty && !deletion.is_live()).then_some(deletion))
}
