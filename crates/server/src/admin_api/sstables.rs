//! SSTables: where partitions and tombstones lie, imports, rebuilt indexes, and work on each
//! SSTable of some tables.

use std::path::PathBuf;

use admin::verbs::{
    GetSSTables, GetTombstones, ImportRequest, RebuildIndexes, Refresh, SSTableOutcome, SSTableRequest, SSTableWork,
    SSTablesOfKey,
};
use admin::{Functions, Result};
use cluster::operations::partition;
use cluster::operations::sstables::{self, ImportOptions, ScrubOptions, VerifyOptions, Work};
use cluster::operations::tables::Selection;

use super::{NodeAdmin, invalid, of_operation, wait};

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(of_key).add(tombstones);
    functions.add(import).add(refresh).add(rebuild_indexes).add(work);
}

fn of_key(admin: &NodeAdmin, request: &GetSSTables) -> Result<SSTablesOfKey> {
    let GetSSTables { keyspace, table, key, hex } = request;
    let found = partition::sstables(admin.cluster(), keyspace, table, key, *hex).map_err(of_operation)?;
    Ok(SSTablesOfKey { is_leveled: found.is_leveled, files: found.files })
}

fn tombstones(admin: &NodeAdmin, request: &GetTombstones) -> Result<Vec<String>> {
    let top = usize::try_from(request.top).unwrap_or(usize::MAX);
    partition::tombstones(admin.cluster(), &request.keyspace, &request.table, top).map_err(of_operation)
}

fn import(admin: &NodeAdmin, request: &ImportRequest) -> Result<Vec<String>> {
    let options = ImportOptions {
        directories: request.directories.iter().map(PathBuf::from).collect(),
        reset_level: request.reset_level,
        clear_repaired: request.clear_repaired,
        verify: request.verify,
        extended_verify: request.extended_verify,
        copy: request.copy,
        require_indexes: request.require_indexes,
    };
    let ImportRequest { keyspace, table, verify_tokens, .. } = request;
    sstables::import(admin.cluster(), keyspace, table, &options, *verify_tokens).map_err(of_operation)
}

fn refresh(admin: &NodeAdmin, request: &Refresh) -> Result<()> {
    sstables::refresh(admin.cluster(), &request.keyspace, &request.table).map_err(of_operation)
}

fn rebuild_indexes(admin: &NodeAdmin, request: &RebuildIndexes) -> Result<()> {
    wait(sstables::rebuild_indexes(admin.cluster(), &request.keyspace, &request.table, &request.indexes))
}

fn work(admin: &NodeAdmin, request: &SSTableRequest) -> Result<SSTableOutcome> {
    let work = match request.work {
        SSTableWork::Upgrade { include_all, max_timestamp } => Work::Upgrade { include_all, max_timestamp },
        SSTableWork::Recompress => Work::Recompress,
        SSTableWork::Verify { extended, check_version, mutate_repair_status, quick, check_tokens, .. } => {
            let options = VerifyOptions { extended, check_version, mutate_repair_status, quick };
            Work::Verify { options, check_tokens }
        }
        SSTableWork::Scrub { reinsert_overflowed_ttl: true, .. } => {
            return invalid("--reinsert-overflowed-ttl exists in Cassandra, but is not supported");
        }
        SSTableWork::Scrub { no_snapshot, skip_corrupted, no_validate, .. } => {
            Work::Scrub { options: ScrubOptions { skip_corrupted, validate: !no_validate }, no_snapshot }
        }
        SSTableWork::GarbageCollect { cells } => Work::GarbageCollect { cells },
        SSTableWork::Relocate => Work::Relocate,
    };
    tracing::info!(?work, "starting on {}.{:?}", request.keyspace, request.tables);
    let keyspaces = std::slice::from_ref(&request.keyspace);
    let selection = Selection { keyspaces, tables: &request.tables };
    let outcome = wait(sstables::work(admin.cluster(), selection, request.jobs as usize, work))?;
    tracing::info!(?work, status = outcome.status, "completed");
    Ok(SSTableOutcome { status: outcome.status, lines: outcome.lines })
}
