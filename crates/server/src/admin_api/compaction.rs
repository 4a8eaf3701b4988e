//! What is compacted, waits for it, and was; and what an operator has compacted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use admin::api::Result;
use admin::model::{
    Compact, CompactRequest, CompactionHistoryEntry, CompactionStats, RunningCompaction, TableSelection,
};
use cluster::clock::uuid_text;
use sstable::{Component, SSTable};
use storage::TableStore;
use storage::compaction::choice;
use storage::compaction::kind::Kind;
use storage::compaction::operation::{Operation, Select, Status, Work};
use types::{DecoratedKey, Token};

use super::partition::{holds, parse_key};
use super::verbs::{flush_all, selected};
use super::{NodeAdmin, failed, invalid, wait};

/// The span of the shorter rate.
const RATE_MILLIS: i64 = 15 * 60 * 1000;

pub(super) fn stats(admin: &NodeAdmin) -> CompactionStats {
    let engine = admin.engine();
    let compactions = &engine.compactions;
    let completed = compactions.completed.load(Ordering::Relaxed);
    let since = admin.services.node.env.clock.now_micros() / 1000 - RATE_MILLIS;
    let recent = compactions.history().iter().filter(|finished| finished.at_millis >= since).count();
    let mut pending: Vec<(String, String, u64)> = engine
        .tables()
        .iter()
        .map(|store| {
            let table = store.table();
            (table.keyspace.clone(), table.name.clone(), choice::pending(store) as u64)
        })
        .filter(|(_, _, count)| *count > 0)
        .collect();
    pending.sort();
    CompactionStats {
        concurrent_compactors: u32::try_from(engine.compactor.concurrency()).unwrap_or(u32::MAX),
        pending,
        completed,
        bytes_compacted: compactions.bytes_compacted.load(Ordering::Relaxed),
        aborted: compactions.aborted.load(Ordering::Relaxed),
        reduced: compactions.reduced.load(Ordering::Relaxed),
        dropped_sstables: compactions.left_out.load(Ordering::Relaxed),
        fifteen_minute_rate: recent as f64 / (RATE_MILLIS / 1000) as f64,
        mean_rate: completed as f64 / admin.services.uptime_seconds().max(1) as f64,
        throughput: engine.compaction_rate(),
        running: running(admin),
    }
}

fn running(admin: &NodeAdmin) -> Vec<RunningCompaction> {
    let running = admin.engine().compactions.running();
    running
        .iter()
        .map(|task| RunningCompaction {
            id: uuid_text(&task.id),
            kind: task.kind.name().to_owned(),
            keyspace: task.keyspace.clone(),
            table: task.table.clone(),
            completed: task.done.load(Ordering::Relaxed),
            total: task.total,
            sstables: task.sstables as u64,
        })
        .collect()
}

pub(super) fn history(admin: &NodeAdmin) -> Result<Vec<CompactionHistoryEntry>> {
    let entries = cluster::compaction_history::read(admin.engine()).map_err(failed)?;
    let shown = entries.into_iter().map(|entry| CompactionHistoryEntry {
        id: uuid_text(&entry.id),
        keyspace: entry.keyspace,
        table: entry.table,
        compacted_at: entry.compacted_at,
        bytes_in: entry.bytes_in,
        bytes_out: entry.bytes_out,
        rows_merged: entry.rows_merged,
        properties: entry.properties,
    });
    Ok(shown.collect())
}

/// Compactions of several tables run beside each other.
pub(super) fn compact(admin: &NodeAdmin, request: &CompactRequest) -> Result<()> {
    let operations = operations(admin, request)?;
    let ends: Vec<_> = operations
        .into_iter()
        .map(|(store, operation)| (store.name(), admin.engine().operate(&store, operation)))
        .collect();
    wait(async {
        for (table, end) in ends {
            if end.await.map_err(failed)?.status != Status::Successful {
                return Err(failed(format!("another operation has the SSTables of {table}: nothing was compacted")));
            }
        }
        Ok(())
    })?
}

fn operations(admin: &NodeAdmin, request: &CompactRequest) -> Result<Vec<(Arc<TableStore>, Operation)>> {
    if let Compact::Files(files) = &request.what {
        return named(admin, files);
    }
    let stores = selected(admin, &request.tables)?;
    if let Compact::All { split } = request.what {
        flush_all(admin, &stores)?;
        let major = |store| (store, Operation::new(Kind::MajorCompaction, Work::Major { split }, 0));
        return Ok(stores.into_iter().map(major).collect());
    }
    let of_store = |store: Arc<TableStore>| {
        let (select, graceless) = (select(admin, &store, &request.what)?, graceless(admin, &store, &request.what)?);
        Ok((store, Operation { select, graceless, ..Operation::new(Kind::MajorCompaction, Work::Named, 0) }))
    };
    stores.into_iter().map(of_store).collect()
}

/// The partitions whose tombstones need not wait.
fn graceless(admin: &NodeAdmin, store: &TableStore, what: &Compact) -> Result<Arc<BTreeSet<DecoratedKey>>> {
    let Compact::Keys(keys) = what else { return Ok(Arc::default()) };
    let table = store.table();
    let parse = |key: &String| Ok(parse_key(admin, &table.keyspace, &table.name, key)?.1);
    keys.iter().map(parse).collect::<Result<_>>().map(Arc::new)
}

/// SSTables with some of the tokens, or with a partition.
fn select(admin: &NodeAdmin, store: &TableStore, what: &Compact) -> Result<Select> {
    let table = store.table();
    match what {
        Compact::Tokens { first, last } => {
            let (first, last) = (token(first)?, token(last)?);
            let within = move |sstable: &SSTable| match first <= last {
                true => sstable.overlaps(first, last),
                false => sstable.overlaps(first, Token::MAX) || sstable.overlaps(Token::MIN, last),
            };
            Ok(Box::new(within))
        }
        Compact::Partition(key) => {
            let (_, key) = parse_key(admin, &table.keyspace, &table.name, key)?;
            // one that cannot be read is shown as such by the compaction
            Ok(Box::new(move |sstable| holds(sstable, &key).unwrap_or(true)))
        }
        Compact::Keys(_) => {
            let keys = graceless(admin, store, what)?;
            Ok(Box::new(move |sstable| keys.iter().any(|key| holds(sstable, key).unwrap_or(true))))
        }
        Compact::All { .. } | Compact::Files(_) => Ok(Box::new(|_| true)),
    }
}

fn token(text: &str) -> Result<Token> {
    match text.trim().parse() {
        Ok(token) => Ok(Token(token)),
        Err(_) => invalid(format!(
            "Invalid token for Murmur3Partitioner. Got {text} but expected a long value (unsigned 8 bytes integer)."
        )),
    }
}

/// The SSTables of data files, table by table.
fn named(admin: &NodeAdmin, files: &[String]) -> Result<Vec<(Arc<TableStore>, Operation)>> {
    let mut by_table = BTreeMap::new();
    for file in files.iter().flat_map(|files| files.split(',')) {
        let is_file = |sstable: &&Arc<SSTable>| {
            let data = sstable.descriptor().path(Component::Data);
            data.ends_with(Path::new(file.trim()))
        };
        let found = admin.engine().tables().into_iter().find_map(|store| {
            let id = store.view().sstables.iter().find(is_file)?.descriptor().clone();
            Some((store, id))
        });
        let Some((store, descriptor)) = found else { return invalid(format!("{file} is not an active sstable")) };
        by_table.entry(store.id).or_insert_with(|| (store, Vec::new())).1.push(descriptor);
    }
    let operation = |(store, descriptors): (Arc<TableStore>, Vec<_>)| {
        let select: Select = Box::new(move |sstable| descriptors.contains(sstable.descriptor()));
        (store, Operation { select, ..Operation::new(Kind::Compaction, Work::Named, 0) })
    };
    Ok(by_table.into_values().map(operation).collect())
}

/// Tables by name, and whether their strategies may choose by themselves.
pub(super) fn auto_compaction(admin: &NodeAdmin, tables: &TableSelection) -> Result<Vec<(String, String, bool)>> {
    let one = |store: &Arc<TableStore>| {
        let table = store.table();
        (table.keyspace.clone(), table.name.clone(), store.auto_compaction.is_on(&table))
    };
    let mut all: Vec<_> = selected(admin, tables)?.iter().map(one).collect();
    all.sort();
    Ok(all)
}

pub(super) fn set_auto_compaction(admin: &NodeAdmin, tables: &TableSelection, on: bool) -> Result<()> {
    selected(admin, tables)?.iter().for_each(|store| store.auto_compaction.set(on));
    admin.engine().compactor.wake();
    Ok(())
}
