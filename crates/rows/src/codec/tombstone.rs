//! Tombstones seen where they stand: how a reader passes over those of a partition without taking them apart.
//!
//! A row is one if a deletion is all that it has; a marker always is. What is anything else, or is not plainly a tombstone, is nothing to
//! these functions: whoever asks decodes it, and meets there whatever is wrong with it.

use smallvec::SmallVec;
use stdx::Cursor;

use super::decode::get_deletion_delta;
use super::peek::clustering_value;
use super::{
    CodecError, END_OF_PARTITION, EXTENSION, HAS_ALL_COLUMNS, HAS_COMPLEX_DELETION, HAS_DELETION, HAS_TIMESTAMP,
    HAS_TTL, Header, IS_MARKER, LARGE_SUBSET, Peeked,
};
use crate::{DeletionTime, PrefixKind};

/// What a tombstone deletes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Deleted {
    /// The row that it stands for.
    Row(DeletionTime),
    /// What lies before a marker, and behind it, in clustering order.
    Range {
        /// The deletion that ends here.
        close: Option<DeletionTime>,
        /// The deletion that starts here.
        open: Option<DeletionTime>,
    },
}

/// A tombstone of a partition on disk.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PeekedTombstone<'a> {
    /// Where it stands and ends.
    pub position: Peeked<'a>,
    /// What it is.
    pub deleted: Deleted,
}

/// The tombstone at `offset` of a partition on disk; None: what stands there is something else.
/// `Truncated`: the buffer ends too early; a longer one may do.
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
    // its size, as far as the content goes by itself, and that of the one before
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

/// The deletion of a row that is in a buffer by itself, written for a message, where that is all that the row has.
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

/// As far as the flags of a row say.
#[inline]
fn has_deletion_only(flags: u8) -> bool {
    flags & (HAS_TIMESTAMP | HAS_TTL | HAS_COMPLEX_DELETION | HAS_DELETION) == HAS_DELETION
}

/// What stands in a row behind its clustering: a deletion and no column.
#[inline]
fn row_deletion(cursor: &mut Cursor<'_>, flags: u8, header: &Header) -> Result<Option<DeletionTime>, CodecError> {
    let deletion = get_deletion_delta(cursor, header)?;
    let total = header.regulars.len();
    let is_empty = if flags & HAS_ALL_COLUMNS != 0 {
        total == 0
    } else if total < LARGE_SUBSET {
        // the bits of those that are missing
        cursor.uvint()? == (1 << total) - 1
    } else {
        cursor.uvint()? == total as u64
    };
    Ok((is_empty && !deletion.is_live()).then_some(deletion))
}
