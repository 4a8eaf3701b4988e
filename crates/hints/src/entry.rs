//! A hint in a file.
//!
//! ```text
//! i32 size of the hint | u32 CRC-32 of these 4 bytes
//! hint: i64 creation, milliseconds since 1970 | unsigned vint gc_grace of its tables, seconds,
//!       the least | mutation
//! u32 the same CRC-32 continued over the hint
//! ```
//!
//! A hint may be applied until creation + gc_grace. Later its target may have purged deletions
//! that the hint would undo. `org.apache.cassandra.hints.HintsWriter`, `HintsReader`, `Hint`.

use stdx::{Cursor, put_i64, put_u32, put_uvint};

use crate::error::HintError;

/// Bytes of an entry beside its hint.
pub const ENTRY_OVERHEAD: usize = 12;
/// Bytes of an entry before its hint.
const HEAD: usize = 8;

/// A hint as it is stored, with sizes and checksums. It has the same bytes for every host that it
/// is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry(Vec<u8>);

impl Entry {
    /// An entry whose mutation `put` appends. None: the hint has 2 GiB or more.
    pub fn new(created_millis: i64, gc_grace: u32, put: impl FnOnce(&mut Vec<u8>)) -> Option<Self> {
        let mut out = vec![0; HEAD];
        put_i64(&mut out, created_millis);
        put_uvint(&mut out, u64::from(gc_grace));
        put(&mut out);
        Self::finish(out)
    }

    /// An entry of a hint that came from another node. None: a hint of 2 GiB or more, or an empty
    /// one.
    pub fn of_hint(hint: &[u8]) -> Option<Self> {
        let mut out = Vec::with_capacity(hint.len() + ENTRY_OVERHEAD);
        out.resize(HEAD, 0);
        out.extend_from_slice(hint);
        Self::finish(out)
    }

    fn finish(mut out: Vec<u8>) -> Option<Self> {
        // readers take an entry of nothing for the end of what can be read
        let size = i32::try_from(out.len().checked_sub(HEAD)?).ok().filter(|size| *size > 0)?.to_be_bytes();
        let mut crc = crc32fast::Hasher::new();
        crc.update(&size);
        let of_size = crc.clone().finalize().to_be_bytes();
        let (head, hint) = out.split_at_mut(HEAD);
        let (for_size, for_checksum) = head.split_at_mut(size.len());
        for_size.copy_from_slice(&size);
        for_checksum.copy_from_slice(&of_size);
        crc.update(hint);
        put_u32(&mut out, crc.finalize());
        debug_assert!(
            matches!(find(&out), Found::Hint(_, whole) if whole == out.len()),
            "an entry is read as it is written"
        );
        Some(Self(out))
    }

    /// The bytes of the entry.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The content of a file at one position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found<'a> {
    /// A hint, and the size of its entry.
    Hint(&'a [u8], usize),
    /// An entry of this size whose hint does not match its checksum: only this entry is lost.
    Damaged(usize),
    /// The entry is longer than the given bytes: it needs so many in all.
    Incomplete(usize),
    /// No entry begins here, so nothing behind this position can be read.
    Nothing,
}

/// Looks at the entry at the start of `bytes`.
pub fn find(bytes: &[u8]) -> Found<'_> {
    let mut cursor = Cursor::new(bytes);
    let (Ok(size), Ok(of_size)) = (cursor.u32(), cursor.u32()) else { return Found::Incomplete(HEAD) };
    let mut crc = crc32fast::Hasher::new();
    crc.update(&size.to_be_bytes());
    if of_size != crc.clone().finalize() || size == 0 || size > i32::MAX as u32 {
        return Found::Nothing;
    }
    let whole = size as usize + ENTRY_OVERHEAD;
    let (Ok(hint), Ok(expected)) = (cursor.take(size as usize), cursor.u32()) else { return Found::Incomplete(whole) };
    crc.update(hint);
    if expected == crc.finalize() { Found::Hint(hint, whole) } else { Found::Damaged(whole) }
}

/// A hint taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hint<'a> {
    /// When the hint was made, milliseconds since 1970.
    pub created_millis: i64,
    /// The least `gc_grace_seconds` of its tables at that time, seconds.
    pub gc_grace: u32,
    /// The mutation, as messages and the commit log have it.
    pub mutation: &'a [u8],
}

impl<'a> Hint<'a> {
    /// A hint from its bytes.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, HintError> {
        let mut cursor = Cursor::new(bytes);
        let (created_millis, gc_grace) = (cursor.i64()?, cursor.uvint()?);
        let at = cursor.position() as u64;
        let gc_grace = u32::try_from(gc_grace).ok().filter(|seconds| *seconds <= i32::MAX as u32);
        let gc_grace = gc_grace.ok_or_else(|| HintError::Corrupt("gc_grace is no number of seconds".to_owned(), at))?;
        Ok(Self { created_millis, gc_grace, mutation: cursor.rest() })
    }

    /// Whether the hint may still be applied. `gc_grace`: the present least gc_grace of its
    /// tables, seconds.
    pub fn is_live(&self, gc_grace: u32, now_millis: i64) -> bool {
        let life = i64::from(self.gc_grace.min(gc_grace)) * 1000;
        self.created_millis.saturating_add(life) > now_millis
    }
}
