//! The position of an unfiltered without its content: how a reader passes over rows before a slice, and finds the starts of
//! rows when it goes backwards. On disk only, where each unfiltered carries its size.

use std::cmp::Ordering;

use schema::ClusteringComparator;
use smallvec::SmallVec;
use stdx::Cursor;

use super::{CodecError, END_OF_PARTITION, EXTENSION, Header, IS_MARKER, IS_STATIC, invalid};
use crate::{ClusteringPrefix, PrefixKind};

/// Where an unfiltered stands, and where it ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peeked<'a> {
    /// Row, bound or boundary.
    pub kind: PrefixKind,
    /// Its clustering values.
    pub values: SmallVec<[Option<&'a [u8]>; 2]>,
    /// Offset behind it; may lie behind the buffer.
    pub end: usize,
}

impl Peeked<'_> {
    /// Order in the partition, not reversed.
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

/// Passes over rows from `offset` on that stand before `bound`.
/// Gives how many, and the offset of the first that does not, or is a marker, or the end, or is not wholly peekable in this
/// buffer; `Truncated` where that is so for the first. A row's content may lie behind the buffer: so may the offset.
pub fn pass_rows_before(
    buffer: &[u8],
    offset: usize,
    header: &Header,
    comparator: &ClusteringComparator,
    bound: &ClusteringPrefix,
) -> Result<(u32, usize), CodecError> {
    let mut passed = 0;
    let mut at = offset;
    loop {
        match row_order(buffer, at, header, comparator, bound) {
            Ok(Some((Ordering::Less, end))) => {
                passed += 1;
                at = end;
                if at >= buffer.len() {
                    return Ok((passed, at));
                }
            }
            Ok(_) => return Ok((passed, at)),
            Err(CodecError::Truncated) if passed > 0 => return Ok((passed, at)),
            Err(error) => return Err(error),
        }
    }
}

/// Where the row at `offset` stands against a bound, and where it ends; None: there is no row. Compares as it reads.
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
    for (index, ty) in header.clustering.iter().enumerate() {
        if index.is_multiple_of(32) {
            bits = cursor.uvint()?;
        }
        let value = match bits & 3 {
            0 => Some(match ty.fixed_length() {
                Some(length) => cursor.take(length)?,
                None => cursor.vbytes()?,
            }),
            1 => Some(Default::default()),
            _ => None,
        };
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

/// The position of the unfiltered at `offset` of a partition on disk; None: the partition ends there, with one byte.
pub fn peek_unfiltered<'a>(buffer: &'a [u8], offset: usize, header: &Header) -> Result<Option<Peeked<'a>>, CodecError> {
    Ok(peek(buffer, offset, header)?.map(|(peeked, _)| peeked))
}

/// The distance that an unfiltered on disk gives to the one before it, or to the start of its partition; None: the partition ends.
pub fn peek_previous_size(buffer: &[u8], offset: usize, header: &Header) -> Result<Option<u64>, CodecError> {
    match peek(buffer, offset, header)? {
        Some((_, mut cursor)) => Ok(Some(cursor.uvint()?)),
        None => Ok(None),
    }
}

/// Also gives the cursor behind the size.
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
    let Some(types) = header.clustering.get(..count) else {
        return invalid(format!("a bound of {count} values in a table of {}", header.clustering.len()));
    };
    let mut values = SmallVec::new();
    for run in types.chunks(32) {
        let mut bits = cursor.uvint()?;
        for ty in run {
            values.push(match bits & 3 {
                0 => Some(match ty.fixed_length() {
                    Some(length) => cursor.take(length)?,
                    None => cursor.vbytes()?,
                }),
                1 => Some(Default::default()),
                _ => None,
            });
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
