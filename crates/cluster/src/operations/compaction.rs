//! Compactions: what runs and waits, what was done, and compactions that an operator asks for.
//! Agrees with `CompactionManager.performMaximal`, `forceCompactionForTokenRange`,
//! `forceCompactionForKey` and `forceUserDefinedCompaction`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use sstable::{Component, SSTable};
use storage::TableStore;
use storage::compaction::choice;
use storage::compaction::kind::Kind;
use storage::compaction::operation::{Operation, Select, Status, Work};
use types::{DecoratedKey, Token};

use super::partition::{holds, parse_key};
use super::tables::{self, Selection};
use super::{Result, failed, invalid};
use crate::compaction_history::{self, Entry};
use crate::node::Node;

/// Figures of compactions since the start.
#[derive(Clone, PartialEq, Debug)]
pub struct CompactionFigures {
    /// How many compactions may run at a time.
    pub concurrency: usize,
    /// Keyspace, table and number of compactions that should run; tables without any are left out.
    pub pending: Vec<(String, String, u64)>,
    /// Compactions that ended well.
    pub completed: u64,
    /// Bytes that these compactions read.
    pub bytes_compacted: u64,
    /// Compactions that were stopped or failed.
    pub aborted: u64,
    /// Compactions that ran with fewer SSTables than chosen, because the disk had no room for all.
    pub reduced: u64,
    /// SSTables that were left out for want of room.
    pub left_out: u64,
    /// Compactions that ended well in the last `recent_millis`.
    pub recent: u64,
    /// Bytes a second that compactions may write; 0: as many as they can.
    pub rate: u64,
}

/// A compaction that runs now.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunningCompaction {
    /// The id of the compaction, a time UUID.
    pub id: [u8; 16],
    /// The kind of work in Cassandra's word ("Compaction", "Scrub").
    pub kind: &'static str,
    /// Keyspace.
    pub keyspace: String,
    /// Table.
    pub table: String,
    /// Bytes read so far.
    pub done: u64,
    /// Bytes to read.
    pub total: u64,
    /// How many SSTables are read.
    pub sstables: usize,
}

/// Which SSTables of some tables are compacted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inputs<'a> {
    /// All SSTables, as the strategy compacts all of them.
    All {
        /// The output is split by size, and not one large SSTable.
        split: bool,
    },
    /// SSTables with tokens from the first to the last, both included. A last one before the first
    /// goes around the ring.
    Tokens {
        /// The first token, as text.
        first: &'a str,
        /// The last token, as text.
        last: &'a str,
    },
    /// SSTables that hold a partition; the key as [`parse_key`] reads it.
    Partition(&'a str),
    /// SSTables that hold one of these partitions, whose tombstones may be purged before
    /// gc_grace_seconds are over.
    Keys(&'a [String]),
}

/// The figures; `recent_millis`: the span of [`CompactionFigures::recent`], which is fifteen
/// minutes at most.
pub fn figures(node: &Node, recent_millis: i64) -> CompactionFigures {
    let (engine, compactions) = (&node.engine, &node.engine.compactions);
    let since = node.env.clock.now_micros() / 1000 - recent_millis;
    CompactionFigures {
        concurrency: engine.compactor.concurrency(),
        pending: pending(node),
        completed: compactions.completed.load(Ordering::Relaxed),
        bytes_compacted: compactions.bytes_compacted.load(Ordering::Relaxed),
        aborted: compactions.aborted.load(Ordering::Relaxed),
        reduced: compactions.reduced.load(Ordering::Relaxed),
        left_out: compactions.left_out.load(Ordering::Relaxed),
        recent: compactions.ended_since(since),
        rate: engine.compaction_rate(),
    }
}

fn pending(node: &Node) -> Vec<(String, String, u64)> {
    let of_store = |store: &Arc<TableStore>| {
        let table = store.table();
        (table.keyspace.clone(), table.name.clone(), choice::pending(store) as u64)
    };
    let mut pending: Vec<_> = tables::all(node).iter().map(of_store).filter(|(_, _, count)| *count > 0).collect();
    pending.sort();
    pending
}

/// The compactions that run now, and other work on SSTables.
pub fn running(node: &Node) -> Vec<RunningCompaction> {
    let running = node.engine.compactions.running();
    let shown = running.iter().map(|task| RunningCompaction {
        id: task.id,
        kind: task.kind.name(),
        keyspace: task.keyspace.clone(),
        table: task.table.clone(),
        done: task.done.load(Ordering::Relaxed),
        total: task.total,
        sstables: task.sstables,
    });
    shown.collect()
}

/// The rows of `system.compaction_history`, in any order.
pub fn history(node: &Node) -> Result<Vec<Entry>> {
    compaction_history::read(&node.engine).map_err(failed)
}

/// How many compactions may run at a time.
pub fn concurrency(node: &Node) -> usize {
    node.engine.compactor.concurrency()
}

/// Sets how many compactions may run at a time.
pub fn set_concurrency(node: &Node, count: usize) -> Result<()> {
    node.engine.compactor.set_concurrency(&node.engine, count).map_err(failed)
}

/// How many bytes a second compactions may write; 0: as many as they can.
pub fn rate(node: &Node) -> u64 {
    node.engine.compaction_rate()
}

/// Sets how many bytes a second compactions may write; 0: as many as they can.
pub fn set_rate(node: &Node, bytes_per_second: u64) {
    node.engine.set_compaction_rate(bytes_per_second);
}

/// Asks compactions of a kind to end, by Cassandra's word for the kind; a word that names no kind
/// stops nothing.
pub fn stop_kind(node: &Node, word: &str) {
    Kind::from_word(word).into_iter().for_each(|kind| node.engine.compactions.stop_kind(kind));
    node.engine.compactor.wake();
}

/// Asks the compaction of an id to end.
pub fn stop_id(node: &Node, text: &str) -> Result<()> {
    match types::literal::parse_text(&types::CqlType::TimeUuid, text) {
        Ok(id) => id.as_slice().try_into().into_iter().for_each(|id| node.engine.compactions.stop_id(id)),
        Err(error) => return invalid(format!("'{text}' is no id of a compaction: {error}")),
    }
    node.engine.compactor.wake();
    Ok(())
}

/// Compacts SSTables of some tables; those of several tables beside each other.
pub async fn compact(node: &Node, selection: Selection<'_>, inputs: Inputs<'_>) -> Result<()> {
    let stores = tables::selected(node, selection)?;
    if let Inputs::All { split } = inputs {
        tables::flush_all(node, &stores).await?;
        let major = |store| (store, Operation::new(Kind::MajorCompaction, Work::Major { split }, 0));
        return run(node, stores.into_iter().map(major).collect()).await;
    }
    let of_store = |store: Arc<TableStore>| {
        let (select, graceless) = (select(&store, inputs)?, purgeable_partitions(&store, inputs)?);
        Ok((store, Operation { select, graceless, ..Operation::new(Kind::MajorCompaction, Work::Named, 0) }))
    };
    let operations = stores.into_iter().map(of_store).collect::<Result<_>>()?;
    run(node, operations).await
}

/// Compacts the SSTables of these data files together, table by table. Each text names one file or
/// several, separated by commas.
pub async fn compact_files(node: &Node, files: &[String]) -> Result<()> {
    let operations = of_files(node, files)?;
    run(node, operations).await
}

async fn run(node: &Node, operations: Vec<(Arc<TableStore>, Operation)>) -> Result<()> {
    let begin =
        |(store, operation): (Arc<TableStore>, Operation)| (store.name(), node.engine.operate(&store, operation));
    let begun: Vec<_> = operations.into_iter().map(begin).collect();
    for (table, end) in begun {
        if end.await.map_err(failed)?.status != Status::Successful {
            return Err(failed(format!("another operation has the SSTables of {table}: nothing was compacted")));
        }
    }
    Ok(())
}

/// The partitions whose tombstones may be purged early.
fn purgeable_partitions(store: &TableStore, inputs: Inputs<'_>) -> Result<Arc<BTreeSet<DecoratedKey>>> {
    let Inputs::Keys(keys) = inputs else { return Ok(Arc::default()) };
    let table = store.table();
    keys.iter().map(|key| parse_key(&table, key)).collect::<Result<_>>().map(Arc::new)
}

/// The SSTables of a table that are compacted.
fn select(store: &TableStore, inputs: Inputs<'_>) -> Result<Select> {
    match inputs {
        Inputs::All { .. } => Ok(Box::new(|_| true)),
        Inputs::Tokens { first, last } => {
            let (first, last) = (token(first)?, token(last)?);
            let is_within = move |sstable: &SSTable| match first <= last {
                true => sstable.overlaps(first, last),
                false => sstable.overlaps(first, Token::MAX) || sstable.overlaps(Token::MIN, last),
            };
            Ok(Box::new(is_within))
        }
        Inputs::Partition(key) => {
            let key = parse_key(&store.table(), key)?;
            // an SSTable that cannot be read is compacted too: the compaction reports what is wrong
            // with it
            Ok(Box::new(move |sstable| holds(sstable, &key).unwrap_or(true)))
        }
        Inputs::Keys(_) => {
            let keys = purgeable_partitions(store, inputs)?;
            Ok(Box::new(move |sstable| keys.iter().any(|key| holds(sstable, key).unwrap_or(true))))
        }
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

/// One operation for each table that has some of the data files.
fn of_files(node: &Node, files: &[String]) -> Result<Vec<(Arc<TableStore>, Operation)>> {
    let mut by_table = BTreeMap::new();
    for file in files.iter().flat_map(|files| files.split(',')) {
        let is_file = |sstable: &&Arc<SSTable>| {
            let data = sstable.descriptor().path(Component::Data);
            data.ends_with(Path::new(file.trim()))
        };
        let found = tables::all(node).into_iter().find_map(|store| {
            let descriptor = store.view().sstables.iter().find(is_file)?.descriptor().clone();
            Some((store, descriptor))
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
