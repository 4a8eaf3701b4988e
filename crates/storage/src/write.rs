//! Writing: mutations go into the commit log's buffer and into memtables in one step.
//!
//! 1. The mutations are serialised outside of any door. So are large values for the memtable;
//!    inside a door they are not copied.
//! 2. The doors of all memtables that they touch are entered, in order of table and shard, so that
//!    writers cannot wait for each other in a circle. A frozen memtable sends the writer back to
//!    the table's new view.
//! 3. Inside: the records are appended to the log's buffer, contiguous, and the updates applied. A
//!    mutation of several tables is a group of records, one for each.
//! 4. The position of the last record is given to the caller, who waits until it is durable as
//!    configured.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use env::rare::{Rare, happens};
use rows::codec::{encode_mutation, encode_update};
use rows::{Mutation, PartitionUpdate, Row};
use schema::TableMetadata;
use schema::system::{is_local_keyspace, is_system_keyspace};
use smallvec::SmallVec;
use stdx::put_uvint;

use crate::commitlog::{CommitLog, DirtyKey, Entries, LogError, LogPosition};
use crate::engine::Engine;
use crate::error::StorageError;
use crate::schema_tables;
use crate::table::TableStore;
use crate::table::memtable::{EncodedRows, Memtable, WriteGuard};

/// Bytes of a mutation from which on its rows are encoded for the memtable before any door is
/// entered.
const LARGE_RECORD: usize = 256 << 10;

/// The memtable into which an update goes.
struct Destination<'a> {
    store: Arc<TableStore>,
    shard: usize,
    update: &'a PartitionUpdate,
}

/// The result of a write.
#[derive(Clone, Copy, Debug)]
pub struct Applied {
    /// The position up to which the log must be durable; None: nothing was logged.
    pub position: Option<LogPosition>,
    /// Bytes by which memtables grew.
    pub added: usize,
}

impl Engine {
    /// Applies mutations as one step: all in the commit log side by side, all in memtables. Durable
    /// once [`CommitLog::wait_durable`] completes for the position. `durable_writes = false` of a
    /// keyspace leaves the log out.
    pub fn apply(&self, mutations: &[Mutation]) -> Result<Applied, StorageError> {
        self.apply_as(mutations, &[], LogAtomicity::EachRecord, None)
    }

    pub(crate) fn apply_as(
        &self,
        mutations: &[Mutation],
        encoded: &[Bytes],
        atomicity: LogAtomicity,
        number: Option<u64>,
    ) -> Result<Applied, StorageError> {
        if self.draining.load(Ordering::Acquire) {
            return Err(StorageError::WritesStopped { why: "the node is draining".into() });
        }
        if self.options.read_only && !mutations.iter().all(is_local_record) {
            return Err(StorageError::ReadOnly);
        }
        let logged = self.is_logged(mutations).then_some(atomicity);
        let are_views_known = || number.is_none_or(|number| number == self.views_number());
        let store_of = |update: &PartitionUpdate| self.store_of(update);
        let applied = apply(mutations, encoded, &self.log, logged, store_of, are_views_known)?;
        self.memory.take(applied.added);
        if applied.added > 0 && (self.memory.wants_flush() || happens(Rare::FlushNow)) {
            self.flush_largest();
        }
        Ok(applied)
    }

    /// Does the work of [`Engine::apply`] for mutations that are all replayed after a crash, or
    /// none of them: those of a base table and of its views.
    pub fn apply_whole(&self, mutations: &[Mutation]) -> Result<Applied, StorageError> {
        self.apply_as(mutations, &[], LogAtomicity::AllOrNone, None)
    }

    /// Does the work of [`Engine::apply`] for a write that concerns no view as long as the number
    /// of the views is the same (`crate::base_views`). `encoded`: the mutations as
    /// `encode_mutation` writes them, if they were encoded already; empty: they were not.
    pub fn apply_without_views(
        &self,
        mutations: &[Mutation],
        encoded: &[Bytes],
        number: u64,
    ) -> Result<Applied, StorageError> {
        self.apply_as(mutations, encoded, LogAtomicity::EachRecord, Some(number))
    }

    fn store_of(&self, update: &PartitionUpdate) -> Result<Arc<TableStore>, StorageError> {
        self.table(update.table.id).ok_or_else(|| StorageError::UnknownTable {
            table: format!("{}.{}", update.table.keyspace, update.table.name),
        })
    }

    fn is_logged(&self, mutations: &[Mutation]) -> bool {
        if self.options.read_only {
            return false;
        }
        let schema = self.schema.load();
        mutations
            .iter()
            .flat_map(|mutation| &mutation.updates)
            .any(|update| schema.keyspace(&update.table.keyspace).is_none_or(|keyspace| keyspace.durable_writes))
    }
}

/// Whether a mutation is one of the node's own records: its identity, traces. If nothing may be
/// written, these stay in memory.
fn is_local_record(mutation: &Mutation) -> bool {
    let of_the_node = |keyspace: &str| is_local_keyspace(keyspace) || keyspace == "system_traces";
    mutation.updates.iter().all(|update| of_the_node(&update.table.keyspace))
}

/// How the records of a write stand in the commit log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogAtomicity {
    /// Side by side. A crash may leave only the first of them.
    EachRecord,
    /// As one group. A crash leaves all of them or none.
    AllOrNone,
}

/// Applies mutations as one step. `encoded`: their records, if they were encoded already; these
/// stand side by side, and are encoded again where a mutation has parts. `store_of` finds the
/// table of each update. `logged`: None leaves the commit log out. `are_views_known`: false if
/// views were made or dropped since the caller looked.
///
/// # Panics
/// When there are records of some mutations only.
pub fn apply(
    mutations: &[Mutation],
    encoded: &[Bytes],
    log: &CommitLog,
    logged: Option<LogAtomicity>,
    store_of: impl Fn(&PartitionUpdate) -> Result<Arc<TableStore>, StorageError>,
    are_views_known: impl Fn() -> bool,
) -> Result<Applied, StorageError> {
    let mut destinations = Vec::with_capacity(mutations.len());
    for mutation in mutations {
        for update in &mutation.updates {
            let store = match store_of(update) {
                // a view was dropped
                Err(StorageError::UnknownTable { .. }) if !are_views_known() => return Err(StorageError::ViewsChanged),
                found => found?,
            };
            let shard = store.shards.of(update.key.token);
            destinations.push(Destination { store, shard, update });
        }
    }
    destinations.sort_by_key(|destination| (destination.store.id, destination.shard));
    let room = destinations.iter().map(|destination| room_of(destination.update)).sum();
    let mut records = match (logged, encoded) {
        (None, _) => Entries::default(),
        (Some(LogAtomicity::EachRecord), [_, ..]) if !mutations.iter().any(has_parts) => {
            assert_eq!(encoded.len(), mutations.len(), "each mutation has one record");
            Entries::of_encoded(encoded)
        }
        (Some(atomicity), _) => serialize(mutations, room, atomicity),
    };
    let large = mutations.len() == 1 && room > LARGE_RECORD;
    loop {
        let memtables: Vec<Arc<Memtable>> = destinations
            .iter()
            .map(|destination| Arc::clone(&destination.store.view().active[destination.shard]))
            .collect();
        // after the memtables are chosen: who makes a view puts it in force first and freezes them
        // then, so either this look sees the view, or the view's build sees this write
        if !are_views_known() {
            return Err(StorageError::ViewsChanged);
        }
        let encoded = if large { encode_rows(&destinations, &memtables) } else { Vec::new() };
        if let Some(result) = apply_under_locks(&destinations, &memtables, encoded, &mut records, log) {
            return result;
        }
        if let Some(destination) = destinations.iter().find(|destination| destination.store.is_closed()) {
            return Err(StorageError::UnknownTable { table: destination.store.name() });
        }
        // the new memtables are in the view before the old ones are frozen: the next look finds
        // them
        std::hint::spin_loop();
    }
}

fn serialize(mutations: &[Mutation], room: usize, atomicity: LogAtomicity) -> Entries {
    let mut records = Entries::with_capacity(mutations.len() + 1, room);
    // one record is whole by itself
    let is_group = (atomicity == LogAtomicity::AllOrNone && mutations.len() > 1) || mutations.iter().any(has_parts);
    if is_group {
        records.begin_group();
    }
    for mutation in mutations {
        match has_parts(mutation) {
            true => records.push_parts(mutation.updates.iter().map(of_update)),
            false => records.push(|out| encode_mutation(out, mutation)),
        }
    }
    if is_group {
        records.end_group();
    }
    records
}

/// Whether a mutation has a record for each of its tables, all in one group. In one record an
/// update is found by reading those before it. A replay cannot read one whose table was dropped
/// since, and the rows of the tables behind it would be lost. The tables of system keyspaces are
/// never dropped.
fn has_parts(mutation: &Mutation) -> bool {
    let is_of_users = |update: &PartitionUpdate| !is_system_keyspace(&update.table.keyspace);
    mutation.updates.len() > 1 && mutation.updates.iter().any(is_of_users)
}

/// The writer of a mutation that has one update.
fn of_update(update: &PartitionUpdate) -> impl FnOnce(&mut Vec<u8>) {
    move |out| {
        put_uvint(out, 1);
        encode_update(out, update);
    }
}

fn encode_rows(destinations: &[Destination<'_>], memtables: &[Arc<Memtable>]) -> Vec<EncodedRows> {
    destinations
        .iter()
        .zip(memtables)
        .map(|(destination, memtable)| memtable.encode_large(destination.update))
        .collect()
}

/// Bytes that an update takes as a record, or a few more. Otherwise a buffer that grows would copy
/// large values again and again.
pub fn room_of(update: &PartitionUpdate) -> usize {
    const HEAD: usize = 200;
    HEAD + update.static_row.iter().chain(&update.rows).map(Row::encoded_room).sum::<usize>()
}

/// Whether writes to the table take part in making room on a full device, by TRUNCATE or DROP: they
/// may use the bytes that the log keeps for that.
fn may_use_reserve(table: &TableMetadata) -> bool {
    match table.keyspace.as_str() {
        schema_tables::KEYSPACE => true,
        "system" => ["local", "IndexInfo"].contains(&table.name.as_str()),
        _ => false,
    }
}

/// Applies the updates while all doors are held. None: a memtable is frozen.
fn apply_under_locks(
    destinations: &[Destination<'_>],
    memtables: &[Arc<Memtable>],
    encoded: Vec<EncodedRows>,
    records: &mut Entries,
    log: &CommitLog,
) -> Option<Result<Applied, StorageError>> {
    let mut guards: Vec<WriteGuard<'_>> = Vec::with_capacity(1);
    let mut guard_of = Vec::with_capacity(destinations.len());
    for (index, memtable) in memtables.iter().enumerate() {
        // destinations of one memtable stand side by side
        let same = index > 0 && Arc::ptr_eq(&memtables[index - 1], memtable);
        if !same {
            guards.push(memtable.enter_to_write().ok()?);
        }
        guard_of.push(guards.len() - 1);
    }
    let mut appended = None;
    if !records.is_empty() {
        let dirty: SmallVec<[DirtyKey; 4]> =
            destinations.iter().map(|destination| (destination.store.id, destination.shard as u16)).collect();
        let is_captured = destinations.iter().any(|destination| destination.update.table.params.cdc == Some(true));
        let range = match log.append_entries(records, &dirty, is_captured) {
            Err(LogError::NoSpace { .. })
                if destinations.iter().all(|destination| may_use_reserve(&destination.update.table)) =>
            {
                log.append_reserved(records, &dirty)
            }
            range => range,
        };
        match range {
            Ok(range) => appended = Some(range),
            Err(error) => return Some(Err(error.into())),
        }
    }
    let (mut added, mut encoded) = (0, encoded.into_iter());
    for (destination, guard) in destinations.iter().zip(guard_of) {
        added += guards[guard].apply_encoded(destination.update, appended, encoded.next().unwrap_or_default());
        destination.store.metrics.writes.add(1);
    }
    Some(Ok(Applied { position: appended.map(|range| range.last), added }))
}
