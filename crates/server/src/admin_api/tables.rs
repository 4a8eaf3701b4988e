//! Flushes, the switches of tables, and their options of compaction.

use std::collections::BTreeMap;

use admin::verbs::{
    Flush, GetAutoCompaction, GetCompactionThresholds, GetTableCompaction, SetAutoCompaction, SetCompactionThresholds,
    TableOptions,
};
use admin::{Functions, Result};
use cluster::operations::tables;

use super::{NodeAdmin, invalid, of_operation, selection, wait};

pub(super) fn add_to(functions: &mut Functions<NodeAdmin>) {
    functions.add(flush).add(auto_compaction).add(set_auto_compaction);
    functions.add(compaction_thresholds).add(set_compaction_thresholds).add(compaction);
}

fn compaction(admin: &NodeAdmin, request: &GetTableCompaction) -> Result<Vec<TableOptions>> {
    let schema = admin.cluster().schema();
    let Some(keyspace) = schema.keyspace(&request.keyspace) else {
        return invalid(format!("Keyspace [{}] does not exist.", request.keyspace));
    };
    let options = |of: &BTreeMap<String, String>| of.clone().into_iter().collect();
    Ok(keyspace.tables.values().map(|table| (table.name.clone(), options(&table.params.compaction))).collect())
}

fn flush(admin: &NodeAdmin, request: &Flush) -> Result<()> {
    wait(tables::flush(admin.cluster(), selection(&request.tables)))
}

fn auto_compaction(admin: &NodeAdmin, request: &GetAutoCompaction) -> Result<Vec<(String, String, bool)>> {
    tables::auto_compaction(admin.cluster(), selection(&request.tables)).map_err(of_operation)
}

fn set_auto_compaction(admin: &NodeAdmin, request: &SetAutoCompaction) -> Result<()> {
    tables::set_auto_compaction(admin.cluster(), selection(&request.tables), request.on).map_err(of_operation)
}

fn compaction_thresholds(admin: &NodeAdmin, request: &GetCompactionThresholds) -> Result<(u32, u32)> {
    tables::compaction_thresholds(admin.cluster(), &request.keyspace, &request.table).map_err(of_operation)
}

fn set_compaction_thresholds(admin: &NodeAdmin, request: &SetCompactionThresholds) -> Result<()> {
    let SetCompactionThresholds { keyspace, table, min, max } = request;
    tables::set_compaction_thresholds(admin.cluster(), keyspace, table, (*min, *max)).map_err(of_operation)
}
