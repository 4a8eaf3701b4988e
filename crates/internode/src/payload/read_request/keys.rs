//! The range of partitions that a read wants, and where a later page of it begins.
//!
//! ```text
//! range: u8 02 includes the start, 04 includes the end (01, a range of tokens, does not occur)
//!        start position, end position
//! position: u8 0 short-bytes key | 1 before a token | 2 behind a token      token: i32 8, i64
//! later page: bool [clustering of the last row, bool includes that row]
//! ```
//!
//! The smallest token as the end means the end of the ring. A range never wraps: coordinators cut
//! it there. Agrees with `org.apache.cassandra.dht.AbstractBounds.rowPositionSerializer` and
//! `org.apache.cassandra.db.DataRange`.

use std::cmp::Ordering;

use bytes::Bytes;
use rows::command::RingBound;
use rows::{Bound, ClusteringValues, PartitionRange, Slice, Slices};
use schema::{ClusteringComparator, TableMetadata};
use stdx::put_short_bytes;
use types::Token;

use super::{Reader, put_clustering};
use crate::error::InternodeError;

const INCLUDES_START: u8 = 0x02;
const INCLUDES_END: u8 = 0x04;
const TOKEN_SIZE: i32 = 8;

/// A range of partitions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyRange {
    /// The start.
    pub start: Position,
    /// Whether a start that is a key belongs to the range.
    pub includes_start: bool,
    /// The end.
    pub end: Position,
    /// Whether an end that is a key belongs to the range.
    pub includes_end: bool,
}

/// A position among the partitions of a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Position {
    /// A partition, by its key.
    Key(Bytes),
    /// Before all partitions with a token.
    Before(Token),
    /// Behind all partitions with a token.
    Behind(Token),
}

impl KeyRange {
    pub(super) fn of(start: &RingBound, end: &RingBound) -> Self {
        let (start, includes_start) = match start {
            RingBound::Open => (Position::Before(Token::MIN), false),
            RingBound::Token { token, inclusive: true } => (Position::Before(*token), false),
            RingBound::Token { token, inclusive: false } => (Position::Behind(*token), false),
            RingBound::Key { key, inclusive } => (Position::Key(key.key.clone()), *inclusive),
        };
        let (end, includes_end) = match end {
            RingBound::Open => (Position::Before(Token::MIN), true),
            RingBound::Token { token, inclusive: true } => (Position::Behind(*token), true),
            RingBound::Token { token, inclusive: false } => (Position::Before(*token), true),
            RingBound::Key { key, inclusive } => (Position::Key(key.key.clone()), *inclusive),
        };
        Self { start, includes_start, end, includes_end }
    }

    /// The range as the engine of a node knows it.
    pub fn partitions(&self, table: &TableMetadata) -> PartitionRange {
        let start = match &self.start {
            Position::Key(key) => RingBound::Key { key: table.decorate(key.clone()), inclusive: self.includes_start },
            Position::Before(token) | Position::Behind(token) if *token == Token::MIN => RingBound::Open,
            Position::Before(token) => RingBound::Token { token: *token, inclusive: true },
            Position::Behind(token) => RingBound::Token { token: *token, inclusive: false },
        };
        let end = match &self.end {
            Position::Key(key) => RingBound::Key { key: table.decorate(key.clone()), inclusive: self.includes_end },
            Position::Before(token) | Position::Behind(token) if *token == Token::MIN => RingBound::Open,
            Position::Before(token) => RingBound::Token { token: *token, inclusive: false },
            Position::Behind(token) => RingBound::Token { token: *token, inclusive: true },
        };
        PartitionRange::Range { start, end }
    }

    /// Whether the end lies before the start.
    fn wraps(&self, table: &TableMetadata) -> bool {
        let place = |position: &Position| match position {
            Position::Key(key) => (table.decorate(key.clone()).token, 1),
            Position::Before(token) => (*token, 0),
            Position::Behind(token) => (*token, 2),
        };
        let (start, end) = (place(&self.start), place(&self.end));
        if end.0 == Token::MIN && end.1 != 1 {
            return false;
        }
        match (&self.start, &self.end) {
            (Position::Key(start), Position::Key(end)) => {
                table.decorate(start.clone()).cmp(&table.decorate(end.clone())) == Ordering::Greater
            }
            _ => start > end,
        }
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        out.push(flag(self.includes_start, INCLUDES_START) | flag(self.includes_end, INCLUDES_END));
        put_position(out, &self.start);
        put_position(out, &self.end);
    }

    pub(super) fn read(reader: &mut Reader<'_>, table: &TableMetadata) -> Result<Self, InternodeError> {
        let flags = reader.cursor.u8()?;
        if flags & !(INCLUDES_START | INCLUDES_END) != 0 {
            return super::bad("the flags of a range of partitions", flags);
        }
        let (start, end) = (read_position(reader)?, read_position(reader)?);
        let (includes_start, includes_end) = (flags & INCLUDES_START != 0, flags & INCLUDES_END != 0);
        let range = Self { start, includes_start, end, includes_end };
        match range.wraps(table) {
            true => Err(InternodeError::Unsupported("a range of partitions over the end of the ring")),
            false => Ok(range),
        }
    }
}

fn put_position(out: &mut Vec<u8>, position: &Position) {
    let (kind, token) = match position {
        Position::Key(key) => {
            out.push(0);
            return put_short_bytes(out, key);
        }
        Position::Before(token) => (1, token),
        Position::Behind(token) => (2, token),
    };
    out.push(kind);
    stdx::put_i32(out, TOKEN_SIZE);
    out.extend_from_slice(&token.0.to_be_bytes());
}

fn read_position(reader: &mut Reader<'_>) -> Result<Position, InternodeError> {
    let kind = reader.cursor.u8()?;
    if kind == 0 {
        return Ok(Position::Key(reader.short_bytes()?));
    }
    if kind > 2 {
        return super::bad("the kind of a position", kind);
    }
    let size = reader.cursor.i32()?;
    if size != TOKEN_SIZE {
        return super::bad("the size of a token", size);
    }
    let token = Token(reader.cursor.i64()?);
    Ok(if kind == 1 { Position::Before(token) } else { Position::Behind(token) })
}

/// Where the page before ended in the first partition of the range.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LaterPage {
    /// The clustering of the last row.
    pub last: ClusteringValues,
    /// Whether that row is wanted again.
    pub inclusive: bool,
}

impl LaterPage {
    pub(super) fn put(page: Option<&Self>, out: &mut Vec<u8>, table: &TableMetadata) {
        out.push(u8::from(page.is_some()));
        if let Some(page) = page {
            put_clustering(out, &page.last, table);
            out.push(u8::from(page.inclusive));
        }
    }

    pub(super) fn read(reader: &mut Reader<'_>, table: &TableMetadata) -> Result<Option<Self>, InternodeError> {
        if !reader.cursor.bool()? {
            return Ok(None);
        }
        let last = reader.clustering(table, table.clustering.len())?;
        Ok(Some(Self { last, inclusive: reader.cursor.bool()? }))
    }

    /// The part of the slices behind the last row; before it, if the read is reversed.
    pub(super) fn slices(&self, slices: &Slices, comparator: &ClusteringComparator, reversed: bool) -> Slices {
        let cut = |slice: &Slice| {
            let mut slice = slice.clone();
            if reversed {
                let end = Bound::end(self.last.clone(), self.inclusive);
                if end.compare(&slice.end, comparator) == Ordering::Less {
                    slice.end = end;
                }
            } else {
                let start = Bound::start(self.last.clone(), self.inclusive);
                if start.compare(&slice.start, comparator) == Ordering::Greater {
                    slice.start = start;
                }
            }
            slice
        };
        Slices::normalized(slices.0.iter().map(cut).collect(), comparator)
    }
}
