//! Whether there is room on disk for the output of a compaction, which may be as large as its
//! inputs. Compactions that run still need room too, and all of them may use what
//! [`crate::DiskRoom`] leaves. Validations, verifications and builds write no SSTables and take no
//! room.
//!
//! A compaction whose SSTables no operator has named is begun with fewer if that helps: without
//! the largest, again and again; of a leveled one into L1 or below only SSTables of L0 can be left
//! out. SSTables that have expired are not read and need no room: if there is room for nothing
//! else they are removed alone; otherwise a full disk would never get rid of them. Agrees with
//! `CompactionTask.buildCompactionCandidatesForAvailableDiskSpace` and
//! `reduceScopeForLimitedSpace`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use sstable::SSTable;

use crate::engine::Engine;
use crate::error::StorageError;
use crate::requests::operations::Work;
use crate::strategy::output::Output;
use crate::table::TableStore;

/// Err: there is no room for so many bytes.
pub fn check(engine: &Engine, store: &TableStore, total: u64) -> Result<(), StorageError> {
    let available = available(engine, store)?;
    if available < total {
        let message = format!("a compaction of {total} bytes has only {available} bytes of disk");
        return Err(StorageError::NoSpace { path: store.directory.clone(), message });
    }
    Ok(())
}

/// Takes SSTables out of the inputs until there is room for the rest, and gives those that it
/// took. `others_go`: the compaction also has expired SSTables, which are removed without being
/// read; so all inputs may be taken out, if a strategy chose them.
pub fn reduce_scope(
    engine: &Engine,
    store: &TableStore,
    inputs: &mut Vec<Arc<SSTable>>,
    (output, work): (Output, Work),
    others_go: bool,
) -> Result<Vec<Arc<SSTable>>, StorageError> {
    let available = available(engine, store)?;
    let mut removed = Vec::new();
    loop {
        let total: u64 = inputs.iter().map(|sstable| sstable.stored_length()).sum();
        if total <= available {
            return Ok(removed);
        }
        let Some(largest) = dispensable(inputs, output, work) else {
            if others_go && work == Work::Chosen {
                tracing::warn!(
                    table = store.name(),
                    bytes = total,
                    available,
                    "not enough disk to compact what was chosen: only SSTables that have expired as a whole go"
                );
                removed.append(inputs);
                return Ok(removed);
            }
            return check(engine, store, total).map(|()| removed);
        };
        let sstable = inputs.swap_remove(largest);
        tracing::warn!(
            table = store.name(),
            sstable = sstable.descriptor().prefix(),
            bytes = total,
            available,
            "not enough disk to compact all that was chosen: the largest SSTable is left out"
        );
        removed.push(sstable);
    }
}

/// The SSTable that is left out next; None: none may be left out.
fn dispensable(inputs: &[Arc<SSTable>], output: Output, work: Work) -> Option<usize> {
    let level = |sstable: &SSTable| sstable.statistics().stats.level;
    let only_l0 = match (work, output) {
        (Work::Chosen, Output::Sized { level, .. }) if level > 1 => return None,
        (Work::Chosen | Work::Major { .. }, Output::Sized { .. } | Output::Levels { .. }) => true,
        (Work::Chosen | Work::Major { .. }, _) => false,
        _ => return None,
    };
    let candidates = inputs.iter().enumerate().filter(|(_, sstable)| !only_l0 || level(sstable) == 0);
    let (count, largest) = candidates.fold((0, None::<(usize, u64)>), |(count, largest), (index, sstable)| {
        let length = sstable.stored_length();
        (count + 1, largest.filter(|(_, most)| *most >= length).or(Some((index, length))))
    });
    // a compaction of one alone would be for nothing
    largest.filter(|_| count > 1 && inputs.len() > 2).map(|(index, _)| index)
}

/// Bytes that a compaction of a table may write now.
fn available(engine: &Engine, store: &TableStore) -> Result<u64, StorageError> {
    let directory = crate::files::directory_to_write(&engine.env, store);
    let free = engine.env.disk.available_space(directory).map_err(|error| StorageError::io(directory, &error))?;
    let running = engine.compactions.running();
    let ahead = |total: u64, done: u64| total.saturating_sub(done);
    let writing = running.iter().filter(|task| task.kind.writes_sstables());
    let promised: u64 = writing.map(|task| ahead(task.total, task.done.load(Ordering::Relaxed))).sum();
    Ok(engine.options.disk_room.of(free).saturating_sub(promised))
}
