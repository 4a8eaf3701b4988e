//! Makes the answer of a replica from what its engine reads.
//!
//! 1. Columns that are not fetched go. The engine has left out the values of cells that are not
//!    queried ([`rows::selection`]).
//! 2. Deletions and expired cells that are older than gc_grace at the time of the request go;
//!    expired cells that must stay become tombstones ([`rows::purge`]). Partitions of which nothing
//!    is left are dropped.
//! 3. Tombstones are counted.
//! 4. The row filter ([`rows::filter`]), then the limits ([`rows::limits`]).
//! 5. What is left goes into the data, into the digest, or into both.
//!
//! A node that coordinates makes its own answer in the same way, so that it has the digest that
//! another replica with the same data sends. Agrees with
//! `org.apache.cassandra.db.ReadCommand.executeLocally`.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use rows::error::TooManyTombstones;
use rows::filter::FilteredStream;
use rows::limits::LimitedStream;
use rows::live::{ScannedCounts, TombstoneLimits, counted};
use rows::purge::PurgeStream;
use rows::selection::{SelectedFrom, SelectedStream};
use rows::{BuildError, PartitionHead, PartitionStream, ReadError, Row, Unfiltered};
use schema::TableMetadata;

use super::buffered_rows::{BufferedRows, RowBuffer};
use super::digest::Digester;
use super::partitions::{PartitionForm, PartitionsWriter};
use super::read_request::ReadRequest;
use super::read_response::ReadResponse;

/// The kind of answer that is made of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AnswerKind {
    /// Encoded partitions.
    Data,
    /// A digest; nothing is encoded.
    Digest,
    /// Both, in one pass.
    Both,
}

/// The limits of an answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AnswerLimits {
    /// The numbers of tombstones at which the read warns and fails.
    pub tombstones: TombstoneLimits,
    /// Most bytes of data.
    pub size_max: usize,
    /// An answer of fewer bytes is kept as rows instead of being encoded, for the node itself. 0:
    /// every answer is encoded.
    pub buffered_size_max: usize,
}

/// The answer of a replica.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Answer {
    /// The encoded partitions; None: they were not wanted, or are buffered.
    pub data: Option<Bytes>,
    /// The partitions as rows; None: they were not wanted, or are encoded.
    pub buffered: Option<BufferedRows>,
    /// The digest; None: it was not wanted.
    pub digest: Option<[u8; super::digest::SIZE]>,
    /// Live rows in the answer.
    pub rows: u32,
    /// Tombstones that were passed.
    pub tombstones: u64,
    /// The most tombstones that were passed in one partition, or in the whole read if partitions
    /// are not counted for themselves.
    pub tombstones_max: u64,
    /// Bytes that were loaded, if they were measured ([`rows::heap_size`]).
    pub local_size: u64,
    /// Bytes of the largest row index, if they were measured.
    pub row_index_size: u64,
    /// SSTables whose index the read looked into, where they are more than it is warned of; 0: they
    /// are not.
    pub indexes: u64,
}

impl Answer {
    /// The message: the digest if there is one, else the data.
    pub fn into_response(self) -> ReadResponse {
        match (self.digest, self.data) {
            (Some(digest), _) => ReadResponse::Digest(digest),
            (None, data) => ReadResponse::of_data(data.unwrap_or_default()),
        }
    }
}

/// Why there is no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AnswerError {
    /// The read failed.
    Read(ReadError),
    /// The data is larger than an answer may be.
    TooLarge {
        /// The limit, bytes.
        size_max: usize,
    },
}

impl From<ReadError> for AnswerError {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl BuildError for AnswerError {
    fn is_blocked(&self) -> bool {
        *self == Self::Read(ReadError::WouldBlock)
    }

    fn read_error(&self) -> Option<&ReadError> {
        match self {
            Self::Read(error) => Some(error),
            Self::TooLarge { .. } => None,
        }
    }
}

impl fmt::Display for AnswerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(error) => error.fmt(f),
            Self::TooLarge { size_max } => write!(f, "the answer is larger than {size_max} bytes"),
        }
    }
}

impl std::error::Error for AnswerError {}

/// Makes the answer to `request` from the engine's `stream` of [`ReadRequest::commands`].
pub fn answer_of(
    stream: &mut dyn PartitionStream,
    request: &ReadRequest,
    wanted: AnswerKind,
    limits: &AnswerLimits,
) -> Result<Answer, AnswerError> {
    let (table, now) = (&request.table, request.now);
    let selected = SelectedStream::new(stream, table, &request.columns, SelectedFrom::Merged);
    let purged = PurgeStream::new(selected, now, gc_before(table, now), Box::new(|_| i64::MAX)).of_table(table);
    let mut counted = CountedStream::new(purged, table, now, limits.tombstones);
    let filtered = FilteredStream::new(&mut counted, table, &request.row_filter, now);
    let whole = request.selects_whole_partitions();
    let mut limited = LimitedStream::new(filtered, table, &request.limits, now, request.is_reversed(), whole);
    let mut answer = write(&mut limited, request, wanted, limits)?;
    answer.rows = limited.rows();
    (answer.tombstones, answer.tombstones_max) = counted.finish();
    Ok(answer)
}

/// The time before which deletions may go, seconds. 0: none may.
fn gc_before(table: &TableMetadata, now: u32) -> u32 {
    let only_repaired = table.params.compaction.get("only_purge_repaired_tombstones");
    if only_repaired.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        // what is repaired is not known here
        return 0;
    }
    now.saturating_sub(u32::try_from(table.params.gc_grace_seconds).unwrap_or(0))
}

fn write(
    stream: &mut dyn PartitionStream,
    request: &ReadRequest,
    wanted: AnswerKind,
    limits: &AnswerLimits,
) -> Result<Answer, AnswerError> {
    let size_max = limits.size_max;
    let mut data = (wanted != AnswerKind::Digest).then(|| AnswerPartitions::new(request, limits));
    let mut digest = (wanted != AnswerKind::Data).then(|| Digester::new(request));
    while let Some(head) = stream.next_partition()? {
        let mut next = stream.next_unfiltered()?;
        let form = PartitionForm::of(&head, next.as_ref());
        if let Some(data) = &mut data {
            data.partition(&head, form, next.is_none());
        }
        if let Some(digest) = &mut digest {
            digest.partition(&head, form.has_static_row);
        }
        while let Some(unfiltered) = next {
            if let Some(digest) = &mut digest {
                digest.unfiltered(&unfiltered);
            }
            if let Some(data) = &mut data {
                data.unfiltered(unfiltered);
                if data.size() > size_max {
                    return Err(AnswerError::TooLarge { size_max });
                }
            }
            next = stream.next_unfiltered()?;
        }
        if data.as_ref().is_some_and(|data| data.size() > size_max) {
            return Err(AnswerError::TooLarge { size_max });
        }
    }
    let mut answer = Answer { digest: digest.map(Digester::finish), ..Answer::default() };
    match data.map(|data| data.form) {
        None => {}
        Some(Form::Buffered(buffer)) => answer.buffered = Some(buffer.finish()),
        Some(Form::Encoded(encoded)) => answer.data = Some(encoded.finish()),
    }
    Ok(answer)
}

/// The partitions of an answer: buffered as rows as long as they are small, else encoded.
struct AnswerPartitions<'r> {
    request: &'r ReadRequest,
    buffered_size_max: usize,
    form: Form,
}

enum Form {
    Buffered(RowBuffer),
    Encoded(PartitionsWriter),
}

impl<'r> AnswerPartitions<'r> {
    fn new(request: &'r ReadRequest, limits: &AnswerLimits) -> Self {
        let buffered_size_max = limits.buffered_size_max;
        let form = match buffered_size_max {
            0 => Form::Encoded(PartitionsWriter::new(request)),
            _ => Form::Buffered(RowBuffer::default()),
        };
        Self { request, buffered_size_max, form }
    }

    fn size(&self) -> usize {
        match &self.form {
            Form::Buffered(buffer) => buffer.size,
            Form::Encoded(encoded) => encoded.size(),
        }
    }

    fn partition(&mut self, head: &PartitionHead, form: PartitionForm, is_empty: bool) {
        // before the partition: it is not known yet what it has
        self.encode_if_large();
        match &mut self.form {
            Form::Buffered(buffer) => buffer.partition(head, form),
            Form::Encoded(encoded) => encoded.partition(head, &form, is_empty),
        }
    }

    fn unfiltered(&mut self, unfiltered: Unfiltered) {
        match &mut self.form {
            Form::Buffered(buffer) => buffer.unfiltered(unfiltered),
            Form::Encoded(encoded) => encoded.unfiltered(&unfiltered),
        }
        self.encode_if_large();
    }

    fn encode_if_large(&mut self) {
        let Form::Buffered(buffer) = &self.form else { return };
        if buffer.size > self.buffered_size_max {
            let mut encoded = PartitionsWriter::new(self.request);
            buffer.write_to(&mut encoded);
            self.form = Form::Encoded(encoded);
        }
    }
}

/// A stream without empty partitions that counts its tombstones.
struct CountedStream<S> {
    stream: S,
    table: Arc<TableMetadata>,
    now: u32,
    limits: TombstoneLimits,
    scanned: Option<ScannedCounts>,
    before: u64,
    most: u64,
    /// The first item of the partition, read to find out whether the partition is empty.
    first: Option<Unfiltered>,
}

impl<S: PartitionStream> CountedStream<S> {
    fn new(stream: S, table: &Arc<TableMetadata>, now: u32, limits: TombstoneLimits) -> Self {
        Self { stream, table: Arc::clone(table), now, limits, scanned: None, before: 0, most: 0, first: None }
    }

    fn begin(&mut self, head: &PartitionHead) {
        match &mut self.scanned {
            Some(scanned) if !self.limits.each_partition => scanned.key.clone_from(&head.key),
            _ => {
                self.end();
                self.scanned = Some(ScannedCounts { key: head.key.clone(), tombstones: 0, live_rows: 0 });
            }
        }
    }

    fn end(&mut self) {
        if let Some(scanned) = self.scanned.take() {
            self.before += scanned.tombstones;
            self.most = self.most.max(scanned.tombstones);
        }
    }

    /// All tombstones, and the most of one partition or read.
    fn finish(mut self) -> (u64, u64) {
        self.end();
        (self.before, self.most)
    }

    fn count_row(&mut self, row: &Row) -> Result<(), ReadError> {
        let (is_live, tombstones) = counted(row, &self.table, self.now);
        if let (true, Some(scanned)) = (is_live, &mut self.scanned) {
            scanned.live_rows += 1;
        }
        self.count(tombstones)
    }

    fn count(&mut self, tombstones: u64) -> Result<(), ReadError> {
        let Some(scanned) = &mut self.scanned else { return Ok(()) };
        scanned.tombstones += tombstones;
        if scanned.tombstones <= self.limits.failure {
            return Ok(());
        }
        Err(ReadError::TooManyTombstones(Box::new(TooManyTombstones {
            table: format!("{}.{}", self.table.keyspace, self.table.name),
            partition: self.table.partition_key_text(&scanned.key.key),
            scanned: scanned.clone(),
            limit: self.limits.failure,
        })))
    }

    fn next(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        let next = self.stream.next_unfiltered()?;
        match &next {
            Some(Unfiltered::Row(row)) => self.count_row(row)?,
            Some(Unfiltered::Marker(_)) => self.count(1)?,
            None => {}
        }
        Ok(next)
    }
}

impl<S: PartitionStream> PartitionStream for CountedStream<S> {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        while let Some(head) = self.stream.next_partition()? {
            self.begin(&head);
            if let Some(row) = &head.static_row {
                self.count_row(row)?;
            }
            self.first = self.next()?;
            if self.first.is_some() || !head.deletion.is_live() || head.static_row.is_some() {
                return Ok(Some(head));
            }
        }
        Ok(None)
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        match self.first.take() {
            Some(first) => Ok(Some(first)),
            None => self.next(),
        }
    }
}
