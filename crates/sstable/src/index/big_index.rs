//! `Index.db`: an entry for each partition, in the order of Data.db.
//!
//! ```text
//! short-bytes key; uvint position in Data.db; uvint size of what follows, 0: nothing; then see `promoted`
//! ```
//! A lookup goes by [`Summary`] to a run of entries and compares their keys. Whoever trusts a sample first compares its key with that of
//! the entry it leads to, also of the sample behind: a damaged sample is always one of the two. Then, or where there is no summary, one
//! is made by a walk over the entries. Agrees with `org.apache.cassandra.io.sstable.format.big.{BigTableReader,RowIndexEntry}`.

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use rows::codec::DeletionTimeForm;
use stdx::Cursor;
use types::{CqlType, DecoratedKey, Token};

use super::summary::{Summary, SummaryBuilder};
use super::{PartitionPosition, RowIndex, promoted};
use crate::error::Malformed;
use crate::reader::Resolved;

/// The order of keys in an SSTable.
#[derive(Clone, PartialEq, Debug)]
pub enum KeyOrder {
    /// By token, then bytes.
    Murmur3,
    /// That of a type: legacy index tables. There are no tokens.
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
            (Self::Local(ty), Some(key)) => types::compare(ty, stored, &key.key).then_with(|| stored.cmp(&key.key)),
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

/// An entry without what follows.
struct Entry<'a> {
    key: &'a [u8],
    data_position: u64,
    /// Where the row index is, if there is one.
    body: std::ops::Range<usize>,
}

fn entry(file: &Bytes, at: u64) -> Result<Entry<'_>, Malformed> {
    let start = usize::try_from(at).unwrap_or(usize::MAX);
    let bytes = file.get(start..).ok_or_else(|| Malformed::at(at, "an entry beyond the end of the file"))?;
    let mut cursor = Cursor::new(bytes);
    let mut read = || -> Result<Entry<'_>, Malformed> {
        let key = cursor.short_bytes()?;
        let (data_position, size) = (cursor.uvint()?, cursor.uvint()?);
        let start = start + cursor.position();
        cursor.skip(usize::try_from(size).unwrap_or(usize::MAX))?;
        Ok(Entry { key, data_position, body: start..start + size as usize })
    };
    read().map_err(|error| error.behind(at))
}

/// A read Index.db.
#[derive(Debug)]
pub struct BigIndex {
    file: Bytes,
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
    /// Over the bytes of the file. Without a summary that fits one is made, with a sample every `interval` entries; what was wrong
    /// with it is given as a note.
    pub fn open(
        file: &Bytes,
        summary: Option<&Bytes>,
        order: KeyOrder,
        form: DeletionTimeForm,
        interval: u32,
    ) -> Result<(Self, Option<String>), Malformed> {
        let opened = match summary {
            Some(summary) => Summary::open(summary).and_then(|summary| Ok((check_ends(file, &summary)?, summary))),
            None => Err(Malformed::at(0, "missing")),
        };
        let (count, summary, made, note) = match opened {
            Ok((tail, summary)) => (summary.partitions(tail), summary, None, None),
            Err(error) => {
                let (count, made) = rebuild(file, interval)?;
                let note = format!("made again from Index.db, it was: {}", error.what);
                (count, Summary::open(&made)?, Some(made), Some(note))
            }
        };
        let (first, last) = (summary.first.clone(), summary.last.clone());
        let rebuilt = OnceLock::new();
        Ok((Self { file: file.clone(), summary, made, rebuilt, order, form, interval, first, last, count }, note))
    }

    /// Searches the summary; a damaged one is made again.
    fn with_summary<T>(&self, search: impl Fn(&Summary) -> Result<T, Malformed>) -> Result<T, Malformed> {
        match search(self.rebuilt.get().unwrap_or(&self.summary)) {
            Err(_) if self.rebuilt.get().is_none() => {
                let summary = Summary::open(&rebuild(&self.file, self.interval)?.1)?;
                search(self.rebuilt.get_or_init(|| summary))
            }
            result => result,
        }
    }

    /// The run of entries between two samples, of which the first fulfils `is_before` and the second does not.
    fn run(&self, summary: &Summary, is_before: impl Fn(&[u8]) -> bool) -> Result<(u64, u64, bool), Malformed> {
        let behind = summary.partition_point(is_before)?;
        let start = check_sample(&self.file, summary, behind.saturating_sub(1))?;
        let end =
            if behind < summary.len { check_sample(&self.file, summary, behind)? } else { self.file.len() as u64 };
        Ok((start, end, behind > 0))
    }

    /// The place of the partition of a key.
    pub fn find(&self, key: &DecoratedKey) -> Result<Option<PartitionPosition>, Malformed> {
        let is_before = |stored: &[u8]| self.order.compare(stored, key.token, Some(key)) != Ordering::Greater;
        let (mut at, end, any) = self.with_summary(|summary| self.run(summary, is_before))?;
        while any && at < end {
            let entry = entry(&self.file, at)?;
            if entry.key == key.key {
                return Ok(Some(place(at, &entry)));
            }
            at = entry.body.end as u64;
        }
        Ok(None)
    }

    /// A cursor at the first partition.
    pub fn cursor(&self) -> BigCursor {
        BigCursor { file: self.file.clone(), at: 0 }
    }

    /// A cursor at the first partition that is not before a key, or before all keys of a token.
    pub fn cursor_from(&self, token: Token, key: Option<&DecoratedKey>) -> Result<BigCursor, Malformed> {
        let is_before = |stored: &[u8]| self.order.compare(stored, token, key) == Ordering::Less;
        let (mut at, end, _) = self.with_summary(|summary| self.run(summary, is_before))?;
        while at < end {
            let entry = entry(&self.file, at)?;
            if !is_before(entry.key) {
                break;
            }
            at = entry.body.end as u64;
        }
        Ok(BigCursor { file: self.file.clone(), at })
    }

    /// Key and row index of the entry at a position.
    pub fn row_index(&self, position: u64, schema: &Arc<Resolved>) -> Result<(Bytes, RowIndex), Malformed> {
        let entry = entry(&self.file, position)?;
        let key = self.file.slice_ref(entry.key);
        let start = entry.body.start as u64;
        let index = promoted::read(&self.file.slice(entry.body), entry.data_position, self.form, schema);
        Ok((key, index.map_err(|error| error.behind(start))?))
    }
}

fn place(at: u64, entry: &Entry<'_>) -> PartitionPosition {
    if entry.body.is_empty() { PartitionPosition::Data(entry.data_position) } else { PartitionPosition::Rows(at) }
}

/// The position of a sample, if the entry there has its key.
fn check_sample(file: &Bytes, summary: &Summary, index: u32) -> Result<u64, Malformed> {
    let (key, position) = summary.sample(index)?;
    match entry(file, position) {
        Ok(entry) if entry.key == key => Ok(position),
        _ => Err(Malformed::at(0, format!("sample {index} does not lead to its key in Index.db"))),
    }
}

/// Whether the summary begins and ends as Index.db does. Gives the number of entries from the last sample on.
fn check_ends(file: &Bytes, summary: &Summary) -> Result<u64, Malformed> {
    if check_sample(file, summary, 0)? != 0 || entry(file, 0)?.key != &summary.first[..] {
        return Err(Malformed::at(0, "it does not begin as Index.db does"));
    }
    let mut at = check_sample(file, summary, summary.len - 1)?;
    let mut tail = 0;
    let mut last: &[u8] = &[];
    while at < file.len() as u64 {
        let entry = entry(file, at)?;
        (last, at, tail) = (entry.key, entry.body.end as u64, tail + 1);
    }
    if last != &summary.last[..] {
        return Err(Malformed::at(0, "it does not end as Index.db does"));
    }
    Ok(tail)
}

/// Number of entries, and the file of a summary of them. Only the samples are kept.
fn rebuild(file: &Bytes, interval: u32) -> Result<(u64, Bytes), Malformed> {
    let mut builder = SummaryBuilder::new(interval);
    let mut at = 0;
    while at < file.len() as u64 {
        let entry = entry(file, at)?;
        builder.add(entry.key, at);
        at = entry.body.end as u64;
    }
    if builder.partitions() == 0 {
        return Err(Malformed::at(0, "an index without entries"));
    }
    Ok((builder.partitions(), builder.finish().into()))
}

/// Walks the entries.
#[derive(Clone, Debug)]
pub struct BigCursor {
    file: Bytes,
    at: u64,
}

impl BigCursor {
    /// Where the entry of the current partition is in the file.
    pub fn position(&self) -> u64 {
        self.at
    }

    /// The place of the current partition; moves on to the next.
    pub fn next(&mut self) -> Result<Option<PartitionPosition>, Malformed> {
        if self.at >= self.file.len() as u64 {
            return Ok(None);
        }
        let entry = entry(&self.file, self.at)?;
        let place = place(self.at, &entry);
        self.at = entry.body.end as u64;
        Ok(Some(place))
    }
}
