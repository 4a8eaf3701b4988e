//! Writing: mutations go into the commit log's buffer and into memtables in one step.
//!
//! 1. The mutations are serialised outside of any door.
//! 2. The doors of all memtables that they touch are entered, in order of table and shard: nobody can wait for another in a circle.
//!    A frozen memtable sends the writer back to the table's new view.
//! 3. Inside: the records are appended to the log's buffer, contiguous, and the updates applied.
//! 4. The position of the last record is given to the caller, who waits until it is durable as configured.

use std::sync::Arc;

use bytes::Bytes;
use rows::codec::encode_mutation;
use rows::{Mutation, PartitionUpdate};

use crate::commitlog::{CommitLog, DirtyShard, LogPosition};
use crate::error::StorageError;
use crate::memtable::{Memtable, WriteGuard};
use crate::table::TableStore;

/// Where an update goes.
struct Target<'a> {
    store: Arc<TableStore>,
    shard: usize,
    update: &'a PartitionUpdate,
    mutation: usize,
}

/// Applies mutations as one step. `store_of` finds the table of each update. `durable`: false leaves the commit log out.
pub fn apply(
    mutations: &[Mutation],
    log: &CommitLog,
    durable: bool,
    store_of: impl Fn(&PartitionUpdate) -> Result<Arc<TableStore>, StorageError>,
) -> Result<Option<LogPosition>, StorageError> {
    let mut targets = Vec::with_capacity(mutations.len());
    for (index, mutation) in mutations.iter().enumerate() {
        for update in &mutation.updates {
            let store = store_of(update)?;
            let shard = store.shards.of(update.key.token);
            targets.push(Target { store, shard, update, mutation: index });
        }
    }
    targets.sort_by_key(|target| (target.store.id, target.shard));
    let records = if durable { serialize(mutations) } else { Vec::new() };
    loop {
        let memtables: Vec<Arc<Memtable>> =
            targets.iter().map(|target| Arc::clone(&target.store.view().active[target.shard])).collect();
        if let Some(result) = apply_inside(&targets, &memtables, &records, log) {
            return result;
        }
        // the new memtables are in the view before the old ones are frozen: the next look finds them
        std::hint::spin_loop();
    }
}

fn serialize(mutations: &[Mutation]) -> Vec<Bytes> {
    mutations
        .iter()
        .map(|mutation| {
            let mut record = Vec::with_capacity(256);
            encode_mutation(&mut record, mutation);
            Bytes::from(record)
        })
        .collect()
}

/// None: a memtable is frozen.
fn apply_inside(
    targets: &[Target<'_>],
    memtables: &[Arc<Memtable>],
    records: &[Bytes],
    log: &CommitLog,
) -> Option<Result<Option<LogPosition>, StorageError>> {
    let mut guards: Vec<WriteGuard<'_>> = Vec::with_capacity(1);
    let mut guard_of = Vec::with_capacity(targets.len());
    for (index, memtable) in memtables.iter().enumerate() {
        // targets of one memtable stand side by side
        let same = index > 0 && Arc::ptr_eq(&memtables[index - 1], memtable);
        if !same {
            guards.push(memtable.enter_to_write().ok()?);
        }
        guard_of.push(guards.len() - 1);
    }
    let mut positions: Vec<Option<LogPosition>> = Vec::new();
    if !records.is_empty() {
        let dirty = |mutation: usize| {
            targets
                .iter()
                .filter(move |target| target.mutation == mutation)
                .map(|target| DirtyShard { table: target.store.id.0, shard: target.shard as u16 })
                .collect::<Vec<_>>()
        };
        let appended = match records {
            [record] => log.append(record, &dirty(0)).map(|position| vec![position]),
            _ => {
                let group: Vec<_> =
                    records.iter().enumerate().map(|(index, record)| (record.clone(), dirty(index))).collect();
                log.append_group(&group)
            }
        };
        match appended {
            Ok(appended) => positions.extend(appended.into_iter().map(Some)),
            Err(error) => return Some(Err(error.into())),
        }
    }
    for (target, guard) in targets.iter().zip(guard_of) {
        guards[guard].apply(target.update, positions.get(target.mutation).copied().flatten());
        target.store.metrics.writes.add(1);
    }
    Some(Ok(positions.last().copied().flatten()))
}
