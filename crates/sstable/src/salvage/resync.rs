//! Finds where a partition begins when nothing says so: by what a partition looks like.
//!
//! A key that is valid for its type and above the last one; a deletion within the ranges that
//! Statistics.db has; then an unfiltered that tells its distance to the partition's start rightly,
//! fills its size exactly, and is followed by another such or the partition's end. A partition
//! without rows must be followed by one that is recognised, or by the end of the data.

use bytes::Bytes;
use rows::DeletionTime;
use rows::codec::{CodecError, decode_static_row, decode_unfiltered, peek_previous_size, peek_unfiltered};
use stdx::Cursor;
use types::DecoratedKey;

use super::open::SalvageFiles;
use super::partition::partition_deletion;
use super::window::Window;

/// So many partitions without rows one behind the other are recognised without more.
const RUN_MAX: usize = 64;
/// Longer heads and first rows are not recognised.
const LOOK_AHEAD: usize = 4 * 1024 * 1024;

/// The first place from `from` on where a partition seems to begin.
pub fn find(files: &SalvageFiles, window: &mut Window, from: u64, last: Option<&DecoratedKey>) -> Option<u64> {
    let mut position = from;
    while position < files.data.length() {
        match window.at(&files.data, position) {
            Err(damage) => position = damage.to.max(position + 1),
            Ok(bytes) => match find_in(files, &bytes, last, position + bytes.len() as u64 >= files.data.length()) {
                HeadSearch::At(offset) => return Some(position + offset as u64),
                HeadSearch::Unclear(offset) => {
                    position += offset as u64;
                    let longer = bytes.len() - offset < LOOK_AHEAD && window.extend(&files.data, position).is_ok();
                    if !longer {
                        position += 1;
                    }
                }
                HeadSearch::No => position += bytes.len() as u64,
            },
        }
    }
    None
}

enum HeadSearch {
    At(usize),
    /// More bytes are needed to tell.
    Unclear(usize),
    No,
}

/// `is_end`: the data ends with these bytes.
fn find_in(files: &SalvageFiles, bytes: &Bytes, last: Option<&DecoratedKey>, is_end: bool) -> HeadSearch {
    for offset in 0..bytes.len() {
        match looks_like_head(files, bytes, offset, last, is_end) {
            Ok(true) => return HeadSearch::At(offset),
            Err(CodecError::Truncated) => return HeadSearch::Unclear(offset),
            Ok(false) | Err(CodecError::Invalid(_) | CodecError::UnknownColumn(_)) => {}
        }
    }
    HeadSearch::No
}

/// A head that was recognised as far as it goes.
struct Head {
    key: DecoratedKey,
    /// The position of its first unfiltered.
    body: usize,
    /// Without rows it would say something.
    says_something: bool,
}

/// The head at `offset`, if it can be one.
fn head_at(
    files: &SalvageFiles,
    bytes: &Bytes,
    offset: usize,
    last: Option<&DecoratedKey>,
) -> Result<Option<Head>, CodecError> {
    let mut cursor = Cursor::new(bytes.get(offset..).ok_or(CodecError::Truncated)?);
    let key = cursor.short_bytes()?;
    if key.is_empty() || types::validate(&files.table.partition_key_type, key).is_err() {
        return Ok(None);
    }
    let deletion = partition_deletion(&mut cursor, files.version)?;
    let key = files.table.decorate(bytes.slice_ref(key));
    if last.is_some_and(|last| *last >= key) || !is_plausible(files, &deletion) {
        return Ok(None);
    }
    let mut head = Head { key, body: offset + cursor.position(), says_something: !deletion.is_live() };
    if !files.header.statics.is_empty() {
        let (row, next) = decode_static_row(bytes, head.body, &files.header, true)?;
        head.says_something |= !row.is_empty();
        head.body = next;
    }
    Ok(Some(head))
}

/// A deletion lies within what Statistics.db says of its SSTable.
fn is_plausible(files: &SalvageFiles, deletion: &DeletionTime) -> bool {
    let Some(statistics) = &files.statistics else { return true };
    let stats = &statistics.stats;
    deletion.is_live()
        || (stats.min_timestamp..=stats.max_timestamp).contains(&deletion.marked_for_delete_at)
            && (stats.min_local_deletion_time..=stats.max_local_deletion_time).contains(&deletion.local_deletion_time)
}

/// A partition begins here, or a run of partitions without rows before one with rows, or before the
/// end of the data.
fn looks_like_head(
    files: &SalvageFiles,
    bytes: &Bytes,
    offset: usize,
    last: Option<&DecoratedKey>,
    is_end: bool,
) -> Result<bool, CodecError> {
    let mut at = offset;
    let mut last = last.cloned();
    for _ in 0..RUN_MAX {
        if at == bytes.len() && at > offset && is_end {
            return Ok(true);
        }
        let Some(head) = head_at(files, bytes, at, last.as_ref())? else { return Ok(false) };
        if peek_unfiltered(bytes, head.body, &files.header)?.is_some() {
            return has_first_row(files, bytes, head.body, (head.body - at) as u64);
        }
        if !head.says_something {
            return Ok(false);
        }
        at = head.body + 1;
        last = Some(head.key);
    }
    Ok(true)
}

/// The unfiltered at `body` and what follows it tell the distance to what is before them rightly.
fn has_first_row(files: &SalvageFiles, bytes: &Bytes, body: usize, distance: u64) -> Result<bool, CodecError> {
    let header = &files.header;
    let Some(peeked) = peek_unfiltered(bytes, body, header)? else { return Ok(false) };
    if peek_previous_size(bytes, body, header)? != Some(distance) {
        return Ok(false);
    }
    let (_, end) = decode_unfiltered(bytes, body, header, true)?;
    if end != peeked.end {
        return Ok(false);
    }
    let next = peek_previous_size(bytes, end, header)?;
    Ok(next.is_none_or(|distance| distance == (end - body) as u64))
}
