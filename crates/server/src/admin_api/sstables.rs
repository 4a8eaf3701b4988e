//! What an operator does to SSTables: imports, and work on each SSTable of some tables. All return when it is done.
//!
//! Agrees with the verbs of `StorageServiceMBean` that go through `CompactionManager.parallelAllSSTableOperation`.

use std::path::PathBuf;
use std::sync::Arc;

use admin::api::Result;
use admin::model::{ImportRequest, SSTableOutcome, SSTableRequest, SSTableWork, StopRequest, TableSelection};
use sstable::{Component, CompressionParams, SSTable};
use storage::compaction::kind::Kind;
use storage::compaction::operation::{Operation, Status, Work};
use storage::compaction::strategy::only_purges_repaired;
use storage::{TableStore, files, import, scrub, verify};

use super::verbs::selected;
use super::{NodeAdmin, failed, invalid, wait};

fn store(admin: &NodeAdmin, keyspace: &str, table: &str) -> Result<Arc<TableStore>> {
    match admin.engine().table_by_name(keyspace, table) {
        Some(store) => Ok(store),
        None => invalid(format!("Unknown keyspace/cf pair ({keyspace}.{table})")),
    }
}

/// Gives the directories that failed.
pub(super) fn import(admin: &NodeAdmin, request: &ImportRequest) -> Result<Vec<String>> {
    let store = store(admin, &request.keyspace, &request.table)?;
    let options = import::Options {
        directories: request.directories.iter().map(PathBuf::from).collect(),
        reset_level: request.reset_level,
        clear_repaired: request.clear_repaired,
        verify: request.verify,
        extended_verify: request.extended_verify,
        copy: request.copy,
    };
    let left_out = import::import(admin.engine(), &store, &options).map_err(failed)?;
    admin.engine().compactor.wake();
    Ok(left_out.iter().map(|directory| directory.display().to_string()).collect())
}

pub(super) fn refresh(admin: &NodeAdmin, keyspace: &str, table: &str) -> Result<()> {
    let store = store(admin, keyspace, table)?;
    import::refresh(admin.engine(), &store).map_err(failed)?;
    admin.engine().compactor.wake();
    Ok(())
}

/// One after the other. A name that the table has not is passed over, as in Cassandra.
pub(super) fn rebuild_indexes(admin: &NodeAdmin, keyspace: &str, table: &str, names: &[String]) -> Result<()> {
    let (engine, store) = (admin.engine(), store(admin, keyspace, table)?);
    let view = store.view();
    for index in view.indexes.iter().filter(|index| names.iter().any(|name| name == index.name())) {
        let rebuilt = engine.index_builder.rebuild(engine, &store, index.name()).map_err(failed)?;
        wait(rebuilt)?.map_err(failed)?;
    }
    Ok(())
}

/// Table by table; how it ended is how it ended for the last that did not go well.
pub(super) fn work(admin: &NodeAdmin, request: &SSTableRequest) -> Result<SSTableOutcome> {
    let selection = TableSelection { keyspaces: vec![request.keyspace.clone()], tables: request.tables.clone() };
    let stores = selected(admin, &selection)?;
    tracing::info!(work = ?request.work, "starting on {}.{:?}", request.keyspace, request.tables);
    let mut outcome = SSTableOutcome::default();
    let mut failures = Vec::new();
    for store in stores {
        let Some(operation) = operation(admin, &store, request)? else { continue };
        let kind = operation.kind;
        match wait(admin.engine().operate(&store, operation))? {
            Ok(ended) => {
                if ended.status != Status::Successful {
                    outcome.status = ended.status as u8;
                }
                outcome.lines.extend(shown(kind, ended.lines));
            }
            // each table is looked at for itself
            Err(error) if kind == Kind::Verify => failures.push(error.to_string()),
            Err(error) => return Err(failed(error)),
        }
    }
    if !failures.is_empty() {
        return Err(failed(failures.join("\n")));
    }
    tracing::info!(work = ?request.work, status = outcome.status, "completed");
    Ok(outcome)
}

/// Cassandra's nodetool says nothing of what went well.
fn shown(kind: Kind, lines: Vec<String>) -> Vec<String> {
    if kind == Kind::Scrub { lines } else { Vec::new() }
}

/// What is to be done with a table; None: nothing.
fn operation(admin: &NodeAdmin, store: &Arc<TableStore>, request: &SSTableRequest) -> Result<Option<Operation>> {
    let jobs = request.jobs as usize;
    Ok(Some(match request.work {
        SSTableWork::Upgrade { include_all, max_timestamp } => {
            let version = files::version(admin.engine());
            let disk = Arc::clone(&admin.services.node.env.disk);
            let select = move |sstable: &SSTable| {
                let descriptor = sstable.descriptor();
                let written = disk.modified_millis(&descriptor.path(Component::Data)).unwrap_or(0);
                (include_all || descriptor.version != version)
                    && i64::try_from(written).unwrap_or(i64::MAX) <= max_timestamp
            };
            Operation { select: Box::new(select), ..Operation::new(Kind::Upgrade, Work::Rewrite, jobs) }
        }
        SSTableWork::Recompress => {
            let params = CompressionParams::from_schema(&store.table().params.compression).map_err(failed)?;
            let select =
                move |sstable: &SSTable| sstable.data().compression().map(|info| &info.params) != params.as_ref();
            Operation { select: Box::new(select), ..Operation::new(Kind::Upgrade, Work::Rewrite, jobs) }
        }
        SSTableWork::Verify { extended, check_version, mutate_repair_status, quick, .. } => {
            let options = verify::Options { extended, check_version, mutate_repair_status, quick };
            Operation::new(Kind::Verify, Work::Verify(options), jobs)
        }
        SSTableWork::Scrub { reinsert_overflowed_ttl: true, .. } => {
            return invalid("--reinsert-overflowed-ttl exists in Cassandra, but is not supported");
        }
        SSTableWork::Scrub { no_snapshot, skip_corrupted, no_validate, .. } => {
            if !no_snapshot {
                scrub::snapshot(admin.engine(), store).map_err(failed)?;
            }
            let options = scrub::Options { skip_corrupted, validate: !no_validate };
            Operation::new(Kind::Scrub, Work::Scrub(options), jobs)
        }
        SSTableWork::GarbageCollect { cells } => {
            let only_repaired = only_purges_repaired(&store.table().params.compaction);
            let select = move |sstable: &SSTable| !only_repaired || sstable.statistics().stats.repaired_at > 0;
            let work = Work::GarbageCollect { cells };
            Operation { select: Box::new(select), ..Operation::new(Kind::GarbageCollect, work, jobs) }
        }
        SSTableWork::Relocate if store.directories.len() > 1 => {
            return invalid("relocatesstables is not supported yet with several data directories");
        }
        // there is one data directory: every SSTable is where it belongs
        SSTableWork::Relocate => return Ok(None),
    }))
}

pub(super) fn stop(admin: &NodeAdmin, request: &StopRequest) -> Result<()> {
    let compactions = &admin.engine().compactions;
    match request {
        // kinds that there are not have nothing to be stopped
        StopRequest::Kind(word) => Kind::from_word(word).into_iter().for_each(|kind| compactions.stop_kind(kind)),
        StopRequest::Id(text) => match types::literal::parse_text(&types::CqlType::TimeUuid, text) {
            Ok(id) => id.as_slice().try_into().into_iter().for_each(|id| compactions.stop_id(id)),
            Err(error) => return invalid(format!("'{text}' is no id of a compaction: {error}")),
        },
    }
    admin.engine().compactor.wake();
    Ok(())
}
