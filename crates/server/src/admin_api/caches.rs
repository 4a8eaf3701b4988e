//! Caches of storage: their figures as the admin API has them, and what operators change of them.

use admin::verbs::{CacheChange, CacheInfo, CacheKind};
use admin::{Functions, Result};
use cluster::operations::caches::{self, Usage};

use super::{NodeAdmin, of_operation};

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(change);
}

fn change(admin: &NodeAdmin, change: &CacheChange) -> Result<()> {
    let node = admin.cluster();
    match *change {
        CacheChange::Invalidate(CacheKind::Keys) => caches::invalidate_keys(node),
        CacheChange::Invalidate(CacheKind::Rows) => caches::invalidate_rows(node),
        CacheChange::Capacities { keys, rows } => caches::set_capacities(node, keys, rows).map_err(of_operation)?,
        CacheChange::KeysToSave { keys, rows } => caches::set_keys_to_save(node, keys, rows),
    }
    Ok(())
}

/// The figures of a cache.
pub(super) fn info(usage: &Usage) -> CacheInfo {
    CacheInfo {
        entries: usage.entries,
        size: usage.size,
        capacity: usage.capacity,
        hits: usage.hits,
        requests: usage.requests(),
    }
}
