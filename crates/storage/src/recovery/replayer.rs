//! Replaying the commit log into memtables.
//!
//! 1. The records of the first tables (schema, truncations) by one thread: of other records only
//!    the head is looked at.
//! 2. All others in rounds of bounded size. While the shards of one round are replayed side by
//!    side, the next round is read; then both are waited for. So records of a partition are
//!    replayed in order, the size of memtables is known between rounds, and two rounds and a
//!    segment wait in memory. A record that needs no replay is not decoded.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use env::Part;
use rows::Mutation;
use rows::codec::{MutationDecoder, peek_mutation};
use schema::{Schema, TableId, TableMetadata};
use sstable::KEY_LENGTH_MAX;
use types::Token;

use super::Recovery;
use super::round::{Round, ShardRecords};
use super::table_replay::{self, TableReplay};
use crate::commitlog::progress::ReplayReporter;
use crate::commitlog::{CommitLog, DirtyKey, LogPosition, Replay};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::log_intervals;
use crate::options::DiskFailurePolicy;
use crate::requests::drops::Dropper;
use crate::table::TableStore;
use crate::table::memtable::Memtable;
use crate::truncation_records::is_replayed_first;

/// Bytes of the records of a round, which may have one record more; it is smaller if memtables may
/// hold little.
const ROUND_BYTES: usize = 4 << 20;
/// One part in so many of the memtables' budget that a round may have.
const ROUND_SHARE: usize = 16;

type TableReplays = BTreeMap<TableId, TableReplay>;

/// Counts of a replay.
#[derive(Default)]
struct Replayed {
    records: u64,
    skipped: u64,
    /// Bytes by which memtables grew.
    added: usize,
    /// The greatest timestamp in records of the first tables; None: there were none.
    last_timestamp: Option<i64>,
}

/// The state that the threads of a replay share.
struct Replayer<'a> {
    recovery: &'a Recovery<'a>,
    log: &'a CommitLog,
    table_replays: TableReplays,
    /// Is told of tables that were dropped and have records here; None: these are not known, or
    /// only the first tables are replayed.
    dropper: Option<&'a Dropper>,
}

impl Recovery<'_> {
    /// Replays the records of the first tables.
    pub(super) fn replay_first(
        &mut self,
        log: &CommitLog,
        replay: &mut Replay,
        built_in: &Schema,
    ) -> Result<(), StorageError> {
        let first = table_replay::first_tables(built_in);
        let mut follower = ReplayReporter::new(self.env, &self.options.commitlog.on_replay, replay, true);
        let table_replays = table_replay::all(self, built_in, &is_replayed_first);
        let replayer = Replayer { recovery: self, log, table_replays, dropper: None };
        let wanted =
            |record: &[u8]| !peek_mutation(record).is_ok_and(|head| head.updates == 1 && !first.contains(&head.table));
        let (mut list, mut replayed) = (ShardRecords::default(), Replayed::default());
        while let Some(record) = replay.next_wanted(&wanted) {
            let (position, record) = record?;
            follower.note(position, 1);
            if let Some(record) = record {
                list.push(Token::MIN, position, &record);
                replayer.list(&mut list, &mut replayed)?;
            }
        }
        replay.rewind();
        self.recovered.records += replayed.records;
        self.replayed_timestamp = replayed.last_timestamp;
        Ok(())
    }

    /// Replays the other records, and flushes when memtables are full.
    pub(super) fn replay_rest(&mut self, engine: &Engine, mut replay: Replay) -> Result<(), StorageError> {
        let schema = engine.schema();
        let mut follower = ReplayReporter::new(self.env, &self.options.commitlog.on_replay, &replay, false);
        let table_replays = table_replay::all(self, &schema, &|table: &TableMetadata| !is_replayed_first(table));
        // with this policy the tables that are left out are not known, and one that can be read
        // again may still have its rows in the log
        let is_known = self.options.disk_failure_policy != DiskFailurePolicy::Ignore;
        let dropper = is_known.then_some(&engine.dropper);
        let replayer = Replayer { recovery: self, log: &engine.log, table_replays, dropper };
        let (_, budget) = engine.memory.usage();
        let bytes = ROUND_BYTES.min(budget / ROUND_SHARE);
        let shards = engine.shards.count();
        let (mut round, mut next) = (Round::new(shards), Round::new(shards));
        replayer.read(&mut replay, &mut round, bytes)?;
        let mut all = Replayed::default();
        loop {
            let replayed = replayer.round(&mut round, &mut replay, &mut next, bytes)?;
            follower.note(round.last, round.read);
            all.records += replayed.records;
            all.skipped += replayed.skipped + round.skipped;
            engine.memory.take(replayed.added);
            let (used, budget) = engine.memory.usage();
            if used > budget {
                self.make_room(engine, round.last)?;
            }
            if round.is_last {
                break;
            }
            std::mem::swap(&mut round, &mut next);
        }
        self.recovered.records += all.records;
        self.recovered.skipped += all.skipped;
        Ok(())
    }

    /// Flushes all tables. The first tables have all of their records then, the others those up to
    /// the record that was replayed last. While a point is restored the first tables wait until
    /// all others are flushed ([`crate::restore_point::settle`]).
    fn make_room(&self, engine: &Engine, replayed: LogPosition) -> Result<(), StorageError> {
        if self.options.read_only {
            let why = "the commit log holds more than memtables may (--memory, memtable_heap_space), and with --read-only it cannot be \
                       flushed: let its node drain, or give more memory";
            return Err(StorageError::Refused { why: why.to_owned() });
        }
        for store in self.tables.values() {
            let table = store.table();
            let comes_first = is_replayed_first(&table);
            if comes_first && self.filter.restores() {
                continue;
            }
            let replayed = if comes_first { engine.log.position() } else { replayed };
            if let Some(set) = store.switch_memtables(table, None, || replayed) {
                crate::flush::flush_set(engine, store, &set)?;
            }
        }
        Ok(())
    }
}

impl Replayer<'_> {
    /// Replays the shards of a round side by side, and reads the next.
    fn round(
        &self,
        round: &mut Round,
        replay: &mut Replay,
        next: &mut Round,
        bytes: usize,
    ) -> Result<Replayed, StorageError> {
        let mut lists: Vec<&mut ShardRecords> = round.lists.iter_mut().filter(|list| list.len() > 0).collect();
        // the largest first: nobody waits long for the last
        lists.sort_by_key(|list| std::cmp::Reverse(list.len()));
        let mut outcomes: Vec<Result<Replayed, StorageError>> = lists.iter().map(|_| Ok(Replayed::default())).collect();
        let mut read = Ok(());
        let mut parts: Vec<Part<'_>> = Vec::with_capacity(lists.len() + 1);
        if !round.is_last {
            parts.push(Box::new(|| read = self.read(replay, next, bytes)));
        }
        for (list, outcome) in lists.into_iter().zip(&mut outcomes) {
            parts.push(Box::new(move || {
                let mut replayed = Replayed::default();
                *outcome = self.list(list, &mut replayed).map(|()| replayed);
            }));
        }
        self.recovery.env.tasks.run_in_parallel("replay", parts);
        read?;
        outcomes.into_iter().try_fold(Replayed::default(), |all, one| {
            let one = one?;
            Ok(Replayed {
                records: all.records + one.records,
                skipped: all.skipped + one.skipped,
                added: all.added + one.added,
                last_timestamp: all.last_timestamp.max(one.last_timestamp),
            })
        })
    }

    /// Reads the records of a round.
    fn read(&self, replay: &mut Replay, round: &mut Round, bytes: usize) -> Result<(), StorageError> {
        round.begin();
        while round.bytes < bytes {
            let Some(record) = replay.next() else {
                round.is_last = true;
                break;
            };
            let (position, record) = record?;
            round.last = position;
            round.read += 1;
            self.put_apart(round, position, &record)?;
        }
        Ok(())
    }

    /// Puts a record into the list of its shard, unless its head says that it needs no replay.
    fn put_apart(&self, round: &mut Round, position: LogPosition, record: &[u8]) -> Result<(), StorageError> {
        let filter = &self.recovery.filter;
        let Ok(head) = peek_mutation(record) else {
            // who decodes it says what is wrong
            round.push(0, Token::MIN, position, record);
            return Ok(());
        };
        if head.updates == 1 && !filter.is_set() {
            let Some(table_replay) = self.table_replays.get(&head.table) else {
                self.pass_over(head.table, position, true)?;
                round.skipped += 1;
                return Ok(());
            };
            if table_replay.is_captured {
                self.log.mark_captured(position);
            }
            if table_replay.store.is_none() {
                return Ok(());
            }
            if table_replay.is_persisted(position) {
                round.skipped += 1;
                return Ok(());
            }
        }
        let token = Token::of_key(head.key);
        round.push(self.recovery.shards.of(token), token, position, record);
        Ok(())
    }

    /// Passes over a record of a table that the schema does not have. `is_last`: nothing stands
    /// behind the table's update in the record.
    fn pass_over(&self, id: TableId, position: LogPosition, is_last: bool) -> Result<(), StorageError> {
        self.check_left_out(id, position, is_last)?;
        if !self.recovery.left_out.contains_key(&id) {
            // a table that is made again with this id must not have these rows
            self.dropper.into_iter().for_each(|dropper| dropper.note_dropped(id));
        }
        Ok(())
    }

    /// Refuses to pass over a record of a table whose schema cannot be read: it would be taken for
    /// one of a table that was dropped, and be removed with its segment. Cassandra ends the start
    /// for any such table (`SchemaKeyspace.fetchTables`). What SSTables have may be passed over;
    /// not so where the update is not the last one of its record, because those behind it cannot
    /// be found.
    fn check_left_out(&self, id: TableId, position: LogPosition, is_last: bool) -> Result<(), StorageError> {
        let Recovery { left_out, truncated, persisted, .. } = self.recovery;
        let Some(reason) = left_out.get(&id) else { return Ok(()) };
        let is_truncated = truncated.get(&id).is_some_and(|truncated| position <= truncated.position);
        let is_flushed = || persisted.get(&id).is_some_and(|held| log_intervals::contains(held, position));
        if is_last && (is_truncated || is_flushed()) {
            return Ok(());
        }
        let why = format!(
            "the commit log has writes to a table that is left out which its SSTables have not, or beside writes to \
             others, and they would be lost: {reason}. Have the program that wrote them flush them (nodetool drain), \
             mend the rows of system_schema, or give these writes up by a start with disk_failure_policy: ignore"
        );
        Err(StorageError::Refused { why })
    }

    /// Replays the records of one shard's list.
    fn list(&self, list: &mut ShardRecords, replayed: &mut Replayed) -> Result<(), StorageError> {
        let left_out = Cell::new(None);
        let table_of = |id: TableId| {
            let table = self.table_replays.get(&id).map(|table_replay| Arc::clone(&table_replay.table));
            if table.is_none() {
                left_out.set(Some(id));
            }
            table
        };
        let mut decoder = MutationDecoder::new(&table_of);
        let mut last_memtable = LastMemtable::default();
        let mut dirty = BTreeMap::new();
        list.replay(|position, record| {
            let mutation = match decoder.decode(record) {
                Ok(mutation) => mutation,
                Err(error) if is_of_no_file(record) => {
                    tracing::error!(?position, %error, "a record of the commit log fits no SSTable: it is left out");
                    None
                }
                Err(error) => {
                    let why = format!("the commit log's record at {position:?} cannot be decoded: {error}");
                    return Err(StorageError::Refused { why });
                }
            };
            if let Some(id) = left_out.take() {
                let decoded = mutation.as_ref().map_or(0, |mutation| mutation.updates.len() as u64);
                let is_last = peek_mutation(record).is_ok_and(|head| head.updates == decoded + 1);
                self.pass_over(id, position, is_last)?;
            }
            let replays = mutation.filter(|mutation| !self.recovery.filter.excludes(position, mutation));
            match replays {
                None => replayed.skipped += 1,
                Some(mutation) => self.mutation(position, &mutation, &mut last_memtable, replayed, &mut dirty),
            }
            Ok::<_, StorageError>(())
        })?;
        if !self.recovery.options.read_only {
            for ((segment, key), offset) in dirty {
                self.log.mark_replayed(LogPosition { segment, offset }, &[key]);
            }
        }
        Ok(())
    }

    /// Replays a mutation; `dirty` is told of the last record in each segment that memtables have.
    fn mutation(
        &self,
        position: LogPosition,
        mutation: &Mutation,
        last_memtable: &mut LastMemtable,
        replayed: &mut Replayed,
        dirty: &mut BTreeMap<(u64, DirtyKey), u32>,
    ) {
        if mutation.updates.iter().any(|update| update.table.params.cdc == Some(true)) {
            self.log.mark_captured(position);
        }
        for update in &mutation.updates {
            let id = update.table.id;
            let Some((table_replay, store)) = self.table_replays.get(&id).and_then(|it| Some((it, it.store.as_ref()?)))
            else {
                continue;
            };
            let is_in_snapshot = self.recovery.filter.is_in_snapshot(position);
            if is_in_snapshot.unwrap_or_else(|| table_replay.is_persisted(position)) {
                replayed.skipped += 1;
                continue;
            }
            let shard = store.shards.of(update.key.token);
            let memtable = last_memtable.memtable(store, shard);
            let mut memtable = memtable.enter_to_write().expect("nothing freezes it during a round");
            replayed.added += memtable.apply(update, Some(position));
            replayed.records += 1;
            if table_replay.is_replayed_first {
                replayed.last_timestamp = replayed.last_timestamp.max(Some(update.max_timestamp()));
            }
            let last = dirty.entry((position.segment, (id, shard as u16))).or_default();
            *last = position.offset.max(*last);
        }
    }
}

/// Whether the partition key of a record is too long for SSTables. Cassandra logs updates of views
/// with such keys, and leaves them out when it flushes (`SortedTableWriter.verifyPartition`). A
/// start that insisted on them would never succeed.
fn is_of_no_file(record: &[u8]) -> bool {
    peek_mutation(record).is_ok_and(|head| head.key.len() > KEY_LENGTH_MAX)
}

/// The memtable that took the last update. Mostly the next update goes there, too.
#[derive(Default)]
struct LastMemtable(Option<((TableId, usize), Arc<Memtable>)>);

impl LastMemtable {
    fn memtable(&mut self, store: &TableStore, shard: usize) -> &Memtable {
        let place = (store.id, shard);
        let same = self.0.take().filter(|(last, _)| *last == place);
        &self.0.insert(same.unwrap_or_else(|| (place, Arc::clone(&store.view().active[shard])))).1
    }
}
