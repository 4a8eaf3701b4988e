//! Applying again what stands in the batch log without its removal.
//!
//! A page of records at a time: read, filtered, applied as one step with the removal of the record.
//! The start takes page after page; while the node runs a background task looks every ten seconds,
//! as long as a look may find something, and pauses after a page so that replay keeps below
//! `batchlog_replay_throttle`. A record whose mutations are, with their changes of views, more than
//! one group of the commit log may be is applied in several steps, its removal last. A record that
//! cannot be applied stays and is tried again with each look; those behind it are applied all the
//! same. A panic counts as such a failure: it would end the process otherwise, at each start again
//! while the record stands. In a ring a record of an unknown table or column stays, too, while the
//! schema of another node may bring them, and for a bounded time. So does a record of a table that
//! is left out because its schema cannot be read, also on a node alone.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use env::Next;
use rows::codec::{CodecError, decode_mutation, encode_mutation};
use rows::command::RingBound;
use rows::{Mutation, PartitionRange, ReadCommand, ReadContext, ReadMode, Row};
use storage::StorageError;
use types::DecoratedKey;

use super::resend::ResendState;
use crate::error::NodeError;
use crate::node::Node;
use crate::replica::apply::WriteError;
use crate::system_rows;

/// Time between two looks at the batch log (`BatchlogManager.REPLAY_INTERVAL`).
pub(super) const PERIOD: Duration = Duration::from_secs(10);

/// A page holds at most this many records, and ends behind the record that reaches this many bytes.
pub(super) const PAGE_RECORDS_MAX: usize = 128;
/// See [`PAGE_RECORDS_MAX`].
pub(super) const PAGE_BYTES_MAX: usize = 4 << 20;

/// Messaging versions of which the mutations of a record can be read: those of 3.0, of 3.0.14, and
/// of 4.0, which 5.0 writes in its compatible mode, have the form of 5.0.
const VERSIONS_READ: [i32; 4] = [10, 11, 12, super::VERSION];

/// Longest age of a record that waits for its schema, seconds: the default of `gc_grace_seconds`,
/// since that of an unknown table is unknown too. Otherwise the record of a dropped table would
/// stay for ever in a ring whose schemas never agree. A record that has mutations of known tables,
/// too, waits for half of their `gc_grace_seconds` at most.
const SCHEMA_WAIT_MAX: i64 = 864_000;

/// The outcome of one step of replay.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Page {
    /// Records of the page that were applied or sent: all but those that failed.
    pub records: usize,
    /// Records that could not be applied, and stay.
    pub failed: usize,
    /// Bytes of the rows of all due records of the page, failed ones too.
    pub bytes: usize,
    /// No further record is due.
    pub is_last: bool,
}

impl Page {
    /// The page with so many of its records counted as failed.
    pub fn without(self, failed: usize) -> Self {
        assert!(failed <= self.records, "a record fails once");
        Self { records: self.records - failed, failed, ..self }
    }

    /// How long replay rests after the page. A page with records that have failed is no reason to
    /// hurry to the next one, which fails if the disk does.
    pub fn pause(&self, throttle: u64) -> Duration {
        let paced = match throttle {
            0 => Duration::ZERO,
            rate => Duration::from_secs_f64(self.bytes as f64 / rate as f64),
        };
        if self.is_last || self.failed > 0 { paced.max(PERIOD) } else { paced }
    }
}

/// A record as it is stored.
pub(crate) struct Record {
    key: DecoratedKey,
    row: Row,
}

impl Node {
    /// Changes `batchlog_replay_throttle`, bytes a second; None: replay does not pause.
    pub fn set_batchlog_replay_throttle(&self, bytes: Option<u64>) {
        self.batch_replay.throttle.store(bytes.unwrap_or(0), Ordering::Relaxed);
    }

    /// Starts the background task that applies records again while the node runs.
    pub(crate) fn start_batch_replay(self: &Arc<Self>) {
        if self.engine.options.read_only {
            return;
        }
        let node: Weak<Self> = Arc::downgrade(self);
        let mut state = ResendState::default();
        let step = move || match node.upgrade() {
            Some(node) if !node.engine.is_draining() => Next::After(node.replay_due_batches(&mut state)),
            _ => Next::Done,
        };
        let wake = self.env.tasks.background("batchlog", Box::new(step));
        wake.wake();
        let _ = self.batch_replay.task.set(wake);
    }

    /// One look at the batch log while the node runs. Gives the time until the next look.
    fn replay_due_batches(&self, state: &mut ResendState) -> Duration {
        if !self.batch_replay.may_find_records() && state.is_idle() {
            return PERIOD;
        }
        if let Some(others) = self.ring_peers() {
            return self.resend_due_batches(&others, state);
        }
        if self.batch_replay.waits_for_others.load(Ordering::Relaxed) {
            return PERIOD;
        }
        let age = self.timeouts().write * 2;
        match self.replay_page(age) {
            Ok(page) => page.pause(self.batch_replay.throttle.load(Ordering::Relaxed)),
            Err(error) => {
                tracing::warn!(%error, "the batch log cannot be replayed now; it is tried again");
                PERIOD
            }
        }
    }

    /// Applies every record of the batch log. Called at the start, while no batch is under way.
    /// Gives the number of records that were applied. Records that fail are left for later.
    pub(crate) fn replay_batches(&self) -> Result<usize, NodeError> {
        if self.engine.options.read_only {
            return Ok(0);
        }
        if self.identity.joins && self.knows_peers()? {
            self.batch_replay.waits_for_others.store(true, Ordering::Relaxed);
            return Ok(0);
        }
        let mut records = 0;
        loop {
            let page = self.replay_page(Duration::ZERO)?;
            records += page.records;
            if page.is_last {
                return Ok(records);
            }
        }
    }

    /// Whether the node remembers others of its ring.
    fn knows_peers(&self) -> Result<bool, NodeError> {
        let schema = self.engine.schema();
        let Some(table) = schema.table("system", "peers_v2") else { return Ok(false) };
        let mut is_known = false;
        system_rows::each(&self.engine, table, None, |_, _| {
            is_known = true;
            false
        })?;
        Ok(is_known)
    }

    /// Applies a page of the records that are of this age or older.
    fn replay_page(&self, age: Duration) -> Result<Page, NodeError> {
        let (due, page) = self.due_records(age)?;
        let failed = of_each(due, |record| self.replay(&record)).1;
        Ok(page.without(failed))
    }

    /// The next page of records that are of this age or older: it begins behind the page before,
    /// and at the first record after the last page. Where the page has a record, or leaves one out,
    /// there is a further look: what becomes of the record is not known yet.
    pub(super) fn due_records(&self, age: Duration) -> Result<(Vec<Record>, Page), NodeError> {
        self.batch_replay.begin_look();
        let found = self.find_due_records(age);
        if found.as_ref().map_or(true, |(due, _, are_left)| *are_left || !due.is_empty()) {
            self.batch_replay.expect_records();
        }
        found.map(|(due, page, _)| (due, page))
    }

    /// The first records behind the page before that are of this age or older, and whether there
    /// are others.
    fn find_due_records(&self, age: Duration) -> Result<(Vec<Record>, Page, bool), NodeError> {
        let table = self.batches_table();
        let youngest = self.env.clock.now_micros() - i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
        let mut behind = self.batch_replay.behind.lock().unwrap_or_else(PoisonError::into_inner);
        let start = behind.take();
        // records before the page were looked at, and those that have failed are looked at again
        // after the last page
        let mut are_left = start.is_some();
        let (mut due, mut bytes, mut is_full) = (Vec::<Record>::new(), 0, false);
        let start = start.map_or(RingBound::Open, |key| RingBound::Key { key, inclusive: false });
        let range = PartitionRange::Range { start, end: RingBound::Open };
        let command = ReadCommand { range, ..system_rows::command(&table, None, self.env.clock.now_seconds()) };
        let mut stream = self.engine.read(&command, &ReadContext::new(ReadMode::Background))?;
        system_rows::each_of(stream.as_mut(), &table, command.now, &mut |key: &DecoratedKey, row: Row| {
            let record = Record { key: key.clone(), row };
            if !self.is_readable(&record) {
                return true;
            }
            if record.written_micros().is_some_and(|written| written > youngest) {
                are_left = true;
                return true;
            }
            bytes += record.bytes();
            due.push(record);
            is_full = due.len() >= PAGE_RECORDS_MAX || bytes >= PAGE_BYTES_MAX;
            !is_full
        })?;
        assert!(due.len() <= PAGE_RECORDS_MAX, "a page has a bounded number of records");
        *behind = due.last().filter(|_| is_full).map(|record| record.key.clone());
        let page = Page { records: due.len(), failed: 0, bytes, is_last: !is_full };
        Ok((due, page, are_left))
    }

    fn is_readable(&self, record: &Record) -> bool {
        let version = system_rows::value(&self.batches_table(), &record.row, "version");
        let known = version.is_none_or(|version| VERSIONS_READ.iter().any(|known| *version == known.to_be_bytes()[..]));
        // said once: in a ring there is a look every ten seconds
        if !known && !self.batch_replay.told_unreadable.swap(true, Ordering::Relaxed) {
            tracing::warn!(?version, "batches of another messaging version are left in system.batches");
        }
        known
    }

    /// Applies a record and removes it, as one step where the commit log takes it as one.
    fn replay(&self, record: &Record) -> Result<(), NodeError> {
        let mut mutations = self.due_mutations(record)?;
        mutations.push(self.removal_of_record(record));
        match self.replica.apply_now(&mutations) {
            // a mutation that is too large without its views is too large in parts, too: nothing is
            // applied again and again then
            Err(WriteError::Storage(StorageError::MutationTooLarge { .. })) if self.takes_each(&mutations) => {}
            applied => return applied.map(drop).map_err(node_error),
        }
        for mutation in &mutations {
            self.replica.apply_now_or_in_parts(std::slice::from_ref(mutation)).map_err(node_error)?;
        }
        Ok(())
    }

    /// Whether each of the mutations is within the size that the commit log takes.
    fn takes_each(&self, mutations: &[Mutation]) -> bool {
        let size_max = self.engine.options.commitlog.largest_mutation();
        mutations.iter().all(|mutation| {
            let mut encoded = Vec::new();
            encode_mutation(&mut encoded, mutation);
            encoded.len() <= size_max
        })
    }

    /// The mutations of a record that are applied again; none where it is too old. Err: not all of
    /// them can be read yet.
    pub(super) fn due_mutations(&self, record: &Record) -> Result<Vec<Mutation>, NodeError> {
        let mutations = self.mutations_of(record)?;
        if self.is_forgotten(record, &mutations) {
            tracing::warn!("a batch older than the gc_grace_seconds of its tables is not applied again");
            return Ok(Vec::new());
        }
        Ok(mutations)
    }

    pub(super) fn removal_of_record(&self, record: &Record) -> Mutation {
        // the record may be of a time when the clock was ahead of now: its removal must not be
        // older
        let timestamp = self.clock.next_micros().max(record.row.liveness.timestamp);
        self.removal(&self.batches_table(), record.key.clone(), timestamp)
    }

    /// The mutations of a record without tables that are gone, or were truncated when or after it
    /// was written. Err: a table or a column is unknown, and may come with the schema that another
    /// node tells of, or a table is left out, and may be read again. The record goes with its
    /// mutations, so that these would be lost.
    fn mutations_of(&self, record: &Record) -> Result<Vec<Mutation>, NodeError> {
        let schema = self.engine.schema();
        let written_millis = record.written_micros().map_or(i64::MAX, |micros| micros / 1000);
        let (is_unknown, is_left_out) = (Cell::new(false), Cell::new(false));
        let table_of = |id| {
            let table = schema.table_by_id(id).cloned();
            if table.is_none() {
                is_unknown.set(true);
                is_left_out.set(is_left_out.get() || schema.left_out.values().any(|left_out| left_out.id == id));
            }
            table
        };
        let (mut mutations, mut errors) = (Vec::new(), Vec::new());
        for bytes in system_rows::elements(&self.batches_table(), &record.row, "mutations") {
            match decode_mutation(&bytes, &table_of) {
                Ok(mutation) => mutations.extend(mutation),
                Err(error) => errors.push(error),
            }
        }
        for mutation in &mut mutations {
            mutation.updates.retain(|update| {
                let truncated = self.engine.table(update.table.id).and_then(|store| store.truncated_at_millis());
                truncated.is_none_or(|truncated| truncated < written_millis)
            });
        }
        mutations.retain(|mutation| !mutation.updates.is_empty());
        let is_unknown = is_unknown.get() || errors.iter().any(|error| matches!(error, CodecError::UnknownColumn(_)));
        let may_come = || is_unknown && self.ring_peers().is_some() && self.may_lack_schema(schema.version);
        let waits_for = match self.is_young(record, &mutations) {
            true if is_left_out.get() => Some("a table of a batch is left out, because its schema cannot be read"),
            true if may_come() => Some("the schema of a batch may not have come yet"),
            _ => None,
        };
        if let Some(why) = waits_for {
            return Err(StorageError::Refused { why: why.to_owned() }.into());
        }
        if is_left_out.get() {
            tracing::error!("writes of a batch to a table that is left out are lost: its schema cannot be read");
        }
        for error in errors {
            tracing::error!(%error, "a mutation in system.batches cannot be decoded");
        }
        Ok(mutations)
    }

    /// Whether a record is so young that it may wait for a schema. `mutations`: those of its
    /// mutations that can be read. After half of the time until the record is forgotten these are
    /// applied without the rest: otherwise they would be lost with it.
    fn is_young(&self, record: &Record, mutations: &[Mutation]) -> bool {
        let now = i64::from(self.env.clock.now_seconds());
        let wait = least_grace(mutations).map_or(SCHEMA_WAIT_MAX, |grace| SCHEMA_WAIT_MAX.min(grace / 2));
        record.written_micros().is_some_and(|written| written / 1_000_000 + wait > now)
    }

    /// Whether a purge may have removed deletions that the batch has to obey: applying the batch
    /// could then bring deleted rows back.
    fn is_forgotten(&self, record: &Record, mutations: &[Mutation]) -> bool {
        let now = i64::from(self.env.clock.now_seconds());
        match (least_grace(mutations), record.written_micros()) {
            (Some(grace), Some(written)) => written / 1_000_000 + grace <= now,
            _ => false,
        }
    }
}

/// The least `gc_grace_seconds` of the tables of mutations; None: there are no mutations.
fn least_grace(mutations: &[Mutation]) -> Option<i64> {
    let updates = mutations.iter().flat_map(|mutation| &mutation.updates);
    updates.map(|update| i64::from(update.table.params.gc_grace_seconds)).min()
}

/// Calls `act` for each record of a page. Gives the results, and how many records have failed; the
/// log tells of the failures in one line.
pub(super) fn of_each<T>(due: Vec<Record>, mut act: impl FnMut(Record) -> Result<T, NodeError>) -> (Vec<T>, usize) {
    // a panic inside the door of a memtable ends the process all the same: nothing half done is
    // left behind here
    let act = |record: Record| {
        catch_unwind(AssertUnwindSafe(|| act(record))).unwrap_or_else(|_| {
            let why = "applying a logged batch has panicked".to_owned();
            Err(StorageError::Refused { why }.into())
        })
    };
    let (done, failed): (Vec<_>, Vec<_>) = due.into_iter().map(act).partition(Result::is_ok);
    let count = failed.len();
    if let Some(error) = failed.into_iter().find_map(Result::err) {
        tracing::warn!(%error, records = count, "logged batches cannot be applied now; they are tried again");
    }
    (done.into_iter().filter_map(Result::ok).collect(), count)
}

pub(super) fn node_error(error: WriteError) -> NodeError {
    match error {
        WriteError::Storage(error) => error.into(),
        WriteError::Read(error) => error.into(),
        other => StorageError::Refused { why: other.to_string() }.into(),
    }
}

impl Record {
    /// Bytes of the record's row.
    pub(super) fn bytes(&self) -> usize {
        self.row.data_size()
    }

    /// When the batch was written, microseconds since 1970; None: its id does not say it.
    pub(super) fn written_micros(&self) -> Option<i64> {
        let id: [u8; 16] = self.key.key.as_ref().try_into().ok()?;
        types::timeuuid::is_timeuuid(&id).then(|| types::timeuuid::unix_micros(&id))
    }
}
