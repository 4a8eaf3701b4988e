//! Work on SSTables: imports, rebuilt indexes, and what is done to each SSTable of some tables
//! (upgrade, verify, scrub, garbage collection). Agrees with the verbs of `StorageServiceMBean`
//! that go through `CompactionManager.parallelAllSSTableOperation`.

use std::sync::Arc;

use ring::Replication;
use sstable::{Component, CompressionParams, SSTable, Version};
use storage::compaction::kind::Kind;
use storage::compaction::operation::{Operation, Status};
use storage::compaction::strategy::only_purges_repaired;
use storage::token_ranges::TokenRanges;
use storage::{TableStore, files, import, scrub};

use super::tables::{self, Selection};
use super::{Result, failed, invalid};
use crate::node::Node;

pub use storage::import::Options as ImportOptions;
pub use storage::scrub::Options as ScrubOptions;
pub use storage::verify::Options as VerifyOptions;

/// A kind of work on each SSTable of a table.
#[derive(Clone, Copy, Debug)]
pub enum Work {
    /// The SSTable is written again in the present version.
    Upgrade {
        /// SSTables of the present version are written again too.
        include_all: bool,
        /// Only data files written up to this time are written again; milliseconds since 1970.
        max_timestamp: i64,
    },
    /// The SSTable is written again if its compression is not that of the table.
    Recompress,
    /// The SSTable is read and compared with its checksums.
    Verify {
        /// How much of the SSTable is read.
        options: VerifyOptions,
        /// A partition that this node does not hold is an error.
        check_tokens: bool,
    },
    /// The SSTable is written again as far as it can be read.
    Scrub {
        /// How corrupt partitions and values are treated.
        options: ScrubOptions,
        /// The table is not saved in a snapshot first.
        no_snapshot: bool,
    },
    /// The SSTable is written again without what other SSTables delete.
    GarbageCollect {
        /// Deleted cells are left out too, not only rows.
        cells: bool,
    },
    /// The SSTable goes to the directory that its tokens belong to.
    Relocate,
}

/// How work on SSTables ended.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Outcome {
    /// 0: done; 1: stopped before its end; 2: another operation had the SSTables.
    pub status: u8,
    /// Lines that are worth telling the operator.
    pub lines: Vec<String>,
}

/// The version of new SSTables. Those of other versions are what [`Work::Upgrade`] writes again.
pub fn version(node: &Node) -> Version {
    files::version(&node.engine)
}

/// Brings SSTables of other directories into a table. Gives the directories that failed;
/// `verify_tokens`: also those with partitions that this node does not hold.
pub fn import(
    node: &Node,
    keyspace: &str,
    table: &str,
    options: &ImportOptions,
    verify_tokens: bool,
) -> Result<Vec<String>> {
    let store = tables::named(node, keyspace, table)?;
    let held = if verify_tokens { held(node, keyspace) } else { None };
    let left_out = import::import(&node.engine, &store, options, held.as_ref()).map_err(failed)?;
    node.engine.compactor.wake();
    Ok(left_out.iter().map(|directory| directory.display().to_string()).collect())
}

/// The ranges of a keyspace that this node holds or is about to hold; None: every node has data of
/// its own in the keyspace. `org.apache.cassandra.service.StorageService.getLocalAndPendingRanges`.
fn held(node: &Node, keyspace: &str) -> Option<TokenRanges> {
    let ring = node.ring();
    let placement = ring.placement(keyspace).filter(|placement| placement.replication != Replication::Local)?;
    let local = ring.local_id();
    let held: Vec<_> = placement
        .ranges()
        .filter(|(_, end, replicas)| replicas.contains(&local) || placement.pending(*end).contains(&local))
        .map(|(start, end, _)| (start, end))
        .collect();
    Some(TokenRanges::new(&held))
}

/// Opens SSTables that were put into a table's own directory.
pub fn refresh(node: &Node, keyspace: &str, table: &str) -> Result<()> {
    let store = tables::named(node, keyspace, table)?;
    import::refresh(&node.engine, &store).map_err(failed)?;
    node.engine.compactor.wake();
    Ok(())
}

/// Makes indexes of a table again, one after the other. A name that the table does not have is
/// passed over, as in Cassandra.
pub async fn rebuild_indexes(node: &Node, keyspace: &str, table: &str, names: &[String]) -> Result<()> {
    let store = tables::named(node, keyspace, table)?;
    let view = store.view();
    for index in view.indexes.iter().filter(|index| names.iter().any(|name| name == index.name())) {
        let rebuilt = node.engine.index_builder.rebuild(&node.engine, &store, index.name()).map_err(failed)?;
        rebuilt.await.map_err(failed)?;
    }
    Ok(())
}

/// Works on the SSTables of tables, one table after the other, `jobs` SSTables at a time (0: as
/// many as there are compactors). The status is that of the last table that did not end well. A
/// failed verification does not keep the tables behind it from being verified.
pub async fn work(node: &Node, selection: Selection<'_>, jobs: usize, work: Work) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let mut failures = Vec::new();
    for store in tables::selected(node, selection)? {
        let Some(operation) = operation(node, &store, jobs, work)? else { continue };
        let kind = operation.kind;
        match node.engine.operate(&store, operation).await {
            Ok(ended) => {
                if ended.status != Status::Successful {
                    outcome.status = ended.status as u8;
                }
                outcome.lines.extend(worth_telling(kind, ended.lines));
            }
            Err(error) if kind == Kind::Verify => failures.push(error.to_string()),
            Err(error) => return Err(failed(error)),
        }
    }
    match failures.is_empty() {
        true => Ok(outcome),
        false => Err(failed(failures.join("\n"))),
    }
}

/// Leaves out the lines of work that went well, except for scrubs, as Cassandra's nodetool does.
fn worth_telling(kind: Kind, lines: Vec<String>) -> Vec<String> {
    if kind == Kind::Scrub { lines } else { Vec::new() }
}

/// The operation on a table; None: there is nothing to do.
fn operation(node: &Node, store: &Arc<TableStore>, jobs: usize, work: Work) -> Result<Option<Operation>> {
    use storage::compaction::operation::Work as Inner;
    Ok(Some(match work {
        Work::Upgrade { include_all, max_timestamp } => {
            let version = version(node);
            let disk = Arc::clone(&node.env.disk);
            let select = move |sstable: &SSTable| {
                let descriptor = sstable.descriptor();
                let written = disk.modified_millis(&descriptor.path(Component::Data)).unwrap_or(0);
                (include_all || descriptor.version != version)
                    && i64::try_from(written).unwrap_or(i64::MAX) <= max_timestamp
            };
            Operation { select: Box::new(select), ..Operation::new(Kind::Upgrade, Inner::Rewrite, jobs) }
        }
        Work::Recompress => {
            let params = CompressionParams::from_schema(&store.table().params.compression).map_err(failed)?;
            let select =
                move |sstable: &SSTable| sstable.data().compression().map(|info| &info.params) != params.as_ref();
            Operation { select: Box::new(select), ..Operation::new(Kind::Upgrade, Inner::Rewrite, jobs) }
        }
        Work::Verify { options, check_tokens } => {
            let held = if check_tokens { held(node, &store.table().keyspace).map(Arc::new) } else { None };
            Operation { kept: held, ..Operation::new(Kind::Verify, Inner::Verify(options), jobs) }
        }
        Work::Scrub { options, no_snapshot } => {
            if !no_snapshot {
                scrub::snapshot(&node.engine, store).map_err(failed)?;
            }
            Operation::new(Kind::Scrub, Inner::Scrub(options), jobs)
        }
        Work::GarbageCollect { cells } => {
            let only_repaired = only_purges_repaired(&store.table().params.compaction);
            let select = move |sstable: &SSTable| !only_repaired || sstable.statistics().stats.repaired_at > 0;
            let work = Inner::GarbageCollect { cells };
            Operation { select: Box::new(select), ..Operation::new(Kind::GarbageCollect, work, jobs) }
        }
        Work::Relocate if store.directories.len() > 1 => {
            return invalid("relocatesstables is not supported yet with several data directories");
        }
        // with one data directory every SSTable is where it belongs
        Work::Relocate => return Ok(None),
    }))
}
