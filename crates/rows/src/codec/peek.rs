//! Reads the position of an unfiltered without its content. A reader uses it to pass over rows
//! before a slice, and to find the starts of rows when it goes backwards. For files only, where
//! each unfiltered carries its size.

use std::cmp::Ordering;

use schema::ClusteringComparator;
use smallvec::SmallVec;
use stdx::Cursor;

use super::{CodecError, END_OF_PARTITION, EXTENSION, Header, IS_MARKER, IS_STATIC, invalid};
use crate::{ClusteringPrefix, PrefixKind};

/// The position of an unfiltered and the offset of its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peeked<'a> {
    /// Whether it is a row, a bound or a boundary.
    pub kind: PrefixKind,
    /// The clustering values.
    pub values: SmallVec<[Option<&'a [u8]>; 2]>,
    /// Offset behind the unfiltered; it may lie behind the buffer.
    pub end: usize,
}

impl Peeked<'_> {
    /// Compares in clustering order, not reversed.
    #[inline]
    pub fn compare(&self, other: &ClusteringPrefix, comparator: &ClusteringComparator) -> Ordering {
        for (index, (a, b)) in self.values.iter().zip(&other.values).enumerate() {
            let order = comparator.compare_component(index, *a, b.as_deref());
            if order != Ordering::Equal {
                return order;
            }
        }
        match self.values.len().cmp(&other.values.len()) {
            Ordering::Equal => self.kind.side().cmp(&other.kind.side()),
            Ordering::Less if self.kind.side() < 0 => Ordering::Less,
            Ordering::Less => Ordering::Greater,
            Ordering::Greater if other.kind.side() < 0 => Ordering::Greater,
            Ordering::Greater => Ordering::Less,
        }
    }
}

/// Most rows that [`pass_rows_before`] passes between two comparisons.
const STRIDE_MAX: u32 = 31;

/// Passes over rows from `offset` on that stand before `bound`, at most about `most`.
///
/// Returns their number and the offset of the first unfiltered that is not passed: a row behind the
/// bound, a marker, the end of the partition, or a row whose position is not wholly in the buffer.
/// `Truncated` if that is so for the very first. The content of a row, and so the offset, may lie
/// behind the buffer.
///
/// Rows ascend, so not each has to be compared: strides grow while the row that they lead to stands
/// before the bound, and are halved afterwards.
pub fn pass_rows_before(
    buffer: &[u8],
    offset: usize,
    header: &Header,
    comparator: &ClusteringComparator,
    bound: &ClusteringPrefix,
    most: u32,
) -> Result<(u32, usize), CodecError> {
    let (mut passed, mut at, mut stride, mut grows) = (0, offset, 0, true);
    while passed < most {
        let order = match behind_rows(buffer, at, stride, header) {
            Some(far) => row_order(buffer, far, header, comparator, bound),
            None => Ok(None),
        };
        match order {
            Ok(Some((Ordering::Less, end))) => {
                passed += stride + 1;
                at = end;
                if at >= buffer.len() {
                    break;
                }
            }
            _ if stride > 0 => grows = false,
            Ok(_) => break,
            Err(CodecError::Truncated) if passed > 0 => break,
            Err(error) => return Err(error),
        }
        stride = if grows { (stride * 2 + 1).min(STRIDE_MAX) } else { stride / 2 };
    }
    Ok((passed, at))
}

/// The offset behind `count` rows. None: one of them is not a row, or its position is not wholly in
/// this buffer.
#[inline]
fn behind_rows(buffer: &[u8], offset: usize, count: u32, header: &Header) -> Option<usize> {
    let mut at = offset;
    for _ in 0..count {
        at = row_end(buffer, at, header)?;
    }
    Some(at)
}

/// The offset behind the row at `offset`. None: it is not a row, its position is not wholly in this
/// buffer, or it is malformed.
#[inline]
fn row_end(buffer: &[u8], offset: usize, header: &Header) -> Option<usize> {
    let flags = *buffer.get(offset)?;
    if flags & (END_OF_PARTITION | IS_MARKER | EXTENSION) != 0 {
        return None;
    }
    plain_row_end(buffer, offset, header).or_else(|| any_row_end(buffer, offset, header))
}

/// Like [`row_end`], for the usual row: no value is null, empty or long, and the size takes one or
/// two bytes.
#[inline]
fn plain_row_end(buffer: &[u8], offset: usize, header: &Header) -> Option<usize> {
    let lengths = &header.clustering_lengths;
    if *buffer.get(offset + 1)? != 0 || lengths.len() > 32 {
        return None;
    }
    let mut at = offset + 2;
    match header.clustering_width {
        Some(width) => at += width,
        None => {
            for length in lengths {
                at += match length {
                    Some(length) => *length,
                    None => match *buffer.get(at)? {
                        length @ ..0x80 => 1 + usize::from(length),
                        _ => return None,
                    },
                };
            }
        }
    }
    match *buffer.get(at)? {
        size @ ..0x80 => Some(at + 1 + usize::from(size)),
        high @ 0x80..0xc0 => Some(at + 2 + (usize::from(high & 0x3f) << 8 | usize::from(*buffer.get(at + 1)?))),
        _ => None,
    }
}

/// Like [`row_end`], for any row.
#[cold]
fn any_row_end(buffer: &[u8], offset: usize, header: &Header) -> Option<usize> {
    let mut cursor = Cursor::new(buffer.get(offset + 1..)?);
    for run in header.clustering_lengths.chunks(32) {
        let mut bits = cursor.uvint().ok()?;
        for length in run {
            clustering_value(&mut cursor, bits, *length).ok()?;
            bits >>= 2;
        }
    }
    let size = usize::try_from(cursor.uvint().ok()?).ok()?;
    (offset + 1 + cursor.position()).checked_add(size)
}

/// Reads a clustering value, given the two lowest bits of its run's header and the length of its
/// type.
#[inline]
pub(super) fn clustering_value<'a>(
    cursor: &mut Cursor<'a>,
    bits: u64,
    length: Option<usize>,
) -> Result<Option<&'a [u8]>, CodecError> {
    Ok(match (bits & 3, length) {
        (0, Some(length)) => Some(cursor.take(length)?),
        (0, None) => Some(cursor.vbytes()?),
        (1, _) => Some(Default::default()),
        _ => None,
    })
}

/// Compares the row at `offset` with a bound while reading it, and returns the offset behind it.
/// None: there is no row.
#[inline]
fn row_order(
    buffer: &[u8],
    offset: usize,
    header: &Header,
    comparator: &ClusteringComparator,
    bound: &ClusteringPrefix,
) -> Result<Option<(Ordering, usize)>, CodecError> {
    let mut cursor = Cursor::new(buffer.get(offset..).ok_or(CodecError::Truncated)?);
    let flags = cursor.u8()?;
    if flags & (END_OF_PARTITION | IS_MARKER | EXTENSION) != 0 {
        return Ok(None);
    }
    let mut order = Ordering::Equal;
    let mut bits = 0;
    for (index, length) in header.clustering_lengths.iter().enumerate() {
        if index.is_multiple_of(32) {
            bits = cursor.uvint()?;
        }
        let value = clustering_value(&mut cursor, bits, *length)?;
        bits >>= 2;
        if order == Ordering::Equal
            && let Some(wanted) = bound.values.get(index)
        {
            order = comparator.compare_component(index, value, wanted.as_deref());
        }
    }
    if order == Ordering::Equal {
        order = if bound.kind.side() < 0 { Ordering::Greater } else { Ordering::Less };
    }
    let size = cursor.uvint()?;
    let end = usize::try_from(size).ok().and_then(|size| (offset + cursor.position()).checked_add(size));
    match end {
        Some(end) => Ok(Some((order, end))),
        None => invalid(format!("an unfiltered of {size} bytes")),
    }
}

/// The result of [`find_starts`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundStarts {
    /// Whether the partition ends behind them.
    pub is_end: bool,
    /// Whether some of them are markers.
    pub has_markers: bool,
}

/// Finds where the unfiltereds from `offset` to `end` begin. Returns what was found and the offset
/// behind the last one, where the search goes on; it may lie behind the buffer. `Truncated`: not
/// even the first position is wholly in this buffer.
pub fn find_starts(
    buffer: &[u8],
    offset: usize,
    end: usize,
    header: &Header,
    mut tell: impl FnMut(usize),
) -> Result<(FoundStarts, usize), CodecError> {
    let mut found = FoundStarts { is_end: false, has_markers: false };
    let mut at = offset;
    while at < end.min(buffer.len()) {
        let next = match row_end(buffer, at, header) {
            Some(next) => next,
            None => match peek_unfiltered(buffer, at, header) {
                Ok(Some(peeked)) => {
                    found.has_markers |= peeked.kind != PrefixKind::Clustering;
                    peeked.end
                }
                Ok(None) => {
                    found.is_end = true;
                    return Ok((found, at + 1));
                }
                Err(CodecError::Truncated) if at > offset => break,
                Err(error) => return Err(error),
            },
        };
        tell(at);
        at = next;
    }
    Ok((found, at))
}

/// The position of the unfiltered at `offset` of a partition on disk. None: the partition ends
/// there, with one byte.
pub fn peek_unfiltered<'a>(buffer: &'a [u8], offset: usize, header: &Header) -> Result<Option<Peeked<'a>>, CodecError> {
    Ok(peek(buffer, offset, header)?.map(|(peeked, _)| peeked))
}

/// The distance from the unfiltered at `offset` to the one before it, or to the start of its
/// partition. None: the partition ends.
pub fn peek_previous_size(buffer: &[u8], offset: usize, header: &Header) -> Result<Option<u64>, CodecError> {
    match peek(buffer, offset, header)? {
        Some((_, mut cursor)) => Ok(Some(cursor.uvint()?)),
        None => Ok(None),
    }
}

/// Also returns the cursor behind the size.
fn peek<'a>(buffer: &'a [u8], offset: usize, header: &Header) -> Result<Option<(Peeked<'a>, Cursor<'a>)>, CodecError> {
    let mut cursor = Cursor::new(buffer.get(offset..).ok_or(CodecError::Truncated)?);
    let flags = cursor.u8()?;
    if flags & END_OF_PARTITION != 0 {
        return Ok(None);
    }
    let mut kind = PrefixKind::Clustering;
    let mut count = header.clustering.len();
    if flags & IS_MARKER != 0 {
        let ordinal = cursor.u8()?;
        kind = match PrefixKind::from_ordinal(ordinal) {
            Some(kind) if kind.is_boundary() || kind.is_start() || kind.is_end() => kind,
            _ => return invalid(format!("a range tombstone marker of kind {ordinal}")),
        };
        count = usize::from(cursor.u16()?);
    } else if flags & EXTENSION != 0 && cursor.u8()? & IS_STATIC != 0 {
        return invalid("a static row among the rows of a partition");
    }
    let Some(lengths) = header.clustering_lengths.get(..count) else {
        return invalid(format!("a bound of {count} values in a table of {}", header.clustering.len()));
    };
    let mut values = SmallVec::new();
    for run in lengths.chunks(32) {
        let mut bits = cursor.uvint()?;
        for length in run {
            values.push(clustering_value(&mut cursor, bits, *length)?);
            bits >>= 2;
        }
    }
    let size = cursor.uvint()?;
    let end = usize::try_from(size).ok().and_then(|size| (offset + cursor.position()).checked_add(size));
    match end {
        Some(end) => Ok(Some((Peeked { kind, values, end }, cursor))),
        None => invalid(format!("an unfiltered of {size} bytes")),
    }
}
