//! A round of a replay: records that were read, copied and put apart by shard, so that shards can
//! be replayed side by side while the next round is read.
//!
//! All updates of a mutation are of one partition key, and tables are split alike: so a mutation
//! goes to one shard whatever its tables, and the records of a partition stay in order.

use std::ops::Range;

use bytes::{Bytes, BytesMut};
use types::Token;

use crate::commitlog::LogPosition;

/// Bytes of memory that a list keeps for the next round: a single record may be far larger than a
/// usual round.
const CAPACITY_KEPT_MAX: usize = 2 << 20;

/// The records of a round that go to one shard, in order.
#[derive(Default)]
pub(super) struct ShardRecords {
    bytes: BytesMut,
    records: Vec<Record>,
}

struct Record {
    token: Token,
    /// Position at which the record's entry ends in the log.
    position: LogPosition,
    /// The record's bytes in the list's buffer.
    bytes: Range<usize>,
}

impl ShardRecords {
    /// Bytes of the records in the list.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds a record of a partition with this token.
    pub(super) fn push(&mut self, token: Token, position: LogPosition, record: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(record);
        self.records.push(Record { token, position, bytes: start..self.bytes.len() });
    }

    /// Gives the records to `replay` until it fails, and is empty afterwards. They come by token,
    /// so that neighbours in a memtable follow each other; those of one partition in the order of
    /// the log.
    pub(super) fn replay<E>(&mut self, mut replay: impl FnMut(LogPosition, &Bytes) -> Result<(), E>) -> Result<(), E> {
        let bytes = std::mem::take(&mut self.bytes).freeze();
        self.records.sort_by_key(|record| record.token);
        let replayed =
            self.records.drain(..).try_for_each(|record| replay(record.position, &bytes.slice(record.bytes)));
        // memtables copy what they keep, so nobody holds a part of it
        self.bytes = bytes.try_into_mut().unwrap_or_default();
        if self.bytes.capacity() > CAPACITY_KEPT_MAX {
            self.bytes = BytesMut::new();
        }
        self.bytes.clear();
        replayed
    }
}

/// A round: see the head of this file.
pub(super) struct Round {
    /// The lists, one for each shard.
    pub lists: Vec<ShardRecords>,
    /// Position of the last record that was read.
    pub last: LogPosition,
    /// Number of records that were read, those that need no replay included.
    pub read: u64,
    /// Number of records that were read and need no replay.
    pub skipped: u64,
    /// Bytes of the records in the lists.
    pub bytes: usize,
    /// True: no round follows.
    pub is_last: bool,
}

impl Round {
    pub(super) fn new(shards: usize) -> Self {
        let lists = std::iter::repeat_with(ShardRecords::default).take(shards).collect();
        Round { lists, last: LogPosition::NONE, read: 0, skipped: 0, bytes: 0, is_last: false }
    }

    /// Begins a new round, with empty lists.
    pub(super) fn begin(&mut self) {
        assert!(self.lists.iter().all(|list| list.len() == 0), "a round begins when the one before was replayed");
        (self.read, self.skipped, self.bytes) = (0, 0, 0);
    }

    /// Adds a record of a partition with this token to the list of its shard.
    pub(super) fn push(&mut self, shard: usize, token: Token, position: LogPosition, record: &[u8]) {
        self.bytes += record.len();
        assert!(shard < self.lists.len(), "each record goes to one of the shards");
        self.lists[shard].push(token, position, record);
    }
}
