//! `Index.db`: an entry for each partition, in the order of Data.db.
//!
//! ```text
//! short-bytes key; uvint position in Data.db; uvint size of what follows, 0: nothing;
//! then see `promoted`
//! ```
//! A lookup goes by [`Summary`] to a run of entries and compares their keys. Whoever trusts a
//! sample first compares its key with that of the entry it leads to, also of the sample behind: a
//! damaged sample is always one of the two. Then, or where there is no summary, one is made by a
//! walk over the entries. Agrees with
//! `org.apache.cassandra.io.sstable.format.big.{BigTableReader,RowIndexEntry}`.

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use rows::ReadMode;
use rows::codec::DeletionTimeForm;
use stdx::Cursor;
use types::{CqlType, DecoratedKey, Token};

use super::summary::{Summary, SummaryBuilder};
use super::{PartitionPosition, RowIndex, promoted};
use crate::error::{IndexError, Malformed};
use crate::index_file::{Access, IndexFile, Pages};
use crate::read_schema::ReadSchema;

/// The order of keys in an SSTable.
#[derive(Clone, PartialEq, Debug)]
pub enum KeyOrder {
    /// By token, then bytes.
    Murmur3,
    /// The order of a type: legacy index tables. There are no tokens.
    Local(CqlType),
}

impl KeyOrder {
    /// A key with its place.
    pub fn decorate(&self, key: Bytes) -> DecoratedKey {
        match self {
            Self::Murmur3 => DecoratedKey::new(key),
            Self::Local(ty) => DecoratedKey::local(ty, key),
        }
    }

    /// Where a stored key stands against one that is looked for, or against all keys of a token.
    #[inline]
    fn compare(&self, stored: &[u8], token: Token, key: Option<&DecoratedKey>) -> Ordering {
        match (self, key) {
            // the order in which keys are written; that of `types::compare` differs for some empty
            // values
            (Self::Local(_), Some(key)) => {
                let stored = self.decorate(Bytes::copy_from_slice(stored));
                match &key.local {
                    Some(_) => stored.cmp(key),
                    None => stored.cmp(&self.decorate(key.key.clone())),
                }
            }
            // no order by tokens: everything is behind
            (Self::Local(_), None) => Ordering::Greater,
            (Self::Murmur3, None) => {
                if Token::of_key(stored) < token {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            (Self::Murmur3, Some(key)) => Token::of_key(stored).cmp(&token).then_with(|| stored.cmp(&key.key)),
        }
    }
}

/// Bytes of an entry that are read at first; enough unless its key is long.
const ENTRY_LEN: usize = 256;
/// The most bytes that an entry takes, without its row index: a key, and two integers.
const ENTRY_LEN_MAX: usize = 2 + u16::MAX as usize + 18;

/// An entry without what follows.
struct Entry {
    key: Bytes,
    data_position: u64,
    /// Where the row index is, if there is one.
    body: std::ops::Range<u64>,
}

fn entry(pages: &mut Pages, at: u64) -> Result<Entry, IndexError> {
    if at > pages.len() {
        return Err(Malformed::at(at, "an entry beyond the end of the file").into());
    }
    let file_len = pages.len();
    let bytes = pages.bytes(at, ENTRY_LEN)?;
    let read = match decode_entry(&bytes, at, file_len) {
        // a long key
        Err(_) if bytes.len() == ENTRY_LEN => decode_entry(&pages.bytes(at, ENTRY_LEN_MAX)?, at, file_len),
        read => read,
    };
    Ok(read.map_err(|error| error.behind(at))?)
}

fn decode_entry(bytes: &Bytes, at: u64, file_len: u64) -> Result<Entry, Malformed> {
    let mut cursor = Cursor::new(bytes);
    let key = bytes.slice_ref(cursor.short_bytes()?);
    let (data_position, size) = (cursor.uvint()?, cursor.uvint()?);
    let start = at + cursor.position() as u64;
    match start.checked_add(size).filter(|end| *end <= file_len) {
        Some(end) => Ok(Entry { key, data_position, body: start..end }),
        None => Err(Malformed::at(
            cursor.position() as u64,
            format!("a row index of {size} bytes, beyond the end of the file"),
        )),
    }
}

/// A read Index.db.
#[derive(Debug)]
pub struct BigIndex {
    file: IndexFile,
    summary: Summary,
    /// The file of the summary, where it was missing or not of this index and had to be made.
    pub made: Option<Bytes>,
    /// In the place of a summary that turned out to be damaged.
    rebuilt: OnceLock<Summary>,
    order: KeyOrder,
    form: DeletionTimeForm,
    interval: u32,
    /// The first key.
    pub first: Bytes,
    /// The last key.
    pub last: Bytes,
    /// Number of partitions.
    pub count: u64,
}

impl BigIndex {
    /// Over the file. Without a summary that fits one is made, with a sample every `interval`
    /// entries; what was wrong with it is given as a note.
    pub fn open(
        file: &IndexFile,
        summary: Option<&Bytes>,
        order: KeyOrder,
        form: DeletionTimeForm,
        interval: u32,
    ) -> Result<(Self, Option<String>), IndexError> {
        let mut pages = Pages::new(file.clone(), Access::IN_PASSING);
        let opened = match summary {
            Some(summary) => open_summary(&mut pages, summary),
            None => Err(Malformed::at(0, "missing").into()),
        };
        let (count, summary, made, note) = match opened {
            Ok((tail, summary)) => (summary.partitions(tail), summary, None, None),
            Err(IndexError::Read(error)) => return Err(error.into()),
            Err(IndexError::Malformed(error)) => {
                let (count, made) = rebuild(file, interval, ReadMode::Background)?;
                let note = format!("made again from Index.db, it was: {}", error.what);
                (count, Summary::open(&made)?, Some(made), Some(note))
            }
        };
        let (first, last) = (summary.first.clone(), summary.last.clone());
        let rebuilt = OnceLock::new();
        Ok((Self { file: file.clone(), summary, made, rebuilt, order, form, interval, first, last, count }, note))
    }

    /// The file.
    pub fn file(&self) -> &IndexFile {
        &self.file
    }

    /// Searches the summary; a damaged one is made again.
    fn with_summary<T>(
        &self,
        mode: ReadMode,
        mut search: impl FnMut(&Summary) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        match search(self.rebuilt.get().unwrap_or(&self.summary)) {
            Err(IndexError::Malformed(_)) if self.rebuilt.get().is_none() => {
                let summary = Summary::open(&rebuild(&self.file, self.interval, mode)?.1)?;
                search(self.rebuilt.get_or_init(|| summary))
            }
            result => result,
        }
    }

    /// The run of entries between two samples, of which the first fulfils `is_before` and the
    /// second does not.
    fn run(
        pages: &mut Pages,
        summary: &Summary,
        is_before: impl Fn(&[u8]) -> bool,
    ) -> Result<(u64, u64, bool), IndexError> {
        let behind = summary.partition_point(is_before)?;
        let start = check_sample(pages, summary, behind.saturating_sub(1))?;
        let end = if behind < summary.len { check_sample(pages, summary, behind)? } else { pages.len() };
        Ok((start, end, behind > 0))
    }

    /// The place of the partition of a key.
    pub fn find(&self, key: &DecoratedKey, access: Access) -> Result<Option<PartitionPosition>, IndexError> {
        let mut pages = Pages::new(self.file.clone(), access);
        let is_before = |stored: &[u8]| self.order.compare(stored, key.token, Some(key)) != Ordering::Greater;
        let (mut at, end, any) = self.with_summary(access.mode, |summary| Self::run(&mut pages, summary, is_before))?;
        while any && at < end {
            let entry = entry(&mut pages, at)?;
            if entry.key == key.key {
                return Ok(Some(place(at, &entry)));
            }
            at = entry.body.end;
        }
        Ok(None)
    }

    /// A cursor at the first partition.
    pub fn cursor(&self, access: Access) -> BigCursor {
        BigCursor { pages: Pages::new(self.file.clone(), access), at: 0 }
    }

    /// A cursor at the first partition that is not before a key, or before all keys of a token.
    pub fn cursor_from(
        &self,
        token: Token,
        key: Option<&DecoratedKey>,
        access: Access,
    ) -> Result<BigCursor, IndexError> {
        let mut pages = Pages::new(self.file.clone(), access);
        let is_before = |stored: &[u8]| self.order.compare(stored, token, key) == Ordering::Less;
        let (mut at, end, _) = self.with_summary(access.mode, |summary| Self::run(&mut pages, summary, is_before))?;
        while at < end {
            let entry = entry(&mut pages, at)?;
            if !is_before(&entry.key) {
                break;
            }
            at = entry.body.end;
        }
        Ok(BigCursor { pages, at })
    }

    /// Key and row index of the entry at a position.
    pub fn row_index(
        &self,
        position: u64,
        schema: &Arc<ReadSchema>,
        access: Access,
    ) -> Result<(Bytes, RowIndex), IndexError> {
        let mut pages = Pages::new(self.file.clone(), access);
        let entry = entry(&mut pages, position)?;
        Ok((entry.key, promoted::read(pages, entry.body, entry.data_position, self.form, schema)?))
    }
}

fn place(at: u64, entry: &Entry) -> PartitionPosition {
    if entry.body.is_empty() { PartitionPosition::Data(entry.data_position) } else { PartitionPosition::Rows(at) }
}

/// The position of a sample, if the entry there has its key.
fn check_sample(pages: &mut Pages, summary: &Summary, index: u32) -> Result<u64, IndexError> {
    let (key, position) = summary.sample(index)?;
    match entry(pages, position) {
        Ok(entry) if entry.key == key => Ok(position),
        Err(IndexError::Read(error)) => Err(error.into()),
        _ => Err(Malformed::at(0, format!("sample {index} does not lead to its key in Index.db")).into()),
    }
}

/// The summary, if it is one of Index.db, with the number of entries from the last sample on.
fn open_summary(pages: &mut Pages, summary: &Bytes) -> Result<(u64, Summary), IndexError> {
    let summary = Summary::open(summary)?;
    Ok((check_ends(pages, &summary)?, summary))
}

/// Whether the summary begins and ends as Index.db does. Gives the number of entries from the last
/// sample on.
fn check_ends(pages: &mut Pages, summary: &Summary) -> Result<u64, IndexError> {
    if check_sample(pages, summary, 0)? != 0 || entry(pages, 0)?.key != summary.first {
        return Err(Malformed::at(0, "it does not begin as Index.db does").into());
    }
    let mut at = check_sample(pages, summary, summary.len - 1)?;
    let mut tail = 0;
    let mut last = Bytes::new();
    while at < pages.len() {
        let entry = entry(pages, at)?;
        (last, at, tail) = (entry.key, entry.body.end, tail + 1);
    }
    if last != summary.last {
        return Err(Malformed::at(0, "it does not end as Index.db does").into());
    }
    Ok(tail)
}

/// Number of entries, and the file of a summary of them. Only the samples are kept.
fn rebuild(file: &IndexFile, interval: u32, mode: ReadMode) -> Result<(u64, Bytes), IndexError> {
    let mut pages = Pages::new(file.clone(), Access { mode, keeps: false });
    let mut builder = SummaryBuilder::new(interval);
    let mut at = 0;
    while at < pages.len() {
        let entry = entry(&mut pages, at)?;
        builder.add(&entry.key, at);
        at = entry.body.end;
    }
    if builder.partitions() == 0 {
        return Err(Malformed::at(0, "an index without entries").into());
    }
    Ok((builder.partitions(), builder.finish().into()))
}

/// Walks the entries.
#[derive(Clone, Debug)]
pub struct BigCursor {
    pages: Pages,
    at: u64,
}

impl BigCursor {
    /// At the first entry of a file.
    pub fn new(file: IndexFile) -> Self {
        Self { pages: Pages::new(file, Access::IN_PASSING), at: 0 }
    }

    /// The position in Data.db of the current partition; moves on to the next.
    pub fn next_position(&mut self) -> Result<Option<u64>, IndexError> {
        if self.at >= self.pages.len() {
            return Ok(None);
        }
        let entry = entry(&mut self.pages, self.at)?;
        self.at = entry.body.end;
        Ok(Some(entry.data_position))
    }

    /// Where the entry of the current partition is in the file.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// The place of the current partition; moves on to the next.
    pub fn next(&mut self) -> Result<Option<PartitionPosition>, IndexError> {
        if self.at >= self.pages.len() {
            return Ok(None);
        }
        let entry = entry(&mut self.pages, self.at)?;
        let place = place(self.at, &entry);
        self.at = entry.body.end;
        Ok(Some(place))
    }
}

#[cfg(test)]
mod tests {
    use types::CustomType;

    use super::*;

    /// Keys of a legacy index are looked for in the order in which they are written, also an empty
    /// text in a descending index, which is the last, and NaNs.
    #[test]
    fn local_keys_are_searched_as_they_are_written() {
        let descending = CqlType::Custom(Arc::new(CustomType::Reversed(CqlType::Text)));
        let texts: [&[u8]; 4] = [b"", b"a", b"a\0", b"b"];
        let doubles: [&[u8]; 4] = [
            &0x3ff0_0000_0000_0000u64.to_be_bytes(),
            &0x7ff0_0000_0000_0000u64.to_be_bytes(),
            &0x7ff8_0000_0000_0001u64.to_be_bytes(),
            &0xfff8_0000_0000_0000u64.to_be_bytes(),
        ];
        for (ty, values) in [(CqlType::Text, texts), (descending, texts), (CqlType::Double, doubles)] {
            let order = KeyOrder::Local(ty);
            for (a, b) in values.iter().flat_map(|a| values.iter().map(move |b| (a, b))) {
                let [stored, wanted] = [a, b].map(|value| order.decorate(Bytes::copy_from_slice(value)));
                let found = order.compare(&stored.key, wanted.token, Some(&wanted));
                assert_eq!(found, stored.cmp(&wanted), "{order:?} {a:02x?} {b:02x?}");
            }
        }
    }
}
